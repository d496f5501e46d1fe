"""Which windows are complete with an increment, where their rows stand, and which rows later windows need."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import polars as pl

from tidegate.algebra.ordered.windows.kinds import CountWindow, OpenedWindow, SessionWindow
from tidegate.algebra.ordered.windows.node import COMPLETE, END, START, Windows
from tidegate.algebra.time import Extended
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.kernels.asof.places import first_from
from tidegate.runtime.ordered.over.block import Block
from tidegate.runtime.ordered.partition_store import NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.windows.layout import FIRST, PANE, ROWS, SINCE
from tidegate.runtime.ordered.windows.lifting import Arrival, starts_of
from tidegate.runtime.ordered.windows.panes import AnchoredPanes, Axis
from tidegate.runtime.ordered.windows.partial_panes import PartialPanes, partial_panes
from tidegate.runtime.ordered.windows.rows.layout import CLOSED, OPENED


@dataclass(frozen=True, slots=True)
class Cut:
    """Windows of a block, in order of partition and end: their partitions `of`, `bounds` by name, and their rows, those
    from place `low` to before `high`.

    `kept`: which rows of the block are in windows that are not complete, or stay. `look`: when each partition has to be
    looked at although no row comes for it. `counted`: by what panes are counted, by place.
    """

    of: Int64Array
    low: Int64Array
    high: Int64Array
    bounds: Mapping[str, Int64Array]
    kept: BoolArray
    look: Int64Array
    counted: Mapping[str, Int64Array] = field(default_factory=dict)


def partitions_of(block: Block) -> Int64Array:
    """The partition of each place."""
    return np.repeat(np.arange(len(block.first)), np.diff(block.offsets))


@lru_cache(maxsize=256)
def panes_alone(node: Windows) -> PartialPanes:
    """The panes of windows, without partial results."""
    return partial_panes(replace(node, aggregates=()))


def cut(
    node: Windows, block: Block, came: Arrival, after: Extended, until: Extended, texts: Callable[[int], str]
) -> Cut:
    """The windows that are complete at progress `until` and were not at `after`. The rows of `block` are those that
    came and the known ones before them; `texts` says the keys of a partition, for an error.
    """
    if isinstance(node.window, SessionWindow):
        return _sessions(block, node.window.gap, ticks(until))
    if isinstance(node.window, OpenedWindow):
        return _opened(block, ticks(until))
    panes, low, high = panes_alone(node), came.complete_before(after), came.complete(until)
    if isinstance(node.window, CountWindow):
        return _counted(panes, block, came.before, low, high)
    return _timed(panes, block, came.axis, low, high, texts)


def _sessions(block: Block, gap: int, until: int) -> Cut:
    of, time = partitions_of(block), block.time
    begins = starts_of(of)
    begins[1:] |= np.diff(time) > gap
    first = np.flatnonzero(begins)
    last = np.append(first[1:], len(time))[: len(first)] - 1
    return _bounded(block, first, time[first], time[last] + gap, until)


def _opened(block: Block, until: int) -> Cut:
    """Windows that rows open and close: the rows of one say when it was opened."""
    opened, closed = (block.column(name).to_numpy() for name in (OPENED, CLOSED))
    first = np.flatnonzero(starts_of(partitions_of(block), opened))
    end = np.minimum.reduceat(closed, first) if len(first) else closed
    return _bounded(block, first, opened[first], end, until)


def _bounded(block: Block, first: Int64Array, start: Int64Array, end: Int64Array, until: int) -> Cut:
    """Windows that follow each other: each begins with the row at its place `first`."""
    of, over = partitions_of(block)[first], end <= until
    after = np.append(first[1:], block.height)[: len(first)]
    look = np.full(len(block.first), NO_LOOK)
    look[of[~over]] = end[~over]
    bounds = {START: start[over], END: end[over]}
    return Cut(of[over], first[over], after[over], bounds, np.repeat(~over, after - first), look)


def _counted(panes: PartialPanes, block: Block, before: Int64Array, low: Int64Array, high: Int64Array) -> Cut:
    """Windows of so many rows, of which each partition has had `before`. Those that are kept are its last ones."""
    assert isinstance(panes.window, CountWindow)
    of, each, many = partitions_of(block), panes.window.pane, panes.panes.many
    number = np.arange(block.height) - block.first[of] + before[of] + 1
    its, window = panes.between(np.maximum(low + 1, many), high)
    ends = window * each - before[its] + block.first[its]
    starts = ends - many * each
    bounds = {START: block.time[starts], END: block.time[ends - 1]}
    kept = panes.is_open(_rows(of, -(-number // each)), high)
    return Cut(its, starts, ends, bounds, kept, np.full(len(high), NO_LOOK), {ROWS: number})


def _timed(
    panes: PartialPanes, block: Block, axis: Axis | None, low: Int64Array, high: Int64Array, texts: Callable[[int], str]
) -> Cut:
    """Windows in time."""
    assert axis is not None
    of = partitions_of(block)
    rows = _rows(of, axis.of(block.time, of))
    found = panes.windows(_panes(rows, block.time), None, low, high, axis, np.zeros_like(low), texts)
    kept = panes.is_open(rows, high)
    look = panes.looks(rows.filter(pl.Series(kept)), high, axis)
    counted = {SINCE: axis.since[of]} if isinstance(axis, AnchoredPanes) else {}
    if not found.height:
        nothing = np.empty(0, dtype=np.int64)
        return Cut(nothing, nothing, nothing, {}, kept, look, counted)
    found = found.sort(PARTITION, END)
    its = found.get_column(PARTITION).to_numpy()
    names = (name for name in (START, END, COMPLETE) if name in found.columns)
    bounds: dict[str, Int64Array] = {name: found.get_column(name).to_numpy() for name in names}
    starts, ends = (first_from(block.offsets, block.time, its, bounds[name], True) for name in (START, END))
    return Cut(its, starts, ends, bounds, kept, look, counted)


def _rows(of: Int64Array, pane: Int64Array) -> pl.DataFrame:
    return pl.DataFrame([pl.Series(PARTITION, of), pl.Series(PANE, pane)])


def _panes(rows: pl.DataFrame, time: Int64Array) -> pl.DataFrame:
    """Each pane once, with its first instant."""
    of, pane = (rows.get_column(name).to_numpy() for name in (PARTITION, PANE))
    return rows.with_columns(pl.Series(FIRST, time)).filter(pl.Series(starts_of(of, pane)))
