"""The operator that gives rows the row of another input nearest in time, increment by increment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.asof import LAST, WAITING
from tidegate.runtime.arrays import Int32Array
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.kernels.partitions.rows import NEVER
from tidegate.runtime.ordered.asof.candidates import Candidates, deadlines, looks, remembered_times
from tidegate.runtime.ordered.asof.few_rows import FewRightRows, with_rows_behind
from tidegate.runtime.ordered.asof.kept import KeptExtract, KeptRows, layout_of
from tidegate.runtime.ordered.family import Family, Tables
from tidegate.runtime.ordered.new_events import few_new_events, untied
from tidegate.runtime.ordered.partition_store import ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import RowOperator, row_table
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, SmallRows, Unsupported, as_frame


@dataclass(frozen=True, slots=True)
class AsOfOperator(RowOperator[KeptRows]):
    """Rows with the right row nearest in time: `held` is what later increments need, `made` what the last one has made
    of some of it, before and after, which counts once it is settled.
    """

    ordered: OrderedStep
    held: KeptRows
    made: tuple[KeptExtract, KeptExtract] | None = None

    @property
    def node(self) -> AsOf:
        assert isinstance(self.ordered.node, AsOf)
        return self.ordered.node

    def events(self, leaves: Mapping[int, Rows], old: Extended, new: Extended) -> list[Rows]:
        """New rows of both sides. A right row with a key that is NULL is no row's partner."""
        left, right = (
            few_new_events(reading, leaves[leaf], old, new)
            for reading, leaf in zip(self.node.readings, self.ordered.leaves, strict=True)
        )
        if isinstance(right, pl.DataFrame) and any(right.get_column(key).null_count() for key in self.node.right_keys):
            right = right.drop_nulls(self.node.right_keys)
        return [left, right]

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[AsOfOperator, Rows]:
        node, state, reached = self.node, self.settled(), ticks(until)
        state.ready()
        if not node.wakes and isinstance(events[1], SmallRows):
            with suppress(Unsupported):
                few = FewRightRows.of(node, state, events[1])
                rows = with_rows_behind(node, state, events[0], few)
                return replace(self, made=few.made_of(state)), rows
        left, right = map(as_frame, events)
        of_left = state.partitions.assign(left)
        named = zip(node.left_keys, node.right_keys, strict=True)
        of_right = state.partitions.assign(right.with_columns(pl.col(its).alias(key) for key, its in named))
        if 0 not in node.needed_inputs:
            left, of_left = _with_right_rows(state, left, of_left, of_right)
        partitions = state.touched([of_left, of_right], reached)
        before = state.extract(partitions)
        placed = (left, state.places(partitions, of_left)), (right, state.places(partitions, of_right))
        candidates = Candidates.of_increment(node, before, *placed, close_at)
        return replace(self, made=(before, candidates.left_over(before, reached))), candidates.result(reached)

    @property
    def is_unchanged(self) -> bool:
        return self.made is not None and not len(self.made[1].partitions)

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        """Nothing depends on the order of left rows."""
        left, right = events
        rows, aside = untied(self.node.readings[1], as_frame(right))
        return [left, rows], aside

    def described(self) -> dict[str, StateTable]:
        keys, layout = self.held.partitions.schema, self.held.layout
        columns = {LAST: layout.right, WAITING: layout.waiting}
        return {name: row_table(keys, columns[name]) for name in layout.tables}

    def counts(self) -> dict[str, int]:
        state = self.settled()
        rows = {LAST: state.last_rows, WAITING: state.waiting_rows}
        return {name: rows[name].height for name in state.layout.tables}


def _with_right_rows(
    state: KeptRows, left: pl.DataFrame, of_left: Int32Array, of_right: Int32Array
) -> tuple[pl.DataFrame, Int32Array]:
    """The left rows of partitions that have a right row, kept or new, and the numbers of their partitions."""
    has = state.holding()
    has[of_right] = True
    fits = has[of_left]
    return (left, of_left) if fits.all() else (left.filter(pl.Series(fits)), of_left[fits])


class AsOfFamily(Family[AsOf]):
    node = AsOf

    def start(self, ordered: OrderedStep) -> AsOfOperator:
        assert isinstance(ordered.node, AsOf)
        node = ordered.node
        keys = Schema(tuple(node.left.schema[key] for key in node.left_keys))
        return AsOfOperator(ordered, KeptRows(keys, layout_of(node)))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> AsOfOperator:
        fresh = self.start(ordered)
        node, state, layout = fresh.node, fresh.held, fresh.held.layout
        numbers = {name: state.partitions.of_kept(tables[name]) for name in layout.tables if name in tables}
        partitions = state.all_partitions()
        nothing = state.extract(partitions)
        rows = {LAST: nothing.last, WAITING: nothing.waiting}
        for name, of in numbers.items():
            stored = tables[name].select(pl.Series(PARTITION, of, pl.Int64), *rows[name].columns[1:])
            rows[name] = stored.sort(PARTITION, maintain_order=True)
        last, waiting = rows[LAST], rows[WAITING]
        at = waiting.get_column(layout.left_time).to_numpy()
        known = remembered_times(waiting, layout.right_time) if layout.remembers else np.full(len(at), NEVER)
        due = deadlines(node, at, known)
        state.put(KeptExtract(partitions, last, waiting, looks(node, len(partitions), last, waiting, due)))
        return fresh
