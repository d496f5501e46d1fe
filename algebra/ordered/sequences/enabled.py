"""Whether a row could go on with the beginning of a match."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, assert_never

from tidegate.algebra.ordered.sequences.pattern import (
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
    orders_of,
)

if TYPE_CHECKING:
    from tidegate.algebra.ordered.sequences.definition import Point
    from tidegate.algebra.ordered.sequences.node import Sequences
    from tidegate.algebra.ordered.sequences.partition import Matched, Partition


def goes_on(partition: Partition, begun: Matched, at: int) -> bool:
    """Whether the row at a place could be the next of a match that has begun so: for one of the variables that may come
    next its condition holds, and the limits of the match can still be kept.
    """
    node = partition.node
    times = [*(partition.times[place] for place, _ in begun), partition.times[at]]
    holds: dict[str, bool] = {}
    for word in words(node.pattern, tuple(variable for _, variable in begun), more=_more(node)):
        if len(word) > len(begun):
            variable = word[len(begun)]
            if variable not in holds:
                holds[variable] = partition.holds(variable, at, (*begun, (at, variable)))
            if holds[variable] and can_keep(node, word, times):
                return True
    return False


def can_end(node: Sequences, labels: Sequence[str], times: Sequence[int], since: int | None = None) -> bool:
    """Whether rows with these variables and instants can be a match or the first rows of one, as far as limits say;
    with `since`, the first rows of one of which others come at that instant or later.
    """
    return any(
        can_keep(node, word, times, since)
        for word in words(node.pattern, labels, more=_more(node))
        if since is None or len(word) > len(labels)
    )


def _more(node: Sequences) -> int:
    """How often what may be repeated has to be, so that a match has all rows that its limits ask for: of each variable
    that they name, one more may be needed.
    """
    points = [point for limit in node.limits for point in (limit.later, limit.earlier)]
    return len({v for point in points if point.variable is not None for v in node.resolved(point.variable)}) + 1


def words(pattern: Pattern, begun: Sequence[str], more: int) -> Iterator[tuple[str, ...]]:
    """The variables of rows of matches that begin with these, with so many times more of what may be repeated."""
    seen = set[tuple[str, ...]]()
    for word in _words(pattern, (), tuple(begun), more):
        if word not in seen and word[: len(begun)] == tuple(begun):
            seen.add(word)
            yield word


def _words(pattern: Pattern, word: tuple[str, ...], begun: tuple[str, ...], more: int) -> Iterator[tuple[str, ...]]:
    match pattern:
        case Step(variable):
            if len(word) >= len(begun) or begun[len(word)] == variable:
                yield (*word, variable)
        case Concatenation(()):
            yield word
        case Concatenation(parts):
            for way in _words(parts[0], word, begun, more):
                yield from _words(Concatenation(parts[1:]), way, begun, more)
        case Alternation(parts):
            for part in parts:
                yield from _words(part, word, begun, more)
        case Permutation():
            yield from _words(orders_of(pattern), word, begun, more)
        case Exclusion(part):
            yield from _words(part, word, begun, more)
        case Anchor() | Absence():
            yield word
        case Repetition(part, least, most):
            enough = max(least, len(begun)) + more
            yield from _repeated(part, least, enough if most is None else min(most, enough), word, begun, more)
        case _:
            assert_never(pattern)


def _repeated(
    part: Pattern, least: int, most: int, word: tuple[str, ...], begun: tuple[str, ...], more: int
) -> Iterator[tuple[str, ...]]:
    if least <= 0:
        yield word
    if most > 0:
        for way in _words(part, word, begun, more):
            if least > 0 or way != word:
                yield from _repeated(part, least - 1, most - 1, way, begun, more)


def can_keep(node: Sequences, word: Sequence[str], times: Sequence[int], since: int | None = None) -> bool:
    """Whether the rows of such a match can have instants that keep all limits, where the first ones have these, and the
    others come in order after them, and not before `since`.
    """
    # Distances to instant 0, which is the last place: edges (v, w, c) say that w - v is at most c.
    zero = len(word)
    edges = [(later, earlier, 0) for earlier, later in pairwise(range(len(word)))]
    edges += [(zero, place, time) for place, time in enumerate(times)]
    edges += [(place, zero, -time) for place, time in enumerate(times)]
    if since is not None and len(word) > len(times):
        edges.append((len(times), zero, -since))
    for limit in node.limits:
        later, earlier = (place_of(node, point, word) for point in (limit.later, limit.earlier))
        if later is not None and earlier is not None:
            edges.append((earlier, later, limit.most))
    return not _contradict(edges, zero + 1)


def place_of(node: Sequences, point: Point, word: Sequence[str]) -> int | None:
    """The place of a point's row among the rows of a match; None where it has no such row."""
    variables = word if point.variable is None else node.resolved(point.variable)
    places = [place for place, variable in enumerate(word) if variable in variables]
    return None if not places else places[0] if point.end == "first" else places[-1]


def _contradict(edges: Sequence[tuple[int, int, int]], places: int) -> bool:
    """Whether these bounds of differences contradict each other: whether they have a negative cycle."""
    distance = [0] * places
    for _ in range(places):
        changed = False
        for earlier, later, most in edges:
            if distance[earlier] + most < distance[later]:
                distance[later], changed = distance[earlier] + most, True
        if not changed:
            return False
    return True
