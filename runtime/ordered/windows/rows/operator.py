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
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.lenient import OVERFLOW, SetAside
from tidegate.runtime.ordered.family import Tables
from tidegate.runtime.ordered.new_events import order_of, require_order
from tidegate.runtime.ordered.over.block import Block
from tidegate.runtime.ordered.over.frames import Framed, finished, total_of
from tidegate.runtime.ordered.partition_store import ticks
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows, KeptRowsOperator
from tidegate.runtime.ordered.windows.lifting import Arrival
from tidegate.runtime.ordered.windows.operator import WindowsOperator, keys_of, no_windows, windows_of
from tidegate.runtime.ordered.windows.rows.cuts import Cut, cut, panes_alone, partitions_of
from tidegate.runtime.ordered.windows.rows.layout import row_layout
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class RowWindowsOperator(WindowsOperator[KeptRows], KeptRowsOperator):
    """Windows are frames of the rows of their partitions, which move on."""

    @classmethod
    def fresh(cls, ordered: OrderedStep) -> Self:
        node = windows_of(ordered)
        return cls(ordered, KeptRows(keys_of(node), ROWS, row_layout(node).columns))

    def loaded(self, tables: Tables, reached: Extended) -> Self:
        state, layout = self.held, row_layout(self.node)
        if (stored := state.stored_in(tables)) is not None:
            block = layout.block_of_known(stored.rows, len(stored.partitions))
            none = Arrival.of_none(panes_alone(self.node), stored.rows, len(stored.partitions))
            look = cut(self.node, block, none, reached, reached, state.texts(stored.partitions)).look
            state.put(replace(stored, look=look))
        return self

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[Self, pl.DataFrame]:
        rows, state, layout = as_frame(events[0]), self.settled(), row_layout(self.node)
        state.ready()
        partitions, of = state.read_by(rows, ticks(until))
        before = state.extract(partitions)
        reading = self.node.readings[0]
        order = order_of(reading, rows)
        if isinstance(self.node.window, CountWindow):
            require_order(reading, rows, of, order, len(partitions))
        block = layout.block(before.rows, rows, of, order, len(partitions))
        came = Arrival(panes_alone(self.node), before.rows, rows, of, len(partitions))
        found = cut(self.node, block, came, after, until, state.texts(partitions))
        result = self._result(block, found, partitions)
        left = layout.kept(block, partitions_of(block), found.counted, np.flatnonzero(found.kept))
        return replace(self, made=(before, KeptExtract(partitions, left, found.look))), result

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
        framed = Framed(aggregate, layout.type_of(aggregate.argument), rows, orders)
        parts = framed.parts(np.arange(len(found.of)), found.low, found.high)
        value, fits = finished(aggregate, framed.argument, parts)
        if aggregate.entry.lenient is None:
            return value, []
        return value, [(int(place), total_of(parts, int(place))) for place in np.flatnonzero(~fits)]
