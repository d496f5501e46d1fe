"""The kernel of a band join: sorts the inner rows by group and value, and finds the slice between two values of a
group.

Compiled once for these types into a cache beside this file (or numba's own, where that cannot be written).
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.kernels.compiling import FLAGS, INTS, OUT, compiled

#: Places that rows are moved by, per row, before sorting them in another way is quicker.
_MOVES = 16


@dataclass(frozen=True, slots=True)
class SortedGroups:
    """Rows sorted by group, and within each group by value."""

    #: int64[G + 1]: group g has the places first[g] to first[g + 1].
    first: Int64Array
    #: int64[n]: the row at every place.
    order: Int64Array
    #: int64[n]: its value.
    values: Int64Array


def sort_groups(group: Int64Array, values: Int64Array, valid: BoolArray, groups: int) -> SortedGroups | None:
    """Sorts the valid rows that have a group (not -1). Returns None where they are too far from ascending order.

    Rows that come in order of their values, as those of streams nearly do, cost a few passes and no comparison sort.
    """
    first = np.zeros(groups + 1, dtype=np.int64)
    _count(group, valid, first)
    order, placed = np.empty(first[-1], dtype=np.int64), np.empty(first[-1], dtype=np.int64)
    return SortedGroups(first, order, placed) if _place(group, values, valid, first, order, placed) else None


def find_slices(
    rows: SortedGroups, group: Int64Array, valid: BoolArray, low: Int64Array, high: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """Finds for every outer row the rows of its group with low <= value <= high: int64[m] start and stop."""
    start, stop = np.zeros(len(group), dtype=np.int64), np.zeros(len(group), dtype=np.int64)
    _search(rows.first, rows.values, group, valid, low, high, start, stop)
    return start, stop


@compiled(nb.void(INTS, FLAGS, OUT), nogil=True)
def _count(group: Int64Array, valid: BoolArray, first: Int64Array) -> None:
    for row in range(group.shape[0]):
        if valid[row] and group[row] >= 0:
            first[group[row] + 1] += 1
    for number in range(first.shape[0] - 1):
        first[number + 1] += first[number]


@compiled(nb.boolean(INTS, INTS, FLAGS, INTS, OUT, OUT), nogil=True)
def _place(
    group: Int64Array, values: Int64Array, valid: BoolArray, first: Int64Array, order: Int64Array, placed: Int64Array
) -> bool:
    """Inserts every row after those of its group with values up to its own. Rows of equal values keep their order."""
    next_place = first.copy()
    left = _MOVES * group.shape[0]
    for row in range(group.shape[0]):
        number = group[row]
        if number < 0 or not valid[row]:
            continue
        value, place = values[row], next_place[number]
        next_place[number] = place + 1
        while place > first[number] and placed[place - 1] > value:
            placed[place] = placed[place - 1]
            order[place] = order[place - 1]
            place -= 1
            left -= 1
        if left < 0:
            return False
        placed[place] = value
        order[place] = row
    return True


@compiled(nb.void(INTS, INTS, INTS, FLAGS, INTS, INTS, OUT, OUT), nogil=True)
def _search(
    first: Int64Array,
    values: Int64Array,
    group: Int64Array,
    valid: BoolArray,
    low: Int64Array,
    high: Int64Array,
    start: Int64Array,
    stop: Int64Array,
) -> None:
    for row in range(group.shape[0]):
        number = group[row]
        if number < 0 or not valid[row] or number + 1 >= first.shape[0]:
            continue
        begin, end = first[number], first[number + 1]
        while begin < end:
            middle = (begin + end) >> 1
            if values[middle] < low[row]:
                begin = middle + 1
            else:
                end = middle
        start[row] = begin
        end = first[number + 1]
        # Ranges are short as a rule: the first places tell before a search of all would.
        step = 1
        while begin + step < end and values[begin + step] <= high[row]:
            begin += step
            step += step
        end = min(end, begin + step)
        while begin < end:
            middle = (begin + end) >> 1
            if values[middle] <= high[row]:
                begin = middle + 1
            else:
                end = middle
        stop[row] = begin
