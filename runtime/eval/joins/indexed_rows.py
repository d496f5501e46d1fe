"""Rows of segments that are looked up for the rows of another leaf: all that these can meet, or those that decide."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import BoolArray, Int64Array, UInt32Array
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.joins.key_index import KeyIndex, LookUpKeys, listed
from tidegate.runtime.eval.joins.look_ups import Decider
from tidegate.runtime.eval.small.increment import small_mask
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.rows import Rows, SmallRows, Unsupported, are_few, are_few_pairs, as_frame, no_rows, stacked

#: How often a left row of a semi- or anti-join is compared with candidates. One without a partner then takes the rest.
ROUNDS: Final = 3
#: The candidates of a left row in the second round; in the third they are its square.
_GROWTH: Final = 16

#: The mask of pairs, left rows and rows of a segment by their numbers, for which a condition holds.
_Holds = Callable[[Int64Array, UInt32Array], BoolArray]


@dataclass(frozen=True, slots=True)
class IndexedRows:
    """The rows of a segment with their index; without one all of them are taken."""

    rows: Rows
    index: KeyIndex | None


@dataclass(slots=True)
class Deciding:
    """A semi- or anti-join, the rows of its left side that can have a partner, and those that have not got one yet."""

    decider: Decider
    left: Rows
    undecided: BoolArray

    @classmethod
    def of(cls, decider: Decider, left: Rows) -> Deciding:
        return cls(decider, left, np.ones(left.height, dtype=np.bool_))

    def rows(self, frame: pl.DataFrame, index: KeyIndex, wanted: LookUpKeys) -> UInt32Array:
        """Rows of a segment: one partner of each left row that has any, and those with which none was compared.

        No more candidates than left rows are taken as they are: to compare them would cost more.
        """
        if not self.undecided.any():
            return index.rows[:0]
        begin, end = index.slices(wanted)
        end = np.where(self.undecided, end, begin)
        if (end - begin).sum() <= len(begin):
            return index.rows_in(begin, end)
        holds = self._small(frame, index) if isinstance(self.left, SmallRows) else self._large(frame, self.left)
        partnered: list[UInt32Array] = []
        for number in range(ROUNDS):
            left = np.flatnonzero(end > begin)
            counts = np.minimum(end[left] - begin[left], _GROWTH**number)
            if not len(left) or not are_few_pairs(counts.sum()):
                break
            lefts, rows = np.repeat(left, counts), index.rows[listed(begin[left], counts)]
            partners = np.flatnonzero(holds(lefts, rows))
            decided, firsts = np.unique(lefts[partners], return_index=True)
            partnered.append(rows[partners[firsts]])
            self.undecided[decided] = False
            begin[left] += counts
            end = np.where(self.undecided, end, begin)
        return np.unique(np.concatenate([*partnered, index.rows_in(begin, end)]))

    def _small(self, frame: pl.DataFrame, index: KeyIndex) -> _Holds:
        """By NumPy; `Unsupported` for a condition that only Polars supports."""
        decider, left = self.decider, self.left
        mask = small_mask(decider.condition, decider.both)
        assert isinstance(left, SmallRows)
        ones = {name: left.columns[column] for name, column in decider.left}
        columns = [column for _, column in decider.right]

        def holds(lefts: Int64Array, rows: UInt32Array) -> BoolArray:
            candidates = index.small_rows(frame, rows, columns).columns
            pairs = {name: column[lefts] for name, column in ones.items()}
            pairs |= {name: candidates[column] for name, column in decider.right}
            return mask(SmallRows(pairs, len(rows)))

        return holds

    def _large(self, frame: pl.DataFrame, left: pl.DataFrame) -> _Holds:
        """By Polars."""
        condition = compile_term(self.decider.condition, self.decider.both).fill_null(value=False)
        ones = left.select(pl.col(column).alias(name) for name, column in self.decider.left)
        others = frame.select(pl.col(column).alias(name) for name, column in self.decider.right)

        def holds(lefts: Int64Array, rows: UInt32Array) -> BoolArray:
            pairs = pl.concat([ones[lefts], others[rows]], how="horizontal")
            return np.asarray(evaluated(pairs, condition).to_series())

        return holds


def wanted_rows(
    segments: Sequence[IndexedRows],
    wanted: LookUpKeys,
    deciding: Deciding | None,
    stored: Schema,
    names: Sequence[str],
) -> SmallRows:
    """The rows that are wanted, of all segments, with these columns; `Unsupported` where they are too many."""
    parts, total = [no_rows(stored).only(names)], 0
    for segment in segments:
        rows, index = segment.rows, segment.index
        numbers = None if index is None else _found(as_frame(rows), index, wanted, deciding)
        total += rows.height if numbers is None else len(numbers)
        if not are_few(total):
            raise Unsupported
        if index is not None and numbers is not None:
            parts.append(index.small_rows(as_frame(rows), numbers, names))
        else:
            parts.append(rows.only(names) if isinstance(rows, SmallRows) else SmallRows.of(rows.select(names)))
    return stacked(parts)


def wanted_frame(segments: Sequence[IndexedRows], wanted: LookUpKeys, deciding: Deciding | None) -> list[pl.DataFrame]:
    """The rows that are wanted, of each segment, as frames."""
    parts = []
    for segment in segments:
        frame, index = as_frame(segment.rows), segment.index
        parts.append(frame if index is None else frame[_found(frame, index, wanted, deciding)])
    return parts


def _found(frame: pl.DataFrame, index: KeyIndex, wanted: LookUpKeys, deciding: Deciding | None) -> UInt32Array:
    return index.find(wanted) if deciding is None else deciding.rows(frame, index, wanted)
