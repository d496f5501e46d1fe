"""Grouping with Polars (TSA Def. 15): whole groups, and partial results that merge.

A row is the partial result of itself, so there is one way to aggregate: `lift` rows to states, then merge states.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from functools import partial as partial_function

import polars as pl

from tidegate.algebra.evaluation import sum_out_of_range
from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.nodes import Group
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term
from tidegate.algebra.typed.terms import type_range
from tidegate.algebra.types import DataType, Kind
from tidegate.runtime.eval.aggregates import sketches
from tidegate.runtime.eval.aggregates.compiled import (
    argument_column,
    can_merge,
    group_rows,
    merge_states,
    worth_compiling,
)
from tidegate.runtime.eval.aggregates.sums import SUM_TYPE, sum_lists
from tidegate.runtime.eval.aggregates.whole import whole_groups
from tidegate.runtime.eval.columns import only, polars_type
from tidegate.runtime.eval.functions.numbers import divided
from tidegate.runtime.eval.terms import compile_term, held_type
from tidegate.runtime.plan.aggregate_states import State, require_partials, row_column, states

_HALF = 2**32
#: High halves whose totals fit every type, decimals of 18 digits too.
_SAFE = 2**27


def aggregate(group: Group, frame: pl.DataFrame) -> pl.DataFrame:
    """Aggregates the grouping's input: one row per group."""
    return final(group, _of_rows(group, frame))


def partial(group: Group, frame: pl.DataFrame, *, ordered_by: Term | None = None) -> pl.DataFrame:
    """The partial results, one per group, of the rows of the grouping's input in `frame`.

    The rows of each group are in the order of `ordered_by`, if it is given: of ties the one that comes first or last
    counts.
    """
    require_partials(group)
    return _of_rows(group, frame, ordered_by)


def merge(group: Group, partials: pl.DataFrame) -> pl.DataFrame:
    """Merges partial results of disjoint parts of the input into one row per group."""
    require_partials(group)
    states_alone = only(partials, _columns(group))
    compiled = worth_compiling(partials.height) and can_merge(group)
    merged = merge_states(group, states_alone) if compiled else None
    return _merged_by_polars(group, states_alone, None, rows=False) if merged is None else merged


def final(group: Group, partials: pl.DataFrame) -> pl.DataFrame:
    """The results of the grouping from its merged partial results."""
    return partials.select(*_results(group))


def same_zero(column: pl.Expr) -> pl.Expr:
    """Doubles with 0.0 in the place of -0.0, which equals it."""
    return pl.when(column == 0.0).then(0.0).otherwise(column)


@lru_cache(maxsize=1024)
def _results(group: Group) -> tuple[pl.Expr, ...]:
    return (*map(pl.col, group.keys), *(_result(state).alias(state.aggregate.name) for state in states(group)))


@lru_cache(maxsize=1024)
def _columns(group: Group) -> list[str]:
    return [*group.keys, *(column for state in states(group) for column in state.columns)]


def lifted(group: Group, frame: pl.DataFrame) -> pl.DataFrame:
    """Rows as partial results of one row each: keys and states."""
    evaluated, lifted = _lifting(group)
    return frame.with_columns(*evaluated).select(*lifted)


@lru_cache(maxsize=1024)
def _lifting(group: Group) -> tuple[tuple[pl.Expr, ...], tuple[pl.Expr, ...]]:
    """The terms that are evaluated once, and the keys and states that are derived from them."""
    schema = group.input.schema
    keys = [
        same_zero(pl.col(key)).alias(key) if schema[key].type.kind is Kind.DOUBLE else pl.col(key) for key in group.keys
    ]
    all_states = states(group)
    values = [expression for state in all_states for expression in _values(state, schema)]
    lifted = [expression for state in all_states for expression in _lift(state, row_column(group))]
    return (pl.lit(1, pl.Int64).alias(row_column(group)), *values), (*keys, *lifted)


def _values(state: State, schema: Schema) -> Sequence[pl.Expr]:
    """Argument and order of one aggregate, per row."""

    def value(term: Term, type_: DataType, column: str) -> pl.Expr:
        compiled = compile_term(term, schema)
        return (same_zero(compiled) if type_.kind is Kind.DOUBLE else compiled).alias(column)

    argument, by = state.aggregate.argument, state.aggregate.by
    values = [] if argument is None else [value(argument, state.argument, argument_column(state))]
    return values if by is None else [*values, value(by, state.by, state.column("order"))]


def _lift(state: State, rows: str) -> Sequence[pl.Expr]:
    """The state of a single row, part by part."""
    value, order = pl.col(argument_column(state)), pl.col(state.column("order"))
    counted = (value.is_not_null().cast(pl.Int64),) if state.averages else ()
    lifted: tuple[pl.Expr, ...]
    match state.form:
        case Form.COUNT:
            lifted = (pl.col(rows) if state.aggregate.argument is None else value.is_not_null().cast(pl.Int64),)
        case Form.DISTINCT | Form.LEAST | Form.GREATEST:
            lifted = (value,)
        case Form.WHOLE:
            lifted = (
                pl.struct(value.alias("v"), (order if state.aggregate.by is not None else pl.lit(0)).alias("by")),
            )
        case Form.SKETCH if state.aggregate.by is not None:
            texts = partial_function(sketches.counted, state.argument)
            pair = pl.struct(value.alias("v"), order.alias("by"))
            lifted = (pair.map_batches(texts, return_dtype=pl.String()),)
        case Form.SKETCH:
            places = partial_function(sketches.entries, state.sketch, state.argument)
            lifted = (value.map_batches(places, return_dtype=pl.Int64()),)
        case Form.INTEGER_SUM:
            lifted = (value // _HALF, value - value // _HALF * _HALF, *counted)
        case Form.DOUBLE_SUM:
            lifted = (value, value * 0.0, *counted)
        case Form.EARLIEST | Form.LATEST:
            both = value.is_not_null() & order.is_not_null()
            lifted = (pl.when(both).then(order), pl.when(both).then(value))
    return [expression.alias(column) for expression, column in zip(lifted, state.columns, strict=True)]


def _of_rows(group: Group, frame: pl.DataFrame, ordered_by: Term | None = None) -> pl.DataFrame:
    """One row of states per group of the rows of the grouping's input."""
    compiled = worth_compiling(frame.height) and can_merge(group)
    merged = group_rows(group, frame.select(*_arguments(group))) if compiled else None
    return _merged_by_polars(group, lifted(group, frame), ordered_by, rows=True) if merged is None else merged


@lru_cache(maxsize=1024)
def _arguments(group: Group) -> tuple[pl.Expr, ...]:
    """The keys, none of which is a double, and the arguments of the aggregates."""
    schema = group.input.schema
    return (*map(pl.col, group.keys), *(value for state in states(group) for value in _values(state, schema)))


def _merged_by_polars(group: Group, frame: pl.DataFrame, ordered_by: Term | None, *, rows: bool) -> pl.DataFrame:
    keys = list(group.keys)
    all_states = states(group)
    if not keys:  # one group of all rows, none of no rows; grouping by a literal would make one of no rows
        keys = [row_column(group)]
        frame = frame.with_columns(pl.lit(0, pl.Int8).alias(keys[0]))
    combined = [expression for state in all_states for expression in _combine(state, ordered_by, rows=rows)]
    grouped = frame.group_by(keys).agg(*combined)
    finished = [expression for state in all_states for expression in _finish(state)]
    return only(grouped.with_columns(*finished) if finished else grouped, _columns(group))


def _combine(state: State, ordered_by: Term | None, *, rows: bool) -> Sequence[pl.Expr]:
    """Aggregations over the states of one group."""

    def part(name: str) -> pl.Expr:
        return pl.col(state.column(name))

    counted = (part("n").sum(),) if state.averages else ()
    in_order = ordered_by is not None and state.aggregate.by == ordered_by
    match state.form:
        case Form.EARLIEST | Form.LATEST if in_order:
            return tuple(_end(part(name).drop_nulls(), state.form) for name in ("by", "v"))
        case Form.COUNT:
            return (part("n").sum(),)
        case Form.DISTINCT:
            return (part("n").drop_nulls().n_unique().cast(pl.Int64),)
        case Form.INTEGER_SUM:
            present = part("hi").count() > 0
            return (pl.when(present).then(part("hi").sum()), pl.when(present).then(part("lo").sum()), *counted)
        case Form.DOUBLE_SUM:
            values = part("sum") if rows else part("sum").append(part("comp"))
            return (values.drop_nulls(), *counted)
        case Form.WHOLE:
            return (part("v"),)
        case Form.SKETCH:
            return (part("v").drop_nulls(),)
        case Form.LEAST:
            return (part("v").min(),)
        case Form.GREATEST:
            return (_greatest(part("v"), state.argument),)
        case Form.EARLIEST:
            best = part("v").sort_by([part("by"), part("v")], nulls_last=True).first()
            return (part("by").min(), best)
        case Form.LATEST:
            best = part("v").sort_by([part("by"), part("v")], descending=[True, False], nulls_last=True).first()
            return (_greatest(part("by"), state.by), best)


def _end(column: pl.Expr, form: Form) -> pl.Expr:
    return column.first() if form is Form.EARLIEST else column.last()


def _greatest(column: pl.Expr, type_: DataType) -> pl.Expr:
    return column.nan_max() if type_.kind is Kind.DOUBLE else column.max()


def _finish(state: State) -> Sequence[pl.Expr]:
    """State columns that a grouping leaves unfinished."""
    match state.form:
        case Form.INTEGER_SUM:
            high, low = pl.col(state.column("hi")), pl.col(state.column("lo"))
            carry = low // _HALF
            return ((high + carry).alias(state.column("hi")), (low - carry * _HALF).alias(state.column("lo")))
        case Form.DOUBLE_SUM:
            name = state.column("sum")
            both = pl.col(name).map_batches(sum_lists, return_dtype=SUM_TYPE)
            return (both.struct.field("sum").alias(name), both.struct.field("comp").alias(state.column("comp")))
        case Form.SKETCH:
            together = partial_function(sketches.merged, state.sketch)
            return (pl.col(state.column("v")).map_batches(together, return_dtype=pl.String()),)
        case Form.WHOLE:
            values = partial_function(whole_groups, state.aggregate, state.argument, state.result)
            return (pl.col(state.column("v")).map_batches(values, return_dtype=held_type(state.result)),)
        case _:
            return ()


def _total(packed: pl.Series, *, state: State) -> pl.Series:
    """Integer sums as single numbers. Out of their type's range they are NULL for try_sum, else `EvaluationError`
    TG301.
    """
    parts = packed.struct.unnest()
    high, low = parts.to_series(0), parts.to_series(1)
    limits = type_range(state.result)
    assert limits is not None
    if bool(high.is_between(-_SAFE, _SAFE, closed="left").all()):
        return high * _HALF + low
    totals: list[int | None] = []
    for hi, lo in parts.iter_rows():
        total = None if hi is None else hi * _HALF + lo
        if total is not None and not limits[0] <= total <= limits[1]:
            if state.fails:
                raise sum_out_of_range(state.aggregate.name, state.result, total)
            total = None
        totals.append(total)
    return pl.Series(packed.name, totals, pl.Int64)


def _result(state: State) -> pl.Expr:
    def part(name: str) -> pl.Expr:
        return pl.col(state.column(name))

    type_ = polars_type(state.result)
    match state.form:
        case Form.COUNT | Form.DISTINCT:
            return part("n")
        case Form.INTEGER_SUM:
            if state.averages:
                total = part("hi").cast(pl.Float64) * float(_HALF) + part("lo").cast(pl.Float64)
                return divided(divided(total, pl.lit(10.0**state.argument.scale)), part("n").cast(pl.Float64))
            whole = pl.struct(part("hi"), part("lo"))
            return whole.map_batches(partial_function(_total, state=state), return_dtype=pl.Int64)
        case Form.DOUBLE_SUM:
            total = part("sum") + part("comp")
            return divided(total, part("n").cast(pl.Float64)) if state.averages else total
        case Form.SKETCH:
            told = partial_function(sketches.results, state.aggregate, state.result)
            return part("v").map_batches(told, return_dtype=type_)
        case Form.LEAST | Form.GREATEST | Form.EARLIEST | Form.LATEST | Form.WHOLE:
            return part("v").cast(type_)
