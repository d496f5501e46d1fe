"""The operator of windows that hop: each is made of two partial results, however many panes it has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.windows import PANES
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.filters import where
from tidegate.runtime.ordered.family import Span, Tables
from tidegate.runtime.ordered.partition_store import ticks
from tidegate.runtime.ordered.partitions import key_columns
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.ordered.windows.layout import PANE
from tidegate.runtime.ordered.windows.lifting import Arrival, in_order, stacked
from tidegate.runtime.ordered.windows.operator import WindowsOperator, keys_of, windows_of
from tidegate.runtime.ordered.windows.pane_store import PaneExtract, PaneStore
from tidegate.runtime.ordered.windows.partial_panes import PartialPanes, partial_panes
from tidegate.runtime.ordered.windows.phases import phases
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class HoppingOperator(WindowsOperator[PaneStore]):
    @classmethod
    def fresh(cls, ordered: OrderedStep) -> Self:
        node = windows_of(ordered)
        return cls(ordered, PaneStore(keys_of(node), partial_panes(node).columns))

    def loaded(self, tables: Tables, reached: Extended) -> Self:
        """Panes of which no window is open are left out: what is written says nothing of them."""
        state, panes = self.held, partial_panes(self.node)
        if PANES in tables:
            stored = tables[PANES]
            numbers = pl.Series(PARTITION, state.partitions.of_kept(stored), pl.Int64)
            rows = stored.select(numbers, *state.columns).sort(PARTITION, PANE)
            partitions = state.all_partitions()
            none = Arrival.of_none(panes, rows, len(partitions))
            high = none.complete(reached)
            rows = where(rows, panes.is_open(rows, high))
            phase = phases(state.partitions.rows(partitions), panes.panes.many)
            latest = panes.latest(panes.totals(rows.clear(), rows, phase), high)
            state.put(PaneExtract(partitions, rows, latest, panes.looks(latest, high, none.axis)))
        return self

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[Self, pl.DataFrame]:
        rows, state, panes = as_frame(events[0]), self.settled(), partial_panes(self.node)
        state.ready()
        partitions, of = state.read_by(rows, ticks(until))
        before = state.unread(partitions)
        came = Arrival(panes, before.totals, rows, of, len(partitions))
        low, high = came.complete_before(after), came.complete(until)
        phase = phases(state.partitions.rows(partitions), panes.panes.many)
        change = _Change.of(panes, state, partitions, came.panes, low, high, phase)
        totals = panes.totals(before.totals, came.panes, phase)
        windows = panes.windows(totals, change.rest, low, high, came.axis, phase, state.texts(partitions))
        result = self.reported(panes.group, windows, partitions)
        latest = panes.latest(totals, high)
        look = panes.looks(latest, high, came.axis)
        left = PaneExtract(partitions, change.rows, latest, look, gone=change.gone, kept=change.kept)
        return replace(self, made=(before, left)), result

    def tables(self) -> dict[str, pa.Table]:
        return self._of(self.settled().all_partitions())

    def tables_in(self, span: Span) -> dict[str, pa.Table]:
        return self._of(np.arange(span.first, span.end))

    def _of(self, partitions: Int64Array) -> dict[str, pa.Table]:
        """The panes of these partitions as they are stored."""
        state = self.settled()
        extract = state.extract(partitions)
        return {PANES: state.as_stored(extract, extract.rows).to_arrow()} if extract.rows.height else {}

    def changes(self) -> dict[str, pa.Table] | None:
        if self.made is None:
            return None
        state, (_, after) = self.settled(), self.made
        return {PANES: state.as_stored(after, after.rows).to_arrow()}

    def described(self) -> dict[str, StateTable]:
        its = key_columns(self.held.partitions.schema)
        columns = pl.Schema({**its, **self.held.columns})
        return {PANES: StateTable(columns, "row", len(its), number=PANE, needed=(PANE,))}

    def counts(self) -> dict[str, int]:
        return {PANES: self.settled().rows.height}


@dataclass(frozen=True, slots=True)
class _Change:
    """What an increment makes of the panes of its partitions: `rows` follow `kept` of them, after `gone`.

    `rest` are panes of blocks that have ended, with what these come to from there on: those at which windows begin.
    """

    rows: pl.DataFrame
    gone: Int64Array
    kept: Int64Array
    rest: pl.DataFrame

    @classmethod
    def of(
        cls, panes: PartialPanes, state: PaneStore, partitions: Int64Array, new: pl.DataFrame,
        low: Int64Array, high: Int64Array, phase: Int64Array,
    ) -> _Change:  # fmt: skip
        """Where a block ends, all panes of the partition are read and written. Else those are read at which windows
        begin, and the last one, which may go on in the new rows.
        """
        of = panes.panes
        count, last = state.rows.count(partitions), state.rows.last(partitions)
        before, after = of.block(low + 1, phase), of.block(high + 1, phase)
        ends = after > before
        gone = state.rows.up_to(partitions, PANE, high - of.many + 1)
        if of.stays:  # the last one, unless a new one follows
            follows = np.bincount(new.get_column(PARTITION).to_numpy(), minlength=len(partitions)) > 0
            gone = np.minimum(gone, np.maximum(count - ~follows, 0))
        new, its = panes.going_on(last, only(new, last.columns))
        goes_on = np.zeros(len(partitions), dtype=np.bool_)
        goes_on[last.get_column(PARTITION).to_numpy()[its]] = True
        first = state.rows.front(partitions, np.where(ends, count - goes_on, np.minimum(gone + 1, count)))
        rows = in_order(stacked(_only(first, ends), new))
        place = rows.get_column(PARTITION).to_numpy()
        block = panes.block(rows.get_column(PANE).to_numpy(), place, phase)
        ended = (block >= before[place]) & (block < after[place])
        rows = panes.remainders(rows, ended, phase)
        rest = in_order(stacked(_only(first, ~ends), _only(rows, ends)))
        kept = np.where(ends, 0, count - gone - goes_on)
        left = where(rows, panes.is_open(rows, high), view=True)
        return cls(left, gone, kept, rest)


def _only(rows: pl.DataFrame, some: BoolArray) -> pl.DataFrame:
    """The rows of some partitions."""
    if not some.any():
        return rows.clear()
    return where(rows, some[rows.get_column(PARTITION).to_numpy()])
