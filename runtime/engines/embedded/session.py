"""The push-style session: push rows, advance progress, step, read results."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa

from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.dsl.expression import DurationOption
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.time import Extended
from tidegate.analysis.pipeline import ProgramFacts
from tidegate.runtime.arguments import check_progress
from tidegate.runtime.batch.end_of_input import check_all_end, closing_instant
from tidegate.runtime.batch.report import BatchReport, Reports
from tidegate.runtime.batch.status import Status
from tidegate.runtime.connectors.sinks import Sink
from tidegate.runtime.connectors.sources import Source
from tidegate.runtime.engines.embedded.batches import SessionBatches
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.embedded.file_polling import FilePolling
from tidegate.runtime.engines.embedded.findings import Findings
from tidegate.runtime.engines.embedded.pending_input import PendingInput
from tidegate.runtime.engines.notices import Notices
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.setup import prepare
from tidegate.runtime.ingest.inputs import advances_of
from tidegate.runtime.ingest.raw_rows import Rows
from tidegate.runtime.inspect.live_display import LiveDisplay
from tidegate.runtime.inspect.results import ResultRows, ResultTable
from tidegate.runtime.inspect.why_answer import Why
from tidegate.runtime.plan.progress import check_known
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.state.inputs.positions import Offer
from tidegate.runtime.state.manifest import SourceCounts
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.memory import MemoryStore

if TYPE_CHECKING:
    from tidegate.runtime.engines.embedded.background import BackgroundSession


@checked_calls
class Session:
    """A program run in this process, batch by batch; `Program.session` opens it.

    `sources` gives delay, progress columns and policy per stream, and rows where it has any: directories are read file
    by file, a frame is the whole of its stream. `statics` holds the rows of static tables, `sinks` where results go
    (default: kept in the store, read by `results`). `options` are those of `Program.session`.

    Examples:
        >>> with program.session() as session:
        ...     session.push("Orders", inputs["Orders"])
        ...     session.push("Payments", inputs["Payments"])
        ...     session.finish()
        ...     report = session.step()
        ...     session.table("Unpaid")["customer"]
        ['Bob', 'Ada']
    """

    def __init__(
        self,
        facts: ProgramFacts,
        store: Store | None = None,
        sources: Mapping[str, Source] | None = None,
        statics: Mapping[str, Any] | None = None,
        sinks: Mapping[str, Sink] | None = None,
        options: RunOptions = RunOptions(),
    ) -> None:
        store = MemoryStore() if store is None else store
        sinks = sinks or {}
        self._background: BackgroundSession | None = None
        self._setup = setup = prepare(facts, store, sources or {}, statics or {}, sinks, options)
        tuner = options.tuner()
        executor = EmbeddedExecutor(
            store,
            setup.statics,
            setup.options,
            setup.written,
            options.cache_bytes,
            threads=options.threads,
            beside=options.threads > 1,
            tuner=tuner,
        )
        self._runner = setup.runner(executor)
        self._notices = Notices.of(setup, setup.sources)
        self._runner.tell = self._notices.told
        self._input = PendingInput(setup)
        polling = FilePolling(setup, self._notices, tuner)
        self._batches = SessionBatches(setup, self._runner, options, self._notices, self._input, polling)
        self._findings = Findings(setup, self._runner, executor, sinks)
        try:
            self._input.take_frames()
        except BaseException:
            self.close()
            raise

    def __repr__(self) -> str:
        return str(self.status())

    def _repr_html_(self) -> str:
        """For notebooks."""
        return self.status()._repr_html_()

    def status(self) -> Status:
        """How the session stands: rows by their fate since the beginning, up to where results are final, what is kept.

        Examples:
            >>> session = program.session()
            >>> session.push("Payments", inputs["Payments"])
            >>> report = session.step()
            >>> print(session.status())
            session of Unpaid in memory, after batch 1
              in    Orders    0 rows
                    Payments  3 rows, 2 accepted, 1 rejected: 1 null
              out   Unpaid    nothing final yet
              kept  Orders    0 rows
                    Payments  2 rows
        """
        return self._findings.status(closed=self._batches.closed, waiting=self._input.waiting_rows())

    @property
    def _plan(self) -> Plan:
        """How the program runs: buffers, and the increment of each query."""
        return self._setup.plan

    @property
    def _store(self) -> Store:
        """Where the state of the run is."""
        return self._setup.checkpoint.store

    def push(self, stream: str, rows: Rows) -> None:
        """Add rows to the next batch.

        Rows are dictionaries, tuples in the order of the schema, or a frame. To a stream that has ended they come late,
        with a warning (TG433). `QueryError` TG402 for a stream that the program does not have, TG311 for what is no
        table of rows, TG416 after `close`.

        Examples:
            >>> session = program.session()
            >>> session.push("Orders", [(4, "Eve", "2026-03-03T10:00Z", 20.0, 1, None)])
            >>> session.push("Payments", [{"order_id": 4, "paid": "2026-03-03T10:05Z"}])
            >>> session.step().counts["Payments"]
            SourceCounts(rows_in=1, accepted=1, rejected={})
        """
        self._check_stream(stream)
        with Here():
            raw_rows = self._input.made(stream, rows)
        self._notices.pushed(stream, raw_rows, self._progress())
        self._input.push(stream, raw_rows)

    def discard(self) -> None:
        """Forget what was pushed and advanced since the last batch, for instance after it made the batch fail; frames
        stay.

        Examples:
            >>> session = program.session()
            >>> session.push("Payments", [(1, "yesterday")])
            >>> session.discard()
            >>> session.step().counts
            {}
        """
        self._input.discard()

    def advance(self, stream: str, progress: Any) -> None:
        """Declare that, with the rows pushed so far, everything up to these instants (inclusive) has arrived.

        Instants are datetimes or ISO text for timestamps, numbers for integer time; by attribute, or one alone where
        the stream progresses on one attribute. Progress never goes back: an earlier
        instant changes nothing, with a warning (TG432). `QueryError` TG401 for an attribute on which the stream does
        not progress, TG403 for what is no instant.

        Examples:
            >>> session = program.session()
            >>> session.push("Orders", inputs["Orders"])
            >>> session.advance("Orders", {"ordered": "2026-03-03T10:00Z"})
            >>> session.advance("Payments", "2026-03-02T12:40Z")  # it progresses on paid alone
            >>> session.step().results  # orders up to 12:10 are final
            {'Unpaid': 2}
        """
        self._check_stream(stream)
        advances = self._told(stream, progress)
        self._notices.advanced({**self._progress(), **self._input.advances}, advances)
        self._input.advance(advances)

    def finish(self, stream: str | None = None, *, close_at: Any = None) -> None:
        """Declare the end of a stream, or of all.

        With `close_at`, an instant after all events and all declared progress, what is open then ends there:
        situations, and rows that wait for later ones. `QueryError` TG417 for another instant. It is recorded with the
        batch: said again, it changes nothing.

        Examples:
            >>> session = program.session()
            >>> session.push("Orders", inputs["Orders"])
            >>> session.finish()
            >>> session.step().results
            {'Unpaid': 3}
        """
        if close_at is not None:
            check_all_end(stream)
            self.close_open(close_at)
        for name in self._setup.streams if stream is None else [stream]:
            self._input.finish(self._check_stream(name))

    def close_open(self, at: Any) -> None:
        """Say where that ends which is open when all streams have ended, without ending any stream.

        It is recorded with the next batch and judged in the one with the end; until then another instant can be said.
        `QueryError` TG417 where nothing can be open.

        Examples:
            >>> session = tg.program(Fast=Fast).session()
            >>> session.push("Cars", [("blue", 1, 90.0, 0.0)])
            >>> session.close_open(9)
            >>> session.finish()
            >>> report = session.step()
            >>> session.results("Fast")
            Fast: 1 row
            ┌──────┬────┬────┐
            │ car  ┆ ts ┆ te │
            ╞══════╪════╪════╡
            │ blue ┆ 1  ┆ 9  │
            └──────┴────┴────┘
        """
        ticks = closing_instant(self._plan, at)
        if self._runner.state.closing is not None:
            self._runner.state.closing.check_open(self._plan, self._runner.state.progress, ticks)
        self._input.close_at = ticks

    def step(self) -> BatchReport:
        """Run one batch over what was pushed and what is new in the sources' directories.

        A batch that fails changes nothing: what was pushed stays for the next one.

        Examples:
            >>> session = program.session()
            >>> session.push("Orders", inputs["Orders"])
            >>> report = session.step()
            >>> report.seq, report.live_rows
            (1, {'Orders#0': 3, 'Payments#0': 0})
        """
        return self._batches.step(self._batches.unread(), ahead=False)

    def process(self, *, progress: bool | None = None) -> Reports:
        """Batches until nothing pushed and no unread file is left, and no recursion goes on; at least one.

        Gives the reports of the last `KEPT_REPORTS` (100) of them; `on_batch` sees every one. `progress` shows them
        while they run; None: on a terminal and in a notebook.

        Examples:
            >>> session = program.session(sources=inputs)
            >>> [report.results for report in session.process()]
            [{'Unpaid': 2}]
        """
        check_progress(progress)
        with LiveDisplay(progress, "the first batch") as display:
            return self._batches.process(display)

    def background(
        self,
        *,
        queue_rows: int = 100_000,
        when_full: Literal["block", "refuse"] | DurationOption = "block",
        batch_rows: int = 100_000,
        batch_time: DurationOption | None = None,
    ) -> BackgroundSession:
        """Batches in a thread of its own, over rows that other threads push into bounded queues; see
        `BackgroundSession`.

        `queue_rows` rows wait at most for each stream. A push into a full queue waits for room ("block"), fails at once
        ("refuse"), or fails after a time such as "5s". A batch runs once `batch_rows` rows wait, the oldest has waited
        for `batch_time`, or a push has found no room. Without a `batch_time` it is "100ms", or in a session with
        `tune="50ms"` what the batch is expected to leave of that. Until it is closed, `push`, `advance`, `finish` and
        `step` of the session itself are refused (TG416).

        `QueryError` TG408 for results that would pile up in memory: a session without a checkpoint needs sinks.

        Examples:
            >>> def remind(table, batch):
            ...     print("remind", *table["customer"].to_pylist())
            >>> with program.session(sinks={"Unpaid": tg.callback(remind)}) as session:
            ...     with session.background() as run:
            ...         run.push("Orders", inputs["Orders"])  # from any thread
            ...         run.push("Payments", inputs["Payments"])
            ...         run.finish()
            remind Bob Ada
        """
        from tidegate.runtime.engines.embedded.background import BackgroundOptions, BackgroundSession

        with Here():
            options = BackgroundOptions.of(queue_rows, when_full, batch_rows, batch_time)
            self._background = BackgroundSession(self, options)
        return self._background

    def waiting_files(self) -> int:
        """Files in the sources' directories that no batch has read yet.

        Examples:
            >>> import polars as pl
            >>> pl.DataFrame({"order_id": [1], "paid": ["2026-03-02T12:10Z"]}).write_ndjson("payments.json")
            >>> session = program.session(sources={"Payments": tg.json("payments.json", bounded=True)})
            >>> session.waiting_files()
            1
            >>> reports = session.process()
            >>> session.waiting_files()
            0
        """
        return sum(map(len, self._batches.unread().values()))

    @property
    def due(self) -> bool:
        """Whether a batch may have something to do: rows were pushed or progress told, files are waiting, a recursion
        goes on, or a source or schedule goes by the clock.

        Examples:
            >>> session = program.session()
            >>> session.push("Orders", inputs["Orders"])
            >>> session.due
            True
            >>> report = session.step()
            >>> session.due
            False
        """
        goes_on = self._setup.follows_clock or self._runner.state.is_unfinished
        return bool(self._input) or goes_on or self.waiting_files() > 0

    def table(self, name: str) -> ResultTable:
        """All results of a stream so far, as users see them; for streams whose sink is memory or a directory.

        `QueryError` TG402 for a name that is no result, TG405 for results that are not kept.

        Examples:
            >>> session = program.session(sources=inputs)
            >>> reports = session.process()
            >>> session.table("Unpaid")["customer"]
            ['Bob', 'Ada']
        """
        return ResultTable(name, self.reader(name).read_all())

    def reader(self, name: str) -> pa.RecordBatchReader:
        """The same as a stream of Arrow batches, read file by file; whatever takes Arrow streams takes it.

        Examples:
            >>> import polars as pl
            >>> session = program.session(sources=inputs)
            >>> reports = session.process()
            >>> pl.DataFrame(session.reader("Unpaid"))["customer"].to_list()
            ['Bob', 'Ada']
        """
        is_first = self._setup.checkpoint.manifest is None and self._background is None
        if is_first and (self._input or self.waiting_files()):
            self._notices.asked_too_soon()
        self._notices.asked(self._runner.state.progress.inputs | self._input.advances, self._runner.state.counts)
        return self._findings.results(name)

    def results(self, name: str) -> list[dict[str, Any]]:
        """`table` as a list of rows, which are dictionaries. Printed, and in a notebook, they are a table.

        Examples:
            >>> session = program.session(sources=inputs)
            >>> reports = session.process()
            >>> [row["customer"] for row in session.results("Unpaid")]
            ['Bob', 'Ada']
        """
        return ResultRows(self.table(name))

    def live_rows(self) -> dict[str, int]:
        """Rows stored per buffer, and the situations that are kept.

        Examples:
            >>> session = program.session()
            >>> session.push("Orders", inputs["Orders"])
            >>> report = session.step()
            >>> session.live_rows()
            {'Orders#0': 3, 'Payments#0': 0}
        """
        return self._runner.state.live_rows(self._plan)

    def orders(self, name: str) -> list[str]:
        """In which order the situations of a result's pattern are looked for, what that is expected to cost, and by
        what it was chosen: averages of what has been seen since the last restart. Empty where it is no pattern of
        situations.

        `QueryError` TG402 for a name that is no result.

        Examples:
            >>> session = tg.program(Hits=tg.match(Fast.overlaps(Braking), within=10)).session()
            >>> session.push("Cars", driven["Cars"])
            >>> session.advance("Cars", {"time": 6})
            >>> report = session.step()
            >>> session.orders("Hits")[0]
            'from Fast: Braking, cost ...'
        """
        return self._findings.orders(name)

    @property
    def counts(self) -> dict[str, SourceCounts]:
        """Rows by fate per source since the beginning: rows in, accepted, and rejected by reason.

        Examples:
            >>> session = program.session(sources=inputs)
            >>> reports = session.process()
            >>> session.counts["Payments"]
            SourceCounts(rows_in=3, accepted=2, rejected={'null': 1})
        """
        return dict(self._runner.state.counts)

    @property
    def progress(self) -> dict[str, dict[str, Extended]]:
        """How far each query's result is final, in ticks.

        A tick is a microsecond since 1970-01-01 UTC of a timestamp, a day of a date, one of integer time; the end is
        infinite.

        Examples:
            >>> session = tg.program(Fast=Fast).session()
            >>> session.push("Cars", driven["Cars"])
            >>> session.advance("Cars", {"time": 6})
            >>> report = session.step()
            >>> session.progress
            {'Fast': {'te': 6}}
        """
        return self._findings.progress()

    def why(self, name: str | None = None, row: Mapping[str, Any] | None = None) -> Why:
        """What holds a result back after the last step, or, with the instants of a row of it, when that row is final.

        Without a name, of the only result. `QueryError` TG402 for a name that is no result, TG401 where an instant is
        missing on which the result progresses.

        Examples:
            >>> session = program.session()
            >>> session.advance("Payments", {"paid": "2026-03-02T12:40Z"})
            >>> report = session.step()
            >>> print(session.why("Unpaid"))
            no row of Unpaid is final yet
              held back by    Orders.ordered, of which nothing is known to have arrived
            ...
        """
        with Here():
            return self._findings.why(name, row)

    def quarantine(self) -> pa.RecordBatchReader:
        """All quarantined rows as of the last step, with reason, source and position: a stream of Arrow batches.

        `error` is NULL but for rows with a term without a value. A part of a file is in memory at a
        time. Steps made while it is read do not change it.

        Examples:
            >>> session = program.session(sources=inputs)
            >>> reports = session.process()
            >>> session.quarantine().read_all().column("reason").to_pylist()
            ['null']
        """
        return self._findings.quarantine()

    def quarantine_rows(self) -> list[dict[str, Any]]:
        """`quarantine` as rows.

        Examples:
            >>> session = program.session(sources=inputs)
            >>> reports = session.process()
            >>> [(row["source"], row["reason"], row["row"]) for row in session.quarantine_rows()]
            [('Payments', 'null', '{"order_id": 2, "paid": null}')]
        """
        rows: list[dict[str, Any]] = self.quarantine().read_all().to_pylist()
        return rows

    def close(self) -> None:
        """Release the checkpoint; a new session on the same store goes on.

        Leaving a `with` block closes it too. `QueryError` TG416 for rows that are pushed afterwards.

        Examples:
            >>> session = program.session(checkpoint="state")
            >>> session.close()
            >>> session.push("Orders", inputs["Orders"])
            Traceback (most recent call last):
            ...
            tidegate.algebra.errors.QueryError: TG416 this session is closed
            ...
        """
        try:
            if self._background is not None:
                self._background.close(drain=False)
        finally:
            self._batches.close()

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_stream(self, name: str) -> StreamDef:
        """The definition of a stream to be written to; `StateError` TG506 if only Spark can go on with the checkpoint.

        `QueryError` TG416 once the session is closed: no step would ever read the rows.
        """
        self._batches.check_open()
        self._setup.checkpoint.positions.check_reader(Offer())
        with Here():
            return self._stream(name)

    def _stream(self, name: str) -> StreamDef:
        check_known(name, self._setup.streams, "stream")
        return self._setup.streams[name]

    def _told(self, stream: str, progress: Any) -> dict[tuple[str, str], Extended]:
        """Progress as users tell it, in ticks."""
        return advances_of(self._stream(stream), progress, self._setup.options[stream].arrival)

    def _progress(self) -> Mapping[tuple[str, str], Extended]:
        """How far the streams have come with the last batch."""
        return self._runner.state.progress.inputs
