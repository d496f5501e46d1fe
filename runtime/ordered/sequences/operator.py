"""The operator that finds the matches of a row pattern, increment by increment, in the rows that may still matter."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.nodes import Row
from tidegate.algebra.ordered.sequences.certain import Certainty
from tidegate.algebra.ordered.sequences.certainty.chain import Certain, Standing
from tidegate.algebra.ordered.sequences.certainty.prepared import Prepared
from tidegate.algebra.ordered.sequences.definition import EveryMatch
from tidegate.algebra.ordered.sequences.navigation import reach_of
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.partition import Partition
from tidegate.algebra.ordered.sequences.pattern import Anchor, patterns_of
from tidegate.algebra.ordered.sequences.per_start.excess import excess_in, first_open, too_many
from tidegate.algebra.ordered.sequences.result import reported, unmatched_row
from tidegate.algebra.schema import Schema
from tidegate.algebra.semantics import aggregated
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.sequences.bounds import ROWS
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.ordered.family import Family, Tables
from tidegate.runtime.ordered.new_events import order_of, order_without_sort, require_order
from tidegate.runtime.ordered.partition_store import EVER, NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows, KeptRowsOperator, marked
from tidegate.runtime.ordered.sequences.arrays import arrays_of
from tidegate.runtime.ordered.sequences.compiled import CompiledSearch
from tidegate.runtime.ordered.sequences.kept import (
    ADDED,
    STANDING,
    SearchedExtract,
    SearchedRows,
    by_attribute,
    columns_of,
)
from tidegate.runtime.ordered.sequences.open_searches import those_of
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class SequencesOperator(KeptRowsOperator):
    """The matches of a row pattern: `held` are the rows that may be part of a match to come, or decide one; `made` is
    what the last increment has made of some, before and after, which counts once it is settled.
    """

    ordered: OrderedStep
    held: KeptRows
    made: tuple[KeptExtract, KeptExtract] | None = None

    @property
    def node(self) -> Sequences:
        assert isinstance(self.ordered.node, Sequences)
        return self.ordered.node

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[SequencesOperator, pl.DataFrame]:
        rows, state = as_frame(events[0]), self.settled()
        state.ready()
        numbers = state.partitions.assign(rows)
        partitions = state.touched([numbers], ticks(until), [as_frame(keys) for keys in events[1:]])
        compiled, added, found = compiled_search(self.node), None, None
        if compiled is not None and not state.followed.any():
            assert isinstance(state, SearchedRows)
            gone_on = compiled.open.gone_on(state, partitions, rows, numbers, ticks(after), ticks(until))
            added, found = gone_on or (None, None)
        if added is not None:
            rows, numbers = those_of(added.partitions, rows, numbers, len(state.partitions), others=True)
            partitions = partitions[~np.isin(partitions, added.partitions, assume_unique=True)]
        before = state.extract(partitions)
        if added is not None and not len(partitions):
            nothing = SearchedExtract(partitions, before.rows, before.look, added=added)
            none = pl.DataFrame(schema=polars_schema(self.node.schema))
            return replace(self, made=(before, nothing)), none if found is None else found
        of, keys = state.places(partitions, numbers).astype(np.int64), state.partitions.rows(partitions)
        left: KeptExtract
        if compiled is None:
            left, result = search_of(self.node).increment(before, rows, of, after, until, keys)
        else:
            order = order_without_sort(self.node.readings[0], rows)
            bounds = ticks(after), ticks(until)
            searched, result = compiled.increment(before, rows, of, order, *bounds, keys)
            left = replace(searched, added=added)
        result = result if found is None else pl.concat([result, found])
        return replace(self, made=(before, left)), result

    def changes(self) -> dict[str, pa.Table] | None:
        changed = KeptRowsOperator.changes(self)
        after = None if self.made is None else self.made[1]
        if changed is None or not isinstance(after, SearchedExtract) or after.added is None:
            return changed
        added, name = after.added, self.held.table
        rows = added.rows.with_columns(pl.lit(ADDED, pl.Int64).alias("begin"))
        stored = self.held.as_stored(KeptExtract(added.partitions, rows, added.look), rows)
        return {name: pa.concat_tables([changed[name], marked(stored, none=False).to_arrow()])}

    def described(self) -> dict[str, StateTable]:
        described = KeptRowsOperator.described(self)
        return {name: replace(table, adds=pl.col("begin").eq_missing(ADDED)) for name, table in described.items()}


class SequencesFamily(Family[Sequences]):
    node = Sequences

    def start(self, ordered: OrderedStep) -> SequencesOperator:
        assert isinstance(ordered.node, Sequences)
        node = ordered.node
        keys = Schema(tuple(node.input.schema[key] for key in node.keys))
        compiled = compiled_search(node)
        width, nodes = (0, ()) if compiled is None else (compiled.calls.width, compiled.calls.node_widths)
        return SequencesOperator(ordered, SearchedRows(keys, ROWS, columns_of(node), width, nodes))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> SequencesOperator:
        fresh = self.start(ordered)
        state = fresh.held
        if (stored := state.stored_in(tables)) is not None:
            # Rows that were added say nothing, and of those before them some may have gone.
            said = [pl.col(name).first().over(PARTITION) for name in STANDING]
            stored = replace(stored, rows=stored.rows.with_columns(said))
            none = by_attribute(fresh.node, stored.rows.clear())
            compiled = compiled_search(fresh.node)
            search = search_of(fresh.node) if compiled is None else compiled
            state.put(search.again(stored, none, reached))
        return fresh


@dataclass(slots=True)
class _Kept:
    """The rows of a partition in order, and how far the search has come in them."""

    rows: list[Row]
    standing: Standing


class _Search:
    """The search for the matches of a node, partition by partition, and for when they are certain."""

    def __init__(self, node: Sequences) -> None:
        self.node, self.prepared = node, Prepared(node)
        self.certainty = Certainty(self.prepared)
        self.back = reach_of(node.navigations)[0]
        starts = any(isinstance(part, Anchor) and part.at == "start" for part in patterns_of(node.pattern))
        self.marks = self.prepared.numbers or starts

    def increment(
        self,
        before: KeptExtract,
        new: pl.DataFrame,
        of: Int64Array,
        after: Extended,
        until: Extended,
        keys: pl.DataFrame,
    ) -> tuple[KeptExtract, pl.DataFrame]:
        """What is kept of the partitions of an increment after it, and its results. `of` has the partition of each new
        row. `EvaluationError` TG304 for rows of which nothing says which comes first, TG307 for one that begins more
        matches than it may.
        """
        (reading,) = self.node.readings
        order = order_of(reading, new)
        require_order(reading, new, of, order, len(before.partitions))
        partitions = gathered(self.node, before, new[order], of[order])
        results: list[Row] = []
        kept: list[_Kept] = []
        of_keys = list(zip(keys.rows() if self.node.keys else [()] * len(partitions), partitions, strict=True))
        self.check(of_keys, _instant(after))
        for key, known in of_keys:
            standing, found = self.found(key, known, _instant(after), _instant(until))
            results += found
            kept.append(self.needed(known.rows, _instant(until), standing))
        left = KeptExtract(before.partitions, as_kept(self.node, kept), self.looks(kept, until))
        return left, pl.DataFrame(results, schema=polars_schema(self.node.schema), orient="row")

    def again(self, stored: KeptExtract, none: pl.DataFrame, until: Extended) -> KeptExtract:
        """What is kept of partitions that have these rows, or some that are not needed any more before them; `none` are
        no new rows.
        """
        reached = _instant(until)
        kept = gathered(self.node, stored, none, np.empty(0, dtype=np.int64))
        selection = self.node.selection
        if self.node.per_start is None and (isinstance(selection, EveryMatch) or selection.skip.to == "next row"):
            kept = [self.needed(one.rows, reached, self._standing(one, reached)) for one in kept]
        return replace(stored, rows=as_kept(self.node, kept), look=self.looks(kept, until))

    def _standing(self, kept: _Kept, until: int | None) -> Standing:
        return self.certainty.at(Partition(self.node, kept.rows, aggregated), until, kept.standing).standing

    def check(self, partitions: Iterable[tuple[Row, _Kept]], after: int | None) -> None:
        """`EvaluationError` TG307 where new rows are those with which a row begins more matches than it may."""
        if self.node.per_start is None:
            return
        found = (
            excess_in(Partition(self.node, known.rows, aggregated), key, known.standing.begin, after)
            for key, known in partitions
        )
        if excesses := [excess for excess in found if excess is not None]:
            raise too_many(self.node, excesses)

    def found(self, key: Row, known: _Kept, after: int | None, until: int | None) -> tuple[Standing, list[Row]]:
        """How far the search comes with these rows, and the rows of the result."""
        partition = Partition(self.node, known.rows, aggregated)
        detected = self.certainty.between(partition, after, until, known.standing)
        rows = [row for match, at in detected.matches for row in reported(partition, key, match, at)]
        if self.node.reported.unmatched:
            rows += [unmatched_row(partition, at, instant) for at, instant in detected.unmatched]
        standing = detected.standing
        if self.node.per_start is not None and until is not None:
            # Beginnings count for as long as limits can be kept, whatever else is known of what may go on with them.
            begin = first_open(partition, known.standing.begin, until)
            standing = replace(standing, begin=min(standing.begin, begin))
        return standing, rows

    def needed(self, rows: Sequence[Row], until: int | None, standing: Standing) -> _Kept:
        """The rows that may be part of a match to come, that decide one, or that say of a partition where it stands."""
        if until is None:
            return _Kept([], standing)
        times, count = Partition(self.node, rows, aggregated).times, len(rows)
        first = standing.begin
        if self.prepared.leading:
            since = (times[standing.begin] if standing.begin < count else until + 1) - self.prepared.leading
            first = min(first, next((at for at, time in enumerate(times) if time >= since), count))
        first = max(first - self.back, 0)
        if self.marks:
            first = min(first, max(count - 1, 0))
        return _Kept(list(rows[first:]), standing.without(first))

    def looks(self, kept: Sequence[_Kept], until: Extended) -> Int64Array:
        """When each partition has to be looked at although no row comes."""
        return np.array([self._look(one, until) for one in kept], dtype=np.int64)

    def _look(self, kept: _Kept, until: Extended) -> int:
        """The least instant after `until` at which more is decided although no row comes; what only the end of the
        input decides is looked at then. Where nothing waits, when the first row can no longer be one that must not come
        before a match.
        """
        idle, leading = kept.standing.begin >= len(kept.rows), self.prepared.leading or 0
        if not isinstance(until, int) or not kept.rows or (idle and not leading):
            return NO_LOOK
        partition = Partition(self.node, kept.rows, aggregated)
        if idle:
            return next((time + leading for time in partition.times if time > until - leading), NO_LOOK)
        low, high = until, partition.times[-1] + self.prepared.span
        now = self._decided(partition, until, kept.standing)
        if high <= low or self._decided(partition, high, kept.standing) == now:
            return EVER
        while high - low > 1:
            middle = (low + high) // 2
            if self._decided(partition, middle, kept.standing) == now:
                low = middle
            else:
                high = middle
        return high

    def _decided(self, partition: Partition, until: int, standing: Standing) -> tuple[Certain, int | None]:
        """What is certain at an instant; with a limit per start also from which row on beginnings are open."""
        certain = self.certainty.at(partition, until, standing)
        return certain, None if self.node.per_start is None else first_open(partition, standing.begin, until)


@lru_cache(maxsize=256)
def search_of(node: Sequences) -> _Search:
    """The search of a node."""
    return _Search(node)


@lru_cache(maxsize=256)
def compiled_search(node: Sequences) -> CompiledSearch | None:
    """The search of a node by kernels; None where they can not search for its matches."""
    arrays = arrays_of(node)
    return None if arrays is None else CompiledSearch(node, arrays)


def gathered(node: Sequences, before: KeptExtract, new: pl.DataFrame, of: Int64Array) -> list[_Kept]:
    """The kept and the new rows of each partition, and how far the search has come in them."""
    width = len(node.input.schema)
    partitions = [_Kept([], Standing()) for _ in before.partitions]
    for place, *kept in before.rows.iter_rows():
        partitions[place].rows.append(tuple(kept[:width]))
        partitions[place].standing = Standing(*kept[width:])
    for place, row in zip(of, new.select(node.input.schema.names).iter_rows(), strict=True):
        partitions[place].rows.append(row)
    return partitions


def as_kept(node: Sequences, kept: Sequence[_Kept]) -> pl.DataFrame:
    """The rows as they are kept."""
    rows = [
        (place, *row, one.standing.begin, one.standing.number, one.standing.taken, one.standing.whole)
        for place, one in enumerate(kept)
        for row in one.rows
    ]
    return pl.DataFrame(rows, schema={PARTITION: pl.Int64(), **columns_of(node)}, orient="row")


def _instant(progress: Extended) -> int | None:
    return progress if isinstance(progress, int) else None
