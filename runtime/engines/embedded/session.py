"""The push-style session: push rows, advance progress, step, read results."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

import pyarrow as pa

import tidegate
from tidegate.algebra.dsl.checks.calls import checked_calls
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.pipeline import ProgramFacts
from tidegate.runtime.arguments import check_clock, check_on_batch, check_progress, check_threads
from tidegate.runtime.batch.end_of_input import check_all_end, closing_instant
from tidegate.runtime.batch.executor import Work
from tidegate.runtime.batch.garbage import GarbageCollection
from tidegate.runtime.batch.loop import Runner
from tidegate.runtime.batch.report import KEPT_REPORTS, BatchReport, Reports
from tidegate.runtime.batch.status import Status, asked, standing
from tidegate.runtime.connectors.sinks import Sink
from tidegate.runtime.connectors.sources import Files, OnError, Source
from tidegate.runtime.engines.clock import Clock, read_clock, system_clock
from tidegate.runtime.engines.embedded.digests import digest_of
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.embedded.read_ahead import ReadAhead
from tidegate.runtime.engines.notices import Notices
from tidegate.runtime.engines.reading_results import read_results
from tidegate.runtime.engines.setup import FoundFiles, prepare
from tidegate.runtime.ingest.bounded_frames import check_noted, content_of, note_frame
from tidegate.runtime.ingest.ingest import Arrival
from tidegate.runtime.ingest.inputs import Arriving, advances_of
from tidegate.runtime.ingest.quarantine import Keep, kept_rows, retention
from tidegate.runtime.ingest.raw_rows import Raw, Rows, raw
from tidegate.runtime.ingest.stored_rows import input_table
from tidegate.runtime.inspect.live_display import LiveDisplay
from tidegate.runtime.inspect.results import ResultTable
from tidegate.runtime.inspect.why import why
from tidegate.runtime.inspect.why_answer import Why
from tidegate.runtime.plan.progress import check_known
from tidegate.runtime.plan.schedule import Schedule
from tidegate.runtime.plan.steps import Plan, PurgeMode
from tidegate.runtime.state.inputs.positions import Offer
from tidegate.runtime.state.manifest import Engine, SourceCounts
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.memory import MemoryStore

_ENGINE = Engine("embedded", tidegate.__version__)
#: So many times as long as a look at directories takes, its files are read before the next: where the system tells of no
#: changes, a look costs as much as there are files, and in a directory of many each batch would pay for all.
_LOOKS_APART = 20


@checked_calls
class Session:
    """A program run in this process, batch by batch; `Program.session` opens it.

    `sources` gives delay, progress columns and policy per stream, and rows where it has any: directories are read file
    by file, a frame is the whole of its stream. `statics` holds the rows of static tables, `sinks` where results go
    (default: kept in the store, read by `results`). `clock` is read once per batch, `on_batch` is called after each
    commit, `schedule` lets results lag. So many `threads` take in the files of a batch. `quarantine_keep`, an age such
    as "30d", a size such as "10 GiB", or both: rejected rows beyond that are dropped, oldest first (default: none).
    `on_error`, for all results or some: rows without a value are set aside, or fail the batch.

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
        collect_garbage: GarbageCollection = "amortised",
        clock: Clock = system_clock,
        purging: PurgeMode = "planned",
        on_batch: Callable[[BatchReport], None] | None = None,
        schedule: Schedule | None = None,
        threads: int = 1,
        quarantine_keep: Keep | None = None,
        on_error: OnError | Mapping[str, OnError] = "quarantine",
    ) -> None:
        check_clock(clock)
        check_on_batch(on_batch)
        check_threads(threads)
        self._facts, self._clock, self._on_batch = facts, clock, on_batch
        self._store: Store = MemoryStore() if store is None else store
        self._sources, self._sinks = sources or {}, sinks or {}
        self._pushed: dict[str, list[Arrival]] = {}
        self._frames: dict[str, Arrival] = {}
        self._noted: dict[str, str] = {}
        self._closed = False
        self._advances: dict[tuple[str, str], Extended] = {}
        self._declared: dict[tuple[str, str], int] = {}
        self._close_at: int | None = None
        self._ahead = ReadAhead()
        self._setup = setup = prepare(
            facts,
            self._store,
            self._sources,
            statics or {},
            self._sinks,
            collect_garbage,
            purging,
            schedule,
            retention(quarantine_keep),
            on_error,
        )
        executor = EmbeddedExecutor(self._store, setup.statics, setup.options, setup.written, threads=threads)
        self._runner = Runner(
            setup.plan, setup.checkpoint, executor, setup.options, collect_garbage, setup.timetable, setup.on_error
        )
        self._notices = Notices.of(setup, self._sources)
        try:
            self._push_frames()
        except BaseException:
            self.close()
            raise

    def _push_frames(self) -> None:
        """Frames are read by the first batch; later ones are only compared with what they were then."""
        begun = self._setup.checkpoint.manifest is not None
        lasting = not isinstance(self._store, MemoryStore)  # no other process goes on with a run in memory
        for name, source in self._sources.items():
            if source.data is None or isinstance(source.data, Files) or (begun and not lasting):
                continue
            schema = self._setup.options[name].judged(self._setup.streams[name].schema)
            rows = _read(name, source.data, schema)
            if lasting:
                note, content = check_noted if begun else note_frame, content_of(input_table(rows, schema))
                note(self._store, name, content)
                if not begun:
                    self._noted[name] = content.digest
            if not begun:
                self._frames[name] = Arrival("push", rows)

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
        last = self._setup.checkpoint.manifest
        where = f"session of {asked(self._plan)} in {self._store.where}, after batch {last.seq if last else 0}"
        waiting = {name: sum(one.rows.count for one in arrived) for name, arrived in self._pushed.items()}
        return standing(where + (", closed" if self._closed else ""), self._runner, waiting)

    @property
    def _plan(self) -> Plan:
        """How the program runs: buffers, and the increment of each query."""
        return self._setup.plan

    def push(self, stream: str, rows: Rows) -> None:
        """Add rows to the next batch.

        Rows are dictionaries, tuples in the order of the schema, or a frame. To a stream that has ended they come late, with
        a warning (TG433). `QueryError` TG402 for a stream that the program does not have, TG311 for what is no table of rows,
        TG416 after `close`.

        Examples:
            >>> session = program.session()
            >>> session.push("Orders", [(4, "Eve", "2026-03-03T10:00Z", 20.0, 1, None)])
            >>> session.push("Payments", [{"order_id": 4, "paid": "2026-03-03T10:05Z"}])
            >>> session.step().counts["Payments"]
            SourceCounts(rows_in=1, accepted=1, rejected={})
        """
        definition = self._check_stream(stream)
        schema = self._setup.options[stream].judged(definition.schema)
        self._notices.pushed(stream, self._runner.progress.inputs)
        with Here():
            arrived = _read(stream, rows, schema)
        self._pushed.setdefault(stream, []).append(Arrival("push", arrived))

    def discard(self) -> None:
        """Forget what was pushed and advanced since the last batch, for instance after it made the batch fail; frames stay.

        Examples:
            >>> session = program.session()
            >>> session.push("Payments", [(1, "yesterday")])
            >>> session.discard()
            >>> session.step().counts
            {}
        """
        self._pushed.clear()
        self._advances.clear()
        self._declared.clear()
        self._close_at = None

    def advance(self, stream: str, progress: Any) -> None:
        """Declare that, with the rows pushed so far, everything up to these instants (inclusive) has arrived.

        Instants are datetimes or ISO text for timestamps, numbers for integer time; by attribute, or one alone where the
        stream progresses on one attribute. Progress never goes back: an earlier
        instant changes nothing, with a warning (TG432). `QueryError` TG401 for an attribute on which the stream does not
        progress, TG403 for what is no instant.

        Examples:
            >>> session = program.session()
            >>> session.push("Orders", inputs["Orders"])
            >>> session.advance("Orders", {"ordered": "2026-03-03T10:00Z"})
            >>> session.advance("Payments", "2026-03-02T12:40Z")  # it progresses on paid alone
            >>> session.step().results  # orders up to 12:10 are final
            {'Unpaid': 2}
        """
        definition = self._check_stream(stream)
        told = advances_of(definition, progress, self._setup.options[stream].arrival)
        self._notices.advanced(self._runner.progress.inputs | self._advances, told)
        for key, ticks in told.items():
            self._advances[key] = max(ticks, self._advances.get(key, -INF))
            if isinstance(ticks, int):
                self._declared[key] = max(ticks, self._declared.get(key, ticks))

    def finish(self, stream: str | None = None, *, close_at: Any = None) -> None:
        """Declare the end of a stream, or of all.

        With `close_at`, an instant after all events and all declared progress, situations that are open then end there, and
        complete what matches they can; `QueryError` TG417 for another instant. It is recorded with the batch: said again,
        it changes nothing.

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
            definition = self._check_stream(name)
            self._advances |= {(definition.name, a): INF for a in definition.progress}

    def close_open(self, at: Any) -> None:
        """Say where situations end that are open when all streams have ended, without ending any stream.

        It is recorded with the next batch and judged in the one with the end; until then another instant can be said.
        `QueryError` TG417 where nothing can be open.

        Examples:
            >>> session = tg.program(Fast=Fast).session()
            >>> session.push("Cars", [("blue", 1, 90.0, 0.0)])
            >>> session.close_open(9)
            >>> session.finish()
            >>> report = session.step()
            >>> session.results("Fast")
            [{'car': 'blue', 'ts': 1, 'te': 9}]
        """
        ticks = closing_instant(self._plan, at)
        if self._runner.closing is not None:
            self._runner.closing.check_open(self._plan, self._runner.progress, ticks)
        self._close_at = ticks

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
        return self._step(self._unread(), ahead=False)

    def _step(self, fresh: FoundFiles, *, ahead: bool) -> BatchReport:
        """One batch over files that were not read yet; with `ahead` another follows, its files are read meanwhile."""
        checkpoint = self._setup.checkpoint
        limited = {name: files[: self._sources[name].data.per_batch] for name, files in fresh.items()}
        offer = Offer(files=limited, pushed=digest_of(self._pushed, self._noted))
        batch = checkpoint.begin(read_clock(self._clock), offer, engine=_ENGINE)
        reading = batch.intent.offer.files
        frames = {name: [rows] for name, rows in self._frames.items()}
        arrivals: dict[str, Iterable[Arrival]] = frames | {
            name: [*frames.get(name, ()), *pushed] for name, pushed in self._pushed.items()
        }
        for name, files in reading.items():
            format_ = self._sources[name].data.format
            schema = self._setup.options[name].judged(self._setup.streams[name].schema)
            pushed = tuple(self._pushed.get(name, ()))
            paths = tuple(file.path for file in files)
            arrivals[name] = Arriving(pushed, paths, format_, schema, self._ahead.take(files))
        self._ahead.drop()
        if ahead:
            self._read_ahead(fresh, reading)
        ended = self._setup.ended(self._setup.read_by(reading, fresh))
        ended |= {(name, a): INF for name in frames for a in self._setup.streams[name].progress}
        waiting = self._setup.waiting(reading, fresh)
        work = Work(arrivals, self._advances | ended, self._close_at, self._declared, waiting)
        report = self._runner.run(batch, work)
        self._setup.read(reading)
        self._setup.compactions.after(report)
        self._frames.clear()
        self._noted.clear()
        self.discard()
        if self._on_batch is not None:
            self._on_batch(report)
        self._notices.after(report, self._runner.counts)
        return report

    def _read_ahead(self, fresh: FoundFiles, reading: FoundFiles) -> None:
        """Begins to read the files of the next batch."""
        for name, files in fresh.items():
            now, source = set(reading.get(name, ())), self._sources[name].data
            schema = self._setup.options[name].judged(self._setup.streams[name].schema)
            self._ahead.begin([file for file in files if file not in now][: source.per_batch], source.format, schema)

    def process(self, *, progress: bool | None = None) -> Reports:
        """Batches until nothing pushed and no unread file is left; at least one.

        Gives the reports of the last `KEPT_REPORTS` (100) of them; `on_batch` sees every one. `progress` shows them while
        they run; None: on a terminal and in a notebook.

        Examples:
            >>> session = program.session(sources=inputs)
            >>> [report.results for report in session.process()]
            [{'Unpaid': 2}]
        """
        check_progress(progress)
        with LiveDisplay(progress, "the first batch") as display:
            return self._process(display)

    def _process(self, display: LiveDisplay) -> Reports:
        reports: deque[BatchReport] = deque(maxlen=KEPT_REPORTS)
        fresh: FoundFiles = {}
        began = looked = time.monotonic()
        while True:
            if not self._goes_on(fresh) or time.monotonic() - looked > _LOOKS_APART * (looked - began):
                began = time.monotonic()
                fresh = self._unread()
                looked = time.monotonic()
                if reports and not (any(fresh.values()) or self._pushed):
                    return Reports(reports)
            reports.append(self._step(fresh, ahead=True))
            display.after(reports[-1])
            fresh = {name: tuple(directory.waiting) for name, directory in self._setup.directories.items()}

    def _goes_on(self, fresh: FoundFiles) -> bool:
        """Whether some of these files make the next batch, all of them as they were found, and none are the last of a source:
        what has come since decides whether that ends, or is idle."""
        limits = {name: self._sources[name].data.per_batch for name, files in fresh.items() if files}
        if not limits or any(limit is None or limit >= len(fresh[name]) for name, limit in limits.items()):
            return False
        return all(file.is_as_found() for name, limit in limits.items() for file in fresh[name][:limit])

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
        return sum(map(len, self._unread().values()))

    @property
    def due(self) -> bool:
        """Whether a batch may have something to do: rows were pushed or progress told, files are waiting, or a source or schedule
        goes by the clock.

        Examples:
            >>> session = program.session()
            >>> session.push("Orders", inputs["Orders"])
            >>> session.due
            True
            >>> report = session.step()
            >>> session.due
            False
        """
        told = bool(self._pushed or self._frames or self._advances or self._close_at is not None)
        return told or self._setup.follows_clock or self.waiting_files() > 0

    def _unread(self) -> FoundFiles:
        self._check_open()
        self._setup.admit(Offer())  # `StateError` where this session may not go on
        found = self._setup.unread()
        self._notices.looked()
        return found

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
        self._notices.asked(self._runner.progress.inputs | self._advances, self._runner.counts)
        return read_results(self._plan, self._store, self._setup.checkpoint.manifest, self._sinks, name)

    def results(self, name: str) -> list[dict[str, Any]]:
        """`table` as rows.

        Examples:
            >>> session = program.session(sources=inputs)
            >>> reports = session.process()
            >>> [row["customer"] for row in session.results("Unpaid")]
            ['Bob', 'Ada']
        """
        return self.table(name).rows()

    def live_rows(self) -> dict[str, int]:
        """Rows stored per buffer, and the situations that are kept.

        Examples:
            >>> session = program.session()
            >>> session.push("Orders", inputs["Orders"])
            >>> report = session.step()
            >>> session.live_rows()
            {'Orders#0': 3, 'Payments#0': 0}
        """
        return self._runner.live_rows()

    def orders(self, name: str) -> list[str]:
        """In which order the situations of a result's pattern are looked for, what that is expected to cost, and by what it
        was chosen: averages of what has been seen since the last restart. Empty where it is no pattern of situations.

        `QueryError` TG402 for a name that is no result.

        Examples:
            >>> session = tg.program(Hits=tg.match(Fast.overlaps(Braking), within=10)).session()
            >>> session.push("Cars", driven["Cars"])
            >>> session.advance("Cars", {"time": 6})
            >>> report = session.step()
            >>> session.orders("Hits")[0]
            'from Fast: Braking, cost ...'
        """
        check_known(name, self._facts.streams, "result")
        executor = self._runner.executor
        assert isinstance(executor, EmbeddedExecutor)
        return executor.operators.orders([query.name for query in self._plan.queries if query.stream == name])

    @property
    def counts(self) -> dict[str, SourceCounts]:
        """Rows by fate per source since the beginning: rows in, accepted, and rejected by reason.

        Examples:
            >>> session = program.session(sources=inputs)
            >>> reports = session.process()
            >>> session.counts["Payments"]
            SourceCounts(rows_in=3, accepted=2, rejected={'null': 1})
        """
        return dict(self._runner.counts)

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
        return {name: dict(values) for name, values in self._runner.progress.queries.items()}

    def why(self, name: str | None = None, row: Mapping[str, Any] | None = None) -> Why:
        """What holds a result back after the last step, or, with the instants of a row of it, when that row is final.

        Without a name, of the only result. `QueryError` TG402 for a name that is no result, TG401 where an instant is missing on which the result progresses.

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
            return why(self._facts, self._setup.checkpoint.manifest, name, row)

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
        return kept_rows(self._store, self._setup.checkpoint.manifest)

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
        self._closed = True
        self._ahead.close()
        self._setup.close()
        self._notices.ended(self._runner.counts)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _check_open(self) -> None:
        """`QueryError` TG416 once the session is closed."""
        if self._closed:
            with Here():
                raise QueryError(
                    "TG416", "this session is closed", hint="open a new one on the same checkpoint: it goes on"
                )

    def _check_stream(self, name: str) -> StreamDef:
        """The definition of a stream to be written to; `StateError` TG506 if only Spark can go on with the checkpoint.

        `QueryError` TG416 once the session is closed: no step would ever read the rows.
        """
        self._check_open()
        self._setup.checkpoint.positions.check_reader(Offer())
        with Here():
            check_known(name, self._setup.streams, "stream")
        return self._setup.streams[name]


def _read(name: str, rows: Rows, schema: Schema) -> Raw:
    """Rows for an input; what is wrong with them says for which."""
    try:
        return raw(rows, schema)
    except QueryError as error:
        named = [replace(problem, message=f"{name}: {problem.message}") for problem in error.problems]
        raise QueryError.of(named) from error.__cause__
