"""Compaction of result directories by a run itself, in steps between batches."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import ParquetSink, Sink
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.failpoints import Failpoints
from tidegate.runtime.state.outputs.beside import READ, sweep
from tidegate.runtime.state.outputs.compaction import FANOUT, CompactionResult, Known, Step, compacting

#: While a directory is read, the next try comes after twice as many batches each time, up to so many.
_MOST_APART: Final = 64 * FANOUT
#: After a batch a compaction goes on for such a part of the time that it took, until it has merged so many times as
#: many rows as came (to open a file counts as these), and by one step at least. A row is merged once for each tier that
#: it reaches, two or three times where batches bring many rows. A compaction that lasts longer merges more files at
#: once, and each of their rows less often: so compactions keep up.
_SHARE: Final = 0.5
_ROWS: Final = 3
_logger = logging.getLogger("tidegate.state")


@dataclass(slots=True)
class Compactions:
    """Of the sinks that want it, how many batches brought files since the directory was compacted last.

    What is known of their files is kept, so that a compaction does not open all that were ever merged.
    """

    sinks: Mapping[str, Sink]
    failpoints: Failpoints = field(default_factory=Failpoints)
    waiting: dict[str, int] = field(default_factory=dict)
    apart: dict[str, int] = field(default_factory=dict)
    """After how many batches the next one is due, of directories that were read when it was tried last."""
    known: dict[str, Known] = field(default_factory=dict)
    going: dict[str, Generator[Step, None, CompactionResult]] = field(default_factory=dict)
    """Compactions that were begun."""
    left: dict[str, float] = field(default_factory=dict)
    """When to look again for what compactions have left beside a directory."""

    def after(self, report: BatchReport) -> None:
        """Compact the directories that have got so many files. One that can not be now is left until as many have come
        again; one that is being read, until twice as many have.
        """
        plan = {query.name: query.stream for query in report.plan.queries}
        came: dict[str, int] = {}
        for query, rows in report.results.items():
            match self.sinks.get(plan[query]):
                case ParquetSink(directory, True) if rows:
                    came[directory] = came.get(directory, 0) + rows
        for directory in came:
            self._count(directory)
        until = time.monotonic() + _SHARE * sum(report.seconds.values())
        for directory in list(self.going):
            self._go_on(directory, until, came.get(directory, 0))
        for directory, due in list(self.left.items()):
            if time.monotonic() >= due:
                self._sweep(directory)

    def close(self) -> None:
        """Compactions that were begun are given up: the next run begins them anew."""
        for going in self.going.values():
            try:
                going.close()
            except StateError as error:  # the file that it was writing can not be ended
                _logger.warning("results are not compacted: %s", error)
        self.going.clear()

    def _count(self, directory: str) -> None:
        if directory not in self.waiting:
            self.waiting[directory] = len(os.listdir(directory)) - 1
            self.left[directory] = 0.0  # of the run before
        self.waiting[directory] += 1
        if directory in self.going or self.waiting[directory] < self.apart.get(directory, FANOUT):
            return
        self.waiting[directory] = 0
        # No batch of this run publishes then, so whoever holds the directory reads it, and may do so for long.
        known = self.known.setdefault(directory, {})
        self.going[directory] = compacting(directory, failpoints=self.failpoints, known=known, tries=1)

    def _go_on(self, directory: str, until: float, came: int) -> None:
        done = 0
        try:
            while not (step := next(self.going[directory])).wait:
                done += step.rows or came
                if done >= _ROWS * came and time.monotonic() >= until:
                    break
        except StopIteration as ended:
            result: CompactionResult = ended.value
            self.apart.pop(directory, None)
            self.left.setdefault(directory, 0.0)
            _logger.info("%s: %d files became %d", directory, result.files_before, result.files)
        except StateError as error:  # the results are all there, in more files
            if error.code == READ:
                self.apart[directory] = min(2 * self.apart.get(directory, FANOUT), _MOST_APART)
            _logger.warning("results are not compacted: %s", error)
        else:
            return
        del self.going[directory]

    def _sweep(self, directory: str) -> None:
        del self.left[directory]
        try:
            wait = sweep(directory)
        except StateError as error:
            _logger.warning("beside results files stay that were merged: %s", error)
            return
        if wait is not None:
            self.left[directory] = time.monotonic() + wait
