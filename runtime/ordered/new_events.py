"""The events that an increment gives to an operator, their order, and those of them that nothing orders."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.nodes import Reading
from tidegate.algebra.ordered.events import tied
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term, Value
from tidegate.algebra.time import Extended
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.types import DataType
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.aggregates.partials import same_zero
from tidegate.runtime.eval.lenient import Lenient, SetAside, SetAsideRows
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.eval.small.increment import small_rows
from tidegate.runtime.kernels.partitions.ordering import ascending
from tidegate.runtime.kernels.partitions.rows import segmented
from tidegate.runtime.rows import Rows, SmallRows, Unsupported, as_frame

_TIE: Final = "tie"
#: So many rows or more go to buckets of time to be ordered; to compare fewer takes less.
BUCKETED: Final = 1024


def new_events(reading: Reading, leaf: Rows, old: Extended, new: Extended) -> pl.DataFrame:
    """The events of a leaf that are later than `old`, up to `new`."""
    rows = evaluate(reading.input, {0: as_frame(leaf)})
    assert reading.time is not None
    if not rows.height:
        return rows
    # Mostly all are: to look at one column takes a fraction of what it takes to copy all of them.
    instants, time = rows.get_column(reading.time).to_numpy(), pl.col(reading.time)
    within = [time > old] if isinstance(old, int) and instants.min() <= old else []
    within += [time <= new] if isinstance(new, int) and instants.max() > new else []
    return rows.filter(*within) if within else rows


def few_new_events(reading: Reading, leaf: Rows, old: Extended, new: Extended) -> Rows:
    """The same; as arrays where the leaf has arrays, and NumPy evaluates what is read of them."""
    assert reading.time is not None
    if isinstance(leaf, SmallRows):
        with suppress(Unsupported):
            rows = small_rows(reading.input, leaf)
            later = rows.where(rows.columns[reading.time] > old) if isinstance(old, int) else rows
            return later.where(later.columns[reading.time] <= new) if isinstance(new, int) else later
    return new_events(reading, leaf, old, new)


def latest(reading: Reading, rows: pl.DataFrame, instant: int | None) -> int | None:
    """The instant of the last of some events, or the one that is given, whichever is later; None without both."""
    assert reading.time is not None
    known = [] if instant is None else [instant]
    return max([*known, *rows.select(pl.col(reading.time).max().drop_nulls()).to_series()], default=None)


def evaluable(schema: Schema, terms: Iterable[Term], rows: Rows) -> tuple[Rows, list[SetAside]]:
    """The events for which all these terms have a value, and those left out."""
    fallible = [term for term in dict.fromkeys(terms) if resolve(term, schema).fallible]
    if not fallible or not rows.height:
        return rows, []
    walk, fine = Lenient({}), as_frame(rows)
    for term in fallible:
        fine = walk.evaluable(fine, term, schema, None)
    return (fine if walk.aside else rows), walk.aside


def order_of(reading: Reading, rows: pl.DataFrame) -> Int64Array:
    """The rows in order of time, and of ties."""
    assert reading.time is not None
    known = order_without_sort(reading, rows)
    if known is not None:
        return known
    time = rows.get_column(reading.time).to_numpy()
    order = ascending(time) if len(time) >= BUCKETED else time[:0]
    return order if len(order) else np.argsort(time, kind="stable")


def order_without_sort(reading: Reading, rows: pl.DataFrame) -> Int64Array | None:
    """The rows in order of time, and of ties; None of rows without ties that do not stand in order of time."""
    assert reading.time is not None
    if reading.tie is not None:
        return rows.select(pl.arg_sort_by(reading.time, reading.tie)).to_series().cast(pl.Int64).to_numpy()
    time = rows.get_column(reading.time).to_numpy()
    return np.arange(len(time)) if (time[1:] >= time[:-1]).all() else None


def by_partition(of: Int64Array, order: Int64Array, partitions: int) -> Int64Array:
    """The rows by the places of their partitions, those of one as they stand in `order`, which has every row once.

    They are counted: to compare 100,000 takes 7 ms.
    """
    rows: Int64Array = segmented(np.empty(0, dtype=np.int64), of, order, partitions)[0]
    return rows


def require_order(
    reading: Reading, rows: pl.DataFrame, of: Int64Array, order: Int64Array, partitions: int
) -> Int64Array:
    """The events by the places of their partitions, those of one as they stand in `order`: by time and ties.
    `EvaluationError` TG304 where nothing says which of two events of a partition comes first.
    """
    assert reading.time is not None
    order = by_partition(of, order, partitions)
    in_partition = of[order]
    same = in_partition[1:] == in_partition[:-1]
    for name in {reading.time} if reading.tie is None else {reading.time, reading.tie}:
        column = rows.get_column(name)[order]
        same &= column[1:].eq_missing(column[:-1]).to_numpy()
    if same.any():
        at = rows.get_column(reading.time)[int(order[1:][same][0])]
        raise tied(at, reading.input.schema[reading.time].type)
    return order


def untied(
    reading: Reading,
    rows: pl.DataFrame,
    values: Sequence[pl.Expr] = (),
    error: Callable[[Value, DataType], EvaluationError] = tied,
) -> tuple[pl.DataFrame, list[SetAside]]:
    """The events without ties, and those left out, each with its error.

    Of events that are equal in all that is read one stays; of others with one partition, time and tie none. `values`,
    with names of their own, order events beside these.
    """
    assert reading.time is not None
    order = list(dict.fromkeys([*reading.keys, reading.time, *(() if reading.tie is None else (reading.tie,))]))
    doubles = [name for name, type_ in rows.schema.items() if type_ == pl.Float64]
    read = rows.with_columns(same_zero(pl.col(name)).alias(name) for name in doubles)
    first = read.select(pl.struct(sorted(reading.attributes)).is_first_distinct()).to_series()
    distinct = rows.filter(first)
    keep = read.filter(first).select(~pl.struct(*order, *values).is_duplicated()).to_series()
    known = reading.input.schema
    schema = Schema(tuple(known[name] for name in rows.columns if name in known))
    gone = pl.concat([rows.filter(~first), distinct.filter(~keep)])
    return distinct.filter(keep), set_aside_ties(gone.select(schema.names), schema, reading.time, error)


def set_aside_ties(
    rows: pl.DataFrame, schema: Schema, time: str, error: Callable[[Value, DataType], EvaluationError] = tied
) -> list[SetAside]:
    """Events that nothing orders, as they are set aside. Those of one instant, which stand together or nearly so, share
    their error.
    """
    if not rows.height:
        return []
    at = lru_cache(maxsize=1024)(lambda instant: error(instant, schema[time].type))
    return [SetAsideRows.of(_TIE, rows, schema, rows.select(time), lambda operands: at(operands[time]))]
