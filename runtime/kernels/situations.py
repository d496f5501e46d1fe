"""Derives situations: the longest runs of events of a partition for which a condition holds.

Partitions have partitions 0..K-1 and conditions numbers 0..m-1, m <= 64. Times are int64 ticks, below 2^62 in size.
Compiled once for these types into a cache beside this file (or numba's own, where that cannot be written).
"""

from __future__ import annotations

from dataclasses import dataclass

import numba as nb
import numpy as np

from tidegate.runtime.arrays import BoolArray, Int16Array, Int32Array, Int64Array, UInt64Array
from tidegate.runtime.kernels.compiling import (
    BITS,
    INTS,
    NUMBERS,
    OUT,
    OUT_BITS,
    OUT_NUMBERS,
    OUT_TABLE,
    SYMBOLS,
    compiled,
)
from tidegate.runtime.kernels.event_runs import NEVER, Status

#: The end of a situation that is not over yet: later than everything.
OPEN = (1 << 63) - 1
_FOUR = nb.types.UniTuple(nb.int64, 4)  # type: ignore[no-untyped-call]  # numba has no types for it


_FULL = 3


@dataclass(frozen=True, slots=True)
class Runs:
    """The derivation state of K partitions and m conditions between events. The kernels change the arrays in place."""

    #: int64[K]: time of the last event, or NEVER.
    last: Int64Array
    #: uint64[K]: bit j is set while condition j holds.
    held: UInt64Array
    #: int64[K, m]: start of the open run, or NEVER.
    start: Int64Array
    #: int64[K, m]: number of the open run; without meaning where none is open.
    number: Int64Array

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
    partition: Int32Array
    #: int16[c]: number of the condition.
    symbol: Int16Array
    #: int64[c]
    ts: Int64Array
    #: int64[c]: ts < te.
    te: Int64Array
    #: int64[c]: number of the run.
    run: Int64Array

    @classmethod
    def empty(cls) -> ClosedSituations:
        """No situations."""
        none = np.empty(0, dtype=np.int64)
        return cls(none.astype(np.int32), none.astype(np.int16), none, none, none)

    def where(self, keep: BoolArray) -> ClosedSituations:
        """The situations that the mask marks."""
        return ClosedSituations(self.partition[keep], self.symbol[keep], self.ts[keep], self.te[keep], self.run[keep])


def derive(
    partition: Int32Array,
    time: Int64Array,
    holds: UInt64Array,
    runs: Runs,
    *,
    until: Int64Array | None = None,
    ties_by_row: bool = False,
    first_number: int = 0,
    tracked: Int16Array | None = None,
) -> tuple[Status, ClosedSituations, Int64Array, int]:
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


#: Multiplied by a power of two, its highest six bits are different for each.
_DE_BRUIJN = np.uint64(0x03F79D71B4CB0A89)
#: The place of the only bit of a number, by these six.
_PLACES = np.argsort([(int(_DE_BRUIJN) << place & (1 << 64) - 1) >> 58 for place in range(64)])


@compiled(
    _FOUR(
        NUMBERS, INTS, INTS, BITS, OUT, OUT_BITS, OUT_TABLE, OUT_TABLE, nb.boolean,
        SYMBOLS, nb.int64, nb.int64,
        OUT_NUMBERS, nb.int16[::1], OUT, OUT, OUT, OUT_TABLE,
    ),
    nogil=True,
)  # fmt: skip
def _derive(
    partitions: Int32Array, times: Int64Array, untils: Int64Array, holds: UInt64Array, last: Int64Array, last_holds: UInt64Array, start: Int64Array, number: Int64Array, ties_by_row: bool,
    tracked: Int16Array, row: int, numbers: int,
    partition_out: Int32Array, symbol_out: Int16Array, ts_out: Int64Array, te_out: Int64Array, run_out: Int64Array, member: Int64Array,
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
        changed = (now ^ last_holds[partition]) & known
        if changed:
            if count > room:
                return _FULL, row, count, numbers
            last_holds[partition] = now
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
