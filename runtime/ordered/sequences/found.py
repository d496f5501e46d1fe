"""Calls of the kernels that search: what they are given, with room for what they find."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.definition import EveryMatch, Preferred
from tidegate.algebra.ordered.sequences.navigation import MatchNumber, reach_of
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.terms import attributes_of
from tidegate.algebra.time import last_instant
from tidegate.runtime.arrays import BoolArray, Int16Array, Int64Array
from tidegate.runtime.kernels.sequences import every, listed, preferred
from tidegate.runtime.kernels.sequences.absences import note_rows_after, note_rows_before
from tidegate.runtime.kernels.sequences.machine import DEPTH
from tidegate.runtime.kernels.sequences.open_searches import open_searches, searches_of_each_row
from tidegate.runtime.kernels.sequences.threads import NODE, REGISTERS
from tidegate.runtime.ordered.partition_store import EVER
from tidegate.runtime.ordered.row_arrays import ranges
from tidegate.runtime.ordered.sequences.ahead import verdicts
from tidegate.runtime.ordered.sequences.arrays import PatternArrays
from tidegate.runtime.ordered.sequences.kept import STANDING
from tidegate.runtime.ordered.sequences.listed import listed_within
from tidegate.runtime.ordered.sequences.nodes import NewNodes
from tidegate.runtime.ordered.sequences.rows import OrderedRows
from tidegate.runtime.ordered.sequences.told import states_told

#: The room for threads, for open matches and for what they have matched, before there is need for more.
_THREADS: Final = 64
_NODES: Final = 4096
#: An open search goes on from its threads once it has read so many rows for each row that they may name, or more.
WORTH: Final = 16
#: Searches from several starts keep so many threads and nodes for each row that waits, at most.
MOST: Final = 16
_SKIPS: Final = {"contiguous": every.CONTIGUOUS, "next": every.NEXT, "any": every.ANY}


@dataclass(slots=True)
class Standings:
    """How far the search has come in each partition, as `Standing` has it."""

    begin: Int64Array
    number: Int64Array
    taken: Int64Array
    whole: Int64Array

    @classmethod
    def none(cls, begin: Int64Array) -> Standings:
        """Of searches that begin at these places, of which nothing else is known."""
        return cls(begin, *(np.zeros(len(begin), dtype=np.int64) for _ in range(3)))

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
    to be looked at next. Their places are those of rows in the table. `nodes` are those that they refer to, by kind;
    these have numbers of rows.
    """

    waits: Int64Array
    threads: Int64Array
    look: Int64Array
    nodes: tuple[NewNodes, ...] = ()


@dataclass(frozen=True, slots=True)
class Given:
    """What an open search for every match goes on from: threads, by partition from where to where, the nodes so far,
    and what nodes say of the rows of the table. `begin` is where new rows begin, counted from the first one.
    """

    begin: Int64Array
    threads: Int64Array
    before: Int64Array
    nodes: tuple[tuple[Int64Array, Int64Array, Int64Array, Int64Array], ...]
    number: Int64Array


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


def of_partitions(found: Found, chosen: BoolArray) -> Found:
    """The matches of the chosen partitions."""
    its = chosen[found.partition]
    if its.all():
        return found
    rows = np.repeat(its, found.length)
    return replace(found, matches=found.matches[its], states=found.states[rows], places=found.places[rows])


class KernelCalls:
    """The calls for one node. The room that one has needed is there for the next."""

    def __init__(self, node: Sequences, arrays: PatternArrays) -> None:
        self.node, self.arrays, self.tables = node, arrays, arrays.tables
        read = {name for measure in node.measures for name in attributes_of(measure.term)}
        self.numbered = any(isinstance(n, MatchNumber) and n.name in read for n in node.navigations)
        self.anchored = any(guard.first for guard in self.tables.ways[0].guards)
        # Only of these are there open matches: the search may go on in more than one way.
        self.waits = any(one.waits for one in self.tables.compiled) or any(
            end.absent or end.last for ways in self.tables.ways for end in ways.ends
        )
        self.end = last_instant(node.input.schema[node.time].type)
        self.threads, self.nodes, self.more = _THREADS, _NODES, 1
        registers, (back, ahead) = self.tables.conditions.registers, reach_of(node.navigations)
        #: What of a thread names a row, where it has no node: its start is there.
        self.named = np.array([NODE, *(REGISTERS + n for n, r in enumerate(registers) if not r.is_number)])
        self.told, self.within = states_told(arrays), listed_within(arrays)
        self.width, self._rows = arrays.width, 1 + (len(self.named) - 1) * (1 + back)
        past = isinstance(node.selection, Preferred) and node.selection.skip.to == "past last row"
        each_row = isinstance(node.selection, Preferred) and node.selection.skip.to == "next row"
        asked = any(guard.absent or guard.present for guard in self.tables.ways[0].guards)
        #: Whether a search for every match goes on from its threads.
        self.resumes_every = isinstance(node.selection, EveryMatch) and not (asked or node.per_start is not None)
        preferred_ = (past or (each_row and not self.numbered)) and not len(arrays.absences)
        #: Whether a search that is open goes on from its threads: they say all that it has to know.
        self.resumes = (self.resumes_every or preferred_) and not (self.waits or self.anchored or ahead)
        self.resumes_every &= self.resumes
        #: Whether searches do that begin at each row.
        self.resumes_each_row = self.resumes and each_row
        #: How many integers nodes have, by kind, where threads refer to some; and which one of the first kind is a row.
        self.node_widths: tuple[int, ...] = ()
        self.node_row = every.ROW if self.within is None else listed.ROW
        if self.resumes_every:
            self.node_widths = (every.NODE_WIDTH,) if self.within is None else (listed.ENTRY_WIDTH, listed.LINK_WIDTH)
            if self.within is None:
                self.named[0] = every.START
            else:
                self.width, self.named = listed.LAST_WIDTH, self.named[:0]

    @property
    def _worth(self) -> int:
        """How many rows a search has read for each thread where it goes on from these."""
        return max(WORTH * self._rows, 1)

    @property
    def _worth_of_many(self) -> int:
        """How many rows wait where searches from several starts go on from their threads, however many these are: with
        each row they would all be asked again.
        """
        return max(16 * WORTH * self._rows, 1)

    def search(self, rows: OrderedRows, standings: Standings, after: int, until: int, *, limited: bool = True) -> Found:
        """The matches that are certain now. Takes the standings on. `limited`: so many may begin with one row as the
        node says, else any number.
        """
        inputs, columns = self._read(rows, standings.whole, until)
        selection = self.node.selection
        while True:
            if isinstance(selection, Preferred):
                found = self._preferred(
                    rows, standings, inputs, columns, (selection.skip.to == "next row", after, until)
                )
            else:
                per_start = self.node.per_start or 0 if limited else 0
                found = self._every(rows, standings, inputs, columns, (selection, after, until, per_start), None)
            if found is not None:
                return found
            self._make_room()

    def go_on(
        self, rows: OrderedRows, first_thread: Int64Array, read: Int64Array, threads: Int64Array, until: int
    ) -> OpenThreads:
        """The threads of the searches that are still open. Partition p has given `threads` from `first_thread[p]` on;
        `read` is how many rows each has read, with the new ones.
        """
        inputs, columns = self._read(rows, np.zeros(len(read), dtype=np.int64), until)
        options = self._options(next_row=False, after=until, until=until, worth=self._worth)
        waits, look = np.zeros(len(read), dtype=np.int64), np.empty(len(read), dtype=np.int64)
        while True:
            left = np.empty((self.more * (len(threads) + _THREADS), self.width), dtype=np.int64)
            count = open_searches(
                *inputs, rows.first_new, first_thread, read, threads, waits, left, look, *self.arrays.arguments,
                options, *columns, *self._search_scratch(),
            )  # fmt: skip
            if count >= 0:
                return OpenThreads(waits, left[:count], look)
            self._make_room()

    def every_gone_on(self, rows: OrderedRows, given: Given, after: int, until: int) -> tuple[Found, Int64Array]:
        """The matches that new rows make certain, with what is left to go on from, and the number of the row at which
        each search begins. Places of rows of matches are numbers.
        """
        selection, standings = self.node.selection, Standings.none(given.begin)
        assert isinstance(selection, EveryMatch)
        inputs, columns = self._read(rows, standings.whole, until)
        while True:
            found = self._every(rows, standings, inputs, columns, (selection, after, until, 0), given)
            if found is not None:
                return found, standings.begin
            self._make_room()

    def each_row_gone_on(self, rows: OrderedRows, given: Given, until: int) -> tuple[Found, Int64Array, Int64Array]:
        """The same of searches that begin at each row. The matches are those of new rows; the last array has the starts
        before them that have one, which `searched_from` tells.
        """
        return self._each_row(rows, given, np.empty((0, 2), dtype=np.int64), until)

    def searched_from(self, rows: OrderedRows, starts: Int64Array, until: int) -> Found:
        """The matches of these starts, which are certain, by all rows from there on."""
        none = np.zeros(len(rows.offsets), dtype=np.int64)
        threads = np.empty((0, self.width), dtype=np.int64)
        return self._each_row(rows, Given(none[1:], threads, none, (), np.arange(rows.height)), starts, until)[0]

    def _each_row(
        self, rows: OrderedRows, given: Given, starts: Int64Array, until: int
    ) -> tuple[Found, Int64Array, Int64Array]:
        partitions = len(rows.offsets) - 1
        inputs, columns = self._read(rows, np.zeros(partitions, dtype=np.int64), until)
        options = self._options(next_row=True, after=until, until=until, worth=self._worth_of_many)
        begin, look, waits = (np.zeros(partitions, dtype=np.int64) for _ in range(3))
        while True:
            left = np.empty((self.more * (len(given.threads) + rows.height + _THREADS), self.width), dtype=np.int64)
            matches = np.empty((rows.height + len(starts), 6), dtype=np.int64)
            states, decided = np.empty(self._labels(rows), dtype=np.int16), np.array([len(starts) or -1])
            again = starts if len(starts) else np.empty((len(given.threads), 2), dtype=np.int64)
            count = searches_of_each_row(
                *inputs, rows.first_new, given.before, given.threads, given.number, begin, look, waits, left, decided,
                *self.arrays.arguments, options, *columns, *self._search_scratch(), matches, states, again,
            )  # fmt: skip
            if count >= 0:
                matches = matches[:count]
                length = matches[:, preferred.LENGTH]
                places = ranges(matches[:, preferred.START], length)
                open_ = OpenThreads(waits, left[: int(waits.sum())], look)
                none = np.empty((0, 4), dtype=np.int64)
                found = Found(matches, states[: int(length.sum())], places, look, none, open_)
                return found, begin, again[: decided[0]]
            self._make_room()

    def _make_room(self) -> None:
        self.threads, self.nodes, self.more = 2 * self.threads, 2 * self.nodes, 2 * self.more

    def _read(self, rows: OrderedRows, whole: Int64Array, until: int) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
        """What kernels read of rows, and what rows say; `whole`: of which partitions the first rows are there."""
        arrays, compiled = self.arrays, self.tables.compiled
        satisfied = rows.satisfied([one.row for one in compiled])
        sure, gone = verdicts(rows, [one.ahead for one in compiled], satisfied, closed=until >= EVER)
        values, marks = rows.values(self.tables.conditions)
        come = np.zeros(rows.height, dtype=np.int64)
        following = np.empty((len(arrays.absences), rows.height), dtype=np.int64)
        if len(arrays.absences):
            note_rows_before(rows.offsets, rows.time, satisfied, arrays.absences, arrays.leading, come)
            note_rows_after(rows.offsets, satisfied, arrays.absences, following)
        if self.anchored:
            come |= arrays.from_first
            first = rows.offsets[:-1][(whole > 0) & (rows.offsets[:-1] < rows.offsets[1:])]
            come[first] ^= arrays.from_first
        inputs = (rows.offsets, rows.time, satisfied)
        return inputs, (sure, gone, come, following, values, values.view(np.float64), marks)

    def _options(self, *, next_row: bool, after: int, until: int, worth: int) -> Int64Array:
        nullable, begins = self.arrays.ends_of[1] > 0, self.arrays.wanted[0]
        closed = until >= EVER
        options = [next_row, self.numbered, begins, nullable, after, until, self.end, closed, worth, self.told, MOST]
        return np.array([int(option) for option in options])

    def _scratch(self, *tables: tuple[int, int]) -> tuple[Any, ...]:
        """Room for rows of so many columns each, and for the stack of a program."""
        rooms, stack = (np.empty(table, dtype=np.int64) for table in tables), np.empty(DEPTH, dtype=np.int64)
        return (*rooms, stack, stack.view(np.float64), np.empty(DEPTH, dtype=np.uint8))

    def _search_scratch(self) -> tuple[Any, ...]:
        """Room for threads, open matches and nodes of a search for a preferred match."""
        return self._scratch((2 * self.threads + 1, self.width), (2 * self.threads, 4), (self.nodes, 2))

    def _preferred(
        self, rows: OrderedRows, standings: Standings, inputs: tuple[Any, ...], columns: tuple[Any, ...],
        how: tuple[bool, int, int],
    ) -> Found | None:  # fmt: skip
        """None where there was no room."""
        next_row, after, until = how
        # No thread is worth more rows than there are.
        worth = rows.height + 1
        if self.resumes:
            worth = self._worth_of_many if next_row else self._worth
        options = self._options(next_row=next_row, after=after, until=until, worth=worth)
        waits = np.zeros(len(standings.begin), dtype=np.int64)
        most = self.more * (rows.height + _THREADS) if self.resumes_each_row else rows.height // worth
        left = np.empty((most, self.width), dtype=np.int64)
        matches, states = np.empty((rows.height + 1, 6), dtype=np.int64), np.empty(self._labels(rows), dtype=np.int16)
        taken_on = [one.copy() for one in (standings.begin, standings.number, standings.taken)]
        look = np.empty(len(standings.begin), dtype=np.int64)
        longest = int(np.diff(rows.offsets).max(initial=0)) + 1 if self.waits else 0
        count = preferred.preferred_matches(
            *inputs, *taken_on, look, waits, left, *self.arrays.arguments, self.arrays.labels, options, *columns,
            *self._search_scratch(), np.empty(longest, dtype=np.int64), np.empty(longest, dtype=np.int64),
            matches, states, np.zeros((rows.height if self.told else 0, 2), dtype=np.int64),
        )  # fmt: skip
        if count < 0:
            return None
        standings.begin, standings.number, standings.taken = taken_on
        matches = matches[:count]
        length = matches[:, preferred.LENGTH]
        places = ranges(matches[:, preferred.START], length)
        open_ = OpenThreads(waits, left[: int(waits.sum())], look) if self.resumes else None
        return Found(matches, states[: int(length.sum())], places, look, np.empty((0, 4), dtype=np.int64), open_)

    def _every(
        self, rows: OrderedRows, standings: Standings, inputs: tuple[Any, ...], columns: tuple[Any, ...],
        how: tuple[EveryMatch, int, int, int], given: Given | None,
    ) -> Found | None:  # fmt: skip
        """`given`: what the searches go on from, None where they read all rows. None where there was no room."""
        selection, after, until, per_start = how
        begins, closed = int(self.arrays.wanted[0]), int(until >= EVER)
        # No search waits with more rows than there are.
        worth = self._worth_of_many if self.resumes_every else rows.height + 1
        options = [_SKIPS[selection.skipping], begins, after, until, per_start, self.end, closed, worth, MOST]
        opened = self._opened(rows, given)
        begin, look = standings.begin.copy(), np.empty_like(standings.begin)
        room = self._labels(rows)
        matches, states = np.empty((room, 6), dtype=np.int64), np.empty(room, dtype=np.int16)
        places = np.empty(room, dtype=np.int64)
        call = self._every_match if self.within is None else self._listed
        count, excess = call(
            rows, (*inputs, begin, look), columns, np.array(options), per_start, (matches, states, places), opened
        )
        if count < 0:
            return None
        standings.begin, matches = begin - (rows.offsets[:-1] if given is None else 0), matches[:count]
        total = int(matches[:, preferred.LENGTH].sum())
        beyond = np.flatnonzero(excess[:, every.BY] >= 0)
        open_ = opened.left(look) if self.resumes_every else None
        excess = np.column_stack((beyond, excess[beyond]))
        return Found(matches, states[:total], places[:total], look, excess, open_)

    def _opened(self, rows: OrderedRows, given: Given | None) -> _Opened:
        """What searches go on from, and room for what is left of them."""
        partitions = len(rows.offsets) - 1
        none, widths = np.zeros(partitions, dtype=np.int64), self.node_widths or (every.NODE_WIDTH,)
        if given is None:
            nodes = tuple((none, none, none, np.empty((0, width), dtype=np.int64)) for width in widths)
            threads = np.empty((0, self.width), dtype=np.int64)
            given = Given(none, threads, np.zeros(partitions + 1, dtype=np.int64), nodes, np.arange(rows.height))
        room = self.more * (rows.height + _THREADS) if self.resumes_every else 0
        return _Opened(
            given,
            np.zeros(partitions, dtype=np.int64),
            np.empty((room + self.more * len(given.threads), self.width), dtype=np.int64),
            tuple((none.copy(), none.copy(), np.empty((room, width), dtype=np.int64)) for width in widths),
        )

    def _every_match(
        self, rows: OrderedRows, inputs: tuple[Any, ...], columns: tuple[Any, ...], options: Int64Array,
        per_start: int, out: tuple[Any, ...], opened: _Opened,
    ) -> tuple[int, Int64Array]:  # fmt: skip
        longest = int(np.diff(rows.offsets).max(initial=0)) if per_start else 0
        counts = np.empty((longest, int(self.arrays.residuals.max(initial=0)) + 1), dtype=np.int64)
        excess = np.full((len(rows.offsets) - 1 if per_start else 0, 3), -1, dtype=np.int64)
        count = every.every_match(
            *inputs, *self.arrays.arguments,
            self.arrays.wanted, self.arrays.watched, self.arrays.ending, options, *columns,
            *self._scratch((self.threads, self.width), (self.nodes, every.NODE_WIDTH)), *out,
            self.arrays.residuals, counts, excess, *opened.arguments,
        )  # fmt: skip
        return count, excess

    def _listed(
        self, rows: OrderedRows, inputs: tuple[Any, ...], _columns: tuple[Any, ...], options: Int64Array,
        _per_start: int, out: tuple[Any, ...], opened: _Opened,
    ) -> tuple[int, Int64Array]:  # fmt: skip
        """The same of a pattern whose matches are listed from their ends."""
        arrays, of_states = self.arrays, len(self.tables.automaton.states)
        longest = max(int(np.diff(rows.offsets).max(initial=0)) + 1, self.nodes)
        scratch = ((self.nodes, listed.ENTRY_WIDTH), (self.nodes, listed.LINK_WIDTH), (longest, 3))
        count = listed.listed_matches(
            *inputs, self.within, arrays.to, arrays.variable, arrays.parts, arrays.part_of, arrays.ending,
            options, np.full(of_states, -1), np.empty(of_states, dtype=np.int64),
            *(np.empty(table, dtype=np.int64) for table in scratch), *out, *opened.arguments,
        )  # fmt: skip
        return count, np.empty((0, 3), dtype=np.int64)

    def _labels(self, rows: OrderedRows) -> int:
        return self.more * (2 * rows.height + 64)


@dataclass(frozen=True, slots=True)
class _Opened:
    """What searches for every match go on from, and where kernels write what is left: how many threads each has, these,
    and of each kind of nodes the first one that is needed, how many are new, and the new ones.
    """

    given: Given
    waits: Int64Array
    threads: Int64Array
    nodes: tuple[tuple[Int64Array, Int64Array, Int64Array], ...]

    @property
    def arguments(self) -> tuple[Any, ...]:
        """As kernels take them."""
        known = (array for its in self.given.nodes for array in its)
        made = (array for its in self.nodes for array in its)
        return (self.given.number, self.given.threads, self.given.before, *known, self.waits, self.threads, *made)

    def left(self, look: Int64Array) -> OpenThreads:
        """What is left once a kernel has written it."""
        nodes = []
        for (first, count, rows), (_, _, end, _) in zip(self.nodes, self.given.nodes, strict=True):
            nodes.append(NewNodes(first, np.maximum(first, end), count, rows[: int(count.sum())]))
        return OpenThreads(self.waits, self.threads[: int(self.waits.sum())], look, tuple(nodes))
