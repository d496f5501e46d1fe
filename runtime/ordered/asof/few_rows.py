"""Increments with few right rows, or none: rows that look back find their partners by NumPy, without frames."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
import polars as pl

from tidegate.algebra.ordered.asof import AsOf
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.columns import only
from tidegate.runtime.eval.small.increment import small_mask
from tidegate.runtime.kernels.asof.places import first_from
from tidegate.runtime.ordered.asof.kept import KeptExtract, KeptRows
from tidegate.runtime.ordered.partition_store import NO_LOOK
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.rows import Array, Rows, SmallRows, Unsupported, as_frame, rows_where, series


@dataclass(frozen=True, slots=True)
class FewRightRows:
    """New right rows in order of partition and time: `partitions[p]` has those from `offsets[p]` to `offsets[p + 1]`,
    row i at `time[i]`. After it its key has none if it has `ended`.
    """

    node: AsOf
    rows: SmallRows
    partitions: Int64Array
    offsets: Int64Array
    time: Int64Array
    ended: BoolArray

    @classmethod
    def of(cls, node: AsOf, state: KeptRows, rows: SmallRows) -> FewRightRows:
        """`Unsupported` where nothing says which of them comes first."""
        keys = {key: rows.columns[its] for key, its in zip(node.left_keys, node.right_keys, strict=True)}
        of = state.partitions.assign(SmallRows(keys, rows.height)).astype(np.int64)
        order = _in_order(of, rows.columns[node.right_time], None if node.tie is None else rows.columns[node.tie])
        rows, of = rows.take(order), of[order]
        partitions, first = np.unique(of, return_index=True)
        ended = np.zeros(rows.height, dtype=np.bool_)
        if node.ended is not None:
            ended = small_mask(node.ended, node.right.schema)(rows)
        return cls(node, rows, partitions, np.append(first, rows.height), rows.columns[node.right_time], ended)

    def last_before(self, of: Int64Array, at: Int64Array) -> Int64Array:
        """The last of the rows in partition `of[i]` that is not after the instant `at[i]`; -1: none."""
        found = np.full(len(of), -1)
        if not self.rows.height:
            return found
        among = np.minimum(np.searchsorted(self.partitions, of), len(self.partitions) - 1)
        here = np.flatnonzero(self.partitions[among] == of)
        places = first_from(self.offsets, self.time, among[here], at[here], not self.node.strict) - 1
        found[here] = np.where(places < self.offsets[among[here]], -1, places)
        return found

    def made_of(self, state: KeptRows) -> tuple[KeptExtract, KeptExtract]:
        """What the operator keeps of their partitions, before and after. Of what was before only places are known."""
        nothing = state.nothing()
        if not len(self.partitions):
            return nothing, nothing
        look = np.full(len(self.partitions), NO_LOOK)
        had = np.flatnonzero(state.last_rows.heights(self.partitions))
        ends = self.offsets[1:] - 1
        has = np.flatnonzero(~self.ended[ends])
        kept = self.rows.take(ends[has])
        last = [series(state.layout.column(name), kept.columns[name]) for name in self.node.right.schema.names]
        before = pl.DataFrame([pl.Series(PARTITION, had)]), nothing.waiting, look, state.version
        after = pl.DataFrame([pl.Series(PARTITION, has), *last]), nothing.waiting, look, state.version
        return KeptExtract(self.partitions, *before), KeptExtract(self.partitions, *after)


def _in_order(of: Int64Array, time: Int64Array, tie: Array | None) -> Int64Array:
    """Rows in order of partition, time and tie; `Unsupported` where two have the same."""
    order = np.lexsort((time, of))
    if _has_same(of[order], time[order]):
        if tie is None:
            raise Unsupported
        place = np.unique(tie, return_inverse=True)[1]
        order = np.lexsort((place, time, of))
        if _has_same(of[order], time[order], place[order]):
            raise Unsupported
    return order


def _has_same(*columns: Int64Array) -> bool:
    """Whether one row is as the one before it in all columns."""
    same = [column[1:] == column[:-1] for column in columns]
    return bool(np.logical_and.reduce(same).any())


def with_rows_behind(node: AsOf, state: KeptRows, left: Rows, right: FewRightRows) -> Rows:
    """Left rows with the last right row behind them: a new one, or the one that is kept of their keys. They are arrays
    where no value is NULL.

    Left keys without a right row have numbers until the store is renumbered, at some thousand of them or twice as many
    as are held.
    """
    of = state.partitions.assign(left).astype(np.int64)
    state.every()
    at = left.columns[node.left_time] if isinstance(left, SmallRows) else left.get_column(node.left_time).to_numpy()
    new = right.last_before(of, at)
    is_new, known = new >= 0, state.last_rows.heights(of) > 0
    known[is_new] = ~right.ended[new[is_new]]
    if node.how == "inner" and not known.all():
        left, of, new, is_new = rows_where(left, known), of[known], new[known], is_new[known]
        known = known[known]
    names, stored = node.right.schema.names, [*state.layout.right]
    if isinstance(left, SmallRows) and known.all():
        with suppress(Unsupported):
            kept = state.last_rows.last_arrays(of[~is_new], stored)
            new_ones = (right.rows.columns[name][new[is_new]] for name in names)
            its = {name: _placed(is_new, *both) for name, *both in zip(names, new_ones, kept, strict=True)}
            return SmallRows({**left.only(node.left.schema.names).columns, **its}, left.height)
    columns = [its.alias(name) for its, name in zip(state.last_rows.last_of_each(of, stored), names, strict=True)]
    if is_new.any():
        fresh = right.rows.take(np.where(is_new, new, 0)).frame()
        has, has_none = pl.Series(is_new & known), pl.Series(is_new & ~known)
        columns = [fresh.get_column(its.name).zip_with(has, its.set(has_none, None)) for its in columns]
    return pl.DataFrame([*only(as_frame(left), node.left.schema.names), *columns])


def _placed(is_first: BoolArray, first: Array, second: Array) -> Array:
    """Values of one array where that is so, else of another, in order."""
    if len(second) == len(is_first):
        return second
    values = np.empty(len(is_first), dtype=second.dtype)
    values[is_first], values[~is_first] = first, second
    return values
