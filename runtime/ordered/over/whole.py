"""Aggregates that keep every value, over frames that move: the rows of a frame are kept anyway."""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable, Iterator, Sequence
from itertools import accumulate

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import aggregate as value_of
from tidegate.algebra.functions.aggregates import Aggregate, Function, quantile_between, quantile_places
from tidegate.algebra.terms import Value
from tidegate.algebra.types import DataType, Kind
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.aggregates.order_keys import order_keys
from tidegate.runtime.eval.functions.shared import held_type
from tidegate.runtime.ordered.over.block import valid


def whole_frames(
    aggregate: Aggregate, argument: DataType, rows: pl.Series, orders: pl.Series | None, start: Int64Array,
    end: Int64Array,
) -> pl.Series:  # fmt: skip
    """The aggregate over the rows of each frame, from a start to before an end. Neither goes back, unless both come
    to rows that no frame before had.
    """
    found: Iterator[Value]
    match aggregate.function:
        case Function.VARIANCE:
            found = _variances(argument, rows, start, end)
        case Function.STDDEV:
            variances = _variances(argument, rows, start, end)
            found = (None if variance is None else math.sqrt(variance) for variance in variances)
        case Function.MEDIAN | Function.QUANTILE:
            found = _quantiles(aggregate, argument, rows, start, end)
        case _:
            found = _one_by_one(aggregate, argument, rows, orders, start, end)
    return held_values(aggregate, argument, found)


def held_values(aggregate: Aggregate, argument: DataType, found: Iterable[Value]) -> pl.Series:
    """Values of an aggregate as a column."""
    result = aggregate.entry.result(argument)
    assert result is not None
    return pl.Series(list(found), dtype=held_type(result))


def _one_by_one(
    aggregate: Aggregate, argument: DataType, rows: pl.Series, orders: pl.Series | None, start: Int64Array,
    end: Int64Array,
) -> Iterator[Value]:  # fmt: skip
    values = rows.to_list()
    by = values if orders is None else orders.to_list()
    for first, last in zip(start.tolist(), end.tolist(), strict=True):
        its, order = values[first:last], by[first:last]
        yield value_of(aggregate.function, its, order, argument, aggregate.name, aggregate.parameter)


def _variances(argument: DataType, rows: pl.Series, start: Int64Array, end: Int64Array) -> Iterator[float | None]:
    """As `variance` means it, of exact numbers, rounded once: totals of integers may be subtracted."""
    numbers, parts = _integers(argument, rows)
    finite = np.array([number is not None for number in numbers], dtype=np.int64)
    values = [number or 0 for number in numbers]
    totals = list(accumulate(values, initial=0))
    squares = list(accumulate((value * value for value in values), initial=0))
    there = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(valid(rows), dtype=np.int64)])
    known = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(finite)])
    counts, odd = there[end] - there[start], (there - known)[end] - (there - known)[start]
    frames = zip(start.tolist(), end.tolist(), counts.tolist(), odd.tolist(), strict=True)
    for first, last, count, strange in frames:
        if count < 2:
            yield None
        elif strange:
            yield math.nan
        else:
            total = totals[last] - totals[first]
            distances = count * (squares[last] - squares[first]) - total * total
            try:
                yield distances / (count * (count - 1) * parts * parts)
            except OverflowError:
                yield math.inf


def _integers(argument: DataType, rows: pl.Series) -> tuple[Sequence[int | None], int]:
    """The values as integers, once multiplied with the same number. None of NULL and of what is no finite number."""
    if argument.kind is not Kind.DOUBLE:
        return rows.to_list(), 10**argument.scale
    ratios = [
        value.as_integer_ratio() if value is not None and math.isfinite(value) else None for value in rows.to_list()
    ]
    parts = max((ratio[1] for ratio in ratios if ratio is not None), default=1)  # powers of two
    return [None if ratio is None else ratio[0] * (parts // ratio[1]) for ratio in ratios], parts


def _quantiles(
    aggregate: Aggregate, argument: DataType, rows: pl.Series, start: Int64Array, end: Int64Array
) -> Iterator[Value]:
    """The values of a frame stand in order; rows come in and leave one by one."""
    values, flags = rows.to_list(), valid(rows).tolist()
    keys = order_keys(rows, argument).tolist()
    of = {key: value for key, value, flag in zip(keys, values, flags, strict=True) if flag}
    ordered: list[int] = []
    first, reached = 0, 0
    for low, high in zip(start.tolist(), end.tolist(), strict=True):
        if low >= reached:
            ordered, first, reached = [], low, low
        for place in range(first, low):
            if flags[place]:
                del ordered[bisect_left(ordered, keys[place])]
        for place in range(reached, high):
            if flags[place]:
                insort(ordered, keys[place])
        first, reached = low, high
        if not ordered:
            yield None
            continue
        lower, upper, within = quantile_places(len(ordered), aggregate.parameter)
        yield quantile_between(of[ordered[lower]], of[ordered[upper]], within, argument)
