"""What conditions of a row pattern say of the instants of rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.algebra.formulas import Compare, TemporalTerm, temporal_formula
from tidegate.algebra.formulas import Shift as Moved
from tidegate.algebra.formulas import Var as Instant
from tidegate.algebra.ordered.sequences.navigation import RowOf, RowValue
from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import Attr, Term, conjuncts

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.node import Sequences


@dataclass(frozen=True, slots=True)
class Read:
    """An instant that conditions read: of a row the value of an attribute."""

    row: RowOf
    attribute: str


@dataclass(frozen=True, slots=True)
class Bound:
    """`later - earlier` of the instants of two rows is at most so many ticks, which may be negative."""

    later: RowOf
    earlier: RowOf
    most: int


def instants_read(node: Sequences) -> Mapping[str, Read]:
    """The instants that conditions may read, by their names: those of the row itself and those of navigations."""
    schema = node.input.schema
    own = {attribute.name: Read(RowOf(), attribute.name) for attribute in schema.attributes if attribute.temporal}
    navigated = {
        navigation.name: Read(navigation.row, navigation.argument.name)
        for navigation in node.navigations
        if isinstance(navigation, RowValue)
        and isinstance(navigation.argument, Attr)
        and schema[navigation.argument.name].temporal
    }
    return own | navigated


def comparison_of(atom: Term, node: Sequences, read: Mapping[str, Read]) -> Compare | None:
    """The atom as a comparison of instants; None where it is something else."""
    attributes = {
        name: Attribute(name, node.input.schema[instant.attribute].type, nullable=False, temporal=True)
        for name, instant in read.items()
    }
    formula = temporal_formula(atom, attributes)
    return formula if isinstance(formula, Compare) else None


def bounds_of(condition: Term, node: Sequences, read: Mapping[str, Read]) -> tuple[Bound, ...]:
    """The bounds between instants of the order that a condition states as parts of a conjunction."""
    comparisons = (comparison_of(part, node, read) for part in conjuncts(condition))
    return tuple(
        bound for comparison in comparisons if comparison is not None for bound in _bounds(comparison, node.time, read)
    )


def _bounds(comparison: Compare, time: str, read: Mapping[str, Read]) -> Iterator[Bound]:
    left, right = (_moved(term, time, read) for term in (comparison.left, comparison.right))
    if left is None or right is None:
        return
    (first, by), (second, other) = left, right
    strict = comparison.op in ("<", ">")
    if comparison.op in ("<", "<=", "="):
        yield Bound(first, second, other - by - strict)
    if comparison.op in (">", ">=", "="):
        yield Bound(second, first, by - other - strict)


def _moved(term: TemporalTerm, time: str, read: Mapping[str, Read]) -> tuple[RowOf, int] | None:
    """The row whose instant of the order a term shifts, and by how much."""
    by = 0
    if isinstance(term, Moved):
        by, term = term.by, term.term
    if isinstance(term, Instant) and read[term.name].attribute == time:
        return read[term.name].row, by
    return None
