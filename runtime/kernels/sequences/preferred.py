"""The preferred matches of all partitions, each at the instant from which nothing to come can change it."""

from __future__ import annotations

from typing import Final

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int16Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import INTS, OUT, OUT_DOUBLES, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.absences import come_before, fate_of
from tidegate.runtime.kernels.sequences.ahead import may_hold
from tidegate.runtime.kernels.sequences.machine import DOUBLE_TABLE, MARKS, OUT_MARKS, failing_demands, holds, match_row
from tidegate.runtime.kernels.sequences.pending import (
    EMPTY,
    FATE,
    IS_MATCH,
    LAST_NODE,
    LAST_ROW,
    NONE,
    NOTHING,
    decided,
    drop_over,
    last_open,
    lead_on,
)
from tidegate.runtime.kernels.sequences.threads import (
    ABSENT,
    ASKED,
    COUNT,
    DEATH,
    EVER,
    FIRST_COMPLETION,
    FIRST_WAY,
    GONE,
    LAST_COMPLETION,
    LAST_WAY,
    NEVER,
    NO_LOOK,
    NO_ROW,
    NODE,
    NOWHERE,
    PATTERN,
    RANK,
    REGISTERS,
    STATE,
    SURE,
    WAYS,
    keeps_limits,
    last_instant,
    write_threads,
)

#: Columns of a match: its partition, first row, length, instant, number, and where its states begin in their list.
PARTITION, START, LENGTH, DETECTED, NUMBER, STATES = range(6)
#: What an array of options has, by place: whether the search goes on at the next row, whether matches are numbered, the
#: variables that a match may begin with, whether it may be empty, the progress before and now, the last instant,
#: whether the input has ended, and how many rows an open search has read for each of its threads, at least, so that
#: these are worth keeping. Of searches that go on at the next row it is how many rows wait, and the last one how many
#: threads of all starts are kept for each of these, at most. The one before is the states that a row tells, as a mask.
NEXT_ROW, NUMBERED, BEGINS, NULLABLE, AFTER, UNTIL, END, CLOSED, WORTH, TOLD, MOST = range(11)
#: Columns of what searches remember by row: the states that the current one has been in with this row, and those from
#: which one has failed, as masks.
VISITED, FAILED = range(2)

OUT_STATES: Final = nb.int16[::1]
#: Whether there was room; when there is no thread any more; the match behind all open ones, by its last node, or `NONE`
#: or `EMPTY`; its length; where the open ones begin, and how many there are; and the same of the threads that are left.
_FOUND = nb.types.UniTuple(nb.int64, 8)  # type: ignore[no-untyped-call]  # numba has no types for it
#: What rows say: those that rows behind them decide, and which rows that must not come are before and behind each.
_ROWS = (TABLE, TABLE, INTS, TABLE, TABLE, DOUBLE_TABLE, MARKS)


@compiled(
    _FOUND(
        *(nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, INTS, INTS),
        *PATTERN,
        *(INTS, *_ROWS),
        *(OUT_TABLE, OUT_TABLE, OUT_TABLE, OUT, OUT_DOUBLES, OUT_MARKS),
        *(nb.int64, OUT_TABLE),
    ),
    borrows=True,
)
def search(  # type: ignore[no-untyped-def]  # numba
    start: int, first: int, end: int, row: int, size: int, time: Int64Array, satisfied: Int64Array,
    to: Int64Array, variable: Int64Array, guards: Int64Array, parts: Int64Array, part_of: Int64Array,
    ends: Int64Array, ends_of: Int64Array,
    groups: Int64Array, numbers: Int64Array, programs: Int64Array, code: Int64Array, ints: Int64Array,
    doubles: Float64Array,
    ahead: Int64Array, later_of: Int64Array, later: Int64Array, reads: Int64Array,
    absences: Int64Array, limits: Int64Array, demands: Int64Array, completions: Int64Array, options: Int64Array,
    sure: Int64Array, gone: Int64Array, come: Int64Array, following_row: Int64Array,
    int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, pending: Int64Array, nodes: Int64Array,
    stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
    told: int, memory: Int64Array,
):  # fmt: skip
    """What may become the preferred match that begins at a row: open matches, and what is certain if they are none.

    Threads go from row to row up to `end`, where the known rows are over, or until none is left that no match is
    preferred to. A thread that is left over then ends by itself at the instant that is returned, if no row comes.

    A search that was open goes on at `row` with the first `size` threads; there are no open matches then, and it does
    not know of others. One that begins has no threads, and `row` is its start.

    Of threads in the states `told` only the row matters to what becomes of them. So a search of which all threads are
    in such states with rows with which others have failed, as `memory` says, fails as well (rule R57). It is over at
    the last row that it has read then, which may be sooner than by itself, and not later than those others.
    """
    room, wait = (len(threads) - 1) // 2, len(pending) // 2
    width, last_row, closed = threads.shape[1], len(time), options[CLOSED] != 0
    current, following, used = 0, room, 0
    waiting, further, kept = 0, wait, 0
    best, length, reached = NONE, 0, time[start]
    if size == 0:
        upto = ends_of[1]
        for e in range(ends_of[1]):
            if not ends[e, ABSENT] & come[start]:
                best, upto = EMPTY, e
                break
        threads[0, STATE], threads[0, WAYS], threads[0, NODE], threads[0, DEATH] = 0, part_of[0] + upto, EMPTY, EVER
        threads[0, RANK], threads[0, SURE], threads[0, GONE] = 0, -1, NOWHERE
        for r in range(REGISTERS, width):
            threads[0, r] = -1
        for g in range(len(groups)):
            if groups[g, 0] >= COUNT:
                for k in range(groups[g, 2], groups[g, 2] + groups[g, 3]):
                    threads[0, REGISTERS + numbers[k]] = 0
        if parts[threads[0, WAYS], FIRST_COMPLETION] < parts[threads[0, WAYS], LAST_COMPLETION]:
            size = 1
    # Whether nothing but rows ends threads: no limit, which a later start would meet later, and no match.
    by_rows = told != 0 and best == NONE
    while size > 0:
        if row == end or ((len(limits) or len(demands) or kept) and row > start and time[row] > time[row - 1]):
            latest = last_open(threads, current, size, pending, waiting)
            if row == end or latest < time[row]:
                reached = max(reached, latest)
                by_rows = by_rows and row == end and closed and latest == EVER
                break
            size, kept, matched = drop_over(threads, current, size, pending, waiting, kept, time[row])
            if matched != NOTHING:
                best, length = pending[matched, LAST_NODE], pending[matched, LAST_ROW] + 1 - start
        new, seen, carried, ended = 0, 0, 0, False
        for a in range(current, current + size + 1):
            rank = kept if a == current + size else threads[a, RANK]
            while seen < rank:
                if carried == wait:
                    return 0, 0, NONE, 0, 0, 0, 0, 0
                for c in range(4):
                    pending[further + carried, c] = pending[waiting + seen, c]
                carried += 1
                seen += 1
            if a == current + size or threads[a, GONE] <= row:
                continue
            state = threads[a, STATE]
            for k in range(parts[threads[a, WAYS], FIRST_WAY], parts[threads[a, WAYS], LAST_WAY]):
                next_state = to[k]
                if next_state < 0 or not (satisfied[row] >> variable[next_state]) & 1:
                    continue
                if state == 0 and guards[k, ASKED] & come[start]:
                    continue
                if new == room or used == len(nodes):
                    return 0, 0, NONE, 0, 0, 0, 0, 0
                its, named = following + new, variable[next_state]
                for r in range(REGISTERS, width):
                    threads[its, r] = threads[a, r]
                match_row(
                    threads, its, named, row, groups, numbers, int_columns, double_columns, marks, stack, double_stack
                )
                if programs[named] < programs[named + 1] and not holds(
                    programs[named], programs[named + 1], code, ints, doubles, int_columns, double_columns, marks,
                    threads, its, row, last_row, stack, double_stack, mark,
                ):  # fmt: skip
                    continue
                threads[its, GONE] = threads[a, GONE]
                threads[its, SURE] = threads[a, SURE] if threads[a, SURE] > row else -1
                if (ahead[named] >= 0 or later_of[named] < later_of[named + 1]) and not may_hold(
                    named, row, end, closed, ahead, later_of, later, reads, sure, gone, code, ints, doubles,
                    int_columns, double_columns, marks, threads, its, last_row, stack, double_stack, mark,
                ):  # fmt: skip
                    continue
                if state == 0 and guards[k, ASKED] and come_before(
                    row, first, guards[k, ASKED], absences, satisfied, time, programs, code, ints, doubles,
                    groups, numbers, int_columns, double_columns, marks, threads, its, stack, double_stack, mark,
                ):  # fmt: skip
                    continue
                known = False
                for b in range(following, its):
                    if threads[b, STATE] == next_state:
                        known = True
                        for r in range(SURE, width):
                            if threads[b, r] != threads[its, r]:
                                known = False
                                break
                        if known:
                            break
                if known:
                    continue
                nodes[used, 0], nodes[used, 1] = threads[a, NODE], next_state
                begins, its_ends = 0, ends_of[next_state + 1] - ends_of[next_state]
                fits = its_ends > 0 and keeps_limits(limits, threads, its, start, row, time)
                for e in range(its_ends + 1):
                    if e < its_ends and not fits:
                        continue
                    part = part_of[next_state] + begins * (its_ends + 1) + e
                    if parts[part, FIRST_COMPLETION] < parts[part, LAST_COMPLETION]:
                        threads[its, STATE], threads[its, WAYS], threads[its, NODE] = next_state, part, used
                        threads[its, RANK], threads[its, DEATH] = carried, EVER
                        if len(limits) or len(demands):
                            failing = failing_demands(
                                demands, code, ints, doubles, int_columns, double_columns, marks,
                                threads, its, row, last_row, stack, double_stack, mark,
                            )  # fmt: skip
                            threads[its, DEATH] = last_instant(
                                limits, demands, failing, completions,
                                parts[part, FIRST_COMPLETION], parts[part, LAST_COMPLETION],
                                threads, its, start, row, time,
                            )  # fmt: skip
                        new += 1
                        if e < its_ends:
                            if new == room:
                                return 0, 0, NONE, 0, 0, 0, 0, 0
                            for r in range(SURE, width):
                                threads[its + 1, r] = threads[its, r]
                            its += 1
                    if e == its_ends:
                        break
                    what = ends_of[next_state] + e
                    at_once = not ends[what, ABSENT] and not ends[what, NO_ROW]
                    if at_once and threads[its, SURE] < 0 and threads[its, GONE] == NOWHERE:
                        best, length, ended = used, row + 1 - start, True
                        break
                    is_match, fate = fate_of(
                        row, end, ends[what, ABSENT], ends[what, NO_ROW] != 0, absences, following_row, time,
                        programs, code, ints, doubles, groups, numbers, int_columns, double_columns, marks,
                        threads, its, stack, double_stack, mark,
                    )  # fmt: skip
                    if carried == wait:
                        return 0, 0, NONE, 0, 0, 0, 0, 0
                    pending[further + carried, LAST_NODE], pending[further + carried, LAST_ROW] = used, row
                    pending[further + carried, IS_MATCH], pending[further + carried, FATE] = is_match, fate
                    carried += 1
                    begins = e + 1
                used += 1
                if ended:
                    break
            if ended:
                break
        current, following, waiting, further = following, current, further, waiting
        size, kept, reached = new, carried, time[row]
        by_rows = by_rows and kept == 0 and best == NONE
        if told and kept == 0 and best == NONE:
            fails = True
            for a in range(current, current + new):
                its = told & (1 << threads[a, STATE])
                fails = fails and its & memory[row, FAILED] != 0
                if by_rows and threads[a, GONE] == NOWHERE:
                    memory[row, VISITED] |= its
            if fails:
                size = 0
        row += 1
    if told:
        for place in range(start, row):
            if by_rows:
                memory[place, FAILED] |= memory[place, VISITED]
            memory[place, VISITED] = 0
    return 1, reached, best, length, waiting, kept, current, size


@compiled(
    nb.int64(
        *(OUT_TABLE, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64),
        *(OUT_STATES, nb.int64, OUT_TABLE, nb.int64),
    ),
    borrows=True,
)
def write_match(
    found: Int64Array, at: int, partition: int, start: int, length: int, detected: int, number: int,
    states: Int16Array, written: int, nodes: Int64Array, node: int,
) -> int:  # fmt: skip
    """Writes the match that ends with a node to row `at` of `found`, and the states of its rows to `states`, behind
    those that are written; how many are then, or -1 where there is no room.
    """
    if at == len(found) or written + length > len(states):
        return -1
    found[at, PARTITION], found[at, START], found[at, LENGTH] = partition, start, length
    found[at, DETECTED], found[at, NUMBER], found[at, STATES] = detected, number, written
    for place in range(written + length - 1, written - 1, -1):
        states[place] = nodes[node, 1]
        node = nodes[node, 0]
    return written + length


@compiled(
    nb.int64(
        *(INTS, INTS, INTS, OUT, OUT, OUT, OUT, OUT, OUT_TABLE),
        *PATTERN,
        *(INTS, INTS, *_ROWS),
        *(OUT_TABLE, OUT_TABLE, OUT_TABLE, OUT, OUT_DOUBLES, OUT_MARKS),
        *(OUT, OUT, OUT_TABLE, OUT_STATES, OUT_TABLE),
    ),
    borrows=True,
)
def preferred_matches(
    offsets: Int64Array, time: Int64Array, satisfied: Int64Array,
    begin: Int64Array, number: Int64Array, taken: Int64Array, look: Int64Array, waits: Int64Array, left: Int64Array,
    to: Int64Array, variable: Int64Array, guards: Int64Array, parts: Int64Array, part_of: Int64Array,
    ends: Int64Array, ends_of: Int64Array,
    groups: Int64Array, numbers: Int64Array, programs: Int64Array, code: Int64Array, ints: Int64Array,
    doubles: Float64Array,
    ahead: Int64Array, later_of: Int64Array, later: Int64Array, reads: Int64Array,
    absences: Int64Array, limits: Int64Array, demands: Int64Array, completions: Int64Array,
    labels: Int64Array, options: Int64Array,
    sure: Int64Array, gone: Int64Array, come: Int64Array, following_row: Int64Array,
    int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, pending: Int64Array, nodes: Int64Array,
    stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
    reached: Int64Array, barred: Int64Array, found: Int64Array, states: Int16Array, memory: Int64Array,
) -> int:  # fmt: skip
    """Writes the matches that become certain to `found`, and the states of their rows to `states`; the number of
    matches, or -1 where an array has no room.

    Partition p has the rows from `offsets[p]` to `offsets[p + 1]`, ascending in `time`. `satisfied` has by row the
    variables whose conditions it may satisfy. `begin`, `number` and `taken` are the standings of partitions, which are
    taken on; `look` is when each has to be looked at next.

    Past the last row, a start counts until the instant `until_then` from which on the search does not come to it, and
    hides those behind it for as long as it has threads, or open matches that they are inside of. `left` has the threads
    of the first start that is not decided, partition by partition, as many as `waits` says, where they are worth it.
    """
    matches, written, noted, until = 0, 0, 0, options[UNTIL]
    for p in range(len(offsets) - 1):
        first, end = offsets[p], offsets[p + 1]
        row, count, held, due, undecided = first + begin[p], number[p], taken[p], NO_LOOK, -1
        hidden, settled, known, waits[p] = NEVER, NEVER, row, 0
        while row < end:
            until_then, inside = NO_LOOK, NEVER
            begins = options[NULLABLE] or satisfied[row] & options[BEGINS]
            if not begins and known <= row:
                hidden, settled = max(hidden, time[row]), max(settled, time[row])
                row += 1
                continue
            if row < known:
                until_then, inside = reached[row - first], barred[row - first]
                if until_then <= hidden:
                    row += 1
                    continue
            over, best, length, waiting, kept, open_at, open_ = time[row], NONE, 0, 0, 0, 0, 0
            if begins:
                told = options[TOLD] if until_then == NO_LOOK else 0
                has_room, over, best, length, waiting, kept, open_at, open_ = search(
                    row, first, end, row, 0, time, satisfied, to, variable, guards, parts, part_of, ends, ends_of,
                    groups, numbers, programs, code, ints, doubles, ahead, later_of, later, reads,
                    absences, limits, demands, completions, options, sure, gone, come, following_row,
                    int_columns, double_columns, marks, threads, pending, nodes, stack, double_stack, mark,
                    told, memory,
                )  # fmt: skip
                if not has_room:
                    return -1
            if over > until:
                if until_then > until:
                    due = min(due, over)
                    if options[NEXT_ROW] and (undecided < 0 or waits[p] > 0):
                        # The first one says whether enough rows wait, and none has fewer threads than all.
                        wait = end - (row if undecided < 0 else undecided)
                        waits[p] += open_
                        if wait < options[WORTH] or waits[p] > options[MOST] * wait:
                            noted, waits[p] = noted - waits[p] + open_, 0
                        else:
                            has_match = 1 if best != NONE else 0
                            noted = write_threads(threads, open_at, open_, left, noted, row, has_match)
                            if noted < 0:
                                return -1
                    if undecided < 0:
                        undecided = row
                        if not options[NEXT_ROW] and open_ * options[WORTH] <= end - row:
                            waits[p], noted = open_, write_threads(threads, open_at, open_, left, noted, row, 0)
                            if noted < 0:
                                return -1
                    if not options[NEXT_ROW]:
                        break
                hidden = max(hidden, min(until_then, over))
                row += 1
                continue
            its, size, at = decided(row, best, length, over, pending, waiting, kept, nodes, labels)
            if not options[NEXT_ROW]:
                hidden = max(hidden, min(until_then, over))
                at = max(at, hidden, inside)
            settled = max(settled, min(until_then, at))
            if until_then > until:
                if at > until:
                    if undecided < 0:
                        undecided = row
                    for k in range(waiting, waiting + kept):
                        if pending[k, FATE] > until:
                            due = min(due, pending[k, FATE])
                elif undecided < 0 and its != NONE:
                    count += 1
                    held = max(held, row + size - first)
                detected = settled if options[NUMBERED] else at
                certain = at <= until and (undecided < 0 or not options[NUMBERED])
                if its != NONE and certain and detected > options[AFTER]:
                    written = write_match(
                        found, matches, p, row, size, min(detected, options[END]), count, states, written, nodes, its
                    )
                    if written < 0:
                        return -1
                    matches += 1
            if options[NEXT_ROW]:
                row += 1
            elif kept == 0 and until_then == NO_LOOK and known <= row + 1:
                row += max(length, 1)
            else:
                known = lead_on(
                    row, best, length, until_then, first, pending, waiting, kept, max(known, row + 1), row + 1,
                    reached, barred,
                )  # fmt: skip
                row += 1
        begin[p] = (end if undecided < 0 else undecided) - first
        number[p], taken[p] = count, held
        look[p] = due
    return matches
