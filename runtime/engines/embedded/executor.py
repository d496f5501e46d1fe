"""How the embedded engine does the steps of a batch: everything in this process, segments cached as Polars frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import Term
from tidegate.algebra.time import INF
from tidegate.analysis.facts import Rank
from tidegate.analysis.inner_queries import owner_of
from tidegate.analysis.recursion import ranks_below
from tidegate.runtime.batch.executor import Increment, IngestResult, Rewrite, Stratum, Work
from tidegate.runtime.connectors.sources import SourceOptions
from tidegate.runtime.eval.aggregates.partials import merge
from tidegate.runtime.eval.columns import only, polars_schema, stored_arrow_schema, to_user_table
from tidegate.runtime.eval.dependents import Judgement
from tidegate.runtime.eval.increment import Ready, common_parts, increment, keep_true, read_leaf
from tidegate.runtime.eval.job import Job
from tidegate.runtime.eval.lenient import UNEVALUABLE, SetAside, lenient_increment
from tidegate.runtime.eval.purge_rows import surviving
from tidegate.runtime.eval.purging import Look, LookStep, Sweep
from tidegate.runtime.eval.small import rows as small_rows
from tidegate.runtime.eval.small.increment import (
    Rows,
    as_frame,
    as_table,
    size_of,
    small_increment,
    small_kept,
    small_leaf,
)
from tidegate.runtime.eval.small.rows import SmallRows, Unsupported
from tidegate.runtime.eval.unevaluable import failures, terms_of
from tidegate.runtime.ingest.admission import Intake
from tidegate.runtime.ingest.buffering import absorb, absorbed
from tidegate.runtime.ingest.ingest import Arrival, IngestedRows, ingest_rows, ingest_side_by_side, load_seen
from tidegate.runtime.ingest.inputs import shares
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.operators import Operators
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.steps import Buffer, QueryPlan
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.quarantine import quarantine_table
from tidegate.runtime.state.segments import Segment, int64_bounds, read_pieces, read_segments, schema_id
from tidegate.runtime.state.store.interface import Store

#: Rows of a file that a rewrite reads at a time, and bytes of rows that it gathers before it writes them.
PIECE_ROWS = 1 << 17
PIECE_BYTES = 64 << 20


@dataclass(slots=True)
class Held:
    """What a batch has made and nobody has written so far: rows by the paths of segments that are none yet.

    What the batch drops again before its end is never written. `bytes` is their size, `passed` are new result rows of
    strata per query, `copies` files of segments that another engine had to read meanwhile.
    """

    batch: Batch
    rows: dict[str, tuple[Buffer, Rows]] = field(default_factory=dict)
    bytes: int = 0
    made: int = 0
    passed: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    copies: dict[str, Segment] = field(default_factory=dict)

    def segment(self, buffer: Buffer, rows: Rows) -> Segment:
        self.made += 1
        path = f"in memory {self.batch.seq}-{self.batch.attempt}-{self.made}"
        self.rows[path] = (buffer, rows)
        size = size_of(rows)
        self.bytes += size
        if isinstance(rows, SmallRows):
            bounds = rows.bounds(buffer.instants)
        else:
            bounds = int64_bounds(as_table(rows[:, list(buffer.instants)]), buffer.instants)
        return Segment(path, rows.height, size, "", _schema_id(buffer.stored), bounds, self.batch.seq, 0)


@dataclass(slots=True)
class EmbeddedExecutor:
    """Runs steps with Polars; `cache_bytes` bounds the frames of segments held in memory.

    `written` names the result streams whose rows a sink wants. New segments of up to `held_bytes` together are written
    only at the end of their batch, those that are still of use then. `threads` take in the files of a batch.
    """

    store: Store
    statics: Mapping[str, pl.DataFrame]
    options: Mapping[str, SourceOptions]
    written: frozenset[str]
    cache_bytes: int = 256 << 20
    held_bytes: int = 256 << 20
    threads: int = 1
    name: str = "embedded"
    operators: Operators = field(init=False)
    _frames: dict[str, Rows] = field(default_factory=dict)
    _cached: int = 0
    _held: Held | None = None
    _aside: dict[str, list[tuple[str, SetAside]]] = field(default_factory=dict)
    """What the increment of a query, by its name, has set aside, each with the query or buffer for which it was."""

    def __post_init__(self) -> None:
        self.operators = Operators(self.store)

    @property
    def limits(self) -> None:
        """There is one place only."""

    def ingest(self, batch: Batch, work: Work, intakes: Mapping[str, Intake]) -> dict[str, IngestResult]:
        done = {}
        for name, arrivals in work.arrivals.items():
            intake, options = intakes[name], self.options[name]
            rows = self._ingested(arrivals, intake, options)
            if rows.quarantine:
                batch.quarantine(rows.quarantine_table())
            segments = {
                buffer.id: (self._keep(batch, buffer, stored),)
                for buffer in intakes[name].buffers
                if (stored := rows.stored.get(buffer.id)) is not None and stored.height
            }
            done[name] = IngestResult(
                rows.counts, rows.greatest, rows.punctuation, segments, rows.first_rejected, rows.unreadable
            )
        return done

    def _ingested(self, arrivals: Iterable[Arrival], intake: Intake, options: SourceOptions) -> IngestedRows:
        parts = shares(arrivals, self.threads) if not options.key else ()
        if len(parts) > 1:
            return ingest_side_by_side(parts, intake, self.statics, options)
        return ingest_rows(arrivals, intake, self.statics, options, load_seen(self.store, intake, options))

    def increments(self, batch: Batch, jobs: Sequence[Job]) -> list[Increment]:
        self._aside.clear()  # of an attempt that failed
        ordered = {id(job): self._ordered(batch, job) for job in jobs if job.query.ordered is not None}
        others = [job for job in jobs if id(job) not in ordered]
        rows = dict(zip(map(id, others), self._evaluate(others), strict=True))
        return [ordered.get(id(job)) or self._finish(batch, job, rows[id(job)]) for job in jobs]

    def _ordered(self, batch: Batch, job: Job) -> Increment:
        """The rows that an ordered operator completes, and what it keeps."""
        ordered = job.query.ordered
        assert ordered is not None
        leaves = self._events(Demand.of(job.query, job.old, job.new), job)
        try:
            operator = self.operators.of(job)
            events = operator.events(leaves, job.old[ordered.time], job.new[ordered.time])
            after, completed = self._stepped(operator, events, job)
            if job.new[ordered.time] == INF:
                after = after.emptied()
            rows = self._rows(job, {0: completed}, {}) if completed.height else completed
        except EvaluationError as error:
            raise _of_query(error, job) from error
        return replace(self._finish(batch, job, rows), state=self.operators.keep(batch, job, after))

    def _stepped(self, operator: Operator, events: Sequence[Rows], job: Job) -> tuple[Operator, pl.DataFrame]:
        """The operator after an increment, and what it completes; events that nothing orders are set aside."""
        assert job.query.ordered is not None
        time = job.query.ordered.time
        ties: list[SetAside] | None = None
        sums: list[SetAside] | None = None
        while True:
            try:
                after, rows = operator.step(events, job.old[time], job.new[time], job.close_at)
                break
            except EvaluationError as error:
                if error.code == "TG304" and job.untied and ties is None:
                    events, ties = operator.untied(events)
                elif error.code == "TG301" and job.lenient and sums is None:
                    operator = operator.noting(sums := [])
                else:
                    raise
                if sums:
                    sums.clear()
        aside = [*(ties or ()), *(sums or ())]
        self._aside.setdefault(job.query.name, []).extend((job.query.name, one) for one in aside)
        if sums is None:
            return after, rows
        return after.noting(None), rows

    def _events(self, demand: Demand, job: Job) -> Mapping[int, Rows]:
        """The rows that an ordered operator reads, by leaf."""
        try:
            read: dict[object, SmallRows] = {}
            return {k: self._few_leaf(demand, job, k, read) for k in range(len(job.query.leaves))}
        except Unsupported:
            return self._read_leaves(demand, job, {})

    def stratum(self, batch: Batch, jobs: Sequence[Job], rank: Rank) -> Stratum | None:
        # A row is met in several strata: nothing would say in which of them it is set aside.
        found = [as_frame(rows) for rows in self._evaluate([replace(job, lenient=False) for job in jobs])]
        streams = [job.query.facts.output for job in jobs]
        least = [
            rank.of(stream.name, rows.select(pl.col(stream.progress).min()).row(0, named=True))
            for stream, rows in zip(streams, found, strict=True)
            if rows.height
        ]
        if not least:
            return None
        limit = min(least) + rank.step
        lowest = [
            keep_true(rows, ranks_below(rank, stream, limit), stream.schema)
            for stream, rows in zip(streams, found, strict=True)
        ]
        return Stratum([self._hold(batch, job, rows) for job, rows in zip(jobs, lowest, strict=True)], limit)

    def _hold(self, batch: Batch, job: Job, rows: pl.DataFrame) -> Increment:
        """Rows of a stratum, kept in memory: written one by one, a thousand strata would be thousands of files."""
        if not rows.height:
            return Increment(0, place="driver")
        held = self._held_for(batch)
        stored = {
            buffer.id: (held.segment(buffer, part),)
            for buffer, door in job.feeds
            if (part := absorb(rows, buffer, door, self.statics)).height
        }
        held.passed.setdefault(job.query.name, []).append(rows)
        return Increment(rows.height, stored, "driver")

    def _held_for(self, batch: Batch) -> Held:
        if self._held is None or self._held.batch is not batch:
            self._held = Held(batch)
        return self._held

    def settle(self, batch: Batch, queries: Sequence[QueryPlan], done: Mapping[str, Increment]) -> dict[str, Increment]:
        held = self._held_for(batch)
        passed, held.passed = held.passed, {}
        settled: dict[str, Increment] = {}
        for query in queries:
            if query.name not in done:
                continue
            one = done[query.name]
            if query.stream in self.written and query.name in passed:
                self._stage(batch, query, pl.concat(passed[query.name]))
            segments = {name: self._settled(batch, held, found) for name, found in one.segments.items()}
            settled[query.name] = Increment(one.rows, segments, one.place)
        return settled

    def _settled(self, batch: Batch, held: Held, segments: Sequence[Segment]) -> tuple[Segment, ...]:
        """The segments with those in memory as one."""
        on_disk = tuple(segment for segment in segments if segment.path not in held.rows)
        loose = [held.rows.pop(segment.path) for segment in segments if segment.path in held.rows]
        if not loose:
            return on_disk
        held.bytes -= sum(size_of(rows) for _, rows in loose)
        return (*on_disk, self._keep(batch, loose[0][0], pl.concat([as_frame(rows) for _, rows in loose])))

    def on_disk(self, batch: Batch, segment: Segment) -> Segment:
        """The segment as a file that others can read, also where it has still to be written for good."""
        held = self._held_for(batch)
        if segment.path not in held.rows:
            return segment
        if segment.path not in held.copies:
            held.copies[segment.path] = self._write(batch, *held.rows[segment.path])
        return held.copies[segment.path]

    def persist(self, batch: Batch, segments: Mapping[str, tuple[Segment, ...]]) -> Mapping[str, tuple[Segment, ...]]:
        held, self._held = self._held_for(batch), None
        if not held.rows:
            return segments
        return {
            name: tuple(
                self._pack(batch, segment, *held.rows[segment.path]) if segment.path in held.rows else segment
                for segment in some
            )
            for name, some in segments.items()
        }

    def _evaluate(self, jobs: Sequence[Job]) -> list[Rows]:
        """The rows of each increment: of few rows by NumPy, else by Polars."""
        demands = [Demand.of(job.query, job.old, job.new) for job in jobs]
        read: dict[object, SmallRows] = {}
        shared: dict[object, SmallRows] = {}
        pairs = zip(demands, jobs, strict=True)
        found = {k: rows for k, pair in enumerate(pairs) if (rows := self._few_rows(*pair, read, shared)) is not None}
        others = [k for k in range(len(jobs)) if k not in found]
        by_polars = self._by_polars([jobs[k] for k in others], [demands[k] for k in others])
        return [found[k] if k in found else by_polars[others.index(k)] for k in range(len(jobs))]

    def _few_rows(
        self, demand: Demand, job: Job, read: dict[object, SmallRows], shared: dict[object, SmallRows]
    ) -> SmallRows | None:
        """The rows of an increment by NumPy; None where they are for Polars."""
        if job.rows > small_rows.MOST:
            return None
        try:
            leaves = {k: self._few_leaf(demand, job, k, read) for k in range(len(job.query.leaves))}
            return small_increment(demand, leaves, job.old, job.new, shared)
        except Unsupported:
            return None

    def _few_leaf(self, demand: Demand, job: Job, k: int, read: dict[object, SmallRows]) -> SmallRows:
        leaf, segments, relevant = job.query.leaves[k], job.inputs[k], demand.relevant[k]
        if leaf.buffer is None or relevant is None:
            raise Unsupported
        key = leaf.buffer.id, leaf.columns, relevant, tuple(segment.path for segment in segments)
        if key not in read:
            read[key] = small_leaf(leaf, self._few(leaf.buffer, segments), relevant)
        return read[key]

    def _few(self, buffer: Buffer, segments: Sequence[Segment]) -> SmallRows:
        """The rows of segments as arrays."""
        if sum(segment.rows for segment in segments) > small_rows.MOST:
            raise Unsupported
        found = map(self._held_rows, segments)
        parts = [rows if isinstance(rows, SmallRows) else SmallRows.of(rows) for rows in found]
        return small_rows.stacked(parts) if parts else small_rows.no_rows(buffer.stored)

    def _by_polars(self, jobs: Sequence[Job], demands: Sequence[Demand]) -> list[pl.DataFrame]:
        if not jobs:
            return []
        known: dict[object, pl.DataFrame] = {}
        read = [self._read_leaves(demand, job, known) for demand, job in zip(demands, jobs, strict=True)]
        try:
            ready = common_parts(demands, read)
        except EvaluationError:  # each query by itself, to learn which of them fails
            ready = [{} for _ in jobs]
        return [self._rows(job, leaves, parts) for job, leaves, parts in zip(jobs, read, ready, strict=True)]

    def _rows(self, job: Job, leaves: Mapping[int, pl.DataFrame], ready: Ready) -> pl.DataFrame:
        """The rows of an increment; what fails is set aside, or says which query's it is."""
        try:
            return increment(job.query, leaves, job.old, job.new, ready)
        except EvaluationError as error:
            if not job.lenient:
                raise _of_query(error, job) from error
        rows, aside = lenient_increment(job.query, leaves, job.old, job.new)
        self._aside.setdefault(job.query.name, []).extend((job.query.name, one) for one in aside)
        return rows

    def _read_leaves(self, demand: Demand, job: Job, known: dict[object, pl.DataFrame]) -> dict[int, pl.DataFrame]:
        """Rows by leaf; what another leaf has read alike is `known`."""
        leaves = {}
        parts = zip(job.query.leaves, job.inputs, demand.relevant, strict=True)
        for index, (leaf, segments, relevant) in enumerate(parts):
            source = leaf.static if leaf.buffer is None else leaf.buffer.id
            key = source, leaf.columns, relevant, tuple(segment.path for segment in segments)
            if key not in known:
                frame = None if leaf.buffer is None else self._frame(leaf.buffer, segments)
                known[key] = read_leaf(leaf, frame, relevant, self.statics)
            leaves[index] = known[key]
        return leaves

    def _finish(self, batch: Batch, job: Job, rows: Rows) -> Increment:
        stored = {}
        for buffer, door in job.feeds if rows.height else ():
            part = self._absorbed(job, rows, buffer, door)
            if part.height:
                stored[buffer.id] = (self._keep(batch, buffer, part),)
        if rows.height and job.query.stream in self.written:
            self._stage(batch, job.query, rows)
        return Increment(rows.height, stored, "driver", aside=self._set_aside(batch, job))

    def _absorbed(self, job: Job, rows: Rows, buffer: Buffer, door: Term) -> Rows:
        """What a buffer stores of a result; rows for which a term of its readers has no value are set aside."""
        try:
            return absorbed(rows, buffer, door, self.statics)
        except EvaluationError as error:
            if buffer.id not in job.lenient_feeds:
                raise _of_query(error, job) from error
        frame = as_frame(rows)
        found = failures((terms_of(buffer),), frame, self.statics)
        schema = job.query.facts.output.schema
        plain = only(frame, schema.names)
        self._aside.setdefault(job.query.name, []).extend(
            (buffer.id, SetAside(UNEVALUABLE, None, plain.row(place, named=True), schema, error))
            for place, error in found.items()
        )
        fine = frame.filter(~pl.int_range(pl.len()).is_in(list(found)))
        return absorbed(fine, buffer, door, self.statics)

    def _set_aside(self, batch: Batch, job: Job) -> Mapping[tuple[str, str], int]:
        """Writes aside what an increment has set aside; gives its counts by query, or buffer of a result, and reason."""
        aside = self._aside.pop(job.query.name, [])
        if aside:
            rows = [one.as_row(where, number) for number, (where, one) in enumerate(aside)]
            batch.quarantine(quarantine_table(rows))
        return Counter((where, one.reason) for where, one in aside)

    def _stage(self, batch: Batch, query: QueryPlan, rows: Rows) -> None:
        batch.stage_output(query.name, to_user_table(as_table(rows), query.facts.output.schema))

    def rewrite(self, batch: Batch, rewrites: Sequence[Rewrite]) -> list[tuple[Segment, ...]]:
        return [self._rewrite(batch, one) for one in rewrites]

    def _rewrite(self, batch: Batch, one: Rewrite) -> tuple[Segment, ...]:
        return tuple(self._keep(batch, one.buffer, rows) for rows in self._rewritten(one) if rows.height)

    def _rewritten(self, one: Rewrite) -> Iterator[Rows]:
        """The rows that live, in one piece or, where they are many bytes, in several."""
        try:
            yield small_kept(self._few(one.buffer, one.segments), one.buffer, one.keep)
            return
        except Unsupported:
            pass
        waiting: list[pl.DataFrame] = []
        size = 0
        for piece in self._pieces(one.segments):
            rows = keep_true(piece, one.keep, one.buffer.schema)
            waiting.append(rows)
            size += size_of(rows)
            if size >= PIECE_BYTES and sum(part.height for part in waiting) >= one.least:
                yield _merged(one, waiting)
                waiting, size = [], 0
        if waiting:
            yield _merged(one, waiting)

    def _pieces(self, segments: Sequence[Segment]) -> Iterator[pl.DataFrame]:
        """The rows of segments, of a file that is not in memory yet only a piece at a time."""
        for segment in segments:
            held = self._held is not None and segment.path in self._held.rows
            if held or segment.path in self._frames:
                yield from self._load(segment).iter_slices(PIECE_ROWS)
            else:
                yield from map(pl.DataFrame, read_pieces(self.store, segment, PIECE_ROWS))

    def sweep(self, batch: Batch, sweep: Sweep) -> dict[str, tuple[Segment, ...]]:
        frames = {b.id: self._frame(b, sweep.segments[b.id]) for b in sweep.buffers}
        found: dict[str, tuple[Segment, ...]] = {}
        for buffer, rows in zip(sweep.buffers, surviving(sweep, frames).values(), strict=True):
            dead = frames[buffer.id].height - rows.height
            if dead and dead >= sweep.worth * frames[buffer.id].height:
                found[buffer.id] = (self._keep(batch, buffer, rows),) if rows.height else ()
        return found

    def look(self, batch: Batch, sweep: Sweep, look: Look, rows: int) -> LookStep:
        if look.notes is None:
            look.notes = Judgement(look.buffer, self._frame(look.buffer, look.segments), look.seq)
        judged: Judgement = look.notes
        spent = judged.go_on(sweep, self._frame, rows)
        if not judged.done:
            return LookStep(spent)
        dead = int(judged.dead.sum())
        if not dead or dead < sweep.worth * len(judged.dead):
            return LookStep(spent, done=True, dead=dead)
        left = judged.rows.filter(pl.Series(~judged.dead))
        segments = (self._keep(batch, look.buffer, left),) if left.height else ()
        return LookStep(spent, done=True, dead=dead, segments=segments)

    def forget(self, live: frozenset[str]) -> None:
        for path in [path for path in self._frames if path not in live]:
            self._cached -= size_of(self._frames.pop(path))

    def _frame(self, buffer: Buffer, segments: Sequence[Segment]) -> pl.DataFrame:
        if not segments:
            return no_rows(buffer)
        return pl.concat([self._load(segment) for segment in segments])

    def _load(self, segment: Segment) -> pl.DataFrame:
        """The rows of a segment for Polars; so they stay in memory, as a frame shows its arrays for next to nothing."""
        rows = self._held_rows(segment)
        if not isinstance(rows, SmallRows):
            return rows
        frame = rows.frame()
        if segment.path in self._frames:
            self._cached += size_of(frame) - size_of(rows)
            self._frames[segment.path] = frame
        return frame

    def _held_rows(self, segment: Segment) -> Rows:
        known = self._frames.get(segment.path)
        if known is None and self._held is not None and segment.path in self._held.rows:
            return self._held.rows[segment.path][1]
        if known is None:
            known = pl.DataFrame(read_segments(self.store, [segment]))
            self._remember(segment.path, known)
        return known

    def _remember(self, path: str, rows: Rows) -> None:
        size = size_of(rows)
        if self._cached + size <= self.cache_bytes:
            self._frames[path] = rows
            self._cached += size

    def _keep(self, batch: Batch, buffer: Buffer, rows: Rows) -> Segment:
        """The rows as a segment, in memory until the batch ends as long as there is room."""
        held = self._held_for(batch)
        if held.bytes + size_of(rows) >= self.held_bytes:
            return self._write(batch, buffer, rows)
        return held.segment(buffer, rows)

    def _pack(self, batch: Batch, held: Segment, buffer: Buffer, rows: Rows) -> Segment:
        """The segment in memory as one that stays: a part of the batch's pack where it is small."""
        segment = batch.pack_segment(as_table(rows), held)
        if segment is None:
            return self._write(batch, buffer, rows)
        self._remember(segment.path, rows)
        return segment

    def _write(self, batch: Batch, buffer: Buffer, rows: Rows) -> Segment:
        segment = batch.write_segment(buffer.id, as_table(rows), buffer.instants)
        self._remember(segment.path, rows)
        return segment


def _of_query(error: EvaluationError, job: Job) -> EvaluationError:
    """The error, saying which query it is of."""
    problems = tuple(replace(problem, query=owner_of(job.query.name)) for problem in error.problems)
    return EvaluationError(error.code, error.message, problems=problems)


def _merged(one: Rewrite, parts: Sequence[pl.DataFrame]) -> pl.DataFrame:
    rows = pl.concat(parts)
    # The partial results of one segment are of different groups.
    return rows if one.buffer.partial is None or len(one.segments) == 1 else merge(one.buffer.partial, rows)


@lru_cache(maxsize=1024)
def _schema_id(stored: Schema) -> str:
    return schema_id(stored_arrow_schema(stored))


def no_rows(buffer: Buffer) -> pl.DataFrame:
    """No rows, with the columns that a buffer stores."""
    return pl.DataFrame(schema=polars_schema(buffer.stored))
