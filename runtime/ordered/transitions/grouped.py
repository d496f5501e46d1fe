"""The operator that yields the windows in which one of several contexts holds, increment by increment."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.transitions.definition import BEGAN, CHANGE, CONTEXT, TIME
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows, HeldContexts
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.transitions import OPEN
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.ordered.family import Family, Tables
from tidegate.runtime.ordered.partition_store import NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import NONE, KeptExtract, KeptRows, KeptRowsOperator, row_table
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame

#: The columns of kept rows, beside the keys of their partitions.
COLUMNS: Final[dict[str, pl.DataType]] = {"context": pl.String(), "began": pl.Int64()}


@dataclass(frozen=True, slots=True)
class GroupedWindowsOperator(KeptRowsOperator):
    """Grouped windows as they begin and end: `held` are the contexts that hold, `made` what the last increment has made
    of some, before and after, which counts once it is settled.
    """

    ordered: OrderedStep
    held: KeptRows
    made: tuple[KeptExtract, KeptExtract] | None = None

    @property
    def node(self) -> GroupedWindows:
        assert isinstance(self.ordered.node, GroupedWindows)
        return self.ordered.node

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[GroupedWindowsOperator, pl.DataFrame]:
        node, state, rows = self.node, self.settled(), as_frame(events[0])
        state.ready()
        numbers = state.partitions.assign(rows)
        partitions = state.touched([numbers], ticks(until))
        before = state.extract(partitions)
        held = [HeldContexts() for _ in partitions]
        for place, context, began in before.rows.iter_rows():
            held[place].began[context] = began
        placed = rows.select(pl.Series(PARTITION, state.places(partitions, numbers)), TIME, CONTEXT, CHANGE, BEGAN)
        found: list[tuple[int, str, int, int]] = []
        for (place, at), together in itertools.groupby(placed.sort(PARTITION, TIME).rows(), key=lambda row: row[:2]):
            for change, began in held[place].after((row[2:] for row in together), at):
                found.append((place, change, at, began))
        left = [(place, *its) for place, one in enumerate(held) for its in sorted(one.began.items())]
        kept = pl.DataFrame(left, schema={PARTITION: pl.Int64(), **COLUMNS}, orient="row")
        made = before, KeptExtract(partitions, kept, np.full(len(partitions), NO_LOOK))
        its_keys = state.partitions.rows(partitions[[place for place, *_ in found]]).select(node.keys)
        schema = polars_schema(node.schema)
        its = pl.DataFrame(
            [row[1:] for row in found], schema={name: schema[name] for name in (CHANGE, TIME, BEGAN)}, orient="row"
        )
        return replace(self, made=made), pl.concat([its_keys, its], how="horizontal") if node.keys else its

    def described(self) -> dict[str, StateTable]:
        possible = pl.col(NONE) | (pl.col("context").is_in(self.node.contexts) & pl.col("began").is_not_null())
        return {OPEN: row_table(self.held.partitions.schema, COLUMNS, possible)}

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        """Changes of one instant are one transaction: nothing depends on their order."""
        return list(events), []


class GroupedWindowsFamily(Family[GroupedWindows]):
    node = GroupedWindows

    def start(self, ordered: OrderedStep) -> GroupedWindowsOperator:
        assert isinstance(ordered.node, GroupedWindows)
        node = ordered.node
        keys = Schema(tuple(node.input.schema[key] for key in node.keys))
        return GroupedWindowsOperator(ordered, KeptRows(keys, OPEN, COLUMNS))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> GroupedWindowsOperator:
        fresh = self.start(ordered)
        if (stored := fresh.held.stored_in(tables)) is not None:
            fresh.held.put(stored)
        return fresh
