"""Places of rows in their groups, and the first rows of each: what they mean, whatever the batching and the engine."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb
import polars as pl
import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tests.shards import shards
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

#: No two rows have the same n.
S = tg.stream("S", "k string, t bigint, v bigint, x double, n bigint", progress="t")
W = S.with_(end=tg.ceil(S.t, 10))
UNTYPED: Any = W
TOTALS = S.group_by("k", end=tg.ceil(S.t, 10)).agg(total=tg.sum(S.v), n=tg.count())


def program() -> tg.Program:
    top = W.top_k(2, by=("end", "k"), order=tg.desc("v"))
    sessions = S.windows(tg.session(3), by="k").agg(n=tg.count())
    return tg.program(
        Placed=W.ranked(by=("end", "k"), order=tg.desc("v"), place=tg.rank(), dense=tg.dense_rank()),
        Numbered=W.ranked(by="end", order=(tg.desc("x"), "n"), number=tg.row_number()),
        Top=top,
        Best=TOTALS.top_k(1, by="end", order=(tg.desc("total"), TOTALS.n + 1)),
        Longest=sessions.top_k(1, by=("start", "end"), order=tg.desc("n")),
        Instants=S.ranked(by="t", order=(S.x, tg.desc(S.v)), place=tg.dense_rank()),
        Counted=top.group_by("end").agg(n=tg.count(), most=tg.max(top.v)),
    )


NAMES = ("Placed", "Numbered", "Top", "Best", "Longest", "Instants", "Counted")


def events(seed: int) -> list[Event]:
    """With peers, and values that are NULL, not finite, or zeros of two signs."""
    rng = random.Random(seed)
    values = (0.5, -2.25, 0.0, -0.0, None, float("inf"), float("nan"))
    return [
        (rng.choice(("a", "b", "c", None)), t, rng.choice((1, 1, 2, -3, None)), rng.choice(values), n)
        for n, t in enumerate(sorted(rng.randrange(-20, 80) for _ in range(60)))
    ]


def comparable(row: Event) -> Event:
    """The row with text in the place of NaN, which equals nothing."""
    return tuple("NaN" if value != value else value for value in row)


def meant(program: tg.Program, rows: Sequence[Event], name: str = "Q") -> list[Event]:
    (query,) = (one for one in program.definition.queries if one.stream == name)
    return sorted(map(comparable, evaluate(query.node, {"S": list(rows)})), key=str)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((comparable(tuple(row.values())) for row in rows), key=str)


def run(relation: tg.Relation, rows: Sequence[Event]) -> list[Event]:
    return found(tg.program(Q=relation).run({"S": rows})["Q"].rows())


def of(*values: Any, key: str = "a", t: int = 5) -> list[Event]:
    """Rows of one group with these values."""
    return [(key, t, value, None, n) for n, value in enumerate(values)]


# --- what it means ----------------------------------------------------------------------------------------------------


def placed(rows: Sequence[Event], order: Any) -> list[Event]:
    numbers: dict[str, Any] = {"place": tg.rank(), "dense": tg.dense_rank()}
    return [
        row[:3] for row in run(W.ranked(by="end", order=order, **numbers).select("v", "place", "dense", "end"), rows)
    ]


def test_peers_have_one_rank_and_null_comes_last() -> None:
    rows = of(7, 3, 7, None, 1)
    assert placed(rows, tg.desc("v")) == [(1, 4, 3), (3, 3, 2), (7, 1, 1), (7, 1, 1), (None, 5, 4)]
    assert placed(rows, "v") == [(1, 1, 1), (3, 2, 2), (7, 3, 3), (7, 3, 3), (None, 5, 4)]
    assert placed(rows, lambda r: tg.desc(-r.v)) == placed(rows, "v")


def test_values_are_equal_as_everywhere() -> None:
    zeros = [("a", 5, n, value, n) for n, value in enumerate((0.0, -0.0, float("nan"), 1.0, None))]
    told = W.ranked(by="end", order=tg.desc("x"), place=tg.rank()).select("n", "place", "end")
    assert run(told, zeros) == [(0, 3, 10), (1, 3, 10), (2, 1, 10), (3, 2, 10), (4, 5, 10)]
    keyed = W.ranked(by=("x", "end"), order="n", place=tg.row_number()).select("n", "place", "end")
    assert run(keyed, zeros) == [(0, 1, 10), (1, 2, 10), (2, 1, 10), (3, 1, 10), (4, 1, 10)]


def test_groups_are_ranked_by_themselves() -> None:
    rows = [*of(1, 2), *of(3, key="b"), *of(4, t=11)]
    told = W.ranked(by=("k", "end"), order=tg.desc("v"), place=tg.rank()).select("k", "t", "v", "place")
    assert run(told, rows) == [("a", 11, 4, 1), ("a", 5, 1, 2), ("a", 5, 2, 1), ("b", 5, 3, 1)]


def test_the_first_rows_and_the_peers_of_the_last() -> None:
    rows = of(5, 4, 4, 4, 3)
    assert [row[0] for row in run(W.top_k(2, by="end", order=tg.desc("v")).select("v", "end"), rows)] == [4, 4, 4, 5]
    two = W.top_k(2, by="end", order=(tg.desc("v"), "n")).select("v", "n", "end")
    assert run(two, rows) == [(4, 1, 10), (5, 0, 10)]
    assert run(W.top_k(9, by="end", order="v").select("v", "end"), rows) == [(v, 10) for v in (3, 4, 4, 4, 5)]
    assert W.top_k(2, by="end", order="v").schema == W.schema


@pytest.mark.parametrize("seed", range(3))
def test_places_are_those_of_sql(seed: int) -> None:
    """DuckDB over the same rows."""
    rows = [(k, t, v, None if x is None or x != x else x, n) for k, t, v, x, n in events(seed)]
    connection = duckdb.connect()
    connection.register("s", pl.DataFrame(rows, schema=["k", "t", "v", "x", "n"], orient="row").to_arrow())
    told = connection.execute(
        "select n, rank() over w, dense_rank() over w, row_number() over (w_all order by x desc nulls last, n) from s "
        "window w as (partition by ceil(t / 10), k order by v desc nulls last), w_all as (partition by ceil(t / 10))"
    ).fetchall()
    first = W.ranked(by=("k", "end"), order=tg.desc("v"), place=tg.rank(), dense=tg.dense_rank())
    both = first.ranked(by="end", order=(tg.desc("x"), "n"), number=tg.row_number())
    placed = [row[:4] for row in run(both.select("n", "place", "dense", "number", "end"), rows)]
    assert sorted(placed, key=str) == sorted(told, key=str)


def test_where_one_must_come_first_something_says_which() -> None:
    numbered = W.ranked(by="end", order="v", place=tg.row_number()).select("n", "place", "end")
    rows = [*of(1, 2, 2), *of(7, t=15)]
    with pytest.raises(tg.TidegateError, match=r"TG304 two rows of one group at 10 are peers(?s:.*)tg.rank\(\)"):
        tg.program(Q=numbered).run({"S": tg.source(rows, ties="fail")})
    with tg.program(Q=numbered).session() as session:
        session.push("S", rows)
        session.finish()
        session.step()
        assert found(session.results("Q")) == [(0, 1, 10), (0, 1, 20)]
        assert [row["reason"] for row in session.quarantine_rows()] == ["tie", "tie"]


def test_a_value_that_there_is_not_sets_the_row_aside() -> None:
    told = W.ranked(by="end", order=W.v / (W.n - 1), place=tg.rank()).select("n", "place", "end")
    with tg.program(Q=told).session() as session:
        session.push("S", of(4, 5, 6))
        session.finish()
        session.step()
        assert found(session.results("Q")) == [(0, 1, 10), (2, 2, 10)]
        assert [row["reason"] for row in session.quarantine_rows()] == ["unevaluable"]


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shards(6))
def test_places_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """In disorder that progress permits, and with a start from the checkpoint in between."""
    rows = events(seed)
    completed = dict.fromkeys(("Placed", "Numbered", "Top", "Best", "Longest"), "end") | {"Instants": "t"}
    results = in_any_batches(program, rows, seed, tmp_path, completed)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name), name


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, 1])
def test_spark_has_the_same_places(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 30, shard_bytes, spark, monkeypatch)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name), name


# --- when they are complete, and what is kept -------------------------------------------------------------------------


def test_a_group_is_reported_at_its_end_and_nothing_is_kept() -> None:
    with tg.program(Q=W.top_k(1, by=("end", "k"), order=tg.desc("v")).select("v", "end")).session(
        collect_garbage="exact"
    ) as session:
        session.push("S", of(1, 2))
        session.advance("S", 9)
        session.step()
        assert session.results("Q") == []
        session.push("S", of(3, t=10))
        session.advance("S", 10)
        session.step()
        assert found(session.results("Q")) == [(3, 10)]
        assert session.live_rows()["Q: state"] == 0
        session.advance("S", 19)
        session.step()
        assert not any(session.live_rows().values())


def test_no_group_is_open_when_the_input_ends() -> None:
    with (
        tg.program(Q=W.top_k(1, by="end", order="v")).session() as session,
        pytest.raises(tg.TidegateError, match="TG417"),
    ):
        session.finish(close_at=20)


def test_they_are_explained_and_listed(tmp_path: Path) -> None:
    told = str(program().explain())
    assert "rank r0 by end, k in order of v descending, once end is over: place = rank(), dense = dense_rank()" in told
    assert "final when  end <= S.t" in told
    with program().session(checkpoint=tmp_path) as session:
        session.push("S", of(1, 2))
        session.advance("S", 7)
        session.step()
        assert "has arrived up to 7" in str(session.why("Placed"))
    assert "Placed: state: 0 rows" in str(list_state(LocalStore(tmp_path)))


def test_an_instant_beside_the_window_progresses_no_further() -> None:
    """Rows that come before in the order may be missing when progress has come to the row's own instant."""
    told = W.top_k(1, by="end", order="v").select("t", "v", "end")
    with tg.program(Q=told.select("t", "v")).session() as session:
        session.push("S", of(1, t=3))
        session.advance("S", 5)
        session.step()
        assert session.results("Q") == []
        session.push("S", of(2, t=8))
        session.finish()
        session.step()
        assert found(session.results("Q")) == [(3, 1)]


def test_which_instant_completes_a_group() -> None:
    """That of windows, or else the first that progresses."""
    sessions = S.windows(tg.session(3), by="k").agg(n=tg.count())
    for rows in (sessions, sessions.rename(end="over").with_(twice=sessions.n * 2).rename(over="end")):
        first: Any = rows.top_k(1, by=("start", "end"), order="n")
        assert first._node.input.input.completed_by == "end"
        assert tg.program(Q=first).check() == []
    other = tg.stream("U", "k string, u bigint, t bigint, v bigint", progress="t", temporal="u")
    assert tg.program(Q=other.top_k(1, by=("u", "t"), order="v")).check() == []
    renamed = other.as_("o")
    assert tg.program(Q=renamed.top_k(1, by=("o.u", "o.t"), order="v")).check() == []
    (problem,) = tg.program(Q=other.top_k(1, by="u", order="v")).check()
    assert problem.code == "TG201"
    assert "\0" not in str(problem)


# --- how they are written ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: W.top_k(3, by="k", order="v"), r"TG117 top_k has no instant in by=\(k\)(?s:.*)by=\('k', 'end'\)"),
        (lambda: W.top_k(3, by=(), order="v"), r"TG117 top_k has no instant in by=\(\)(?s:.*)tg.ceil\(r.t, 10\)"),
        (lambda: W.select("v").top_k(3, by="v", order="v"), "TG117 top_k has no instant(?s:.*)keep an instant"),
        (lambda: W.top_k(0, by="end", order="v"), "TG114 top_k counts rows from 1 on, not 0"),
        (lambda: W.top_k("3", by="end", order="v"), "TG114 top_k counts rows from 1 on, not '3'"),  # type: ignore[arg-type]  # the point
        (lambda: UNTYPED.top_k(by="end", order="v"), "TG114 (?s:.*)say how many rows"),
        (lambda: UNTYPED.top_k(3, order="v"), "TG114 (?s:.*)say of which group"),
        (lambda: UNTYPED.top_k(3, by="end"), "TG114 (?s:.*)say which rows come first"),
        (lambda: W.top_k(3, by="end", order=()), "TG114 top_k has no order"),
        (lambda: W.top_k(3, by=("end", "end"), order="v"), "TG103 rows are partitioned by end twice"),
        (lambda: W.ranked(by="end", order="v"), "TG114 ranked computes nothing"),
        (lambda: W.ranked(by="end", order="v", v=tg.rank()), "TG103 attribute 'v' exists already"),
        (lambda: W.ranked(by="end", order="v", place=tg.lag(W.v)), "TG115 place=lag"),
        (lambda: UNTYPED.ranked(by="end", order="v", place=3), "TG115 place=3 is no place of a row in its group"),
        (lambda: W.ranked(by="end", order="w", place=tg.rank()), "TG101"),
        (lambda: UNTYPED.with_(d=tg.desc(W.v)), r"TG115 desc\(v\) is an order, and no value"),
        (lambda: UNTYPED.with_(d=tg.rank()), r"TG115 rank\(\) looks at other rows"),
        (lambda: UNTYPED.over(by="k", order="t", d=tg.rank()), r"TG115 d=rank\(\) says nothing of other rows"),
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()


def test_tables_are_not_ranked() -> None:
    table = tg.table("Fixed", "at timestamp not null, v bigint")
    (problem,) = tg.program(Q=table.top_k(1, by="at", order="v")).check()
    assert problem.code == "TG162"


def test_rows_of_one_group_that_are_tied_take_none_of_other_groups_along() -> None:
    stream = tg.stream("S", "k bigint, a bigint, v bigint", progress="a")
    numbered = tg.program(Q=stream.ranked(by="a", order=stream.v, n=tg.row_number()))
    rows = [(1, 1, 1), (2, 1, 1), (3, 2, 1), (4, 3, 7)]
    wanted = [(3, 2, 1), (4, 3, 1)]
    for batches in ([rows], [rows[:2], rows[2:]]):
        with numbered.session() as session:
            for batch in batches:
                session.push("S", batch)
                session.advance("S", batch[-1][1] - 1)
                session.step()
            session.finish()
            session.step()
            assert [(row["k"], row["a"], row["n"]) for row in session.results("Q")] == wanted
            assert [row["reason"] for row in session.quarantine_rows()] == ["tie", "tie"]
