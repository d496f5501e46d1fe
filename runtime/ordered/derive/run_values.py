"""Aggregates of situations: partial results per run of events, kept while a run is open or may still be matched."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tidegate.algebra.ordered.derive import Derive
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.ordered.derive.run_partials import RunAggregates, RunPartials


@dataclass(frozen=True, slots=True)
class ValueRequests:
    """Requests for values as of an instant: the run of each, and the instant up to which its events count."""

    run: Int64Array
    until: Int64Array


@dataclass(frozen=True, slots=True)
class RunValues:
    """Partial results of one definition's aggregates by run, for live runs.

    `advanced` are the runs that had events in the last increment, `added` the different values that were new in it.
    """

    aggregates: RunAggregates
    time: str
    partials: RunPartials
    advanced: pl.DataFrame
    added: tuple[pl.DataFrame, ...]

    @property
    def run(self) -> str:
        """The column with the number of the run."""
        return self.aggregates.run

    @classmethod
    def of(cls, situation: Derive, partials: RunPartials | None = None) -> RunValues:
        aggregates = RunAggregates.of(situation)
        nothing = aggregates.nothing()
        runs = pl.DataFrame(schema={aggregates.run: pl.Int64})
        return cls(aggregates, situation.time, partials or nothing, runs, nothing.different)

    def with_events(self, events: pl.DataFrame, member: Int64Array) -> tuple[RunValues, pl.DataFrame]:
        """The values after events, where `member` is the run of each or -1, and the events with their runs."""
        members = events.with_columns(pl.Series(self.run, member)).filter(pl.col(self.run) >= 0)
        if not members.height:
            added = tuple(rows.clear() for rows in self.added)
            return replace(self, advanced=self.advanced.clear(), added=added), members
        runs = members.select(pl.col(self.run).unique())
        before, fresh = self.partials.of(runs), self.aggregates.partial(members)
        pairs = zip(fresh.different, before.different, strict=True)
        added = tuple(new.join(old, on=new.columns, how="anti") for new, old in pairs)
        merged = self.aggregates.merge(RunPartials(before.merged), RunPartials(fresh.merged)).merged
        others = self.partials.merged.join(runs, on=self.run, how="anti")
        different = zip(self.partials.different, added, strict=True)
        partials = RunPartials(pl.concat([others, merged]), tuple(map(pl.concat, different)))
        return replace(self, partials=partials, advanced=runs, added=added), members

    def changed(self) -> RunPartials:
        """The live values that the last increment changed: those of runs, and new distinct values."""
        merged = self.partials.merged.join(self.advanced, on=self.run, how="semi")
        kept = zip(self.added, self.partials.different, strict=True)
        return RunPartials(merged, tuple(new.join(all_, on=self.run, how="semi") for new, all_ in kept))

    def at_end(self, run: Int64Array) -> pl.DataFrame:
        """The aggregates of these runs over all their events so far, in order."""
        return self.aggregates.final(run, self.partials)

    def at(self, asked: ValueRequests, before: RunPartials, events: pl.DataFrame) -> pl.DataFrame:
        """The aggregates asked for, in order: of `before`, the partial results before `events`, and those of its events
        in time.
        """
        until, request = self.aggregates.requested
        requests = pl.DataFrame({self.run: asked.run, until: asked.until}).with_row_index(request)
        number = pl.col(request).cast(pl.Int64).alias(self.run)
        early = events.join(requests, on=self.run, maintain_order="left").filter(pl.col(self.time) <= pl.col(until))
        carried = RunPartials.from_tables(
            rows.join(requests, on=self.run).with_columns(number).select(rows.columns) for rows in before.tables
        )
        own_part = self.aggregates.partial(early.with_columns(number).select(self.aggregates.events))
        return self.aggregates.final(np.arange(len(asked.run)), self.aggregates.merge(carried, own_part))

    def without(self, gone: Int64Array) -> RunValues:
        """The values without those of runs that are dead."""
        if not len(gone) or not self.partials.height:
            return self
        return replace(self, partials=self.partials.without(pl.DataFrame({self.run: gone})))

    def only(self, live: Int64Array) -> RunValues:
        """The values of live runs."""
        return replace(self, partials=self.partials.of(pl.DataFrame({self.run: live})))
