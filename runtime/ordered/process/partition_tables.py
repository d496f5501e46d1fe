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
from tidegate.runtime.ordered.partition_store import EVER, NO_LOOK
from tidegate.runtime.ordered.row_arrays import PARTITION, RowArrays, counts
from tidegate.runtime.ordered.row_operator import RowStore

#: The time of the last event of a partition, beside each row that is kept of it.
LAST: Final = "~last"


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


class PartitionTables(RowStore[TablesExtract]):
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
        self.tables = {name: RowArrays(types) for name, types in columns.items()}
        self.columns, self.kept_for, self._wakes = columns, kept_for, wakes
        self._last = np.empty(0, dtype=np.int64)

    def emptied(self) -> PartitionTables:
        return PartitionTables(self.partitions.schema, self.columns, self._wakes, self.kept_for)

    def extract(self, partitions: Int64Array) -> TablesExtract:
        tables = {name: table.take(partitions) for name, table in self.tables.items()}
        return TablesExtract(partitions, tables, self.look(partitions), self._last[partitions], self.version)

    def after(self, before: TablesExtract, tables: Mapping[str, pl.DataFrame], last: Int64Array) -> TablesExtract:
        """These rows instead of those of the extract, of partitions that had their `last` events then."""
        partitions = before.partitions
        extract = TablesExtract(
            partitions,
            {name: rows.sort(PARTITION, maintain_order=True) for name, rows in tables.items()},
            before.look,
            last,
        )
        look = np.full(len(partitions), NO_LOOK)
        for name in tables:
            look[extract.has_rows(name)] = EVER
        if self._wakes is not None:
            name, column = self._wakes
            first = tables[name].group_by(PARTITION).agg(pl.col(column).min()).drop_nulls()
            look[first.get_column(PARTITION).to_numpy()] = np.minimum(first.get_column(column).to_numpy(), EVER)
        if self.kept_for is not None:
            look = np.where(look == NO_LOOK, NO_LOOK, np.minimum(look, last + self.kept_for))
        return replace(extract, look=look)

    def rows(self, extract: TablesExtract) -> dict[str, pl.DataFrame]:
        """The rows of the extract, with the keys of their partitions, as they are kept."""
        return {name: self.as_stored(extract, rows) for name, rows in extract.tables.items()}

    def tables_of(self, extract: TablesExtract) -> Mapping[str, pl.DataFrame]:
        return extract.tables

    def as_stored(self, extract: TablesExtract, rows: pl.DataFrame) -> pl.DataFrame:
        stored = super().as_stored(extract, rows)
        if self.kept_for is None:
            return stored
        return stored.with_columns(pl.Series(LAST, extract.last[rows.get_column(PARTITION).to_numpy()]))

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
