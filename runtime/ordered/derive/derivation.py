"""Derives situations increment by increment, with the state in between."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.ordered.derive import Derive
from tidegate.algebra.ordered.match.node import RowIntervals
from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.situations import ClosedSituations, Runs
from tidegate.runtime.ordered.derive.events import PartitionedEvents, Source, advance, sources
from tidegate.runtime.ordered.derive.partition_states import PartitionStates
from tidegate.runtime.ordered.derive.run_values import RunValues
from tidegate.runtime.plan.steps import EncodedReading
from tidegate.runtime.rows import as_frame


@dataclass(frozen=True, slots=True)
class Derivation:
    """Definitions of situations over the rows of some leaves, with the aggregates of runs between increments.

    Every run of events has a number of its own, by which its aggregates are found; `numbers` is the next one.
    """

    situations: tuple[Derive, ...]
    sources: tuple[Source, ...]
    values: Mapping[int, RunValues]
    numbers: int = 0

    @classmethod
    def start(
        cls, situations: Sequence[Derive], leaves: Sequence[int], encoded: EncodedReading | None = None
    ) -> Derivation:
        """The derivation before the first event. It may have no definition."""
        values = {
            number: RunValues.of(situation) for number, situation in enumerate(situations) if situation.aggregates
        }
        return cls(tuple(situations), sources(situations, leaves, encoded), values)

    def states(self, keys: Schema, definitions: int = 1) -> PartitionStates:
        """The empty state of partitions by these keys."""
        return PartitionStates(keys, [len(source.definitions) for source in self.sources], definitions)

    def read(
        self, events: Sequence[PartitionedEvents], before: Sequence[Runs], close_at: int | None = None
    ) -> tuple[Derivation, tuple[Runs, ...], list[SourceIncrement]]:
        """The state after an increment's events, the runs by source, and the effects of the events.

        `before` has the runs of the partitions that are looked at. `close_at` is where all ends that is open then:
        after every event.
        """
        done: list[SourceIncrement] = []
        runs, values, numbers = list[Runs](), dict(self.values), self.numbers
        for source, own_runs, rows in zip(self.sources, before, events, strict=True):
            increment, after = advance(source, self.situations, rows, own_runs, numbers)
            numbers = increment.numbers
            member_events: dict[int, pl.DataFrame] = {}
            for number, member in increment.member.items():
                values[number], member_events[number] = values[number].with_events(as_frame(increment.events), member)
            closed = increment.closed
            if close_at is not None:
                ended, after = closed_at(source, after, close_at)
                closed = joined(closed, ended)
            runs.append(after)
            done.append(SourceIncrement(source, closed, member_events))
        return replace(self, values=values, numbers=numbers), tuple(runs), done

    def lasting(self, source: Source, closed: ClosedSituations) -> ClosedSituations:
        """The situations whose durations their definitions allow."""
        limits = [(self.situations[n].at_least, self.situations[n].at_most) for n in source.definitions]
        if all(limit == (1, None) for limit in limits):
            return closed
        least = np.array([low for low, _ in limits])
        most = np.array([NO_LIMIT if high is None else high for _, high in limits])
        lasts = closed.te - closed.ts
        keep: BoolArray = (lasts >= least[closed.symbol]) & (lasts <= most[closed.symbol])
        return closed.where(keep)


NO_LIMIT: Final = (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class SourceIncrement:
    """The effects of an increment's events on a source. `run_events` has the events of runs with aggregates."""

    source: Source
    closed: ClosedSituations
    run_events: Mapping[int, pl.DataFrame]


def key_schema(situation: Derive | RowIntervals) -> Schema:
    """The attributes by which situations are partitioned."""
    return Schema(tuple(situation.input.schema[key] for key in situation.keys))


def joined(first: ClosedSituations, second: ClosedSituations) -> ClosedSituations:
    """The situations of both."""
    return ClosedSituations(
        np.concatenate([first.partition, second.partition]),
        np.concatenate([first.symbol, second.symbol]),
        np.concatenate([first.ts, second.ts]),
        np.concatenate([first.te, second.te]),
        np.concatenate([first.run, second.run]),
    )


def closed_at(source: Source, runs: Runs, at: int) -> tuple[ClosedSituations, Runs]:
    """The open runs as situations that end at an instant later than every event, and the state without them."""
    partitions, symbols = np.nonzero(runs.start != NEVER)
    late = runs.last[partitions] >= at
    if late.any():
        type_ = source.schema[source.time].type
        last, end = (value_text(int(value), type_) for value in (runs.last[partitions].max(), at))
        raise EvaluationError(
            "TG417", f"open situations can not end at {end}: there is an event at {last}", hint="close them later"
        )
    ended = ClosedSituations(
        partitions.astype(np.int32),
        symbols.astype(np.int16),
        runs.start[partitions, symbols],
        np.full(len(partitions), at, dtype=np.int64),
        runs.number[partitions, symbols],
    )
    none = Runs.empty(*runs.start.shape)
    return ended, Runs(runs.last, none.held, none.start, none.number)


def without(derivation: Derivation, before: Derivation, earlier: Int64Array, live: Int64Array) -> Derivation:
    """The state without the values of dead runs, among those held before an increment or begun in it."""
    if not derivation.values:
        return derivation
    begun = np.arange(before.numbers, derivation.numbers)
    gone = np.setdiff1d(np.concatenate([earlier, begun]), live)
    return replace(
        derivation, values={number: run_values.without(gone) for number, run_values in derivation.values.items()}
    )


def open_numbers(runs: Sequence[Runs]) -> Int64Array:
    """The numbers of open runs."""
    return np.concatenate([np.empty(0, dtype=np.int64), *(run.number[run.start != NEVER] for run in runs)])
