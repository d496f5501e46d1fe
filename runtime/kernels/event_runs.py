"""Event runs: run-length encoding of events. A run joins neighbours of a partition with the same true conditions.

Deriving situations from runs gives those of their events, as long as no other event of the partition lies within a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import Any, Protocol

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Int32Array, Int64Array, UInt8Array, UInt64Array
from tidegate.runtime.kernels.compiling import BITS, INTS, NUMBERS, OUT, OUT_BITS, OUT_NUMBERS, compiled

#: Events are read in blocks of so many, as what is made of a block then never leaves a core's cache.
BLOCK = 1 << 15

#: The start of a run where none is open, and the time of the last event where there was none.
NEVER = -(1 << 63)

_TWO = nb.types.UniTuple(nb.int64, 2)  # type: ignore[no-untyped-call]  # numba has no types for it


class Status(IntEnum):
    """The outcome of a pass over events in their order."""

    DONE = 0
    #: An event is earlier than the last one of its partition: sort, and call again on a copy of the state.
    UNSORTED = 1
    #: Two events of a partition have the same time, and the order of rows does not settle which comes first.
    TIE = 2


def mark(conditions: Sequence[tuple[UInt8Array, int]], events: int) -> UInt64Array:
    """Packs the conditions of every event into one number: uint64[n], where bit j is the bit offset + row of bitmap j.

    Bitmaps are as Arrow has them, each beside its offset.
    """
    return Marks.of(conditions, events).block(0, np.empty((events + 7) & ~7, dtype=np.uint64))[:events]


@dataclass(frozen=True, slots=True)
class Marks:
    """The conditions of n events as `mark` packs them, block by block."""

    #: uint8[m, ceil(n / 8) + 1]: a bitmap each.
    table: UInt8Array
    #: int64[m]: the bit of the first byte that is the first event's, below 8.
    shifts: Int64Array

    @classmethod
    def of(cls, conditions: Sequence[tuple[UInt8Array, int]], events: int) -> Marks:
        bitmaps = [bitmap[offset >> 3 : (offset + events + 7) >> 3] for bitmap, offset in conditions]
        table = np.zeros((len(bitmaps), ((events + 7) >> 3) + 1), dtype=np.uint8)
        for row, bitmap in zip(table, bitmaps, strict=True):
            row[: len(bitmap)] = bitmap
        return cls(table, np.array([offset & 7 for _, offset in conditions], dtype=np.int64))

    def block(self, first: int, out: UInt64Array) -> UInt64Array:
        """Fills `out` with the conditions of the events from `first` on. Both `first` and its length are multiples of
        eight.
        """
        _mark(self.table, self.shifts, first >> 3, out)
        return out


#: The eight bits of every byte, each as the lowest of a byte.
_SPREAD = (np.arange(256, dtype=np.uint8)[:, None] >> np.arange(8, dtype=np.uint8) & 1).view(np.uint64).ravel()


@compiled(nb.void(nb.uint8[:, ::1], OUT, nb.int64, OUT_BITS), nogil=True)
def _mark(table: Any, shifts: Int64Array, first: int, holds: UInt64Array) -> None:
    """Packs eight conditions of eight events at once: byte e of a number holds the bits of event e."""
    if not shifts.shape[0]:
        holds[:] = 0
    for low in range(0, shifts.shape[0], 8):
        for eight in range(holds.shape[0] >> 3):
            bits, byte, event = np.uint64(0), np.uint64(first + eight), np.uint64(8 * eight)
            for condition in range(low, min(low + 8, shifts.shape[0])):
                both = np.int64(table[condition, byte]) | np.int64(table[condition, byte + np.uint64(1)]) << 8
                bits |= _SPREAD[np.uint64(both >> shifts[condition] & 255)] << np.uint64(condition - low)
            for place in range(8):
                now = (bits >> np.uint64(8 * place) & np.uint64(255)) << np.uint64(low)
                holds[event + np.uint64(place)] = now if low == 0 else holds[event + np.uint64(place)] | now


@dataclass(frozen=True, slots=True)
class EventRuns:
    """Event runs, in the order in which their first events were read."""

    #: int64[s]: the row of the first event, int32[s] its partition, and int64[s] its time.
    row: Int64Array
    partition: Int32Array
    time: Int64Array
    #: int64[s]: the time of the last event.
    until: Int64Array
    #: uint64[s]: which conditions are true of its events.
    holds: UInt64Array


class Events(Protocol):
    """Events that are read in blocks: the partition numbers and times of the rows from `first` to before `end`.

    Blocks are asked for from the first to the last; an array that is given out may be used for the next block, too.
    """

    def partitions(self, first: int, end: int) -> Int32Array: ...

    def times(self, first: int, end: int) -> Int64Array: ...


@dataclass(frozen=True, slots=True)
class EventArrays:
    """Events as arrays: partition numbers, int32[n], and times, int64[n]."""

    partition: Int32Array
    time: Int64Array

    def partitions(self, first: int, end: int) -> Int32Array:
        return self.partition[first:end]

    def times(self, first: int, end: int) -> Int64Array:
        return self.time[first:end]


def encode(
    events: Events, count: int, conditions: Sequence[tuple[UInt8Array, int]], low: int, high: int
) -> EventRuns | None:
    """Encodes the first `count` events as event runs; None where two events of a partition have the same time.

    `conditions` are as `mark` takes them. Events earlier than `low` or later than `high` stay event runs of their own.
    Events that are not in order of time within each partition are sorted.
    """
    marks = Marks.of(conditions, count)
    block = np.empty((min(count, BLOCK) + 7) & ~7, dtype=np.uint64)
    status, runs = _encode(
        events, count, lambda first, end: marks.block(first, block[: (end - first + 7) & ~7])[: end - first], low, high
    )
    if status is Status.UNSORTED:
        partition, time = events.partitions(0, count), events.times(0, count)
        order = np.lexsort((time, partition))
        holds = marks.block(0, np.empty((count + 7) & ~7, dtype=np.uint64))[order]
        status, runs = _encode(
            EventArrays(partition[order], time[order]), count, lambda first, end: holds[first:end], low, high
        )
        runs = replace(runs, row=order[runs.row])
    return runs if status is Status.DONE else None


def _encode(
    events: Events, count: int, marks: Callable[[int, int], UInt64Array], low: int, high: int
) -> tuple[Status, EventRuns]:
    """Encodes events in the order of rows, until an event is not later than the one before it in its partition."""
    runs, status = 0, Status.DONE
    # Memory that nothing is written to costs nothing.
    row, time, until = (np.empty(count, dtype=np.int64) for _ in range(3))
    partition, holds = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.uint64)
    last, last_holds, newest = np.full(0, NEVER), np.zeros(0, dtype=np.uint64), np.full(0, -1)
    for first in range(0, count, BLOCK):
        end = min(first + BLOCK, count)
        partitions = events.partitions(first, end)
        new = int(partitions.max()) + 1 - len(last)
        if new > 0:
            new += len(last)  # twice as many, or partitions that come one by one would be copied for each
            last = np.concatenate([last, np.full(new, NEVER)])
            last_holds = np.concatenate([last_holds, np.zeros(new, dtype=np.uint64)])
            newest = np.concatenate([newest, np.full(new, -1)])
        ended, runs = _encode_block(
            partitions, events.times(first, end), marks(first, end), first, low, high, last, last_holds, newest,
            runs, row, partition, time, until, holds,
        )  # fmt: skip
        status = Status(ended)
        if status is not Status.DONE:
            break
    seen = newest >= 0
    until[newest[seen]] = last[seen]
    return status, EventRuns(row[:runs], partition[:runs], time[:runs], until[:runs], holds[:runs])


@compiled(
    _TWO(
        NUMBERS, INTS, BITS, nb.int64, nb.int64, nb.int64, OUT, OUT_BITS, OUT,
        nb.int64, OUT, OUT_NUMBERS, OUT, OUT, OUT_BITS,
    ),
    nogil=True,
)  # fmt: skip
def _encode_block(
    partitions: Int32Array, times: Int64Array, holds: UInt64Array, first: int, low: int, high: int, last: Int64Array, last_holds: UInt64Array, newest: Int64Array,
    count: int, row_out: Int64Array, partition_out: Int32Array, time_out: Int64Array, until_out: Int64Array, holds_out: UInt64Array,
) -> tuple[Any, int]:  # fmt: skip
    """Encodes a block of rows from `first` on, given each partition's last time, last conditions and newest run.

    The end of a run is written when the next run of its partition begins. Indices are unsigned: Numba would look at
    each for whether it counts from the end.
    """
    for row in range(partitions.shape[0]):
        partition, time, now = np.uint32(partitions[row]), times[row], holds[row]
        before = last[partition]
        if time <= before:
            return Status.UNSORTED.value if time < before else Status.TIE.value, count
        last[partition] = time
        if before < low or time > high or now != last_holds[partition]:
            if newest[partition] >= 0:
                until_out[np.uint64(newest[partition])] = before
            last_holds[partition], newest[partition] = now, count
            new = np.uint64(count)
            row_out[new], holds_out[new] = first + row, now
            partition_out[new], time_out[new] = partition, time
            count += 1
    return Status.DONE.value, count
