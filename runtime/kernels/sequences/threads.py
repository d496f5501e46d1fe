"""Threads: beginnings of matches, each with a state and with registers of what it has matched.

A thread is a row of integers: its state, which of the state's ways on it may still take, its last node, the last
instant at which a row to come may go on with it, how many open matches are preferred to it, the rows that decide
conditions of its own, and its registers. Nodes say what a thread has matched: the node before, and a state.
"""

from __future__ import annotations

from typing import Final

import numba as nb

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.compiling import DOUBLES, INTS, OUT_TABLE, TABLE, compiled

#: SURE is the place of the row with which the last of its conditions turns out to hold, below 0 where all are decided;
#: GONE that of the row with which one turns out not to, or `NOWHERE`.
STATE, WAYS, NODE, DEATH, RANK, SURE, GONE, REGISTERS = range(8)
#: Before every instant.
NEVER: Final = -(1 << 62)
#: Later than every instant: what no limit ends.
EVER: Final = (1 << 62) - 1
#: When a partition is looked at that nothing waits in: later still.
NO_LOOK: Final = (1 << 63) - 1
#: Behind all rows.
NOWHERE: Final = (1 << 63) - 1

#: What registers hold, in the first column of their table: places of rows, those of rows with the least or the greatest
#: value of a column, or numbers, which are 0 before the first row. The other columns are the mask of the variables,
#: where the numbers of the registers begin in a list, how many there are, and the column.
FIRST_ROWS, LAST_ROWS, LEAST_INT, GREATEST_INT, LEAST_DOUBLE, GREATEST_DOUBLE, COUNT, COUNT_VALUES = range(8)
SUM_OF_INTS, SUM_OF_DOUBLES = 8, 9
#: A total of integers is a high word times 2^32 and a low one that is less.
LOW_BITS: Final = 32
#: What the points of a limit name, in its table: the first row, the last row, or the row of a register.
MATCH_FIRST, MATCH_LAST, FIRST_OF, LAST_OF = range(4)

#: Columns of a guard of a way: a mask of rows that must not come, and which of these have come where it may be taken.
ASKED, COME = range(2)
#: Columns of a part of the ways on from a state: the ways, and the completions that these lead to.
FIRST_WAY, LAST_WAY, FIRST_COMPLETION, LAST_COMPLETION = range(4)
#: Columns of a demand: the row that is to be there, as a point of a limit; how many ticks after it the next row comes,
#: at most, or `EVER`; the register of the first row that is read, or -1; and where its program begins and ends: without
#: one, the row is all that is asked for.
ITS_POINT, ITS_REGISTER, AT_MOST, BEGUN, PROGRAM, PROGRAM_END = range(6)
#: Columns of a completion: masks of the limits whose later point, and whose earlier point, rows to come have; of the
#: demands that are asked with these rows; and of those that are also where the first row that they read is not there.
HAS_LATER, HAS_EARLIER, IS_ASKED, IS_BARE = range(4)
#: Columns of an end of a match: a mask of rows that must not come, and whether no row at all may come.
ABSENT, NO_ROW = range(2)

#: The arguments by which kernels know a pattern: its ways, conditions, what these read of rows behind others, the rows
#: that must not come, limits, and what is known of conditions before their rows.
PATTERN: Final = (
    *(INTS, INTS, TABLE, TABLE, INTS, TABLE, INTS),
    *(TABLE, INTS, INTS, TABLE, INTS, DOUBLES),
    *(INTS, INTS, TABLE, TABLE),
    *(TABLE, TABLE, TABLE, TABLE),
)


@compiled(nb.int64(nb.int64, nb.int64, OUT_TABLE, nb.int64, nb.int64, nb.int64), borrows=True)
def place_of(point: int, register: int, threads: Int64Array, thread: int, first: int, last: int) -> int:
    """The place of a point of a limit in what a thread has matched; below 0 where there is no such row."""
    if point == MATCH_FIRST:
        return first
    if point == MATCH_LAST:
        return last
    place: int = threads[thread, REGISTERS + register]
    return place


@compiled(nb.boolean(TABLE, OUT_TABLE, nb.int64, nb.int64, nb.int64, INTS), borrows=True)
def keeps_limits(limits: Int64Array, threads: Int64Array, thread: int, first: int, last: int, time: Int64Array) -> bool:
    """Whether what a thread has matched is a match within all limits."""
    for k in range(len(limits)):
        later = place_of(limits[k, 0], limits[k, 1], threads, thread, first, last)
        earlier = place_of(limits[k, 2], limits[k, 3], threads, thread, first, last)
        if later >= 0 and earlier >= 0 and time[later] - time[earlier] > limits[k, 4]:
            return False
    return True


@compiled(
    nb.int64(
        *(TABLE, TABLE, nb.int64, TABLE, nb.int64, nb.int64),
        *(OUT_TABLE, nb.int64, nb.int64, nb.int64, INTS),
    ),
    borrows=True,
)
def last_instant(
    limits: Int64Array, demands: Int64Array, failing: int, completions: Int64Array, begin: int, end: int,
    threads: Int64Array, thread: int, first: int, last: int, time: Int64Array,
) -> int:  # fmt: skip
    """The last instant at which a row to come may go on with a thread so that a match can come of it (R42).

    Rows to come may all lie at the instant of the first of them, so a limit between two of them, which is not negative,
    is kept. `completions` from `begin` to `end` have by bits which limits' points rows to come have, and which demands
    of their conditions are known; `failing` are the demands whose programs are not true.
    """
    found = NEVER
    for c in range(begin, end):
        its = EVER
        for k in range(len(limits)):
            later = place_of(limits[k, 0], limits[k, 1], threads, thread, first, last)
            earlier = place_of(limits[k, 2], limits[k, 3], threads, thread, first, last)
            comes_later, comes_earlier = (completions[c, HAS_LATER] >> k) & 1, (completions[c, HAS_EARLIER] >> k) & 1
            if limits[k, 0] == MATCH_LAST or (comes_later and (limits[k, 0] == LAST_OF or later < 0)):
                later = -2
            if limits[k, 2] == MATCH_LAST or (comes_earlier and (limits[k, 2] == LAST_OF or earlier < 0)):
                earlier = -2
            if earlier < 0 or later == -1:
                continue
            if later == -2:
                its = min(its, time[earlier] + limits[k, 4])
            elif time[later] - time[earlier] > limits[k, 4]:
                its = NEVER
        for k in range(len(demands)):
            begun = demands[k, BEGUN] >= 0 and threads[thread, REGISTERS + demands[k, BEGUN]] >= 0
            if not (completions[c, IS_ASKED] >> k) & 1 or not (begun or (completions[c, IS_BARE] >> k) & 1):
                continue
            if demands[k, PROGRAM] < demands[k, PROGRAM_END]:
                if (failing >> k) & 1:
                    its = NEVER
                continue
            place = place_of(demands[k, ITS_POINT], demands[k, ITS_REGISTER], threads, thread, first, last)
            if place < 0:
                its = NEVER
            elif demands[k, AT_MOST] < EVER:
                its = min(its, time[place] + demands[k, AT_MOST])
        found = max(found, its)
    return found


@compiled(nb.int64(OUT_TABLE, nb.int64, nb.int64, OUT_TABLE, nb.int64, nb.int64, nb.int64), borrows=True)
def write_threads(
    threads: Int64Array, first: int, count: int, written: Int64Array, at: int, node: int, rank: int
) -> int:  # fmt: skip
    """Writes so many threads to where they are kept, from `at` on, with this in the places of their nodes and ranks;
    where the next ones go, or -1 where there is no room.
    """
    if at + count > len(written):
        return -1
    for k in range(count):
        for r in range(threads.shape[1]):
            written[at + k, r] = threads[first + k, r]
        written[at + k, NODE], written[at + k, RANK] = node, rank
    return at + count
