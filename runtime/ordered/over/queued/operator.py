"""The operator of frames that move, where rows come behind those that are kept and leave in front of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import sum_out_of_range
from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.ordered.over import FrameAggregate, Over
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, Term
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.over import ROWS
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.aggregates.order_keys import order_keys
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.lenient import OVERFLOW, SetAside
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.kernels.over import queued
from tidegate.runtime.ordered.family import Tables
from tidegate.runtime.ordered.over.block import gathered, valid
from tidegate.runtime.ordered.over.frames import Parts, finished, total_of
from tidegate.runtime.ordered.over.layout import TIME
from tidegate.runtime.ordered.over.queued.layout import EXTREMES, NUMBER, Kept, QueuedLayout, queued_layout
from tidegate.runtime.ordered.partition_store import NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.windows.rows.store import GONE, WindowExtract, WindowRows, WindowRowsOperator
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame

_HALF = 32
_LOW = (1 << _HALF) - 1
#: What totals go on with beside what they are before a row.
_OWN = ("is", "own")


@dataclass(frozen=True, slots=True)
class QueuedOperator(WindowRowsOperator):
    """Rows with sums, counts, least and greatest values of the rows at most so long before them. An increment reads and
    writes its own rows, and looks at some of the rows before each.
    """

    ordered: OrderedStep
    held: WindowRows
    made: tuple[WindowExtract, WindowExtract] | None = None
    #: Takes the rows with sums that do not fit, which are NULL then; None: they are errors.
    noted: list[SetAside] | None = None

    @classmethod
    def fresh(cls, ordered: OrderedStep, layout: QueuedLayout) -> QueuedOperator:
        keys = Schema(tuple(layout.node.input.schema[key] for key in layout.node.keys))
        return cls(ordered, WindowRows(keys, layout.columns, TIME))

    def loaded(self, tables: Tables) -> QueuedOperator:
        state = self.held
        if ROWS in tables:
            stored = tables[ROWS]
            numbers = pl.Series(PARTITION, state.partitions.of_kept(stored), pl.Int64)
            rows = stored.select(numbers, *state.columns).sort(PARTITION, maintain_order=True)
            partitions = state.all_partitions()
            look = np.full(len(partitions), NO_LOOK)
            of, first = np.unique(rows.get_column(PARTITION).to_numpy(), return_index=True)
            look[of] = rows.get_column(TIME).to_numpy()[first] + self.layout.longest
            state.put(WindowExtract(partitions, rows, look))
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
        come = _Arrival.of(self.layout, state, rows, partitions, of)
        made = {kept: come.made(kept) for kept in self.layout.kept}
        result = self._result(come, made)
        before = state.some(partitions, np.zeros(len(partitions), dtype=np.bool_))
        return replace(self, made=(before, self._left(come, made, reached))), result

    def _left(self, come: _Arrival, made: dict[Kept, dict[str, Any]], reached: int) -> WindowExtract:
        """What later frames need: rows of less than the longest frame before the instants to come."""
        state, over = self.held, reached - self.layout.longest
        stays = come.time > over
        gone = state.rows.up_to(come.partitions, TIME, np.full(len(come.partitions), over))
        kept = come.count - gone
        columns = [pl.Series(PARTITION, come.place[stays]), pl.Series(TIME, come.time[stays])]
        columns.append(pl.Series(NUMBER, come.number[stays]))
        columns += [
            pl.Series(made[one][name]).filter(pl.Series(stays)).alias(self.layout.part(one, name))
            for one in self.layout.kept
            for name in self.layout.parts(one)
        ]
        rows = pl.DataFrame(columns).cast(pl.Schema(state.columns))
        look = np.full(len(come.partitions), NO_LOOK)
        new, first = np.unique(come.place[stays], return_index=True)
        look[new] = come.time[stays][first] + self.layout.longest
        some = np.flatnonzero(kept)
        look[some] = come.kept(TIME)[come.first[some] + gone[some]] + self.layout.longest
        left = np.flatnonzero(gone)
        marks = pl.DataFrame([pl.Series(PARTITION, left), pl.Series(GONE, np.full(len(left), over))])
        return WindowExtract(come.partitions, rows, look, gone=gone, kept=kept, stored=state.marked(rows, marks))

    def _result(self, come: _Arrival, made: dict[Kept, dict[str, Any]]) -> pl.DataFrame:
        node, layout = self.node, self.layout
        computed = []
        back = np.empty(come.rows.height, dtype=np.int64)
        back[come.order] = np.arange(come.rows.height)
        for column in layout.columns_of_node:
            aggregate, kept = column.aggregate, layout.kept_for(column)
            low, high = come.frame(column)
            if kept is None or aggregate.argument is None:
                computed.append(pl.Series(aggregate.name, high - low).gather(back))
                continue
            type_ = layout.over.type_of(aggregate.argument)
            parts = come.parts(kept, made[kept], low, high)
            values, fits = finished(aggregate, type_, parts)
            if aggregate.entry.lenient is not None:
                self._note(column, come, parts, np.flatnonzero(~fits))
            computed.append(values.gather(back).alias(aggregate.name))
        return come.rows.select(node.input.schema.names).hstack(computed)

    def _note(self, column: FrameAggregate, come: _Arrival, parts: Parts, failed: Int64Array) -> None:
        """Notes the rows of which a sum does not fit."""
        aggregate, schema = column.aggregate, self.node.input.schema
        assert aggregate.argument is not None
        for at in failed.tolist():
            error = sum_out_of_range(aggregate.name, self.layout.over.type_of(aggregate.argument), total_of(parts, at))
            if self.noted is None:
                raise error
            row = come.rows.row(int(come.order[at]), named=True)
            values = {name: row[name] for name in schema.names}
            self.noted.append(SetAside(OVERFLOW, aggregate.name, values, schema, error))

    def noting(self, noted: list[SetAside] | None) -> QueuedOperator:
        return replace(self, noted=noted)


@dataclass(frozen=True, slots=True)
class _Arrival:
    """New rows in order of their partitions and times, and what is kept of the partitions.

    New row i is row `order[i]` of `rows`, in the partition at `place[i]`. Of the partition at a place `count` rows are
    kept, from `first` on in the arrays of the store; the first of them has the number `base`.
    """

    layout: QueuedLayout
    state: WindowRows
    rows: pl.DataFrame
    partitions: Int64Array
    order: Int64Array
    place: Int64Array
    time: Int64Array
    offsets: Int64Array
    first: Int64Array
    count: Int64Array
    base: Int64Array
    frames: dict[int, tuple[Int64Array, Int64Array]]

    @classmethod
    def of(
        cls, layout: QueuedLayout, state: WindowRows, rows: pl.DataFrame, partitions: Int64Array, of: Int64Array
    ) -> _Arrival:
        time = rows.get_column(layout.node.time).to_numpy()
        order = np.lexsort((time, of))
        place = of[order]
        offsets = np.searchsorted(place, np.arange(len(partitions) + 1))
        first, count = state.rows.places(partitions)
        base = np.ones(len(partitions), dtype=np.int64)
        some = np.flatnonzero(count)
        base[some] = state.rows.numbers(NUMBER)[first[some]]
        return cls(layout, state, rows, partitions, order, place, time[order], offsets, first, count, base, {})

    @property
    def number(self) -> Int64Array:
        """The number of each new row."""
        return self.base[self.place] + self.count[self.place] + np.arange(len(self.place)) - self.offsets[self.place]

    def kept(self, name: str) -> Any:
        """A column of all kept rows, by their places in the store."""
        return self.state.rows.numbers(name)

    def frame(self, column: FrameAggregate) -> tuple[Int64Array, Int64Array]:
        """Where the frame of each new row starts and ends, among the kept rows of its partition and the new ones."""
        before = column.frame.before or 0
        if before not in self.frames:
            low, high = np.empty(len(self.time), dtype=np.int64), np.empty(len(self.time), dtype=np.int64)
            queued.frames(self.first, self.count, self.offsets, self.kept(TIME), self.time, before, low, high)
            self.frames[before] = low, high
        return self.frames[before]

    def argument(self, term: Term) -> pl.Series:
        schema = self.layout.node.input.schema
        if isinstance(term, Attr):
            return self.rows.get_column(term.name).gather(self.order)
        return evaluated(self.rows, compile_term(term, schema)).to_series().gather(self.order)

    def made(self, kept: Kept) -> dict[str, Any]:
        """What is kept of the new rows. What blocks come to is computed with the frames."""
        rows = self.argument(kept.argument)
        flags = valid(rows)
        is_ = flags.astype(np.int64)
        made: dict[str, Any] = {"flags": flags, "is": is_, "n": is_}
        match kept.form:
            case Form.COUNT:
                pass
            case Form.INTEGER_SUM:
                own = rows.fill_null(0).to_numpy()
                made |= {"own": own, "hi": own >> _HALF, "lo": own & _LOW}
            case Form.DOUBLE_SUM:
                own = rows.fill_null(0.0).to_numpy()
                made |= {"own": own, "sum": np.zeros(len(own)), "lost": np.zeros(len(own))}
            case _:
                keys = order_keys(rows, self.layout.over.type_of(kept.argument))
                best = np.zeros(len(rows), dtype=np.int64)
                return made | {"own": rows, "key": keys if kept.form is Form.LEAST else ~keys, "best": best}
        for name in self.layout.totals(kept):
            made[f"with {name}"], made[name] = self.totals(kept, name, made[name])
        return made

    def totals(self, kept: Kept, name: str, numbers: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The sums of all rows of a partition up to each new one, and up to the one before it. They go on from the last
        row that is kept.
        """
        some = np.flatnonzero(self.count)
        at = self.first[some] + self.count[some] - 1
        part = {of: self.kept(self.layout.part(kept, of))[at] for of in self.layout.parts(kept) if of in _OWN}
        last = np.zeros(len(self.partitions), dtype=np.int64)
        own = part["is"] if name == "n" else part["own"] >> _HALF if name == "hi" else part["own"] & _LOW
        last[some] = self.kept(self.layout.part(kept, name))[at] + own
        sums: Int64Array = np.cumsum(numbers)
        before = (sums - numbers)[self.offsets[self.place]] if len(sums) else sums
        with_own: Int64Array = sums - before + last[self.place]
        return with_own, with_own - numbers

    def parts(self, kept: Kept, made: dict[str, Any], low: Int64Array, high: Int64Array) -> Parts:
        """The parts of an aggregate over frames."""
        part = {name: self.layout.part(kept, name) for name in self.layout.parts(kept)}
        ours = (self.first, self.count, self.base, self.offsets, low, high)
        if kept.form in EXTREMES:
            found = np.empty(len(low), dtype=np.int64)
            queued.least(
                *ours, self.kept(part["key"]), self.kept(part["best"]), made["key"], made["flags"], made["best"], found
            )
            return {"v": self.values(part["own"], made["own"], found)}
        parts = {}
        for name in self.layout.totals(kept):
            up_to, before = (self.total_at(part[name], made, name, at) for at in (high, low))
            parts[name] = pl.Series(up_to - before)
        if kept.form is Form.DOUBLE_SUM:
            total, lost = np.empty(len(low)), np.empty(len(low))
            stored = (self.kept(part[name]) for name in ("own", "sum", "lost"))
            queued.add_doubles(*ours, *stored, made["own"], made["flags"], made["sum"], made["lost"], total, lost)
            parts |= {"sum": pl.Series(total), "comp": pl.Series(lost)}
        return parts

    def total_at(self, column: str, made: dict[str, Any], name: str, at: Int64Array) -> Int64Array:
        """A total of the rows of a partition before a place; the last one is that behind all rows."""
        new = self.offsets[self.place] + at - self.count[self.place]
        behind = new == self.offsets[self.place + 1]
        most = max(len(new) - 1, 0)
        totals: Int64Array = np.where(
            behind, made[f"with {name}"][np.clip(new - 1, 0, most)], made[name][np.clip(new, 0, most)]
        )
        is_kept = at < self.count[self.place]
        totals[is_kept] = self.kept(column)[(self.first[self.place] + at)[is_kept]]
        return totals

    def values(self, column: str, made: pl.Series, at: Int64Array) -> pl.Series:
        """The values of rows at places of their partitions; NULL at negative ones."""
        is_kept, is_new = (at >= 0) & (at < self.count[self.place]), at >= self.count[self.place]
        kept = self.state.rows.values(column, (self.first[self.place] + at)[is_kept])
        new = made.gather((self.offsets[self.place] + at - self.count[self.place])[is_new])
        where = np.full(len(at), -1)
        where[is_kept] = np.arange(len(kept))
        where[is_new] = len(kept) + np.arange(len(new))
        return gathered(pl.concat([kept.alias(made.name), new], rechunk=True), where)
