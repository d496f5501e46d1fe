"""Open searches for preferred matches, each of which goes on from its threads with the rows that are new."""

from __future__ import annotations

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import DOUBLES, INTS, OUT, OUT_DOUBLES, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.machine import DOUBLE_TABLE, MARKS, OUT_MARKS
from tidegate.runtime.kernels.sequences.preferred import EMPTY, NO_ROOM, OPEN, WORTH, search
from tidegate.runtime.kernels.sequences.threads import NODE


@compiled(
    nb.int64(
        *(INTS, INTS, INTS, INTS, INTS, INTS, TABLE, OUT, OUT_TABLE, OUT),
        *(INTS, INTS, INTS, INTS, TABLE, INTS, INTS, TABLE, INTS, DOUBLES),
        *(TABLE, TABLE, INTS, INTS),
        *(TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, OUT_TABLE, OUT, OUT_DOUBLES, OUT_MARKS),
    ),
    borrows=True,
)
def open_searches(
    offsets: Int64Array, time: Int64Array, satisfied: Int64Array,
    first_new: Int64Array, before: Int64Array, rows: Int64Array, given: Int64Array,
    waits: Int64Array, waiting: Int64Array, look: Int64Array,
    ways: Int64Array, to: Int64Array, variable: Int64Array, end_at: Int64Array,
    groups: Int64Array, numbers: Int64Array, programs: Int64Array, code: Int64Array, ints: Int64Array,
    doubles: Float64Array,
    limits: Int64Array, completions: Int64Array, completed: Int64Array, options: Int64Array,
    int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, nodes: Int64Array, stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
) -> int:  # fmt: skip
    """Writes the threads of the searches that are still open, partition by partition, to `waiting`; how many there are,
    or -1 where an array has no room.

    Partition p has the rows from `offsets[p]` to `offsets[p + 1]`, ascending in `time`, the new ones from
    `first_new[p]` on; of those before it has such as the search may read. `given` has the threads of its search, from
    `before[p]` to `before[p + 1]`: their registers are places of rows, and in the place of a node is the start.
    `rows[p]` is how many rows the search has read, with the new ones. `waits` is how many threads each has then: 0 of a
    search that is decided, or whose threads are not worth keeping. `look` is when each has to be looked at next.
    """
    kept, width = 0, threads.shape[1]
    for p in range(len(offsets) - 1):
        size = before[p + 1] - before[p]
        if 2 * size > len(threads):
            return -1
        start = given[before[p], NODE]
        for k in range(size):
            for r in range(width):
                threads[k, r] = given[before[p] + k, r]
            threads[k, NODE] = EMPTY
        ending, at, first, size = search(
            start, offsets[p + 1], first_new[p], size, time, satisfied,
            ways, to, variable, end_at, groups, numbers, programs, code, ints, doubles,
            limits, completions, completed, options, int_columns, double_columns, marks,
            threads, nodes, stack, double_stack, mark,
        )  # fmt: skip
        if ending == NO_ROOM:
            return -1
        waits[p] = 0
        if ending == OPEN and size * options[WORTH] <= rows[p]:
            if kept + size > len(waiting):
                return -1
            waits[p], look[p] = size, at
            for k in range(size):
                for r in range(width):
                    waiting[kept, r] = threads[first + k, r]
                waiting[kept, NODE] = start
                kept += 1
    return kept
