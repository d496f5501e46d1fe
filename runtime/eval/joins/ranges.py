"""Joins by ranges, with or without equal keys, and by any other condition. Polars has no good plan for these.

Measured with Polars 2.1, 200,000 rows a side, an interval containing an instant: `join_where` took 19 s with ten equal
keys and 196 s without, the sorted search below 0.11 s and 0.43 s.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
import polars as pl

from tidegate.algebra.nodes import JoinKind
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term, attributes_of, conjunction
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.joins.bands import Band, evaluated, find_bands, remaining
from tidegate.runtime.eval.joins.equality import hash_keys, join_product
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.join_parts import Equality, JoinParts

#: Pairs of rows looked at in one go: what a join holds beyond its inputs and its result.
CHUNK = 1 << 21
#: Pairs of rows, of both sides, up to which a join lists all pairs with equal keys.
SMALL_PRODUCT = 1 << 16
#: Pairs up to which the rows of a join are made in one go.
MANY_PAIRS = 10**8
#: Pairs with equal keys per row up to which they are listed (200,000 rows a side, 100,000 keys: 85 ms, 530 ms by
#: search).
PAIRS_PER_ROW = 4


#: Hears how many pairs are about to be compared.
Announce = Callable[[int], None]


def join_frames(
    left: pl.DataFrame, right: pl.DataFrame, both: Schema, parts: JoinParts, kind: JoinKind
) -> pl.DataFrame:
    """The join of two frames by the parts of its condition. The columns of the left side come first."""
    return whole(join_pieces(left, right, both, parts, kind))


def whole(pieces: Iterator[pl.DataFrame]) -> pl.DataFrame:
    """All pieces, of which there is one at least, as one frame."""
    some = list(pieces)
    return some[0] if len(some) == 1 else pl.concat(some)


def reduced(pieces: Iterator[pl.DataFrame], reduce: Callable[[pl.DataFrame], pl.DataFrame]) -> pl.DataFrame:
    """All pieces, reduced together whenever they have twice as many rows as those before were reduced to."""
    waiting = [next(pieces)]
    left = 0
    for rows in pieces:
        waiting.append(rows)
        if sum(part.height for part in waiting) >= max(2 * left, CHUNK):
            waiting = [reduce(pl.concat(waiting))]
            left = waiting[0].height
    return waiting[0] if len(waiting) == 1 else reduce(pl.concat(waiting))


def join_pieces(
    left: pl.DataFrame,
    right: pl.DataFrame,
    both: Schema,
    parts: JoinParts,
    kind: JoinKind,
    announce: Announce | None = None,
) -> Iterator[pl.DataFrame]:
    """The rows of the join in one piece or several, each of as many pairs as are looked at in one go."""
    if left.height * right.height <= SMALL_PRODUCT:
        yield join_product(left, right, both, parts, kind)
        return
    if kind == "inner" and parts.left:
        left = left.filter(compile_term(conjunction(parts.left), both))
    if parts.right:
        right = right.filter(compile_term(conjunction(parts.right), both))
    pairs = _Pairs.of(left, right, both, parts)
    if announce is not None and (pairs.lists or kind in ("inner", "left")):
        announce(pairs.count)
    if kind == "inner":
        found = False
        for lefts, rights in pairs.matches():
            found = True
            yield _pasted(left, right, lefts, rights)
        if not found:
            yield _pasted(left, right, *_nothing())
        return
    eligible = np.ones(left.height, dtype=np.bool_)
    if parts.left:
        condition = compile_term(conjunction(parts.left), both)
        eligible = _true(left, condition)
    if kind == "left":
        matched = np.zeros(left.height, dtype=np.bool_)
        for lefts, rights in pairs.matches():
            kept = eligible[lefts]
            matched[lefts[kept]] = True
            yield _pasted(left, right, lefts[kept], rights[kept])
        yield left.filter(pl.Series(~matched)).with_columns(pl.lit(None, t).alias(c) for c, t in right.schema.items())
        return
    partnered = pairs.partnered() & eligible
    yield left.filter(pl.Series(partnered if kind == "semi" else ~partnered))


def equal_pairs(left: pl.DataFrame, right: pl.DataFrame, both: Schema, parts: JoinParts) -> int:
    """How many pairs of rows have equal keys."""
    return _equal_groups(*_groups(left.height, right.height, *_keys(left, right, both, parts.equalities)))


def _true(frame: pl.DataFrame, condition: pl.Expr) -> BoolArray:
    """The mask of rows for which a condition is true."""
    return np.asarray(evaluated(frame, condition.fill_null(value=False)).to_series())


def _pasted(left: pl.DataFrame, right: pl.DataFrame, left_rows: Int64Array, right_rows: Int64Array) -> pl.DataFrame:
    return pl.concat([left[left_rows], right[right_rows]], how="horizontal")


def _nothing() -> tuple[Int64Array, Int64Array]:
    return np.empty(0, dtype=np.int64), np.empty(0, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The candidate pairs of two frames: disjoint bands, or all pairs with equal keys as a list."""

    left: pl.DataFrame
    right: pl.DataFrame
    both: Schema
    bands: tuple[Band, ...]
    listed: tuple[Int64Array, Int64Array]
    rest: tuple[Term, ...] = ()

    @classmethod
    def of(cls, left: pl.DataFrame, right: pl.DataFrame, both: Schema, parts: JoinParts) -> _Pairs:
        ones, others = _keys(left, right, both, parts.equalities)
        groups = _groups(left.height, right.height, ones, others)
        if parts.equalities and _few_pairs(*groups):
            return cls(left, right, both, (), _equal(ones, others), (*parts.rest, *remaining(parts.ranges, ())))
        return cls(left, right, both, tuple(find_bands(left, right, both, parts, groups)), _nothing())

    @property
    def count(self) -> int:
        """How many pairs there are."""
        return len(self.listed[0]) + sum(int(np.maximum(band.stop - band.start, 0).sum()) for band in self.bands)

    @property
    def lists(self) -> bool:
        """Whether pairs are looked at one by one, even to learn which left rows are in some."""
        return any(band.rest or band.flipped for band in self.bands)

    def matches(self) -> Iterator[tuple[Int64Array, Int64Array]]:
        """The row numbers (left, right) of all pairs that satisfy the condition, in pieces."""
        yield from self._satisfying(*self.listed, self.rest)
        for band in self.bands:
            for outer, inner in _expanded(band):
                yield from self._satisfying(*((inner, outer) if band.flipped else (outer, inner)), band.rest)

    def _satisfying(
        self, left_rows: Int64Array, right_rows: Int64Array, rest: tuple[Term, ...]
    ) -> Iterator[tuple[Int64Array, Int64Array]]:
        if rest and len(left_rows):
            holds = self._holds(left_rows, right_rows, rest)
            left_rows, right_rows = left_rows[holds], right_rows[holds]
        if len(left_rows):
            yield left_rows, right_rows

    def partnered(self) -> BoolArray:
        """The mask of left rows that are in some pair."""
        if self.bands and not self.lists:
            return np.asarray(np.logical_or.reduce([band.stop > band.start for band in self.bands]))
        partnered = np.zeros(self.left.height, dtype=np.bool_)
        for rows, _ in self.matches():
            partnered[rows] = True
        return partnered

    def _holds(self, left_rows: Int64Array, right_rows: Int64Array, rest: tuple[Term, ...]) -> BoolArray:
        condition = conjunction(rest)
        names = attributes_of(condition)
        sides = ((self.left, left_rows), (self.right, right_rows))
        # A frame without columns has no rows either.
        parts = [side.select(read)[rows] for side, rows in sides if (read := [c for c in side.columns if c in names])]
        pairs = pl.concat(parts, how="horizontal") if parts else pl.DataFrame({"": left_rows})
        return _true(pairs, compile_term(condition, self.both))


def _expanded(band: Band) -> Iterator[tuple[Int64Array, Int64Array]]:
    """The row numbers (outer, inner) of a band's candidates: at most CHUNK pairs at a time, or those of one outer
    row.
    """
    counts = np.maximum(band.stop - band.start, 0)
    rows = np.flatnonzero(counts)
    ends = np.cumsum(counts[rows])
    first = 0
    while first < len(rows):
        done = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, done + CHUNK, "right")))
        piece = rows[first:last]
        sizes = counts[piece]
        outer = np.repeat(piece, sizes)
        offsets = np.arange(len(outer)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        yield outer, band.order[np.repeat(band.start[piece], sizes) + offsets]
        first = last


def _keys(
    left: pl.DataFrame, right: pl.DataFrame, both: Schema, equalities: tuple[Equality, ...]
) -> tuple[pl.DataFrame, pl.DataFrame]:
    """The keys of both sides, with row numbers as column `row`. Right rows with a NULL that equals nothing are left
    out.
    """
    keys = hash_keys(equalities, both)
    ones = evaluated(left, *(key.left for key in keys))
    others = evaluated(right, *(key.right for key in keys)).with_row_index("row")
    for key, name in zip(keys, ones.columns, strict=True):
        if not key.null_safe:
            others = others.filter(pl.col(name).is_not_null())
    return ones.with_row_index("row"), others


def _few_pairs(lefts: Int64Array, rights: Int64Array) -> bool:
    """Whether there are at most `PAIRS_PER_ROW` pairs of equal groups per row. Else ranges have to narrow them down."""
    return _equal_groups(lefts, rights) <= PAIRS_PER_ROW * (len(lefts) + len(rights))


def _equal_groups(lefts: Int64Array, rights: Int64Array) -> int:
    """How many pairs of rows are of one group, given the group of each row."""
    counts = np.bincount(rights[rights >= 0], minlength=int(lefts.max(initial=0)) + 1)
    return int(counts[lefts[lefts >= 0]].sum())


def _equal(lefts: pl.DataFrame, rights: pl.DataFrame) -> tuple[Int64Array, Int64Array]:
    """Row numbers (left, right) of all pairs with equal keys."""
    names = [name for name in lefts.columns if name != "row"]
    pairs = lefts.join(rights, on=names, nulls_equal=True, suffix=" right")
    numbers = pairs.select(pl.col("row", "row right").cast(pl.Int64))
    return np.asarray(numbers["row"]), np.asarray(numbers["row right"])


def _groups(left: int, right: int, lefts: pl.DataFrame, rights: pl.DataFrame) -> tuple[Int64Array, Int64Array]:
    """A number per row, equal for rows with equal keys; -1 for a row that cannot have a partner."""
    names = [name for name in lefts.columns if name != "row"]
    if not names:
        return np.zeros(left, dtype=np.int64), np.zeros(right, dtype=np.int64)
    if len(names) == 1 and (numbers := _dense(lefts[names[0]], rights[names[0]])) and rights.height == right:
        return numbers
    known = rights.select(names).unique().with_row_index("group")
    numbers_per_side = []
    for count, keys in ((left, lefts), (right, rights)):
        members = keys.join(known, on=names, nulls_equal=True).select("row", pl.col("group").cast(pl.Int64))
        by_row = np.full(count, -1, dtype=np.int64)
        by_row[np.asarray(members["row"])] = np.asarray(members["group"])
        numbers_per_side.append(by_row)
    return numbers_per_side[0], numbers_per_side[1]


def _dense(left: pl.Series, right: pl.Series) -> tuple[Int64Array, Int64Array] | None:
    """Integer keys without NULL as their own numbers, where they lie close together."""
    if left.dtype != pl.Int64 or left.null_count() or right.null_count() or not len(left) or not len(right):
        return None
    keys = np.asarray(left), np.asarray(right)
    least, greatest = int(min(k.min() for k in keys)), int(max(k.max() for k in keys))
    if greatest - least > 4 * (len(left) + len(right)):
        return None
    return keys[0] - least, keys[1] - least


@dataclass(frozen=True, slots=True, eq=False)
class Slices:
    """The partners of each left row as a slice of the right rows: `order[start[i]:stop[i]]`, within one group.

    `groups` ascends: the group of the row at each place. `from_first`: slices begin where their group does; `to_last`:
    they end there. `right` holds the right rows that can be partners at all.
    """

    right: pl.DataFrame
    order: Int64Array
    groups: Int64Array
    start: Int64Array
    stop: Int64Array
    from_first: bool
    to_last: bool

    @property
    def sizes(self) -> Int64Array:
        """How many partners each left row has."""
        return self.stop - self.start


def slices_of(
    left: pl.DataFrame, right: pl.DataFrame, both: Schema, parts: JoinParts, *, always: bool = False
) -> Slices | None:
    """The partners by equal keys and ranges that limit one term; None where there are few pairs with equal keys, unless
    they are wanted `always`.
    """
    if parts.right:
        right = right.filter(compile_term(conjunction(parts.right), both))
    groups = _groups(left.height, right.height, *_keys(left, right, both, parts.equalities))
    if not always and _few_pairs(*groups):
        return None
    band, *others = find_bands(left, right, both, parts, groups)
    if others or band.flipped or band.rest:
        return None
    start, stop = band.start, np.maximum(band.start, band.stop)
    if parts.left:
        stop = np.where(_true(left, compile_term(conjunction(parts.left), both)), stop, start)
    from_first, to_last = (not any(limit.left_first == below for limit in parts.ranges) for below in (True, False))
    return Slices(right, band.order, groups[1][band.order], start, stop, from_first, to_last)
