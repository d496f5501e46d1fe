"""Open searches go on from their threads: in most increments they read the new rows, and few of those before."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.navigation import reach_of
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.runtime.arrays import Int32Array, Int64Array
from tidegate.runtime.kernels.partitions.rows import first_tie
from tidegate.runtime.kernels.sequences import every
from tidegate.runtime.kernels.sequences.open_searches import ITS_PARTITION, ITS_ROW
from tidegate.runtime.ordered.new_events import order_of, order_without_sort, require_order
from tidegate.runtime.ordered.row_arrays import PARTITION, ranges
from tidegate.runtime.ordered.sequences.found import Found, Given, KernelCalls, OpenThreads, of_partitions
from tidegate.runtime.ordered.sequences.kept import (
    STANDING,
    Beginnings,
    OpenPartitions,
    SearchedRows,
    attribute,
    by_attribute,
)
from tidegate.runtime.ordered.sequences.measures import result_of
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
        self,
        state: SearchedRows,
        partitions: Int64Array,
        new: pl.DataFrame,
        numbers: Int32Array,
        after: int,
        until: int,
    ) -> tuple[OpenPartitions, pl.DataFrame | None] | None:  # fmt: skip
        """What becomes of those of these partitions of which the search is open, and stays so, and their results; None
        where there are no such. `numbers` has the partition of each new row. `EvaluationError` TG304 for rows of which
        nothing says which comes first.
        """
        open_ = state.open_among(partitions)
        if not len(open_):
            return None
        new, numbers = those_of(open_, new, numbers, len(state.partitions))
        of, order = state.places(open_, numbers).astype(np.int64), order_without_sort(self.node.readings[0], new)
        given, first = state.threads.take(open_), state.first[open_]
        thread_of = given.get_column(PARTITION).to_numpy()
        threads = np.array(given.drop(PARTITION).to_numpy(), order="C").reshape(len(thread_of), self.calls.width)
        named = self._named(threads)
        named = np.where(named < 0, -1, named - first[thread_of][:, None])
        height = state.rows.heights(open_)
        needed = _Needed.of_threads(named, thread_of, height, self.back)
        kept = by_attribute(self.node, state.rows.take_some(open_, needed.of, needed.places))
        rows = OrderedRows(self.node, kept, new, of, order, len(open_))
        if first_tie(rows.offsets, rows.time) >= 0:
            require_order(self.node.readings[0], new, of, order_of(self.node.readings[0], new), len(open_))
        threads[:, self.calls.named] = needed.in_table(named, thread_of[:, None], rows)
        place = needed.in_partition(rows) + np.repeat(first, np.diff(rows.offsets))
        before = np.searchsorted(thread_of, np.arange(len(open_) + 1))
        nodes = tuple((its.at[open_], its.first[open_], its.end[open_], its.table) for its in state.nodes)
        table = _Table(state, open_, new, of, order, needed, rows)
        found, begin, results = self._searched(
            table, Given(rows.first_new - rows.offsets[:-1], threads, before, nodes, place), after, until
        )
        stay = np.flatnonzero(found.waits)
        if not len(stay):
            return None
        left, begun = found.threads, None
        left[:, self.calls.named] = np.where(self._named(left) < 0, -1, place[self._named(left)])
        if begin is not None:
            left_nodes = tuple(its.at(stay) for its in found.nodes)
            begun = Beginnings(np.maximum(begin - self.back, first)[stay], begin[stay], left_nodes)
        added = OpenPartitions(
            open_[stay],
            (first + height)[stay],
            self._added(rows, stay, kept, needed),
            threads_frame(left, found.waits[stay]),
            found.look[stay],
            begun,
        )
        return added, pl.concat(results) if results else None

    def _searched(
        self, table: _Table, given: Given, after: int, until: int
    ) -> tuple[OpenThreads, Int64Array | None, list[pl.DataFrame]]:
        """What is left of the searches; the numbers of the rows at which they begin, where rows may go; and the results
        of those that stay open.
        """
        calls, rows, matches = self.calls, table.rows, list[tuple[OrderedRows, Found]]()
        if calls.resumes_every:
            found, begin = calls.every_gone_on(rows, given, after, until)
            assert found.open is not None
            left = found.open
            chosen = of_partitions(found, left.waits > 0)
            if len(chosen.matches):
                matches.append(self._in_table(table, chosen))
        elif calls.resumes_each_row:
            found, begin, again = calls.each_row_gone_on(rows, given, until)
            assert found.open is not None
            left = found.open
            again = again[left.waits[again[:, ITS_PARTITION]] > 0]
            matches.append((rows, of_partitions(found, left.waits > 0)))
            if len(again):
                matches.append(self._from_starts(table, again, given.number, until))
        else:
            read = table.needed.height + table.needed.new(rows)
            return calls.go_on(rows, given.before, read, given.threads, until), None, []
        keys = table.state.partitions.rows(table.open)
        return left, begin, [result_of(calls.tables, *its, keys) for its in matches if len(its[1].matches)]

    def _in_table(self, table: _Table, found: Found) -> tuple[OrderedRows, Found]:
        """Matches whose rows are known by their numbers, in a table of these, the rows before them that measures look
        back to, and the new ones.
        """
        of = np.repeat(found.partition, found.length)
        places = found.places - table.first[of]
        needed = _Needed(places, of, table.needed.height, self.back)
        rows = table.with_rows(self.node, needed)
        in_table, matches = needed.in_table(places, of, rows), found.matches.copy()
        matches[:, every.FIRST] = in_table[found.first_row]
        return rows, replace(found, matches=matches, places=in_table)

    def _from_starts(
        self, table: _Table, starts: Int64Array, number: Int64Array, until: int
    ) -> tuple[OrderedRows, Found]:
        """The matches of these starts, in a table of all rows from the first of them on and those before it that are
        looked back to.
        """
        of, each = starts[:, ITS_PARTITION], np.arange(len(table.open))
        places, first = number[starts[:, ITS_ROW]] - table.first[of], table.needed.height.copy()
        np.minimum.at(first, of, places)
        first = np.maximum(first - self.back, 0)
        count = table.needed.height - first
        needed = _Needed(ranges(first, count), np.repeat(each, count), table.needed.height, 0)
        rows, again = table.with_rows(self.node, needed), starts.copy()
        again[:, ITS_ROW] = needed.in_table(places, of, rows)
        return rows, self.calls.searched_from(rows, again, until)

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


@dataclass(frozen=True, slots=True)
class _Table:
    """The rows that searches of open partitions read, and how others are read of the same partitions: the new ones with
    their partitions, and their order.
    """

    state: SearchedRows
    open: Int64Array
    new: pl.DataFrame
    of: Int64Array
    order: Int64Array | None
    needed: _Needed
    rows: OrderedRows

    @property
    def first(self) -> Int64Array:
        """The number of the first row that is kept of each partition."""
        return self.state.first[self.open]

    def with_rows(self, node: Sequences, needed: _Needed) -> OrderedRows:
        """A table of these rows, and the new ones."""
        kept = by_attribute(node, self.state.rows.take_some(self.open, needed.of, needed.places))
        return OrderedRows(node, kept, self.new, self.of, self.order, len(self.open))


class _Needed:
    """Those of the kept rows that are read, by the places of their partitions and their places there."""

    def __init__(self, places: Int64Array, of: Int64Array, height: Int64Array, back: int) -> None:
        """The rows at these places, those of `of` their partitions, and so many rows before each; what is below 0 is no
        place, and what is not below the `height` of its partition a new row.
        """
        self.height, self._stride = height, int(height.max()) + 1
        before = places[:, None] - np.arange(back + 1)
        of_each = np.broadcast_to(of[:, None], before.shape)
        # A row that is before none that is named is before the first one of all.
        read = (places >= 0)[:, None] & (before >= 0) & (before < height[of_each])
        wanted = self._key(of_each[read], before[read])
        wanted.sort()
        first = np.ones(len(wanted), dtype=np.bool_)
        first[1:] = wanted[1:] != wanted[:-1]
        self._keys = wanted[first]
        self.of, self.places = self._keys // self._stride, self._keys % self._stride
        self.first: Int64Array = np.searchsorted(self.of, np.arange(len(height)))

    @classmethod
    def of_threads(cls, named: Int64Array, of: Int64Array, height: Int64Array, back: int) -> _Needed:
        """The rows that threads name, -1 for none, the last one of each partition, and those before them; `of` are the
        partitions of threads.
        """
        of_named = np.repeat(of, named.shape[1])
        places = np.concatenate([named.ravel(), height - 1])
        return cls(places, np.concatenate([of_named, np.arange(len(height))]), height, back)

    def new(self, rows: OrderedRows) -> Int64Array:
        """How many new rows each partition has."""
        new: Int64Array = rows.offsets[1:] - rows.first_new
        return new

    def in_table(self, places: Int64Array, of: Int64Array, rows: OrderedRows) -> Int64Array:
        """Places in partitions as places in a table that has these rows before the new ones."""
        known = np.searchsorted(self._keys, self._key(of, places)) - self.first[of] + rows.offsets[of]
        new = places - self.height[of] + rows.first_new[of]
        return np.where(places < 0, -1, np.where(places < self.height[of], known, new))

    def in_partition(self, rows: OrderedRows) -> Int64Array:
        """The places in partitions of the rows of such a table."""
        of = np.repeat(np.arange(len(self.height)), np.diff(rows.offsets))
        places: Int64Array = np.arange(rows.height) + (self.height - rows.first_new)[of]
        places[np.arange(len(self.of)) - self.first[self.of] + rows.offsets[self.of]] = self.places
        return places

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
