"""The rows of open windows by partition: new ones come at the end, those of complete windows leave at the front."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.schema import Schema
from tidegate.analysis.ordered.windows import ROWS
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.ordered.family import Span
from tidegate.runtime.ordered.partitions import key_columns
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import RowOperator, RowStore
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.ordered.windows.queues import RowQueues

#: Of a stored row: up to which number the rows of its partition are gone that were written before. It is no row itself.
GONE: Final = "~gone"


@dataclass(frozen=True, slots=True)
class WindowExtract:
    """Rows of some partitions.

    `gone` are so many of those that a partition had, the next `kept` stay, and `rows` follow; None: `rows` are all.
    `stored` is what is written of that; None: `rows` alone.
    """

    partitions: Int64Array
    rows: pl.DataFrame
    look: Int64Array
    version: int = 0
    gone: Int64Array | None = None
    kept: Int64Array | None = None
    stored: pl.DataFrame | None = None


class WindowRows(RowStore[WindowExtract]):
    """The rows of open windows of all partitions, which ascend in `number`: an instant, or the number of the row."""

    gives_again = True

    def __init__(self, keys: Schema, columns: Mapping[str, pl.DataType], number: str) -> None:
        super().__init__(keys)
        self.columns, self.number, self.rows = columns, number, RowQueues(columns)

    def emptied(self) -> WindowRows:
        return WindowRows(self.partitions.schema, self.columns, self.number)

    def extract(self, partitions: Int64Array) -> WindowExtract:
        return WindowExtract(partitions, self.rows.take(partitions), self.look(partitions), self.version)

    def some(self, partitions: Int64Array, which: BoolArray) -> WindowExtract:
        """These partitions, with the rows of some of them alone."""
        rows = self.rows.front(partitions, np.where(which, self.rows.count(partitions), 0))
        return WindowExtract(partitions, rows, self.look(partitions), self.version)

    def hold(self, extract: WindowExtract) -> BoolArray:
        gone = self.rows.count(extract.partitions) if extract.gone is None else extract.gone
        kept = np.zeros_like(gone) if extract.kept is None else extract.kept
        self.rows.splice(extract.partitions, gone, kept, extract.rows)
        held: BoolArray = self.rows.count(extract.partitions) > 0
        return held

    def room(self, partitions: int) -> None:
        self.rows.grow(partitions)

    def tables_of(self, extract: WindowExtract) -> dict[str, pl.DataFrame]:
        return {ROWS: extract.rows}

    def whole(self, partitions: Int64Array) -> WindowExtract:
        """The rows of these partitions, to be stored in the place of what was written of them before."""
        extract = self.extract(partitions)
        last = self.rows.last(partitions)
        marks = last.select(PARTITION, pl.col(self.number).alias(GONE))
        return replace(extract, stored=self.marked(extract.rows, marks))

    def marked(self, rows: pl.DataFrame, marks: pl.DataFrame) -> pl.DataFrame:
        """Rows to be stored, and up to which number those are gone that were written before: of some partitions, in
        PARTITION and GONE.
        """
        none = pl.lit(None, pl.Int64())
        empty = (pl.lit(None, type_).alias(name) for name, type_ in self.columns.items())
        return pl.concat([rows.with_columns(none.alias(GONE)), marks.select(PARTITION, *empty, GONE)])

    def written(self, extract: WindowExtract) -> pl.DataFrame:
        """What is written of an extract, with the keys of partitions."""
        none = pl.DataFrame(schema={PARTITION: pl.Int64(), GONE: pl.Int64()})
        return self.as_stored(extract, self.marked(extract.rows, none) if extract.stored is None else extract.stored)

    def described(self) -> StateTable:
        keys = key_columns(self.partitions.schema)
        is_mark = pl.col(GONE).is_not_null()
        return StateTable(
            pl.Schema({**keys, **self.columns, GONE: pl.Int64()}),
            "queue",
            len(keys),
            number=self.number,
            gone=GONE,
            empty=is_mark,
            possible=is_mark == pl.col(self.number).is_null(),
        )


class WindowRowsOperator(RowOperator[WindowRows]):
    """An operator that holds such rows, and stores the new ones with how many of those before have gone."""

    __slots__ = ()

    def tables(self) -> dict[str, pa.Table]:
        state = self.settled()
        extract = state.extract(state.all_partitions())
        return {ROWS: state.written(extract).to_arrow()} if extract.rows.height else {}

    def tables_in(self, span: Span) -> dict[str, pa.Table]:
        state = self.settled()
        extract = state.whole(np.arange(span.first, span.end))
        return {ROWS: state.written(extract).to_arrow()} if extract.rows.height else {}

    def changes(self) -> dict[str, pa.Table] | None:
        if self.made is None:
            return None
        state, (_, after) = self.settled(), self.made
        return {ROWS: state.written(after).to_arrow()}

    def described(self) -> dict[str, StateTable]:
        return {ROWS: self.held.described()}

    def counts(self) -> dict[str, int]:
        return {ROWS: self.settled().rows.height}
