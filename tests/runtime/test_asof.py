"""Rows with the row of another stream nearest in time: what they mean, whatever the batching and the engine, and what
is kept.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import duckdb
import polars as pl
import pytest

import tidegate as tg
from tests.runtime.batchings import whatever_is_ahead
from tests.shards import shards
from tidegate import testing
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.ordered.state import SMALL
from tidegate.runtime.plan import placement
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

L = tg.stream("L", "k string, t bigint, v bigint", progress="t")
R = tg.stream("R", "j string, u bigint, n bigint, p bigint", progress="u")
#: One key, several, and none.
KEYS: Any = [("k", "j")]


def joined(**options: Any) -> tg.Relation:
    return L.asof_join(R, **{"by": KEYS, **options})


def program() -> tg.Program:
    near = joined(direction="nearest", within=7)
    a, b = R.as_("a"), R.as_("b")
    return tg.program(
        Back=joined(),
        Recent=joined(within=9, strict=True, how="inner"),
        Ahead=joined(direction="forward", within=5).drop("t"),
        Ever=joined(direction="forward", how="inner"),
        Near=near,
        All=L.asof_join(R, tie="p", how="inner"),
        Own=a.asof_join(b, by=[("j", "j")], strict=True).select(j=a.j, u=a.u, last=b.p),
        Counted=near.group_by(w=tg.ceil(near.complete, 10)).agg(n=tg.count(), total=tg.sum(near.p)),
    )


NAMES = tuple(query.stream for query in program().definition.queries)


def lefts(seed: int, many: int = 60) -> list[Event]:
    rng = random.Random(f"left {seed}")
    return [(rng.choice(("a", "b", "c", None)), rng.randrange(1, 120), n) for n in range(many)]


def rights(seed: int, many: int = 60) -> list[Event]:
    """No two of one instant."""
    rng = random.Random(f"right {seed}")
    times = rng.sample(range(1, 120), many)
    return [
        (rng.choice(("a", "b", "d", None)), u, place % 3, rng.choice((1, 2, None))) for place, u in enumerate(times)
    ]


def meant(told: tg.Program, rows: Mapping[str, Sequence[Event]], name: str = "Q") -> list[Event]:
    (query,) = (one for one in told.definition.queries if one.stream == name)
    return sorted(evaluate(query.node, {stream: list(own) for stream, own in rows.items()}), key=str)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def run(relation: tg.Relation, left: Sequence[Event], right: Sequence[Event]) -> list[Event]:
    return found(tg.program(Q=relation).run({"L": left, "R": right})["Q"].rows())


def partners(left: Sequence[Event], right: Sequence[Event], **options: Any) -> list[Event]:
    """Of each left row its instant and the partner's, and when it was complete."""
    relation = joined(**options)
    return run(relation.select("t", "u", *({"complete"} & {*relation.schema})), left, right)


# --- what it means ----------------------------------------------------------------------------------------------------

RIGHT = [("a", 2, 0, 1), ("a", 5, 0, 2), ("a", 9, 0, 3), ("b", 6, 0, 4)]


def test_the_last_row_up_to_the_instant() -> None:
    left = [("a", t, 0) for t in (1, 2, 4, 5, 20)]
    assert partners(left, RIGHT) == [(1, None), (2, 2), (20, 9), (4, 2), (5, 5)]
    assert partners(left, RIGHT, strict=True) == [(1, None), (2, None), (20, 9), (4, 2), (5, 2)]
    assert partners(left, RIGHT, within=2) == [(1, None), (2, 2), (20, None), (4, 2), (5, 5)]
    assert partners(left, RIGHT, within=2, strict=True, how="inner") == [(4, 2)]
    assert run(joined(), left[:1] + left[3:4], RIGHT) == [
        ("a", 1, 0, None, None, None, None),
        ("a", 5, 0, "a", 5, 0, 2),
    ]


def test_the_first_row_from_the_instant_on() -> None:
    left = [("a", t, 0) for t in (1, 2, 4, 8, 20)]
    assert partners(left, RIGHT, direction="forward") == [(1, 2, 2), (2, 2, 2), (4, 5, 5), (8, 9, 9)]
    ahead = partners(left, RIGHT, direction="forward", within=1)
    assert ahead == [(1, 2, 2), (2, 2, 2), (20, None, 21), (4, 5, 5), (8, 9, 9)]
    assert partners(left, RIGHT, direction="forward", strict=True, within=3, how="inner") == [
        (1, 2, 2),
        (2, 5, 5),
        (4, 5, 5),
        (8, 9, 9),
    ]


def test_the_nearest_row_and_of_two_the_earlier() -> None:
    """A row is complete when the other side has come as far after it as its partner lies before it."""
    left = [("a", t, 0) for t in (1, 2, 3, 4, 7, 8, 20)]
    assert partners(left, RIGHT, direction="nearest") == [
        (1, 2, 2),
        (2, 2, 2),
        (20, 9, 31),
        (3, 2, 4),
        (4, 5, 5),
        (7, 5, 9),
        (8, 9, 9),
    ]
    near = partners(left, RIGHT, direction="nearest", within=1, strict=True)
    assert near == [(1, 2, 2), (2, None, 3), (20, None, 21), (3, 2, 4), (4, 5, 5), (7, None, 8), (8, 9, 9)]


def test_a_key_that_is_null_equals_none() -> None:
    """Such a left row waits for nothing; such right rows are no ties."""
    left, right = [(None, 3, 0), ("a", 3, 0)], [(None, 2, 0, 1), (None, 2, 0, 2), ("a", 2, 0, 3)]
    assert run(joined().select("k", "t", "p"), left, right) == [("a", 3, 3), (None, 3, None)]
    ahead = joined(direction="forward").select("k", "t", "p", "complete")
    assert run(ahead, left, [*right, ("a", 7, 0, 4)]) == [("a", 3, 4, 7), (None, 3, None, 3)]
    assert run(joined(how="inner", direction="nearest", within=1).select("k", "t"), left, right) == [("a", 3)]


def test_equal_doubles_are_equal_keys() -> None:
    a = tg.stream("A", "x double, t bigint", progress="t")
    b = tg.stream("B", "y double, u bigint", progress="u")
    rows = {"A": [(-0.0, 3), (float("nan"), 3), (1.0, 3)], "B": [(0.0, 1), (float("nan"), 2), (1.5, 1)]}
    told = tg.program(Q=a.asof_join(b, by=[("x", "y")]).select("t", "u"))
    assert found(told.run(rows)["Q"].rows()) == [(3, 1), (3, 2), (3, None)]


@pytest.mark.parametrize("ties_of_left", ["fail", "quarantine"])
def test_the_right_source_says_what_happens_to_its_ties(ties_of_left: Literal["fail", "quarantine"]) -> None:
    """Nothing depends on the order of left rows, so their source has no say, and equal ones are no ties."""
    left, right = [("a", 3, 0), ("a", 3, 0)], [("a", 1, 0, 1), ("a", 2, 1, 8), ("a", 2, 2, 7)]
    program = tg.program(Q=joined().select("t", "p"))
    sources = {"L": tg.source(left, ties=ties_of_left), "R": tg.source(right, ties="quarantine")}
    assert found(program.run(sources)["Q"].rows()) == [(3, 1), (3, 1)]
    with pytest.raises(tg.TidegateError, match="TG304"):
        program.run({**sources, "R": tg.source(right, ties="fail")})


def test_two_rows_of_one_instant_need_an_order() -> None:
    left, right = [("a", 3, 0)], [("a", 2, 1, 8), ("a", 2, 2, 7)]
    sources = {"L": left, "R": tg.source(right, ties="fail")}
    with pytest.raises(tg.TidegateError, match="TG304 two events of one partition at 2: nothing says which comes"):
        tg.program(Q=joined()).run(sources)
    assert run(joined(tie="n").select("t", "p"), left, right) == [(3, 7)]
    assert run(joined(tie="p").select("t", "p"), left, right) == [(3, 8)]
    assert run(joined(tie="p", direction="forward", within=1).select("t", "p"), [("a", 2, 0)], right) == [(2, 7)]
    with pytest.raises(tg.TidegateError, match="TG304"):
        tg.program(Q=joined(tie="n")).run({**sources, "R": tg.source([*right, ("a", 2, 2, 6)], ties="fail")})
    with tg.program(Q=joined().select("t", "u")).session() as session:
        session.push("L", left)
        session.push("R", [("a", 1, 0, 0), *right])
        session.finish()
        session.step()
        assert found(session.results("Q")) == [(3, 1)]
        assert [row["reason"] for row in session.quarantine_rows()] == ["tie", "tie"]


def test_left_rows_need_no_order_and_stay_what_they_are() -> None:
    left = [("a", 3, 0), ("a", 3, 0), ("a", 3, 1)]
    assert run(joined().select("t", "v", "u"), left, RIGHT) == [(3, 0, 2), (3, 0, 2), (3, 1, 2)]


def test_where_the_input_ends_rows_that_wait_may_end_too() -> None:
    with tg.program(Q=joined(direction="forward").select("t", "u", "complete")).session() as session:
        session.push("L", [("a", 3, 0), ("b", 8, 0)])
        session.push("R", RIGHT)
        session.finish(close_at=30)
        session.step()
        assert found(session.results("Q")) == [(3, 5, 5), (8, None, 30)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("strict", [False, True])
def test_rows_are_those_of_sql(strict: bool, seed: int) -> None:
    """DuckDB over the same rows."""
    left, right = lefts(seed), rights(seed)
    connection = duckdb.connect()
    connection.register("l", pl.DataFrame(left, schema=["k", "t", "v"], orient="row").to_arrow())
    connection.register("r", pl.DataFrame(right, schema=["j", "u", "n", "p"], orient="row").to_arrow())
    for direction, sign in (("backward", ">"), ("forward", "<")):
        told = f"select v, u, p from l asof left join r on k = j and t {sign}{'' if strict else '='} u"  # noqa: S608  # written here
        with tg.program(Q=joined(direction=direction, strict=strict)).session() as session:
            session.push("L", left)
            session.push("R", right)
            session.finish(close_at=1000 if direction == "forward" else None)
            session.step()
            rows = sorted(((row["v"], row["u"], row["p"]) for row in session.results("Q")), key=str)
        assert rows == sorted(connection.execute(told).fetchall(), key=str)


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shards(6))
def test_rows_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """Either side may be ahead, in disorder that progress permits, with starts from the checkpoint in between."""
    rng, rows = random.Random(seed), {"L": lefts(seed), "R": rights(seed)}
    completed = {"Back": "t", "Near": "complete", "Ever": "complete"}
    results = whatever_is_ahead(program, rows, rng, tmp_path, completed, sessions=rng.choice((1, 3)), steps=8)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name), name


def test_a_row_that_waits_in_vain_is_no_row_of_an_inner_join() -> None:
    """Though a later batch says so."""
    with tg.program(Q=joined(direction="nearest", within=3, how="inner").select("t", "u")).session() as session:
        session.push("L", [("a", 5, 0), ("b", 5, 0)])
        session.push("R", [("a", 3, 0, 0)])
        for until in (5, 9):
            session.advance("L", until)
            session.advance("R", until)
            session.step()
        assert found(session.results("Q")) == [(5, 3)]


@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [pytest.param(0, marks=pytest.mark.long), 1])
def test_spark_has_the_same_rows(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    monkeypatch.setattr(placement, "MOST_SHARDS", 4)
    rows = {"L": lefts(3), "R": rights(3)}
    with testing.drive(
        program(), spark=spark, driver_bytes=0 if shard_bytes else 1 << 20, shard_bytes=shard_bytes
    ) as run:
        for until in (40, 80, 120):
            for name, time in (("L", "t"), ("R", "u")):
                run.add(name, [row for row in rows[name] if until - 40 < row[1] <= until])
                run.advance(name, **{time: until})
            run.step()
        run.finish()
        run.step()
        for name in NAMES:
            assert found(run.results(name)) == meant(program(), rows, name), name
        if shard_bytes:
            assert {place for report in run.reports for place in report.places.values()} >= {"sharded"}


def test_a_stream_is_looked_up_in_itself_by_another_key() -> None:
    """Its rows are read once by two keys: no shard would have all of them."""
    e = tg.stream("E", "id bigint, parent bigint, t bigint", progress="t")
    a, b = e.as_("a"), e.as_("b")
    told = tg.program(Q=a.asof_join(b, by=[("parent", "id")], strict=True).select(a.t, id=a.id, parent=b.id, at=b.t))
    rows = [(1, None, 1), (2, 1, 3), (1, 2, 5), (3, 2, 5), (4, 9, 6)]
    assert found(told.run({"E": rows})["Q"].rows()) == [
        (1, 1, None, None),
        (3, 2, 1, 1),
        (5, 1, 2, 3),
        (5, 3, 2, 3),
        (6, 4, None, None),
    ]
    assert "by shards of" not in str(told.explain())
    assert "by shards of k, j" in str(tg.program(Q=joined()).explain())


@pytest.mark.parametrize("direction", ["backward", "nearest"])
def test_many_partitions_are_written_as_deltas(direction: Any, tmp_path: Path) -> None:
    """And read again: what the last batch has changed counts, and of partitions that are done with nothing is left."""
    told = tg.program(Q=joined(within=50, direction=direction))
    many = SMALL + 100
    rows: dict[str, list[Event]] = {
        "R": [(f"k{place}", place % 40, 0, place) for place in range(many)],
        "L": [("k1", 30, 1), ("k5", 39, 1)],
    }
    later: dict[str, list[Event]] = {
        "R": [("k1", 60, 1, 1), ("k2", 61, 2, 2)],
        "L": [("k1", 65, 2), ("k3", 66, 3), ("k9", 99, 9)],
    }
    with told.session(checkpoint=tmp_path) as session:
        for name, own in rows.items():
            session.push(name, own)
            session.advance(name, 39)
        session.step()
        waiting = 2 if direction == "nearest" else 0
        assert session.live_rows()["Q: state"] == many + waiting
        for name, own in later.items():
            session.push(name, own[:2])
            session.advance(name, 70)
        session.step()
        waiting = 2 if direction == "nearest" else 0
        live = sum(place % 40 > 20 for place in range(many)) + 2 + waiting
        assert session.live_rows()["Q: state"] == live
    with told.session(checkpoint=tmp_path) as session:
        assert session.live_rows()["Q: state"] == live
        session.push("L", later["L"][2:])
        session.advance("L", 130)
        session.advance("R", 130)
        session.step()
        assert session.live_rows()["Q: state"] == (1 if direction == "nearest" else 0)
        session.finish()
        session.step()
        assert found(session.results("Q")) == meant(told, {name: [*rows[name], *later[name]] for name in rows})


# --- what is kept -----------------------------------------------------------------------------------------------------


def live(relation: tg.Relation, left: Sequence[Event], right: Sequence[Event], until: int) -> int:
    with tg.program(Q=relation).session() as session:
        for name, rows in (("L", left), ("R", right)):
            session.push(name, rows)
            session.advance(name, until)
        session.step()
        return session.live_rows()["Q: state"]


def test_one_row_of_each_key_is_kept_and_those_that_wait() -> None:
    left = [(key, t, 1) for t in range(20) for key in "ab"]
    right = [(key, t, 1, 1) for t in range(0, 20, 3) for key in "ac"]
    assert live(joined(), left, right, 19) == 2
    assert live(joined(within=5), left, right, 22) == 2
    assert live(joined(within=5), left, right, 23) == 0, "a row at 24 is too far from one at 18"
    assert live(joined(direction="forward"), left, right, 19) == 1 + 20
    assert live(joined(direction="forward", within=5), left, right, 19) == 1 + 5
    assert live(joined(direction="nearest", within=5), left, right, 19) == 2 + 1 + 5
    assert live(joined(direction="nearest"), left, right, 19) == 2 + 1 + 20


@pytest.mark.parametrize(
    ("relation", "bounds"),
    [
        (joined(), ["last: keys(R by j)"]),
        (joined(within=5), ["last: rate(R) × 5, at most keys(R by j)"]),
        (L.asof_join(R), ["last: 1"]),
        (joined(direction="forward", within=5), ["waiting: rate(L) × 5"]),
        (joined(direction="forward"), ["waiting: unbounded: rows of L wait until one of R follows"]),
        (
            joined(direction="nearest", within=5),
            ["last: rate(R) × 5, at most keys(R by j)", "waiting: rate(L) × 5"],
        ),
    ],
)
def test_its_bounds(relation: tg.Relation, bounds: list[str]) -> None:
    told = [line.strip().removeprefix("holds").strip() for line in f"{tg.program(Q=relation).explain()}".split("\n")]
    for bound in bounds:
        assert bound in told


def test_it_is_explained_listed_and_answered_for(tmp_path: Path) -> None:
    told = str(program().explain())
    assert "left asof join r0 with r1 by k = j, backward: u <= t" in told
    assert "inner asof join r0 with r1 by k = j, backward: u < t within 9" in told
    assert "left asof join r0 with r1 by k = j, nearest: u near t within 7" in told
    assert "final when  t <= min(L.t, R.u)" in told
    with program().session(checkpoint=tmp_path) as session:
        session.push("L", [("a", 10, 1), ("b", 12, 1)])
        session.push("R", [("a", 9, 1, 1)])
        session.advance("L", 12)
        session.step()
        assert "R" in str(session.why("Back"))
        session.advance("R", 12)
        session.step()
        assert [row["u"] for row in session.results("Back")] == [9, None]
    listed = str(list_state(LocalStore(tmp_path)))
    assert "last        1 row that later rows look at" in listed
    assert "waiting     1 row that waits for one after it" in listed or "waiting     " in listed
    assert "bound       last: keys(R by j)" in listed


# --- how it is written ------------------------------------------------------------------------------------------------


def test_an_instant_beside_the_order_progresses_no_further() -> None:
    """Rows up to an instant of the second kind may have arrived while the right side has not come so far."""
    stream = tg.stream(
        "U", "k string, t bigint, s bigint", progress=("t", "s"), relations=lambda r: [r.s <= r.t + 4, r.t <= r.s + 3]
    )
    with tg.program(Q=stream.asof_join(R, by=KEYS, left_on=stream.t).select("t", "s", "u")).session() as session:
        session.push("U", [("a", 5, 2)])
        session.advance("U", {"s": 6, "t": 9})
        session.advance("R", 4)
        session.step()
        assert session.results("Q") == []
        session.push("R", [("a", 5, 0, 0)])
        session.advance("R", 5)
        session.step()
        assert found(session.results("Q")) == [(5, 2, 5)]


def test_instants_of_both_sides_are_instants_of_an_inner_join() -> None:
    both = joined(how="inner", within=5)
    assert both.schema["u"].temporal
    assert not joined().schema["u"].temporal
    counted = both.group_by(w=tg.ceil(both.u, 10)).agg(n=tg.count())
    assert tg.program(Q=counted).check() == []
    assert run(counted, [("a", 3, 0), ("a", 12, 0)], [("a", 3, 0, 0), ("a", 9, 0, 0)]) == [(10, 2)]


def test_a_row_that_waits_for_ever_promises_its_completion_alone() -> None:
    for direction in ("forward", "nearest"):
        assert tg.program(Q=joined(direction=direction)).check() == []
        (problem,) = tg.program(Q=joined(direction=direction).drop("complete")).check()
        assert problem.code == "TG201"
        assert "complete has no upper bound relative to t" in problem.message
        assert tg.program(Q=joined(direction=direction, within=5).drop("complete")).check() == []


def test_both_sides_are_streams() -> None:
    """A table is complete before the program starts: it has no progress to wait for."""
    trades = tg.stream("Trades", "k bigint, time timestamp", progress="time")
    table = tg.table("Rates", "j bigint, since timestamp not null")
    for relation in (trades.asof_join(table, by=[("k", "j")]), table.asof_join(trades, by=[("j", "k")])):
        (problem,) = tg.program(Q=relation).check()
        assert problem.code == "TG162"
        assert "declare a stream instead" in problem.hint


def test_durations_are_those_of_the_timeline() -> None:
    trades = tg.stream("Trades", "symbol string, time timestamp", progress="time").as_("t")
    quotes = tg.stream("Quotes", "symbol string, time timestamp, bid double", progress="time").as_("q")
    told = tg.program(Q=trades.asof_join(quotes, by="symbol", within="5m").select(trades.time, quotes.bid))
    rows = {
        "Trades": [("A", "2026-03-02T09:05Z"), ("A", "2026-03-02T09:10Z")],
        "Quotes": [("A", "2026-03-02T09:04:59.999999Z", 7.0), ("A", "2026-03-02T09:03Z", 6.0)],
    }
    assert [row["bid"] for row in sorted(told.run(rows)["Q"].rows(), key=str)] == [None, 7.0]
    assert "within 5 min" in str(told.explain()) or "within 5m" in str(told.explain())


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: joined(direction="back"), "TG114 direction='back'"),
        (lambda: joined(how="right"), "TG114 how='right'"),
        (lambda: joined(strict="yes"), "TG114 strict='yes'"),
        (lambda: joined(within="5m"), "TG160 within is a number of ticks here"),
        (lambda: joined(within=-1), "TG160 within=-1 is negative"),
        (lambda: joined(by="k"), "TG101"),
        (lambda: joined(by=[3]), "TG114 3 names no key of both sides"),
        (lambda: joined(by=[("k", "n")]), "TG102 'k' is string, 'n' is bigint"),
        (lambda: joined(left_on="v"), "TG117 'v' orders no rows"),
        (lambda: joined(tie="v"), "TG101"),
        (lambda: L.asof_join(L, by="k"), "TG103 L is used twice here"),
        (lambda: L.asof_join(tg.stream("M", "k string, u bigint", progress="u"), by="k"), "TG103 ambiguous name 'k'"),
        (lambda: L.asof_join("R"), "TG114 asof_join got"),  # type: ignore[arg-type]  # the point
        (
            lambda: L.asof_join(R.with_(i="j"), by=[("k", "j"), ("k", "i")]),
            "TG103 k stands for two keys(.|\n)*with_\\(other='k'\\)",
        ),
        (lambda: L.rename(v="complete").asof_join(R, direction="forward"), "TG103 'complete' says when"),
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()
