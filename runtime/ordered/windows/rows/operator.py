"""The operator of windows that keeps the rows of open ones, where an aggregate needs every value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import sum_out_of_range
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.ordered.windows.kinds import CountWindow
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.windows import ROWS
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.lenient import OVERFLOW, SetAside
from tidegate.runtime.ordered.family import Tables
from tidegate.runtime.ordered.new_events import order_of, require_order
from tidegate.runtime.ordered.over.block import Block
from tidegate.runtime.ordered.over.frames import Framed, finished, total_of
from tidegate.runtime.ordered.partition_store import ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.windows.lifting import Arrival
from tidegate.runtime.ordered.windows.operator import WindowsOperator, keys_of, no_windows, windows_of
from tidegate.runtime.ordered.windows.rows.cuts import Cut, cut, goes_on, panes_alone, partitions_of
from tidegate.runtime.ordered.windows.rows.layout import row_layout
from tidegate.runtime.ordered.windows.rows.store import GONE, WindowExtract, WindowRows, WindowRowsOperator
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class RowWindowsOperator(WindowRowsOperator, WindowsOperator[WindowRows]):
    """Windows are frames of the rows of their partitions, which move on. Rows are read when a window is complete; until
    then new ones only come behind them.
    """

    @classmethod
    def fresh(cls, ordered: OrderedStep) -> Self:
        node = windows_of(ordered)
        layout = row_layout(node)
        return cls(ordered, WindowRows(keys_of(node), layout.columns, layout.number))

    def loaded(self, tables: Tables, reached: Extended) -> Self:
        state, layout = self.held, row_layout(self.node)
        if ROWS in tables:
            stored = tables[ROWS]
            numbers = pl.Series(PARTITION, state.partitions.of_kept(stored), pl.Int64)
            rows = stored.select(numbers, *state.columns).sort(PARTITION, maintain_order=True)
            partitions = state.all_partitions()
            block = layout.block_of_known(rows, len(partitions))
            none = Arrival.of_none(panes_alone(self.node), rows, len(partitions))
            look = cut(self.node, block, none, reached, reached, state.texts(partitions)).look
            state.put(WindowExtract(partitions, rows, look))
        return self

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[Self, pl.DataFrame]:
        rows, state, layout = as_frame(events[0]), self.settled(), row_layout(self.node)
        state.ready()
        partitions, of = state.read_by(rows, ticks(until))
        came = Arrival(panes_alone(self.node), state.rows.last(partitions), rows, of, len(partitions)).inside
        rows, of, reading = came.rows, came.of, self.node.readings[0]
        order = order_of(reading, rows)
        if isinstance(self.node.window, CountWindow):
            require_order(reading, rows, of, order, len(partitions))
        added_to = goes_on(self.node, came, state.look(partitions), ticks(until))
        before = state.some(partitions, ~added_to)
        block = layout.block(before.rows, rows, of, order, len(partitions))
        found = cut(self.node, block, came, after, until, state.texts(partitions))
        left = self._left(block, found, partitions, added_to)
        return replace(self, made=(before, left)), self._result(block, found, partitions)

    def _left(self, block: Block, found: Cut, partitions: Int64Array, added_to: BoolArray) -> WindowExtract:
        """What is kept: the last ones of the known rows, and of the new ones. What partitions keep that are only added
        to is not in the block.
        """
        layout, of, count = row_layout(self.node), partitions_of(block), self.held.rows.count(partitions)
        is_known = block.source < block.kept.height
        kept = np.where(added_to, count, np.bincount(of[found.kept & is_known], minlength=len(partitions)))
        gone = count - kept
        some = np.flatnonzero(gone)
        last = block.offsets[some] + gone[some] - 1
        number = found.counted.get(layout.number, block.time)
        marks = pl.DataFrame([pl.Series(PARTITION, some), pl.Series(GONE, number[last])])
        # Of rows of one instant some may be gone, and others stay: these are written again.
        parted = some[(kept[some] > 0) & (number[np.minimum(last + 1, block.height - 1)] == number[last])]
        again = np.flatnonzero(found.kept & is_known & np.isin(of, parted))
        known, rows = (
            layout.kept(block, of, found.counted, at) for at in (again, np.flatnonzero(found.kept & ~is_known))
        )
        stored = self.held.marked(pl.concat([known, rows]), marks)
        return WindowExtract(partitions, rows, found.look, gone=gone, kept=kept, stored=stored)

    def _result(self, block: Block, found: Cut, partitions: Int64Array) -> pl.DataFrame:
        """Complete windows as rows of the result."""
        node = self.node
        if not len(found.of):
            return no_windows(node)
        bounds = [pl.Series(name, found.bounds[name]) for name in node.bounds]
        values, beyond = list[pl.Series](), list[tuple[int, Aggregate, int]]()
        for aggregate in node.aggregates:
            value, too_large = self._values(aggregate, block, found)
            values.append(value.alias(aggregate.name))
            beyond += [(place, aggregate, total) for place, total in too_large]
        result = self.in_result(partitions[found.of], (*bounds, *values))
        for place, aggregate, total in beyond:
            error = sum_out_of_range(aggregate.name, node.schema[aggregate.name].type, total)
            if self.noted is None:
                raise error
            self.noted.append(SetAside(OVERFLOW, aggregate.name, result.row(place, named=True), node.schema, error))
        return result

    def _values(self, aggregate: Aggregate, block: Block, found: Cut) -> tuple[pl.Series, list[tuple[int, int]]]:
        """An aggregate of each window, and by their places the sums that do not fit and are an error."""
        if aggregate.argument is None:
            return pl.Series(found.high - found.low), []
        layout = row_layout(self.node)
        rows, orders = (
            None if term is None else block.column(layout.argument(term)) for term in (aggregate.argument, aggregate.by)
        )
        assert rows is not None
        by_place = self.node.goes_by_order(aggregate)
        framed = Framed(aggregate, layout.type_of(aggregate.argument), rows, orders, by_place)
        parts = framed.parts(np.arange(len(found.of)), found.low, found.high)
        value, fits = finished(aggregate, framed.argument, parts)
        if aggregate.entry.lenient is None:
            return value, []
        return value, [(int(place), total_of(parts, int(place))) for place in np.flatnonzero(~fits)]
