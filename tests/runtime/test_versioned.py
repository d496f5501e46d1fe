"""Changes as tables of versions, and temporal joins with them: what they mean, whatever the batching and the engine,
and what is kept.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.runtime.batchings import whatever_is_ahead
from tests.shards import shards
from tidegate import testing
from tidegate.algebra.semantics import evaluate
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.plan import placement
from tidegate.runtime.state.store.local import LocalStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

L = tg.stream("L", "k string, t bigint, v bigint", progress="t")
C = tg.stream("C", "id string, at bigint, op string, price bigint", progress="at")
TABLE = C.versioned(by="id", deleted=C.op == "delete")
ON: Any = [("k", "id")]
UNTYPED: Any = L

CHANGES = [
    ("a", 2, "insert", 10),
    ("a", 5, "update", 11),
    ("a", 9, "delete", None),
    ("a", 12, "insert", 12),
    ("b", 6, "insert", 20),
]


def program() -> tg.Program:
    joined = L.temporal_join(TABLE, on=ON, at="t")
    tied = C.versioned(by="id", deleted=lambda c: c.price > 2, tie="price")
    return tg.program(
        Priced=joined,
        Known=L.temporal_join(TABLE, on=ON, how="inner").select("t", "price"),
        Tied=L.temporal_join(tied, on=ON),
        History=TABLE.history(),
        Short=tied.history().where(lambda h: h.until <= h.at + 4),
        Counted=joined.group_by(w=tg.ceil(L.t, 10)).agg(n=tg.count(), known=tg.count(joined.price)),
    )


NAMES = tuple(query.stream for query in program().definition.queries)


def lefts(seed: int, many: int = 60) -> list[Event]:
    rng = random.Random(f"left {seed}")
    return [(rng.choice(("a", "b", "c", None)), rng.randrange(1, 120), n) for n in range(many)]


def changes(seed: int, many: int = 60) -> list[Event]:
    """No two of one instant."""
    rng = random.Random(f"changes {seed}")
    operations = ("insert", "update", "delete", None)
    return [
        (rng.choice(("a", "b", "d", None)), at, rng.choice(operations), rng.choice((1, 2, 3, None)))
        for at in rng.sample(range(1, 120), many)
    ]


def meant(told: tg.Program, rows: Mapping[str, Sequence[Event]], name: str) -> list[Event]:
    (query,) = (one for one in told.definition.queries if one.stream == name)
    return sorted(evaluate(query.node, {stream: list(own) for stream, own in rows.items()}), key=str)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def run(relation: tg.Relation, left: Sequence[Event], right: Sequence[Event]) -> list[Event]:
    told = tg.program(Q=relation)
    rows = {"L": left, "C": right}
    return found(told.run({stream.name: rows[stream.name] for stream in told.definition.inputs})["Q"].rows())


# --- what it means ----------------------------------------------------------------------------------------------------


def test_each_row_has_the_version_of_its_own_instant() -> None:
    """At the instant of a change that is valid already; after a deletion there is none, until the next change."""
    left = [("a", t, 0) for t in (1, 2, 4, 5, 8, 9, 11, 12, 40)]
    priced = L.temporal_join(TABLE, on=ON).select("t", "price")
    assert run(priced, left, CHANGES) == sorted(
        [(1, None), (2, 10), (4, 10), (5, 11), (8, 11), (9, None), (11, None), (12, 12), (40, 12)], key=str
    )
    known = L.temporal_join(TABLE, on=ON, how="inner").select("t", "price")
    assert run(known, left, CHANGES) == sorted([(2, 10), (4, 10), (5, 11), (8, 11), (12, 12), (40, 12)], key=str)


def test_of_a_deleted_key_nothing_is_shown() -> None:
    """Not even the key, nor that it was deleted."""
    assert run(L.temporal_join(TABLE, on=ON), [("a", 9, 0)], CHANGES) == [("a", 9, 0, None, None, None, None)]


def test_a_key_that_is_null_has_no_version() -> None:
    assert run(L.temporal_join(TABLE, on=ON).select("t", "op"), [(None, 9, 0)], [(None, 2, "insert", 1)]) == [(9, None)]


def test_without_deletions_every_change_is_a_version() -> None:
    whole = C.versioned(by="id")
    assert run(L.temporal_join(whole, on=ON).select("t", "op"), [("a", 10, 0)], CHANGES) == [(10, "delete")]
    assert len(run(whole.history(), [], CHANGES)) == 3


def test_where_the_condition_is_null_nothing_is_deleted() -> None:
    told = L.temporal_join(TABLE, on=ON).select("t", "price")
    assert run(told, [("a", 3, 0)], [("a", 1, None, 7)]) == [(3, 7)]
    assert run(TABLE.history().select("at", "until"), [], [("a", 1, None, 7), ("a", 4, "delete", 7)]) == [(1, 4)]


def test_the_history_has_the_periods_of_all_versions() -> None:
    """A deletion ends one and is none; what still holds is said where the input ends."""
    assert run(TABLE.history(), [], CHANGES) == [("a", 2, "insert", 10, 5), ("a", 5, "update", 11, 9)]
    with tg.program(Q=TABLE.history().select("id", "at", "until")).session() as session:
        session.push("C", CHANGES)
        session.finish(close_at=30)
        session.step()
        assert found(session.results("Q")) == [("a", 12, 30), ("a", 2, 5), ("a", 5, 9), ("b", 6, 30)]


def test_of_changes_of_one_instant_the_last_counts() -> None:
    """What is changed at once has held at no instant."""
    rows = [("a", 2, "insert", 1), ("a", 2, "update", 2), ("a", 5, "delete", 3)]
    tied = C.versioned(by="id", deleted=C.op == "delete", tie="price")
    assert run(L.temporal_join(tied, on=ON).select("t", "price"), [("a", 2, 0)], rows) == [(2, 2)]
    assert run(tied.history().select("at", "price", "until"), [], rows) == [(2, 2, 5)]
    with pytest.raises(tg.TidegateError, match="TG304"):
        tg.program(Q=TABLE.history()).run({"C": tg.source(rows, ties="fail")})


def test_periods_of_versions_are_intervals() -> None:
    """Which instants are known: a version ends after it begins."""
    held = TABLE.history().as_intervals(start="at", end="until", by="id", name="Held")
    assert tg.program(Q=tg.match(held.meets(held.as_("Next")), within=50, emission="final")).check() == []


# --- whatever the batching and the engine -----------------------------------------------------------------------------


@pytest.mark.parametrize("seed", shards(6))
def test_rows_are_those_of_the_meaning_whatever_the_batching(seed: int, tmp_path: Path) -> None:
    """Either side may be ahead, in disorder that progress permits, with starts from the checkpoint in between."""
    rng, rows = random.Random(seed), {"L": lefts(seed), "C": changes(seed)}
    results = whatever_is_ahead(program, rows, rng, tmp_path, {}, sessions=rng.choice((1, 3)), steps=8)
    for name in NAMES:
        assert found(results[name]) == meant(program(), rows, name), name


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("shard_bytes", [0, 1])
def test_spark_has_the_same_rows(shard_bytes: int, spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """In the driver, and shard by shard in the workers."""
    monkeypatch.setattr(placement, "MOST_SHARDS", 4)
    rows = {"L": lefts(3), "C": changes(3)}
    with testing.drive(
        program(), spark=spark, driver_bytes=0 if shard_bytes else 1 << 20, shard_bytes=shard_bytes
    ) as run:
        for until in (40, 80, 120):
            for name, time in (("L", "t"), ("C", "at")):
                run.add(name, [row for row in rows[name] if until - 40 < row[1] <= until])
                run.advance(name, **{time: until})
            run.step()
        run.finish()
        run.step()
        for name in NAMES:
            assert found(run.results(name)) == meant(program(), rows, name), name
        if shard_bytes:
            assert {place for report in run.reports for place in report.places.values()} >= {"sharded"}


# --- what is kept -----------------------------------------------------------------------------------------------------


def test_of_each_key_that_is_not_deleted_one_change_is_kept() -> None:
    with tg.program(Q=L.temporal_join(TABLE, on=ON)).session() as session:
        session.push("C", CHANGES)
        kept = []
        for until in (4, 8, 10, 12):
            session.advance("L", until)
            session.advance("C", until)
            session.step()
            kept.append(session.live_rows()["Q: state"])
        assert kept == [1, 2, 1, 2]


def test_it_is_explained_and_listed(tmp_path: Path) -> None:
    told = str(program().explain())
    assert 'left asof join r0 with r1 by k = id, backward: at <= t, none after op = "delete"' in told.replace("'", '"')
    assert "final when  t <= min(L.t, C.at)" in told
    assert "holds       last: keys(C by id)" in told
    assert "holds       rows: keys(C by id) × 1" in told
    with program().session(checkpoint=tmp_path) as session:
        session.push("C", CHANGES[:1])
        session.advance("C", 12)
        session.advance("L", 12)
        session.step()
    assert "last        1 row that later rows look at" in str(list_state(LocalStore(tmp_path)))


# --- how it is written ------------------------------------------------------------------------------------------------


def test_keys_of_the_same_names_need_not_be_said() -> None:
    table = tg.stream("D", "k string, at bigint, price bigint", progress="at").as_("d").versioned(by="d.k")
    for joined in (L.temporal_join(table), L.temporal_join(table, on="k"), L.temporal_join(table, on=[("k", "k")])):
        assert joined.schema.names == ("k", "t", "v", "d.k", "d.at", "d.price")
        assert tg.program(Q=joined).check() == []


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: UNTYPED.temporal_join(C, on=ON), "TG114 temporal_join got a(?s:.*)rates.versioned"),
        (lambda: L.temporal_join(TABLE), "TG101"),
        (
            lambda: L.temporal_join(TABLE, on=[("k", "op")]),
            "TG114 temporal_join compares op, and versions are those of id",
        ),
        (lambda: L.temporal_join(TABLE, on=[*ON, *ON]), "TG114 temporal_join compares id, id"),
        (lambda: L.temporal_join(TABLE, on=ON, at="v"), "TG117 'v' orders no rows"),
        (lambda: L.temporal_join(TABLE, on=ON, how="right"), "TG114 how='right'"),  # type: ignore[arg-type]  # the point
        (lambda: C.versioned(by="id", deleted=C.price), "TG102 a condition must be boolean"),
        (lambda: C.versioned(by="id", deleted=L.k == "a"), "TG113|TG101"),
        (lambda: C.versioned(by=("id", "id")), "TG103 rows are partitioned by id twice"),
        (lambda: C.rename(op="until").versioned(by="id").history(), "TG103 'until' says how long a version holds"),
        (lambda: C.versioned(by="id", deleted="delete"), "TG114"),  # type: ignore[arg-type]  # the point
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(tg.QueryError, match=says):
        make()


def test_it_shows_how_it_is_written() -> None:
    assert repr(C.versioned(by="id", tie="price")) == "versions by id in order of at, price"
    assert TABLE.schema == C.schema
