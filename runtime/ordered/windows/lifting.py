"""From new rows to panes with partial results."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import polars as pl

from tidegate.algebra.ordered.windows.kinds import AnchoredWindow, CountWindow, LandmarkWindow, RowWindow
from tidegate.algebra.time import Extended
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.aggregates.partials import partial
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.filters import where
from tidegate.runtime.kernels.partitions.panes import ascend, places
from tidegate.runtime.ordered.new_events import by_partition, order_of, require_order
from tidegate.runtime.ordered.partition_store import ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.windows.layout import FIRST, NUMBER, OF, PANE, PLACE, ROWS, SINCE, PaneLayout
from tidegate.runtime.ordered.windows.panes import AnchoredPanes, Axis, axis_of
from tidegate.runtime.plan.aggregate_states import states


@dataclass(frozen=True)
class Arrival:
    """The new rows of an increment, which are in partitions `of`, behind `known` panes: the last ones of these."""

    layout: PaneLayout
    known: pl.DataFrame
    rows: pl.DataFrame
    of: Int64Array
    partitions: int

    @classmethod
    def of_none(cls, layout: PaneLayout, known: pl.DataFrame, partitions: int) -> Arrival:
        """No new rows."""
        return cls(layout, known, pl.DataFrame(), np.empty(0, dtype=np.int64), partitions)

    @cached_property
    def axis(self) -> Axis | None:
        """Where panes end; None where rows are counted."""
        window = self.layout.window
        if isinstance(window, CountWindow):
            return None
        return AnchoredPanes(window.pane, self._since) if isinstance(window, AnchoredWindow) else axis_of(window)

    def complete(self, reached: Extended) -> Int64Array:
        """The last pane of each partition that is complete at a progress, with the new rows."""
        if isinstance(self.layout.window, CountWindow):
            return (self.before + np.bincount(self.of, minlength=self.partitions)) // self.layout.window.pane
        assert self.axis is not None
        return self.axis.ended(ticks(reached), self.partitions)

    def complete_before(self, reached: Extended) -> Int64Array:
        """The same without them."""
        if isinstance(self.layout.window, CountWindow):
            return self.before // self.layout.window.pane
        return self.complete(reached)

    @cached_property
    def panes(self) -> pl.DataFrame:
        """The panes of the new rows."""
        if isinstance(self.layout.window, CountWindow):
            return self._counted(self.layout.window.pane)
        assert self.axis is not None
        rows, of = self.rows, self.of
        pane = self.axis.of(rows.get_column(self.layout.node.time).to_numpy(), of)
        inside = self._are_in_windows(pane)
        if inside is not None:
            rows, of, pane = where(rows, inside), of[inside], pane[inside]
        made = self._grouped(rows, of, pane)
        if isinstance(self.layout.window, AnchoredWindow):
            made = made.with_columns(pl.Series(SINCE, self._since[made.get_column(PARTITION).to_numpy()]))
        return self._in_columns(made)

    @cached_property
    def inside(self) -> Arrival:
        """The new rows that are in windows."""
        if isinstance(self.layout.node.window, RowWindow):
            return self
        assert self.axis is not None
        inside = self._are_in_windows(self.axis.of(self.rows.get_column(self.layout.node.time).to_numpy(), self.of))
        return self if inside is None else replace(self, rows=where(self.rows, inside), of=self.of[inside])

    def _are_in_windows(self, pane: Int64Array) -> BoolArray | None:
        """Which panes of new rows a window has; None: all."""
        if isinstance(self.layout.window, LandmarkWindow):
            inside = pane > 0
        elif self.layout.panes.have_gaps:
            inside = self.layout.panes.are_in_windows(pane)
        else:
            return None
        return None if inside.all() else inside

    @cached_property
    def before(self) -> Int64Array:
        """How many rows each partition has had."""
        return _greatest(self.known, ROWS, self.partitions, 0)

    @cached_property
    def _since(self) -> Int64Array:
        """From where panes are counted: the instant before the first row."""
        since = _greatest(self.known, SINCE, self.partitions, _NONE)
        if len(self.of):
            fresh = since[self.of] == _NONE
            first = np.full(self.partitions, -_NONE)
            time = self.rows.get_column(self.layout.node.time).to_numpy()
            np.minimum.at(first, self.of[fresh], time[fresh])
            since = np.where(first < -_NONE, first - 1, since)
        return since

    def _grouped(self, rows: pl.DataFrame, of: Int64Array, pane: Int64Array) -> pl.DataFrame:
        made = partial(self.layout.lifting, rows.with_columns(pl.Series(OF, of), pl.Series(NUMBER, pane)))
        names = {OF: PARTITION, NUMBER: PANE}
        if self.layout.shows_empty:
            (first,) = states(self.layout.lifting)[-1].columns
            names[first] = FIRST
        return made.rename(names)

    def _in_columns(self, made: pl.DataFrame) -> pl.DataFrame:
        first = (FIRST,) if self.layout.shows_empty else ()
        return in_order(only(made, (PARTITION, *self.layout.columns, *first)))

    def _counted(self, every: int) -> pl.DataFrame:
        """Rows are numbered in order of time, after those before."""
        reading = self.layout.node.readings[0]
        order = order_of(reading, self.rows)
        order = require_order(reading, self.rows, self.of, order, self.partitions)
        in_partition = self.of[order]
        number = np.empty(len(self.of), dtype=np.int64)
        number[order] = self.before[in_partition] + places(in_partition, in_partition)
        made = self._grouped(self.rows.with_columns(pl.Series(PLACE, number)), self.of, number // every + 1)
        there = (self.before + np.bincount(self.of, minlength=self.partitions))[made.get_column(PARTITION).to_numpy()]
        last = np.minimum(made.get_column(PANE).to_numpy() * every, there)
        return self._in_columns(made.with_columns(pl.Series(ROWS, last)))


#: Earlier than every instant.
_NONE = -(1 << 62)


def _greatest(known: pl.DataFrame, column: str, partitions: int, least: int) -> Int64Array:
    """The greatest value of a column in each partition."""
    values = np.full(partitions, least)
    np.maximum.at(values, known.get_column(PARTITION).to_numpy(), known.get_column(column).to_numpy())
    return values


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows by partition and pane; of one pane those first that came first."""
    of, pane = rows.get_column(PARTITION).to_numpy(), rows.get_column(PANE).to_numpy()
    if ascend(of, pane):
        return rows
    least, greatest = int(pane.min()), int(pane.max())
    if greatest - least < len(pane):
        by_pane = by_partition(pane - least, np.arange(len(pane)), greatest - least + 1)
    else:
        by_pane = np.argsort(pane, kind="stable")
    return rows[by_partition(of, by_pane, int(of.max()) + 1)]


def stacked(first: pl.DataFrame, second: pl.DataFrame) -> pl.DataFrame:
    """The rows of both, with the columns of both. One copy: each look at a column in two pieces would be another."""
    if first.width != second.width:
        return pl.concat([first, second], how="diagonal", rechunk=True)
    if not first.height or not second.height:
        return second if second.height else first
    return pl.concat([first, second], rechunk=True)


def starts_of(*columns: Int64Array) -> BoolArray:
    """Whether a row differs from the one before in one of the columns."""
    starts = np.ones(len(columns[0]), dtype=np.bool_)
    starts[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return starts
