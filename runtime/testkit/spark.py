"""The Spark engine as the test kit drives it: each step is a batch of a streaming query, which lasts until it is to
die.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from pyspark.sql import SparkSession

from tidegate.algebra.errors import InternalError
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.facts import ProgramFacts
from tidegate.runtime.batch.garbage import GarbageCollection
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sources import Files, Source
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.setup import prepare
from tidegate.runtime.engines.spark.calls import ProgressCalls
from tidegate.runtime.engines.spark.engine import RunningQuery, start
from tidegate.runtime.engines.spark.own_files import is_planned
from tidegate.runtime.engines.spark.setup.session import check_session
from tidegate.runtime.ingest.inputs import ProgressTicks, advances_of
from tidegate.runtime.ingest.stored_rows import input_table
from tidegate.runtime.plan.progress import ProgressState
from tidegate.runtime.plan.schedule import Schedule
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.state.failpoints import SimulatedCrash
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.testkit.waiting import PendingStep, TestClock


@dataclass(slots=True)
class OnSpark:
    """A program on Spark, its streams as directories of Parquet files below a directory of the test."""

    spark: SparkSession
    facts: ProgramFacts
    sources: Mapping[str, Source]
    statics: Mapping[str, Any]
    clock: TestClock
    collect_garbage: GarbageCollection
    directory: Path | None
    driver_bytes: int | None
    shard_bytes: int | None
    schedule: Schedule | None = None
    plan: Plan = field(init=False)
    _root: Path = field(init=False)
    _store: LocalStore = field(init=False)
    _temporary: tempfile.TemporaryDirectory[str] | None = None
    _files: int = 0
    _written: PendingStep | None = None
    _query: RunningQuery | None = None
    _reports: list[BatchReport] = field(default_factory=list)

    def __post_init__(self) -> None:
        check_session(self.spark)
        if self.directory is not None:
            self._root = self.directory
        else:
            self._temporary = tempfile.TemporaryDirectory(prefix="tidegate-test-")
            self._root = Path(self._temporary.name)
        for stream in self._streams:
            (self._root / "in" / stream.name).mkdir(parents=True, exist_ok=True)
        self.restart()

    @property
    def store(self) -> Store:
        return self._store

    @property
    def _streams(self) -> list[StreamDef]:
        return [stream for stream in self.facts.program.inputs if not stream.static]

    def step(self, waiting: PendingStep) -> BatchReport:
        self._reports.clear()
        if self._store.failpoints.armed or (self._query is None and is_planned(self._store.where)):
            self._give(waiting)
            # After a kill Spark may begin with a batch that is committed: that run brings nothing but Spark's own note
            # of it.
            self._run(waiting)
            if not self._reports:
                self._run(waiting)
        else:
            self._run_on(waiting)
        # A look at the directories while the step was given may have had Spark plan one more batch, which finds
        # nothing.
        report, *others = self._reports
        assert not any(counts.rows_in for note in others for counts in note.counts.values())
        return report

    def _give(self, waiting: PendingStep) -> None:
        if waiting is self._written:
            return  # a step that was killed finds its files where it left them
        self._written = waiting
        for stream in self._streams:
            source = self.sources.get(stream.name, Source(None))
            judged = source.options(stream).judged(stream.schema)
            for rows in waiting.rows.get(stream.name, ()):
                self._write(stream.name, input_table(rows, judged))
        if self._streams:  # a batch without rows is one too
            self._write(self._streams[0].name, pa.table({}))

    def _write(self, stream: str, table: pa.Table) -> None:
        self._files += 1
        pq.write_table(table, self._root / "in" / stream / f"{self._files:06d}.parquet")

    def _run(self, waiting: PendingStep) -> None:
        """One batch of a streaming query: the one that Spark had planned before, or one over all that it has not
        read.
        """
        self._stop()
        before_the_end = _before_the_end(waiting)
        if before_the_end:  # a start says the greatest only
            ProgressCalls(self._store, ProgressState.start(self.plan).inputs).add(before_the_end)
        query = self._start(trigger={"once": True}, advance=_by_stream(waiting.advances), close_at=waiting.close_at)
        query.awaitTermination()

    def _run_on(self, waiting: PendingStep) -> None:
        """The next batch of a query that lasts; it waits until all of the step is there."""
        is_first = self._query is None
        query = self._query or self._start(trigger="0 seconds", held=True)
        self._query, run = query, query._run
        if not is_first:
            run.batching.acquire()
        try:
            self._give(waiting)
            run.calls.add(_before_the_end(waiting))
            for stream, progress in _by_stream(waiting.advances).items():
                arrival = run.setup.options[stream].arrival
                run.calls.add(advances_of(run.setup.streams[stream], progress, arrival))
            if waiting.close_at is not None:
                run.close_open(waiting.close_at)
            run.wake_ups.wake()  # once, at the end: Spark plans a batch for each
        finally:
            run.batching.release()
        try:
            query.processAllAvailable()
        except BaseException:
            self._stop()
            raise

    def _start(self, **more: Any) -> RunningQuery:
        options = RunOptions(
            collect_garbage=self.collect_garbage,
            clock=self.clock,
            schedule=self.schedule,
            on_batch=self._reports.append,
        )
        return start(
            self.spark,
            self.facts,
            sources=self._placed(),
            checkpoint=self._store,
            statics=self.statics,
            options=options,
            driver_bytes=self.driver_bytes,
            shard_bytes=self.shard_bytes,
            **more,
        )

    def _stop(self) -> None:
        if self._query is not None:
            self._query.stop()
        self._query = None

    def _placed(self) -> dict[str, Source]:
        """The sources, with the directories that rows are written to."""
        return {
            s.name: replace(
                self.sources.get(s.name, Source(None)), data=Files(str(self._root / "in" / s.name), "parquet")
            )
            for s in self._streams
        }

    def died(self, failure: BaseException) -> bool:
        # In a batch the crash comes as Spark's answer, before and after it as itself.
        return isinstance(failure, SimulatedCrash) or (
            isinstance(failure, InternalError) and "SimulatedCrash" in str(failure)
        )

    def restart(self) -> None:
        self._stop()
        self._store = LocalStore(self._root / "checkpoint")
        setup = prepare(self.facts, self._store, self._placed(), self.statics, {})  # recovers the checkpoint
        setup.checkpoint.close()
        self.plan = setup.plan

    def close(self) -> None:
        self._stop()
        if self._temporary is not None:
            self._temporary.cleanup()


def _before_the_end(waiting: PendingStep) -> dict[tuple[str, str], Extended]:
    """What was declared of streams that then ended."""
    return {key: value for key, value in waiting.declared.items() if waiting.advances[key] == INF}


def _by_stream(advances: Mapping[tuple[str, str], Extended]) -> dict[str, dict[str, Extended]]:
    ticks = {key: ProgressTicks(value) if isinstance(value, int) else value for key, value in advances.items()}
    return {s: {a: v for (t, a), v in ticks.items() if t == s} for s, _ in ticks}
