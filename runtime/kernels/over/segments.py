"""The rows around each row: frames and neighbours, when these are there, and which rows later ones need.

Rows are numbered as `kernels.partitions.rows` does it. Compiled once for these types into a cache beside this file.
"""

from __future__ import annotations

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Int64Array, UInt8Array
from tidegate.runtime.kernels.compiling import BYTES, INTS, OUT, compiled
from tidegate.runtime.kernels.partitions.rows import NEVER

_THREE = nb.types.UniTuple(OUT, 3)  # type: ignore[no-untyped-call]  # numba has no types for it
_TWO = nb.types.UniTuple(OUT, 2)  # type: ignore[no-untyped-call]  # numba has no types for it


@compiled(_TWO(INTS, nb.int64, nb.int64))
def frames_of_rows(offsets: Int64Array, before: int, after: int):  # type: ignore[no-untyped-def]  # numba
    """Where the frame of each row starts and ends: so many rows before it, all where that is negative, and after it."""
    low, high = np.empty(offsets[-1], dtype=np.int64), np.empty(offsets[-1], dtype=np.int64)
    for p in range(len(offsets) - 1):
        start, end = offsets[p], offsets[p + 1]
        for i in range(start, end):
            low[i] = start if before < 0 else max(start, i - before)
            high[i] = min(end, i + after + 1)
    return low, high


@compiled(_TWO(INTS, INTS, nb.int64, nb.int64, nb.boolean))
def frames_of_range(offsets: Int64Array, time: Int64Array, before: int, after: int, peers: bool):  # type: ignore[no-untyped-def]  # numba
    """Where the frame of each row starts and ends, by distance in time. Without `peers` it ends with the row itself
    unless it reaches further.
    """
    low, high = np.empty(offsets[-1], dtype=np.int64), np.empty(offsets[-1], dtype=np.int64)
    for p in range(len(offsets) - 1):
        start, end = offsets[p], offsets[p + 1]
        behind, ahead = start, start
        for i in range(start, end):
            if before >= 0:
                while time[i] - time[behind] > before:
                    behind += 1
            low[i] = behind
            if not peers and after == 0:
                high[i] = i + 1
                continue
            while ahead < end and time[ahead] - time[i] <= after:
                ahead += 1
            high[i] = ahead
    return low, high


@compiled(OUT(INTS, INTS, BYTES))
def next_different(offsets: Int64Array, key: Int64Array, valid: UInt8Array) -> Int64Array:
    """The place of the first row after each row with another value; -1 where there is none. Values are equal if their
    keys are, or if they are both missing.
    """
    places = np.empty(len(key), dtype=np.int64)
    for p in range(len(offsets) - 1):
        for i in range(offsets[p + 1] - 1, offsets[p] - 1, -1):
            if i + 1 == offsets[p + 1]:
                places[i] = -1
            elif valid[i] != valid[i + 1] or (valid[i] and key[i] != key[i + 1]):
                places[i] = i + 1
            else:
                places[i] = places[i + 1]
    return places


@compiled(OUT(INTS, INTS, nb.int64, nb.int64))
def completed_at(time: Int64Array, places: Int64Array, ticks: int, end: int) -> Int64Array:
    """The instants of the rows at places, but at most so many ticks after each row unless that is negative; `end` where
    neither is known.
    """
    instants = np.empty(len(time), dtype=np.int64)
    for i in range(len(time)):
        known = places[i] >= 0
        instants[i] = time[places[i]] if known else end
        if ticks >= 0 and (not known or time[i] + ticks < instants[i]):
            instants[i] = time[i] + ticks
    return instants


@compiled(OUT(INTS, INTS, nb.int64, nb.int64))
def neighbours(offsets: Int64Array, time: Int64Array, offset: int, within: int) -> Int64Array:
    """The place of the row that is `offset` rows after each row, at most `within` ticks away unless that is negative;
    -1 where there is none.
    """
    places = np.empty(len(time), dtype=np.int64)
    for p in range(len(offsets) - 1):
        start, end = offsets[p], offsets[p + 1]
        for i in range(start, end):
            j = i + offset
            known = start <= j and j < end
            places[i] = j if known and (within < 0 or abs(time[j] - time[i]) <= within) else -1
    return places


@compiled(_THREE(INTS, INTS, INTS, nb.int64, INTS, INTS))
def kept_rows(  # type: ignore[no-untyped-def]  # numba
    offsets: Int64Array, time: Int64Array, complete: Int64Array, until: int, rows: Int64Array, ticks: Int64Array
):
    """What later rows need of each partition: int64[P] `start`, int64[P] `look` and int64[k] places of rows.

    Need j: the last `rows[j]` rows, all where that is negative, of these those within `ticks[j]` ticks, however old
    where that is negative. A row with `complete` beyond `until` waits: it stays, with what it needs itself. `look` is
    when fewer rows are needed, or a row that waits is complete.
    """
    partitions = len(offsets) - 1
    starts, look = np.empty(partitions, dtype=np.int64), np.full(partitions, NEVER)
    total = 0
    for p in range(partitions):
        start, end = offsets[p], offsets[p + 1]
        waiting = end
        while waiting > start and complete[waiting - 1] > until:
            waiting -= 1
            look[p] = min(look[p], complete[waiting])
        first, expires = waiting, -NEVER if waiting == end else NEVER
        for j in range(len(rows)):
            # Of the next row, whose instant is beyond `until`, and of the first that waits.
            needed = start if rows[j] < 0 else max(start, end - rows[j])
            if ticks[j] >= 0:
                while needed < end and time[needed] + ticks[j] <= until:
                    needed += 1
            over = NEVER if ticks[j] < 0 or needed >= end else time[needed] + ticks[j]
            if waiting < end:
                its = start if rows[j] < 0 else max(start, waiting - rows[j])
                if ticks[j] >= 0:
                    while its < waiting and time[its] + ticks[j] < time[waiting]:
                        its += 1
                needed = min(needed, its)
            if needed >= end:
                continue
            if needed < first:
                first, expires = needed, over
            elif needed == first:
                expires = max(expires, over)
        starts[p] = first
        if waiting == end and first < end:
            look[p] = expires
        total += end - first
    places, n = np.empty(total, dtype=np.int64), 0
    for p in range(partitions):
        for i in range(starts[p], offsets[p + 1]):
            places[n] = i
            n += 1
    return starts, look, places
