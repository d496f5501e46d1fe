"""Increments shard by shard: every task evaluates all of a query over its share of the keys, with the embedded steps.

A task reads the relevant segments one after the other, each once for every key that they are shared out by, and keeps
what is relevant of its share; of segments whose rows lie by that key it reads its share only. What several queries
contain is computed once where they share it out alike.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

import polars as pl
import pyarrow as pa

from tidegate.algebra.terms import TRUE, Term
from tidegate.runtime.engines.spark.workers import WriteTarget, store_rows
from tidegate.runtime.eval.increment import common_parts, increment, leaf_rows, no_rows
from tidegate.runtime.ordered.state import shard_hash, shard_of
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.steps import Buffer, Progress, QueryPlan
from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.segments import Segment, read_shard
from tidegate.runtime.state.shard_layout import Shard

#: Rows that are looked at together, of however many segments: so many are in memory beside those of the shard.
TOGETHER: Final = 1 << 17


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


def evaluate_shards(target: WriteTarget, groups: Sequence[Sequence[ShardJob]], shards: int, own: Json) -> Iterator[str]:
    """A task: evaluates every query over the shard's rows, and stores what is new.

    Queries of a group are evaluated together, the groups one after the other. `own`: the number of the shard, and the
    queries that others evaluate there.
    """
    shard, elsewhere = own
    for jobs in groups:
        if here := [job for job in jobs if job.query.name not in elsewhere]:
            yield from _evaluate(target, here, shard, shards)


def _evaluate(target: WriteTarget, jobs: Sequence[ShardJob], shard: int, shards: int) -> Iterator[str]:
    """Summaries of the new rows of each increment in the shard, and of what it took."""
    began = time.perf_counter()
    demands = [Demand.of(job.query, job.old, job.new, job.keys) for job in jobs]
    read = read_shares(target, jobs, demands, shard, shards)
    seconds = (time.perf_counter() - began) / len(jobs)
    began = time.perf_counter()
    pairs = ComparedPairs()
    ready = common_parts(demands, read, pairs.announce)
    together = (time.perf_counter() - began) / len(jobs)
    for job, leaves, parts in zip(jobs, read, ready, strict=True):
        began = time.perf_counter()
        rows = increment(job.query, leaves, job.old, job.new, parts, announce=pairs.announce)
        if rows.height:
            schema = job.query.facts.output.schema
            yield store_rows(target, job.query.name, schema, job.feeds, rows, written=job.written)
        yield from load_line(target, job.query.name, shard, 1, seconds, together + time.perf_counter() - began)
    yield from pairs.lines()


@dataclass(frozen=True, slots=True)
class ComparedPairs:
    """How many pairs joins of many have compared in a task, and how many matches operators have found, by query. The
    driver says it (TG446).
    """

    told: dict[str, int] = field(default_factory=dict)

    def announce(self, query: QueryPlan, pairs: int) -> None:
        self.told[query.name] = self.told.get(query.name, 0) + pairs

    def lines(self) -> Iterator[str]:
        """The summaries of them."""
        for query, pairs in self.told.items():
            yield json.dumps({"query": query, "pairs": pairs})


def load_line(
    target: WriteTarget, query: str, shard: int, portions: int, read: float, evaluated: float
) -> Iterator[str]:
    """The summary of what a query took in a shard, or in one of so many portions of it: seconds to read, and to
    evaluate and store. Nothing of what a worker does for the first time, as it loads then what it needs.
    """
    if query in target.held.evaluated:
        yield json.dumps({"query": query, "load": [shard, portions, read, evaluated]})
    target.held.evaluated.add(query)


def read_shares(
    target: WriteTarget, jobs: Sequence[ShardJob], demands: Sequence[Demand], shard: int, shards: int
) -> list[dict[int, pl.DataFrame]]:
    """For each increment the rows that it reads of the shard, by leaf; static tables whole."""
    statics = target.load_statics(leaf.static for job in jobs for leaf in job.query.leaves if leaf.static is not None)
    parts: dict[tuple[int, int], list[pl.DataFrame]] = {}
    store = target.held.store
    for share in _shares(jobs, demands):
        wanted = Shard(share.key, shard_hash(), shard, shards)
        for rows in _together(read_shard(store, segment, wanted) for segment in share.segments):
            own = rows.filter(shard_of(share.key, shards) == shard)  # NULL is a key
            for (relevant, _), uses in share.views.items():
                number, index = uses[0]
                relevant_rows = leaf_rows(jobs[number].query.leaves[index], own, relevant)
                for use in uses:
                    parts.setdefault(use, []).append(relevant_rows)
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


def _together(tables: Iterable[pa.Table]) -> Iterator[pl.DataFrame]:
    """The same rows in fewer frames: what is done to each costs as much as thousands of rows."""
    waiting: list[pa.Table] = []
    rows = 0
    for table in tables:
        waiting.append(table)
        rows += table.num_rows
        if rows >= TOGETHER:
            yield pl.DataFrame(pa.concat_tables(waiting))
            waiting, rows = [], 0
    if waiting:
        yield pl.DataFrame(pa.concat_tables(waiting))


#: Leaves by relevance and columns, as numbers of job and leaf.
_Views = dict[tuple[Term, tuple[str, ...]], list[tuple[int, int]]]


@dataclass(frozen=True, slots=True)
class _Share:
    """Segments of which the same leaves read the rows by the same key."""

    key: str
    segments: list[Segment]
    views: _Views


def _shares(jobs: Sequence[ShardJob], demands: Sequence[Demand]) -> list[_Share]:
    """Each segment once for every key that it is shared out by."""
    views: dict[tuple[str, str], tuple[Segment, _Views]] = {}
    for number, (job, demand) in enumerate(zip(jobs, demands, strict=True)):
        leaves = zip(job.query.leaves, job.keys, demand.relevant, job.inputs, strict=True)
        for index, (leaf, key, relevant, segments) in enumerate(leaves):
            if key is None or relevant is None:
                continue
            for segment in segments:
                _, of_segment = views.setdefault((segment.path, key), (segment, {}))
                of_segment.setdefault((relevant, leaf.columns), []).append((number, index))
    shares: list[_Share] = []
    for (_, key), (segment, of_segment) in views.items():
        last = shares[-1] if shares else None
        if last is not None and (last.key, last.views) == (key, of_segment):
            last.segments.append(segment)
        else:
            shares.append(_Share(key, [segment], of_segment))
    return shares
