"""Integers in the order of values, by which compiled kernels compare any of them."""

from __future__ import annotations

import numpy as np
import polars as pl

from tidegate.algebra.types import DataType, Kind
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.columns import without_null


def order_keys(rows: pl.Series, type_: DataType) -> Int64Array:
    """Integers that are in the order of the values, NaN last; of NULL anything."""
    match type_.kind:
        case Kind.DOUBLE:
            values = without_null(rows, 0.0).to_numpy() + 0.0  # -0.0 equals 0.0
            bits = values.view(np.int64)
            keys = np.where(bits < 0, bits ^ np.int64((1 << 63) - 1), bits)
            return np.where(np.isnan(values), np.int64((1 << 63) - 1), keys)
        case Kind.STRING:
            return rows.rank("dense").cast(pl.Int64).fill_null(0).to_numpy()
        case _:
            return without_null(rows.cast(pl.Int64), 0).to_numpy()
