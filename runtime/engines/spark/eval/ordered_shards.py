"""Ordered operators shard by shard: a task has the operator of a share of the partitions, with the state of that
share.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import pyarrow as pa

from tidegate.algebra.time import INF
from tidegate.runtime.engines.spark.eval.shards import ShardJob, read_shares
from tidegate.runtime.engines.spark.workers import Batches, WriteTarget, reported, store_rows, summary_batch
from tidegate.runtime.eval.increment import increment
from tidegate.runtime.ordered.state import Share, keep_part, part_of, read_state
from tidegate.runtime.ordered.table import load_operator, start_operator
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.slices import InterleavedRuns
from tidegate.runtime.rows import Rows
from tidegate.runtime.state.codec import plain
from tidegate.runtime.state.errors import storage_errors
from tidegate.runtime.state.manifest import OperatorFiles
from tidegate.runtime.state.segments import new_path
from tidegate.runtime.state.store.interface import FileRef
from tidegate.runtime.state.store.local import LocalStore


@dataclass(frozen=True, slots=True)
class OrderedJob:
    """An ordered operator's increment as a worker needs it."""

    job: ShardJob
    state: OperatorFiles | None
    close_at: int | None


def evaluate_ordered(target: WriteTarget, jobs: Sequence[OrderedJob], shards: int) -> Callable[[Batches], Batches]:
    """For `mapInArrow` over shard numbers: the new rows of each operator's share, stored, and what it keeps from now
    on.
    """

    def run(batches: Batches) -> Batches:
        for batch in batches:
            for shard in batch.column(0).to_pylist():
                for job in jobs:
                    try:
                        lines = _evaluate(target, job, shard, shards)
                    except InterleavedRuns:
                        lines = [json.dumps({"query": job.job.query.name, "interleaved": True})]
                    yield summary_batch(lines)

    return reported(run)


def _evaluate(target: WriteTarget, ordered_job: OrderedJob, shard: int, shards: int) -> list[str]:
    """Summaries of the rows of a share and of what its operator keeps."""
    job, store = ordered_job.job, LocalStore(target.root)
    query, ordered = job.query, job.query.ordered
    assert ordered is not None
    assert ordered.sharded_by is not None
    before, old = None, job.old[ordered.time]
    if ordered_job.state is None:
        operator = start_operator(ordered)
    else:
        share = Share(ordered.sharded_by, shard, shards)
        before = part_of(query.name, ordered_job.state, share)
        described = start_operator(ordered).described()
        operator = load_operator(ordered, read_state(store, query.name, ordered_job.state, described, share), old)
    (leaves,) = read_shares(target, [job], [Demand.of(query, job.old, job.new, job.keys)], shard, shards)
    new = job.new[ordered.time]
    events: Sequence[Rows] = operator.events(leaves, old, new)
    if ordered.judges:
        events, aside = operator.evaluable(events)
        if aside:  # the driver sets them aside
            raise aside[0].error
    after, completed = operator.step(events, old, new, ordered_job.close_at)
    kept_on = after.emptied() if new == INF else after
    rows = increment(query, {0: completed}, job.old, job.new, {})

    def write(table: pa.Table) -> FileRef:
        return store.write_table(new_path("kernel", query.name, target.seq, target.attempt), table)

    with storage_errors(f"writing state of {query.name!r}"):
        kept = keep_part(kept_on, before, write, store.read_table)
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
