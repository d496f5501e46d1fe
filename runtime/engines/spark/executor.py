"""How the Spark engine does the steps of a batch: ingest in workers, increments as DataFrames or, small ones, in the
driver.
"""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial, reduce
from types import MappingProxyType
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import INF
from tidegate.analysis.facts import Rank
from tidegate.analysis.recursion import ranks_below
from tidegate.runtime.batch.executor import Increment, IngestResult, Rewrite, Stratum, Work
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.many_pairs import unkeyed_pairs
from tidegate.runtime.engines.setup import FoundFiles
from tidegate.runtime.engines.spark.collection import rewrite_tasks
from tidegate.runtime.engines.spark.eval.increment import (
    Common,
    empty,
    increment,
    keep_true,
    plainly_named,
    read_leaves,
)
from tidegate.runtime.engines.spark.eval.lying import stored_shards
from tidegate.runtime.engines.spark.eval.names import col
from tidegate.runtime.engines.spark.eval.ordered_shards import latest_events
from tidegate.runtime.engines.spark.eval.portions import Loads, operator_tasks, shard_tasks
from tidegate.runtime.engines.spark.eval.shards import ShardJob
from tidegate.runtime.engines.spark.failures import read_summaries
from tidegate.runtime.engines.spark.input.locations import literal
from tidegate.runtime.engines.spark.jobs import described
from tidegate.runtime.engines.spark.setup.session import SHUFFLE_PARTITIONS
from tidegate.runtime.engines.spark.tasks.running import SUMMARIES, Tasks, run_tasks, tasks_as_rows
from tidegate.runtime.engines.spark.workers import (
    FileTask,
    IngestContext,
    WriteTarget,
    ingest_files,
    store_results,
)
from tidegate.runtime.eval.columns import spark_schema
from tidegate.runtime.eval.job import Job
from tidegate.runtime.eval.purge_schedule import Look, LookStep, Sweep
from tidegate.runtime.ingest.admission import Intake
from tidegate.runtime.ingest.inputs import Arrivals, FileRead, neighbouring
from tidegate.runtime.ordered.state import Delta, Part, shared_state
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.plan.sharding import DRIVER_BYTES, SHARD_BYTES
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.slices import InterleavedRuns
from tidegate.runtime.plan.steps import Buffer
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.codec import parse_plain
from tidegate.runtime.state.errors import MANIFEST
from tidegate.runtime.state.inputs.positions import SourceFile
from tidegate.runtime.state.manifest import KeptRows, SourceCounts
from tidegate.runtime.state.segments import Segment, read_segments
from tidegate.runtime.state.store.interface import FileRef
from tidegate.runtime.state.store.packs import part_of
from tidegate.runtime.tuning.choices import INGEST, Way
from tidegate.runtime.tuning.tuner import Tuner

#: A shuffle of an increment has a partition at least for so much relevant data.
PARTITION_BYTES = 128 << 20
#: The driver takes in so many times as many bytes of rows as it evaluates: it goes through them once, file by file.
INGEST_TIMES = 4


@dataclass(frozen=True, slots=True)
class StreamOffer:
    """What a batch has of one stream: files to read, as they were `found`, some of them `begun`, or rows that workers
    stored already.
    """

    files: tuple[FileTask, ...] = ()
    bytes: int = 0
    stored: tuple[Mapping[str, Any], ...] = ()
    begun: Mapping[str, Future[FileRead]] = field(default_factory=dict)
    found: tuple[SourceFile, ...] = ()


@dataclass(slots=True)
class SparkExecutor:
    """Runs steps on Spark. With `driver_bytes` and `shard_bytes` 0 everything that Spark can do is done by Spark."""

    spark: SparkSession
    local: EmbeddedExecutor
    root: str
    static_paths: Mapping[str, str]
    widths: Mapping[str, int]
    """How many columns are read of each stream."""
    keys: Mapping[str, str]
    """Per buffer the column by which its rows are shared out."""
    driver_bytes: int = DRIVER_BYTES
    shard_bytes: int = SHARD_BYTES
    in_order: frozenset[str] = frozenset()
    """Streams whose rows are judged by those before them, so that one task reads all of their files."""
    name: str = "spark"
    parallelism: int = field(init=False)
    partitions: int = field(init=False)
    """Of a shuffle, unless there is more to shuffle than they can take."""
    _set_partitions: int = field(init=False)
    run: str = field(init=False, default_factory=lambda: uuid.uuid4().hex)
    """Names this start of the program: by it workers know what they hold."""
    _tried: set[tuple[str, str]] = field(init=False, default_factory=set)
    """Steps that were done, each with the place."""
    _loads: Loads = field(init=False)
    statics: Mapping[str, DataFrame] = field(init=False)

    def __post_init__(self) -> None:
        with described(self.spark, "start: what static tables hold"):  # Spark reads a file's columns in a job
            self.statics = {name: self.spark.read.parquet(literal(path)) for name, path in self.static_paths.items()}
        self.parallelism = max(1, self.spark.sparkContext.defaultParallelism)
        self._loads = Loads(self.parallelism)
        self.partitions = self._set_partitions = int(self.spark.conf.get(SHUFFLE_PARTITIONS) or 1)

    @property
    def limits(self) -> Limits:
        return Limits(self.driver_bytes, self.shard_bytes)

    def target(self, batch: Batch) -> WriteTarget:
        return self.target_of(batch.seq, batch.attempt)

    def target_of(self, seq: int, attempt: str) -> WriteTarget:
        """Where workers write for an attempt at a batch."""
        shards = stored_shards(self.parallelism) if self.shard_bytes else 1
        return WriteTarget(self.root, seq, attempt, self.static_paths, self.keys, shards, self.run)

    @property
    def tuner(self) -> Tuner:
        return self.local.tuner

    def ingest(self, batch: Batch, work: Work, intakes: Mapping[str, Intake]) -> dict[str, IngestResult]:
        offered: Mapping[str, StreamOffer] = work.arrivals
        known = [intakes[name] for name, offer in offered.items() if offer.files]
        remembered = sum(segment.bytes for intake in known for segment in (*intake.remembered, *intake.begun))
        files = {name: offer.files[0].paths for name, offer in offered.items() if offer.files}
        sizes = {name: offered[name].bytes for name in files}
        rows = sum(self.tuner.rows_of(name, size) for name, size in sizes.items())
        way = self.tuner.choose(INGEST, rows, self._ingest_ways(files, sizes, remembered))
        began = time.perf_counter()
        if way.place == "driver":
            done = self._ingest_here(batch, offered, intakes)
        else:
            self.local.drop_ahead()
            tasks = [task for offer in offered.values() for task in offer.files]
            done = _merge_summaries(batch, self._ingest_job(batch, tasks, intakes))
        read = sum(done[name].counts.rows_in for name in files if name in done)
        self._learn({INGEST: (way, read)}, time.perf_counter() - began)
        stored = [summary for offer in offered.values() for summary in offer.stored]
        for name, result in _merge_summaries(batch, stored).items():
            done[name] = _join(done[name], result) if name in done else result
        return done

    def ingest_ahead(self, following: Mapping[str, Arrivals], intakes: Mapping[str, Intake]) -> None:
        self.local.ingest_ahead(following, intakes)

    def end_beside(self) -> None:
        self.local.end_beside()

    def ingests_here(self, files: FoundFiles) -> bool:
        """Whether the driver is likely to take in these files."""
        sizes = {name: sum(file.size for file in some) for name, some in files.items() if some}
        rows = sum(self.tuner.rows_of(name, size) for name, size in sizes.items())
        ways = self._ingest_ways({name: files[name] for name in sizes}, sizes)
        return self.tuner.cheapest(INGEST, rows, ways).place == "driver"

    def _ingest_ways(
        self, files: Mapping[str, Sequence[object]], sizes: Mapping[str, int], remembered: int = 0
    ) -> tuple[Way, ...]:
        """The ways to take in files of so many bytes, with so many bytes that are remembered of their streams."""
        units = sum(1 if name in self.in_order else len(some) for name, some in files.items())
        tasks = max(1, min(units, self.parallelism))
        here, workers = Way("driver"), Way("workers", tasks, self.parallelism)
        memory = sum(self.tuner.memory_of(name, size, self.widths[name]) for name, size in sizes.items())
        if remembered > self.driver_bytes or memory > INGEST_TIMES * self.driver_bytes:
            return (workers,)
        return (here, workers) if tasks > 1 else (here,)

    def _ingest_here(
        self, batch: Batch, offered: Mapping[str, StreamOffer], intakes: Mapping[str, Intake]
    ) -> dict[str, IngestResult]:
        arrivals = {}
        for name, offer in offered.items():
            if offer.files:
                schema = self.local.options[name].judged(intakes[name].stream.schema)
                paths = tuple(path for task in offer.files for path in task.paths)
                arrivals[name] = Arrivals(
                    (),
                    paths,
                    offer.files[0].format,
                    schema,
                    offer.files[0].directory,
                    dict(offer.begun),
                    found=offer.found,
                )
        return self.local.ingest(batch, Work(arrivals), intakes)

    def _ingest_job(
        self, batch: Batch, files: Sequence[FileTask], intakes: Mapping[str, Intake]
    ) -> list[dict[str, Any]]:
        total = sum(len(task.paths) for task in files)
        tasks = _shares(files, self.in_order, min(total, self.parallelism))
        work = partial(ingest_files, IngestContext(self.target(batch), intakes, self.local.options))
        own = [[task.to_json() for task in some] for some in tasks]
        with described(self.spark, f"batch {batch.seq}: ingest {total} files"):
            return run_tasks(self.spark, [Tasks(work, own)])

    def increments(self, batch: Batch, jobs: Sequence[Job]) -> list[Increment]:
        """Small ones together in the driver, the others together as one Spark job, each at its place."""
        chosen = list(self._ways(jobs))
        small = [job for job, way in chosen if way.place == "driver"]
        large = [job for job, way in chosen if way.place != "driver"]
        self.local.leave_to_others(small, large)  # before files are written for workers: they are not held then
        placed = [(self._in_files(batch, job) if way.place != "driver" else job, way) for job, way in chosen]
        jobs, ways = [job for job, _ in placed], {id(job): way for job, way in placed}
        large = [job for job in jobs if ways[id(job)].place != "driver"]
        done: dict[int, Increment] = {}
        with self._measured(small, ways):
            done |= zip(map(id, small), self.local.increments(batch, small) if small else [], strict=True)
        with self._measured(large, ways):
            done |= self._on_spark(batch, large, ways) if large else {}
        return [done[id(job)] for job in jobs]

    def _ways(self, jobs: Sequence[Job]) -> Iterator[tuple[Job, Way]]:
        """How each increment is evaluated, in ways that hold the bytes of its relevant segments."""
        for job in jobs:
            ways = self.limits.ways(job.query, job.bytes + job.state_bytes, self.parallelism)
            yield job, self.tuner.choose(job.query.name, _rows_of_job(job), ways)

    def _in_files(self, batch: Batch, job: Job) -> Job:
        """The increment over files, which workers can read, also of rows that are only in the driver's memory yet."""
        return replace(job, inputs=[[self.local.on_disk(batch, segment) for segment in some] for some in job.inputs])

    @contextmanager
    def _measured(self, jobs: Sequence[Job], ways: Mapping[int, Way]) -> Iterator[None]:
        """Tells the tuner how long the increments took together."""
        began = time.perf_counter()
        yield
        if jobs:
            done = {job.query.name: (ways[id(job)], _rows_of_job(job)) for job in jobs}
            self._learn(done, time.perf_counter() - began)

    def _learn(self, done: Mapping[str, tuple[Way, int]], seconds: float) -> None:
        """Tells the tuner how long steps took together; not the first time that a place does one, as it loads then what
        the step needs.
        """
        new = {(step, way.place) for step, (way, _) in done.items()} - self._tried
        self._tried |= new
        if not new:
            self.tuner.measured(done, seconds)

    def stratum(self, batch: Batch, jobs: Sequence[Job], rank: Rank) -> Stratum | None:
        """In the driver where all are small; else a job to find the least rank, and one for the rows."""
        if self.driver_bytes and sum(job.bytes for job in jobs) <= self.driver_bytes:
            return self.local.stratum(batch, jobs, rank)
        jobs = [self._in_files(batch, job) for job in jobs]
        try:
            return self._stratum_on_spark(batch, jobs, rank)
        except EvaluationError:
            if not any(job.sets_aside for job in jobs):
                raise
        # Only the steps of this process tell which sums do not fit, and which rows have no value for readers.
        return self.local.stratum(batch, jobs, rank)

    def _stratum_on_spark(self, batch: Batch, jobs: Sequence[Job], rank: Rank) -> Stratum | None:
        streams = [job.query.facts.output for job in jobs]
        with self._results(jobs) as results:
            width = max(len(stream.progress) for stream in streams)
            earliest = [
                _earliest(rows, stream, number, width)
                for number, (rows, stream) in enumerate(zip(results, streams, strict=True))
            ]
            with described(self.spark, f"batch {batch.seq}: least rank of {', '.join(job.query.name for job in jobs)}"):
                lines = reduce(DataFrame.unionAll, earliest).collect()
            least = [
                rank.of(stream.name, dict(zip(stream.progress, line[1:], strict=False)))
                for line in lines
                if (stream := streams[line[0]]) and line[1] is not None
            ]
            if not least:
                return None
            limit = min(least) + rank.step
            lowest = [
                keep_true(rows, ranks_below(rank, stream, limit), stream.schema)
                for stream, rows in zip(streams, results, strict=True)
            ]
            return Stratum(self._write(batch, jobs, lowest), limit)

    def settle(self, batch: Batch, jobs: Sequence[Job], done: Mapping[str, Increment]) -> dict[str, Increment]:
        return self.local.settle(batch, jobs, done)

    def _on_spark(self, batch: Batch, jobs: Sequence[Job], ways: Mapping[int, Way]) -> dict[int, Increment]:
        """Increments by the identity of their jobs."""
        sharded = [job for job in jobs if ways[id(job)].place == "sharded"]
        others = [job for job in jobs if ways[id(job)].place == "catalyst"]
        for job in others:
            self._announce(job)
        try:
            with self._results(others) as results:
                done = self._write(batch, others, results, sharded, ways)
            return dict(zip(map(id, (*others, *sharded)), done, strict=True))
        except EvaluationError as error:
            if len(jobs) > 1:  # one by one, to learn which of them fails
                return {key: outcome for job in jobs for key, outcome in self._on_spark(batch, [job], ways).items()}
            # Of rows in several shards that each begin too many matches, the first is named.
            if not (jobs[0].sets_aside or error.code == "TG307"):
                raise
        # Only the steps of this process tell which rows fail.
        return {id(jobs[0]): self.local.increments(batch, jobs)[0]}

    def _announce(self, job: Job) -> None:
        """Says how many pairs a join of DataFrames is about to compare, if the driver knows it."""
        query = job.query
        leaves = zip(query.leaves, job.inputs, strict=True)
        rows = [None if leaf.buffer is None else sum(segment.rows for segment in some) for leaf, some in leaves]
        if query.grouping is None and (pairs := unkeyed_pairs(query.tree, rows)):
            self.local.announce(query, pairs)

    @contextmanager
    def _results(self, jobs: Sequence[Job]) -> Iterator[list[DataFrame]]:
        """The new rows of each query; what they have in common is held while the block runs."""
        self._shuffle_for(max((job.bytes for job in jobs), default=0))
        frames: dict[tuple[str, ...], DataFrame] = {}
        demands = [Demand.of(job.query, job.old, job.new) for job in jobs]
        read = [self._read_leaves(demand, job, frames) for demand, job in zip(demands, jobs, strict=True)]
        common = Common.of(demands, read)
        try:
            yield [
                increment(job.query, leaves, job.old, job.new, ready)
                for job, leaves, ready in zip(jobs, read, common.ready, strict=True)
            ]
        finally:
            common.release()

    def _write(
        self,
        batch: Batch,
        jobs: Sequence[Job],
        results: Sequence[DataFrame],
        sharded: Sequence[Job] = (),
        ways: Mapping[int, Way] = MappingProxyType({}),
    ) -> list[Increment]:
        """New rows of all the queries, written by workers in one Spark job; of the jobs in order, then of the
        sharded.
        """
        stored = [self._stored(batch, job, rows) for job, rows in zip(jobs, results, strict=True)]
        ordered = [job for job in sharded if job.query.ordered is not None]
        relational = [job for job in sharded if job.query.ordered is None]
        tasks: list[Tasks] = []
        shards = {job.query.name: self.parallelism for job in relational}
        if relational:
            tasks += self._sharded(batch, relational)
        if ordered:
            shares = max(ways[id(job)].tasks for job in ordered)
            tasks += self._operators(batch, ordered, shares)
            shards |= {job.query.name: shares for job in ordered}
        names = ", ".join(job.query.name for job in (*jobs, *sharded))
        with described(self.spark, f"batch {batch.seq}: {'increments' if ',' in names else 'increment'} of {names}"):
            if stored:  # all in one job
                with tasks_as_rows(self.spark, tasks) as others:
                    summaries = _summaries(reduce(DataFrame.unionAll, [*stored, *others]))
            else:
                summaries = run_tasks(self.spark, tasks)
        by_query: dict[str, list[Mapping[str, Any]]] = {job.query.name: [] for job in (*jobs, *sharded)}
        compared: Counter[str] = Counter()
        for summary in self._loads.learn(summaries, shards):
            if summary.get("interleaved"):
                raise InterleavedRuns
            if "pairs" in summary:
                compared[summary["query"]] += summary["pairs"]
            else:
                by_query[summary["query"]].append(summary)
        for job in sharded:
            if job.query.name in compared:
                self.local.announce(job.query, compared[job.query.name], compared=True)
        places = ["catalyst"] * len(jobs) + ["sharded"] * len(sharded)
        return [
            _gathered(batch, job.query.name, by_query[job.query.name], place)
            for job, place in zip((*jobs, *sharded), places, strict=True)
        ]

    def _sharded(self, batch: Batch, jobs: Sequence[Job]) -> list[Tasks]:
        """A task per share of the keys, or several for one that took long."""
        written = self.local.written
        groups = [[_shard_job(job, written) for job in some] for some in self._groups(jobs)]
        return shard_tasks(self.target(batch), groups, self.parallelism, self._loads, self.tuner)

    def _operators(self, batch: Batch, jobs: Sequence[Job], shards: int) -> list[Tasks]:
        """A task per share of the partitions, or several for one that took long."""
        shard_jobs = [_shard_job(job, self.local.written) for job in jobs]
        states, closing = [job.state for job in jobs], self._ends(batch, jobs, shards)
        return operator_tasks(self.target(batch), shard_jobs, states, closing, shards, self._loads, self.tuner)

    def _ends(self, batch: Batch, jobs: Sequence[Job], shards: int) -> list[int | None]:
        """Where the rows of operators end; of those that go on with their input not before its last event, which may be
        in another share.
        """
        ends = {job.query.name: job.close_at for job in jobs}
        ending = [_shard_job(job, self.local.written) for job in jobs if _ends_with_its_input(job)]
        if ending:
            work = partial(latest_events, self.target(batch), ending, shards)
            names = ", ".join(job.query.name for job in ending)
            with described(self.spark, f"batch {batch.seq}: the last events of {names}"):
                found = run_tasks(self.spark, [Tasks(work, [*range(shards)])])
            for summary in found:
                known, last = ends[summary["query"]], summary["last"]
                ends[summary["query"]] = last if known is None else max(known, last)
        return [ends[job.query.name] for job in jobs]

    def _groups(self, jobs: Sequence[Job]) -> list[list[Job]]:
        """Increments that a task evaluates together, so that what it holds stays within `shard_bytes`."""
        groups: list[list[Job]] = []
        sizes: dict[str, int] = {}
        for job in jobs:
            read = {segment.path: segment.bytes for segments in job.inputs for segment in segments}
            sizes |= read
            if groups and sum(sizes.values()) <= self.shard_bytes * self.parallelism:
                groups[-1].append(job)
            else:
                groups.append([job])
                sizes = read
        return groups

    def _read_leaves(self, demand: Demand, job: Job, frames: dict[tuple[str, ...], DataFrame]) -> dict[int, DataFrame]:
        """The rows that an increment reads; `frames` has those of the batch by buffer and paths."""
        read: list[DataFrame | None] = []
        for leaf, segments in zip(job.query.leaves, job.inputs, strict=True):
            if leaf.buffer is None:
                read.append(None)
                continue
            key = (leaf.buffer.id, *(segment.path for segment in segments))
            if key not in frames:
                frames[key] = self._read(leaf.buffer, segments)
            read.append(frames[key])
        return read_leaves(demand, read, self.statics)

    def _stored(self, batch: Batch, job: Job, rows: DataFrame) -> DataFrame:
        """Summaries of what workers stored of a query's new rows."""
        query = job.query
        written = query.stream in self.local.written
        schema = query.facts.output.schema
        store = store_results(self.target(batch), query.name, schema, job.feeds, written=written)
        # mapInArrow parses column names, so dots and backticks in them must not reach it.
        return plainly_named(rows, len(schema.names)).mapInArrow(store, SUMMARIES)

    def _shuffle_for(self, size: int) -> None:
        """Sets how many partitions Spark shuffles so many bytes into."""
        wanted = max(self.partitions, -(-size // PARTITION_BYTES))
        if wanted != self._set_partitions:
            self.spark.conf.set(SHUFFLE_PARTITIONS, wanted)
            self._set_partitions = wanted

    def rewrite(self, batch: Batch, rewrites: Sequence[Rewrite]) -> list[tuple[Segment, ...]]:
        """Small ones in the driver, the others together as one Spark job."""
        large = {
            number: rewrite
            for number, rewrite in enumerate(rewrites)
            if rewrite.bytes > self.driver_bytes and rewrite.beginnings is None
        }
        small = {number: rewrite for number, rewrite in enumerate(rewrites) if number not in large}
        done = dict(zip(small, self.local.rewrite(batch, list(small.values())), strict=True))
        done |= self._rewrite_on_spark(batch, large) if large else {}
        return [done[number] for number in range(len(rewrites))]

    def _rewrite_on_spark(self, batch: Batch, rewrites: Mapping[int, Rewrite]) -> dict[int, tuple[Segment, ...]]:
        read = [
            replace(one, segments=[self.local.on_disk(batch, segment) for segment in one.segments])
            for one in rewrites.values()
        ]
        tasks = rewrite_tasks(self.target(batch), read)
        names = ", ".join(dict.fromkeys(rewrite.buffer.id for rewrite in rewrites.values()))
        with described(self.spark, f"batch {batch.seq}: collect in {names}"):
            summaries = run_tasks(self.spark, [tasks])
        numbers = list(rewrites)
        done: dict[int, tuple[Segment, ...]] = dict.fromkeys(rewrites, ())
        for summary in summaries:
            done[numbers[summary["number"]]] += (Segment.from_json(summary["segment"]),)
        return done

    def sweep(self, batch: Batch, sweep: Sweep) -> dict[str, tuple[Segment, ...]]:
        # Beyond the driver's share rows stay until keep lets them go: a sweep never decides what results are.
        return self.local.sweep(batch, sweep) if sweep.bytes <= self.driver_bytes else {}

    def look(self, batch: Batch, sweep: Sweep, look: Look, rows: int) -> LookStep | None:
        return self.local.look(batch, sweep, look, rows) if sweep.bytes <= self.driver_bytes else None

    def persist(self, batch: Batch, segments: Mapping[str, tuple[Segment, ...]]) -> Mapping[str, tuple[Segment, ...]]:
        return self.local.persist(batch, segments)

    def forget(self, live: frozenset[str]) -> None:
        self.local.forget(live)

    def close(self) -> None:
        self.local.close()

    def _read(self, buffer: Buffer, segments: Sequence[Segment]) -> DataFrame:
        if not segments:
            return empty(self.spark, buffer)
        schema = spark_schema(buffer.stored)
        packed = [segment for segment in segments if part_of(segment.path) is not None]
        whole = [segment.path for segment in segments if part_of(segment.path) is None]
        paths = [literal(str(self.local.store.local_path(path))) for path in whole]
        frames = [self.spark.read.schema(schema).parquet(*paths)] if paths else []
        if packed:  # parts of packs, which Spark can not read; at most some megabytes
            rows = read_segments(self.local.store, packed).combine_chunks()  # Spark reads none that follow an empty one
            frames.append(self.spark.createDataFrame(rows, schema))
        return reduce(DataFrame.unionAll, frames)


def _summaries(rows: DataFrame) -> list[dict[str, Any]]:
    """The summaries of tasks that are rows of Spark's."""
    return read_summaries(row.summary for row in rows.collect())


def _earliest(rows: DataFrame, stream: StreamDef, number: int, width: int) -> DataFrame:
    """One row: a number, and the least of each promised attribute (NULL where there is no row), padded to a width."""
    least = [F.min(col(a)) for a in stream.progress]
    columns = [F.lit(number), *least, *(F.lit(None) for _ in range(width - len(least)))]
    return rows.agg(*(column.cast("long").alias(f"c{i}") for i, column in enumerate(columns)))


def _rows_of_job(job: Job) -> int:
    """Rows that an increment reads, of the state of its operator too."""
    return job.rows + (0 if job.state is None else sum(kept.rows for kept in job.state.kept))


def _ends_with_its_input(job: Job) -> bool:
    """Whether an operator has rows for as long as its input progresses, and this is the end of it."""
    ordered = job.query.ordered
    return ordered is not None and ordered.node.goes_on and job.new[ordered.time] == INF


def _shard_job(job: Job, written: Collection[str]) -> ShardJob:
    return ShardJob(job.query, job.inputs, job.old, job.new, job.feeds, job.query.stream in written)


def _gathered(batch: Batch, query: str, summaries: Sequence[Mapping[str, Any]], place: str) -> Increment:
    total = 0
    segments: dict[str, tuple[Segment, ...]] = {}
    kept: dict[int, tuple[list[KeptRows], Part]] = {}
    for summary in summaries:
        if "shard" in summary:
            where = f"the state of {query}"
            rows = [parse_plain(KeptRows, item, code=MANIFEST, where=where) for item in summary["kept"]]
            part = tuple(parse_plain(Delta, item, code=MANIFEST, where=where) for item in summary["part"])
            kept[summary["shard"]] = rows, part
            continue
        total += summary["rows"]
        if summary["output"]:
            batch.adopt_output(query, FileRef(*summary["output"]), summary["rows"])
        for buffer, text in summary["segments"].items():
            segments[buffer] = (*segments.get(buffer, ()), Segment.from_json(text))
    state = shared_state([kept[shard] for shard in sorted(kept)]) if kept else None
    return Increment(total, segments, place, state)


def _shares(files: Sequence[FileTask], whole: Collection[str], count: int) -> list[list[FileTask]]:
    """At most so many shares of about as many bytes, each with neighbouring files of every stream: so a slice of it is
    read by one task.

    The files of the streams in `whole` are not shared out.
    """
    shares: list[list[FileTask]] = [[] for _ in range(count)]
    for number, task in enumerate(files):
        parts = neighbouring(task.paths, 1 if task.stream in whole else count)
        for part, paths in enumerate(parts):
            shares[(number + part) % count].append(replace(task, paths=paths))
    return [share for share in shares if share]


def _merge_summaries(batch: Batch, summaries: Sequence[Mapping[str, Any]]) -> dict[str, IngestResult]:
    done: dict[str, IngestResult] = {}
    for summary in summaries:
        rejected = {reason: int(rows) for reason, rows in summary["rejected"].items()}
        rows_in = summary["accepted"] + sum(rejected.values())
        counts = SourceCounts(rows_in, summary["accepted"], rejected, summary["punctuations"])
        segments = {buffer: (Segment.from_json(text),) for buffer, text in summary["segments"].items()}
        if summary["quarantine"]:
            batch.adopt_quarantine(Segment.from_json(summary["quarantine"]))
        batch.read_as(summary["stream"], [SourceFile(*file) for file in summary["read"]])
        result = IngestResult(
            counts,
            summary["greatest"],
            summary["punctuation"],
            segments,
            summary["first_rejected"],
            summary["unreadable"],
        )
        name = summary["stream"]
        done[name] = _join(done[name], result) if name in done else result
    return done


def _join(left: IngestResult, right: IngestResult) -> IngestResult:
    return IngestResult(
        left.counts + right.counts,
        _greatest(left.greatest, right.greatest),
        _greatest(left.punctuation, right.punctuation),
        {
            buffer: (*left.segments.get(buffer, ()), *right.segments.get(buffer, ()))
            for buffer in {*left.segments, *right.segments}
        },
        left.first_rejected or right.first_rejected,
        left.unreadable + right.unreadable,
    )


def _greatest(left: Mapping[str, int], right: Mapping[str, int]) -> dict[str, int]:
    return {name: max(values[name] for values in (left, right) if name in values) for name in {*left, *right}}
