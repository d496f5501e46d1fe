"""The conditions of a row pattern as kernels evaluate them: what a row alone decides, and programs for the rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

from tidegate.algebra.functions.aggregates import Function
from tidegate.algebra.ordered.sequences.certainty.prepared import atoms_of
from tidegate.algebra.ordered.sequences.navigation import Navigation, RowOf, RowsAggregate, RowValue, Variables
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Lit, Term, Value, attributes_of, conjuncts
from tidegate.algebra.typed.kernels import LITERAL
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.typed.terms import TypedTerm
from tidegate.algebra.types import DOUBLE, DataType, Kind

#: The row whose condition is asked for, where the number of a register would stand.
CURRENT: Final = -1
#: How many values a program has on its stack at most.
DEEPEST: Final = 32
#: Operations by the names of kernels, for values held as integers and for doubles.
_INTEGERS: Final = {
    **{name: f"{name}_int" for name in ("eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe")},
    **{name: name for name in ("add_int", "sub_int", "mul_int", "neg_int")},
}
_DOUBLES: Final = {
    **{name: f"{name}_double" for name in ("eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe")},
    **{name: name for name in ("add_double", "sub_double", "mul_double")},
}
_LOGIC: Final = ("and", "or", "not", "is_null", "is_not_null")


class NotCompiled(Exception):
    """Kernels can not search by this pattern, for a reason."""


@dataclass(frozen=True, slots=True)
class Register:
    """What is kept of the rows matched so far: the place of the first or last row with one of these variables, or of
    the one so many `offset` after or before it; or with `counts` how many there are.
    """

    variables: Variables
    end: str = "last"
    offset: int = 0
    counts: bool = False


@dataclass(frozen=True, slots=True)
class Instruction:
    """One step of a program over a stack of values: an operation and its operands.

    Those of arithmetic are 1 and the number of a constant where a value may have more digits than its decimal type:
    beyond plus or minus this constant there is none.
    """

    operation: str
    first: int = 0
    second: int = 0


Program: TypeAlias = tuple[Instruction, ...]


@dataclass(frozen=True, slots=True)
class Later:
    """A comparison that reads rows of the match, and rows behind others: its program, and of each that it reads from
    where, as the number of a register or `CURRENT`, and how many rows behind.
    """

    program: Program
    reads: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class Compiled:
    """The condition of a variable: all of `row`, which read the row and rows before it, all of `programs`, and what
    rows behind others decide: all of `ahead`, which read the row and those around it, and all of `later`.
    """

    row: tuple[Term, ...]
    programs: tuple[Program, ...]
    ahead: tuple[Term, ...] = ()
    later: tuple[Later, ...] = ()

    @property
    def waits(self) -> bool:
        return bool(self.ahead or self.later)


class Conditions:
    """The conditions of a pattern, and what their programs read: registers, columns and constants, each by number."""

    def __init__(self, node: Sequences) -> None:
        self.node = node
        self.schema: Schema = node.condition_schema()
        self.navigations: Mapping[str, Navigation] = {n.name: n for n in node.navigations}
        self.registers: list[Register] = []
        self.columns: list[Term] = []
        self.constants: list[Value] = []

    def compiled(self, variable: str) -> Compiled:
        """The condition of a variable. `NotCompiled` where kernels can not evaluate it."""
        condition = self.node.condition_of(variable)
        row, programs, ahead, later = list[Term](), list[Program](), list[Term](), list[Later]()
        for part in () if condition is None else conjuncts(condition):
            behind = self._behind(part, variable)
            if self._anchors(part, variable) == {CURRENT}:
                (ahead if behind else row).append(part)
                continue
            program = tuple(_Writer(self, variable).written(resolve(part, self.schema)))
            if _depth(program) > DEEPEST:
                raise NotCompiled(f"the condition of {variable} is too deep")
            if not behind:
                programs.append(program)
            elif next(atoms_of(part)) == part:
                later.append(Later(program, behind))
            else:
                raise NotCompiled(f"the condition of {variable} has a choice that a row behind others decides in part")
        return Compiled(tuple(row), tuple(programs), tuple(ahead), tuple(later))

    def register(self, variables: Variables, end: str, offset: int) -> int:
        """The number of the register of a row; those between it and the end of the match are registers, too."""
        return [self._number(Register(variables, end, before)) for before in range(offset + 1)][-1]

    def count(self, variables: Variables) -> int:
        return self._number(Register(variables, counts=True))

    def _number(self, register: Register) -> int:
        if register not in self.registers:
            self.registers.append(register)
        return self.registers.index(register)

    def column(self, term: Term) -> int:
        if term not in self.columns:
            self.columns.append(term)
        return self.columns.index(term)

    def constant(self, value: Value) -> int:
        self.constants.append(value)
        return len(self.constants) - 1

    def type_of(self, column: Term) -> DataType:
        return resolve(column, self.schema).type

    def anchor(self, name: str, variable: str) -> int | None:
        """The register of the row that is read, or near which one is, or the current row; None: it is no row."""
        navigation = self.navigations.get(name)
        if navigation is None:
            return CURRENT
        if isinstance(navigation, RowValue):
            row = navigation.row
            return CURRENT if is_current(row, variable) else self.register(row.variables, row.end, row.offset)
        if isinstance(navigation, RowsAggregate):
            return None
        raise NotCompiled(f"the condition of {variable} reads the variable of a row")

    def _behind(self, term: Term, variable: str) -> tuple[tuple[int, int], ...]:
        """What a term reads of rows behind others, by their anchors."""
        rows = [(name, self.navigations[name]) for name in sorted(attributes_of(term) & self.navigations.keys())]
        steps = {
            (self.anchor(name, variable), navigation.row.step)
            for name, navigation in rows
            if isinstance(navigation, RowValue) and navigation.row.step > 0
        }
        return tuple(sorted((anchor, step) for anchor, step in steps if anchor is not None))

    def _anchors(self, term: Term, variable: str) -> set[int | None]:
        return {self.anchor(name, variable) for name in attributes_of(term)}

    def one_anchor(self, term: Term, variable: str) -> int | None:
        """The anchor of a term that reads one row and those before it; None where it reads other rows or none."""
        anchors = self._anchors(term, variable)
        return anchors.pop() if len(anchors) == 1 else None


def is_current(row: RowOf, variable: str) -> bool:
    """Whether a row, but for its step, is the one whose condition for a variable is asked for."""
    return row.end == "last" and row.offset == 0 and (not row.variables or variable in row.variables)


class _Writer:
    """Writes the program of one condition."""

    def __init__(self, conditions: Conditions, variable: str) -> None:
        self.conditions, self.variable = conditions, variable

    def written(self, term: TypedTerm) -> list[Instruction]:
        name = term.kernel.name
        if term.kernel is LITERAL:
            return [self._constant(term)]
        if name == "int_to_double":
            return [*self.written(term.args[0]), Instruction("int_to_double")]
        anchor = None if _converts(term) else self.conditions.one_anchor(term.source, self.variable)
        if anchor is not None:
            return [self._load(term, anchor)]
        if not term.args:
            return [self._aggregate(next(iter(attributes_of(term.source))))]
        operation = self._operation(term)
        parts = [self.written(arg) for arg in term.args]
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
        if name in known and not term.lenient and all(_is_held(arg.type) for arg in term.args):
            if term.type.kind is Kind.DECIMAL and term.own_failure:
                return Instruction(known[name], 1, self.conditions.constant(term.limits[1]))
            return Instruction(known[name])
        raise NotCompiled(f"the condition of {self.variable} computes {name} of values of several rows")

    def _constant(self, term: TypedTerm) -> Instruction:
        assert isinstance(term.source, Lit)
        value = term.source.value
        if isinstance(value, str):
            raise NotCompiled(f"the condition of {self.variable} compares texts of several rows")
        if value is None:
            return Instruction("null")
        number = self.conditions.constant(value)
        return Instruction("constant_double" if term.type == DOUBLE else "constant_int", number)

    def _load(self, term: TypedTerm, anchor: int) -> Instruction:
        if not _is_held(term.type):
            raise NotCompiled(f"the condition of {self.variable} compares texts of several rows")
        kind = "load_double" if term.type == DOUBLE else "load_int"
        return Instruction(kind, anchor, self.conditions.column(term.source))

    def _aggregate(self, name: str) -> Instruction:
        navigation = self.conditions.navigations[name]
        assert isinstance(navigation, RowsAggregate)
        aggregate = navigation.aggregate
        if aggregate.function is not Function.COUNT or aggregate.argument is not None:
            raise NotCompiled(f"the condition of {self.variable} reads {name}")
        return Instruction("count", self.conditions.count(navigation.variables))


def _depth(program: Program) -> int:
    """How many values there are on the stack at most."""
    deepest = depth = 0
    for instruction in program:
        name = instruction.operation
        if name in ("null", "count") or name.startswith(("load_", "constant_")):
            depth += 1
        elif name not in ("not", "is_null", "is_not_null", "neg_int", "int_to_double"):
            depth -= 1
        deepest = max(deepest, depth)
    return deepest


def _is_held(type_: DataType) -> bool:
    """Whether values are numbers in kernels."""
    return type_.is_integer_held or type_.kind in (Kind.DOUBLE, Kind.BOOLEAN)


def _converts(term: TypedTerm) -> bool:
    """Whether the term is made of one of another type that stands in its place."""
    return term.kernel.name in ("rescale", "rescale_clamped", "decimal_to_double")
