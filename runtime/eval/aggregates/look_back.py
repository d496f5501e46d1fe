"""Aggregates of what each row looks up before an instant, without a list of the pairs: one pass in order of time.

A grouping by what the rows of one side of a join have needs of each of them the partial results over its partners
(`look_back_form`). Where these are adjacent rows of a group in some order, they are running partial results, or those
of a few blocks of rows: n log n for n rows, where one key of n rows has n² pairs. Partial results then merge as ever.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, assert_never

import numpy as np
import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.nodes import Group
from tidegate.algebra.rewrites.conditions import reads_only
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term
from tidegate.runtime.arrays import BoolArray, Float64Array, Int64Array
from tidegate.runtime.eval.aggregates.look_back_form import LookBack, Side
from tidegate.runtime.eval.aggregates.pairs import product_of_doubles, running_doubles
from tidegate.runtime.eval.aggregates.partials import final, lifted, merge
from tidegate.runtime.eval.aggregates.slices import different_of, doubles_of, greatest_of
from tidegate.runtime.eval.joins import ranges
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.joins.ranges import Slices, slices_of
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.aggregate_states import State, states

#: Rows of both sides multiplied, up to which pairs are listed.
LISTED: Final = 1 << 16
#: So many times as many pairs as combinations of left rows and values there have to be, for these to be looked up.
WORTH: Final = 4
#: Rows of joins up to which it is counted how many there are.
_MOST_ROWS: Final = 2**62
_HALF: Final = 2**32
#: High halves of integer sums below this have a sum that fits.
_MOST: Final = 2**62
#: Binary digits by which sums of doubles are smaller where one is beyond all doubles on the way: more than numbers of
#: rows have.
_SMALLER: Final = 64


def looked_back(look_back: LookBack, inputs: Sequence[pl.DataFrame]) -> pl.DataFrame | None:
    """The result of the grouping, of the rows of all inputs; None where the rows of joins are better listed, as there
    are few of them, values so large that their sums have to be added up one by one, or a term that has no value for
    some row.
    """
    if math.prod(rows.height for rows in inputs) <= LISTED:
        return None
    others = [rows for place, rows in enumerate(inputs) if place != look_back.looking]
    try:
        sides = _sides(look_back, inputs[look_back.looking], others)
    except EvaluationError:  # perhaps of a row that is in no pair
        return None
    if sides is None:
        return None
    rows, looked_up = sides
    keys = rows.select(look_back.group.keys)
    running = [_Running(slices, found, keys) for found, slices in looked_up]
    times = [
        np.maximum(slices.sizes, 1) if look.padded else slices.sizes
        for look, (_, slices) in zip(look_back.looks, looked_up, strict=True)
    ]
    every = _product(times)
    if every is None:
        return None
    columns = {key: rows[key] for key in look_back.group.keys}
    of_left, of_right = iter(states(look_back.of_left)), [iter(states(group)) for group in look_back.of_right]
    for state, reads in zip(states(look_back.merged), look_back.reads, strict=True):
        values: list[pl.Series] | None
        match reads.side:
            case Side.RIGHT:
                own = next(of_right[reads.look])
                values = running[reads.look].states(own)
                if values is not None and len(times) > 1:
                    made = pl.DataFrame(dict(zip(own.columns, values, strict=True)))
                    rest = _product([one for place, one in enumerate(times) if place != reads.look])
                    values = None if rest is None else _weighted(own, made, rest, running[0].several)
            case Side.LEFT:
                values = _weighted(next(of_left), rows, every, running[0].several)
            case Side.BOTH:
                one, other = rows[next(of_left).column("v")], running[reads.look].best(next(of_right[reads.look]))[0]
                known = np.asarray(one.is_not_null() & other.is_not_null())
                by = state.aggregate.by
                found_by = by is not None and look_back.looks[reads.look].gives(by)
                values = [_where(known, column) for column in ((other, one) if found_by else (one, other))]
            case _:
                assert_never(reads.side)
        if values is None:
            return None
        columns |= dict(zip(state.columns, values, strict=True))
    some = every > 0
    for (_, slices), different in zip(looked_up, _different(look_back), strict=True):
        if different and not _nested(look_back.group, rows, slices, some):
            return None
    partials = pl.DataFrame(columns).filter(pl.Series(some))
    result = final(look_back.merged, merge(look_back.merged, partials))
    results = look_back.asked.schema.names[len(look_back.keys) :]
    return result.select(*(pl.col(column).alias(key) for key, column in look_back.keys.items()), *results)


def _product(times: Sequence[Int64Array]) -> Int64Array | None:
    """How many rows of the joins each looking row is in, given its partners on each side, or 1; None where all are more
    than can be counted.
    """
    if functools.reduce(np.multiply, (one.astype(np.float64) for one in times)).sum() >= _MOST_ROWS:
        return None
    return functools.reduce(np.multiply, times)


def _different(look_back: LookBack) -> list[bool]:
    """Of which of the sides that are looked up different values are counted."""
    counted = {
        reads.look
        for aggregate, reads in zip(look_back.group.aggregates, look_back.reads, strict=True)
        if aggregate.entry.form is Form.DISTINCT
    }
    return [number in counted for number in range(len(look_back.looks))]


def _sides(
    look_back: LookBack, left: pl.DataFrame, rights: Sequence[pl.DataFrame]
) -> tuple[pl.DataFrame, list[tuple[pl.DataFrame, Slices]]] | None:
    """The keys and states of looking rows, and of each side that is looked up its states, and which of these each
    looking row has. `EvaluationError` where a term has no value for a row, be it in a row of the joins or not.
    """
    every = look_back.schema
    for term in look_back.checked:
        side = next((right for right in rights if reads_only(right.columns)(term)), left)
        evaluated(side, compile_term(term, every))
    left = _with_values(left, look_back.added, every)
    if look_back.looks[0].found:
        beside = _beside(look_back, left, rights[0])
        if beside is None:
            return None
        left = beside
    looked_up = []
    for look, right, group in zip(look_back.looks, rights, look_back.of_right, strict=True):
        slices = slices_of(left, right, every, look.parts, always=len(rights) > 1)
        if slices is None:
            return None
        looked_up.append((lifted(group, slices.right), slices))
    return lifted(look_back.of_left, left), looked_up


def _with_values(rows: pl.DataFrame, terms: Mapping[str, Term], schema: Schema) -> pl.DataFrame:
    """Rows with further columns."""
    return rows.with_columns(compile_term(term, schema).alias(name) for name, term in terms.items()) if terms else rows


def _beside(look_back: LookBack, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame | None:
    """Each left row beside each combination of values that are found in right rows; None where these are more rows than
    are looked at in one go, or hardly fewer than pairs.
    """
    (look,) = look_back.looks
    values = _with_values(right, look.found, look_back.schema).select(list(look.found)).unique()
    beside = left.height * values.height
    if beside > ranges.CHUNK:
        return None
    slices = slices_of(left, right, look_back.schema, look.plain)
    if slices is None or beside * WORTH > int(slices.sizes.sum()):
        return None
    return left.join(values, how="cross")


def _nested(group: Group, rows: pl.DataFrame, slices: Slices, counted: BoolArray) -> bool:
    """Whether of the left rows of each group that are `counted` one has all partners of the others: so it has all that
    are different.
    """
    start, stop = pl.col("\0start"), pl.col("\0stop")
    slices_alone = pl.DataFrame({"\0start": slices.start, "\0stop": slices.stop, "\0": 0})
    some = slices_alone.with_columns(rows[key] for key in group.keys).filter(pl.Series(counted)).filter(start < stop)
    most = (stop - start).max() == stop.max() - start.min()
    return bool(some.group_by("\0", *group.keys).agg(most.alias("\0most"))["\0most"].all())


def _weighted(
    state: State, rows: pl.DataFrame, times: Int64Array, several: Callable[[], bool]
) -> list[pl.Series] | None:
    """The states over a left row's partners of an aggregate that does not read them: what is added, so many times. None
    where one is too large, and `several` left rows in a group may bring it back.
    """
    part = {name: rows[state.column(name)] for name, _ in state.parts}
    weights = pl.Series(times)
    match state.form:
        case Form.COUNT:
            return [part["n"] * weights]
        case Form.INTEGER_SUM:
            halves = np.abs(np.asarray(part["hi"].fill_null(0)))
            if (int(halves.max(initial=0)) + 1) * int(times.sum()) >= _MOST or int(times.max(initial=0)) >= _HALF // 2:
                return None
            high, low = part["hi"] * weights, part["lo"] * weights
            carry = low // _HALF
            sums = [high + carry, low - carry * _HALF]
        case Form.DOUBLE_SUM:
            values = part["sum"].fill_null(0.0).to_numpy()
            product, rest = product_of_doubles(values, times.astype(np.float64))
            if (np.isinf(product) & np.isfinite(values)).any() and several():
                return None
            lost = part["comp"].fill_null(0.0).to_numpy()
            rest += np.where(np.isfinite(lost), lost, 0.0) * times
            present = np.asarray(part["sum"].is_not_null())
            sums = [_where(present, pl.Series(column)) for column in (product, rest)]
        case _:
            return list(part.values())
    return [*sums, part["n"] * weights] if state.averages else sums


@dataclass(frozen=True, slots=True)
class _Running:
    """The states of the right rows, which of them each left row looks up, and the group of each left row."""

    slices: Slices
    rows: pl.DataFrame
    keys: pl.DataFrame

    def several(self) -> bool:
        """Whether a group has several left rows."""
        return self.keys.is_duplicated().any() if self.keys.width else len(self.slices.start) > 1

    def states(self, state: State) -> list[pl.Series] | None:
        """The states of one aggregate, for each left row; None where a sum is too large, and others of its group may
        bring it back.
        """
        match state.form:
            case Form.COUNT:
                return [pl.Series(self.total(state, "n"))]
            case Form.INTEGER_SUM:
                return self.sums(state)
            case Form.DOUBLE_SUM:
                return self.doubles(state)
            case Form.DISTINCT:
                return [pl.Series(self.different(state))]
            case _:
                return self.best(state)

    def total(self, state: State, part: str) -> Int64Array:
        """The sum of an integer part over the partners: a difference of running sums, NULL as 0."""
        return self.within(np.asarray(self.rows[state.column(part)].fill_null(0))[self.slices.order])

    def sums(self, state: State) -> list[pl.Series]:
        high, low = self.total(state, "hi"), self.total(state, "lo")
        carry = low // _HALF
        known = np.asarray(self.rows[state.column("hi")].is_not_null()).astype(np.int64)[self.slices.order]
        present = self.within(known) > 0
        sums = [_where(present, pl.Series(high + carry)), _where(present, pl.Series(low - carry * _HALF))]
        return [*sums, pl.Series(self.total(state, "n"))] if state.averages else sums

    def doubles(self, state: State) -> list[pl.Series] | None:
        """Sums of doubles over the partners. Of values some of which are infinite or NaN these alone count; of others
        only the total can be beyond all doubles.
        """
        column = self.rows[state.column("sum")][self.slices.order]
        values = column.fill_null(0.0).to_numpy()
        finite = np.isfinite(values)
        own = np.where(finite, values, 0.0)
        sums, lost = self.added(own)
        beyond, odd = ~np.isfinite(sums), self.within((~finite).astype(np.int64)) > 0
        if beyond.any():
            smaller = self.added(np.ldexp(own, -_SMALLER))
            with np.errstate(over="ignore"):
                total, rest = (np.ldexp(one, _SMALLER) for one in smaller)
            sums[beyond], lost[beyond] = total[beyond], np.where(np.isinf(total), 0.0, rest)[beyond]
            if np.isinf(sums[~odd]).any() and self.several():
                return None
        sums[odd], lost[odd] = 0.0, 0.0
        with np.errstate(invalid="ignore"):
            for which, value in ((np.isnan(values), np.nan), (values == np.inf, np.inf), (values == -np.inf, -np.inf)):
                sums[self.within(which.astype(np.int64)) > 0] += value
        present = self.within(np.asarray(column.is_not_null()).astype(np.int64)) > 0
        counts = [pl.Series(self.total(state, "n"))] if state.averages else []
        return [*(_where(present, pl.Series(one)) for one in (sums, lost)), *counts]

    def added(self, values: Float64Array) -> tuple[Float64Array, Float64Array]:
        """Sums of doubles by place over the partners, and what they lost; 0 of none. Where partners begin or end their
        group they are added up from there, as differences of running sums would lose digits.
        """
        nothing = np.zeros(len(values))
        if self.ends is None:
            return doubles_of(values, nothing, self.slices.start, self.slices.stop)
        groups, at = self.slices.groups, self.slices.stop - 1
        if self.ends == "last":
            values, groups, at = values[::-1], groups.max(initial=0) - groups[::-1], len(values) - 1 - self.slices.start
        place = np.arange(len(groups)) - np.searchsorted(groups, groups)
        some = self.slices.sizes > 0
        sums, lost = (np.zeros(len(at)) for _ in range(2))
        running, rest = running_doubles(values, nothing, place)
        sums[some], lost[some] = running[at[some]], rest[at[some]]
        return sums, lost

    def different(self, state: State) -> Int64Array:
        """How many different values the partners have."""
        values = self.rows[state.columns[0]][self.slices.order]
        places = pl.int_range(pl.len(), dtype=pl.Int64)
        alike = pl.DataFrame({"group": self.slices.groups, "value": values}).with_columns(place=places)
        next_one = self.ends == "last"
        near = alike.select(pl.col("place").shift(-1 if next_one else 1).over("group", "value").fill_null(-1))
        other, known = near.to_series().to_numpy(), values.is_not_null().to_numpy()
        if self.ends is not None:
            return self.within(((other < 0) & known).astype(np.int64))
        return different_of(np.where(known, other, len(other)), self.slices.start, self.slices.stop)

    def within(self, numbers: Int64Array) -> Int64Array:
        """The sum of numbers by place over the partners."""
        running: Int64Array = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(numbers)])
        return running[self.slices.stop] - running[self.slices.start]

    @property
    def ends(self) -> Literal["first", "last"] | None:
        """With which row of a group all slices begin or end."""
        if self.slices.from_first:
            return "first"
        return "last" if self.slices.to_last else None

    def best(self, state: State) -> list[pl.Series]:
        """The state of the best partner. Ranks grow with what is better, and from group to group, so that their running
        maximum is that of the group.
        """
        count = self.rows.height
        if not count:  # beside sides that have rows
            nothing = self.rows.clear(len(self.slices.start))
            return [nothing[column] for column in state.columns]
        ranks = self.ranks(state)
        in_order, groups, ends = ranks[self.slices.order], self.slices.groups, self.slices.stop - 1
        if self.ends is None:
            best = greatest_of(in_order, self.slices.start, self.slices.stop)
        else:
            if self.ends == "last":
                in_order, groups = in_order[::-1], groups.max(initial=0) - groups[::-1]
                ends = len(in_order) - 1 - self.slices.start
            running = np.maximum.accumulate(groups * (count + 1) + in_order)
            some = self.slices.sizes > 0
            best = np.zeros(len(ends), dtype=np.int64)
            best[some] = running[ends[some]] % (count + 1)
        row_of = np.zeros(count + 1, dtype=np.int64)
        row_of[ranks] = np.arange(count)
        present = best > 0
        return [_where(present, self.rows[column].gather(row_of[best])) for column in state.columns]

    def ranks(self, state: State) -> Int64Array:
        """A number per right row, the greater the better, from 1; 0 of rows without a value."""
        first = state.columns[0]
        columns, descending = _preference(state)
        ordered = self.rows.select(pl.arg_sort_by(columns, descending=descending, nulls_last=True)).to_series()
        known = np.asarray(self.rows[first].is_not_null())
        ranks = np.zeros(self.rows.height, dtype=np.int64)
        ranks[np.asarray(ordered)] = np.arange(self.rows.height, 0, -1)
        return np.where(known, ranks, 0)


def _preference(state: State) -> tuple[list[str], list[bool]]:
    """The columns by which the better row comes first, and which of them descend."""
    match state.form:
        case Form.LEAST:
            return [state.column("v")], [False]
        case Form.GREATEST:
            return [state.column("v")], [True]
        case Form.EARLIEST:
            return [state.column("by"), state.column("v")], [False, False]
        case _:
            return [state.column("by"), state.column("v")], [True, False]


def _where(present: BoolArray, column: pl.Series) -> pl.Series:
    """The column, with NULL where nothing is present."""
    return column if present.all() else pl.select(pl.when(pl.Series(present)).then(column)).to_series()
