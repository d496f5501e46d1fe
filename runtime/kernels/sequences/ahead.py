"""Conditions that read rows behind their own: which rows decide them."""

from __future__ import annotations

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import DOUBLES, INTS, OUT, OUT_DOUBLES, OUT_TABLE, TABLE, compiled
from tidegate.runtime.kernels.sequences.machine import DOUBLE_TABLE, MARKS, OUT_MARKS, holds
from tidegate.runtime.kernels.sequences.threads import GONE, REGISTERS, SURE


@compiled(
    nb.boolean(
        *(nb.int64, nb.int64, nb.int64, nb.boolean, INTS, INTS, TABLE, TABLE, TABLE, TABLE),
        *(TABLE, INTS, DOUBLES, TABLE, DOUBLE_TABLE, MARKS),
        *(OUT_TABLE, nb.int64, nb.int64, OUT, OUT_DOUBLES, OUT_MARKS),
    ),
    borrows=True,
)
def may_hold(
    variable: int, row: int, end: int, closed: bool,
    ahead: Int64Array, later_of: Int64Array, later: Int64Array, reads: Int64Array, sure: Int64Array, gone: Int64Array,
    code: Int64Array, ints: Int64Array, doubles: Float64Array,
    int_columns: Int64Array, double_columns: Float64Array, marks: UInt8Array,
    threads: Int64Array, thread: int, none: int, stack: Int64Array, double_stack: Float64Array, mark: UInt8Array,
) -> bool:  # fmt: skip
    """Whether the condition of a variable may hold at a row, as far as it reads rows behind others. Notes in the thread
    which rows decide it: those up to `end`, which is behind the known ones, and stands for the end of the input where
    that is `closed`, else for rows to come.

    `ahead` has by variable the row of `sure` and `gone` that says so of what the row alone decides, or -1. Beside that
    there are programs, in `later` from `later_of` on by variable: each with the rows that it reads, in `reads`, by
    their registers, or -1 for this row, and how many rows behind.
    """
    if ahead[variable] >= 0:
        threads[thread, SURE] = max(threads[thread, SURE], sure[ahead[variable], row])
        threads[thread, GONE] = min(threads[thread, GONE], gone[ahead[variable], row])
    for k in range(later_of[variable], later_of[variable + 1]):
        place = -1
        for r in range(later[k, 2], later[k, 3]):
            at = row if reads[r, 0] < 0 else threads[thread, REGISTERS + reads[r, 0]]
            if at >= 0:
                place = max(place, at + reads[r, 1])
        place = min(place, end)
        if place == end and not closed:
            threads[thread, SURE] = end
            continue
        true = holds(
            later[k, 0], later[k, 1], code, ints, doubles, int_columns, double_columns, marks,
            threads, thread, row, none, stack, double_stack, mark,
        )  # fmt: skip
        if place <= row:
            if not true:
                return False
        elif true:
            threads[thread, SURE] = max(threads[thread, SURE], place)
        else:
            threads[thread, GONE] = min(threads[thread, GONE], place)
    return True
