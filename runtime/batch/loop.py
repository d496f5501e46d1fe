"""The batch loop of both engines: intent, ingest, progress, increments, garbage collection, commit.

An engine is an `Executor`: how rows are read, where a query is evaluated. What happens in which order, and what
counts, is decided here.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Node
from tidegate.algebra.row_wise import row_terms
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import Term
from tidegate.algebra.time import INF
from tidegate.analysis.facts import Rank, Recursion
from tidegate.runtime.batch import scheduler as turns
from tidegate.runtime.batch.end_of_input import CLOSING, Closing
from tidegate.runtime.batch.executor import Executor, Increment, Ingested, Work
from tidegate.runtime.batch.garbage import Garbage, GarbageCollection
from tidegate.runtime.batch.idle import idle_progress
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.batch.scheduler import MISSED, Missed, Turns
from tidegate.runtime.batch.source_activity import HEARD, Heard, from_json, means_of, to_json
from tidegate.runtime.connectors.sources import OnError, SourceOptions
from tidegate.runtime.eval.columns import stored_arrow_schema
from tidegate.runtime.eval.job import Job
from tidegate.runtime.eval.unevaluable import parts_to_evaluate
from tidegate.runtime.ingest.admission import Intake
from tidegate.runtime.ingest.keys import KeyMemory, key_memory
from tidegate.runtime.ordered.sizes import situation_bytes, situation_rows
from tidegate.runtime.plan.progress import ProgressState, input_streams, not_of_this_program, reach
from tidegate.runtime.plan.schedule import Timetable
from tidegate.runtime.plan.situation_state import deriving
from tidegate.runtime.plan.slices import Interleaved
from tidegate.runtime.plan.steps import Buffer, Leaf, Plan, Progress, QueryPlan
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.checkpoint import Checkpoint
from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.errors import is_out_of_memory, out_of_memory
from tidegate.runtime.state.manifest import (
    SET_ASIDE,
    UNREADABLE,
    KernelState,
    SourceCounts,
    added,
    set_aside_rows,
    unreadable_files,
)
from tidegate.runtime.state.segments import Segment, covering, schema_id

#: For so many batches after one whose slices interleave, events are not joined as they are read: the next are likely alike.
APART: Final = 16
#: After so many steps that read nothing but their own component's rows, a recursion is taken to be endless.
ENDLESS: Final = 10_000


_State = tuple[
    ProgressState,
    dict[str, tuple[Segment, ...]],
    dict[str, SourceCounts],
    dict[str, Heard],
    dict[str, Missed],
    dict[str, KernelState],
    Closing | None,
]


@dataclass(slots=True)
class Runner:
    """A program at work on a checkpoint, one batch after another."""

    plan: Plan
    checkpoint: Checkpoint
    executor: Executor
    options: Mapping[str, SourceOptions]
    collect_garbage: GarbageCollection = "amortised"
    timetable: Timetable = field(default_factory=Timetable)
    on_error: Mapping[str, OnError] = field(default_factory=dict)
    """Per result stream what happens to rows of its queries without a value; by default they are set aside."""
    progress: ProgressState = field(init=False)
    segments: dict[str, tuple[Segment, ...]] = field(init=False)
    counts: dict[str, SourceCounts] = field(init=False)
    heard: dict[str, Heard] = field(init=False, default_factory=dict)
    garbage: Garbage = field(init=False)
    keys: dict[str, KeyMemory] = field(init=False)
    """Per input stream with a key, what is remembered of its rows."""
    terms: dict[str, tuple[Node, ...]] = field(init=False)
    """Per input stream the row-wise parts of queries that hold terms which can fail on a row."""
    kernel: dict[str, KernelState] = field(init=False, default_factory=dict)
    """What the operators that gather events in order keep, by their queries."""
    missed: dict[str, Missed] = field(init=False, default_factory=dict)
    """The results that had no turn in the last batch."""
    closing: Closing | None = field(init=False, default=None)
    """Where situations end that are open when all streams have ended; None: nothing derives any."""
    read: dict[str, tuple[int, int]] = field(init=False, default_factory=dict)
    """Rows and bytes that this batch's increments read, per query."""
    interleaved: int | None = field(init=False, default=None)
    """The last batch that was evaluated twice, as slices of its input were found to interleave."""

    def __post_init__(self) -> None:
        self.progress = ProgressState.start(self.plan)
        keyed = [(stream, self.options[stream.name].key) for stream in input_streams(self.plan)]
        self.keys = {stream.name: key_memory(stream, key) for stream, key in keyed if key}
        parts = defaultdict[str, list[Node]](list)
        for query in self.plan.facts.queries:
            for stream, part in row_terms(query.query.node):
                parts[stream].append(part)
        self.terms = {stream.name: parts_to_evaluate(parts[stream.name]) for stream in input_streams(self.plan)}
        self.garbage = Garbage(self.plan, self.keys, self.collect_garbage)
        self.segments = {buffer.id: () for buffer in self.garbage.buffers}
        self.counts = {stream.name: SourceCounts() for stream in input_streams(self.plan)}
        last = self.checkpoint.manifest
        if deriving(self.plan):
            self.closing = Closing.from_json(None if last is None else last.extra.get(CLOSING))
        if last is not None:
            self.progress.load(last.progress)
            self._check_segments(last.segments)
            self.segments |= last.segments
            self.counts |= last.counts
            self.heard |= from_json(last.extra.get(HEARD))
            self.kernel |= self._known_states(last.kernel)
            self.missed |= turns.from_json(last.extra.get(MISSED))

    def _check_segments(self, stored: Mapping[str, Sequence[Segment]]) -> None:
        """`StateError` TG504 for segments of no buffer, of other columns, or without the bounds by which they are found."""
        buffers = {buffer.id: buffer for buffer in self.garbage.buffers}
        for name, segments in stored.items():
            if name not in buffers:
                raise not_of_this_program(f"a buffer {name!r:.200}")
            columns = schema_id(stored_arrow_schema(buffers[name].stored))
            for segment in segments:
                if not segment.bounds.keys() >= set(buffers[name].instants):
                    raise not_of_this_program(f"{segment.path} with instants {sorted(segment.bounds)!r:.200}")
                if segment.schema != columns:
                    raise not_of_this_program(
                        f"{segment.path} with other columns than {', '.join(buffers[name].stored)}"
                    )

    def _known_states(self, kernel: Mapping[str, KernelState]) -> Mapping[str, KernelState]:
        """`StateError` TG504 for the state of an operator that the program does not have."""
        known = {query.name for query in self.plan.queries if query.ordered is not None}
        for name in kernel:
            if name not in known:
                raise not_of_this_program(f"the state of an operator {name!r:.200}")
        return kernel

    def run(self, batch: Batch, work: Work) -> BatchReport:
        """One batch from ingest to commit. On any error nothing of it counts; the batch can be run again."""
        seconds: dict[str, float] = {}
        self.read.clear()
        before = self._state()
        try:
            try:
                ingested, increments = self._evaluate(batch, work, seconds, joining=self._joining(batch.seq))
            except Interleaved:
                # Nothing of it counts yet: once more, with every event stored by itself, and the next batches at once so.
                self._restore(before)
                batch.unstage()
                self.interleaved = batch.seq
                ingested, increments = self._evaluate(batch, work, seconds, joining=False)
            with _timed("collect", seconds):
                self._collect(batch)
                freed = self._sweep(batch)
                kept = dict(self.executor.persist(batch, self.segments))
                self.garbage.renamed(self.segments, kept)
                self.segments = kept
            with _timed("commit", seconds):
                aside = _by_query(increments.values())
                self._commit(batch, ingested, aside)
        except BaseException:
            self._restore(before)
            raise
        self.executor.forget(frozenset(s.path for segments in self.segments.values() for s in segments))
        return BatchReport(
            batch.seq,
            {name: one.counts for name, one in ingested.items()},
            {name: increment.rows for name, increment in increments.items()},
            {name: dict(p) for name, p in self.progress.queries.items()},
            self.progress.bounds(self.plan),
            self._greatest(ingested, increments),
            self.live_rows(),
            seconds,
            {name: increment.place for name, increment in increments.items()},
            freed,
            self._live_bytes(),
            self._ranges(),
            batch.intent.clock,
            batch.intent.offer.spark,
            dict(self.read),
            {name: one.because for name, one in self.missed.items()},
            self.executor.limits,
            self.plan,
            self.interleaved == batch.seq,
            aside,
            {name: one.unreadable for name, one in ingested.items() if one.unreadable},
        )

    def _state(self) -> _State:
        """What a batch changes, to go back to."""
        progress, segments, counts = self.progress.copy(), dict(self.segments), dict(self.counts)
        return progress, segments, counts, dict(self.heard), self.missed, dict(self.kernel), self.closing

    def _restore(self, before: _State) -> None:
        progress, segments, counts, heard, self.missed, kernel, self.closing = before
        self.progress, self.segments, self.counts = progress.copy(), dict(segments), dict(counts)
        self.heard, self.kernel = dict(heard), dict(kernel)
        self.read.clear()

    def _joining(self, seq: int) -> bool:
        """Whether events may be joined as they are read: not where a result may lag, nor soon after slices interleaved.

        Of interleaved slices an increment tells, which has to be one of the batch that read them.
        """
        return self.timetable.is_plain and (self.interleaved is None or seq >= self.interleaved + APART)

    def _evaluate(
        self, batch: Batch, work: Work, seconds: dict[str, float], *, joining: bool
    ) -> tuple[dict[str, Ingested], dict[str, Increment]]:
        with _timed("ingest", seconds):
            intakes = self.intakes(batch.intent.clock, joining=joining)
            ingested = self.executor.ingest(batch, work, intakes)
            self._check_policies(ingested)
            self._advance(work, ingested, batch.intent.clock)
        with _timed("increments", seconds):
            return ingested, self._increments(batch)

    def _ranges(self) -> dict[tuple[str, str], tuple[int, int]]:
        """Least and greatest instant per buffer and attribute, where every segment has them."""
        return {
            (name, a): limits
            for name, segments in self.segments.items()
            for a, limits in covering([segment.bounds for segment in segments]).items()
        }

    def _greatest(
        self, ingested: Mapping[str, Ingested], increments: Mapping[str, Increment]
    ) -> dict[tuple[str, str], int]:
        """The greatest instants of new rows: of inputs as they were accepted, of results as other queries store them."""
        found = {(name, a): value for name, one in ingested.items() for a, value in one.greatest.items()}
        for stored in (increment.segments for increment in increments.values()):
            for buffer in self.plan.buffers:
                if buffer.partial is None:
                    for segment in stored.get(buffer.id, ()):
                        for attribute, (_, high) in segment.bounds.items():
                            key = buffer.stream.name, attribute
                            found[key] = max(high, found.get(key, high))
        return found

    def live_rows(self) -> dict[str, int]:
        """Rows stored per buffer, and the situations that operators keep."""
        stored = {name: sum(segment.rows for segment in segments) for name, segments in self.segments.items()}
        return stored | situation_rows(self.plan, self.kernel)

    def _live_bytes(self) -> dict[str, int]:
        stored = {name: sum(segment.bytes for segment in segments) for name, segments in self.segments.items()}
        return stored | situation_bytes(self.plan, self.kernel)

    def intakes(self, clock: int, *, joining: bool = False) -> dict[str, Intake]:
        """What admission of the next batch needs, per stream; the clock in microseconds."""
        arrival = self._arrival(clock)
        return {stream.name: self._intake(stream, clock, arrival, joining) for stream in input_streams(self.plan)}

    def _arrival(self, clock: int) -> int:
        """The instant at which a batch receives rows: its clock, but later than every arrival before it.

        So all rows up to it have arrived when the batch ends, although a clock may stand still or run behind.
        """
        before = [
            b
            for name, one in self.options.items()
            if one.arrival is not None and isinstance(b := self.progress.inputs[name, one.arrival], int)
        ]
        return max([clock, *(b + 1 for b in before)])

    def _intake(self, stream: StreamDef, clock: int, arrival: int, joining: bool) -> Intake:
        own = [self.keys[stream.name].buffer] if stream.name in self.keys else []
        buffers = (*self.plan.feeds(stream.name), *own)
        remembered = tuple(segment for buffer in own for segment in self.segments[buffer.id])
        limits = self.options[stream.name].limits(stream, clock)
        return Intake(
            stream,
            self.progress.of_input(stream),
            buffers,
            self._doors(buffers),
            limits,
            remembered,
            arrival,
            joining,
            self.terms[stream.name],
        )

    def _doors(self, buffers: Sequence[Buffer]) -> dict[str, Term]:
        return {buffer.id: self.garbage.keep(buffer, self.progress) for buffer in buffers}

    def _check_policies(self, ingested: Mapping[str, Ingested]) -> None:
        for name, one in ingested.items():
            if self.options[name].policy == "fail" and one.counts.rejected:
                counts = ", ".join(f"{rows:,} {reason}" for reason, rows in sorted(one.counts.rejected.items()))
                raise QueryError(
                    "TG410",
                    f"{name}: rows were rejected ({counts}, of {one.counts.rows_in:,}), and its policy is to fail",
                    because=(one.first_rejected,),
                    hint='correct the input, declare a longer delay, or use policy="quarantine" to set such rows aside',
                )

    def _advance(self, work: Work, ingested: Mapping[str, Ingested], clock: int) -> None:
        arrival = self._arrival(clock)
        for name, one_source in self.options.items():
            if one_source.arrival is not None:
                self.progress.raise_input(name, one_source.arrival, arrival)
        for (name, attribute), value in work.advances.items():
            self.progress.raise_input(name, attribute, value)
        for name, one in ingested.items():
            self.counts[name] = self.counts[name] + one.counts
            for attribute, delay in self.options[name].delay.items():
                if attribute in one.greatest:
                    self.progress.raise_input(name, attribute, one.greatest[attribute] - delay - 1)
            for attribute, value in one.punctuation.items():
                self.progress.raise_input(name, attribute, value)
            self._store(one.segments)
        streams = input_streams(self.plan)
        speaking = {name for name, one in ingested.items() if one.counts.rows_in or one.counts.punctuations}
        speaking |= {name for name, _ in work.advances}
        for stream in streams:
            known, options = self.heard.get(stream.name, Heard(clock)), self.options[stream.name]
            greatest = ingested[stream.name].greatest if stream.name in ingested else {}
            spoke = clock if stream.name in speaking else None
            self.heard[stream.name] = known.again(spoke, greatest, means_of(stream, options))
        followed = idle_progress(streams, self.options, self.heard, self.progress.inputs, clock, work.waiting)
        for (name, attribute), value in followed.items():
            self.progress.raise_input(name, attribute, value)
        if self.closing is not None:
            self.closing = self.closing.after(work, ingested, self.progress)
            self.closing.check(self.plan, self.progress)

    def _store(self, new: Mapping[str, tuple[Segment, ...]]) -> None:
        for buffer, segments in new.items():
            self.segments[buffer] = (*self.segments[buffer], *(s for s in segments if s.rows))

    def _increments(self, batch: Batch) -> dict[str, Increment]:
        """Every query that has its turn and whose progress advances, level by level or in the order of the schedule."""
        done: dict[str, Increment] = {}
        begun = self._turns(batch)
        for queries in begun:
            recursion = self.plan.recursion(queries)
            done |= self._level(batch, queries) if recursion is None else self._recurse(batch, queries, recursion)
        self.missed = begun.missed
        return done

    def _turns(self, batch: Batch) -> Turns:
        last = self.checkpoint.manifest
        before = (0, batch.intent.clock) if last is None else (last.seq, last.clock)
        return Turns(self.plan, self.timetable, self.progress, self.missed, before, batch.seq, batch.intent.clock)

    def _level(self, batch: Batch, level: Sequence[QueryPlan]) -> dict[str, Increment]:
        done: dict[str, Increment] = {}
        jobs: list[Job] = []
        reached = reach(self.plan, level, self.progress)
        for query in level:
            old, new = self.progress.queries[query.name], reached[query.name]
            if new == old and not (query.facts.is_static and self.checkpoint.manifest is None):
                continue
            if new == old or query.may_pass(old, new):
                jobs += self._job(query, relevant(query, offered(query, self.segments), old, new), old, new)
            self.progress.queries[query.name] = new
        for job, increment in zip(jobs, self.executor.increments(batch, jobs) if jobs else [], strict=True):
            done[job.query.name] = increment
            self._store(increment.segments)
            if increment.state is not None:
                self.kernel[job.query.name] = increment.state
        return done

    def _recurse(self, batch: Batch, level: Sequence[QueryPlan], recursion: Recursion) -> dict[str, Increment]:
        """A recursive component, stratum by stratum: of the rows that would pass, those of the least ranks do (rule R20).

        Its progress rises only after the loop: until then keep and doors let stay what later strata read.
        """
        old = {query.name: self.progress.queries[query.name] for query in level}
        new = reach(self.plan, level, self.progress)
        advancing = [query for query in level if new[query.name] != old[query.name]]
        done: dict[str, Increment] = {}
        own = {query.stream for query in level}
        finished = any(INF in p.values() for p in new.values())
        rank, limit, idle = recursion.rank, None, 0
        # What is not relevant to one stratum is not to a later one: each looks at what the one before read, and at new rows.
        read = {query.name: offered(query, self.segments) for query in advancing}
        while advancing:
            jobs: list[Job] = []
            for query in advancing:
                low = beyond(rank, query.stream, limit, old[query.name])
                read[query.name] = relevant(query, read[query.name], low, new[query.name])
                jobs += self._job(query, read[query.name], low, new[query.name])
            stratum = self.executor.stratum(batch, jobs, rank) if jobs else None
            if stratum is None:
                break
            fresh: dict[str, tuple[Segment, ...]] = {}
            for job, increment in zip(jobs, stratum.increments, strict=True):
                done[job.query.name] = done.get(job.query.name, Increment(0)).and_then(increment)
                fresh |= {buffer: (*fresh.get(buffer, ()), *new_) for buffer, new_ in increment.segments.items()}
            for query in advancing:
                added = offered(query, fresh)
                read[query.name] = [[*one, *other] for one, other in zip(read[query.name], added, strict=True)]
            limit = stratum.limit
            idle = 0 if any(job.waits_for_other_than(own) for job in jobs) else idle + 1
            if finished and idle > ENDLESS:
                raise self._endless(level)
        settled = self.executor.settle(batch, advancing, done)
        for increment in settled.values():
            self._store(increment.segments)
        self.progress.queries |= new
        return settled

    def _endless(self, level: Sequence[QueryPlan]) -> QueryError:
        names = ", ".join(dict.fromkeys(query.stream for query in level))
        return QueryError(
            "TG415",
            f"{names}: the recursion does not end",
            because=(f"its last {ENDLESS} steps found nothing new in other streams, so it would go on for ever",),
            hint="end it by a condition: on a stream or table, or on a number that each step counts up",
        )

    def _job(self, query: QueryPlan, inputs: Sequence[Sequence[Segment]], old: Progress, new: Progress) -> list[Job]:
        """The increment of a query over relevant segments per leaf, if there are any to read."""
        state = self.kernel.get(query.name)
        if not any(inputs) and state is None and all(leaf.buffer is not None for leaf in query.leaves):
            return []
        feeds = self.plan.feeds(query.stream)
        doors = self._doors(feeds)
        last = query.ordered is not None and new[query.ordered.time] == INF
        close_at = self.closing.at if last and self.closing is not None else None
        job = Job(
            query,
            inputs,
            old,
            new,
            [(buffer, doors[buffer.id]) for buffer in feeds],
            state,
            close_at,
            self._is_lenient(query),
            frozenset(buffer.id for buffer in feeds if all(map(self._is_lenient, self._readers(buffer)))),
            query.ordered is not None and all(self._unties(query, leaf) for leaf in query.leaves),
        )
        rows, bytes_ = self.read.get(query.name, (0, 0))
        self.read[query.name] = rows + job.rows, bytes_ + job.bytes
        return [job]

    def _is_lenient(self, query: QueryPlan) -> bool:
        """Whether rows without a value are set aside; never over static tables alone, which whoever calls can mend."""
        return self.on_error.get(query.stream, "quarantine") == "quarantine" and not query.facts.is_static

    def _unties(self, query: QueryPlan, leaf: Leaf) -> bool:
        """Whether events of a leaf that nothing orders are set aside: as their source says, or of a result the query."""
        name = None if leaf.buffer is None else leaf.buffer.stream.name
        source = None if name is None else self.options.get(name)
        return self._is_lenient(query) if source is None else source.ties == "quarantine"

    def _readers(self, buffer: Buffer) -> list[QueryPlan]:
        return [query for query in self.plan.queries if any(leaf.buffer == buffer for leaf in query.leaves)]

    def _collect(self, batch: Batch) -> None:
        self.segments = self.garbage.collected(self.executor, batch, self.segments, self.progress)

    def _sweep(self, batch: Batch) -> dict[str, int]:
        """Gives the rows freed per buffer."""
        swept = self.garbage.swept(self.executor, batch, self.segments, self.progress)
        freed = {
            name: sum(s.rows for s in self.segments[name]) - sum(s.rows for s in left) for name, left in swept.items()
        }
        self.segments |= swept
        return freed

    def _commit(self, batch: Batch, ingested: Mapping[str, Ingested], aside: Mapping[str, Mapping[str, int]]) -> None:
        extra: dict[str, Json] = {HEARD: to_json(self.heard), MISSED: turns.to_json(self.missed)}
        last = self.checkpoint.manifest
        unreadable = Counter({} if last is None else unreadable_files(last))
        unreadable.update({name: one.unreadable for name, one in ingested.items() if one.unreadable})
        if unreadable:
            extra[UNREADABLE] = dict(unreadable)
        if aside := added({} if last is None else set_aside_rows(last), aside):
            extra[SET_ASIDE] = dict(aside)
        batch.commit(
            segments={name: segments for name, segments in self.segments.items() if segments},
            progress=self.progress.to_json(),
            counts={name: one.counts for name, one in ingested.items()},
            kernel=self.kernel,
            extra=extra if self.closing is None else {**extra, CLOSING: self.closing.to_json()},
        )


def _by_query(increments: Iterable[Increment]) -> dict[str, dict[str, int]]:
    """What increments set aside, per query and reason."""
    found: dict[str, dict[str, int]] = {}
    for increment in increments:
        for (query, reason), rows in increment.aside.items():
            found = added(found, {query: {reason: rows}})
    return found


def beyond(rank: Rank, stream: str, limit: int | None, old: Progress) -> Progress:
    """The progress that lets only rows pass that pass after `old` and rank at least `limit`."""
    if limit is None:
        return old
    return {a: max(old[a], instant) for a, instant in rank.below(stream, limit).items()}


def offered(query: QueryPlan, segments: Mapping[str, Sequence[Segment]]) -> list[list[Segment]]:
    """Per leaf of a query the segments of its buffer."""
    return [[] if leaf.buffer is None else list(segments.get(leaf.buffer.id, ())) for leaf in query.leaves]


def relevant(
    query: QueryPlan, segments: Sequence[Sequence[Segment]], old: Progress, new: Progress
) -> list[list[Segment]]:
    """Per leaf those of its segments that may hold a row that matters between `old` and `new`."""
    pairs = zip(query.leaves, segments, strict=True)
    return [[s for s in some if leaf.segment_relevant(s.bounds, old, new)] for leaf, some in pairs]


class _timed:  # reads as a statement
    """Adds the time spent in a block to `seconds[step]`; says of refused memory in which step it was (TG510)."""

    def __init__(self, step: str, seconds: dict[str, float]) -> None:
        self.step, self.seconds = step, seconds

    def __enter__(self) -> None:
        self.start = time.perf_counter()

    def __exit__(self, _: object, error: BaseException | None, __: object) -> None:
        self.seconds[self.step] = self.seconds.get(self.step, 0.0) + time.perf_counter() - self.start
        if error is not None and is_out_of_memory(error):
            raise out_of_memory(f"a batch was in its step {self.step!r}", error) from error
