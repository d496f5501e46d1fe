"""The three ways to run an analysed program: complete inputs in one call, a push-style session, Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from inspect import signature
from typing import TYPE_CHECKING, Any

from tidegate.algebra.dsl.calls import check_options
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError
from tidegate.analysis.pipeline import ProgramFacts
from tidegate.runtime.given import mapping_of

if TYPE_CHECKING:
    import pyarrow as pa

    from tidegate.runtime.batch_report import BatchReport
    from tidegate.runtime.clock import Clock
    from tidegate.runtime.embedded.session import Session
    from tidegate.runtime.garbage import GarbageCollection
    from tidegate.runtime.plan.lower import PurgeMode
    from tidegate.runtime.quarantine import Keep
    from tidegate.runtime.schedule import Schedule
    from tidegate.runtime.sinks import Sink
    from tidegate.runtime.sources import OnError

#: What a start on Spark does not do without, and how it looks.
_NEEDED = {"sources": '{"Name": tg.parquet("a directory")}', "checkpoint": '"a directory"'}


@dataclass(frozen=True, slots=True)
class Results:
    """What a run over complete inputs yields: a table per result stream, and what each of the last hundred batches did."""

    tables: Mapping[str, pa.Table]
    reports: tuple[BatchReport, ...]
    quarantine: pa.Table

    def __getitem__(self, name: str) -> pa.Table:
        from tidegate.runtime.progress import check_known

        with Here():
            check_known(name, self.tables, "result")
            return self.tables[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.tables)

    def __contains__(self, name: object) -> bool:
        return name in self.tables

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """The only result as a stream of Arrow data, for whatever takes one: `polars.DataFrame(results)`."""
        if len(self.tables) != 1:
            raise QueryError(
                "TG402",
                f"there are {len(self.tables)} results, not one",
                hint=f"choose one of {', '.join(self.tables)}",
            )
        (table,) = self.tables.values()
        return table.__arrow_c_stream__(requested_schema)

    def rows(self, name: str) -> list[dict[str, Any]]:
        """Results of a stream as dictionaries."""
        from tidegate.runtime.columns import user_rows

        return user_rows(self[name])


def session(
    facts: ProgramFacts,
    *,
    sources: Mapping[str, Any] | None = None,
    statics: Mapping[str, Any] | None = None,
    sinks: Mapping[str, Sink] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    collect_garbage: GarbageCollection = "amortised",
    clock: Clock | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
    purging: PurgeMode = "planned",
    schedule: Schedule | None = None,
    threads: int = 1,
    quarantine_keep: Keep | None = None,
    on_error: OnError | Mapping[str, OnError] = "quarantine",
) -> Session:
    """A push-style session in this process; with `checkpoint` its state survives in that directory, else in memory."""
    from tidegate.runtime.clock import system_clock
    from tidegate.runtime.embedded.session import Session
    from tidegate.runtime.progress import check_known
    from tidegate.runtime.sinks import ParquetSink
    from tidegate.runtime.sources import Source
    from tidegate.runtime.state.local import LocalStore
    from tidegate.runtime.state.memory import MemoryStore

    results = {query.query.stream for query in facts.queries if not query.query.inner}
    sinks = mapping_of("sinks", sinks, 'tg.parquet_sink("a directory")')
    for name in sinks:
        check_known(name, results, "result")
    directories = sorted(name for name, sink in sinks.items() if isinstance(sink, ParquetSink))
    if checkpoint is None and directories:
        raise QueryError(
            "TG408",
            f"results of {', '.join(directories)} go to a directory, and there is no checkpoint to publish them from",
            hint='give checkpoint="a directory"; without one, read them with results()',
        )
    store = MemoryStore() if checkpoint is None else LocalStore(checkpoint)
    tables = {stream.name for stream in facts.program.inputs if stream.static}
    given = mapping_of("sources", sources, 'tg.parquet("a directory")')
    given = {name: data if isinstance(data, Source) else Source(data) for name, data in given.items()}
    streams = {name: source for name, source in given.items() if name not in tables}
    complete = {name: source.data for name, source in given.items() if name in tables}
    complete |= mapping_of("statics", statics, "rows")
    return Session(
        facts,
        store,
        streams,
        complete,
        sinks,
        collect_garbage,
        system_clock if clock is None else clock,
        purging=purging,
        on_batch=on_batch,
        schedule=schedule,
        threads=threads,
        quarantine_keep=quarantine_keep,
        on_error=on_error,
    )


def run(
    facts: ProgramFacts,
    inputs: Mapping[str, Any],
    *,
    sinks: Mapping[str, Sink] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    on_batch: Callable[[BatchReport], None] | None = None,
    schedule: Schedule | None = None,
    close_at: Any = None,
    threads: int = 1,
    on_error: OnError | Mapping[str, OnError] = "quarantine",
) -> Results:
    """Run a program over complete inputs: frames, rows, or `Source`s such as directories, static tables among them."""
    from tidegate.runtime.progress import check_known
    from tidegate.runtime.sinks import CallbackSink, DiscardSink

    inputs = mapping_of("what run takes", inputs, "rows")
    for name in inputs:
        check_known(name, [stream.name for stream in facts.program.inputs], "input")
    missing = [stream.name for stream in facts.program.inputs if not stream.static and stream.name not in inputs]
    if missing:
        raise QueryError(
            "TG407", f"no rows given for stream {', '.join(missing)}", hint="give an empty list where there are none"
        )
    complete = {name: _complete(data) for name, data in inputs.items()}
    with session(
        facts,
        sources=complete,
        sinks=sinks,
        checkpoint=checkpoint,
        on_batch=on_batch,
        schedule=schedule,
        threads=threads,
        on_error=on_error,
    ) as live:
        if close_at is not None:
            live.close_open(close_at)
        reports = live.process()
        unread = {name for name, sink in (sinks or {}).items() if isinstance(sink, CallbackSink | DiscardSink)}
        names = dict.fromkeys(query.stream for query in facts.program.queries)  # in the program's order
        tables = {name: live.table(name) for name in names if name not in unread}
        return Results(tables, tuple(reports), live.quarantine().read_all())


def _complete(data: Any) -> Any:
    """A directory given to `run` holds all its rows."""
    from tidegate.runtime.sources import Source

    return replace(data, bounded=True) if isinstance(data, Source) else data


def start(facts: ProgramFacts, spark: Any, **options: Any) -> Any:
    """Start a program on Spark; see `runtime.spark.engine.start`."""
    from tidegate.runtime.spark.engine import start as start_on_spark

    known = [name for name in signature(start_on_spark).parameters if name not in ("spark", "facts", "held")]
    with Here():
        check_options("start", options, known)
        for name in ("sources", "checkpoint"):
            if name not in options:
                raise QueryError("TG114", f"start needs {name}=", hint=f"{name}={_NEEDED[name]}")
    return start_on_spark(spark, facts, **options)
