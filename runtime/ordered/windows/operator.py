"""The operator that computes windows of rows, increment by increment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tidegate.algebra.ordered.windows import END, START, SessionWindow, Windows
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.windows import PANES, SESSIONS
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.aggregates.partials import final
from tidegate.runtime.eval.lenient import Lenient, SetAside
from tidegate.runtime.ordered.family import Family, Tables
from tidegate.runtime.ordered.partition_store import NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows, RowOperator, row_table
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.ordered.windows.pieces import FIRST, LAST, NUMBER, Pieces, pieces_of
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class WindowsOperator(RowOperator[KeptRows]):
    """Windows of rows: `held` are the pieces of open ones, `made` what the last increment has made of some, before and
    after, which counts once it is settled.
    """

    ordered: OrderedStep
    held: KeptRows
    made: tuple[KeptExtract, KeptExtract] | None = None
    #: Takes the windows with sums that do not fit, which are NULL then; None: they are errors.
    noted: list[SetAside] | None = None

    @property
    def node(self) -> Windows:
        assert isinstance(self.ordered.node, Windows)
        return self.ordered.node

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[WindowsOperator, pl.DataFrame]:
        rows, state, pieces, reached = as_frame(events[0]), self.settled(), pieces_of(self.node), ticks(until)
        state.ready()
        numbers = state.partitions.assign(rows)
        partitions = state.touched([numbers], reached)
        before = state.extract(partitions)
        new = pieces.lifted(rows, state.places(partitions, numbers).astype(np.int64))
        both = pieces.merged([before.rows, new])
        result = self._result(pieces.windows(both, ticks(after), reached), partitions)
        left = both.filter(pl.Series(pieces.until(both) > reached))
        kept = KeptExtract(partitions, left, looks(pieces, left, len(partitions), reached))
        return replace(self, made=(before, kept)), result

    def _result(self, windows: pl.DataFrame, partitions: Int64Array) -> pl.DataFrame:
        """Complete windows as rows of the result."""
        node, group = self.node, pieces_of(self.node).group
        walk = Lenient({})
        values = final(group, windows) if self.noted is None else walk.finished(group, windows, None)
        of = partitions[windows.get_column(PARTITION).to_numpy()]
        keys = self.held.partitions.rows(of).select(node.keys) if node.keys else pl.DataFrame()
        bounds = windows.select(pl.col(FIRST).alias(START), pl.col(LAST).alias(END))
        result = pl.DataFrame([*keys.get_columns(), *bounds.get_columns(), *values.drop(NUMBER).get_columns()])
        if self.noted is not None:
            for aside in walk.aside:
                place = aside.row[NUMBER]
                assert isinstance(place, int)
                self.noted.append(replace(aside, row=result.row(place, named=True), schema=node.schema))
        return result

    def noting(self, noted: list[SetAside] | None) -> WindowsOperator:
        return replace(self, noted=noted)

    def described(self) -> dict[str, StateTable]:
        state = self.held
        return {state.table: row_table(state.partitions.schema, state.columns)}

    def counts(self) -> dict[str, int]:
        return {self.held.table: self.settled().rows.height}


class WindowsFamily(Family[Windows]):
    node = Windows

    def start(self, ordered: OrderedStep) -> WindowsOperator:
        assert isinstance(ordered.node, Windows)
        node = ordered.node
        keys = Schema(tuple(node.input.schema[key] for key in node.keys))
        table = SESSIONS if isinstance(node.window, SessionWindow) else PANES
        return WindowsOperator(ordered, KeptRows(keys, table, pieces_of(node).columns))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> WindowsOperator:
        fresh = self.start(ordered)
        state, pieces = fresh.held, pieces_of(fresh.node)
        if state.table in tables:
            stored = tables[state.table]
            numbers = pl.Series(PARTITION, state.partitions.of_kept(stored), pl.Int64)
            rows = stored.select(numbers, *state.columns).sort(PARTITION, maintain_order=True)
            partitions = state.all_partitions()
            state.put(KeptExtract(partitions, rows, looks(pieces, rows, len(partitions), ticks(reached))))
        return fresh


def looks(pieces: Pieces, rows: pl.DataFrame, partitions: int, reached: int) -> Int64Array:
    """When each partition has to be looked at although no row comes for it: where its next window ends."""
    look = np.full(partitions, NO_LOOK)
    np.minimum.at(look, rows.get_column(PARTITION).to_numpy(), pieces.next_ends(rows, reached))
    return look
