"""The three ways to run an analysed program: complete inputs in one call, a push-style session, Spark."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from tidegate.algebra.errors import QueryError
from tidegate.analysis.pipeline import ProgramFacts
from tidegate.runtime.arguments import check_progress, mapping_of
from tidegate.runtime.extras import spark_extra

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidegate.runtime.connectors.sinks import Sink
    from tidegate.runtime.engines.embedded.session import Session
    from tidegate.runtime.engines.options import RunOptions
    from tidegate.runtime.engines.spark.engine import RunningQuery
    from tidegate.runtime.inspect.results import Results


def session(
    facts: ProgramFacts,
    *,
    sources: Mapping[str, Any] | None = None,
    statics: Mapping[str, Any] | None = None,
    sinks: Mapping[str, Sink] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    options: RunOptions,
) -> Session:
    """A push-style session in this process; with `checkpoint` its state survives in that directory, else in memory."""
    from tidegate.runtime.connectors.sources import sources_given

    given = sources_given(sources)
    from tidegate.runtime.connectors.sinks import ParquetSink
    from tidegate.runtime.engines.embedded.session import Session
    from tidegate.runtime.plan.progress import check_known
    from tidegate.runtime.state.store.local import LocalStore
    from tidegate.runtime.state.store.memory import MemoryStore

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
    streams = {name: source for name, source in given.items() if name not in tables}
    complete = {name: source.data for name, source in given.items() if name in tables}
    complete |= mapping_of("statics", statics, "rows")
    return Session(facts, store, streams, complete, sinks, options)


def run(
    facts: ProgramFacts,
    inputs: Mapping[str, Any],
    *,
    sinks: Mapping[str, Sink] | None = None,
    checkpoint: str | os.PathLike[str] | None = None,
    options: RunOptions,
    close_at: Any = None,
    progress: bool | None = None,
) -> Results:
    """Run a program over complete inputs: frames, rows, or `Source`s such as directories, static tables among them."""
    from tidegate.runtime.connectors.sinks import CallbackSink, DiscardSink
    from tidegate.runtime.connectors.sources import check_rows_given
    from tidegate.runtime.engines.rejections import check_accepted
    from tidegate.runtime.inspect.results import Results, ResultTable
    from tidegate.runtime.plan.progress import check_known

    check_progress(progress)
    inputs = mapping_of("inputs", inputs, "rows")
    for name, data in inputs.items():
        check_known(name, [stream.name for stream in facts.program.inputs], "input")
        check_rows_given(name, data)
    missing = [stream.name for stream in facts.program.inputs if not stream.static and stream.name not in inputs]
    if missing:
        raise QueryError(
            "TG407", f"no rows given for stream {', '.join(missing)}", hint="give an empty list where there are none"
        )
    complete = {name: _complete(data) for name, data in inputs.items()}
    with session(facts, sources=complete, sinks=sinks, checkpoint=checkpoint, options=options) as live:
        live._notices.judged_at_end = True
        if close_at is not None:
            live.close_open(close_at)
        reports = live.process(progress=progress)
        unread = {name for name, sink in (sinks or {}).items() if isinstance(sink, CallbackSink | DiscardSink)}
        # In the program's order; the rows of inner queries are for the program's own use, and not kept.
        names = dict.fromkeys(query.stream for query in facts.program.queries if not query.inner)
        tables = {name: live.table(name) for name in names if name not in unread}
        check_accepted(live.counts, live._setup.streams, live.quarantine(), facts.program)
        quarantine = ResultTable("quarantine", live.quarantine().read_all())
        return Results(tables, tuple(reports), quarantine, live.counts)


def _complete(data: Any) -> Any:
    """A directory given to `run` holds all its rows."""
    from tidegate.runtime.connectors.sources import source_given

    return replace(source_given(data), bounded=True)


def start(facts: ProgramFacts, spark: SparkSession, *, sources: Mapping[str, Any], **given: Any) -> RunningQuery:
    """Start a program on Spark; see `runtime.engines.spark.engine.start`."""
    from tidegate.runtime.connectors.sources import sources_given

    named_sources = sources_given(sources)
    with spark_extra():
        from tidegate.runtime.engines.spark.engine import start as start_on_spark
    return start_on_spark(spark, facts, sources=named_sources, **given)
