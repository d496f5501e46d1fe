"""What aggregates need of slices of an array, whatever slices: each is a few blocks of 2, 4, 8, … adjacent places.

Of n places and as many slices that takes n log n; what is different in a slice, n log² n.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tidegate.runtime.arrays import Float64Array, Int64Array
from tidegate.runtime.eval.aggregates.pairs import sum_of_doubles

#: Slices, by number, of which each has one block of a level, by number.
_Blocks = tuple[Int64Array, Int64Array]


def _levels(start: Int64Array, stop: Int64Array) -> Iterator[tuple[_Blocks, _Blocks]]:
    """The blocks of 2**level places that slices are made of, for each level from 0 on: at their start and their end."""
    open_ = np.flatnonzero(start < stop)
    low, high = start[open_], stop[open_]
    while len(open_):
        at_start, at_end = (low & 1) == 1, (high & 1) == 1
        yield (open_[at_start], low[at_start]), (open_[at_end], high[at_end] - 1)
        low, high = (low + 1) >> 1, high >> 1
        left = low < high
        open_, low, high = open_[left], low[left], high[left]


def greatest_of(values: Int64Array, start: Int64Array, stop: Int64Array) -> Int64Array:
    """The greatest of numbers that are not below zero, for each slice; 0 of an empty one."""
    found = np.zeros(len(start), dtype=np.int64)
    for level in _levels(start, stop):
        for slices, blocks in level:
            found[slices] = np.maximum(found[slices], values[blocks])
        half = len(values) // 2
        values = np.maximum(values[0 : 2 * half : 2], values[1 : 2 * half : 2])
    return found


def doubles_of(
    high: Float64Array, low: Float64Array, start: Int64Array, stop: Int64Array
) -> tuple[Float64Array, Float64Array]:
    """The sums of doubles that are rounded and what that has lost, for each slice: nothing is ever subtracted."""
    total, lost = np.zeros(len(start)), np.zeros(len(start))
    for level in _levels(start, stop):
        for slices, blocks in level:
            total[slices], lost[slices] = sum_of_doubles(total[slices], lost[slices], high[blocks], low[blocks])
        half = len(high) // 2
        (first, first_lost), (second, second_lost) = (
            (high[place : 2 * half : 2], low[place : 2 * half : 2]) for place in (0, 1)
        )
        high, low = sum_of_doubles(first, first_lost, second, second_lost)
    return total, lost


def different_of(before: Int64Array, start: Int64Array, stop: Int64Array) -> Int64Array:
    """How many different values each slice has. `before` says where the last equal one before each place is, -1 where
    there is none, and the number of places where a place has no value.
    """
    found = np.zeros(len(start), dtype=np.int64)
    count = len(before)
    block, width = np.arange(count), count + 2
    for number, level in enumerate(_levels(start, stop)):
        ordered = np.sort((block >> number) * width + before + 1)
        for slices, blocks in level:
            # A value counts where it comes first in the slice.
            firsts = np.searchsorted(ordered, blocks * width + start[slices] + 1, "left") - (blocks << number)
            found[slices] += firsts
    return found
