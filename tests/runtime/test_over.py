"""Rows with values of the rows around them: what they mean, whatever the batching and the engine, and what is kept."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

import duckdb
import polars as pl
import pytest

import tidegate as tg
from tests.properties.drive import as_tuples
from tests.runtime.batchings import in_any_batches, on_spark
from tests.shards import shards
from tests.strategies.over import random_over_case
from tidegate.algebra.dsl.over import build
from tidegate.algebra.dsl.over.chains import in_one_operator
from tidegate.algebra.nodes import Node, nodes_of
from tidegate.algebra.ordered.over import Over
from tidegate.algebra.semantics import evaluate, evaluate_program
from tidegate.analysis.ordered.table import family_of
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.ordered import state as operator_state
from tidegate.runtime.ordered.over.operator import OverOperator
from tidegate.runtime.ordered.over.queued import layout as queued
from tidegate.runtime.ordered.over.queued.layout import FEW_ROWS, queued_layout
from tidegate.runtime.ordered.over.queued.operator import QueuedOperator
from tidegate.runtime.ordered.row_arrays import RowArrays
from tidegate.runtime.ordered.state import SMALL
from tidegate.runtime.ordered.table import start_operator
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, v bigint", progress="t")
#: Where a type checker would refuse them already.
LAG: Any = tg.lag(S.v)
NUMBER: Any = tg.row_number()
T = tg.stream("T", "k string, t bigint, n bigint, v bigint, x double, w string", progress="t")


def over(**options: Any) -> tg.Relation:
    """Of S, by key in order of time."""
    return S.over(by="k", order="t", **options)


def program() -> tg.Program:
    long = over(next=tg.lead(S.v, within=7))
    return tg.program(
        Before=over(before=tg.lag(S.v), n=tg.row_number(), total=tg.sum(S.v)),
        Moving=over(range=9, least=tg.min(S.v), mean=tg.avg(S.v)),
        Long=long.where(long.next.is_null()).select("k", "complete"),
        All=S.over(order="t", before=tg.lag(S.k, 2), other=tg.previous_different(S.v)),
        Once=S.distinct_on("k"),
        Rare=S.dedup(by=("k", "v"), within=7),
        Held=S.versions(by="k"),
        Counted=long.group_by(w=tg.ceil(long.complete, 10)).agg(n=tg.count()),
    )


NAMES = ("Before", "Moving", "Long", "All", "Counted", "Once", "Rare", "Held")


def events(seed: int) -> list[Event]:
    rng = random.Random(seed)
    times = rng.sample(range(1, 120), 60)
    return [(rng.choice(("a", "b", "c", None)), t, rng.choice((1, 1, 2, -3, None))) for t in sorted(times)]


def meant(rows: Sequence[Event], name: str) -> list[Event]:
    (query,) = (one for one in program().definition.queries if one.stream == name)
    return sorted(evaluate(query.node, {"S": list(rows)}), key=str)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def run(relation: tg.Relation, rows: Sequence[Event], stream: str = "S") -> list[Event]:
    return found(tg.program(R=relation).run({stream: rows})["R"].rows())


# --- what it means ----------------------------------------------------------------------------------------------------


def test_null_is_a_value_of_neighbours_and_none_of_aggregates() -> None:
    """As in SQL: the default stands for a row that there is not, never for a value that is NULL."""
    rows = [("a", 1, 5), ("a", 2, None), ("a", 3, 7), ("b", 4, None)]
    told = over(
        before=tg.lag(S.v, 1, 0),
        total=tg.sum(S.v),
        many=tg.count(S.v),
        rows_=tg.count(),
        first=tg.nth(S.v, 1),
        second=tg.nth(S.v, 2),
        last=tg.last(S.v, by=S.t),
    )
    assert run(told.drop("k", "v"), rows) == [
        (1, 0, 5, 1, 1, 5, None, 5),
        (2, 5, 5, 1, 2, 5, None, 5),
        (3, None, 12, 2, 3, 5, None, 7),
        (4, 0, None, 0, 1, None, None, None),
    ]


def test_rows_of_one_instant_are_peers() -> None:
    """A frame by range has all of them or none, also where they come in two batches."""
    rows = [("a", 1, 5), ("a", 3, 7), ("a", 3, 9), ("a", 4, 1)]
    told = over(total=tg.sum(S.v), many=tg.count()).over(by="k", order="t", range=1, least=tg.min(S.v))
    wanted = [("a", 1, 5, 5, 1, 5), ("a", 3, 7, 21, 3, 7), ("a", 3, 9, 21, 3, 7), ("a", 4, 1, 22, 4, 1)]
    assert run(told, rows) == wanted
    with tg.program(R=told).session() as session:
        for row in rows:
            session.push("S", [row])
            session.step()
        session.finish()
        session.step()
        assert found(session.results("R")) == wanted


@pytest.mark.parametrize("column", [tg.lag(S.v), tg.row_number(), tg.nth(S.v, 1), tg.last(S.v, by=S.t)])
def test_where_one_must_come_first_something_says_which(column: Any) -> None:
    rows = [("a", 3, 9), ("a", 3, 7)]
    strict = {"S": tg.source(rows, ties="fail")}
    with pytest.raises(tg.TidegateError, match="TG304 two events of one partition at 3: nothing says which comes"):
        tg.program(R=over(c=column)).run(strict)
    with pytest.raises(tg.TidegateError, match="TG304"):
        tg.program(R=over(rows=(1, 0), c=tg.sum(S.v))).run(strict)
    tied = S.over(by="k", order="t", tie="v", c=tg.row_number(), total=tg.sum(S.v))
    assert run(tied, rows) == [("a", 3, 7, 1, 7), ("a", 3, 9, 2, 16)]


def test_a_row_is_complete_when_the_next_is_there_or_has_not_come_in_time() -> None:
    rows = [("a", 1, 5), ("a", 4, 7), ("a", 9, 9)]
    assert run(over(next=tg.lead(S.v)), rows) == [("a", 1, 5, 7, 4), ("a", 4, 7, 9, 9)]
    assert run(over(next=tg.lead(S.v, within=3)), rows) == [
        ("a", 1, 5, 7, 4),
        ("a", 4, 7, None, 7),
        ("a", 9, 9, None, 12),
    ]
    assert run(over(next=tg.lead(S.v, 2, -1, within=8)), rows) == [
        ("a", 1, 5, 9, 9),
        ("a", 4, 7, -1, 12),
        ("a", 9, 9, -1, 17),
    ]
    changes = [("a", 1, 5), ("a", 2, 5), ("a", 4, None), ("a", 9, None)]
    assert run(over(next=tg.next_different(S.v)), changes) == [("a", 1, 5, None, 4), ("a", 2, 5, None, 4)]
    assert run(over(next=tg.next_different(S.v, within=2)), [*changes, ("a", 10, 7)]) == [
        ("a", 1, 5, None, 3),
        ("a", 10, 7, None, 12),
        ("a", 2, 5, None, 4),
        ("a", 4, None, None, 6),
        ("a", 9, None, 7, 10),
    ]
    centred = over(range=(3, 5), mean=tg.avg(S.v), before=tg.lag(S.v))
    assert run(centred, rows) == [("a", 1, 5, 6.0, None, 6), ("a", 4, 7, 7.0, 5, 9), ("a", 9, 9, 9.0, 7, 14)]


@pytest.mark.parametrize("before", [False, True])
def test_where_the_input_ends_rows_that_wait_may_end_too(before: bool) -> None:
    """Whether they came in the last batch or before it."""
    with tg.program(R=over(next=tg.lead(S.v, 1, 0), rows=(1, 1), total=tg.sum(S.v))).session() as session:
        session.push("S", [("a", 1, 5), ("a", 4, 7), ("b", 6, 1)])
        if before:
            session.advance("S", 10)
            session.step()
            assert found(session.results("R")) == [("a", 1, 5, 7, 12, 4)]
        session.finish(close_at=20)
        session.step()
        assert found(session.results("R")) == [("a", 1, 5, 7, 12, 4), ("a", 4, 7, 0, 12, 20), ("b", 6, 1, 0, 1, 20)]


def test_gaps_and_islands() -> None:
    """Runs of equal values are numbered by how often they begin."""
    rows = [("a", t, v) for t, v in enumerate((1, 1, 2, 2, 2, 1, 1))]
    changes = over(before=tg.lag(S.v))
    changes = changes.with_(begins=tg.when(changes.before == changes.v, 0, otherwise=1))
    islands = changes.over(by="k", order="t", island=tg.sum(changes.begins))
    assert [row[-1] for row in run(islands.select("t", "island"), rows)] == [1, 1, 2, 2, 2, 3, 3]


def test_values_are_equal_as_everywhere() -> None:
    """Zeros of two signs, and NaN of two; NaN is the greatest double."""
    doubles = [0.0, -0.0, float("nan"), -float("nan"), None, 1.0]
    told = T.over(by="k", order="t", other=tg.previous_different(T.x), most=tg.max(T.x), least=tg.min(T.x))
    rows = [("a", t, 0, 0, x, "") for t, x in enumerate(doubles)]
    assert [str(row) for row in run(told.select("t", "other", "most", "least"), rows, "T")] == [
        "(0, None, 0.0, 0.0)",
        "(1, None, 0.0, 0.0)",
        "(2, -0.0, nan, 0.0)",
        "(3, -0.0, nan, 0.0)",
        "(4, nan, nan, 0.0)",
        "(5, None, nan, 0.0)",
    ]


def test_a_sum_that_does_not_fit_is_an_error_of_that_row() -> None:
    rows = [("a", 1, 1 << 62), ("a", 2, 1 << 62), ("a", 3, -(1 << 62))]
    assert run(over(rows=(0, 0), total=tg.sum(S.v), mean=tg.avg(S.v)), rows)[2][3:] == (-(1 << 62), -(2.0**62))
    with pytest.raises(tg.TidegateError, match=r"TG301 total: the sum is out of range"):
        tg.program(R=over(total=tg.sum(S.v))).run({"S": rows}, on_error="fail")
    for relation in (over(total=tg.sum(S.v)), over(total=tg.sum(S.v), next=tg.lead(S.k, within=1))):
        with tg.program(R=relation).session() as session:
            session.push("S", rows)
            session.finish()
            session.step()
            assert [row["total"] for row in session.results("R")] == [1 << 62, None, 1 << 62]
            (aside,) = session.quarantine_rows()
            assert (aside["reason"], aside["attribute"]) == ("overflow", "total")
            assert '"t": 2' in aside["row"]
    known = run(over(total=tg.try_sum(S.v), mean=tg.avg(S.v)), rows)
    assert [row[3:] for row in known] == [(1 << 62, 2.0**62), (None, 2.0**62), (1 << 62, (1 << 62) / 3)]


FRAMES = {
    "": {},
    "rows between 2 preceding and current row": {"rows": (2, 0)},
    "rows between 1 preceding and 2 following": {"rows": (1, 2)},
    "rows between unbounded preceding and 1 following": {"rows": (None, 1)},
}
RANGES = {
    "range between 5 preceding and current row": {"range": 5},
    "range between 3 preceding and 4 following": {"range": (3, 4)},
    "range between unbounded preceding and 2 following": {"range": (None, 2)},
}
COLUMNS = {
    "count(*)": tg.count(),
    "count(v)": tg.count(T.v),
    "sum(v)": tg.sum(T.v),
    "sum(x)": tg.sum(T.x),
    "avg(v)": tg.avg(T.v),
    "min(w)": tg.min(T.w),
    "max(v)": tg.max(T.v),
    "max(x)": tg.max(T.x),
}
PLACES = {
    "first_value(v ignore nulls)": tg.first(T.v, by=T.t),
    "last_value(w ignore nulls)": tg.last(T.w, by=T.t),
    "nth_value(w, 2)": tg.nth(T.w, 2),
    "lag(v)": tg.lag(T.v),
    "lag(w, 2, 'none')": tg.lag(T.w, 2, "none"),
    "lead(v)": tg.lead(T.v),
    "lead(x, 3)": tg.lead(T.x, 3),
    "row_number()": tg.row_number(),
}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("frame", "options"), [*FRAMES.items(), *RANGES.items()])
def test_values_are_those_of_sql(frame: str, options: dict[str, Any], seed: int) -> None:
    """DuckDB over the same rows. What has more rows to come is reported when the input is said to end."""
    rng = random.Random(seed)
    peers = frame in RANGES or not frame
    taken, rows = set[Event](), list[Event]()
    for _ in range(60):
        k, t = rng.choice(("a", "b", None)), rng.randrange(30)
        if not peers and (k, t) in taken:
            continue
        taken.add((k, t))
        x = rng.choice((0.5, -2.25, None, 8.0))
        rows.append((k, t, len(rows), rng.choice((1, 2, -7, None)), x, rng.choice(("x", "ä", "", None))))
    columns = COLUMNS if peers else {**COLUMNS, **PLACES}
    named: dict[str, Any] = {f"c{place}": column for place, column in enumerate(columns.values())}
    relation = T.over(by="k", order="t", **options, **named)
    told = ", ".join(f"{column} over (partition by k order by t {frame})" for column in columns)
    connection = duckdb.connect()
    connection.register("rows_of_t", pl.DataFrame(rows, schema=["k", "t", "n", "v", "x", "w"], orient="row").to_arrow())
    wanted = sorted(connection.execute(f"select n, {told} from rows_of_t").fetchall())  # noqa: S608  # written above
    with tg.program(
        R=relation.select("n", *named, "complete" if "complete" in relation.schema else "t")
    ).session() as s:
        s.push("T", rows)
        s.finish(close_at=1000 if "complete" in relation.schema else None)
        s.step()
        assert sorted(tuple(row.values())[:-1] for row in s.results("R")) == wanted


def test_a_key_is_let_through_again_after_so_long_a_time_without_it_being_let_through() -> None:
    """What was dropped does not put it off: a key that comes every 3 ticks is let through every 6."""
    rows = [*(("a", t, t) for t in range(0, 30, 3)), ("b", 7, 0), ("b", 12, 1), ("b", 13, 2)]
    assert run(S.dedup(by="k", within=5), rows) == [
        *(("a", t, t) for t in sorted((0, 6, 12, 18, 24), key=str)), ("b", 13, 2), ("b", 7, 0)
    ]  # fmt: skip
    assert run(S.dedup(by="k"), rows) == run(S.distinct_on("k"), rows) == [("a", 0, 0), ("b", 7, 0)]
    assert run(S.dedup(by="k", within=0), rows) == sorted(rows, key=str)
    assert run(S.where(S.k == "a").dedup(by=(), within=5), rows) == [
        ("a", t, t) for t in sorted((0, 6, 12, 18, 24), key=str)
    ]


def test_of_equal_rows_one_is_let_through_of_others_a_tie_says_which() -> None:
    once = tg.source([("a", 1, 5), ("a", 1, 5), ("a", 2, 5)], ties="fail")
    assert found(tg.program(R=S.dedup(by="k")).run({"S": once})["R"].rows()) == [("a", 1, 5)]
    with pytest.raises(tg.TidegateError, match="TG304"):  # of each row around it something else could be said
        tg.program(R=over(c=tg.lag(S.v))).run({"S": tg.source([("a", 1, 5), ("a", 1, 5)], ties="fail")})
    with pytest.warns(tg.RunWarning, match="TG304"):
        assert run(S.dedup(by="k"), [("a", 1, 5), ("a", 1, 6)]) == []
    assert run(S.dedup(by="k", tie="v"), [("a", 1, 5), ("a", 1, 5)]) == [("a", 1, 5)]
    assert run(S.dedup(by="k", tie="v"), [("a", 1, 6), ("a", 1, 5), ("a", 2, 7)]) == [("a", 1, 5)]
    assert run(S.dedup(by="k", tie="v", within=0), [("a", 1, 6), ("a", 1, 5), ("a", 2, 7)]) == [
        ("a", 1, 5), ("a", 2, 7)
    ]  # fmt: skip


def test_what_is_tied_is_told_also_where_the_order_is_a_key_or_the_tie() -> None:
    for relation, rows in (
        (S.dedup(by="t"), [("a", 1, 1), ("b", 1, 1)]),
        (S.dedup(by="k", tie="t"), [("a", 1, 1), ("a", 1, 2)]),
        (S.over(by="t", order="t", before=tg.lag(S.v)), [("a", 1, 1), ("b", 1, 1)]),
    ):
        with pytest.warns(tg.RunWarning, match="TG304"):
            assert run(relation, rows) == []


@pytest.mark.parametrize("size", [1, 4])
def test_equal_rows_are_none_of_those_that_are_set_aside(size: int) -> None:
    """Also where others of the batch are tied."""
    rows = [("a", 1, 1), ("a", 1, 1), ("b", 2, 1), ("b", 2, 2)]
    with tg.program(R=S.dedup(by="k")).session() as session:
        for until in (1, 2) if size == 1 else (2,):
            session.push("S", [row for row in rows if row[1] == until or size == 4])
            session.advance("S", until)
            session.step()
        session.finish()
        assert found(session.results("R")) == [("a", 1, 1)]
        assert sorted(row["row"].count('"b"') for row in session.quarantine_rows()) == [1, 1]


def test_a_version_holds_until_the_next() -> None:
    rows = [("a", 1, 5), ("b", 2, 8), ("a", 4, 6), ("a", 9, 7)]
    relation = S.versions(by="k")
    assert run(relation, rows) == [("a", 1, 5, 4), ("a", 4, 6, 9)]
    assert relation.schema["until"].temporal
    closed = tg.program(R=relation).run({"S": rows}, close_at=20)["R"].rows()
    assert found(closed) == [("a", 1, 5, 4), ("a", 4, 6, 9), ("a", 9, 7, 20), ("b", 2, 8, 20)]


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shards(6))
def test_rows_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """In disorder that progress permits, and with a start from the checkpoint in between."""
    rows = events(seed)
    results = in_any_batches(program, rows, seed, tmp_path, {"Before": "t", "Long": "complete"})
    for name in NAMES:
        assert found(results[name]) == meant(rows, name)


@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [pytest.param(0, marks=pytest.mark.long), 1])
def test_spark_has_the_same_rows(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 30, shard_bytes, spark, monkeypatch)
    for name in NAMES:
        assert found(results[name]) == meant(rows, name)


def test_many_partitions_are_written_as_deltas(tmp_path: Path) -> None:
    """And read again: what the last batch has changed counts, and of partitions that are done with nothing is left."""
    told = tg.program(R=over(before=tg.lag(S.v, within=50), total=tg.sum(S.v), range=50))
    many = SMALL + 100
    rows = [(f"k{place}", place % 40, place) for place in range(many)]
    later = [("k1", 60, 1), ("k2", 61, 2), ("k5", 99, 3)]
    with told.session(checkpoint=tmp_path) as session:
        session.push("S", rows)
        session.advance("S", 39)
        session.step()
        assert session.live_rows()["R: state"] == many
        session.push("S", later[:2])
        session.advance("S", 70)
        session.step()
        live = sum(place % 40 > 20 for place in range(many)) + 2
        assert session.live_rows()["R: state"] == live
    with told.session(checkpoint=tmp_path) as session:
        assert session.live_rows()["R: state"] == live
        session.push("S", later[2:])
        session.advance("S", 110)
        session.step()
        assert session.live_rows()["R: state"] == 2
        session.finish()
        session.step()
        assert found(session.results("R")) == run_of(told, rows + later)


def run_of(told: tg.Program, rows: Sequence[Event]) -> list[Event]:
    (query,) = told.definition.queries
    return sorted(evaluate(query.node, {"S": list(rows)}), key=str)


# --- what is kept -----------------------------------------------------------------------------------------------------


def live(relation: tg.Relation, rows: Sequence[Event], until: int) -> int:
    with tg.program(R=relation).session() as session:
        session.push("S", rows)
        session.advance("S", until)
        session.step()
        return session.live_rows()["R: state"]


def test_as_many_rows_are_kept_as_later_ones_look_at() -> None:
    rows = [(key, t, 1) for t in range(20) for key in "ab"]
    assert live(over(total=tg.sum(S.v), n=tg.row_number(), before=tg.lag(S.v)), rows, 19) == 2
    assert live(over(before=tg.lag(S.v, 3)), rows, 19) == 6
    assert live(over(rows=(5, 0), total=tg.sum(S.v)), rows, 19) == 10
    assert live(over(rows=(0, 0), total=tg.sum(S.v)), rows, 19) == 0
    for until in (19, 20, 22, 24):
        # A row at t + 1 looks back at rows from t - 4 on.
        for total in (tg.sum(S.v), tg.median(S.v)):
            assert live(over(range=5, total=total), rows, until) == 2 * max(0, 19 - (until - 4) + 1)
    assert live(over(before=tg.lag(S.v, 3, within=1)), rows, 19) == 2
    assert live(over(next=tg.lead(S.v)), rows, 19) == 2
    assert live(over(next=tg.lead(S.v, within=5)), rows, 23) == 2
    assert live(over(next=tg.lead(S.v, within=5)), rows, 24) == 0


def test_of_moving_extremes_rows_are_kept_that_no_later_one_undercuts() -> None:
    """However long frames are, and whatever else is asked of the rows before: the last row is kept for that."""
    rising = [(key, t, t) for t in range(20) for key in "ab"]
    falling = [(key, t, -t) for t in range(20) for key in "ab"]
    level = [(key, t, 7) for t in range(20) for key in "ab"]
    least = over(range=10, low=tg.min(S.v))
    assert [live(least, rows, 19) for rows in (rising, falling, level)] == [2 * 10, 2, 2]
    assert live(least, falling, 28) == 2
    assert live(least, falling, 29) == 0, "what is left goes when its own time is over"
    both = over(range=10, low=tg.min(S.v), high=tg.max(S.v))
    assert [live(both, rows, 19) for rows in (rising, falling, level)] == [2 * 10, 2 * 10, 2]
    beside = both.over(by="k", order="t", before=tg.lag(S.v, 2), total=tg.sum(S.v))
    assert live(beside, level, 19) == 4
    others = both.over(by="k", order="t", range=3, middle=tg.median(S.v))
    assert live(others, level, 19) == 2 * 10
    missing = [(key, t, None) for t in range(20) for key in "ab"]
    assert live(least, missing, 19) == 0


@pytest.mark.parametrize("seed", range(4))
def test_moving_extremes_are_those_of_all_rows_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """Of zeros of two signs too, which are one value and two texts, and beside a running total."""
    rng = random.Random(seed)
    values = (0.0, -0.0, 1.5, -2.5, float("nan"), float("inf"), None)
    rows = [
        (rng.choice("ab"), t, number, rng.choice((1, 2, 2, 3, None)), rng.choice(values), rng.choice("xyz"))
        for number, t in enumerate(sorted(rng.choices(range(60), k=90)))
    ]
    columns = "k string, t bigint, n bigint, v bigint, x double, w string"

    def made() -> tg.Program:
        d = tg.stream("S", columns, progress="t")
        moving = d.over(by="k", order="t", tie="n", range=12, low=tg.min(d.x), high=tg.max(d.v), text=tg.max(d.w))
        beside = d.over(by="k", order="t", tie="n", range=5, low=tg.min(d.v)).over(
            by="k", order="t", tie="n", total=tg.sum(d.v), before=tg.lag(d.v)
        )
        peers = d.over(by="k", order="t", range=7, low=tg.min(d.v), high=tg.max(d.w))
        return tg.program(Moving=moving, Beside=beside, Peers=peers)

    results = in_any_batches(made, rows, seed, tmp_path, dict.fromkeys(("Moving", "Beside", "Peers"), "t"))
    for name, one in results.items():
        (query,) = (query for query in made().definition.queries if query.stream == name)
        assert list(map(repr, found(one))) == list(map(repr, sorted(evaluate(query.node, {"S": rows}), key=str)))


MOVING = over(
    range=10, total=tg.sum(S.v), n=tg.count(), some=tg.count(S.v), mean=tg.avg(S.v.cast("double")), low=tg.min(S.v)
)
#: Each with how many of 40 rows, one at each tick, are kept in the end, and what the last row says that is complete.
FAR: Mapping[str, tuple[tg.Relation, int, Event]] = {
    "by range": (MOVING, 10, (sum(range(29, 40)), 11, 11, 34.0, 29)),
    "first and last": (over(range=10, a=tg.first(S.v, by=S.t), z=tg.last(S.t, by=S.t)), 10, (29, 39)),
    "by another attribute": (over(range=10, a=tg.first(S.t, by=-S.v), z=tg.arg_min(S.t, -S.v)), 10, (39, 39)),
    "by rows": (over(rows=(34, 0), a=tg.min(S.v), z=tg.first(S.t, by=S.t)), 34, (5, 5)),
    "by rows ahead": (over(rows=(33, 2), a=tg.min(S.v), z=tg.max(S.t)), 35, (4, 39)),
    "ahead": (over(range=(10, 2), a=tg.min(S.v), z=tg.max(S.v), n=tg.count()), 12, (27, 39, 13)),
    "looked up": (over(range=10, a=tg.nth(S.v, 2), z=tg.lag(S.t, 10), n=tg.lead(S.v, within=1)), 11, (29, 28, 39)),
}


@pytest.mark.parametrize("name", FAR)
def test_frames_that_move_are_made_of_a_few_of_the_rows_before(name: str) -> None:
    """An increment takes out none of the rows that stay, and writes its own rows alone."""
    relation, kept, wanted = FAR[name]
    assert queued_layout(relation._node) is not None
    step = QueuedOperator.step

    def watched(operator: QueuedOperator, *given: Any) -> Any:
        with patch.object(RowArrays, "take", side_effect=AssertionError("rows that stay are read")):
            made, result = step(operator, *given)
        changes = made.changes()
        assert changes is not None
        assert changes["rows"].num_rows <= 4, "the new row of each key, and how many of those before are gone"
        return made, result

    with tg.program(R=relation).session() as session, patch.object(QueuedOperator, "step", watched):
        for t in range(40):
            session.push("S", [("a", t, t), ("b", t, None)])
            session.advance("S", t)
            session.step()
            assert session.live_rows()["R: state"] == 2 * min(t + 1, kept)
        last = {row["k"]: tuple(row.values())[3:] for row in session.results("R")}
    columns = len(wanted)
    assert last["a"][:columns] == wanted
    assert last["b"][0] == {"first and last": None, "by another attribute": None}.get(name)


def test_rows_of_frames_leave_when_no_later_one_needs_them() -> None:
    """Those of a span as it is over though none comes, the last ones never; waiting ones with what they need."""
    relation = over(rows=(40, 0), least=tg.min(S.v)).over(by="k", order="t", range=(5, 3), most=tg.max(S.v))
    with tg.program(R=relation).session() as session:
        held = []
        for t in (0, 1, 2, 4, 9, 20):
            session.push("S", [("a", t, t)] if t < 3 else [])
            session.advance("S", t)
            session.step()
            held.append(session.live_rows()["R: state"])
        assert held == [1, 2, 3, 3, 3, 3]
    ahead = over(range=(5, 3), most=tg.max(S.v))
    with tg.program(R=ahead).session() as session:
        rows = list[tuple[int, int]]()
        for t in (0, 1, 2, 4, 5, 6, 7, 8):
            session.push("S", [("a", t, t)] if t < 3 else [])
            session.advance("S", t)
            session.step()
            rows.append((session.live_rows()["R: state"], len(session.results("R"))))
        assert rows == [(1, 0), (2, 0), (3, 0), (3, 2), (2, 3), (1, 3), (0, 3), (0, 3)]


def test_rows_of_one_instant_leave_one_by_one(tmp_path: Path) -> None:
    """Of frames by rows, also where a checkpoint says which rows are gone of those that were written before."""
    rows = T.over(by="k", order="t", tie="n", rows=(34, 0), low=tg.min(T.v))
    least: dict[int, int] = {}
    with patch.object(operator_state, "SMALL", 0):
        for first in range(0, 90, 6):
            with tg.program(R=rows).session(checkpoint=str(tmp_path / "c")) as session:
                session.push("T", [("a", n // 3, n, n, 0.0, "") for n in range(first, first + 6)])
                session.advance("T", first // 3 + 1)
                session.step()
                least |= {row["n"]: row["low"] for row in session.results("R")}
    assert least == {n: max(0, n - 34) for n in range(90)}


@pytest.mark.parametrize(
    "made",
    [
        over(range=5, low=tg.min(S.v), high=tg.max(S.v)),
        over(range=5, low=tg.min(S.v), before=tg.lag(S.v)),
        over(rows=(FEW_ROWS, 0), total=tg.sum(S.v)),
        over(rows=(FEW_ROWS - 1, FEW_ROWS), total=tg.sum(S.v)),
        over(before=tg.lag(S.v, FEW_ROWS)),
        over(total=tg.sum(S.v)),
        over(range=5, total=tg.sum(S.v)).over(by="k", order="t", all=tg.sum(S.v)),
        over(range=5, total=tg.sum(S.v), at=tg.row_number()),
        over(range=5, first=tg.first(S.k, by=S.v)),
        over(range=5, first=tg.first(S.v, by=S.k)),
        over(range=5, middle=tg.median(S.v)),
        over(range=5, n=tg.count(), most=tg.max(S.k)),
    ],
)
def test_other_frames_read_what_is_kept(made: tg.Relation) -> None:
    assert queued_layout(made._node) is None


@pytest.mark.parametrize(
    "made",
    [
        over(range=(5, 1), low=tg.min(S.v)),
        over(range=5, low=tg.min(S.v), before=tg.lag(S.v, FEW_ROWS + 1)),
        over(rows=(FEW_ROWS + 1, 0), low=tg.min(S.v)),
        over(rows=(0, FEW_ROWS + 1), low=tg.min(S.v)),
        over(before=tg.lag(S.v, FEW_ROWS + 1)),
        T.over(by="k", order="t", tie="n", range=5, total=tg.sum(T.v)),
        over(range=5, first=tg.first(S.k, by=S.t)),
    ],
)
def test_frames_that_reach_far_are_made_of_blocks(made: tg.Relation) -> None:
    assert queued_layout(made._node) is not None


def test_rows_that_count_are_let_go_with_their_window() -> None:
    """Where each window of a context is a partition, the last rows of one that is over are needed no more."""
    by_rows, by_range = over(rows=(40, 0), total=tg.sum(S.v)), over(range=40, total=tg.sum(S.v))
    for relation, growing, wanted in (
        (by_rows, (), QueuedOperator),
        (by_rows, ("k",), OverOperator),
        (by_range, ("k",), QueuedOperator),
    ):
        (node,) = (node for node in nodes_of(relation._node) if isinstance(node, Over))
        step = OrderedStep(node, (0,), "t", family_of(node).state(node), growing=growing)
        assert type(start_operator(step)) is wanted


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("few", [0, FEW_ROWS])
def test_frames_of_many_forms_have_the_rows_of_their_meaning(few: int, seed: int, tmp_path: Path) -> None:
    """In any batches, from checkpoints: by rows, by another attribute, ahead, with rows that are looked up."""
    rng = random.Random(f"forms {seed}")
    rows = [
        (
            rng.choice("aab"),
            t,
            number,
            rng.choice((1, 2, 2, -5, None)),
            rng.choice((0.5, -2.0, None)),
            rng.choice("xyz"),
        )
        for number, t in enumerate(sorted(rng.choices(range(150), k=200)))
    ]
    columns = "k string, t bigint, n bigint, v bigint, x double, w string"

    def made() -> tg.Program:
        d = tg.stream("S", columns, progress="t")
        by: Any = {"by": "k", "order": "t", "tie": "n"}
        rows_back = d.over(**by, rows=(40, 0), low=tg.min(d.v), mean=tg.avg(d.x), text=tg.last(d.w, by=d.t))
        ahead = d.over(**by, rows=(36, 3), low=tg.max(d.v), total=tg.sum(d.v), c=tg.count(), last=tg.last(d.x, by=d.v))
        near = d.over(**by, range=(30, 4), high=tg.max(d.x), first=tg.first(d.w, by=d.t), some=tg.count(d.x))
        mixed = d.over(**by, range=9, total=tg.sum(d.v)).over(
            **by, rows=(50, 0), before=tg.lag(d.w, 45), third=tg.nth(d.w, 3), next=tg.lead(d.v, 2, within=5)
        )
        peers = d.over(by="k", order="t", range=(20, 1), first=tg.first(d.v, by=d.x), low=tg.min(d.v))
        return tg.program(Back=rows_back, Ahead=ahead, Near=near, Mixed=mixed, Peers=peers)

    complete = {"Back": "t", **dict.fromkeys(("Ahead", "Near", "Mixed", "Peers"), "complete")}
    with patch.object(queued, "FEW_ROWS", few):
        results = in_any_batches(made, rows, seed, tmp_path, complete)
    for name, one in results.items():
        (query,) = (query for query in made().definition.queries if query.stream == name)
        wanted = sorted(evaluate(query.node, {"S": rows}), key=lambda row: str(row[:6]))
        assert len(wanted) > 100
        for row, meant_row in zip(sorted(found(one), key=lambda row: str(row[:6])), wanted, strict=True):
            for value, meant_value in zip(row, meant_row, strict=True):
                assert value == meant_value or value == pytest.approx(meant_value, rel=1e-12, abs=0)


@pytest.mark.parametrize("seed", range(6))
def test_frames_that_move_have_the_rows_of_their_meaning(seed: int, tmp_path: Path) -> None:
    """In any batches, from checkpoints, with peers, values that there are not, and sums that other digits cancel."""
    rng = random.Random(seed)
    values = (0.1, 1e16, -1e16, 3.0, None, float("inf") if seed == 5 else 2.0**-30)
    rows = [
        (rng.choice("aab"), t, rng.choice((1, 2**40, -5, None)), rng.choice(values), rng.choice((True, False, None)))
        for t in sorted(rng.choices(range(70), k=120))
    ]

    def made() -> tg.Program:
        d = tg.stream("S", "k string, t bigint, v bigint, x double, b boolean", progress="t")
        long = d.over(
            by="k", order="t", range=25, total=tg.sum(d.v), mean=tg.avg(d.x), low=tg.min(d.x), high=tg.max(d.v)
        )
        short = d.over(
            by="k", order="t", range=3, n=tg.count(), added=tg.sum(d.x), some=tg.count(d.b), most=tg.max(d.b)
        )
        whole = d.over(order="t", range=9, mean=tg.avg(d.v), tried=tg.try_sum(d.v, filter=d.b))
        return tg.program(Long=long, Short=short, Whole=whole)

    results = in_any_batches(made, rows, seed, tmp_path, dict.fromkeys(("Long", "Short", "Whole"), "t"))
    for name, one in results.items():
        (query,) = (query for query in made().definition.queries if query.stream == name)
        wanted = sorted(evaluate(query.node, {"S": rows}), key=lambda row: str(row[:5]))
        for row, meant in zip(sorted(found(one), key=lambda row: str(row[:5])), wanted, strict=True):
            assert row[:5] == meant[:5]
            for value, wanted_value in zip(row[5:], meant[5:], strict=True):
                assert value is wanted_value or value == pytest.approx(wanted_value, rel=1e-12, abs=0, nan_ok=True)


def test_a_sum_of_a_frame_that_does_not_fit_is_noted() -> None:
    with tg.program(R=over(range=5, total=tg.sum(S.v))).session() as session:
        session.push("S", [("a", 1, 2**62), ("a", 2, 2**62), ("a", 9, 3)])
        session.finish()
        with pytest.warns(tg.RunWarning, match="TG435"):
            report = session.step()
        assert report.set_aside == {"R": {"overflow": 1}}
        assert found(session.results("R")) == [("a", 1, 2**62, 2**62), ("a", 2, 2**62, None), ("a", 9, 3, 3)]


def test_a_sum_of_a_frame_ahead_that_does_not_fit_is_noted() -> None:
    """With the row of which it is, which waited for later ones."""
    with tg.program(R=over(rows=(40, 1), total=tg.sum(S.v))).session() as session:
        session.push("S", [("a", 1, 2**62), ("b", 1, 1)])
        session.advance("S", 1)
        session.step()
        session.push("S", [("a", 2, 2**62), ("a", 9, -3), ("b", 10, 1)])
        session.finish()
        with pytest.warns(tg.RunWarning, match='(?s)TG435.*"t": 1,'):
            session.step()
        assert found(session.results("R")) == [
            ("a", 1, 2**62, None, 2),
            ("a", 2, 2**62, 2**63 - 3, 9),
            ("b", 1, 1, 2, 10),
        ]


def test_it_is_explained_listed_and_answered_for(tmp_path: Path) -> None:
    told = str(program().explain())
    assert "situation" not in told
    assert "over r0 by k in order of t: before = lag(v, 1), n = row_number(), total = sum(v)" in told
    assert "least = min(v) range between 9 preceding and current row" in told
    assert "holds       rows: keys(S by k) × 1" in told
    assert "holds       rows: rate(S) × 9" in told
    assert "holds       rows: rate(S) × 7" in told
    assert "holds       rows: 2" in told
    with program().session(checkpoint=tmp_path) as session:
        session.push("S", [("a", 10, 1), ("b", 12, 1)])
        session.advance("S", 12)
        session.step()
        assert "has arrived up to 12" in str(session.why("Long"))
    listed = str(list_state(LocalStore(tmp_path)))
    assert "kept        2 rows that later rows look at" in listed
    assert "bound       rows: keys(S by k) × 1" in listed


@pytest.mark.parametrize(
    ("relation", "bound"),
    [
        (over(a=tg.lag(S.v, 3), b=tg.sum(S.v)), "keys(S by k) × 3"),
        (over(a=tg.lead(S.v, 2), b=tg.lag(S.v)), "keys(S by k) × 3"),
        (over(a=tg.lead(S.v, 2, within=4), b=tg.row_number()), "keys(S by k) × 1 + rate(S) × 4"),
        (over(range=(5, 3), a=tg.sum(S.v)), "rate(S) × 8"),
        (over(a=tg.lag(S.v, within=4), b=tg.lag(S.v)), "keys(S by k) × 1"),
        (over(a=tg.lag(S.v, 2, within=4), b=tg.lag(S.v)), "keys(S by k) × 1 + rate(S) × 4"),
        (over(range=5, a=tg.sum(S.v), b=tg.lead(S.v)), "keys(S by k) × 1 + keys(S by k) × rate(S) × 5"),
        (S.over(order="t", a=tg.lag(S.v, 3)), "3"),
        (over(a=tg.next_different(S.v, within=4)), "rate(S) × 4"),
        (S.versions(by="k"), "keys(S by k) × 1"),
        (S.distinct_on("k"), "keys(S by k) × 1"),
        (S.dedup(by="k", within=4), "rate(S) × 4"),
        (over(a=tg.next_different(S.v)), "unbounded: missing next_different(..., within=)"),
    ],
)
def test_its_bound(relation: tg.Relation, bound: str) -> None:
    assert f"holds       rows: {bound}\n" in f"{tg.program(R=relation).explain()}\n"


# --- how it is written ------------------------------------------------------------------------------------------------


def test_columns_of_one_key_and_order_are_computed_in_one_pass() -> None:
    both = over(before=tg.lag(S.v)).over(by="k", order="t", rows=(2, 0), mean=tg.avg(S.v))
    assert isinstance(both._node, Over)
    assert [column.name for column in both._node.columns] == ["before", "mean"]
    assert both._node.input == S._node
    further = both.over(by="k", order="t", again=tg.lag(both.before))
    assert isinstance(further._node, Over)
    assert [column.name for column in further._node.columns] == ["before", "mean", "again"]
    assert further._node.input == S._node, "what it reads is known with the row"
    ahead = over(next=tg.lead(S.v, within=3))
    later = ahead.over(by="k", order="t", again=tg.lag(ahead.next))
    assert isinstance(later._node, Over)
    assert later._node.input == ahead._node, "what it reads is not known with the row"
    uncertain = both.over(by="k", order="t", again=tg.lag(both.before * 2))
    assert isinstance(uncertain._node, Over)
    assert uncertain._node.input == both._node, "what has no value is set aside between them"
    assert S.over(order="t", before=tg.lag(S.v))._node != over(before=tg.lag(S.v))._node


def chained() -> dict[str, tg.Relation]:
    """Values of values, with attributes between that are computed of them."""
    first = over(before=tg.lag(S.v), total=tg.sum(S.v), recent=tg.count(S.v))
    told = first.with_(fresh=first.before.is_null() | (first.before != first.v))
    second = told.over(
        by="k", order="t", changes=tg.count(filter=told.fresh), earlier=tg.lag(told.before), most=tg.max(told.total)
    )
    third = second.over(
        by="k", order="t", rows=(2, 0), low=tg.min(second.most), other=tg.previous_different(second.changes)
    )
    seen = over(before=tg.lag(S.v))
    positive = told.where(told.v > 0, told.fresh)
    span = over(range=9, least=tg.min(S.v), recent=tg.count())
    few = span.where(span.recent < 4)
    named = first.select("k", "before", at="t", w="v", sum="total")
    summed = named.over(by="k", order="at", v=tg.sum(named.w), total=tg.lag(named.sum), recent=tg.count(named.before))
    some = summed.drop("sum").as_("m").where(lambda r: r.w > 0).rename({"m.w": "sum"})
    return {
        "Renamed": some.over(by="m.k", order="m.at", most=tg.max(some.recent), w=tg.last(some.total, by=some.sum)),
        "Selected": positive.over(
            by="k",
            order="t",
            n=tg.count(),
            earlier=tg.sum(positive.total),
            one=tg.first(positive.v, by=positive.t),
            most=tg.last(positive.before, by=positive.v),
            kinds=tg.approx_distinct(positive.v),
        ),
        "Within": few.over(by="k", order="t", range=5, most=tg.max(few.v), many=tg.count(), mean=tg.avg(few.least)),
        "Chained": third.select("k", "t", "v", "fresh", "changes", "earlier", "most", "low", "other"),
        "Ahead": first.over(
            by="k", order="t", next=tg.lead(first.before, within=5), moved=tg.next_different(first.total, within=9)
        ),
        "Twice": seen.over(by="k", order="t", again=tg.lag(seen.before)),
    }


@pytest.mark.parametrize(
    "name",
    [
        "Chained",
        "Ahead",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("Twice", "Renamed", "Selected", "Within")),
    ],
)
def test_columns_that_read_others_are_computed_in_the_same_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def told(relation: tg.Relation, seed: int) -> list[Event]:
        rng, rows = random.Random(seed), events(seed)
        with tg.program(R=relation).session() as session:
            while rows:
                count = rng.choice((1, 2, 5, 20))
                for row in rows[:count]:
                    session.push("S", [row])
                session.advance("S", {"t": rows[:count][-1][1]})
                rows = rows[count:]
                session.step()
            session.finish()
            session.step()
            return found(session.results("R"))

    made = chained()[name]
    assert len(tg.program(R=made).facts.queries) == 1
    assert str(tg.program(R=made).explain().report).count("  holds  ") == 1
    with monkeypatch.context() as patched:
        patched.setattr(build, "in_one_operator", lambda _: None)
        apart = chained()[name]
    assert len(tg.program(R=apart).facts.queries) > 1
    assert made.schema.names == apart.schema.names
    for seed in range(8):
        (query,) = tg.program(R=made).definition.queries
        wanted = sorted(evaluate(query.node, {"S": events(seed)}), key=str)
        assert told(apart, seed) == wanted
        assert told(made, seed) == wanted


def test_rows_that_are_chosen_are_looked_at_by_an_operator_of_their_own_where_it_matters() -> None:
    """Where it goes by which rows there are, where two of an instant would be an error, or where more would be kept."""
    last, span, ahead = over(before=tg.lag(S.v)), over(range=5, least=tg.min(S.v)), over(next=tg.lead(S.v, within=3))

    def apart(first: tg.Relation, /, **options: Any) -> bool:
        some = first.where(first.v > 1)
        made = some.over(by="k", order="t", **options)._node
        assert made.schema.names == (*some.schema.names, *(name for name in options if name not in ("rows", "range")))
        return isinstance(made, Over) and made.input == some._node

    assert not apart(last, n=tg.count())
    assert not apart(span, range=5, n=tg.count())
    assert apart(last, again=tg.lag(S.v))
    assert apart(last, rows=(2, 0), n=tg.sum(S.v))
    assert apart(last, range=5, n=tg.count()), "one row of each key is kept, not those of five ticks"
    assert apart(span, rows=(2, 0), n=tg.sum(S.v))
    ordered = span.over(by="k", order="t", before=tg.lag(S.v))
    assert apart(ordered, rows=(2, 0), n=tg.sum(S.v))
    assert apart(span, range=6, n=tg.count())
    assert apart(span, n=tg.count()), "of a key without rows within five ticks none is kept"
    assert apart(span, range=5, first=tg.first(S.v, by=S.t)), "two rows of one instant would be an error"
    assert apart(ahead, n=tg.count())
    assert apart(last.where(last.v * 2 > last.before), n=tg.count()), "what may have no value is set aside before"


def test_names_between_are_no_reason_for_an_operator_of_its_own() -> None:
    """Nor is what is left out; a key or an instant that is another one, or computed, is."""
    first = over(before=tg.lag(S.v))

    def apart(rows: tg.Relation, by: str, order: str, **options: Any) -> bool:
        made = rows.over(by=by, order=order, **options)
        assert made.schema.names == (*rows.schema.names, *(name for name in options if name != "tie"))
        return str(tg.program(R=made).explain().report).count("  holds  ") > 1

    assert not apart(first.select("t", "k"), "k", "t", before=tg.lag(S.t), v=tg.count())
    assert not apart(first.rename(t="at", k="key"), "key", "at", n=tg.row_number())
    assert not apart(first.as_("m"), "k", "t", n=tg.row_number())
    shown = {"Shown": first, "Read": first.drop("v").over(by="k", order="t", v=tg.sum(first.before))}
    assert str(tg.program(**shown).explain().report).count("  holds  ") == 1
    assert apart(first.with_(key=first.k), "key", "t", n=tg.row_number())
    assert apart(first.with_(at=first.t), "k", "at", n=tg.row_number())
    assert apart(first.rename(k="v", v="k"), "k", "t", n=tg.row_number())
    assert apart(over(total=tg.sum(S.v)).drop("v"), "k", "t", n=tg.row_number()), "two rows of an instant are peers"
    assert apart(S.distinct_on("k").drop("v"), "k", "t", n=tg.count()), "equal rows are one"
    with pytest.raises(tg.QueryError, match="TG103 attribute 'before' exists already"):
        first.drop("v").over(by="k", order="t", before=tg.count())


def a_long_chain(calls: int) -> tg.Relation:
    """Of two attributes for each call: what the one before computed, a row later, and the same without NULL."""
    rows: tg.Relation = S
    for number in range(calls):
        last = rows[f"b{number - 1}"] if number else rows.v
        columns: dict[str, Any] = {f"a{number}": tg.lag(last)}
        rows = rows.over(by="k", order="t", **columns)
        rows = rows.with_(**{f"b{number}": tg.coalesce(rows[f"a{number}"], 0)})
    return rows


def test_a_long_chain_has_a_step_for_each_attribute_computed_between_and_one_for_their_order() -> None:
    """With one more for each call the longest ones were refused: a query nests 256 levels at most."""
    rows = a_long_chain(130)
    kinds = Counter(type(node).__name__ for node in nodes_of(rows._node))
    assert kinds == {"Scan": 1, "Over": 1, "Imbed": 130, "Project": 1}
    assert rows.schema.names == ("k", "t", "v", *(f"{name}{number}" for number in range(130) for name in "ab"))
    done = tg.program(R=rows.select("t", "b0", "b2", "a3", "b129")).run({"S": [("a", t, t * t) for t in range(1, 6)]})
    assert found(done["R"].rows()) == [
        (1, 0, 0, None, 0),
        (2, 1, 0, 0, 0),
        (3, 4, 0, 0, 0),
        (4, 9, 1, 0, 0),
        (5, 16, 4, 1, 0),
    ]


def a_renamed_chain(calls: int, *, computed: bool) -> tg.Relation:
    """Names are given again that what was left out has further below, and two attributes change theirs."""
    rows: tg.Relation = S
    for number in range(calls):
        rows = rows.over(by="k", order="t", new=tg.max(rows.v), more=tg.count(rows.v))
        if computed:
            rows = rows.with_(old=rows.new.is_null(), seen=rows.more > number)
            rows = rows.where(rows.more < 9 - number).drop("old").with_(old=rows.seen)
        rows = rows.rename(new="v", v="new").drop("new").rename(more="last")
        rows = rows.drop(*(name for name in ("last", "old", "seen") if name in rows.schema))
    return rows.over(by="k", order="t", new=tg.count(), n=tg.sum(rows.v), last=tg.min(rows.t))


def test_a_chain_grows_by_what_is_computed_between_its_calls_alone() -> None:
    def kinds(calls: int, *, computed: bool) -> Counter[str]:
        return Counter(type(node).__name__ for node in nodes_of(a_renamed_chain(calls, computed=computed)._node))

    assert kinds(30, computed=False) == {"Scan": 1, "Over": 1, "Rename": 1, "Project": 1}
    # Of a call three, for names that are given again too, but for one at the beginning.
    assert kinds(5, computed=True) == {"Scan": 1, "Over": 1, "Rename": 14, "Project": 1, "Imbed": 15, "Select": 5}


@pytest.mark.parametrize("computed", [False, True])
def test_a_renamed_chain_is_that_of_an_operator_for_each_call(computed: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    def meaning(relation: tg.Relation, seed: int) -> list[Event]:
        (query,) = tg.program(R=relation).definition.queries
        return sorted(evaluate(query.node, {"S": events(seed)}), key=str)

    for calls in range(1, 5):
        made = a_renamed_chain(calls, computed=computed)
        with monkeypatch.context() as patched:
            patched.setattr(build, "in_one_operator", lambda _: None)
            apart = a_renamed_chain(calls, computed=computed)
        assert Counter(type(node) for node in nodes_of(apart._node))[Over] == calls + 1
        assert made.schema == apart.schema
        for seed in range(4):
            wanted = meaning(apart, seed)
            assert wanted
            assert meaning(made, seed) == wanted
        assert found(tg.program(R=made).run({"S": events(5)})["R"].rows()) == meaning(apart, 5)


def test_equal_rows_are_one_also_where_what_is_let_through_is_read() -> None:
    told = S.distinct_on("k").over(by="k", order="t", n=tg.count())
    rows = [("a", 1, 5), ("a", 1, 5), ("a", 2, 5)]
    done = tg.program(R=told).run({"S": tg.source(rows, ties="fail")})
    assert found(done["R"].rows()) == [("a", 1, 5, 1)]


def test_a_copy_of_the_instant_orders_no_rows() -> None:
    """Of those of one instant it gives the smallest value, whatever the tie is."""
    first = T.over(by="k", order="t", tie="n", before=tg.lag(T.v))
    copied = first.with_(at=first.t)
    told = copied.over(by="k", order="t", tie="n", one=tg.last(copied.v, by=copied.at), two=tg.last(T.v, by=T.t))
    rows = [("a", 1, 1, 3, None, None), ("a", 1, 2, 7, None, None)]
    assert run(told.select("t", "n", "one", "two"), rows, "T") == [(1, 1, 3, 3), (1, 2, 3, 7)]


@pytest.mark.parametrize("seed", shards(4, 1))
def test_random_chains_are_those_of_an_operator_for_each_call(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def chained_alone(asked: Over) -> Node | None:
        return in_one_operator(asked) if isinstance(asked.input, Over) else None

    different = 0
    for number in range(400 * seed, 400 * seed + 400):
        with monkeypatch.context() as patched, suppress(tg.QueryError):  # two that wait have one `complete`
            made = random_over_case(number)
            patched.setattr(build, "in_one_operator", chained_alone)
            apart = random_over_case(number)
            if made.program != apart.program:
                different += 1
                results, wanted = (evaluate_program(one.program, as_tuples(one)) for one in (made, apart))
                for name in wanted:
                    assert sorted(map(str, results[name])) == sorted(map(str, wanted[name])), (number, name)
    assert different > 4


CHOSEN, CHAIN = over(total=tg.sum(S.v), before=tg.lag(S.v, 2)), over(total=tg.count(S.v))
COUNTED = over(n=tg.row_number())
#: Queries over one stream by one key in one order, some of which name columns alike that are not.
TOGETHER = {
    "Before": over(before=tg.lag(S.v), total=tg.sum(S.v)),
    "Totals": over(total=tg.max(S.v), n=tg.row_number()),
    "Same": over(before=tg.lag(S.v), total=tg.sum(S.v)),
    "Chosen": CHOSEN.where(CHOSEN.before > 1).select("k", "t", "total"),
    "Chain": CHAIN.over(by="k", order="t", rows=(2, 0), most=tg.max(CHAIN.total), at=tg.lag(S.t)),
    "Counted": COUNTED.group_by(w=tg.ceil(COUNTED.t, 10)).agg(most=tg.max(COUNTED.n)),
}


def test_queries_of_one_key_and_order_have_one_operator() -> None:
    """With one state, whatever of them a result is; what goes by another order, or waits, has its own."""
    together = tg.program(**TOGETHER)
    told = str(together.explain().report)
    assert told.count("  holds  ") == 1
    assert "rows: keys(S by k) × 2" in told
    apart = {
        "Ahead": over(next=tg.lead(S.v, within=7)),
        "Whole": S.over(order="t", n=tg.row_number()),
        "Peers": over(range=9, mean=tg.avg(S.v)),
        "Once": S.distinct_on("k"),
        "Failing": over(total=tg.sum(S.v * 2)),
    }
    assert str(tg.program(**TOGETHER, **apart).explain().report).count("  holds  ") == 1 + len(apart)
    assert str(tg.program(R=over(n=tg.row_number())).explain().report).count("  holds  ") == 1


@pytest.mark.parametrize("seed", range(4))
def test_queries_that_share_an_operator_have_the_rows_of_each_alone_as_soon(seed: int) -> None:
    """After every batch."""
    rng, rows = random.Random(seed), events(seed)
    programs = [tg.program(**TOGETHER), *(tg.program(**{name: relation}) for name, relation in TOGETHER.items())]
    with ExitStack() as stack:
        shared, *alone = (stack.enter_context(program.session()) for program in programs)
        while rows:
            count = rng.choice((1, 3, 9))
            batch, rows = rows[:count], rows[count:]
            for session in (shared, *alone):
                session.push("S", batch)
                if rows:
                    session.advance("S", {"t": batch[-1][1]})
                else:
                    session.finish()
                session.step()
            for name, session in zip(TOGETHER, alone, strict=True):
                assert found(shared.results(name)) == found(session.results(name)), name
        for name in TOGETHER:
            (query,) = (query for query in programs[0].definition.queries if query.stream == name)
            wanted = sorted(evaluate(query.node, {"S": events(seed)}), key=str)
            assert found(shared.results(name)) == wanted, name


def test_a_row_without_a_sum_is_noted_once_where_others_read_the_sum() -> None:
    first = over(total=tg.sum(S.v))
    relation = first.over(by="k", order="t", before=tg.lag(first.total))
    with tg.program(R=relation).session() as session:
        session.push("S", [("a", 1, 2**62), ("a", 2, 2**62), ("a", 3, -(2**62))])
        session.finish()
        with pytest.warns(tg.RunWarning, match="TG435"):
            report = session.step()
        assert report.set_aside == {"R": {"overflow": 1}}
        assert found(session.results("R")) == [
            ("a", 1, 2**62, 2**62, None), ("a", 2, 2**62, None, 2**62), ("a", 3, -(2**62), 2**62, None)
        ]  # fmt: skip


def test_an_instant_beside_the_order_progresses_no_further() -> None:
    """Rows up to an instant of the second kind may have arrived while those before them in order have not."""
    stream = tg.stream(
        "U", "k bigint, t bigint, u bigint", progress=("t", "u"), relations=lambda r: [r.u <= r.t + 4, r.t <= r.u + 3]
    )
    relation = stream.over(by="k", order="t", before=tg.lag(stream.t))
    with tg.program(R=relation).session() as session:
        session.push("U", [(1, 5, 2)])
        session.advance("U", {"u": 6, "t": 3})
        session.step()
        assert session.results("R") == []
        session.push("U", [(1, 4, 8)])
        session.advance("U", {"t": 5})
        session.step()
        assert found(session.results("R")) == [(1, 4, 8, None), (1, 5, 2, 4)]


# --- aggregates that keep every value -------------------------------------------------------------------------------


def keeping_values(**frame: Any) -> tg.Relation:
    return T.over(
        by="k",
        order="t",
        tie="n",
        **frame,
        different=tg.count_distinct(T.w),
        spread=tg.stddev(T.x),
        variance=tg.variance(T.v),
        middle=tg.median(T.x),
        low=tg.quantile(T.v, 0.25),
        usual=tg.mode(T.v),
        words=tg.string_agg(T.w, "+", by=T.n),
    )


def scattered(seed: int) -> list[Event]:
    rng = random.Random(seed)
    values = (0.1, -0.0, 0.0, 1e300, -1e-300, 2.5, float("nan"), float("inf"), float("-inf"), None)
    return [
        (
            rng.choice("ab"),
            t,
            n,
            rng.choice((1, 1, 2, -7, 2**62, None)),
            rng.choice(values if seed else values[:6]),
            rng.choice(("x", "y", "z", "", None)),
        )
        for n, t in enumerate(sorted(rng.randint(1, 40) for _ in range(60)))
    ]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("frame", [{"range": 5}, {"rows": (3, 0)}, {"range": (4, 3)}, {"rows": (2, 2)}])
def test_aggregates_that_keep_every_value_are_those_of_the_rows_of_a_frame(seed: int, frame: dict[str, Any]) -> None:
    """To the last bit, whatever is in the frame, in whatever batches rows come."""
    relation, rows = keeping_values(**frame), scattered(seed)
    (query,) = tg.program(R=relation).definition.queries
    wanted = sorted(evaluate(query.node, {"T": rows}), key=str)
    assert str(run(relation, rows, "T")) == str(wanted)
    with tg.program(R=relation).session(sources={"T": tg.source(None, delay=1)}) as session:
        for some in range(0, len(rows), 7):
            session.push("T", rows[some : some + 7])
            session.step()
        session.finish()
        session.step()
        assert str(found(session.results("R"))) == str(wanted)


def test_of_them_no_more_is_kept_than_of_others() -> None:
    def kept(**columns: Any) -> list[str]:
        program = tg.program(R=over(range=9, **columns))
        return [bound for query in program.explain().to_dict()["queries"] for bound in query["holds"]]

    assert kept(c=tg.median(S.v), d=tg.count_distinct(S.v)) == kept(c=tg.min(S.v)) == ["rows: rate(S) × 9"]


def test_what_keeps_every_value_says_how_far_it_looks_back() -> None:
    with pytest.raises(tg.QueryError, match=r"TG132 count_distinct keeps every value(?s:.*)over\(..., rows=\(9, 0\)\)"):
        over(rows=(None, 0), c=tg.count_distinct(S.v))


def test_a_text_of_values_in_order_of_time_needs_no_order_of_rows() -> None:
    rows = [("a", 1, 5), ("a", 3, 7), ("a", 3, 9)]
    told = over(range=5, words=tg.string_agg(S.k, ",", by=S.t))
    assert run(told, rows) == [("a", 1, 5, "a"), ("a", 3, 7, "a,a,a"), ("a", 3, 9, "a,a,a")]


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: over(c=S.v), "TG115 c=v says nothing of other rows"),
        (lambda: over(c=tg.median(S.v)), r"TG132 median keeps every value(?s:.*)over\(..., range=10\)"),
        (lambda: over(v=tg.lag(S.v)), "TG103 attribute 'v' exists already"),
        (lambda: over(), "TG114 over computes nothing"),
        (lambda: S.distinct_on(), "TG114 distinct_on has no key"),
        (lambda: S.dedup(by="x"), "TG103"),
        (lambda: S.dedup(by="k", order="v"), "TG117 'v' orders no rows"),
        (lambda: S.dedup(by="k", within=-1), "TG160 within=-1 is negative"),
        (lambda: S.dedup(by="k", within="5m"), "TG160 within is a number of ticks here"),
        (lambda: S.rename(v="until").versions(by="k"), "TG103 'until' says how long"),
        (lambda: S.over(by="k", order="v", c=tg.lag(S.v)), "TG117 'v' orders no rows"),
        (lambda: S.over(by=("k", "k"), c=tg.lag(S.v)), "TG103 rows are partitioned by k twice"),
        (lambda: over(c=tg.lag("v")), "TG115 lag takes an attribute of a relation"),
        (lambda: over(c=tg.lag(S.v, 0)), "TG114 lag counts rows from 1 on, not 0"),
        (lambda: over(c=tg.lag(S.v, 1, "x")), "TG102 the default of c is string, and its values are bigint"),
        (lambda: over(c=tg.lag(S.v, 1, S.v)), "TG114 the default of lag is a constant"),
        (lambda: over(rows=3, c=tg.sum(S.v)), "TG114 rows=3 is no frame"),
        (lambda: over(rows=(-1, 0), c=tg.sum(S.v)), r"TG114 rows=\(-1, 0\) is no frame"),
        (lambda: over(rows=(2**63, 0), c=tg.sum(S.v)), "TG114 rows=.* is no frame"),
        (lambda: over(c=tg.lag(S.v, 2**63)), "TG114 lag counts rows from 1 on"),
        (lambda: over(range=(None, None), c=tg.sum(S.v)), r"TG114 range=\(None, None\) has no end"),
        (lambda: over(range=(5, None), c=tg.sum(S.v)), r"TG114 range=\(5, None\) has no end"),
        (lambda: over(rows=(1, 0), range=3, c=tg.sum(S.v)), "TG114 a frame is given by rows or by range"),
        (lambda: over(range="5m", c=tg.sum(S.v)), "TG160 range is a number of ticks here"),
        (lambda: over(range=-5, c=tg.sum(S.v)), "TG160 range=-5 is negative"),
        (lambda: S.where(LAG > 3), "TG115 lag.v, 1. looks at other rows"),
        (lambda: S.with_(x=NUMBER), "TG115 row_number.. looks at other rows"),
        (lambda: S.rename(v="complete").over(by="k", c=tg.lead("complete")), "TG115"),
        (lambda: S.rename(v="complete").over(by="k", c=lambda r: tg.lead(r.complete)), "TG103 'complete' says when"),
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()


def test_a_default_is_a_value_of_the_type_that_the_values_have() -> None:
    rows = tg.stream("S", "t bigint, n bigint, v decimal(10,2), x double", progress="t")

    def found(value: tg.OverExpression) -> object:
        asked = rows.over(order="t", c=value)
        (row,) = tg.program(R=asked).run({"S": [(1, 7, "1.25", 0.5)]}).rows("R")
        return row["c"]

    for zero in (0, 0.0, Decimal(0), Decimal("0.000"), tg.lit(0), tg.lit(Decimal("0.00"))):
        for of, type_ in ((rows.n, int), (rows.v, Decimal), (rows.x, float)):
            for neighbour in (tg.lag, tg.lead):
                given = found(neighbour(of, 1, zero, within=1))
                assert (type(given), given) == (type_, 0)
    assert found(tg.lag(rows.v, 1, 99_999_999)) == 99_999_999
    assert found(tg.lag(rows.v, 1, -0.25)) == Decimal("-0.25")
    assert found(tg.lag(rows.x, 1, Decimal("0.5"))) == 0.5
    assert found(tg.lag(rows.n, 1, 2.0)) == 2


def test_another_value_in_the_place_of_a_default_that_is_no_constant_stands_where_no_row_is() -> None:
    rows = tg.stream("S", "k string, t bigint not null, v bigint", progress="t")
    given = [("a", 1, 3), ("a", 2, None), ("a", 3, 5)]
    for neighbour, expected in ((tg.lag, [30, 3, None]), (tg.lead, [None, 5, 50])):
        with pytest.raises(tg.QueryError, match="TG114 the default") as caught:
            rows.over(by="k", order="t", x=neighbour(rows.v, 1, rows.v * 10))
        name = neighbour.__name__
        hint = f"add at=tg.{name}(...) of the order, else the same, which is NULL where there is no such row"
        assert hint in str(caught.value)
        assert f"tg.when(r.at.is_null(), ..., r.{name})" in str(caught.value)
        r = rows.over(by="k", order="t", v2=neighbour(rows.v, within=9), at=neighbour(rows.t, within=9))
        made = tg.program(R=r.with_(x=tg.when(r.at.is_null(), r.v * 10, r.v2))).run({"S": given})
        assert [row["x"] for row in made.rows("R")] == expected


@pytest.mark.parametrize(
    ("column", "default", "such_as"),
    [
        ("v", 0.125, r"Decimal\("),
        ("v", 100_000_000, r"Decimal\("),
        ("v", "0.00", r"Decimal\("),
        ("v", float("inf"), r"Decimal\("),
        ("n", 1.5, "0;"),
        ("n", 1e19, "0;"),
        ("x", 2**53 + 1, "0.0;"),
        ("x", Decimal("0.1"), "0.0;"),
        ("w", 1, '"none"'),
    ],
)
def test_a_default_that_the_values_can_not_be_is_refused(column: str, default: Any, such_as: str) -> None:
    rows = tg.stream("S", "t bigint, n bigint, v decimal(10,2), x double, w string", progress="t")
    with pytest.raises(tg.QueryError, match=f"TG102 the default of c is (?s:.*)holds exactly, such as {such_as}"):
        rows.over(order="t", c=tg.lag(rows[column], 1, default))


@pytest.mark.parametrize("type_", ["decimal(5,0)", "decimal(5,5)", "decimal(18,2)"])
def test_the_default_that_is_proposed_of_decimals_is_one_of_any_decimal(type_: str) -> None:
    rows = tg.stream("S", f"t bigint, v {type_}", progress="t")
    with pytest.raises(tg.QueryError, match=r"such as Decimal\(\"0\"\);"):
        rows.over(order="t", c=tg.lag(rows.v, 1, "none"))
    assert tg.program(R=rows.over(order="t", c=tg.lag(rows.v, 1, Decimal("0")))).check() == []


@pytest.mark.parametrize(
    ("default", "hint"),
    [
        (10**20, r"use a double: float\(...\)"),
        (10**400, "a double holds no such number"),
        (-(10**400), "a double holds"),
    ],
)
def test_a_whole_number_that_no_double_is_gets_no_double_as_a_hint(default: int, hint: str) -> None:
    rows = tg.stream("S", "t bigint, x double", progress="t")
    with pytest.raises(tg.QueryError, match=f"TG110 (?s:.*)does not fit into 64 bits(?s:.*){hint}"):
        rows.over(order="t", c=tg.lag(rows.x, 1, default))


def test_a_row_that_waits_for_ever_promises_its_completion_alone() -> None:
    waiting = over(next=tg.lead(S.v))
    assert tg.program(R=waiting).check() == []
    (problem,) = tg.program(R=waiting.drop("complete")).check()
    assert problem.code == "TG201"
    assert "complete has no upper bound relative to t" in problem.message
    assert tg.program(R=over(next=tg.lead(S.v, within=5)).drop("complete")).check() == []
    other = over(range=(0, 3), next=tg.lead(S.v), total=tg.sum(S.v))
    assert [problem.code for problem in tg.program(R=other.drop("complete")).check()] == ["TG201"]


def test_an_attribute_that_is_named_like_it_is_written_with_brackets() -> None:
    rows: Any = tg.stream("R", "t bigint, over bigint", progress="t")
    with pytest.raises(tg.QueryError, match=r'named like a method is written relation\["over"\]'):
        rows.where(rows.t > rows.over)
    assert rows.where(rows["over"] > 5).schema.names == ("t", "over")
