"""The outlines of matches: in which order the rows come that limits name, whatever lies between them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton, automaton

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.definition import Point
    from tidegate.algebra.ordered.sequences.node import Sequences

#: The rows of a match that some point names, in order, each with the points that name it.
Outline: TypeAlias = tuple[frozenset["Point"], ...]


def outlines_of(node: Sequences) -> frozenset[Outline]:
    """The outlines of all matches; each has the first and the last row. That of an empty match has none."""
    from tidegate.algebra.ordered.sequences.definition import Point

    points = {Point(None, "first"), Point(None, "last")}
    points |= {point for limit in node.limits for point in (limit.later, limit.earlier)}
    states = automaton(node.pattern).states
    named = {
        state.variable: frozenset(
            point for point in points if point.variable is None or state.variable in node.resolved(point.variable)
        )
        for state in states[BEGIN + 1 :]
    }
    found = set[Outline]()
    begin: tuple[int, Outline] = (BEGIN, ())
    seen, waiting = {begin}, [begin]
    while waiting:
        state, outline = waiting.pop()
        for way in states[state].transitions:
            if way.to is None:
                found.add(outline)
                continue
            longer = (way.to, _with(outline, named[states[way.to].variable]))
            if longer not in seen:
                seen.add(longer)
                waiting.append(longer)
    return frozenset(found)


def _with(outline: Outline, named: frozenset[Point]) -> Outline:
    """The outline with one more row, which these points can name: a last row is no longer the one before."""
    known = frozenset(point for row in outline for point in row)
    new = frozenset(point for point in named if point.end == "last" or point not in known)
    left = (row - new for row in outline)
    return (*(row for row in left if row), new)


def place_in(outline: Outline, point: Point) -> int | None:
    """The place of the row that a point names; None where a match has no such row."""
    return next((place for place, row in enumerate(outline) if point in row), None)


def rows_after(of: Automaton) -> Sequence[int]:
    """How many rows a match has at least behind the row of each state."""
    before: dict[int | None, list[int]] = {}
    for state, content in enumerate(of.states):
        for way in content.transitions:
            before.setdefault(way.to, []).append(state)
    after: dict[int, int] = {}
    reached: list[int] = before.get(None, [])
    rows = 0
    while reached:
        after |= dict.fromkeys(reached, rows)
        reached = [state for to in dict.fromkeys(reached) for state in before.get(to, []) if state not in after]
        rows += 1
    return [after.get(state, 0) for state in range(len(of.states))]
