"""The operator of sessions, and of windows that rows open and close: of each partition it keeps the partial results of
the open one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any, Final, Self

import numpy as np
import polars as pl

from tidegate.algebra.nodes import Group, Scan
from tidegate.algebra.ordered.windows.kinds import OpenedWindow, SessionWindow
from tidegate.algebra.ordered.windows.node import END, START, Windows
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.time import Extended
from tidegate.algebra.types import BIGINT
from tidegate.analysis.ordered.windows import FIRST, OPEN, SESSIONS
from tidegate.analysis.state.thresholds import Extents
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.aggregates.partials import merge, partial
from tidegate.runtime.eval.columns import only, polars_type
from tidegate.runtime.eval.filters import where
from tidegate.runtime.kernels.partitions.rows import segmented
from tidegate.runtime.ordered.family import Tables
from tidegate.runtime.ordered.new_events import by_partition, order_of
from tidegate.runtime.ordered.partition_store import NO_LOOK, ticks
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import NONE, KeptExtract, KeptRows, KeptRowsOperator
from tidegate.runtime.ordered.windows.operator import WindowsOperator, keys_of, windows_of
from tidegate.runtime.plan.aggregate_states import states
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame

#: Beside the first instant of a session its last one. Of a window that a row opens these are when it was opened, and
#: when it was closed: NO_LOOK as long as it is not.
LAST: Final = "last"
#: The number of a session while rows are merged; no attribute of a user has such a name.
NUMBER: Final = "\0window"


@dataclass(frozen=True, slots=True)
class SessionOperator(WindowsOperator[KeptRows], KeptRowsOperator):
    @classmethod
    def fresh(cls, ordered: OrderedStep) -> Self:
        node = windows_of(ordered)
        table = SESSIONS if isinstance(node.window, SessionWindow) else OPEN
        return cls(ordered, KeptRows(keys_of(node), table, partial_sessions(node).columns))

    def loaded(self, tables: Tables, reached: Extended) -> Self:
        state, sessions = self.held, partial_sessions(self.node)
        if (stored := state.stored_in(tables)) is not None:
            state.put(replace(stored, look=sessions.looks(stored.rows, len(stored.partitions))))
        return self

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[Self, pl.DataFrame]:
        rows, state, sessions = as_frame(events[0]), self.settled(), partial_sessions(self.node)
        state.ready()
        partitions, of = state.read_by(rows, ticks(until))
        before = state.extract(partitions)
        new = sessions.lifted(rows, of, len(partitions))
        both = sessions.merged(before.rows, new, len(partitions))
        is_over = sessions.ends(both) <= ticks(until)
        result = self.reported(sessions.group, sessions.windows(where(both, is_over)), partitions)
        left = where(both, ~is_over)
        return replace(
            self, made=(before, KeptExtract(partitions, left, sessions.looks(left, len(partitions))))
        ), result

    def bounds(self, tables: Mapping[str, Any]) -> Mapping[str, Extents]:
        """When windows that rows have opened began."""
        if OPEN not in tables:
            return {}
        rows = pl.DataFrame(tables[OPEN].select([FIRST, NONE])).filter(~pl.col(NONE))
        first = rows.get_column(FIRST).to_numpy()
        return {OPEN: {FIRST: (int(first.min()), int(first.max()))}} if len(first) else {}


@dataclass(frozen=True)
class PartialSessions:
    """How rows become sessions with partial results, which go on as more rows come."""

    node: Windows

    @cached_property
    def gap(self) -> int:
        assert isinstance(self.node.window, SessionWindow)
        return self.node.window.gap

    @cached_property
    def group(self) -> Group:
        """The grouping of rows by the number of their session."""
        schema = self.node.input.schema
        number = Attribute(NUMBER, BIGINT, nullable=False)
        rows = StreamDef("rows", Schema((*schema.attributes, number)), static=True)
        return Group(Scan(rows), (NUMBER,), self.node.aggregates)

    @cached_property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of sessions, beside the keys of their partitions."""
        return {**dict.fromkeys((FIRST, LAST), polars_type(BIGINT)), **self.parts}

    @cached_property
    def parts(self) -> dict[str, pl.DataType]:
        """The columns of partial results."""
        return {state.column(part): polars_type(type_) for state in states(self.group) for part, type_ in state.parts}

    def lifted(self, rows: pl.DataFrame, of: Int64Array, partitions: int) -> pl.DataFrame:
        """The sessions of new rows, which are in partitions `of`."""
        time = rows.get_column(self.node.time).to_numpy()
        order = by_partition(of, order_of(self.node.readings[0], rows), partitions)
        of, (first, last) = of[order], (column[order] for column in self._extent(rows, time))
        number, starts = self._numbered(of, first, last)
        of_rows = np.empty(rows.height, dtype=np.int64)
        of_rows[order] = number
        merged = partial(self.group, rows.with_columns(pl.Series(NUMBER, of_rows)))
        return self._sessions(merged, of, first, last, starts)

    def merged(self, known: pl.DataFrame, new: pl.DataFrame, partitions: int) -> pl.DataFrame:
        """Known sessions and those of new rows, which are later, in order of partition and time; those that are one
        are put together.
        """
        parts = [only(some, (PARTITION, *self.columns)) for some in (known, new)]
        together = pl.concat(parts, rechunk=True)
        of_parts = (some.get_column(PARTITION).to_numpy() for some in parts)
        together = together[segmented(*of_parts, np.arange(new.height), partitions)[0]]
        of, first, last = (together.get_column(name).to_numpy() for name in (PARTITION, FIRST, LAST))
        number, starts = self._numbered(of, first, last)
        merged = merge(self.group, together.with_columns(pl.Series(NUMBER, number)))
        return self._sessions(merged, of, first, last, starts)

    def _extent(self, rows: pl.DataFrame, time: Int64Array) -> tuple[Int64Array, Int64Array]:
        """What each row says by itself of the first and the last instant of its session."""
        return time, time

    def _begins(self, first: Int64Array, last: Int64Array) -> BoolArray:
        """Whether each row or part but the first one begins a session, if it is of the partition of the one before."""
        begins: BoolArray = first[1:] - last[:-1] > self.gap
        return begins

    def _last(self, last: Int64Array, starts: Int64Array) -> Int64Array:
        """The last instants of sessions, which begin with these rows or parts."""
        ends = np.append(starts[1:], len(last)) - 1
        its: Int64Array = last[ends[: len(starts)]]
        return its

    def _numbered(self, of: Int64Array, first: Int64Array, last: Int64Array) -> tuple[Int64Array, Int64Array]:
        """The number of the session of each row or part, and where each number begins. They are in order of partition
        and time, and parts of one partition do not overlap.
        """
        begins = np.ones(len(of), dtype=np.bool_)
        begins[1:] = (np.diff(of) != 0) | self._begins(first, last)
        return np.cumsum(begins) - 1, np.flatnonzero(begins)

    def _sessions(
        self, merged: pl.DataFrame, of: Int64Array, first: Int64Array, last: Int64Array, starts: Int64Array
    ) -> pl.DataFrame:
        columns = [
            pl.Series(PARTITION, of[starts]),
            pl.Series(FIRST, first[starts]),
            pl.Series(LAST, self._last(last, starts)),
        ]
        # Each number is there once.
        place = np.empty(merged.height, dtype=np.int64)
        place[merged.get_column(NUMBER).to_numpy()] = np.arange(merged.height)
        columns += [merged.get_column(name)[place] for name in self.parts]
        return only(pl.DataFrame(columns), (PARTITION, *self.columns))

    def ends(self, sessions: pl.DataFrame) -> Int64Array:
        last: Int64Array = sessions.get_column(LAST).to_numpy()
        return last + self.gap

    def windows(self, sessions: pl.DataFrame) -> pl.DataFrame:
        """Sessions as windows."""
        return sessions.with_columns(pl.col(FIRST).alias(START), pl.Series(END, self.ends(sessions)))

    def looks(self, sessions: pl.DataFrame, partitions: int) -> Int64Array:
        """When each partition has to be looked at although no row comes for it: where its session ends."""
        look = np.full(partitions, NO_LOOK)
        look[sessions.get_column(PARTITION).to_numpy()] = self.ends(sessions)
        return look


@dataclass(frozen=True)
class PartialOpened(PartialSessions):
    """How rows become windows that rows open and close: those of one window say when it was opened."""

    @cached_property
    def window(self) -> OpenedWindow:
        assert isinstance(self.node.window, OpenedWindow)
        return self.node.window

    def _extent(self, rows: pl.DataFrame, time: Int64Array) -> tuple[Int64Array, Int64Array]:
        closes = rows.get_column(self.window.closes).fill_null(value=False).to_numpy()
        return rows.get_column(self.window.opened).to_numpy(), np.where(closes, time, NO_LOOK)

    def _begins(self, first: Int64Array, last: Int64Array) -> BoolArray:
        begins: BoolArray = first[1:] != first[:-1]
        return begins

    def _last(self, last: Int64Array, starts: Int64Array) -> Int64Array:
        its: Int64Array = np.minimum.reduceat(last, starts)
        return its

    def ends(self, sessions: pl.DataFrame) -> Int64Array:
        last: Int64Array = sessions.get_column(LAST).to_numpy()
        return last


@lru_cache(maxsize=256)
def partial_sessions(node: Windows) -> PartialSessions:
    return PartialOpened(node) if isinstance(node.window, OpenedWindow) else PartialSessions(node)
