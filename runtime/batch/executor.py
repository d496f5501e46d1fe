"""What the batch loop asks of an engine, and what an engine answers: the steps of a batch that touch rows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Protocol

from tidegate.algebra.terms import Term
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.facts import Rank
from tidegate.runtime.eval.beginnings.memory import Beginnings
from tidegate.runtime.eval.job import Job
from tidegate.runtime.eval.purge_schedule import Look, LookStep, Sweep
from tidegate.runtime.ingest.admission import Intake
from tidegate.runtime.plan.folding.fold import SettledCondition
from tidegate.runtime.plan.folding.shards import FoldStep
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.manifest import OperatorFiles, SourceCounts
from tidegate.runtime.state.segments import Segment
from tidegate.runtime.tuning.tuner import Tuner


@dataclass(frozen=True, slots=True)
class IngestResult:
    """What became of one stream's new rows: counts by fate, greatest instants, what was stored and set aside; files
    among that.
    """

    counts: SourceCounts
    greatest: Mapping[str, int] = field(default_factory=dict)
    punctuation: Mapping[str, int] = field(default_factory=dict)
    segments: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    first_rejected: str = ""
    unreadable: int = 0


@dataclass(frozen=True, slots=True)
class Increment:
    """New result rows of a query: how many, what other queries' buffers store of them, and where it was evaluated.

    `state` is what an operator that gathers events in order keeps from now on; perhaps it is still being written.
    `aside` counts, by query and reason, what was set aside.
    """

    rows: int
    segments: Mapping[str, tuple[Segment, ...]] = field(default_factory=dict)
    place: str = ""
    state: OperatorFiles | Future[OperatorFiles] | None = None
    aside: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def and_then(self, other: Increment) -> Increment:
        """Both increments of a query as one."""
        segments = {
            buffer: (*self.segments.get(buffer, ()), *other.segments.get(buffer, ()))
            for buffer in {**self.segments, **other.segments}
        }
        aside = Counter(self.aside) + Counter(other.aside)
        return Increment(self.rows + other.rows, segments, other.place or self.place, other.state or self.state, aside)


@dataclass(frozen=True, slots=True)
class Stratum:
    """One step of a recursive component: for each job the new rows whose rank is less than `limit`."""

    increments: Sequence[Increment]
    limit: int


@dataclass(frozen=True, slots=True)
class Work:
    """What a batch is asked to do: rows per stream in the engine's own form, progress from outside, streams that end.

    `close_at`: where that ends which is open after the last event. `declared`: the greatest instants that were
    among the progress from outside, also of a stream that then ended. `waiting`: streams of which there are files that
    no batch has read yet, so that they are not silent. `following` gives rows that the next batch will read, in the
    form of `arrivals`, and further ones each time it is called.
    """

    arrivals: Mapping[str, Any] = field(default_factory=dict)
    advances: Mapping[tuple[str, str], Extended] = field(default_factory=dict)
    close_at: int | None = None
    declared: Mapping[tuple[str, str], int] = field(default_factory=dict)
    waiting: frozenset[str] = frozenset()
    following: Callable[[], Mapping[str, Any]] | None = None


@dataclass(frozen=True, slots=True)
class Rewrite:
    """A compaction: rewrites these segments as few segments, with the rows that `keep` accepts.

    Many bytes are read and written piece by piece. Each piece but the last has at least `least` rows. With `settled`
    the rows for which it holds become one row per class, where the engine can do that. With `step` all are settled, and
    go to shards; else to `shard`. With `beginnings` those rows stay that still say something at the progress `reached`;
    the driver finds them.
    """

    buffer: Buffer
    segments: Sequence[Segment]
    keep: Term
    least: int = 0
    settled: SettledCondition | None = None
    step: FoldStep | None = None
    shard: int = 0
    beginnings: Beginnings | None = None
    reached: Extended = -INF

    @property
    def rows(self) -> int:
        return sum(segment.rows for segment in self.segments)

    @property
    def bytes(self) -> int:
        return sum(segment.bytes for segment in self.segments)


class Executor(Protocol):
    """How an engine does the steps of a batch that touch rows."""

    name: str

    @property
    def tuner(self) -> Tuner:
        """What chooses, where steps can be done in several ways."""

    @property
    def limits(self) -> Limits | None:
        """By which an increment takes its place, where there are several."""

    def ingest(self, batch: Batch, work: Work, intakes: Mapping[str, Intake]) -> dict[str, IngestResult]:
        """Read, judge and store the new rows of every stream."""

    def ingest_ahead(self, following: Mapping[str, Any], intakes: Mapping[str, Intake]) -> None:
        """Begin to read and judge rows of the next batch, by what is known before this one is evaluated."""

    def end_beside(self) -> None:
        """No further rows are begun in this batch, and what operators keep is written."""

    def increments(self, batch: Batch, jobs: Sequence[Job]) -> list[Increment]:
        """Evaluate queries that do not read each other over the relevant segments of their leaves; store what
        passes.
        """

    def stratum(self, batch: Batch, jobs: Sequence[Job], rank: Rank) -> Stratum | None:
        """Evaluate queries of a recursive component, and find those new rows that rank less than the least plus the
        step.

        None where there is no new row. The segments are for later strata of this batch to read, until `settle`.
        """

    def settle(self, batch: Batch, jobs: Sequence[Job], done: Mapping[str, Increment]) -> dict[str, Increment]:
        """Store what the strata of a component have found, all together, and set rows without a value aside; the same
        increments with segments that stay.

        The jobs are those of the whole batch, over all rows that it has found.
        """

    def rewrite(self, batch: Batch, rewrites: Sequence[Rewrite]) -> list[tuple[Segment, ...]]:
        """For each, new segments, one or few, with the rows that it lets live; none where no row is left."""

    def sweep(self, batch: Batch, sweep: Sweep) -> dict[str, tuple[Segment, ...]]:
        """The segments of those buffers that are written anew, without what partner and kill rule say is dead."""

    def look(self, batch: Batch, sweep: Sweep, look: Look, rows: int) -> LookStep | None:
        """A step of a look, through about so many rows; None: the engine does not look at so large a state."""

    def persist(self, batch: Batch, segments: Mapping[str, tuple[Segment, ...]]) -> Mapping[str, tuple[Segment, ...]]:
        """The segments that stay, per buffer, as files: those that the batch has only in memory so far are written."""

    def forget(self, live: frozenset[str]) -> None:
        """Only segments with these paths are still needed."""

    def close(self) -> None:
        """End what goes on beside batches."""
