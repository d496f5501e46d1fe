"""The operator that yields instants at equal distances, increment by increment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.ticks import TICK, Ticks
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.ticks import TICKING
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.ordered.family import Family, Tables
from tidegate.runtime.ordered.new_events import latest
from tidegate.runtime.ordered.partition_store import EVER, NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows, KeptRowsOperator
from tidegate.runtime.ordered.ticks.spans import Spans, next_tick
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame

#: The instant that is kept of a partition: of its last row, or of its first one where ticks go on for ever.
AT: Final = "at"
COLUMNS: Final = {AT: pl.Int64()}


@dataclass(frozen=True, slots=True)
class TicksOperator(KeptRowsOperator):
    """Instants at equal distances: `held` are the partitions that have ticks to come, `made` what the last increment
    has made of some, before and after, which counts once it is settled.
    """

    ordered: OrderedStep
    held: KeptRows
    made: tuple[KeptExtract, KeptExtract] | None = None

    @property
    def node(self) -> Ticks:
        assert isinstance(self.ordered.node, Ticks)
        return self.ordered.node

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[TicksOperator, pl.DataFrame]:
        rows, state, reached = as_frame(events[0]), self.settled(), ticks(until)
        state.ready()
        partitions, of_new = state.read_by(rows, reached)
        before = state.extract(partitions)
        of = np.concatenate([before.rows.get_column(PARTITION).to_numpy(), of_new])
        at = np.concatenate([before.rows.get_column(AT).to_numpy(), rows.get_column(self.node.time).to_numpy()])
        spans = Spans.of_rows(self.node, of, at, ticks(after), self._last(rows, reached, close_at))
        return replace(self, made=(before, self._kept(spans, partitions, reached))), self._result(spans, partitions)

    def _last(self, rows: pl.DataFrame, reached: int, close_at: int | None) -> int:
        """The last instant at which there may be a tick: where the input has come to, or where it ends, which is not
        before its last row.
        """
        if reached < EVER or not self.node.goes_on:
            return reached
        end = latest(self.node.readings[0], rows, close_at)
        return -EVER if end is None else end

    def _result(self, spans: Spans, partitions: Int64Array) -> pl.DataFrame:
        node = self.node
        of, instants = spans.ticks(node, self.held.texts(partitions))
        keys = self.held.partitions.rows(partitions[of]).select(node.keys) if node.keys else pl.DataFrame()
        return pl.DataFrame([*keys.get_columns(), pl.Series(TICK, instants, pl.Int64)])

    def _kept(self, spans: Spans, partitions: Int64Array, reached: int) -> KeptExtract:
        lasts = spans.lasts
        rows = pl.DataFrame([pl.Series(PARTITION, spans.of[lasts]), pl.Series(AT, spans.at[lasts])])
        left = rows.filter(pl.Series(lasting(self.node, rows, reached)))
        return KeptExtract(partitions, left, looks(self.node, left, len(partitions), reached))


class TicksFamily(Family[Ticks]):
    node = Ticks

    def start(self, ordered: OrderedStep) -> TicksOperator:
        assert isinstance(ordered.node, Ticks)
        node = ordered.node
        keys = Schema(tuple(node.input.schema[key] for key in node.keys))
        return TicksOperator(ordered, KeptRows(keys, TICKING, COLUMNS))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> TicksOperator:
        fresh = self.start(ordered)
        state = fresh.held
        if (stored := state.stored_in(tables)) is not None:
            look = looks(fresh.node, stored.rows, len(stored.partitions), ticks(reached))
            state.put(replace(stored, look=look))
        return fresh


def following(node: Ticks, rows: pl.DataFrame, reached: int) -> Int64Array:
    """The next tick of each kept row that is later than `reached`, if it has one."""
    return next_tick(node, np.maximum(rows.get_column(AT).to_numpy(), reached + 1))


def lasting(node: Ticks, rows: pl.DataFrame, reached: int) -> BoolArray:
    """Which rows have a tick later than `reached`."""
    if node.within is None:
        return np.ones(rows.height, dtype=np.bool_)
    has: BoolArray = following(node, rows, reached) <= rows.get_column(AT).to_numpy() + node.within
    return has


def looks(node: Ticks, rows: pl.DataFrame, partitions: int, reached: int) -> Int64Array:
    """When each partition has to be looked at although no row comes for it: at its next tick."""
    look = np.full(partitions, NO_LOOK)
    look[rows.get_column(PARTITION).to_numpy()] = following(node, rows, reached)
    return look
