"""Sums of doubles per group, rounded once: the kernel behind sum and avg in the embedded engine."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

_Doubles = np.ndarray[Any, np.dtype[np.float64]]

_LARGE, _SHRINK = 2.0**900, 2.0**-200
SUM_TYPE = pl.Struct({"sum": pl.Float64, "comp": pl.Float64})


def sum_lists(lists: pl.Series) -> pl.Series:
    """The sum of every list of doubles (without NULLs) as `sum` and what rounding it lost, `comp`; of none, NULL.

    Measured on 2M values: 20 ns a value for any number of groups; the same splitting as Polars expressions inside a
    grouping costs 50 ns with 1,000 groups and 1,600 ns with a million.
    """
    array = lists.rechunk().to_arrow()
    offsets = np.asarray(array.offsets)
    counts = np.diff(offsets)
    filled = counts > 0
    total, comp = np.zeros(len(counts)), np.zeros(len(counts))
    if filled.any():
        values = np.asarray(array.values)[offsets[0] : offsets[-1]]
        total[filled], comp[filled] = segment_sums(values, (offsets[:-1] - offsets[0])[filled], counts[filled])
    # A list that holds nothing has no sum.
    nothing = pl.Series(~filled)
    sums = pl.DataFrame({"sum": total, "comp": comp}).with_columns(pl.when(~nothing).then(pl.all()))
    return sums.to_struct(lists.name)


def segment_sums(
    values: _Doubles, starts: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]
) -> tuple[_Doubles, _Doubles]:
    """Sums of adjacent non-empty segments: rounded sum and remainder, a two-level error-free extraction.

    Adding and subtracting M = 1.5 * 2**k above every partial sum rounds each value to a multiple of one ulp of M, so the
    sum of the rounded parts is exact in any order; what rounding left over is smaller by 2**52 / count and summed apart.
    A segment with an infinity or NaN is summed plainly.
    """
    with np.errstate(all="ignore"):
        greatest = np.maximum.reduceat(np.abs(values), starts)
        # Near the largest double M would overflow: such a segment is summed at a smaller scale.
        scale = np.where((greatest > _LARGE) & np.isfinite(greatest), _SHRINK, 1.0)
        if (scale != 1.0).any():
            values, greatest = values * np.repeat(scale, counts), greatest * scale
        unit = 1.5 * np.exp2(np.ceil(np.log2(greatest)) + np.ceil(np.log2(counts)) + 2)
        unit = np.repeat(np.where(np.isfinite(unit), unit, 0.0), counts)
        rounded = (values + unit) - unit
        exact = np.add.reduceat(rounded, starts)
        rest = np.add.reduceat(values - rounded, starts)
        total = exact + rest
        back = total - exact
        comp = (exact - (total - back)) + (rest - back)
        total = np.where(np.isfinite(greatest), total, exact) / scale
        comp = np.where(np.isfinite(total), comp / scale, 0.0)
    return total, comp
