"""Counts the matches of a pattern in an increment without enumerating them.

Often the roles bound last are a *tail*: a root which is over before a role bound earlier begins, and roles that are
related to the root alone. A tail has no part in when a match is detected, so all roots in a range of their cell count
at once: by the sums of how many tails begin with each. `A before B and B overlaps C` has the tail A, and costs as much
for a long window as for a short one. Where there is no tail the search goes to the last role.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Int32Array, Int64Array
from tidegate.runtime.kernels.cells import NONE, Situations, Triggers
from tidegate.runtime.kernels.compiling import CUBE, INTS, NUMBERS, OUT, OUT_CUBE, TABLE, compiled
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.search import (
    _INSTANT,
    _NEXT,
    _STOP,
    _TE_TO,
    _TS_TO,
    _bind,
    _detected,
)
from tidegate.runtime.kernels.search_plan import ALL, Matrix, Pattern, Steps, exact, hull_of, mask_of, plan_steps
from tidegate.runtime.kernels.situations import OPEN

_THREE = nb.types.UniTuple(OUT, 3)  # type: ignore[no-untyped-call]  # numba has no types for it


@dataclass(frozen=True, slots=True)
class MatchCount:
    """How many matches are detected at which instants, in which partitions, and what the count cost.

    A partition and an instant may be there more than once.
    """

    partition: Int64Array
    instant: Int64Array
    number: Int64Array
    #: int64[m, m, 2]: candidates looked at, and those that passed, by trigger role and step; a range is one candidate.
    counters: Int64Array

    @property
    def matches(self) -> int:
        """The number of all matches."""
        return sum(self.number.tolist())


@dataclass(frozen=True, slots=True)
class Tail:
    """The tail of a trigger's order: the step of its root, and the tail as a pattern whose trigger is the root."""

    first: int
    steps: Steps

    @property
    def root(self) -> int:
        return int(self.steps.pattern.definition[0])

    def quiet(self, triggers: Triggers) -> bool:
        """Whether none of the tail's situations is triggered. The search then leaves none of them out."""
        definition = self.steps.pattern.definition
        return bool((triggers.first[definition] == triggers.first[definition + 1]).all())


@dataclass(frozen=True, slots=True)
class CountingSteps:
    """How the matches of a pattern are counted: the steps of its search, and the tail of every trigger's order."""

    steps: Steps
    tails: Sequence[Tail | None]

    @classmethod
    def planned(cls, pattern: Pattern, order: Int64Array) -> CountingSteps:
        """The count in these orders."""
        steps = plan_steps(pattern, order)
        return cls(steps, tails_of(steps))


def tails_of(steps: Steps) -> list[Tail | None]:
    """The longest tail of every trigger's order."""
    hull = hull_of(steps.pattern)
    tails: list[Tail | None] = []
    for order in steps.order.tolist():
        starts = [k for k in range(1, len(order)) if _is_tail(steps.pattern, order[:k], order[k:], hull)]
        tails.append(Tail(starts[0], _alone(steps.pattern, order[starts[0] :])) if starts else None)
    return tails


def count_matches(
    steps: Steps, tails: Sequence[Tail | None], situations: Situations, triggers: Triggers, after: int, until: int
) -> MatchCount:
    """Counts the matches that `enumerate_matches` would find. The situations of a definition have to be disjoint."""
    pattern = steps.pattern
    roles = len(pattern.definition)
    used = [tail if tail is not None and tail.quiet(triggers) else None for tail in tails]
    first = np.array([roles if tail is None else tail.first for tail in used], dtype=np.int64)
    sums = np.zeros((roles, len(situations.ts) + 1), dtype=np.int64)
    for role, tail in enumerate(used):
        if tail is not None and triggers.first[pattern.definition[role]] < triggers.first[pattern.definition[role] + 1]:
            sums[role, 1:] = np.cumsum(_beginning(tail, situations))
    counters = np.zeros((roles, roles, 2), dtype=np.int64)
    hit, instant, number = _count(
        pattern.definition, pattern.at_least, pattern.at_most, pattern.zones, pattern.within, pattern.final,
        steps.order, steps.bound_first, steps.bounds, steps.pair_first, steps.pairs,
        situations.definitions, situations.offsets, situations.ts, situations.te,
        triggers.first, triggers.hit, triggers.partition, triggers.quiet, after, min(until, OPEN - 1),
        first, sums, counters,
    )  # fmt: skip
    return MatchCount(triggers.partition[hit].astype(np.int64), instant, number, counters)


def _is_tail(pattern: Pattern, before: Sequence[int], tail: Sequence[int], hull: Matrix) -> bool:
    root, *rest = tail
    related = [mask for role in before if (mask := mask_of(pattern, role, root)) is not None]
    return (
        not len(pattern.zones)
        and bool((pattern.implied == NONE).all())
        and pattern.at_least[root] <= 1
        and pattern.at_most[root] == NONE
        and all(map(exact, related))
        and all(mask_of(pattern, role, tail_role) is None for role in before for tail_role in rest)
        and all(any(hull[2 * role][2 * tail_role + 1] <= 0 for role in before) for tail_role in tail)
        and (pattern.within == NONE or all(hull[2 * tail_role][2 * root] <= 0 for tail_role in rest))
    )


def _alone(pattern: Pattern, tail: Sequence[int]) -> Steps:
    """The tail as a pattern whose first role is the root. Only that role triggers."""
    count, places = len(tail), np.arange(len(tail))
    masks = np.full((count, count), ALL, dtype=np.int64)
    for i in range(count):
        for j in range(i + 1, count):
            mask = mask_of(pattern, tail[i], tail[j])
            masks[i, j] = ALL if mask is None else mask
    tail_pattern = replace(
        pattern,
        definition=pattern.definition[list(tail)],
        masks=masks,
        at_least=pattern.at_least[list(tail)],
        at_most=pattern.at_most[list(tail)],
        zones=np.empty((0, 2 * count, 2 * count), dtype=np.int64),
        implied=np.full((2 * count, 2 * count), NONE),
        within=NONE,
        final=False,
    )
    return plan_steps(tail_pattern, np.array([[role, *places[places != role]] for role in places]))


def _beginning(tail: Tail, situations: Situations) -> Int64Array:
    """The number of tails that begin with each situation. It is 0 for an open situation and for one that is no root."""
    offsets, definitions = situations.offsets, situations.definitions
    cells = np.arange(tail.root, len(offsets) - 1, definitions)
    lengths = offsets[cells + 1] - offsets[cells]
    partition = np.repeat(np.arange(len(cells), dtype=np.int32), lengths)
    hit = np.arange(len(partition)) + np.repeat(offsets[cells] - np.cumsum(lengths) + lengths, lengths)
    closed = situations.te[hit] != OPEN
    partition, hit = partition[closed], hit[closed]
    weights = np.zeros(len(situations.ts), dtype=np.int64)
    weights[hit] = 1
    steps, roles = tail.steps, len(tail.steps.pattern.definition)
    if roles == 1:
        return weights
    pattern = steps.pattern
    hit_first = np.full(definitions + 1, len(hit), dtype=np.int64)
    hit_first[: tail.root + 1] = 0
    of, _, number = _count(
        pattern.definition, pattern.at_least, pattern.at_most, pattern.zones, pattern.within, pattern.final,
        steps.order[:1], steps.bound_first, steps.bounds, steps.pair_first, steps.pairs,
        definitions, offsets, situations.ts, situations.te,
        hit_first, hit, partition, np.arange(len(situations.ts) + 1), NEVER, OPEN - 1,
        np.full(1, roles), np.zeros((1, 1), dtype=np.int64), np.zeros((roles, roles, 2), dtype=np.int64),
    )  # fmt: skip
    counts = np.zeros(len(hit), dtype=np.int64)
    np.add.at(counts, of, number)
    weights[hit] = counts
    return weights


@compiled(OUT(OUT))
def _longer(values: Int64Array) -> Int64Array:
    """The values, with room for as many more."""
    longer = np.empty(2 * len(values), dtype=np.int64)
    longer[: len(values)] = values
    return longer


@compiled(nb.int64(nb.int64, nb.int64, nb.int64, nb.int64, INTS, INTS))
def _end_of(low: int, high: int, ts_to: int, te_to: int, ts: Int64Array, te: Int64Array) -> int:
    """The first place of a cell from `low` on with a later start or end."""
    while low < high:
        middle = (low + high) >> 1
        if ts[middle] <= ts_to and te[middle] <= te_to:
            low = middle + 1
        else:
            high = middle
    return low


@compiled(
    _THREE(
        INTS, INTS, INTS, CUBE, nb.int64, nb.boolean, TABLE, INTS, TABLE, INTS, TABLE,
        nb.int64, INTS, INTS, INTS, INTS, INTS, NUMBERS, INTS, nb.int64, nb.int64,
        INTS, TABLE, OUT_CUBE,
    ),
    nogil=True,
)  # fmt: skip
def _count(
    definition: Int64Array, at_least: Int64Array, at_most: Int64Array, zones: Int64Array, within: int, final: bool,
    order: Int64Array, bound_first: Int64Array, bounds: Int64Array, pair_first: Int64Array, pairs: Int64Array,
    definitions: int, offsets: Int64Array, ts: Int64Array, te: Int64Array,
    hit_first: Int64Array, hits: Int64Array, hit_partitions: Int32Array, quiet: Int64Array, after: int, until: int,
    tails: Int64Array, sums: Int64Array, counters: Int64Array,
) -> tuple[Int64Array, Int64Array, Int64Array]:  # fmt: skip
    """Which hits have matches, at which instants, and how many. The triggers are the rows of `order`."""
    roles = definition.shape[0]
    found, room = 0, 16
    of, instants, numbers = (
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
        np.empty(room, dtype=np.int64),
    )
    stack, ends = np.zeros((7, roles), dtype=np.int64), np.zeros(2 * roles, dtype=np.int64)
    for trigger in range(order.shape[0]):
        for hit in range(hit_first[definition[trigger]], hit_first[definition[trigger] + 1]):
            first_cell = hit_partitions[hit] * definitions
            step = 0
            stack[_NEXT, 0], stack[_STOP, 0] = hits[hit], hits[hit] + 1
            stack[_TS_TO, 0], stack[_TE_TO, 0] = NONE, NONE
            while step >= 0:
                role = order[trigger, step]
                place = stack[_NEXT, step]
                if step == tails[trigger]:
                    counters[trigger, step, 0] += 1
                    if after < stack[_INSTANT, step - 1]:
                        stop = _end_of(place, stack[_STOP, step], stack[_TS_TO, step], stack[_TE_TO, step], ts, te)
                        number = sums[trigger, stop] - sums[trigger, place]
                        counters[trigger, step, 1] += 1
                        if number > 0:
                            instant = stack[_INSTANT, step - 1]
                            if found > 0 and of[found - 1] == hit and instants[found - 1] == instant:
                                numbers[found - 1] += number
                            else:
                                if found == room:
                                    of, instants, numbers = _longer(of), _longer(instants), _longer(numbers)
                                    room *= 2
                                of[found], instants[found], numbers[found] = hit, instant, number
                                found += 1
                    step -= 1
                    continue
                if role < trigger:
                    place = quiet[place]
                if place >= stack[_STOP, step] or ts[place] > stack[_TS_TO, step] or te[place] > stack[_TE_TO, step]:
                    step -= 1
                    continue
                stack[_NEXT, step] = place + 1
                if not _bind(
                    trigger, step, place, definition, at_least, at_most, within, final, order, bound_first, bounds,
                    pair_first, pairs, first_cell, offsets, ts, te, te, until, stack, ends, counters,
                ):  # fmt: skip
                    continue
                if step < roles - 1:
                    step += 1
                    continue
                instant = _detected(zones, within, final, ends, stack)
                if after < instant <= until:
                    counters[trigger, step, 1] += 1
                    if found > 0 and of[found - 1] == hit and instants[found - 1] == instant:
                        numbers[found - 1] += 1
                    else:
                        if found == room:
                            of, instants, numbers = _longer(of), _longer(instants), _longer(numbers)
                            room *= 2
                        of[found], instants[found], numbers[found] = hit, instant, 1
                        found += 1
    return of[:found].copy(), instants[:found].copy(), numbers[:found].copy()
