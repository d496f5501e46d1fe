"""Aggregates of what each row looks up before an instant, without a list of the pairs: one pass in order of time.

A grouping by attributes of the left side of a join needs of each left row the partial results over its partners. Where
these are the first or last rows of a group in some order, they are running partial results: n log n for n rows, where
one key of n rows has n² pairs. Partial results then merge as ever.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.nodes import Group, Join, Project
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Attr, attributes_of
from tidegate.algebra.typed.operations import resolve
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.aggregates.pairs import gathered, running_state
from tidegate.runtime.eval.aggregates.partials import final, lifted, merge
from tidegate.runtime.eval.joins.ranges import Slices, slices_of
from tidegate.runtime.plan.aggregate_states import State, has_partials, states
from tidegate.runtime.plan.join_parts import JoinParts, join_parts

#: Rows of both sides multiplied, up to which pairs are listed.
LISTED: Final = 1 << 16
_HALF: Final = 2**32
_BEST: Final = (Form.LEAST, Form.GREATEST, Form.EARLIEST, Form.LATEST)
_ADDED: Final = (Form.COUNT, Form.INTEGER_SUM, Form.DOUBLE_SUM)
#: High halves of integer sums below this have a sum that fits.
_MOST: Final = 2**62


@dataclass(frozen=True, slots=True)
class LookBack:
    """A grouping of a join that can be computed left row by left row. `of_right` says which aggregates read the right
    side; the others read the left side, or count rows.
    """

    group: Group
    join: Join
    parts: JoinParts
    of_right: tuple[bool, ...]

    @property
    def both(self) -> Schema:
        return Schema((*self.join.left.schema.attributes, *self.join.right.schema.attributes))


@lru_cache(maxsize=1024)
def look_back(group: Group) -> LookBack | None:
    """The grouping as one of what each left row looks up; None where it is none."""
    join = group.input.input if isinstance(group.input, Project) else group.input
    if not isinstance(join, Join) or join.kind not in ("inner", "left") or not has_partials(group):
        return None
    parts = join_parts(join.condition, join.left.schema, join.right.schema)
    # A second range, or a condition on the pair, leaves partners that are not the first or last ones of their group.
    if len(parts.ranges) > 1 or parts.rest or not set(group.keys) <= set(join.left.schema):
        return None
    sides = [_side(aggregate, state, join) for aggregate, state in zip(group.aggregates, states(group), strict=True)]
    of_right = [side for side in sides if side is not None]
    return LookBack(group, join, parts, tuple(of_right)) if len(of_right) == len(sides) else None


def _side(aggregate: Aggregate, state: State, join: Join) -> bool | None:
    """Whether an aggregate reads the right side (else the left, or none); None where it reads both, or cannot run.

    Of padded rows an attribute is NULL and adds nothing; another term could have a value.
    """
    terms = [term for term in (aggregate.argument, aggregate.by) if term is not None]
    read = frozenset(name for term in terms for name in attributes_of(term))
    schema = join.schema
    if state.form is Form.SKETCH or any(resolve(term, schema).fallible for term in terms):
        return None
    if read and read <= set(join.right.schema):
        plain = all(isinstance(term, Attr) for term in terms)
        return True if plain or join.kind == "inner" else None
    if read <= set(join.left.schema):
        return False if state.form in (*_ADDED, *_BEST) else None
    return None


def looked_back(look_back: LookBack, left: pl.DataFrame, right: pl.DataFrame) -> pl.DataFrame | None:
    """The result of the grouping; None where pairs are better listed, as there are few of them, or values of the left
    side so large that their sums have to be added up one by one.
    """
    if left.height * right.height <= LISTED:
        return None
    slices = slices_of(left, right, look_back.both, look_back.parts)
    if slices is None:
        return None
    right = slices.right
    left_group = Group(look_back.join.left, look_back.group.keys, _chosen(look_back, of_right=False))
    right_group = Group(look_back.join.right, (), _chosen(look_back, of_right=True))
    rows = lifted(left_group, left)
    running = _Running(slices, lifted(right_group, right))
    columns = {key: rows[key] for key in look_back.group.keys}
    of_left, of_right = iter(states(left_group)), iter(states(right_group))
    padded = look_back.join.kind == "left"
    for state, reads_right in zip(states(look_back.group), look_back.of_right, strict=True):
        times = np.maximum(slices.sizes, 1) if padded else slices.sizes
        values = running.states(next(of_right)) if reads_right else _weighted(next(of_left), rows, times)
        if values is None:
            return None
        columns |= dict(zip(state.columns, values, strict=True))
    partials = pl.DataFrame(columns)
    if not padded:
        partials = partials.filter(pl.Series(slices.sizes > 0))
    return final(look_back.group, merge(look_back.group, partials))


def _chosen(look_back: LookBack, *, of_right: bool) -> tuple[Aggregate, ...]:
    pairs = zip(look_back.group.aggregates, look_back.of_right, strict=True)
    return tuple(aggregate for aggregate, reads_right in pairs if reads_right == of_right)


def _weighted(state: State, rows: pl.DataFrame, times: Int64Array) -> list[pl.Series] | None:
    """The states over a left row's partners of an aggregate that does not read them: what is added, so many times."""
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
            sums = [part["sum"] * weights, (part["sum"] * 0.0).fill_nan(0.0)]
        case _:
            return list(part.values())
    return [*sums, part["n"] * weights] if state.averages else sums


@dataclass(frozen=True, slots=True)
class _Running:
    """The states of the right rows, and which of them each left row looks up."""

    slices: Slices
    rows: pl.DataFrame

    def states(self, state: State) -> list[pl.Series]:
        """The states of one aggregate, for each left row."""
        match state.form:
            case Form.COUNT:
                return [pl.Series(self.total(state, "n"))]
            case Form.INTEGER_SUM:
                return self.sums(state)
            case Form.DOUBLE_SUM:
                return self.doubles(state)
            case _:
                return self.best(state)

    def total(self, state: State, part: str) -> Int64Array:
        """The sum of an integer part over the partners: a difference of running sums, NULL as 0."""
        values = np.asarray(self.rows[state.column(part)].fill_null(0))[self.slices.order]
        running: Int64Array = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(values)])
        return running[self.slices.stop] - running[self.slices.start]

    def sums(self, state: State) -> list[pl.Series]:
        high, low = self.total(state, "hi"), self.total(state, "lo")
        carry = low // _HALF
        known = np.asarray(self.rows[state.column("hi")].is_not_null()).astype(np.int64)[self.slices.order]
        counted = np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(known)])
        present = counted[self.slices.stop] > counted[self.slices.start]
        sums = [_where(present, pl.Series(high + carry)), _where(present, pl.Series(low - carry * _HALF))]
        return [*sums, pl.Series(self.total(state, "n"))] if state.averages else sums

    def doubles(self, state: State) -> list[pl.Series]:
        """Sums of doubles over the partners, which begin or end their group: added up from there, as differences of
        running sums would lose digits.
        """
        total, lost = state.column("sum"), state.column("comp")
        rows = self.rows.with_columns((pl.col(total) * 0.0).fill_nan(0.0).alias(lost))[self.slices.order]
        groups, at = self.slices.groups, self.slices.stop - 1
        if not self.slices.from_first:
            rows, groups, at = rows.reverse(), groups.max(initial=0) - groups[::-1], rows.height - 1 - self.slices.start
        place = np.arange(len(groups)) - np.searchsorted(groups, groups)
        sums = pl.DataFrame([column.alias(name) for column, name in zip(
            running_state(state, rows, place), state.columns, strict=True
        )])  # fmt: skip
        found = gathered(sums, np.where(self.slices.sizes > 0, at, -1)).get_columns()
        return [*found[:2], *(column.fill_null(0) for column in found[2:])]

    def best(self, state: State) -> list[pl.Series]:
        """The state of the best partner. Ranks grow with what is better, and from group to group, so that their running
        maximum is that of the group.
        """
        count = self.rows.height
        ranks = self.ranks(state)
        in_order, groups, ends = ranks[self.slices.order], self.slices.groups, self.slices.stop - 1
        if not self.slices.from_first:
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
