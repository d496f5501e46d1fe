"""Arrow arrays of Python's and NumPy's values, made without `pyarrow.array`: that loads pandas where it is installed,
which takes a third of a second, to ask whether the values are its.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa

_POLARS: Final = {
    pa.bool_(): pl.Boolean,
    pa.int64(): pl.Int64,
    pa.float64(): pl.Float64,
    pa.string(): pl.String,
    pa.large_string(): pl.String,
}
_LEAST, _MOST = -(2**63), 2**63 - 1


def array_of_values(values: Sequence[object], type_: pa.DataType) -> pa.Array:
    """Truth values, integers, doubles or texts, and None; all of them values of the type, `ValueError` for others."""
    try:
        if type_ == pa.int64() and any(value is not None and not _LEAST <= value <= _MOST for value in values):  # type: ignore[operator]
            raise OverflowError  # of one with thousands of digits Polars writes to standard error
        array = pl.Series(values, dtype=_POLARS[type_]).to_arrow()
    except (TypeError, OverflowError) as error:
        raise ValueError(f"values are not of type {type_}") from error
    return array if array.type == type_ else array.cast(type_)


def array_of_numbers(column: np.ndarray[Any, Any]) -> pa.Array:
    """An array of numbers or truth values, none of them missing; of numbers no copy."""
    plain = np.packbits(column, bitorder="little") if column.dtype == np.bool_ else np.ascontiguousarray(column)
    return pa.Array.from_buffers(pa.from_numpy_dtype(column.dtype), len(column), [None, pa.py_buffer(plain)])


def numbers_of(column: pa.Array) -> np.ndarray[Any, Any]:
    """The values of an array of numbers, none of them missing, without a copy."""
    return np.frombuffer(column.buffers()[1], column.type.to_pandas_dtype())[
        column.offset : column.offset + len(column)
    ]


def empty_table(schema: pa.Schema) -> pa.Table:
    """A table without rows."""
    return pa.Table.from_arrays([pa.nulls(0, field.type) for field in schema], schema=schema)
