"""Partial results of panes: those of new rows, what they come to within a block, and the windows that they make."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.nodes import Group, Scan
from tidegate.algebra.ordered.windows import END, START, SessionWindow, Windows
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.types import BIGINT
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.aggregates.pairs import gathered, merged_pairs, remaining, running
from tidegate.runtime.eval.aggregates.partials import partial
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.kernels.asof.places import first_from
from tidegate.runtime.ordered.partition_store import NO_LOOK
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.windows.panes import Panes, panes_of
from tidegate.runtime.plan.aggregate_states import states

#: The number of a pane.
PANE: Final = "pane"
#: The keys of the grouping; no attribute of a user has such a name.
OF: Final = "\0of"
NUMBER: Final = "\0window"


@dataclass(frozen=True)
class PartialPanes:
    """Frames of panes have PARTITION, PANE and the columns of partial results, in this order of rows."""

    node: Windows

    @cached_property
    def panes(self) -> Panes:
        assert not isinstance(self.node.window, SessionWindow)
        return panes_of(self.node.window)

    @cached_property
    def group(self) -> Group:
        """The grouping of rows by partition and pane."""
        schema = self.node.input.schema
        keys = (Attribute(name, BIGINT, nullable=False) for name in (OF, NUMBER))
        rows = StreamDef("rows", Schema((*schema.attributes, *keys)), static=True)
        return Group(Scan(rows), (OF, NUMBER), self.node.aggregates)

    @cached_property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of panes, beside the keys of their partitions."""
        parts = {state.column(part): type_ for state in states(self.group) for part, type_ in state.parts}
        return {name: polars_type(type_) for name, type_ in {PANE: BIGINT, **parts}.items()}

    def lifted(self, rows: pl.DataFrame, of: Int64Array) -> pl.DataFrame:
        """The panes of new rows, which are in partitions `of`."""
        pane = self.panes.of(rows.get_column(self.node.time).to_numpy())
        merged = partial(self.group, rows.with_columns(pl.Series(OF, of), pl.Series(NUMBER, pane)))
        return self.in_order(merged.rename({OF: PARTITION, NUMBER: PANE}).select(PARTITION, *self.columns))

    @staticmethod
    def in_order(rows: pl.DataFrame) -> pl.DataFrame:
        """The rows by partition and pane; of one pane those first that came first."""
        of, pane = rows.get_column(PARTITION).to_numpy(), rows.get_column(PANE).to_numpy()
        order = np.lexsort((pane, of))
        return rows if (np.diff(order) == 1).all() else rows[order]

    def together(self, known: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        """Known panes and new ones; those of one number are one."""
        rows = self.in_order(pl.concat([known, new]))
        of, pane = rows.get_column(PARTITION).to_numpy(), rows.get_column(PANE).to_numpy()
        again = 1 + np.flatnonzero((np.diff(of) == 0) & (np.diff(pane) == 0))
        if not len(again):
            return rows
        place = np.arange(rows.height)
        place[again] = rows.height + np.arange(len(again))
        merged = merged_pairs(self.group, rows[again], rows[again - 1])
        return pl.concat([rows, merged])[np.delete(place, again - 1)]

    def totals(self, known: pl.DataFrame, new: pl.DataFrame) -> pl.DataFrame:
        """Each pane with what its block comes to up to it; `known` are such rows, before the new panes."""
        rows = self.in_order(pl.concat([known, new]))
        return running(self.group, rows, within(self._segments(rows)))

    def remainders(self, rows: pl.DataFrame, some: BoolArray) -> pl.DataFrame:
        """Each of some panes with what its block comes to from it on; the others as they are."""
        starts = self._segments(rows)
        starts |= ~some
        starts[1:] |= ~some[:-1]
        ends = np.append(starts[1:], True)[: len(starts)]
        return remaining(self.group, rows, within(ends[::-1])[::-1])

    def _segments(self, rows: pl.DataFrame) -> BoolArray:
        """Where a block of a partition starts."""
        of, pane = rows.get_column(PARTITION).to_numpy(), rows.get_column(PANE).to_numpy()
        starts = np.ones(rows.height, dtype=np.bool_)
        starts[1:] = (np.diff(of) != 0) | (np.diff(self.panes.block(pane)) != 0)
        return starts

    def windows(
        self, totals: pl.DataFrame, rest: pl.DataFrame | None, low: Int64Array, high: Int64Array
    ) -> pl.DataFrame:
        """The windows that end later than pane `low` of each partition, up to pane `high`, with a row: PARTITION,
        their bounds and partial results.

        Up to the next pane of its partition each window has a pane as its last one: then it has what the block comes
        to up to it. Where it begins in the block before, it has what that comes to from there on, too, in `rest`.
        """
        panes, of = self.panes, totals.get_column(PARTITION).to_numpy()
        pane = totals.get_column(PANE).to_numpy()
        until = np.minimum(panes.last(pane), high[of])
        follows = np.flatnonzero(np.diff(of) == 0)
        until[follows] = np.minimum(until[follows], pane[follows + 1] - 1)
        first = np.maximum(pane, low[of] + 1)
        many = np.maximum(until - first + 1, 0)
        its = np.repeat(np.arange(len(of)), many)
        window = first[its] + np.arange(len(its)) - np.repeat(np.cumsum(many) - many, many)
        bounds = [pl.Series(START, panes.end(panes.before(window))), pl.Series(END, panes.end(window))]
        found = pl.DataFrame([pl.Series(PARTITION, of[its]), *bounds])
        block = panes.block(window)
        own = gathered(totals, np.where(panes.block(pane[its]) == block, its, -1))
        if rest is not None and rest.height:
            own = merged_pairs(self.group, own, gathered(rest, self._begun(rest, found, window, block, len(low))))
        return pl.DataFrame([*found.get_columns(), *own.drop(PARTITION, PANE).get_columns()])

    def latest(self, totals: pl.DataFrame, high: Int64Array) -> pl.DataFrame:
        """The last pane of each partition with what its block comes to, if a window later than `high` has it."""
        of, pane = totals.get_column(PARTITION).to_numpy(), totals.get_column(PANE).to_numpy()
        is_last = np.append(np.diff(of) != 0, True)[: len(of)]
        return totals.filter(pl.Series(is_last & (self.panes.last(pane) > high[of])))

    def looks(self, latest: pl.DataFrame, high: Int64Array) -> Int64Array:
        """When each partition has to be looked at although no row comes for it: where its next window ends."""
        look = np.full(len(high), NO_LOOK)
        of = latest.get_column(PARTITION).to_numpy()
        look[of] = self.panes.end(high[of] + 1)
        return look

    def _begun(
        self, rest: pl.DataFrame, found: pl.DataFrame, window: Int64Array, block: Int64Array, partitions: int
    ) -> Int64Array:
        """Where the first pane of each window stands that is in the block before; -1: it has none."""
        pane = rest.get_column(PANE).to_numpy()
        offsets = np.searchsorted(rest.get_column(PARTITION).to_numpy(), np.arange(partitions + 1))
        of = found.get_column(PARTITION).to_numpy()
        place = first_from(offsets, pane, of, self.panes.before(window), True)
        ahead = place < offsets[of + 1]
        place[~ahead] = -1
        place[ahead & (self.panes.block(pane[place]) != block - 1)] = -1
        return place


def within(starts: BoolArray) -> Int64Array:
    """The place of each row in its segment, from 0 on."""
    at = np.arange(len(starts))
    return at - np.maximum.accumulate(np.where(starts, at, 0))


@lru_cache(maxsize=256)
def partial_panes(node: Windows) -> PartialPanes:
    return PartialPanes(node)
