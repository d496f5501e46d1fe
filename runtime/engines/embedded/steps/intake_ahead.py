"""Rows that the next batch begins with, taken in while this one is evaluated."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Condition

import polars as pl

from tidegate.runtime.connectors.sources import SourceOptions
from tidegate.runtime.ingest.admission import AHEAD, Intake
from tidegate.runtime.ingest.ingest import Arrival, IngestedRows, ingest_rows
from tidegate.runtime.ingest.inputs import Arrivals
from tidegate.runtime.state.inputs.positions import SourceFile


class TakenIn:
    """Files of a stream that a thread takes in one after the other, while others may be added."""

    def __init__(self, intake: Intake) -> None:
        self.read: dict[str, SourceFile] = {}
        """The files that the thread has read, as they were then."""
        self._intake = intake
        self._files: list[tuple[SourceFile, Arrivals]] = []
        self._more = Condition()
        self._next = self._end = 0
        self._ended = False
        self._rows: Future[IngestedRows]

    def begin(self, pool: ThreadPoolExecutor, statics: Mapping[str, pl.DataFrame], options: SourceOptions) -> None:
        """Has a thread of the pool take in what is added, until it is told that nothing more comes."""
        self._rows = pool.submit(ingest_rows, self._arrivals(), self._intake, statics, options)

    def add(self, arrivals: Arrivals) -> None:
        with self._more:
            self._files += [(file, arrivals) for file in arrivals.found]
            self._end = len(self._files)
            self._more.notify()

    def end(self) -> None:
        """Nothing more comes."""
        with self._more:
            self._ended = True
            self._more.notify()

    def drop(self) -> None:
        """Nobody wants the rows."""
        with self._more:
            self._end, self._ended = 0, True
            self._more.notify()

    def divided(self) -> frozenset[str]:
        """The files that are the thread's from now on: those that it has begun, and half of those that are left."""
        with self._more:
            self._end, self._ended = self._next + (self._end - self._next) // 2, True
            self._more.notify()
            return frozenset(file.path for file, _ in self._files[: self._end])

    def rows(self, now: Intake) -> IngestedRows | None:
        """The rows of the thread's files; None where some are not to be had, or would have other fates now.

        A file or a row that fails a batch is read again in its turn, and fails it then.
        """
        if self._rows.exception() is not None:
            return None
        rows = self._rows.result()
        return rows if _has_the_same_fates(rows, self._intake, now) else None

    def is_of(self, files: Collection[SourceFile], now: Intake) -> bool:
        """Whether only these files were added, and their rows are judged as they are now: whether they are late, and
        whether events are joined.
        """
        alike = self._intake.progress == now.progress and self._intake.joining == now.joining
        return alike and {file for file, _ in self._files} <= set(files)

    def _arrivals(self) -> Iterator[Arrival]:
        while True:
            with self._more:
                self._more.wait_for(lambda: self._ended or self._next < self._end)
                if self._next >= self._end:
                    return
                file, arrivals = self._files[self._next]
                self._next += 1
            arrival = arrivals.of(file.path)
            self.read |= arrivals.read
            yield arrival


class IntakeAhead:
    """A thread for each stream that takes in rows of the next batch, as far as their fates do not depend on what is yet
    to come.

    They are judged by the progress that inputs have made with the batch that runs, which is what the next one judges
    by. What a buffer need not store is known less well than it will be then, so a few rows more may be stored.
    """

    def __init__(self) -> None:
        self._pool: ThreadPoolExecutor | None = None
        self._begun: dict[str, TakenIn] = {}

    def begin(
        self, arrivals: Arrivals, intake: Intake, statics: Mapping[str, pl.DataFrame], options: SourceOptions
    ) -> None:
        """Begins to take in these rows of a stream, after those that were begun for the same batch."""
        name = intake.stream.name
        if name not in self._begun:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(thread_name_prefix="tidegate-intake-ahead")
            taken_in = TakenIn(intake)
            taken_in.begin(self._pool, statics, options)
            self._begun[name] = taken_in
        self._begun[name].add(arrivals)

    def end(self) -> None:
        """Nothing more is begun for this batch: no thread waits any longer."""
        for begun in self._begun.values():
            begun.end()

    def take(self, files: Collection[SourceFile], intake: Intake) -> TakenIn | None:
        """The rows of some of these files of a stream; None where none were begun, or they would be judged otherwise
        now.
        """
        begun = self._begun.pop(intake.stream.name, None)
        if begun is None or begun.is_of(files, intake):
            return begun
        begun.drop()
        return None

    def drop(self) -> None:
        """Lets go what nobody has taken."""
        for begun in self._begun.values():
            begun.drop()
        self._begun.clear()

    def close(self) -> None:
        """Ends the threads once they have read their files."""
        self.drop()
        if self._pool is not None:
            self._pool.shutdown(wait=False)
            self._pool = None


def _has_the_same_fates(rows: IngestedRows, begun: Intake, now: Intake) -> bool:
    """Whether rows that were judged by the clock of the batch before have the fates that the clock gives them now."""
    if rows.unreadable:  # what is told of a file has the time in it
        return False
    # A clock never goes back: what was not ahead is not ahead now.
    return begun.limits == now.limits or not (rows.beyond_guard or AHEAD in rows.rejected)
