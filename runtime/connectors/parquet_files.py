"""Columns of a Parquet file as Arrow has them, read by the quicker reader for each type."""

from __future__ import annotations

import os
from collections.abc import Sequence

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from tidegate.algebra.types import INT64_MAX
from tidegate.runtime.arrays import Int64Array

#: Fewer rows of a file are read sooner by one thread: 50 of them in 0.15 ms instead of 0.28.
_FEW_ROWS = 10_000


def read_parquet(path: str, wanted: Sequence[str]) -> pa.Table:
    """Those of the wanted columns that the file has.

    INT96 is how Spark writes timestamps unless told otherwise; its days and nanoseconds reach further than 64 bits.
    Counted in microseconds such an instant may wrap, in seconds it can not; the two differ exactly for those out of
    range.
    """
    opened = os.stat(path)
    with pq.ParquetFile(path, coerce_int96_timestamp_unit="us") as file:
        schema = file.schema_arrow
        leaves = map(file.schema.column, range(len(file.schema)))
        int96 = {
            leaf.name for leaf in leaves if leaf.physical_type == "INT96" and leaf.name == leaf.path
        }  # of no struct
        names = [name for name in schema.names if name in wanted]
        rows = file.metadata.num_rows
        if len(set(names)) < len(names):
            return file.read(columns=names)  # which of two is meant is for the user to say
        quick = _read_quickly(path, schema, set(names) - int96, rows) if rows > _FEW_ROWS else {}
        if quick and not os.path.samestat(opened, os.stat(path)):
            quick = {}  # another file meanwhile, of which Arrow has not read the rest
        others = [name for name in names if name not in quick]
        table = file.read(columns=others, use_threads=rows > _FEW_ROWS) if others or not quick else pa.table({})
    wide = [name for name in others if name in int96]
    if wide:
        with pq.ParquetFile(path, coerce_int96_timestamp_unit="s") as file:
            seconds = file.read(columns=wide)
        for name in wide:
            ticks, given = _counts(table.column(name)), seconds.column(name).is_valid()
            wrapped = pa.array(ticks // 1_000_000 != _counts(seconds.column(name)))
            instants = pc.if_else(given, pc.if_else(wrapped, pa.scalar(INT64_MAX), pa.array(ticks)), None)
            table = table.set_column(table.column_names.index(name), name, instants.cast(pa.timestamp("us")))
    if not quick:
        return table
    columns = [quick[name] if name in quick else table.column(name) for name in names]
    return pa.Table.from_arrays(columns, schema=pa.schema([schema.field(name) for name in names]))


def _read_quickly(path: str, schema: pa.Schema, wanted: set[str], rows: int) -> dict[str, pa.ChunkedArray]:
    """Columns of numbers, truth values and instants as Polars reads them, the dictionaries and runs of long files in a
    quarter of the time; none of them where it cannot read one or sees another type in it, and Arrow is asked."""
    plain = {field.name: field.type for field in schema if field.name in wanted and _is_plain(field.type)}
    if not plain or any("tz=" in str(field.type).replace("tz=UTC", "") for field in schema):  # zones it may not know
        return {}
    try:
        frame = pl.read_parquet(path, columns=list(plain), glob=False, hive_partitioning=False)
        table = frame.to_arrow()
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError):
        return {}
    as_expected = table.num_rows == rows and {field.name: field.type for field in table.schema} == plain
    return {name: table.column(name) for name in plain} if as_expected else {}


def _is_plain(type_: pa.DataType) -> bool:
    t = pa.types
    if t.is_timestamp(type_):
        return type_.unit != "s" and type_.tz in (None, "UTC")
    return bool(t.is_boolean(type_) or t.is_integer(type_) or t.is_float32(type_) or t.is_float64(type_))


def _counts(instants: pa.ChunkedArray) -> Int64Array:
    return np.asarray(instants.cast(pa.int64()).fill_null(0))
