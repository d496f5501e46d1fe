"""Band joins: the candidates of an outer row are a slice of the inner rows, which are sorted by group and value."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Call, Lit, Term
from tidegate.algebra.typed.operations import resolve, term_type
from tidegate.algebra.types import INT64_MAX, INT64_MIN, Kind
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.aggregates.compiled import worth_compiling
from tidegate.runtime.eval.joins.equality import range_terms
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.join_parts import JoinParts, Range

_KERNELS = "tidegate.runtime.kernels.band_join"
#: Ranks and groups are combined in one number only below this.
_MOST = 2**62


@dataclass(frozen=True, slots=True)
class Band:
    """The candidates of a band join: row i of the outer side has `order[start[i]:stop[i]]` of the inner side.

    `flipped`: the outer side is the join's right one. `rest`: what a candidate still has to satisfy.
    """

    order: Int64Array
    start: Int64Array
    stop: Int64Array
    flipped: bool
    rest: tuple[Term, ...]


@dataclass(frozen=True, slots=True)
class _Bound:
    """A limit of the inner values by an outer row: `>= value - offset` or `<= value - offset`, or strictly so."""

    value: Term
    strict: bool
    offset: int = 0


@dataclass(frozen=True, slots=True)
class _Search:
    """A search for inner rows whose `inner` lies between bounds of the outer row. It covers the ranges `used`."""

    inner: Term
    lower: tuple[_Bound, ...]
    upper: tuple[_Bound, ...]
    used: tuple[Range, ...]
    flipped: bool


def _searches(ranges: tuple[Range, ...], both: Schema) -> list[_Search]:
    """The possible searches by ranges. Those with both bounds come first."""
    searches: list[_Search] = []
    for flipped in (False, True):
        # `a <= b` bounds b from below where b is inner, and a from above where a is inner. `b + c` bounds b.
        inner = [_shifted(r.right if r.left_first != flipped else r.left, both) for r in ranges]
        for term in dict.fromkeys(base for base, _ in inner):
            found = [(r, offset) for r, (base, offset) in zip(ranges, inner, strict=True) if base == term]
            lower = [(r, offset) for r, offset in found if r.left_first != flipped]
            upper = [(r, offset) for r, offset in found if r.left_first == flipped]
            searches.append(
                _Search(
                    term,
                    tuple(_Bound(r.left, r.strict, offset) for r, offset in lower),
                    tuple(_Bound(r.right, r.strict, offset) for r, offset in upper),
                    tuple(r for r, _ in (*lower, *upper)),
                    flipped,
                )
            )
    return sorted(searches, key=lambda s: -(2 * bool(s.lower and s.upper) + len(s.used) / 100))


def _shifted(term: Term, both: Schema) -> tuple[Term, int]:
    """A term as another one and an integer that is added to it, where no sum of both is beyond its type."""
    match term:
        case Call("add" | "sub" as op, (base, Lit(int(offset)))) if not isinstance(base, Lit):
            type_ = term_type(term, both)
            plain = type_.kind is not Kind.DECIMAL and term_type(base, both) == type_
            if not plain or resolve(term, both).fallible:
                return term, 0
            return base, offset if op == "add" else -offset
        case _:
            return term, 0


def is_one_slice(ranges: tuple[Range, ...], both: Schema) -> bool:
    """Whether all ranges limit one term of the right side, so that the partners of a left row are a slice of it."""
    searches = _searches(ranges, both)
    return not searches or (not searches[0].flipped and len(searches[0].used) == len(ranges))


def find_bands(
    left: pl.DataFrame, right: pl.DataFrame, both: Schema, parts: JoinParts, groups: tuple[Int64Array, Int64Array]
) -> Iterator[Band]:
    searches = _searches(parts.ranges, both)
    if not searches:
        yield _band(left, right, both, None, groups, parts.rest)
    elif (best := searches[0]).lower and best.upper:
        yield _band(left, right, both, best, groups, (*parts.rest, *remaining(parts.ranges, best.used)))
    elif overlap := _overlap(parts.ranges):
        for search in overlap:
            yield _band(left, right, both, search, groups, (*parts.rest, *remaining(parts.ranges, search.used)))
    else:
        yield _band(left, right, both, best, groups, (*parts.rest, *remaining(parts.ranges, best.used)))


def remaining(ranges: tuple[Range, ...], used: tuple[Range, ...]) -> tuple[Term, ...]:
    return range_terms(tuple(r for r in ranges if r not in used))


def _overlap(ranges: tuple[Range, ...]) -> tuple[_Search, _Search] | None:
    """Two intervals that overlap, `l1 <= r1` and `r2 <= l2`: either r2 lies in [l1, l2], or l1 lies in (r2, r1].

    Every pair that satisfies both ranges is found once; of intervals that end after they start, hardly another is.
    """
    below = next((r for r in ranges if r.left_first), None)
    above = next((r for r in ranges if not r.left_first), None)
    if below is None or above is None:
        return None
    first = _Search(
        above.left, (_Bound(below.left, strict=False),), (_Bound(above.right, above.strict),), (above,), False
    )
    second = _Search(
        below.left, (_Bound(above.left, strict=True),), (_Bound(below.right, below.strict),), (below,), True
    )
    return first, second


@dataclass(frozen=True, slots=True)
class _Ranking:
    """Ranks of values, from 0 to below `count`: distances from the least, or positions among the distinct values."""

    ranks: Int64Array
    count: int
    least: int
    distinct: Int64Array | None

    @classmethod
    def of(cls, values: Int64Array, groups: int) -> _Ranking:
        """The ranking of values. `groups` times as many ranks have to fit in 64 bits."""
        least, greatest = (int(values.min()), int(values.max())) if len(values) else (0, 0)
        count = greatest - least + 1
        if groups * (count + 1) < _MOST and abs(least) < _MOST:
            return cls(values - least, count, least, None)
        distinct, ranks = np.unique(values, return_inverse=True)
        return cls(ranks, len(distinct), 0, distinct)

    def place(self, limits: Int64Array, side: Literal["left", "right"]) -> Int64Array:
        """The number of ranks below a limit; with `right` also those at it."""
        if self.distinct is not None:
            return np.searchsorted(self.distinct, limits, side)
        below = np.clip(limits, self.least - 1, self.least + self.count) - self.least
        return np.clip(below + 1 if side == "right" else below, 0, self.count)


def _band(
    left: pl.DataFrame,
    right: pl.DataFrame,
    both: Schema,
    search: _Search | None,
    groups: tuple[Int64Array, Int64Array],
    rest: tuple[Term, ...],
) -> Band:
    """Sorts the inner side by group and value, and finds every outer row's slice of it."""
    flipped = search is not None and search.flipped
    outer, inner = (right, left) if flipped else (left, right)
    outer_groups, inner_groups = groups[::-1] if flipped else groups
    if search is not None and worth_compiling(inner.height, _KERNELS):
        band = _compiled(outer, inner, both, search, outer_groups, inner_groups, rest)
        if band is not None:
            return band
    valid_outer, valid_inner = outer_groups >= 0, inner_groups >= 0
    if search is None:
        rank, ranks = np.zeros(inner.height, dtype=np.int64), 0
        low, high = np.zeros(outer.height, dtype=np.int64), np.ones(outer.height, dtype=np.int64)
    else:
        values, known = _integers(inner, search.inner, both)
        valid_inner = valid_inner & known
        ranking = _Ranking.of(values, int(max(outer_groups.max(initial=0), inner_groups.max(initial=0))) + 1)
        rank, ranks = ranking.ranks, ranking.count
        low, high = np.zeros(outer.height, dtype=np.int64), np.full(outer.height, ranks, dtype=np.int64)
        for bound in search.lower:
            limits, possible = _least(outer, bound, both)
            valid_outer = valid_outer & possible
            low = np.maximum(low, ranking.place(limits, "left"))
        for bound in search.upper:
            limits, possible = _most(outer, bound, both)
            valid_outer = valid_outer & possible
            high = np.minimum(high, ranking.place(limits, "right"))
    width = ranks + 1
    chosen = np.flatnonzero(valid_inner)
    keys = inner_groups[chosen] * width + rank[chosen]
    by_key = np.asarray(pl.Series(keys).arg_sort(), dtype=np.int64)  # several threads sort sooner than NumPy
    order, keys = chosen[by_key], keys[by_key]
    start = np.searchsorted(keys, outer_groups * width + low, "left")
    stop = np.searchsorted(keys, outer_groups * width + high, "left")
    return Band(order, start, np.where(valid_outer, stop, start), flipped, rest)


def _compiled(
    outer: pl.DataFrame,
    inner: pl.DataFrame,
    both: Schema,
    search: _Search,
    outer_groups: Int64Array,
    inner_groups: Int64Array,
    rest: tuple[Term, ...],
) -> Band | None:
    """The same band by compiled kernels. None where the inner side is too far from ascending order."""
    from tidegate.runtime.kernels.band_join import find_slices, sort_groups

    groups = int(max(outer_groups.max(initial=0), inner_groups.max(initial=0))) + 1
    values, known = _integers(inner, search.inner, both)
    rows = sort_groups(inner_groups, values, known, groups)
    if rows is None:
        return None
    valid = np.ones(outer.height, dtype=np.bool_)
    low, high = np.full(outer.height, INT64_MIN), np.full(outer.height, INT64_MAX)
    for bound in search.lower:
        limits, possible = _least(outer, bound, both)
        valid &= possible
        low = np.maximum(low, limits)
    for bound in search.upper:
        limits, possible = _most(outer, bound, both)
        valid &= possible
        high = np.minimum(high, limits)
    start, stop = find_slices(rows, outer_groups, valid, low, high)
    return Band(rows.order, start, stop, search.flipped, rest)


def _least(outer: pl.DataFrame, bound: _Bound, both: Schema) -> tuple[Int64Array, BoolArray]:
    """The least values within a lower limit, and for which rows there can be any."""
    limits, known = _integers(outer, bound.value, both)
    return _added(limits, known, int(bound.strict) - bound.offset, above=False)


def _most(outer: pl.DataFrame, bound: _Bound, both: Schema) -> tuple[Int64Array, BoolArray]:
    """The greatest values within an upper limit, and for which rows there can be any."""
    limits, known = _integers(outer, bound.value, both)
    return _added(limits, known, -int(bound.strict) - bound.offset, above=True)


def _added(limits: Int64Array, known: BoolArray, by: int, *, above: bool) -> tuple[Int64Array, BoolArray]:
    """Limits and a number. One beyond all integers limits nothing, or leaves none, as it is a limit from above or from
    below.
    """
    if not by:
        return limits, known
    beyond = limits > INT64_MAX - by if by > 0 else limits < INT64_MIN - by
    sums = np.where(beyond, INT64_MAX if by > 0 else INT64_MIN, np.where(beyond, 0, limits) + by)
    return sums, known & ~beyond if (by > 0) != above else known


def _integers(frame: pl.DataFrame, term: Term, both: Schema) -> tuple[Int64Array, BoolArray]:
    """The values of an integer term, and the mask of those that are not NULL."""
    values = evaluated(frame, compile_term(term, both)).to_series()
    return np.asarray(values.fill_null(0)), np.asarray(values.is_not_null())


def evaluated(frame: pl.DataFrame, *values: pl.Expr) -> pl.DataFrame:
    """Values for every row, as columns 0, 1, …; `select` would give one value where Polars finds a term constant."""
    names = [f"\0{i}" for i in range(len(values))]
    return frame.with_columns(value.alias(name) for value, name in zip(values, names, strict=True)).select(names)
