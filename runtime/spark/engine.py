"""The Spark engine: all sources in one streaming query, and one of our batches for each of its micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import RLock
from typing import Any

from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import tidegate
from tidegate.algebra.errors import InternalError, QueryError, TidegateError
from tidegate.algebra.shown import shown
from tidegate.algebra.time import INF
from tidegate.analysis.pipeline import ProgramFacts
from tidegate.runtime.batch_report import BatchReport
from tidegate.runtime.clock import Clock, read_clock, system_clock
from tidegate.runtime.closing import check_all_end, closing_instant
from tidegate.runtime.embedded.executor import EmbeddedExecutor
from tidegate.runtime.executor import Work
from tidegate.runtime.explain import ProgramExplanation
from tidegate.runtime.garbage import GarbageCollection
from tidegate.runtime.given import check_clock, check_on_batch, mapping_of
from tidegate.runtime.inputs import advances_of
from tidegate.runtime.plan.lower import PurgeMode
from tidegate.runtime.plan.places import limits_of
from tidegate.runtime.plan.sharding import DRIVER_BYTES, SHARD_BYTES
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.progress import check_known
from tidegate.runtime.runner import Runner
from tidegate.runtime.schedule import Schedule
from tidegate.runtime.setup import Setup, prepare
from tidegate.runtime.sinks import Sink
from tidegate.runtime.sources import Files, Source
from tidegate.runtime.spark.bounded import bounded_inputs, needed_columns, stored_statics
from tidegate.runtime.spark.calls import BINARY_FILE, ProgressCalls, call_ticks, is_planned
from tidegate.runtime.spark.closing import ClosingCall
from tidegate.runtime.spark.executor import Offered, SparkExecutor
from tidegate.runtime.spark.failures import read_summaries
from tidegate.runtime.spark.jobs import described
from tidegate.runtime.spark.known_sources import KnownSources, known_sources
from tidegate.runtime.spark.locations import literal, local_path, local_uri
from tidegate.runtime.spark.own_files import check_query_id, how_to_go_on
from tidegate.runtime.spark.session import check_session, own_session
from tidegate.runtime.spark.workers import TICK, FileTask, Ingesting, Place, ingest_offered
from tidegate.runtime.state.local import LocalStore
from tidegate.runtime.state.manifest import Engine
from tidegate.runtime.state.positions import Offer, SourceFile, SparkBatch
from tidegate.runtime.why import Why, why

_ENGINE = Engine("spark", tidegate.__version__)
_OFFERED_COLUMNS = {"path": "string", "length": "bigint", "modified": "bigint"}


class RunningQuery(StreamingQuery):
    """The streaming query of a program: Spark's own, which gives up the checkpoint when it ends.

    `reports` has what each batch did.
    """

    def __init__(self, query: StreamingQuery, run: SparkRun) -> None:
        super().__init__(query._jsq)
        self._run = run

    def __repr__(self) -> str:
        queries = ", ".join(query.name for query in self.plan.queries)
        last = self._run.setup.checkpoint.manifest
        state = "running" if self.isActive else "failed" if self.exception() else "ended"
        named = f" {self.name!r}" if self.name else ""
        where = self._run.setup.checkpoint.store.where
        return f"query{named} of {queries} in {where}, {state}, after batch {last.seq if last else 0}"

    @property
    def plan(self) -> Plan:
        return self._run.setup.plan

    @property
    def reports(self) -> list[BatchReport]:
        return list(self._run.reports)

    def explanation(self) -> ProgramExplanation:
        """The program's explanation with the plan, the schedule and the limits of this run."""
        setup = self._run.setup
        return ProgramExplanation(setup.plan.facts, False, setup.timetable, self._run.executor.limits, setup.plan)

    def why(self, name: str, row: Mapping[str, Any] | None = None) -> Why:
        """What holds a result back after the last batch, or, with the instants of a row of it, when that row is final."""
        return why(self._run.setup.plan.facts, self._run.setup.checkpoint.manifest, name, row)

    def advance(self, stream: str, progress: Mapping[str, Any]) -> None:
        """Declare that, with the files that are in its directory, everything up to these instants (inclusive) has arrived.

        Of a streaming DataFrame: with the rows that Spark finds when it next plans a batch. The call is kept in the
        checkpoint: a batch takes it up, also without new rows, if need be after a restart.
        """
        self._run.advance(stream, progress)

    def finish(self, stream: str | None = None, *, close_at: Any = None) -> None:
        """Declare the end of a stream, or of all, as `advance` does.

        With `close_at`, an instant after all events and all declared progress, situations that are open then end there.
        """
        if close_at is not None:
            check_all_end(stream)
            self.close_open(close_at)
        self._run.finish(stream)

    def close_open(self, at: Any) -> None:
        """Say where situations end that are open when all streams have ended, without ending any stream.

        The call is kept in the checkpoint until a batch records it; until the end another instant can be said. It waits for
        the batch that runs.
        """
        self._run.close_open(at)

    def awaitTermination(self, timeout: int | None = None) -> bool | None:  # Spark's name
        """As Spark's; the error of a batch that failed is raised as itself."""
        try:
            with self._run.own_error():
                return super().awaitTermination(timeout)
        finally:
            if not self.isActive:
                self._run.close()

    def processAllAvailable(self) -> None:  # Spark's name
        with self._run.own_error():
            super().processAllAvailable()

    def exception(self) -> TidegateError | StreamingQueryException | None:  # type: ignore[override]  # ours is no Spark's
        """Why the query ended, if it was for an error."""
        return self._run.error or super().exception()

    def stop(self) -> None:
        super().stop()
        self._run.close()


@dataclass(slots=True)
class SparkRun:
    """The driver's side of a running program."""

    spark: SparkSession
    setup: Setup
    runner: Runner
    executor: SparkExecutor
    columns: Mapping[str, Mapping[str, str]]
    calls: ProgressCalls
    closing: ClosingCall
    on_batch: Callable[[BatchReport], None] | None
    clock: Clock = system_clock
    reports: list[BatchReport] = field(default_factory=list)
    error: TidegateError | None = None
    batching: RLock = field(default_factory=RLock)
    """Held while a batch runs: whether the streams have ended is known before it and after it."""

    def advance(self, stream: str, progress: Mapping[str, Any]) -> None:
        check_known(stream, self.setup.streams, "stream")
        self.calls.add(advances_of(self.setup.streams[stream], progress, self.setup.options[stream].arrival))

    def finish(self, stream: str | None) -> None:
        streams = self.setup.streams
        if stream is not None:
            check_known(stream, streams, "stream")
        ended = streams.values() if stream is None else [streams[stream]]
        self.calls.add({(definition.name, a): INF for definition in ended for a in definition.progress})

    def close_open(self, at: Any) -> None:
        ticks = closing_instant(self.setup.plan, at)
        with self.batching:
            if self.runner.closing is not None:
                self.runner.closing.check_open(self.setup.plan, self.runner.progress, ticks)
            self.closing.say(ticks)
            self.recorded()

    def recorded(self) -> None:
        """Forget the calls that the last commit knows."""
        self.calls.reached(self.runner.progress.inputs)
        self.closing.recorded(None if self.runner.closing is None else self.runner.closing.at)

    def handle(self, frame: DataFrame, batch_id: int) -> None:
        """One micro-batch. The frame is evaluated exactly once: it recomputes all sources on every action."""
        session = frame.sparkSession
        query_id = session.sparkContext.getLocalProperty("sql.streaming.queryId")
        if query_id is None:
            raise QueryError("TG420", "Spark does not say which streaming query this batch belongs to")
        spark_batch = SparkBatch(query_id, batch_id)
        try:
            clock = self.setup.checkpoint.clock(read_clock(self.clock), spark_batch)
            with self.batching:
                self._batch(frame, spark_batch, clock)
            self.calls.end_batch(frozenset(self.columns))
        except Exception as error:
            self.error = error if isinstance(error, TidegateError) else None
            self.close()
            raise
        except BaseException as error:  # anything else would leave Spark waiting for an answer for ever
            self.error = InternalError("TG491", f"the batch was interrupted: {error!r}")
            self.close()
            raise self.error from error

    @contextmanager
    def own_error(self) -> Iterator[None]:
        """Raises what a batch failed for in the place of the text that Spark makes of it."""
        try:
            yield
        except StreamingQueryException as failure:
            if self.error is None:
                if not self.reports:
                    root = self.setup.checkpoint.store.where
                    failure.add_note(f"if a file of Spark's own checkpoint is damaged: {how_to_go_on(root)}")
                raise
            raise self.error from failure

    def _batch(self, frame: DataFrame, spark_batch: SparkBatch, clock: int) -> None:
        checkpoint = self.setup.checkpoint
        offered, stored = self._offered(frame, spark_batch, clock)
        offsets = {name: str(spark_batch.batch_id) for name in self.columns}
        offer = Offer({name: tuple(sorted(files)) for name, files in offered.items()}, offsets, spark_batch)
        admission = self.setup.admit(offer)
        if admission.skip:
            return
        batch = checkpoint.begin(clock, admission.offer, engine=_ENGINE)
        reading = batch.intent.offer.files
        arrivals = {
            name: Offered(
                (FileTask(name, self.setup.sources[name].data.format, _oldest_first(files)),) if files else (),
                sum(file.size for file in files),
            )
            for name, files in reading.items()
        }
        for summary in stored:
            known = arrivals.get(summary["stream"], Offered())
            arrivals[summary["stream"]] = Offered(known.files, known.bytes, (*known.stored, summary))
        found = self.setup.found()
        read = self.setup.read_by(reading, found)
        due = self.calls.due(read=read, offered=frozenset(self.columns))
        advances, waiting = due | self.setup.ended(read), self.setup.waiting(reading, found)
        work = Work(arrivals, advances, self.closing.waiting, self.calls.declared(), waiting)
        report = self.runner.run(batch, work)
        self.recorded()
        self.reports.append(report)
        if self.on_batch is not None:
            self.on_batch(report)

    def _offered(
        self, frame: DataFrame, spark_batch: SparkBatch, clock: int
    ) -> tuple[dict[str, list[SourceFile]], list[dict[str, Any]]]:
        """The files that Spark offers per stream, and what workers stored of rows that came typed, in one job."""
        seq = self.setup.checkpoint.next_seq
        offered: dict[str, list[SourceFile]] = {}
        stored: list[dict[str, Any]] = []
        with described(self.spark, f"batch {seq}: what is new"):
            if not self.columns:  # paths alone need no Python worker
                for row in frame.where(F.col("source") != TICK).select("source", "path").collect():
                    self._offer(offered, row.source, row.path)
                return offered, stored
            place = Place(self.executor.root, seq, f"spark{spark_batch.batch_id}", self.executor.static_paths)
            work = Ingesting(place, self.runner.intakes(clock), self.setup.options)
            lines = frame.mapInArrow(ingest_offered(work, self.columns), "summary string").collect()
            summaries = read_summaries(lines)
        for summary in summaries:
            if "offered" in summary:
                self._offer(offered, **summary["offered"])
            else:
                stored.append(summary)
        return offered, stored

    def _offer(self, offered: dict[str, list[SourceFile]], source: str, path: str, **_: object) -> None:
        """Adds a file that Spark found; it leaves out names that begin with `_`, but not all of them."""
        found = local_path(path)
        if self.setup.sources[source].data.takes(str(found)):
            offered.setdefault(source, []).append(source_file(found))

    def close(self) -> None:
        self.setup.checkpoint.close()


def start(
    spark: SparkSession,
    facts: ProgramFacts,
    *,
    sources: Mapping[str, Any],
    checkpoint: str | Path | LocalStore,
    statics: Mapping[str, Any] | None = None,
    sinks: Mapping[str, Sink] | None = None,
    trigger: Mapping[str, Any] | str = "available_now",
    driver_bytes: int = DRIVER_BYTES,
    shard_bytes: int = SHARD_BYTES,
    collect_garbage: GarbageCollection = "amortised",
    name: str | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
    clock: Clock = system_clock,
    advance: Mapping[str, Mapping[str, Any]] | None = None,
    close_at: Any = None,
    purging: PurgeMode = "planned",
    schedule: Schedule | None = None,
) -> RunningQuery:
    """Start a program on Spark Structured Streaming and return its streaming query.

    `sources` per stream: a `Source` of files, a streaming DataFrame, or a batch DataFrame or frame (bounded). `trigger` is
    "available_now", a processing time such as "5 seconds", or Spark's own keyword. An increment with at most
    `driver_bytes` of relevant data is evaluated in the driver, a larger one with a key to shard by and at most
    `shard_bytes` a task by shards, every other as DataFrames; 0 switches either off. `on_batch` is called after each
    commit; `clock` is read once per batch. `advance` is what `RunningQuery.advance` says, before the first batch, `close_at` what
    `RunningQuery.close_open` says. `schedule`: which queries are evaluated less often or later (`tg.schedule`).
    """
    check_session(spark)
    store = checkpoint if isinstance(checkpoint, LocalStore) else LocalStore(checkpoint)
    root = store.where
    check_clock(clock)
    check_on_batch(on_batch)
    limits_of(driver_bytes, shard_bytes)
    when = _trigger(spark, trigger)
    named = mapping_of("sources", sources, 'tg.parquet("a directory")')
    given = {key: value if isinstance(value, Source) else Source(value) for key, value in named.items()}
    statics = mapping_of("statics", statics, "rows")
    sinks = mapping_of("sinks", sinks, 'tg.parquet_sink("a directory")')
    advance = mapping_of("advance", advance, '{"time": ...}')
    with described(spark, "start: rows of static tables"):
        setup = prepare(facts, store, given, statics, sinks, collect_garbage, purging, schedule)
    try:
        setup = replace(setup, sources=bounded_inputs(setup, store))
        missing = sorted(set(setup.streams) - set(setup.sources))
        if missing:
            raise QueryError("TG407", f"no source for stream {', '.join(missing)}", hint="pass sources={name: source}")
        check_query_id(root)
        paths = stored_statics(setup, root)
        # Whatever the driver makes, workers may have to read.
        local = EmbeddedExecutor(store, setup.statics, setup.options, setup.written, held_bytes=0)
        executor = SparkExecutor(own_session(spark), local, root, paths, driver_bytes, shard_bytes)
        runner = Runner(setup.plan, setup.checkpoint, executor, setup.options, collect_garbage, setup.timetable)
        files = all(isinstance(source.data, Files) for source in setup.sources.values())
        lasts = not {"availableNow", "once"} & when.keys()  # else it looks at the clock once, and a tick will do
        known = known_sources(store, list(setup.streams), files=files, clock=lasts and _follows_clock(setup))
        union, columns = _union(spark, setup, known)
        calls = ProgressCalls(store, runner.progress.inputs)
        run = SparkRun(spark, setup, runner, executor, columns, calls, ClosingCall(store), on_batch, clock)
        run.recorded()
        for stream, progress in advance.items():
            run.advance(stream, progress)
        if close_at is not None:
            run.close_open(close_at)
        tick = not known.clock and (_follows_clock(setup) or not setup.streams)
        calls.start(frozenset(columns), planned=is_planned(root), tick=tick)
        writer = union.writeStream.foreachBatch(run.handle).option("checkpointLocation", local_uri(f"{root}/spark"))
        if name is not None:
            writer = writer.queryName(name)
        return RunningQuery(writer.trigger(**when).start(), run)
    except BaseException:
        setup.checkpoint.close()
        raise


def _oldest_first(files: Sequence[SourceFile]) -> tuple[str, ...]:
    """Paths in the order in which the embedded engine reads them: of rows with one key the first counts."""
    return tuple(file.path for file in sorted(files, key=lambda file: (file.mtime_ns, file.path)))


def source_file(path: Path) -> SourceFile:
    """A file as it is recorded: its path, size and time."""
    status = path.stat()
    return SourceFile(str(path), status.st_size, status.st_mtime_ns)


def _trigger(spark: SparkSession, trigger: object) -> dict[str, Any]:
    """The trigger by Spark's own keyword; `QueryError` TG401 where Spark does not take it."""
    match trigger:
        case "available_now" | "availableNow":
            return {"availableNow": True}
        case str():
            when: dict[str, Any] = {"processingTime": trigger}
        case Mapping():
            when = dict(trigger)
        case _:
            when = {"": trigger}
    try:
        spark.readStream.format("rate").load().writeStream.trigger(**when)
    except (PySparkException, TypeError) as error:
        raise QueryError(
            "TG401",
            f"{shown(trigger)} is no trigger",
            hint='"available_now", a processing time such as "5 seconds", or one of Spark\'s arguments in a dictionary',
        ) from error
    return when


def _follows_clock(setup: Setup) -> bool:
    """Whether there may be something to do although nothing is new."""
    by_clock = any(options.idle is not None or options.arrival is not None for options in setup.options.values())
    return by_clock or setup.timetable.follows_time


def _union(spark: SparkSession, setup: Setup, known: KnownSources) -> tuple[DataFrame, dict[str, dict[str, str]]]:
    """All sources as narrow branches of one streaming DataFrame; of file sources only the paths."""
    branches, columns = [], {}
    for number, name in enumerate(known.streams):
        data = setup.sources[name].data
        if isinstance(data, Files):
            branches.append(_paths(spark, name, data))
        else:
            rows, wanted = needed_columns(data, setup.streams[name], setup.sources[name])
            columns[name] = {f"s{number}c{i}": column for i, column in enumerate(wanted)}
            branch = rows.toDF(*columns[name]).select(F.lit(name).alias("source"), *columns[name])
            branches.append(branch.coalesce(1) if setup.options[name].key else branch)  # keys are judged in order
    branches.append(call_ticks(spark, setup.checkpoint.store.where))
    if known.clock:
        # Rows that say nothing: without new data Spark runs no batch, and nobody would notice that the clock goes on.
        # No source of a run over what is available now: Spark would read all of it in one batch because of this one.
        ticks = spark.readStream.format("rate").option("rowsPerSecond", 1).option("numPartitions", 1).load()
        branches.append(ticks.select(F.lit(TICK).alias("source")))
    union = branches[0]
    for branch in branches[1:]:
        union = union.unionByName(branch, allowMissingColumns=True)
    for column, type_ in _OFFERED_COLUMNS.items():
        if column not in union.columns:
            union = union.withColumn(column, F.lit(None).cast(type_))
    return union, columns


def _paths(spark: SparkSession, name: str, files: Files) -> DataFrame:
    reader = spark.readStream.format("binaryFile").schema(BINARY_FILE).option("recursiveFileLookup", "true")
    if files.per_batch is not None:
        reader = reader.option("maxFilesPerTrigger", files.per_batch)
    return reader.load(literal(files.directory)).select(
        F.lit(name).alias("source"),
        "path",
        "length",
        F.unix_micros("modificationTime").alias("modified"),
    )
