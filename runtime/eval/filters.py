"""Filters that do no more than they must: conditions of the analysis ask no Polars, and where all rows stay none is
copied.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from types import MappingProxyType
from typing import Any, Final

import numpy as np
import polars as pl

from tidegate.algebra.terms import Attr, Call, Lit, Term, attributes_of
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.rows import Array, SmallRows, Unsupported, array_of

#: Fewer rows are copied sooner than their condition is looked at.
_MANY = 1 << 14
#: More rows are compared by Polars, on all cores; fewer are sooner than a query is made of their condition.
_MOST = 1 << 18
_COMPARED: Final[Mapping[str, Callable[[Any, Any], Any]]] = MappingProxyType(
    {"lt": np.less, "le": np.less_equal, "gt": np.greater, "ge": np.greater_equal}
)


def kept(frame: pl.DataFrame, condition: pl.Expr, *, view: bool = False) -> pl.DataFrame:
    """The rows for which a condition is true. The frame itself is returned where it is true of all.

    With `view`, rows that stand together are a slice of the frame, which holds the memory of all; for what is kept only
    a short time. Rows in order of time that are beyond an instant, or up to one, stand together.
    """
    if frame.height < _MANY:
        return frame.filter(condition)
    holds = frame.select(condition.fill_null(value=False).alias("")).to_series()
    if len(holds) != frame.height:  # one value for all rows
        return frame.filter(condition)
    return where(frame, holds.to_numpy(), view=view)


def where(frame: pl.DataFrame, mask: BoolArray, *, view: bool = False) -> pl.DataFrame:
    """The rows at which a mask is set; the frame itself where it is at all of them. `view` is that of `kept`."""
    count = int(np.count_nonzero(mask))
    if count == frame.height:
        return frame
    if view and count:
        first = int(mask.argmax())
        if mask[first : first + count].all():
            return frame.slice(first, count)
    # To copy few by their places takes half of the time.
    return frame[np.flatnonzero(mask)] if 4 * count < frame.height else frame.filter(pl.Series(mask))


def some_of(frame: pl.DataFrame, places: Int64Array) -> pl.DataFrame:
    """The rows at places that ascend; the frame itself where it has no others."""
    return frame if len(places) == frame.height else frame[places]


def holding(rows: SmallRows, condition: Term) -> SmallRows:
    """The rows for which a condition of the analysis holds. Such conditions compare shifted instants.

    It speaks of other numbers in every batch, so it is not compiled. `Unsupported` for any other condition.
    """
    mask = _holds(condition, rows.columns)
    if isinstance(mask, np.ndarray):
        return rows.where(mask)
    return rows if mask else rows.take(np.empty(0, dtype=np.int64))


def mask_of(frame: pl.DataFrame, condition: Term) -> BoolArray:
    """The mask of a frame's rows for which a condition of the analysis holds. `Unsupported` for another condition,
    where a value is missing, and for very many rows.
    """
    if frame.height > _MOST:
        raise Unsupported
    columns = {name: frame.get_column(name) for name in attributes_of(condition)}
    if any(column.dtype != pl.Int64 for column in columns.values()):
        raise Unsupported
    mask = np.asarray(_holds(condition, {name: array_of(column) for name, column in columns.items()}), dtype=np.bool_)
    return mask if mask.ndim else np.full(frame.height, mask)


def holds_throughout(condition: Term, frame: pl.DataFrame) -> bool:
    """Whether the least and greatest values of the columns prove that a condition of the analysis holds for every row.

    False says nothing. Columns are of integers; one with NULLs shows nothing.
    """
    match condition:
        case Lit(bool(value)):
            return value
        case Call("and", args):
            return all(holds_throughout(arg, frame) for arg in args)
        case Call("or", args):
            return any(holds_throughout(arg, frame) for arg in args)
        case Call("lt" | "le" as op, (left, right)):
            below, above = _extreme(left, frame, greatest=True), _extreme(right, frame, greatest=False)
        case Call("gt" | "ge" as op, (left, right)):
            below, above = _extreme(right, frame, greatest=True), _extreme(left, frame, greatest=False)
        case _:
            return False
    if below is None or above is None:
        return False
    return below < above or (below == above and op in ("le", "ge"))


def _extreme(term: Term, frame: pl.DataFrame, *, greatest: bool) -> int | None:
    """An instant that bounds all rows from above or below; None where the bounds do not show it."""
    match term:
        case Lit(int(value)):
            return value
        case Attr(name) if frame.schema[name] == pl.Int64 and not frame.get_column(name).null_count():
            column = frame.get_column(name)
            extreme = column.max() if greatest else column.min()
            return extreme if isinstance(extreme, int) else None
        case Call("add", (left, right)):
            parts = _extreme(left, frame, greatest=greatest), _extreme(right, frame, greatest=greatest)
            return None if parts[0] is None or parts[1] is None else parts[0] + parts[1]
        case _:
            return None


def _holds(condition: Term, columns: Mapping[str, Array]) -> Any:
    match condition:
        case Lit(bool(value)):
            return value
        case Call("and" | "or" as op, args):
            combine = np.logical_and if op == "and" else np.logical_or
            return reduce(combine, [_holds(arg, columns) for arg in args])
        case Call("lt" | "le" | "gt" | "ge" as op, (left, right)):
            return _COMPARED[op](_instant(left, columns), _instant(right, columns))
        case _:
            raise Unsupported


def _instant(term: Term, columns: Mapping[str, Array]) -> Any:
    match term:
        case Attr(name):
            return columns[name]
        case Lit(int(value)):
            return value
        case Call("add", (left, right)):
            return _instant(left, columns) + _instant(right, columns)
        case _:
            raise Unsupported
