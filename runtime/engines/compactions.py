"""Compaction of result directories by a run itself, between batches."""

from __future__ import annotations

import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import ParquetSink, Sink
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.outputs.compaction import FANOUT, READ, Known, compact

#: While a directory is read, the next try comes after twice as many batches each time, up to so many.
_MOST_APART: Final = 64 * FANOUT
_logger = logging.getLogger("tidegate.state")


@dataclass(slots=True)
class Compactions:
    """Of the sinks that want it, how many batches brought files since the directory was compacted last.

    What is known of their files is kept, so that a compaction does not open all that were ever merged.
    """

    sinks: Mapping[str, Sink]
    waiting: dict[str, int] = field(default_factory=dict)
    apart: dict[str, int] = field(default_factory=dict)
    """After how many batches the next one is due, of directories that were read when it was tried last."""
    known: dict[str, Known] = field(default_factory=dict)

    def after(self, report: BatchReport) -> None:
        """Compact the directories that have got so many files. One that can not be now is left until as many have come
        again; one that is being read, until twice as many have.
        """
        plan = {query.name: query.stream for query in report.plan.queries}
        for stream in {plan[query] for query, rows in report.results.items() if rows}:
            match self.sinks.get(stream):
                case ParquetSink(directory, True):
                    self._count(directory)

    def _count(self, directory: str) -> None:
        if directory not in self.waiting:
            self.waiting[directory] = len(os.listdir(directory)) - 1
        self.waiting[directory] += 1
        apart = self.apart.get(directory, FANOUT)
        if self.waiting[directory] < apart:
            return
        self.waiting[directory] = 0
        try:
            # No batch of this run publishes now, so whoever holds the directory reads it, and may do so for long.
            done = compact(directory, known=self.known.setdefault(directory, {}), tries=1)
        except StateError as error:  # the results are all there, in more files
            if error.code == READ:
                self.apart[directory] = min(2 * apart, _MOST_APART)
            _logger.warning("results are not compacted: %s", error)
        else:
            self.apart.pop(directory, None)
            _logger.info("%s: %d files became %d", directory, done.files_before, done.files)
