"""What conditions and measures of a row pattern read of the rows of a match, and of the rows around them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import aggregate_attribute
from tidegate.algebra.printing.plans import aggregate_text
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Attr, Term
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT, STRING

#: The rows of a match that have one of these variables; of none, all of them.
Variables: TypeAlias = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class RowOf:
    """A row: of those of a match with one of these variables the first or the last, or the one that is so many
    `offset` of them after the first, or before the last; from there, `step` rows on in the partition, or back where
    that is negative.
    """

    variables: Variables = ()
    end: Literal["first", "last"] = "last"
    offset: int = 0
    step: int = 0


@dataclass(frozen=True, slots=True)
class RowValue:
    """The argument's value in a row; NULL where there is none. `final`: of the whole match, not of its rows so far."""

    name: str
    argument: Term
    row: RowOf = RowOf()
    final: bool = False


@dataclass(frozen=True, slots=True)
class RowsAggregate:
    """An aggregate of the rows of a match with one of these variables. `final`: of the whole match."""

    aggregate: Aggregate
    variables: Variables = ()
    final: bool = False

    @property
    def name(self) -> str:
        return self.aggregate.name


@dataclass(frozen=True, slots=True)
class Classifier:
    """The variable that a row has in the match; NULL for a row outside of it. `final`: as the whole match has it."""

    name: str
    row: RowOf = RowOf()
    final: bool = False


@dataclass(frozen=True, slots=True)
class MatchNumber:
    """The number of the match in its partition, from 1 on."""

    name: str


Navigation: TypeAlias = RowValue | RowsAggregate | Classifier | MatchNumber


def attribute_of(navigation: Navigation, schema: Schema) -> Attribute:
    """The attribute under which conditions and measures read it. It holds no instant: there may be no such row."""
    match navigation:
        case RowValue(name, argument):
            return Attribute(name, term_type(argument, schema))
        case RowsAggregate(aggregate):
            return aggregate_attribute(aggregate, schema)
        case Classifier(name):
            return Attribute(name, STRING)
        case MatchNumber(name):
            return Attribute(name, BIGINT, nullable=False)
        case _:
            assert_never(navigation)


def terms_of(navigation: Navigation) -> tuple[Term, ...]:
    """The terms that it evaluates for each row that it reads."""
    match navigation:
        case RowValue(_, argument):
            return (argument,)
        case RowsAggregate(aggregate):
            return aggregate.terms
        case Classifier() | MatchNumber():
            return ()
        case _:
            assert_never(navigation)


def reach_of(navigations: Sequence[Navigation]) -> tuple[int, int]:
    """How many rows before the rows of a match are read, and how many after them."""
    steps = [n.row.step for n in navigations if isinstance(n, RowValue | Classifier)]
    return -min([*steps, 0]), max([*steps, 0])


def navigation_text(navigation: Navigation) -> str:
    """The navigation as SQL writes it."""
    match navigation:
        case RowValue(_, argument, row, final):
            return _of_row(_argument(argument, row.variables), row, final)
        case RowsAggregate(aggregate, variables, final):
            text = aggregate_text(aggregate) + (f" of {' | '.join(variables)}" if variables else "")
            return f"FINAL {text}" if final else text
        case Classifier(_, row, final):
            return _of_row(f"CLASSIFIER({', '.join(row.variables)})", row, final)
        case MatchNumber():
            return "MATCH_NUMBER()"
        case _:
            assert_never(navigation)


def _argument(argument: Term, variables: Variables) -> str:
    text = term_text(argument)
    if not variables:
        return text
    of = variables[0] if len(variables) == 1 else f"({' | '.join(variables)})"
    return f"{of}.{text}" if isinstance(argument, Attr) else f"{of}.({text})"


def _of_row(text: str, row: RowOf, final: bool) -> str:
    if row.end == "first" or row.offset:
        text = f"{row.end.upper()}({text}{f', {row.offset}' if row.offset else ''})"
    if final:
        text = f"FINAL {text}"
    if row.step:
        text = f"{'NEXT' if row.step > 0 else 'PREV'}({text}{'' if abs(row.step) == 1 else f', {abs(row.step)}'})"
    return text
