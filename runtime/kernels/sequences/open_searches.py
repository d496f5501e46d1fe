"""Open searches for preferred matches, which go on from their threads with the rows that are new."""

from __future__ import annotations

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int16Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import INTS, OUT, OUT_DOUBLES, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.machine import DOUBLE_TABLE, MARKS, OUT_MARKS
from tidegate.runtime.kernels.sequences.pending import EMPTY, NONE
from tidegate.runtime.kernels.sequences.preferred import (
    BEGINS,
    END,
    MOST,
    NULLABLE,
    OUT_STATES,
    UNTIL,
    WORTH,
    search,
    write_match,
)
from tidegate.runtime.kernels.sequences.threads import NO_LOOK, NODE, PATTERN, RANK, write_threads

#: Columns of a start: its partition, and its row.
ITS_PARTITION, ITS_ROW = range(2)


@compiled(
    nb.int64(
        *(INTS, INTS, INTS, INTS, INTS, INTS, TABLE, OUT, OUT_TABLE, OUT),
        *PATTERN,
        *(INTS, TABLE, TABLE, INTS, TABLE, TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, OUT_TABLE, OUT_TABLE, OUT, OUT_DOUBLES, OUT_MARKS),
    ),
    borrows=True,
)
def open_searches(
    offsets: Int64Array, time: Int64Array, satisfied: Int64Array,
    first_new: Int64Array, before: Int64Array, rows: Int64Array, given: Int64Array,
    waits: Int64Array, left: Int64Array, look: Int64Array,
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
) -> int:  # fmt: skip
    """Writes the threads of the searches that are still open, partition by partition, to `left`; how many there are, or
    -1 where an array has no room.

    Partition p has the rows from `offsets[p]` to `offsets[p + 1]`, ascending in `time`, the new ones from
    `first_new[p]` on; of those before it has such as the search may read. `given` has the threads of its search, from
    `before[p]` to `before[p + 1]`: their registers are places of rows, and in the place of a node is the start.
    `rows[p]` is how many rows the search has read, with the new ones. `waits` is how many threads each has then: 0 of a
    search that is decided, or whose threads are not worth keeping. `look` is when each has to be looked at next.
    """
    noted, width = 0, threads.shape[1]
    for p in range(len(offsets) - 1):
        size = before[p + 1] - before[p]
        if 2 * size > len(threads) - 1:
            return -1
        start = given[before[p], NODE]
        for k in range(size):
            for r in range(width):
                threads[k, r] = given[before[p] + k, r]
            threads[k, NODE] = EMPTY
        has_room, over, _, _, _, _, at, open_ = search(
            start, offsets[p], offsets[p + 1], first_new[p], size, time, satisfied,
            to, variable, guards, parts, part_of, ends, ends_of,
            groups, numbers, programs, code, ints, doubles, ahead, later_of, later, reads,
            absences, limits, demands, completions, options, sure, gone, come, following_row,
            int_columns, double_columns, marks, threads, pending, nodes, stack, double_stack, mark, 0, left,
        )  # fmt: skip
        if not has_room:
            return -1
        waits[p] = 0
        if over > options[UNTIL] and open_ * options[WORTH] <= rows[p]:
            waits[p], look[p], noted = open_, over, write_threads(threads, at, open_, left, noted, start, 0)
            if noted < 0:
                return -1
    return noted


@compiled(
    nb.int64(
        *(INTS, INTS, INTS, INTS, INTS, TABLE, INTS),
        *(OUT, OUT, OUT, OUT_TABLE, OUT),
        *PATTERN,
        *(INTS, TABLE, TABLE, INTS, TABLE, TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, OUT_TABLE, OUT_TABLE, OUT, OUT_DOUBLES, OUT_MARKS),
        *(OUT_TABLE, OUT_STATES, OUT_TABLE),
    ),
    borrows=True,
)
def searches_of_each_row(
    offsets: Int64Array, time: Int64Array, satisfied: Int64Array,
    first_new: Int64Array, given_of: Int64Array, given: Int64Array, number: Int64Array,
    begin: Int64Array, look: Int64Array, waits: Int64Array, left: Int64Array, decided: Int64Array,
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
    found: Int64Array, states: Int16Array, again: Int64Array,
) -> int:  # fmt: skip
    """Goes on with the searches from all rows of partitions, where each row may begin a match, whatever others are.
    Writes the matches of new rows to `found`, and the states of their rows to `states`; the number of matches, or -1
    where an array has no room.

    Partitions are as in `open_searches`. `given` has the threads of all starts that are open, start by start: in the
    place of a rank is whether there is a match that they are preferred to. Those of these starts that are decided, and
    have had a match, are in `again`, as many as `decided` says: threads do not tell its states. So a second call may
    have these starts alone, in the place of new rows: as many of `again` as `decided` says, in order of partitions,
    with all rows from there on. `begin` becomes the number of the first open start, by `number`, which rows have.
    """
    matches, written, noted, with_match, width = 0, 0, 0, 0, threads.shape[1]
    asked, is_second = 0, decided[0] >= 0
    for p in range(len(offsets) - 1):
        first, end, k = offsets[p], offsets[p + 1], given_of[p]
        begin[p], look[p], waits[p], its_first = number[end - 1] + 1, NO_LOOK, 0, noted
        row, undecided = first_new[p], end
        while True:
            size, start, matched = 0, row, False
            if k < given_of[p + 1]:
                start, matched = given[k, NODE], given[k, RANK] != 0
                while k < given_of[p + 1] and given[k, NODE] == start:
                    if 2 * size + 2 >= len(threads):
                        return -1
                    for r in range(width):
                        threads[size, r] = given[k, r]
                    threads[size, NODE], threads[size, RANK] = EMPTY, 0
                    size, k = size + 1, k + 1
            elif is_second:
                if asked == decided[0] or again[asked, ITS_PARTITION] != p:
                    break
                start = again[asked, ITS_ROW]
                asked += 1
            elif row == end:
                break
            else:
                row += 1
                if not options[NULLABLE] and not satisfied[start] & options[BEGINS]:
                    continue
            from_ = start if size == 0 else first_new[p]
            has_room, over, its, length, _, _, at, open_ = search(
                start, first, end, from_, size, time, satisfied,
                to, variable, guards, parts, part_of, ends, ends_of,
                groups, numbers, programs, code, ints, doubles, ahead, later_of, later, reads,
                absences, limits, demands, completions, options, sure, gone, come, following_row,
                int_columns, double_columns, marks, threads, pending, nodes, stack, double_stack, mark, 0, again,
            )  # fmt: skip
            if not has_room:
                return -1
            if over > options[UNTIL]:
                if undecided == end:
                    undecided = start
                has_match, look[p] = 1 if matched or its != NONE else 0, min(look[p], over)
                noted = write_threads(threads, at, open_, left, noted, start, has_match)
                if noted < 0:
                    return -1
            elif size > 0 and (matched or its != NONE):
                if with_match == len(again):
                    return -1
                again[with_match, ITS_PARTITION], again[with_match, ITS_ROW] = p, start
                with_match += 1
            elif its != NONE:
                written = write_match(
                    found, matches, p, start, length, min(over, options[END]), 0, states, written, nodes, its
                )
                if written < 0:
                    return -1
                matches += 1
        if undecided < end:
            height, begin[p] = begin[p] - number[undecided], number[undecided]
            waits[p] = noted - its_first
            if height < options[WORTH] or waits[p] > options[MOST] * height:
                noted, waits[p] = its_first, 0
    if not is_second:
        decided[0] = with_match
    return matches
