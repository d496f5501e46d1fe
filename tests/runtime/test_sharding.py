"""Shard by shard: rows of different keys never meet, so the shards' results together are the whole result."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

import tidegate as tg
from tests.strategies.trees import Case, cases
from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Group, Join, Scan, occurrences
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr, call
from tidegate.algebra.types import BIGINT
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.plan.sharding import shard_key
from tidegate.runtime.plan.steps import Buffer, Leaf

SHARDS = 3
events = tg.stream("E", "k bigint, t bigint, v double", progress="t")


def leaf(stream: StreamDef, *, static: bool) -> Leaf:
    if static:
        return Leaf(None, stream.name, None)
    return Leaf(Buffer(stream.name, stream, Scan(stream), 0, (), ()), None, None)


def rows_of(case: Case, place: int, stream: StreamDef) -> pl.DataFrame:
    return pl.DataFrame(case.relations[stream.name], schema=polars_schema(stream.schema), orient="row")


def bag(frame: pl.DataFrame) -> Counter[str]:
    return Counter(map(repr, frame.rows()))


@given(cases(), st.integers(0, 7))
@settings(max_examples=75, deadline=None)
def test_the_shards_together_are_the_whole(case: Case, static: int) -> None:
    streams = occurrences(case.node)
    leaves = tuple(leaf(s, static=place > 0 and bool(static >> (place % 3) & 1)) for place, s in enumerate(streams))
    key = shard_key(case.node, leaves, None)
    event(f"key: {key is not None}, leaves: {min(len(leaves), 3)}")
    if key is None:
        return
    frames = [rows_of(case, place, stream) for place, stream in enumerate(streams)]
    whole = evaluate(case.node, dict(enumerate(frames)))
    found: Counter[str] = Counter()
    for shard in range(SHARDS):
        shares = {
            i: (frame if column is None else frame.filter(pl.col(column).hash(0) % SHARDS == shard))
            for i, (frame, column) in enumerate(zip(frames, key, strict=True))
        }
        found += bag(evaluate(case.node, shares))
    assert found == bag(whole)


@pytest.mark.parametrize("kind", ["key", "other", "none"])
def test_which_queries_have_a_key(kind: str) -> None:
    a, b = events.as_("a"), events.as_("b")
    near = (a.t <= b.t, b.t <= a.t + 3)
    joined = a.join(b, *near) if kind == "none" else a.join(b, a.k == b.k, *near)
    pairs = joined.select(k=a.k, t=b.t, v=b.v)
    grouped = (
        pairs.group_by(k=pairs.k, w=tg.ceil(pairs.t, 10)) if kind == "key" else pairs.group_by(w=tg.ceil(pairs.t, 10))
    )
    program = tg.program(Counted=grouped.agg(n=tg.count(), total=tg.sum(pairs.v)))
    (query,) = program.explain().lowered().queries
    assert query.shard_key == (("k", "k") if kind == "key" else None)
    assert ("by shards of k up to" in program.explain().plan) == (kind == "key")


def test_explain_shows_the_limits_that_a_run_is_given() -> None:
    a, b = events.as_("a"), events.as_("b")
    pairs = a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 3).select(k=a.k, t=b.t)
    program = tg.program(Counted=pairs.group_by(k=pairs.k, w=tg.ceil(pairs.t, 10)).agg(n=tg.count()))

    def places(**limits: Any) -> str:
        increment = program.explain(**limits).plan.partition("\nincrement")[2]
        (line,) = (line for line in increment.splitlines() if "on Spark" in line)
        return line.removeprefix("  on Spark    ")

    assert places() == "in the driver up to 64 MiB, by shards of k up to 128 MiB a task, else as DataFrames"
    assert places(driver_bytes=3 << 29, shard_bytes=1000) == (
        "in the driver up to 1.5 GiB, by shards of k up to 1000 bytes a task, else as DataFrames"
    )
    assert places(driver_bytes=0) == "by shards of k up to 128 MiB a task, else as DataFrames"
    assert places(driver_bytes=0, shard_bytes=0) == "as DataFrames"
    plan = program.explain(driver_bytes=5).to_dict()["plan"]
    assert plan["limits"] == {"driver_bytes": 5, "shard_bytes": 128 << 20}
    with pytest.raises(tg.QueryError, match="TG401 driver_bytes=-1 is no number of bytes"):
        program.explain(driver_bytes=-1)


def test_the_strata_of_a_recursion_are_not_shared_out() -> None:
    """Each stratum are the rows of least rank of all: explain names no place where it never is."""
    rounds = tg.result("Rounds", "k bigint, t bigint", progress="t")
    a, r = events.as_("a"), rounds.as_("r")
    first = a.anti_join(r, r.k == a.k, r.t < a.t, a.t <= r.t + 10).select(k=a.k, t=a.t).distinct()
    program = tg.program(tg.query(rounds, first), Alone=first)
    recursive, plain = sorted(program.explain().lowered().queries, key=lambda query: query.name == "Alone")
    assert recursive.shard_key is None
    assert plain.shard_key == ("k", "k")
    assert "on Spark    in the driver up to 64 MiB, else as DataFrames" in program.explain().plan


@pytest.mark.parametrize("side", ["l", "r"])
def test_the_padded_side_of_an_outer_join_is_no_key(side: str) -> None:
    """Left rows without partner have NULL there whatever their own key: grouped by it they would meet in no shard."""
    one, other = (StreamDef(name, Schema((Attribute(f"{name}.k", BIGINT),)), static=True) for name in ("l", "r"))
    joined = Join(Scan(one), Scan(other), call("eq", Attr("l.k"), Attr("r.k")), "left")
    grouped = Group(joined, (f"{side}.k",), (Aggregate("n", Function.COUNT),))
    leaves = (leaf(one, static=False), leaf(other, static=False))
    assert shard_key(grouped, leaves, None) == (("l.k", "r.k") if side == "l" else None)
