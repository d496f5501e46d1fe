"""Where instants stand among the rows of their partitions."""

from __future__ import annotations

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.compiling import INTS, OUT, compiled


@compiled(OUT(INTS, INTS, INTS, INTS, nb.boolean))
def first_from(offsets: Int64Array, time: Int64Array, of: Int64Array, at: Int64Array, later: bool) -> Int64Array:
    """For each instant the first place in its partition with a time that is not before it, or with `later` after it;
    the end of the partition where there is none.

    Partition p has the places from `offsets[p]` to `offsets[p + 1]`, `time` ascending within; instant i is of partition
    `of[i]`. One that follows an earlier one of its partition is searched for from there on, in growing steps: where
    they ascend, that is a step or two for each.
    """
    places = np.empty(len(at), dtype=np.int64)
    for i in range(len(at)):
        low, high, instant = offsets[of[i]], offsets[of[i] + 1], at[i]
        if i > 0 and of[i] == of[i - 1] and instant >= at[i - 1]:
            low, step = places[i - 1], 1
            while low + step <= high:
                ahead = time[low + step - 1]
                if ahead > instant or (ahead == instant and not later):
                    high = low + step - 1
                    break
                low, step = low + step, 2 * step
        while low < high:
            middle = (low + high) // 2
            if time[middle] < instant or (later and time[middle] == instant):
                low = middle + 1
            else:
                high = middle
        places[i] = low
    return places
