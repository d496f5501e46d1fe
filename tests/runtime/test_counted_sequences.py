"""Matches of row patterns that are counted and not listed: equal to listing, whatever the batching and the engine."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tidegate.algebra.nodes import OrderedNode, nodes_of
from tidegate.algebra.ordered.sequences.counting.counted import CountedSequences
from tidegate.algebra.semantics import evaluate

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, v bigint, n bigint", progress="t")
VALUES: Any = {name: lambda m, name=name, value=value: m[name].v == value for value, name in enumerate("ABC", 1)}


def sequences(pattern: str, **options: Any) -> tg.Relation:
    """Of S, by key, with the variables that a value tells."""
    define = {name: condition for name, condition in VALUES.items() if name in pattern} | options.pop("define", {})
    return S.sequences(pattern, by=options.pop("by", "k"), tie="n", define=define, **options)


def number(matches: tg.Relation, *by: str) -> tg.Relation:
    return matches.group_by(*by, w=tg.ceil(matches.detected, 4)).agg(n=tg.count())


def program() -> tg.Program:
    tail = sequences("A B+ C", matches="any", within=9, to=lambda m: m.B.v)
    either = {"A": lambda m: (m.A.v == 1) | (m.A.v == 2), "B": lambda m: 6 // (m.B.v - 1) > 2}
    return tg.program(
        Kleene=number(tail, "k"),
        Everywhere=number(tail),
        Some=number(tail.where(tail.last > 4).rename(k="key").drop("first"), "key"),
        Ever=number(sequences("A (B | C)* A?", matches="any"), "k"),
        Overlap=number(sequences("(A B*)+ B", matches="any", within=5, define=either), "k"),
        Adjacent=number(sequences("A+ B?", matches="contiguous", within=3), "k"),
        Whole=number(sequences("A B", matches="contiguous", by=())),
        Instants=tail.group_by("k", "last").agg(n=tg.count(), again=tg.count()),
    )


NAMES = ("Kleene", "Everywhere", "Some", "Ever", "Overlap", "Adjacent", "Whole", "Instants")


def events(seed: int) -> list[Event]:
    """With rows of one instant, and values that are NULL."""
    rng = random.Random(seed)
    times = sorted(rng.randrange(-9, 16) for _ in range(18))
    return [(rng.choice(("a", "b", None)), t, rng.choice((1, 2, 2, 3, None)), n) for n, t in enumerate(times)]


def meant(rows: Sequence[Event], name: str) -> list[Event]:
    (query,) = (one for one in program().definition.queries if one.stream == name)
    return sorted(evaluate(query.node, {"S": list(rows)}), key=str)


def found(rows: Sequence[Mapping[str, Any]]) -> list[Event]:
    return sorted((tuple(row.values()) for row in rows), key=str)


def counts_of(relation: tg.Relation) -> list[CountedSequences]:
    """The operators of a query that count."""
    facts = tg.program(R=relation).facts
    return [
        node for query in facts.queries for node in nodes_of(query.query.node) if isinstance(node, CountedSequences)
    ]


@pytest.mark.parametrize("seed", range(3))
def test_they_are_as_many_as_are_listed(seed: int, tmp_path: Path) -> None:
    """Whatever the batching, in disorder that progress permits, with starts from the checkpoint in between."""
    rows = events(seed)
    results = in_any_batches(program, rows, seed, tmp_path, {})
    for name in NAMES:
        assert found(results[name]) == meant(rows, name), name


def test_every_one_of_them_is_counted() -> None:
    operators = [node for query in program().facts.queries for node in nodes_of(query.query.node)]
    assert {type(node) for node in operators if isinstance(node, OrderedNode)} == {CountedSequences}


@pytest.mark.long
@pytest.mark.spark
def test_spark_counts_them_too(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 9, 1, spark, monkeypatch)
    for name in NAMES:
        assert found(results[name]) == meant(rows, name), name


LISTED = {
    "preferred": (sequences("A B"), "of each start the preferred match is taken"),
    "next": (
        sequences("A B", matches="next", within=3),
        "rows that could have gone on with a match may not be skipped",
    ),
    "absence": (sequences("A !C B", matches="any", within=3), "rows must not come"),
    "limit": (
        sequences("A B C", matches="any", limits=lambda m: m.B.t - m.A.t <= 2),
        "a limit is between other rows than the first and the last one",
    ),
    "earlier": (
        sequences("A B", matches="any", within=3, define={"B": lambda m: m.B.v > m.A.v}),
        "the condition of B reads A.v",
    ),
    "before": (
        sequences("A B", matches="any", within=3, define={"B": lambda m: m.B.prev().v > 1}),
        "the condition of B reads PREV(B.v)",
    ),
    "behind": (
        sequences("A B", matches="any", within=3, after=lambda m: m.B.next().v),
        "a measure reads a row behind the match",
    ),
}


@pytest.mark.parametrize("name", LISTED)
def test_others_are_listed_and_it_is_said_why(name: str) -> None:
    matches, why = LISTED[name]
    assert counts_of(number(matches)) == []
    told = str(tg.program(R=number(matches)).explain())
    assert f"lists       matches one by one: {why}" in told


def test_what_groups_and_aggregates_read_decides_too() -> None:
    matches = sequences("A B", matches="any", within=9, to=lambda m: m.B.v)
    by_first = matches.group_by("first", w=tg.ceil(matches.detected, 4)).agg(n=tg.count())
    median = matches.group_by(w=tg.ceil(matches.detected, 4)).agg(n=tg.median(matches.to))
    chosen = matches.where(matches.to > 1)
    for relation, why in (
        (by_first, "their first is read"),
        (median, "median is not made of those of parts"),
        (number(chosen), "their to is read"),
    ):
        assert counts_of(relation) == []
        assert f"matches one by one: {why}" in str(tg.program(R=relation).explain())


def test_a_table_of_explain_says_that_they_are_counted() -> None:
    told = str(tg.program(R=number(sequences("A B+", matches="any"))).explain())
    assert "holds       counts: keys(S by k)" in told
    assert "lists" not in told
    assert "R~1         R (its counted matches)" in told


def test_more_than_a_number_can_be_has_no_value() -> None:
    """2^n - 1 matches of A+ with n rows: beyond a bigint from 64 rows on. The group is set aside as others are."""
    matches = sequences("A+", matches="any")
    of = tg.program(R=matches.group_by("detected").agg(n=tg.count()))
    rows = [("a", at, 1, at) for at in range(70)]
    results = of.run({"S": rows})["R"].rows()
    assert sorted(row["n"] for row in results) == [1 << at for at in range(63)]


def test_two_rows_of_one_instant_need_an_order() -> None:
    matches = S.sequences("A B", by="k", define={"A": VALUES["A"]}, matches="any")
    rows = [("a", 1, 1, 0), ("a", 1, 2, 1)]
    with pytest.raises(tg.TidegateError, match="TG304"):
        tg.program(R=number(matches, "k")).run({"S": tg.source(rows, ties="fail")})
