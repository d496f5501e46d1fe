"""The operator that finds the matches of a row pattern, increment by increment, in the rows that may still matter."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.nodes import Row
from tidegate.algebra.ordered.sequences.certain import certain_at, instants_of, next_instant
from tidegate.algebra.ordered.sequences.meaning import reported, unmatched_row
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.partition import Partition
from tidegate.algebra.schema import Schema
from tidegate.algebra.semantics import aggregated
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.ordered.sequences import ROWS
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.columns import polars_schema, polars_type
from tidegate.runtime.ordered.family import Family, Tables
from tidegate.runtime.ordered.new_events import order_of
from tidegate.runtime.ordered.partition_store import EVER, NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows, RowOperator, row_table
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame

#: Of a kept row: whether it is the first of its partition; the place, among the kept ones, of the first row at which a
#: match may begin that is not known yet; and how many matches began before that.
BEGINS: Final = "begins"
START: Final = "start"
NUMBER: Final = "number"
_STANDING: Final = {BEGINS: pl.Boolean(), START: pl.Int64(), NUMBER: pl.Int64()}


@dataclass(frozen=True, slots=True)
class Standing:
    """How far the search has come in the kept rows of a partition."""

    begins: bool = True
    start: int = 0
    number: int = 0


@dataclass(frozen=True, slots=True)
class SequencesOperator(RowOperator[KeptRows]):
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
        partitions = state.touched([numbers], ticks(until))
        before = state.extract(partitions)
        new = rows[order_of(self.node.readings[0], rows)]
        of = state.places(partitions, state.partitions.assign(new))
        gathered = _gathered(self.node, before, new, of, len(partitions))
        keys = state.partitions.rows(partitions).rows() if self.node.keys else [()] * len(partitions)
        results: list[Row] = []
        kept: list[tuple[int, Row, Standing]] = []
        looks = np.full(len(partitions), NO_LOOK)
        for place, (standing, old, added) in enumerate(gathered):
            found = _Increment(self.node, keys[place], standing, old, added, after, until)
            results += found.results()
            left, remaining = found.left()
            kept += [(place, row, left) for row in remaining]
            looks[place] = found.look()
        after_it = KeptExtract(partitions, _as_frame(self.node, kept), looks)
        result = pl.DataFrame(results, schema=polars_schema(self.node.schema), orient="row")
        return replace(self, made=(before, after_it)), result

    def described(self) -> dict[str, StateTable]:
        return {ROWS: row_table(self.held.partitions.schema, self.held.columns)}

    def counts(self) -> dict[str, int]:
        return {ROWS: self.settled().rows.height}


class SequencesFamily(Family[Sequences]):
    node = Sequences

    def start(self, ordered: OrderedStep) -> SequencesOperator:
        assert isinstance(ordered.node, Sequences)
        node = ordered.node
        keys = Schema(tuple(node.input.schema[key] for key in node.keys))
        return SequencesOperator(ordered, KeptRows(keys, ROWS, columns_of(node)))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> SequencesOperator:
        fresh = self.start(ordered)
        state = fresh.held
        if ROWS in tables:
            stored = tables[ROWS]
            numbers = pl.Series(PARTITION, state.partitions.of_kept(stored), pl.Int64)
            rows = stored.select(numbers, *state.columns).sort(PARTITION, maintain_order=True)
            partitions = state.all_partitions()
            extract = KeptExtract(partitions, rows, np.full(len(partitions), NO_LOOK))
            none = np.empty(0, dtype=np.int32)
            looks = [
                _Increment(fresh.node, (), standing, old, added, reached, reached).look()
                for standing, old, added in _gathered(fresh.node, extract, rows.clear(), none, len(partitions))
            ]
            state.put(replace(extract, look=np.array(looks, dtype=np.int64)))
        return fresh


class _Increment:
    """The kept and the new rows of one partition, in order, and what becomes certain with them."""

    def __init__(
        self,
        node: Sequences,
        key: Row,
        standing: Standing,
        old: Sequence[Row],
        new: Sequence[Row],
        after: Extended,
        until: Extended,
    ) -> None:
        self.node, self.key, self.standing, self.until = node, key, standing, until
        self.partition = _partition(node, standing, [*old, *new])
        self.certain = certain_at(self.partition, until)
        known = certain_at(_partition(node, standing, old), after)
        self._known = {match.matched or match.start for match in known.matches}, set(known.unmatched)

    def results(self) -> list[Row]:
        """The rows of the result that are certain since the last increment."""
        matches, unmatched = self._known
        new = [match for match in self.certain.matches if (match.matched or match.start) not in matches]
        alone = [at for at in self.certain.unmatched if at not in unmatched]
        instants = instants_of(self.partition, new, alone)
        rows = [row for match in new for row in reported(self.partition, self.key, match, instants.matches[match])]
        return [*rows, *(unmatched_row(self.partition, at, instants.unmatched[at]) for at in alone)]

    def left(self) -> tuple[Standing, Sequence[Row]]:
        """The rows that may still matter, and how far the search has come in them."""
        needed, rows = self.certain.needed, self.partition.rows
        standing = Standing(self.standing.begins and not needed, self.certain.start - needed, self.certain.number)
        return standing, rows[needed:]

    def look(self) -> int:
        """When something may be certain although no row comes."""
        if self.until == INF:
            return NO_LOOK
        instant = next_instant(self.partition, int(self.until)) if self.until != -INF else None
        return EVER if instant is None else instant


def columns_of(node: Sequences) -> dict[str, pl.DataType]:
    """The columns of kept rows, beside the keys of their partitions."""
    attributes = {_attribute(a.name): polars_type(a.type) for a in node.input.schema.attributes}
    return {**attributes, **_STANDING}


def _attribute(name: str) -> str:
    return f"row {name}"


def _partition(node: Sequences, standing: Standing, rows: Sequence[Row]) -> Partition:
    return Partition(node, rows, aggregated, begins=standing.begins, start=standing.start, number=standing.number)


def _gathered(
    node: Sequences, before: KeptExtract, new: pl.DataFrame, of: Int64Array, partitions: int
) -> list[tuple[Standing, list[Row], list[Row]]]:
    """Of each partition how far the search has come, its kept rows and its new ones."""
    width = len(node.input.schema)
    gathered: list[tuple[Standing, list[Row], list[Row]]] = [(Standing(), [], []) for _ in range(partitions)]
    for place, *row in before.rows.iter_rows():
        _, old, added = gathered[place]
        old.append(tuple(row[:width]))
        gathered[place] = (Standing(*row[width:]), old, added)
    for place, row in zip(of, new.select(node.input.schema.names).iter_rows(), strict=True):
        gathered[place][2].append(row)
    return gathered


def _as_frame(node: Sequences, kept: Sequence[tuple[int, Row, Standing]]) -> pl.DataFrame:
    rows = [(place, *row, standing.begins, standing.start, standing.number) for place, row, standing in kept]
    return pl.DataFrame(rows, schema={PARTITION: pl.Int64(), **columns_of(node)}, orient="row")
