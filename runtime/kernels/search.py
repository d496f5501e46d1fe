"""Enumerates the matches of a pattern in an increment by a backtracking search over the situations of each partition.

Every match holds a triggered situation. It is found from the least role that one is bound to: role i binds a triggered
situation, roles below i situations that are not triggered, roles above i any. So the search visits only partitions with
something new. Candidates of a step are a range of its cell by bounds to what is bound already, then checked exactly.
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from tidegate.runtime.arrays import BoolArray, Int32Array, Int64Array
from tidegate.runtime.kernels.cells import NONE, Situations, Triggers
from tidegate.runtime.kernels.compiling import CUBE, FLAGS, INTS, NUMBERS, OUT, OUT_CUBE, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.search_plan import TE_FROM, TS_FROM, TS_TO, Steps
from tidegate.runtime.kernels.situations import OPEN

#: Rows of the search's stack, one column a step: what is bound, the rest of the candidates' range, and the greatest
#: instant and the least start so far.
_BOUND, _NEXT, _STOP, _TS_TO, _TE_TO, _INSTANT, _START = range(7)


@dataclass(frozen=True, slots=True)
class Matches:
    """The matches of an increment, and what the search cost."""

    #: int64[c, m]: index of the situation of every role.
    situation: Int64Array
    #: int64[c]
    detected: Int64Array
    #: int64[m, m, 2]: candidates examined, and those that passed, by trigger role and step.
    counters: Int64Array


def enumerate_matches(steps: Steps, situations: Situations, triggers: Triggers, after: int, until: int) -> Matches:
    """Enumerates the matches with a triggered situation that are detected in (after, until], in no particular order.

    All situations that a match may use are given: begun by `until`, over by then or OPEN. Detection is the least
    instant, max ts at least, at which the pattern is certain whatever the ends not known by then turn out to be; or,
    final, max te. All times and finite bounds are below 2^62 in size.
    """
    pattern = steps.pattern
    roles = len(pattern.definition)
    disjoint = np.ones(situations.definitions, dtype=np.bool_) if pattern.disjoint is None else pattern.disjoint
    reach = situations.te if disjoint.all() else _reach(situations.definitions, situations.offsets, situations.te)
    counters = np.zeros((roles, roles, 2), dtype=np.int64)
    position = np.array([0, triggers.first[pattern.definition[0]], -1], dtype=np.int64)
    stack, ends = np.zeros((7, roles), dtype=np.int64), np.zeros(2 * roles, dtype=np.int64)
    parts: list[tuple[Int64Array, Int64Array]] = []
    room = max(1024, len(triggers.hit))
    while position[0] < roles:
        matched, detected = np.empty((room, roles), dtype=np.int64), np.empty(room, dtype=np.int64)
        count = _search(
            pattern.definition, pattern.at_least, pattern.at_most, pattern.zones, pattern.within, pattern.final,
            steps.order, steps.bound_first, steps.bounds, steps.pair_first, steps.pairs,
            situations.definitions, situations.offsets, situations.ts, situations.te, reach, disjoint,
            triggers.first, triggers.hit, triggers.partition, triggers.quiet, after, min(until, OPEN - 1),
            position, stack, ends, matched, detected, counters,
        )  # fmt: skip
        parts.append((matched[:count], detected[:count]))
        room *= 2
    situation = np.concatenate([part for part, _ in parts])
    return Matches(situation, np.concatenate([part for _, part in parts]), counters)


@compiled(OUT(nb.int64, INTS, INTS))
def _reach(definitions: int, offsets: Int64Array, te: Int64Array) -> Int64Array:
    """The running maximum of ends in each cell. For disjoint situations it equals `te`."""
    reach = te.copy()
    for cell in range(offsets.shape[0] - 1):
        for place in range(offsets[cell] + 1, offsets[cell + 1]):
            reach[place] = max(reach[place], reach[place - 1])
    return reach


@compiled(nb.int64(nb.int64, nb.int64, nb.int64, nb.int64), inline="always")
def _relation(ts: int, te: int, other_ts: int, other_te: int) -> int:
    """The number in `RELATIONS` of Allen's relation between two situations. Two open ones count as ending together."""
    if te < other_ts:
        return 0
    if te == other_ts:
        return 1
    if other_te < ts:
        return 12
    if other_te == ts:
        return 11
    by_end = 1 if te > other_te else -1 if te < other_te else 0
    if ts < other_ts:
        return 3 + by_end
    return 6 + by_end if ts == other_ts else 9 + by_end


@compiled(nb.int64(CUBE, INTS), borrows=True)
def _formula_instant(zones: Int64Array, ends: Int64Array) -> int:
    """When the last zone of the negated formula is refuted; NONE if one is not, whatever the open ends are."""
    instant = NEVER
    for zone in range(zones.shape[0]):
        refuted = NONE
        for v in range(ends.shape[0]):
            if ends[v] == OPEN:
                continue
            for u in range(ends.shape[0]):
                bound = zones[zone, v, u]
                if bound != NONE and (ends[u] == OPEN or ends[u] - ends[v] > bound):
                    refuted = min(refuted, ends[v] + max(bound, 0))
        if refuted == NONE:
            return NONE
        instant = max(instant, refuted)
    return instant


@compiled(
    nb.int64(nb.int64, nb.int64, nb.int64, nb.int64, nb.boolean, nb.int64, nb.int64, TABLE, nb.int64, INTS),
    borrows=True,
)
def _instant(
    ts: int, te: int, at_least: int, at_most: int, final: bool, first: int, last: int, pairs: Int64Array, instant: int,
    ends: Int64Array,
) -> int:  # fmt: skip
    """The detection time with a candidate, given that without it. NONE if the candidate is impossible or not certain
    yet.
    """
    if te != OPEN and not at_least <= te - ts <= at_most:
        return NONE
    if final:
        instant = max(instant, te)
    else:
        instant = max(instant, ts + max(at_least, 1) - 1)
        if at_most != NONE:
            instant = max(instant, te)
    for place in range(first, last):
        other_ts, other_te = ends[2 * pairs[place, 0]], ends[2 * pairs[place, 0] + 1]
        relation = _relation(other_ts, other_te, ts, te)
        if not (pairs[place, 1] >> relation) & 1:
            return NONE
        if not final and not (pairs[place, 2] >> relation) & 1:
            instant = max(instant, min(other_te, te))
    return instant


@compiled(
    nb.void(
        nb.int64, nb.int64, nb.int64, TABLE, nb.int64, nb.boolean, INTS, INTS, INTS, nb.int64, nb.int64,
        OUT_TABLE,
    ),
    borrows=True,
)  # fmt: skip
def _open_step(
    step: int, first: int, last: int, bounds: Int64Array, within: int, final: bool, ends: Int64Array, ts: Int64Array, reach: Int64Array,
    low: int, high: int, stack: Int64Array,
) -> None:  # fmt: skip
    """Sets the range `low` to `high` of a step's candidates in its cell. `reach` does not fall within a cell."""
    ts_from, ts_to, te_from, te_to = NEVER, NONE, NEVER, NONE
    for place in range(first, last):
        kind, end = bounds[place, 0], ends[bounds[place, 1]]
        limit = end if end == OPEN else end + bounds[place, 2]
        if kind == TS_FROM:
            ts_from = max(ts_from, limit)
        elif kind == TS_TO:
            ts_to = min(ts_to, limit)
        elif kind == TE_FROM:
            te_from = max(te_from, limit)
        else:
            te_to = min(te_to, limit)
    if within != NONE:
        ts_from = max(ts_from, stack[_INSTANT, step - 1] - within)
        ts_to = min(ts_to, stack[_START, step - 1] + within)
        if final:
            te_to = min(te_to, stack[_START, step - 1] + within)
    stack[_STOP, step], stack[_TS_TO, step], stack[_TE_TO, step] = high, min(ts_to, te_to), te_to
    while low < high:
        middle = (low + high) >> 1
        if ts[middle] >= ts_from and reach[middle] >= te_from:
            high = middle
        else:
            low = middle + 1
    stack[_NEXT, step] = low


@compiled(
    nb.boolean(
        nb.int64, nb.int64, nb.int64, INTS, INTS, INTS, nb.int64, nb.boolean, TABLE, INTS, TABLE,
        INTS, TABLE, nb.int64, INTS, INTS, INTS, INTS, nb.int64, OUT_TABLE, OUT, OUT_CUBE,
    ),
    inline="always",
    borrows=True,
)  # fmt: skip
def _bind(
    trigger: int, step: int, place: int, definition: Int64Array, at_least: Int64Array, at_most: Int64Array, within: int, final: bool,
    order: Int64Array, bound_first: Int64Array, bounds: Int64Array, pair_first: Int64Array, pairs: Int64Array,
    first_cell: int, offsets: Int64Array, ts: Int64Array, te: Int64Array, reach: Int64Array, until: int,
    stack: Int64Array, ends: Int64Array, counters: Int64Array,
) -> bool:  # fmt: skip
    """Binds a step's candidate and opens the next step. Returns False if no match detected up to `until` has the
    candidate.
    """
    roles = definition.shape[0]
    role, cell = order[trigger, step], trigger * roles + step
    counters[trigger, step, 0] += 1
    instant = stack[_INSTANT, step - 1] if step else NEVER
    start = min(stack[_START, step - 1], ts[place]) if step else ts[place]
    instant = _instant(
        ts[place], te[place], at_least[role], at_most[role], final, pair_first[cell], pair_first[cell + 1],
        pairs, instant, ends,
    )  # fmt: skip
    if instant > until or (within != NONE and instant - start > within):
        return False
    ends[2 * role], ends[2 * role + 1] = ts[place], te[place]
    stack[_BOUND, step], stack[_INSTANT, step], stack[_START, step] = place, instant, start
    if step < roles - 1:
        counters[trigger, step, 1] += 1
        next_cell = first_cell + definition[order[trigger, step + 1]]
        _open_step(
            step + 1, bound_first[cell + 1], bound_first[cell + 2], bounds, within, final, ends, ts, reach,
            offsets[next_cell], offsets[next_cell + 1], stack,
        )  # fmt: skip
    return True


@compiled(nb.int64(CUBE, nb.int64, nb.boolean, INTS, OUT_TABLE), inline="always", borrows=True)
def _detected(zones: Int64Array, within: int, final: bool, ends: Int64Array, stack: Int64Array) -> int:
    """The detection time of a match whose roles are all bound; OPEN if it is no match."""
    last = stack.shape[1] - 1
    instant, known = stack[_INSTANT, last], _formula_instant(zones, ends)
    if not final or known == NONE:
        instant = max(instant, known)
    return OPEN if within != NONE and instant - stack[_START, last] > within else instant


@compiled(
    nb.int64(
        INTS, INTS, INTS, CUBE, nb.int64, nb.boolean, TABLE, INTS, TABLE, INTS, TABLE,
        nb.int64, INTS, INTS, INTS, INTS, FLAGS, INTS, INTS, NUMBERS, INTS, nb.int64, nb.int64,
        OUT, OUT_TABLE, OUT, OUT_TABLE, OUT, OUT_CUBE,
    ),
    nogil=True,
    borrows=True,
)  # fmt: skip
def _search(
    definition: Int64Array, at_least: Int64Array, at_most: Int64Array, zones: Int64Array, within: int, final: bool,
    order: Int64Array, bound_first: Int64Array, bounds: Int64Array, pair_first: Int64Array, pairs: Int64Array,
    definitions: int, offsets: Int64Array, ts: Int64Array, te: Int64Array, reach: Int64Array, disjoint: BoolArray,
    hit_first: Int64Array, hits: Int64Array, hit_partitions: Int32Array, quiet: Int64Array, after: int, until: int,
    position: Int64Array, stack: Int64Array, ends: Int64Array, matched: Int64Array, detected: Int64Array, counters: Int64Array,
) -> int:  # fmt: skip
    """Continues the search from `position` (trigger role, hit, step; step -1 to begin a hit) until done or the output
    is full.
    """
    roles = definition.shape[0]
    count = 0
    trigger, hit, step = position[0], position[1], position[2]
    while trigger < roles:
        if hit == hit_first[definition[trigger] + 1]:
            trigger += 1
            if trigger < roles:
                hit = hit_first[definition[trigger]]
            continue
        first_cell = hit_partitions[hit] * definitions
        if step < 0:
            possible = True
            for role in range(trigger):
                cell = first_cell + definition[role]
                possible &= quiet[offsets[cell]] < offsets[cell + 1]
            if not possible:
                hit += 1
                continue
            step = 0
            stack[_NEXT, 0], stack[_STOP, 0] = hits[hit], hits[hit] + 1
            stack[_TS_TO, 0], stack[_TE_TO, 0] = NONE, NONE
        while step >= 0:
            role = order[trigger, step]
            place = stack[_NEXT, step]
            if role < trigger:
                place = quiet[place]
            if place >= stack[_STOP, step] or ts[place] > stack[_TS_TO, step]:
                step -= 1
                continue
            if te[place] > stack[_TE_TO, step]:
                if disjoint[definition[role]]:
                    step -= 1
                else:
                    stack[_NEXT, step] = place + 1
                continue
            if count == matched.shape[0]:
                position[0], position[1], position[2] = trigger, hit, step
                return count
            stack[_NEXT, step] = place + 1
            if not _bind(
                trigger, step, place, definition, at_least, at_most, within, final, order, bound_first, bounds,
                pair_first, pairs, first_cell, offsets, ts, te, reach, until, stack, ends, counters,
            ):  # fmt: skip
                continue
            if step < roles - 1:
                step += 1
                continue
            instant = _detected(zones, within, final, ends, stack)
            if after < instant <= until:
                counters[trigger, step, 1] += 1
                for bound in range(roles):
                    matched[count, order[trigger, bound]] = stack[_BOUND, bound]
                detected[count] = instant
                count += 1
        hit += 1
    position[0] = roles
    return count
