"""The operator that gives rows values of the rows around them, increment by increment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.over import FrameAggregate, Over, OverColumn, wait_of
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import attributes_of
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.over import ROWS, goes_by_time, is_best_by_range, need_of
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.lenient import OVERFLOW, SetAside
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.kernels.over import segments
from tidegate.runtime.kernels.partitions.rows import NEVER, first_tie
from tidegate.runtime.ordered.family import Family, Tables
from tidegate.runtime.ordered.new_events import order_of, require_order
from tidegate.runtime.ordered.over.block import Block
from tidegate.runtime.ordered.over.last_rows import is_of_last_rows, of_last_rows
from tidegate.runtime.ordered.over.layout import TIME, layout_of
from tidegate.runtime.ordered.over.queued.layout import queued_layout
from tidegate.runtime.ordered.over.queued.operator import QueuedOperator
from tidegate.runtime.ordered.over.values import Values, next_different
from tidegate.runtime.ordered.partition_store import EVER, NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import KeptExtract, KeptRows, KeptRowsOperator
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame

_ANY: Final = -1


@dataclass(frozen=True, slots=True)
class OverOperator(KeptRowsOperator):
    """Rows with values of the rows around them: `held` are those that later rows look at, `made` what the last
    increment has made of some, before and after, which counts once it is settled.
    """

    ordered: OrderedStep
    held: KeptRows
    made: tuple[KeptExtract, KeptExtract] | None = None
    #: Takes the rows with sums that do not fit, which are NULL then; None: they are errors.
    noted: list[SetAside] | None = None

    @property
    def node(self) -> Over:
        assert isinstance(self.ordered.node, Over)
        return self.ordered.node

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[OverOperator, pl.DataFrame]:
        rows, state, reached = as_frame(events[0]), self.settled(), ticks(until)
        state.ready()
        if is_of_last_rows(self.node) and (made := of_last_rows(self.node, state, rows)) is not None:
            first, then, result = made
            return replace(self, made=(first, then)), result
        ended = [as_frame(keys) for keys in events[1:]]
        before, places, block = self._behind(state, rows, reached, ended)
        if self.node.needs_order and (tie := first_tie(block.offsets, block.time)) >= 0:
            if self.node.merges_equal:
                rows = rows.unique(maintain_order=True)
                before, places, block = self._behind(state, rows, reached, ended)
                tie = first_tie(block.offsets, block.time)
            if tie >= 0:
                (reading,) = self.node.readings
                require_order(reading, rows, places, order_of(reading, rows), len(before.partitions))
        values = Values(layout_of(self.node), block, None if self.noted is None else [])
        block = values.block = _with_dependent(values, rows)
        complete = _complete(self.node, block, NEVER if close_at is None else close_at)
        left = _left(self.node, before, block, complete, reached)
        result = _completed(self.node, values, rows, complete, ticks(after), reached)
        if self.noted is not None:
            self.noted.extend(_without_sum(self.node, values, rows))
        kept = _without_undercut(self.node, values, left, reached).over(values)
        return replace(self, made=(before, kept)), result

    def _behind(
        self, state: KeptRows, rows: pl.DataFrame, reached: int, ended: Sequence[pl.DataFrame]
    ) -> tuple[KeptExtract, Int64Array, Block]:
        """What is kept of the partitions of a step, the places of the rows among these, and both together."""
        partitions, places = state.read_by(rows, reached, ended)
        before = state.extract(partitions)
        return before, places, _block(self.node, before, rows, places)

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        if self.node.merges_equal:
            events = [as_frame(events[0]).unique(maintain_order=True), *events[1:]]
        return super(OverOperator, self).untied(events)

    def noting(self, noted: list[SetAside] | None) -> OverOperator:
        return replace(self, noted=noted)


class OverFamily(Family[Over]):
    node = Over

    def start(self, ordered: OrderedStep) -> OverOperator | QueuedOperator:
        assert isinstance(ordered.node, Over)
        layout = None if _lets_go(ordered) else queued_layout(ordered.node)
        return self._over(ordered) if layout is None else QueuedOperator.fresh(ordered, layout)

    def _over(self, ordered: OrderedStep) -> OverOperator:
        assert isinstance(ordered.node, Over)
        node = ordered.node
        keys = Schema(tuple(node.input.schema[key] for key in node.keys))
        return OverOperator(ordered, KeptRows(keys, ROWS, layout_of(node).columns))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> OverOperator | QueuedOperator:
        fresh = self.start(ordered)
        if isinstance(fresh, QueuedOperator):
            return fresh.loaded(tables, ticks(reached))
        node, state = fresh.node, fresh.held
        if (stored := state.stored_in(tables)) is not None:
            places = stored.rows.get_column(PARTITION).to_numpy()
            block = Block.of_kept(stored.rows.drop(PARTITION), places, len(stored.partitions), TIME)
            complete = _complete(node, block, NEVER)
            left = _left(node, stored, block, complete, ticks(reached))
            state.put(replace(stored, look=left.look))
        return fresh


def _lets_go(ordered: OrderedStep) -> bool:
    """Whether rows that do not go by time alone are let go with their partitions, to which none comes any more."""
    assert isinstance(ordered.node, Over)
    return bool(ordered.growing) and not goes_by_time(ordered.node)


@dataclass(frozen=True, slots=True)
class _Left:
    """What is kept of the partitions of an increment: the rows at these places, which are in partitions `of`."""

    partitions: Int64Array
    places: Int64Array
    of: Int64Array
    look: Int64Array

    def over(self, values: Values) -> KeptExtract:
        """The rows themselves, with the values over all rows up to each."""
        layout, block = values.layout, values.block
        columns = [pl.Series(PARTITION, self.of), pl.Series(TIME, block.time[self.places])]
        columns += [block.column(layout.argument(term)).gather(self.places) for term in layout.kept_arguments]
        for running in layout.runnings:
            for name, part in values.running(running).items():
                columns.append(part.gather(self.places).alias(layout.part(running, name)))
        if layout.node.waits:
            names = map(layout.attribute, layout.node.input.schema.names)
            columns += [block.column(name).gather(self.places) for name in names]
        rows = pl.DataFrame(columns).select(PARTITION, *layout.columns)
        return KeptExtract(self.partitions, rows, self.look)


def _block(node: Over, before: KeptExtract, rows: pl.DataFrame, places: Int64Array) -> Block:
    """The rows of an increment behind those that are kept; `places` are those of the new rows' partitions."""
    layout = layout_of(node)
    schema = node.input.schema
    arguments = [term for term in layout.arguments if term not in layout.dependent]
    terms = evaluated(rows, *(compile_term(term, schema) for term in arguments)).get_columns()
    new = pl.DataFrame([rows.get_column(node.time).alias(TIME)]).hstack(
        [column.alias(layout.argument(term)) for term, column in zip(arguments, terms, strict=True)]
    )
    if node.waits:
        new = new.hstack([rows.get_column(name).alias(layout.attribute(name)) for name in schema.names])
    kept_in = before.rows.get_column(PARTITION).to_numpy()
    order = order_of(node.readings[0], rows)
    partitions = len(before.partitions)
    return Block.of(before.rows.drop(PARTITION), kept_in, new, places, order, partitions, TIME)


def _with_dependent(values: Values, rows: pl.DataFrame) -> Block:
    """The block with those arguments of its new rows that read columns. Kept rows have theirs."""
    layout, block = values.layout, values.block
    own, computed = set(layout.node.input.schema), dict[str, pl.Series]()
    # What does not fit is noted as the column itself is computed.
    before = Values(layout, block, None if values.failed is None else [], values.runs, values.frames)
    for term in layout.dependent:
        for name in sorted(attributes_of(term) - own - set(computed)):
            column = next(column for column in layout.node.columns if column.name == name)
            computed[name] = _of_new_rows(before, column)
        read = rows.with_columns(list(computed.values()))
        argument = evaluated(read, compile_term(term, layout.known)).to_series().alias(layout.argument(term))
        block = before.block = replace(block, new=block.new.with_columns(argument))
    return block


def _of_new_rows(values: Values, column: OverColumn) -> pl.Series:
    """The values of a column for the new rows, in the order in which these are given."""
    block = values.block
    ordered = np.flatnonzero(block.source >= block.kept.height)
    # By place, as kernels need it; then back to where the rows stand in the frame.
    rank = np.empty(block.height, dtype=np.int64)
    rank[ordered] = np.arange(len(ordered))
    return values.of(column, ordered).gather(rank[block.new_places])


def _complete(node: Over, block: Block, end: int) -> Int64Array:
    """When each row is complete; `end` where nobody knows yet."""
    complete = block.time
    for wait in filter(None, map(wait_of, node.columns)):
        within = _ANY if wait.ticks is None else wait.ticks
        if wait.rows is not None:
            places = segments.neighbours(block.offsets, block.time, wait.rows, _ANY)
        elif wait.different is not None:
            places = next_different(layout_of(node), block, wait.different)
        else:
            places = np.full(block.height, -1)
        completed = segments.completed_at(block.time, places, within, end)
        complete = np.maximum(complete, completed)
    return complete


def _left(node: Over, before: KeptExtract, block: Block, complete: Int64Array, reached: int) -> _Left:
    """What later rows need of the partitions."""
    starts, look, places = _needed(node, block.offsets, block.time, complete, reached)
    of = np.repeat(np.arange(len(before.partitions)), block.offsets[1:] - starts)
    if node.waits:  # of which nobody knows until when, they are looked at when there are no more rows
        look = np.where(starts < block.offsets[1:], np.minimum(look, EVER), NO_LOOK)
    return _Left(before.partitions, places, of, look)


def _needed(
    node: Over, offsets: Int64Array, time: Int64Array, complete: Int64Array, reached: int
) -> tuple[Int64Array, Int64Array, Int64Array]:
    """Of which rows on later ones need those of each partition, when that is to be looked at, and the places."""
    needs = [need_of(column) for column in node.columns]
    rows = np.array([_ANY if need.rows is None else need.rows for need in needs], dtype=np.int64)
    spans = np.array([_ANY if need.ticks is None else need.ticks for need in needs], dtype=np.int64)
    starts, look, places = segments.kept_rows(offsets, time, complete, reached, rows, spans)
    return starts, look, places


def _without_undercut(node: Over, values: Values, left: _Left, reached: int) -> _Left:
    """Without the rows that no frame to come yields, as a later one is less, or greater, where nothing else is asked
    of frames that reach back. The last rows of each partition are left to other columns.
    """
    spans = [column for column in node.columns if need_of(column).ticks is not None]
    best = [column.aggregate for column in spans if isinstance(column, FrameAggregate) and is_best_by_range(column)]
    if node.waits or not spans or len(best) < len(spans):
        return left
    partitions = np.arange(len(left.partitions) + 1)
    offsets = np.searchsorted(left.of, partitions)
    last = max((need.rows or 0 for need in map(need_of, node.columns) if need.ticks is None), default=0)
    undercut = np.arange(len(left.of)) < offsets[left.of + 1] - last
    for aggregate in best:
        undercut &= values.framed(aggregate).undercut(left.places, offsets)
    if not undercut.any():
        return left
    of, places, time = left.of[~undercut], left.places[~undercut], values.block.time
    # All are needed; when the first of them no longer is may be later.
    _, look, _ = _needed(node, np.searchsorted(of, partitions), time[places], time[places], reached)
    return replace(left, places=places, of=of, look=look)


def _completed(
    node: Over, values: Values, rows: pl.DataFrame, complete: Int64Array, after: int, until: int
) -> pl.DataFrame:
    """The rows that are complete in this step."""
    block, layout = values.block, values.layout
    if not node.waits:
        computed = [_of_new_rows(values, column) for column in node.columns]
        return rows.select(node.input.schema.names).hstack(computed)
    at = np.flatnonzero((complete > after) & (complete <= until))
    attributes = [block.column(layout.attribute(name)).gather(at).alias(name) for name in node.input.schema.names]
    computed = [values.of(column, at) for column in node.columns]
    return pl.DataFrame([*attributes, *computed, pl.Series(node.completed_by, complete[at])])


def _without_sum(node: Over, values: Values, rows: pl.DataFrame) -> list[SetAside]:
    """The rows of which a sum does not fit."""
    block, schema, aside = values.block, node.input.schema, list[SetAside]()
    for place, column, error in values.failed or ():
        if node.waits:
            row = {name: block.column(values.layout.attribute(name))[place] for name in schema.names}
        else:
            row = rows.row(int(block.source[place]) - block.kept.height, named=True)
        aside.append(SetAside(OVERFLOW, column, {name: row[name] for name in schema.names}, schema, error))
    return aside
