"""What a worker does with its share of the keys: each segment is read once, what queries share is computed once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tests.runtime.test_shared_parts import events, pairs, queries, rows
from tidegate.runtime.engines.spark.eval import lying, shards
from tidegate.runtime.engines.spark.eval.lying import by_shard
from tidegate.runtime.engines.spark.eval.shards import ShardJob, evaluate_shards
from tidegate.runtime.engines.spark.workers import WriteTarget
from tidegate.runtime.eval import increment as embedded
from tidegate.runtime.eval import relational
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.joins.ranges import join_frames
from tidegate.runtime.plan.sharding import buffer_keys
from tidegate.runtime.plan.shared_parts import Demand, repeated
from tidegate.runtime.plan.steps import Plan
from tidegate.runtime.rows import as_table
from tidegate.runtime.state.segments import Segment, read_shard, write_segment
from tidegate.runtime.state.shard_layout import Shard
from tidegate.runtime.state.store.local import LocalStore

SHARDS = 3
OLD, NEW = {"w": 10}, {"w": 40}


def lowered() -> Plan:
    """Two queries that share a self-join by its key, and one with another join over the same rows."""
    p, a, b = pairs(), events.as_("a"), events.as_("b")
    other = a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 3, a.v <= b.v).select(k=a.k, t=b.t, one=a.v, other=b.v)
    return (
        tg.program(
            **queries(ByKey=True),
            Again=p.group_by(k=p.k, w=tg.ceil(p.t, 10)).agg(top=tg.max(p.one - p.other)),
            Other=other.group_by(k=other.k, w=tg.ceil(other.t, 10)).agg(n=tg.count(), top=tg.max(other.one)),
        )
        .explain()
        .lowered()
    )


def stored(store: LocalStore, plan: Plan, lying_in: int) -> list[Segment]:
    """The rows in two segments of the only buffer, of which the second lies in so many shards of the key."""
    (buffer,) = plan.buffers
    frame = pl.DataFrame(rows(), schema=polars_schema(buffer.stored))
    second, layout = by_shard(frame.slice(20), buffer_keys(plan)[buffer.id], lying_in)
    assert (layout is None) is (lying_in == 1)
    return [
        write_segment(store, buffer.id, as_table(frame.head(20)), buffer.instants, 1, "a"),
        write_segment(store, buffer.id, as_table(second), buffer.instants, 1, "a", layout=layout),
    ]


def found(target: WriteTarget, groups: list[list[ShardJob]]) -> dict[str, list[str]]:
    """The rows of every query, of all shards."""
    result: dict[str, list[str]] = {}
    for shard in range(SHARDS):
        for line in map(json.loads, evaluate_shards(target, groups, SHARDS, [shard, []])):
            if "load" in line:
                continue
            lines = LocalStore(target.root).read_table(line["output"][0]).to_pylist()
            result.setdefault(line["query"], []).extend(map(str, lines))
    return {name: sorted(lines) for name, lines in result.items()}


@pytest.mark.parametrize("lying_in", [1, 2, 3, 6])
@pytest.mark.parametrize("rows_together", [1, 1000])
@pytest.mark.parametrize("together", [True, False])
def test_each_segment_is_read_once_and_what_is_shared_is_computed_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, together: bool, rows_together: int, lying_in: int
) -> None:
    monkeypatch.setattr(lying, "ROWS_A_SHARD", 1)
    monkeypatch.setattr(shards, "TOGETHER", rows_together)
    store, plan = LocalStore(tmp_path), lowered()
    segments = stored(store, plan, lying_in)
    frame = pl.concat([pl.DataFrame(store.read_table(segment.path)) for segment in segments])
    whole = {}
    for query in plan.queries:
        leaves = embedded.read_leaves(Demand.of(query, OLD, NEW), [frame] * 2, {})
        whole[query.name] = sorted(map(str, embedded.increment(query, leaves, OLD, NEW, {}).to_dicts()))
    reads: list[str] = []
    joins: list[Any] = []

    def reading(of: LocalStore, segment: Segment, shard: Shard) -> pa.Table:
        reads.append(segment.path)
        return read_shard(of, segment, shard)

    def joining(*given: Any) -> pl.DataFrame:
        joins.append(given)
        return join_frames(*given)

    monkeypatch.setattr(shards, "read_shard", reading)
    monkeypatch.setattr(relational, "join_frames", joining)
    jobs = [ShardJob(query, [segments, segments], OLD, NEW, (), True) for query in plan.queries]
    groups = [jobs] if together else [[job] for job in jobs]
    assert found(WriteTarget(store.where, 2, "a", {}), groups) == whole
    assert all(whole.values())
    assert sorted(reads) == sorted([s.path for s in segments] * SHARDS * len(groups))
    assert len(joins) == SHARDS * (2 if together else 3)


def test_what_is_shared_out_by_other_keys_is_not_common() -> None:
    plan = lowered()
    alike = [Demand.of(query, OLD, NEW, ("k", "k")) for query in plan.queries]
    assert len(repeated(alike)) == 1
    other = [Demand.of(query, OLD, NEW, (key, key)) for query, key in zip(plan.queries, "kvk", strict=True)]
    assert repeated(other) == []


def test_a_buffer_lies_by_the_key_of_most_of_its_queries() -> None:
    a, b = events.as_("a"), events.as_("b")
    joined = {
        f"By{key}{number}": a.join(b, a[key] == b[key], a.t <= b.t, b.t <= a.t + number).select(key=a[key], t=b.t)
        for key, number in (("k", 1), ("v", 2), ("v", 3))
    }
    (one,) = buffer_keys(tg.program(**joined).explain().lowered()).values()
    assert one == "v"
    unkeyed = a.join(b, a.t <= b.t, b.t <= a.t + 1).select(t=b.t)
    assert buffer_keys(tg.program(All=unkeyed).explain().lowered()) == {}
