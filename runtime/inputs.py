"""What a run is given from outside, as engines hold it: static tables, instants, files."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections.abc import Mapping, Sequence
from typing import Any

import polars as pl
import pyarrow as pa

from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Schema, StreamDef
from tidegate.algebra.time import EPOCH, INF, Extended, instant_ticks
from tidegate.algebra.types import Kind
from tidegate.runtime.columns import Rows, raw, validate
from tidegate.runtime.sources import FileFormat, Files, Source


def instant_of(value: Any, stream: StreamDef, attribute: str) -> Extended:
    """Ticks of a progress value given by a user: a datetime, a date or an integer as the attribute's type wants, or ±inf."""
    kind = stream.schema[attribute].type.kind
    if isinstance(value, float) and value in (INF, -INF):
        return value
    if kind is Kind.TIMESTAMP and isinstance(value, dt.datetime):
        return instant_ticks(value)
    if kind is Kind.DATE and isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        return (value - EPOCH.date()).days
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    raise QueryError("TG403", f"{stream.name}.{attribute}: {value!r} is no instant of type {kind.value}")


def hold_static(stream: StreamDef, data: Any) -> pl.DataFrame:
    """A static table as it is held; a malformed row is an error, since nobody would see it in a quarantine."""
    if isinstance(data, Source):
        data = data.data
    if isinstance(data, Files):
        tables = [read_file(file.path, data.format, stream.schema) for file in data.found()]
        data = pa.concat_tables(tables, promote_options="permissive") if tables else []
    checked = validate(data, stream.schema)
    if checked.rejected.num_rows:
        first = checked.rejected.to_pylist()[0]
        raise QueryError(
            "TG404",
            f"table {stream.name}: {checked.rejected.num_rows} malformed rows; row {first['position']}: "
            f"{first['attribute']} is {first['value']!r} ({first['reason']})",
            hint="mend the table, or declare the attribute's type so that it fits",
        )
    return pl.DataFrame(checked.accepted)


def input_table(data: Rows, schema: Schema) -> pa.Table:
    """A frame or rows as an Arrow table, unjudged: values without a common type become text, to be judged later."""
    source = raw(data, schema)
    columns = {}
    for name, column in source.columns.items():
        try:
            columns[name] = column if isinstance(column, pa.Array) else pa.array(column)
        except (pa.ArrowInvalid, pa.ArrowTypeError, OverflowError):
            columns[name] = pa.array([None if value is None else str(value) for value in column], pa.string())
    return pa.table(columns)


def static_digest(frame: pl.DataFrame) -> str:
    """A hash of a static table's content: another table makes another program."""
    digest = hashlib.blake2s(digest_size=16)
    for batch in frame.to_arrow(compat_level=pl.CompatLevel.oldest()).combine_chunks().to_batches():
        digest.update(batch.serialize())
    return digest.hexdigest()


def read_file(path: str, format_: FileFormat, schema: Schema, extra: Mapping[str, str] | None = None) -> pa.Table:
    """The needed columns of a Parquet, CSV or JSON-lines file as they stand there; text is judged row by row later."""
    try:
        return _read_file(path, format_, [*schema.names, *(extra or {}).values()])
    except (pa.ArrowException, pl.exceptions.PolarsError, OSError) as error:
        raise QueryError(
            "TG412",
            f"{path} cannot be read as {format_}: {error}",
            hint="mend the file or move it away; the batch is then repeated without it",
        ) from error


def _read_file(path: str, format_: FileFormat, wanted: Sequence[str]) -> pa.Table:
    match format_:
        case "parquet":
            import pyarrow.parquet as pq

            with pq.ParquetFile(path) as file:
                return file.read(columns=[name for name in file.schema_arrow.names if name in wanted])
        case "csv":
            from pyarrow import csv

            types = dict.fromkeys(wanted, pa.string())
            options = csv.ConvertOptions(column_types=types, strings_can_be_null=True, null_values=[""])
            return csv.read_csv(path, convert_options=options)
        case "json":
            return pl.read_ndjson(path, infer_schema_length=None).to_arrow()
