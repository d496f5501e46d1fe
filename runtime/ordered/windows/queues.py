"""Rows by partition that come at the end and leave at the front."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np
import polars as pl

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.partitions.rows import up_to
from tidegate.runtime.ordered.row_arrays import PARTITION, CountArray, RowArrays, counts, longer, ranges

#: Places without a row may be so many, beside four times as many as the others.
LOOSE: Final = 4096


class RowQueues(RowArrays):
    """Rows that `splice` takes away at the front of a partition, and adds at its end.

    Each partition has room for twice as many rows as it had when it last got a place. Where as many have gone at the
    front as are left, these move back to the beginning of its room: it needs no other, and no new memory. So what a
    step costs are the rows that it adds, now and then some times as much, however many rows stay.
    """

    compact = False  # kernels read its columns as they stand

    def __init__(self, columns: Mapping[str, pl.DataType]) -> None:
        super().__init__(columns)
        #: Places of each partition before its first row.
        self._gone: Int64Array = np.zeros(0, dtype=np.int64)

    def grow(self, partitions: int) -> None:
        self._gone = longer(self._gone, partitions - len(self._gone))
        super().grow(partitions)

    def count(self, partitions: Int64Array) -> Int64Array:
        return self._count[partitions].astype(np.int64)

    def places(self, partitions: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Where the rows of each of these partitions begin in the arrays of columns, and how many it has."""
        return self._first[partitions], self.count(partitions)

    def numbers(self, column: str) -> np.ndarray[Any, Any]:
        """A column of numbers without NULLs, at all places."""
        return self._columns[column].numbers

    def values(self, column: str, at: Int64Array) -> pl.Series:
        """The values of a column at some places."""
        return self._columns[column].take(at)

    def up_to(self, partitions: Int64Array, column: str, bound: Int64Array) -> Int64Array:
        """How many rows of each partition have at most this value in a column by which its rows ascend."""
        values, first = self._columns[column].numbers, self._first[partitions]
        found: Int64Array = up_to(values, first, self.count(partitions), bound)
        return found

    def front(self, partitions: Int64Array, count: Int64Array) -> pl.DataFrame:
        """The first rows of these partitions, so many of each, with the places of the partitions."""
        return self._rows(np.repeat(np.arange(len(partitions)), count), ranges(self._first[partitions], count))

    def last(self, partitions: Int64Array) -> pl.DataFrame:
        """The last row of each of these partitions that has one."""
        some = np.flatnonzero(self._count[partitions])
        of = partitions[some]
        return self._rows(some, self._first[of] + self._count[of] - 1)

    def splice(self, partitions: Int64Array, gone: Int64Array, kept: Int64Array, rows: pl.DataFrame) -> None:
        """Of each partition the first rows are gone, the next are kept, and then come these, which are in order of the
        places of their partitions. Where there is no memory for them the same can be done again.
        """
        added = counts(rows, len(partitions))
        count = kept + added
        self._make_room(partitions, gone + count)
        first, room = self._first[partitions] + gone, self._room[partitions] - gone
        before, used = self._gone[partitions] + gone, self._used
        height = self.height + int((count - self._count[partitions]).sum())
        outgrown = np.flatnonzero(count > room)
        if len(outgrown):
            at, more = ranges(first[outgrown], kept[outgrown]), 2 * count[outgrown]
            first[outgrown], room[outgrown] = used + np.cumsum(more) - more, more
            before[outgrown] = 0
            used += int(more.sum())
            to = ranges(first[outgrown], kept[outgrown])
            for column in self._columns.values():
                column.grow(used)
                column.move(at, to)
        at = ranges(first + kept, added)
        for name, column in self._columns.items():
            column.put(at, rows.get_column(name), used)
        self._first[partitions], self._room[partitions], self._count[partitions] = first, room, count
        self._gone[partitions] = before
        self.height, self._used = height, used
        if used > 4 * height + LOOSE:
            self._pack(2 * self._count)

    def _make_room(self, partitions: Int64Array, needed: Int64Array) -> None:
        """Moves the rows of partitions that have no room for as many as needed to the beginning of it, where that
        suffices and none of their new places has one of them: were there no memory for a column, all would still be in
        their old ones. If most places would have no row once the others had other room, all are packed before.
        """
        gone, count, room = self._gone[partitions], self._count[partitions], self._room[partitions]
        lacks = needed > room
        moves_back = lacks & (needed <= room + gone) & (gone >= count)
        others = lacks & ~moves_back
        if self._used + 2 * int(needed[others].sum()) > 4 * self.height + LOOSE:
            packed = 2 * self._count
            packed[partitions[others]] = 2 * needed[others]
            self._pack(packed)
        its = partitions[moves_back]
        first = self._first[its] - self._gone[its]
        at, to = ranges(self._first[its], self._count[its]), ranges(first, self._count[its])
        for column in self._columns.values():
            column.move(at, to)
        self._first[its], self._room[its], self._gone[its] = first, self._room[its] + self._gone[its], 0

    def _pack(self, room: CountArray) -> None:
        first = self._first
        super()._pack(room)
        if self._first is not first:
            self._gone[:] = 0

    def _rows(self, of: Int64Array, at: Int64Array) -> pl.DataFrame:
        columns = (column.take(at).alias(name) for name, column in self._columns.items())
        return pl.DataFrame([pl.Series(PARTITION, of), *columns])
