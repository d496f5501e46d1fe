"""Merges states of aggregates with the compiled kernels: many rows, keys of any type but double, most aggregates.

Measured on a million rows in 100,000 groups of an integer and an instant, with count, a sum of doubles and a maximum:
see `python benchmarks/kernels.py`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import polars as pl

from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.nodes import Group
from tidegate.algebra.types import Kind
from tidegate.runtime.plan.aggregate_states import State, states

if TYPE_CHECKING:
    from tidegate.runtime.arrays import BoolArray, Float64Array, Int64Array

#: Rows from which the kernels pay although numba has to be loaded, and once it is: 11,000 then take 2 ms instead of 10.
MANY_ROWS = 20_000
MANY_ROWS_LOADED = 1000
_KERNELS = "tidegate.runtime.kernels.grouping"
#: Sums of larger doubles may pass the largest one on the way.
_LARGE = 2.0**900
_FORMS = (Form.COUNT, Form.INTEGER_SUM, Form.DOUBLE_SUM, Form.LEAST, Form.GREATEST)
_HALF = 2**32


def can_merge(group: Group) -> bool:
    """Whether the kernels support the grouping's keys and aggregates."""
    schema = group.input.schema
    return (
        bool(group.keys)
        and all(schema[key].type.kind is not Kind.DOUBLE for key in group.keys)
        and all(state.form in _FORMS and _in_numbers(state) for state in states(group))
    )


def _in_numbers(state: State) -> bool:
    """Whether what the kernels read of an argument are numbers; of what is counted it is only whether it is there."""
    return state.form is Form.COUNT or state.argument.kind not in (Kind.STRING, Kind.NULL)


def worth_compiling(rows: int, kernels: str = _KERNELS) -> bool:
    """Whether the compiled kernels merge this many rows sooner than Polars does."""
    return rows >= (min(MANY_ROWS_LOADED, MANY_ROWS) if kernels in sys.modules else MANY_ROWS)


def group_rows(group: Group, rows: pl.DataFrame) -> pl.DataFrame | None:
    """One row of states per group of rows, which have the keys and, by the names of `argument_column`, arguments. None
    where a sum of doubles could overflow.
    """
    arguments = [rows[argument_column(state)] for state in states(group) if state.form is Form.DOUBLE_SUM]
    if not all(map(_moderate, arguments)):
        return None
    grouped = _Grouped.of([rows[key] for key in group.keys])
    for state in states(group):
        grouped.columns.extend(_of_rows(state, rows, grouped))
    return pl.DataFrame(grouped.columns)


def merge_states(group: Group, rows: pl.DataFrame) -> pl.DataFrame | None:
    """Merges rows of states (keys, then states) into one row per group. None where a sum of doubles could overflow."""
    doubles = [column for state in states(group) if state.form is Form.DOUBLE_SUM for column in state.columns[:2]]
    if not all(_moderate(rows[column]) for column in doubles):
        return None
    grouped = _Grouped.of([rows[key] for key in group.keys])
    for state in states(group):
        grouped.columns.extend(_merged(state, rows, grouped))
    return pl.DataFrame(grouped.columns)


def argument_column(state: State) -> str:
    """Where the argument of an aggregate is, row by row."""
    return state.column("argument")


@dataclass(frozen=True, slots=True)
class _Grouped:
    """The number of each row's group, how many groups there are, and the columns of the result: keys, then states."""

    numbers: Int64Array
    groups: int
    columns: list[pl.Series]

    @classmethod
    def of(cls, keys: Sequence[pl.Series]) -> _Grouped:
        from tidegate.runtime.kernels.grouping import number_groups

        numbers, firsts = number_groups(_key_numbers(keys))
        return cls(numbers, len(firsts), [_at(key, firsts) for key in keys])

    def counts(self, column: pl.Series | None = None) -> Int64Array:
        """How many rows of each group have a value."""
        if column is None or not column.null_count():
            return np.bincount(self.numbers, minlength=self.groups)
        return np.bincount(self.numbers[column.is_not_null().to_numpy()], minlength=self.groups)


def _at(key: pl.Series, places: Int64Array) -> pl.Series:
    """The keys at places: NumPy takes numbers in a third of the time."""
    plain = key.dtype == pl.Int64 and not key.null_count()
    return pl.Series(key.name, key.to_numpy()[places]) if plain else key[places]


def _moderate(column: pl.Series) -> bool:
    # Of NaN alone the greatest is NaN, which is not; beside numbers it is passed over, and sums to NaN in the kernels
    # too.
    least, greatest = column.min(), column.max()
    return not isinstance(least, float) or not isinstance(greatest, float) or -_LARGE <= least <= greatest <= _LARGE


def last_of_each(rows: pl.DataFrame, keys: Sequence[str]) -> pl.DataFrame:
    """The last of the rows with equal keys, in the order of the rows. Of two million rows with two integers as keys
    Polars takes 1.1 s, and this a tenth of it.
    """
    columns = [rows.get_column(key) for key in keys]
    if any(column.dtype == pl.Float64 for column in columns) or not worth_compiling(rows.height):
        return rows.unique(keys, keep="last", maintain_order=True)
    from tidegate.runtime.kernels.grouping import number_groups

    numbers, firsts = number_groups(_key_numbers(columns))
    last = np.empty(len(firsts), dtype=np.int64)
    last[numbers] = np.arange(rows.height)
    return rows if len(last) == rows.height else rows[np.sort(last)]


def _key_numbers(keys: Sequence[pl.Series]) -> list[Int64Array]:
    """Keys as integers that are equal where the keys are. Strings get numbers of a dictionary, NULL a column of its
    own.
    """
    columns: list[Int64Array] = []
    for key in keys:
        if key.null_count():
            columns.append(key.is_not_null().to_numpy().astype(np.int64))
            key = key.fill_null(strategy="zero") if key.dtype != pl.String else key.fill_null("")
        if key.dtype == pl.String:
            columns.append(key.alias("").to_arrow().dictionary_encode().indices.to_numpy().astype(np.int64))
        else:
            columns.append(_physical(key).to_numpy())
    return columns


def _of_rows(state: State, rows: pl.DataFrame, grouped: _Grouped) -> list[pl.Series]:
    """The columns of a state, from the arguments of single rows."""
    argument = None if state.aggregate.argument is None else rows[argument_column(state)]
    if state.form is Form.COUNT:
        return [pl.Series(state.column("n"), grouped.counts(argument))]
    assert argument is not None
    match state.form:
        case Form.INTEGER_SUM:
            sums = _integer_sum(state, argument, grouped)
        case Form.DOUBLE_SUM:
            sums = _double_sum(state, [argument], grouped)
        case _:
            return [_best(state, argument, grouped)]
    return [*sums, pl.Series(state.column("n"), grouped.counts(argument))] if state.averages else sums


def _integer_sum(state: State, argument: pl.Series, grouped: _Grouped) -> list[pl.Series]:
    from tidegate.runtime.kernels.grouping import add_halves

    values, valid = _ints(argument)
    high, low = np.zeros(grouped.groups, dtype=np.int64), np.zeros(grouped.groups, dtype=np.int64)
    seen = np.zeros(grouped.groups, dtype=np.bool_)
    add_halves(grouped.numbers, values, valid, high, low, seen)
    carry = low >> 32
    parts = {"hi": high + carry, "lo": low - (carry << 32)}
    return [_where(seen, pl.Series(state.column(part), sums)) for part, sums in parts.items()]


def _merged(state: State, rows: pl.DataFrame, grouped: _Grouped) -> list[pl.Series]:
    """The columns of a state, from states."""
    match state.form:
        case Form.COUNT:
            return [_sum(rows[state.column("n")], grouped)]
        case Form.INTEGER_SUM:
            high = _sum(rows[state.column("hi")], grouped)
            low = _sum(rows[state.column("lo")], grouped)
            carry = low // _HALF
            sums = [(high + carry).alias(high.name), (low - carry * _HALF).alias(low.name)]
        case Form.DOUBLE_SUM:
            sums = _double_sum(state, [rows[state.column(part)] for part in ("sum", "comp")], grouped)
        case _:
            return [_best(state, rows[state.column("v")], grouped)]
    return [*sums, _sum(rows[state.column("n")], grouped)] if state.averages else sums


def _sum(column: pl.Series, grouped: _Grouped) -> pl.Series:
    from tidegate.runtime.kernels.grouping import add_ints

    total, seen = np.zeros(grouped.groups, dtype=np.int64), np.zeros(grouped.groups, dtype=np.bool_)
    add_ints(grouped.numbers, *_ints(column), total, seen)
    return _where(seen, pl.Series(column.name, total))


def _double_sum(state: State, addends: Sequence[pl.Series], grouped: _Grouped) -> list[pl.Series]:
    from tidegate.runtime.kernels.grouping import add_doubles

    high, low = np.zeros(grouped.groups), np.zeros(grouped.groups)
    seen = np.zeros(grouped.groups, dtype=np.bool_)
    for addend in addends:
        add_doubles(grouped.numbers, *_doubles(addend), high, low, seen)
    return [_where(seen, pl.Series(state.column(part), sums)) for part, sums in (("sum", high), ("comp", low))]


def _best(state: State, column: pl.Series, grouped: _Grouped) -> pl.Series:
    from tidegate.runtime.kernels.grouping import best_doubles, best_ints

    name, seen = state.column("v"), np.zeros(grouped.groups, dtype=np.bool_)
    greatest = state.form is Form.GREATEST
    if column.dtype == pl.Float64:
        best = np.zeros(grouped.groups)
        best_doubles(grouped.numbers, *_doubles(column), greatest, best, seen)
        return _where(seen, pl.Series(name, best))
    least = np.zeros(grouped.groups, dtype=np.int64)
    best_ints(grouped.numbers, *_ints(column), greatest, least, seen)
    return _where(seen, pl.Series(name, least).cast(column.dtype))


def _ints(column: pl.Series) -> tuple[Int64Array, BoolArray]:
    """A column as 64-bit integers, and the mask of its rows that are not NULL."""
    valid, column = _present(column)
    return np.ascontiguousarray(_physical(column).to_numpy()), valid


def _physical(column: pl.Series) -> pl.Series:
    """A column as 64-bit integers. Most are: a function of a series is a query to Polars, which takes 50 us."""
    return column if column.dtype == pl.Int64 else column.to_physical().cast(pl.Int64)


def _doubles(column: pl.Series) -> tuple[Float64Array, BoolArray]:
    valid, column = _present(column)
    return np.ascontiguousarray(column.to_numpy(), dtype=np.float64), valid


def _present(column: pl.Series) -> tuple[BoolArray, pl.Series]:
    if not column.null_count():
        return np.ones(len(column), dtype=np.bool_), column
    return np.ascontiguousarray(column.is_not_null().to_numpy()), column.fill_null(strategy="zero")


def _where(seen: BoolArray, column: pl.Series) -> pl.Series:
    """The column, with NULL for groups that have no value."""
    return column if seen.all() else pl.select(pl.when(pl.Series(seen)).then(column)).to_series().alias(column.name)
