"""The test kit: drive a program step by step on either engine, and check what appears, when, and what is kept.

with testing.drive(program) as run:            # or drive(program, spark=session): the same test on Spark
    run.add("Orders", [(1, "2026-03-02T12:00Z")])
    run.advance("Orders", ordered="2026-03-02T12:30Z")
    run.step()
    run.expect(Unpaid=[])
"""

from __future__ import annotations

import datetime as dt
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pyarrow as pa

from tidegate.algebra.diagnostics.shown import kind_of, shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import comparable
from tidegate.algebra.nodes import Node, OrderedNode, children, unless_equal, with_children
from tidegate.algebra.program import ProgramDef
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import EPOCH, INF, Extended, duration_ticks, format_instant
from tidegate.algebra.types import TIMESTAMP
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.arguments import check_bytes, check_count, check_rows, mapping_of
from tidegate.runtime.batch.end_of_input import check_all_end, closing_instant
from tidegate.runtime.batch.garbage import GarbageCollection
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sources import Source
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.setup import results_area
from tidegate.runtime.eval.columns import user_arrow_schema, user_rows
from tidegate.runtime.ingest.inputs import ProgressTicks, advances_of
from tidegate.runtime.ingest.quarantine import kept_rows
from tidegate.runtime.ingest.raw_rows import Rows
from tidegate.runtime.ingest.validation import validate
from tidegate.runtime.ingest.values import MalformedValue, held_value
from tidegate.runtime.inspect.state_listing import StateListing, list_state
from tidegate.runtime.inspect.why import why
from tidegate.runtime.inspect.why_answer import Why
from tidegate.runtime.ordered.sizes import operator_rows
from tidegate.runtime.plan.progress import ProgressState, check_known, input_streams
from tidegate.runtime.plan.schedule import Schedule
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.program import Program
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.failpoints import FAILPOINTS, SimulatedCrash, crash
from tidegate.runtime.state.manifest import Manifest, SourceCounts
from tidegate.runtime.state.outputs.staging import kept_results
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore
from tidegate.runtime.state.store.paths import local_directory
from tidegate.runtime.testkit.waiting import PendingStep, TestClock

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Where `Drive.kill` can stop a step; the others are passed when a checkpoint is opened.
PLACES_TO_DIE = tuple(
    name
    for name in FAILPOINTS
    if not name.startswith(("open-", "recover-", "store-publish-copied", "put-away-", "commit-after-pack"))
)
#: So late that no row is ahead of it: the clock of a test that gives none.
LAST_CLOCK = dt.datetime(9999, 1, 1, tzinfo=dt.UTC)


class Driven(Protocol):
    """An engine as the kit drives it: one batch per step, on a store that a new process could open."""

    plan: Plan

    @property
    def store(self) -> Store: ...

    def step(self, waiting: PendingStep) -> BatchReport: ...

    def died(self, failure: BaseException) -> bool:
        """Whether a step failed because it was killed."""

    def restart(self) -> None:
        """Forget everything in memory and open the checkpoint again, as a new process would."""

    def close(self) -> None: ...


@dataclass(slots=True)
class EmbeddedEngine:
    """The embedded engine, on a store in memory or in a directory."""

    facts: ProgramFacts
    sources: Mapping[str, Source]
    statics: Mapping[str, Any]
    clock: TestClock
    collect_garbage: GarbageCollection
    directory: Path | None
    schedule: Schedule | None = None
    session: Session = field(init=False)
    plan: Plan = field(init=False)

    def __post_init__(self) -> None:
        self.session = self._open(MemoryStore() if self.directory is None else LocalStore(self.directory))
        self.plan = self.session._plan

    def _open(self, store: Store) -> Session:
        given = dict(self.sources)
        options = RunOptions(collect_garbage=self.collect_garbage, clock=self.clock, schedule=self.schedule)
        return Session(self.facts, store, given, self.statics, options=options)

    @property
    def store(self) -> Store:
        return self.session._store

    def step(self, waiting: PendingStep) -> BatchReport:
        self.session.discard()
        for stream, parts in waiting.rows.items():
            for rows in parts:
                self.session.push(stream, rows)
        for (stream, attribute), value in (*waiting.declared.items(), *waiting.advances.items()):
            self.session.advance(stream, {attribute: ProgressTicks(value) if isinstance(value, int) else value})
        if waiting.close_at is not None:
            self.session.close_open(waiting.close_at)
        return self.session.step()

    def died(self, failure: BaseException) -> bool:
        return isinstance(failure, SimulatedCrash)

    def restart(self) -> None:
        self.session.close()
        old = self.session._store
        if isinstance(old, MemoryStore):
            fresh = MemoryStore()
            fresh.files, fresh.published = old.files, old.published
            self.session = self._open(fresh)
        else:
            assert self.directory is not None
            self.session = self._open(LocalStore(self.directory))

    def close(self) -> None:
        self.session.close()


@checked_calls
@dataclass(slots=True)
class Drive:
    """A program being driven: say what happens, `step`, and check.

    Everything between two steps is one batch. Rows and expected rows are mappings or tuples, or frames; instants may be
    ISO text.

    Examples:
        >>> from tidegate import testing
        >>> with testing.drive(program) as run:
        ...     run.add("Orders", [(1, "Ada", "2026-03-02T12:00Z", 12.5, 5, None)])
        ...     run.finish()
        ...     run.step()
        ...     run.expect(Unpaid=[(1, "Ada", "2026-03-02T12:00Z")])
        ...     run.live_rows
        {'Orders#0': 0, 'Payments#0': 0}
    """

    facts: ProgramFacts
    clock: TestClock
    engine: Driven
    reports: list[BatchReport] = field(default_factory=list)
    _waiting: PendingStep = field(default_factory=PendingStep)
    _failpoint: tuple[str, int] | None = None
    _seen: dict[str, int] = field(default_factory=dict)

    # --- what happens -------------------------------------------------------------------------------------------------

    def add(self, stream: str, rows: Rows) -> None:
        """New rows of a stream, read by the next step; `QueryError` TG402 for a stream that the program does not have.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program)
            >>> run.add("Payments", inputs["Payments"])
            >>> run.step()
            >>> run.counts["Payments"]
            SourceCounts(rows_in=3, accepted=2, rejected={'null': 1})
        """
        self._check_stream(stream)
        self._waiting.rows.setdefault(stream, []).append(rows)

    def advance(self, stream: str, **progress: Any) -> None:
        """With the rows added so far, everything up to these instants (inclusive) has arrived.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program)
            >>> run.add("Orders", inputs["Orders"])
            >>> run.advance("Orders", ordered="2026-03-03T10:00Z")
            >>> run.advance("Payments", paid="2026-03-02T12:40Z")
            >>> run.step()
            >>> [row["customer"] for row in run.new("Unpaid")]
            ['Ada', 'Bob']
        """
        self._check_stream(stream)
        definition = next(s for s in input_streams(self.engine.plan) if s.name == stream)
        for key, value in advances_of(definition, progress).items():
            self._waiting.advances[key] = max(value, self._waiting.advances.get(key, -INF))
            if isinstance(value, int):
                self._waiting.declared[key] = max(value, self._waiting.declared.get(key, value))

    def finish(self, stream: str | None = None, *, close_at: Any = None) -> None:
        """A stream ends with the rows added so far, or all do; with `close_at`, what is open then ends there.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(tg.program(Fast=Fast))
            >>> run.add("Cars", [("blue", 1, 90.0, 0.0)])
            >>> run.finish(close_at=9)
            >>> run.step()
            >>> run.results("Fast")
            [{'car': 'blue', 'ts': 1, 'te': 9}]
        """
        if close_at is not None:
            check_all_end(stream)
            self.close_open(close_at)
        if stream is not None:
            self._check_stream(stream)
        for definition in input_streams(self.engine.plan):
            if stream in (None, definition.name):
                self._waiting.advances |= {(definition.name, a): INF for a in definition.progress}

    def close_open(self, at: Any) -> None:
        """Situations that are open when all streams have ended end there; no stream ends by this.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(tg.program(Fast=Fast))
            >>> run.add("Cars", [("blue", 1, 90.0, 0.0)])
            >>> run.close_open(9)
            >>> run.finish()
            >>> run.step()
            >>> run.results("Fast")
            [{'car': 'blue', 'ts': 1, 'te': 9}]
        """
        closing_instant(self.engine.plan, at)
        self._waiting.close_at = at

    def wait(self, duration: dt.timedelta | str) -> None:
        """The clock moves on; nothing sees it before the next step.

        `QueryError` TG401 for a negative duration, and for one beyond the year 9999: give `drive` a clock.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program, clock="2026-03-02T12:00Z")
            >>> run.wait("1h 30m")
            >>> run.clock.now.isoformat()
            '2026-03-02T13:30:00+00:00'
        """
        ticks = duration_ticks(duration)
        if ticks < 0:
            raise QueryError(
                "TG401", f"a clock does not go back: {shown(duration)}", hint="wait for a positive duration"
            )
        try:
            self.clock.now += dt.timedelta(microseconds=ticks)
        except OverflowError:
            raise QueryError(
                "TG401",
                f"{shown(duration)} after {self.clock.now:%Y-%m-%d} is beyond the year 9999",
                hint='say where the clock stands at first: drive(program, clock="2026-03-02T12:00Z")',
            ) from None

    def kill(self, place: str = "commit-before-manifest", *, skip: int = 0) -> None:
        """The next step dies at a failpoint, at its `skip`+1-th passing; the program is then started again.

        What was added is given again if the batch did not count. `PLACES_TO_DIE` lists the failpoints; `QueryError`
        TG401 for another.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program)
            >>> run.add("Orders", inputs["Orders"])
            >>> run.finish()
            >>> run.kill("commit-before-manifest")
            >>> run.step()
            >>> len(run.results("Unpaid"))  # each once
            3
        """
        if place not in PLACES_TO_DIE:
            raise QueryError(
                "TG401", f"a step can not be killed at {shown(place)}", hint=f"one of {', '.join(PLACES_TO_DIE)}"
            )
        check_count("skip", skip)
        self._failpoint = (place, skip)

    def restart(self) -> None:
        """Stop, and start again from the checkpoint, as a new process would; what was added since the last step stays.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program)
            >>> run.add("Orders", inputs["Orders"])
            >>> run.step()
            >>> run.restart()
            >>> run.live_rows
            {'Orders#0': 3, 'Payments#0': 0}
        """
        self.engine.restart()

    def step(self) -> None:
        """One batch over what happened since the last step; its report is the last of `reports`.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program)
            >>> run.add("Orders", inputs["Orders"])
            >>> run.finish()
            >>> run.step()
            >>> run.reports[-1].results
            {'Unpaid': 3}
        """
        failpoint, self._failpoint = self._failpoint, None
        before = self._manifest
        if failpoint is not None:
            self._die(failpoint)
        if failpoint is None or self._manifest == before:
            self.reports.append(self.engine.step(self._waiting))
        self._waiting = PendingStep()

    def _die(self, failpoint: tuple[str, int]) -> None:
        place, skip = failpoint
        failpoints = self.engine.store.failpoints
        failpoints.arm(place, crash, skip=skip)
        try:
            self.reports.append(self.engine.step(self._waiting))
        except BaseException as failure:
            if not self.engine.died(failure):
                raise
        else:  # the step counts, and no later one dies of this
            self._waiting = PendingStep()
            raise AssertionError(f"the step was not killed: it never came to {place}")
        finally:
            failpoints.disarm()
        self.engine.restart()

    # --- what to check ------------------------------------------------------------------------------------------------

    def new(self, name: str) -> list[dict[str, Any]]:
        """Rows of a result that appeared since this was last asked, as users see them.

        `QueryError` TG402 for a name that is no result.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(tg.program(Fast=Fast))
            >>> run.add("Cars", driven["Cars"])
            >>> run.finish()
            >>> run.step()
            >>> run.new("Fast")
            [{'car': 'red', 'ts': 2, 'te': 5}]
            >>> run.new("Fast")
            []
        """
        self._schema(name)
        appeared: list[dict[str, Any]] = []
        for query in self.engine.plan.queries:
            if query.stream == name:
                rows = user_rows(self._table(name, [query.name]))
                appeared += rows[self._seen.get(query.name, 0) :]
                self._seen[query.name] = len(rows)
        return appeared

    def expect(self, **rows: Iterable[Any]) -> None:
        """Exactly these rows are new in each of these results, in any order; `AssertionError` with the difference.

        With a difference it also says which rows of inputs were rejected so far, since they may be what is missing.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(tg.program(Fast=Fast))
            >>> run.add("Cars", driven["Cars"])
            >>> run.finish()
            >>> run.step()
            >>> run.expect(Fast=[("red", 2, 6)])
            Traceback (most recent call last):
            ...
            AssertionError: Fast lacks (car = 'red', ts = 2, te = 6) × 1
            Fast has (car = 'red', ts = 2, te = 5) × 1, unexpected
        """
        wrong = []
        for name, wanted in rows.items():
            schema = self._schema(name)
            check_rows(name, wanted)
            actual, expected = _bag(self.new(name), schema), _bag(wanted, schema)
            wrong += [f"{name} lacks {_shown(row, schema)} × {n}" for row, n in (expected - actual).items()]
            wrong += [f"{name} has {_shown(row, schema)} × {n}, unexpected" for row, n in (actual - expected).items()]
        if wrong:
            raise AssertionError("\n".join([*wrong, *self._rejected()]))

    def _rejected(self) -> list[str]:
        """Lines that say how many rows of inputs and results were set aside, and why."""
        return [
            f"rejected of {name} so far: "
            f"{', '.join(f'{n} {reason}' for reason, n in sorted(counts.rejected.items()))}; "
            "see run.quarantine()"
            for name, counts in self.counts.items()
            if counts.rejected
        ]

    def results(self, name: str) -> list[dict[str, Any]]:
        """All rows of a result so far.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(tg.program(Fast=Fast))
            >>> run.add("Cars", driven["Cars"])
            >>> run.finish()
            >>> run.step()
            >>> run.results("Fast")
            [{'car': 'red', 'ts': 2, 'te': 5}]
        """
        return user_rows(self._table(name))

    @property
    def live_rows(self) -> dict[str, int]:
        """Rows stored per buffer after the last step, and the situations that are kept.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program)
            >>> run.add("Orders", inputs["Orders"])
            >>> run.step()
            >>> run.live_rows
            {'Orders#0': 3, 'Payments#0': 0}
        """
        rows = dict.fromkeys((buffer.id for buffer in self.engine.plan.buffers), 0)
        segments = {} if self._manifest is None else self._manifest.segments
        rows |= {name: sum(segment.rows for segment in parts) for name, parts in segments.items()}
        stored = {} if self._manifest is None else self._manifest.kernel
        return rows | operator_rows(self.engine.plan, stored)

    @property
    def state(self) -> StateListing:
        """What is kept after the last step, and why: what `tidegate state` prints.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program)
            >>> run.add("Orders", inputs["Orders"])
            >>> run.step()
            >>> print(run.state)
            checkpoint memory: after batch 1 by embedded ...
            buffer Orders#0: 3 rows of Orders, ... bytes in 1 segment
              oldest      ordered 2026-03-02T12:00:00Z
              newest      ordered 2026-03-03T09:40:30Z
              kept        for Unpaid while ordered > p(ordered)
            ...
        """
        return list_state(self.engine.store)

    @property
    def progress(self) -> dict[str, dict[str, Extended]]:
        """How far each query's result is final after the last step, in ticks.

        A tick is a microsecond since 1970-01-01 UTC of a timestamp, a day of a date, one of integer time; the end is
        infinite.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(tg.program(Fast=Fast))
            >>> run.advance("Cars", time=6)
            >>> run.step()
            >>> run.progress
            {'Fast': {'te': 6}}
        """
        state = ProgressState.start(self.engine.plan)
        if self._manifest is not None:
            state.load(self._manifest.progress)
        return state.queries

    @property
    def counts(self) -> dict[str, SourceCounts]:
        """Rows by fate per stream, from the beginning.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program)
            >>> run.add("Payments", inputs["Payments"])
            >>> run.step()
            >>> run.counts["Payments"].rejected
            {'null': 1}
        """
        counts = {stream.name: SourceCounts() for stream in input_streams(self.engine.plan)}
        return counts | ({} if self._manifest is None else dict(self._manifest.counts))

    def why(self, name: str, **row: Any) -> Why:
        """What holds a result back after the last step; with the instants of a row of it, when that row is final.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program)
            >>> run.advance("Payments", paid="2026-03-02T12:40Z")
            >>> run.step()
            >>> print(run.why("Unpaid"))
            no row of Unpaid is final yet
              held back by    Orders.ordered, of which nothing is known to have arrived
            ...
        """
        return why(self.facts, self._manifest, name, row or None, self.engine.store)

    def quarantine(self) -> list[dict[str, Any]]:
        """All rejected rows that were set aside.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program)
            >>> run.add("Payments", inputs["Payments"])
            >>> run.step()
            >>> [(row["reason"], row["row"]) for row in run.quarantine()]
            [('null', '{"order_id": 2, "paid": null}')]
        """
        rows: list[dict[str, Any]] = kept_rows(self.engine.store, self._manifest).read_all().to_pylist()
        return rows

    def close(self) -> None:
        """Release the checkpoint; leaving a `with` block does it too.

        Examples:
            >>> from tidegate import testing
            >>> run = testing.drive(program, directory="state")
            >>> run.add("Orders", inputs["Orders"])
            >>> run.step()
            >>> run.close()
            >>> testing.drive(program, directory="state").live_rows
            {'Orders#0': 3, 'Payments#0': 0}
        """
        self.engine.close()

    def __enter__(self) -> Drive:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def _manifest(self) -> Manifest | None:
        return inspect(self.engine.store).manifest

    def _schema(self, name: str) -> Schema:
        check_known(name, self.facts.streams, "result")
        return self.facts.streams[name].schema

    def _table(self, name: str, queries: Sequence[str] | None = None) -> pa.Table:
        schema = self._schema(name)
        feeding = queries or [query.name for query in self.engine.plan.queries if query.stream == name]
        tables = list(kept_results(self.engine.store, self._manifest, results_area(name), feeding))
        return pa.concat_tables(tables) if tables else user_arrow_schema(schema).empty_table()

    def _check_stream(self, name: str) -> None:
        check_known(name, (stream.name for stream in input_streams(self.engine.plan)), "stream")


@called(hint="write testing.drive(program, ...)")
def drive(
    program: Program,
    *,
    spark: SparkSession | None = None,
    sources: Mapping[str, Source] | None = None,
    statics: Mapping[str, Any] | None = None,
    clock: dt.datetime | str | None = None,
    directory: str | Path | None = None,
    collect_garbage: GarbageCollection = "exact",
    driver_bytes: int | None = None,
    shard_bytes: int | None = None,
    schedule: Schedule | None = None,
) -> Drive:
    """Drive a program embedded, or on Spark where a session is given.

    `sources` says per stream what is promised of its rows (`tg.source(None, delay="10m")`). `clock` is where the clock
    stands at first; without one no row is ever ahead, and all are old of a source with an `age_guard`. `directory`
    holds the checkpoint; by default it is in memory, on Spark in a temporary directory. `driver_bytes=0` makes Spark
    evaluate even the smallest increment, with `shard_bytes=0` as DataFrames. `QueryError` TG114 for what is no program,
    TG401 for a source with rows of its own.

    Examples:
        >>> from tidegate import testing
        >>> run = testing.drive(program, sources={"Payments": tg.source(None, delay="10m")})
        >>> run.add("Orders", inputs["Orders"])
        >>> run.finish("Orders")
        >>> run.add("Payments", inputs["Payments"])
        >>> run.step()
        >>> run.expect(Unpaid=[(2, "Bob", "2026-03-02T12:07Z"), (3, "Ada", "2026-03-03T09:40:30Z")])
        >>> run.reports[0].results
        {'Unpaid': 2}
    """
    if not isinstance(program, Program):
        raise QueryError("TG114", f"drive takes a program, not {kind_of(program)}", hint="write tg.program(Name=...)")
    given = dict(mapping_of("sources", sources, 'tg.source(None, delay="10m")'))
    for name, source in given.items():
        if not isinstance(source, Source):
            raise QueryError(
                "TG401", f"{shown(name)}: {kind_of(source)} is no source", hint='write tg.source(None, delay="10m")'
            )
        if source.data is not None:
            raise QueryError("TG401", f"{name}: rows of a test come from add()", hint="write tg.source(None, ...)")
    test_clock = TestClock(_instant(clock))
    tables = dict(mapping_of("statics", statics, "rows"))
    place = None if directory is None else Path(local_directory(directory))
    if driver_bytes is not None:
        check_bytes("driver_bytes", driver_bytes)
    if shard_bytes is not None:
        check_bytes("shard_bytes", shard_bytes)
    facts = _verified(program)
    engine: Driven
    if spark is None:
        engine = EmbeddedEngine(facts, given, tables, test_clock, collect_garbage, place, schedule)
    else:
        from tidegate.runtime.testkit.spark import OnSpark

        engine = OnSpark(
            spark, facts, given, tables, test_clock, collect_garbage, place, driver_bytes, shard_bytes, schedule
        )
    return Drive(facts, test_clock, engine)


def _verified(program: Program) -> ProgramFacts:
    """The facts of a program of which the operators say whether what they do depends on chance or on batches."""

    def visit(node: Node) -> Node:
        over = with_children(node, tuple(unless_equal(child, visit(child)) for child in children(node)))
        return over.verified() if isinstance(over, OrderedNode) else over

    facts = program.facts  # what is wrong is told with the places where it is written
    queries = tuple(query.over(unless_equal(query.node, visit(query.node))) for query in program.definition.queries)
    changed = any(new.node is not old.node for new, old in zip(queries, program.definition.queries, strict=True))
    return analyse(ProgramDef(queries)) if changed else facts


def _instant(clock: dt.datetime | str | None) -> dt.datetime:
    if clock is None:
        return LAST_CLOCK
    try:
        ticks = held_value(clock, TIMESTAMP)
    except MalformedValue:
        raise QueryError("TG401", f"{shown(clock)} is no instant", hint="give a datetime or ISO text") from None
    assert isinstance(ticks, int)
    return EPOCH + dt.timedelta(microseconds=ticks)


def _bag(rows: Iterable[Any], schema: Schema) -> Counter[tuple[Any, ...]]:
    """Rows as users write them, as comparable values; doubles to twelve digits."""
    checked = validate(rows if isinstance(rows, pa.Table) else list(rows), schema)
    if checked.rejected.num_rows:
        first = checked.rejected.to_pylist()[0]
        raise QueryError(
            "TG401",
            f"expected row {first['position']}: {first['attribute']} is {first['value']!r} ({first['reason']})",
            hint=f"rows of this result are ({schema})",
        )
    return Counter(tuple(map(comparable, row.values())) for row in checked.accepted.to_pylist())


def _shown(row: tuple[Any, ...], schema: Schema) -> str:
    shown = [
        format_instant(value) if attribute.type == TIMESTAMP and isinstance(value, int) else repr(value)
        for value, attribute in zip(row, schema.attributes, strict=True)
    ]
    return "(" + ", ".join(f"{name} = {text}" for name, text in zip(schema.names, shown, strict=True)) + ")"
