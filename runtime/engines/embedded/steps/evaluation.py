"""The evaluation of increments: those of few rows by NumPy, the others by Polars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Final

import polars as pl

from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.terms import TRUE
from tidegate.analysis.inner_queries import owner_of
from tidegate.runtime.engines.embedded.steps.aside_rows import AsideRows, UnsettledQueries
from tidegate.runtime.engines.embedded.steps.segment_reader import SegmentReader
from tidegate.runtime.engines.many_pairs import ManyPairs
from tidegate.runtime.eval.increment import Ready, common_parts, increment, leaf_rows, no_rows, read_leaf
from tidegate.runtime.eval.job import Job
from tidegate.runtime.eval.joins.indexed_rows import Deciding, IndexedRows, wanted_frame, wanted_rows
from tidegate.runtime.eval.joins.key_index import LookUpKeys
from tidegate.runtime.eval.joins.look_ups import LookUp, look_ups
from tidegate.runtime.eval.lenient import SetAside, lenient_increment
from tidegate.runtime.eval.small.increment import small_increment, small_leaf
from tidegate.runtime.plan.shared_parts import Demand
from tidegate.runtime.plan.steps import QueryPlan
from tidegate.runtime.rows import Rows, SmallRows, Unsupported, are_few, as_frame, series

#: An increment over fewer rows reads them all.
LOOKED_UP: Final = 4_096
#: So does one for which no leaf that is required has at most one row in so many. A twentieth of a million rows takes as
#: long to look up as to join with all of them, an eighth 1.4 times as long.
SHARE: Final = 16


@dataclass(frozen=True, slots=True)
class JobEvaluation:
    """The new rows of queries, and the rows that their leaves read; rows without a value go to `aside`."""

    segments: SegmentReader
    statics: Mapping[str, pl.DataFrame]
    aside: AsideRows | UnsettledQueries
    many_pairs: ManyPairs = field(default_factory=ManyPairs)

    def rows(self, jobs: Sequence[Job]) -> list[Rows]:
        """The rows of each increment: of few rows by NumPy, else by Polars."""
        demands = [Demand.of(job.query, job.old, job.new) for job in jobs]
        read: dict[object, SmallRows] = {}
        shared: dict[object, SmallRows] = {}
        results: dict[int, Rows] = {}
        alike: dict[tuple[int, object], list[int]] = {}
        for k, (demand, job) in enumerate(zip(demands, jobs, strict=True)):
            first = self._first_leaf(job)
            if first is not None:
                alike.setdefault((first, _looking_up(demand, job, first)), []).append(k)
            elif (rows := self._small_rows(demand, job, read, shared)) is not None:
                results[k] = rows
        for (first, _), some in alike.items():
            looked_up = self._looked_up([jobs[k] for k in some], [demands[k] for k in some], first)
            results.update(zip(some, looked_up, strict=True))
        others = [k for k in range(len(jobs)) if k not in results]
        by_polars = self._by_polars([jobs[k] for k in others], [demands[k] for k in others])
        return [results[k] if k in results else by_polars[others.index(k)] for k in range(len(jobs))]

    def leaves(self, job: Job) -> Mapping[int, Rows]:
        """The rows that a query reads, by leaf."""
        demand = Demand.of(job.query, job.old, job.new)
        try:
            read: dict[object, SmallRows] = {}
            return {k: self._small_leaf(demand, job, k, read) for k in range(len(job.query.leaves))}
        except Unsupported:
            return self._read_leaves(demand, job, {})

    def increment(self, job: Job, leaves: Mapping[int, pl.DataFrame], ready: Ready) -> pl.DataFrame:
        """The rows of an increment by Polars; what fails is set aside, or says which query's it is."""
        merged = job.query.groups_once and len(job.inputs[0]) == 1
        try:
            return increment(
                job.query, leaves, job.old, job.new, ready, merged=merged, announce=self.many_pairs.announce
            )
        except EvaluationError as error:
            if not job.lenient:
                raise of_query(error, job) from error.__cause__
        rows, aside = _leniently(job, leaves)
        self.aside.add(job.query.name, job.query.name, aside)
        return rows

    def completed(self, job: Job, rows: Rows) -> Rows:
        """The result's new rows of those that its ordered operator has completed."""
        if isinstance(rows, SmallRows):
            with suppress(Unsupported):
                return small_increment(Demand.of(job.query, job.old, job.new), {0: rows}, job.old, job.new, {})
        return self.increment(job, {0: as_frame(rows)}, {})

    def set_aside(self, job: Job) -> list[SetAside]:
        """What an increment sets aside."""
        return _leniently(job, self._read_leaves(Demand.of(job.query, job.old, job.new), job, {}))[1]

    def _small_rows(
        self, demand: Demand, job: Job, read: dict[object, SmallRows], shared: dict[object, SmallRows]
    ) -> SmallRows | None:
        """The rows of an increment by NumPy; None where they are for Polars."""
        if not are_few(job.rows):
            return None
        try:
            leaves = {k: self._small_leaf(demand, job, k, read) for k in range(len(job.query.leaves))}
            return small_increment(demand, leaves, job.old, job.new, shared)
        except Unsupported:
            return None

    def _first_leaf(self, job: Job) -> int | None:
        """The leaf of few rows that is read first, so that those of the others are looked up by its keys.

        None where that does not pay: where there are few rows in all, or some have to be read from files anyhow.
        """
        query = job.query
        if not query.required or job.rows < LOOKED_UP:
            return None
        sizes = [sum(segment.rows for segment in segments) for segments in job.inputs]
        first = min(query.required, key=sizes.__getitem__)
        if sizes[first] * SHARE > job.rows or not all(map(self.segments.in_memory, job.inputs)):
            return None
        return first

    def _looked_up(self, jobs: Sequence[Job], demands: Sequence[Demand], first: int) -> list[Rows]:
        """The rows of increments that read the same rows, which are looked up once; so are parts that they share."""
        results: dict[int, Rows] = {}
        shared: dict[object, SmallRows] = {}
        others = self._indexed(jobs[0], first)
        with suppress(Unsupported):
            small = self._small_by_keys(demands[0], jobs[0], first, others)
            for k, (demand, job) in enumerate(zip(demands, jobs, strict=True)):
                with suppress(Unsupported):
                    results[k] = small_increment(demand, small, job.old, job.new, shared)
        left = [k for k in range(len(jobs)) if k not in results]
        if left:
            leaves = self._by_keys(demands[0], jobs[0], first, others)
            of = [jobs[k] for k in left], [demands[k] for k in left], [leaves for _ in left]
            results.update(zip(left, self._with_common_parts(*of), strict=True))
        return [results[k] for k in range(len(jobs))]

    def _indexed(self, job: Job, first: int) -> dict[int, list[IndexedRows]]:
        """The segments of the leaves whose rows are looked up for those of the first leaf, with their indexes."""
        query, by_leaf = job.query, dict[int, list[IndexedRows]]()
        times = {leaf: look_up.column for leaf, look_up in _limits(query, first).items()}
        for k, (leaf, segments) in enumerate(zip(query.leaves, job.inputs, strict=True)):
            if k != first and leaf.buffer is not None:
                by_leaf[k] = self.segments.indexed(segments, _key(query, k), times.get(k))
        return by_leaf

    def _small_by_keys(
        self, demand: Demand, job: Job, first: int, others: Mapping[int, list[IndexedRows]]
    ) -> dict[int, SmallRows]:
        """The rows by leaf, of others than the `first` those that it can meet; `Unsupported` where they are many."""
        query, segments = job.query, job.inputs[first]
        leaf, relevant = query.leaves[first], demand.relevant[first]
        if leaf.buffer is None or relevant is None or len(others) + 1 < len(query.leaves):
            raise Unsupported
        if are_few(sum(segment.rows for segment in segments)):
            rows = small_leaf(leaf, self.segments.read_small(leaf.buffer, segments), relevant)
        else:
            rows = SmallRows.of(leaf_rows(leaf, self.segments.frame(leaf.buffer, segments), relevant))
        by_leaf = {first: rows}
        keys = series("", rows.columns[_key(query, first)])
        limits = _limits(query, first)
        for k, indexed in others.items():
            leaf, relevant, look_up = query.leaves[k], demand.relevant[k], limits.get(k)
            assert leaf.buffer is not None
            assert relevant is not None
            wanted, stored = LookUpKeys.of(keys, look_up, rows.columns.__getitem__), leaf.buffer.stored
            if (deciding := _deciding(look_up, rows)) is not None:
                by_leaf[k] = wanted_rows(indexed, wanted, deciding, stored, leaf.columns or stored.names)
            else:
                by_leaf[k] = small_leaf(leaf, wanted_rows(indexed, wanted, None, stored, stored.names), relevant)
        return by_leaf

    def _by_keys(
        self, demand: Demand, job: Job, first: int, others: Mapping[int, list[IndexedRows]]
    ) -> dict[int, pl.DataFrame]:
        """The same as frames, however many they are."""
        query, first_leaf = job.query, job.query.leaves[first]
        assert first_leaf.buffer is not None
        frame = self.segments.frame(first_leaf.buffer, job.inputs[first])
        rows = read_leaf(first_leaf, frame, demand.relevant[first], self.statics)
        by_leaf, limits = {first: rows}, _limits(query, first)
        for k, leaf in enumerate(query.leaves):
            if k == first:
                continue
            looked_up, relevant = None, demand.relevant[k]
            if leaf.buffer is not None:
                wanted, deciding = _wanted(rows, _key(query, first), limits.get(k))
                looked_up = pl.concat([no_rows(leaf.buffer), *wanted_frame(others[k], wanted, deciding)])
                relevant = relevant if deciding is None else TRUE
            by_leaf[k] = read_leaf(leaf, looked_up, relevant, self.statics)
        return by_leaf

    def _small_leaf(self, demand: Demand, job: Job, k: int, read: dict[object, SmallRows]) -> SmallRows:
        leaf, segments, relevant = job.query.leaves[k], job.inputs[k], demand.relevant[k]
        if leaf.buffer is None or relevant is None:
            raise Unsupported
        key = leaf.buffer.id, leaf.columns, relevant, tuple(segment.path for segment in segments)
        if key not in read:
            read[key] = small_leaf(leaf, self.segments.read_small(leaf.buffer, segments), relevant)
        return read[key]

    def _by_polars(self, jobs: Sequence[Job], demands: Sequence[Demand]) -> list[pl.DataFrame]:
        if not jobs:
            return []
        known: dict[object, pl.DataFrame] = {}
        read = [self._read_leaves(demand, job, known) for demand, job in zip(demands, jobs, strict=True)]
        return self._with_common_parts(jobs, demands, read)

    def _with_common_parts(
        self, jobs: Sequence[Job], demands: Sequence[Demand], read: Sequence[Mapping[int, pl.DataFrame]]
    ) -> list[pl.DataFrame]:
        ready = common_parts(demands, read, self.many_pairs.announce)
        return [self.increment(job, leaves, parts) for job, leaves, parts in zip(jobs, read, ready, strict=True)]

    def _read_leaves(self, demand: Demand, job: Job, known: dict[object, pl.DataFrame]) -> dict[int, pl.DataFrame]:
        """Rows by leaf; what another leaf has read alike is `known`."""
        leaves = {}
        for index, key in enumerate(_reading(demand, job)):
            leaf = job.query.leaves[index]
            if key not in known:
                frame = None if leaf.buffer is None else self.segments.frame(leaf.buffer, job.inputs[index])
                known[key] = read_leaf(leaf, frame, demand.relevant[index], self.statics)
            leaves[index] = known[key]
        return leaves


def _leniently(job: Job, leaves: Mapping[int, pl.DataFrame]) -> tuple[pl.DataFrame, list[SetAside]]:
    """The rows of an increment and what is set aside; what fails all the same says which query's it is."""
    try:
        return lenient_increment(job.query, leaves, job.old, job.new)
    except EvaluationError as error:
        raise of_query(error, job) from error.__cause__


def _reading(demand: Demand, job: Job) -> Iterator[object]:
    """What an increment reads, leaf by leaf."""
    for leaf, segments, relevant in zip(job.query.leaves, job.inputs, demand.relevant, strict=True):
        source = leaf.static if leaf.buffer is None else leaf.buffer.id
        yield source, leaf.columns, relevant, tuple(segment.path for segment in segments)


def _looking_up(demand: Demand, job: Job, first: int) -> object:
    """What an increment reads, and which rows of it, where those of its first leaf say so."""
    return job.query.shard_key, look_ups(job.query.tree, first), *_reading(demand, job)


def _key(query: QueryPlan, leaf: int) -> str:
    """The column of a leaf's keys, which each leaf of stored rows has that is looked up."""
    assert query.shard_key is not None
    key = query.shard_key[leaf]
    assert key is not None
    return key


def _limits(query: QueryPlan, first: int) -> dict[int, LookUp]:
    """What the joins of a query say of the other leaves, by leaf."""
    return {look_up.leaf: look_up for look_up in look_ups(query.tree, first)}


def _wanted(rows: pl.DataFrame, key: str, look_up: LookUp | None) -> tuple[LookUpKeys, Deciding | None]:
    """What rows of the first leaf want of another. Those without an instant that limits their partners have none."""
    if look_up is not None and look_up.column is not None:
        rows = rows.drop_nulls({bound.column for bound in (*look_up.lower, *look_up.upper)})
    wanted = LookUpKeys.of(rows.get_column(key), look_up, lambda name: rows.get_column(name).to_numpy())
    return wanted, _deciding(look_up, rows)


def _deciding(look_up: LookUp | None, left: Rows) -> Deciding | None:
    """The join that needs one of the rows that are looked up, if it is such a one.

    These are not filtered by what is relevant: which of its partners a left row has makes no difference.
    """
    return None if look_up is None or look_up.decider is None else Deciding.of(look_up.decider, left)


def of_query(error: EvaluationError, job: Job) -> EvaluationError:
    """The error, with its frames, saying which query it is of: to be raised from its cause, since two that say the same
    are read twice.
    """
    problems = tuple(replace(problem, query=owner_of(job.query.name)) for problem in error.problems)
    return EvaluationError(error.code, error.message, problems=problems).with_traceback(error.__traceback__)
