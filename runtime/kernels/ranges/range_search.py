"""Enumerates the matches of a pattern of distances: the candidates of each step are a range of sorted situations.

The search goes from triggered situations as the general one does, but by blocks: partial matches of some hundred
triggered situations are extended by a step together. So what a step asks for is looked up once a block; each bound is
a loop over two columns. Where the candidates of a row begin is looked for from where those of the row before began, as
rows come in the order of their triggered situations: mostly it is a few places on.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Int32Array, Int64Array
from tidegate.runtime.kernels.cells import NONE, Situations, Triggers
from tidegate.runtime.kernels.compiling import CUBE, INTS, NUMBERS, OUT, OUT_CUBE, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.ranges.range_plan import DEFINITION, DELAY, ENDED, LEAST, MOST, ROLE, RangeSteps
from tidegate.runtime.kernels.search import Matches, _formula_instant, enumerate_matches
from tidegate.runtime.kernels.search_plan import TE_FROM, TE_TO, TS_FROM, TS_TO, Steps
from tidegate.runtime.kernels.situations import OPEN

#: Rows of a block at most. Of 128 a situation takes 17 ns, of 1,024 it takes 14, of more no less.
ROWS = 1024
#: Rows of a block at least, unless that is less.
_FEW = 64
#: Where a range begins is looked for in so many places one by one, before steps double.
_NEARBY = 6
#: Rows of the columns of a block: the situation bound last, the row of the block before that it extends, and the first
#: cell of its partition.
_PLACE, _ROW, _CELL = range(3)
#: Columns of what is known of a block: its rows, the row to extend next, the next candidate for it (-1: not looked for
#: yet), and where the range before began.
_COUNT, _NEXT, _CANDIDATE, _NEAR = range(4)
#: An end that is not known, in the columns: later than every instant, and distances can be added to it.
_UNKNOWN = 1 << 62


def find_matches(
    steps: Steps | RangeSteps, situations: Situations, triggers: Triggers, after: int, until: int
) -> Matches:
    """The matches as `enumerate_matches` has them, by the search that the pattern was planned for."""
    if isinstance(steps, Steps):
        return enumerate_matches(steps, situations, triggers, after, until)
    pattern = steps.pattern
    roles, rows = len(pattern.definition), min(ROWS, max(_FEW, len(triggers.hit)))
    counters = np.zeros((roles, roles, 2), dtype=np.int64)
    position = np.array([0, triggers.first[pattern.definition[0]], -1], dtype=np.int64)
    blocks, ends = np.empty((roles, 3, rows), dtype=np.int64), np.empty((roles, 2 * roles, rows), dtype=np.int64)
    limits, known = np.empty((roles, 4, rows), dtype=np.int64), np.zeros((roles, 4), dtype=np.int64)
    endpoints = np.empty(2 * roles, dtype=np.int64)
    parts: list[tuple[Int64Array, Int64Array]] = []
    room = len(triggers.hit) + 4 * rows
    while position[0] < roles:
        matched, detected = np.empty((room, roles), dtype=np.int64), np.empty(room, dtype=np.int64)
        count = _search(
            steps.steps, steps.bound_first, steps.bounds, steps.carried_first, steps.carried, steps.instants, steps.starts,
            pattern.zones, pattern.within, pattern.final,
            situations.definitions, situations.offsets, situations.ts, situations.te,
            triggers.first, triggers.hit, triggers.partition, triggers.quiet, after, min(until, OPEN - 1),
            position, blocks, ends, limits, known, endpoints, matched, detected, counters.reshape(-1, 2),
        )  # fmt: skip
        parts.append((matched[:count], detected[:count]))
        room *= 2
    if len(parts) == 1:
        return Matches(*parts[0], counters)
    situation = np.concatenate([part for part, _ in parts])
    return Matches(situation, np.concatenate([part for _, part in parts]), counters)


@compiled(
    nb.int64(nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, INTS, INTS),
    borrows=True,
)
def _first_place(near: int, low: int, high: int, ts_from: int, te_from: int, ts: Int64Array, te: Int64Array) -> int:
    """The first place from `low` to `high` whose start and end are late enough; neither falls.

    Looked for from `near` on: one by one, then in steps that double, then by halves.
    """
    near = min(max(near, low), high)
    width = 1
    if near > low and ts[near - 1] >= ts_from and te[near - 1] >= te_from:
        high = near - 1
        near = high - 1
        while near >= low and ts[near] >= ts_from and te[near] >= te_from:
            high = near
            near -= width
            width *= 2
        low = max(low, near + 1)
    else:
        stop = min(near + _NEARBY, high)
        while near < stop and (ts[near] < ts_from or te[near] < te_from):
            near += 1
        low = near
        if near < stop:
            return near
        while near < high and (ts[near] < ts_from or te[near] < te_from):
            low = near + 1
            near += width
            width *= 2
        high = min(high, near)
    while low < high:
        middle = (low + high) >> 1
        if ts[middle] >= ts_from and te[middle] >= te_from:
            high = middle
        else:
            low = middle + 1
    return low


@compiled(nb.boolean(nb.int64, nb.int64, nb.int64, nb.int64), inline="always")
def _lasts(ts: int, te: int, least: int, most: int) -> bool:
    """Whether a situation's duration is allowed, as far as it is known."""
    return te == OPEN or least <= te - ts <= most


@compiled(
    nb.boolean(nb.int64, nb.int64, nb.int64, TABLE, nb.int64, INTS, INTS),
    borrows=True,
)
def _is_possible(
    trigger: int, roles: int, partition: int, steps: Int64Array, definitions: int, offsets: Int64Array, quiet: Int64Array
) -> bool:  # fmt: skip
    """Whether a partition has a situation for each role, of roles before the trigger's one that is not triggered."""
    for role in range(roles):
        cell = partition * definitions + steps[role * roles, DEFINITION]
        place = offsets[cell]
        if role < trigger:
            place = quiet[place]
        if place >= offsets[cell + 1]:
            return False
    return True


@compiled(
    nb.int64(
        nb.int64, nb.int64, nb.int64, nb.int64, TABLE, nb.int64, INTS, INTS, INTS, INTS, NUMBERS, INTS,
        nb.int64, OUT_TABLE, OUT, OUT,
    ),
    borrows=True,
)  # fmt: skip
def _take_hits(
    trigger: int, roles: int, hit: int, stop: int, steps: Int64Array, definitions: int, offsets: Int64Array, ts: Int64Array, te: Int64Array,
    hits: Int64Array, hit_partitions: Int32Array, quiet: Int64Array,
    until: int, block: Int64Array, known: Int64Array, counted: Int64Array,
) -> int:  # fmt: skip
    """Fills a block with triggered situations from `hit` on. Returns the first that it has no room for, or `stop`."""
    cell, count = trigger * roles, 0
    least, most = steps[cell, LEAST], steps[cell, MOST]
    ts_to, te_to = until - steps[cell, DELAY], until if steps[cell, ENDED] else OPEN
    partition, possible = -1, False
    while hit < stop and count < block.shape[1]:
        if hit_partitions[hit] != partition:
            partition = int(hit_partitions[hit])
            possible = _is_possible(trigger, roles, partition, steps, definitions, offsets, quiet)
        if possible:
            place = hits[hit]
            counted[0] += 1
            if ts[place] <= ts_to and te[place] <= te_to and _lasts(ts[place], te[place], least, most):
                block[_PLACE, count], block[_CELL, count] = place, partition * definitions
                count += 1
        hit += 1
    counted[1] += count
    known[_COUNT], known[_NEXT], known[_CANDIDATE], known[_NEAR] = count, 0, -1, 0
    return hit


@compiled(
    nb.void(nb.int64, nb.int64, TABLE, INTS, TABLE, nb.int64, OUT_TABLE, OUT_TABLE),
    borrows=True,
)
def _limit(
    cell: int, count: int, steps: Int64Array, bound_first: Int64Array, bounds: Int64Array, until: int, ends: Int64Array, limits: Int64Array
) -> None:  # fmt: skip
    """Computes the limits of the candidates of a step for every row, by what is bound in it."""
    limits[TS_FROM, :count] = NEVER
    limits[TS_TO, :count] = until - steps[cell, DELAY]
    limits[TE_FROM, :count] = NEVER
    limits[TE_TO, :count] = until if steps[cell, ENDED] else OPEN
    for place in range(bound_first[cell], bound_first[cell + 1]):
        kind, distance = bounds[place, 0], bounds[place, 2]
        limit, bound = limits[kind], ends[bounds[place, 1]]
        if kind in (TS_FROM, TE_FROM):
            for row in range(count):
                limit[row] = max(limit[row], bound[row] + distance)
        else:
            for row in range(count):
                limit[row] = min(limit[row], bound[row] + distance)


@compiled(
    nb.int64(
        nb.int64, nb.boolean, TABLE, INTS, INTS, INTS, INTS, OUT_TABLE, OUT, OUT_TABLE, OUT_TABLE, OUT
    ),
    borrows=True,
)  # fmt: skip
def _extend(
    cell: int, skips: bool, steps: Int64Array, offsets: Int64Array, ts: Int64Array, te: Int64Array, quiet: Int64Array,
    block: Int64Array, known: Int64Array, limits: Int64Array, longer: Int64Array, counted: Int64Array,
) -> int:  # fmt: skip
    """Extends the rows of a block by the candidates of a step, from where it was left off, until `longer` is full.
    Returns the number of its rows.

    With `skips`, candidates that are triggered are left out.
    """
    definition, least, most = steps[cell, DEFINITION], steps[cell, LEAST], steps[cell, MOST]
    row, place, near, rows = known[_NEXT], known[_CANDIDATE], known[_NEAR], known[_COUNT]
    count, examined = 0, 0
    while row < rows:
        candidate_cell = block[_CELL, row] + definition
        high = offsets[candidate_cell + 1]
        if place < 0:
            near = _first_place(near, offsets[candidate_cell], high, limits[TS_FROM, row], limits[TE_FROM, row], ts, te)
            place = near
        ts_to, te_to = limits[TS_TO, row], limits[TE_TO, row]
        while True:
            if skips:
                place = quiet[place]
            if place >= high or ts[place] > ts_to or te[place] > te_to:
                break
            if count == longer.shape[1]:
                known[_NEXT], known[_CANDIDATE], known[_NEAR] = row, place, near
                counted[0] += examined
                counted[1] += count
                return count
            examined += 1
            if _lasts(ts[place], te[place], least, most):
                longer[_PLACE, count], longer[_ROW, count] = place, row
                count += 1
            place += 1
        row += 1
        place = -1
    known[_NEXT], known[_CANDIDATE], known[_NEAR] = row, -1, near
    counted[0] += examined
    counted[1] += count
    return count


@compiled(
    nb.void(nb.int64, nb.int64, nb.int64, TABLE, INTS, INTS, INTS, INTS, OUT_TABLE, OUT_TABLE, OUT_TABLE, OUT_TABLE),
    borrows=True,
)
def _carry(
    cell: int, step: int, count: int, steps: Int64Array, carried_first: Int64Array, carried: Int64Array, ts: Int64Array, te: Int64Array,
    before: Int64Array, before_ends: Int64Array, block: Int64Array, ends: Int64Array,
) -> None:  # fmt: skip
    """Fills the columns of a block that later steps need: endpoints of what was bound last, or those of rows before."""
    places, rows = block[_PLACE], block[_ROW]
    for index in range(carried_first[cell], carried_first[cell + 1]):
        end = carried[index]
        column, old = ends[end], before_ends[end]
        if end == 2 * steps[cell, ROLE]:
            for row in range(count):
                column[row] = ts[places[row]]
        elif end == 2 * steps[cell, ROLE] + 1:
            for row in range(count):
                column[row] = min(te[places[row]], _UNKNOWN)
        else:
            for row in range(count):
                column[row] = old[rows[row]]
    if step > 0:
        for row in range(count):
            block[_CELL, row] = before[_CELL, rows[row]]


@compiled(
    nb.int64(CUBE, nb.int64, nb.boolean, nb.int64, INTS, nb.int64, INTS, INTS, OUT),
    borrows=True,
)
def _by_formula(
    zones: Int64Array, within: int, final: bool, instant: int, situation: Int64Array, start: int, ts: Int64Array, te: Int64Array,
    endpoints: Int64Array,
) -> int:  # fmt: skip
    """The detection time of a match that has to satisfy a formula, given that without it. OPEN if it is no match."""
    for role in range(situation.shape[0]):
        endpoints[2 * role], endpoints[2 * role + 1] = ts[situation[role]], te[situation[role]]
    known = _formula_instant(zones, endpoints)
    if not final or known == NONE:
        instant = max(instant, known)
    return OPEN if within != NONE and instant - start > within else instant


@compiled(
    nb.int64(
        nb.int64, nb.int64, nb.int64, TABLE, TABLE, INTS, CUBE, nb.int64, nb.boolean, INTS, INTS, nb.int64, nb.int64,
        OUT_CUBE, OUT_TABLE, OUT, OUT, nb.int64, OUT_TABLE, OUT,
    ),
    borrows=True,
)  # fmt: skip
def _report(
    trigger: int, roles: int, count: int, steps: Int64Array, instants: Int64Array, starts: Int64Array, zones: Int64Array, within: int, final: bool,
    ts: Int64Array, te: Int64Array, after: int, until: int,
    blocks: Int64Array, ends: Int64Array, instant: Int64Array, endpoints: Int64Array, reported: int, matched: Int64Array, detected: Int64Array,
) -> int:  # fmt: skip
    """Writes the matches of the last step's block that are detected in the increment. Returns their number so far."""
    instant[:count] = NEVER
    for index in range(instants.shape[0]):
        column, distance = ends[instants[index, 0]], instants[index, 1]
        for row in range(count):
            instant[row] = max(instant[row], column[row] + distance)
    for row in range(count):
        when = instant[row]
        if when > until or (when <= after and not zones.shape[0]):
            continue
        ancestor = row
        for step in range(roles - 1, -1, -1):
            matched[reported, steps[trigger * roles + step, ROLE]] = blocks[step, _PLACE, ancestor]
            ancestor = blocks[step, _ROW, ancestor]
        if zones.shape[0]:
            start = NONE
            for index in range(starts.shape[0]):
                start = min(start, ends[starts[index], row])
            when = _by_formula(zones, within, final, when, matched[reported], start, ts, te, endpoints)
            if not after < when <= until:
                continue
        detected[reported] = when
        reported += 1
    return reported


@compiled(
    nb.int64(
        TABLE, INTS, TABLE, INTS, INTS, TABLE, INTS, CUBE, nb.int64, nb.boolean,
        nb.int64, INTS, INTS, INTS, INTS, INTS, NUMBERS, INTS, nb.int64, nb.int64,
        OUT, OUT_CUBE, OUT_CUBE, OUT_CUBE, OUT_TABLE, OUT, OUT_TABLE, OUT, OUT_TABLE,
    ),
    nogil=True,
    borrows=True,
)  # fmt: skip
def _search(
    steps: Int64Array, bound_first: Int64Array, bounds: Int64Array, carried_first: Int64Array, carried: Int64Array,
    instants: Int64Array, starts: Int64Array, zones: Int64Array, within: int, final: bool,
    definitions: int, offsets: Int64Array, ts: Int64Array, te: Int64Array,
    hit_first: Int64Array, hits: Int64Array, hit_partitions: Int32Array, quiet: Int64Array, after: int, until: int,
    position: Int64Array, blocks: Int64Array, ends: Int64Array, limits: Int64Array, known: Int64Array,
    endpoints: Int64Array, matched: Int64Array, detected: Int64Array, counters: Int64Array,
) -> int:  # fmt: skip
    """Continues the search from `position` (trigger role, hit, step; step -1 to begin a block of hits) until done, or
    until a block of matches may not fit the output.
    """
    roles, rows, reported = blocks.shape[0], blocks.shape[2], 0
    trigger, hit, step = position[0], position[1], position[2]
    while trigger < roles:
        first = trigger * roles
        stop = hit_first[steps[first, DEFINITION] + 1]
        if step < 0 and hit == stop:
            trigger += 1
            if trigger < roles:
                hit = hit_first[steps[trigger * roles, DEFINITION]]
            continue
        new = step + 1
        cell = first + new
        if new == roles - 1 and reported + rows > matched.shape[0]:
            position[0], position[1], position[2] = trigger, hit, step
            return reported
        if new == 0:
            hit = _take_hits(
                trigger, roles, hit, stop, steps, definitions, offsets, ts, te, hits, hit_partitions, quiet,
                until, blocks[0], known[0], counters[cell],
            )  # fmt: skip
            count = known[0, _COUNT]
        else:
            role, definition = steps[cell, ROLE], steps[cell, DEFINITION]
            skips = role < trigger and hit_first[definition] < hit_first[definition + 1]
            count = _extend(
                cell, skips, steps, offsets, ts, te, quiet,
                blocks[step], known[step], limits[step], blocks[new], counters[cell],
            )  # fmt: skip
        if not count:
            step -= 1 if new else 0
            continue
        _carry(
            cell, new, count, steps, carried_first, carried, ts, te,
            blocks[max(step, 0)], ends[max(step, 0)], blocks[new], ends[new],
        )  # fmt: skip
        if new == roles - 1:
            before = reported
            reported = _report(
                trigger, roles, count, steps, instants, starts, zones, within, final, ts, te, after, until,
                blocks, ends[new], limits[new, 0], endpoints, reported, matched, detected,
            )  # fmt: skip
            counters[cell, 1] += reported - before - count
            continue
        known[new, _COUNT], known[new, _NEXT], known[new, _CANDIDATE], known[new, _NEAR] = count, 0, -1, 0
        _limit(cell + 1, count, steps, bound_first, bounds, until, ends[new], limits[new])
        step = new
    position[0] = roles
    return reported
