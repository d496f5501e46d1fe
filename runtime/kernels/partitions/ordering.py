"""Ascending order of integers that are spread evenly. Compiled once for these types into a cache beside this file."""

from __future__ import annotations

from typing import Final

import numpy as np

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.compiling import INTS, OUT, compiled

#: So many values share a bucket if all lie equally far apart.
SHARE: Final = 4
#: So many moves for each value are too many: they cost more than a sort by comparisons.
MOVES: Final = 16


@compiled(OUT(INTS))
def ascending(values: Int64Array) -> Int64Array:
    """The places of values in ascending order, equal values as they stand; none where they lie in too few buckets.

    Each value goes to a bucket of those near it, and from there to its place. Of 200,000 instants that are out of order
    by 1,000 places this takes a quarter of the time of a sort by comparisons.
    """
    order = np.arange(len(values))
    if len(values) == 0:
        return order
    least, greatest = values[0], values[0]
    for value in values:
        least, greatest = min(least, value), max(greatest, value)
    low, by, buckets = np.uint64(least), np.uint64(0), np.uint64(len(values) // SHARE + 1)
    span = np.uint64(greatest) - low
    while span >> by >= buckets:
        by += np.uint64(1)
    place = np.zeros(len(values) // SHARE + 2, dtype=np.int64)
    for value in values:
        place[((np.uint64(value) - low) >> by) + np.uint64(1)] += 1
    for bucket in range(1, len(place)):
        place[bucket] += place[bucket - 1]
    for at in range(len(values)):
        bucket_of = (np.uint64(values[at]) - low) >> by
        order[place[bucket_of]] = at
        place[bucket_of] += 1
    moves = 0
    for k in range(1, len(values)):
        at = order[k]
        value, to = values[at], k
        while to > 0 and values[order[to - 1]] > value:
            order[to] = order[to - 1]
            to -= 1
        order[to] = at
        moves += k - to
        if moves > MOVES * len(values):
            return order[:0]
    return order
