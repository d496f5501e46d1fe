"""The operator of frames that move, where rows come behind those that are kept and leave in front of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import sum_out_of_range
from tidegate.algebra.ordered.over import FrameAggregate, Neighbour, Nth, Over, OverColumn
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.over import ROWS
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.lenient import OVERFLOW, SetAside
from tidegate.runtime.kernels.partitions.rows import NEVER
from tidegate.runtime.ordered.family import Tables
from tidegate.runtime.ordered.over.frames import finished, total_of
from tidegate.runtime.ordered.over.layout import TIME
from tidegate.runtime.ordered.over.queued.arrival import Arrival, Asked
from tidegate.runtime.ordered.over.queued.layout import NUMBER, Kept, QueuedLayout, queued_layout
from tidegate.runtime.ordered.over.values import defaulted
from tidegate.runtime.ordered.partition_store import EVER, NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.windows.rows.store import GONE, WindowExtract, WindowRows, WindowRowsOperator
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class QueuedOperator(WindowRowsOperator):
    """Rows with what frames of rows around them come to, and values of single ones. An increment reads and writes its
    own rows, and looks at some of the rows around each of which a value is asked.
    """

    ordered: OrderedStep
    held: WindowRows
    made: tuple[WindowExtract, WindowExtract] | None = None
    #: Takes the rows with sums that do not fit, which are NULL then; None: they are errors.
    noted: list[SetAside] | None = None

    @classmethod
    def fresh(cls, ordered: OrderedStep, layout: QueuedLayout) -> QueuedOperator:
        keys = Schema(tuple(layout.node.input.schema[key] for key in layout.node.keys))
        return cls(ordered, WindowRows(keys, layout.columns, layout.number))

    def loaded(self, tables: Tables, reached: int) -> QueuedOperator:
        state = self.held
        if ROWS in tables:
            stored = tables[ROWS]
            numbers = pl.Series(PARTITION, state.partitions.of_kept(stored), pl.Int64)
            rows = stored.select(numbers, *state.columns).sort(PARTITION, maintain_order=True)
            partitions = state.all_partitions()
            state.put(WindowExtract(partitions, rows, np.full(len(partitions), NO_LOOK)))
            come = Arrival.of_kept(self.layout, state, partitions)
            _, look = _needed(come, come.waiting(reached, NEVER), reached)
            state.put(WindowExtract(partitions, rows.clear(), look, gone=np.zeros_like(look), kept=come.count))
        return self

    @property
    def node(self) -> Over:
        return self.layout.node

    @property
    def layout(self) -> QueuedLayout:
        assert isinstance(self.ordered.node, Over)
        layout = queued_layout(self.ordered.node)
        assert layout is not None
        return layout

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[QueuedOperator, pl.DataFrame]:
        rows, state, reached = as_frame(events[0]), self.settled(), ticks(until)
        state.ready()
        partitions, of = state.read_by(rows, reached)
        come = Arrival.of(self.layout, state, rows, partitions, of)
        end = NEVER if close_at is None else close_at
        waits = come.waiting(reached, end)
        asked = Asked.between(come.waited(ticks(after)), waits)
        result = self._result(come, asked, end)
        before = state.some(partitions, np.zeros(len(partitions), dtype=np.bool_))
        return replace(self, made=(before, self._left(come, waits, reached))), result

    def _left(self, come: Arrival, waits: Int64Array, reached: int) -> WindowExtract:
        """What later rows need, and the rows that wait."""
        state, layout = self.held, self.layout
        starts, look = _needed(come, waits, reached)
        stays = pl.Series(come.at >= starts[come.place])
        gone = np.minimum(starts, come.count)
        columns = [pl.Series(PARTITION, come.place), pl.Series(TIME, come.time), pl.Series(NUMBER, come.number)]
        columns += [
            pl.Series(layout.part(one, name), come.made(one)[name]) for one in layout.kept for name in layout.parts(one)
        ]
        if self.node.waits:
            columns += [
                come.rows.get_column(name).gather(come.order).alias(layout.over.attribute(name))
                for name in self.node.input.schema.names
            ]
        rows = pl.DataFrame(columns).filter(stays).cast(pl.Schema(state.columns))
        left = np.flatnonzero(gone)
        last = come.kept(layout.number)[come.first[left] + gone[left] - 1]
        marks = pl.DataFrame([pl.Series(PARTITION, left), pl.Series(GONE, last)])
        kept, stored = come.count - gone, state.marked(rows, marks)
        return WindowExtract(come.partitions, rows, look, gone=gone, kept=kept, stored=stored)

    def _result(self, come: Arrival, asked: Asked, end: int) -> pl.DataFrame:
        """The rows that are complete, with their columns."""
        node, given = self.node, come.rows.select(self.node.input.schema.names)
        if not node.waits:
            computed = [self._value(column, come, asked, given, come.order) for column in node.columns]
            back = np.empty(come.rows.height, dtype=np.int64)
            back[come.order] = np.arange(come.rows.height)
            return given.hstack([values.gather(back) for values in computed])
        ordered = given[come.order]
        attributes = [
            come.values(self.layout.over.attribute(name), ordered.get_column(name), asked.of, asked.place)
            for name in ordered.columns
        ]
        complete = pl.DataFrame(attributes)
        places = np.arange(complete.height)
        computed = [self._value(column, come, asked, complete, places) for column in node.columns]
        return complete.hstack([*computed, pl.Series(node.completed_by, come.completed_at(asked, end))])

    def _value(
        self, column: OverColumn, come: Arrival, asked: Asked, rows: pl.DataFrame, places: Int64Array
    ) -> pl.Series:
        """The values of a column for rows that are asked about: row i is that of `rows` at `places[i]`."""
        kept = self.layout.kept_for(column)
        match column:
            case Neighbour(_, _, offset, within, default):
                assert kept is not None
                at = come.neighbours(asked, offset, within)
                values = defaulted(self._looked_up(kept, come, asked, at), at < 0, default)
            case Nth(_, _, number, frame):
                assert kept is not None
                low, high = come.frames(frame, asked)
                at = np.where(low + number - 1 < high, low + number - 1, -1)
                values = self._looked_up(kept, come, asked, at)
            case FrameAggregate(aggregate, frame):
                low, high = come.frames(frame, asked)
                if kept is None:
                    return pl.Series(column.name, high - low)
                parts, type_ = come.parts(kept, asked, low, high), self.layout.over.type_of(kept.argument)
                values, fits = finished(aggregate, type_, parts)
                for row in np.flatnonzero(~fits).tolist() if aggregate.entry.lenient is not None else ():
                    error = sum_out_of_range(column.name, type_, total_of(parts, row))
                    if self.noted is None:
                        raise error
                    row_values = rows.row(int(places[row]), named=True)
                    self.noted.append(SetAside(OVERFLOW, column.name, row_values, self.node.input.schema, error))
            case _:
                raise AssertionError(column)
        return values.alias(column.name)

    def _looked_up(self, kept: Kept, come: Arrival, asked: Asked, at: Int64Array) -> pl.Series:
        """The values of rows at places of the partitions of those that are asked about; NULL at negative ones."""
        return come.values(self.layout.part(kept, "own"), come.made(kept)["own"], asked.of, at)

    def noting(self, noted: list[SetAside] | None) -> QueuedOperator:
        return replace(self, noted=noted)


def _needed(come: Arrival, waits: Int64Array, reached: int) -> tuple[Int64Array, Int64Array]:
    """From which place on rows are needed of each partition, and when to look at it: as fewer are, or as the first row
    that waits is complete.
    """
    starts, look = come.needed(waits, reached)
    first = np.minimum(waits + 1, come.total)
    waiting = Asked.between(waits, first)
    look[waiting.of] = np.minimum(come.completed_at(waiting, EVER), EVER)
    return starts, look
