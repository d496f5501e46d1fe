"""The preferred matches of all partitions, each at the instant from which nothing to come can change it."""

from __future__ import annotations

from typing import Final

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int16Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import DOUBLES, INTS, OUT, OUT_DOUBLES, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.machine import DOUBLE_TABLE, MARKS, OUT_MARKS, holds
from tidegate.runtime.kernels.sequences.threads import (
    DEATH,
    EVER,
    NEVER,
    NO_LOOK,
    NODE,
    REGISTERS,
    STATE,
    WAYS,
    keeps_limits,
    last_instant,
    match_row,
)

#: Columns of a match: its partition, first row, length, instant, number, and where its states begin in their list.
PARTITION, START, LENGTH, DETECTED, NUMBER, STATES = range(6)
#: How a search from a row ends: there may be a match, it is decided, or an array has no room.
OPEN, DECIDED, NO_ROOM = range(3)
#: No match, and an empty one, in the place of a node.
NONE: Final = -2
EMPTY: Final = -1
#: What an array of options has, by place: whether the search goes on at the next row, whether matches are numbered, the
#: variables that a match may begin with, whether it may be empty, the progress before and now, the last instant, and
#: how many rows an open search has read for each of its threads, at least, so that these are worth keeping.
NEXT_ROW, NUMBERED, BEGINS, NULLABLE, AFTER, UNTIL, END, WORTH = range(8)

_OUT_STATES = nb.int16[::1]
_FOUND = nb.types.UniTuple(nb.int64, 4)  # type: ignore[no-untyped-call]  # numba has no types for it


@compiled(
    _FOUND(
        *(nb.int64, nb.int64, nb.int64, nb.int64, INTS, INTS),
        *(INTS, INTS, INTS, INTS, TABLE, INTS, INTS, TABLE, INTS, DOUBLES),
        *(TABLE, TABLE, INTS, INTS),
        *(TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, OUT_TABLE, OUT, OUT_DOUBLES, OUT_MARKS),
    ),
    borrows=True,
)
def search(  # type: ignore[no-untyped-def]  # numba
    start: int, end: int, row: int, size: int, time: Int64Array, satisfied: Int64Array,
    ways: Int64Array, to: Int64Array, variable: Int64Array, end_at: Int64Array,
    groups: Int64Array, numbers: Int64Array, programs: Int64Array, code: Int64Array, ints: Int64Array,
    doubles: Float64Array,
    limits: Int64Array, completions: Int64Array, completed: Int64Array, options: Int64Array,
    int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, nodes: Int64Array, stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
):  # fmt: skip
    """The preferred match that begins at a row: how the search ends; at which instant it is decided, or at which it is
    at the latest if no row comes; the last node of the match, or `NONE` or `EMPTY`; its length. Of an open search these
    are where its threads begin, and how many they are.

    A search that was open goes on at `row` with the first `size` threads. It does not know of matches before. One that
    begins has none, and `row` is its start.
    """
    room = len(threads) // 2
    width, last_row = threads.shape[1], len(time)
    current, following, used = 0, room, 0
    best, length, decided = NONE, 0, time[start]
    if size == 0:
        threads[0, STATE], threads[0, WAYS], threads[0, NODE], threads[0, DEATH] = 0, ways[1] - ways[0], EMPTY, EVER
        for r in range(REGISTERS, width):
            threads[0, r] = -1
        for g in range(len(groups)):
            if groups[g, 0] == 2:
                threads[0, REGISTERS + numbers[groups[g, 2]]] = 0
        if end_at[0] >= 0:
            best, threads[0, WAYS] = EMPTY, end_at[0]
        if threads[0, WAYS] > 0:
            size = 1
    while size > 0:
        if row == end:
            latest = NEVER
            for a in range(current, current + size):
                latest = max(latest, threads[a, DEATH])
            if latest > options[UNTIL]:
                return OPEN, latest, current, size
            decided = max(decided, latest)
            break
        if len(limits) and row > start and time[row] > time[row - 1]:
            left, latest = 0, NEVER
            for a in range(current, current + size):
                if threads[a, DEATH] < time[row]:
                    latest = max(latest, threads[a, DEATH])
                    continue
                if current + left != a:
                    for r in range(width):
                        threads[current + left, r] = threads[a, r]
                left += 1
            size = left
            if size == 0:
                decided = max(decided, latest)
                break
        new, matched = 0, False
        for a in range(current, current + size):
            state = threads[a, STATE]
            for k in range(ways[state], ways[state] + threads[a, WAYS]):
                next_state = to[k]
                if next_state < 0 or not (satisfied[row] >> variable[next_state]) & 1:
                    continue
                if new == room or used == len(nodes):
                    return NO_ROOM, 0, NONE, 0
                its, named = following + new, variable[next_state]
                for r in range(REGISTERS, width):
                    threads[its, r] = threads[a, r]
                match_row(threads, its, named, row, groups, numbers)
                if programs[named] < programs[named + 1] and not holds(
                    programs[named], programs[named + 1], code, ints, doubles, int_columns, double_columns, marks,
                    threads, its, row, last_row, stack, double_stack, mark,
                ):  # fmt: skip
                    continue
                known = False
                for b in range(following, its):
                    if threads[b, STATE] == next_state:
                        known = True
                        for r in range(REGISTERS, width):
                            if threads[b, r] != threads[its, r]:
                                known = False
                                break
                        if known:
                            break
                if known:
                    continue
                nodes[used, 0], nodes[used, 1] = threads[a, NODE], next_state
                its_ways, ends = ways[next_state + 1] - ways[next_state], 0
                if end_at[next_state] >= 0 and keeps_limits(limits, threads, its, start, row, time):
                    best, length, its_ways, ends, matched = used, row + 1 - start, end_at[next_state], 1, True
                threads[its, STATE], threads[its, WAYS], threads[its, NODE] = next_state, its_ways, used
                used += 1
                which = 2 * next_state + ends
                if completed[which] < completed[which + 1]:
                    threads[its, DEATH] = EVER
                    if len(limits):
                        threads[its, DEATH] = last_instant(
                            limits, completions, completed[which], completed[which + 1], threads, its, start, row, time
                        )
                    new += 1
                if matched:
                    break
            if matched:
                break
        current, following, size, decided = following, current, new, time[row]
        row += 1
    return DECIDED, decided, best, length


@compiled(
    nb.int64(
        *(INTS, INTS, INTS, OUT, OUT, OUT, OUT, OUT, OUT_TABLE),
        *(INTS, INTS, INTS, INTS, TABLE, INTS, INTS, TABLE, INTS, DOUBLES),
        *(TABLE, TABLE, INTS, INTS),
        *(TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, OUT_TABLE, OUT, OUT_DOUBLES, OUT_MARKS),
        *(OUT_TABLE, _OUT_STATES),
    ),
    borrows=True,
)
def preferred_matches(
    offsets: Int64Array, time: Int64Array, satisfied: Int64Array,
    begin: Int64Array, number: Int64Array, taken: Int64Array, look: Int64Array, waits: Int64Array, waiting: Int64Array,
    ways: Int64Array, to: Int64Array, variable: Int64Array, end_at: Int64Array,
    groups: Int64Array, numbers: Int64Array, programs: Int64Array, code: Int64Array, ints: Int64Array,
    doubles: Float64Array,
    limits: Int64Array, completions: Int64Array, completed: Int64Array, options: Int64Array,
    int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, nodes: Int64Array, stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
    found: Int64Array, states: Int16Array,
) -> int:  # fmt: skip
    """Writes the matches that become certain to `found`, and the states of their rows to `states`; the number of
    matches, or -1 where an array has no room.

    Partition p has the rows from `offsets[p]` to `offsets[p + 1]`, ascending in `time`. `satisfied` has by row the
    variables whose conditions it may satisfy. `begin`, `number` and `taken` are the standings of partitions, which are
    taken on; `look` is when each has to be looked at next. `waiting` has the threads of open searches, partition by
    partition, as many as `waits` says, where they are worth it and the search goes on behind a match.
    """
    matches, written, kept = 0, 0, 0
    for p in range(len(offsets) - 1):
        first, end = offsets[p], offsets[p + 1]
        row, count, held, floor, due = first + begin[p], number[p], taken[p], NEVER, NO_LOOK
        undecided, waits[p] = -1, 0
        while row < end:
            if not options[NULLABLE] and not satisfied[row] & options[BEGINS]:
                floor = max(floor, time[row])
                row += 1
                continue
            ending, at, node, length = search(
                row, end, row, 0, time, satisfied, ways, to, variable, end_at, groups, numbers, programs, code, ints, doubles,
                limits, completions, completed, options, int_columns, double_columns, marks,
                threads, nodes, stack, double_stack, mark,
            )  # fmt: skip
            if ending == NO_ROOM:
                return -1
            if ending == OPEN:
                due = min(due, at)
                if undecided < 0:
                    undecided = row
                if not options[NEXT_ROW]:
                    if length * options[WORTH] <= end - row:
                        waits[p] = length
                        for k in range(length):
                            for r in range(threads.shape[1]):
                                waiting[kept, r] = threads[node + k, r]
                            kept += 1
                    break
                row += 1
                continue
            floor = max(floor, at)
            if undecided < 0 and node != NONE:
                count += 1
                held = max(held, row + length - first)
            detected = floor if options[NUMBERED] or not options[NEXT_ROW] else at
            certain = undecided < 0 or not options[NUMBERED]
            if node != NONE and certain and (not options[NEXT_ROW] or detected > options[AFTER]):
                if matches == len(found) or written + length > len(states):
                    return -1
                found[matches, PARTITION], found[matches, START] = p, row
                found[matches, LENGTH], found[matches, DETECTED] = length, min(detected, options[END])
                found[matches, NUMBER], found[matches, STATES] = count, written
                matches += 1
                written += length
                for k in range(written - 1, written - length - 1, -1):
                    states[k] = nodes[node, 1]
                    node = nodes[node, 0]
            row += length if length > 0 and not options[NEXT_ROW] else 1
        begin[p] = (end if undecided < 0 else undecided) - first
        number[p], taken[p] = count, held
        look[p] = due
    return matches
