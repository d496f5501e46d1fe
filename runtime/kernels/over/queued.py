"""Values over frames that move, of rows that come at the end of their partition and leave at its front.

The rows of a partition are numbered from 1 on. A row carries the partial result of a block: of row m the last rows up
to it, as many as the lowest bit of m says (Fenwick, "A new data structure for cumulative frequency tables", 1994). A
frame is a few such blocks, so a new row looks at some of the rows before it, however many stay.

Rows of partition p are the `count[p]` kept ones from place `first[p]` on, of which the first has the number `base[p]`,
and then the new ones from `offsets[p]` to `offsets[p + 1]`. Within a partition they are counted from 0 on, kept ones
first. Frames are given so for each new row, from `low` to before `high`.
"""

from __future__ import annotations

import numba as nb

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import BYTES, DOUBLES, INTS, OUT, OUT_DOUBLES, compiled
from tidegate.runtime.kernels.over.running import added


@compiled(nb.void(INTS, INTS, INTS, INTS, INTS, nb.int64, OUT, OUT))
def frames(
    first: Int64Array, count: Int64Array, offsets: Int64Array, kept: Int64Array, new: Int64Array, before: int,
    low: Int64Array, high: Int64Array
) -> None:  # fmt: skip
    """Where the frame of each new row starts and ends: of all rows, given by their instants, those at most so many
    ticks before it, and those of its own instant.
    """
    for p in range(len(first)):
        start, reached = 0, offsets[p]
        for i in range(offsets[p], offsets[p + 1]):
            if start < count[p]:
                below, above = start, count[p]
                while below < above:
                    middle = (below + above) // 2
                    if new[i] - kept[first[p] + middle] > before:
                        below = middle + 1
                    else:
                        above = middle
                start = below
            while start >= count[p] and new[i] - new[offsets[p] + start - count[p]] > before:
                start += 1
            while reached < offsets[p + 1] and new[reached] == new[i]:
                reached += 1
            low[i], high[i] = start, count[p] + reached - offsets[p]


@compiled(nb.void(INTS, INTS, INTS, INTS, INTS, INTS, DOUBLES, DOUBLES, DOUBLES, DOUBLES, BYTES, *[OUT_DOUBLES] * 4))
def add_doubles(
    first: Int64Array, count: Int64Array, base: Int64Array, offsets: Int64Array, low: Int64Array, high: Int64Array,
    kept_value: Float64Array, kept_sum: Float64Array, kept_lost: Float64Array, value: Float64Array, valid: UInt8Array,
    sums: Float64Array, lost: Float64Array, total: Float64Array, total_lost: Float64Array
) -> None:  # fmt: skip
    """The sums of blocks, `sums` and what they `lost`, of the new rows, and those of frames. Values that there are not
    count as 0, and are 0 in kept rows. Nothing is subtracted.
    """
    for p in range(len(first)):
        behind, ahead = first[p], offsets[p] - count[p]
        for i in range(offsets[p], offsets[p + 1]):
            place = i - ahead
            number = base[p] + place
            size = number & -number
            s, c = value[i] if valid[i] else 0.0, 0.0
            back = 1
            # Where rows of a block are gone, no frame to come has all of it.
            while back < size and place - back >= 0:
                j = place - back
                if j < count[p]:
                    s, c = added(s, c + kept_lost[behind + j], kept_sum[behind + j])
                else:
                    s, c = added(s, c + lost[ahead + j], sums[ahead + j])
                back *= 2
            sums[i], lost[i] = s, c
        for i in range(offsets[p], offsets[p + 1]):
            s, c, place = 0.0, 0.0, high[i] - 1
            while place >= low[i]:
                number = base[p] + place
                size = number & -number
                whole = place - size + 1 >= low[i]
                if place < count[p]:
                    j = behind + place
                    if whole:
                        s, c = added(s, c + kept_lost[j], kept_sum[j])
                    else:
                        s, c = added(s, c, kept_value[j])
                else:
                    j = ahead + place
                    if whole:
                        s, c = added(s, c + lost[j], sums[j])
                    elif valid[j]:
                        s, c = added(s, c, value[j])
                place -= size if whole else 1
            total[i], total_lost[i] = s, c


@compiled(nb.void(INTS, INTS, INTS, INTS, INTS, INTS, INTS, INTS, INTS, BYTES, OUT, OUT))
def least(
    first: Int64Array, count: Int64Array, base: Int64Array, offsets: Int64Array, low: Int64Array, high: Int64Array,
    kept_key: Int64Array, kept_best: Int64Array, key: Int64Array, valid: UInt8Array, best: Int64Array,
    found: Int64Array
) -> None:  # fmt: skip
    """In each frame the place of the row with the least key, `found`, of several the first one; -1: none has a value.

    `best` is the number of that row in each block, 0 where there is none; below zero where the last row of the block
    has no value.
    """
    for p in range(len(first)):
        behind, ahead = first[p], offsets[p] - count[p]
        for i in range(offsets[p], offsets[p + 1]):
            place = i - ahead
            size = (base[p] + place) & -(base[p] + place)
            at = place if valid[i] else -1
            back = 1
            # Where rows of a block are gone, no frame to come has all of it.
            while back < size and place - back >= 0:
                j = place - back
                other = abs(kept_best[behind + j] if j < count[p] else best[ahead + j]) - base[p]
                if other >= 0:
                    theirs = kept_key[behind + other] if other < count[p] else key[ahead + other]
                    if at >= 0:
                        mine = kept_key[behind + at] if at < count[p] else key[ahead + at]
                        at = other if theirs <= mine else at
                    else:
                        at = other
                back *= 2
            best[i] = 0 if at < 0 else base[p] + at if valid[i] else -base[p] - at
        for i in range(offsets[p], offsets[p + 1]):
            at, place = -1, high[i] - 1
            while place >= low[i]:
                size = (base[p] + place) & -(base[p] + place)
                whole = place - size + 1 >= low[i]
                known = kept_best[behind + place] if place < count[p] else best[ahead + place]
                other = abs(known) - base[p] if whole else place if known > 0 else -1
                if other >= 0:
                    theirs = kept_key[behind + other] if other < count[p] else key[ahead + other]
                    if at >= 0:
                        mine = kept_key[behind + at] if at < count[p] else key[ahead + at]
                        at = other if theirs <= mine else at
                    else:
                        at = other
                place -= size if whole else 1
            found[i] = at
