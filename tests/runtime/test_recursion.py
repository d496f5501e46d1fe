"""Recursive programs on both engines, with results computed by hand: strata, restarts, kills, what is kept, no end."""

from __future__ import annotations

import datetime as dt
import re
import runpy
from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, Literal

import pytest

import tidegate as tg
from tidegate import minutes, testing
from tidegate.algebra.errors import QueryError
from tidegate.analysis.facts import Rank
from tidegate.runtime.batch.executor import Stratum
from tidegate.runtime.eval.job import Job
from tidegate.runtime.program import Program
from tidegate.runtime.state.batch import Batch

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
Drive = Callable[[Program], testing.Drive]


ENGINES = (
    "embedded",
    pytest.param("driver", marks=pytest.mark.spark),
    *(pytest.param(name, marks=[pytest.mark.spark, pytest.mark.long]) for name in ("spark", "in turn")),
)


@pytest.fixture(params=ENGINES)
def drive(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Drive:
    """Embedded; on Spark with its shortcut through the driver, without it, and with it for every second stratum."""
    if request.param == "embedded":
        return testing.drive
    session = request.getfixturevalue("spark")
    if request.param == "in turn":
        take_turns(monkeypatch)
    driver_bytes = 0 if request.param == "spark" else None
    return lambda program: testing.drive(program, spark=session, driver_bytes=driver_bytes)


def take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.runtime.engines.spark.executor import SparkExecutor
    from tidegate.runtime.plan.sharding import DRIVER_BYTES

    stratum = SparkExecutor.stratum

    def turning(self: SparkExecutor, batch: Batch, jobs: Sequence[Job], rank: Rank) -> Stratum | None:
        self.driver_bytes = DRIVER_BYTES - self.driver_bytes
        return stratum(self, batch, jobs, rank)

    monkeypatch.setattr(SparkExecutor, "stratum", turning)


def alternating() -> Program:
    """Rounds: an event begins a round unless one began in the 10 ticks before it; each counts its own events."""
    events = tg.stream("Events", "t bigint", progress="t")
    rounds = tg.result("Rounds", "t bigint", progress="t")
    e, r = events.as_("e"), rounds.as_("r")
    begin = e.anti_join(r, r.t < e.t, e.t <= r.t + 10).select(t=e.t)
    inside = r.join(e, r.t <= e.t, e.t <= r.t + 10).group_by(t=r.t).agg(n=tg.count())
    return tg.program(tg.query(rounds, begin), Sizes=inside)


def test_negation_of_its_own_rows(drive: Drive) -> None:
    """Of 1, 5, 11, 12, 20, 23, 40 the rounds begin at 1, 12, 23 and 40: 12 is 11 after 1, 23 is 11 after 12."""
    with drive(alternating()) as run:
        run.add("Events", [(1,), (5,), (11,), (12,), (20,), (23,), (40,)])
        run.advance("Events", t=12)
        run.step()
        run.expect(Rounds=[(1,), (12,)], Sizes=[(1, 3)])
        run.restart()
        run.add("Events", [(60,)])
        run.advance("Events", t=50)
        run.step()
        run.expect(Rounds=[(23,), (40,)], Sizes=[(12, 2), (23, 1), (40, 1)])
        run.finish()
        run.kill()
        run.step()
        run.expect(Rounds=[(60,)], Sizes=[(60, 1)])
        assert set(run.live_rows.values()) == {0}


@pytest.mark.parametrize("drive", ENGINES[:2], indirect=True)
def test_frame_fragments(drive: Drive) -> None:
    """The paper's example in one batch, so that each fragment is a stratum of its own; see the example for the data."""
    example = runpy.run_path(str(EXAMPLES / "08_frame_fragments.py"))
    with drive(example["program"]) as run:
        for stream, rows in (("FireStart", "starts"), ("FireEnd", "ends"), ("Smoke", "measured")):
            run.add(stream, example[rows])
        run.finish()
        run.step()
        wanted = {name: run.new(name) for name in ("Fragments", "MaxSmoke")}
    assert sorted((row["end"].minute, row["area"], row["max_conc"]) for row in wanted["Fragments"]) == [
        (1, "concourse", 0.1),
        (1, "platform", 0.5),
        (2, "concourse", 0.3),
        (2, "platform", 0.6),
        (3, "concourse", 0.3),
        (3, "platform", 0.6),
    ]
    assert sorted((row["area"], row["max_conc"]) for row in wanted["MaxSmoke"]) == [
        ("concourse", 0.3),
        ("platform", 0.8),
    ]


def test_streams_that_feed_each_other_advance_by_half_a_tick() -> None:
    """Ping leads to a pong 3 later, pong to a ping 2 earlier, while below 6: one tick in two steps."""
    serve = tg.stream("Serve", "t bigint", progress="t")
    ping = tg.result("Ping", "t bigint", progress="t")
    pong = tg.result("Pong", "t bigint", progress="t")
    program = tg.program(
        tg.query(ping, serve),
        tg.query(ping, pong.where(pong.t < 6).select(t=pong.t - 2)),
        tg.query(pong, ping.select(t=ping.t + 3)),
    )
    recursion = program.facts.recursions["Ping"]
    assert (recursion.rank.scale, recursion.rank.step) == (2, 1)
    with testing.drive(program) as run:
        run.add("Serve", [(1,)])
        run.advance("Serve", t=2)
        run.step()
        run.expect(Ping=[(1,), (2,), (3,)], Pong=[(4,), (5,)])  # what comes from a pong is final up to 5 - 2
        run.finish()
        run.step()
        run.expect(Ping=[], Pong=[(6,)])


def test_a_recursion_that_goes_on_when_all_inputs_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """With finite progress the clock ticks as far as that; without end it would for ever, and the batch fails."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.ENDLESS", 50)
    start = tg.stream("Start", "t bigint", progress="t")
    ticks = tg.result("Ticks", "t bigint", progress="t")
    program = tg.program(tg.query(ticks, start), tg.query(ticks, ticks.select(t=ticks.t + 1)))
    with testing.drive(program) as run:
        run.add("Start", [(1,)])
        run.advance("Start", t=100)
        run.step()
        assert [row["t"] for row in run.new("Ticks")] == list(range(1, 102))
        run.finish()
        with pytest.raises(QueryError, match="TG415 Ticks: the recursion does not end"):
            run.step()


def doubling(*, distinct: bool) -> Program:
    """Each row leads to one a tick later and one two ticks later, of which there are as many as ways to get there."""
    start = tg.stream("Start", "t bigint", progress="t")
    r = tg.result("R", "t bigint", progress="t")
    later = r.select(t=r.t + 1).union(r.select(t=r.t + 2))
    return tg.program(tg.query(r, start), tg.query(r, later.distinct() if distinct else later))


@pytest.mark.parametrize("ends", [True, False])
def test_a_recursion_that_multiplies_its_rows_is_stopped(monkeypatch: pytest.MonkeyPatch, *, ends: bool) -> None:
    """1, 1, 2, 3, 5, ...: refused with the first 1,596 rows of these, where 1,000 are many."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.MANY_ROWS", 1_000)
    with testing.drive(doubling(distinct=False)) as run:
        run.add("Start", [(0,)])
        run.finish() if ends else run.advance("Start", t=200)
        with pytest.raises(
            QueryError, match=r"TG442 R: the recursion multiplies its rows(.|\n)*found 1,596 in 15 steps"
        ):
            run.step()
        assert not run.new("R")


@pytest.mark.parametrize("drive", ENGINES[:3], indirect=True)
def test_a_recursion_of_many_steps_says_how_far_it_is(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    """One row far ahead moves progress, and the chain goes on tick by tick."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.TOLD_STEPS", 2)
    start = tg.stream("Start", "t bigint", progress="t")
    r = tg.result("R", "t bigint", progress="t")
    program = tg.program(tg.query(r, start), tg.query(r, r.select(t=r.t + 1).distinct()))
    with drive(program) as run:
        run.add("Start", [(5,)])
        run.advance("Start", t=30)
        with pytest.warns(tg.RunWarning) as told:
            run.step()
        said = [str(one.message) for one in told if "TG445" in str(one.message)]
        assert [text.splitlines()[0] for text in said] == [
            f"TG445 R: the recursion has taken {steps} steps in this batch, and goes on" for steps in (2, 20)
        ]
        assert "R.t has come to 6, and the batch goes on to 30" in said[0]
        assert "R.t has come to 24, and the batch goes on to 30" in said[1]
        assert len(run.new("R")) == 27
        run.advance("Start", t=32)
        run.step()  # of few steps nothing is said
        assert len(run.new("R")) == 2


def chain() -> tg.Program:
    """Each row leads to one a tick later, and results of their own are counted of them."""
    start = tg.stream("Start", "t bigint", progress="t")
    r = tg.result("R", "t bigint", progress="t")
    counted = r.group_by(end=tg.ceil(r.t, 10)).agg(n=tg.count())
    return tg.program(tg.query(r, start), tg.query(r, r.select(t=r.t + 1).distinct()), Counted=counted)


def test_a_batch_ends_with_so_many_steps_and_the_next_goes_on(monkeypatch: pytest.MonkeyPatch) -> None:
    """One row far ahead moves progress beyond what could ever be evaluated in one batch."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.MOST_STEPS", 10)
    with testing.drive(chain()) as run:
        run.add("Start", [(5,)])
        run.advance("Start", t=10**13)
        for reached in (14, 24, 34):
            with pytest.warns(tg.RunWarning) as told:
                run.step()
            (said,) = [str(one.message) for one in told if "TG445" in str(one.message)]
            assert said.startswith("TG445 R: the recursion has taken 10 steps in this batch, and goes on in the next")
            assert f"R.t has come to {reached}, and later batches go on to 10000000000000" in said
            assert len(run.new("R")) == 10
        assert sorted((row["end"], row["n"]) for row in run.results("Counted")) == [(10, 6), (20, 10), (30, 10)]


@pytest.mark.parametrize("drive", ENGINES[1:3], indirect=True)
def test_on_spark_batches_follow_until_no_step_is_left(drive: Drive, monkeypatch: pytest.MonkeyPatch) -> None:
    """A step of the test waits until Spark finds nothing to do. Each batch but the last says how far it has come."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.MOST_STEPS", 3)
    with drive(chain()) as run:
        run.add("Start", [(5,)])
        run.advance("Start", t=11)
        with pytest.warns(tg.RunWarning) as told:
            run.step()
        said = [str(one.message) for one in told if "TG445" in str(one.message)]
        reached = [re.findall(r"R\.t has come to (\d+), and later batches go on to 11", text) for text in said]
        assert reached == [["7"], ["10"]]
        assert sorted(row["t"] for row in run.results("R")) == list(range(5, 13))
        assert [(row["end"], row["n"]) for row in run.results("Counted")] == [(10, 6)]


@pytest.mark.filterwarnings("ignore:TG445")
def test_whoever_processes_what_is_there_waits_for_the_last_step(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As before there was a limit; and a session that begins with a checkpoint knows that something is left."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.MOST_STEPS", 10)
    with chain().session(checkpoint=tmp_path) as session:
        session.push("Start", [(5,)])
        session.advance("Start", {"t": 40})
        report = session.step()
        assert sum(report.results.values()) == 11
        assert [session.due] == [True]
        assert "a batch takes so many steps of a recursion, and the next one goes on" in str(session.why("R"))
    with chain().session(checkpoint=tmp_path) as session:
        assert [session.due] == [True]
        assert [sum(report.results.values()) for report in session.process()] == [11, 11, 8]
        assert [session.due] == [False]
        assert len(session.results("R")) == 37  # from 5 on, and one that follows on that at 40
        session.push("Start", [])
        assert [sum(report.results.values()) for report in session.process()] == [0]


def test_a_recursion_of_ended_inputs_takes_all_its_steps_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """There may be no next batch."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.MOST_STEPS", 3)
    start = tg.stream("Start", "t bigint", progress="t")
    r = tg.result("R", "t bigint", progress="t")
    program = tg.program(tg.query(r, start), tg.query(r, r.where(r.t < 30).select(t=r.t + 1).distinct()))
    with program.session() as session:
        session.push("Start", [(5,)])
        session.finish()
        session.step()
        assert len(session.results("R")) == 26
        assert [session.due] == [False]


def test_a_recursion_with_two_promised_instants_takes_all_its_steps_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of rows below a rank some would be beyond what is final then."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.MOST_STEPS", 3)
    start = tg.stream("Start", "t bigint, u bigint", progress=("t", "u"))
    r = tg.result("R", "t bigint, u bigint", progress=("t", "u"))
    program = tg.program(tg.query(r, start), tg.query(r, r.where(r.t < 30).select(t=r.t + 1, u=r.u + 1)))
    with program.session() as session:
        session.push("Start", [(5, 7)])
        session.advance("Start", {"t": 100, "u": 100})
        session.step()
        assert len(session.results("R")) == 26
        assert [session.due] == [False]


def test_a_recursion_that_multiplies_in_every_other_step_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows with k = 1 are twice as many 2 ticks later; the one with k = 0 at every tick makes a stratum between."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.MANY_ROWS", 1_000)
    start = tg.stream("Start", "t bigint, k bigint", progress="t")
    r = tg.result("R", "t bigint, k bigint", progress="t")
    one = r.where(r.k == 0).select(r.k, t=r.t + 1)
    two = r.where(r.k == 1).select(r.k, t=r.t + 2)
    with testing.drive(tg.program(tg.query(r, start), tg.query(r, one), tg.query(r, two.union(two)))) as run:
        run.add("Start", [(0, 0), (1, 1)])
        run.advance("Start", t=34)
        with pytest.raises(QueryError, match=r"TG442(.|\n)*began with 2 rows and has found 8,217 in 26 steps"):
            run.step()


def test_a_recursion_that_has_multiplied_and_stays_as_large_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """1, 2, 4, ... 4,096 rows in 13 steps, and as many in each of 8 steps more."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.MANY_ROWS", 10_000)
    start = tg.stream("Start", "t bigint", progress="t")
    r = tg.result("R", "t bigint", progress="t")
    again = r.where(r.t < 20).select(t=r.t + 1)
    doubled = again.where(again.t <= 12)
    with testing.drive(tg.program(tg.query(r, start), tg.query(r, again), tg.query(r, doubled))) as run:
        run.add("Start", [(0,)])
        run.finish()
        run.step()
        assert len(run.new("R")) == 2**13 - 1 + 8 * 2**12


def test_what_a_recursion_may_find_grows_with_its_steps_and_the_rows_that_came(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 20 rows each leads to one for 100 steps; of equal ones one counts, so that nothing multiplies."""
    monkeypatch.setattr("tidegate.runtime.batch.increments.MANY_ROWS", 100)
    monkeypatch.setattr("tidegate.runtime.batch.increments.ROWS_PER_STEP", 2)
    start = tg.stream("Start", "t bigint, k bigint", progress="t")
    r = tg.result("R", "t bigint, k bigint", progress="t")
    chains = tg.program(tg.query(r, start), tg.query(r, r.where(r.t < 100).select(r.k, t=r.t + 1)))
    with testing.drive(chains) as run:
        run.add("Start", [(0, k) for k in range(20)])
        run.finish()
        run.step()
        assert len(run.new("R")) == 20 * 101
    with testing.drive(doubling(distinct=True)) as run:
        run.add("Start", [(0,)])
        run.advance("Start", t=60)
        run.step()
        assert len(run.new("R")) == 62


def test_a_recursion_whose_rows_multiply_for_some_steps_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.runtime.batch.increments.MANY_ROWS", 10)
    monkeypatch.setattr("tidegate.runtime.batch.increments.ROWS_PER_STEP", 1)
    start = tg.stream("Start", "t bigint, n bigint", progress="t")
    r = tg.result("R", "t bigint, n bigint", progress="t")
    again = r.where(r.n < 8).select(t=r.t + 1, n=r.n + 1)
    with testing.drive(tg.program(tg.query(r, start), tg.query(r, again.union(again)))) as run:
        run.add("Start", [(0, 0)])
        run.finish()
        run.step()
        assert len(run.new("R")) == 2**9 - 1


def test_a_table_can_begin_a_recursion() -> None:
    """A table says when to look first; each look is followed by one 5 minutes later if an event comes between."""
    begin = tg.table("Begin", "t timestamp not null")
    events = tg.stream("Events", "t timestamp", progress="t")
    looks = tg.result("Looks", "t timestamp", progress="t")
    e, look = events.as_("e"), looks.as_("look")
    again = look.semi_join(e, look.t < e.t, e.t < look.t + minutes(5)).select(t=look.t + minutes(5))
    program = tg.program(tg.query(looks, begin), tg.query(looks, again))

    def at(minute: int) -> tuple[dt.datetime]:
        return (dt.datetime(2026, 3, 2, 12, minute, tzinfo=dt.UTC),)

    with testing.drive(program, statics={"Begin": [at(0), at(30)]}) as run:
        run.add("Events", [at(3), at(9), at(14), at(15)])
        run.advance("Events", t=at(8)[0])
        run.step()
        run.expect(Looks=[at(0), at(30), at(5)])
        run.finish()
        run.step()
        run.expect(Looks=[at(10), at(15)])


def ledger_doubling(*, above: int | None = None) -> Program:
    """Totals: what one tick has is added at each of the two events of the next, which doubles it."""
    ledger = tg.stream("Ledger", "t bigint, amount bigint, first boolean", progress="t")
    totals = tg.result("Totals", "t bigint, total bigint", progress="t")
    e, r = ledger.as_("e"), totals.as_("r")
    summed = r.join(e, e.t == r.t + 1).group_by(t=e.t).agg(total=tg.sum(r.total))
    carried = summed if above is None else summed.where(summed.total > above)
    begun = ledger.where(ledger.first).select(t=ledger.t, total=ledger.amount)
    counts = ledger.group_by(end=tg.tumbling(ledger.t, 10)).agg(n=tg.count())
    return tg.program(tg.query(totals, begun), tg.query(totals, carried), Counts=counts)


@pytest.mark.parametrize(
    ("cuts", "above"), [((), None), ((1, 2, 3, 4, 5), None), ((), 0), ((3,), 0)], ids=["once", "each", "all", "cut"]
)
@pytest.mark.parametrize("drive", ENGINES[:1], indirect=True)
def test_a_sum_of_a_recursion_that_does_not_fit_is_null_and_counted_once(
    drive: Drive, cuts: tuple[int, ...], above: int | None
) -> None:
    """2^61 becomes 2^62, and then is beyond bigint: NULL, as are the sums over it. The other query goes on."""
    rows = [(0, 2**61, True), *((t, 0, False) for t in range(1, 6) for _ in "ab")]
    nulls = [] if above is not None else [(t, None) for t in (2, 3, 4, 5)]
    with drive(ledger_doubling(above=above)) as run:
        for low, high in pairwise((0, *cuts, 6)):
            run.add("Ledger", [row for row in rows if low <= row[0] < high])
            run.advance("Ledger", t=high - 1)
            run.step()
        run.finish()
        run.step()
        assert sorted(tuple(row.values()) for row in run.results("Totals")) == [(0, 2**61), (1, 2**62), *nulls]
        assert sorted(tuple(row.values()) for row in run.results("Counts")) == [(10, 11)]
        assert counted(run) == {"overflow": 1}


def counted(run: testing.Drive) -> dict[str, int]:
    """How many rows were set aside, by reason."""
    return dict(sum((Counter(reasons) for one in run.reports for reasons in one.set_aside.values()), Counter()))


@pytest.mark.parametrize("drive", [ENGINES[0], ENGINES[2]], indirect=True)
def test_a_sum_counts_in_the_stratum_in_which_it_passes(drive: Drive) -> None:
    """Each tick has the sum of the three before it. At 3 that is 2^63 until the row of 2 is there; at 6 it is too much
    before the row of 5 is there, and with it.
    """
    ledger = tg.stream("Ledger", "t bigint, amount bigint, first boolean", progress="t")
    totals = tg.result("Totals", "t bigint, total bigint", progress="t")
    e, r = ledger.where(~ledger.first).as_("e"), totals.as_("r")
    summed = r.join(e, r.t < e.t, e.t <= r.t + 3).group_by(t=e.t).agg(total=tg.sum(r.total))
    begun = ledger.where(ledger.first).select(t=ledger.t, total=ledger.amount)
    with drive(tg.program(tg.query(totals, begun), tg.query(totals, summed))) as run:
        run.add("Ledger", [(0, 2**62, True), (2, -(2**62), True), *((t, 0, False) for t in (1, 3, 4, 5, 6))])
        run.finish()
        run.step()
        found = sorted(tuple(row.values()) for row in run.results("Totals"))
        assert found == [*((t, -(2**62) if t == 2 else 2**62) for t in range(6)), (6, None)]
        assert counted(run) == {"overflow": 1}


def test_a_note_of_an_attempt_that_failed_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """The batch fails after its strata, and has another row when it runs again."""
    from tidegate.runtime.engines.embedded.steps.result_rows import ResultRows

    settle, failing = ResultRows.settle, [True]

    def fails_once(self: ResultRows, *given: Any) -> Any:
        if failing:
            failing.clear()
            raise MemoryError
        return settle(self, *given)

    monkeypatch.setattr(ResultRows, "settle", fails_once)
    with ledger_doubling().session() as session:
        session.push("Ledger", [(0, 2**62, True), (1, 0, False), (1, 0, False)])
        session.advance("Ledger", {"t": 5})
        with pytest.raises(tg.TidegateError, match="TG510"):
            session.step()
        session.push("Ledger", [(0, -(2**62), True)])
        report = session.step()
        assert [(row["t"], row["total"]) for row in session.results("Totals")] == [(0, 2**62), (0, -(2**62)), (1, 0)]
        assert not report.set_aside


def test_of_a_recursion_a_sum_that_does_not_fit_fails_if_asked_for() -> None:
    rows = [(0, 2**62, True), (1, 0, False), (1, 0, False)]
    inputs = {"Ledger": rows}
    with pytest.raises(QueryError, match=r"(?s)TG301 total: the sum is out of range.*query      Totals\.2"):
        ledger_doubling().run(inputs, on_error="fail")
    assert ledger_doubling().run(inputs).rows("Totals")[1:] == [{"t": 1, "total": None}]


@pytest.mark.parametrize("drive", ENGINES[:3], indirect=True)
def test_of_a_reader_of_a_recursion_rows_without_a_value_are_set_aside(drive: Drive) -> None:
    """Of k = 2, 1, 0 at ticks 0, 1, 2 the last has no quotient. The other reader has all three."""
    start = tg.stream("Start", "t bigint, k bigint", progress="t")
    r = tg.result("R", "t bigint, k bigint", progress="t")
    again = r.where(r.k > 0).select(t=r.t + 1, k=r.k - 1)
    program = tg.program(tg.query(r, start), tg.query(r, again), Q=r.select("t", x=r.t / r.k), P=r.select("t"))
    with drive(program) as run:
        run.add("Start", [(0, 2), (5, 0)])
        run.finish()
        run.step()
        run.expect(R=[(0, 2), (1, 1), (2, 0), (5, 0)], Q=[(0, 0.0), (1, 1.0)], P=[(0,), (1,), (2,), (5,)])
        assert counted(run) == {"unevaluable": 2}


def divided_chain() -> Program:
    """Each row leads to one of 2 div k - 1 a tick later. Of k = 2 that is 0, which leads nowhere; of 1 it is 1."""
    start = tg.stream("Start", "t bigint, k bigint", progress="t")
    r = tg.result("R", "t bigint, k bigint", progress="t")
    again = r.where(r.t < 5).select(t=r.t + 1, k=tg.lit(2).div(r.k) - 1)
    counts = start.group_by(end=tg.tumbling(start.t, 10)).agg(n=tg.count())
    return tg.program(tg.query(r, start), tg.query(r, again), Counts=counts)


@pytest.mark.parametrize("drive", ENGINES[:3], indirect=True)
def test_a_row_of_a_recursion_that_leads_to_no_value_leaves_it(drive: Drive) -> None:
    """The chain ends that the row belongs to. Another one, the other query and later batches go on."""
    with drive(divided_chain()) as run:
        run.add("Start", [(0, 2)])
        run.advance("Start", t=2)
        run.step()
        run.expect(R=[(0, 2), (1, 0)], Counts=[])
        run.restart()
        run.add("Start", [(3, 1)])
        run.finish()
        run.step()
        run.expect(R=[(3, 1), (4, 1), (5, 1)], Counts=[(10, 2)])
        assert counted(run) == {"unevaluable": 1}


@pytest.mark.parametrize("each", [False, True], ids=["once", "each"])
@pytest.mark.parametrize("drive", ENGINES[:3], indirect=True)
def test_a_pair_of_a_recursion_without_a_value_leaves_it_once(drive: Drive, *, each: bool) -> None:
    """2 * 2^62 is beyond bigint. What 1 leads to is doubled at each tick, and the other query has all rows."""
    ledger = tg.stream("Ledger", "t bigint, amount bigint, first boolean", progress="t")
    totals = tg.result("Totals", "t bigint, total bigint", progress="t")
    e, r = ledger.as_("e"), totals.as_("r")
    begun = ledger.where(ledger.first).select(t=ledger.t, total=ledger.amount)
    doubled = r.join(e, e.t == r.t + 1).select(t=e.t, total=r.total + r.total)
    counts = ledger.group_by(end=tg.tumbling(ledger.t, 10)).agg(n=tg.count())
    program = tg.program(tg.query(totals, begun), tg.query(totals, doubled), Counts=counts)
    rows = [(0, 2**62, True), (0, 1, True), (1, 0, False), (2, 0, False), (3, 0, False)]
    with drive(program) as run:
        for ticks in ((0,), (1,), (2, 3)) if each else ((0, 1, 2, 3),):
            run.add("Ledger", [row for row in rows if row[0] in ticks])
            run.advance("Ledger", t=ticks[-1])
            run.step()
            run.restart()
        run.finish()
        run.step()
        assert sorted(tuple(row.values()) for row in run.results("Totals")) == [
            (0, 1), (0, 2**62), (1, 2), (2, 4), (3, 8)
        ]  # fmt: skip
        assert run.results("Counts") == [{"end": 10, "n": 5}]
        assert counted(run) == {"unevaluable": 1}


@pytest.mark.parametrize("drive", ENGINES[:3], indirect=True)
def test_under_negation_a_row_of_a_recursion_leaves_where_it_is_not_known_to_be_alone(drive: Drive) -> None:
    """Of (0, 0) the quotient is unknown, so that 1 and 2 leave. 3 is alone, and 4 is not."""
    events = tg.stream("Events", "t bigint, k bigint", progress="t")
    rounds = tg.result("Rounds", "t bigint, k bigint", progress="t")
    e, r = events.as_("e"), rounds.as_("r")
    begin = e.anti_join(r, r.t < e.t, e.t <= r.t + 2, tg.lit(6).div(r.k) > 1).select(t=e.t, k=e.k)
    with drive(tg.program(tg.query(rounds, begin))) as run:
        run.add("Events", [(0, 0), (1, 3), (2, 3), (3, 3), (4, 5)])
        run.advance("Events", t=1)
        run.step()
        run.expect(Rounds=[(0, 0)])
        run.restart()
        run.finish()
        run.step()
        run.expect(Rounds=[(3, 3)])
        assert counted(run) == {"unevaluable": 2}


@pytest.mark.parametrize("drive", ENGINES[:3], indirect=True)
def test_what_only_earlier_strata_take_for_a_row_is_not_set_aside(drive: Drive) -> None:
    """As long as the round that begins at 0 is not known, 1 seems to begin one, of which there is no quotient."""
    events = tg.stream("Events", "t bigint, k bigint", progress="t")
    rounds = tg.result("Rounds", "t bigint, k bigint", progress="t")
    e, r = events.as_("e"), rounds.as_("r")
    begin = e.anti_join(r, r.t < e.t, e.t <= r.t + 2).select(t=e.t, k=tg.lit(6).div(e.k))
    with drive(tg.program(tg.query(rounds, begin))) as run:
        run.add("Events", [(0, 1), (1, 0), (5, 0), (5, 0)])
        run.finish()
        run.step()
        run.expect(Rounds=[(0, 6)])
        assert counted(run) == {"unevaluable": 2}


def test_a_row_of_a_recursion_without_the_instant_that_ranks_it_is_counted_in_each_batch_that_looks_at_it() -> None:
    """The next instant is by the row's own duration later. One of them is beyond all instants."""
    start = tg.stream("Start", "t timestamp, d duration", progress="t")
    r = tg.result("R", "t timestamp, d duration", progress="t")
    e, w = start.as_("e"), r.as_("w")
    later = w.join(e, e.t == w.t + minutes(1)).with_(u=e.t + w.d)
    again = later.where(later.u.is_not_null(), later.u > e.t).select(t=later.u, d=e.d)

    def at(minute: int) -> dt.datetime:
        return dt.datetime(2026, 3, 2, 12, minute, tzinfo=dt.UTC)

    most = dt.timedelta(microseconds=2**63 - 1)
    rows = [(at(0), dt.timedelta(minutes=1)), (at(1), most), (at(2), dt.timedelta(minutes=3))]
    with testing.drive(tg.program(tg.query(r, start), tg.query(r, again))) as run:
        run.add("Start", rows)
        for minute in (1, 2, 3):
            run.advance("Start", t=at(minute))
            run.step()
        run.finish()
        run.step()
        assert sorted(row["t"].minute for row in run.results("R")) == [0, 1, 2, 2]
        assert all(set(some) == {"unevaluable"} for report in run.reports for some in report.set_aside.values())
        assert 1 <= counted(run)["unevaluable"] <= len(run.reports)


@pytest.mark.parametrize("on_error", ["fail", {"R": "fail"}])
def test_a_recursion_that_is_to_fail_does(on_error: Literal["fail"] | dict[str, Literal["fail"]]) -> None:
    with pytest.raises(QueryError, match="TG302"):
        divided_chain().run({"Start": [(0, 2)]}, on_error=on_error)
