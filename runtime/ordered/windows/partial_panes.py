"""What panes come to within a block, and the windows that they make."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import polars as pl

from tidegate.algebra.ordered.events import too_far
from tidegate.algebra.ordered.windows.node import COMPLETE, END, START, Windows
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.aggregates.pairs import gathered, merged_pairs, remaining, running
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.filters import some_of, where
from tidegate.runtime.kernels.asof.places import first_from
from tidegate.runtime.kernels.partitions.panes import blocks, ending, places, places_from_end
from tidegate.runtime.ordered.partition_store import NO_LOOK
from tidegate.runtime.ordered.row_arrays import MOST_IN_ALL, MOST_OF_A_ROW, PARTITION
from tidegate.runtime.ordered.windows.layout import FIRST, PANE, PaneLayout
from tidegate.runtime.ordered.windows.lifting import in_order, stacked, starts_of
from tidegate.runtime.ordered.windows.panes import ENDLESS, Axis


@dataclass(frozen=True)
class PartialPanes(PaneLayout):
    """Frames of panes are by partition and pane; `phase` says of each partition where its blocks end."""

    def going_on(self, known: pl.DataFrame, new: pl.DataFrame) -> tuple[pl.DataFrame, Int64Array]:
        """New panes, with what is known of them, and which of the known ones these are. `known` is the last pane before
        of each partition that has one.
        """
        at, its = _first_alike(_of(known), _pane(known), _of(new), _pane(new))
        return self._with(new, at, known, its), its

    def totals(self, known: pl.DataFrame, new: pl.DataFrame, phase: Int64Array) -> pl.DataFrame:
        """Each pane with what its block comes to up to it; `known` are such rows, one of each partition that has some
        before the new panes.
        """
        block = self._block(new, phase)
        at, its = _first_alike(_of(known), self._block(known, phase), _of(new), block)
        rows = running(self.group, self._with(new, at, known, its), places(_of(new), block))
        return in_order(stacked(known, rows))

    def _with(self, new: pl.DataFrame, at: Int64Array, known: pl.DataFrame, its: Int64Array) -> pl.DataFrame:
        """New panes, with known ones merged into those at some places."""
        if not len(at):
            return new
        merged = merged_pairs(self.group, some_of(new, at), some_of(known, its))
        if len(at) == new.height:
            return merged
        return new.with_columns(new.get_column(name).scatter(at, merged.get_column(name)) for name in self.parts)

    def remainders(self, rows: pl.DataFrame, some: BoolArray, phase: Int64Array) -> pl.DataFrame:
        """Each of some panes with what its block comes to from it on; the others as they are."""
        if not some.any():
            return rows
        return remaining(self.group, rows, places_from_end(_of(rows), self._block(rows, phase), some))

    def latest(self, totals: pl.DataFrame, high: Int64Array) -> pl.DataFrame:
        """The last pane of each partition with what its block comes to, if a window later than `high` has it."""
        kept = self.is_open(totals, high)
        is_last = np.append(np.diff(_of(totals)) != 0, True)[: len(kept)]
        return only(where(totals, kept & is_last), (PARTITION, *self.columns))

    def is_open(self, rows: pl.DataFrame, high: Int64Array) -> BoolArray:
        """Which panes are in windows that end after `high`, or stay as the last ones of their partitions."""
        of = _of(rows)
        kept: BoolArray = self.panes.last(_pane(rows)) > high[of]
        return kept | np.append(np.diff(of) != 0, True)[: len(of)] if self.panes.stays else kept

    def looks(self, latest: pl.DataFrame, high: Int64Array, axis: Axis | None) -> Int64Array:
        """When each partition has to be looked at although no row comes for it: where its next window ends."""
        look = np.full(len(high), NO_LOOK)
        if axis is not None:
            of = _of(latest)
            of = of[self.panes.last(_pane(latest)) > high[of]]
            look[of] = axis.end(high[of] + 1, of)
        return look

    def windows(
        self, totals: pl.DataFrame, rest: pl.DataFrame | None, low: Int64Array, high: Int64Array, axis: Axis | None,
        phase: Int64Array, texts: Callable[[int], str],
    ) -> pl.DataFrame:  # fmt: skip
        """The windows that are complete with pane `high` of each partition and were not with pane `low`: PARTITION,
        their bounds unless rows are counted, and partial results.

        Up to the next pane of its partition each window has a pane as its last one: then it has what the block comes
        to up to it. Where it begins in the block before, it has what that comes to from there on, too, in `rest`.

        `EvaluationError` TG306 for a row with too many windows without rows before it; `texts` says the key of a
        partition.
        """
        of, pane = _of(totals), _pane(totals)
        panes = self.panes
        least = panes.many if panes.whole else -ENDLESS
        at, window, own = ending(of, pane, low, high, phase, panes.many, panes.reach, least, panes.first, panes.step)
        if self.shows_empty:
            its, empty, told = self._empty(totals, texts)
            at, window = np.concatenate([at, its]), np.concatenate([window, empty])
            own = np.concatenate([own, np.full(len(its), -1)])
        if not len(at):
            return pl.DataFrame([pl.Series(PARTITION, at)])
        made = gathered(totals, own)
        if rest is not None and rest.height:
            begun = self._begun(rest, of[at], window, phase)
            made = merged_pairs(self.group, made, gathered(rest, begun))
        elif self.shows_empty:
            made = merged_pairs(self.group, made, made.clear(made.height))
        bounds = []
        if axis is not None:
            start, end = axis.end(self.panes.before(window), of[at]), axis.end(window, of[at])
            bounds = [pl.Series(START, start), pl.Series(END, end)]
            if self.shows_empty:
                complete = np.concatenate([end[: len(end) - len(told)], told])
                bounds.append(pl.Series(COMPLETE, complete))
        return pl.DataFrame([pl.Series(PARTITION, of[at]), *bounds, *(made.get_column(name) for name in self.parts)])

    def _empty(self, totals: pl.DataFrame, texts: Callable[[int], str]) -> tuple[Int64Array, Int64Array, Int64Array]:
        """Windows without rows, each with the place of the pane before and the instant that tells it: those from the
        last one with a pane to the next pane. `EvaluationError` TG306 where those before a row, or all, are more than
        memory holds.
        """
        of, pane = _of(totals), _pane(totals)
        follows = np.flatnonzero(of[1:] == of[:-1])
        told = totals.get_column(FIRST).fill_null(0).to_numpy()
        first, last = self.panes.last(pane[follows]) + 1, pane[follows + 1] - 1
        in_all = int(np.maximum(last - first + 1, 0).sum(dtype=np.float64))
        if len(follows) and ((many := int((last - first).max()) + 1) > MOST_OF_A_ROW or in_all > MOST_IN_ALL):
            row = int(follows[np.argmax(last - first)]) + 1
            type_, of_row = self.node.input.schema[self.node.time].type, texts(int(of[row]))
            what, step = "windows without rows come before the row at", self.panes.step
            windows = -(-many // step)
            if many > MOST_OF_A_ROW:
                raise too_far(windows, MOST_OF_A_ROW // step, what, int(told[row]), type_, of_row)
            raise too_far(windows, MOST_IN_ALL // step, what, int(told[row]), type_, of_row, in_all=-(-in_all // step))
        at, empty = self.between(first, last)
        its = follows[at]
        return its, empty, told[its + 1]

    def between(self, first: Int64Array, last: Int64Array) -> tuple[Int64Array, Int64Array]:
        """Each window from a first to a last pane, with the place of these."""
        at, pane = _each(first, last)
        if self.panes.step == 1:
            return at, pane
        its = self.panes.are_windows(pane)
        return at[its], pane[its]

    def _begun(self, rest: pl.DataFrame, of: Int64Array, window: Int64Array, phase: Int64Array) -> Int64Array:
        """Where the first pane of each window stands that is in the block before; -1: it has none."""
        pane, block = _pane(rest), self._block(rest, phase)
        offsets = np.searchsorted(_of(rest), np.arange(len(phase) + 1))
        place: Int64Array = first_from(offsets, pane, of, self.panes.before(window), True)
        ahead = place < offsets[of + 1]
        place[~ahead] = -1
        place[ahead & (block[place] != self.block(window, of, phase) - 1)] = -1
        return place

    def block(self, pane: Int64Array, of: Int64Array, phase: Int64Array) -> Int64Array:
        """The block of each pane of these partitions."""
        found: Int64Array = blocks(pane, of, phase, self.panes.many)
        return found

    def _block(self, rows: pl.DataFrame, phase: Int64Array) -> Int64Array:
        return self.block(_pane(rows), _of(rows), phase)


def _first_alike(
    known_of: Int64Array, known: Int64Array, new_of: Int64Array, new: Int64Array
) -> tuple[Int64Array, Int64Array]:
    """The first new pane of each partition, where its number is that of the known one, of which there is one at most;
    and these. Partitions ascend.
    """
    starts = np.flatnonzero(starts_of(new_of))
    first = np.full(int(max(known_of.max(initial=-1), new_of.max(initial=-1))) + 1, -1)
    first[new_of[starts]] = starts
    at = first[known_of]
    its = np.flatnonzero(at >= 0)
    its = its[new[at[its]] == known[its]]
    return at[its], its


def _of(rows: pl.DataFrame) -> Int64Array:
    return rows.get_column(PARTITION).to_numpy()


def _pane(rows: pl.DataFrame) -> Int64Array:
    return rows.get_column(PANE).to_numpy()


def _each(first: Int64Array, last: Int64Array) -> tuple[Int64Array, Int64Array]:
    """Each number from a first to a last one, with the place of these."""
    many = np.maximum(last - first + 1, 0)
    at = np.repeat(np.arange(len(many)), many)
    return at, first[at] + np.arange(len(at)) - np.repeat(np.cumsum(many) - many, many)


@lru_cache(maxsize=256)
def partial_panes(node: Windows) -> PartialPanes:
    return PartialPanes(node)
