"""Columns between users and engines: how each data type is stored, and how users see it.

Inside every engine instants, dates, durations and decimals are int64 (`algebra.types`). Outside they are Arrow's
timestamp[us, UTC], date32, int64 microseconds and decimal128. Sources convert once on the way in (`validation`), sinks
once on the way out.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, assert_never

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Schema
from tidegate.algebra.types import DataType, Kind
from tidegate.runtime.arrays import BoolArray

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import types as spark_types

USER_TIMESTAMP = pa.timestamp("us", tz="UTC")
_EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)
_ARROW_TYPES: Final[dict[Kind, pa.DataType]] = {
    Kind.BOOLEAN: pa.bool_(),
    Kind.BIGINT: pa.int64(),
    Kind.DOUBLE: pa.float64(),
    Kind.STRING: pa.string(),
}


# --- types ------------------------------------------------------------------------------------------------------------


def held_arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type in which engines store values of a type."""
    return _ARROW_TYPES[type_.held_as]


def user_arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type in which users see values of a type; a duration is its microseconds, an int64."""
    match type_.kind:
        case Kind.TIMESTAMP:
            return USER_TIMESTAMP
        case Kind.DATE:
            return pa.date32()
        case Kind.DECIMAL:
            return pa.decimal128(type_.precision, type_.scale)
        case Kind.BOOLEAN | Kind.DOUBLE | Kind.STRING | Kind.NULL | Kind.BIGINT | Kind.DURATION:
            return held_arrow_type(type_)
        case _:
            assert_never(type_.kind)


def held_arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([pa.field(a.name, held_arrow_type(a.type)) for a in schema.attributes])


@lru_cache(maxsize=1024)
def user_arrow_schema(schema: Schema) -> pa.Schema:
    return pa.schema([pa.field(a.name, user_arrow_type(a.type), nullable=a.nullable) for a in schema.attributes])


def user_rows(table: pa.Table) -> list[dict[str, Any]]:
    """Rows as Python values; `QueryError` TG405 for an instant outside the range of Python's datetime."""
    try:
        columns = [_python_values(column) for column in table.columns]
    except (OverflowError, ValueError) as error:
        raise QueryError(
            "TG405",
            f"an instant among the results is beyond the years 1 to 9999 of Python's datetime ({error})",
            hint="read them as a table, which can hold it",
        ) from None
    names = table.column_names
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _python_values(column: pa.ChunkedArray) -> list[Any]:
    """The values of a column. Arrow loads pandas for instants, where it is installed."""
    if column.type != USER_TIMESTAMP:
        values: list[Any] = column.to_pylist()
        return values
    ticks = column.cast(pa.int64()).to_pylist()
    return [None if tick is None else _EPOCH + dt.timedelta(microseconds=tick) for tick in ticks]


def polars_type(type_: DataType) -> pl.DataType:
    """The Polars type in which the embedded engine holds values of a type."""
    from tidegate.runtime.eval.terms import held_type

    return held_type(type_)


def polars_schema(schema: Schema) -> pl.Schema:
    import polars as pl

    return pl.Schema({a.name: polars_type(a.type) for a in schema.attributes})


def only(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The frame with the columns of these names in this order, without a copy where it has just them."""
    wanted = list(names)
    return frame if frame.columns == wanted else frame[:, wanted]


def without_null(column: pl.Series, value: float) -> pl.Series:
    """A column with a value in the place of NULL; itself where there is none.

    To fill nothing takes ten times as long as to add.
    """
    return column.fill_null(value) if column.null_count() else column


def stored_arrow_schema(schema: Schema) -> pa.Schema:
    """The columns of segments, with large strings, as every reader here understands them."""
    import polars as pl

    return pl.DataFrame(schema=polars_schema(schema)).to_arrow(compat_level=pl.CompatLevel.oldest()).schema


def spark_type(type_: DataType) -> spark_types.DataType:
    """The Spark type in which the Spark engine holds values of a type."""
    from pyspark.sql import types as t

    types: dict[Kind, t.DataType] = {
        Kind.BOOLEAN: t.BooleanType(),
        Kind.BIGINT: t.LongType(),
        Kind.DOUBLE: t.DoubleType(),
        Kind.STRING: t.StringType(),
    }
    return types[type_.held_as]


def spark_schema(schema: Schema) -> spark_types.StructType:
    """The held schema as a Spark struct; every field nullable, as files and joins give them."""
    from pyspark.sql import types as t

    return t.StructType([t.StructField(a.name, spark_type(a.type)) for a in schema.attributes])


# --- out --------------------------------------------------------------------------------------------------------------


def to_user_table(table: pa.Table, schema: Schema) -> pa.Table:
    """A held table as users see it: same rows, columns in the schema's order and its users' types."""
    seen = user_arrow_schema(schema)
    columns = [
        column if column.type == field.type else user_column(column, a.type)
        for a, field, column in zip(schema.attributes, seen, map(table.column, schema.names), strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=seen)


def user_column(column: pa.Array | pa.ChunkedArray, type_: DataType) -> pa.Array:
    """A held column as users see it."""
    column = one_array(column)
    match type_.kind:
        case Kind.TIMESTAMP:
            return column.cast(pa.int64()).view(USER_TIMESTAMP)
        case Kind.DATE:
            return column.cast(pa.int32()).view(pa.date32())
        case Kind.DECIMAL:
            return _decimals(column.cast(pa.int64()), type_)
        case Kind.BOOLEAN | Kind.DOUBLE | Kind.STRING | Kind.NULL | Kind.BIGINT | Kind.DURATION:
            return column.cast(user_arrow_type(type_))
        case _:
            assert_never(type_.kind)


def _decimals(unscaled: pa.Array, type_: DataType) -> pa.Array:
    """Unscaled int64 as decimal128: its two little-endian words are the value and its sign."""
    values = np.asarray(unscaled.fill_null(0))
    words = np.empty((len(values), 2), dtype=np.int64)
    words[:, 0], words[:, 1] = values, values >> 63
    wide = pa.Array.from_buffers(pa.decimal128(type_.precision, type_.scale), len(values), [None, pa.py_buffer(words)])
    return pc.if_else(unscaled.is_valid(), wide, None) if unscaled.null_count else wide


def one_array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array of a column, dictionaries decoded."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def as_mask(array: pa.Array) -> BoolArray:
    """Truth values as NumPy has them; there is no NULL among them. `to_numpy` of Arrow would load pandas."""
    mask: BoolArray = pl.Series(array).to_numpy()
    return mask
