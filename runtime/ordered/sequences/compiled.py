"""The search for the preferred matches of a row pattern by compiled kernels, all partitions at once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.definition import DETECTED, FIRST, LAST, Preferred
from tidegate.algebra.ordered.sequences.navigation import MatchNumber, reach_of
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.terms import attributes_of
from tidegate.algebra.time import Extended, last_instant
from tidegate.algebra.types import MAX_INSTANT
from tidegate.runtime.arrays import Int16Array, Int64Array
from tidegate.runtime.kernels.sequences import preferred
from tidegate.runtime.kernels.sequences.machine import DEPTH
from tidegate.runtime.kernels.sequences.threads import EVER, REGISTERS
from tidegate.runtime.ordered.partition_store import NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION, ranges
from tidegate.runtime.ordered.row_operator import KeptExtract
from tidegate.runtime.ordered.sequences.arrays import PatternArrays
from tidegate.runtime.ordered.sequences.kept import STANDING, attribute, by_attribute
from tidegate.runtime.ordered.sequences.measures import Measures
from tidegate.runtime.ordered.sequences.rows import OrderedRows

#: The room for threads and for what they have matched, before there is need for more.
_THREADS: Final = 64
_NODES: Final = 4096


@dataclass(slots=True)
class _Standings:
    """How far the search has come in each partition, as `Standing` has it."""

    begin: Int64Array
    number: Int64Array
    taken: Int64Array
    whole: Int64Array

    @classmethod
    def of(cls, kept: pl.DataFrame, rows: OrderedRows) -> _Standings:
        """All rows that are kept of a partition say the same."""
        count = rows.first_new - rows.offsets[:-1]
        has, first = np.flatnonzero(count), (np.cumsum(count) - count)
        found = cls(*(np.zeros(len(count), dtype=np.int64) for _ in range(3)), np.ones(len(count), dtype=np.int64))
        for name in STANDING:
            getattr(found, name)[has] = kept.get_column(name).to_numpy()[first[has]]
        return found


class CompiledSearch:
    """The search for the matches of a node that kernels can search for."""

    def __init__(self, node: Sequences, arrays: PatternArrays) -> None:
        assert isinstance(node.selection, Preferred)
        self.node, self.arrays, self.tables = node, arrays, arrays.tables
        self.back = reach_of(node.navigations)[0]
        read = {name for measure in node.measures for name in attributes_of(measure.term)}
        self.numbered = any(isinstance(n, MatchNumber) and n.name in read for n in node.navigations)
        self.end = last_instant(node.input.schema[node.time].type)
        self.next_row = node.selection.skip.to == "next row"
        self.threads, self.nodes = _THREADS, _NODES

    def increment(
        self, before: KeptExtract, new: pl.DataFrame, of: Int64Array, order: Int64Array, after: int, until: int,
        keys: pl.DataFrame,
    ) -> tuple[KeptExtract, pl.DataFrame]:  # fmt: skip
        """What is kept of the partitions of an increment after it, and its results. `of` has the partition of each new
        row, `order` the new rows by time.
        """
        kept = before.rows.rename(by_attribute(self.node))
        rows = OrderedRows(self.node, kept, new, of, order, len(before.partitions))
        standings = _Standings.of(kept, rows)
        look = np.empty(len(before.partitions), dtype=np.int64)
        found, states = self._search(rows, standings, look, after, until)
        result = self._results(rows, found, states, keys)
        return KeptExtract(before.partitions, self._kept(rows, standings, until), look), result

    def looks_of(self, kept: KeptExtract, none: pl.DataFrame, until: Extended) -> Int64Array:
        """When the partitions of which rows are kept have to be looked at; `none` are no new rows."""
        nothing, reached = np.empty(0, dtype=np.int64), ticks(until)
        keys = pl.DataFrame({name: [] for name in self.node.keys})
        return self.increment(kept, none, nothing, nothing, reached, reached, keys)[0].look

    def _search(
        self, rows: OrderedRows, standings: _Standings, look: Int64Array, after: int, until: int
    ) -> tuple[Int64Array, Int16Array]:
        """Takes the standings on; the matches that are certain now, and the states of their rows."""
        values, marks = rows.values(self.tables.conditions)
        nullable = self.arrays.end_at[0] >= 0
        options = np.array([self.next_row, self.numbered, self.arrays.begins, nullable, after, until, self.end])
        inputs = (rows.offsets, rows.time, rows.satisfied([one.row for one in self.tables.compiled]))
        width, matches, labels = (
            REGISTERS + len(self.tables.conditions.registers),
            rows.height + 1,
            2 * rows.height + 64,
        )
        while True:
            found, states = np.empty((matches, 6), dtype=np.int64), np.empty(labels, dtype=np.int16)
            taken_on = [one.copy() for one in (standings.begin, standings.number, standings.taken)]
            scratch: tuple[Any, ...] = (
                np.empty((2 * self.threads, width), dtype=np.int64),
                np.empty((self.nodes, 2), dtype=np.int64),
                np.empty(DEPTH, dtype=np.int64),
                np.empty(DEPTH),
                np.empty(DEPTH, dtype=np.uint8),
            )
            number = preferred.preferred_matches(
                *inputs, *taken_on, look, *self.arrays.arguments, options.astype(np.int64, copy=False),
                values, values.view(np.float64), marks, *scratch, found, states,
            )  # fmt: skip
            if number >= 0:
                break
            self.threads, self.nodes, labels = 2 * self.threads, 2 * self.nodes, 2 * labels
        standings.begin, standings.number, standings.taken = taken_on
        found = found[:number]
        return found, states[: int(found[:, preferred.LENGTH].sum())]

    def _results(self, rows: OrderedRows, found: Int64Array, states: Int16Array, keys: pl.DataFrame) -> pl.DataFrame:
        schema = self.node.schema
        start, length = found[:, preferred.START], found[:, preferred.LENGTH]
        columns = {
            **(keys[found[:, preferred.PARTITION]].to_dict() if self.node.keys else {}),
            **{one.name: one for one in Measures(self.tables, rows, found, states).columns()},
            FIRST: pl.Series(rows.time[start]),
            LAST: pl.Series(rows.time[start + np.maximum(length - 1, 0)]),
            DETECTED: pl.Series(found[:, preferred.DETECTED]),
        }
        return pl.DataFrame({name: columns[name] for name in schema.names})

    def _kept(self, rows: OrderedRows, standings: _Standings, until: int) -> pl.DataFrame:
        """The rows that may be part of a match to come, that decide one, or that say of a partition where it stands."""
        height = np.diff(rows.offsets)
        first = np.maximum(standings.begin - self.back, 0)
        if self.numbered:
            first = np.minimum(first, np.maximum(height - 1, 0))
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


assert EVER == 2 * MAX_INSTANT - 1
assert NO_LOOK == preferred.NO_LOOK
