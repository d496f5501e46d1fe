"""Derives situations: the longest runs of events of a partition for which a condition holds.

Partitions have partitions 0..K-1 and conditions numbers 0..m-1, m <= 64. Times are int64 ticks, below 2^62 in size.
Compiled once for these types into a cache beside this file (or numba's own, where that cannot be written).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numba as nb
import numpy as np

from tidegate.runtime.kernels.compiling import compiled

Ints = np.ndarray[Any, np.dtype[np.int64]]
Numbers = np.ndarray[Any, np.dtype[np.int32]]
Symbols = np.ndarray[Any, np.dtype[np.int16]]
Bits = np.ndarray[Any, np.dtype[np.uint64]]
Bools = np.ndarray[Any, np.dtype[np.bool_]]
Bytes = np.ndarray[Any, np.dtype[np.uint8]]

#: The end of a situation that is not over yet: later than everything.
OPEN = (1 << 63) - 1
#: The start of a run where none is open, and the time of the last event where there was none.
NEVER = -(1 << 63)

_TIMES = nb.types.Array(nb.int64, 1, "C", readonly=True)
_NUMBERS = nb.types.Array(nb.int32, 1, "C", readonly=True)
_HOLDS = nb.types.Array(nb.uint64, 1, "C", readonly=True)
_FOUR = nb.types.UniTuple(nb.int64, 4)  # type: ignore[no-untyped-call]  # numba has no types for it
_SYMBOLS = nb.types.Array(nb.int16, 1, "C", readonly=True)


class Status(IntEnum):
    """The outcome of `derive`."""

    DONE = 0
    #: An event is earlier than the last one of its partition: sort, and call again on a copy of the state.
    UNSORTED = 1
    #: Two events of a partition have the same time, and the order of rows does not settle which comes first.
    TIE = 2


_FULL = 3


@dataclass(frozen=True, slots=True)
class Runs:
    """The derivation state of K partitions and m conditions between events. The kernels change the arrays in place."""

    #: int64[K]: time of the last event, or NEVER.
    last: Ints
    #: uint64[K]: bit j is set while condition j holds.
    held: Bits
    #: int64[K, m]: start of the open run, or NEVER.
    start: Ints
    #: int64[K, m]: number of the open run; without meaning where none is open.
    number: Ints

    @classmethod
    def empty(cls, partitions: int, conditions: int) -> Runs:
        """The state before any event."""
        shape = (partitions, conditions)
        return cls(
            np.full(partitions, NEVER), np.zeros(partitions, dtype=np.uint64), np.full(shape, NEVER), np.full(shape, -1)
        )

    def copy(self) -> Runs:
        """A copy of the state."""
        return Runs(self.last.copy(), self.held.copy(), self.start.copy(), self.number.copy())

    def grown(self, partitions: int) -> Runs:
        """The state with room for at least this many partitions; half as many again where it had fewer."""
        known, conditions = self.start.shape
        if partitions <= known:
            return self
        larger = Runs.empty(max(partitions, known + known // 2), conditions)
        for old, new in ((self.last, larger.last), (self.held, larger.held), (self.start, larger.start)):
            new[:known] = old
        larger.number[:known] = self.number
        return larger


@dataclass(frozen=True, slots=True)
class ClosedSituations:
    """Closed situations, in the order of their ends within each partition."""

    #: int32[c]
    partition: Numbers
    #: int16[c]: number of the condition.
    symbol: Symbols
    #: int64[c]
    ts: Ints
    #: int64[c]: ts < te.
    te: Ints
    #: int64[c]: number of the run.
    run: Ints

    def where(self, keep: Bools) -> ClosedSituations:
        """The situations that the mask marks."""
        return ClosedSituations(self.partition[keep], self.symbol[keep], self.ts[keep], self.te[keep], self.run[keep])


def derive(
    partition: Numbers,
    time: Ints,
    holds: Bits,
    runs: Runs,
    *,
    until: Ints | None = None,
    ties_by_row: bool = False,
    first_number: int = 0,
    tracked: Symbols | None = None,
) -> tuple[Status, ClosedSituations, Ints, int]:
    """Advances the state by events. Returns status, closed situations, int64[len(tracked), n] run of each event or -1,
    run count.

    `partition` is int32[n], `time` int64[n] in ascending order within each partition, `holds` uint64[n] with bit j set
    where condition j is true. With `until`, int64[n], rows are event runs: events from `time` to `until` of which all
    this is true. Runs that begin and end at one instant are dropped. New runs are numbered from `first_number` on.
    Unless DONE, the state is changed in part and the rest of the answer is to be thrown away.
    """
    chosen = np.empty(0, dtype=np.int16) if tracked is None else tracked
    member = np.empty((len(chosen), len(partition)), dtype=np.int64)
    parts: list[ClosedSituations] = []
    row, numbers = 0, first_number
    room = max(
        1024, len(partition) // 16 if until is None else len(partition)
    )  # memory that nothing is written to costs nothing
    while True:
        part = _closed(room)
        status, row, count, numbers = _derive(
            partition, time, time if until is None else until, holds, runs.last, runs.held, runs.start, runs.number, ties_by_row, chosen, row, numbers,
            part.partition, part.symbol, part.ts, part.te, part.run, member,
        )  # fmt: skip
        parts.append(_first(part, count))
        if status != _FULL:
            return Status(status), _joined(parts), member, numbers
        room *= 2


def mark(conditions: Sequence[tuple[Bytes, int]], events: int) -> Bits:
    """Packs the conditions of every event into one number: uint64[n], where bit j is the bit offset + row of bitmap j.

    Bitmaps are as Arrow has them, each beside its offset.
    """
    return Marks.of(conditions, events).block(0, np.empty((events + 7) & ~7, dtype=np.uint64))[:events]


@dataclass(frozen=True, slots=True)
class Marks:
    """The conditions of n events as `mark` packs them, block by block."""

    #: uint8[m, ceil(n / 8) + 1]: a bitmap each.
    table: Bytes
    #: int64[m]: the bit of the first byte that is the first event's, below 8.
    shifts: Ints

    @classmethod
    def of(cls, conditions: Sequence[tuple[Bytes, int]], events: int) -> Marks:
        bitmaps = [bitmap[offset >> 3 : (offset + events + 7) >> 3] for bitmap, offset in conditions]
        table = np.zeros((len(bitmaps), ((events + 7) >> 3) + 1), dtype=np.uint8)
        for row, bitmap in zip(table, bitmaps, strict=True):
            row[: len(bitmap)] = bitmap
        return cls(table, np.array([offset & 7 for _, offset in conditions], dtype=np.int64))

    def block(self, first: int, out: Bits) -> Bits:
        """Fills `out` with the conditions of the events from `first` on. Both `first` and its length are multiples of
        eight.
        """
        _mark(self.table, self.shifts, first >> 3, out)
        return out


#: The eight bits of every byte, each as the lowest of a byte.
_SPREAD = (np.arange(256, dtype=np.uint8)[:, None] >> np.arange(8, dtype=np.uint8) & 1).view(np.uint64).ravel()


@compiled(nb.void(nb.uint8[:, ::1], nb.int64[::1], nb.int64, nb.uint64[::1]), nogil=True)
def _mark(table: Any, shifts: Ints, first: int, holds: Bits) -> None:
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


#: Multiplied by a power of two, its highest six bits are different for each.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
#: The place of the only bit of a number, by these six.
_PLACES = np.argsort([(int(_DE_BRUIJN) << place & (1 << 64) - 1) >> 58 for place in range(64)])


@compiled(
    _FOUR(
        _NUMBERS, _TIMES, _TIMES, _HOLDS, nb.int64[::1], nb.uint64[::1], nb.int64[:, ::1], nb.int64[:, ::1], nb.boolean,
        _SYMBOLS, nb.int64, nb.int64,
        nb.int32[::1], nb.int16[::1], nb.int64[::1], nb.int64[::1], nb.int64[::1], nb.int64[:, ::1],
    ),
    nogil=True,
)  # fmt: skip
def _derive(
    partitions: Numbers, times: Ints, untils: Ints, holds: Bits, last: Ints, held: Bits, start: Ints, number: Ints, ties_by_row: bool,
    tracked: Symbols, row: int, numbers: int,
    partition_out: Numbers, symbol_out: Symbols, ts_out: Ints, te_out: Ints, run_out: Ints, member: Ints,
) -> tuple[int, int, int, int]:  # fmt: skip
    """Advances from `row` on until the next event's runs may not fit the output. Returns status, next row, closed, run
    count.
    """
    conditions = start.shape[1]
    known = ~np.uint64(0) >> np.uint64(64 - conditions) if conditions else np.uint64(0)
    room = partition_out.shape[0] - conditions
    count = 0
    while row < partitions.shape[0]:
        partition, time, now = np.uint32(partitions[row]), times[row], holds[row]
        if time <= last[partition]:
            if time < last[partition]:
                return Status.UNSORTED.value, row, count, numbers
            if not ties_by_row:
                return Status.TIE.value, row, count, numbers
        changed = (now ^ held[partition]) & known
        if changed:
            if count > room:
                return _FULL, row, count, numbers
            held[partition] = now
            while changed:
                bit = changed & (~changed + np.uint64(1))
                changed ^= bit
                symbol = _PLACES[(bit * _DE_BRUIJN) >> np.uint64(58)]
                if now & bit:
                    start[partition, symbol] = time
                    number[partition, symbol] = numbers
                    numbers += 1
                else:
                    if start[partition, symbol] < time:
                        partition_out[count] = partition
                        symbol_out[count] = symbol
                        ts_out[count] = start[partition, symbol]
                        te_out[count] = time
                        run_out[count] = number[partition, symbol]
                        count += 1
                    start[partition, symbol] = NEVER
        last[partition] = untils[row]
        for place in range(tracked.shape[0]):
            symbol = tracked[place]
            holding = (now >> np.uint64(symbol)) & np.uint64(1)
            member[place, row] = number[partition, symbol] if holding else -1
        row += 1
    return Status.DONE.value, row, count, numbers


def _closed(room: int) -> ClosedSituations:
    return ClosedSituations(
        np.empty(room, dtype=np.int32), np.empty(room, dtype=np.int16),
        np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64), np.empty(room, dtype=np.int64),
    )  # fmt: skip


def _first(closed: ClosedSituations, count: int) -> ClosedSituations:
    return ClosedSituations(
        closed.partition[:count], closed.symbol[:count], closed.ts[:count], closed.te[:count], closed.run[:count]
    )


def _joined(parts: list[ClosedSituations]) -> ClosedSituations:
    if len(parts) == 1:
        return parts[0]
    return ClosedSituations(
        np.concatenate([part.partition for part in parts]), np.concatenate([part.symbol for part in parts]),
        np.concatenate([part.ts for part in parts]), np.concatenate([part.te for part in parts]),
        np.concatenate([part.run for part in parts]),
    )  # fmt: skip
