"""Sums of doubles per group, rounded once. The aggregates sum and avg of the embedded engine use them.

A sum is held as two doubles, some 106 binary digits: it agrees with the exact one to 1e-12 relative unless it is
smaller than its addends by a factor of about 1e19.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from tidegate.runtime.arrays import Float64Array
from tidegate.runtime.arrow_arrays import numbers_of

_LARGE, _SHRINK = 2.0**900, 2.0**-200
SUM_TYPE = pl.Struct({"sum": pl.Float64, "comp": pl.Float64})


def sum_lists(lists: pl.Series) -> pl.Series:
    """The sum of every list of doubles as `sum`, and its rounding error as `comp`. Lists hold no NULL; empty ones sum
    to NULL.

    Measured on 2M values: 40 ns a value in 1,000 groups, 270 ns in a million. A numba kernel took 9 and 20 ns, but
    gathering the lists costs more than either, and nothing has to be compiled here before the first batch.
    """
    array = lists.rechunk().to_arrow()
    offsets = numbers_of(array.offsets)
    counts = np.diff(offsets)
    filled = counts > 0
    total, comp = np.zeros(len(counts)), np.zeros(len(counts))
    if filled.any():
        values = numbers_of(array.values)[offsets[0] : offsets[-1]]
        total[filled], comp[filled] = segment_sums(values, (offsets[:-1] - offsets[0])[filled], counts[filled])
    # A list that holds nothing has no sum.
    nothing = pl.Series(~filled)
    sums = pl.DataFrame({"sum": total, "comp": comp}).with_columns(pl.when(~nothing).then(pl.all()))
    return sums.to_struct(lists.name)


def segment_sums(
    values: Float64Array, starts: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]
) -> tuple[Float64Array, Float64Array]:
    """Sums of adjacent non-empty segments: rounded sum and remainder, by error-free extraction.

    Adding and subtracting M = 1.5 * 2**k above every partial sum rounds each value to a multiple of one ulp of M, so
    the sum of the rounded parts is exact in any order. What rounding left over, smaller by 2**52 / count, is treated
    the same way once more, and what that leaves over is summed plainly. Of a segment with infinities or NaN these are
    summed alone, as finite values could be beyond all doubles on the way.
    """
    with np.errstate(all="ignore"):
        greatest = np.maximum.reduceat(np.abs(values), starts)
        finite = np.isfinite(greatest)
        if not finite.all():
            values = np.where(np.isfinite(values) & ~np.repeat(finite, counts), 0.0, values)
        # Near the largest double M would overflow: such a segment is summed at a smaller scale.
        scale = np.where((greatest > _LARGE) & finite, _SHRINK, 1.0)
        if (scale != 1.0).any():
            values, greatest = values * np.repeat(scale, counts), greatest * scale
        above = np.exp2(np.ceil(np.log2(greatest)) + np.ceil(np.log2(counts)) + 2)
        above = np.where(finite, above, 0.0)
        exact, rest = _extracted(values, above, starts, counts)
        # No value of the rest exceeds half an ulp of M.
        second, last = _extracted(rest, above * 2.0**-52 * np.exp2(np.ceil(np.log2(counts)) + 2), starts, counts)
        remainder = second + np.add.reduceat(last, starts)
        total = exact + remainder
        back = total - exact
        comp = (exact - (total - back)) + (remainder - back)
        total = np.where(finite, total, exact) / scale
        comp = np.where(np.isfinite(total), comp / scale, 0.0)
    return total, comp


def _extracted(
    values: Float64Array, above: Float64Array, starts: np.ndarray[Any, Any], counts: np.ndarray[Any, Any]
) -> tuple[Float64Array, Float64Array]:
    """The exact sums of the values' leading parts, and what is left of each value; `above` is a power of 2 per
    segment.
    """
    unit = np.repeat(1.5 * above, counts)
    rounded = (values + unit) - unit
    return np.add.reduceat(rounded, starts), values - rounded
