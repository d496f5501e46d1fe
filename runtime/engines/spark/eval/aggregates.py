"""Grouping in Spark (TSA Def. 15): the twin of `runtime.eval.aggregates.partials`, with the same states.

A row is the partial result of itself, so there is one way to aggregate: lift rows to states, then merge states. Only
sums of doubles take a step between (`runtime.engines.spark.eval.sums`), for which states are merged twice.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import reduce
from operator import or_

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from tidegate.algebra.evaluation import sum_out_of_range
from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.nodes import Group
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term
from tidegate.algebra.typed.terms import type_range
from tidegate.algebra.types import DataType, Kind
from tidegate.runtime.engines.spark.eval.column_cache import kept, kept_term
from tidegate.runtime.engines.spark.eval.functions.shared import (
    counted_sketches,
    merged_sketches,
    sketch_entries,
    sketch_results,
    whole_groups,
)
from tidegate.runtime.engines.spark.eval.names import NamedFrame, col
from tidegate.runtime.engines.spark.eval.sums import added_pairs, added_ranges, exponent_range, split_sums
from tidegate.runtime.plan.aggregate_states import State, require_partials, row_column, states

_LOW = 2**32 - 1


def aggregate(group: Group, rows: NamedFrame) -> NamedFrame:
    """One row per group of the grouping's input; keys keep their columns."""
    keys = {key: rows.columns[key] for key in group.keys}
    done = _from_rows(group, rows)
    results = [_result(state, f"{state.prefix}result") for state in states(group)]
    frame = done.select(*map(col, keys.values()), *results)
    return NamedFrame(frame, {**keys, **{state.aggregate.name: f"{state.prefix}result" for state in states(group)}})


def partial(group: Group, frame: DataFrame) -> DataFrame:
    """Partial results, one per group, of the rows of the grouping's input in `frame`."""
    require_partials(group)
    return _from_rows(group, NamedFrame(frame, {name: name for name in group.input.schema}))


def merge(group: Group, partials: DataFrame) -> DataFrame:
    """Partial results with one row per group, from those of disjoint parts of the input."""
    require_partials(group)
    return _grouped(group, partials, group.keys, _combine_states)


def final(group: Group, partials: DataFrame) -> DataFrame:
    """Results of the grouping from its merged partial results."""
    results = [_result(state, state.aggregate.name) for state in states(group)]
    return partials.select(*map(col, group.keys), *results)


def _from_rows(group: Group, rows: NamedFrame) -> DataFrame:
    """One row of states per group of rows, under the columns of the keys and the names of the states."""
    keys = [rows.columns[key] for key in group.keys]
    lifted = _lifted(group, rows, keys)
    doubles = [state for state in states(group) if state.form is Form.DOUBLE_SUM]
    if not doubles:
        return _grouped(group, lifted, keys, _combine_states)
    places = {state.prefix: f"{state.prefix}place" for state in doubles}
    placed = lifted.select("*", *(_place(state, places[state.prefix]) for state in doubles))
    split = _grouped(group, placed, [*keys, *places.values()], _combine_ranges)
    return _grouped(group, split, keys, _combine_split)


@kept
def _place(state: State, name: str) -> Column:
    return exponent_range(col(state.column("sum"))).alias(name)


def same_zero(column: Column) -> Column:
    """Doubles with -0.0 as 0.0, which it equals."""
    return F.when(column == 0.0, F.lit(0.0)).otherwise(column)


def _lifted(group: Group, rows: NamedFrame, keys: Sequence[str]) -> DataFrame:
    """Rows as the partial results of themselves: keys and states."""
    schema, all_states = group.input.schema, states(group)
    # Terms are evaluated once, before what is derived from them.
    columns = tuple(rows.columns.items())
    values = [value for state in all_states for value in _values(state, schema, columns)]
    valued = rows.frame.select(*map(col, keys), *values)
    return valued.select(*map(col, keys), *(part for state in all_states for part in _lift(state)))


@kept
def _values(state: State, schema: Schema, columns: tuple[tuple[str, str], ...]) -> Sequence[Column]:
    """Argument and order of one aggregate, per row."""

    def value(term: Term, type_: DataType, part: str) -> Column:
        compiled = kept_term(term, schema, dict(columns))
        return (same_zero(compiled) if type_.kind is Kind.DOUBLE else compiled).alias(state.column(part))

    argument, by = state.aggregate.argument, state.aggregate.by
    values = [] if argument is None else [value(argument, state.argument, "argument")]
    return values if by is None else [*values, value(by, state.by, "order")]


@kept
def _lift(state: State) -> Sequence[Column]:
    """The state that one row is, part by part."""
    counts_rows = state.aggregate.argument is None
    value, order = col(state.column("argument")), col(state.column("order"))
    counted = (value.isNotNull().cast("bigint"),) if state.averages else ()
    lifted: tuple[Column, ...]
    match state.form:
        case Form.COUNT:
            lifted = ((F.lit(1) if counts_rows else value.isNotNull()).cast("bigint"),)
        case Form.DISTINCT | Form.LEAST | Form.GREATEST:
            lifted = (value,)
        case Form.SKETCH if state.aggregate.by is not None:
            lifted = (counted_sketches(state.argument)(F.struct(value.alias("v"), order.alias("by"))),)
        case Form.SKETCH:
            lifted = (sketch_entries(state.sketch, state.argument)(value),)
        case Form.WHOLE:
            lifted = (F.struct(value.alias("v"), (F.lit(0) if state.aggregate.by is None else order).alias("by")),)
        case Form.INTEGER_SUM:
            lifted = (F.shiftright(value, 32), value.bitwiseAND(_LOW), *counted)
        case Form.DOUBLE_SUM:
            lifted = (value, F.when(value.isNotNull(), F.lit(0.0)), *counted)
        case Form.EARLIEST | Form.LATEST:
            both = value.isNotNull() & order.isNotNull()
            lifted = (F.when(both, order), F.when(both, value))
    return [part.alias(column) for part, column in zip(lifted, state.columns, strict=True)]


def _grouped(
    group: Group, frame: DataFrame, keys: Sequence[str], combine: Callable[[State], Sequence[Column]]
) -> DataFrame:
    """States of each group; of no rows, no group, also without keys."""
    all_states = states(group)
    aggregated = frame.groupBy(*map(col, keys)).agg(
        _row_count(row_column(group)), *(part for state in all_states for part in combine(state))
    )
    if not keys:
        aggregated = aggregated.filter(col(row_column(group)) > 0)
    finished = [
        part
        for state in all_states
        for part in (_finish(state) if combine is not _combine_ranges else _unfinished(state))
    ]
    return aggregated.select(*map(col, keys), *finished)


@kept
def _row_count(name: str) -> Column:
    return F.count(F.lit(1)).alias(name)


@kept
def _combine_ranges(state: State) -> Sequence[Column]:
    """Aggregations of the states of single rows, doubles per range of exponents, distinct values as sets."""
    match state.form:
        case Form.DOUBLE_SUM:
            sums = split_sums(col(state.column("sum")), col(f"{state.prefix}place"))
            return [total.alias(name) for total, name in zip(sums, _split_columns(state), strict=True)] + _counted(
                state
            )
        case Form.DISTINCT:
            return (F.collect_set(col(state.column("n"))).alias(state.column("n")),)
        case _:
            return _combine_states(state)


@kept
def _combine_split(state: State) -> Sequence[Column]:
    """Aggregations of what `_combine_ranges` leaves."""
    match state.form:
        case Form.DOUBLE_SUM:
            total = added_ranges(col(f"{state.prefix}place"), *map(col, _split_columns(state)))
            return [total.alias(f"{state.prefix}pair"), *_counted(state)]
        case Form.DISTINCT:
            every = F.array_distinct(F.flatten(F.collect_list(col(state.column("n")))))
            return (F.size(every).cast("bigint").alias(state.column("n")),)
        case Form.WHOLE:
            return (F.flatten(F.collect_list(col(state.column("v")))).alias(state.column("v")),)
        case _:
            return _combine_states(state)


def _split_columns(state: State) -> tuple[str, str, str]:
    return f"{state.prefix}upper", f"{state.prefix}middle", f"{state.prefix}lower"


def _counted(state: State) -> list[Column]:
    if not state.averages:
        return []
    return [F.sum(col(state.column("n"))).alias(state.column("n"))]


@kept
def _combine_states(state: State) -> Sequence[Column]:
    """Aggregations of states."""

    def part(name: str) -> Column:
        return col(state.column(name))

    match state.form:
        case Form.COUNT:
            combined = [F.sum(part("n")).alias(state.column("n"))]
        case Form.DISTINCT:
            combined = [F.countDistinct(part("n")).alias(state.column("n"))]
        case Form.INTEGER_SUM:
            combined = [F.sum(part(name)).alias(state.column(name)) for name in ("hi", "lo")] + _counted(state)
        case Form.DOUBLE_SUM:
            combined = [added_pairs(part("sum"), part("comp")).alias(f"{state.prefix}pair"), *_counted(state)]
        case Form.WHOLE | Form.SKETCH:
            combined = [F.collect_list(part("v")).alias(state.column("v"))]
        case Form.LEAST:
            combined = [F.min(part("v")).alias(state.column("v"))]
        case Form.GREATEST:
            combined = [F.max(part("v")).alias(state.column("v"))]
        case Form.EARLIEST | Form.LATEST:
            # The least struct: first by order, then, among equal ones, by value.
            order = [part("by")] if state.form is Form.EARLIEST else _reversed(part("by"), state.by)
            ranked = F.struct(
                *(o.alias(f"o{i}") for i, o in enumerate(order)), part("v").alias("v"), part("by").alias("by")
            )
            combined = [F.min(F.when(part("v").isNotNull(), ranked)).alias(f"{state.prefix}best")]
    return combined


def _reversed(order: Column, type_: DataType) -> list[Column]:
    """Columns that sort the other way round."""
    match type_.kind:
        case Kind.BOOLEAN:
            return [~order]
        case Kind.DOUBLE:  # NaN, the greatest, has no negative
            return [~F.isnan(order), -order]
        case Kind.STRING:  # every half byte complemented; the sign at the end makes a prefix come later
            return [F.concat(F.translate(F.hex(order), "0123456789ABCDEF", "FEDCBA9876543210"), F.lit("~"))]
        case _:  # unlike a minus sign, the complement cannot overflow
            return [F.bitwise_not(order)]


@kept
def _unfinished(state: State) -> Sequence[Column]:
    """The state's columns between the groupings by range and by key."""
    if state.form is Form.DOUBLE_SUM:
        counted = [state.column("n")] if state.averages else []
        return [col(name) for name in (*_split_columns(state), *counted)]
    return [col(name) for name in state.columns] if state.form in (Form.DISTINCT, Form.WHOLE) else _finish(state)


@kept
def _finish(state: State) -> Sequence[Column]:
    """The state's columns after a grouping."""

    def part(name: str) -> Column:
        return col(state.column(name))

    counted = [part("n")] if state.averages else []
    match state.form:
        case Form.INTEGER_SUM:
            carried = part("hi") + F.shiftright(part("lo"), 32)
            finished = [carried, part("lo").bitwiseAND(_LOW), *counted]
        case Form.DOUBLE_SUM:
            pair = col(f"{state.prefix}pair")
            finished = [pair["sum"], pair["comp"], *counted]
        case Form.EARLIEST | Form.LATEST:
            finished = [col(f"{state.prefix}best")[name] for name in ("by", "v")]
        case Form.WHOLE:
            finished = [whole_groups(state.aggregate, state.argument, state.result)(part("v"))]
        case Form.SKETCH:
            finished = [merged_sketches(state.sketch)(part("v"))]
        case Form.COUNT | Form.DISTINCT | Form.LEAST | Form.GREATEST:
            return [col(column) for column in state.columns]
    return [column.alias(name) for column, name in zip(finished, state.columns, strict=True)]


@kept
def _result(state: State, name: str) -> Column:
    return _value(state).alias(name)


def _value(state: State) -> Column:
    def part(name: str) -> Column:
        return col(state.column(name))

    average = state.averages
    match state.form:
        case Form.COUNT | Form.DISTINCT:
            return part("n")
        case Form.INTEGER_SUM if average:
            total = part("hi").cast("double") * float(2**32) + part("lo").cast("double")
            return F.when(part("n") > 0, total / 10.0**state.argument.scale / part("n"))
        case Form.INTEGER_SUM:
            return _total(part("hi"), part("lo"), state)
        case Form.DOUBLE_SUM:
            rounded = part("sum") + part("comp")
            return F.when(part("n") > 0, rounded / part("n")) if average else rounded
        case Form.SKETCH:
            return sketch_results(state.aggregate, state.result)(part("v"))
        case Form.LEAST | Form.GREATEST | Form.EARLIEST | Form.LATEST | Form.WHOLE:
            return part("v")


def _total(high: Column, low: Column, state: State) -> Column:
    """An integer sum as one number; out of range it is NULL for try_sum, else the job fails with an `EvaluationError`'s
    text.
    """
    limits = type_range(state.result)
    assert limits is not None
    least, most = (divmod(limit, 2**32) for limit in limits)
    outside = reduce(
        or_,
        [
            high < least[0],
            (high == least[0]) & (low < least[1]),
            high > most[0],
            (high == most[0]) & (low > most[1]),
        ],
    )
    if not state.fails:
        failed = F.lit(None).cast("bigint")
    else:
        message = str(sum_out_of_range(state.aggregate.name, state.result))
        failed = F.raise_error(F.lit(message)).cast("bigint")
    return F.when(outside, failed).otherwise(F.shiftleft(high, 32).bitwiseOR(low))
