"""What one batch did, in numbers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from tidegate.algebra.time import Extended
from tidegate.runtime.plan.places import Limits
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.state.manifest import SourceCounts
from tidegate.runtime.state.positions import SparkBatch

KEPT_REPORTS: Final = 100
"""Reports that a run keeps, of its last batches. One takes 3 to 20 KB, so a run of months can not keep all; `on_batch` sees each."""


@dataclass(frozen=True, slots=True)
class BatchReport:
    """What one batch did: rows by fate per source, new rows per query, progress, live rows per buffer, time per step.

    Of every stream that a query reads, by attribute: `bounds` says how far it has arrived, `greatest` what the batch brought.
    `live_rows` has rows per buffer and, as "Q: situations", those that the query Q keeps, open ones and such as may be matched.
    `waiting` says of results that had no turn by the schedule why. `live_ranges` has the least and greatest instants that a buffer holds, `clock` is in microseconds. `read` has rows and
    bytes of the segments that a query's increment read, `places` where, by `limits` (None: embedded, one place).
    `interleaved`: slices of the input reached into each other, so it was read a second time, event by event.
    `set_aside` has, per query and reason, rows of its evaluation without a value, sums that do not fit, and tied events.
    `unreadable` has, per stream, how many files were set aside as they cannot be read.
    """

    seq: int
    counts: Mapping[str, SourceCounts]
    results: Mapping[str, int]
    progress: Mapping[str, Mapping[str, Extended]]
    bounds: Mapping[tuple[str, str], Extended]
    greatest: Mapping[tuple[str, str], int]
    live_rows: Mapping[str, int]
    seconds: Mapping[str, float]
    places: Mapping[str, str]
    freed: Mapping[str, int]
    live_bytes: Mapping[str, int]
    live_ranges: Mapping[tuple[str, str], tuple[int, int]]
    clock: int
    spark: SparkBatch | None
    read: Mapping[str, tuple[int, int]]
    waiting: Mapping[str, str]
    limits: Limits | None
    plan: Plan = field(repr=False, compare=False)
    interleaved: bool = False
    set_aside: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unreadable: Mapping[str, int] = field(default_factory=dict)
