"""Values over frames that move, of rows that come at the end of their partition and leave at its front.

The rows of a partition are numbered from 1 on. A row carries the partial result of a block: of row m the last rows up
to it, as many as the lowest bit of m says (Fenwick, "A new data structure for cumulative frequency tables", 1994). A
frame is a few such blocks.

Of the rows of a partition that are asked about in succession all frames have the rows from where the last one starts to
where the first one ends, if there are such: only these are made of blocks. What stands before them is added up from
the end on, what comes behind them from the beginning on. So the rows are passed that come into frames or leave them,
each once, and a few of those that stay.

Rows of partition p are the `count[p]` kept ones from place `first[p]` on, of which the first has the number `base[p]`,
and then the new ones from `offsets[p]` to `offsets[p + 1]`. Within a partition they are counted from 0 on, kept ones
first. Rows of partition p that are asked about are those from `asked[p]` to `asked[p + 1]`: their places are `at`, and
their frames are given from `low` to before `high`. Instants are those of `kept` and of `new` rows.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import BYTES, DOUBLES, INTS, OUT, OUT_DOUBLES, compiled
from tidegate.runtime.kernels.over.running import added
from tidegate.runtime.kernels.partitions.rows import NEVER

_TWO = nb.types.UniTuple(OUT, 2)  # type: ignore[no-untyped-call]  # numba has no types for it


@compiled(nb.int64(INTS, INTS, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64))
def later(
    kept: Int64Array, new: Int64Array, behind: int, count: int, ahead: int, low: int, high: int, instant: int
) -> int:  # fmt: skip
    """The first place from `low` to before `high` of which the instant is later than this one; `high`: there is none.
    Place i is row `behind + i` of the kept ones if it is below `count`, else row `ahead + i` of the new ones.

    It is searched for in growing steps: frames of rows that follow each other begin near each other.
    """
    step = 1
    while low < high:
        middle = min(low + step - 1, (low + high) // 2)
        if (kept[behind + middle] if middle < count else new[ahead + middle]) > instant:
            high = middle
        else:
            low, step = middle + 1, 2 * step
    return low


@compiled(nb.void(INTS, INTS, INTS, INTS, INTS, INTS, INTS, nb.int64, nb.int64, nb.boolean, OUT, OUT))
def frames_of_range(
    first: Int64Array, count: Int64Array, offsets: Int64Array, kept: Int64Array, new: Int64Array, asked: Int64Array,
    at: Int64Array, before: int, after: int, peers: bool, low: Int64Array, high: Int64Array
) -> None:  # fmt: skip
    """Where the frame of each row that is asked about starts and ends, by distance in time. Without `peers` it ends
    with the row itself unless it reaches further.
    """
    for p in range(len(first)):
        ahead = offsets[p] - count[p]
        many, start = offsets[p + 1] - ahead, 0
        for i in range(asked[p], asked[p + 1]):
            place = at[i]
            instant = kept[first[p] + place] if place < count[p] else new[ahead + place]
            start = later(kept, new, first[p], count[p], ahead, start, place, instant - before - 1)
            end = place + 1
            if peers or after > 0:
                end = later(kept, new, first[p], count[p], ahead, end, many, instant + after)
            low[i], high[i] = start, end


@compiled(OUT(INTS, INTS, INTS, INTS, INTS, INTS, INTS, nb.int64))
def waiting(
    first: Int64Array, count: Int64Array, offsets: Int64Array, kept: Int64Array, new: Int64Array, rows: Int64Array,
    ticks: Int64Array, until: int
) -> Int64Array:  # fmt: skip
    """From which place on the rows of each partition wait at progress `until`, which no instant is later than.

    Wait j: until `rows[j]` further rows are there, or `ticks[j]` ticks have passed; negative: nothing of this kind. A
    row waits as long as one of these lasts.
    """
    found = np.empty(len(first), dtype=np.int64)
    for p in range(len(first)):
        ahead = offsets[p] - count[p]
        many = offsets[p + 1] - ahead
        found[p] = many
        for j in range(len(rows)):
            place = 0 if rows[j] < 0 else max(0, many - rows[j])
            if ticks[j] >= 0:
                place = later(kept, new, first[p], count[p], ahead, place, many, until - ticks[j])
            found[p] = min(found[p], place)
    return found


@compiled(_TWO(INTS, INTS, INTS, INTS, INTS, INTS, nb.int64, INTS, INTS))
def needed(  # type: ignore[no-untyped-def]  # numba
    first: Int64Array, count: Int64Array, offsets: Int64Array, kept: Int64Array, new: Int64Array, waits: Int64Array,
    until: int, rows: Int64Array, ticks: Int64Array
):  # fmt: skip
    """From which place on later rows need the rows of each partition, and when fewer of them are: `NEVER` where more
    rows have to come first, or a row waits.

    Need j: the last `rows[j]` rows, all where that is negative, of these those within `ticks[j]` ticks, however old
    where that is negative. The rows from place `waits[p]` on wait: they stay, with what they need themselves.
    """
    starts, over = np.empty(len(first), dtype=np.int64), np.full(len(first), NEVER)
    for p in range(len(first)):
        behind, ahead = first[p], offsets[p] - count[p]
        many, wait = offsets[p + 1] - ahead, waits[p]
        start, expires = wait, -NEVER
        for j in range(len(rows)):
            # Of the next row, whose instant is beyond `until`, and of the first that waits.
            place = 0 if rows[j] < 0 else max(0, many - rows[j])
            if ticks[j] >= 0:
                place = later(kept, new, behind, count[p], ahead, place, many, until - ticks[j])
            gone = NEVER
            if ticks[j] >= 0 and place < many:
                gone = (kept[behind + place] if place < count[p] else new[ahead + place]) + ticks[j]
            if wait < many:
                its = 0 if rows[j] < 0 else max(0, wait - rows[j])
                if ticks[j] >= 0:
                    instant = kept[behind + wait] if wait < count[p] else new[ahead + wait]
                    its = later(kept, new, behind, count[p], ahead, its, wait, instant - ticks[j] - 1)
                place = min(place, its)
            if place < start:
                start, expires = place, gone
            elif place == start:
                expires = max(expires, gone)
        starts[p] = start
        if wait == many and start < many:
            over[p] = expires
    return starts, over


@compiled(nb.void(*[INTS] * 7, DOUBLES, DOUBLES, DOUBLES, DOUBLES, BYTES, *[OUT_DOUBLES] * 4))
def add_doubles(
    first: Int64Array, count: Int64Array, base: Int64Array, offsets: Int64Array, asked: Int64Array, low: Int64Array,
    high: Int64Array, kept_value: Float64Array, kept_sum: Float64Array, kept_lost: Float64Array, value: Float64Array, valid: UInt8Array,
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
        split = 0
        s, c, reached, start = 0.0, 0.0, 0, 0
        left, left_lost = sums[:0], lost[:0]
        for i in range(asked[p], asked[p + 1]):
            last = low[asked[p + 1] - 1]
            if i == asked[p] or (low[i] >= split and split < last):
                start, split, reached = low[i], min(last, high[i]), high[i]
                left, left_lost = np.zeros(split - start + 1), np.zeros(split - start + 1)
                for place in range(split - 1, start - 1, -1):
                    k = place - start
                    one = kept_value[behind + place] if place < count[p] else 0.0
                    if place >= count[p] and valid[ahead + place]:
                        one = value[ahead + place]
                    left[k], left_lost[k] = added(left[k + 1], left_lost[k + 1], one)
                s, c, place = 0.0, 0.0, reached - 1
                while place >= split:
                    size = (base[p] + place) & -(base[p] + place)
                    whole = place - size + 1 >= split
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
            while reached < high[i]:
                if reached < count[p]:
                    s, c = added(s, c, kept_value[behind + reached])
                elif valid[ahead + reached]:
                    s, c = added(s, c, value[ahead + reached])
                reached += 1
            k = min(low[i], split) - start
            total[i], total_lost[i] = added(left[k], left_lost[k] + c, s)


@compiled(nb.int64(INTS, INTS, INTS, INTS, nb.int64, nb.int64, nb.int64, nb.int64, nb.int64))
def better(
    kept_key: Int64Array, kept_tie: Int64Array, key: Int64Array, tie: Int64Array, behind: int, count: int, ahead: int,
    earlier: int, at: int
) -> int:  # fmt: skip
    """Which of two places has the lesser key, or tie-break; the earlier one if these are equal, or `at` is negative."""
    if at < 0:
        return earlier
    theirs = kept_key[behind + earlier] if earlier < count else key[ahead + earlier]
    mine = kept_key[behind + at] if at < count else key[ahead + at]
    if theirs == mine:
        theirs = kept_tie[behind + earlier] if earlier < count else tie[ahead + earlier]
        mine = kept_tie[behind + at] if at < count else tie[ahead + at]
    return earlier if theirs <= mine else at


@compiled(nb.void(*[INTS] * 12, BYTES, OUT, OUT))
def least(
    first: Int64Array, count: Int64Array, base: Int64Array, offsets: Int64Array, asked: Int64Array, low: Int64Array,
    high: Int64Array, kept_key: Int64Array, kept_tie: Int64Array, kept_best: Int64Array, key: Int64Array,
    tie: Int64Array, valid: UInt8Array, best: Int64Array, found: Int64Array
) -> None:  # fmt: skip
    """In each frame the place of the row with the least key, `found`, of several that with the least tie-break, of
    several the first one; -1: none has a value.

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
                    at = better(kept_key, kept_tie, key, tie, behind, count[p], ahead, other, at)
                back *= 2
            best[i] = 0 if at < 0 else base[p] + at if valid[i] else -base[p] - at
        split, at, reached, start = 0, -1, 0, 0
        left = best[:0]
        for i in range(asked[p], asked[p + 1]):
            last = low[asked[p + 1] - 1]
            if i == asked[p] or (low[i] >= split and split < last):
                start, split, reached = low[i], min(last, high[i]), high[i]
                left = np.full(split - start + 1, -1)
                for place in range(split - 1, start - 1, -1):
                    k = place - start
                    left[k] = left[k + 1]
                    if (kept_best[behind + place] if place < count[p] else best[ahead + place]) > 0:
                        left[k] = better(kept_key, kept_tie, key, tie, behind, count[p], ahead, place, left[k + 1])
                at, place = -1, reached - 1
                while place >= split:
                    size = (base[p] + place) & -(base[p] + place)
                    whole = place - size + 1 >= split
                    known = kept_best[behind + place] if place < count[p] else best[ahead + place]
                    other = abs(known) - base[p] if whole else place if known > 0 else -1
                    if other >= 0:
                        at = better(kept_key, kept_tie, key, tie, behind, count[p], ahead, other, at)
                    place -= size if whole else 1
            while reached < high[i]:
                if (kept_best[behind + reached] if reached < count[p] else best[ahead + reached]) > 0:
                    if at < 0:
                        at = reached
                    else:
                        at = better(kept_key, kept_tie, key, tie, behind, count[p], ahead, at, reached)
                reached += 1
            other = left[min(low[i], split) - start]
            found[i] = at if other < 0 else better(kept_key, kept_tie, key, tie, behind, count[p], ahead, other, at)
