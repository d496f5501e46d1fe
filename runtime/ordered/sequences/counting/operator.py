"""The operator that counts the matches of a row pattern without listing them, increment by increment (rule R47)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tidegate.algebra.ordered.sequences.counting.counted import CountedSequences
from tidegate.algebra.ordered.sequences.definition import DETECTED, LAST
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.sequences.counted import COUNTS
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.columns import only
from tidegate.runtime.kernels.partitions.rows import segmented
from tidegate.runtime.kernels.paths.counts import count_all, count_within
from tidegate.runtime.kernels.paths.totals import total_all, total_within
from tidegate.runtime.ordered.family import Family, Tables
from tidegate.runtime.ordered.new_events import order_of, require_order
from tidegate.runtime.ordered.partition_store import EVER, NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows, KeptRowsOperator
from tidegate.runtime.ordered.sequences.counting.layout import LABELS, TIME, Layout, layout_of, whole
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class CountedSequencesOperator(KeptRowsOperator):
    """The number of matches: `held` is what is kept of each partition; `made` is what the last increment has made of
    some, before and after, which counts once it is settled.
    """

    ordered: OrderedStep
    held: KeptRows
    made: tuple[KeptExtract, KeptExtract] | None = None

    @property
    def layout(self) -> Layout:
        assert isinstance(self.ordered.node, CountedSequences)
        return layout_of(self.ordered.node)

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[CountedSequencesOperator, pl.DataFrame]:
        layout, state, reached = self.layout, self.settled(), ticks(until)
        rows = as_frame(events[0])
        state.ready()
        partitions, of = state.read_by(rows, reached, [as_frame(keys) for keys in events[1:]])
        before = state.extract(partitions)
        block = _Block.of(layout, rows, of, len(partitions))
        counted = _within if layout.counting.within is not None else _so_far
        found, kept = counted(layout, before, block, reached)
        return replace(self, made=(before, kept)), _result(layout, block, found)


class CountedSequencesFamily(Family[CountedSequences]):
    node = CountedSequences

    def start(self, ordered: OrderedStep) -> CountedSequencesOperator:
        assert isinstance(ordered.node, CountedSequences)
        of = ordered.node.sequences
        keys = Schema(tuple(of.input.schema[key] for key in of.keys))
        return CountedSequencesOperator(ordered, KeptRows(keys, COUNTS, layout_of(ordered.node).columns))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> CountedSequencesOperator:
        fresh = self.start(ordered)
        state = fresh.held
        if (stored := state.stored_in(tables)) is not None:
            state.put(replace(stored, look=_looks(fresh.layout, stored.rows, len(stored.partitions))))
        return fresh


@dataclass(frozen=True, slots=True)
class _Block:
    """The new rows of an increment: `order` has them partition by partition, in order, from `offsets[p]` on."""

    rows: pl.DataFrame
    partition: Int64Array
    time: Int64Array
    labels: Int64Array
    values: list[pl.Series]
    order: Int64Array
    offsets: Int64Array

    @classmethod
    def of(cls, layout: Layout, rows: pl.DataFrame, partition: Int64Array, partitions: int) -> _Block:
        of = layout.node.sequences
        offsets = np.concatenate([[0], np.cumsum(np.bincount(partition, minlength=partitions))])
        time = np.ascontiguousarray(rows.get_column(of.time).to_numpy())
        order = require_order(of.readings[0], rows, partition, order_of(of.readings[0], rows), partitions)
        labels = whole(rows.select(layout.labels).to_series(), rows.height).to_numpy()
        return cls(rows, partition, time, labels, layout.values_of(rows), order, offsets.astype(np.int64))


def _given(layout: Layout, values: list[pl.Series], rows: int) -> Int64Array:
    """What rows give to words."""
    columns = [column.fill_null(0).to_numpy() for column in values]
    return layout.words.values(columns, [column.is_not_null().to_numpy() for column in values], rows)


def _so_far(layout: Layout, before: KeptExtract, block: _Block, until: int) -> tuple[Int64Array, KeptExtract]:
    """What is told of the matches that end at each row, and the paths of each partition afterwards."""
    partitions, states, words = len(before.partitions), layout.counting.automaton.states, layout.words
    many, skips = len(words.words), layout.counting.skips
    elements = np.empty((partitions, states, many), dtype=np.int64)
    elements[:, :] = words.none
    known = before.rows.get_column(PARTITION).to_numpy()
    for place, name in enumerate(layout.numbers):
        elements[known, 1 + place // many, place % many] = before.rows.get_column(name).to_numpy()
    found = np.zeros((block.rows.height, many), dtype=np.int64)
    if many > 1:
        given = _given(layout, block.values, block.rows.height)
        total_all(
            block.offsets, block.time, block.labels, block.order, given, words.table, layout.steps, skips, elements,
            found,
        )  # fmt: skip
    else:
        numbers, ends = np.ascontiguousarray(elements[:, :, 0]), np.zeros(block.rows.height, dtype=np.int64)
        count_all(block.offsets, block.time, block.labels, block.order, layout.steps, skips, numbers, ends)
        elements, found = numbers[:, :, None], ends[:, None]
    held = np.flatnonzero(elements[:, 1:, 0].any(axis=1)) if until < EVER else np.empty(0, dtype=np.int64)
    columns = [
        pl.Series(name, elements[held, 1 + place // many, place % many]) for place, name in enumerate(layout.numbers)
    ]
    rows = pl.DataFrame([pl.Series(PARTITION, held), *columns])
    return found, replace(before, rows=rows, look=np.full(partitions, NO_LOOK))


def _within(layout: Layout, before: KeptExtract, block: _Block, until: int) -> tuple[Int64Array, KeptExtract]:
    """What is told of the matches that end at each row, and the rows of which matches to come may consist."""
    within, skips, partitions = layout.counting.within, layout.counting.skips, len(before.partitions)
    assert within is not None
    kept, states, words = before.rows.get_column(PARTITION).to_numpy(), layout.counting.automaton.states, layout.words
    source, offsets, first = segmented(kept, block.partition, block.order, partitions)
    time, labels = (
        np.concatenate([before.rows.get_column(name).to_numpy(), new])[source]
        for name, new in ((TIME, block.time), (LABELS, block.labels))
    )
    values = [pl.concat([before.rows.get_column(new.name), new]).gather(source) for new in block.values]
    found = np.zeros((len(source), len(words.words)), dtype=np.int64)
    if values:
        given = _given(layout, values, len(source))
        total_within(
            offsets, first, time, labels, given, words.table, layout.steps, skips, states, within, found
        )  # fmt: skip
    else:
        ends = np.zeros(len(source), dtype=np.int64)
        count_within(offsets, first, time, labels, layout.steps, skips, states, within, ends)
        found = ends[:, None]
    new = source >= len(kept)
    at_row = np.zeros((block.rows.height, found.shape[1]), dtype=np.int64)
    at_row[source[new] - len(kept)] = found[new]
    of = np.repeat(np.arange(partitions), np.diff(offsets))
    stays = np.flatnonzero((time > until - within) & ((labels != 0) | (not skips)))
    if until >= EVER:
        stays = stays[:0]
    columns = [pl.Series(TIME, time[stays]), pl.Series(LABELS, labels[stays])]
    rows = pl.DataFrame([pl.Series(PARTITION, of[stays]), *columns, *(column.gather(stays) for column in values)])
    return at_row, replace(before, rows=rows, look=_looks(layout, rows, partitions))


def _looks(layout: Layout, rows: pl.DataFrame, partitions: int) -> Int64Array:
    """When no kept row of a partition is of use any more."""
    look = np.full(partitions, NO_LOOK)
    within = layout.counting.within
    if within is not None:
        of = rows.get_column(PARTITION).to_numpy()
        latest = np.full(partitions, -EVER)
        np.maximum.at(latest, of, rows.get_column(TIME).to_numpy())
        look[of] = latest[of] + within
    return look


def _result(layout: Layout, block: _Block, found: Int64Array) -> pl.DataFrame:
    """A row for each partition and instant at which matches end. A number that is beyond its type is NULL."""
    of, node = layout.node.sequences, layout.node
    at = np.flatnonzero(found[:, 0])
    rows, told = block.rows[at], layout.words.result(found[at])
    instants = [rows.get_column(of.time).alias(name) for name in (LAST, DETECTED)]
    result = rows.select(of.keys).with_columns(*instants, *told) if of.keys else pl.DataFrame([*instants, *told])
    return only(result, node.schema.names)
