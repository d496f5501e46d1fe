"""How the embedded engine does the steps of a batch: everything in this process, segments cached as Polars frames."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import InitVar, dataclass, field, replace

import polars as pl

from tidegate.analysis.facts import Rank
from tidegate.analysis.recursion import ranks_below
from tidegate.runtime.batch.executor import Increment, IngestResult, Rewrite, Stratum, Work
from tidegate.runtime.connectors.sources import SourceOptions
from tidegate.runtime.engines import memory
from tidegate.runtime.engines.embedded.steps.aside_rows import AsideRows, UnsettledQueries
from tidegate.runtime.engines.embedded.steps.evaluation import JobEvaluation
from tidegate.runtime.engines.embedded.steps.intake_ahead import IntakeAhead, TakenIn
from tidegate.runtime.engines.embedded.steps.ordered_evaluation import OrderedEvaluation
from tidegate.runtime.engines.embedded.steps.pending_segments import PendingSegments
from tidegate.runtime.engines.embedded.steps.result_rows import ResultRows
from tidegate.runtime.engines.embedded.steps.rewriting import SegmentRewriter
from tidegate.runtime.engines.embedded.steps.segment_cache import SegmentCache
from tidegate.runtime.engines.embedded.steps.segment_reader import SegmentReader
from tidegate.runtime.eval.increment import keep_true
from tidegate.runtime.eval.job import Job
from tidegate.runtime.eval.purge_schedule import Look, LookStep, Sweep
from tidegate.runtime.ingest.admission import Intake
from tidegate.runtime.ingest.ingest import (
    Arrival,
    IngestedRows,
    ingest_rows,
    ingest_side_by_side,
    is_judged_in_order,
    remembered_of,
    together,
)
from tidegate.runtime.ingest.inputs import Arrivals, bytes_of, shares
from tidegate.runtime.ordered.operators import Operators
from tidegate.runtime.plan.steps import QueryPlan
from tidegate.runtime.rows import as_frame
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.segments import Segment
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.tuning.choices import INGEST, Way
from tidegate.runtime.tuning.tuner import Tuner


@dataclass(slots=True)
class EmbeddedExecutor:
    """Runs steps with Polars; `cache_bytes` bounds the rows of segments held in memory; None: a
    share of what there is.

    `written` names the result streams whose rows a sink wants. New segments of up to `pending_bytes` together are
    written only at the end of their batch, those that are still of use then. Up to `threads` take in the files of a
    batch. `beside`: a thread writes large states while other steps go on, and some of several segments.
    """

    store: Store
    statics: Mapping[str, pl.DataFrame]
    options: Mapping[str, SourceOptions]
    written: frozenset[str]
    cache_bytes: InitVar[int | None] = None
    pending_bytes: InitVar[int] = 256 << 20
    threads: int = 1
    beside: bool = False
    tuner: Tuner = field(default_factory=Tuner)
    name: str = "embedded"
    operators: Operators = field(init=False)
    cache: SegmentCache = field(init=False)
    _pending: PendingSegments = field(init=False)
    _reader: SegmentReader = field(init=False)
    _aside: AsideRows = field(init=False)
    _evaluation: JobEvaluation = field(init=False)
    _unsettled: UnsettledQueries = field(init=False)
    _strata: JobEvaluation = field(init=False)
    _ordered: OrderedEvaluation = field(init=False)
    _results: ResultRows = field(init=False)
    _rewriter: SegmentRewriter = field(init=False)
    _writer: ThreadPoolExecutor | None = field(init=False)
    _ahead: IntakeAhead = field(init=False, default_factory=IntakeAhead)

    def __post_init__(self, cache_bytes: int | None, pending_bytes: int) -> None:
        self._writer = ThreadPoolExecutor(1, "tidegate-writer") if self.beside else None
        self.operators = Operators(self.store, self._writer)
        self.cache = SegmentCache(self.store, memory.cache_bytes(cache_bytes))
        self._pending = PendingSegments(self.cache, pending_bytes, self._writer)
        self._aside = AsideRows()
        self._reader = reader = SegmentReader(self.cache, self._pending)
        self._evaluation = JobEvaluation(reader, self.statics, self._aside)
        self._unsettled = UnsettledQueries()
        self._strata = JobEvaluation(reader, self.statics, self._unsettled)
        self._ordered = OrderedEvaluation(self._evaluation, self.operators, self._aside)
        self._results = ResultRows(self._pending, self.statics, self._aside, self.written)
        self._rewriter = SegmentRewriter(reader, self._pending)

    @property
    def limits(self) -> None:
        """There is one place only."""

    def ingest(self, batch: Batch, work: Work, intakes: Mapping[str, Intake]) -> dict[str, IngestResult]:
        done = {}
        for name, arrivals in work.arrivals.items():
            intake, options = intakes[name], self.options[name]
            rows = self._ingested(batch, name, arrivals, intake, options)
            if isinstance(arrivals, Arrivals):
                batch.read_as(name, arrivals.read.values())
            if rows.quarantine:
                batch.quarantine(rows.quarantine.table())
            segments = {
                buffer.id: (self._pending.keep(batch, buffer, stored),)
                for buffer in intake.stored
                if (stored := rows.stored.get(buffer.id)) is not None and stored.height
            }
            done[name] = IngestResult(
                rows.counts, rows.greatest, rows.punctuation, segments, rows.first_rejected, rows.unreadable
            )
        self._ahead.drop()
        return done

    def ingest_ahead(self, following: Mapping[str, Arrivals], intakes: Mapping[str, Intake]) -> None:
        for name, arrivals in following.items():
            self._ahead.begin(arrivals, intakes[name], self.statics, self.options[name])

    def end_beside(self) -> None:
        self._ahead.end()
        self.operators.wait()

    def drop_ahead(self) -> None:
        """Lets go what was taken in and is not wanted."""
        self._ahead.drop()

    def _ingested(
        self, batch: Batch, name: str, arrivals: Iterable[Arrival], intake: Intake, options: SourceOptions
    ) -> IngestedRows:
        if isinstance(arrivals, Arrivals) and (begun := self._ahead.take(arrivals.found, intake)) is not None:
            return self._gone_on(batch, name, arrivals, begun, intake, options)
        parts = shares(arrivals, self.threads) if not is_judged_in_order(intake.stream, options) else ()
        if len(parts) < 2:
            remembered = remembered_of(intake, options, self._reader.with_index)
            return ingest_rows(arrivals, intake, self.statics, options, remembered, batch.quarantine)
        step, size, count = f"{INGEST} {name}", bytes_of(arrivals), len(parts)
        way = self.tuner.choose(step, self.tuner.rows_of(name, size), (Way("here", count, count), Way("here")))
        began = time.perf_counter()
        if way.tasks > 1:
            rows = ingest_side_by_side(parts, intake, self.statics, options)
        else:
            rows = ingest_rows(arrivals, intake, self.statics, options, None, batch.quarantine)
        self.tuner.measured({step: (way, rows.counts.rows_in)}, time.perf_counter() - began)
        return rows

    def _gone_on(
        self, batch: Batch, name: str, arrivals: Arrivals, begun: TakenIn, intake: Intake, options: SourceOptions
    ) -> IngestedRows:
        """All rows, some of which were begun to be taken in: here as many of the files that are left as there.

        They are in the order in which they arrive, and of two errors the first one in it is raised.
        """
        theirs = begun.divided()
        before = replace(arrivals, pushed=(), paths=tuple(path for path in arrivals.paths if path in theirs))
        after = replace(arrivals, pushed=(), paths=tuple(path for path in arrivals.paths if path not in theirs))
        pushed, rest = list[IngestedRows](), list[IngestedRows]()
        failed: Exception | None = None
        try:
            if arrivals.pushed:
                pushed = [self._ingested(batch, name, replace(arrivals, paths=()), intake, options)]
            try:
                rest = [self._ingested(batch, name, after, intake, options)] if after.paths else []
            except Exception as error:  # noqa: BLE001  # raised below, unless the thread's rows fail too
                failed = error
            if (rows := begun.rows(intake)) is None:
                rows = self._ingested(batch, name, before, intake, options)
            else:
                arrivals.read.update(begun.read)
        finally:
            begun.drop()
        if failed is not None:
            raise failed
        return together(intake, [*pushed, rows, *rest])

    def increments(self, batch: Batch, jobs: Sequence[Job]) -> list[Increment]:
        self._aside.clear()  # of an attempt that failed
        ordered = {id(job): self._completed(batch, job) for job in jobs if job.query.ordered is not None}
        others = [job for job in jobs if id(job) not in ordered]
        rows = dict(zip(map(id, others), self._evaluation.rows(others), strict=True))
        return [ordered.get(id(job)) or self._results.store(batch, job, rows[id(job)]) for job in jobs]

    def _completed(self, batch: Batch, job: Job) -> Increment:
        """The rows that an ordered operator completes, and what it keeps."""
        after, rows = self._ordered.step(job)
        increment = self._results.store(batch, job, rows)
        return replace(increment, state=self.operators.keep(batch, job, after))

    def stratum(self, batch: Batch, jobs: Sequence[Job], rank: Rank) -> Stratum | None:
        self._aside.begin(batch)
        self._unsettled.begin(batch)
        results = [as_frame(rows) for rows in self._strata.rows(jobs)]
        streams = [job.query.facts.output for job in jobs]
        least = [
            rank.of(stream.name, rows.select(pl.col(stream.progress).min()).row(0, named=True))
            for stream, rows in zip(streams, results, strict=True)
            if rows.height
        ]
        if not least:
            return None
        limit = min(least) + rank.step
        below = [ranks_below(rank, stream, limit) for stream in streams]
        lowest = [
            keep_true(rows, condition, stream.schema)
            for condition, stream, rows in zip(below, streams, results, strict=True)
        ]
        return Stratum([self._results.hold(batch, job, rows) for job, rows in zip(jobs, lowest, strict=True)], limit)

    def settle(self, batch: Batch, jobs: Sequence[Job], done: Mapping[str, Increment]) -> dict[str, Increment]:
        self._aside.begin(batch)
        self._unsettled.begin(batch)
        for job in jobs:
            if job.query.name in self._unsettled.names:
                self._aside.add(job.query.name, job.query.name, self._strata.set_aside(job))
        return self._results.settle(batch, [job.query for job in jobs], done)

    def on_disk(self, batch: Batch, segment: Segment) -> Segment:
        """The segment as a file that others can read, also where it has still to be written for good."""
        return self._pending.on_disk(batch, segment)

    def persist(self, batch: Batch, segments: Mapping[str, tuple[Segment, ...]]) -> Mapping[str, tuple[Segment, ...]]:
        return self._pending.persist(batch, segments)

    def rewrite(self, batch: Batch, rewrites: Sequence[Rewrite]) -> list[tuple[Segment, ...]]:
        return [self._rewriter.rewrite(batch, rewrite) for rewrite in rewrites]

    def sweep(self, batch: Batch, sweep: Sweep) -> dict[str, tuple[Segment, ...]]:
        return self._rewriter.sweep(batch, replace(sweep, needs=self.operators.needs))

    def look(self, batch: Batch, sweep: Sweep, look: Look, rows: int) -> LookStep:
        return self._rewriter.look(batch, replace(sweep, needs=self.operators.needs), look, rows)

    def forget(self, live: frozenset[str]) -> None:
        self.cache.forget(live)

    def close(self) -> None:
        self._ahead.close()
        if self._writer is not None:
            self._writer.shutdown()

    def announce(self, query: QueryPlan, pairs: int, *, compared: bool = False) -> None:
        """Says that a join of this query is about to compare so many pairs of rows, or has, wherever it does."""
        self._evaluation.many_pairs.announce(query, pairs, compared=compared)

    def leave_to_others(self, here: Sequence[Job], elsewhere: Sequence[Job]) -> None:
        """Of increments that are evaluated at two places: what only others read is held in memory no longer."""
        ids, paths = _read_by(elsewhere)
        own_ids, own_paths = _read_by(here)
        self._pending.read_elsewhere.difference_update(own_ids)
        self._pending.read_elsewhere.update(ids - own_ids)
        self.cache.let_go(paths - own_paths)


def _read_by(jobs: Sequence[Job]) -> tuple[set[str], set[str]]:
    """The ids of the buffers that increments read, and the paths of their segments."""
    ids = {leaf.buffer.id for job in jobs for leaf in job.query.leaves if leaf.buffer is not None}
    return ids, {segment.path for job in jobs for some in job.inputs for segment in some}
