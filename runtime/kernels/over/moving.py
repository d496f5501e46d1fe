"""Values over frames that move: frame i is the rows from `low[i]` to before `high[i]`.

Within a partition neither goes back from row to row, and frames of two partitions have no row in common. Only the
frames of the rows `at` are asked for, in ascending order.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import BYTES, DOUBLES, INTS, OUT, OUT_DOUBLES, compiled
from tidegate.runtime.kernels.over.running import added


@compiled(OUT(INTS, INTS, INTS, INTS, BYTES))
def least(at: Int64Array, low: Int64Array, high: Int64Array, key: Int64Array, valid: UInt8Array) -> Int64Array:
    """Where the value with the least key is, the first of several; -1: there is none.

    The queue holds rows that may yet be the least, keys ascending.
    """
    places, queue = np.empty(len(at), dtype=np.int64), np.empty(len(key), dtype=np.int64)
    head, tail, reached = 0, 0, 0
    for k in range(len(at)):
        start, end = low[at[k]], high[at[k]]
        if start >= reached:
            head, tail, reached = 0, 0, start
        while reached < end:
            if valid[reached]:
                while tail > head and key[queue[tail - 1]] > key[reached]:
                    tail -= 1
                queue[tail] = reached
                tail += 1
            reached += 1
        while head < tail and queue[head] < start:
            head += 1
        places[k] = queue[head] if head < tail else -1
    return places


@compiled(OUT(INTS, INTS, BYTES, nb.boolean, nb.int64))
def undercut(offsets: Int64Array, key: Int64Array, valid: UInt8Array, several: bool, shared: int) -> Int64Array:
    """1 for rows that are never the least of a frame that reaches to the end of their partition, or further: they have
    no value, or a later row has a key that is no greater.

    `several`: the key `shared` is that of several values. Rows with it do not undercut each other.
    """
    found = np.ones(len(key), dtype=np.int64)
    for p in range(len(offsets) - 1):
        best = -1
        for i in range(offsets[p + 1] - 1, offsets[p] - 1, -1):
            if valid[i] and (best < 0 or key[i] < key[best] or (several and key[i] == shared and key[best] == shared)):
                best, found[i] = i, 0
    return found


@compiled(OUT(INTS, INTS, INTS, INTS, BYTES, nb.int64))
def distinct(
    at: Int64Array, low: Int64Array, high: Int64Array, number: Int64Array, valid: UInt8Array, different: int
) -> Int64Array:
    """How many different values frames have. Equal values have one number, below `different`.

    A row is counted once as it comes into frames, and once as it leaves them.
    """
    found, times = np.empty(len(at), dtype=np.int64), np.zeros(different, dtype=np.int64)
    first, reached, many = 0, 0, 0
    for k in range(len(at)):
        start, end = low[at[k]], high[at[k]]
        while first < reached and first < start:
            if valid[first]:
                times[number[first]] -= 1
                many -= times[number[first]] == 0
            first += 1
        if start > reached:
            first, reached = start, start
        while reached < end:
            if valid[reached]:
                many += times[number[reached]] == 0
                times[number[reached]] += 1
            reached += 1
        found[k] = many
    return found


@compiled(nb.types.UniTuple(OUT_DOUBLES, 2)(INTS, INTS, INTS, DOUBLES, BYTES))  # type: ignore[no-untyped-call]  # numba has no types for it
def add_doubles(at: Int64Array, low: Int64Array, high: Int64Array, value: Float64Array, valid: UInt8Array):  # type: ignore[no-untyped-def]  # numba
    """Sums of doubles, and what they lost.

    Nothing is subtracted: a sum is that from the start of the frame to `middle`, which is known for every start, and
    that from there on. Every row is added twice at most, however long the frames are.
    """
    sums, lost = np.zeros(len(at)), np.zeros(len(at))
    ahead, ahead_lost = np.zeros(len(value) + 1), np.zeros(len(value) + 1)
    middle, reached, total, total_lost = 0, 0, 0.0, 0.0
    for k in range(len(at)):
        start, end = low[at[k]], high[at[k]]
        if start >= middle:
            middle = end
            reached, total, total_lost = end, 0.0, 0.0
            ahead[end], ahead_lost[end] = 0.0, 0.0
            for i in range(end - 1, start - 1, -1):
                ahead[i], ahead_lost[i] = ahead[i + 1], ahead_lost[i + 1]
                if valid[i]:
                    ahead[i], ahead_lost[i] = added(ahead[i + 1], ahead_lost[i + 1], value[i])
        while reached < end:
            if valid[reached]:
                total, total_lost = added(total, total_lost, value[reached])
            reached += 1
        both, rest = added(ahead[start], ahead_lost[start] + total_lost, total)
        sums[k], lost[k] = both, rest
    return sums, lost
