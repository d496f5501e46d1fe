"""Shards that take longer than others, as one key has most rows, are evaluated in portions: a task for each.

What shards took in the last increments of a query says which these are; they are choices of the batch, as its other
ones are. No result depends on them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final

import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.nodes import occurrences
from tidegate.algebra.schema import Schema
from tidegate.runtime.engines.spark.eval.divisions import Division, divisions
from tidegate.runtime.engines.spark.eval.ordered_shards import (
    evaluate_ordered,
    evaluate_ordered_portion,
    ordered_tasks,
)
from tidegate.runtime.engines.spark.eval.shards import (
    ComparedPairs,
    ShardJob,
    evaluate_shards,
    load_line,
    read_shares,
)
from tidegate.runtime.engines.spark.tasks.running import Tasks
from tidegate.runtime.engines.spark.workers import WriteTarget, store_rows
from tidegate.runtime.eval.increment import increment
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.state.codec import Json
from tidegate.runtime.state.manifest import OperatorFiles
from tidegate.runtime.tuning.choices import PORTIONS, Choice, Way
from tidegate.runtime.tuning.cuts import Spread, cuts_of
from tidegate.runtime.tuning.tuner import Tuner

#: A shard may take so many times as long as the mean.
UNEVEN: Final = 1.3
#: Seconds; what takes less is not worth another task.
WORTH: Final = 0.2


@dataclass(frozen=True, slots=True)
class Load:
    """Seconds that a query took in a shard: to read its rows, which every portion does, and to evaluate and store. Of
    an operator, to read is also to derive situations, and to keep them.
    """

    read: float = 0.0
    evaluated: float = 0.0

    @property
    def seconds(self) -> float:
        return self.read + self.evaluated

    def beside(self, portion: Load) -> Load:
        """The load of a shard with another of its portions."""
        return Load(max(self.read, portion.read), self.evaluated + portion.evaluated)


@dataclass(slots=True)
class Loads:
    """What each shard took in the last increment of a query of which all shards were measured. There are so many
    `cores`; None: one for each shard.
    """

    cores: int | None = None
    _of: dict[str, Mapping[int, Load]] = field(default_factory=dict)

    def learn(self, summaries: Sequence[Mapping[str, Any]], shards: Mapping[str, int]) -> list[Mapping[str, Any]]:
        """Takes what tasks say from the summaries of a job; the others are left. `shards` says how many each query
        has.
        """
        left: list[Mapping[str, Any]] = []
        told: dict[str, dict[int, list[tuple[int, Load]]]] = {}
        for summary in summaries:
            if "load" in summary:
                shard, portions, *seconds = summary["load"]
                told.setdefault(summary["query"], {}).setdefault(shard, []).append((portions, Load(*seconds)))
            else:
                left.append(summary)
        for query, by_shard in told.items():
            if len(by_shard) == shards[query] and all(len(some) == some[0][0] for some in by_shard.values()):
                self._of[query] = {shard: _together(some) for shard, some in by_shard.items()}
        return left

    def portions(self, queries: Collection[str], shards: int) -> dict[tuple[str, int], int]:
        """Into how many portions shards of these queries would better be divided, where a task evaluates a shard of all
        of them: so many that each takes about the mean of the cores, or reads as long as it evaluates.
        """
        known = self._known(queries, shards)
        took, cores = self._took(queries, shards), self._cores(shards)
        mean = sum(took) / cores
        found: dict[tuple[str, int], int] = {}
        for shard, seconds in enumerate(took):
            if seconds < WORTH or seconds <= UNEVEN * mean:
                continue
            for query, of in known.items():
                load = of[shard]
                portions = min(cores, math.ceil(load.evaluated / max(mean - load.read, load.read)))
                if portions > 1:
                    found[query, shard] = portions
        return found

    def reason(self, queries: Collection[str], shard: int, shards: int) -> str:
        """Why a shard is divided."""
        took = self._took(queries, shards)
        return f"it took {took[shard]:.3g} s, the mean is {sum(took) / self._cores(shards):.3g} s"

    def _cores(self, shards: int) -> int:
        """How many tasks of so many shards run at once."""
        return min(shards, self.cores or shards)

    def _took(self, queries: Collection[str], shards: int) -> list[float]:
        """Seconds of a task for each shard that evaluates these queries there."""
        known = self._known(queries, shards)
        return [sum(of[shard].seconds for of in known.values()) for shard in range(shards)]

    def _known(self, queries: Collection[str], shards: int) -> dict[str, Mapping[int, Load]]:
        """What is known of these queries, as far as they were evaluated in so many shards."""
        return {query: of for query in queries if (of := self._of.get(query)) is not None and len(of) == shards}


def _together(some: Sequence[tuple[int, Load]]) -> Load:
    """The load of a shard from those of its portions."""
    whole = Load()
    for _, load in some:
        whole = whole.beside(load)
    return whole


@dataclass(frozen=True, slots=True)
class PortionJob:
    """An increment of which some shards are divided in this way."""

    job: ShardJob
    division: Division


def shard_tasks(
    target: WriteTarget, groups: Sequence[Sequence[ShardJob]], shards: int, loads: Loads, tuner: Tuner
) -> list[Tasks]:
    """A task for each shard, and before them one for each portion of those that would take long."""
    jobs = [job for some in groups for job in some]
    portions = _chosen(jobs, shards, loads, tuner)
    asked = {query for query, _ in portions}
    divided = [PortionJob(job, division) for job in jobs if job.query.name in asked and (division := _best(job))]
    own: list[Json] = []
    elsewhere: list[list[Json]] = [[] for _ in range(shards)]
    for number, one in enumerate(divided):
        for (query, shard), count in portions.items():
            if query == one.job.query.name:
                elsewhere[shard].append(query)
                own += [[number, shard, portion, count] for portion in range(count)]
    shares: list[Json] = [[shard, list(queries)] for shard, queries in enumerate(elsewhere)]
    tasks = [Tasks(partial(evaluate_portion, target, divided, shards), own)] if own else []
    return [*tasks, Tasks(partial(evaluate_shards, target, groups, shards), shares)]


def operator_tasks(
    target: WriteTarget,
    jobs: Sequence[ShardJob],
    states: Sequence[OperatorFiles | None],
    close_at: Sequence[int | None],
    shards: int,
    loads: Loads,
    tuner: Tuner,
) -> list[Tasks]:
    """A task for each share of the partitions, and before them those for the portions of shares that would take
    long.
    """
    of = {job.query.name: job for job in jobs}
    cuts = {
        (query, shard): instants
        for (query, shard), count in _chosen(jobs, shards, loads, tuner).items()
        if (instants := _cuts(of[query], count))
    }
    work, shares, portions = ordered_tasks(jobs, states, close_at, shards, cuts)
    tasks = [Tasks(partial(evaluate_ordered_portion, target, work, shards), portions)] if portions else []
    return [*tasks, Tasks(partial(evaluate_ordered, target, work, shards), shares)]


def _cuts(job: ShardJob, portions: int) -> list[int]:
    """Instants that cut the increment of an operator: there are about as many new rows between any two, by the instants
    at which it reads them, or others of theirs.
    """
    ordered = job.query.ordered
    assert ordered is not None
    times = {index: reading.time for index, reading in zip(ordered.leaves, ordered.node.readings, strict=True)}
    spreads: list[Spread] = []
    for index, at in times.items():
        leaf = job.query.leaves[index]
        assert leaf.buffer is not None
        instants = leaf.buffer.instants if at is None else (at, *leaf.buffer.instants)
        for segment in job.inputs[index]:
            bounds = [segment.bounds[name] for name in instants if name in segment.bounds]
            spreads += [(segment.rows, *bounds[0])] if bounds else []
    return cuts_of(spreads, job.old[ordered.time], job.new[ordered.time], portions)


def _chosen(jobs: Sequence[ShardJob], shards: int, loads: Loads, tuner: Tuner) -> dict[tuple[str, int], int]:
    """Into how many portions shards of queries are divided in the batch that runs, among its choices from now on."""
    queries = [job.query.name for job in jobs]
    steps = {f"{query}, shard {shard}": (query, shard) for query in queries for shard in range(shards)}
    wanted = loads.portions(queries, shards)
    asked = {query for query, _ in wanted}
    divisible = {job.query.name for job in jobs if job.query.name in asked and _is_divisible(job)}
    found = [
        Choice(step, Way(PORTIONS, wanted[query, shard]), loads.reason(queries, shard, shards))
        for step, (query, shard) in steps.items()
        if query in divisible and (query, shard) in wanted
    ]
    return {steps[choice.step]: choice.way.tasks for choice in tuner.take(found, steps) if choice.way.tasks > 0}


def _is_divisible(job: ShardJob) -> bool:
    """Whether an increment may be divided; of an operator its own tasks know it."""
    return job.query.ordered is not None or bool(divisions(job.query))


def _best(job: ShardJob) -> Division | None:
    """How to divide an increment: the leaf with the most rows, as every portion reads all rows of the others."""

    def rows(division: Division) -> int:
        return sum(segment.rows for segment in job.inputs[division.leaf])

    return max(divisions(job.query), key=rows, default=None)


def evaluate_portion(target: WriteTarget, jobs: Sequence[PortionJob], shards: int, own: Json) -> Iterator[str]:
    """A task: evaluates a portion of a shard of one query, and stores what is new.

    `own`: the numbers of the job, the shard and the portion, and how many portions there are.
    """
    number, shard, portion, portions = own
    job, division = jobs[number].job, jobs[number].division
    began = time.perf_counter()
    (leaves,) = read_shares(target, [job], [Demand.of(job.query, job.old, job.new, job.keys)], shard, shards)
    read = time.perf_counter()
    schema = occurrences(job.query.tree)[division.leaf].schema
    leaves[division.leaf] = portion_of(leaves[division.leaf], division, schema, portion, portions)
    pairs = ComparedPairs()
    rows = increment(job.query, leaves, job.old, job.new, {}, announce=pairs.announce)
    if rows.height:
        output = job.query.facts.output.schema
        yield store_rows(target, job.query.name, output, job.feeds, rows, written=job.written)
    yield from load_line(target, job.query.name, shard, portions, read - began, time.perf_counter() - read)
    yield from pairs.lines()


def portion_of(rows: pl.DataFrame, division: Division, schema: Schema, portion: int, portions: int) -> pl.DataFrame:
    """The rows of a leaf that are in a portion. Of rows that lie in order of time, a portion is a span of time where
    they are divided row by row.
    """
    if division.by is None:
        low, high = (rows.height * number // portions for number in (portion, portion + 1))
        return rows.slice(low, high - low)
    try:
        return rows.filter(compile_term(division.by, schema).hash(0) % portions == portion)
    except EvaluationError:  # perhaps of a row that has no partner
        return rows if portion == 0 else rows.clear()
