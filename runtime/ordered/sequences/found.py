"""Calls of the kernels that search: what they are given, with room for what they find."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.definition import EveryMatch, Preferred
from tidegate.algebra.ordered.sequences.navigation import MatchNumber, reach_of
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import Absence, Anchor, patterns_of
from tidegate.algebra.terms import attributes_of
from tidegate.algebra.time import last_instant
from tidegate.runtime.arrays import Int16Array, Int64Array
from tidegate.runtime.kernels.sequences import every, preferred
from tidegate.runtime.kernels.sequences.machine import DEPTH
from tidegate.runtime.kernels.sequences.open_searches import open_searches
from tidegate.runtime.kernels.sequences.threads import NODE, REGISTERS
from tidegate.runtime.ordered.row_arrays import ranges
from tidegate.runtime.ordered.sequences.arrays import PatternArrays
from tidegate.runtime.ordered.sequences.kept import STANDING
from tidegate.runtime.ordered.sequences.rows import OrderedRows

#: The room for threads and for what they have matched, before there is need for more.
_THREADS: Final = 64
_NODES: Final = 4096
#: An open search goes on from its threads once it has read so many rows for each row that they may name, or more.
WORTH: Final = 16
_SKIPS: Final = {"contiguous": every.CONTIGUOUS, "next": every.NEXT, "any": every.ANY}


@dataclass(slots=True)
class Standings:
    """How far the search has come in each partition, as `Standing` has it."""

    begin: Int64Array
    number: Int64Array
    taken: Int64Array
    whole: Int64Array

    @classmethod
    def of(cls, kept: pl.DataFrame, rows: OrderedRows) -> Standings:
        """All rows that are kept of a partition say the same."""
        count = rows.first_new - rows.offsets[:-1]
        has, first = np.flatnonzero(count), (np.cumsum(count) - count)
        begin, number, taken = (np.zeros(len(count), dtype=np.int64) for _ in range(3))
        found = cls(begin, number, taken, np.ones(len(count), dtype=np.int64))
        for name in STANDING:
            getattr(found, name)[has] = kept.get_column(name).to_numpy()[first[has]]
        return found


@dataclass(frozen=True, slots=True)
class OpenThreads:
    """The threads of open searches, partition by partition, as many as `waits` says of each, and when partitions have
    to be looked at next. Their places are those of rows in the table.
    """

    waits: Int64Array
    threads: Int64Array
    look: Int64Array


@dataclass(frozen=True, slots=True)
class Found:
    """Matches in the rows of a table, as the kernels have them, and the states and places of their rows, one match
    after the other. `look` is when partitions have to be looked at next. `excess` has the partitions in which a row
    begins too many matches: the number of each, and then what kernels say of it. `open` has the threads that are kept.
    """

    matches: Int64Array
    states: Int16Array
    places: Int64Array
    look: Int64Array
    excess: Int64Array
    open: OpenThreads | None = None

    @property
    def partition(self) -> Int64Array:
        return self.matches[:, preferred.PARTITION]

    @property
    def start(self) -> Int64Array:
        """The place of the first row, or of the one at which an empty match is."""
        return self.matches[:, preferred.START]

    @property
    def length(self) -> Int64Array:
        return self.matches[:, preferred.LENGTH]

    @property
    def detected(self) -> Int64Array:
        return self.matches[:, preferred.DETECTED]

    @property
    def number(self) -> Int64Array:
        return self.matches[:, preferred.NUMBER]

    @property
    def first_row(self) -> Int64Array:
        """Where the rows of each match begin."""
        return np.cumsum(self.length) - self.length

    @property
    def last(self) -> Int64Array:
        """The place of the last row, or of the one at which an empty match is."""
        last = self.start.copy()
        has = self.length > 0
        last[has] = self.places[(self.first_row + self.length - 1)[has]]
        return last


class KernelCalls:
    """The calls for one node. The room that one has needed is there for the next."""

    def __init__(self, node: Sequences, arrays: PatternArrays) -> None:
        self.node, self.arrays, self.tables = node, arrays, arrays.tables
        read = {name for measure in node.measures for name in attributes_of(measure.term)}
        self.numbered = any(isinstance(n, MatchNumber) and n.name in read for n in node.navigations)
        self.end = last_instant(node.input.schema[node.time].type)
        self.threads, self.nodes, self.more = _THREADS, _NODES, 1
        registers, (back, ahead) = self.tables.conditions.registers, reach_of(node.navigations)
        #: What of a thread names a row, where it has no node: its start is there.
        self.named = np.array([NODE, *(REGISTERS + n for n, r in enumerate(registers) if not r.counts)])
        self.width, self._rows = arrays.width, 1 + (len(self.named) - 1) * (1 + back)
        selection, parts = node.selection, patterns_of(node.pattern)
        past = isinstance(selection, Preferred) and selection.skip.to == "past last row"
        #: Whether a search that is open goes on from its threads: they say all that it has to know.
        self.resumes = past and not ahead and not any(isinstance(part, Absence | Anchor) for part in parts)

    @property
    def _worth(self) -> int:
        """How many rows a search has read for each thread where it goes on from these."""
        return max(WORTH * self._rows, 1)

    def search(self, rows: OrderedRows, standings: Standings, after: int, until: int, *, limited: bool = True) -> Found:
        """The matches that are certain now. Takes the standings on. `limited`: so many may begin with one row as the
        node says, else any number.
        """
        inputs, columns = self._read(rows)
        selection = self.node.selection
        while True:
            if isinstance(selection, Preferred):
                found = self._preferred(
                    rows, standings, inputs, columns, (selection.skip.to == "next row", after, until)
                )
            else:
                per_start = self.node.per_start or 0 if limited else 0
                found = self._every(rows, standings, inputs, columns, (selection, after, until, per_start))
            if found is not None:
                return found
            self._make_room()

    def go_on(
        self, rows: OrderedRows, first_thread: Int64Array, read: Int64Array, threads: Int64Array, until: int
    ) -> OpenThreads:
        """The threads of the searches that are still open. Partition p has given `threads` from `first_thread[p]` on;
        `read` is how many rows each has read, with the new ones.
        """
        inputs, columns = self._read(rows)
        options = self._options(next_row=False, after=until, until=until, worth=self._worth)
        waits, look = np.zeros(len(read), dtype=np.int64), np.empty(len(read), dtype=np.int64)
        while True:
            waiting = np.empty((self.more * (len(threads) + _THREADS), self.width), dtype=np.int64)
            count = open_searches(
                *inputs, rows.first_new, first_thread, read, threads, waits, waiting, look, *self.arrays.arguments,
                options, *columns, *self._scratch(2 * self.threads, self.nodes, 2),
            )  # fmt: skip
            if count >= 0:
                return OpenThreads(waits, waiting[:count], look)
            self._make_room()

    def _make_room(self) -> None:
        self.threads, self.nodes, self.more = 2 * self.threads, 2 * self.nodes, 2 * self.more

    def _read(self, rows: OrderedRows) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What kernels read of rows, and the columns of programs."""
        inputs = (rows.offsets, rows.time, rows.satisfied([one.row for one in self.tables.compiled]))
        values, marks = rows.values(self.tables.conditions)
        return inputs, (values, values.view(np.float64), marks)

    def _options(self, *, next_row: bool, after: int, until: int, worth: int) -> Int64Array:
        nullable, begins = self.arrays.end_at[0] >= 0, self.arrays.wanted[0]
        options = [next_row, self.numbered, begins, nullable, after, until, self.end, worth]
        return np.array([int(option) for option in options])

    def _scratch(self, threads: int, nodes: int, of_node: int) -> tuple[Any, ...]:
        tables = (np.empty((threads, self.width), dtype=np.int64), np.empty((nodes, of_node), dtype=np.int64))
        return (*tables, np.empty(DEPTH, dtype=np.int64), np.empty(DEPTH), np.empty(DEPTH, dtype=np.uint8))

    def _preferred(
        self, rows: OrderedRows, standings: Standings, inputs: tuple[Any, ...], columns: tuple[Any, ...],
        how: tuple[bool, int, int],
    ) -> Found | None:  # fmt: skip
        """None where there was no room."""
        next_row, after, until = how
        # No thread is worth more rows than there are.
        worth = self._worth if self.resumes else rows.height + 1
        options = self._options(next_row=next_row, after=after, until=until, worth=worth)
        waits = np.zeros(len(standings.begin), dtype=np.int64)
        waiting = np.empty((rows.height // worth, self.width), dtype=np.int64)
        matches, states = np.empty((rows.height + 1, 6), dtype=np.int64), np.empty(self._labels(rows), dtype=np.int16)
        taken_on = [one.copy() for one in (standings.begin, standings.number, standings.taken)]
        look = np.empty(len(standings.begin), dtype=np.int64)
        count = preferred.preferred_matches(
            *inputs, *taken_on, look, waits, waiting, *self.arrays.arguments, options, *columns,
            *self._scratch(2 * self.threads, self.nodes, 2), matches, states,
        )  # fmt: skip
        if count < 0:
            return None
        standings.begin, standings.number, standings.taken = taken_on
        matches = matches[:count]
        length = matches[:, preferred.LENGTH]
        places = ranges(matches[:, preferred.START], length)
        open_ = OpenThreads(waits, waiting[: int(waits.sum())], look) if self.resumes else None
        return Found(matches, states[: int(length.sum())], places, look, np.empty((0, 4), dtype=np.int64), open_)

    def _every(
        self, rows: OrderedRows, standings: Standings, inputs: tuple[Any, ...], columns: tuple[Any, ...],
        how: tuple[EveryMatch, int, int, int],
    ) -> Found | None:  # fmt: skip
        """None where there was no room."""
        selection, after, until, per_start = how
        options = np.array([_SKIPS[selection.skipping], int(self.arrays.wanted[0]), after, until, per_start])
        partitions = len(rows.offsets) - 1
        longest = int(np.diff(rows.offsets).max(initial=0)) if per_start else 0
        counts = np.empty((longest, int(self.arrays.residuals.max(initial=0)) + 1), dtype=np.int64)
        excess = np.full((partitions if per_start else 0, 3), -1, dtype=np.int64)
        room = self._labels(rows)
        matches, states = np.empty((room, 6), dtype=np.int64), np.empty(room, dtype=np.int16)
        places, begin, look = np.empty(room, dtype=np.int64), standings.begin.copy(), np.empty_like(standings.begin)
        count = every.every_match(
            *inputs, begin, look, *self.arrays.arguments, self.arrays.wanted, options,
            *columns, *self._scratch(self.threads, self.nodes, 4), matches, states, places,
            self.arrays.residuals, counts, excess,
        )  # fmt: skip
        if count < 0:
            return None
        standings.begin, matches = begin, matches[:count]
        total = int(matches[:, preferred.LENGTH].sum())
        beyond = np.flatnonzero(excess[:, every.BY] >= 0)
        return Found(matches, states[:total], places[:total], look, np.column_stack((beyond, excess[beyond])))

    def _labels(self, rows: OrderedRows) -> int:
        return self.more * (2 * rows.height + 64)
