"""Aggregates over frames that move: each value is made of the rows from one place to before another."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.types import DataType
from tidegate.algebra.types import Kind as TypeKind
from tidegate.runtime.arrays import BoolArray, Float64Array, Int64Array, UInt8Array
from tidegate.runtime.eval.aggregates.order_keys import order_keys
from tidegate.runtime.eval.aggregates.sketches import estimates
from tidegate.runtime.kernels.over import moving
from tidegate.runtime.ordered.over.block import gathered, valid
from tidegate.runtime.ordered.over.whole import held_values, whole_frames

_HALF = 32
_LOW = (1 << _HALF) - 1
_DECIMAL = 10**18 - 1
#: The parts of an aggregate by name, as `layout.parts` lists them.
Parts = Mapping[str, pl.Series]


@dataclass(frozen=True, slots=True)
class Framed:
    """An aggregate with its argument, of this type, and its order, if it has one, for all rows by place.

    `by_place`: the first and the last value are those of the first and the last place, not of the least and the
    greatest order.
    """

    aggregate: Aggregate
    argument: DataType
    rows: pl.Series
    orders: pl.Series | None
    by_place: bool = False

    @property
    def form(self) -> Form:
        return self.aggregate.entry.form_of(self.argument)

    def parts(self, at: Int64Array, low: Int64Array, high: Int64Array) -> Parts:
        """The parts of the aggregate over the frames `at`, which ascend: frame i is from `low[i]` to before `high[i]`.

        Within a partition neither goes back, and frames of two partitions have no row in common.
        """
        rows, flags, start, end = self.rows, valid(self.rows), low[at], high[at]

        def over(values: Int64Array | UInt8Array) -> Int64Array:
            sums = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values, dtype=np.int64)])
            differences: Int64Array = sums[end] - sums[start]
            return differences

        counts = {"n": pl.Series(over(flags))}
        match self.form:
            case Form.COUNT:
                return counts
            case Form.INTEGER_SUM:
                values = rows.fill_null(0).to_numpy()
                high_sum, low_sum = over(values >> _HALF), over(values & _LOW)
                return {**counts, "hi": pl.Series(high_sum), "lo": pl.Series(low_sum)}
            case Form.DOUBLE_SUM:
                sums, lost = moving.add_doubles(at, low, high, rows.fill_null(0.0).to_numpy(), flags)
                return {**counts, "sum": pl.Series(sums), "comp": pl.Series(lost)}
            case Form.DISTINCT:
                different, numbers = np.unique(order_keys(rows, self.argument), return_inverse=True)
                return {"n": pl.Series(moving.distinct(at, low, high, numbers, flags, len(different)))}
            case Form.WHOLE:
                return {"v": whole_frames(self.aggregate, self.argument, rows, self.orders, start, end)}
            case Form.SKETCH:
                told = estimates(self.aggregate, self.argument, rows, start, end)
                return {"v": held_values(self.aggregate, self.argument, told)}
            case _:
                return {"v": gathered(rows, self._places(at, low, high, flags))}

    def undercut(self, places: Int64Array, offsets: Int64Array) -> BoolArray:
        """Which of the rows at places, by partition, are never the least or greatest of a frame to come."""
        keys = self._keys()[places]
        # Zeros of two signs have one key, and are told as they are.
        zero = 0 if self.form is Form.LEAST else -1
        is_double = self.argument.kind is TypeKind.DOUBLE
        undercut: Int64Array = moving.undercut(offsets, keys, valid(self.rows)[places], is_double, zero)
        return undercut.astype(np.bool_)

    def _keys(self) -> Int64Array:
        """Integers of which the least is that of the least or the greatest value, whichever is asked for."""
        keys = order_keys(self.rows, self.argument)
        return keys if self.form is Form.LEAST else ~keys

    def _places(self, at: Int64Array, low: Int64Array, high: Int64Array, flags: UInt8Array) -> Int64Array:
        """Where the value of a frame stands; -1: it has none."""
        chosen: Int64Array
        rows, form, start, end = self.rows, self.form, low[at], high[at]
        if self.orders is None:
            chosen = moving.least(at, low, high, self._keys(), flags)
        elif not self.by_place:
            keys = best_first(rows, self.orders, greatest=form is Form.LATEST)
            chosen = moving.least(at, low, high, keys, np.minimum(flags, valid(self.orders)))
        elif form is Form.LATEST:
            places = np.where(flags, np.arange(len(flags)), -1)
            last = np.maximum.accumulate(places)[end - 1]
            chosen = np.where(last >= start, last, -1)
        else:
            places = np.where(flags, np.arange(len(flags)), len(flags))
            first = np.minimum.accumulate(places[::-1])[::-1][start]
            chosen = np.where(first < end, first, -1)
        return chosen


def best_first(rows: pl.Series, orders: pl.Series, *, greatest: bool) -> Int64Array:
    """Integers of which the least is that of the row with the least or greatest order, of equal ones of the least
    value.
    """
    frame = pl.DataFrame([orders.alias("by"), rows.alias("v")])
    ordered = frame.select(pl.arg_sort_by("by", "v", descending=[greatest, False])).to_series().to_numpy()
    ranks = np.empty(len(ordered), dtype=np.int64)
    ranks[ordered] = np.arange(len(ordered))
    return ranks


def finished(aggregate: Aggregate, argument: DataType, parts: Parts) -> tuple[pl.Series, BoolArray]:
    """The value of an aggregate from its parts, NULL for a sum that does not fit its type, and which ones fit."""
    form = aggregate.entry.form_of(argument)
    fits = np.ones(len(next(iter(parts.values()))), dtype=np.bool_)
    if form in (Form.COUNT, Form.DISTINCT):
        return parts["n"], fits
    if form is not Form.INTEGER_SUM and form is not Form.DOUBLE_SUM:
        return parts["v"], fits
    n = parts["n"].to_numpy()
    if form is Form.DOUBLE_SUM:
        sums, lost = parts["sum"].to_numpy(), parts["comp"].to_numpy()
        totals = np.where(np.isfinite(sums), sums + lost, sums)
        return _unless(n == 0, totals / np.maximum(n, 1) if aggregate.entry.averages else totals), fits
    high, low = parts["hi"].to_numpy(), parts["lo"].to_numpy()
    high, low = high + (low >> _HALF), low & _LOW
    if aggregate.entry.averages:
        return _unless(n == 0, (high * 2.0**_HALF + low) / 10.0**argument.scale / np.maximum(n, 1)), fits
    fits = (high >= -(1 << 31)) & (high < 1 << 31)
    total = (high << _HALF) + low
    if argument.kind is TypeKind.DECIMAL:
        fits &= np.abs(total) <= _DECIMAL
    return _unless((n == 0) | ~fits, total), fits


def total_of(parts: Parts, row: int) -> int:
    """An exact sum of integers."""
    return int(parts["hi"][row]) * (1 << _HALF) + int(parts["lo"][row])


def _unless(missing: BoolArray, values: Int64Array | Float64Array) -> pl.Series:
    """The values, NULL where they are missing."""
    series = pl.Series(values)
    return series.set(pl.Series(missing), None) if missing.any() else series
