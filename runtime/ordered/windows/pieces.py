"""What is held of rows between increments: partial results of sessions, or of the panes that windows consist of."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.nodes import Group, Scan
from tidegate.algebra.ordered.windows import AlignedWindow, HoppingWindow, SessionWindow, Windows
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.types import BIGINT
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.aggregates.partials import merge, partial
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.plan.aggregate_states import states

#: The first and last instant of a session; of a pane both are its end.
FIRST: Final = "first"
LAST: Final = "last"
#: The number of a piece while pieces are merged; no attribute of a user has such a name.
NUMBER: Final = "\0window"
#: Panes are listed for so many windows at once, and for those of one pane more.
EXPANDED: Final = 1 << 20


@dataclass(frozen=True)
class Pieces:
    """How rows become pieces of windows, and these windows."""

    node: Windows

    @cached_property
    def group(self) -> Group:
        """The grouping of rows by the number of their piece."""
        schema = self.node.input.schema
        number = Attribute(NUMBER, BIGINT, nullable=False)
        rows = StreamDef("rows", Schema((*schema.attributes, number)), static=True)
        return Group(Scan(rows), (NUMBER,), self.node.aggregates)

    @cached_property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of pieces, beside the keys of their partitions."""
        parts = {state.column(part): type_ for state in states(self.group) for part, type_ in state.parts}
        return {name: polars_type(type_) for name, type_ in {FIRST: BIGINT, LAST: BIGINT, **parts}.items()}

    def lifted(self, rows: pl.DataFrame, of: Int64Array) -> pl.DataFrame:
        """The pieces of new rows, which are in partitions `of`."""
        time = rows.get_column(self.node.time).to_numpy()
        window = self.node.window
        first = time if isinstance(window, SessionWindow) else pane_of(window, time)
        order, number, starts = self._numbered(of, first, first)
        of_rows = np.empty(rows.height, dtype=np.int64)
        of_rows[order] = number
        merged = partial(self.group, rows.with_columns(pl.Series(NUMBER, of_rows)))
        return self._pieces(merged, of[order], first[order], first[order], starts)

    def merged(self, pieces: Sequence[pl.DataFrame]) -> pl.DataFrame:
        """The pieces in order of partition and time, with those that are one put together."""
        together = pl.concat([some.select(PARTITION, *self.columns) for some in pieces], rechunk=True)
        of, first, last = (together.get_column(name).to_numpy() for name in (PARTITION, FIRST, LAST))
        order, number, starts = self._numbered(of, first, last)
        merged = merge(self.group, together[order].with_columns(pl.Series(NUMBER, number)))
        return self._pieces(merged, of[order], first[order], last[order], starts)

    def _numbered(
        self, of: Int64Array, first: Int64Array, last: Int64Array
    ) -> tuple[Int64Array, Int64Array, Int64Array]:
        """The order of pieces by partition and time, in that order the number of what each belongs to, and where each
        number begins. Pieces of one partition do not overlap.
        """
        gap = self.node.window.gap if isinstance(self.node.window, SessionWindow) else 0
        order = np.lexsort((first, of))
        begins = np.ones(len(order), dtype=np.bool_)
        begins[1:] = (np.diff(of[order]) != 0) | (first[order][1:] - last[order][:-1] > gap)
        return order, np.cumsum(begins) - 1, np.flatnonzero(begins)

    def _pieces(
        self, merged: pl.DataFrame, of: Int64Array, first: Int64Array, last: Int64Array, starts: Int64Array
    ) -> pl.DataFrame:
        ends = np.append(starts[1:], len(of)) - 1
        columns = [
            pl.Series(PARTITION, of[starts]),
            pl.Series(FIRST, first[starts]),
            pl.Series(LAST, last[ends[: len(starts)]]),
        ]
        parts = merged.sort(NUMBER).drop(NUMBER)
        return pl.DataFrame(columns).hstack(parts.get_columns()).select(PARTITION, *self.columns)

    def until(self, pieces: pl.DataFrame) -> Int64Array:
        """The end of the last window that each piece belongs to."""
        window = self.node.window
        last: Int64Array = pieces.get_column(LAST).to_numpy()
        return last + window.gap if isinstance(window, SessionWindow) else last_end(window, last)

    def next_ends(self, pieces: pl.DataFrame, reached: int) -> Int64Array:
        """The end of the next window later than `reached` of each piece that has one."""
        window = self.node.window
        if isinstance(window, SessionWindow):
            return self.until(pieces)
        last: Int64Array = pieces.get_column(LAST).to_numpy()
        return np.maximum(last, next_end(window, reached))

    def windows(self, pieces: pl.DataFrame, after: int, until: int) -> pl.DataFrame:
        """The windows that end later than `after`, up to `until`: their partitions, their bounds as FIRST and LAST, and
        partial results by NUMBER.
        """
        window = self.node.window
        if isinstance(window, SessionWindow):
            done = pieces.filter(pl.Series(self.until(pieces) <= until))
            bounded = done.with_columns(pl.col(LAST) + window.gap)
            return bounded.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(NUMBER))
        last = pieces.get_column(LAST).to_numpy()
        low = np.maximum(last, next_end(window, after))
        high = np.minimum(last_end(window, last), until)
        many = np.maximum((high - low) // window.every + 1, 0)
        # A window of panes of two parts is put together at the end.
        cuts = np.flatnonzero(np.diff(np.cumsum(many) // EXPANDED)) + 1
        parts = [self._expanded(pieces, at, low, many) for at in np.split(np.arange(pieces.height), cuts)]
        whole = parts[0] if len(parts) == 1 else self.merged(parts)
        start = pl.Series(FIRST, start_of(window, whole.get_column(LAST).to_numpy()))
        return whole.with_columns(start, pl.int_range(pl.len(), dtype=pl.Int64).alias(NUMBER))

    def _expanded(self, pieces: pl.DataFrame, at: Int64Array, low: Int64Array, many: Int64Array) -> pl.DataFrame:
        """Windows by their ends, of the panes at these places: so many of each, from the end `low` on."""
        window = self.node.window
        assert not isinstance(window, SessionWindow)
        its = np.repeat(at, many[at])
        number = np.arange(len(its)) - np.repeat(np.cumsum(many[at]) - many[at], many[at])
        end = low[its] + number * window.every
        return self.merged([pieces[its].with_columns(pl.Series(FIRST, end), pl.Series(LAST, end))])


@lru_cache(maxsize=256)
def pieces_of(node: Windows) -> Pieces:
    """The pieces of an operator."""
    return Pieces(node)


def pane_of(window: AlignedWindow, time: Int64Array) -> Int64Array:
    """The first end at or after each instant."""
    return -((window.offset - time) // window.every) * window.every + window.offset


def next_end(window: AlignedWindow, reached: int) -> int:
    """The first end later than an instant."""
    return ((reached - window.offset) // window.every + 1) * window.every + window.offset


def last_end(window: AlignedWindow, pane: Int64Array) -> Int64Array:
    """The end of the last window that a pane belongs to."""
    if isinstance(window, HoppingWindow):
        return pane + (window.size - window.every)
    return -((window.offset - pane) // window.size) * window.size + window.offset


def start_of(window: AlignedWindow, end: Int64Array) -> Int64Array:
    """Where the windows with these ends begin."""
    if isinstance(window, HoppingWindow):
        return end - window.size
    return (end - 1 - window.offset) // window.size * window.size + window.offset
