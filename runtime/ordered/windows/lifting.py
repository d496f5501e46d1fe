"""From new rows to panes with partial results."""

from __future__ import annotations

from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.nodes import Reading
from tidegate.algebra.ordered.events import tied
from tidegate.algebra.ordered.windows.kinds import CountWindow, LandmarkWindow
from tidegate.algebra.time import Extended
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.aggregates.partials import partial
from tidegate.runtime.ordered.new_events import order_of
from tidegate.runtime.ordered.partition_store import ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.windows.layout import FIRST, NUMBER, OF, PANE, ROWS, PaneLayout
from tidegate.runtime.ordered.windows.panes import axis_of
from tidegate.runtime.plan.aggregate_states import states

#: The partitions of no rows.
NO_ROWS: Final = np.empty(0, dtype=np.int64)


def lifted(
    layout: PaneLayout, rows: pl.DataFrame, of: Int64Array, known: pl.DataFrame, partitions: int
) -> pl.DataFrame:
    """The panes of new rows, which are in partitions `of`; `known` are the last panes before."""
    if isinstance(layout.window, CountWindow):
        return _counted(layout, layout.window.every, rows, of, counts_before(known, partitions))
    pane = axis_of(layout.window).of(rows.get_column(layout.node.time).to_numpy())
    if isinstance(layout.window, LandmarkWindow) and (pane <= 0).any():
        since = pane > 0
        rows, of, pane = rows.filter(pl.Series(since)), of[since], pane[since]
    return in_order(_grouped(layout, rows, of, pane))


def reached(layout: PaneLayout, known: pl.DataFrame, of: Int64Array, partitions: int, progress: Extended) -> Int64Array:
    """The last pane of each partition that is complete, at a progress or with new rows in partitions `of` after
    `known` panes.
    """
    if isinstance(layout.window, CountWindow):
        return (counts_before(known, partitions) + np.bincount(of, minlength=partitions)) // layout.window.every
    return np.full(partitions, axis_of(layout.window).ended(ticks(progress)))


def counts_before(known: pl.DataFrame, partitions: int) -> Int64Array:
    """How many rows each partition has had, by its last pane."""
    before = np.zeros(partitions, dtype=np.int64)
    np.maximum.at(before, known.get_column(PARTITION).to_numpy(), known.get_column(ROWS).to_numpy())
    return before


def in_order(rows: pl.DataFrame) -> pl.DataFrame:
    """The rows by partition and pane; of one pane those first that came first."""
    of, pane = rows.get_column(PARTITION).to_numpy(), rows.get_column(PANE).to_numpy()
    order = np.lexsort((pane, of))
    return rows if (np.diff(order) == 1).all() else rows[order]


def starts_of(*columns: Int64Array) -> np.ndarray[tuple[int], np.dtype[np.bool_]]:
    """Whether a row differs from the one before in one of the columns."""
    starts = np.ones(len(columns[0]), dtype=np.bool_)
    starts[1:] = np.logical_or.reduce([column[1:] != column[:-1] for column in columns])
    return starts


def within(starts: np.ndarray[tuple[int], np.dtype[np.bool_]]) -> Int64Array:
    """The place of each row in its segment, from 0 on."""
    at = np.arange(len(starts))
    return at - np.maximum.accumulate(np.where(starts, at, 0))


def _grouped(layout: PaneLayout, rows: pl.DataFrame, of: Int64Array, pane: Int64Array) -> pl.DataFrame:
    made = partial(layout.lifting, rows.with_columns(pl.Series(OF, of), pl.Series(NUMBER, pane)))
    names, kept = {OF: PARTITION, NUMBER: PANE}, [name for name in layout.columns if name != ROWS]
    if layout.shows_empty:
        (first,) = states(layout.lifting)[-1].columns
        names, kept = {**names, first: FIRST}, [*kept, FIRST]
    return made.rename(names).select(PARTITION, *kept)


def _counted(layout: PaneLayout, every: int, rows: pl.DataFrame, of: Int64Array, before: Int64Array) -> pl.DataFrame:
    """Rows are numbered in order of time, after those `before`."""
    reading = layout.node.readings[0]
    order = order_of(reading, rows)
    order = order[np.argsort(of[order], kind="stable")]
    in_partition = of[order]
    require_order(reading, rows[order], in_partition)
    number = np.empty(len(of), dtype=np.int64)
    number[order] = before[in_partition] + within(starts_of(in_partition))
    made = in_order(_grouped(layout, rows, of, number // every + 1))
    there = (before + np.bincount(of, minlength=len(before)))[made.get_column(PARTITION).to_numpy()]
    last = np.minimum(made.get_column(PANE).to_numpy() * every, there)
    return made.with_columns(pl.Series(ROWS, last)).select(PARTITION, *layout.columns)


def require_order(reading: Reading, rows: pl.DataFrame, of: Int64Array) -> None:
    """`EvaluationError` TG304 where nothing says which of two rows in this order comes first."""
    assert reading.time is not None
    names = [name for name in (reading.time, reading.tie) if name is not None]
    alike = pl.all_horizontal(pl.col(name).eq_missing(pl.col(name).shift()) for name in dict.fromkeys(names))
    again = rows.select(alike.alias("")).to_series().to_numpy()
    twice = np.flatnonzero(again[1:] & (of[1:] == of[:-1]))
    if len(twice):
        time = int(rows.get_column(reading.time)[int(twice[0])])
        raise tied(time, reading.input.schema[reading.time].type)
