"""How long a match of a row pattern lasts, and how long after its rows it is decided."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton, automaton
from tidegate.algebra.ordered.sequences.certainty.instants import Bound, bounds_of, instants_read
from tidegate.algebra.ordered.sequences.definition import EveryMatch
from tidegate.algebra.ordered.sequences.navigation import Classifier, RowOf, RowValue
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.outlines import Outline, outlines_of, place_in, rows_after
from tidegate.algebra.ordered.sequences.pattern import Absence, Anchor, longest, patterns_of, shortest, variables_of
from tidegate.algebra.terms import Call, attributes_of, conjuncts
from tidegate.analysis.ordered.sequences.conditions import is_current


@dataclass(frozen=True, slots=True)
class Waits:
    """How long after its first row, and after its last, a match is certain at the latest, in ticks; None: nobody knows.
    `span` is how long it lasts at most. `leading` and `trailing` are the longest durations without rows that must not
    come before a match and after it, and `absent` is how long after its last row the latter are decided.
    """

    span: int | None
    after_first: int | None
    after_last: int | None
    leading: int
    trailing: int
    absent: int | None


def waits_of(node: Sequences) -> Waits:
    """How long matches last and wait."""
    of = automaton(node.pattern)
    before = [a for way in of.states[BEGIN].transitions if way.to is not None for a in way.absences]
    after = [a for state in of.states[1:] for way in state.transitions if way.to is None for a in way.absences]
    leading, trailing = (max((a.within or 0 for a in absences), default=0) for absences in (before, after))
    span, absent, wait = span_of(node), _after_absences(node, after), _after_match(node, of)
    if absent is None or wait is None:
        return Waits(span, None, None, leading, trailing, absent)
    wait = max(wait, absent)
    every = isinstance(node.selection, EveryMatch)
    # A row is of no match once the matches that may begin there have not come: so long after it.
    decided = not node.reported.unmatched and (every or longest(node.pattern) == shortest(node.pattern))
    after_first = None if span is None else span + wait
    return Waits(span, after_first, wait if decided else None, leading, trailing, absent)


def span_of(node: Sequences) -> int | None:
    """How long a match lasts at most, by its limits, whichever way through the pattern it takes; None: for ever."""
    spans = [_span(node, outline) for outline in outlines_of(node)]
    known = [span for span in spans if span is not None]
    return max(known, default=0) if len(known) == len(spans) else None


def _span(node: Sequences, outline: Outline) -> int | None:
    """The greatest difference of the last row of a match and its first one; 0 where they contradict each other."""
    if len(outline) < 2:
        return 0
    edges = [(later, earlier, 0) for earlier, later in pairwise(range(len(outline)))]
    for limit in node.limits:
        later, earlier = (place_in(outline, point) for point in (limit.later, limit.earlier))
        if later is not None and earlier is not None:
            edges.append((earlier, later, limit.most))
    distance: list[int | None] = [0, *(None for _ in outline[1:])]
    for _ in outline:
        for earlier, later, most in edges:
            by = distance[earlier]
            if by is not None and (distance[later] is None or by + most < (distance[later] or 0)):
                distance[later] = by + most
    return distance[-1] if distance[0] == 0 else 0


def _after_absences(node: Sequences, absences: Sequence[Absence]) -> int | None:
    """How long after the last row of a match it is decided at the latest whether rows that must not come have come."""
    waits = [
        (absence.within, _after_condition(node, variable))
        for absence in absences
        for variable in variables_of(absence.part)
    ]
    known = [(within or 0) + behind for within, behind in waits if behind is not None]
    return max(known, default=0) if len(known) == len(waits) else None


def _after_match(node: Sequences, of: Automaton) -> int | None:
    """How long after the last row of a match the conditions of its rows are decided at the latest, those of rows that
    must not come before them, and what measures read.
    """
    rows_behind = _least(zip((state.variable for state in of.states[1:]), rows_after(of)[1:], strict=True))
    if any(isinstance(part, Anchor) and part.at == "end" for part in patterns_of(node.pattern)):
        return None
    if not all(_is_known(node, row, rows_behind) for row in _measured(node)):
        return None
    waits = [_after_condition(node, variable) for variable in _reading_behind(node, of, rows_behind)]
    known = [wait for wait in waits if wait is not None]
    return max(known, default=0) if len(known) == len(waits) else None


def _least(rows: Iterable[tuple[str, int]]) -> dict[str, int]:
    """The least number by variable."""
    found: dict[str, int] = {}
    for variable, number in rows:
        found[variable] = min(number, found.get(variable, number))
    return found


def _reading_behind(node: Sequences, of: Automaton, rows_behind: Mapping[str, int]) -> Iterator[str]:
    """The variables whose conditions read rows that may lie behind the match; without those of absences after it.
    `rows_behind` is how many rows of a match there are behind one with a variable.
    """
    skips_till_next = node.selection == EveryMatch("next")
    for variable, rows in rows_behind.items():
        # Of a row that is skipped, and might have this variable, one row of the match is known to follow.
        known = min(rows, 1) if skips_till_next else rows
        if max(_steps(node, variable).values(), default=0) > known:
            yield variable
    ways = {
        (variable, way.to)
        for state in of.states
        for way in state.transitions
        for absence in way.absences
        for variable in variables_of(absence.part)
    }
    after = rows_after(of)
    before = _least((variable, after[to] + 1) for variable, to in ways if to is not None)
    for variable, rows in before.items():
        # The row itself is before that of the state; other rows may be the last.
        if any(step > (rows if anchor == RowOf() else 0) for anchor, step in _steps(node, variable).items()):
            yield variable


def _steps(node: Sequences, variable: str) -> dict[RowOf, int]:
    """How many rows behind others the condition of a variable reads, by these; `RowOf()` is the row itself."""
    condition, found = node.condition_of(variable), dict[RowOf, int]()
    read = frozenset[str]() if condition is None else attributes_of(condition)
    for name in sorted(read & node.navigation_by_name.keys()):
        navigation = node.navigation_by_name[name]
        if isinstance(navigation, RowValue | Classifier) and navigation.row.step > 0:
            anchor = _anchor(navigation.row, variable)
            found[anchor] = max(found.get(anchor, 0), navigation.row.step)
    return found


def _anchor(row: RowOf, variable: str) -> RowOf:
    """The row of a match from which a step leads to this one, in the condition of a variable."""
    return RowOf() if is_current(row, variable) else replace(row, step=0)


def _after_condition(node: Sequences, variable: str) -> int | None:
    """How long after the last row that it sees the condition of a variable is decided at the latest: it reads no row
    behind others without a limit of how far that is from a row that is there.
    """
    waits = [_limit(_stated(node, variable), variable, row, step) for row, step in _steps(node, variable).items()]
    known = [wait for wait in waits if wait is not None]
    return max([0, *known]) if len(known) == len(waits) else None


def _stated(node: Sequences, variable: str) -> tuple[Bound, ...]:
    """The bounds of instants that the condition of a variable states, and that no missing row keeps."""
    condition, read = node.condition_of(variable), instants_read(node)
    parts = () if condition is None else conjuncts(condition)
    stated = [part for part in parts if not (isinstance(part, Call) and part.op == "eq_null_safe")]
    return tuple(bound for part in stated for bound in bounds_of(part, node, read))


def _limit(bounds: tuple[Bound, ...], variable: str, anchor: RowOf, step: int) -> int | None:
    """How long after a row that is there the one so many steps behind an anchor comes at the latest."""
    return min(
        (
            bound.most
            for bound in bounds
            if bound.later.step >= step and _anchor(bound.later, variable) == anchor and bound.earlier.step <= 0
        ),
        default=None,
    )


def _measured(node: Sequences) -> list[RowOf]:
    """The rows behind others that measures read."""
    read = {name for measure in node.measures for name in attributes_of(measure.term)}
    return [
        navigation.row
        for navigation in node.navigations
        if navigation.name in read and isinstance(navigation, RowValue | Classifier) and navigation.row.step > 0
    ]


def _is_known(node: Sequences, row: RowOf, rows_behind: Mapping[str, int]) -> bool:
    """Whether a row that measures read is known with the match: it is one of its rows, or conditions limit how far it
    is.
    """
    return all(
        rows >= row.step or _limit(_stated(node, variable), variable, RowOf(), row.step) is not None
        for variable, rows in rows_behind.items()
        if not row.variables or variable in row.variables
    )
