"""What is kept of a partition: rows, each with how far the search has come, and in memory threads of the search."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Self

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.ordered.row_arrays import PARTITION, RowArrays, counts
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows
from tidegate.runtime.ordered.sequences.nodes import NewNodes, NodeArrays, none_of

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
class Beginnings:
    """Of partitions of which first rows go while their search is open, the number of the first one that is kept and of
    the one at which the search begins; and the nodes that threads refer to.
    """

    first: Int64Array
    begin: Int64Array
    nodes: tuple[NewNodes, ...]


@dataclass(frozen=True, slots=True)
class OpenPartitions:
    """What an increment makes of partitions in which the search is as open as before: the rows that they have behind
    those `before`, their threads, and when they have to be looked at. `begun`: rows may go.
    """

    partitions: Int64Array
    before: Int64Array
    rows: pl.DataFrame
    threads: pl.DataFrame
    look: Int64Array
    begun: Beginnings | None = None


@dataclass(frozen=True, slots=True)
class SearchedExtract(KeptExtract):
    """What an increment leaves of the partitions that it has searched, with the threads of searches that are open, and
    what it adds to others.
    """

    threads: pl.DataFrame | None = None
    nodes: tuple[NewNodes, ...] = ()
    added: OpenPartitions | None = None

    def without(self, places: Int64Array) -> Self:
        left = KeptExtract.without(self, places)
        if left.threads is None:
            return left
        gone = np.isin(left.threads.get_column(PARTITION).to_numpy(), places)
        stays = ~np.isin(np.arange(len(left.partitions)), places)
        nodes = tuple(its.only(stays) for its in left.nodes)
        return replace(left, threads=left.threads.filter(~gone), nodes=nodes)


class SearchedRows(KeptRows):
    """The kept rows of all partitions, and of some of them the threads of their search.

    The rows say everything: the threads are what has been found out of them. Threads are in order of partitions. Rows
    have numbers, from 0 on when a partition is put; `first` is that of the first one that is kept. `begin` is that of
    the one at which the search begins, below 0 where the rows say so. Threads and nodes have numbers for places.
    """

    def __init__(
        self, keys: Schema, table: str, columns: Mapping[str, pl.DataType], width: int, nodes: Sequence[int] = ()
    ) -> None:
        """`width`: how many integers a thread has; `nodes`: how many those have that threads refer to, by kind."""
        super().__init__(keys, table, columns)
        self.width, self.threads = width, RowArrays({str(place): pl.Int64() for place in range(width)})
        self.nodes = tuple(NodeArrays(its) for its in nodes)
        self.first, self.begin = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)

    def emptied(self) -> SearchedRows:
        widths = [nodes.table.shape[1] for nodes in self.nodes]
        return SearchedRows(self.partitions.schema, self.table, self.columns, self.width, widths).follow(
            self.growing, self.ending
        )

    def room(self, partitions: int) -> None:
        super().room(partitions)
        self.threads.grow(partitions)
        more = partitions - len(self.first)
        for nodes in self.nodes:
            nodes.grow(partitions)
        self.first = np.concatenate([self.first, np.zeros(more, dtype=np.int64)])
        self.begin = np.concatenate([self.begin, np.full(more, -1)])

    @property
    def nbytes(self) -> int:
        many = len(self.partitions)
        return super().nbytes + self.threads.bytes_of(many) + sum(nodes.nbytes for nodes in self.nodes) + 16 * many

    def extract(self, partitions: Int64Array) -> KeptExtract:
        extract, begin = super().extract(partitions), self.begin[partitions]
        if not (begin >= 0).any():
            return extract
        of = extract.rows.get_column(PARTITION).to_numpy()
        known = begin[of] >= 0
        begins = np.where(known, (begin - self.first[partitions])[of], extract.rows.get_column("begin").to_numpy())
        return replace(extract, rows=extract.rows.with_columns(pl.Series("begin", begins)))

    def hold(self, extract: KeptExtract) -> BoolArray:
        searched = extract if isinstance(extract, SearchedExtract) else None
        threads = None if searched is None else searched.threads
        if threads is None and self.threads.height:
            threads = pl.DataFrame(schema={PARTITION: pl.Int64(), **self.threads.types})
        if threads is not None:
            self.threads.put(extract.partitions, threads)
        for place, nodes in enumerate(self.nodes):
            if searched is not None and searched.nodes:
                nodes.hold(extract.partitions, searched.nodes[place])
            elif nodes.height:
                nodes.hold(extract.partitions, none_of(extract.partitions, nodes))
        self.first[extract.partitions], self.begin[extract.partitions] = 0, -1
        return super().hold(extract)

    def put(self, extract: KeptExtract) -> None:
        # Done again after it has failed, for want of memory, all of it comes to the same.
        if isinstance(extract, SearchedExtract) and (added := extract.added) is not None:
            partitions, first = added.partitions, self.first[added.partitions]
            begun = added.begun
            self._look_for(added.look)
            has_rows = begun is not None and self._has_rows(added, begun.first)
            if not has_rows:
                self.rows.add(partitions, added.before - first, added.rows)
            self.threads.put(partitions, added.threads)
            if begun is not None:
                for nodes, new in zip(self.nodes, begun.nodes, strict=True):
                    nodes.hold(partitions, new)
                if not has_rows:
                    self.rows.drop(partitions, begun.first - first)
                self.first[partitions], self.begin[partitions] = begun.first, begun.begin
            self._note_look(partitions, added.look)
        super().put(extract)

    def _has_rows(self, added: OpenPartitions, first: Int64Array) -> bool:
        """Whether partitions have these rows already, without those before `first`: their places may be those of others
        since then.
        """
        height = added.before + counts(added.rows, len(first)) - first
        known = self.first[added.partitions], self.rows.heights(added.partitions)
        return np.array_equal(known[0], first) and np.array_equal(known[1], height)

    def open_among(self, partitions: Int64Array) -> Int64Array:
        """Those of these partitions of which there are threads."""
        return partitions[self.threads.heights(partitions) > 0] if self.threads.height else partitions[:0]
