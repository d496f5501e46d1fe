"""The Spark engine: all sources of a program in one streaming query, as its user starts and sees it."""

from __future__ import annotations

import datetime as dt
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyspark.errors import PySparkException, StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.dsl.expression import DurationOption, Expression, duration_given
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError, TidegateError
from tidegate.algebra.schema import checked_name
from tidegate.algebra.time import duration_ticks
from tidegate.analysis.pipeline import ProgramFacts
from tidegate.runtime.arguments import check_progress, mapping_of
from tidegate.runtime.batch.end_of_input import check_all_end
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.batch.status import Status, asked, standing
from tidegate.runtime.connectors.sinks import Sink
from tidegate.runtime.connectors.sources import Files, sources_given
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.explanation import ProgramExplanation
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.reading_results import read_results
from tidegate.runtime.engines.setup import Setup, prepare
from tidegate.runtime.engines.spark.calls import ProgressCalls
from tidegate.runtime.engines.spark.closing import ClosingCall
from tidegate.runtime.engines.spark.executor import SparkExecutor
from tidegate.runtime.engines.spark.input.bounded import bounded_inputs, stored_statics
from tidegate.runtime.engines.spark.input.known_sources import begin_spark_part
from tidegate.runtime.engines.spark.input.locations import local_uri
from tidegate.runtime.engines.spark.input.union import union_of
from tidegate.runtime.engines.spark.input.wake_ups import WakeUps
from tidegate.runtime.engines.spark.input.watched import watched_directories
from tidegate.runtime.engines.spark.input.which_files import FileSelection
from tidegate.runtime.engines.spark.jobs import described
from tidegate.runtime.engines.spark.own_files import check_query_id, is_planned
from tidegate.runtime.engines.spark.run import SparkRun
from tidegate.runtime.engines.spark.setup.session import check_session, own_session
from tidegate.runtime.engines.spark.setup.shipping import ship_library
from tidegate.runtime.ingest.ingest import is_judged_in_order
from tidegate.runtime.ingest.quarantine import quarantine_of
from tidegate.runtime.inspect.live_display import LiveDisplay
from tidegate.runtime.inspect.results import ResultRows, ResultTable
from tidegate.runtime.inspect.why import why
from tidegate.runtime.inspect.why_answer import Why
from tidegate.runtime.plan.placement import Limits, limits_of
from tidegate.runtime.plan.sharding import buffer_keys
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.store.local import LocalStore

#: Segments that the driver makes stay in its memory until their batch ends, up to so many bytes, so that small ones are
#: parts of one file. Those that workers read are files before.
PENDING_BYTES = 16 << 20


@checked_calls
class RunningQuery(StreamingQuery):
    """The streaming query of a program: Spark's own, with results as a session has them, also after it has ended.

    Printed, and in a notebook, it is rows by their fate, up to where results are final, and what is kept. `reports` has
    what each of the last hundred batches did. When it ends it gives up the checkpoint. `awaitTermination`,
    `processAllAvailable` and `exception` give the error of a batch that failed as itself.

    Examples:
        >>> query
        query of Unpaid in ..., ended, after batch ...
          in    Orders    3 rows, accepted
                Payments  3 rows, 2 accepted, 1 rejected: 1 null
          out   Unpaid    complete
          kept  Orders    0 rows
                Payments  0 rows
        >>> query.table("Unpaid")["customer"]
        ['Bob', 'Ada']
    """

    def __init__(self, query: StreamingQuery, run: SparkRun, progress: bool | None = None) -> None:
        super().__init__(query._jsq)
        self._run, self._progress = run, progress

    def __repr__(self) -> str:
        return str(self._standing())

    def _repr_html_(self) -> str:
        """For notebooks."""
        return self._standing()._repr_html_()

    def _standing(self) -> Status:
        """Its state, and as of a session rows by their fate, up to where results are final, what is kept."""
        last = self._run.setup.checkpoint.manifest
        state = "running" if self.isActive else "failed" if self.exception() else "ended"
        named = f" {self.name!r}" if self.name else ""
        where = self._run.setup.checkpoint.store.where
        title = (
            f"query{named} of {asked(self._run.setup.plan)} in {where}, {state}, after batch {last.seq if last else 0}"
        )
        return standing(title, self._run.runner)

    @property
    def isActive(self) -> bool:  # Spark's name
        """As Spark's: whether the query runs; one that has ended gives up the checkpoint.

        Examples:
            >>> query.isActive
            False
        """
        is_active = super().isActive
        if not is_active:
            self._run.close()
        return is_active

    @property
    def reports(self) -> list[BatchReport]:
        """What the last `KEPT_REPORTS` (100) batches of this run did, oldest first; `on_batch` sees every batch.

        Examples:
            >>> query.reports[0].results
            {'Unpaid': 2}
        """
        return list(self._run.reports)

    def table(self, name: str) -> ResultTable:
        """All results of a stream so far, as users see them; also after the query has ended. It waits for the batch
        that runs.

        `QueryError` TG402 for a name that is no result, TG405 for results that are not kept.

        Examples:
            >>> query.table("Unpaid")["customer"]
            ['Bob', 'Ada']
        """
        setup = self._run.setup
        with self._run.batching:
            manifest = setup.checkpoint.manifest if self.isActive else inspect(setup.checkpoint.store).manifest
            results = read_results(setup.plan, setup.checkpoint.store, manifest, setup.sinks, name)
            return ResultTable(name, results.read_all())

    def results(self, name: str) -> list[dict[str, Any]]:
        """`table` as a list of rows, which are dictionaries. Printed, and in a notebook, they are a table.

        Examples:
            >>> [row["customer"] for row in query.results("Unpaid")]
            ['Bob', 'Ada']
        """
        return ResultRows(self.table(name))

    def quarantine(self) -> pa.RecordBatchReader:
        """All quarantined rows as of the last batch, with reason, source and position: a stream of Arrow batches.

        Examples:
            >>> query.quarantine().read_all().column("reason").to_pylist()
            ['null']
        """
        return quarantine_of(self._run.setup.checkpoint.store)

    def explanation(self) -> ProgramExplanation:
        """The program's explanation with the plan, the schedule and the limits of this run.

        Examples:
            >>> query.explanation().to_dict()["queries"][0]["final_when"]
            {'ordered': 'min(Orders.ordered, Payments.paid - 30m)'}
        """
        setup, executor = self._run.setup, self._run.executor
        choices = self._run.reports[-1].choices if self._run.reports else ()
        return ProgramExplanation(setup.plan.facts, False, setup.timetable, executor.limits, setup.plan, choices)

    def why(self, name: str | None = None, row: Mapping[str, Any] | None = None) -> Why:
        """What holds a result back after the last batch, or, with the instants of a row of it, when that row is final.

        Without a name, of the only result. `QueryError` TG402 for a name that is no result, TG401 where an instant is
        missing on which the result progresses.

        Examples:
            >>> print(query.why("Unpaid"))
            Unpaid is complete: all that it reads has ended
              accepted rows  3 of Orders, 2 of Payments
        """
        with Here():
            checkpoint = self._run.setup.checkpoint
            return why(self._run.setup.plan.facts, checkpoint.manifest, name, row, checkpoint.store)

    def advance(self, stream: str, progress: Any) -> None:
        """Declare that, with the files that are in its directory, everything up to these instants (inclusive) has
        arrived.

        Of a streaming DataFrame: with the rows that Spark finds when it next plans a batch. The call is kept in the
        checkpoint: a batch takes it up, also without new rows, if need be after a restart. `QueryError` TG401 for an
        attribute on which the stream does not progress, TG403 for what is no instant.

        Examples:
            >>> live = program.start(spark, sources=coming, checkpoint="advanced", trigger="100 milliseconds")
            >>> live.advance("Orders", {"ordered": "2026-03-02T13:00Z"})
            >>> live.advance("Payments", {"paid": "2026-03-02T12:40Z"})
            >>> live.processAllAvailable()
            >>> live.stop()
            >>> print(live.why("Unpaid"))
            Unpaid is final up to ordered = 2026-03-02T12:10:00Z
            ...
        """
        self._run.advance(stream, progress)

    def finish(self, stream: str | None = None, *, close_at: Any = None) -> None:
        """Declare the end of a stream, or of all, as `advance` does.

        With `close_at`, an instant after all events and all declared progress, what is open then ends there:
        situations, and rows that wait for later ones.

        Examples:
            >>> live = program.start(spark, sources=coming, checkpoint="finished", trigger="100 milliseconds")
            >>> live.finish()
            >>> live.processAllAvailable()
            >>> live.stop()
            >>> print(live.why("Unpaid"))
            Unpaid is complete: all that it reads has ended
        """
        if close_at is not None:
            check_all_end(stream)
            self.close_open(close_at)
        self._run.finish(stream)

    def close_open(self, at: Any) -> None:
        """Say where that ends which is open when all streams have ended, without ending any stream.

        The call is kept in the checkpoint until a batch records it; until the end another instant can be said. It waits
        for the batch that runs. `QueryError` TG417 where nothing can be open.

        Examples:
            >>> import polars as pl
            >>> pl.DataFrame({"car": ["blue"], "time": [1], "speed": [90.0], "accel": [0.0]}).write_ndjson("cars.json")
            >>> sources = {"Cars": tg.json("cars.json")}
            >>> live = tg.program(Fast=Fast).start(spark, sources=sources, checkpoint="closed", trigger="1 second")
            >>> live.close_open(9)
            >>> live.finish()
            >>> live.processAllAvailable()
            >>> live.stop()
            >>> live.results("Fast")
            Fast: 1 row
            ┌──────┬────┬────┐
            │ car  ┆ ts ┆ te │
            ╞══════╪════╪════╡
            │ blue ┆ 1  ┆ 9  │
            └──────┴────┴────┘
        """
        self._run.close_open(at)

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # Spark's name
        """As Spark's: waits for the end, at most `timeout` seconds; the error of a batch that failed is raised as
        itself.

        Examples:
            >>> query.awaitTermination()  # it has ended
            >>> query.isActive
            False
        """
        try:
            with self._run.own_error(), self._display():
                return super().awaitTermination(timeout)  # type: ignore[arg-type]  # Spark takes fractions too
        finally:
            self._check_over()

    def processAllAvailable(self) -> None:  # Spark's name
        """As Spark's: waits until all there is now is processed; the error of a batch that failed is raised as itself.

        Examples:
            >>> live = program.start(spark, sources=coming, checkpoint="processed", trigger="100 milliseconds")
            >>> live.processAllAvailable()
            >>> live.isActive
            True
            >>> live.stop()
        """
        try:
            with self._run.own_error(), self._display():
                if self.isActive:
                    self._run.look()
                super().processAllAvailable()
        finally:
            if self._run.error is not None:  # Spark tells of it a moment before the query has ended
                with suppress(StreamingQueryException):
                    super().awaitTermination()
            self._check_over()

    def _check_over(self) -> None:
        if not self.isActive:
            self._run.unhush()

    @contextmanager
    def _display(self) -> Iterator[None]:
        """Shows batches while somebody waits for them."""
        with LiveDisplay(self._progress, "Spark runs the first batch") as display:
            self._run.display = display
            try:
                yield
            finally:
                self._run.display = None

    def exception(self) -> TidegateError | StreamingQueryException | None:  # type: ignore[override]  # ours is no Spark's
        """Why the query ended, if it was for an error.

        Examples:
            >>> query.exception() is None
            True
        """
        return self._run.error or super().exception()

    def stop(self) -> None:
        """As Spark's: ends the query; the checkpoint is free then, and another run may go on with it.

        Examples:
            >>> live = program.start(spark, sources=coming, checkpoint="stopped", trigger="100 milliseconds")
            >>> live.stop()
            >>> live.isActive
            False
        """
        self._run.stopping = True
        super().stop()
        self._run.close()
        self._run.unhush()


def start(
    spark: SparkSession,
    facts: ProgramFacts,
    *,
    sources: Mapping[str, Any],
    checkpoint: str | Path | LocalStore,
    statics: Mapping[str, Any] | None = None,
    sinks: Mapping[str, Sink] | None = None,
    options: RunOptions = RunOptions(),
    trigger: Mapping[str, Any] | DurationOption = "available_now",
    driver_bytes: int | None = None,
    shard_bytes: int | None = None,
    name: str | None = None,
    advance: Mapping[str, Any] | None = None,
    close_at: Any = None,
    progress: bool | None = None,
    held: bool = False,
) -> RunningQuery:
    """Start a program on Spark Structured Streaming and return its streaming query.

    `sources` per stream: a `Source` of files, a streaming DataFrame, or a batch DataFrame or frame (bounded). `trigger`
    is "available_now", a time between batches such as "5s", or Spark's own keyword. An increment with at most
    `driver_bytes` of relevant data is evaluated in the driver, a larger one with a key to shard by and at most
    `shard_bytes` a task by shards, every other as DataFrames; 0 switches either off. `options` are those of
    `Program.session`; `threads` means nothing here. `advance` is what `RunningQuery.advance` says, before the first
    batch, `close_at` what `RunningQuery.close_open` says. A query that is `held` begins no batch before this thread
    releases `SparkRun.batching`, and none by itself.
    """
    check_session(spark)
    store = checkpoint if isinstance(checkpoint, LocalStore) else LocalStore(checkpoint)
    root = store.where
    check_progress(progress)
    if name is not None:
        _check_name(spark, name)
    limits = limits_of(driver_bytes, shard_bytes)
    when = _trigger(spark, trigger)
    given = sources_given(sources)
    statics = mapping_of("statics", statics, "rows")
    sinks = mapping_of("sinks", sinks, 'tg.parquet_sink("a directory")')
    advance = mapping_of("advance", advance, '{"time": ...}')
    frames = {**statics, **{key: source.data for key, source in given.items()}}
    watched = {key: watched_directories(frame) for key, frame in frames.items() if isinstance(frame, DataFrame)}
    with described(spark, "start: rows of static tables"):
        setup = prepare(facts, store, given, statics, sinks, options, watched)
    try:
        setup = replace(setup, sources=bounded_inputs(setup, store))
        missing = sorted(set(setup.streams) - set(setup.sources))
        if missing:
            raise QueryError("TG407", f"no source for stream {', '.join(missing)}", hint="pass sources={name: source}")
        check_query_id(root)
        lasts = not {"availableNow", "once"} & when.keys()
        run, union = _run_of(spark, setup, store, limits, options, lasts=lasts, at_once="once" in when)
        run.recorded()
        for stream, instants in advance.items():
            run.advance(stream, instants)
        if close_at is not None:
            run.close_open(close_at)
        run.begin(planned=is_planned(root), wakes=not held)
        writer = union.writeStream.foreachBatch(run.handle).option("checkpointLocation", local_uri(f"{root}/spark"))
        if name is not None:
            writer = writer.queryName(name)
        if held:
            run.batching.acquire()
        query = writer.trigger(**when).start()
        if lasts and not held:
            run.watch(lambda: query.isActive)
        return RunningQuery(query, run, progress)
    except BaseException:
        setup.close()
        raise


def _run_of(
    spark: SparkSession,
    setup: Setup,
    store: LocalStore,
    limits: Limits,
    options: RunOptions,
    *,
    lasts: bool,
    at_once: bool,
) -> tuple[SparkRun, DataFrame]:
    """A run that has read nothing yet, and the streaming DataFrame of all that Spark reads for it.

    It `lasts` where it reads files that come after its start; `at_once`: what is there is one batch.
    """
    root = store.where
    paths = stored_statics(setup, store)
    local = EmbeddedExecutor(
        store,
        setup.statics,
        setup.options,
        setup.written,
        options.cache_bytes,
        pending_bytes=PENDING_BYTES,
        beside=(os.cpu_count() or 1) > 1,
        tuner=options.tuner(),
    )
    ship_library(spark.sparkContext)
    widths = {name: len(setup.judged(name)) for name in setup.streams}
    keys = buffer_keys(setup.plan)
    in_order = (name for name, stream in setup.streams.items() if is_judged_in_order(stream, setup.options[name]))
    executor = SparkExecutor(
        own_session(spark),
        local,
        root,
        paths,
        widths,
        keys,
        limits.driver_bytes,
        limits.shard_bytes,
        frozenset(in_order),
    )
    runner = setup.runner(executor)
    framed = sorted(name for name in setup.streams if not isinstance(setup.sources[name].data, Files))
    begin_spark_part(store, framed)
    wake_ups = WakeUps(root)
    union, columns = union_of(spark, setup, framed, wake_ups)
    unread = setup.unread()
    there = {source: frozenset(file.path for file in files) for source, files in unread.items()}
    selection = FileSelection(None if lasts else there, at_once=at_once)
    run = SparkRun(
        spark,
        setup,
        runner,
        executor,
        columns,
        ProgressCalls(store, runner.state.progress.inputs),
        ClosingCall(store),
        wake_ups,
        selection,
        options,
        setup.follows_clock,
    )
    return run, union


def _check_name(spark: SparkSession, name: str) -> None:
    """`QueryError` TG114 for what Spark and its pages cannot call a query, TG401 for the name of one that runs."""
    checked_name(name, "a query of Spark")
    if any(query.name == name for query in spark.streams.active):
        raise QueryError(
            "TG401", f"a query with name={shown(name)} is running", hint="give another name, or stop that query first"
        )


def _trigger(spark: SparkSession, trigger: object) -> dict[str, Any]:
    """The trigger by Spark's own keyword; `QueryError` TG401 where Spark does not take it."""
    match trigger:
        case "available_now" | "availableNow":
            return {"availableNow": True}
        case str() | dt.timedelta() | Expression():
            when: dict[str, Any] = {"processingTime": trigger}
        case Mapping():
            when = dict(trigger)
        case _:
            when = {"": trigger}
    try:
        if "processingTime" in when:
            when["processingTime"] = _processing_time(when["processingTime"])
        spark.readStream.format("rate").load().writeStream.trigger(**when)
    except (QueryError, PySparkException, TypeError) as error:
        raise QueryError(
            "TG401",
            f"{shown(trigger)} is no trigger",
            hint='"available_now", a time between batches such as "5s", or one of Spark\'s arguments in a dictionary',
        ) from error
    return when


def _processing_time(given: object) -> str:
    """A duration as Spark reads it, which knows fewer ways to write one, and its own `interval` before it."""
    value = given.removeprefix("interval ") if isinstance(given, str) else duration_given(given)
    return f"{duration_ticks(value)} microseconds"
