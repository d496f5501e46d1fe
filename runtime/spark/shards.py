"""Increments shard by shard: every task evaluates all of a query over its share of the keys, with the embedded steps.

A task reads the relevant segments one after the other and keeps the rows of its share, so it holds at most those.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import polars as pl

from tidegate.algebra.terms import Term
from tidegate.runtime.embedded.executor import no_rows
from tidegate.runtime.embedded.increment import increment, keep_true, read_leaves
from tidegate.runtime.plan.common import Demand
from tidegate.runtime.plan.steps import Buffer, Progress, QueryPlan
from tidegate.runtime.spark.workers import Batches, Place, reported, store_rows, summary_batch
from tidegate.runtime.state.local import LocalStore
from tidegate.runtime.state.segments import Segment, read_segments


@dataclass(frozen=True, slots=True)
class ShardJob:
    """An increment as a worker needs it; `written`: a sink wants its rows."""

    query: QueryPlan
    inputs: Sequence[Sequence[Segment]]
    old: Progress
    new: Progress
    feeds: Sequence[tuple[Buffer, Term]]
    written: bool


def evaluate_shards(place: Place, jobs: Sequence[ShardJob], shards: int) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over shard numbers: evaluates every query over the shard's rows, and stores what is new."""

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                for job in jobs:
                    rows = _evaluate(place, job, shard, shards)
                    if rows.height:
                        schema = job.query.facts.output.schema
                        line = store_rows(place, job.query.name, schema, job.feeds, rows, written=job.written)
                        yield summary_batch([line])

    return reported(run)


def _evaluate(place: Place, job: ShardJob, shard: int, shards: int) -> pl.DataFrame:
    query = job.query
    assert query.shard_key is not None
    demand = Demand.of(query, job.old, job.new)
    statics = place.load_statics(leaf.static for leaf in query.leaves if leaf.static is not None)
    frames: list[pl.LazyFrame | None] = []
    for leaf, relevant, key, segments in zip(query.leaves, demand.relevant, query.shard_key, job.inputs, strict=True):
        if leaf.buffer is None:
            frames.append(None)
            continue
        assert relevant is not None
        assert key is not None
        parts = [
            keep_true(_share(_load(place, segment), key, shard, shards), relevant, leaf.buffer.schema).collect()
            for segment in segments
        ]
        frames.append(pl.concat(parts).lazy() if parts else no_rows(leaf.buffer))
    return increment(query, read_leaves(demand, frames, statics), job.old, job.new, {}).collect()


def _load(place: Place, segment: Segment) -> pl.LazyFrame:
    return pl.DataFrame(read_segments(LocalStore(place.root), [segment])).lazy()


def _share(rows: pl.LazyFrame, key: str, shard: int, shards: int) -> pl.LazyFrame:
    """Rows whose key falls to the shard; NULL is a key."""
    return rows.filter(pl.col(key).hash(0) % shards == shard)
