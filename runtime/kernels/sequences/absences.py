"""Rows that must not come: before a match, between its rows, and after it."""

from __future__ import annotations

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import DOUBLES, INTS, OUT, OUT_DOUBLES, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.machine import DOUBLE_TABLE, MARKS, OUT_MARKS, holds, match_row
from tidegate.runtime.kernels.sequences.threads import EVER, GONE, NEVER, REGISTERS, SURE

#: Columns of an absence: its variable, its duration, and where the program begins and ends that says, behind a match,
#: whether such a row can come: without one, it can.
ITS_VARIABLE, DURATION, POSSIBLE, POSSIBLE_END = range(4)

_FATE = nb.types.UniTuple(nb.int64, 2)  # type: ignore[no-untyped-call]  # numba has no types for it


@compiled(nb.void(INTS, INTS, INTS, TABLE, nb.int64, OUT), borrows=True)
def note_rows_before(
    offsets: Int64Array, time: Int64Array, satisfied: Int64Array, absences: Int64Array, leading: int, come: Int64Array
) -> None:
    """Adds to `come`, by row, which of the `leading` absences there is a row of before it, within their durations."""
    for a in range(len(absences)):
        if not (leading >> a) & 1:
            continue
        for p in range(len(offsets) - 1):
            last = -1
            for row in range(offsets[p], offsets[p + 1]):
                if last >= 0 and time[row] - time[last] <= absences[a, DURATION]:
                    come[row] |= 1 << a
                if (satisfied[row] >> absences[a, ITS_VARIABLE]) & 1:
                    last = row


@compiled(nb.void(INTS, INTS, TABLE, OUT_TABLE), borrows=True)
def note_rows_after(offsets: Int64Array, satisfied: Int64Array, absences: Int64Array, following: Int64Array) -> None:
    """Writes to `following`, by absence and row, the place of the first row behind it that may be one of those that
    must not come; -1 where there is none.
    """
    for a in range(len(absences)):
        for p in range(len(offsets) - 1):
            first = -1
            for row in range(offsets[p + 1] - 1, offsets[p] - 1, -1):
                following[a, row] = first
                if (satisfied[row] >> absences[a, ITS_VARIABLE]) & 1:
                    first = row


@compiled(nb.void(INTS, INTS, INTS, OUT), borrows=True)
def note_first_since(offsets: Int64Array, time: Int64Array, since: Int64Array, places: Int64Array) -> None:
    """Writes to `places` the place of the first row of each partition that is not before an instant of its own."""
    for p in range(len(offsets) - 1):
        low, high = offsets[p], offsets[p + 1]
        while low < high:
            middle = (low + high) // 2
            if time[middle] < since[p]:
                low = middle + 1
            else:
                high = middle
        places[p] = low


@compiled(
    nb.boolean(
        *(nb.int64, nb.int64, INTS, TABLE, INTS, DOUBLES, TABLE, INTS, TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, nb.int64, nb.int64, OUT, OUT_DOUBLES, OUT_MARKS),
    ),
    borrows=True,
)
def comes(
    variable: int, row: int, programs: Int64Array, code: Int64Array, ints: Int64Array, doubles: Float64Array,
    groups: Int64Array, numbers: Int64Array, int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, thread: int, none: int, stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
) -> bool:  # fmt: skip
    """Whether a row that satisfies all that reads it alone is one that must not come, for a thread. The last thread of
    the table is overwritten.
    """
    if programs[variable] == programs[variable + 1]:
        return True
    scratch = len(threads) - 1
    for r in range(REGISTERS, threads.shape[1]):
        threads[scratch, r] = threads[thread, r]
    match_row(threads, scratch, variable, row, groups, numbers, int_columns, double_columns, marks, stack, double_stack)
    true: bool = holds(
        programs[variable], programs[variable + 1], code, ints, doubles, int_columns, double_columns, marks,
        threads, scratch, row, none, stack, double_stack, mark,
    )  # fmt: skip
    return true


@compiled(
    nb.int64(
        *(nb.int64, nb.int64, nb.int64, TABLE, INTS, INTS),
        *(INTS, TABLE, INTS, DOUBLES, TABLE, INTS, TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, nb.int64, OUT, OUT_DOUBLES, OUT_MARKS),
    ),
    borrows=True,
)
def come_before(
    row: int, first: int, asked: int, absences: Int64Array, satisfied: Int64Array, time: Int64Array,
    programs: Int64Array, code: Int64Array, ints: Int64Array, doubles: Float64Array,
    groups: Int64Array, numbers: Int64Array, int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, thread: int, stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
) -> int:  # fmt: skip
    """Which of the absences `asked` for there is a row of before the first one of a match, within their durations, as a
    mask: of those that only the rows of the match tell. A partition begins at `first`.
    """
    found = 0
    for a in range(len(absences)):
        variable = absences[a, ITS_VARIABLE]
        if not (asked >> a) & 1 or programs[variable] == programs[variable + 1]:
            continue
        place = row - 1
        while place >= first and time[row] - time[place] <= absences[a, DURATION]:
            if (satisfied[place] >> variable) & 1 and comes(
                variable, place, programs, code, ints, doubles, groups, numbers,
                int_columns, double_columns, marks, threads, thread, len(time), stack, double_stack, mark,
            ):  # fmt: skip
                found |= 1 << a
                break
            place -= 1
    return found


@compiled(
    _FATE(
        *(nb.int64, nb.int64, nb.int64, nb.boolean, TABLE, TABLE, INTS),
        *(INTS, TABLE, INTS, DOUBLES, TABLE, INTS, TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, nb.int64, OUT, OUT_DOUBLES, OUT_MARKS),
    ),
    borrows=True,
)
def fate_of(  # type: ignore[no-untyped-def]  # numba
    row: int, end: int, absent: int, no_row: bool, absences: Int64Array, following: Int64Array, time: Int64Array,
    programs: Int64Array, code: Int64Array, ints: Int64Array, doubles: Float64Array,
    groups: Int64Array, numbers: Int64Array, int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, thread: int, stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
):  # fmt: skip
    """What becomes of a match that ends with a row: whether it is one, and the instant at which that is decided, if no
    other rows come than those before `end`.

    It is none if a row comes that must not: one of the mask `absent` that can come, within its duration, or any row,
    where there is to be none. Else it is one when all durations are over, and all rows are known that its conditions
    read.
    """
    gone, decided = threads[thread, GONE], NEVER
    if no_row:
        decided = EVER
        if row + 1 < end:
            gone = min(gone, row + 1)
    for a in range(len(absences)):
        if (absent >> a) & 1:
            if absences[a, POSSIBLE] < absences[a, POSSIBLE_END] and not holds(
                absences[a, POSSIBLE], absences[a, POSSIBLE_END], code, ints, doubles,
                int_columns, double_columns, marks, threads, thread, row, len(time), stack, double_stack, mark,
            ):  # fmt: skip
                continue
            over = time[row] + absences[a, DURATION]
            decided = max(decided, over)
            place = following[a, row]
            while 0 <= place < gone and time[place] <= over:
                if comes(
                    absences[a, ITS_VARIABLE], place, programs, code, ints, doubles, groups, numbers,
                    int_columns, double_columns, marks, threads, thread, len(time), stack, double_stack, mark,
                ):  # fmt: skip
                    gone = place
                    break
                place = following[a, place]
    if gone <= end:
        return 0, time[gone] if gone < end else EVER
    sure = threads[thread, SURE]
    if sure >= 0:
        decided = max(decided, time[sure] if sure < end else EVER)
    return 1, decided
