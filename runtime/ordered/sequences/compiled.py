"""The search for the matches of a row pattern by compiled kernels, all partitions at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.navigation import reach_of
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.per_start.excess import Excess, too_many
from tidegate.algebra.time import Extended
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.partitions.rows import first_tie
from tidegate.runtime.kernels.sequences.absences import note_first_since
from tidegate.runtime.ordered.new_events import order_of, require_order
from tidegate.runtime.ordered.partition_store import EVER, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION, ranges
from tidegate.runtime.ordered.row_operator import KeptExtract
from tidegate.runtime.ordered.sequences.arrays import PatternArrays
from tidegate.runtime.ordered.sequences.found import Found, KernelCalls, Standings
from tidegate.runtime.ordered.sequences.kept import STANDING, SearchedExtract, attribute, by_attribute
from tidegate.runtime.ordered.sequences.measures import result_of
from tidegate.runtime.ordered.sequences.nodes import NewNodes
from tidegate.runtime.ordered.sequences.open_searches import OpenSearches, threads_frame
from tidegate.runtime.ordered.sequences.rows import OrderedRows


class CompiledSearch:
    """The search for the matches of a node that kernels can search for."""

    def __init__(self, node: Sequences, arrays: PatternArrays) -> None:
        self.node, self.calls = node, KernelCalls(node, arrays)
        self.back = reach_of(node.navigations)[0]
        self.open = OpenSearches(node, self.calls)
        before = (absence for guard in arrays.tables.ways[0].guards for absence in guard.absent | guard.present)
        self.leading = max((absence.within or 0 for absence in before), default=0)

    def increment(
        self, before: KeptExtract, new: pl.DataFrame, of: Int64Array, order: Int64Array | None, after: int, until: int,
        keys: pl.DataFrame, *, limited: bool = True,
    ) -> tuple[SearchedExtract, pl.DataFrame]:  # fmt: skip
        """What is kept of the partitions of an increment after it, and its results. `of` has the partition of each new
        row, `order` the new rows by time, None where they have to be put in order. `EvaluationError` TG304 for rows of
        which nothing says which comes first; if `limited`, TG307 for one that begins more matches than it may.
        """
        kept = by_attribute(self.node, before.rows)
        rows = OrderedRows(self.node, kept, new, of, order, len(before.partitions))
        if first_tie(rows.offsets, rows.time) >= 0:
            require_order(self.node.readings[0], new, of, order_of(self.node.readings[0], new), len(before.partitions))
        standings = Standings.of(kept, rows)
        found = self.calls.search(rows, standings, after, until, limited=limited)
        if len(found.excess):
            raise too_many(self.node, self._excesses(rows, found, keys))
        result = result_of(self.calls.tables, rows, found, keys)
        first = self._first_kept(rows, standings, until)
        kept, threads = self._kept(rows, standings, first, until), self._threads(rows, found, first)
        look, nodes = self._looks(rows, found, standings, until), self._nodes(rows, found, first)
        return SearchedExtract(before.partitions, kept, look, threads=threads, nodes=nodes), result

    def again(self, stored: KeptExtract, none: pl.DataFrame, until: Extended) -> KeptExtract:
        """What is kept of partitions that have these rows, or some that are not needed any more before them; `none` are
        no new rows.
        """
        nothing, reached = np.empty(0, dtype=np.int64), ticks(until)
        keys = pl.DataFrame({name: [] for name in self.node.keys})
        kept, _ = self.increment(stored, none, nothing, nothing, reached, reached, keys, limited=False)
        return replace(kept, over=stored.over)

    def _looks(self, rows: OrderedRows, found: Found, standings: Standings, until: int) -> Int64Array:
        """When partitions have to be looked at: where nothing waits, once the first row can no longer be one that must
        not come before a match.
        """
        look, height = found.look, np.diff(rows.offsets)
        if self.leading:
            before = self._before(rows, standings, until)
            idle = np.flatnonzero((standings.begin >= height) & (before < height))
            look[idle] = np.minimum(look[idle], rows.time[(rows.offsets[:-1] + before)[idle]] + self.leading)
        return look

    def _excesses(self, rows: OrderedRows, found: Found, keys: pl.DataFrame) -> list[Excess]:
        return [
            Excess(keys.row(of) if self.node.keys else (), int(rows.time[start]), int(rows.time[by]), bool(are_matches))
            for of, by, start, are_matches in found.excess.tolist()
        ]

    def _first_kept(self, rows: OrderedRows, standings: Standings, until: int) -> Int64Array:
        """The place in its partition of the first row that may be part of a match to come, that decides one, or that
        says of the partition where it stands.
        """
        begin = np.minimum(standings.begin, self._before(rows, standings, until))
        first: Int64Array = np.maximum(begin - self.back, 0)
        if self.calls.numbered or self.calls.anchored:
            first = np.minimum(first, np.maximum(np.diff(rows.offsets) - 1, 0))
        return first

    def _threads(self, rows: OrderedRows, found: Found, first: Int64Array) -> pl.DataFrame | None:
        """The threads of open searches, which count the rows from the first kept one of their partition on."""
        if found.open is None or not len(found.open.threads):
            return None
        threads, waits, named = found.open.threads, found.open.waits, self.calls.named
        before = np.repeat(rows.offsets[:-1] + first, waits)[:, None]
        threads[:, named] = np.where(threads[:, named] < 0, -1, threads[:, named] - before)
        return threads_frame(threads, waits)

    def _nodes(self, rows: OrderedRows, found: Found, first: Int64Array) -> tuple[NewNodes, ...]:
        """The nodes that threads refer to, which count rows likewise."""
        if found.open is None:
            return ()
        for nodes in found.open.nodes[:1]:
            nodes.rows[:, self.calls.node_row] -= np.repeat(rows.offsets[:-1] + first, nodes.count)
        return found.open.nodes

    def _kept(self, rows: OrderedRows, standings: Standings, first: Int64Array, until: int) -> pl.DataFrame:
        height = np.diff(rows.offsets)
        count = height - first if until < EVER else np.zeros_like(height)
        source = rows.source[ranges(rows.offsets[:-1] + first, count)]
        standing = {
            "begin": standings.begin - first,
            "number": standings.number,
            "taken": np.maximum(standings.taken - first, 0),
            "whole": (standings.whole > 0) & (first == 0),
        }
        return pl.DataFrame(
            {
                PARTITION: np.repeat(np.arange(len(height)), count),
                **{attribute(name): rows.at(name, source) for name in self.node.input.schema.names},
                **{name: np.repeat(standing[name], count) for name in STANDING},
            }
        )

    def _before(self, rows: OrderedRows, standings: Standings, until: int) -> Int64Array:
        """The place in its partition of the first row that may be one that must not come before a match."""
        if not self.leading:
            return standings.begin
        begin, since = rows.offsets[:-1] + standings.begin, np.full(len(standings.begin), until + 1, dtype=np.int64)
        has = begin < rows.offsets[1:]
        since[has] = rows.time[begin[has]]
        places = np.empty_like(begin)
        note_first_since(rows.offsets, rows.time, since - self.leading, places)
        before: Int64Array = places - rows.offsets[:-1]
        return before
