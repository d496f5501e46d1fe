"""Common parts of a program's queries: found in the plan, said in its text, computed once in an increment."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tidegate.algebra.nodes import Join, Node
from tidegate.runtime import rows as small_rows
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.eval import relational
from tidegate.runtime.eval.aggregates.look_back import looked_back
from tidegate.runtime.eval.joins import ranges as joins_module
from tidegate.runtime.eval.small import increment as small_increment
from tidegate.runtime.plan.shared_parts import Demand, repeated

events = tg.stream("E", "k bigint, t bigint, v bigint", progress="t")


def pairs(of: tg.Relation = events) -> tg.Relation:
    a, b = of.as_("a"), of.as_("b")
    return a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 3).select(k=a.k, t=b.t, one=a.v, other=b.v)


def queries(**chosen: bool) -> dict[str, tg.Relation]:
    p = pairs()
    made = {
        "ByKey": p.group_by(k=p.k, w=tg.ceil(p.t, 10)).agg(n=tg.count(), best=tg.max(p.one)),
        "ByValue": p.group_by(other=p.other, w=tg.ceil(p.t, 10)).agg(n=tg.count(), best=tg.max(p.one)),
        "Slow": p.group_by(k=p.k, w=tg.ceil(p.t, 20)).agg(n=tg.count(), best=tg.max(p.one)),
    }
    return {name: made[name] for name in chosen}


def rows() -> list[dict[str, int]]:
    return [{"k": t % 3, "t": t, "v": t % 5} for t in range(60)]


def run(**made: tg.Relation) -> dict[str, list[tuple[Any, ...]]]:
    with Session(tg.program(**made).facts) as session:
        for start in range(0, 60, 5):
            session.push("E", rows()[start : start + 5])
            session.advance("E", {"t": start + 4})
            session.step()
        session.finish()
        session.step()
        return {name: sorted(tuple(row.values()) for row in session.results(name)) for name in made}


def test_queries_that_advance_together_compute_their_common_part_once(monkeypatch: pytest.MonkeyPatch) -> None:
    joins = 0

    def counted(*given: Any) -> pl.DataFrame:
        nonlocal joins
        joins += 1
        return join_frames(*given)

    join_frames = joins_module.join_frames
    monkeypatch.setattr(relational, "join_frames", counted)
    monkeypatch.setattr(small_rows, "MOST", -1)
    alone = run(**queries(ByKey=True))
    for_one, joins = joins, 0
    together = run(**queries(ByKey=True, ByValue=True))
    assert joins == for_one > 3
    assert together["ByKey"] == alone["ByKey"]
    assert together["ByValue"] == run(**queries(ByValue=True))["ByValue"]


def test_of_few_rows_too_the_common_part_is_computed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    joins = 0

    def counted(node: Node, *given: Any) -> Any:
        nonlocal joins
        joins += isinstance(node, Join)
        return evaluated(node, *given)

    evaluated = small_increment._evaluated
    monkeypatch.setattr(small_increment, "_evaluated", counted)
    together = run(**queries(ByKey=True, ByValue=True))
    assert joins > 3
    once, joins = joins, 0
    monkeypatch.setattr(Demand, "computed", lambda *_: object())
    assert run(**queries(ByKey=True, ByValue=True)) == together
    assert joins == 2 * once


def test_queries_that_advance_at_other_times_are_evaluated_apart() -> None:
    everything = run(**queries(ByKey=True, ByValue=True, Slow=True))
    for name in everything:
        assert everything[name] == run(**queries(**{name: True}))[name]
    plan = tg.program(**queries(ByKey=True, ByValue=True, Slow=True)).explain().lowered()
    demands = [Demand.of(query, {"w": 10}, {"w": 20}) for query in plan.queries]
    assert len(repeated(demands)) == 1
    # From 20 to 30 two of them look at the same rows; the third has a window from 0 to 20 behind it.
    moved = [Demand.of(plan.queries[0], {"w": 20}, {"w": 30}), Demand.of(plan.queries[2], {"w": 20}, {"w": 40})]
    assert repeated(moved) == []


o, p = (tg.stream(name, "k bigint, t bigint, v bigint", progress="t").as_(name.lower()) for name in "OP")


def looked_up(*chosen: str) -> dict[str, tg.Relation]:
    """Groupings of one join, of which a row of the left side looks its partners up."""
    near = o.join(p, o.k == p.k, p.t <= o.t, o.t <= p.t + 500)
    means = near.group_by(o.k, o.t).agg(middle=tg.avg(p.v))
    made = {
        "Means": means,
        "Most": near.group_by(o.k, o.t).agg(most=tg.max(p.v)),
        "Low": means.where(means.middle < 300),
        "High": means.where(means.middle >= 300),
        "Pairs": near.select(o.k, o.t, p.v),
    }
    return {name: made[name] for name in chosen}


def looking_up(count: int, made: Mapping[str, tg.Relation], streams: str = "OP") -> dict[str, list[tuple[Any, ...]]]:
    rows = pl.DataFrame({"k": [0] * count, "t": range(count), "v": range(count)})
    with Session(tg.program(**made).facts) as session:
        for name in streams:
            session.push(name, rows)
        session.finish()
        session.step()
        return {name: sorted(tuple(row.values()) for row in session.results(name)) for name in made}


@pytest.mark.parametrize("chosen", [("Means", "Most"), ("Low", "High")], ids=["one join", "one group"])
def test_pairs_are_not_listed_where_all_that_share_them_look_up(
    chosen: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    alone = {name: looking_up(600, looked_up(name))[name] for name in chosen}
    assert all(alone.values())
    monkeypatch.setattr(relational, "_join_pieces", None)
    assert looking_up(600, looked_up(*chosen)) == alone


def test_of_three_joined_tables_none_lists_pairs_for_groupings_that_look_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 60 rows each there are 216,000 triples, and of any two no more pairs than are listed at once."""
    q = tg.stream("Q", "k bigint, t bigint, v bigint", progress="t").as_("q")
    all_three = o.join(p, o.k == p.k, p.t <= o.t, o.t <= p.t + 500).join(q, o.k == q.k, q.t <= o.t, o.t <= q.t + 500)
    made = {
        "Most": all_three.group_by(o.k, o.t).agg(most=tg.max(p.v)),
        "Least": all_three.group_by(o.k, o.t).agg(least=tg.min(q.v)),
    }
    alone = {name: looking_up(60, {name: made[name]}, "OPQ")[name] for name in made}
    assert [len(rows) for rows in alone.values()] == [60, 60]
    monkeypatch.setattr(relational, "_join_pieces", None)
    assert looking_up(60, made, "OPQ") == alone


def test_a_join_that_is_not_worth_looking_up_is_made_once_for_all_groupings(monkeypatch: pytest.MonkeyPatch) -> None:
    joins = 0

    def counted(*given: Any) -> Iterator[pl.DataFrame]:
        nonlocal joins
        joins += 1
        return join_pieces(*given)

    join_pieces = relational._join_pieces
    same = o.join(p, o.t == p.t)
    functions: dict[str, Callable[..., Any]] = {"Most": tg.max, "Least": tg.min, "All": tg.sum, "Middle": tg.avg}
    made = {name: same.group_by(o.k, o.t).agg(v=function(p.v)) for name, function in functions.items()}
    alone = {name: looking_up(600, {name: made[name]})[name] for name in made}
    monkeypatch.setattr(small_rows, "MOST", -1)
    monkeypatch.setattr(relational, "_join_pieces", counted)
    assert looking_up(600, made) == alone
    assert joins == 1


def test_groupings_look_up_beside_a_query_that_lists_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0

    def counted(*given: Any) -> pl.DataFrame | None:
        nonlocal looks
        found = looked_back(*given)
        looks += found is not None
        return found

    monkeypatch.setattr(relational, "looked_back", counted)
    found = looking_up(600, looked_up("Means", "Most", "Pairs"))
    assert looks == 2
    assert len(found["Pairs"]) > 150_000
    assert len(found["Means"]) == len(found["Most"]) == 600


def test_the_plan_says_what_is_shared() -> None:
    explanation = tg.program(**queries(ByKey=True, ByValue=True)).explain()
    assert "computed at most once for ByKey, ByValue where they advance together" in explanation.plan
    assert explanation.plan in str(explanation)
    shares = [query["shares"] for query in explanation.to_dict()["plan"]["queries"]]
    assert [[share["with"] for share in found] for found in shares] == [[["ByKey", "ByValue"]]] * 2


def test_a_part_used_twice_by_one_query_is_computed_once() -> None:
    p = pairs()
    grouped = p.group_by(k=p.k, w=tg.ceil(p.t, 10)).agg(best=tg.max(p.one + p.other))
    both = grouped.union(grouped)
    assert run(Both=both)["Both"] == sorted(2 * run(Once=grouped)["Once"])


def test_equal_trees_over_other_rows_are_not_common() -> None:
    made = {"High": pairs(events.where(events.v > 2)), "Low": pairs(events.where(events.v < 2))}
    together = run(**made)
    assert together["High"] != together["Low"]
    for name in made:
        assert together[name] == run(**{name: made[name]})[name]
    trees = [query.tree for query in tg.program(**made).explain().lowered().queries]
    assert trees[0] == trees[1], "only the buffers tell them apart"
