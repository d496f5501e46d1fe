"""The operator of windows that grow: of each partition it keeps what the block has come to so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.windows import TOTALS
from tidegate.runtime.ordered.family import Tables
from tidegate.runtime.ordered.partition_store import ticks
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows, KeptRowsOperator
from tidegate.runtime.ordered.windows.lifting import Arrival
from tidegate.runtime.ordered.windows.operator import WindowsOperator, keys_of, windows_of
from tidegate.runtime.ordered.windows.partial_panes import partial_panes
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class GrowingOperator(WindowsOperator[KeptRows], KeptRowsOperator):
    @classmethod
    def fresh(cls, ordered: OrderedStep) -> Self:
        node = windows_of(ordered)
        return cls(ordered, KeptRows(keys_of(node), TOTALS, partial_panes(node).columns))

    def loaded(self, tables: Tables, reached: Extended) -> Self:
        state, panes = self.held, partial_panes(self.node)
        if (stored := state.stored_in(tables)) is not None:
            none = Arrival.of_none(panes, stored.rows, len(stored.partitions))
            state.put(replace(stored, look=panes.looks(stored.rows, none.complete(reached), none.axis)))
        return self

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[Self, pl.DataFrame]:
        rows, state, panes = as_frame(events[0]), self.settled(), partial_panes(self.node)
        state.ready()
        partitions, of = state.read_by(rows, ticks(until))
        before = state.extract(partitions)
        came = Arrival(panes, before.rows, rows, of, len(partitions))
        low, high = came.complete_before(after), came.complete(until)
        phase = np.zeros_like(low)  # where a window begins, its block does
        totals = panes.totals(before.rows, came.panes, phase)
        windows = panes.windows(totals, None, low, high, came.axis, phase, state.texts(partitions))
        result = self.reported(panes.group, windows, partitions)
        latest = panes.latest(totals, high)
        kept = KeptExtract(partitions, latest, panes.looks(latest, high, came.axis))
        return replace(self, made=(before, kept)), result
