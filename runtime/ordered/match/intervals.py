"""Intervals read from stored rows. The keep condition decides which rows are still stored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl

from tidegate.algebra.ordered.derive import END, START
from tidegate.algebra.ordered.match.node import RowIntervals, measures
from tidegate.runtime.arrays import Int32Array, Int64Array
from tidegate.runtime.kernels.situations import ClosedSituations


@dataclass(frozen=True, slots=True)
class IntervalRows:
    """The rows of one symbol's intervals that may take part in matches of an increment, in the order of their starts.

    A row's number is its place here.
    """

    intervals: RowIntervals
    definition: int
    rows: pl.DataFrame

    @classmethod
    def of(cls, intervals: RowIntervals, definition: int, rows: pl.DataFrame) -> IntervalRows:
        return cls(intervals, definition, rows.sort(START, maintain_order=True))

    def closed(self, partition: Int32Array) -> ClosedSituations:
        """The rows as closed situations, with the partition of each."""
        count = self.rows.height
        return ClosedSituations(
            partition,
            np.full(count, self.definition, dtype=np.int16),
            self.rows.get_column(START).to_numpy(),
            self.rows.get_column(END).to_numpy(),
            np.arange(count, dtype=np.int64),
        )

    def values(self, numbers: Int64Array) -> pl.DataFrame:
        """The columns of the rows beside keys and ends."""
        return self.rows.select(measures(self.intervals))[numbers]
