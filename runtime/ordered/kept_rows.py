"""Rows that are kept of each partition, in one table."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.ordered.row_arrays import RowArrays, counts
from tidegate.runtime.ordered.row_operator import RowStore


@dataclass(frozen=True, slots=True)
class KeptExtract:
    """The rows of some partitions in order of PARTITION, which says their places in `partitions`, and of time."""

    partitions: Int64Array
    rows: pl.DataFrame
    look: Int64Array
    version: int = 0

    @property
    def has_rows(self) -> BoolArray:
        """Which of the partitions have rows."""
        return counts(self.rows, len(self.partitions)) > 0


class KeptRows(RowStore[KeptExtract]):
    """The kept rows of all partitions, in a table of this name."""

    def __init__(self, keys: Schema, table: str, columns: Mapping[str, pl.DataType]) -> None:
        super().__init__(keys)
        self.table, self.columns, self.rows = table, columns, RowArrays(columns)

    def emptied(self) -> KeptRows:
        return KeptRows(self.partitions.schema, self.table, self.columns)

    def extract(self, partitions: Int64Array) -> KeptExtract:
        return KeptExtract(partitions, self.rows.take(partitions), self._look[partitions], self.version)

    def hold(self, extract: KeptExtract) -> BoolArray:
        self.rows.put(extract.partitions, extract.rows)
        return extract.has_rows

    def room(self, partitions: int) -> None:
        self.rows.grow(partitions)

    def tables_of(self, extract: KeptExtract) -> dict[str, pl.DataFrame]:
        return {self.table: extract.rows}
