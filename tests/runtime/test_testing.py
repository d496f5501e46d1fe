"""The test kit, driven on both engines by the same tests."""

from __future__ import annotations

import pytest

import tidegate as tg
from tests.runtime.conftest import EITHER, Start
from tidegate import testing
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import INF

orders = tg.stream("Orders", "order_id bigint, ordered timestamp", progress="ordered")
payments = tg.stream("Payments", "order_id bigint, paid timestamp", progress="paid")


def unpaid() -> tg.Program:
    o, p = orders.as_("o"), payments.as_("p")
    return tg.program(
        Unpaid=o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(30))
    )


def at(minute: int) -> str:
    return f"2026-03-02T{12 + minute // 60}:{minute % 60:02}Z"


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_each_result_is_expected_once_when_it_appears(start: Start) -> None:
    with start(unpaid()) as run:
        run.add("Orders", [(1, at(0)), (2, at(5))])
        run.add("Payments", [(1, at(10))])
        run.advance("Orders", ordered=at(20))
        run.advance("Payments", paid=at(34))
        run.step()
        run.expect(Unpaid=[])
        (orders, payments) = run.state.buffers
        assert (orders.rows, payments.rows) == (run.live_rows["Orders#0"], run.live_rows["Payments#0"])
        assert orders.rows == 1
        assert [kept.query for kept in orders.kept] == ["Unpaid"]
        run.advance("Payments", paid=at(35))
        run.step()
        run.expect(Unpaid=[(2, at(5))])
        run.step()
        run.expect(Unpaid=[])
        assert len(run.results("Unpaid")) == 1
        # The payment's order is reported or gone, and what comes now is ordered too late for it.
        assert run.live_rows == {"Orders#0": 0, "Payments#0": 0}
        run.finish()
        run.step()
        assert run.progress == {"Unpaid": {"ordered": INF}}
        assert set(run.live_rows.values()) == {0}


@pytest.mark.parametrize("place", ["batch-after-intent", "commit-before-manifest", "commit-after-manifest"])
def test_a_step_that_is_killed_counts_once(start: Start, place: str) -> None:
    with start(unpaid()) as run:
        run.add("Orders", [(1, at(0)), (2, at(5))])
        run.step()
        run.restart()
        run.add("Payments", [(1, at(10))])
        run.finish()
        run.kill(place)
        run.step()
        run.expect(Unpaid=[(2, at(5))])
        assert {name: (c.rows_in, c.accepted) for name, c in run.counts.items()} == {
            "Orders": (2, 2),
            "Payments": (1, 1),
        }
        run.restart()
        run.step()
        run.expect(Unpaid=[])


@pytest.mark.parametrize("place", testing.PLACES_TO_DIE)
def test_every_place_to_die_is_reached_and_survived(place: str) -> None:
    with testing.drive(unpaid()) as run:
        for minute in range(0, 40, 10):
            run.add("Orders", [(minute, at(minute))])
            run.advance("Orders", ordered=at(minute))
            run.step()
        run.add("Orders", [(40, at(40))])
        run.advance("Payments", paid=at(45))  # some are reported, and the last one is kept
        run.kill(place)
        run.step()
        run.finish()
        run.step()
        run.expect(Unpaid=[(minute, at(minute)) for minute in range(0, 50, 10)])


@pytest.mark.parametrize("place", ["commit-before-manifest", "commit-after-manifest"])
def test_a_step_after_one_that_was_killed_reads_what_is_new_by_the_clock_too(start: Start, place: str) -> None:
    seen = tg.stream("Seen", "k bigint, received timestamp", progress="received")
    source = tg.source(None, arrival="received")
    with start(
        tg.program(Out=seen.select(k=seen.k, received=seen.received)), sources={"Seen": source}, clock=at(0)
    ) as run:
        run.add("Seen", [(1,)])
        run.kill(place)
        run.step()
        run.wait("1m")
        run.add("Seen", [(2,)])
        run.step()
        run.expect(Out=[(1, at(0)), (2, at(1))])
        assert len(run.reports) == (2 if place == "commit-before-manifest" else 1)


def test_a_program_of_static_tables_has_its_results_after_a_step(start: Start) -> None:
    ones = tg.table("Ones", "k bigint")
    with start(tg.program(Distinct=ones.distinct()), statics={"Ones": [(1,), (1,)]}) as run:
        run.step()
        run.expect(Distinct=[(1,)])
        run.step()
        run.expect(Distinct=[])


def test_a_kill_that_is_never_reached_does_not_wait_for_a_later_step(start: Start) -> None:
    with start(unpaid()) as run:
        run.add("Orders", [(1, at(0))])
        run.kill("commit-before-manifest", skip=1)
        with pytest.raises(AssertionError, match="never came to commit-before-manifest"):
            run.step()
        run.add("Orders", [(2, at(5))])
        run.finish()
        run.step()
        run.expect(Unpaid=[(1, at(0)), (2, at(5))])
        assert [report.counts["Orders"].rows_in for report in run.reports] == [1, 1]


def test_what_is_not_as_expected_is_told_as_a_difference() -> None:
    with testing.drive(unpaid()) as run:
        run.add("Orders", [(1, at(0)), (2, at(5))])
        run.finish()
        run.step()
        with pytest.raises(AssertionError) as caught:
            run.expect(Unpaid=[(1, at(0)), (3, at(5))])
    assert str(caught.value) == (
        "Unpaid lacks (order_id = 3, ordered = 2026-03-02T12:05:00Z) × 1\n"
        "Unpaid has (order_id = 2, ordered = 2026-03-02T12:05:00Z) × 1, unexpected"
    )


def test_a_difference_tells_of_rows_that_were_rejected() -> None:
    with testing.drive(unpaid()) as run:
        run.advance("Orders", ordered=at(5))
        run.step()
        run.add("Orders", [(1, at(4)), (2, at(6)), (3, None), (4, None)])
        run.finish()
        run.step()
        with pytest.raises(AssertionError) as caught:
            run.expect(Unpaid=[(1, at(4)), (2, at(6))])
    assert str(caught.value) == (
        "Unpaid lacks (order_id = 1, ordered = 2026-03-02T12:04:00Z) × 1\n"
        "rejected of Orders so far: 1 late, 2 null; see run.quarantine()"
    )


def test_rejected_rows_and_the_clock(start: Start) -> None:
    with start(unpaid(), sources={"Orders": tg.source(None, delay="10m")}, clock=at(30)) as run:
        run.add("Orders", [(1, at(90)), (2, at(91)), (3, None)])
        run.step()
        assert run.counts["Orders"].rejected == {"ahead": 1, "null": 1}
        run.wait("1m")
        run.add("Orders", [(2, at(91)), (4, at(79))])
        run.step()
        assert run.counts["Orders"].rejected == {"ahead": 1, "null": 1, "late": 1}
        assert sorted(row["reason"] for row in run.quarantine()) == ["ahead", "late", "null"]


def test_mistakes_in_a_test_are_told() -> None:
    with testing.drive(unpaid()) as run:
        with pytest.raises(QueryError, match="TG402"):
            run.add("Parcels", [])
        with pytest.raises(QueryError, match="TG401"):
            run.advance("Orders", order_id=3)
        with pytest.raises(QueryError, match="TG401"):
            run.kill("open-before-meta")
        with pytest.raises(QueryError, match="TG402"):
            run.expect(Paid=[])
        with pytest.raises(QueryError, match="TG401"):
            run.expect(Unpaid=[(1, "soon")])
        run.kill("commit-during-gc", skip=1000)
        with pytest.raises(AssertionError, match="never came to commit-during-gc"):
            run.step()
    with pytest.raises(QueryError, match="TG401"):
        testing.drive(unpaid(), sources={"Orders": tg.source([])})
    with testing.drive(unpaid()) as run, pytest.raises(QueryError, match=r"TG401 .* is beyond the year 9999"):
        run.wait("400d")  # from the clock of a test that gives none
    with pytest.raises(QueryError, match="TG401"):
        testing.drive(unpaid(), clock="soon")
