"""The rows of an increment partition by partition, behind those that are kept of each.

Rows are numbered in one array, of which partition p has the segment from `offsets[p]` to `offsets[p + 1]`: first the
rows that were kept, then from `first[p]` on the new ones. Compiled once for these types into a cache beside this file.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tidegate.runtime.arrays import BoolArray, Int32Array, Int64Array
from tidegate.runtime.kernels.compiling import INTS, NUMBERS, OUT, OUT_FLAGS, compiled

#: Later than every instant, and than every sum of one and a duration.
NEVER = (1 << 63) - 1

#: Places that rows are moved by, for each of them, before it is quicker to sort them all.
MOVES = 4

_THREE = nb.types.UniTuple(OUT, 3)  # type: ignore[no-untyped-call]  # numba has no types for it


@compiled(_THREE(INTS, INTS, INTS, nb.int64))
def segmented(kept: Int64Array, new: Int64Array, order: Int64Array, partitions: int):  # type: ignore[no-untyped-def]  # numba
    """Rows by partition: int64[n] `source`, int64[P + 1] `offsets` and int64[P] `first`.

    `kept` and `new` have the partition of each row, `kept` in ascending order. `order` has the new rows in order of
    time. Place i holds row `source[i]` of the kept ones and then the new ones.
    """
    offsets, first = np.zeros(partitions + 1, dtype=np.int64), np.zeros(partitions, dtype=np.int64)
    for p in kept:
        offsets[p + 1] += 1
        first[p] += 1
    for p in new:
        offsets[p + 1] += 1
    for p in range(partitions):
        offsets[p + 1] += offsets[p]
        first[p] += offsets[p]
    source, place = np.empty(len(kept) + len(new), dtype=np.int64), offsets[:-1].copy()
    for i in range(len(kept)):
        source[place[kept[i]]] = i
        place[kept[i]] += 1
    for i in order:
        source[place[new[i]]] = len(kept) + i
        place[new[i]] += 1
    return source, offsets, first


@compiled(nb.boolean(INTS, INTS, OUT, INTS, nb.int64), borrows=True)
def put_in_order(offsets: Int64Array, first: Int64Array, source: Int64Array, time: Int64Array, kept: int) -> bool:
    """Puts the new rows of each partition in order of time, those of one instant as they stand; whether it takes few
    moves, else some are left where they are.

    The arrays are those of `segmented`; row `source[i]` has the instant `time[source[i] - kept]`. Rows of a stream that
    come out of order are mostly in order within their partition.
    """
    left = MOVES * len(time)
    for p in range(len(first)):
        for i in range(first[p] + 1, offsets[p + 1]):
            row, to = source[i], i
            while to > first[p] and time[source[to - 1] - kept] > time[row - kept]:
                source[to] = source[to - 1]
                to -= 1
            source[to] = row
            left -= i - to
            if left < 0:
                return False
    return True


@compiled(nb.void(OUT_FLAGS, NUMBERS), nogil=True)
def mark(marks: BoolArray, numbers: Int32Array) -> None:
    """Sets the marks at these numbers; NumPy takes four times as long."""
    for number in numbers:
        marks[number] = True


@compiled(OUT(INTS, INTS, INTS, INTS), nogil=True)
def up_to(values: Int64Array, first: Int64Array, count: Int64Array, bound: Int64Array) -> Int64Array:
    """How many of the `count` values from place `first` on are at most `bound`, for each of these; they ascend."""
    below = np.zeros(len(first), dtype=np.int64)
    for i in range(len(first)):
        low, high = 0, count[i]
        while low < high:
            middle = (low + high) // 2
            if values[first[i] + middle] <= bound[i]:
                low = middle + 1
            else:
                high = middle
        below[i] = low
    return below


@compiled(nb.int64(INTS, INTS))
def first_tie(offsets: Int64Array, time: Int64Array) -> int:
    """The place of a row that has the instant of the row before it in its partition; -1 where there is none."""
    for p in range(len(offsets) - 1):
        for i in range(offsets[p] + 1, offsets[p + 1]):
            if time[i] == time[i - 1]:
                return i
    return -1
