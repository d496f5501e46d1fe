"""Programs of every kind with a script of batches, and an undisturbed run of each to compare disturbed ones with.

Every step of a scenario is one batch, so that after a crash the number of the last commit says what is still to be
done.
"""

from __future__ import annotations

import datetime as dt
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import tidegate as tg
from tests.operators import Changes, Silences
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.facts import ProgramFacts
from tidegate.runtime.connectors.sources import Source
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.setup import results_area
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.failpoints import SimulatedCrash
from tidegate.runtime.state.outputs.staging import kept_results
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

if TYPE_CHECKING:
    from examples.linear_road.rows import Row

START = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)
STEPS = 6

e = tg.stream("E", "k bigint, t bigint, v bigint", progress="t")
f = tg.stream("F", "k bigint, t bigint, v bigint", progress="t")
#: Intervals that tell when they begin.
g = tg.stream(
    "G",
    "id bigint, k bigint, a bigint, t bigint",
    progress="t",
    relations=lambda interval: interval.a < interval.t,
    begins=tg.Begins(id="id", start="a", end="t"),
)
names = tg.table("N", "k bigint, name string")


@dataclass(frozen=True, slots=True)
class Step:
    """Rows and progress per stream."""

    rows: Mapping[str, Sequence[tuple[Any, ...]]]
    advances: Mapping[str, Extended]


@dataclass(frozen=True, slots=True)
class Scenario:
    """A program, what is promised of its sources, and what happens batch by batch; after the last all input has
    ended.

    `in_file` has the rows of a stream's file with a number, for runs over files of a seed; None: those of any stream of
    these programs.
    """

    program: tg.Program
    steps: tuple[Step, ...]
    statics: Mapping[str, Any] = field(default_factory=dict)
    sources: Mapping[str, Source] = field(default_factory=dict)
    in_file: Callable[[str, int, str], Sequence[tuple[Any, ...]]] | None = None

    @property
    def facts(self) -> ProgramFacts:
        return self.program.facts


def rows_of(rng: random.Random, step: int, count: int = 6) -> list[tuple[int, int, int]]:
    return [(rng.randint(0, 2), step * 20 + rng.randint(1, 30), rng.randint(0, 9)) for _ in range(count)]


def script(*streams: str, repeat: bool = False, count: int = 6) -> tuple[Step, ...]:
    """Rows in disorder that progress permits, a batch without rows, rows that are rejected, and the end of all
    input.
    """
    rng = random.Random(",".join(streams))
    steps, before = [], {name: rows_of(rng, 0) for name in streams}
    for number in range(STEPS - 1):
        fresh = {name: rows_of(rng, number, 0 if number == 3 else count) for name in streams}
        rows: dict[str, list[tuple[Any, ...]]] = {
            name: [*fresh[name], *(before[name][:3] if repeat else [])] for name in streams
        }
        rows[streams[0]].append((1, None, 1))
        steps.append(Step(rows, dict.fromkeys(streams, number * 20)))
        before = {name: fresh[name] or before[name] for name in streams}
    return (*steps, Step({}, dict.fromkeys(streams, INF)))


def with_intervals(steps: Sequence[Step]) -> tuple[Step, ...]:
    """With intervals of G, each told when it begins and when it ends, as progress permits; one of which no end comes,
    and the end of one that nobody has told of.
    """
    rng = random.Random("G")
    rows = [list[tuple[Any, ...]]() for _ in steps]
    for number in range(30):
        a = rng.randint(1, 90)
        whole = (number, rng.randint(0, 2), a, a + rng.randint(1, 25))
        for at, row in ((a, (*whole[:3], None)), (whole[3], whole)):
            step = min((at - 1) // 20, len(steps) - 2)
            rows[step - (step == 3)].append(row)  # the fourth batch has no rows
    rows[2].append((90, 1, 50, None))
    rows[4].append((91, 1, 5, 85))
    return tuple(
        Step({**one.rows, "G": its}, {**one.advances, "G": one.advances["E"]})
        for one, its in zip(steps, rows, strict=True)
    )


def file_with_intervals(stream: str, number: int, seed: str) -> Sequence[tuple[Any, ...]]:
    """Of G the intervals that begin or end while a file is written."""
    from tests.runtime.faults.on_files import rows_of as rows_of_file

    if stream != "G":
        return rows_of_file(stream, number, seed)
    found = list[tuple[Any, ...]]()
    for file in range(number - 2, number + 1):
        rng = random.Random(f"{seed}/G/{file}")
        for place in range(8):
            k, a = rng.randint(0, 2), file * 10 + rng.randint(0, 9)
            whole = (file * 8 + place, k, a, a + rng.randint(1, 15))
            found += [(*whole[:3], None)] if file == number else []
            found += [whole] if whole[3] // 10 == number else []
    return found


def tumbling() -> tg.Program:
    return tg.program(Out=e.group_by(e.k, w=tg.ceil(e.t, 10)).agg(n=tg.count(), total=tg.sum(e.v), most=tg.max(e.v)))


def interval_join() -> tg.Program:
    a, b = e.as_("a"), f.as_("b")
    return tg.program(Out=a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 15).select(k=a.k, s=a.t, t=b.t))


def anti_join() -> tg.Program:
    a, b = e.as_("a"), f.as_("b")
    return tg.program(Out=a.anti_join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 25))


def left_join() -> tg.Program:
    a, b = e.as_("a"), f.as_("b")
    return tg.program(Out=a.left_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 9).select(t=a.t, k=a.k, v=b.v))


def union() -> tg.Program:
    return tg.program(Out=e.select(e.k, e.t).union(f.select(f.k, f.t)).distinct())


def recursion() -> tg.Program:
    rounds = tg.result("Rounds", "t bigint", progress="t")
    a, r = e.as_("a"), rounds.as_("r")
    begin = a.anti_join(r, r.t < a.t, a.t <= r.t + 10).select(t=a.t).distinct()
    inside = r.join(a, r.t <= a.t, a.t <= r.t + 10).group_by(t=r.t).agg(n=tg.count())
    return tg.program(tg.query(rounds, begin), Sizes=inside)


def chain() -> tg.Program:
    """Queries that read each other's results, two of them feeding one stream."""
    a, b = e.as_("a"), f.as_("b")
    both = tg.result("Both", "k bigint, t bigint", progress="t")
    c, d = both.as_("c"), both.as_("d")
    followed = tg.result_of(
        "Followed", c.semi_join(d, c.k == d.k, c.t < d.t, d.t <= c.t + 10).select(k=c.k, t=c.t).distinct()
    )
    g = followed.as_("g")
    return tg.program(
        tg.query(both, a.select(k=a.k, t=a.t), name="FromE"),
        tg.query(both, b.where(b.v > 3).select(k=b.k, t=b.t), name="FromF"),
        Counted=g.group_by(w=tg.ceil(g.t, 20)).agg(n=tg.count()),
    )


def static_join() -> tg.Program:
    a, n = e.as_("a"), names.as_("n")
    return tg.program(Out=a.join(n, a.k == n.k).select(t=a.t, name=n.name))


def event_controlled() -> tg.Program:
    """An aggregation over the time between two events of another stream."""
    a, b, c = f.as_("a"), f.as_("b"), e.as_("c")
    span = a.join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 20)
    within = span.join(c, a.t < c.t, c.t <= b.t)
    return tg.program(Out=within.group_by(s=a.t, t=b.t, k=a.k).agg(n=tg.count(), total=tg.sum(c.v)))


def pattern() -> tg.Program:
    """Matches of three situations, with aggregates, and what is derived beside them; some are in flight after every
    batch.
    """
    periods = e.partition_by("k", tie="v").derive(
        A=tg.situation(e.v > 4, n=tg.count(), most=tg.max(e.v)), B=tg.situation(e.v < 8, n=tg.count())
    )
    a, b, c = periods.A, periods.B, periods.A.as_("c")
    early = tg.match(a.overlaps(b) | a.during(b) | a.starts(b), within=80)
    late = tg.match(a.before(c), within=120, emission="final")
    return tg.program(Early=early.select("k", s=a.ts, u=b.ts, n=a.n, t="detected"), Late=late, Long=periods.B)


def own_operators() -> tg.Program:
    """Operators that only tests know, one of them with timers, and a grouping of what it yields."""
    periods = e.partition_by("k", tie="v")
    silent = tg.result_of("Silent", periods.process(Silences(9)))
    return tg.program(
        Changed=periods.process(Changes()),
        Counted=silent.group_by(w=tg.ceil(silent.at, 20)).agg(n=tg.count()),
    )


def around() -> tg.Program:
    """Rows with values of the rows before them, and of those after, some of which wait after every batch."""
    before = e.over(by="k", order="t", tie="v", last=tg.lag(e.v, 2), n=tg.row_number(), total=tg.sum(e.v))
    moving = before.over(by="k", order="t", tie="v", range=15, least=tg.min(e.v), mean=tg.avg(e.v))
    return tg.program(Before=moving, After=e.over(by="k", order="t", tie="v", next=tg.lead(e.v, within=30)))


def nearest() -> tg.Program:
    """Rows with the row of another stream before them, and with that nearest to them; some wait after every batch."""
    a, b = e.as_("a"), f.as_("b")
    back = a.asof_join(b, by="k", tie="v")
    near = a.asof_join(b, by="k", tie="v", direction="nearest", within=30, how="inner")
    return tg.program(Back=back.select("a.k", t="a.t", v="b.v"), Near=near.select(k=a.k, v=b.v, t="complete"))


def ranked() -> tg.Program:
    """Versions that hold at the instants of rows, the first rows of windows, and sketches."""
    a, b = e.as_("a"), f.as_("b")
    held = a.temporal_join(b.versioned(by="k", deleted=b.v > 6, tie="v"), on="k")
    best = e.with_(end=tg.ceil(e.t, 20)).top_k(2, by=("end", "k"), order=tg.desc("v"))
    counted = e.group_by("k", t=tg.ceil(e.t, 20)).agg(n=tg.approx_distinct(e.v), most=tg.approx_quantile(e.v, 0.9))
    return tg.program(Held=held.select("a.k", t="a.t", v="b.v"), Best=best, Counted=counted)


def windowed() -> tg.Program:
    """Sessions and windows that overlap, some of which are open after every batch."""
    session = e.windows(tg.session(12), by="k").agg(n=tg.count(), total=tg.sum(e.v))
    hopping = e.windows(tg.hopping(30, every=10), by="k").agg(n=tg.count(), least=tg.min(e.v))
    empty = e.windows(tg.hopping(10, every=10, empty=True), by="k").agg(n=tg.count())
    since = e.windows(tg.landmark(5, every=10), by="k").agg(total=tg.sum(e.v))
    return tg.program(
        Session=session.rename(end="t"),
        Hopping=hopping.rename(end="t"),
        Empty=empty.rename(complete="t"),
        Since=since.rename(end="t"),
    )


def ticking() -> tg.Program:
    """Ticks for a while after each row, ticks for ever, and the last rows at ticks, with more to come."""
    lasting = tg.result_of("Lasting", e.ticks(15, by="k", within=40).rename(tick="t"))
    held = lasting.as_("a").asof_join(e.as_("b"), by="k", tie="v")
    return tg.program(Ever=e.ticks(25).rename(tick="t"), Held=held.select("a.k", t="a.t", v="b.v"))


def event_runs() -> tg.Program:
    """Matches of situations of which only the conditions matter: with a delay, events are joined as they are read."""
    periods = e.partition_by("k").derive(A=tg.situation(e.v > 1), B=tg.situation(e.v < 7, at_least=2))
    a, b, c = periods.A, periods.B, periods.A.as_("c")
    early = tg.match(a.overlaps(b) | a.during(b) | a.finished_by(b), within=80)
    late = tg.match(a.before(c), within=120, emission="final")
    return tg.program(Early=early, Late=late, Long=periods.B)


def in_contexts() -> tg.Program:
    """Rows, and pairs of rows, in contexts that overlap, of which one holds by causes. Some hold after every batch."""
    model = tg.context_model("Places", by="k", default="calm", contexts=("busy", "blocked"), causes={"blocked": "bag"})
    model = (
        model.initiate("busy", when=e.where(e.v > 5), values={"level": e.v})
        .terminate("busy", when=e.where(e.v < 2))
        .initiate("blocked", when=f.where(f.v > 7), cause=f.v)
        .terminate("blocked", when=f.where(f.v < 6), cause=f.v % 2 + 8)
    )
    a, b = e.as_("a"), e.as_("b")
    near = a.join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 15)
    busy = e.in_context(model, "busy", values={"since": "began", "level": "level"})
    return tg.program(
        Whole=near.in_context(model, "busy", by="b.k", at="b.t", since="a.t").select("a.k", s="a.t", t="b.t"),
        Level=busy.group_by("k", "since", w=tg.ceil(busy.t, 20)).agg(n=tg.count(), most=tg.max(busy.level)),
        Either=f.in_context(model, "busy", "blocked"),
        Neither=e.not_in_context(model, "busy", "blocked").select("k", "t"),
        Calm=f.in_context(model, "calm").select("k", "t"),
        Blocked=model.windows("blocked"),
    )


#: Seconds of a file of Linear Road, and how late a row may be.
ROAD_SECONDS, ROAD_LATE = 40, 15


def linear_road() -> Scenario:
    """Linear Road over files, with rows in disorder; it has no steps."""
    from examples.linear_road.queries import DISTANCES, program

    return Scenario(program, (), {"Distances": DISTANCES}, in_file=road_file)


def road_file(stream: str, number: int, seed: str) -> Sequence[tuple[int, ...]]:
    """The rows that arrive within the seconds of a file."""
    return [row for at, row in arriving(seed) if at // ROAD_SECONDS == number]


@cache
def arriving(seed: str) -> Sequence[tuple[float, Row]]:
    """Rows of small roads with what rules tell apart, each with the second in which it arrives, in this order."""
    from tests.examples.small_roads import many_borders

    rng = random.Random(seed)
    first = rng.randrange(10_000)
    rows = many_borders(range(first, first + 16), minutes=13)
    return sorted((row.time + ROAD_LATE * rng.random(), row) for row in rows)


def row_pattern() -> tg.Program:
    """Matches of rows, some in flight after every batch: by a limit, by the next row, by rows that must not come; what
    kernels search for, and what they do not.
    """
    rising = {"Low": lambda m: m.Low.v < 6, "High": lambda m: m.High.v > m.Low.v}
    of: Any = {"by": "k", "order": "t", "tie": "v"}
    turns = e.sequences("Low High+", **of, define=rising, within=40, n=lambda m: m.rows.agg(tg.count()))
    counted = e.sequences("Low+ High", **of, define={"Low": e.v < 6, "High": e.v > 5}, matches="any", within=30)
    return tg.program(
        Turns=turns.rename(detected="t"),
        Rising=e.sequences("A", **of, define={"A": lambda m: m.A.next().v > m.A.v}, then=lambda m: m.A.next().v),
        Quiet=e.sequences("A !B[20]", **of, define={"A": e.v < 5, "B": e.v > 7}, v=lambda m: m.A.v),
        Skipped=e.sequences("Low High", **of, define=rising, matches="next", within=30, v=lambda m: m.High.v),
        Overlapping=e.sequences("Low High+", **of, define=rising, within=40, skip="last High", rows="all"),
        Counted=counted.group_by("k", t=tg.ceil(counted.detected, 20)).agg(n=tg.count()),
        Long=turns.where(turns.n > 2).group_by(t=tg.ceil(turns.detected, 20)).agg(n=tg.count()),
    )


def interval_sequence() -> tg.Program:
    """Sequences of intervals of two streams, with situations that are derived, and of intervals that tell when they
    begin, some of which wait after every batch.
    """
    a = e.where(e.v > 4).select(k=e.k, a=e.t - 9, z=e.t).as_intervals(start="a", end="z", by="k", name="A")
    b = f.select(k=f.k, a=f.t - 4, z=f.t).as_intervals(start="a", end="z", by="k", name="B")
    c = e.partition_by("k", tie="v").derive(C=tg.situation(e.v < 8)).C
    x, y = (g.where(g.id % 2 == odd).as_intervals(start="a", end="t", by="k", name="XY"[odd]) for odd in range(2))
    return tg.program(
        Begun=tg.iseq(x.ts < y.te, y.te < x.te, of=(x, y), within=45),
        Both=tg.iseq(a.ts < b.te, a.te < b.te, of=(a, b), within=45),
        Three=tg.iseq(a.ts < b.ts, b.te < c.te, of=(a, b, c), within=90),
    )


NAMES = [{"k": k, "name": f"name {k}"} for k in range(3)]
KEYED = {"E": tg.source(None, delay=40, key=("k", "t"))}
#: No two events of a partition may be equal in time and tie-break.
ONCE = {"E": tg.source(None, delay=40, key=("k", "t", "v"))}
OTHER_ONCE = {"F": tg.source(None, delay=40, key=("k", "t", "v"))}
BOTH_ONCE = {**ONCE, **OTHER_ONCE}
#: None equal in time.
UNTIED = {"E": tg.source(None, delay=3, key=("k", "t"))}
MAKERS: Mapping[str, Callable[[], Scenario]] = {
    "within contexts": lambda: Scenario(in_contexts(), script("E", "F", count=20)),
    "tumbling": lambda: Scenario(tumbling(), script("E")),
    "interval join": lambda: Scenario(interval_join(), script("E", "F")),
    "anti-join": lambda: Scenario(anti_join(), script("E", "F")),
    "left join": lambda: Scenario(left_join(), script("E", "F")),
    "union": lambda: Scenario(union(), script("E", "F")),
    "recursion": lambda: Scenario(recursion(), script("E")),
    "keyed with duplicates": lambda: Scenario(tumbling(), script("E", repeat=True), sources=KEYED),
    "chain of queries": lambda: Scenario(chain(), script("E", "F")),
    "static join": lambda: Scenario(static_join(), script("E"), {"N": NAMES}),
    "pattern": lambda: Scenario(pattern(), script("E"), sources=ONCE),
    "event runs": lambda: Scenario(event_runs(), script("E", count=40), sources=UNTIED),
    "operators of one's own": lambda: Scenario(own_operators(), script("E"), sources=ONCE),
    "rows around rows": lambda: Scenario(around(), script("E"), sources=ONCE),
    "windows of rows": lambda: Scenario(windowed(), script("E"), sources=ONCE),
    "ticks": lambda: Scenario(ticking(), script("E"), sources=ONCE),
    "rows nearest in time": lambda: Scenario(nearest(), script("E", "F"), sources=OTHER_ONCE),
    "versions and ranks": lambda: Scenario(ranked(), script("E", "F"), sources=OTHER_ONCE),
    "row pattern": lambda: Scenario(row_pattern(), script("E"), sources=ONCE),
    "interval sequence": lambda: Scenario(
        interval_sequence(), with_intervals(script("E", "F")), sources=BOTH_ONCE, in_file=file_with_intervals
    ),
    "event-controlled": lambda: Scenario(event_controlled(), script("E", "F")),
}
#: Those that run over files: in this order runs of them are killed.
OVER_FILES: Mapping[str, Callable[[], Scenario]] = {"Linear Road": linear_road, **MAKERS}


@cache
def scenario(name: str) -> Scenario:
    return OVER_FILES[name]()


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run is judged by: rows of every result file, of the quarantine, counts, progress and stored rows in the
    end.
    """

    results: Mapping[str, list[tuple[Any, ...]]]
    quarantine: list[str]
    counts: Mapping[str, Any]
    progress: Mapping[str, Any]
    live: Mapping[str, int]


def again(store: Store) -> Store:
    """The store as a new process sees it; locks of dead processes are gone."""
    if isinstance(store, LocalStore):
        fresh_local = LocalStore(store.where, sync=False)
        fresh_local.packs = store.packs
        return fresh_local
    assert isinstance(store, MemoryStore)
    fresh = MemoryStore(packs=store.packs)
    fresh.files, fresh.published = store.files, store.published
    return fresh


def opened(one: Scenario, store: Store, clock: Callable[[], dt.datetime] = lambda: START) -> Session:
    return Session(
        one.facts,
        store,
        dict(one.sources),
        one.statics,
        options=RunOptions(collect_garbage="exact", purging="always", clock=clock),
    )


def give(session: Session, step: Step) -> None:
    """The rows and the progress of a step, for the next batch."""
    for name, rows in step.rows.items():
        if rows:
            session.push(name, rows)
    for name, reached in step.advances.items():
        session.advance(name, {"t": reached})


def go_on(one: Scenario, store: Store, until: int | None = None) -> None:
    """Open the checkpoint and do the steps that are not done; what a crash leaves behind stays as it is."""
    done = 0
    with opened(one, store, lambda: START + dt.timedelta(minutes=done)) as session:
        last = inspect(store).manifest
        done = 0 if last is None else last.seq
        for step in one.steps[done:until]:
            give(session, step)
            session.step()
            done += 1


def outcome(one: Scenario, store: Store) -> Outcome:
    """What a finished run left; also checks that nothing else lies about, and that opening it again changes nothing."""
    with opened(one, again(store)) as session:
        outputs = {query.stream for query in session._plan.queries if not query.facts.query.inner}
        seen = again(store)
        found = Outcome(
            {
                name: sorted(
                    tuple(row.values())
                    for table in kept_results(seen, inspect(seen).manifest, results_area(name), feeding(session, name))
                    for row in table.to_pylist()
                )
                for name in outputs
            },
            sorted(map(str, session.quarantine_rows())),
            session.counts,
            session.progress,
            session.live_rows(),
        )
        check_tidy(seen)
    return found


def feeding(session: Session, name: str) -> list[str]:
    """The queries whose rows make a result stream."""
    return [query.name for query in session._plan.queries if query.stream == name]


def check_tidy(store: Store) -> None:
    manifest = inspect(store).manifest
    assert manifest is not None
    assert manifest.seq == STEPS
    assert len(store.list_files("manifests")) <= 2
    assert not store.list_files("tmp")
    assert not store.list_files("staging")


@cache
def undisturbed(name: str) -> Outcome:
    one = scenario(name)
    store = MemoryStore(packs=True)
    go_on(one, store)
    found = outcome(one, store)
    for stream in found.results:
        # Of an inner query that is only grouped, partial results alone are kept.
        assert found.results[stream] or "~" in stream, f"{name}: {stream} has no results to lose"
    assert any(counts.rejected for counts in found.counts.values())
    return found


@cache
def passings(name: str, *, packs: bool = True) -> Mapping[str, int]:
    """How often each failpoint is passed in an undisturbed run: few results wait in packs, or are published at once."""
    store = MemoryStore(packs=packs)
    store.failpoints.record()
    go_on(scenario(name), store)
    assert store.failpoints.passed is not None
    return store.failpoints.passed


def crashed(name: str, store: Store, failpoint: str, skip: int, action: Callable[[], None]) -> bool:
    """Whether a run that does `action` at a failpoint died of it."""
    store.failpoints.arm(failpoint, action, skip=skip)
    try:
        go_on(scenario(name), store)
    except SimulatedCrash:
        return True
    return False
