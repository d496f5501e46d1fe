"""Aggregates of values of matches of row patterns, without listing them: equal to listing, whatever the batching."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches, on_spark
from tests.runtime.test_counted_sequences import counts_of, found
from tidegate.algebra.evaluation import comparable
from tidegate.algebra.nodes import OrderedNode, nodes_of
from tidegate.algebra.ordered.sequences.counting.counted import CountedSequences
from tidegate.algebra.ordered.summary import Halves
from tidegate.algebra.rewrites.totals import Total
from tidegate.algebra.semantics import evaluate
from tidegate.algebra.terms import Attr
from tidegate.algebra.types import DOUBLE
from tidegate.runtime.ordered.sequences.counting.words import halves, ordered

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Event = tuple[Any, ...]

S = tg.stream("S", "k string, t bigint, v bigint, x double, n bigint", progress="t")
VALUES: Any = {name: lambda m, name=name, value=value: m[name].v == value for value, name in enumerate("ABC", 1)}
#: Values of a match by name: of its first and last rows, and of all.
OF_ROWS: Any = {
    "last": lambda m: m.B.n,
    "begin": lambda m: m.A.first().n * 2 - 7,
    "end": lambda m: m.rows.x,
    "none": lambda m: 6 // (m.A.n - 4),
}
OF_ALL: Any = {
    "rows": lambda m: m.B.agg(tg.count()),
    "known": lambda m: m.rows.agg(tg.count(S.x)),
    "total": lambda m: m.rows.agg(tg.sum(S.n - 6)),
    "least": lambda m: m.B.agg(tg.min(S.x)),
    "most": lambda m: m.rows.agg(tg.max(S.n)),
    "doubles": lambda m: m.rows.agg(tg.sum(S.x)),
}


def sequences(pattern: str, **options: Any) -> tg.Relation:
    """Of S, by key, with the variables that a value tells."""
    define = {name: condition for name, condition in VALUES.items() if name in pattern} | options.pop("define", {})
    return S.sequences(pattern, by=options.pop("by", "k"), tie="n", define=define, **options)


def aggregated(matches: tg.Relation, *by: str, **asked: Any) -> tg.Relation:
    return matches.group_by(*by, w=tg.ceil(matches.detected, 4)).agg(**asked)


def program() -> tg.Program:
    of_rows = sequences(
        "A+ B* C?", matches="any", within=9, to=OF_ROWS["last"], **{f"m_{k}": v for k, v in OF_ROWS.items()}
    )
    of_all = sequences("(A | B)+ C", matches="any", within=7, **{f"m_{k}": v for k, v in OF_ALL.items()})
    ever = sequences("A B*", matches="any", first_n=OF_ROWS["begin"], rows_of=OF_ALL["rows"], total=OF_ALL["total"])
    near = sequences("A+ B?", matches="contiguous", within=5, to=OF_ROWS["last"], most=OF_ALL["most"])
    return tg.program(
        Rows=aggregated(
            of_rows,
            "k",
            n=tg.count(),
            known=tg.count(of_rows.to),
            total=tg.sum(of_rows.to),
            mean=tg.avg(of_rows.to),
            begin=tg.sum(of_rows.m_begin),
            low=tg.min(of_rows.m_begin),
            high=tg.max(of_rows.m_last),
            end=tg.max(of_rows.m_end),
            doubles=tg.sum(of_rows.m_end),
            middle=tg.avg(of_rows.m_end),
            least=tg.min(of_rows.m_end),
            none=tg.count(of_rows.m_none),
            first=tg.min(of_rows.first),
            last=tg.max(of_rows.last),
        ),
        All=aggregated(
            of_all,
            rows=tg.sum(of_all.m_rows),
            longest=tg.max(of_all.m_rows),
            shortest=tg.min(of_all.m_known),
            known=tg.count(of_all.m_least),
            total=tg.sum(of_all.m_total),
            mean=tg.avg(of_all.m_total),
            least=tg.min(of_all.m_least),
            best=tg.max(of_all.m_least),
            most=tg.max(of_all.m_most),
            worst=tg.min(of_all.m_most),
            doubles=tg.sum(of_all.m_doubles),
        ),
        Ever=aggregated(
            ever,
            "k",
            s=tg.try_sum(ever.first_n),
            low=tg.min(ever.first_n),
            r=tg.avg(ever.rows_of),
            t=tg.sum(ever.total),
        ),
        Near=aggregated(
            near.where(near.last > 3).drop("first"), s=tg.sum(near.to), m=tg.max(near.most), z=tg.min(near.most)
        ),
    )


NAMES = ("Rows", "All", "Ever", "Near")


def events(seed: int) -> list[Event]:
    """With rows of one instant, and values that are NULL."""
    rng = random.Random(seed)
    times = sorted(rng.randrange(-9, 16) for _ in range(18))
    return [
        (rng.choice(("a", "b", None)), t, rng.choice((1, 2, 2, 3, None)), rng.choice((-1.5, 0.0, -0.0, 2.5, None)), n)
        for n, t in enumerate(times)
    ]


def compared(rows: list[Event]) -> list[str]:
    return sorted(str([comparable(value) for value in row]) for row in rows)


def meant(rows: list[Event], name: str) -> list[str]:
    (query,) = (one for one in program().definition.queries if one.stream == name)
    return compared(evaluate(query.node, {"S": rows}))


@pytest.mark.parametrize("seed", range(3))
def test_they_are_those_of_the_matches_that_are_listed(seed: int, tmp_path: Path) -> None:
    """Whatever the batching, in disorder that progress permits, with starts from the checkpoint in between."""
    rows = events(seed)
    results = in_any_batches(program, rows, seed, tmp_path, {})
    for name in NAMES:
        assert compared(found(results[name])) == meant(rows, name), name


def test_none_of_them_lists_matches() -> None:
    operators = [node for query in program().facts.queries for node in nodes_of(query.query.node)]
    assert {type(node) for node in operators if isinstance(node, OrderedNode)} == {CountedSequences}


@pytest.mark.long
@pytest.mark.spark
def test_spark_has_them_too(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shard by shard in the workers."""
    rows = events(3)
    results = on_spark(program, rows, 9, 1, spark, monkeypatch)
    for name in NAMES:
        assert compared(found(results[name])) == meant(rows, name), name


LISTED: Any = {
    "decimal": (lambda m: m.A.n.cast("decimal(9, 2)"), tg.sum, "sum is of durations or decimals"),
    "text": (lambda m: m.A.k, tg.min, "min(m) is of values that are no numbers"),
    "sums": (lambda m: m.A.agg(tg.sum(S.n)), tg.max, "max(m) is of sums of the rows of a match"),
    "least": (lambda m: m.A.agg(tg.min(S.n)), tg.avg, "m is the least value of the rows of a match"),
    "mean": (lambda m: m.A.agg(tg.avg(S.n)), tg.min, "m is avg(n) of the rows of a match"),
    "two": (lambda m: m.A.n - m.B.n, tg.sum, "m is computed of several values of a match"),
    "beside": (lambda m: m.A.prev().n, tg.sum, "m reads a row beside the first or last one with a variable"),
    "second": (lambda m: m.A.first(1).n, tg.sum, "m reads a row beside the first or last one with a variable"),
    "optional": (lambda m: tg.coalesce(m.B.n, 1), tg.sum, "m is computed of a row that a match need not have"),
}


@pytest.mark.parametrize("name", LISTED)
def test_others_are_listed_and_it_is_said_why(name: str) -> None:
    measure, aggregate, why = LISTED[name]
    matches = sequences("A+ B?", matches="any", within=3, m=measure)
    relation = aggregated(matches, s=aggregate(matches.m))
    assert counts_of(relation) == []
    assert f"lists       matches one by one: {why}" in str(tg.program(R=relation).explain())


BIG = 2**62


def values_of(rows: Sequence[int | None], **asked: Any) -> dict[str, Any]:
    """Aggregates over all matches of A+ of so many rows, each with the first and the last value, and the sum of all."""
    stream = tg.stream("S", "t bigint, n bigint", progress="t")
    matches = stream.sequences(
        "A+",
        matches="any",
        first_n=lambda m: m.A.first().n,
        last_n=lambda m: m.A.n,
        sum_n=lambda m: m.A.agg(tg.sum(stream.n)),
    )
    of = {name: how(matches) for name, how in asked.items()}
    relation = matches.group_by(w=tg.ceil(matches.detected, 1000)).agg(**of)
    assert counts_of(relation)
    result = tg.program(R=relation).run({"S": list(enumerate(rows, 1))})["R"].rows()
    return dict(result[0]) if result else {}


def test_a_sum_is_exact_where_parts_of_it_are_beyond_a_bigint() -> None:
    """Of 1, 2, 4, ... matches that end with each row."""
    row = values_of([BIG, -BIG, BIG // 2, -1], total=lambda m: tg.sum(m.last_n), mean=lambda m: tg.avg(m.last_n))
    assert row["total"] == BIG - 2 * BIG + 4 * (BIG // 2) - 8
    assert row["mean"] == pytest.approx(row["total"] / 15)
    mean = values_of([BIG, BIG, BIG], mean=lambda m: tg.avg(m.last_n))["mean"]
    assert mean == pytest.approx(float(BIG))


def test_the_least_bigint_counts_in_full() -> None:
    assert values_of([-(2**63), 1], total=lambda m: tg.sum(m.last_n))["total"] == -(2**63) + 2


def test_a_match_without_a_value_has_none_that_is_least() -> None:
    """Of two matches that end with the second row one begins with NULL."""
    assert values_of([None, 5], low=lambda m: tg.min(m.first_n))["low"] == 5
    assert values_of([None, -5], high=lambda m: tg.max(m.first_n))["high"] == -5


def test_doubles_stand_in_one_order() -> None:
    """Zeros are equal, and NaN is the greatest, whatever their signs."""
    nan = float("nan")
    doubles = [-math.inf, -1.5, -0.0, 0.0, 2.5, math.inf, nan, math.copysign(nan, -1.0)]
    integers = ordered(pl.Series([*doubles, None]), DOUBLE).to_list()
    assert integers.pop() is None
    assert integers == sorted(integers)
    assert [integers.index(integer) for integer in integers] == [0, 1, 2, 2, 4, 5, 6, 6]


def test_a_sum_that_does_not_fit_is_null_as_any_other() -> None:
    row = values_of(
        [BIG, BIG], n=lambda _: tg.count(), total=lambda m: tg.sum(m.last_n), none=lambda m: tg.try_sum(m.last_n)
    )
    assert (row["n"], row["total"], row["none"]) == (3, None, None)


def test_a_sum_of_doubles_is_rounded_once() -> None:
    """Of 1, 2, 4 and 8 matches that end with each row."""
    stream = tg.stream("S", "t bigint, x double", progress="t")
    matches = stream.sequences("A+", matches="any", x=lambda m: m.A.x)
    relation = matches.group_by(w=tg.ceil(matches.detected, 100)).agg(s=tg.sum(matches.x), m=tg.avg(matches.x))
    assert counts_of(relation)

    def told(*values: float | None) -> tuple[Any, ...]:
        (row,) = tg.program(R=relation).run({"S": list(enumerate(values, 1))})["R"].rows()
        return row["s"], row["m"]

    assert told(1e16, 0.5, -2.5e15, 0.25) == (3.0, 0.2)
    assert told(0.1, 0.1, None, 0.1)[0] == pytest.approx(1.1, rel=1e-15)
    assert told(None, None) == (None, None)
    assert str(told(float("inf"), 1.0)) == "(inf, inf)"
    assert str(told(float("inf"), float("-inf"))) == "(nan, nan)"


def test_of_more_matches_than_can_be_counted_the_least_value_is_told() -> None:
    """2^100 - 1 matches. Their sum is too large, and so is their number."""
    rows = list(range(100))
    assert values_of(rows, low=lambda m: tg.min(m.last_n), high=lambda m: tg.max(m.last_n))["high"] == 99
    assert values_of(rows, total=lambda m: tg.sum(m.last_n))["total"] is None
    assert values_of(rows, mean=lambda m: tg.avg(m.last_n)) == {}


def test_a_match_of_which_the_sum_may_not_fit_is_too_large_to_tell() -> None:
    """Listed, such a sum is NULL, and others are added up: here nobody knows which it is."""
    assert values_of([BIG, -BIG], total=lambda m: tg.sum(m.sum_n))["total"] is None
    assert values_of([BIG, -BIG + 2], total=lambda m: tg.sum(m.sum_n))["total"] == 2 * BIG + 2 * (-BIG + 2)


@pytest.mark.parametrize("values", [[], [None], [0], [-1, None], [2**63 - 1] * 9, [-(2**63)] * 9, [5, -(2**62)]])
def test_halves_add_up_to_the_sum(values: list[int | None]) -> None:
    high, low, beyond = Halves("x", "h", "l", "b").of(values)
    known = [value for value in values if value is not None]
    if not known:
        assert (high, low, beyond) == (None, None, 0)
        return
    assert Total(Attr("h"), Attr("l")).exact(high, low) == sum(known)
    assert isinstance(low, int)
    assert 0 <= low < 2**32
    positive, negative = sum(max(v, 0) for v in known), sum(max(-v, 0) for v in known)
    words = [positive >> 32, positive & (2**32 - 1), negative >> 32, negative & (2**32 - 1)]
    assert tuple(int(part[0]) for part in halves(np.array([words], dtype=np.int64))) == (high, low, beyond)
