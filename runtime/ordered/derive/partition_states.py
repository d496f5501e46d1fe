"""The state by partition of operators that derive situations: open runs and closed situations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import BoolArray, Int32Array, Int64Array
from tidegate.runtime.kernels.cells import Situations
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.pool import SituationPool
from tidegate.runtime.kernels.situations import Runs
from tidegate.runtime.ordered.derive.events import PartitionedEvents, Source
from tidegate.runtime.ordered.partition_store import PartitionStore
from tidegate.runtime.rows import Rows


@dataclass(frozen=True, slots=True)
class StateExtract:
    """The state of some partitions, renumbered from 0 on. `partitions` has their numbers in ascending order.

    `runs` are those of each source of events, `kept` situations that are over, `number` their runs, `look` is when each
    partition has to be looked at although nothing new comes for it. `version` is that of the states that it was
    taken from.
    """

    partitions: Int64Array
    runs: tuple[Runs, ...]
    kept: Situations
    number: Int64Array
    look: Int64Array
    version: int = 0

    @property
    def open(self) -> BoolArray:
        """Which partitions have an open run."""
        is_open = np.zeros(len(self.partitions), dtype=np.bool_)
        for runs in self.runs:
            is_open |= (runs.start != NEVER).any(axis=1)
        return is_open


class PartitionStates(PartitionStore[StateExtract]):
    """The state by partition: the runs of every source, the closed situations, and when it has to be read."""

    def __init__(self, keys: Schema, widths: Sequence[int], definitions: int) -> None:
        """`widths` has the number of definitions of each source, `definitions` the number of all."""
        super().__init__(keys)
        self.runs = [Runs.empty(0, width) for width in widths]
        self.pool = SituationPool(definitions)
        self.open = 0

    def emptied(self) -> PartitionStates:
        widths = [run.start.shape[1] for run in self.runs]
        return PartitionStates(self.partitions.schema, widths, self.pool.definitions)

    def extract(self, partitions: Int64Array) -> StateExtract:
        at = self._at(partitions)
        runs = tuple(Runs(run.last[at], run.held[at], run.start[at], run.number[at]) for run in self.runs)
        if isinstance(at, slice):
            runs = tuple(run.copy() for run in runs)
        return StateExtract(partitions, runs, *self.pool.take(partitions), self.look(partitions), self.version)

    def hold(self, extract: StateExtract) -> BoolArray:
        partitions = extract.partitions
        at = self._at(partitions)
        for runs, new in zip(self.runs, extract.runs, strict=True):
            self.open += int(np.count_nonzero(new.start != NEVER) - np.count_nonzero(runs.start[at] != NEVER))
            runs.last[at], runs.held[at] = new.last, new.held
            runs.start[at], runs.number[at] = new.start, new.number
        self.pool.put(partitions, extract.kept, extract.number)
        sizes = np.diff(extract.kept.offsets[:: self.pool.definitions])
        return extract.open | (sizes > 0)

    def _at(self, partitions: Int64Array) -> Int64Array | slice:
        """How arrays over all partitions are indexed by some of them: by a slice where it is all, several times as
        fast.
        """
        every = len(self.partitions)
        return slice(every) if len(partitions) == every else partitions

    def room(self, partitions: int) -> None:
        self.runs = [runs.grown(partitions) for runs in self.runs]
        self.pool.grow(partitions)


@dataclass(frozen=True, slots=True)
class RowLocations:
    """The partitions that an increment reads, and the position among them of each row of each source and of
    `other_rows`.
    """

    partitions: Int64Array
    events: tuple[PartitionedEvents, ...]
    other_rows: tuple[Int32Array, ...]


def located_in(
    states: PartitionStates,
    sources: Sequence[Source],
    events: Sequence[Rows],
    other_rows: Sequence[pl.DataFrame],
    until: int,
    close_at: int | None,
) -> RowLocations:
    """Finds the partitions of an increment's rows up to `until`. With `close_at` all partitions are read."""
    pairs = zip(sources, events, strict=False)
    placed = [PartitionedEvents.of(source, rows, states.partitions) for source, rows in pairs]
    partitions = [states.partitions.assign(rows) for rows in other_rows]
    parts = [*(source_events.partition for source_events in placed), *partitions]
    looked = states.touched(parts, until) if close_at is None else states.all_partitions()
    return RowLocations(
        looked,
        tuple(
            PartitionedEvents(source_events.events, states.places(looked, source_events.partition))
            for source_events in placed
        ),
        tuple(states.places(looked, partition) for partition in partitions),
    )


@dataclass(frozen=True, slots=True)
class StateChange:
    """The change of an increment to the partitions that it read. `is_new` marks the kept situations that ended
    since.
    """

    before: StateExtract
    after: StateExtract
    is_new: BoolArray

    def settle(self, states: PartitionStates) -> None:
        """It is what is held of them from now on. `InternalError` where another increment has been settled
        meanwhile.
        """
        states.settle(self.before, self.after)
