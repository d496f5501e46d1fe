"""Conditions of the text language, built through the DSL, so that all its checks apply; quantities by the units of
attributes.

A number with a unit is that number, unless an attribute beside it has a declared unit: then it is converted to that
one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from fractions import Fraction

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.dsl.checks.suggestions import NEIGHBOURS
from tidegate.algebra.dsl.expression import (
    Expression,
    Operand,
    build,
    compare,
    constant,
    is_days_apart,
    to_expression,
)
from tidegate.algebra.dsl.functions import ceil, duration, floor, timestamp, when
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.dsl.literals import literal
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.functions.aggregates import Function
from tidegate.algebra.terms import Attr, balanced
from tidegate.algebra.text.durations import seconds_of, ticks_of
from tidegate.algebra.text.parsing import Part, Text, is_quoted, name_of
from tidegate.algebra.text.units import TIME, UNITS, Unit, converted, number_of, unit_of
from tidegate.algebra.typed.operations import operation
from tidegate.algebra.types import DATE, Kind

_COMPARISONS = frozenset(("eq", "ne", "lt", "le", "gt", "ge", "eq_null_safe"))
#: What is computed of values of one unit has it, too.
_KEEPING = frozenset(("add", "sub", "mod", "try_add", "try_sub", "try_mod", "least", "greatest", "coalesce"))
_PRODUCTS = {"mul": 1, "div": -1, "try_mul": 1, "try_div": -1}
#: Operations that are written with signs and words, never by their names.
WRITTEN = {
    "and": "AND", "or": "OR", "not": "NOT", "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "eq_null_safe": "<=>", "is_null": "IS NULL", "is_not_null": "IS NOT NULL",
    "add": "+", "sub": "-", "mul": "*", "div": "/", "idiv": "DIV", "mod": "%", "neg": "-",
}  # fmt: skip
TYPED = ("TIMESTAMP", "DATE", "DURATION", "INTERVAL", "DECIMAL")
_ISO = re.compile(r"PT?\d+[YMWDHS]")


@dataclass(frozen=True, slots=True)
class Value:
    """What a part of a condition is: an expression, or a constant that takes the type of what stands beside it.

    `number` is the exact number of a quantity that is written out; it takes the unit of what stands beside it.
    """

    operand: Operand
    unit: Unit | None = None
    number: Fraction | None = None

    @property
    def is_quantity(self) -> bool:
        return self.number is not None and self.unit is not None


@dataclass(slots=True)
class Conditions:
    """Reads conditions over the events of one relation.

    `prefixes` are the names that may stand before an attribute; `symbols` are those of situations, which may not.
    `units` are the declared units of attributes; `met` the units that attributes without one were compared with.
    """

    text: Text
    relation: Relation
    prefixes: tuple[str, ...]
    symbols: tuple[str, ...]
    units: Mapping[str, Unit]
    met: dict[str, Unit] = field(default_factory=dict)

    def read(self, tree: Part) -> Expression:
        """The condition."""
        with written_at(self.text.at(tree)):
            value = self._value(tree)
            if value.is_quantity:
                raise QueryError("TG174", "a quantity is no condition", hint="compare an attribute with it")
            if value.operand is None:
                return constant(literal(None))
            return to_expression(value.operand)

    def attribute(self, tree: Part) -> Expression:
        """An attribute of the events, with or without the alias of the stream before it."""
        names = [name_of(part) for part in tree.parts]
        with written_at(self.text.at(tree)):
            if len(names) == 1 or names[0] in self.prefixes:
                self._check_name(tree.parts[-1])
                return self.relation[names[-1]]
            if names[0] in self.symbols:
                raise QueryError(
                    "TG172",
                    f"{'.'.join(names)} is no attribute of an event: {names[0]} is a situation",
                    hint="a condition reads the events of its own situation only: write "
                    f"{self.prefixes[0]}.{names[1]}; "
                    "two situations are compared in Python, by where on their matches",
                )
            near = nearest(names[0], self.prefixes, 1)
            hint = f"did you mean {near[0]}.{names[1]}?" if near else f"write {self.prefixes[0]}.{names[1]}"
            raise QueryError("TG172", f"{names[0]} is no name of the stream", hint=hint)

    def _check_name(self, part: Part) -> None:
        """`QueryError` TG101 for a name that is no attribute, and may be meant as a text or a duration."""
        name, known = name_of(part), self.relation.schema.names
        if is_quoted(part) and name not in known and not nearest(name, known):
            text = name.replace("'", "''")
            hint = f"names are in double quotes, texts in single ones: '{text}'"
            raise QueryError("TG101", f"unknown attribute {shown(name)}", hint=hint)
        if name not in known and _ISO.match(name):
            raise QueryError("TG101", f"unknown attribute {shown(name)}", hint=f"of a duration write DURATION '{name}'")

    def _value(self, tree: Part) -> Value:
        with written_at(self.text.at(tree)):
            match tree.kind:
                case "quantity":
                    return self._quantity(tree)
                case "compound":
                    seconds = seconds_of(tree.parts[0])
                    return Value(converted(seconds, UNITS["s"], UNITS["s"]), UNITS["s"], seconds)
                case "string":
                    return Value(unquoted(tree.parts[0]))
                case "typed":
                    return Value(self._typed(*tree.parts))
                case "true" | "false":
                    return Value(tree.kind == "true")
                case "null":
                    return Value(None)
                case "attribute":
                    return self._of_event(tree)
                case "call":
                    return self._call(*tree.parts)
                case "neg":
                    return _negative(self._value(tree.parts[0]))
                case op:
                    return self._operation(op, [self._value(part) for part in tree.parts], self.text.at(tree))

    def _of_event(self, tree: Part) -> Value:
        attribute = self.attribute(tree)
        assert isinstance(attribute._term, Attr)
        return Value(attribute, self.units.get(attribute._term.name))

    def _named(self, name: str) -> str:
        """The attribute of the events whose values are read by this name."""
        return name

    def _quantity(self, tree: Part) -> Value:
        written = tree.parts[0].text
        exact = number_of(written)
        value: int | float = exact.numerator if written.isdecimal() else float(written)
        if value == float("inf"):
            raise QueryError("TG110", f"{written} does not fit into a double", hint="write a smaller number")
        if len(tree.parts) == 1:
            return Value(value, None, exact)
        with written_at(self.text.at(tree.parts[1])):
            return Value(value, unit_of(tree.parts[1].text), exact)

    def _typed(self, kind: Part, text: Part, *unit: Part) -> Operand:
        content = unquoted(text)
        with written_at(self.text.at(kind)):
            if unit and kind.text.upper() != "INTERVAL":
                raise QueryError(
                    "TG170", f"{unit[0].text!r} does not fit here", hint=f"write INTERVAL {text.text} {unit[0].text}"
                )
            match kind.text.upper():
                case "TIMESTAMP":
                    return timestamp(content)
                case "DURATION" | "INTERVAL":
                    return duration(" ".join([content, *(part.text for part in unit)]))
                case "DATE":
                    return constant(literal(content, DATE))
                case "DECIMAL":
                    try:
                        return Decimal(content)
                    except InvalidOperation:
                        raise QueryError("TG110", f"{content!r} is no number", hint="write DECIMAL '1.50'") from None
                case word:
                    near = nearest(word, TYPED, 1)
                    hint = (
                        f"did you mean {near[0]} {text.text}?"
                        if near
                        else f"constants are {', '.join(TYPED)} with a text"
                    )
                    raise QueryError("TG170", f"{kind.text} before a text is no type", hint=hint)

    def _call(self, name: Part, *given: Part) -> Value:
        op = name.text.lower()
        with written_at(self.text.at(name)):
            if op in WRITTEN:
                raise QueryError("TG131", f"{op} is written {WRITTEN[op]}, not as a function")
            if op in {function.value for function in Function}:
                raise QueryError(
                    "TG115",
                    f"{op} is an aggregate: it has no value in an event",
                    hint=self.text.language.aggregates,
                )
            if op in NEIGHBOURS:
                raise QueryError(
                    "TG131",
                    f"{op}: a condition reads one event, not the one before it",
                    hint='give each row that value in Python, r.over(by="key", order="time", before=tg.lag(r.x)), and '
                    "read the text over the result; or write MATCH_RECOGNIZE, in which PREV(x) is the row before",
                )
            operation(op)
            return self._operation(op, [self._value(part) for part in given], self.text.at(name))

    def _operation(self, op: str, values: list[Value], site: Site) -> Value:
        with written_at(site):
            if op in _PRODUCTS and len(values) == 2:
                return Value(_built(op, *(value.operand for value in values)), _product_unit(op, *values))
            if op in _COMPARISONS or op in _KEEPING:
                values, unit = self._of_one_unit(op, values)
                return Value(_built(op, *(value.operand for value in values)), None if op in _COMPARISONS else unit)
            if op == "if" and len(values) == 3:
                chosen, unit = self._of_one_unit(op, values[1:])
                return Value(when(_condition(values[0]), *(value.operand for value in chosen)), unit)
            if op in ("floor", "ceil") and len(values) == 2:
                values, unit = self._of_one_unit(op, values)
                return Value((floor if op == "floor" else ceil)(values[0].operand, values[1].operand), unit)  # type: ignore[arg-type]  # checked inside
            quantity = next((value for value in values if value.is_quantity), None)
            if quantity is not None:
                raise QueryError("TG174", f"{op} takes no quantity", hint="write the number without a unit")
            return Value(
                _built(op, *(value.operand for value in values)), values[0].unit if op in ("neg", "abs") else None
            )

    def _of_one_unit(self, op: str, values: list[Value]) -> tuple[list[Value], Unit | None]:
        """The values with quantities as numbers of one unit: that of the others, or of the first quantity."""
        if any(isinstance(value.operand, Expression) and _is_of_time(value.operand) for value in values):
            return [_as_duration(value) if value.is_quantity else value for value in values], None
        measured = [value for value in values if value.unit is not None]
        if not measured:
            return values, None
        fixed = next((value for value in measured if not value.is_quantity), measured[0])
        unit = fixed.unit
        assert unit is not None
        for value in measured:
            assert value.unit is not None
            if value.unit.dimension != unit.dimension:
                raise QueryError(
                    "TG174",
                    f"{op} of {unit.measures} ({unit.name}) and {value.unit.measures} ({value.unit.name})",
                    hint="only quantities of one dimension can be compared and added",
                )
            if not value.is_quantity and value.unit.factor != unit.factor:
                factor = converted(Fraction(1), value.unit, unit)
                raise QueryError(
                    "TG174",
                    f"{op} of values in {unit.name} and in {value.unit.name}",
                    hint=f"multiply the latter by {factor}",
                )
        self._remember(values, measured)
        return [_in_unit(value, unit) if value.is_quantity else value for value in values], unit

    def _remember(self, values: list[Value], measured: list[Value]) -> None:
        """Two units of one attribute that has none declared cannot both be plain numbers."""
        for value in values:
            if value.unit is None and isinstance(value.operand, Expression) and isinstance(value.operand._term, Attr):
                name, unit = self._named(value.operand._term.name), measured[0].unit
                assert unit is not None
                known = self.met.setdefault(name, unit)
                if (known.dimension, known.factor) != (unit.dimension, unit.factor):
                    raise QueryError(
                        "TG174",
                        f"{name} is compared with {known.name} and with {unit.name}, and has no unit of its own",
                        hint=(
                            f'say in which unit its values are: units={{"{name}": "{known.name}"}}, or --unit '
                            f"{name}={known.name}"
                        ),
                    )


def _built(op: str, *operands: Operand) -> Expression:
    """The operation as the DSL's own operators build it."""
    match op:
        case "and" | "or":
            conditions = [_condition(Value(operand)) for operand in operands]
            # One after the other they would be copied as often as there are further ones.
            return balanced(lambda left, right: left & right if op == "and" else left | right, conditions)
        case "not":
            return ~_condition(Value(operands[0]))
        case "eq" | "ne" | "lt" | "le" | "gt" | "ge":
            return compare(op, *operands)
        case _:
            shift = op == "add" or (op == "sub" and isinstance(operands[0], Expression))
            return build(op, *(constant(literal(None)) if part is None else part for part in operands), shift=shift)


def _condition(value: Value) -> Expression:
    return constant(literal(None)) if value.operand is None else to_expression(value.operand)


def _negative(value: Value) -> Value:
    operand = value.operand
    if isinstance(operand, int | float | Decimal) and not isinstance(operand, bool):
        return Value(-operand, value.unit, None if value.number is None else -value.number)
    return Value(_built("neg", operand), value.unit)


def _product_unit(op: str, left: Value, right: Value) -> Unit | None:
    """Unknown where a factor's is, unless that is a plain number."""
    if left.unit is not None and right.unit is not None:
        return left.unit * right.unit if _PRODUCTS[op] > 0 else left.unit / right.unit
    if left.unit is not None and not isinstance(right.operand, Expression):
        return left.unit
    if right.unit is not None and not isinstance(left.operand, Expression) and _PRODUCTS[op] > 0:
        return right.unit
    return None


def _in_unit(value: Value, unit: Unit) -> Value:
    """The quantity as the plain number that it is in that unit; in its own it stays as it was written."""
    assert value.unit is not None
    assert value.number is not None
    if value.unit.factor == unit.factor:
        return Value(value.operand, unit, value.number)
    return Value(converted(value.number, value.unit, unit), unit)


def _is_of_time(value: Expression) -> bool:
    """Whether quantities beside it are durations."""
    return value.type.kind in (Kind.TIMESTAMP, Kind.DATE, Kind.DURATION) or is_days_apart(value)


def _as_duration(value: Value) -> Value:
    assert value.unit is not None
    assert value.number is not None
    unit = value.unit
    if unit.dimension != TIME:
        hint = "m is the metre here; write min" if unit.name == "m" else "write a time, such as 5s"
        raise QueryError("TG174", f"{unit.measures} ({unit.name}) beside an instant or a duration", hint=hint)
    return Value(constant(literal(f"{ticks_of(value.number * unit.factor)}us", duration("1s").type)))


def unquoted(part: Part) -> str:
    """A text in quotes as it is meant."""
    return part.text[1:-1].replace("''", "'")
