"""Increments shard by shard: every task evaluates all of a query over its share of the keys, with the embedded steps.

A task reads the relevant segments one after the other, each once for every key that they are shared out by, and keeps
what is relevant of its share. What several queries contain is computed once where they share it out alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

import polars as pl

from tidegate.algebra.terms import TRUE, Term
from tidegate.runtime.engines.spark.workers import Batches, WriteTarget, reported, store_rows, summary_batch
from tidegate.runtime.eval.increment import common_parts, increment, leaf_rows, no_rows
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.steps import Buffer, Progress, QueryPlan
from tidegate.runtime.state.segments import Segment, read_segments
from tidegate.runtime.state.store.local import LocalStore


@dataclass(frozen=True, slots=True)
class ShardJob:
    """An increment as a worker needs it; `written`: a sink wants its rows."""

    query: QueryPlan
    inputs: Sequence[Sequence[Segment]]
    old: Progress
    new: Progress
    feeds: Sequence[tuple[Buffer, Term]]
    written: bool

    @property
    def keys(self) -> tuple[str | None, ...]:
        """The columns by which the leaves are shared out."""
        assert self.query.shard_key is not None
        return self.query.shard_key


def evaluate_shards(
    target: WriteTarget, groups: Sequence[Sequence[ShardJob]], shards: int
) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over shard numbers: evaluates every query over the shard's rows, and stores what is new.

    Queries of a group are evaluated together, the groups one after the other.
    """

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                for jobs in groups:
                    for job, rows in zip(jobs, _evaluate(target, jobs, shard, shards), strict=True):
                        if rows.height:
                            schema = job.query.facts.output.schema
                            line = store_rows(target, job.query.name, schema, job.feeds, rows, written=job.written)
                            yield summary_batch([line])

    return reported(run)


def _evaluate(target: WriteTarget, jobs: Sequence[ShardJob], shard: int, shards: int) -> Iterator[pl.DataFrame]:
    """The new rows of each increment in the shard."""
    demands = [Demand.of(job.query, job.old, job.new, job.keys) for job in jobs]
    read = read_shares(target, jobs, demands, shard, shards)
    for job, leaves, ready in zip(jobs, read, common_parts(demands, read), strict=True):
        yield increment(job.query, leaves, job.old, job.new, ready)


def read_shares(
    target: WriteTarget, jobs: Sequence[ShardJob], demands: Sequence[Demand], shard: int, shards: int
) -> list[dict[int, pl.DataFrame]]:
    """For each increment the rows that it reads of the shard, by leaf; static tables whole."""
    statics = target.load_statics(leaf.static for job in jobs for leaf in job.query.leaves if leaf.static is not None)
    parts: dict[tuple[int, int], list[pl.DataFrame]] = {}
    for (_, key), share in _shares(jobs, demands).items():
        rows = _load(target, share.segment).filter(pl.col(key).hash(0) % shards == shard)  # NULL is a key
        for (relevant, _), uses in share.views.items():
            number, index = uses[0]
            wanted = leaf_rows(jobs[number].query.leaves[index], rows, relevant)
            for use in uses:
                parts.setdefault(use, []).append(wanted)
    read: list[dict[int, pl.DataFrame]] = [{} for _ in jobs]
    for number, job in enumerate(jobs):
        for index, leaf in enumerate(job.query.leaves):
            pieces = parts.get((number, index))
            if leaf.buffer is None:
                assert leaf.static is not None
                read[number][index] = statics[leaf.static]
            else:
                read[number][index] = pl.concat(pieces) if pieces else leaf_rows(leaf, no_rows(leaf.buffer), TRUE)
    return read


@dataclass(frozen=True, slots=True)
class _Share:
    """What is read of one segment by one key: by relevance and columns the leaves, as numbers of job and leaf."""

    segment: Segment
    views: dict[tuple[Term, tuple[str, ...]], list[tuple[int, int]]] = field(default_factory=dict)


def _shares(jobs: Sequence[ShardJob], demands: Sequence[Demand]) -> dict[tuple[str, str], _Share]:
    """By path and key."""
    shares: dict[tuple[str, str], _Share] = {}
    for number, (job, demand) in enumerate(zip(jobs, demands, strict=True)):
        leaves = zip(job.query.leaves, job.keys, demand.relevant, job.inputs, strict=True)
        for index, (leaf, key, relevant, segments) in enumerate(leaves):
            if key is None or relevant is None:
                continue
            for segment in segments:
                share = shares.setdefault((segment.path, key), _Share(segment))
                share.views.setdefault((relevant, leaf.columns), []).append((number, index))
    return shares


def _load(target: WriteTarget, segment: Segment) -> pl.DataFrame:
    return pl.DataFrame(read_segments(LocalStore(target.root), [segment]))
