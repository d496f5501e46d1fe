"""How the embedded engine does the steps of a batch: everything in this process, segments cached as Polars frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.analysis.facts import Rank
from tidegate.analysis.recursion import ranks_below
from tidegate.runtime.columns import polars_schema, to_user_table
from tidegate.runtime.embedded.aggregates import merge
from tidegate.runtime.embedded.increment import Ready, compute_common, increment, keep_true, read_leaves
from tidegate.runtime.intake import Intake, absorb, ingest_rows, load_seen
from tidegate.runtime.plan.common import Demand
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.runner import Increment, Ingested, Job, Rewrite, Stratum, Work
from tidegate.runtime.sources import SourceOptions
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.segments import Segment, read_segments
from tidegate.runtime.state.store import Store

#: Segments are written with large strings, as every reader here understands them.
ARROW = pl.CompatLevel.oldest()


@dataclass(slots=True)
class EmbeddedExecutor:
    """Runs steps with Polars; `cache_bytes` bounds the frames of segments held in memory.

    `written` names the result streams whose rows a sink wants.
    """

    store: Store
    statics: Mapping[str, pl.DataFrame]
    options: Mapping[str, SourceOptions]
    written: frozenset[str]
    cache_bytes: int = 256 << 20
    name: str = "embedded"
    _frames: dict[str, pl.DataFrame] = field(default_factory=dict)
    _cached: int = 0

    def ingest(self, batch: Batch, work: Work, intakes: Mapping[str, Intake]) -> dict[str, Ingested]:
        done = {}
        for name, arrivals in work.arrivals.items():
            intake, options = intakes[name], self.options[name]
            rows = ingest_rows(arrivals, intake, self.statics, options, load_seen(self.store, intake, options))
            if rows.quarantine:
                batch.quarantine(name, rows.quarantine_table())
            segments = {
                buffer.id: (self._write(batch, buffer, stored),)
                for buffer in intakes[name].buffers
                if (stored := rows.stored.get(buffer.id)) is not None and stored.height
            }
            done[name] = Ingested(rows.counts, rows.greatest, rows.punctuation, segments, rows.first_rejected)
        return done

    def increments(self, batch: Batch, jobs: Sequence[Job]) -> list[Increment]:
        return [self._finish(batch, job, rows) for job, rows in zip(jobs, self._evaluate(jobs), strict=True)]

    def stratum(self, batch: Batch, jobs: Sequence[Job], rank: Rank) -> Stratum | None:
        found = self._evaluate(jobs)
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
            keep_true(rows.lazy(), ranks_below(rank, stream, limit), stream.schema).collect()
            for stream, rows in zip(streams, found, strict=True)
        ]
        return Stratum([self._finish(batch, job, rows) for job, rows in zip(jobs, lowest, strict=True)], limit)

    def _evaluate(self, jobs: Sequence[Job]) -> list[pl.DataFrame]:
        """The rows of each increment."""
        demands = [Demand.of(job.query, job.old, job.new) for job in jobs]
        read = [self._read_leaves(demand, job) for demand, job in zip(demands, jobs, strict=True)]
        try:  # together, so that what queries have in common is computed once
            ready = compute_common(demands, read)
            return pl.collect_all(_increments(jobs, read, ready))
        except EvaluationError:
            for job, leaves in zip(jobs, read, strict=True):
                _collect_alone(job.query.name, increment(job.query, leaves, job.old, job.new, {}))
            raise

    def _read_leaves(self, demand: Demand, job: Job) -> dict[int, pl.LazyFrame]:
        frames = [
            None if leaf.buffer is None else self._frame(leaf.buffer, segments)
            for leaf, segments in zip(job.query.leaves, job.inputs, strict=True)
        ]
        return read_leaves(demand, frames, self.statics)

    def _finish(self, batch: Batch, job: Job, rows: pl.DataFrame) -> Increment:
        if not rows.height:
            return Increment(0, place="driver")
        stored = {}
        for buffer, door in job.feeds:
            part = absorb(rows, buffer, door, self.statics)
            if part.height:
                stored[buffer.id] = (self._write(batch, buffer, part),)
        query = job.query
        if query.stream in self.written:
            batch.stage_output(query.name, to_user_table(rows.to_arrow(compat_level=ARROW), query.facts.output.schema))
        return Increment(rows.height, stored, "driver")

    def rewrite(self, batch: Batch, rewrites: Sequence[Rewrite]) -> list[tuple[Segment, ...]]:
        return [self._rewrite(batch, one) for one in rewrites]

    def _rewrite(self, batch: Batch, one: Rewrite) -> tuple[Segment, ...]:
        frame = self._frame(one.buffer, one.segments)
        alive = keep_true(frame, one.keep, one.buffer.schema)
        if one.buffer.partial is not None:
            alive = merge(one.buffer.partial, alive)
        rows = alive.collect()
        return (self._write(batch, one.buffer, rows),) if rows.height else ()

    def forget(self, live: frozenset[str]) -> None:
        for path in [path for path in self._frames if path not in live]:
            self._cached -= int(self._frames.pop(path).estimated_size())

    def _frame(self, buffer: Buffer, segments: Sequence[Segment]) -> pl.LazyFrame:
        if not segments:
            return no_rows(buffer)
        return pl.concat([self._load(segment) for segment in segments]).lazy()

    def _load(self, segment: Segment) -> pl.DataFrame:
        known = self._frames.get(segment.path)
        if known is None:
            known = pl.DataFrame(read_segments(self.store, [segment]))
            self._remember(segment.path, known)
        return known

    def _remember(self, path: str, frame: pl.DataFrame) -> None:
        size = int(frame.estimated_size())
        if self._cached + size <= self.cache_bytes:
            self._frames[path] = frame
            self._cached += size

    def _write(self, batch: Batch, buffer: Buffer, rows: pl.DataFrame) -> Segment:
        segment = batch.write_segment(buffer.id, rows.to_arrow(compat_level=ARROW), buffer.instants)
        self._remember(segment.path, rows)
        return segment


def _increments(
    jobs: Sequence[Job], read: Sequence[Mapping[int, pl.LazyFrame]], ready: Sequence[Ready]
) -> list[pl.LazyFrame]:
    return [
        increment(job.query, leaves, job.old, job.new, parts)
        for job, leaves, parts in zip(jobs, read, ready, strict=True)
    ]


def _collect_alone(query: str, frame: pl.LazyFrame) -> None:
    """Evaluates one increment to learn whether the failure is its own, and says so."""
    try:
        frame.collect()
    except EvaluationError as error:
        problems = tuple(replace(problem, query=query) for problem in error.problems)
        raise EvaluationError(error.code, error.message, problems=problems) from error


def no_rows(buffer: Buffer) -> pl.LazyFrame:
    """No rows, with the columns that a buffer stores."""
    return pl.LazyFrame(schema=polars_schema(buffer.stored))
