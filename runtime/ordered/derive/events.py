"""The events of an increment in the order in which operators read them: by partition and time, with conditions as
bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.ordered.derive import Derive
from tidegate.algebra.ordered.events import tied
from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import Int32Array, Int64Array, UInt64Array
from tidegate.runtime.kernels.event_runs import Status, mark
from tidegate.runtime.kernels.situations import ClosedSituations, Runs, derive
from tidegate.runtime.ordered.event_runs import bitmaps
from tidegate.runtime.ordered.partitions import Partitions
from tidegate.runtime.plan.slices import InterleavedRuns
from tidegate.runtime.plan.steps import EncodedReading
from tidegate.runtime.rows import Rows, SmallRows, as_frame

#: Bits of up to so many conditions are moved by a table of all their combinations: it takes a fourth of the time.
TABLED: Final = 8


@dataclass(frozen=True, slots=True)
class Source:
    """Several situations derived from the same rows of one leaf, in the same order and partitions.

    With `encoded` these are event runs, and bit `encoded.bits[j]` belongs to the j-th definition.
    """

    leaf: int
    situation: Derive
    definitions: tuple[int, ...]
    encoded: EncodedReading | None = None

    @property
    def time(self) -> str:
        return self.situation.time

    @property
    def schema(self) -> Schema:
        return self.situation.input.schema


def sources(
    situations: Sequence[Derive], leaves: Sequence[int], encoded: EncodedReading | None = None
) -> tuple[Source, ...]:
    """The definitions grouped by what they read."""
    if encoded is not None:
        return (Source(leaves[0], situations[0], tuple(range(len(situations))), encoded),)
    groups: dict[tuple[object, ...], list[int]] = {}
    for number, (situation, leaf) in enumerate(zip(situations, leaves, strict=True)):
        groups.setdefault((leaf, situation.input, situation.keys, situation.time, situation.tie), []).append(number)
    return tuple(Source(leaves[numbers[0]], situations[numbers[0]], tuple(numbers)) for numbers in groups.values())


@dataclass(frozen=True, slots=True)
class EventIncrement:
    """The effects of an increment's events: rows in order, closed situations, and the run of each row by tracked
    definition.
    """

    events: Rows
    closed: ClosedSituations
    member: Mapping[int, Int64Array]
    numbers: int


@dataclass(frozen=True, slots=True)
class PartitionedEvents:
    """The events of an increment, with the partition of each."""

    events: Rows
    partition: Int32Array

    @classmethod
    def of(cls, source: Source, events: Rows, partitions: Partitions) -> PartitionedEvents:
        if isinstance(events, pl.DataFrame) and source.situation.tie is not None:
            events = events.sort(source.time, source.situation.tie)
        return cls(events, partitions.assign(events))


def advance(
    source: Source, situations: Sequence[Derive], placed: PartitionedEvents, runs: Runs, numbers: int
) -> tuple[EventIncrement, Runs]:
    """Reads the events of an increment, all later than those before. Returns what they close and the state after
    them.
    """
    events, partition, tie = placed.events, placed.partition, source.situation.tie
    tracked = [place for place, number in enumerate(source.definitions) if situations[number].aggregates]
    for attempt in range(2):
        grown = runs.copy()
        time = array_of(events, source.time)
        until = None if source.encoded is None else array_of(events, source.encoded.encoding.until)
        status, closed, member, after = derive(
            partition,
            time,
            holds_of(source, [situations[number] for number in source.definitions], events),
            grown,
            until=until,
            ties_by_row=tie is not None,
            first_number=numbers,
            tracked=np.array(tracked, dtype=np.int16),
        )
        if status is Status.DONE:
            break
        order = np.lexsort((np.arange(len(partition)), time, partition))
        if status is Status.TIE or attempt or tie is not None:
            if until is not None and not np.array_equal(time, until):
                raise InterleavedRuns
            raise _tied(source, events, partition)
        events, partition = events.take(order) if isinstance(events, SmallRows) else events[order], partition[order]
    if tie is not None:
        _require_order(source, events, partition)
    by_definition = {source.definitions[place]: member[row] for row, place in enumerate(tracked)}
    return EventIncrement(events, closed, by_definition, after), grown


def array_of(rows: Rows, name: str) -> Int64Array:
    """A column of 64-bit integers."""
    return rows.columns[name] if isinstance(rows, SmallRows) else rows.get_column(name).to_numpy()


def holds_of(source: Source, situations: Sequence[Derive], events: Rows) -> UInt64Array:
    """A bit mask per row: bit j says whether the condition of the source's j-th situation is true."""
    if source.encoded is not None:
        return _chosen(array_of(events, source.encoded.encoding.holds), source.encoded)
    conditions = [situation.condition for situation in situations]
    rows = as_frame(events)
    return mark(bitmaps(conditions, rows, source.schema), rows.height)


def _chosen(stored: Int64Array, encoded: EncodedReading) -> UInt64Array:
    """The bits of the definitions, in their order, taken from the bits that event runs store."""
    conditions = len(encoded.encoding.conditions)
    if encoded.bits == tuple(range(conditions)):
        return stored.view(np.uint64)
    if conditions > TABLED:
        return _moved(stored.view(np.uint64), encoded.bits)
    return _moved(np.arange(1 << conditions, dtype=np.uint64), encoded.bits)[stored]


def _moved(every: UInt64Array, bits: Sequence[int]) -> UInt64Array:
    """Bit `bits[j]` of each number, as bit j."""
    holds = np.zeros(len(every), dtype=np.uint64)
    for j, bit in enumerate(bits):
        holds |= (every >> np.uint64(bit) & np.uint64(1)) << np.uint64(j)
    return holds


def _require_order(source: Source, events: Rows, partition: Int32Array) -> None:
    """`EvaluationError` TG304 where two events of a partition are equal in time and tie-break."""
    tie = source.situation.tie
    assert tie is not None
    rows = as_frame(events)
    keys = pl.DataFrame({"partition": partition, "time": rows.get_column(source.time), "tie": rows.get_column(tie)})
    if keys.is_duplicated().any():
        raise _tied(source, events, partition)


def _tied(source: Source, events: Rows, partition: Int32Array) -> EvaluationError:
    order = [source.time] if source.situation.tie is None else [source.time, source.situation.tie]
    numbered = as_frame(events).with_columns(pl.Series("\0partition", partition))
    twice = numbered.filter(pl.struct("\0partition", *order).is_duplicated())
    at = twice.get_column(source.time)[0]
    return tied(at, source.schema[source.time].type)
