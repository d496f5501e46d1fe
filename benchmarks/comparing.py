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


def contained(name: str, found: pl.DataFrame, expected: pl.DataFrame, keys: list[str], *, least: float) -> bool:
    """Whether the rows found are those expected for their keys, and at least so large a part of all."""
    wanted = expected.join(found.select(keys), on=keys, how="semi")
    if found.height < least * expected.height:
        print(f"  {name}: RESULTS ARE MISSING ({found.height} rows of {expected.height})")
        return False
    return same(name, found, wanted)


def _same_column(one: pl.Series, other: pl.Series) -> bool:
    if one.dtype != pl.Float64:
        return one.equals(other)
    return bool(np.allclose(one.to_numpy(), other.to_numpy(), rtol=1e-9, atol=1e-9))
