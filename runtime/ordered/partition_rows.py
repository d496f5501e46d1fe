"""Rows of one table by partition: an increment takes out those of the partitions that it looks at, whatever the others
have.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.ordered.partitions import key_columns
from tidegate.runtime.ordered.state import to_merge
from tidegate.runtime.ordered.state_tables import StateTable

#: The first column of taken rows: the place of a partition among those that an increment looks at.
PARTITION: Final = "partition"
#: Rows that are out of date may be so many, beside twice as many as the others.
LOOSE: Final = 4096
#: Of a stored row: whether it says that its partition has none.
NONE: Final = "~none"


class PartitionRows:
    """The rows of one table: those of partition p are `_count[p]` in succession from `_first[p]` on, counted through
    all pieces.

    What is put is a new piece; small pieces become one, and all are packed once most rows are out of date. So putting
    costs what is put, and now and then some times as much.
    """

    def __init__(self, columns: Mapping[str, pl.DataType]) -> None:
        self.height = 0
        self._count, self._first = (np.zeros(0, dtype=np.int64) for _ in range(2))
        self._none = pl.DataFrame(schema=dict(columns))
        self._pieces: list[pl.DataFrame] = []

    @property
    def stored(self) -> int:
        """Rows of all pieces, out of date or not."""
        return sum(piece.height for piece in self._pieces)

    def grow(self, partitions: int) -> None:
        more = np.zeros(partitions - len(self._count), dtype=np.int64)
        self._count, self._first = np.concatenate([self._count, more]), np.concatenate([self._first, more])

    def take(self, partitions: Int64Array) -> pl.DataFrame:
        """The rows of these partitions, in their order, with the places of the partitions. They stay here, too."""
        count = self._count[partitions]
        at = np.repeat(self._first[partitions] - (np.cumsum(count) - count), count) + np.arange(int(count.sum()))
        return self._at(at).insert_column(0, pl.Series(PARTITION, np.repeat(np.arange(len(partitions)), count)))

    def put(self, partitions: Int64Array, rows: pl.DataFrame) -> None:
        """From now on these partitions have these rows, which are in order of the places of their partitions, and no
        others.
        """
        count = counts(rows, len(partitions))
        used = self.stored
        self.height += rows.height - int(self._count[partitions].sum())
        self._count[partitions], self._first[partitions] = count, used + np.cumsum(count) - count
        if rows.height:
            self._pieces.append(rows.drop(PARTITION))
        if used + rows.height > 3 * self.height + LOOSE:
            self._pieces = [self.take(np.arange(len(self._count))).drop(PARTITION)]
            self._first = np.cumsum(self._count) - self._count
        elif (merged := to_merge([piece.height for piece in self._pieces])) > 1:
            self._pieces[-merged:] = [pl.concat(self._pieces[-merged:], rechunk=True)]

    def _at(self, places: Int64Array) -> pl.DataFrame:
        """The rows of these places, piece by piece, and then in the order of the places."""
        ends = np.cumsum([piece.height for piece in self._pieces])
        piece = np.searchsorted(ends, places, side="right")
        order = np.argsort(piece, kind="stable")
        found = [self._none]
        for number in np.unique(piece):
            own = places[piece == number] - (ends[number] - self._pieces[number].height)
            found.append(self._pieces[number][own])
        return pl.concat(found, rechunk=True)[np.argsort(order)]


def counts(rows: pl.DataFrame, partitions: int) -> Int64Array:
    """How many rows each partition has."""
    return np.bincount(rows.get_column(PARTITION).to_numpy(), minlength=partitions).astype(np.int64, copy=False)


def row_table(keys: Schema, columns: Mapping[str, pl.DataType], possible: pl.Expr | None = None) -> StateTable:
    """The description of a table of such rows as they are stored."""
    its = key_columns(keys)
    return StateTable(
        pl.Schema({**its, **columns, NONE: pl.Boolean()}),
        "partition",
        len(its),
        empty=pl.col(NONE),
        needed=(NONE,),
        possible=pl.lit(value=True) if possible is None else possible,
    )


def marked(rows: pl.DataFrame, *, none: bool) -> pl.DataFrame:
    """Rows as they are stored; `none`: each says that its partition has no rows."""
    return rows.with_columns(pl.lit(value=none).alias(NONE))
