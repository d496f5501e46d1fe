"""Tables of an operator by partition: an increment takes out the rows of those that it looks at, whatever the others
have.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.ordered.partition_store import EVER, NO_LOOK, PartitionStore
from tidegate.runtime.ordered.state import to_merge

#: The time of the last event of a partition, beside each row that is kept of it.
LAST: Final = "~last"
#: The first column of all frames that users see: the place of a partition among those that an increment looks at.
PARTITION: Final = "partition"
#: Rows that are out of date may be so many, beside twice as many as the others.
LOOSE: Final = 4096


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


@dataclass(frozen=True, slots=True)
class TablesExtract:
    """The rows of some partitions, table by table in order of PARTITION, which says their places in `partitions`.

    `last` has the time of the last event of each, -EVER where there was none.
    """

    partitions: Int64Array
    tables: Mapping[str, pl.DataFrame]
    look: Int64Array
    last: Int64Array
    version: int = 0

    def has_rows(self, name: str) -> BoolArray:
        """Which partitions have rows in that table."""
        return counts(self.tables[name], len(self.partitions)) > 0


class PartitionTables(PartitionStore[TablesExtract]):
    """All tables of an operator. A partition that has rows is looked at when the first instant in `wakes`, a table and
    a column of it, is reached, when its last event is `kept_for` ticks ago, and at the end.
    """

    def __init__(
        self,
        keys: Schema,
        columns: Mapping[str, Mapping[str, pl.DataType]],
        wakes: tuple[str, str] | None,
        kept_for: int | None = None,
    ) -> None:
        super().__init__(keys)
        self.tables = {name: PartitionRows(own) for name, own in columns.items()}
        self.columns, self.kept_for, self._wakes = columns, kept_for, wakes
        self._last = np.empty(0, dtype=np.int64)

    def emptied(self) -> PartitionTables:
        return PartitionTables(self.partitions.schema, self.columns, self._wakes, self.kept_for)

    def extract(self, partitions: Int64Array) -> TablesExtract:
        tables = {name: table.take(partitions) for name, table in self.tables.items()}
        return TablesExtract(partitions, tables, self._look[partitions], self._last[partitions], self.version)

    def after(self, before: TablesExtract, tables: Mapping[str, pl.DataFrame], last: Int64Array) -> TablesExtract:
        """These rows instead of those of the extract, of partitions that had their `last` events then."""
        partitions = before.partitions
        found = TablesExtract(
            partitions,
            {name: rows.sort(PARTITION, maintain_order=True) for name, rows in tables.items()},
            before.look,
            last,
        )
        look = np.full(len(partitions), NO_LOOK)
        for name in tables:
            look[found.has_rows(name)] = EVER
        if self._wakes is not None:
            name, column = self._wakes
            first = tables[name].group_by(PARTITION).agg(pl.col(column).min()).drop_nulls()
            look[first.get_column(PARTITION).to_numpy()] = np.minimum(first.get_column(column).to_numpy(), EVER)
        if self.kept_for is not None:
            look = np.where(look == NO_LOOK, NO_LOOK, np.minimum(look, last + self.kept_for))
        return replace(found, look=look)

    def rows(self, extract: TablesExtract) -> dict[str, pl.DataFrame]:
        """The rows of the extract, with the keys of their partitions, as they are kept."""
        found = {}
        for name, rows in extract.tables.items():
            places = rows.get_column(PARTITION).to_numpy()
            parts = [self.partitions.kept(extract.partitions[places]), rows.drop(PARTITION)]
            if self.kept_for is not None:
                parts.append(pl.DataFrame({LAST: extract.last[places]}))
            found[name] = pl.concat(parts, how="horizontal")
        return found

    def hold(self, extract: TablesExtract) -> BoolArray:
        is_held = np.zeros(len(extract.partitions), dtype=np.bool_)
        self._last[extract.partitions] = extract.last
        for name, table in self.tables.items():
            table.put(extract.partitions, extract.tables[name])
            is_held |= extract.has_rows(name)
        return is_held

    def room(self, partitions: int) -> None:
        self._last = np.concatenate([self._last, np.full(partitions - len(self._last), -EVER)])
        for table in self.tables.values():
            table.grow(partitions)


def counts(rows: pl.DataFrame, partitions: int) -> Int64Array:
    """How many rows each partition has."""
    return np.bincount(rows.get_column(PARTITION).to_numpy(), minlength=partitions).astype(np.int64, copy=False)
