"""Open searches go on from their threads: in most increments they read the new rows, and few of those before."""

from __future__ import annotations

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.navigation import reach_of
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.runtime.arrays import Int32Array, Int64Array
from tidegate.runtime.kernels.partitions.rows import first_tie
from tidegate.runtime.ordered.new_events import order_of, order_without_sort, require_order
from tidegate.runtime.ordered.row_arrays import PARTITION, ranges
from tidegate.runtime.ordered.sequences.found import KernelCalls
from tidegate.runtime.ordered.sequences.kept import (
    STANDING,
    OpenPartitions,
    SearchedRows,
    attribute,
    by_attribute,
)
from tidegate.runtime.ordered.sequences.rows import OrderedRows, taken


class OpenSearches:
    """Goes on with the searches of a node that are open.

    Of the rows that a search has read it may read those that its threads name, with the rows before that conditions
    look back to, its start, and the last ones. A search that is decided now is left to who reads all of its rows: that
    may cost as much as all increments since it began, and mostly sets its rows free.
    """

    def __init__(self, node: Sequences, calls: KernelCalls) -> None:
        self.node, self.calls = node, calls
        self.back = reach_of(node.navigations)[0]

    def gone_on(
        self, state: SearchedRows, partitions: Int64Array, new: pl.DataFrame, numbers: Int32Array, until: int
    ) -> OpenPartitions | None:
        """What becomes of those of these partitions of which the search is open, and stays so; None where there are no
        such. `numbers` has the partition of each new row. `EvaluationError` TG304 for rows of which nothing says which
        comes first.
        """
        open_ = state.open_among(partitions)
        if not len(open_):
            return None
        new, numbers = those_of(open_, new, numbers, len(state.partitions))
        of, order = state.places(open_, numbers).astype(np.int64), order_without_sort(self.node.readings[0], new)
        given = state.threads.take(open_)
        thread_of = given.get_column(PARTITION).to_numpy()
        threads = np.array(given.drop(PARTITION).to_numpy(), order="C")
        needed = _Needed(self._named(threads), thread_of, state.rows.heights(open_), self.back)
        kept = by_attribute(self.node, state.rows.take_some(open_, needed.of, needed.places))
        rows = OrderedRows(self.node, kept, new, of, order, len(open_))
        if first_tie(rows.offsets, rows.time) >= 0:
            require_order(self.node.readings[0], new, of, order_of(self.node.readings[0], new), len(open_))
        threads[:, self.calls.named] = needed.in_table(self._named(threads), thread_of, rows)
        first_thread = np.searchsorted(thread_of, np.arange(len(open_) + 1))
        found = self.calls.go_on(rows, first_thread, needed.height + needed.new(rows), threads, until)
        stay = np.flatnonzero(found.waits)
        if not len(stay):
            return None
        left = found.threads
        left[:, self.calls.named] = needed.in_partition(self._named(left), rows)
        return OpenPartitions(
            open_[stay],
            needed.height[stay],
            self._added(rows, stay, kept, needed),
            threads_frame(left, found.waits[stay]),
            found.look[stay],
        )

    def _named(self, threads: Int64Array) -> Int64Array:
        """The places that threads name."""
        named: Int64Array = threads[:, self.calls.named]
        return named

    def _added(self, rows: OrderedRows, stay: Int64Array, kept: pl.DataFrame, needed: _Needed) -> pl.DataFrame:
        """The new rows of these partitions, as they are kept; they say of their partition what those before say."""
        count = needed.new(rows)[stay]
        source = rows.source[ranges(rows.first_new[stay], count)]
        before = np.repeat(needed.first[stay], count)
        return pl.DataFrame(
            {
                PARTITION: np.repeat(np.arange(len(stay)), count),
                **{attribute(name): rows.at(name, source) for name in self.node.input.schema.names},
                **{name: taken(kept.get_column(name), before) for name in STANDING},
            }
        )


class _Needed:
    """Those of the kept rows that searches may read, by the places of their partitions and their places there."""

    def __init__(self, named: Int64Array, of: Int64Array, height: Int64Array, back: int) -> None:
        """`named` are the places that threads name, -1 for none, `of` the partitions of threads, and `height` is how
        many rows there are of each partition. Conditions look so many rows `back`.
        """
        self.height, self._stride = height, int(height.max()) + 1
        before, last = named[:, :, None] - np.arange(back + 1), height[:, None] - 1 - np.arange(max(back, 1))
        of_named = np.broadcast_to(of[:, None, None], before.shape)
        of_last = np.broadcast_to(np.arange(len(height))[:, None], last.shape)
        # A row that is before none that is named is before the first one of all.
        read, ends = (named >= 0)[:, :, None] & (before >= 0), last >= 0
        wanted = np.concatenate([self._key(of_named[read], before[read]), self._key(of_last[ends], last[ends])])
        wanted.sort()
        self._keys = wanted[np.concatenate([[True], wanted[1:] != wanted[:-1]])]
        self.of, self.places = self._keys // self._stride, self._keys % self._stride
        self.first: Int64Array = np.searchsorted(self.of, np.arange(len(height)))

    def new(self, rows: OrderedRows) -> Int64Array:
        """How many new rows each partition has."""
        new: Int64Array = rows.offsets[1:] - rows.first_new
        return new

    def in_table(self, named: Int64Array, of: Int64Array, rows: OrderedRows) -> Int64Array:
        """Places in partitions as places in a table that has these rows before the new ones."""
        of = of[:, None]
        places = np.searchsorted(self._keys, self._key(of, named)) - self.first[of] + rows.offsets[of]
        return np.where(named < 0, -1, places)

    def in_partition(self, named: Int64Array, rows: OrderedRows) -> Int64Array:
        """Places in such a table as places in partitions."""
        of = np.repeat(np.arange(len(self.height)), np.diff(rows.offsets))
        places = np.arange(rows.height) + (self.height - rows.first_new)[of]
        places[np.arange(len(self.of)) - self.first[self.of] + rows.offsets[self.of]] = self.places
        return np.where(named < 0, -1, places[named])

    def _key(self, of: Int64Array, places: Int64Array) -> Int64Array:
        return of * self._stride + places


def those_of(
    partitions: Int64Array, rows: pl.DataFrame, numbers: Int32Array, every: int, *, others: bool = False
) -> tuple[pl.DataFrame, Int32Array]:
    """The rows of these partitions, out of so many, or with `others` those of all others; and their numbers."""
    are = np.full(every, others)
    are[partitions] = not others
    chosen = are[numbers]
    return (rows, numbers) if chosen.all() else (rows.filter(pl.Series(chosen)), numbers[chosen])


def threads_frame(threads: Int64Array, waits: Int64Array) -> pl.DataFrame:
    """Threads as they are kept: so many of each partition."""
    columns = {str(place): np.ascontiguousarray(threads[:, place]) for place in range(threads.shape[1])}
    return pl.DataFrame({PARTITION: np.repeat(np.arange(len(waits)), waits), **columns})
