"""Live state against its proven bound: what is measured of a run, on cases computed by hand."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.time import INF
from tidegate.analysis.state.bounds import Bounded, Unbounded
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.inspect.live_state import StateUse, state_use
from tidegate.runtime.plan.folding.fold import SettledRows
from tidegate.runtime.plan.steps import PurgeMode

events = tg.stream("E", "k bigint, t bigint", progress="t")
others = tg.stream("O", "k bigint, t bigint", progress="t")


def answered() -> tg.Program:
    """Pairs of an event and another one at most five ticks later."""
    e, o = events.as_("e"), others.as_("o")
    return tg.program(Answered=e.join(o, e.k == o.k, e.t <= o.t, o.t <= e.t + 5).select(k=e.k, asked=e.t, at=o.t))


def row(t: int) -> dict[str, Any]:
    return {"k": 1, "t": t}


def test_skew_and_lag_are_those_of_the_run() -> None:
    reports: list[BatchReport] = []
    with Session(answered().facts, options=RunOptions(collect_garbage="exact")) as session:
        for upto in (10, 20):
            session.push(
                "E", [row(t) for t in range(upto - 9, upto + 4)] if upto == 10 else [row(t) for t in range(14, 24)]
            )
            session.advance("E", {"t": upto})
            session.push("O", [row(upto - 8)])
            session.advance("O", {"t": upto - 7})
            reports.append(session.step())
        session.finish()
        reports.append(session.step())
        use = {one.stream: one for one in state_use(session._plan, reports)}
    assert isinstance(use["E"].bound, Bounded)
    # Rows up to 13 came at b = 10, later rows up to 23 at b = 20: a skew of 3; E is 7 ahead of O.
    assert use["E"].span == use["E"].bound.horizon + 3 + 7
    assert isinstance(use["O"].bound, Bounded)
    assert use["O"].span == use["O"].bound.horizon + 0 + 7
    assert use["E"].readers == ("Answered",)
    # One row a tick; O's progress of 3 and 13 is that of the pairs' end: E is kept from there, less five ticks.
    assert within(use["E"], list(range(1, 24)))


def within(use: StateUse, instants: list[int]) -> bool:
    assert use.span is not None
    assert use.span < INF
    rate = max(sum(x <= t <= x + use.span for t in instants) for x in instants)
    return 0 < use.most <= rate


def test_rows_that_wait_for_a_stream_that_has_not_begun_are_bounded_by_nothing() -> None:
    with Session(answered().facts) as session:
        session.push("E", [row(1), row(2)])
        session.advance("E", {"t": 2})
        (use,) = (one for one in state_use(session._plan, [session.step()]) if one.stream == "E")
    assert use.span == INF
    assert use.most == 2


def test_an_unbounded_reader_decides() -> None:
    e, o = events.as_("e"), others.as_("o")
    program = tg.program(Later=e.join(o, e.t <= o.t).select(k=e.k, at=o.t))
    with Session(program.facts) as session:
        found = {one.stream: one for one in state_use(session._plan, [session.step()])}
    assert isinstance(found["E"].bound, Unbounded)
    assert found["E"].span is None
    assert isinstance(found["O"].bound, Bounded)


def test_a_row_that_matches_several_table_rows_counts_once() -> None:
    """A hundred matches for each event, kept until five ticks have passed without another one: stored before they are
    joined.
    """
    e, o, n = events.as_("e"), others.as_("o"), tg.table("N", "k bigint, part bigint").as_("n")
    matched = e.join(n, n.k == e.k)
    alone = matched.anti_join(o, e.k == o.k, e.t <= o.t, o.t <= e.t + 5).select(t=e.t, part=n.part)
    program = tg.program(Alone=alone)
    bound = program.facts.queries[0].occurrences[0].bound
    assert isinstance(bound, Bounded)
    assert bound.tables == ("N",)
    assert str(bound) == "rate(E) × matches(N) × (5 + skew(E) + lag)"
    reports = []
    with Session(
        program.facts, statics={"N": [(1, part) for part in range(100)]}, options=RunOptions(collect_garbage="exact")
    ) as session:
        for t in range(30):
            session.push("E", [row(t)])
            session.advance("E", {"t": t})
            session.advance("O", {"t": t})
            reports.append(session.step())
        use = {one.stream: one for one in state_use(session._plan, reports)}["E"]
    assert use.span is not None
    assert use.most == use.span


def test_rows_pushed_before_the_first_progress_are_bounded_by_nothing() -> None:
    with Session(
        tg.program(Some=events.where(events.k > 0)).facts, options=RunOptions(collect_garbage="exact")
    ) as session:
        session.push("E", [row(t) for t in range(0, 1000, 10)])
        (use,) = state_use(session._plan, [session.step()])
    assert use.most == 100
    assert use.span == INF


def latest() -> tg.Program:
    """Of each event the latest other one of its key: of those that are older than all to come one a key stays."""
    e, o = events.as_("e"), others.as_("o")
    return tg.program(Latest=e.left_join(o, e.k == o.k, o.t <= e.t).group_by(e.k, e.t).agg(at=tg.last(o.t, by=o.t)))


@pytest.mark.parametrize("purging", ["off", "always"])
def test_rows_that_fold_are_counted_apart_from_those_that_are_not_settled(purging: PurgeMode) -> None:
    """Others are at t, and complete up to t - 2: of three keys a row each, and the one that came last."""
    reports: list[BatchReport] = []
    options = RunOptions(collect_garbage="exact", purging=purging)
    with Session(latest().facts, options=options) as session:
        for t in range(1, 31):
            session.push("E", [{"k": t % 3, "t": t}])
            session.push("O", [{"k": t % 3, "t": t}])
            session.advance("E", {"t": t})
            session.advance("O", {"t": t - 2})
            reports.append(session.step())
        use = {one.stream: one for one in state_use(session._plan, reports)}["O"]
    assert (use.most, use.settled, use.unsettled) == (4, 3, 1)
    assert isinstance(use.bound, Bounded)
    assert use.span == use.bound.horizon + 2 + 2
    assert reports[-1].settled["O#0"] == SettledRows(3, {"t": (30, 30)})


def test_where_nothing_folds_nothing_bounds_rows_that_would() -> None:
    with Session(latest().facts, options=RunOptions(folding="off")) as session:
        use = {one.stream: one for one in state_use(session._plan, [session.step()])}["O"]
    assert use.span is None
    assert isinstance(use.bound, Unbounded)


STAMPED = tg.stream("S", "k bigint, u bigint, t bigint", progress="t", relations=lambda s: s.u <= s.t)
STAMPS = [(1, t - behind, t) for t in range(30) for behind in (0, 4, 5, 9, 10, 25)]


def grouped_rows(
    queries: dict[str, tg.Relation], statics: dict[str, Any] | None = None
) -> tuple[dict[str, int], dict[str, list[Any]]]:
    """How many partial aggregates each buffer has of rows that no progress has passed; then all results."""
    with tg.program(**queries).session(statics=statics or {}) as session:
        session.push("S", STAMPS)
        live = dict(session.step().live_rows)
        session.finish()
        session.step()
        return live, {name: sorted(tuple(row.values()) for row in session.results(name)) for name in queries}


def test_no_partial_aggregates_are_stored_of_rows_that_keep_excludes() -> None:
    """Rule R16, where a condition on groups says it of their rows: directly, on what is computed of them, or only for
    some.
    """
    groups = STAMPED.group_by(STAMPED.k, STAMPED.u, STAMPED.t).agg(n=tg.count())
    shifted = groups.select(groups.k, groups.u, groups.n, e=groups.t + 5)
    windows = STAMPED.group_by(STAMPED.u, h=tg.tumbling(STAMPED.t, 10)).agg(n=tg.count())
    some = windows.where((windows.u <= windows.h - 20) | ((windows.n > 0) & (windows.u <= windows.h - 15)))
    live, found = grouped_rows({"Late": shifted.where(shifted.u <= shifted.e - 10)})
    assert live == {"S#0": sum(u <= t - 5 for _, u, t in STAMPS)}
    assert len(found["Late"]) == live["S#0"]
    live, found = grouped_rows({"Some": some})
    # u <= h - 15 and h <= t + 10: a row more than five ticks old can be in such a window.
    assert live == {"S#0": len({(u, t // 10) for _, u, t in STAMPS if u <= t - 5})}
    assert {u for u, h, n in found["Some"]} == {u for _, u, t in STAMPS if u <= t // 10 * 10 - 5}


def test_partial_aggregates_are_stored_of_rows_that_one_reader_keeps() -> None:
    groups = STAMPED.group_by(STAMPED.k, STAMPED.u, STAMPED.t).agg(n=tg.count())
    shifted = groups.select(groups.k, groups.u, groups.n, e=groups.t + 5)
    queries = {f"From{least}": shifted.where(shifted.u <= shifted.e - least) for least in (10, 15)}
    live, found = grouped_rows(queries)
    assert live == {"S#0": sum(u <= t - 5 for _, u, t in STAMPS)}
    assert {name: len(rows) for name, rows in found.items()} == {
        f"From{least}": sum(u <= t + 5 - least for _, u, t in STAMPS) for least in (10, 15)
    }
    live, _ = grouped_rows(queries | {"All": groups})
    assert live == {"S#0": len(STAMPS)}


def test_partial_aggregates_of_a_stream_joined_with_a_table_that_stands_first() -> None:
    table = tg.table("N", "k bigint, part bigint").as_("n")
    s = STAMPED.as_("s")
    groups = table.join(s, table.k == s.k).group_by(table.part, u=s.u, t=s.t).agg(n=tg.count())
    shifted = groups.select(groups.part, groups.u, groups.n, e=groups.t + 5)
    live, found = grouped_rows({"Late": shifted.where(shifted.u <= shifted.e - 10)}, {"N": [(1, 1), (1, 2)]})
    assert live == {"S#0": 2 * sum(u <= t - 5 for _, u, t in STAMPS)}
    assert len(found["Late"]) == live["S#0"]
