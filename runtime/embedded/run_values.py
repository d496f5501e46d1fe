"""Aggregates of situations: partial results per run of events, carried on while a run is open or may still be matched."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tidegate.algebra.nodes import Derive, Group, Scan
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.types import BIGINT
from tidegate.runtime.columns import polars_schema
from tidegate.runtime.embedded.aggregates import final, merge, partial
from tidegate.runtime.kernels.situations import Ints
from tidegate.runtime.partials import partial_schema


@dataclass(frozen=True, slots=True)
class Asked:
    """Values as they were at an instant: for each request the run and the instant up to which its events count."""

    run: Ints
    until: Ints


@dataclass(frozen=True, slots=True)
class RunValues:
    """Partial results of one definition's aggregates by run, for the runs that are still of use.

    `advanced` are the runs that had events in the last increment.
    """

    group: Group
    time: str
    partials: pl.DataFrame
    advanced: pl.Series

    @property
    def run(self) -> str:
        """The column that has the number of a run."""
        return self.group.keys[0]

    @classmethod
    def of(cls, situation: Derive, partials: pl.DataFrame | None = None) -> RunValues:
        run = "run"
        while run in situation.input.schema:
            run = f"~{run}"
        schema = Schema((Attribute(run, BIGINT, nullable=False), *situation.input.schema.attributes))
        rows = Scan(StreamDef("events", schema, static=True))
        group = Group(rows, (run,), situation.aggregates)
        found = pl.DataFrame(schema=polars_schema(partial_schema(group))) if partials is None else partials
        return cls(group, situation.time, found, pl.Series(run, [], pl.Int64))

    def with_events(self, events: pl.DataFrame, member: Ints) -> tuple[RunValues, pl.DataFrame]:
        """The values after events, `member` being the run of each or -1; and the events of runs, with their runs."""
        own = events.with_columns(pl.Series(self.run, member)).filter(pl.col(self.run) >= 0)
        if not own.height:
            return replace(self, advanced=self.advanced.clear()), own
        advanced = own.get_column(self.run).unique()
        runs = advanced.to_frame()
        before = self.partials.join(runs, on=self.run, how="semi", maintain_order="left")
        others = self.partials.join(runs, on=self.run, how="anti")
        merged = merge(self.group, pl.concat([before, partial(self.group, own)]))
        return replace(self, partials=pl.concat([others, merged]), advanced=advanced), own

    def changed(self) -> pl.DataFrame:
        """The values that the last increment changed and that are still of use."""
        return self.partials.join(self.advanced.to_frame(), on=self.run, how="semi")

    def at_end(self, run: Ints) -> pl.DataFrame:
        """The aggregates of these runs over all their events so far, in order."""
        return self._final(run, self.partials)

    def at(self, asked: Asked, before: pl.DataFrame, own: pl.DataFrame) -> pl.DataFrame:
        """The aggregates asked for, in order: of `before`, the partial results before `own`, and those of its events in time."""
        until, request = f"{self.run} until", f"{self.run} request"
        requests = pl.DataFrame({self.run: asked.run, until: asked.until}).with_row_index(request)
        early = own.join(requests, on=self.run).filter(pl.col(self.time) <= pl.col(until))
        carried = before.join(requests, on=self.run)
        number = pl.col(request).cast(pl.Int64).alias(self.run)
        columns = partial_schema(self.group).names
        found = merge(
            self.group,
            pl.concat(
                [
                    carried.with_columns(number).select(columns),
                    partial(self.group, early.with_columns(number).select(self.group.input.schema.names)),
                ]
            ),
        )
        return self._final(np.arange(len(asked.run)), found)

    def _final(self, run: Ints, partials: pl.DataFrame) -> pl.DataFrame:
        wanted = pl.DataFrame({self.run: run})
        values = final(self.group, partials)
        return wanted.join(values, on=self.run, how="left", maintain_order="left").drop(self.run)

    def without(self, gone: Ints) -> RunValues:
        """The values of all runs but those that are of no use any more."""
        if not len(gone) or not self.partials.height:
            return self
        return replace(self, partials=self.partials.join(pl.DataFrame({self.run: gone}), on=self.run, how="anti"))

    def only(self, live: Ints) -> RunValues:
        """The values of runs that are still of use."""
        return replace(self, partials=self.partials.join(pl.DataFrame({self.run: live}), on=self.run, how="semi"))
