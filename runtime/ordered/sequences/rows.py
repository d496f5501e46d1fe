"""The rows of an increment partition by partition, with what conditions and measures read of each and before it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.navigation import RowValue
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, Term, attributes_of
from tidegate.analysis.ordered.sequences.conditions import Conditions
from tidegate.runtime.arrays import BoolArray, Int64Array, UInt8Array
from tidegate.runtime.eval.terms import compile_pair, compile_term
from tidegate.runtime.kernels.partitions.rows import put_in_order, segmented
from tidegate.runtime.kernels.sequences.machine import FAILED, NULL, VALUE
from tidegate.runtime.ordered.new_events import order_of
from tidegate.runtime.ordered.row_arrays import PARTITION


class OrderedRows:
    """Rows by place: those of partition p from `offsets[p]` to `offsets[p + 1]`, the kept ones before the new ones."""

    def __init__(
        self, node: Sequences, kept: pl.DataFrame, new: pl.DataFrame, new_in: Int64Array, order: Int64Array | None,
        partitions: int,
    ) -> None:  # fmt: skip
        """`kept` has the attributes by their names, with the places of their partitions in ascending order; `order` has
        the new rows by time, None where they have to be put in order.
        """
        self.node, self.kept, self.new = node, kept, new
        kept_in = kept.get_column(PARTITION).to_numpy()
        arrived = np.arange(new.height) if order is None else order
        self.source, self.offsets, self.first_new = segmented(kept_in, new_in, arrived, partitions)
        if order is None:
            time = new.get_column(node.time).to_numpy()
            if not put_in_order(self.offsets, self.first_new, self.source, time, len(kept_in)):
                sorted_ = order_of(node.readings[0], new)
                self.source, self.offsets, self.first_new = segmented(kept_in, new_in, sorted_, partitions)
        self.known: dict[str, pl.Series] = {}
        self.as_came: dict[str, pl.Series] = {}
        self.navigations: Mapping[str, RowValue] = {n.name: n for n in node.navigations if isinstance(n, RowValue)}
        self.schema: Schema = node.condition_schema()

    @property
    def height(self) -> int:
        return len(self.source)

    @cached_property
    def time(self) -> Int64Array:
        time: Int64Array = self.raw(self.node.time).to_numpy()[self.source]
        return time

    @cached_property
    def _order(self) -> pl.Series:
        return pl.Series(self.source, dtype=pl.UInt32)

    def column(self, name: str) -> pl.Series:
        """An attribute of all rows."""
        if name not in self.known:
            self.known[name] = self.raw(name)[self._order]
        return self.known[name]

    def raw(self, name: str) -> pl.Series:
        """An attribute of the kept rows, and then of the new ones as they came."""
        if name not in self.as_came:
            new = self.new.get_column(name)
            both = new if not self.kept.height else pl.concat([self.kept.get_column(name), new], rechunk=True)
            self.as_came[name] = both
        return self.as_came[name]

    def at(self, name: str, source: Int64Array) -> pl.Series:
        """An attribute of some rows, by their numbers among the kept ones and then the new ones."""
        return taken(self.raw(name), source)

    def value(self, argument: Term) -> pl.Series:
        """A term over the attributes of each row."""
        return self._value(argument, {name: self.column(name) for name in attributes_of(argument)})

    def values_at(self, argument: Term, places: Int64Array) -> pl.Series:
        """A term over the attributes of the rows at places; NULL where the place is below 0."""
        known = known_places(np.where(places < 0, -1, self.source[places] if self.height else -1))
        if isinstance(argument, Attr):
            return self.raw(argument.name)[known]
        return self.value(argument)[known_places(places)]

    def _value(self, argument: Term, columns: Mapping[str, pl.Series]) -> pl.Series:
        if isinstance(argument, Attr):
            return columns[argument.name]
        value = compile_term(argument, self.node.input.schema).alias("value")
        if columns:
            return pl.DataFrame(dict(columns)).select(value).to_series()
        return pl.select(value).to_series().new_from_index(0, self.height)

    def near(self, navigation: RowValue) -> pl.Series:
        """What a navigation reads near each row if that is the one that it begins at."""
        if navigation.name not in self.known:
            value, step = self.value(navigation.argument), navigation.row.step
            if step:
                value = value.shift(-step).set(self._lacks(step), None)
            self.known[navigation.name] = value.alias(navigation.name)
        return self.known[navigation.name]

    def _lacks(self, step: int) -> pl.Series:
        """Whether each row has fewer behind it in its partition, or before it where that is negative."""
        lacks = np.zeros(self.height, dtype=np.bool_)
        for row in range(abs(step)):
            at = self.offsets[:-1] + row if step < 0 else self.offsets[1:] - 1 - row
            lacks[at[(at < self.offsets[1:]) & (at >= self.offsets[:-1])]] = True
        return pl.Series(lacks)

    def _frame(self, names: list[str], height: int) -> pl.DataFrame:
        """These attributes and navigations; with a row behind the others of which nothing is known where one is asked
        for.
        """
        columns = {
            name: self.near(self.navigations[name]) if name in self.navigations else self.column(name) for name in names
        }
        if height > self.height:
            columns = {name: column.extend_constant(None, 1) for name, column in columns.items()}
        return pl.DataFrame(columns)

    def satisfied(self, conditions: Sequence[Sequence[Term]]) -> Int64Array:
        """By row a mask of the variables, by their numbers, whose conditions are true that read the row and those
        before it. Those that read nothing before it are evaluated in the order in which rows came.
        """
        before, alone = dict[int, pl.Expr](), dict[int, pl.Expr]()
        read_before, read_alone = set[str](), set[str]()
        always = sum(1 << number for number, some in enumerate(conditions) if not some)
        for number, some in enumerate(conditions):
            names = {name for condition in some for name in attributes_of(condition)}
            looks_back = any(name in self.navigations and self.navigations[name].row.step for name in names)
            (read_before if looks_back else read_alone).update(names)
            if some:
                true = pl.all_horizontal(*(self._true(condition) for condition in some))
                (before if looks_back else alone)[number] = true.alias(str(number))
        satisfied = np.full(self.height, always, dtype=np.int64)
        if alone:
            frame = pl.DataFrame({name: self._raw_value(name) for name in sorted(read_alone)})
            satisfied |= _masks(frame, alone, self.height)[self.source]
        if before:
            satisfied |= _masks(self._frame(sorted(read_before), self.height), before, self.height)
        return satisfied

    def _raw_value(self, name: str) -> pl.Series:
        """What conditions read of each row alone, by name, in the order in which rows came."""
        if name not in self.navigations:
            return self.raw(name)
        argument = self.navigations[name].argument
        return self._value(argument, {read: self.raw(read) for read in attributes_of(argument)})

    def _true(self, condition: Term) -> pl.Expr:
        """Whether a condition is true; it is not where it has no value."""
        pair = compile_pair(condition, self.schema)
        true = pair.value.fill_null(value=False)
        return true if pair.error is None else true & pair.error.is_null()

    def values(self, conditions: Conditions) -> tuple[Int64Array, UInt8Array]:
        """The columns of programs, one row each, and their marks; the last place is that of no row. Doubles are there
        by their bits, texts by their place among those of all columns.
        """
        height = self.height + 1
        values = np.zeros((len(conditions.columns), height), dtype=np.int64)
        marks = np.full((len(conditions.columns), height), VALUE, dtype=np.uint8)
        columns = [self.evaluated(term, height) for term in conditions.columns]
        texts = _text_numbers([value for value, _ in columns if value.dtype == pl.String])
        for number, (value, failed) in enumerate(columns):
            if value.dtype == pl.String:
                value = next(texts)
            if value.null_count():
                marks[number, value.is_null().to_numpy()] = NULL
                value = value.fill_null(False if value.dtype == pl.Boolean else 0)
            if failed is not None:
                marks[number, failed] = FAILED
            if value.dtype == pl.Float64:
                values[number] = value.to_numpy().view(np.int64)
            else:
                values[number] = value.to_numpy()
        return values, marks

    def evaluated(self, term: Term, height: int) -> tuple[pl.Series, BoolArray | None]:
        """The values of a term over so many rows, and in which of them it has failed."""
        pair = compile_pair(term, self.schema)
        errors = () if pair.error is None else (pair.error.alias("failed"),)
        found = self._frame(sorted(attributes_of(term)), height).select(pair.value.alias("value"), *errors)
        failed = None if pair.error is None else found["failed"].is_not_null().to_numpy()
        value = found["value"]
        return (value if attributes_of(term) else value.new_from_index(0, height)), failed


def _masks(frame: pl.DataFrame, conditions: Mapping[int, pl.Expr], height: int) -> np.ndarray[Any, Any]:
    """By row a mask of the conditions that are true, by their numbers, in as few bytes as they need."""
    type_ = np.min_scalar_type(1 << max(conditions))
    if type_.itemsize == 8:
        type_ = np.dtype(np.int64)
    masks = np.zeros(height, dtype=type_)
    for number, true in zip(conditions, frame.select_seq(*conditions.values()).get_columns(), strict=True):
        masks |= true.to_numpy().astype(type_) << type_.type(number)
    return masks


def _text_numbers(columns: Sequence[pl.Series]) -> Iterator[pl.Series]:
    """Columns of texts as numbers that compare as the texts do, by code point."""
    if not columns:
        return
    texts = pl.concat(columns)
    numbers = texts.cast(pl.Enum(texts.drop_nulls().unique().sort())).to_physical().cast(pl.Int64)
    start = 0
    for column in columns:
        yield numbers.slice(start, len(column))
        start += len(column)


def taken(column: pl.Series, places: Int64Array) -> pl.Series:
    """Values of a column by their places. As `gather`, for which Polars plans and runs a query."""
    return column[pl.Series(places.astype(np.uint32))]


def known_places(places: Int64Array) -> pl.Series:
    """Places of values in a column; NULL of those below 0."""
    none = places < 0
    known = pl.Series(np.where(none, 0, places).astype(np.uint32))
    return known.set(pl.Series(none), None) if none.any() else known
