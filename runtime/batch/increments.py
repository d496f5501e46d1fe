"""The increments of a batch: which queries are evaluated over which stored rows, level by level and stratum by
stratum.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Final

from tidegate.algebra.errors import Problem, QueryError
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.facts import Rank, Recursion
from tidegate.runtime.batch.executor import Executor, Increment
from tidegate.runtime.batch.garbage import Garbage
from tidegate.runtime.batch.instants import instant_text
from tidegate.runtime.batch.scheduler import UNFINISHED, Scheduler, SkippedResult
from tidegate.runtime.batch.state import RunState, Segments, with_stored
from tidegate.runtime.connectors.sources import OnError, SourceOptions
from tidegate.runtime.eval.job import Job
from tidegate.runtime.plan.progress import ProgressState, reach
from tidegate.runtime.plan.steps import Leaf, Plan, Progress, QueryPlan
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.manifest import OperatorFiles
from tidegate.runtime.state.segments import Segment

#: After so many steps that read nothing but their own component's rows, a recursion is taken to be endless.
ENDLESS: Final = 10_000
#: A recursion that has found more rows in a batch is refused if these are also more than so many a step for each row
#: that it began with, and have been more in so many of its steps than in any before, the last one among these: between
#: such steps there may be others, where rows of several kinds take turns. Where a row leads to two, one and two ticks
#: later, 35 steps are ten million rows, 45 a billion.
MANY_ROWS: Final = 5_000_000
ROWS_PER_STEP: Final = 100
GROWING_STEPS: Final = 12
#: After so many steps in a batch, and ten times as many each time, a run says how far a recursion has come.
TOLD_STEPS: Final = 10_000
#: A batch ends with so many steps of a recursion whose inputs go on, and the next one goes on from there (rule R24):
#: where one row far ahead has moved progress, as many batches are committed as it takes.
MOST_STEPS: Final = 10_000

Tell = Callable[[str, Problem], None]
"""Told of something about a query, by its name, while its evaluation goes on."""


def nobody(_: str, __: Problem) -> None:
    """Nobody is told."""


def nothing() -> None:
    """Nothing is done between levels."""


@dataclass(frozen=True, slots=True)
class Leniency:
    """What is set aside instead of failing a batch.

    `queries`: those, by name, of which rows without a value are set aside. `buffers`: those, by id, all of whose
    readers are such queries. `ties`: the queries of which events are set aside that nothing orders.
    """

    queries: frozenset[str]
    buffers: frozenset[str]
    ties: frozenset[str]

    @classmethod
    def of(cls, plan: Plan, options: Mapping[str, SourceOptions], on_error: Mapping[str, OnError]) -> Leniency:
        """As `on_error` says per result stream; never over static tables alone, which whoever calls can mend."""
        queries = frozenset(
            query.name
            for query in plan.queries
            if on_error.get(query.stream, "quarantine") == "quarantine" and not query.facts.is_static
        )

        def unties(query: QueryPlan, leaf: Leaf) -> bool:
            """As its source says of the events of a stream, and the query of those of a result."""
            source = None if leaf.buffer is None else options.get(leaf.buffer.stream.name)
            return query.name in queries if source is None else source.ties == "quarantine"

        strict = {
            leaf.buffer.id
            for query in plan.queries
            for leaf in query.leaves
            if leaf.buffer and query.name not in queries
        }
        return cls(
            queries,
            frozenset(buffer.id for buffer in plan.buffers if buffer.id not in strict),
            frozenset(
                query.name
                for query in plan.queries
                if query.ordered is not None
                and all(unties(query, query.leaves[n]) for n in query.ordered.ordered_leaves)
            ),
        )


@dataclass(slots=True)
class Evaluation:
    """The queries of one batch at work, from the state in which the rows of the batch are stored.

    `progress`, `segments` and `operators` are copies that change with every level. `increments` are what was found, and
    `read` is rows and bytes that were read for it, per query.
    """

    plan: Plan
    executor: Executor
    garbage: Garbage
    leniency: Leniency
    batch: Batch
    before: RunState
    is_first: bool
    """Whether no batch was committed before: static results are made in this one."""
    tell: Tell = nobody
    between: Callable[[], None] = nothing
    """Called before each level."""
    progress: ProgressState = field(init=False)
    segments: Segments = field(init=False)
    operators: dict[str, OperatorFiles] = field(init=False)
    skipped: Mapping[str, SkippedResult] = field(init=False, default_factory=dict)
    unfinished: set[str] = field(init=False, default_factory=set)
    """The results of components that go on in the next batch."""
    increments: dict[str, Increment] = field(init=False, default_factory=dict)
    read: dict[str, tuple[int, int]] = field(init=False, default_factory=dict)
    _written: dict[str, Future[OperatorFiles]] = field(init=False, default_factory=dict)
    """What operators keep that is being written, per query."""

    def __post_init__(self) -> None:
        self.progress, self.segments = self.before.progress.copy(), self.before.segments
        self.operators = dict(self.before.operators)

    def run(self, scheduler: Scheduler) -> None:
        """Every query that is due and whose progress advances, level by level or in the order of the schedule."""
        for queries in scheduler:
            self.between()
            recursion = self.plan.recursion(queries)
            if recursion is None:
                self._level(queries)
            elif not self._recurse(queries, recursion):
                self.unfinished.update(query.stream for query in queries)
        here = {name: SkippedResult(self.batch.seq, scheduler.clock, 0, UNFINISHED) for name in self.unfinished}
        self.skipped = {**scheduler.skipped, **here}
        self.operators |= {name: state.result() for name, state in self._written.items()}

    def state(self) -> RunState:
        """The state with the increments."""
        return replace(
            self.before,
            progress=self.progress,
            segments=self.segments,
            skipped=self.skipped,
            operators=self.operators,
        )

    def _level(self, level: Sequence[QueryPlan]) -> None:
        """Queries that do not read each other."""
        jobs: list[Job] = []
        reached = reach(self.plan, level, self.progress)
        for query in level:
            old, new = self.progress.queries[query.name], reached[query.name]
            if new == old and not (query.facts.is_static and self.is_first):
                continue
            if new == old or query.may_pass(old, new):
                jobs += self._jobs(query, relevant(query, offered(query, self.segments), old, new), old, new)
            self.progress.queries[query.name] = new
        for job, increment in zip(jobs, self.executor.increments(self.batch, jobs) if jobs else [], strict=True):
            self._add(job.query.name, increment)
            if isinstance(increment.state, Future):
                self._written[job.query.name] = increment.state
            elif increment.state is not None:
                self.operators[job.query.name] = increment.state

    def _recurse(self, level: Sequence[QueryPlan], recursion: Recursion) -> bool:
        """A recursive component, stratum by stratum: of the rows that would pass, those of the least ranks do (rule
        R20). False where others are left for the next batch: then its progress is less than it could be (rule R24).

        Its progress rises only after the loop: until then keep and admission filters let stay what later strata read.
        """
        new = reach(self.plan, level, self.progress)
        advancing = [query for query in level if new[query.name] != self.progress.queries[query.name]]
        increments, limit = self._strata(level, advancing, recursion.rank, new)
        if limit is not None:
            new = {query.name: below_rank(self.progress, query, recursion.rank, limit, new) for query in level}
        found = self.segments
        for increment in increments.values():
            found = with_stored(found, increment.segments)
        jobs: list[Job] = []
        for query in advancing:
            old = self.progress.queries[query.name]
            read = relevant(query, offered(query, found), old, new[query.name])
            jobs.append(self._job(query, read, old, new[query.name]))
        for name, increment in self.executor.settle(self.batch, jobs, increments).items():
            self._add(name, increment)
        self.progress.queries |= new
        return limit is None

    def _strata(
        self, level: Sequence[QueryPlan], queries: Sequence[QueryPlan], rank: Rank, new: Mapping[str, Progress]
    ) -> tuple[dict[str, Increment], int | None]:
        """What those queries of a component that advance find, up to the first stratum without a new row; or all rows
        up to a rank, and this rank, where that takes more steps than one batch does.
        """
        old = {query.name: self.progress.queries[query.name] for query in queries}
        done: dict[str, Increment] = {}
        level_streams = {query.stream for query in level}
        finished = any(INF in p.values() for p in new.values())
        # Of several promised instants a row of low rank may have one that is beyond what may be final then.
        may_stop = not finished and all(len(p) == 1 for p in new.values())
        limit, idle, told = None, 0, TOLD_STEPS
        steps = rows = given = growing = most = 0
        # What is not relevant to one stratum is not to a later one: each looks at what the one before read, and at new
        # rows.
        read = {query.name: offered(query, self.segments) for query in queries}
        while queries:
            jobs: list[Job] = []
            for query in queries:
                low = beyond(rank, query.stream, limit, old[query.name])
                read[query.name] = relevant(query, read[query.name], low, new[query.name])
                jobs += self._jobs(query, read[query.name], low, new[query.name])
            if not steps:
                first = {segment.path: segment.rows for job in jobs for some in job.inputs for segment in some}
                given = sum(first.values())
            stratum = self.executor.stratum(self.batch, jobs, rank) if jobs else None
            if stratum is None:
                break
            more = sum(increment.rows for increment in stratum.increments)
            steps, rows = steps + 1, rows + more
            if more > most:
                growing, most = growing + 1, more
                if growing >= GROWING_STEPS and rows > max(MANY_ROWS, ROWS_PER_STEP * given * steps):
                    raise multiplying(level, rows, given, steps)
            fresh: dict[str, tuple[Segment, ...]] = {}
            for job, increment in zip(jobs, stratum.increments, strict=True):
                done[job.query.name] = done.get(job.query.name, Increment(0)).and_then(increment)
                fresh |= {buffer: (*fresh.get(buffer, ()), *some) for buffer, some in increment.segments.items()}
            for query in queries:
                added = offered(query, fresh)
                read[query.name] = [
                    [*segments, *further] for segments, further in zip(read[query.name], added, strict=True)
                ]
            limit = stratum.limit
            stops = may_stop and steps >= MOST_STEPS
            if steps == told or stops:
                said = goes_on(queries[0], rank, limit, new[queries[0].name], steps, later=stops)
                self.tell(queries[0].name, said)
                told *= 10
            if stops:
                return done, limit
            idle = 0 if any(job.waits_for_other_than(level_streams) for job in jobs) else idle + 1
            if finished and idle > ENDLESS:
                raise endless(level)
        return done, None

    def _jobs(self, query: QueryPlan, inputs: Sequence[Sequence[Segment]], old: Progress, new: Progress) -> list[Job]:
        """The increment of a query over relevant segments per leaf, unless the query is suspended."""
        state = self._kept(query)
        keeps, ends = state is not None and bool(state.files), INF in new.values()
        if query.is_suspended([bool(segments) for segments in inputs], keeps=keeps, ends=ends):
            return []
        job = self._job(query, inputs, old, new)
        rows, bytes_ = self.read.get(query.name, (0, 0))
        self.read[query.name] = rows + job.rows, bytes_ + job.bytes
        return [job]

    def _job(self, query: QueryPlan, inputs: Sequence[Sequence[Segment]], old: Progress, new: Progress) -> Job:
        feeds = self.plan.feeds(query.stream)
        return Job(
            query,
            inputs,
            old,
            new,
            [(buffer, self.garbage.keep(buffer, self.progress)) for buffer in feeds],
            self._kept(query),
            close_at=self._end_of(query, new),
            lenient=query.name in self.leniency.queries,
            lenient_feeds=frozenset(buffer.id for buffer in feeds if buffer.id in self.leniency.buffers),
            untied=query.name in self.leniency.ties,
        )

    def _kept(self, query: QueryPlan) -> OperatorFiles | None:
        """What the operator of a query keeps."""
        if (written := self._written.pop(query.name, None)) is not None:
            self.operators[query.name] = written.result()
        return self.operators.get(query.name)

    def _end_of(self, query: QueryPlan, new: Progress) -> int | None:
        """Where the rows of an operator end once its input has ended; None where nobody says, or it has not."""
        ordered, closing = query.ordered, self.before.closing
        if ordered is None or closing is None or new[ordered.time] != INF:
            return None
        return closing.end_of(self.plan, query, ordered)

    def _add(self, name: str, increment: Increment) -> None:
        """For the queries of later levels to read."""
        self.increments[name] = increment
        self.segments = with_stored(self.segments, increment.segments)


def beyond(rank: Rank, stream: str, limit: int | None, old: Progress) -> Progress:
    """The progress that lets only rows pass that pass after `old` and rank at least `limit`."""
    if limit is None:
        return old
    return {a: max(old[a], instant) for a, instant in rank.below(stream, limit).items()}


def below_rank(
    progress: ProgressState, query: QueryPlan, rank: Rank, limit: int, new: Mapping[str, Progress]
) -> dict[str, Extended]:
    """How far a query of a component is that has passed all rows below a rank, of those up to the progress `new`."""
    old, reached = progress.queries[query.name], rank.below(query.stream, limit)
    return {a: max(p, min(new[query.name][a], reached[a])) for a, p in old.items()}


def offered(query: QueryPlan, segments: Mapping[str, Sequence[Segment]]) -> list[list[Segment]]:
    """Per leaf of a query the segments of its buffer."""
    return [[] if leaf.buffer is None else list(segments.get(leaf.buffer.id, ())) for leaf in query.leaves]


def relevant(
    query: QueryPlan, segments: Sequence[Sequence[Segment]], old: Progress, new: Progress
) -> list[list[Segment]]:
    """Per leaf those of its segments that may hold a row that matters between `old` and `new`."""
    return [_relevant(leaf, some, old, new) for leaf, some in zip(query.leaves, segments, strict=True)]


def _relevant(leaf: Leaf, segments: Sequence[Segment], old: Progress, new: Progress) -> list[Segment]:
    if not segments:  # as of static tables
        return []
    mattering = leaf.mattering(old, new)
    return [segment for segment in segments if mattering.segment(segment.bounds)]


def multiplying(level: Sequence[QueryPlan], rows: int, given: int, steps: int) -> QueryError:
    """TG442: the rows of a component multiply from stratum to stratum."""
    names = ", ".join(dict.fromkeys(query.stream for query in level))
    return QueryError(
        "TG442",
        f"{names}: the recursion multiplies its rows",
        because=(
            (
                f"it began with {given:,} rows and has found {rows:,} in {steps:,} steps; the next would soon "
                "fill the memory"
            ),
        ),
        hint="let equal rows count once: end its queries with .distinct(); or let each row lead to fewer by a "
        "condition, or to none after some steps by a number that each step counts up",
    )


def goes_on(query: QueryPlan, rank: Rank, limit: int, new: Progress, steps: int, *, later: bool) -> Problem:
    """TG445: a batch has taken many strata of a component, and how far it is; `later`: others are left to the next."""
    (attribute, reached), *_ = rank.below(query.stream, limit).items()
    kind = query.facts.output.schema[attribute].type.kind
    return Problem(
        "TG445",
        f"{query.stream}: the recursion has taken {steps:,} steps in this batch, and goes on{' in the next' * later}",
        because=(
            f"{query.stream}.{attribute} has come to {instant_text(reached, kind)}, and "
            f"{'later batches go' if later else 'the batch goes'} on to {instant_text(new[attribute], kind)}",
        ),
        hint="where a row far ahead has moved progress there, take it out of the input and go on from a checkpoint "
        "of before; else let it run, let steps be longer, or end the recursion by a condition",
    )


def endless(level: Sequence[QueryPlan]) -> QueryError:
    """TG415: the strata of a component would go on for ever."""
    names = ", ".join(dict.fromkeys(query.stream for query in level))
    return QueryError(
        "TG415",
        f"{names}: the recursion does not end",
        because=(f"its last {ENDLESS} steps found nothing new in other streams, so it would go on for ever",),
        hint="end it by a condition: on a stream or table, or on a number that each step counts up",
    )
