"""Aggregates of what each row looks up before an instant, without a list of the pairs: one pass in order of time.

A grouping by attributes of the left side of a join needs of each left row the partial results over its partners. Where
these are adjacent rows of a group in some order, they are running partial results, or those of a few blocks of rows: n
log n for n rows, where one key of n rows has n² pairs. Partial results then merge as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property, lru_cache
from typing import Final, Literal, assert_never

import numpy as np
import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate, Form, Function
from tidegate.algebra.nodes import Group, Join, Project
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, Lit, Term, attributes_of
from tidegate.algebra.typed.operations import resolve
from tidegate.algebra.types import BIGINT
from tidegate.runtime.arrays import BoolArray, Float64Array, Int64Array
from tidegate.runtime.eval.aggregates.pairs import product_of_doubles, running_doubles
from tidegate.runtime.eval.aggregates.partials import final, lifted, merge
from tidegate.runtime.eval.aggregates.slices import different_of, doubles_of, greatest_of
from tidegate.runtime.eval.joins.bands import is_one_slice
from tidegate.runtime.eval.joins.ranges import Slices, slices_of
from tidegate.runtime.plan.aggregate_states import State, states
from tidegate.runtime.plan.join_parts import JoinParts, join_parts

#: Rows of both sides multiplied, up to which pairs are listed.
LISTED: Final = 1 << 16
_HALF: Final = 2**32
_BEST: Final = (Form.LEAST, Form.GREATEST, Form.EARLIEST, Form.LATEST)
#: High halves of integer sums below this have a sum that fits.
_MOST: Final = 2**62
#: Binary digits by which sums of doubles are smaller where one is beyond all doubles on the way: more than numbers of
#: rows have.
_SMALLER: Final = 64


class Side(Enum):
    """What an aggregate reads of a pair. Of `BOTH` one gives the argument, the other the order."""

    LEFT = "left"
    RIGHT = "right"
    BOTH = "both"


@dataclass(frozen=True)
class LookBack:
    """A grouping of a join that can be computed left row by left row. `sides` says what each aggregate reads: those
    that count rows read the left side.
    """

    group: Group
    join: Join
    parts: JoinParts
    sides: tuple[Side, ...]

    @property
    def both(self) -> Schema:
        return Schema((*self.join.left.schema.attributes, *self.join.right.schema.attributes))

    @cached_property
    def merged(self) -> Group:
        """The grouping of what left rows yield: of how many different values partners have, the most counts."""
        most = (
            replace(one, function=Function.MAX, argument=Lit(0, BIGINT)) if one.entry.form is Form.DISTINCT else one
            for one in self.group.aggregates
        )
        return Group(self.group.input, self.group.keys, tuple(most))

    @cached_property
    def of_left(self) -> Group:
        """What is needed of left rows, aggregate by aggregate."""
        return Group(self.join.left, self.group.keys, self._reading(Side.LEFT))

    @cached_property
    def of_right(self) -> Group:
        """What is needed of right rows, aggregate by aggregate."""
        return Group(self.join.right, (), self._reading(Side.RIGHT))

    def _reading(self, side: Side) -> tuple[Aggregate, ...]:
        right = set(self.join.right.schema)
        chosen: list[Aggregate] = []
        for aggregate, reads in zip(self.group.aggregates, self.sides, strict=True):
            if reads is side:
                chosen.append(aggregate)
            elif reads is Side.BOTH:
                (term,) = (term for term in _terms(aggregate) if _reads(term, right) == (side is Side.RIGHT))
                latest = term == aggregate.by and aggregate.entry.form is Form.LATEST
                chosen.append(Aggregate(aggregate.name, Function.MAX if latest else Function.MIN, term))
        return tuple(chosen)


@lru_cache(maxsize=1024)
def look_back(group: Group) -> LookBack | None:
    """The grouping as one of what each left row looks up; None where it is none."""
    join = group.input.input if isinstance(group.input, Project) else group.input
    if not isinstance(join, Join) or join.kind not in ("inner", "left"):
        return None
    parts = join_parts(join.condition, join.left.schema, join.right.schema)
    # A condition on the pair, or a range of another term, leaves partners that are not adjacent in any order.
    if parts.rest or not set(group.keys) <= set(join.left.schema):
        return None
    sides = [_side(aggregate, join) for aggregate in group.aggregates]
    found = LookBack(group, join, parts, tuple(side for side in sides if side is not None))
    return found if None not in sides and is_one_slice(parts.ranges, found.both) else None


def looks_up(group: Group) -> bool:
    """Whether a grouping is one of what each left row looks up."""
    return look_back(group) is not None


def _terms(aggregate: Aggregate) -> tuple[Term, ...]:
    return tuple(term for term in (aggregate.argument, aggregate.by) if term is not None)


def _reads(term: Term, names: set[str]) -> bool:
    """Whether a term reads these attributes, and no others."""
    return bool(attributes_of(term)) and attributes_of(term) <= names


def _side(aggregate: Aggregate, join: Join) -> Side | None:
    """What an aggregate reads; None where it cannot be computed left row by left row.

    Of padded rows an attribute is NULL and adds nothing; another term could have a value.
    """
    terms, form, right = _terms(aggregate), aggregate.entry.form, set(join.right.schema)
    if form in (Form.SKETCH, Form.WHOLE) or any(resolve(term, join.schema).fallible for term in terms):
        return None
    of_right = [term for term in terms if _reads(term, right)]
    if not all(attributes_of(term) <= set(join.left.schema) for term in terms if term not in of_right):
        return None
    if join.kind == "left" and not all(isinstance(term, Attr) for term in of_right):
        return None
    if not of_right:
        return None if form is Form.DISTINCT else Side.LEFT
    return Side.RIGHT if len(of_right) == len(terms) else Side.BOTH


def looked_back(look_back: LookBack, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame | None:
    """The result of the grouping; None where pairs are better listed, as there are few of them, or values so large that
    their sums have to be added up one by one.
    """
    if left.height * right.height <= LISTED:
        return None
    slices = slices_of(left, right, look_back.both, look_back.parts)
    if slices is None:
        return None
    rows = lifted(look_back.of_left, left)
    running = _Running(slices, lifted(look_back.of_right, slices.right), rows.select(look_back.group.keys))
    columns = {key: rows[key] for key in look_back.group.keys}
    of_left, of_right = iter(states(look_back.of_left)), iter(states(look_back.of_right))
    padded = look_back.join.kind == "left"
    times = np.maximum(slices.sizes, 1) if padded else slices.sizes
    for state, side in zip(states(look_back.merged), look_back.sides, strict=True):
        values: list[pl.Series] | None
        match side:
            case Side.RIGHT:
                values = running.states(next(of_right))
            case Side.LEFT:
                values = _weighted(next(of_left), rows, times, running.several)
            case Side.BOTH:
                own, found = rows[next(of_left).column("v")], running.best(next(of_right))[0]
                known = np.asarray(own.is_not_null() & found.is_not_null())
                found_by = state.aggregate.by is not None and _reads(state.aggregate.by, set(slices.right.columns))
                both = (found, own) if found_by else (own, found)
                values = [_where(known, column) for column in both]
            case _:
                assert_never(side)
        if values is None:
            return None
        columns |= dict(zip(state.columns, values, strict=True))
    partials = pl.DataFrame(columns)
    if look_back.merged != look_back.group and not _nested(look_back.group, rows, slices):
        return None
    if not padded:
        partials = partials.filter(pl.Series(slices.sizes > 0))
    return final(look_back.merged, merge(look_back.merged, partials))


def _nested(group: Group, rows: pl.DataFrame, slices: Slices) -> bool:
    """Whether of the left rows of each group one has all partners of the others: so it has all that are different."""
    start, stop = pl.col("\0start"), pl.col("\0stop")
    slices_alone = pl.DataFrame({"\0start": slices.start, "\0stop": slices.stop, "\0": 0})
    some = slices_alone.with_columns(rows[key] for key in group.keys).filter(start < stop)
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
