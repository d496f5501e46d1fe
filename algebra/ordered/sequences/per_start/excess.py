"""Rows that begin more matches than a pattern allows for one row (rule R52), and the error of the first of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.nodes import Row
from tidegate.algebra.ordered.events import key_text
from tidegate.algebra.ordered.sequences.automata.automaton import Automaton, automaton
from tidegate.algebra.ordered.sequences.counting.countable import counting_of
from tidegate.algebra.ordered.sequences.definition import EveryMatch
from tidegate.algebra.ordered.sequences.partition import Partition
from tidegate.algebra.ordered.sequences.pattern import pattern_text
from tidegate.algebra.ordered.sequences.per_start.beginnings import Beginnings
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.printing.terms import value_text

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.node import Sequences


@dataclass(frozen=True, slots=True)
class Excess:
    """A row that begins too many matches: the key of its partition, its instant, and that of the row with which there
    are too many. `found`: so many are matches; else they are beginnings of some.
    """

    key: Row
    start: int
    by: int
    found: bool


def excess_in(partition: Partition, key: Row, begin: int = 0, since: int | None = None) -> Excess | None:
    """The first row that begins too many matches with the first row, later than `since`, with which any does; None
    where none does. No beginnings of matches from rows before the place `begin` are open.
    """
    node, times = partition.node, partition.times
    assert node.per_start is not None
    states = automaton(node.pattern)
    for by in range(0 if since is None else bisect_right(times, since), len(times)):
        known, going = partition.first(by + 1), by + 1
        for start in range(begin, by + 1):
            of = _beginnings(known, states, times[by])
            matches = {path.matched for path in of.matches(start)} - {()}
            most = max(map(len, of.open.values()), default=0)
            if max(len(matches), most) > node.per_start:
                return Excess(key, times[start], times[by], len(matches) > node.per_start)
            if most:
                going = min(going, start)
        begin = going
    return None


def first_open(partition: Partition, begin: int, until: int) -> int:
    """The place of the first row, from `begin` on, of which beginnings of matches are open that rows later than an
    instant may go on with, of rows that are known then.
    """
    states, known = automaton(partition.node.pattern), partition.first(bisect_right(partition.times, until))
    for start in range(begin, len(known.rows)):
        of = _beginnings(known, states, until + 1)
        for _ in of.matches(start):
            pass
        if of.open:
            return start
    return len(known.rows)


def _beginnings(partition: Partition, states: Automaton, since: int) -> Beginnings:
    selection = partition.node.selection
    assert isinstance(selection, EveryMatch)
    return Beginnings(partition, selection.skipping, states, since)


def too_many(node: Sequences, excesses: Iterable[Excess]) -> EvaluationError:
    """TG307 of the first of these: of those of one instant the one whose row came first, or whose key is least as it is
    written.
    """
    schema = node.input.schema
    first = min(excesses, key=lambda excess: (excess.by, excess.start, key_text(schema, node.keys, excess.key)))
    type_, limit = schema[node.time].type, node.per_start or 0
    pattern = pattern_text(node.pattern, lambda ticks: ticks_text(ticks, type_))
    where = f" where {key_text(schema, node.keys, first.key)}" if node.keys else ""
    what = "" if first.found else " beginnings of matches that the same rows to come would end"
    more = f"more than {limit:,} match{'es' if limit > 1 else ''}"
    return EvaluationError(
        "TG307",
        f"the row at {value_text(first.start, type_)}{where} begins {more} of {pattern} (per_start={limit})",
        because=(f"with the row at {value_text(first.by, type_)} there are more{what}",),
        hint="a shorter within=, conditions in define= that fewer rows satisfy, or a greater per_start; "
        + _without_listing(node),
    )


def _without_listing(node: Sequences) -> str:
    """Whether the matches could be counted, if they had no limit."""
    listed = counting_of(replace(node, per_start=None))
    if isinstance(listed, str):
        return f"without it group_by(...) would list them as well, since {listed}"
    return "matches are counted without listing them by group_by(...) and no per_start"
