"""Partner and kill rule at work, on cases computed by hand (rules R21 to R23)."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.errors import QueryError
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.eval.purge_rows import ROUNDS
from tidegate.runtime.plan.steps import PurgeMode

orders = tg.stream("Orders", "id bigint, t bigint", progress="t")
payments = tg.stream("Payments", "id bigint, t bigint", progress="t")
deliveries = tg.stream("Deliveries", "id bigint, t bigint", progress="t")


def unpaid() -> tg.Program:
    """Orders without a payment within 1000 ticks."""
    o, p = orders.as_("o"), payments.as_("p")
    late = o.anti_join(p, o.id == p.id, o.t <= p.t, p.t <= o.t + 1000)
    return tg.program(Unpaid=late.select(id=o.id, ordered=o.t))


def delivered() -> tg.Program:
    """Orders paid within 5 ticks and delivered within 1000 ticks of the payment."""
    o, p, d = orders.as_("o"), payments.as_("p"), deliveries.as_("d")
    paid = o.join(p, o.id == p.id, o.t <= p.t, p.t <= o.t + 5)
    both = paid.join(d, p.id == d.id, p.t <= d.t, d.t <= p.t + 1000)
    return tg.program(Delivered=both.select(id=o.id, ordered=o.t, delivered=d.t))


def row(i: int, t: int) -> dict[str, Any]:
    return {"id": i, "t": t}


def live(session: Session) -> dict[str, int]:
    return {name.split("#")[0]: rows for name, rows in session.live_rows().items()}


def advance(session: Session, t: int) -> None:
    for name in session._plan.facts.program.inputs:
        session.advance(name.name, {"t": t})


@pytest.mark.parametrize(("purging", "left"), [("planned", 2), ("off", 100)])
def test_a_payment_frees_its_order_long_before_the_deadline(purging: PurgeMode, left: int) -> None:
    with Session(unpaid().facts, options=RunOptions(collect_garbage="exact", purging=purging)) as session:
        session.push("Orders", [row(i, i) for i in range(100)])
        session.push("Payments", [row(i, 100) for i in range(98)])
        advance(session, 100)
        session.step()
        assert live(session)["Orders"] == left
        session.step()
        if purging == "planned":
            # No order of theirs is left, nor can one still come: payments go too.
            assert live(session)["Payments"] == 0
        session.finish()
        session.step()
        assert [r["id"] for r in session.results("Unpaid")] == [98, 99]


@pytest.mark.parametrize(("purging", "left"), [("planned", (10, 10)), ("off", (100, 10))])
def test_an_order_without_payment_goes_with_the_time_to_pay(purging: PurgeMode, left: tuple[int, int]) -> None:
    with Session(delivered().facts, options=RunOptions(collect_garbage="exact", purging=purging)) as session:
        session.push("Orders", [row(i, i) for i in range(100)])
        session.push("Payments", [row(i, i + 5) for i in range(10)])
        advance(session, 104)
        session.step()
        # Orders 10 to 98 had to be paid by 103, order 99 by 104.
        assert (live(session)["Orders"], live(session)["Payments"]) == left
        session.push("Deliveries", [row(i, 200) for i in range(0, 100, 2)])
        session.finish()
        session.step()
        assert sorted(r["id"] for r in session.results("Delivered")) == [0, 2, 4, 6, 8]


def test_a_tick_before_the_partner_may_still_come() -> None:
    with Session(delivered().facts, options=RunOptions(collect_garbage="exact")) as session:
        session.push("Orders", [row(1, 0)])
        advance(session, 4)
        session.step()
        assert live(session)["Orders"] == 1
        advance(session, 5)
        session.step()
        assert live(session)["Orders"] == 0


def test_the_cascade_reaches_payments_of_orders_that_are_gone() -> None:
    o, p, d = orders.as_("o"), payments.as_("p"), deliveries.as_("d")
    chain = o.join(p, o.id == p.id, o.t <= p.t, p.t <= o.t + 1000).join(d, p.id == d.id, o.t <= d.t, d.t <= o.t + 5)
    program = tg.program(R=chain.select(id=o.id, ordered=o.t, paid=p.t))
    with Session(program.facts, options=RunOptions(collect_garbage="exact")) as session:
        session.push("Orders", [row(1, 0), row(2, 0)])
        session.push("Payments", [row(1, 1), row(2, 1)])
        session.push("Deliveries", [row(2, 3)])
        advance(session, 5)
        session.step()
        # Order 1 was not delivered by 5, so its payment serves nobody either, though deliveries and orders of its id
        # may go on.
        assert (live(session)["Orders"], live(session)["Payments"]) == (1, 1)


def test_a_cascade_goes_on_in_one_sweep_where_a_row_lost_its_partner_after_it_was_asked() -> None:
    """By another key: the rows at the far end have no key in common, so each is only asked for its neighbour."""
    a = tg.stream("A", "k bigint, t bigint", progress="t").as_("a")
    b = tg.stream("B", "k bigint, l bigint, t bigint", progress="t").as_("b")
    c = tg.stream("C", "l bigint, t bigint", progress="t").as_("c")
    pairs = a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 5)
    chain = pairs.join(c, b.l == c.l, b.t <= c.t, c.t <= b.t + 5, a.t <= c.t, c.t <= a.t + 1000)
    program = tg.program(R=chain.select(k=a.k, t=a.t))
    with Session(program.facts, options=RunOptions(collect_garbage="exact", purging="always")) as session:
        session.push("A", [{"k": 1, "t": 0}, {"k": 2, "t": 0}])
        session.push("B", [{"k": 1, "l": 10, "t": 1}, {"k": 2, "l": 20, "t": 1}])
        session.push("C", [{"l": 20, "t": 2}])
        session.advance("A", {"t": 0})
        for name in "BC":
            session.advance(name, {"t": 7})
        session.step()
        # B's first row has no partner in C, and none can come: then A's first row has none in B.
        assert live(session) == {"A": 1, "B": 1, "C": 1}


@pytest.mark.parametrize("forwards", [True, False])
def test_a_long_cascade_goes_on_in_one_sweep_in_either_direction(forwards: bool) -> None:
    """Each row needs one before it, by a key that no others have. The first of the chain is missing."""
    number = ROUNDS + 3
    streams = [tg.stream(f"S{n}", "a bigint, b bigint, t bigint", progress="t").as_(f"s{n}") for n in range(number)]
    joined: tg.Relation = streams[0]
    for one, other in pairwise(streams):
        earlier, later = (one, other) if forwards else (other, one)
        joined = joined.join(other, one.b == other.a, earlier.t <= later.t, later.t <= earlier.t + 1000)
    program = tg.program(R=joined.select(t=streams[0].t))
    with Session(program.facts, options=RunOptions(collect_garbage="exact", purging="always")) as session:
        for n in range(number):
            # Some row is there of each stream, so that a row goes for its neighbour alone.
            key = 2 if n == (0 if forwards else number - 1) else 1
            session.push(f"S{n}", [{"a": key, "b": key, "t": 100}])
        advance(session, 100)
        session.step()
        assert sum(live(session).values()) == 1


def test_a_partner_that_may_always_come_does_not_keep_a_row_that_lacks_another() -> None:
    a = tg.stream("A", "k bigint, t bigint", progress="t").as_("a")
    b = tg.stream("B", "k bigint, t bigint", progress="t").as_("b")
    c = tg.stream("C", "k bigint, t bigint", progress="t").as_("c")
    ever = a.join(c, a.k == c.k, a.t <= c.t)
    chain = ever.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 5)
    program = tg.program(R=chain.select(k=a.k, t=c.t))
    with Session(program.facts, options=RunOptions(collect_garbage="exact", purging="always")) as session:
        session.push("A", [{"k": 1, "t": 0}, {"k": 2, "t": 0}])
        session.push("B", [{"k": 2, "t": 1}])
        advance(session, 6)
        session.step()
        assert live(session)["A"] == 1


@pytest.mark.parametrize("purging", ["planned", "always"])
def test_a_killed_order_that_another_query_needs_keeps_its_payment(purging: PurgeMode) -> None:
    o, p, x, y = orders.as_("o"), payments.as_("p"), orders.as_("x"), orders.as_("y")
    late = o.anti_join(p, o.id == p.id, o.t <= p.t, p.t <= o.t + 1000).select(id=o.id, ordered=o.t)
    again = x.join(y, x.id == y.id, x.t < y.t, y.t <= x.t + 1000).select(id=x.id, t=y.t)
    with Session(
        tg.program(Unpaid=late, Again=again).facts, options=RunOptions(collect_garbage="exact", purging=purging)
    ) as session:
        session.push("Orders", [row(1, 0), row(2, 0)])
        session.push("Payments", [row(1, 10)])
        for t in (500, 600, 700):
            advance(session, t)
            session.step()
            # Order 1 may be ordered again; as long as it is stored, what kills it is.
            assert live(session) == {"Orders": 2, "Payments": 1}
        session.push("Orders", [row(1, 800)])
        session.finish()
        session.step()
        assert [(r["id"], r["ordered"]) for r in session.results("Unpaid")] == [(2, 0), (1, 800)]
        assert [(r["id"], r["t"]) for r in session.results("Again")] == [(1, 800)]


def run(
    program: tg.Program, *steps: tuple[int, dict[str, list[dict[str, Any]]]]
) -> tuple[list[dict[str, int]], Session]:
    """Live rows per stream after each step, of rows and the progress of all streams; then every input ends."""
    found = []
    session = Session(program.facts, options=RunOptions(collect_garbage="exact", purging="always"))
    for t, given in steps:
        for name, rows in given.items():
            session.push(name, rows)
        advance(session, t)
        session.step()
        found.append(live(session))
    session.finish()
    session.step()
    return found, session


def test_a_stop_kills_its_start_once_nothing_before_it_can_come() -> None:
    s, e, x = orders.as_("s"), deliveries.as_("e"), payments.as_("x")
    within = e.join(s, s.id == e.id, s.t < e.t).anti_join(x, s.id == x.id, s.t < x.t, x.t < e.t)
    program = tg.program(R=within.select(id=e.id, t=e.t))
    rows = {"Orders": [row(1, 0)], "Payments": [row(1, 10)]}
    # At 9 an event at 10 may still come, which lies within.
    counts, session = run(program, (9, rows), (9, {"Deliveries": [row(1, 10)]}), (10, {}))
    assert [one["Orders"] for one in counts] == [1, 1, 0]
    assert [r["t"] for r in session.results("R")] == [10]


@pytest.mark.parametrize(("killer", "left", "results"), [(9, 1, [8]), (8, 0, [])])
def test_a_row_is_killed_by_what_lies_before_all_its_partners(killer: int, left: int, results: list[int]) -> None:
    a, b, p = orders.as_("a"), deliveries.as_("b"), payments.as_("p")
    pairs = a.join(b, a.id == b.id, a.t <= b.t + 2, b.t <= a.t + 5)
    early = pairs.anti_join(p, p.id == a.id, p.t <= b.t, a.t <= p.t + 5)
    program = tg.program(R=early.select(a=a.t, b=b.t))
    counts, session = run(
        program, (6, {"Orders": [row(1, 10)], "Payments": [row(1, killer)], "Deliveries": [row(1, 8)]})
    )
    assert counts[0]["Orders"] == left
    assert [r["b"] for r in session.results("R")] == results


@pytest.mark.parametrize(("killer", "left", "results"), [(14, 1, [15]), (15, 0, [])])
def test_a_row_is_killed_by_what_lies_after_all_its_partners(killer: int, left: int, results: list[int]) -> None:
    a, b, p = orders.as_("a"), deliveries.as_("b"), payments.as_("p")
    pairs = a.join(b, a.id == b.id, a.t <= b.t, b.t <= a.t + 5)
    late = pairs.anti_join(p, p.id == a.id, b.t <= p.t, p.t <= a.t + 10)
    program = tg.program(R=late.select(a=a.t, b=b.t))
    counts, session = run(
        program, (11, {"Orders": [row(1, 10)], "Payments": [row(1, killer)]}), (11, {"Deliveries": [row(1, 15)]})
    )
    assert counts[0]["Orders"] == left
    assert [r["b"] for r in session.results("R")] == results


def test_a_payment_that_may_be_revoked_kills_nothing() -> None:
    o, p, d = orders.as_("o"), payments.as_("p"), deliveries.as_("d")
    standing = p.anti_join(d, d.id == p.id, p.t <= d.t, d.t <= p.t + 5)
    program = tg.program(R=o.anti_join(standing, o.id == p.id, o.t <= p.t, p.t <= o.t + 100).select(id=o.id, t=o.t))
    rows = {"Orders": [row(1, 0)], "Payments": [row(1, 10)]}
    counts, session = run(program, (10, rows), (12, {"Deliveries": [row(1, 12)]}))
    assert [one["Orders"] for one in counts] == [1, 1]
    assert [r["id"] for r in session.results("R")] == [1]


valued = "id bigint, v bigint, t bigint"
lefts = tg.stream("A", valued, progress="t")
middles = tg.stream("B", valued, progress="t")
rights = tg.stream("C", valued, progress="t")


def test_the_null_of_a_padded_row_is_no_value_of_its_partner() -> None:
    a, b, c = lefts.as_("a"), middles.as_("b"), rights.as_("c")
    padded = a.left_join(b, a.id == b.id, b.t == a.t)
    program = tg.program(R=padded.join(c, b.v.same_as(c.v), a.t <= c.t, c.t <= a.t + 5).select(id=a.id, t=a.t))
    with Session(program.facts, options=RunOptions(collect_garbage="exact", purging="always")) as session:
        for name, v in (("A", 0), ("B", 7), ("C", None)):
            session.push(name, [{"id": 1, "v": v, "t": 3}])
        for name, t in (("A", 1), ("B", 1), ("C", 9)):
            session.advance(name, {"t": t})
        session.step()
        # Row a has the partner b and is never padded, though no c has b's value and one has NULL.
        session.finish()
        session.step()
        assert session.results("R") == []


def test_null_is_the_partner_of_null_where_the_condition_says_so() -> None:
    a, b = lefts.as_("a"), middles.as_("b")
    program = tg.program(R=a.join(b, a.v.same_as(b.v), a.t <= b.t, b.t <= a.t + 5).select(a=a.t, b=b.t))
    none = {"id": 1, "v": None, "t": 3}
    with Session(program.facts, options=RunOptions(collect_garbage="exact", purging="always")) as session:
        session.push("A", [none])
        session.push("B", [none])
        session.advance("B", {"t": 9})
        session.step()
        assert live(session) == {"A": 1, "B": 1}
        session.finish()
        session.step()
        assert len(session.results("R")) == 1


def test_explain_shows_which_rules_free_rows() -> None:
    text = str(delivered().explain())
    assert "freed when" in text
    assert "at most     rate(Orders) × " in text
    assert ", also without that" in text
    assert "on Spark    freed in the driver, while Orders#0, Payments#0, Deliveries#0 hold up to 64 MiB" in text
    assert "no row of Payments with equal id is there for Delivered, and none to come" in text
    freed = delivered().explain().to_dict()["plan"]["buffers"][0]["freed_by"]
    assert freed[0].startswith("no row of ")


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(QueryError) as refused:
        Session(unpaid().facts, options=RunOptions(purging="sometimes"))  # type: ignore[arg-type]  # that is the point
    assert refused.value.code == "TG401"
