"""Left rows of an increment with the right rows that they may get: the last one before each, the first one after."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.asof import COMPLETE, AsOf
from tidegate.runtime.arrays import BoolArray, Int32Array, Int64Array
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.kernels.asof.places import first_from
from tidegate.runtime.kernels.partitions.rows import NEVER, first_tie, segmented
from tidegate.runtime.ordered.asof.kept import KeptExtract, layout_of
from tidegate.runtime.ordered.new_events import by_partition, order_of, require_order
from tidegate.runtime.ordered.partition_store import EVER, NO_LOOK
from tidegate.runtime.ordered.row_arrays import PARTITION

#: No row.
_NONE: Final = -1

#: New rows of a side, and the place of the partition of each.
Placed = tuple[pl.DataFrame, Int32Array]


@dataclass(frozen=True, slots=True)
class RightRows:
    """The right rows by partition and time: partition p has those from `offsets[p]` to `offsets[p + 1]`, where place i
    holds row `source[i]` of `rows`, at `time[i]`.

    `rows` are the kept ones, the new ones, those that waiting rows remember, and one of NULLs, which stands for none.
    So does the last place. `ended` are those after which their key has none.
    """

    node: AsOf
    rows: pl.DataFrame
    source: Int64Array
    offsets: Int64Array
    time: Int64Array
    ended: BoolArray

    @classmethod
    def of(cls, node: AsOf, before: KeptExtract, new: Placed) -> RightRows:
        """`EvaluationError` TG304 for new rows of which nothing says which comes first."""
        layout = layout_of(node)
        rows, of = new
        kept = before.last.drop(PARTITION)
        remembered = [before.waiting.select(*layout.right)] if layout.remembers else []
        every = pl.concat([kept, layout.stored(rows, node.right.schema), *remembered, layout.none], rechunk=True)
        order = order_of(node.readings[1], rows)
        kept_of = before.last.get_column(PARTITION).to_numpy()
        places = of.astype(np.int64)
        source, offsets, _ = segmented(kept_of, places, order, len(before.partitions))
        time = every.get_column(layout.right_time).head(kept.height + rows.height).to_numpy()[source]
        if first_tie(offsets, time) >= 0:
            require_order(node.readings[1], rows, places, order, len(before.partitions))
        ended = np.zeros(every.height, dtype=np.bool_)
        if node.ended is not None:
            ends = evaluated(rows, compile_term(node.ended, node.right.schema)).to_series()
            ended[kept.height : kept.height + rows.height] = ends.fill_null(value=False).to_numpy()
        return cls(node, every, np.append(source, every.height - 1), offsets, np.append(time, NEVER), ended)

    @property
    def none(self) -> int:
        """The row that stands for none."""
        return self.rows.height - 1

    def last_before(self, of: Int64Array, at: Int64Array) -> Int64Array:
        """Of each left row the place of the last right row that is not after it, nor too far away."""
        place: Int64Array = first_from(self.offsets, self.time, of, at, not self.node.strict) - 1
        place[place < self.offsets[of]] = _NONE
        if self.node.within is not None:
            place[at - self.node.within > self.time[place]] = _NONE
        return place

    def first_after(self, of: Int64Array, at: Int64Array) -> Int64Array:
        """Of each left row the place of the first right row that is not before it, nor too far away."""
        place: Int64Array = first_from(self.offsets, self.time, of, at, self.node.strict)
        place[place >= self.offsets[of + 1]] = _NONE
        if self.node.within is not None:
            place[at + self.node.within < self.time[place]] = _NONE
        return place

    def ends(self) -> Int64Array:
        """Of each partition the place of its last row."""
        return np.where(self.offsets[1:] > self.offsets[:-1], self.offsets[1:] - 1, _NONE)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Left row i is in the partition with place `of[i]`, and complete at `complete[i]`; its partner is row `partner[i]`
    of `right`. `behind[i]` is the last right row up to it, where the operator remembers it for rows that wait.
    """

    node: AsOf
    left: pl.DataFrame
    of: Int64Array
    right: RightRows
    behind: Int64Array
    partner: Int64Array
    complete: Int64Array

    @classmethod
    def of_increment(
        cls, node: AsOf, before: KeptExtract, new: Placed, right_new: Placed, close_at: int | None
    ) -> Candidates:
        """The left rows that waited, and then the new ones. `EvaluationError` TG304 for ties of right rows."""
        layout = layout_of(node)
        right = RightRows.of(node, before, right_new)
        waited, (rows, of_new) = before.waiting, new
        left = pl.concat([waited.select(*layout.left), layout.stored(rows, node.left.schema)], rechunk=True)
        of = np.concatenate([waited.get_column(PARTITION).to_numpy(), of_new.astype(np.int64)])
        at = left.get_column(layout.left_time).to_numpy()
        behind, before_it = np.full(left.height, right.none), np.full(left.height, NEVER)
        old, fresh = slice(waited.height), slice(waited.height, None)
        if layout.looks_back:
            place = right.last_before(of[fresh], at[fresh])
            its = right.source[place]
            ended = right.ended[its]
            behind[fresh] = np.where(ended, right.none, its)
            before_it[fresh] = np.where(ended, NEVER, right.time[place])
        if layout.remembers:
            its = right.none - waited.height + np.arange(waited.height)
            before_it[old] = remembered_times(waited, layout.right_time)
            behind[old] = np.where(before_it[old] == NEVER, right.none, its)
        due = deadlines(node, at, before_it)
        partner, complete = behind, due
        if node.waits:
            place = right.first_after(of, at)
            after = right.time[place]
            # Of two at one distance the earlier is taken: the later one must come before that one's distance is past.
            is_nearer = (after != NEVER) & ((before_it == NEVER) | (after < due))
            partner, complete = np.where(is_nearer, right.source[place], behind), np.where(is_nearer, after, due)
            complete[fresh] = np.where(_unmatched(node, rows), at[fresh], complete[fresh])
        if close_at is not None:
            complete = np.minimum(complete, close_at)
        return cls(node, left, of, right, behind, partner, complete)

    def result(self, until: int) -> pl.DataFrame:
        """The rows that are complete by now."""
        node = self.node
        done = self.complete <= until
        if node.how == "inner":
            done &= self.partner != self.right.none
        at = np.flatnonzero(done)
        rows = [*self.left[at].get_columns(), *self.right.rows[self.partner[at]].get_columns()]
        names = (*node.left.schema.names, *node.right.schema.names)
        columns = [column.alias(name) for name, column in zip(names, rows, strict=True)]
        return pl.DataFrame([*columns, *([pl.Series(COMPLETE, self.complete[at])] if node.waits else [])])

    def left_over(self, before: KeptExtract, until: int) -> KeptExtract:
        """What later increments need of the partitions."""
        node, layout = self.node, layout_of(self.node)
        last, waiting, due = before.last, before.waiting, np.empty(0, dtype=np.int64)
        if layout.looks_back:
            place = self.right.ends()
            of = np.flatnonzero((place >= 0) & ~self.right.ended[self.right.source[place]])
            if node.within is not None:
                of = of[self.right.time[place[of]] + node.within > until]
            rows = self.right.rows[self.right.source[place[of]]]
            last = rows.insert_column(0, pl.Series(PARTITION, of))
        if node.waits:
            at = np.flatnonzero(self.complete > until)
            at = at[by_partition(self.of[at], np.arange(len(at)), len(before.partitions))]
            parts = [self.left[at], *([self.right.rows[self.behind[at]]] if layout.remembers else [])]
            waiting = pl.concat(parts, how="horizontal").insert_column(0, pl.Series(PARTITION, self.of[at]))
            due = self.complete[at]
        return KeptExtract(before.partitions, last, waiting, looks(node, len(before.partitions), last, waiting, due))


def _unmatched(node: AsOf, rows: pl.DataFrame) -> BoolArray:
    """Which left rows have a key that is NULL."""
    if not node.left_keys:
        return np.zeros(rows.height, dtype=np.bool_)
    return rows.select(pl.any_horizontal(pl.col(*node.left_keys).is_null())).to_series().to_numpy()


def remembered_times(waiting: pl.DataFrame, column: str) -> Int64Array:
    """The instants of what waiting rows remember, `NEVER` of nothing."""
    return waiting.get_column(column).fill_null(NEVER).to_numpy()


def deadlines(node: AsOf, at: Int64Array, behind: Int64Array) -> Int64Array:
    """When left rows are complete at the latest, `NEVER` where that is open: once what comes is further away than the
    limit, or than the row behind, which is none at `NEVER`.
    """
    if not node.waits:
        return at
    limit = np.full(len(at), NEVER) if node.within is None else at + node.within
    known = behind != NEVER
    return np.where(known, np.minimum(limit, 2 * at - np.where(known, behind, at)), limit)


def looks(node: AsOf, partitions: int, last: pl.DataFrame, waiting: pl.DataFrame, due: Int64Array) -> Int64Array:
    """When each partition has to be looked at although no row comes for it: a kept row is too old, or a waiting one
    due. What waits without a limit is looked at when there are no more rows.
    """
    layout, look = layout_of(node), np.full(partitions, NO_LOOK)
    if node.within is not None and last.height:
        time = last.get_column(layout.right_time).to_numpy()
        look[last.get_column(PARTITION).to_numpy()] = time + node.within
    np.minimum.at(look, waiting.get_column(PARTITION).to_numpy(), np.minimum(due, EVER))
    return look
