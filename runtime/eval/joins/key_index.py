"""Indexes of segments by a key and an instant: which rows may have one of some keys, and lie between two instants."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import polars as pl

from tidegate.algebra.types import INT64_MAX, INT64_MIN
from tidegate.runtime.arrays import Int64Array, UInt32Array, UInt64Array
from tidegate.runtime.eval.joins.look_ups import LookUp
from tidegate.runtime.rows import Array, SmallRows, Unsupported, array_of

#: Segments of fewer rows have no index: all of their rows are taken.
INDEXED: Final = 256

#: A column, or several that are one key together.
Key: TypeAlias = str | tuple[str, ...]

_NUMBERS: Final = (pl.Int64, pl.Float64)
#: Groups and instants are combined in one number only below this.
_MOST: Final = 2**62
#: An odd number of 64 bits: a hash times it is another for each hash.
_FACTOR: Final = np.uint64(0x9E3779B97F4A7C15)


@dataclass(frozen=True, slots=True)
class LookUpKeys:
    """What is looked up: for each of some rows the hash of its key, and the least and the greatest instant of the rows
    that it can meet.
    """

    hashes: UInt64Array
    low: Int64Array
    high: Int64Array

    @classmethod
    def of(cls, keys: pl.Series, look_up: LookUp | None, column: Callable[[str], Int64Array]) -> LookUpKeys:
        """By rows with these keys, and with a column of each name that the look-up needs."""
        low, high = np.full(len(keys), INT64_MIN), np.full(len(keys), INT64_MAX)
        if look_up is not None:
            for bound in look_up.lower:
                low = np.maximum(low, _plus(column(bound.column), bound.plus))
            for bound in look_up.upper:
                high = np.minimum(high, _plus(column(bound.column), bound.plus))
        return cls(keys.hash(0).to_numpy(), low, high)

    @classmethod
    def at_any_instant(cls, frame: pl.DataFrame, key: Key) -> LookUpKeys:
        """By the key of these rows alone."""
        hashes = hashes_of(frame, key)
        return cls(hashes, np.full(len(hashes), INT64_MIN), np.full(len(hashes), INT64_MAX))


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The rows of a segment in the order of the hashes of their keys, and of an instant. NULL is a key like others.

    `places` are in order: for each of `rows` the number of its hash among the distinct `hashes`, times `width`, plus
    the distance of its instant from the `least` one. An index without instants has no least one, and no distances.
    `columns` has an array for each column of numbers without NULL: rows at a few places are taken from it at once.
    """

    hashes: UInt64Array
    rows: UInt32Array
    places: Int64Array
    least: int | None
    width: int
    columns: Mapping[str, Array]

    @classmethod
    def of(cls, frame: pl.DataFrame, key: Key, time: str | None = None) -> KeyIndex:
        """The index of a segment by a key and, if there is one without NULL, a column of instants."""
        hashes = hashes_of(frame, key)
        order = np.argsort(hashes)
        ordered = hashes[order]
        begins = np.ones(len(ordered), dtype=np.bool_)
        np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
        numbers, distinct = np.cumsum(begins) - 1, ordered[begins]
        with_instants = None if time is None else _with_instants(numbers, frame.get_column(time)[order], len(distinct))
        places, least, width = with_instants or (numbers, None, 1)
        if (places[1:] < places[:-1]).any():
            by_instant = np.argsort(places)
            order, places = order[by_instant], places[by_instant]
        plain = (c for c in frame.iter_columns() if c.dtype in _NUMBERS and not c.null_count())
        return cls(distinct, order.astype(np.uint32), places, least, width, {c.name: c.to_numpy() for c in plain})

    @property
    def bytes(self) -> int:
        """The size in memory, beside that of the segment, whose numbers are not copied."""
        return self.hashes.nbytes + self.rows.nbytes + self.places.nbytes

    def small_rows(self, frame: pl.DataFrame, rows: UInt32Array, names: Sequence[str]) -> SmallRows:
        """Rows of the segment, with these columns; `Unsupported` where they have a NULL or NaN."""
        columns = {}
        for name in names:
            known = self.columns.get(name)
            if known is None:
                columns[name] = array_of(frame.get_column(name).gather(rows))
            else:
                columns[name] = known[rows]
                if known.dtype == np.float64 and np.isnan(columns[name]).any():
                    raise Unsupported
        return SmallRows(columns, len(rows))

    def find(self, wanted: LookUpKeys) -> UInt32Array:
        """The rows that are wanted by any, in their order."""
        return self.rows_in(*self.slices(wanted))

    def slices(self, wanted: LookUpKeys) -> tuple[Int64Array, Int64Array]:
        """The begin and the end of the rows that each wants, among those of the index."""
        begin, end = np.zeros((2, len(wanted.hashes)), dtype=np.int64)
        if not len(self.hashes):
            return begin, end
        number = np.minimum(np.searchsorted(self.hashes, wanted.hashes), len(self.hashes) - 1)
        there = np.flatnonzero(self.hashes[number] == wanted.hashes)
        first = last = number[there] * self.width
        if self.least is not None:
            least, most = self.least, self.least + self.width - 1  # `np.clip` takes several times as long
            first = first + (np.minimum(np.maximum(wanted.low[there], least), most + 1) - least)
            last = last + (np.minimum(np.maximum(wanted.high[there], least - 1), most) - least)
        begin[there] = np.searchsorted(self.places, first)
        end[there] = np.searchsorted(self.places, last, side="right")
        return begin, np.maximum(begin, end)

    def rows_in(self, begin: Int64Array, end: Int64Array) -> UInt32Array:
        """The rows in any of these slices, in their order and each once."""
        order = np.argsort(begin)
        reached = np.maximum.accumulate(end[order])
        first = begin[order]
        first[1:] = np.maximum(first[1:], reached[:-1])
        rows: UInt32Array = np.sort(self.rows[listed(first, np.maximum(reached - first, 0))])
        return rows


def hashes_of(frame: pl.DataFrame, key: Key) -> UInt64Array:
    """A hash of the key of each row. NULL equals NULL, and 0.0 equals -0.0."""
    names = (key,) if isinstance(key, str) else key
    hashes, *others = (frame.get_column(name).hash(0).to_numpy() for name in names)
    for other in others:
        hashes = hashes * _FACTOR + other
    return hashes


def listed(first: Int64Array, counts: Int64Array) -> Int64Array:
    """So many numbers from each first one on."""
    before = np.cumsum(counts) - counts
    numbers: Int64Array = np.arange(counts.sum()) + np.repeat(first - before, counts)
    return numbers


def _with_instants(numbers: Int64Array, instants: pl.Series, keys: int) -> tuple[Int64Array, int, int] | None:
    """The places of rows with these numbers of keys, the least instant, and one more than the greatest distance from
    it. None without instants, and where 64 bits do not hold such places.
    """
    if instants.dtype != pl.Int64 or instants.null_count() or not len(instants):
        return None
    values = instants.to_numpy()
    least, greatest = int(values.min()), int(values.max())
    width = greatest - least + 1
    if least <= -_MOST or greatest >= _MOST or (keys + 1) * width >= _MOST:
        return None
    return numbers * width + (values - least), least, width


def _plus(values: Int64Array, by: int) -> Int64Array:
    """Values plus a constant, or where that is beyond 64 bits the last ones."""
    return np.clip(values, INT64_MIN - min(by, 0), INT64_MAX - max(by, 0)) + by


def size_of_index(rows: pl.DataFrame) -> int:
    """The size that an index of a segment has at most, in bytes: a hash, a row and a place for each row."""
    return 20 * rows.height
