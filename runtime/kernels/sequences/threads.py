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

#: What registers hold, in the first column of their table: the other columns are the mask of the variables, where the
#: numbers of the registers begin in a list, and how many there are.
FIRST_ROWS, LAST_ROWS, COUNT = range(3)
#: What the points of a limit name, in its table: the first row, the last row, or the row of a register.
MATCH_FIRST, MATCH_LAST, FIRST_OF, LAST_OF = range(4)

#: Columns of a guard of a way: a mask of rows that must not come, and which of these have come where it may be taken.
ASKED, COME = range(2)
#: Columns of a part of the ways on from a state: the ways, and the completions that these lead to.
FIRST_WAY, LAST_WAY, FIRST_COMPLETION, LAST_COMPLETION = range(4)
#: Columns of an end of a match: a mask of rows that must not come, and whether no row at all may come.
ABSENT, NO_ROW = range(2)

#: The arguments by which kernels know a pattern: its ways, conditions, what these read of rows behind others, the rows
#: that must not come, and limits.
PATTERN: Final = (
    *(INTS, INTS, TABLE, TABLE, INTS, TABLE, INTS),
    *(TABLE, INTS, INTS, TABLE, INTS, DOUBLES),
    *(INTS, INTS, TABLE, TABLE),
    *(TABLE, TABLE, TABLE),
)


@compiled(nb.void(OUT_TABLE, nb.int64, nb.int64, nb.int64, TABLE, INTS), borrows=True)
def match_row(
    threads: Int64Array, thread: int, variable: int, row: int, groups: Int64Array, numbers: Int64Array
) -> None:
    """Notes in the registers of a thread that a row has a variable."""
    for g in range(len(groups)):
        if not (groups[g, 1] >> variable) & 1:
            continue
        begin, count = groups[g, 2], groups[g, 3]
        if groups[g, 0] == FIRST_ROWS:
            for k in range(begin, begin + count):
                if threads[thread, REGISTERS + numbers[k]] < 0:
                    threads[thread, REGISTERS + numbers[k]] = row
                    break
        elif groups[g, 0] == LAST_ROWS:
            for k in range(begin + count - 1, begin, -1):
                threads[thread, REGISTERS + numbers[k]] = threads[thread, REGISTERS + numbers[k - 1]]
            threads[thread, REGISTERS + numbers[begin]] = row
        else:
            threads[thread, REGISTERS + numbers[begin]] += 1


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


@compiled(nb.int64(TABLE, TABLE, nb.int64, nb.int64, OUT_TABLE, nb.int64, nb.int64, nb.int64, INTS), borrows=True)
def last_instant(
    limits: Int64Array, completions: Int64Array, begin: int, end: int,
    threads: Int64Array, thread: int, first: int, last: int, time: Int64Array,
) -> int:  # fmt: skip
    """The last instant at which a row to come may go on with a thread so that a match can come of it (R42).

    Rows to come may all lie at the instant of the first of them, so a limit between two of them, which is not negative,
    is kept. `completions` from `begin` to `end` have by bits which limits' points rows to come have.
    """
    found = NEVER
    for c in range(begin, end):
        its = EVER
        for k in range(len(limits)):
            later = place_of(limits[k, 0], limits[k, 1], threads, thread, first, last)
            earlier = place_of(limits[k, 2], limits[k, 3], threads, thread, first, last)
            comes_later, comes_earlier = (completions[c, 0] >> k) & 1, (completions[c, 1] >> k) & 1
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
        found = max(found, its)
    return found
