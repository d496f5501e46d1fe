"""Open searches for preferred matches, each of which goes on from its threads with the rows that are new."""

from __future__ import annotations

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import INTS, OUT, OUT_DOUBLES, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.machine import DOUBLE_TABLE, MARKS, OUT_MARKS
from tidegate.runtime.kernels.sequences.pending import EMPTY
from tidegate.runtime.kernels.sequences.preferred import UNTIL, WORTH, search
from tidegate.runtime.kernels.sequences.threads import NODE, PATTERN


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
            if noted + open_ > len(left):
                return -1
            waits[p], look[p] = open_, over
            for k in range(open_):
                for r in range(width):
                    left[noted, r] = threads[at + k, r]
                left[noted, NODE] = start
                noted += 1
    return noted
