"""Ordered operators shard by shard: a task has the operator of a share of the partitions, with the state of that
share.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.algebra.time import INF
from tidegate.runtime.engines.spark.eval.shards import ShardJob, read_shares
from tidegate.runtime.engines.spark.tasks.held import HeldOperator
from tidegate.runtime.engines.spark.workers import WriteTarget, store_rows
from tidegate.runtime.eval.increment import increment, joined_leaves
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.state import Delta, Part, Share, keep_part, plain_parts_of, read_part, read_state
from tidegate.runtime.ordered.table import load_operator, start_operator
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.slices import InterleavedRuns
from tidegate.runtime.rows import Rows
from tidegate.runtime.state.codec import Json, parse_plain, plain
from tidegate.runtime.state.errors import MANIFEST, storage_errors
from tidegate.runtime.state.manifest import OperatorFiles
from tidegate.runtime.state.segments import new_path
from tidegate.runtime.state.store.interface import FileRef


@dataclass(frozen=True, slots=True)
class OrderedJob:
    """An ordered operator's increment as a worker needs it.

    `state` is what the operator keeps in other shares than these, of which each task takes its own. What lies in these
    comes with each task.
    """

    job: ShardJob
    state: OperatorFiles | None
    close_at: int | None


def ordered_tasks(
    jobs: Sequence[ShardJob], states: Sequence[OperatorFiles | None], close_at: Sequence[int | None], shards: int
) -> tuple[list[OrderedJob], list[Json]]:
    """Increments of operators as all tasks need them, and what is each task's own: its shard, and of each operator the
    part of its state that is this shard's.
    """
    whole: list[OrderedJob] = []
    parts: list[list[Json]] = []
    for job, state, close in zip(jobs, states, close_at, strict=True):
        found = None if state is None else plain_parts_of(job.query.name, state, shards)
        whole.append(OrderedJob(job, None if found is not None else state, close))
        parts.append([None] * shards if found is None else found)
    return whole, [[shard, [of_job[shard] for of_job in parts]] for shard in range(shards)]


def evaluate_ordered(target: WriteTarget, jobs: Sequence[OrderedJob], shards: int, own: Json) -> Iterator[str]:
    """A task: the new rows of each operator's share, stored, and what it keeps from now on.

    `own` is as in `ordered_tasks`.
    """
    shard, parts = own
    for job, part in zip(jobs, parts, strict=True):
        try:
            yield from _evaluate(target, job, part, shard, shards)
        except InterleavedRuns:
            yield json.dumps({"query": job.job.query.name, "interleaved": True})


def _parsed(query: str, part: Json) -> Part | None:
    where = f"the state of {query}"
    return None if part is None else tuple(parse_plain(Delta, delta, code=MANIFEST, where=where) for delta in part)


def _operator(target: WriteTarget, ordered_job: OrderedJob, part: Part | None, shard: int, shards: int) -> Operator:
    """The operator of a share as the last committed batch left it: the one that is held, or as files say it."""
    job, held = ordered_job.job, target.held
    query, ordered = job.query, job.query.ordered
    assert ordered is not None
    assert ordered.sharded_by is not None
    if part is not None:
        known = held.operators.take(query.name, shard, shards, part, job.old, job.new)
        if known is not None:
            return known
        tables = read_part(held.store, query.name, part, start_operator(ordered).described())
    elif ordered_job.state is not None:
        share, described = Share(ordered.sharded_by, shard, shards), start_operator(ordered).described()
        tables = read_state(held.store, query.name, ordered_job.state, described, share)
    else:
        return start_operator(ordered)
    return load_operator(ordered, tables, job.old[ordered.time])


def _evaluate(target: WriteTarget, ordered_job: OrderedJob, own_part: Json, shard: int, shards: int) -> list[str]:
    """Summaries of the rows of a share and of what its operator keeps."""
    job, store = ordered_job.job, target.held.store
    query, ordered = job.query, job.query.ordered
    assert ordered is not None
    old, before = job.old[ordered.time], _parsed(query.name, own_part)
    operator = _operator(target, ordered_job, before, shard, shards)
    (stored,) = read_shares(target, [job], [Demand.of(query, job.old, job.new, job.keys)], shard, shards)
    tables = [name for leaf in query.leaves if leaf.joined is not None for _, name in leaf.joined.tables]
    leaves = joined_leaves(query, stored, target.load_statics(tables))
    new = job.new[ordered.time]
    events: Sequence[Rows] = operator.events(leaves, old, new)
    if ordered.judges:
        events, aside = operator.evaluable(events)
        if aside:  # the driver sets them aside
            raise aside[0].error
    after, completed = operator.step(events, old, new, ordered_job.close_at)
    after = after.letting_go(events, new)
    kept_on = after.emptied() if new == INF else after
    rows = increment(query, {0: completed}, job.old, job.new, {})

    def write(table: pa.Table) -> FileRef:
        return store.write_table(new_path("kernel", query.name, target.seq, target.attempt), table)

    with storage_errors(f"writing state of {query.name!r}"):
        kept = keep_part(kept_on, before, write, store.read_table)
    target.held.operators.keep(query.name, shard, shards, HeldOperator(kept.part, job.new, kept_on))
    lines = [
        json.dumps(
            {
                "query": query.name,
                "shard": shard,
                "kept": [plain(kind) for kind in kept.rows],
                "part": [plain(delta) for delta in kept.part],
            }
        )
    ]
    if rows.height:
        schema = query.facts.output.schema
        lines.append(store_rows(target, query.name, schema, job.feeds, rows, written=job.written))
    return lines
