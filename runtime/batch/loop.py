"""The batch loop of both engines: intent, ingest, progress, increments, garbage collection, commit.

An engine is an `Executor`: how rows are read, where a query is evaluated. What happens in which order, and what
counts, is decided here.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate.algebra.errors import TidegateError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.analysis.inner_queries import inner_owner
from tidegate.analysis.zones.sites import site_of_failure
from tidegate.runtime.batch.admission import Admission
from tidegate.runtime.batch.executor import Executor, Increment, IngestResult, Work
from tidegate.runtime.batch.garbage import Folding, Garbage, GarbageCollection
from tidegate.runtime.batch.increments import Evaluation, Leniency, Tell, nobody, nothing
from tidegate.runtime.batch.report import BatchReport, greatest_instants
from tidegate.runtime.batch.scheduler import Scheduler
from tidegate.runtime.batch.state import RunState
from tidegate.runtime.connectors.sources import OnError, SourceOptions
from tidegate.runtime.eval.beginnings.memory import beginnings_of
from tidegate.runtime.ingest.admission import Intake
from tidegate.runtime.ingest.keys import key_memory
from tidegate.runtime.plan.progress import input_streams
from tidegate.runtime.plan.schedule import Timetable
from tidegate.runtime.plan.slices import InterleavedRuns
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.checkpoint import Checkpoint
from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.errors import is_out_of_memory, out_of_memory
from tidegate.runtime.state.manifest import SET_ASIDE, UNREADABLE, added, set_aside_rows, unreadable_files
from tidegate.runtime.tuning.tuner import TUNING

#: Number of batches for which run-length encoding stays off after slices interleaved: the next are likely alike.
APART: Final = 16


@dataclass(slots=True)
class Runner:
    """A program at work on a checkpoint, one batch after another."""

    plan: Plan
    checkpoint: Checkpoint
    executor: Executor
    options: Mapping[str, SourceOptions]
    collect_garbage: GarbageCollection = "amortised"
    folding: Folding = "on"
    timetable: Timetable = field(default_factory=Timetable)
    on_error: Mapping[str, OnError] = field(default_factory=dict)
    """Per result stream what happens to rows of its queries without a value; by default they are set aside."""
    tell: Tell = nobody
    garbage: Garbage = field(init=False)
    admission: Admission = field(init=False)
    leniency: Leniency = field(init=False)
    state: RunState = field(init=False)
    """After the last batch that was committed."""
    interleaved: int | None = field(init=False, default=None)
    """The last batch that was evaluated twice, as slices of its input were found to interleave."""

    def __post_init__(self) -> None:
        keyed = [(stream, self.options[stream.name].key) for stream in input_streams(self.plan)]
        keys = {stream.name: key_memory(stream, key) for stream, key in keyed if key}
        told = {s.name: begun for s in input_streams(self.plan) if (begun := beginnings_of(s)) is not None}
        self.garbage = Garbage(self.plan, keys, self.collect_garbage, self.folding, told)
        self.admission = Admission.of(self.plan, self.options, self.garbage)
        self.leniency = Leniency.of(self.plan, self.options, self.on_error)
        self.state = RunState.load(self.plan, self.garbage.buffers, self.checkpoint.manifest)
        if (last := self.checkpoint.manifest) is not None:
            self.executor.tuner.load(last.extra.get(TUNING))

    def run(self, batch: Batch, work: Work) -> BatchReport:
        """One batch from ingest to commit. On any error the state stays what it was; the batch can be run again."""
        try:
            return self._run(batch, work)
        except EvaluationError as error:
            site = site_of_failure(self.plan.facts.program, error.message)
            raise error.at(site).with_traceback(error.__traceback__) from error.__cause__

    def _run(self, batch: Batch, work: Work) -> BatchReport:
        seconds: dict[str, float] = {}
        self.executor.tuner.begin(batch.seq, batch.intent.offer.files)
        try:
            ingested, evaluation = self._evaluate(batch, work, seconds, joining=self._joining(batch.seq))
        except InterleavedRuns:
            # Nothing of it counts yet: once more, with every event stored by itself, and the next batches at once so.
            batch.unstage()
            self.interleaved = batch.seq
            ingested, evaluation = self._evaluate(batch, work, seconds, joining=False)
        with _Step("collect", seconds):
            state, freed = self._collect(batch, evaluation.state())
        with _Step("commit", seconds):
            aside = _by_query(evaluation.increments.values())
            self._commit(batch, state, ingested, aside)
            self.state = state
        with _Step("report", {}):
            rows = {name: result.counts.rows_in for name, result in ingested.items()}
            files = {} if batch.intent.offer.pushed else batch.intent.offer.files  # else not all rows are theirs
            self.executor.tuner.ended(files, rows, sum(seconds.values()))
            self.executor.forget(state.paths())
            return self._report(batch, ingested, evaluation, freed, aside, seconds)

    def intakes(self, clock: int, *, joining: bool = False) -> dict[str, Intake]:
        """What admission of the next batch needs, per stream; the clock in microseconds."""
        return self.admission.intakes(self.state, clock, joining=joining)

    def _joining(self, seq: int) -> bool:
        """Whether events may be joined as they are read: not where a result may lag, nor soon after slices interleaved.

        Of interleaved slices an increment tells, which has to be one of the batch that read them.
        """
        return self.timetable.is_plain and (self.interleaved is None or seq >= self.interleaved + APART)

    def _evaluate(
        self, batch: Batch, work: Work, seconds: dict[str, float], *, joining: bool
    ) -> tuple[dict[str, IngestResult], Evaluation]:
        clock = batch.intent.clock
        with _Step("ingest", seconds):
            ingested = self.executor.ingest(batch, work, self.intakes(clock, joining=joining))
            self.admission.check(ingested)
            state = self.admission.admitted(self.state, work, ingested, clock)
        with _Step("increments", seconds):
            try:
                return ingested, self._increments(batch, state, self._ahead(batch, work, state))
            finally:
                self.executor.end_beside()

    def _ahead(self, batch: Batch, work: Work, state: RunState) -> Callable[[], None]:
        """Has rows of the next batch taken in, if it is called while this one is evaluated."""
        if (following := work.following) is None:
            return nothing
        # With its rows inputs have come so far as the next batch finds them, and no increment moves them.
        intakes = self.admission.intakes(state, batch.intent.clock, joining=self._joining(batch.seq + 1))

        def ahead() -> None:
            # Nothing of this batch needs it: what is wrong with files, memory or threads is for the next one to say.
            with suppress(TidegateError, OSError, MemoryError, RuntimeError):
                self.executor.ingest_ahead(following(), intakes)

        return ahead

    def _increments(self, batch: Batch, state: RunState, between: Callable[[], None]) -> Evaluation:
        last, clock = self.checkpoint.manifest, batch.intent.clock
        evaluation = Evaluation(
            self.plan,
            self.executor,
            self.garbage,
            self.leniency,
            batch,
            state,
            is_first=last is None,
            tell=self.tell,
            between=between,
        )
        before = (0, clock) if last is None else (last.seq, last.clock)
        evaluation.run(
            Scheduler(self.plan, self.timetable, evaluation.progress, state.skipped, before, batch.seq, clock)
        )
        return evaluation

    def _collect(self, batch: Batch, state: RunState) -> tuple[RunState, dict[str, int]]:
        """The state without the rows that nobody needs any more, its segments as files, and the rows freed per
        buffer.
        """
        segments = self.garbage.collected(self.executor, batch, state.segments, state.progress)
        swept = self.garbage.swept(self.executor, batch, segments, state.progress, state.operators)
        freed = {name: sum(s.rows for s in segments[name]) - sum(s.rows for s in left) for name, left in swept.items()}
        segments |= swept
        kept = dict(self.executor.persist(batch, segments))
        self.garbage.renamed(segments, kept)
        return replace(state, segments=kept), freed

    def _commit(
        self,
        batch: Batch,
        state: RunState,
        ingested: Mapping[str, IngestResult],
        aside: Mapping[str, Mapping[str, int]],
    ) -> None:
        extra: dict[str, Json] = state.extra()
        last = self.checkpoint.manifest
        unreadable = Counter({} if last is None else unreadable_files(last))
        unreadable.update({name: result.unreadable for name, result in ingested.items() if result.unreadable})
        if unreadable:
            extra[UNREADABLE] = dict(unreadable)
        if (learnt := self.executor.tuner.to_json()) is not None:
            extra[TUNING] = learnt
        if aside := added({} if last is None else set_aside_rows(last), aside):
            extra[SET_ASIDE] = dict(aside)
        batch.commit(
            segments={name: segments for name, segments in state.segments.items() if segments},
            progress=state.progress.to_json(),
            counts={name: result.counts for name, result in ingested.items()},
            operators=state.operators,
            extra=extra,
        )

    def _report(
        self,
        batch: Batch,
        ingested: Mapping[str, IngestResult],
        evaluation: Evaluation,
        freed: Mapping[str, int],
        aside: Mapping[str, Mapping[str, int]],
        seconds: Mapping[str, float],
    ) -> BatchReport:
        state, increments = self.state, evaluation.increments
        return BatchReport(
            seq=batch.seq,
            counts={name: result.counts for name, result in ingested.items()},
            results=self._new_rows(increments),
            progress={name: dict(p) for name, p in state.progress.queries.items()},
            bounds=state.progress.bounds(self.plan),
            greatest=greatest_instants(self.plan, ingested, increments),
            live_rows=state.live_rows(self.plan),
            seconds=seconds,
            places={name: increment.place for name, increment in increments.items()},
            freed=freed,
            live_bytes=state.live_bytes(self.plan),
            live_ranges=state.ranges(),
            settled=self.garbage.settled(state.segments, state.progress),
            clock=batch.intent.clock,
            spark=batch.intent.offer.spark,
            read=evaluation.read,
            waiting={name: one.because for name, one in state.skipped.items() if not inner_owner(name)},
            limits=self.executor.limits,
            plan=self.plan,
            interleaved=self.interleaved == batch.seq,
            set_aside=aside,
            unreadable={name: result.unreadable for name, result in ingested.items() if result.unreadable},
            choices=tuple(self.executor.tuner.choices),
        )

    def _new_rows(self, increments: Mapping[str, Increment]) -> dict[str, int]:
        """New rows per query: of each that a user asks, and of those inside it that were evaluated."""
        rows = {query.name: 0 for query in self.plan.queries if not query.facts.query.inner}
        return rows | {name: increment.rows for name, increment in increments.items()}


def _by_query(increments: Iterable[Increment]) -> dict[str, dict[str, int]]:
    """What increments set aside, per query and reason."""
    aside: dict[str, dict[str, int]] = {}
    for increment in increments:
        for (query, reason), rows in increment.aside.items():
            aside = added(aside, {query: {reason: rows}})
    return aside


class _Step:
    """Adds the time spent in a block to `seconds[name]`; says of refused memory in which step it was (TG510)."""

    def __init__(self, name: str, seconds: dict[str, float]) -> None:
        self.name, self.seconds = name, seconds

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.seconds[self.name] = self.seconds.get(self.name, 0.0) + time.perf_counter() - self.start
        if error is not None and is_out_of_memory(error):
            raise out_of_memory(f"a batch was in its step {self.name!r}", error) from error
