"""What is kept of a partition: rows, each with how far the search has come, and in memory threads of the search."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.ordered.row_arrays import PARTITION, RowArrays
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows

#: Columns of kept rows that say how far the search has come in their partition, as `Standing` has it.
STANDING: Final = {"begin": pl.Int64(), "number": pl.Int64(), "taken": pl.Int64(), "whole": pl.Boolean()}
#: In a stored row, in the place of where the search begins: the row stands behind those before, and says as they do.
ADDED: Final = -1


def columns_of(node: Sequences) -> dict[str, pl.DataType]:
    """The columns of kept rows, beside the keys of their partitions."""
    attributes = {attribute(a.name): polars_type(a.type) for a in node.input.schema.attributes}
    return {**attributes, **STANDING}


def attribute(name: str) -> str:
    """The column of an attribute."""
    return f"row {name}"


def by_attribute(node: Sequences, rows: pl.DataFrame) -> pl.DataFrame:
    """Kept rows with the attributes by their names."""
    named = {attribute(name): name for name in node.input.schema.names}
    return pl.DataFrame([column.alias(named.get(column.name, column.name)) for column in rows.get_columns()])


@dataclass(frozen=True, slots=True)
class OpenPartitions:
    """What an increment makes of partitions in which the search is as open as before: the rows that they have behind
    those `before`, their threads, and when they have to be looked at.
    """

    partitions: Int64Array
    before: Int64Array
    rows: pl.DataFrame
    threads: pl.DataFrame
    look: Int64Array


@dataclass(frozen=True, slots=True)
class SearchedExtract(KeptExtract):
    """What an increment leaves of the partitions that it has searched, with the threads of searches that are open, and
    what it adds to others.
    """

    threads: pl.DataFrame | None = None
    added: OpenPartitions | None = None

    def without(self, places: Int64Array) -> Self:
        left = KeptExtract.without(self, places)
        if left.threads is None:
            return left
        gone = np.isin(left.threads.get_column(PARTITION).to_numpy(), places)
        return replace(left, threads=left.threads.filter(~gone))


class SearchedRows(KeptRows):
    """The kept rows of all partitions, and of some of them the threads of their search.

    The rows say everything: the threads are what has been found out of them. Threads are in order of partitions, and
    their places are counted from the first row that is kept.
    """

    def __init__(self, keys: Schema, table: str, columns: Mapping[str, pl.DataType], width: int) -> None:
        """`width`: how many integers a thread has."""
        super().__init__(keys, table, columns)
        self.width, self.threads = width, RowArrays({str(place): pl.Int64() for place in range(width)})

    def emptied(self) -> SearchedRows:
        return SearchedRows(self.partitions.schema, self.table, self.columns, self.width).follow(
            self.growing, self.ending
        )

    def room(self, partitions: int) -> None:
        super().room(partitions)
        self.threads.grow(partitions)

    def hold(self, extract: KeptExtract) -> BoolArray:
        threads = extract.threads if isinstance(extract, SearchedExtract) else None
        if threads is None and self.threads.height:
            threads = pl.DataFrame(schema={PARTITION: pl.Int64(), **self.threads.types})
        if threads is not None:
            self.threads.put(extract.partitions, threads)
        return super().hold(extract)

    def put(self, extract: KeptExtract) -> None:
        # Done again after it has failed, for want of memory, all of it comes to the same.
        if isinstance(extract, SearchedExtract) and (added := extract.added) is not None:
            self._look_for(added.look)
            self.rows.add(added.partitions, added.before, added.rows)
            self.threads.put(added.partitions, added.threads)
            self._note_look(added.partitions, added.look)
        super().put(extract)

    def open_among(self, partitions: Int64Array) -> Int64Array:
        """Those of these partitions of which there are threads."""
        return partitions[self.threads.heights(partitions) > 0] if self.threads.height else partitions[:0]
