"""Partial results that run through segments of rows: what each row and those before it come to, or with `back` each row
and those behind it.

`place` is that of a row in its segment, from 0 on; with `back` it counts from the segment's end.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tidegate.runtime.arrays import BoolArray, Float64Array, Int64Array
from tidegate.runtime.kernels.compiling import DOUBLES, FLAGS, INTS, OUT, OUT_DOUBLES, compiled

_DOUBLE = nb.types.UniTuple(nb.float64, 2)  # type: ignore[no-untyped-call]
_HALVES = nb.types.UniTuple(OUT, 2)  # type: ignore[no-untyped-call]
_TWO = nb.types.UniTuple(OUT_DOUBLES, 2)  # type: ignore[no-untyped-call]  # numba has no types for it


@compiled(OUT(INTS, INTS, nb.boolean))
def running_sums(values: Int64Array, place: Int64Array, back: bool) -> Int64Array:
    """The sum of a row and those before it."""
    count, total = len(values), 0
    sums = np.empty(count, dtype=np.int64)
    for number in range(count):
        i = count - 1 - number if back else number
        total = values[i] if place[i] == 0 else total + values[i]
        sums[i] = total
    return sums


@compiled(_HALVES(INTS, INTS, INTS, nb.boolean))
def running_halves(high: Int64Array, low: Int64Array, place: Int64Array, back: bool) -> tuple[Int64Array, Int64Array]:
    """The sum of a row and those before it, each of `high * 2**32 + low`, 0 <= low < 2**32."""
    count, upper, lower = len(high), 0, 0
    highs, lows = np.empty(count, dtype=np.int64), np.empty(count, dtype=np.int64)
    for number in range(count):
        i = count - 1 - number if back else number
        if place[i] == 0:
            upper, lower = high[i], low[i]
        else:
            lower += low[i]
            upper += high[i] + (lower >> 32)
            lower &= 0xFFFFFFFF
        highs[i], lows[i] = upper, lower
    return highs, lows


@compiled(_DOUBLE(nb.float64, nb.float64, nb.float64, nb.float64))
def double_sum(high: float, low: float, also_high: float, also_low: float):  # type: ignore[no-untyped-def]  # numba
    """A sum of doubles of about 106 bits, each what is rounded and what that has lost."""
    total = high + also_high
    other = total - high
    lost = (high - (total - other)) + (also_high - other) + (low + also_low)
    whole = total + lost
    if np.isfinite(whole):
        return whole, lost - (whole - total)
    return total, 0.0


@compiled(_TWO(DOUBLES, DOUBLES, DOUBLES, DOUBLES))
def double_sums(
    high: Float64Array, low: Float64Array, also_high: Float64Array, also_low: Float64Array
) -> tuple[Float64Array, Float64Array]:
    """The sums of two at the same place, and what they have lost."""
    sums, losses = np.empty(len(high), dtype=np.float64), np.empty(len(high), dtype=np.float64)
    for i in range(len(high)):
        sums[i], losses[i] = double_sum(high[i], low[i], also_high[i], also_low[i])
    return sums, losses


@compiled(_TWO(DOUBLES, DOUBLES, INTS, nb.boolean))
def running_double_sums(
    high: Float64Array, low: Float64Array, place: Int64Array, back: bool
) -> tuple[Float64Array, Float64Array]:
    """The sum of a row and those before it, and what it has lost."""
    count, total, lost = len(high), 0.0, 0.0
    sums, losses = np.empty(count, dtype=np.float64), np.empty(count, dtype=np.float64)
    for number in range(count):
        i = count - 1 - number if back else number
        if place[i] == 0:
            total, lost = high[i], low[i]
        else:
            total, lost = double_sum(total, lost, high[i], low[i])
        sums[i], losses[i] = total, lost
    return sums, losses


@compiled(OUT(INTS, INTS, FLAGS, INTS, nb.boolean))
def running_best(by: Int64Array, value: Int64Array, there: BoolArray, place: Int64Array, back: bool) -> Int64Array:
    """The row that is least, by an order and then by value, of a row and those before it; -1 where none is `there`."""
    count, best = len(by), -1
    found = np.empty(count, dtype=np.int64)
    for number in range(count):
        i = count - 1 - number if back else number
        if place[i] == 0:
            best = -1
        if there[i] and (best < 0 or by[i] < by[best] or (by[i] == by[best] and value[i] < value[best])):
            best = i
        found[i] = best
    return found
