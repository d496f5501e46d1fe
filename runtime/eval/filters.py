"""Filters that copy no rows where the condition holds for all of them."""

from __future__ import annotations

import polars as pl

#: Fewer rows are copied sooner than their condition is looked at.
_MANY = 1 << 14


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
    count = int(holds.sum())
    if count == frame.height:
        return frame
    if view and count:
        first = holds.arg_max() or 0
        if holds.slice(first, count).all():
            return frame.slice(first, count)
    return frame.filter(holds)
