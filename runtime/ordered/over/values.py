"""The values of columns: over all rows up to one, and over frames that move."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import assert_never

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import EvaluationError, sum_out_of_range
from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.ordered.over import (
    Frame,
    FrameAggregate,
    Neighbour,
    NextDifferent,
    Nth,
    OverColumn,
    PreviousDifferent,
    Reported,
    RowNumber,
)
from tidegate.algebra.terms import Lit, Term
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.aggregates.order_keys import order_keys
from tidegate.runtime.kernels.over import running, segments
from tidegate.runtime.ordered.over.block import Block, gathered, valid
from tidegate.runtime.ordered.over.frames import Framed, Parts, best_first, finished, total_of
from tidegate.runtime.ordered.over.layout import Kind, OverLayout, Running
from tidegate.runtime.ordered.over.sketches import running_sketch


@dataclass(slots=True)
class Values:
    """The values of an operator's columns over the rows of a block, each computed once."""

    layout: OverLayout
    block: Block
    #: The sums that do not fit, by place and column; None: they are errors.
    failed: list[tuple[int, str, EvaluationError]] | None = None
    runs: dict[Running, dict[str, pl.Series]] = field(default_factory=dict)
    frames: dict[Frame, tuple[Int64Array, Int64Array]] = field(default_factory=dict)

    def of(self, column: OverColumn, at: Int64Array) -> pl.Series:
        """The values of a column for the rows at these places, which ascend."""
        match column:
            case RowNumber():
                values = self.running(Running(Kind.ROWS))["n"].gather(at)
            case Reported():
                kept = self.layout.running(column)
                assert kept is not None
                values = self.running(kept)["is"].gather(at) == 1
            case PreviousDifferent(_, argument):
                values = self.running(Running(Kind.DIFFERENT, argument))["v"].gather(at)
            case Neighbour(_, argument, offset, within, default):
                places = segments.neighbours(
                    self.block.offsets, self.block.time, offset, -1 if within is None else within
                )[at]
                values = defaulted(gathered(self.argument(argument), places), places < 0, default)
            case NextDifferent(_, argument, within):
                every = next_different(self.layout, self.block, argument)
                places = np.where(self.is_near(every, within), every, -1)[at]
                values = gathered(self.argument(argument), places)
            case Nth(_, argument, number, frame):
                low, high = (bound[at] for bound in self.bounds(frame))
                if frame.before is None:
                    value = self.running(Running(Kind.NTH, argument, number=number))["v"]
                    values = value.gather(high - 1)
                else:
                    places = np.where(low + number - 1 < high, low + number - 1, -1)
                    values = gathered(self.argument(argument), places)
            case FrameAggregate(aggregate, frame):
                values = self.aggregated(aggregate, frame, at)
            case _:
                assert_never(column)
        return values.alias(column.name)

    def is_near(self, places: Int64Array, within: int | None) -> BoolArray:
        """Whether the rows at places are at most so many ticks after each row."""
        if within is None:
            return np.ones(len(places), dtype=np.bool_)
        return self.block.time[places] - self.block.time <= within

    def argument(self, term: Term) -> pl.Series:
        return self.block.column(self.layout.argument(term))

    def bounds(self, frame: Frame) -> tuple[Int64Array, Int64Array]:
        """Where the frame of each row starts and ends."""
        if frame not in self.frames:
            before, peers = -1 if frame.before is None else frame.before, self.layout.node.tie is None
            self.frames[frame] = (
                segments.frames_of_rows(self.block.offsets, before, frame.after)
                if frame.unit == "rows"
                else segments.frames_of_range(self.block.offsets, self.block.time, before, frame.after, peers)
            )
        return self.frames[frame]

    def aggregated(self, aggregate: Aggregate, frame: Frame, at: Int64Array) -> pl.Series:
        low, high = self.bounds(frame)
        if aggregate.argument is None:
            if frame.before is None:
                return self.running(Running(Kind.ROWS))["n"].gather(high[at] - 1)
            return pl.Series(high[at] - low[at])
        kept = self.layout.running(FrameAggregate(aggregate, frame))
        if kept is not None:
            last = high[at] - 1
            parts: Parts = {name: part.gather(last) for name, part in self.running(kept).items()}
        else:
            parts = self.framed(aggregate).parts(at, low, high)
        type_ = self.layout.type_of(aggregate.argument)
        aggregated, fits = finished(aggregate, type_, parts)
        for row in np.flatnonzero(~fits) if aggregate.entry.lenient is not None else ():
            error = sum_out_of_range(aggregate.name, type_, total_of(parts, int(row)))
            if self.failed is None:
                raise error
            self.failed.append((int(at[row]), aggregate.name, error))
        return aggregated

    def framed(self, aggregate: Aggregate) -> Framed:
        """The aggregate with the rows that its frames are of."""
        assert aggregate.argument is not None
        orders = None if aggregate.by is None else self.argument(aggregate.by)
        by_place = self.layout.node.goes_by_order(aggregate)
        type_ = self.layout.type_of(aggregate.argument)
        return Framed(aggregate, type_, self.argument(aggregate.argument), orders, by_place)

    # Over all rows up to one -----------------------------------------------------------------------------------------
    def running(self, what: Running) -> dict[str, pl.Series]:
        """The parts of a running value, by place."""
        if what not in self.runs:
            self.runs[what] = self.run(what)
        return self.runs[what]

    def run(self, what: Running) -> dict[str, pl.Series]:
        block, part = self.block, {name: self.layout.part(what, name) for name in self.layout.parts(what)}
        arrays: dict[str, Int64Array] = {}
        offsets, first = block.offsets, block.first
        if what.what is Kind.REPORTED:
            arrays = {name: block.numbers(part[name]) for name in ("at", "is")}
            running.reported(offsets, first, block.time, what.number, arrays["at"], arrays["is"])
            return _series(arrays)
        if what.sketched is not None:
            assert what.argument is not None
            type_, rows = self.layout.type_of(what.argument), self.argument(what.argument)
            told, texts = (block.kept.get_column(part[name]) for name in ("v", "sketch"))
            return running_sketch(what.sketched, type_, rows, block, told, texts)
        if "n" in part:
            of = None if what.argument is None or what.what is Kind.NTH else self.argument(what.argument)
            arrays["n"] = block.numbers(part["n"])
            running.count(
                offsets, first, np.ones(block.height, dtype=np.uint8) if of is None else valid(of), arrays["n"]
            )
        if what.argument is None or what.what is Form.COUNT:
            return _series(arrays)
        rows = self.argument(what.argument)
        match what.what:
            case Form.INTEGER_SUM:
                arrays |= {name: block.numbers(part[name]) for name in ("hi", "lo")}
                running.add(offsets, first, rows.fill_null(0).to_numpy(), valid(rows), arrays["hi"], arrays["lo"])
                return _series(arrays)
            case Form.DOUBLE_SUM:
                sums = {name: block.doubles(part[name]) for name in ("sum", "comp")}
                running.add_doubles(
                    offsets, first, rows.fill_null(0.0).to_numpy(), valid(rows), sums["sum"], sums["comp"]
                )
                return {**_series(arrays), **{name: pl.Series(array) for name, array in sums.items()}}
            case Kind.NTH:
                places = running.nth(offsets, first, arrays["n"], what.number)
            case _:
                places = self.places(what, part)
        columns = _series(arrays)
        for name, term in (("v", what.argument), ("by", what.by)):
            if term is not None:
                both = block.with_running(self.layout.argument(term), part[name])
                columns[name] = block.gathered(both, places)
        return columns

    def places(self, what: Running, part: Mapping[str, str]) -> Int64Array:
        """Where the running value of each row stands, as the kernels number rows."""
        block, argument = self.block, what.argument
        assert argument is not None
        places: Int64Array
        rows = block.with_running(self.layout.argument(argument), part["v"])
        flags = block.spread(valid(rows))
        if what.what is Kind.DIFFERENT:
            keys = order_keys(self.argument(argument), self.layout.type_of(argument))
            places = running.previous_different(block.offsets, block.first, keys, flags[: block.height])
        elif what.what in (Form.EARLIEST, Form.LATEST) and what.by is None:
            places = running.end(block.offsets, block.first, flags, what.what is Form.LATEST)
        elif what.by is None:
            keys = order_keys(rows, self.layout.type_of(argument))
            keys = keys if what.what is Form.LEAST else ~keys
            places = running.least(block.offsets, block.first, block.spread(keys), flags)
        else:
            orders = block.with_running(self.layout.argument(what.by), part["by"])
            keys = best_first(rows, orders, greatest=what.what is Form.LATEST)
            both = block.spread(np.minimum(valid(rows), valid(orders)))
            places = running.least(block.offsets, block.first, block.spread(keys), both)
        return places


def defaulted(values: pl.Series, missing: BoolArray, default: Lit | None) -> pl.Series:
    """The values, with the default where there is no row."""
    if default is None or default.value is None:
        return values
    given = pl.Series([default.value], dtype=values.dtype)
    return pl.select(pl.when(pl.Series(missing)).then(pl.lit(given)).otherwise(values)).to_series()


def _series(arrays: Mapping[str, Int64Array]) -> dict[str, pl.Series]:
    return {name: pl.Series(array) for name, array in arrays.items()}


def next_different(layout: OverLayout, block: Block, argument: Term) -> Int64Array:
    """The place of the first row after each row in which the argument has another value; -1 where there is none."""
    rows = block.column(layout.argument(argument))
    keys = order_keys(rows, layout.type_of(argument))
    places: Int64Array = segments.next_different(block.offsets, keys, valid(rows))
    return places
