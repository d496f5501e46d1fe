"""The panes of all partitions, from which windows that hop are made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.analysis.ordered.windows import PANES
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.ordered.row_arrays import RowArrays, counts
from tidegate.runtime.ordered.row_operator import RowStore
from tidegate.runtime.ordered.windows.queues import RowQueues


@dataclass(frozen=True, slots=True)
class PaneExtract:
    """Panes of some partitions, and what the block of the last one comes to.

    `gone` are so many of those that a partition had, the next `kept` stay, and `rows` follow; None: `rows` are all.
    """

    partitions: Int64Array
    rows: pl.DataFrame
    totals: pl.DataFrame
    look: Int64Array
    version: int = 0
    gone: Int64Array | None = None
    kept: Int64Array | None = None


class PaneStore(RowStore[PaneExtract]):
    """Of each partition the panes of open windows in order, and in `totals` what the block of the last one comes to.

    A pane of a block that has ended has what that comes to from the pane on; one of the block that has not, its own.
    """

    gives_again = True

    def __init__(self, keys: Schema, columns: Mapping[str, pl.DataType]) -> None:
        super().__init__(keys)
        self.columns, self.rows, self.totals = columns, RowQueues(columns), RowArrays(columns)
        self._no_rows = self.rows.take(np.empty(0, dtype=np.int64))

    def emptied(self) -> PaneStore:
        return PaneStore(self.partitions.schema, self.columns)

    def extract(self, partitions: Int64Array) -> PaneExtract:
        rows, totals = self.rows.take(partitions), self.totals.take(partitions)
        return PaneExtract(partitions, rows, totals, self.look(partitions), self.version)

    def unread(self, partitions: Int64Array) -> PaneExtract:
        """These partitions without their panes, which are not copied."""
        return PaneExtract(partitions, self._no_rows, self.totals.take(partitions), self.look(partitions), self.version)

    def hold(self, extract: PaneExtract) -> BoolArray:
        gone = self.rows.count(extract.partitions) if extract.gone is None else extract.gone
        kept = np.zeros_like(gone) if extract.kept is None else extract.kept
        self.rows.splice(extract.partitions, gone, kept, extract.rows)
        self.totals.put(extract.partitions, extract.totals)
        return counts(extract.totals, len(extract.partitions)) > 0

    def room(self, partitions: int) -> None:
        self.rows.grow(partitions)
        self.totals.grow(partitions)

    def tables_of(self, extract: PaneExtract) -> dict[str, pl.DataFrame]:
        return {PANES: extract.rows}
