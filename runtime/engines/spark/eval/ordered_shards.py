"""Ordered operators shard by shard: a task has the operator of a share of the partitions, with the state of that
share.

What takes long to find in a share is shared out by instants. A portion has the rows that are complete after one
instant and up to another: its task begins with the state that the share's task begins with, reads what comes up to
the later of the two instants, and writes no state.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import polars as pl
import pyarrow as pa

from tidegate.algebra.time import INF, Extended
from tidegate.runtime.batch.increments import relevant
from tidegate.runtime.engines.spark.eval.shards import ComparedPairs, ShardJob, load_line, read_shares
from tidegate.runtime.engines.spark.tasks.held import HeldOperator
from tidegate.runtime.engines.spark.workers import WriteTarget, store_rows
from tidegate.runtime.eval.increment import increment, joined_leaves
from tidegate.runtime.ordered.family import Operator, heard
from tidegate.runtime.ordered.new_events import latest
from tidegate.runtime.ordered.state import Delta, Part, Share, keep_part, plain_parts_of, read_part, read_state
from tidegate.runtime.ordered.table import load_operator, start_operator
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.slices import InterleavedRuns
from tidegate.runtime.rows import Rows, as_frame
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


#: Of a share of an operator, the instants up to which portions of its rows go; the share's own task has those after the
#: last of them.
Cuts = Sequence[int]


def ordered_tasks(
    jobs: Sequence[ShardJob],
    states: Sequence[OperatorFiles | None],
    close_at: Sequence[int | None],
    shards: int,
    cuts: Mapping[tuple[str, int], Cuts],
) -> tuple[list[OrderedJob], list[Json], list[Json]]:
    """Increments of operators as all tasks need them, and what is each task's own: first of shares, then of portions.

    A share has its number, and of each operator the part of its state that is this share's and the instants at which
    its rows are cut. A portion has the numbers of the operator, the share and the portion, that part, and those
    instants. `cuts` are by query and share.
    """
    whole: list[OrderedJob] = []
    parts: list[list[Json]] = []
    for job, state, close in zip(jobs, states, close_at, strict=True):
        found = None if state is None else plain_parts_of(job.query.name, state, shards)
        whole.append(OrderedJob(job, None if found is not None else state, close))
        parts.append([None] * shards if found is None else found)
    shares: list[Json] = []
    portions: list[Json] = []
    names = [job.query.name for job in jobs]
    # Those that take longest begin first.
    for shard in sorted(range(shards), key=lambda shard: not any((name, shard) in cuts for name in names)):
        at = [list(cuts.get((name, shard), ())) for name in names]
        shares.append([shard, [of_job[shard] for of_job in parts], at])
        for number, some in enumerate(at):
            portions += [[number, shard, portion, parts[number][shard], some] for portion in range(len(some))]
    return whole, shares, portions


def evaluate_ordered(target: WriteTarget, jobs: Sequence[OrderedJob], shards: int, own: Json) -> Iterator[str]:
    """A task: the new rows of each operator's share, stored, and what it keeps from now on.

    `own` is that of a share in `ordered_tasks`.
    """
    shard, parts, cuts = own
    for job, part, at in zip(jobs, parts, cuts, strict=True):
        try:
            yield from _evaluate(target, job, part, shard, shards, at)
        except InterleavedRuns:
            yield _interleaved(job)


def latest_events(target: WriteTarget, jobs: Sequence[ShardJob], shards: int, own: Json) -> Iterator[str]:
    """A task: the instant of the last new event of each operator in the share whose number is `own`, where it has any.

    Rows that go on with their input end at the last event of all, which no share knows by itself.
    """
    for job in jobs:
        ordered = job.query.ordered
        assert ordered is not None
        events = start_operator(ordered).events(_leaves(target, job, own, shards), *_reached(job))
        last = latest(ordered.node.readings[0], as_frame(events[0]), None)
        if last is not None:
            yield json.dumps({"query": job.query.name, "last": last})


def evaluate_ordered_portion(target: WriteTarget, jobs: Sequence[OrderedJob], shards: int, own: Json) -> Iterator[str]:
    """A task: the new rows of an operator's share that are complete after one instant and up to another, stored.

    `own` is that of a portion in `ordered_tasks`.
    """
    number, shard, portion, part, cuts = own
    try:
        yield from _evaluate_portion(target, jobs[number], part, shard, shards, portion, cuts)
    except InterleavedRuns:
        yield _interleaved(jobs[number])


def _interleaved(job: OrderedJob) -> str:
    return json.dumps({"query": job.job.query.name, "interleaved": True})


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


@dataclass(frozen=True, slots=True)
class _Step:
    """What an increment of an operator has given: its events, the operator after them, the rows that are new in the
    query, and how many matches there were.
    """

    events: Sequence[Rows]
    after: Operator
    rows: pl.DataFrame
    matches: ComparedPairs


def _step(
    target: WriteTarget, job: ShardJob, operator: Operator, shard: int, shards: int, close_at: int | None = None
) -> _Step:
    query, ordered = job.query, job.query.ordered
    assert ordered is not None
    old, new = _reached(job)
    events: Sequence[Rows] = operator.events(_leaves(target, job, shard, shards), old, new)
    if ordered.judges:
        events, aside = operator.evaluable(events)
        if aside:  # the driver sets them aside
            raise aside[0].error
    matches = ComparedPairs()
    with heard(partial(matches.announce, query)):
        after, completed = operator.step(events, old, new, close_at)
    return _Step(events, after, increment(query, {0: as_frame(completed)}, job.old, job.new, {}), matches)


def _leaves(target: WriteTarget, job: ShardJob, shard: int, shards: int) -> Mapping[int, Rows]:
    """What an operator reads of a share, by leaf."""
    query = job.query
    (stored,) = read_shares(target, [job], [Demand.of(query, job.old, job.new, job.keys)], shard, shards)
    tables = [name for leaf in query.leaves if leaf.joined is not None for _, name in leaf.joined.tables]
    return joined_leaves(query, stored, target.load_statics(tables))


def _reached(job: ShardJob) -> tuple[Extended, Extended]:
    """How far an operator had read its events, and how far it reads them now."""
    assert job.query.ordered is not None
    return job.old[job.query.ordered.time], job.new[job.query.ordered.time]


def _evaluate(
    target: WriteTarget, ordered_job: OrderedJob, own_part: Json, shard: int, shards: int, cuts: Cuts
) -> list[str]:
    """Summaries of the rows of a share, of those after the last cut if there are any, of what its operator keeps, and
    of what it took.
    """
    began = time.perf_counter()
    job, store = ordered_job.job, target.held.store
    query, ordered = job.query, job.query.ordered
    assert ordered is not None
    before = _parsed(query.name, own_part)
    operator = _operator(target, ordered_job, before, shard, shards)
    last = operator.finding_after(cuts[-1]) if cuts else None
    step = _step(target, job, operator if last is None else last, shard, shards, ordered_job.close_at)
    new = job.new[ordered.time]
    after = step.after.letting_go(step.events, new)
    kept_on = after.emptied() if new == INF else after

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
    return [*lines, *_stored(target, job, step, shard, 1 if last is None else len(cuts) + 1, began)]


def _evaluate_portion(
    target: WriteTarget, ordered_job: OrderedJob, own_part: Json, shard: int, shards: int, portion: int, cuts: Cuts
) -> list[str]:
    """Summaries of the rows of a portion, and of what it took. None where the share's task finds them all.

    The operator that it begins with is held for the other tasks of the share, once nothing can fail any more.
    """
    began = time.perf_counter()
    job = ordered_job.job
    query, ordered = job.query, job.query.ordered
    assert ordered is not None
    before = _parsed(query.name, own_part)
    operator = _operator(target, ordered_job, before, shard, shards)
    finding = operator.finding_after(cuts[portion - 1] if portion else job.old[ordered.time])
    lines: list[str] = []
    if finding is not None:
        step = _step(target, _up_to(job, ordered.time, cuts[portion]), finding, shard, shards)
        lines += _stored(target, job, step, shard, len(cuts) + 1, began)
    if before is not None:
        target.held.operators.keep(query.name, shard, shards, HeldOperator(before, job.old, operator))
    return lines


def _up_to(job: ShardJob, attribute: str, instant: Extended) -> ShardJob:
    """The increment up to an earlier instant, over the segments that may hold a row for it."""
    new = {**job.new, attribute: instant}
    return replace(job, inputs=relevant(job.query, job.inputs, job.old, new), new=new)


def _stored(target: WriteTarget, job: ShardJob, step: _Step, shard: int, portions: int, began: float) -> Iterator[str]:
    """Stores the new rows of a task that `began` then, one of so many portions. Summaries of them, and of the time that
    it took: what portions share is the search and the storing.
    """
    yield from step.matches.lines()
    stored = time.perf_counter()
    if step.rows.height:
        schema = job.query.facts.output.schema
        yield store_rows(target, job.query.name, schema, job.feeds, step.rows, written=job.written)
    ended = time.perf_counter()
    searched = step.after.search_seconds
    divided = 0.0 if searched is None else searched + ended - stored
    yield from load_line(target, job.query.name, shard, portions, ended - began - divided, divided)
