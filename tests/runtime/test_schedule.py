"""Schedules: which queries a batch evaluates, what is told of those that wait, and that nothing is lost meanwhile."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tidegate import testing
from tidegate.algebra.time import INF
from tidegate.analysis.state.bounds import Bounded
from tidegate.runtime.batch import scheduler
from tidegate.runtime.batch.loop import APART
from tidegate.runtime.inspect.live_state import state_use
from tidegate.runtime.inspect.metrics.hooks import Metrics
from tidegate.runtime.state.failpoints import disk_full

NOON = "2026-03-02T12:00Z"
events = tg.stream("E", "k bigint, t bigint", progress="t")
others = tg.stream("O", "k bigint, t bigint", progress="t")


def chain() -> tg.Program:
    """Low reads E, High reads Low; Alone reads E as well."""
    e = events.as_("e")
    low = tg.result_of("Low", e.where(e.k > 0).select(k=e.k, t=e.t))
    l_ = low.as_("l")
    return tg.program(High=l_.where(l_.k > 1).select(k=l_.k, t=l_.t), Alone=e.select(k=e.k, t=e.t))


def beat(run: testing.Drive, t: int) -> dict[str, Any]:
    """One batch with a row at t; how far each result is then."""
    run.add("E", [(2, t)])
    run.advance("E", t=t)
    run.step()
    return {name: p["t"] for name, p in run.progress.items()}


def test_every_so_many_batches() -> None:
    with testing.drive(chain(), schedule=tg.schedule(every={"Low": 3})) as run:
        reached = [beat(run, t) for t in range(1, 8)]
        assert [one["Low"] for one in reached] == [-INF, -INF, 3, 3, 3, 6, 6]
        assert [one["High"] for one in reached] == [-INF, -INF, 3, 3, 3, 6, 6]
        assert [one["Alone"] for one in reached] == [1, 2, 3, 4, 5, 6, 7]
        assert run.reports[-1].waiting == {"Low": "every 3 batches, next at batch 9"}
        assert [row["t"] for row in run.results("High")] == list(range(1, 7))


def test_every_so_much_of_the_clock() -> None:
    with testing.drive(chain(), clock=NOON, schedule=tg.schedule(every={"Alone": "10s"})) as run:
        reached = []
        for t, seconds in enumerate((0, 9, 1, 4, 5, 1, 30, 0), 1):
            run.wait(f"{seconds}s")
            reached.append(beat(run, t)["Alone"])
        assert reached == [-INF, -INF, 3, 3, 3, 6, 7, 7]
        assert run.reports[-1].waiting == {"Alone": "every 10s, next when the clock is at 2026-03-02T12:01:00Z"}


@pytest.mark.parametrize("every", [3, "3s", dt.timedelta(seconds=3)])
def test_a_restart_and_a_batch_that_fails_change_no_turn(every: Any) -> None:
    with testing.drive(chain(), clock=NOON, schedule=tg.schedule(every={"Low": every})) as run:
        reached = []
        for t in range(1, 8):
            run.wait("1s" if t > 1 else "0s")
            if t in (2, 5):
                run.restart()
            if t in (3, 4, 6):
                run.kill("commit-before-manifest" if t != 4 else "commit-after-manifest")
            reached.append(beat(run, t)["Low"])
    # Of the clock the first turn is 3 s after the first batch.
    assert reached == ([-INF, -INF, 3, 3, 3, 6, 6] if every == 3 else [-INF, -INF, -INF, 4, 4, 4, 7])


def test_a_batch_that_fails_in_the_process_changes_no_turn() -> None:
    reached = []
    with chain().session(schedule=tg.schedule(every={"Low": 2})) as session:
        for t in range(1, 5):
            session.push("E", [(2, t)])
            session.advance("E", {"t": t})
            session._store.failpoints.arm("commit-before-positions", disk_full)
            with pytest.raises(OSError, match="No space left"):
                session.step()
            session.discard()
            session.push("E", [(2, t)])
            session.advance("E", {"t": t})
            session.step()
            reached.append(session.progress["Low"]["t"])
    assert reached == [-INF, 2, 2, 4]


def test_another_schedule_goes_on_from_the_last_turns(tmp_path: Path) -> None:
    def reached(first: int, last: int, schedule: tg.Schedule | None) -> list[Any]:
        with testing.drive(chain(), directory=tmp_path, schedule=schedule) as run:
            return [beat(run, t)["Low"] for t in range(first, last)]

    assert reached(1, 4, tg.schedule(every={"Low": 2})) == [-INF, 2, 2]
    assert reached(4, 8, tg.schedule(every={"Low": 5})) == [2, 2, 2, 7]
    assert reached(8, 10, None) == [8, 9]
    assert reached(10, 14, tg.schedule(every={"Low": 3})) == [9, 9, 12, 12]


def test_where_inputs_have_ended_everything_is_evaluated() -> None:
    with testing.drive(chain(), schedule=tg.schedule(every={"Low": 100, "High": 70, "Alone": "1d"})) as run:
        for t in range(1, 4):
            beat(run, t)
        assert run.results("High") == []
        run.finish()
        run.step()
        assert [len(run.results(name)) for name in ("Low", "High", "Alone")] == [3, 3, 3]
        assert run.reports[-1].waiting == {}
        assert sum(run.live_rows.values()) == 0


def test_a_query_whose_own_inputs_have_ended_does_not_wait_for_others() -> None:
    e, o = events.as_("e"), others.as_("o")
    program = tg.program(One=e.select(t=e.t), Two=o.select(t=o.t))
    with testing.drive(program, schedule=tg.schedule(every={"One": 9, "Two": 9})) as run:
        run.add("E", [(1, 1)])
        run.add("O", [(1, 1)])
        run.advance("O", t=1)
        run.finish("E")
        run.step()
        assert (len(run.results("One")), len(run.results("Two"))) == (1, 0)


def test_static_results_are_complete_at_once() -> None:
    e, table = events.as_("e"), tg.table("N", "k bigint").as_("n")
    program = tg.program(Fixed=table.select(k=table.k), Moving=e.select(t=e.t))
    for budget in (None, "1us"):
        schedule = tg.schedule(every={"Fixed": 5}, budget=budget)
        with testing.drive(program, statics={"N": [(1,), (2,)]}, schedule=schedule) as run:
            run.step()
            run.step()
            assert len(run.results("Fixed")) == 2


def test_run_over_complete_inputs_is_complete() -> None:
    rows = [(2, t) for t in range(5)]
    schedule = tg.schedule(every={"Low": 10}, budget="1us")
    assert len(chain().run({"E": rows}, schedule=schedule).rows("High")) == 5


# --- budget -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> None:
    """A timer on which a second goes by whenever it is read."""
    now = iter(range(10**9))
    monkeypatch.setattr(scheduler, "monotonic", lambda: float(next(now)))


def several(*names: str) -> tg.Program:
    e = events.as_("e")
    return tg.program(**{name: e.where(e.k > i).select(t=e.t) for i, name in enumerate(names)})


def served(run: testing.Drive, batches: int) -> list[set[str]]:
    """The results that moved in each of these batches."""
    found = []
    for t in range(1, batches + 1):
        before = run.progress
        beat(run, t)
        found.append({name for name, p in run.progress.items() if p != before[name]})
    return found


@pytest.mark.usefixtures("slow")
def test_a_budget_lets_at_least_one_query_move_and_none_starve() -> None:
    with testing.drive(several("A", "B", "C"), schedule=tg.schedule(budget="1s")) as run:
        assert served(run, 6) == [{"A"}, {"B"}, {"C"}, {"A"}, {"B"}, {"C"}]
        assert run.reports[1].waiting == {
            "A": "put off once by the budget of 1s a batch",
            "C": "put off 2 times in a row by the budget of 1s a batch",
        }


@pytest.mark.usefixtures("slow")
def test_priority_decides_who_comes_first_and_waiting_outgrows_it() -> None:
    with testing.drive(several("A", "B", "C"), schedule=tg.schedule(priority={"C": 3}, budget="1s")) as run:
        found = served(run, 12)
    assert found[:3] == [{"C"}] * 3
    assert {"A"} in found
    assert {"B"} in found
    assert found.count({"C"}) > found.count({"A"})


@pytest.mark.usefixtures("slow")
def test_what_waits_goes_on_waiting_after_a_restart() -> None:
    with testing.drive(several("A", "B", "C"), schedule=tg.schedule(budget="1s")) as run:
        found = []
        for t in range(1, 7):
            before = run.progress
            beat(run, t)
            found.append({name for name, p in run.progress.items() if p != before[name]})
            run.restart()
        assert found == [{"A"}, {"B"}, {"C"}, {"A"}, {"B"}, {"C"}]


@pytest.mark.usefixtures("slow")
def test_what_an_urgent_query_reads_is_urgent() -> None:
    with testing.drive(chain(), schedule=tg.schedule(priority={"High": 9}, budget="2s")) as run:
        assert served(run, 2) == [{"Low", "High"}, {"Low", "High"}]


@pytest.mark.usefixtures("slow")
def test_queries_of_a_chain_both_move_in_the_smallest_budget() -> None:
    with testing.drive(chain(), schedule=tg.schedule(budget="1s")) as run:
        assert set[str]().union(*served(run, 8)[2:]) == {"Low", "High", "Alone"}


def test_a_budget_that_suffices_puts_nothing_off() -> None:
    with testing.drive(chain(), schedule=tg.schedule(budget="1h")) as run:
        assert served(run, 2) == [{"Low", "High", "Alone"}] * 2
        assert run.reports[-1].waiting == {}


@pytest.mark.usefixtures("slow")
def test_a_budget_does_not_hold_up_the_end() -> None:
    with testing.drive(chain(), schedule=tg.schedule(budget="1s")) as run:
        beat(run, 1)
        run.finish()
        run.step()
        assert [len(run.results(name)) for name in ("Low", "High", "Alone")] == [1, 1, 1]


# --- recursion --------------------------------------------------------------------------------------------------------


def recursive() -> tg.Program:
    """Every event starts a run of three beats, a tick apart."""
    beats = tg.result("Beats", "k bigint, t bigint", progress="t")
    e, b = events.as_("e"), beats.as_("b")
    first = e.select(k=e.k, t=e.t)
    again = b.where(b.k > 0).select(k=b.k - 1, t=b.t + 1)
    return tg.program(tg.query(beats, first), tg.query(beats, again))


@pytest.mark.parametrize("schedule", [tg.schedule(every={"Beats": 3}), tg.schedule(budget="1us")])
def test_a_recursive_component_waits_as_a_whole(schedule: tg.Schedule) -> None:
    with testing.drive(recursive(), schedule=schedule) as run:
        for t in (1, 2, 3, 4):
            run.add("E", [(2, 10 * t)])
            run.advance("E", t=10 * t)
            run.step()
            # A step of the recursion leads one tick on.
            first, again = (p["t"] for p in run.progress.values())
            assert again in (first, first + 1)
        if schedule.budget is None:
            assert "the schedule: every 3 batches, next at batch 6" in str(run.why("Beats"))
        run.finish()
        run.step()
        assert len(run.results("Beats")) == 12


# --- inner queries ----------------------------------------------------------------------------------------------------


def in_order() -> tg.Program:
    """Two queries share an operator that goes through the rows in order; the third has rows as they come."""
    numbered = events.over(by="k", order="t", n=tg.row_number())
    return tg.program(
        Often=numbered.where(numbered.n > 1),
        Seldom=events.over(by="k", order="t", before=tg.lag(events.t)),
        Alone=events.where(events.k > 1),
    )


INNER = "Often~1"


def test_an_operator_goes_on_when_a_query_that_reads_it_is_due() -> None:
    schedule = tg.schedule(every={"Often": 2, "Seldom": 3})
    with testing.drive(in_order(), schedule=schedule) as run:
        reached = [beat(run, t) for t in range(1, 8)]
        assert [one[INNER] for one in reached] == [-INF, 2, 3, 4, 4, 6, 6]
        assert [one["Often"] for one in reached] == [-INF, 2, 2, 4, 4, 6, 6]
        assert [one["Seldom"] for one in reached] == [-INF, -INF, 3, 3, 3, 6, 6]
        assert [one["Alone"] for one in reached] == [1, 2, 3, 4, 5, 6, 7]
        assert [INNER in report.places for report in run.reports] == [False, True, True, True, False, True, False]
        waits = {
            name: f"every {many} batches, next at batch {at}" for name, many, at in (("Often", 2, 8), ("Seldom", 3, 9))
        }
        assert run.reports[-1].waiting == waits
        said = str(run.why("Seldom"))
        assert "the schedule: every 3 batches, next at batch 9" in said
        assert "the schedule: every 2 batches, next at batch 8; every 3 batches, next at batch 9" in said
        assert "~" not in said
        run.restart()
        assert beat(run, 8) == {INNER: 8, "Often": 8, "Seldom": 6, "Alone": 8}
        run.finish()
        run.step()
        assert [row["n"] for row in run.results("Often")] == list(range(2, 9))
        assert [row["before"] for row in run.results("Seldom")] == [None, *range(1, 8)]
        assert sum(run.live_rows.values()) == 0


def test_an_operator_that_one_query_reads_in_every_batch_goes_on_in_every_batch() -> None:
    with testing.drive(in_order(), schedule=tg.schedule(every={"Seldom": 5})) as run:
        reached = [beat(run, t) for t in range(1, 7)]
        assert [one[INNER] for one in reached] == [1, 2, 3, 4, 5, 6]
        assert [one["Seldom"] for one in reached] == [-INF, -INF, -INF, -INF, 5, 5]
        assert run.reports[0].waiting == {"Seldom": "every 5 batches, next at batch 5"}


def test_an_operator_below_others_waits_with_the_query() -> None:
    """Three of them, one on the result of another."""
    first = events.over(by="k", order="t", n=tg.row_number()).distinct_on("k", "n", order="t")
    program = tg.program(Q=first.over(order="t", tie="k", before=tg.lag(first.t)).where(first.k > 0))
    with testing.drive(program, schedule=tg.schedule(every={"Q": 3})) as run:
        assert len(beat(run, 1)) > 2, "inner queries"
        for t in range(2, 7):
            reached = {*beat(run, t).values()}
            assert reached == {3 * (t // 3) or -INF}
        run.finish()
        run.step()
        assert [row["before"] for row in run.results("Q")] == [None, *range(1, 6)]


# --- what is told -----------------------------------------------------------------------------------------------------


def test_why_names_the_schedule(tmp_path: Path) -> None:
    program, schedule = chain(), tg.schedule(every={"Low": 3})
    with testing.drive(program, directory=tmp_path, schedule=schedule) as run:
        for t in range(1, 6):
            beat(run, t)
        text = str(run.why("Low"))
        assert text.splitlines()[:3] == [
            "Low is final up to t = 3",
            "  held back by   the schedule: every 3 batches, next at batch 6",
            "  without it     final up to t = 5, 2 further",
        ]
        assert "the schedule" in str(run.why("High"))
        assert "the schedule" not in str(run.why("Alone"))
        assert "the schedule: every 3 batches, next at batch 6" in str(run.why("Low", t=5))
        assert "the schedule" not in str(run.why("Low", t=6))
        assert "is final, since" in str(run.why("Low", t=3))
        beat(run, 6)
        assert "the schedule" not in str(run.why("Low"))
        beat(run, 7)
    assert "the schedule: every 3 batches, next at batch 9" in str(program.why(tmp_path, "Low"))


def test_explain_shows_the_schedule() -> None:
    schedule = tg.schedule(every={"Low": 3, "Alone": "90s"}, priority={"High": 2}, budget="200ms")
    plan = chain().explain(schedule=schedule).plan
    assert "scheduled   every 3 batches, priority 2 in a budget of 200ms a batch" in plan
    assert "scheduled   every 1m 30s, priority 0 in a budget of 200ms a batch" in plan
    assert "scheduled" not in chain().explain().plan


def test_live_state_is_within_the_bound_of_a_query_that_lags() -> None:
    """One row a tick: what a turn in ten leaves is ten rows, where the bound without the schedule allows one."""
    e = events.as_("e")
    reports: list[Any] = []
    with tg.program(Some=e.where(e.k > 0).select(t=e.t)).session(
        schedule=tg.schedule(every={"Some": 10}), collect_garbage="exact", on_batch=reports.append
    ) as session:
        for t in range(1, 41):
            session.push("E", [(1, t)])
            session.advance("E", {"t": t})
            session.step()
        (use,) = state_use(session._plan, reports)
        assert use.span == INF  # until its first turn a query is behind by all there is
        (use,) = state_use(session._plan, reports[9:])
    assert isinstance(use.bound, Bounded)
    assert use.bound.span() < use.most == 9
    assert use.span == use.bound.span() + 9
    metrics = [Metrics.of(report).state[0] for report in reports]
    assert metrics[0].bound is None
    for one in metrics[10:]:
        assert one.extent is not None
        assert one.bound is not None
        assert one.extent <= one.bound
    assert max(one.extent or 0 for one in metrics[10:]) == 8


# --- what does not fit
# -----------------------------------------------------------------------------------------------------


def two_that_depend_on_each_other() -> tg.Program:
    one, two = (tg.result(name, "k bigint, t bigint", progress="t") for name in ("One", "Two"))
    e, a, b = events.as_("e"), one.as_("a"), two.as_("b")
    return tg.program(
        tg.query(one, e.select(k=e.k, t=e.t)),
        tg.query(one, b.select(k=b.k, t=b.t + 1)),
        tg.query(two, a.where(a.k > 0).select(k=a.k - 1, t=a.t + 1)),
    )


@pytest.mark.parametrize(
    ("make", "schedule", "message"),
    [
        (chain, lambda: tg.schedule(every={"Lo": 3}), "no result 'Lo'"),
        (chain, lambda: tg.schedule(priority={"E": 3}), "no result 'E'"),
        (chain, lambda: tg.schedule(every={"Low": 0}), "Low: every=0 is no cadence"),
        (chain, lambda: tg.schedule(every={"Low": True}), "Low: every=True is no cadence"),
        (chain, lambda: tg.schedule(every={"Low": 1.5}), "Low: every=1.5 is no cadence"),  # type: ignore[dict-item]
        (chain, lambda: tg.schedule(every={"Low": "0s"}), "Low: every='0s' is no time to wait"),
        (chain, lambda: tg.schedule(every={"Low": "often"}), "'often' is not a duration"),
        (chain, lambda: tg.schedule(priority={"Low": "high"}), "'high' is no priority"),  # type: ignore[dict-item]
        (chain, lambda: tg.schedule(budget="-1s"), "budget='-1s' is no time to wait"),
        (chain, lambda: tg.schedule(budget=200), "budget=200 is no time to wait"),  # type: ignore[arg-type]
        (chain, lambda: {"every": {"Low": 3}}, "is no schedule"),
        (two_that_depend_on_each_other, lambda: tg.schedule(every={"One": 3, "Two": 4}), "are evaluated together"),
    ],
)
def test_a_schedule_that_does_not_fit_is_refused(
    make: Callable[[], tg.Program], schedule: Callable[[], Any], message: str
) -> None:
    program = make()
    with pytest.raises(tg.QueryError, match=message) as raised:
        program.session(schedule=schedule())
    assert raised.value.code in ("TG401", "TG402", "TG104")
    with pytest.raises(tg.QueryError, match=message):
        program.explain(schedule=schedule())


def test_one_schedule_for_all_that_depend_on_each_other() -> None:
    with testing.drive(two_that_depend_on_each_other(), schedule=tg.schedule(every={"Two": 2})) as run:
        assert {name: p for name, p in beat(run, 1).items() if p != -INF} == {}
        assert -INF not in beat(run, 2).values()


def test_events_are_joined_as_they_are_read_where_no_result_lags() -> None:
    """And not in the batches after one in which slices of the input interleaved."""
    for schedule, plain in ((None, True), (tg.schedule(every={"Low": 3}), False)):
        with chain().session(schedule=schedule) as session:
            runner = session._runner
            assert runner._joining(1) is plain
            assert not session.step().interleaved
            runner.interleaved = 5
            assert runner._joining(5 + APART) is plain
            assert not runner._joining(5 + APART - 1)
