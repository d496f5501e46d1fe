"""Schedules on the embedded engine against the complete evaluation: what lags comes later and is the same.

Two ways to lag: any turns and any progress that rule R24 allows, put in the place of the runner's own; and schedules as
users give them, whose turns a model here foretells.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast
from unittest.mock import patch

import pytest

from tests.properties.drive import Broken, Tally, as_tuples, instants_of, lagged
from tests.properties.engines import as_given, check_results, instant_given
from tests.strategies.programs import Case
from tests.strategies.streams import Script, Step
from tidegate.algebra.semantics import Row, evaluate, evaluate_program
from tidegate.algebra.time import EPOCH, INF, Extended
from tidegate.analysis.facts import ProgramFacts, QueryFacts
from tidegate.analysis.recursion import component_progress
from tidegate.analysis.state.bounds import Bounded
from tidegate.runtime.batch.garbage import GarbageCollection
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.batch.scheduler import SkippedResult
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.inspect.live_state import StateUse, state_use
from tidegate.runtime.plan.progress import ProgressState, reach
from tidegate.runtime.plan.schedule import Schedule
from tidegate.runtime.plan.steps import Plan, PurgeMode, QueryPlan
from tidegate.runtime.state.failpoints import COMMITTED, SimulatedCrash, crash
from tidegate.runtime.state.store.memory import MemoryStore

Progress = dict[str, dict[str, Extended]]
START = EPOCH + dt.timedelta(days=20_000)
CRASHES = ("batch-after-intent", "commit-before-manifest", "commit-after-manifest")


@dataclass(slots=True)
class Run:
    """A case on the embedded engine, step by step, with the complete results to compare with."""

    case: Case
    facts: ProgramFacts
    rng: random.Random
    garbage: GarbageCollection
    purging: PurgeMode
    schedule: Schedule | None = None
    seconds: int = 0
    store: MemoryStore = field(default_factory=MemoryStore)
    reports: list[BatchReport] = field(default_factory=list)
    unreported: bool = False
    session: Session = field(init=False)
    whole: dict[str, list[Row]] = field(init=False)

    def __post_init__(self) -> None:
        inputs = as_tuples(self.case)
        complete = {**inputs, **evaluate_program(self.facts.program, inputs)}
        complete |= evaluate_program(self.case.program, inputs)
        self.whole = {q.query.name: evaluate(q.query.node, complete) for q in self.facts.queries}
        self.whole |= {query.name: evaluate(query.node, complete) for query in self.case.program.queries}
        self.session = self._open()

    def _open(self) -> Session:
        return Session(
            self.facts,
            self.store,
            statics={s.name: [as_given(row, s.schema) for row in self.case.rows[s.name]] for s in self.case.statics},
            options=RunOptions(
                collect_garbage=self.garbage,
                purging=self.purging,
                clock=lambda: START + dt.timedelta(seconds=self.seconds),
                schedule=self.schedule,
                on_batch=self.reports.append,
            ),
        )

    def restart(self) -> None:
        self.session.close()
        self.session = self._open()

    def step(self, step: Step, place: str | None = None) -> None:
        """One batch; with a place, it crashes there first, and is done again if it did not count."""
        self._give(step)
        if place is not None:
            self.store.failpoints.arm(place, crash)
            with pytest.raises(SimulatedCrash):
                self.session.step()
            self.restart()
            if place in COMMITTED:
                self.unreported = True
                return
            self._give(step)
        self.session.step()

    def _give(self, step: Step) -> None:
        streams = {stream.name: stream for stream in self.case.streams}
        for name, rows in step.rows.items():
            if rows:
                self.session.push(name, [as_given(row, streams[name].schema) for row in rows])
        for name, progress in step.progress.items():
            schema = streams[name].schema
            self.session.advance(name, {a: instant_given(value, schema, a) for a, value in progress.items()})

    def check(self, where: str) -> None:
        """The results are exactly the rows that are final at the progress of their queries."""
        check_results(self.session, self.facts, self.whole, where)

    def check_end(self, tally: Tally) -> None:
        """Everything has come, and nothing is kept any more."""
        if any(p != INF for progress in self.session.progress.values() for p in progress.values()):
            raise Broken(f"inputs have ended, and results are at {self.session.progress}")
        self.check("the end")
        if self.garbage != "off" and any(self.session.live_rows().values()):
            raise Broken(f"rows are still stored after the end of all input: {self.session.live_rows()}")
        if self.garbage == "exact" and not self.unreported:
            for use in state_use(self.session._plan, self.reports):
                self._check_bound(use, tally)
        tally.increments += sum(len(report.results) for report in self.reports)
        tally.lagged += sum(self._lags(report) for report in self.reports)
        tally.results += sum(map(len, self.whole.values()))
        tally.with_results += any(self.whole.values())
        self.session.close()

    def _lags(self, report: BatchReport) -> bool:
        return any(q.behind(report.bounds, report.progress[q.query.name]) > 0 for q in self.facts.queries)

    def _check_bound(self, use: StateUse, tally: Tally) -> None:
        """Live rows against what the stream brings in the time that the bound and the lag allow."""
        buffer = next(buffer for buffer in self.session._plan.buffers if buffer.id == use.buffer)
        bound = use.bound
        if use.span is None or not isinstance(bound, Bounded) or bound.tables:
            return
        if buffer.partial is not None or len(buffer.stream.progress) != 1:
            return
        fed = [self.whole[q.query.name] for q in self.facts.queries if q.query.stream == use.stream]
        rows = [row for part in fed for row in part] if fed else as_tuples(self.case)[use.stream]
        y = buffer.stream.progress[0]
        instants = [instants_of(buffer.stream, row)[y] for row in rows]
        span = use.span
        most = max((sum(start <= t <= start + span for t in instants) for start in instants), default=0)
        if use.unsettled > (most if span >= 0 else 0):
            raise Broken(f"{use.unsettled} live rows of {use.buffer}, but {most} by {bound} and a span of {span}")
        tally.bounded += span < INF
        tally.attained += 0 < use.unsettled == most and span < INF


# --- any turns, any progress
# -------------------------------------------------------------------------------------------


@dataclass(slots=True)
class AnyTurns:
    """Some of the components, each by itself and in any order."""

    plan: Plan
    rng: random.Random
    skipped: dict[str, SkippedResult] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Sequence[QueryPlan]]:
        components = list(self.plan.facts.components)
        self.rng.shuffle(components)
        for component in components[: self.rng.randint(0, len(components))]:
            yield [query for query in self.plan.queries if query.stream in component.streams]


def check_any_turns(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """Queries advance in any order, as far as they like within what R24 allows, until all have got to the end."""
    rng = random.Random(f"any turns {case.seed}/{len(script)}")
    run = _begun(case, facts, rng)
    tally.runs += 1

    def any_reach(plan: Plan, queries: Sequence[QueryPlan], progress: ProgressState) -> Progress:
        allowed = reach(plan, queries, progress)
        if plan.recursion(queries) is not None:
            return allowed
        return {name: lagged(progress.queries[name], p, rng) for name, p in allowed.items()}

    def any_turns(plan: Plan, *_: object) -> AnyTurns:
        return AnyTurns(plan, rng)

    batch = "tidegate.runtime.batch"
    with patch(f"{batch}.loop.Scheduler", any_turns), patch(f"{batch}.increments.reach", any_reach):
        for number, step in enumerate((*script, *[Step({}, {})] * rng.choice((0, 2)))):
            run.step(step, rng.choice(CRASHES) if rng.random() < 0.05 else None)
            if rng.random() < 0.1:
                run.restart()
            if rng.random() < 0.4:
                run.check(f"step {number} (garbage collection {run.garbage})")
    run.step(Step({}, {}))
    run.check_end(tally)


# --- schedules as users give them
# --------------------------------------------------------------------------------------


@dataclass(slots=True)
class Model:
    """What a schedule without budget means, retold: the turns, and how far that lets every query progress."""

    facts: ProgramFacts
    every: Mapping[str, int | dt.timedelta]
    b: dict[tuple[str, str], Extended] = field(init=False)
    p: Progress = field(init=False)
    turns: dict[str, tuple[int, int]] = field(init=False, default_factory=dict)
    batch: int = 0

    def __post_init__(self) -> None:
        self.b = {(s.name, a): -INF for s in self.facts.program.inputs for a in s.progress}
        self.p = {q.query.name: dict.fromkeys(q.propagation, -INF) for q in self.facts.queries}

    def step(self, step: Step, seconds: int) -> None:
        self.batch += 1
        for name, progress in step.progress.items():
            self.b |= {(name, a): value for a, value in progress.items()}
        unscheduled = self._advanced(lambda _: True)
        ended = [
            c for c in self.facts.components if all(INF in unscheduled[n].values() for n in self._queries(c.streams))
        ]
        over = {stream for component in ended for stream in component.streams}
        alone = {name for name, p in unscheduled.items() if INF in p.values()}
        moving: set[str] = set()
        for component in reversed(self.facts.components):
            for query in (q for q in self.facts.queries if q.query.stream in component.streams):
                name, stream = query.query.name, query.query.stream
                self.turns.setdefault(stream, (0, seconds))
                ends = name in alone if stream not in self.facts.recursions else stream in over
                if ends or (self._is_asked(query, moving) and self._is_due(stream, seconds)):
                    moving.add(name)
        self.p = self._advanced(moving.__contains__)

    def _is_asked(self, query: QueryFacts, moving: Collection[str]) -> bool:
        """An inner query by others that move; one of a user's always."""
        readers = [q for q in self.facts.queries if query.query.stream in {o.stream.name for o in q.occurrences}]
        return not query.query.inner or not readers or any(reader.query.name in moving for reader in readers)

    def _is_due(self, stream: str, seconds: int) -> bool:
        batch, clock = self.turns[stream]
        if batch == self.batch:  # another query of the stream has asked
            return True
        every = self.every.get(stream, 1)
        gone = self.batch - batch if isinstance(every, int) else dt.timedelta(seconds=seconds - clock)
        is_due = gone >= every  # type: ignore[operator]  # both numbers or both durations
        if is_due:
            self.turns[stream] = (self.batch, seconds)
        return is_due

    def _advanced(self, moves: Callable[[str], bool]) -> Progress:
        """Progress after the queries that move have moved, component by component."""
        p, b = {name: dict(own) for name, own in self.p.items()}, dict(self.b)
        for component in self.facts.components:
            recursion = self.facts.recursions.get(component.streams[0])
            own = [q for q in self.facts.queries if q.query.stream in component.streams]
            reached = (
                {q.query.name: q.progress(b, p[q.query.name]) for q in own}
                if recursion is None
                else component_progress(recursion, b)
            )
            p |= {name: found for name, found in reached.items() if moves(name)}
            for stream in component.streams:
                for a in self.facts.streams[stream].progress:
                    b[stream, a] = min(p[name][a] for name in self._queries((stream,)))
        return p

    def _queries(self, streams: Sequence[str]) -> list[str]:
        return [q.query.name for q in self.facts.queries if q.query.stream in streams]


def check_scheduled(case: Case, script: Script, facts: ProgramFacts, tally: Tally) -> None:
    """A random schedule: exactly the queries that have their turn advance, and with a budget none waits for ever."""
    rng = random.Random(f"scheduled {case.seed}/{len(script)}")
    every: dict[str, int | dt.timedelta] = {}
    priority: dict[str, int] = {}
    for component in facts.components:
        if rng.random() < 0.7:
            number = rng.randint(1, 4)
            cadence = number if rng.random() < 0.6 else dt.timedelta(seconds=number)
            every |= dict.fromkeys(component.streams, cadence)
        if rng.random() < 0.5:
            priority |= dict.fromkeys(component.streams, rng.randint(-2, 3))
    budget = "1s" if rng.random() < 0.3 else None
    run = _begun(case, facts, rng, Schedule(cast("Mapping[str, Any]", every), priority, budget))
    model = Model(facts, every)
    waits = 2 * len(facts.components) + max((*priority.values(), 0)) - min((*priority.values(), 0))
    tally.runs += 1
    now = 0.0

    def timer() -> float:
        nonlocal now
        now += rng.choice((0.0, 0.2, 1.0))
        return now

    with patch("tidegate.runtime.batch.scheduler.monotonic", timer):
        for number, step in enumerate(script):
            run.step(step, rng.choice(CRASHES) if rng.random() < 0.1 else None)
            model.step(step, run.seconds)
            run.seconds += rng.choice((0, 1, 1, 2))
            where = f"step {number} ({run.schedule}, garbage collection {run.garbage})"
            if budget is None and run.session.progress != model.p:
                raise Broken(f"{where}: progress is {run.session.progress} instead of {model.p}")
            most = max((one.put_off for one in run.session._runner.state.skipped.values()), default=0)
            if most > waits:
                raise Broken(f"{where}: put off {most} times: {run.session._runner.state.skipped}")
            if rng.random() < 0.2:
                run.restart()
            if rng.random() < 0.4:
                run.check(where)
    run.check_end(tally)


def _begun(case: Case, facts: ProgramFacts, rng: random.Random, schedule: Schedule | None = None) -> Run:
    garbage: GarbageCollection = rng.choice(("amortised", "exact", "exact", "off"))
    purging: PurgeMode = rng.choice(("planned", "off", "always"))
    return Run(case, facts, rng, garbage, purging, schedule)
