"""Values over all rows of a partition up to each row. What is kept of a partition has them in its last row.

Segments are those of `segments`. The arrays of values hold those of kept rows; the kernels write those of new rows in
place, going on from the kept row before. `valid` is 0 where there is no value.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import BYTES, DOUBLES, INTS, OUT, OUT_DOUBLES, compiled

_LOW = (1 << 32) - 1


@compiled(nb.void(INTS, INTS, BYTES, OUT))
def count(offsets: Int64Array, first: Int64Array, valid: UInt8Array, n: Int64Array) -> None:
    """How many values there are."""
    for p in range(len(first)):
        so_far = n[first[p] - 1] if first[p] > offsets[p] else 0
        for i in range(first[p], offsets[p + 1]):
            so_far += valid[i]
            n[i] = so_far


@compiled(nb.void(INTS, INTS, INTS, BYTES, OUT, OUT))
def add(
    offsets: Int64Array, first: Int64Array, value: Int64Array, valid: UInt8Array, high: Int64Array, low: Int64Array
) -> None:
    """Exact sums of integers, as `high * 2**32 + low` with 0 <= low < 2**32."""
    for p in range(len(first)):
        h, lo = np.int64(0), np.int64(0)
        if first[p] > offsets[p]:
            h, lo = high[first[p] - 1], low[first[p] - 1]
        for i in range(first[p], offsets[p + 1]):
            if valid[i]:
                h += value[i] >> 32
                lo += value[i] & _LOW
                h += lo >> 32
                lo &= _LOW
            high[i], low[i] = h, lo


@compiled(nb.types.UniTuple(nb.float64, 2)(nb.float64, nb.float64, nb.float64))  # type: ignore[no-untyped-call]  # numba has no types for it
def added(total: float, lost: float, value: float):  # type: ignore[no-untyped-def]  # numba
    """The sum with a further value, and what it has lost by rounding (Neumaier)."""
    new_total = total + value
    if not np.isfinite(new_total):
        return new_total, 0.0
    if abs(total) >= abs(value):
        lost += (total - new_total) + value
    else:
        lost += (value - new_total) + total
    return new_total, lost


@compiled(nb.void(INTS, INTS, DOUBLES, BYTES, OUT_DOUBLES, OUT_DOUBLES))
def add_doubles(
    offsets: Int64Array,
    first: Int64Array,
    value: Float64Array,
    valid: UInt8Array,
    total: Float64Array,
    lost: Float64Array,
) -> None:
    """Sums of doubles, and what they lost."""
    for p in range(len(first)):
        t, c = 0.0, 0.0
        if first[p] > offsets[p]:
            t, c = total[first[p] - 1], lost[first[p] - 1]
        for i in range(first[p], offsets[p + 1]):
            if valid[i]:
                t, c = added(t, c, value[i])
            total[i], lost[i] = t, c


@compiled(OUT(INTS, INTS, INTS, BYTES))
def least(offsets: Int64Array, first: Int64Array, key: Int64Array, valid: UInt8Array) -> Int64Array:
    """Where the value with the least key is; the first of several. -1: there is none.

    `key` and `valid` are of the n rows and then of the n values that are kept with them: n + i is that of row i.
    """
    n = offsets[-1]
    places = np.empty(n, dtype=np.int64)
    for p in range(len(first)):
        for i in range(offsets[p], first[p]):
            places[i] = n + i if valid[n + i] else -1
        best = places[first[p] - 1] if first[p] > offsets[p] else -1
        for i in range(first[p], offsets[p + 1]):
            if valid[i] and (best < 0 or key[i] < key[best]):
                best = i
            places[i] = best
    return places


@compiled(OUT(INTS, INTS, BYTES, nb.boolean))
def end(offsets: Int64Array, first: Int64Array, valid: UInt8Array, last: bool) -> Int64Array:
    """Where the first or the last value is, in the order of rows; numbered as in `least`."""
    n = offsets[-1]
    places = np.empty(n, dtype=np.int64)
    for p in range(len(first)):
        for i in range(offsets[p], first[p]):
            places[i] = n + i if valid[n + i] else -1
        best = places[first[p] - 1] if first[p] > offsets[p] else -1
        for i in range(first[p], offsets[p + 1]):
            if valid[i] and (best < 0 or last):
                best = i
            places[i] = best
    return places


@compiled(nb.void(INTS, INTS, INTS, nb.int64, OUT, OUT))
def reported(
    offsets: Int64Array, first: Int64Array, time: Int64Array, within: int, at: Int64Array, is_reported: Int64Array
) -> None:
    """Writes whether each new row is reported, and when the last one was that is: the first of a partition, and each
    that comes more than `within` ticks after the last; below zero: no other.
    """
    for p in range(len(first)):
        for i in range(first[p], offsets[p + 1]):
            if i > offsets[p] and (within < 0 or time[i] - at[i - 1] <= within):
                at[i], is_reported[i] = at[i - 1], 0
            else:
                at[i], is_reported[i] = time[i], 1


@compiled(OUT(INTS, INTS, INTS, BYTES))
def previous_different(offsets: Int64Array, first: Int64Array, key: Int64Array, valid: UInt8Array) -> Int64Array:
    """Where the last value is that differs from the row's; numbered as in `least`. Values are equal if their keys are,
    or if they are both missing.
    """
    n = offsets[-1]
    places = np.empty(n, dtype=np.int64)
    for p in range(len(first)):
        for i in range(offsets[p], offsets[p + 1]):
            if i < first[p]:
                places[i] = n + i
            elif i == offsets[p]:
                places[i] = -1
            elif valid[i] != valid[i - 1] or (valid[i] and key[i] != key[i - 1]):
                places[i] = i - 1
            else:
                places[i] = places[i - 1]
    return places


@compiled(OUT(INTS, INTS, INTS, nb.int64))
def nth(offsets: Int64Array, first: Int64Array, number_of: Int64Array, number: int) -> Int64Array:
    """Where the row with that number is, once there is one; numbered as in `least`. `number_of` are the rows' own."""
    n = offsets[-1]
    places = np.empty(n, dtype=np.int64)
    for p in range(len(first)):
        for i in range(offsets[p], offsets[p + 1]):
            if number_of[i] < number:
                places[i] = -1
            elif i < first[p]:
                places[i] = n + i
            elif number_of[i] == number:
                places[i] = i
            else:
                places[i] = places[i - 1]
    return places
