"""Operators that users write at work: their steps over whole shards, and their tables as state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.ordered.derive import tied
from tidegate.algebra.ordered.process import Process, Reach
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import Extended
from tidegate.algebra.types import MAX_INSTANT
from tidegate.runtime.eval.aggregates.partials import same_zero
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.eval.small.increment import Rows, as_frame
from tidegate.runtime.ordered.family import Family, Operator, Tables
from tidegate.runtime.ordered.partitions import key_columns
from tidegate.runtime.ordered.process.conforming import table_schema
from tidegate.runtime.ordered.process.meanings import has_meaning, require_meaning
from tidegate.runtime.ordered.process.partition_tables import LAST, PARTITION, PartitionTables, TablesExtract
from tidegate.runtime.ordered.process.steps import stepped
from tidegate.runtime.ordered.process.verification import verify
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.plan.steps import OrderedStep

#: Of a kept row: whether it says that its partition has none.
_NONE: Final = "~none"
_TIE: Final = "tie"


@dataclass(frozen=True, slots=True)
class ProcessOperator(Operator):
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

    def settled(self) -> PartitionTables:
        """What is held with what the last increment has made: there is no way back from then on."""
        if self.made is not None:
            self.held.settle(*self.made)
        return self.held

    def events(self, leaves: Mapping[int, Rows], old: Extended, new: Extended) -> list[Rows]:
        rows = evaluate(self.node.input, {0: as_frame(leaves[self.ordered.leaves[0]])})
        time = pl.col(self.node.time)
        within = [time > old] if isinstance(old, int) else []
        within += [time <= new] if isinstance(new, int) else []
        return [rows.filter(*within) if within else rows]

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[ProcessOperator, pl.DataFrame]:
        rows, held = as_frame(events[0]), self.settled()
        held.ready()
        reach = Reach(_instant(after), _instant(until), close_at)
        before, left, result = stepped(self.node, held, rows, reach)
        seen = self._with_seen(rows, reach)
        if self.node.verifies:
            verify(self.node, held.part(before.partitions), rows, reach, held.rows(left), result)
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

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        """Of events that are equal in all that is read one stays; of others with one partition, time and tie none."""
        node, rows = self.node, as_frame(events[0])
        order = [*node.keys, node.time, *(() if node.tie is None else (node.tie,))]
        doubles = [name for name, type_ in rows.schema.items() if type_ == pl.Float64]
        read = rows.with_columns(same_zero(pl.col(name)).alias(name) for name in doubles)
        first = read.select(pl.struct(sorted(node.readings[0].attributes)).is_first_distinct()).to_series()
        distinct = rows.filter(first)
        keep = read.filter(first).select(~pl.struct(order).is_duplicated()).to_series()
        schema = Schema(tuple(node.input.schema[name] for name in rows.columns if name in node.input.schema))
        gone = pl.concat([rows.filter(~first), distinct.filter(~keep)])
        aside = [
            SetAside(_TIE, None, row, schema, tied(row[node.time], schema[node.time].type))
            for row in gone.select(schema.names).iter_rows(named=True)
        ]
        return [distinct.filter(keep)], aside

    def noting(self, noted: list[SetAside] | None) -> ProcessOperator:
        return self

    def emptied(self) -> ProcessOperator:
        return replace(self, held=self.held.emptied(), made=None, seen=None)

    def tables(self) -> dict[str, pa.Table]:
        held = self.settled()
        rows = held.rows(held.extract(held.all_partitions()))
        return {name: _saying(own, none=False).to_arrow() for name, own in rows.items() if own.height}

    def changes(self) -> dict[str, pa.Table] | None:
        if self.made is None:
            return None
        held, (before, after) = self.settled(), self.made
        found = {}
        for name, rows in held.rows(after).items():
            emptied = after.partitions[before.has_rows(name) & ~after.has_rows(name)]
            none = _saying(held.partitions.kept(emptied), none=True)
            found[name] = pl.concat([_saying(rows, none=False), none], how="diagonal").to_arrow()
        return found

    def described(self) -> dict[str, StateTable]:
        keys = key_columns(self.held.partitions.schema)
        last, possible = {}, pl.lit(value=True)
        if self.held.kept_for is not None:
            last = {LAST: pl.Int64()}
            possible = pl.col(_NONE) | pl.col(LAST).is_between(-MAX_INSTANT, MAX_INSTANT).fill_null(value=False)
        return {
            name: StateTable(
                pl.Schema({**keys, **columns, **last, _NONE: pl.Boolean()}),
                "partition",
                len(keys),
                empty=pl.col(_NONE),
                needed=(_NONE,),
                possible=possible,
            )
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
        node, held = fresh.node, fresh.held
        partitions = {name: held.partitions.of_kept(rows).astype(np.int64) for name, rows in tables.items()}
        none = held.extract(held.all_partitions())
        kept = {
            name: tables[name].select(pl.Series(PARTITION, partitions[name]), *held.columns[name])
            if name in tables
            else rows
            for name, rows in none.tables.items()
        }
        last = none.last
        for name, rows in tables.items() if node.kept_for is not None else ():
            last[partitions[name]] = rows.get_column(LAST).to_numpy()
        held.put(held.after(none, kept, last))
        return fresh


def _saying(rows: pl.DataFrame, *, none: bool) -> pl.DataFrame:
    return rows.with_columns(pl.lit(value=none).alias(_NONE))


def _instant(progress: Extended) -> int | None:
    return progress if isinstance(progress, int) else None
