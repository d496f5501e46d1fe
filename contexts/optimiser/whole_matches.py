"""Filters by contexts below patterns of which all matches are listed, each of them in one window (rule R62)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tidegate.algebra.nodes import Node, Rename, nodes_of
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.derive import START
from tidegate.algebra.ordered.match.node import Match, RowIntervals
from tidegate.algebra.ordered.sequences.definition import DETECTED, FIRST, LAST, ONE_ROW, EveryMatch
from tidegate.algebra.ordered.sequences.navigation import MatchNumber, RowsAggregate, reach_of
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import Absence, Anchor, is_nullable, patterns_of
from tidegate.algebra.ordered.transitions.definition import BEGAN
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.terms import Attr, call, conjunction, conjuncts
from tidegate.contexts.optimiser.filters import ContextFilter, Models, is_look_up, with_attributes

#: Puts a filter on rows, as far down as it goes.
Put = Callable[[ContextFilter, Node], Node]
#: Whether zones say that an instant of each row is never after another one.
Ordered = Callable[[Node, str, str], bool]


def below_row_pattern(made: ContextFilter, rows: Sequences, put: Put) -> Node | None:
    """Matches among the rows of each window, of one context: so each is looked for in its window alone.

    It has to be a match whatever rows there are before its first one and after its last one.
    """
    own, _ = made.split()
    began = _beginning(made)
    by_keys = {*made.keys} <= {*rows.keys}
    if began is None or not by_keys or made.since != FIRST or made.at not in (LAST, DETECTED) or not _is_alone(rows):
        return None
    carried = tuple(dict.fromkeys((*made.carried, began)))
    own = ContextFilter(own.joins, own.condition, carried).named({made.at: rows.time})
    if not own.fits(rows.input.schema):
        return None
    inside = put(own, rows.input)
    found = replace(rows, input=inside, keys=(*rows.keys, *carried))
    return with_attributes(found, (*rows.schema.names, *made.carried))


def _is_alone(rows: Sequences) -> bool:
    """Whether all matches are listed, and each is one by its own rows and those between them, from its last row on; and
    nothing that it evaluates can fail.
    """
    if not isinstance(rows.selection, EveryMatch) or rows.reported != ONE_ROW or rows.per_start is not None:
        return False
    parts = [*patterns_of(rows.pattern)]
    around = any(isinstance(part, Anchor) or (isinstance(part, Absence) and part.within is not None) for part in parts)
    if around or is_nullable(rows.pattern) or reach_of(rows.navigations) != (0, 0):
        return False
    aggregates = [one.aggregate for one in rows.navigations if isinstance(one, RowsAggregate)]
    if any(isinstance(one, MatchNumber) for one in rows.navigations) or any(
        one.entry.lenient is not None for one in aggregates
    ):
        return False
    read = rows.condition_schema()
    (reading,) = rows.readings
    asked = [definition.condition for definition in rows.definitions] + [measure.term for measure in rows.measures]
    return not any(can_fail(term, read) for term in asked) and not any(
        can_fail(term, rows.input.schema) for term in reading.terms
    )


def _beginning(made: ContextFilter) -> str | None:
    """The attribute that has the beginning of the window; None where windows of several contexts are looked up."""
    if len(made.joins) != 1:
        return None
    (join,) = made.joins
    if not isinstance(join.right, Rename) or isinstance(join.right.input, GroupedWindows):
        return None
    return next((new for old, new in join.right.pairs if old == BEGAN), None)


def below_intervals(made: ContextFilter, rows: Match, models: Models, put: Put, is_ordered: Ordered) -> Node | None:
    """Combinations of intervals that each begin in one of the contexts; the filter itself stays above, as intervals may
    end later than their window does.
    """
    first = made.since
    if first is None or not {*made.keys} <= {*rows.keys} or not made.fits(rows.schema):
        return None
    own, _ = made.split()
    there = [call("is_not_null", Attr(key)) for key in made.keys]
    asked = [part for part in conjuncts(own.condition) if part not in there]
    inside = ContextFilter(own.joins, conjunction(asked), ()).named({made.at: START})
    situations = []
    for symbol, situation in zip(rows.symbols, rows.situations, strict=True):
        start = f"{symbol}.{START}"
        between = is_ordered(rows, first, start) and is_ordered(rows, start, made.at)
        if (
            between
            and isinstance(situation, RowIntervals)
            and inside.removes_rows
            and inside.fits(situation.input.schema)
            and not _is_inside(inside, situation.input, models)
        ):
            situation = situation.over((put(inside, situation.input),))
        situations.append(situation)
    if all(new is old for new, old in zip(situations, rows.situations, strict=True)):
        return None
    return made.over(replace(rows, situations=tuple(situations)))


def _is_inside(made: ContextFilter, rows: Node, models: Models) -> bool:
    """Whether the rows have been looked up already."""
    wanted = {join.right for join in made.joins}
    return any(isinstance(node, AsOf) and is_look_up(node, models) and node.right in wanted for node in nodes_of(rows))
