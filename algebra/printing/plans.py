"""Text of terms, formulas and plans, as people read them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar, assert_never

from tidegate.algebra.formulas import (
    And,
    Ceil,
    Compare,
    Floor,
    Formula,
    Greatest,
    Least,
    Not,
    Opaque,
    Or,
    Shift,
    TemporalTerm,
    Truth,
    Var,
)
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    OrderedNode,
    OrderedPart,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
    children,
)
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.time import format_duration, signed_duration
from tidegate.algebra.types import DataType, Kind

T = TypeVar("T")


def printable(text: str) -> str:
    """Text in which what cannot be printed, or turns the direction of writing, is spelled out."""
    return "".join(c if c.isprintable() or c == "\n" else f"\\u{ord(c):04x}" for c in text)


#: Of a longer list the first ones are shown.
_LISTED = 24


def listed(of: Sequence[T], text: Callable[[T], str] = str) -> str:
    """The texts of these with commas between them; of many the first, and how many more there are."""
    shown, more = ", ".join(map(text, of[:_LISTED])), len(of) - _LISTED
    return shown if more <= 0 else f"{shown} and {more} more"


def count_of(number: int, noun: str) -> str:
    """A number with its noun: "1 row", "2,000 rows"."""
    return f"{number:,} {noun}{'' if number == 1 else 'es' if noun.endswith('ch') else 's'}"


def preformatted(text: str) -> str:
    """Text as a notebook shows it: escaped HTML, in letters of one width wherever the page is exported to."""
    from html import escape

    # Pages made of notebooks break long lines of <pre> anywhere: what stands in columns scrolls instead.
    look = "font-family: monospace; line-height: 1.3; text-align: left; white-space: pre; overflow-x: auto"
    return f'<pre style="{look}">{escape(printable(text))}</pre>'


class DisplayText(str):
    """Text of several lines that prompts and notebooks show as it is, not as a Python literal."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        """For notebooks."""
        return preformatted(self)


def formula_text(formula: Formula, *, integer: bool = False) -> str:
    """A temporal relation formula with the paper's signs; shifts print as durations, or as numbers where `integer`."""
    match formula:
        case Compare(left, op, right, _):
            sign = {"<=": "≤", ">=": "≥", "!=": "≠"}.get(op, op)
            return f"{temporal_text(left, integer=integer)} {sign} {temporal_text(right, integer=integer)}"
        case Opaque(source):
            return f"[{term_text(source)}]"
        case And(parts):
            return " ∧ ".join(_part(part, integer) for part in parts) or "⊤"
        case Or(parts):
            return " ∨ ".join(_part(part, integer) for part in parts) or "⊥"
        case Not(part):
            text = formula_text(part, integer=integer)
            return f"¬{text}" if isinstance(part, Truth | Opaque) else f"¬({text})"
        case Truth(value):
            return "⊤" if value else "⊥"
        case _:
            assert_never(formula)


def _part(formula: Formula, integer: bool) -> str:
    text = formula_text(formula, integer=integer)
    return f"({text})" if isinstance(formula, And | Or) and len(formula.parts) > 1 else text


def temporal_text(term: TemporalTerm, *, integer: bool = False) -> str:
    """A temporal term; shifts and units print as durations, or as plain numbers on an `integer` timeline."""
    amount = str if integer else format_duration
    match term:
        case Var(name):
            return name
        case Shift(inner, by):
            sign = "-" if by < 0 else "+"
            moved = f"{sign} {abs(by)}" if integer else signed_duration(by)
            return f"{temporal_text(inner, integer=integer)} {moved}"
        case Least(terms):
            return f"min({', '.join(temporal_text(t, integer=integer) for t in terms)})"
        case Greatest(terms):
            return f"max({', '.join(temporal_text(t, integer=integer) for t in terms)})"
        case Floor(inner, unit):
            return f"floor({temporal_text(inner, integer=integer)}, {amount(unit)})"
        case Ceil(inner, unit):
            return f"ceil({temporal_text(inner, integer=integer)}, {amount(unit)})"
        case _:
            assert_never(term)


def node_text(node: Node) -> str:
    """The plan, one numbered relation after the other, inputs first: `r2 := select r1 where a < b`."""
    numbers: dict[Node | OrderedPart, int] = {}
    lines: list[str] = []

    def visit(current: Node) -> None:
        if current in numbers:
            return
        for child in children(current):
            visit(child)
        inputs = [f"r{numbers[child]}" for child in children(current)]
        for place, part in enumerate(current.parts if isinstance(current, OrderedNode) else ()):
            if part not in numbers:
                numbers[part] = len(numbers)
                lines.append(f"r{numbers[part]} := {part.text([inputs[place]])}")
            inputs[place] = f"r{numbers[part]}"
        numbers[current] = len(numbers)
        lines.append(f"r{numbers[current]} := {_operator(current, inputs)}")

    visit(node)
    lines.append(f"schema: {node.schema}")
    return "\n".join(lines)


def _operator(node: Node, inputs: list[str]) -> str:
    match node:
        case Scan(stream):
            return f"{'table' if stream.static else 'stream'} {stream.name}"
        case Select(_, condition):
            return f"select {inputs[0]} where {term_text(condition)}"
        case Project(_, names):
            return f"project {inputs[0]} to {', '.join(names)}"
        case Rename(_, pairs):
            return f"rename {inputs[0]}: {', '.join(f'{old} -> {new}' for old, new in pairs)}"
        case Imbed(_, name, term):
            return f"imbed {inputs[0]}: {name} = {term_text(term)}"
        case Group(_, keys, aggregates):
            computed = ", ".join(f"{aggregate.name} = {aggregate_text(aggregate)}" for aggregate in aggregates)
            return f"group {inputs[0]} by {', '.join(keys) or '()'}" + (f": {computed}" if computed else "")
        case Distinct():
            return f"distinct {inputs[0]}"
        case Product():
            return f"product {inputs[0]} x {inputs[1]}"
        case Join(_, _, condition, kind):
            return f"{kind} join {inputs[0]}, {inputs[1]} on {term_text(condition)}"
        case Union():
            return f"union {', '.join(inputs)}"
        case Difference():
            return f"difference {inputs[0]} \\ {inputs[1]}"
        case OrderedNode():
            return node.text(inputs)
        case _:
            assert_never(node)


def ticks_text(amount: int, instants: DataType) -> str:
    """So many ticks of instants of a type."""
    return format_duration(amount) if instants.kind is Kind.TIMESTAMP else str(amount)


def aggregate_text(aggregate: Aggregate, tie: str | None = None) -> str:
    """An aggregate as it is called: `first(temp, by=time)`, or `by=(time, tie)` where an attribute orders its ties."""
    argument = "" if aggregate.argument is None else term_text(aggregate.argument)
    argument += "" if aggregate.parameter is None else f", {aggregate.parameter!r}"
    order = None if aggregate.by is None else term_text(aggregate.by)
    by = "" if order is None else f", by={order}" if tie is None else f", by=({order}, {tie})"
    return f"{aggregate.function.value}({argument}{by})"
