"""A program as users hold it: check it, explain it, run it over complete inputs, in a session, or on Spark."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from tidegate.algebra.diagnostics.tracebacks import trimmed
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.relation import what_else
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.programs import program_of, query_of_result
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.sources import QueryHandle, Result, result_stream
from tidegate.algebra.errors import Problem, QueryError
from tidegate.algebra.printing.plans import node_text, preformatted
from tidegate.algebra.program import ProgramDef

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from tidegate.algebra.dsl.expression import DurationOption
    from tidegate.analysis.pipeline import ProgramFacts
    from tidegate.runtime.batch.garbage import Folding, GarbageCollection
    from tidegate.runtime.batch.report import BatchReport
    from tidegate.runtime.connectors.sinks import Sink
    from tidegate.runtime.connectors.sources import OnError
    from tidegate.runtime.engines.clock import Clock
    from tidegate.runtime.engines.embedded.session import Session
    from tidegate.runtime.engines.explanation import ProgramExplanation
    from tidegate.runtime.engines.spark.engine import RunningQuery
    from tidegate.runtime.ingest.quarantine import Keep
    from tidegate.runtime.inspect.results import Results
    from tidegate.runtime.inspect.timelines.timeline import Timeline
    from tidegate.runtime.inspect.why_answer import Why
    from tidegate.runtime.plan.schedule import Schedule
    from tidegate.runtime.plan.steps import PurgeMode
    from tidegate.runtime.tuning.aims import Tune


@checked_calls
class Program:
    """Queries that feed result streams, perhaps each other's; the analysis runs when its outcome is first needed.

    Examples:
        >>> unpaid = o.anti_join(p, *in_time).select(o.order_id, o.customer, o.ordered)
        >>> program = tg.program(Unpaid=unpaid)
        >>> program.check()
        []
        >>> program.run(inputs)["Unpaid"]["customer"]
        ['Bob', 'Ada']
    """

    __slots__ = ("_definition", "_facts", "_written")

    def __init__(self, definition: ProgramDef) -> None:
        self._definition = definition
        self._facts: ProgramFacts | None = None
        self._written: ProgramFacts | None = None

    def __repr__(self) -> str:
        return "\n".join(
            f"query {query.name}{f' feeds {query.stream}' if query.stream != query.name else ''}:\n"
            f"{node_text(query.node)}"
            for query in self._definition.queries
        )

    def _repr_html_(self) -> str:
        """For notebooks: the plan as a picture if the program is valid, else its problems, and its queries as text."""
        problems = self.check()
        head = "\n\n".join(map(str, problems))
        picture = preformatted(head) if problems else self.explain().svg()
        return f"<div>{picture}{preformatted(repr(self))}</div>"

    @property
    def definition(self) -> ProgramDef:
        """The queries as the algebra sees them.

        Examples:
            >>> [stream.name for stream in program.definition.inputs]
            ['Orders', 'Payments']
        """
        return self._definition

    @property
    def facts(self) -> ProgramFacts:
        """What the analysis derives; `QueryError` with all problems where the program is not valid.

        Examples:
            >>> program.facts.streams["Unpaid"].progress
            ('ordered',)
        """
        if self._facts is None:
            from tidegate.contexts.optimiser.programs import optimised

            self._facts = optimised(self._definition, self._as_written)
        return self._facts

    @property
    def _as_written(self) -> ProgramFacts:
        """What the analysis derives of the queries as they were written; `facts` are of those that run."""
        if self._written is None:
            from tidegate.analysis.pipeline import analyse_written

            self._written = analyse_written(self._definition)
        return self._written

    def check(self) -> list[Problem]:
        """All problems of the program; none if it is valid.

        Examples:
            >>> endless = o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid)
            >>> [problem.code for problem in tg.program(Unpaid=endless).check()]
            ['TG201']
        """
        try:
            self._as_written  # noqa: B018  # analysed for its problems
        except QueryError as error:
            return list(error.problems)
        return []

    def notes(self) -> list[Problem]:
        """What looks like a mistake in a valid program: conditions that are never true (TG220), or that others imply
        (TG221), and rows that are kept for ever (TG224).

        Examples:
            >>> odd = orders.where(orders.amount > 20, orders.amount < 10)
            >>> [note.code for note in tg.program(Odd=odd).notes()]
            ['TG220']
        """
        from tidegate.analysis.report.predicate_sets import notes
        from tidegate.analysis.report.unbounded import gathered_for_ever, kept_for_ever

        return [
            note
            for query in self._as_written.queries
            for note in (*notes(query.query), *kept_for_ever(query), *gathered_for_ever(query))
        ]

    def explain(
        self,
        *,
        zones: bool = False,
        schedule: Schedule | None = None,
        driver_bytes: int | None = None,
        shard_bytes: int | None = None,
    ) -> ProgramExplanation:
        """Schema, progress, when results are final, what is kept and how much, and how it runs; `str()` of it is text.

        `schedule`, `driver_bytes` and `shard_bytes` as a run is given them; `RunningQuery.explanation` has those of a
        run. `zones` adds the constraints of each case. `QueryError` with all problems where the program is not valid.

        Examples:
            >>> print(program.explain().report)
            query Unpaid
              schema      order_id bigint
                          customer string
                          ordered timestamp not null
              progress    ordered
              final when  ordered <= min(Orders.ordered, Payments.paid - 30m)
            ...
        """
        from tidegate.runtime.engines.explanation import ProgramExplanation
        from tidegate.runtime.plan.placement import limits_of
        from tidegate.runtime.plan.schedule import checked_schedule

        limits = limits_of(driver_bytes, shard_bytes)
        return ProgramExplanation(self.facts, zones, checked_schedule(schedule, self.facts), limits)

    @called(hint='inputs are rows or sources by the names of streams: program.run({"Orders": rows, "Payments": rows})')
    def run(
        self,
        inputs: Mapping[str, Any],
        *,
        sinks: Mapping[str, Sink] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
        schedule: Schedule | None = None,
        close_at: Any = None,
        threads: int = 1,
        on_error: OnError | Mapping[str, OnError] = "quarantine",
        progress: bool | None = None,
    ) -> Results:
        """Results over complete inputs, by stream and table name, in this process.

        Inputs are rows, frames, or sources such as `tg.parquet("a directory")`. Situations that are open at the end are
        not reported, unless `close_at`, an instant after all events and all declared progress, says when they are over.
        `threads` take in the files of a directory side by side, and with two or more those of the next batch while one
        is evaluated. `on_error` says what happens to results without a value, as in `session`; `tg.source` and
        `tg.parquet` have an `on_error` of their own, for rows that are judged as they come. `progress` shows batches
        while they run; None: on a terminal and in a notebook. The others are those of `session`.

        `QueryError` TG402 for an input that the program does not have, TG407 for a stream without rows, TG430 where an
        input has rows and all of them are rejected.

        Examples:
            >>> results = program.run(inputs)
            >>> results["Unpaid"]["customer"]
            ['Bob', 'Ada']
            >>> results.counts["Payments"].rejected
            {'null': 1}
        """
        from tidegate.runtime.api import run
        from tidegate.runtime.engines.options import RunOptions

        options = RunOptions(on_batch=on_batch, schedule=schedule, threads=threads, on_error=on_error)
        return run(
            self.facts,
            inputs,
            sinks=sinks,
            checkpoint=checkpoint,
            options=options,
            close_at=close_at,
            progress=progress,
        )

    def session(
        self,
        sources: Mapping[str, Any] | None = None,
        *,
        statics: Mapping[str, Any] | None = None,
        sinks: Mapping[str, Sink] | None = None,
        checkpoint: str | os.PathLike[str] | None = None,
        collect_garbage: GarbageCollection = "amortised",
        clock: Clock | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
        purging: PurgeMode = "planned",
        folding: Folding = "on",
        schedule: Schedule | None = None,
        threads: int = 1,
        quarantine_keep: Keep | None = None,
        on_error: OnError | Mapping[str, OnError] = "quarantine",
        tune: Tune = "throughput",
        cache_bytes: int | None = None,
    ) -> Session:
        """A session in this process: push rows, advance progress, read results; `checkpoint` lets it survive.

        `clock` says what time it is, the system's clock by default; guards of sources, idle policy and times of arrival
        go by it. `on_batch` is called after each commit. `purging`: partner and kill rule where they pay ("planned"),
        "always" or "off". `folding` "off": rows that are settled stay as they are. `schedule`: which queries are
        evaluated less often or later (`tg.schedule`). Up to `threads` take in the files of a batch side by side, each
        some that follow each other, if that is measured to be sooner; with two or more, rows of the next batch are
        taken in while one is evaluated, and large states are written meanwhile. `quarantine_keep`: rejected rows older
        than "30d", or beyond "10 GiB", or both, are dropped, oldest first; None keeps all. `tune`: as many rows a
        second as can be ("throughput"), or so many files a batch that one takes about as long as a duration such as
        "500ms"; or the choices of a run before, {report.seq: report.choices}. Up to `cache_bytes` of the state are held
        in memory too, where a batch looks up what it needs; None: a quarter of the memory there is. Results depend on
        none of these five.

        `on_error`, for all results or by their names, is about terms over several rows: of a pair in a join, of a
        group. "quarantine": a row for which one has no value leaves its query, a sum of integers that does not fit is
        NULL, and `BatchReport.set_aside` counts both. "fail": the batch fails and changes nothing. Terms over one row
        of a source are judged before anything of the row is stored: the `on_error` of the source says whether it is
        rejected as `unevaluable` or fails the batch.

        `QueryError` TG402 for names that the program does not have, TG408 for a directory of results without a
        checkpoint. `StateError` TG501 for the checkpoint of another program, TG503 while another run has it.

        Examples:
            >>> with program.session(checkpoint="state") as session:
            ...     session.push("Orders", inputs["Orders"])
            ...     report = session.step()
            >>> with program.session(checkpoint="state") as session:  # goes on where the first one stopped
            ...     session.finish()
            ...     session.step().results
            {'Unpaid': 3}
        """
        from tidegate.runtime.api import session
        from tidegate.runtime.engines.clock import system_clock
        from tidegate.runtime.engines.options import RunOptions

        options = RunOptions(
            collect_garbage=collect_garbage,
            purging=purging,
            folding=folding,
            clock=system_clock if clock is None else clock,
            on_batch=on_batch,
            schedule=schedule,
            threads=threads,
            quarantine_keep=quarantine_keep,
            on_error=on_error,
            tune=tune,
            cache_bytes=cache_bytes,
        )
        return session(
            self.facts, sources=sources, statics=statics, sinks=sinks, checkpoint=checkpoint, options=options
        )

    def why(
        self, checkpoint: str | os.PathLike[str], name: str | None = None, row: Mapping[str, Any] | None = None
    ) -> Why:
        """What holds a result back in a checkpoint, whether a run has it open or not; with the instants of a row of it,
        when that row is final or why it never is.

        Without a name, of the only result. `QueryError` TG402 for a name that is no result; `StateError` TG501 for the
        checkpoint of another program.

        Examples:
            >>> with program.session(checkpoint="state") as session:
            ...     session.push("Orders", inputs["Orders"])
            ...     session.advance("Orders", {"ordered": "2026-03-03T10:00Z"})
            ...     report = session.step()
            >>> print(program.why("state", "Unpaid"))
            no row of Unpaid is final yet
              held back by   Payments.paid, of which nothing is known to have arrived
            ...
        """
        from tidegate.runtime.inspect.why import asked_result, why_checkpoint
        from tidegate.runtime.state.store.local import LocalStore

        with Here():
            asked = asked_result(self.facts, name)
        return why_checkpoint(self.facts, LocalStore(checkpoint), asked, row)[asked]

    def timeline(
        self,
        inputs: Mapping[str, Any],
        *,
        result: str | None = None,
        close_at: Any = None,
        most: int = 20,
        most_matches: int = 100,
        tz: str = "UTC",
    ) -> Timeline:
        """A picture of the situations and matches of a pattern over complete inputs, in this process.

        `result` names the pattern where the program has several (else `QueryError` TG402); `inputs` and `close_at` are
        those of `run`. Of at most `most` partitions, those with matches first, and of at most `most_matches` matches in
        each. Times are those of the zone `tz`, such as `"America/New_York"`. A notebook shows it; `save("page.html")`
        makes a page of it.

        Examples:
            >>> hits = tg.program(Hits=tg.match(Fast.overlaps(Braking), within=10))
            >>> [lane.name for lane in hits.timeline(driven).partitions["car = red"]]
            ['Fast', 'Braking', 'match 1']
        """
        from tidegate.runtime.pattern_timeline import pattern_timeline

        return pattern_timeline(self._definition, inputs, result, close_at, most=most, most_matches=most_matches, tz=tz)

    @called(
        sources=("TG114", 'sources={"Name": tg.parquet("a directory")}'),
        checkpoint=("TG114", 'checkpoint="a directory"'),
        spark=("TG114", 'give a session: program.start(tg.spark_session("name"), sources=..., checkpoint=...)'),
    )
    def start(
        self,
        spark: SparkSession,
        *,
        sources: Mapping[str, Any],
        checkpoint: str | os.PathLike[str],
        statics: Mapping[str, Any] | None = None,
        sinks: Mapping[str, Sink] | None = None,
        trigger: Mapping[str, Any] | DurationOption = "available_now",
        driver_bytes: int | None = None,
        shard_bytes: int | None = None,
        collect_garbage: GarbageCollection = "amortised",
        name: str | None = None,
        on_batch: Callable[[BatchReport], None] | None = None,
        clock: Clock | None = None,
        advance: Mapping[str, Any] | None = None,
        close_at: Any = None,
        purging: PurgeMode = "planned",
        folding: Folding = "on",
        schedule: Schedule | None = None,
        quarantine_keep: Keep | None = None,
        on_error: OnError | Mapping[str, OnError] = "quarantine",
        tune: Tune = "throughput",
        cache_bytes: int | None = None,
        progress: bool | None = None,
    ) -> RunningQuery:
        """Starts the program on Spark Structured Streaming; what it returns is Spark's streaming query, with results.

        `sources` per stream: a `Source` of files, a streaming DataFrame, or a batch DataFrame or frame, which is all
        there will be of its stream. `trigger` is "available_now" (what is there, then end), a time between batches such
        as "5s", or Spark's own keyword as a dictionary. `checkpoint`: the directory in which state and progress
        survive. An increment with at most `driver_bytes` of relevant data may be evaluated in the driver, one with a
        key to shard by and at most `shard_bytes` a task by shards, whichever is measured to be sooner; every other is
        as DataFrames. 0 switches either off.
        `advance` and `close_at` are what `RunningQuery.advance` and `RunningQuery.close_open` say, before the first
        batch. `on_error` says what happens to results without a value, and that of a source what happens to its rows:
        `session` has more of both. `progress` shows batches while one waits for the query; None: on a terminal and in a
        notebook. The others are those of `session`.

        `QueryError` TG401 for what is no session or no trigger, TG407 for a stream without a source, TG422 where Spark
        is not installed.

        Examples:
            >>> query = program.start(spark, sources=inputs, checkpoint="started")
            >>> query.awaitTermination()
            >>> query.table("Unpaid")["customer"]
            ['Bob', 'Ada']
        """
        from tidegate.runtime.api import start
        from tidegate.runtime.engines.clock import system_clock
        from tidegate.runtime.engines.options import RunOptions

        options = RunOptions(
            collect_garbage=collect_garbage,
            purging=purging,
            folding=folding,
            clock=system_clock if clock is None else clock,
            on_batch=on_batch,
            schedule=schedule,
            quarantine_keep=quarantine_keep,
            on_error=on_error,
            tune=tune,
            cache_bytes=cache_bytes,
        )
        return start(
            self.facts,
            spark,
            sources=sources,
            checkpoint=checkpoint,
            statics=statics,
            sinks=sinks,
            options=options,
            trigger=trigger,
            driver_bytes=driver_bytes,
            shard_bytes=shard_bytes,
            name=name,
            advance=advance,
            close_at=close_at,
            progress=progress,
        )


@trimmed
def program(*queries: QueryHandle, **named: Relation) -> Program:
    """A program: `program(Name=relation)` for results that need no declaration, `program(query(result, relation))`
    else.

    Result streams read through `result_of` bring their queries along. `QueryError` TG124 for a program without queries,
    TG121 for a name that is fed twice, TG123 for a result stream that nothing feeds.

    Examples:
        >>> program = tg.program(Unpaid=o.anti_join(p, *in_time).select(o.order_id, o.ordered))
        >>> program.run(inputs)["Unpaid"]["order_id"]
        [2, 3]
    """
    with Here() as site:
        return Program(program_of(queries, named, site))


@called()
def result_of(name: str, relation: Relation) -> Result:
    """The result stream of a query, to be read by other queries: with the schema and progress that the analysis infers.

    Unlike using `relation` itself, whose rows would be computed once more inside the other query, this reads what the
    query has passed. The query comes along into every program that reads it. `QueryError` with all problems where the
    query is not valid.

    Examples:
        >>> unpaid = tg.result_of("Unpaid", o.anti_join(p, *in_time).select(o.order_id, o.ordered))
        >>> per_day = unpaid.group_by(day=tg.floor(unpaid.ordered, "1d")).agg(unpaid=tg.count())
        >>> tg.program(PerDay=per_day).run(inputs)["PerDay"]["unpaid"]
        [1, 1]
    """
    with Here() as site:
        if not isinstance(relation, Relation):
            raise QueryError("TG114", f"result_of got {what_else(relation)}", hint="finish groups with agg(...)")
        query = query_of_result(name, relation, site)
        from tidegate.analysis.pipeline import analyse

        definition = analyse(ProgramDef((query,))).definition_of(name)
        return result_stream(definition, {}, site, query, relation._results)
