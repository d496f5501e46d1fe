"""Whether two results are the same rows."""

from __future__ import annotations

import numpy as np
import polars as pl


def same(name: str, found: pl.DataFrame, expected: pl.DataFrame) -> bool:
    """Whether two results are equal as bags, doubles up to rounding."""
    expected = expected.select(pl.col(c).cast(found.schema[c]) for c in found.columns)
    order = [column for column in found.columns if found.schema[column] != pl.Float64]
    one, other = found.sort(order), expected.sort(order)
    equal = one.height == other.height and all(_same_column(one[c], other[c]) for c in found.columns)
    if not equal:
        print(f"  {name}: RESULTS DIFFER ({one.height} rows against {other.height})")
    return equal


def same_until(name: str, found: pl.DataFrame, expected: pl.DataFrame, instant: str) -> bool:
    """Whether results are equal up to the last instant found, which is in the later half of those expected."""
    last, first, end = found[instant].max(), expected[instant].min(), expected[instant].max()
    if last is None or 2 * (last - first) < end - first:  # type: ignore[operator]  # instants, if there is any
        print(f"  {name}: RESULTS ARE MISSING ({found.height} rows of {expected.height}, until {last!r} of {end!r})")
        return False
    return same(name, found, expected.filter(pl.col(instant) <= last))


def _same_column(one: pl.Series, other: pl.Series) -> bool:
    if one.dtype != pl.Float64:
        return one.equals(other)
    return bool(np.allclose(one.to_numpy(), other.to_numpy(), rtol=1e-9, atol=1e-9))
