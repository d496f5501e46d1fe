"""Event runs: run-length encoding of events. A run joins neighbours of a partition with the same true conditions.

Deriving situations from runs gives those of their events, as long as no other event of the partition lies within a run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numba as nb
import numpy as np

from tidegate.runtime.kernels.compiling import compiled
from tidegate.runtime.kernels.situations import NEVER, Bits, Bytes, Ints, Marks, Numbers, Status

#: Events are read in blocks of so many, as what is made of a block then never leaves a core's cache.
BLOCK = 1 << 15

_TIMES = nb.types.Array(nb.int64, 1, "C", readonly=True)
_NUMBERS = nb.types.Array(nb.int32, 1, "C", readonly=True)
_HOLDS = nb.types.Array(nb.uint64, 1, "C", readonly=True)
_OUT, _BITS = nb.int64[::1], nb.uint64[::1]
_TWO = nb.types.UniTuple(nb.int64, 2)  # type: ignore[no-untyped-call]  # numba has no types for it


@dataclass(frozen=True, slots=True)
class EventRuns:
    """Event runs, in the order in which their first events were read."""

    #: int64[s]: the row of the first event, int32[s] its partition, and int64[s] its time.
    row: Ints
    partition: Numbers
    time: Ints
    #: int64[s]: the time of the last event.
    until: Ints
    #: uint64[s]: which conditions are true of its events.
    holds: Bits


class Events(Protocol):
    """Events that are read in blocks: the partition numbers and times of the rows from `first` to before `end`.

    Blocks are asked for from the first to the last; an array that is given out may be used for the next block, too.
    """

    def partitions(self, first: int, end: int) -> Numbers: ...

    def times(self, first: int, end: int) -> Ints: ...


@dataclass(frozen=True, slots=True)
class EventArrays:
    """Events as arrays: partition numbers, int32[n], and times, int64[n]."""

    partition: Numbers
    time: Ints

    def partitions(self, first: int, end: int) -> Numbers:
        return self.partition[first:end]

    def times(self, first: int, end: int) -> Ints:
        return self.time[first:end]


def encode(
    events: Events, count: int, conditions: Sequence[tuple[Bytes, int]], low: int, high: int
) -> EventRuns | None:
    """Encodes the first `count` events as event runs; None where two events of a partition have the same time.

    `conditions` are as `mark` takes them. Events earlier than `low` or later than `high` stay event runs of their own.
    Events that are not in order of time within each partition are sorted.
    """
    marks = Marks.of(conditions, count)
    block = np.empty((min(count, BLOCK) + 7) & ~7, dtype=np.uint64)
    status, found = _encode(
        events, count, lambda first, end: marks.block(first, block[: (end - first + 7) & ~7])[: end - first], low, high
    )
    if status is Status.UNSORTED:
        partition, time = events.partitions(0, count), events.times(0, count)
        order = np.lexsort((time, partition))
        holds = marks.block(0, np.empty((count + 7) & ~7, dtype=np.uint64))[order]
        status, found = _encode(
            EventArrays(partition[order], time[order]), count, lambda first, end: holds[first:end], low, high
        )
        found = replace(found, row=order[found.row])
    return found if status is Status.DONE else None


def _encode(
    events: Events, count: int, marks: Callable[[int, int], Bits], low: int, high: int
) -> tuple[Status, EventRuns]:
    """Encodes events in the order of rows, until an event is not later than the one before it in its partition."""
    made, status = 0, Status.DONE
    # Memory that nothing is written to costs nothing.
    row, time, until = (np.empty(count, dtype=np.int64) for _ in range(3))
    partition, holds = np.empty(count, dtype=np.int32), np.empty(count, dtype=np.uint64)
    last, held, newest = np.full(0, NEVER), np.zeros(0, dtype=np.uint64), np.full(0, -1)
    for first in range(0, count, BLOCK):
        end = min(first + BLOCK, count)
        partitions = events.partitions(first, end)
        new = int(partitions.max()) + 1 - len(last)
        if new > 0:
            new += len(last)  # twice as many, or partitions that come one by one would be copied for each
            last = np.concatenate([last, np.full(new, NEVER)])
            held = np.concatenate([held, np.zeros(new, dtype=np.uint64)])
            newest = np.concatenate([newest, np.full(new, -1)])
        ended, made = _encode_block(
            partitions, events.times(first, end), marks(first, end), first, low, high, last, held, newest,
            made, row, partition, time, until, holds,
        )  # fmt: skip
        status = Status(ended)
        if status is not Status.DONE:
            break
    seen = newest >= 0
    until[newest[seen]] = last[seen]
    return status, EventRuns(row[:made], partition[:made], time[:made], until[:made], holds[:made])


@compiled(
    _TWO(
        _NUMBERS, _TIMES, _HOLDS, nb.int64, nb.int64, nb.int64, _OUT, _BITS, _OUT,
        nb.int64, _OUT, nb.int32[::1], _OUT, _OUT, _BITS,
    ),
    nogil=True,
)  # fmt: skip
def _encode_block(
    partitions: Numbers, times: Ints, holds: Bits, first: int, low: int, high: int, last: Ints, held: Bits, newest: Ints,
    count: int, row_out: Ints, partition_out: Numbers, time_out: Ints, until_out: Ints, holds_out: Bits,
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
        if before < low or time > high or now != held[partition]:
            if newest[partition] >= 0:
                until_out[np.uint64(newest[partition])] = before
            held[partition], newest[partition] = now, count
            new = np.uint64(count)
            row_out[new], holds_out[new] = first + row, now
            partition_out[new], time_out[new] = partition, time
            count += 1
    return Status.DONE.value, count
