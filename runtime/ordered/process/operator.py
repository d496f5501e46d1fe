"""Operators that users write at work: their steps over whole shards, and their tables as state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tidegate.algebra.ordered.process import Process, Reach
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import Extended
from tidegate.algebra.types import MAX_INSTANT
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.ordered.family import Family, Tables
from tidegate.runtime.ordered.process.conforming import table_schema
from tidegate.runtime.ordered.process.meanings import has_meaning, require_meaning
from tidegate.runtime.ordered.process.partition_tables import LAST, PartitionTables, TablesExtract
from tidegate.runtime.ordered.process.steps import stepped
from tidegate.runtime.ordered.process.verification import verify
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import NONE, RowOperator, row_table
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class ProcessOperator(RowOperator[PartitionTables]):
    """An operator of a user's: `held` are the rows of its tables, `made` what its last increment has made of some,
    before and after, which counts once it is settled.
    """

    ordered: OrderedStep
    held: PartitionTables
    made: tuple[TablesExtract, TablesExtract] | None = None
    #: All events up to now, where the test kit compares with the meaning; None where nobody does, or not all are known.
    seen: pl.DataFrame | None = None

    @property
    def node(self) -> Process:
        assert isinstance(self.ordered.node, Process)
        return self.ordered.node

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[ProcessOperator, pl.DataFrame]:
        rows, state = as_frame(events[0]), self.settled()
        state.ready()
        reach = Reach(_instant(after), _instant(until), close_at)
        before, left, result = stepped(self.node, state, rows, reach)
        seen = self._with_seen(rows, reach)
        if self.node.verifies:
            verify(self.node, state.part(before.partitions), rows, reach, state.rows(left), result)
        if seen is not None:
            require_meaning(self.node, seen, reach, result)
        return replace(self, made=(before, left), seen=seen), result

    def _with_seen(self, rows: pl.DataFrame, reach: Reach) -> pl.DataFrame | None:
        """All events up to now, with those of this step; as far as they are asked for."""
        if not self.node.verifies or not has_meaning(self.node.operator):
            return None
        read = rows.select(sorted(self.node.readings[0].attributes))
        if self.seen is not None:
            return pl.concat([self.seen, read])
        return read if reach.after is None else None

    def emptied(self) -> ProcessOperator:
        return replace(self, held=self.held.emptied(), made=None, seen=None)

    def described(self) -> dict[str, StateTable]:
        last, possible = {}, pl.lit(value=True)
        if self.held.kept_for is not None:
            last = {LAST: pl.Int64()}
            possible = pl.col(NONE) | pl.col(LAST).is_between(-MAX_INSTANT, MAX_INSTANT).fill_null(value=False)
        return {
            name: row_table(self.held.partitions.schema, {**columns, **last}, possible)
            for name, columns in self.held.columns.items()
        }

    def counts(self) -> dict[str, int]:
        return {name: table.height for name, table in self.settled().tables.items()}


class ProcessFamily(Family[Process]):
    node = Process

    def start(self, ordered: OrderedStep) -> ProcessOperator:
        assert isinstance(ordered.node, Process)
        node = ordered.node
        keys = Schema(tuple(node.input.schema[key] for key in node.keys))
        columns = {name: polars_schema(table_schema(text)) for name, text in node.operator.tables.items()}
        return ProcessOperator(ordered, PartitionTables(keys, columns, node.operator.wakes, node.kept_for))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> ProcessOperator:
        fresh = self.start(ordered)
        node, state = fresh.node, fresh.held
        partitions = {name: state.partitions.of_kept(rows).astype(np.int64) for name, rows in tables.items()}
        none = state.extract(state.all_partitions())
        kept = {
            name: tables[name].select(pl.Series(PARTITION, partitions[name]), *state.columns[name])
            if name in tables
            else rows
            for name, rows in none.tables.items()
        }
        last = none.last
        for name, rows in tables.items() if node.kept_for is not None else ():
            last[partitions[name]] = rows.get_column(LAST).to_numpy()
        state.put(state.after(none, kept, last))
        return fresh


def _instant(progress: Extended) -> int | None:
    return progress if isinstance(progress, int) else None
