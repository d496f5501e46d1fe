"""A running program on the driver: one of our batches for each of Spark's micro-batches, and the calls between them."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from threading import RLock
from typing import Any, Final

from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession

from tidegate.algebra.errors import InternalError, QueryError, TidegateError
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.batch.end_of_input import closing_instant
from tidegate.runtime.batch.executor import Work
from tidegate.runtime.batch.loop import Runner
from tidegate.runtime.batch.report import KEPT_REPORTS, BatchReport
from tidegate.runtime.engines.ahead.following import Following, is_taken_in_ahead
from tidegate.runtime.engines.ahead.read_ahead import ReadAhead
from tidegate.runtime.engines.clock import read_clock
from tidegate.runtime.engines.notices import Notices, RunWarning
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.setup import FoundFiles, Setup, UnreadFiles
from tidegate.runtime.engines.spark.calls import ProgressCalls
from tidegate.runtime.engines.spark.closing import ClosingCall
from tidegate.runtime.engines.spark.executor import SparkExecutor, StreamOffer
from tidegate.runtime.engines.spark.failures import cause_of, hushed, nothing, read_summaries
from tidegate.runtime.engines.spark.input.wake_ups import WakeUps
from tidegate.runtime.engines.spark.input.watching import Watcher
from tidegate.runtime.engines.spark.input.which_files import FileSelection, forget_what_has_gone
from tidegate.runtime.engines.spark.jobs import described
from tidegate.runtime.engines.spark.own_files import how_to_go_on, planned_offsets
from tidegate.runtime.engines.spark.tasks.running import SUMMARIES
from tidegate.runtime.engines.spark.workers import FileTask, IngestContext, ingest_offered
from tidegate.runtime.ingest.inputs import advances_of
from tidegate.runtime.inspect.live_display import LiveDisplay
from tidegate.runtime.plan.progress import check_known
from tidegate.runtime.state.codec import digest
from tidegate.runtime.state.inputs.positions import OLDEST_FIRST, Offer, SourceFile, SparkBatch
from tidegate.runtime.state.manifest import Engine
from tidegate.version import VERSION

_ENGINE = Engine("spark", VERSION)
#: Seconds for which a micro-batch of Spark's goes on with further batches of ours: what Spark does around each of its
#: own, some 50 ms, is then little, and a query that is stopped ends soon.
AT_ONCE: Final = 1.0


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
    wake_ups: WakeUps
    selection: FileSelection
    options: RunOptions
    by_clock: bool = False
    """Whether there may be something to do although nothing is new."""
    reports: deque[BatchReport] = field(default_factory=lambda: deque(maxlen=KEPT_REPORTS))
    error: TidegateError | None = None
    batching: RLock = field(default_factory=RLock)
    """Held while a batch runs: whether the streams have ended is known before it and after it."""
    watching: Watcher | None = None
    display: LiveDisplay | None = None
    notices: Notices = field(init=False)
    unhush: Callable[[], None] = nothing
    """Lets Spark log what ends a query, where it was kept from it."""
    stopping: bool = False
    """Whether the query is to end after the batch that runs."""
    ahead: ReadAhead = field(default_factory=ReadAhead)

    def __post_init__(self) -> None:
        self.notices = Notices.of(self.setup, self.setup.sources)
        self.runner.tell = self.notices.told

    def advance(self, stream: str, progress: Any) -> None:
        check_known(stream, self.setup.streams, "stream")
        advances = advances_of(self.setup.streams[stream], progress, self.setup.options[stream].arrival)
        self.notices.advanced(self.runner.state.progress.inputs, advances)
        self._call(advances)

    def finish(self, stream: str | None) -> None:
        streams = self.setup.streams
        if stream is not None:
            check_known(stream, streams, "stream")
        ended = streams.values() if stream is None else [streams[stream]]
        self._call({(definition.name, a): INF for definition in ended for a in definition.progress})

    def _call(self, advances: Mapping[tuple[str, str], Extended]) -> None:
        if self.calls.add(advances):
            self.wake_ups.wake()

    def close_open(self, at: Any) -> None:
        ticks = closing_instant(self.setup.plan, at)
        with self.batching:
            state = self.runner.state
            if state.closing is not None:
                state.closing.check_open(self.setup.plan, state.progress, ticks)
            self.closing.say(ticks)
            self._closing_recorded()

    def begin(self, *, planned: bool, wakes: bool) -> None:
        """Spark starts after this, with the batch that it has `planned` before if there is one. It is to run one more
        if there is something to do and this `wakes` it."""
        due = self.by_clock or not self.setup.streams
        if not planned:  # else that batch may do it, and what is left then is seen after it
            self.calls.plan(frozenset(self.columns))
            due = due or self.calls.are_waiting() or self._is_left()
        if wakes and due:
            self.wake_ups.wake()
        elif wakes and not planned and not self.selection.lasts:  # no batch says it
            self.notices.looked()
            self.notices.waited(self.runner.state.progress.bounds(self.setup.plan))

    def watch(self, is_active: Callable[[], bool]) -> None:
        """Has Spark run a batch whenever there is something to do, until the query ends."""
        self.watching = Watcher(self.look, is_active, self.batching)

    def look(self, clock: bool = False) -> None:
        """Has Spark run a batch if there is something for one, or if the `clock` may have gone on."""
        with self.batching:
            if self.wake_ups.waiting:
                return
            try:
                self.setup.unread()
                self.notices.looked()
                due = self._is_left() or (clock and self.by_clock)
                if not due and not self.calls.are_waiting():
                    self.notices.waited(self.runner.state.progress.bounds(self.setup.plan))
            except (TidegateError, RunWarning):  # the batch looks as well, and the query ends with what it finds
                due = True
            if due:
                self.wake_ups.wake()

    def recorded(self) -> None:
        """Forget the calls that the last commit knows."""
        self.calls.reached(self.runner.state.progress.inputs)
        self._closing_recorded()

    def _closing_recorded(self) -> None:
        closing = self.runner.state.closing
        self.closing.recorded(None if closing is None else closing.at)

    def handle(self, frame: DataFrame, batch_id: int) -> None:
        """One micro-batch. The frame is evaluated exactly once: it recomputes all sources on every action."""
        session = frame.sparkSession
        query_id = session.sparkContext.getLocalProperty("sql.streaming.queryId")
        if query_id is None:
            raise QueryError("TG420", "Spark does not say which streaming query this batch belongs to")
        spark_batch = SparkBatch(query_id, batch_id)
        try:
            clock = self.setup.checkpoint.clock(read_clock(self.options.clock), spark_batch)
            with self.batching:
                self.wake_ups.begun()
                skipped = self._micro_batch(frame, spark_batch, clock)
                due = self.calls.plan(frozenset(self.columns)) or (skipped and self.calls.are_waiting())
                if due or self._is_left():
                    self.wake_ups.wake()
        except Exception as error:
            self.error = error if isinstance(error, TidegateError) else None
            self.close()
            self.unhush = hushed(session, self.error)
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
            raise self.error from cause_of(self.error, failure)

    def _micro_batch(self, frame: DataFrame, spark_batch: SparkBatch, clock: int) -> bool:
        """Batches of ours for one of Spark's; whether there is none, since it is committed here."""
        began = time.monotonic()
        stored = self._stored(frame, spark_batch, clock)
        offsets = {name: str(spark_batch.batch_id) for name in self.columns}
        planned = digest(planned_offsets(self.executor.root, spark_batch.batch_id))
        admission = self.setup.admit(Offer({}, offsets, spark_batch, planned))
        if admission.skip:
            return True
        self._batch(admission.offer, spark_batch, clock, stored)
        while self._goes_on(began):
            self._batch(Offer(), spark_batch, read_clock(self.options.clock), ())
        return False

    def _goes_on(self, began: float) -> bool:
        """Whether what is left makes another batch at once. Rows that Spark reads come with its own batches."""
        if self.columns or self.stopping or time.monotonic() - began >= AT_ONCE:
            return False
        return self._is_left()

    def _is_left(self) -> bool:
        """Whether there is something for another batch: files, a recursion that goes on, or the end of a directory that
        was read before it was said to end.
        """
        directories, state = self.setup.directories, self.runner.state
        if self.selection.is_left(directories) or state.is_unfinished:
            return True
        read = self.setup.read_by({}, {name: one.waiting for name, one in directories.items()})
        return any(state.progress.inputs.get(of, -INF) < INF for of in self.setup.ended(read))

    def _batch(self, offer: Offer, spark_batch: SparkBatch, clock: int, stored: Sequence[Mapping[str, Any]]) -> None:
        """A batch of ours: of what Spark offers with what workers `stored` of it, and of files."""
        checkpoint = self.setup.checkpoint
        called = self.calls.called()  # before looking at directories: what was put there before a call is found
        began = time.monotonic()
        unread = self.setup.unread(everything=self.selection.at_once)
        took = time.monotonic() - began
        self.notices.looked()
        forget_what_has_gone(checkpoint)
        chosen = self.selection.next(self.setup, unread, self.executor.tuner, checkpoint.next_seq)
        batch = checkpoint.begin(clock, replace(offer, files=chosen), engine=_ENGINE)
        reading = batch.intent.offer.files
        arrivals = self._arrivals(reading)
        for summary in stored:
            known = arrivals.get(summary["stream"], StreamOffer())
            arrivals[summary["stream"]] = replace(known, stored=(*known.stored, summary))
        following = self._following(unread, took, reading)
        read = self.setup.read_by(reading, unread)
        due = called.due(read=read, offered=frozenset(self.columns))
        advances, waiting = due | self.setup.ended(read), self.setup.waiting(reading, unread)
        work = Work(arrivals, advances, self.closing.waiting, self.calls.declared(), waiting, following)
        report = replace(self.runner.run(batch, work), spark=spark_batch)
        self.setup.read(reading)
        self.setup.compactions.after(report)
        self.recorded()
        self.reports.append(report)
        if (display := self.display) is not None:
            display.after(report)
        if self.options.on_batch is not None:
            self.options.on_batch(report)
        self.notices.after(report, self.runner.state.counts)

    def _arrivals(self, reading: FoundFiles) -> dict[str, StreamOffer]:
        """The files of a batch, some of them begun; no others are held any more."""
        arrivals = {}
        for name, files in reading.items():
            data = self.setup.sources[name].data
            task = FileTask(name, data.format, _oldest_first(files), data.top)
            size = sum(file.size for file in files)
            begun = self.ahead.take(files)
            arrivals[name] = StreamOffer((task,) if files else (), size, begun=begun, found=tuple(files))
        self.ahead.drop()
        return arrivals

    def _following(self, unread: UnreadFiles, took: float, reading: FoundFiles) -> Following | None:
        """Begins to read the files of the next batch, if the driver is to take them in; gives those whose rows it can
        take in while the batch runs that reads some.
        """
        setup, tuner = self.setup, self.executor.tuner
        seq = setup.checkpoint.next_seq + 1

        def chosen(unread: UnreadFiles) -> FoundFiles:
            files = self.selection.next(setup, unread, tuner, seq, reading)
            return files if self.executor.ingests_here(files) else {}

        def look() -> UnreadFiles:
            return setup.unread(everything=self.selection.at_once)

        beside = tuner.lets_go_ahead and self.executor.local.beside
        for name, files in chosen(unread).items():
            if not (beside and is_taken_in_ahead(setup.streams[name], setup.options[name])):
                self.ahead.begin(name, files, setup.sources[name].data, setup.judged(name), tuner)
        return Following(setup, tuner, chosen, look, unread, took) if beside else None

    def _stored(self, frame: DataFrame, spark_batch: SparkBatch, clock: int) -> list[dict[str, Any]]:
        """What workers stored of rows that came typed, in one job."""
        if not self.columns:
            return []
        seq = self.setup.checkpoint.next_seq
        with described(self.spark, f"batch {seq}: what is new"):
            target = self.executor.target_of(seq, f"spark{spark_batch.batch_id}")
            work = IngestContext(target, self.runner.intakes(clock), self.setup.options)
            rows = frame.mapInArrow(ingest_offered(work, self.columns), SUMMARIES).collect()
            return read_summaries(row.summary for row in rows)

    def close(self) -> None:
        with ExitStack() as closing:  # the last one first, and each whatever another one raises
            closing.callback(lambda: self.notices.ended(self.runner.state.counts))
            closing.callback(self.setup.close)
            closing.callback(self.executor.close)
            closing.callback(self.ahead.close)
            if self.watching is not None:
                closing.callback(self.watching.stop)


def _oldest_first(files: Sequence[SourceFile]) -> tuple[str, ...]:
    """Paths in the order in which the embedded engine reads them: of rows with one key the first counts."""
    return tuple(file.path for file in sorted(files, key=OLDEST_FIRST))
