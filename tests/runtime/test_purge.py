"""Partner and kill rule at work, on cases computed by hand (rules R21 to R23)."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.errors import QueryError
from tidegate.runtime.embedded.session import Session
from tidegate.runtime.plan.lower import PurgeMode

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
    for name in session.plan.facts.program.inputs:
        session.advance(name.name, {"t": t})


@pytest.mark.parametrize(("purging", "left"), [("planned", 2), ("off", 100)])
def test_a_payment_frees_its_order_long_before_the_deadline(purging: PurgeMode, left: int) -> None:
    with Session(unpaid().facts, collect_garbage="exact", purging=purging) as session:
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
    with Session(delivered().facts, collect_garbage="exact", purging=purging) as session:
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
    with Session(delivered().facts, collect_garbage="exact") as session:
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
    with Session(program.facts, collect_garbage="exact") as session:
        session.push("Orders", [row(1, 0), row(2, 0)])
        session.push("Payments", [row(1, 1), row(2, 1)])
        session.push("Deliveries", [row(2, 3)])
        advance(session, 5)
        session.step()
        # Order 1 was not delivered by 5, so its payment serves nobody either, though deliveries and orders of its id may go on.
        assert (live(session)["Orders"], live(session)["Payments"]) == (1, 1)


def test_a_killed_order_that_another_query_needs_keeps_its_payment() -> None:
    o, p, x, y = orders.as_("o"), payments.as_("p"), orders.as_("x"), orders.as_("y")
    late = o.anti_join(p, o.id == p.id, o.t <= p.t, p.t <= o.t + 1000).select(id=o.id, ordered=o.t)
    again = x.join(y, x.id == y.id, x.t < y.t, y.t <= x.t + 1000).select(id=x.id, t=y.t)
    with Session(tg.program(Unpaid=late, Again=again).facts, collect_garbage="exact", purging="always") as session:
        session.push("Orders", [row(1, 0), row(2, 0)])
        session.push("Payments", [row(1, 10)])
        for t in (500, 600, 700):
            advance(session, t)
            session.step()
            # Order 1 may be ordered again; as long as it is stored, what kills it is.
            assert live(session) == {"Orders": 2, "Payments": 1}
        session.finish()
        session.step()
        assert [r["id"] for r in session.results("Unpaid")] == [2]


def test_explain_shows_which_rules_free_rows() -> None:
    text = str(delivered().explain())
    assert "freed by" in text
    assert "partner rule: no row of Payments with equal id in Delivered, and none to come" in text
    freed = delivered().explain().to_dict()["plan"]["buffers"][0]["freed_by"]  # type: ignore[index]  # plain values
    assert freed[0].startswith("partner rule")


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(QueryError) as refused:
        Session(unpaid().facts, purging="sometimes")  # type: ignore[arg-type]  # that is the point
    assert refused.value.code == "TG401"
