"""Programs of conditions that read several rows of a match: steps over a stack of values, as kernels take them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tidegate.algebra.functions.aggregates import Function
from tidegate.algebra.ordered.sequences.navigation import RowsAggregate, Variables
from tidegate.algebra.terms import Lit, attributes_of
from tidegate.algebra.typed.kernels import LITERAL
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.typed.terms import TypedTerm
from tidegate.algebra.types import DOUBLE, INT64_MAX, MAX_DECIMAL_PRECISION, STRING, Kind

if TYPE_CHECKING:
    from tidegate.analysis.ordered.sequences.conditions import Conditions

#: The row whose condition is asked for, where the number of a register would stand.
CURRENT: Final = -1
#: How many values a program has on its stack at most.
DEEPEST: Final = 32
#: How many words a sum has: the number of its values, and two of their total.
SUM_WORDS: Final = 3
_COMPARISONS: Final = ("eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe")
#: Operations by the names of kernels, for values held as integers and for doubles. Texts have numbers in their order.
_INTEGERS: Final = {
    **{name: f"{name}_int" for name in _COMPARISONS},
    **{name: name for name in ("add_int", "sub_int", "mul_int", "neg_int", "abs_int")},
}
_DOUBLES: Final = {
    **{name: f"{name}_double" for name in _COMPARISONS},
    **{name: name for name in ("add_double", "sub_double", "mul_double", "div_double", "neg_double", "abs_double")},
}
_LOGIC: Final = ("and", "or", "not", "is_null", "is_not_null")
#: Operations that leave as many values on the stack as there were; those that put one there begin with `_PUTS`.
_IN_PLACE: Final = (*("not", "is_null", "is_not_null"), *("neg_int", "abs_int", "neg_double", "abs_double"))
_PUTS: Final = ("load_", "constant_", "sum_of_", "mean_of_")
_SUMS: Final = (Function.SUM, Function.TRY_SUM)


class NotCompiled(Exception):
    """Kernels can not search by this pattern, for a reason."""


@dataclass(frozen=True, slots=True)
class Register:
    """What is kept of the rows matched so far with one of these variables.

    `first` and `last`: the place of that row, or of the one so many `offset` after or before it. `least` and
    `greatest`: the place of the first row with that value of a column. `count`: how many rows there are, or how many
    with a value of a column. `sum`: a word of the sum of a column.
    """

    variables: Variables
    holds: Literal["first", "last", "least", "greatest", "count", "sum"] = "last"
    offset: int = 0
    column: int = -1

    @property
    def is_number(self) -> bool:
        """Whether it holds a number, and no place of a row."""
        return self.holds in ("count", "sum")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step of a program over a stack of values: an operation and its operands.

    Those of arithmetic are 1 and the number of a constant where a value may have more digits than its decimal type:
    beyond plus or minus this constant there is none. A sum of integers has the number of the greatest one that fits.
    """

    operation: str
    first: int = 0
    second: int = 0


Program: TypeAlias = tuple[Instruction, ...]


def joined(programs: Sequence[Program]) -> Program:
    """The program that is true where all of these are."""
    code = list[Instruction]()
    for number, program in enumerate(programs):
        code += program
        if number:
            code.append(Instruction("and"))
    return tuple(code)


class Writer:
    """Writes the program of a part of a variable's condition."""

    def __init__(self, conditions: Conditions, variable: str) -> None:
        self.conditions, self.variable = conditions, variable

    def program(self, term: TypedTerm) -> Program:
        """`NotCompiled` where kernels can not evaluate the term."""
        program = tuple(self._written(term))
        if _depth(program) > DEEPEST:
            raise NotCompiled(f"the condition of {self.variable} is too deep")
        return program

    def _written(self, term: TypedTerm) -> list[Instruction]:
        if term.kernel is LITERAL:
            return [self._constant(term)]
        if _converts(term):
            return self._converted(term)
        anchor = self.conditions.one_anchor(term.source, self.variable)
        if anchor is not None:
            return [self._load(term, anchor)]
        if not term.args:
            return [self._aggregate(next(iter(attributes_of(term.source))))]
        operation = self._operation(term)
        parts = [self._written(arg) for arg in term.args]
        code = list(parts[0])
        if len(parts) == 1:
            return [*code, operation]
        for part in parts[1:]:
            code += [*part, operation]
        return code

    def _operation(self, term: TypedTerm) -> Instruction:
        name = term.kernel.name
        if name in _LOGIC:
            return Instruction(name)
        known = _DOUBLES if term.args[0].type == DOUBLE else _INTEGERS
        texts = any(arg.type == STRING for arg in term.args)
        if name in known and not term.lenient and (not texts or name in _COMPARISONS):
            if term.type.kind is Kind.DECIMAL and term.own_failure:
                return Instruction(known[name], 1, self.conditions.constant(term.limits[1]))
            return Instruction(known[name])
        raise self._uncomputed(term)

    def _uncomputed(self, term: TypedTerm) -> NotCompiled:
        return NotCompiled(f"the condition of {self.variable} computes {term.kernel.name} of values of several rows")

    def _converted(self, term: TypedTerm) -> list[Instruction]:
        """A value as one of another type."""
        code = self._written(term.args[0])
        if term.kernel.name == "int_to_double":
            return [*code, Instruction("int_to_double")]
        (factor,) = term.constants
        assert isinstance(factor, int)
        if term.kernel.name == "decimal_to_double":
            scale = Instruction("constant_double", self.conditions.constant(float(factor)))
            return [*code, Instruction("int_to_double"), scale, Instruction("div_double")]
        if term.kernel.name == "rescale" and not term.lenient:
            most = self.conditions.constant(term.limits[1])
            times = Instruction("constant_int", self.conditions.constant(factor))
            return [*code, times, Instruction("mul_int", int(term.own_failure), most if term.own_failure else 0)]
        raise self._uncomputed(term)

    def _constant(self, term: TypedTerm) -> Instruction:
        assert isinstance(term.source, Lit)
        value = term.source.value
        if value is None:
            return Instruction("null")
        if isinstance(value, str):
            # The number of a text depends on the other texts, so it is a value of the rows.
            return Instruction("load_int", CURRENT, self.conditions.column(term.source))
        number = self.conditions.constant(value)
        return Instruction("constant_double" if term.type == DOUBLE else "constant_int", number)

    def _load(self, term: TypedTerm, anchor: int) -> Instruction:
        kind = "load_double" if term.type == DOUBLE else "load_int"
        return Instruction(kind, anchor, self.conditions.column(term.source))

    def _aggregate(self, name: str) -> Instruction:
        """The aggregate of the rows so far."""
        conditions, navigation = self.conditions, self.conditions.navigations[name]
        assert isinstance(navigation, RowsAggregate)
        aggregate, variables = navigation.aggregate, navigation.variables
        if aggregate.argument is None:
            return Instruction("count", conditions.aggregate(variables, "count"))
        typed = resolve(aggregate.argument, conditions.schema)
        known = aggregate.function in (*_SUMS, Function.AVG, Function.MIN, Function.MAX, Function.COUNT)
        if not known or typed.fallible:
            raise NotCompiled(f"the condition of {self.variable} reads {name}")
        column, doubles = conditions.column(aggregate.argument), typed.type == DOUBLE
        if aggregate.function is Function.COUNT:
            return Instruction("count", conditions.aggregate(variables, "count", column))
        if aggregate.function in (Function.MIN, Function.MAX):
            holds: Literal["least", "greatest"] = "least" if aggregate.function is Function.MIN else "greatest"
            register = conditions.aggregate(variables, holds, column)
            return Instruction("load_double" if doubles else "load_int", register, column)
        register = conditions.aggregate(variables, "sum", column)
        if aggregate.function is Function.AVG:
            scale = conditions.constant(float(10**typed.type.scale))
            return Instruction("mean_of_doubles", register) if doubles else Instruction("mean_of_ints", register, scale)
        if doubles:
            return Instruction("sum_of_doubles", register)
        most = 10**MAX_DECIMAL_PRECISION - 1 if typed.type.kind is Kind.DECIMAL else INT64_MAX
        return Instruction("sum_of_ints", register, conditions.constant(most))


def _depth(program: Program) -> int:
    """How many values there are on the stack at most."""
    deepest = depth = 0
    for instruction in program:
        name = instruction.operation
        if name in ("null", "count") or name.startswith(_PUTS):
            depth += 1
        elif name not in _IN_PLACE and name != "int_to_double":
            depth -= 1
        deepest = max(deepest, depth)
    return deepest


def _converts(term: TypedTerm) -> bool:
    """Whether the term is made of one of another type that stands in its place."""
    return term.kernel.name in ("int_to_double", "rescale", "rescale_clamped", "decimal_to_double")
