"""The parameters of the search by ranges: which patterns it serves, and each step as bounds on starts and ends.

It serves patterns of disjoint situations whose pair constraints say nothing but distances: then the starts of a cell's
situations and their ends are both in order, and the candidates that satisfy all distances to what is bound are a range.
The window is a distance, too, where the endpoints are known at which a match becomes certain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain, combinations

import numpy as np

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.cells import NONE
from tidegate.runtime.kernels.search_plan import (
    Bound,
    Instant,
    Matrix,
    Pattern,
    Steps,
    bounds_of_step,
    closed,
    exact,
    hull_of,
    instants_of,
    large,
    latest,
    plan_steps,
    tighten,
)

#: Columns of the table of steps: role and definition of the candidate, its least and greatest duration, by how much its
#: start lies before every detection, and whether its end is known by then.
ROLE, DEFINITION, LEAST, MOST, DELAY, ENDED = range(6)


@dataclass(frozen=True, slots=True)
class RangeSteps:
    """A pattern with evaluation orders, for the search by ranges. Cell i * m + k is step k of trigger role i."""

    pattern: Pattern
    #: int64[m, m]: the roles in the order in which trigger role i binds them; [i, 0] == i.
    order: Int64Array
    #: int64[m * m, 6]: a row per cell; see the names of its columns.
    steps: Int64Array
    #: int64[m * m + 1], int64[B, 3]: bounds on a step's candidate: kind, endpoint bound before, distance from it.
    bound_first: Int64Array
    bounds: Int64Array
    #: int64[m * m + 1], int64[C]: the endpoints bound up to a step that are needed after it.
    carried_first: Int64Array
    carried: Int64Array
    #: int64[T, 2]: a match is detected at the greatest of these endpoints plus their distances; with a formula, not
    #: before.
    instants: Int64Array
    #: int64[S]: the starts of which one is the first of every match.
    starts: Int64Array


def plan_search(pattern: Pattern, order: Int64Array) -> Steps | RangeSteps:
    """The parameters of the search by ranges, or of the general one where the pattern needs it."""
    return plan_ranges(pattern, order) or plan_steps(pattern, order)


def plan_ranges(pattern: Pattern, order: Int64Array) -> RangeSteps | None:
    """The parameters of the search by ranges. None: it does not serve the pattern."""
    instants, roles = instants_of(pattern), range(len(pattern.definition))
    disjoint = pattern.disjoint is None or pattern.disjoint.all()
    if not (disjoint and all(exact(int(pattern.masks[pair])) for pair in combinations(roles, 2))):
        return None
    hull = _in_window(pattern, instants)
    if any(hull[v][v] < 0 for v in range(len(hull))) or large(hull):
        return None
    instants, starts = latest(instants, hull), latest([Instant(2 * role, 0, True) for role in roles], _mirrored(hull))
    match_ends = {instant.end for instant in (*instants, *(starts if len(pattern.zones) else ()))}
    steps, bounds, carried = list[list[int]](), list[list[Bound]](), list[list[int]]()
    for searched in order.tolist():
        steps += [_step(pattern, hull, role) for role in searched]
        step_bounds = [bounds_of_step(hull, role, searched[:step]) for step, role in enumerate(searched)]
        bounds += step_bounds
        carried += _carried(searched, step_bounds, match_ends)
    return RangeSteps(
        pattern,
        np.ascontiguousarray(order, dtype=np.int64),
        np.array(steps, dtype=np.int64),
        _firsts(bounds),
        np.array([*chain(*bounds)], dtype=np.int64).reshape(-1, 3),
        _firsts(carried),
        np.array([*chain(*carried)], dtype=np.int64),
        np.array([(instant.end, instant.distance) for instant in instants], dtype=np.int64),
        np.array([start.end for start in starts], dtype=np.int64),
    )


def _in_window(pattern: Pattern, instants: list[Instant]) -> Matrix:
    """The closed distances that hold in every match, those of the window among them."""
    hull = hull_of(pattern)
    if pattern.within == NONE:
        return hull
    for role in range(len(pattern.definition)):
        for instant in instants:
            tighten(hull, 2 * role, instant.end, pattern.within - instant.distance)
    return closed(hull)


def _mirrored(hull: Matrix) -> Matrix:
    """The distances on an axis that runs the other way: what was first is last."""
    return [list(column) for column in zip(*hull, strict=True)]


def _step(pattern: Pattern, hull: Matrix, role: int) -> list[int]:
    """A row of the table of steps.

    An end that has an upper bound has to be known: while it is not, it may be as late as one likes.
    """
    ts, te = 2 * role, 2 * role + 1
    ended = pattern.final or any(hull[v][te] != NONE for v in range(len(hull)) if v != te)
    delay = 0 if pattern.final else max(int(pattern.at_least[role]), 1) - 1
    return [role, int(pattern.definition[role]), -hull[te][ts], hull[ts][te], delay, int(ended)]


def _carried(order: Sequence[int], bounds: Sequence[Sequence[Bound]], match_ends: set[int]) -> list[list[int]]:
    """For each step the endpoints bound by then that later steps, or a match of all, ask for."""
    carried: list[list[int]] = []
    for step in range(len(order)):
        asked = {end for later in bounds[step + 1 :] for _, end, _ in later} | match_ends
        carried.append(sorted(end for end in asked if end // 2 in order[: step + 1]))
    return carried


def _firsts(parts: Sequence[Sequence[object]]) -> Int64Array:
    return np.cumsum([0, *map(len, parts)], dtype=np.int64)
