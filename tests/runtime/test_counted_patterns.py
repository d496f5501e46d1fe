"""Matches of situations that are counted and not listed: equal to listing, whatever the batching and the engine."""

from __future__ import annotations

import random
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tests.runtime.test_counted_sequences import found
from tidegate.algebra.nodes import OrderedNode, nodes_of
from tidegate.algebra.ordered.match.counted import CountedMatches
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.semantics import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, v bigint", progress="t")
FOUND = S.partition_by("k").derive(A=tg.situation(S.v % 2 == 1), B=tg.situation(S.v > 3), C=tg.situation(S.v % 3 < 2))


def number(matches: tg.Relation, *by: str) -> tg.Relation:
    return matches.group_by(*by, w=tg.ceil(matches.detected, 4)).agg(n=tg.count())


def program() -> tg.Program:
    a, b, c = FOUND.A, FOUND.B, FOUND.C
    behind = tg.match(a.before(b), b.overlaps(c), within=20)
    return tg.program(
        Tail=number(behind, "k"),
        Everywhere=number(behind.where(behind.detected > 3)),
        Final=number(tg.match(a.before(b), within=9, emission="final"), "k"),
        Formula=number(tg.match((a.te - b.ts <= 3) & (b.ts - a.te <= 3), within=15), "k"),
        Instants=tg.match(a.before(b), a.before(c), within=12).group_by("k", "detected").agg(n=tg.count()),
    )


NAMES = ("Tail", "Everywhere", "Final", "Formula", "Instants")


def events(seed: int) -> list[Event]:
    rng = random.Random(seed)
    return [(key, t, rng.randrange(7)) for t in range(45) for key in ("a", "b") if rng.random() < 0.7]


def meant(rows: list[Event], name: str) -> list[Event]:
    (query,) = (one for one in program().definition.queries if one.stream == name)
    return sorted(evaluate(query.node, {"S": rows}), key=str)


@pytest.mark.parametrize("seed", range(3))
def test_they_are_as_many_as_are_listed(seed: int, tmp_path: Path) -> None:
    """Whatever the batching, in disorder that progress permits, with starts from the checkpoint in between."""
    rows = events(seed)
    results = in_any_batches(program, rows, seed, tmp_path, {})
    for name in NAMES:
        assert found(results[name]) == meant(rows, name), name
    assert sum(bool(results[name]) for name in NAMES) >= 3


def test_every_one_of_them_is_counted() -> None:
    operators = [node for query in program().facts.queries for node in nodes_of(query.query.node)]
    assert {type(node) for node in operators if isinstance(node, OrderedNode)} == {CountedMatches}
    told = str(program().explain())
    assert "(its counted matches)" in told
    assert "order       matches are counted, and not listed" in told


@pytest.mark.long
@pytest.mark.spark
def test_spark_counts_them_too(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 40, 1, spark, monkeypatch)
    for name in NAMES:
        assert found(results[name]) == meant(rows, name), name


def test_others_are_listed_and_it_is_said_why() -> None:
    pairs = tg.match(FOUND.A.before(FOUND.B), within=9)
    starts = pairs.group_by("A.ts", w=tg.ceil(pairs.detected, 4)).agg(n=tg.count())
    periods = tg.stream(
        "P", "k string, a bigint, z bigint", temporal=("a", "z"), progress="a", relations=lambda r: r.a < r.z
    )
    given = tg.match(periods.as_intervals(start="a", end="z", by="k", name="P").before(FOUND.B), within=9)
    for relation, why in (
        (starts, "their A.ts is read"),
        (number(given), "rows that are intervals may overlap"),
    ):
        queries = tg.program(R=relation).facts.queries
        operators = [node for query in queries for node in nodes_of(query.query.node) if isinstance(node, OrderedNode)]
        assert {type(node) for node in operators} == {Match}
        assert f"lists       matches one by one: {why}" in str(tg.program(R=relation).explain())
