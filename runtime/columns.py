"""Columns between users and engines: how each data type is held inside, and how it looks outside.

Inside every engine instants, dates, durations and decimals are int64 (`algebra.types`). Outside they are Arrow's
timestamp[us, UTC], date32, int64 microseconds and decimal128. Sources convert once on the way in, row by row where a
value is malformed, sinks once on the way out.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, assert_never

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.shown import shown
from tidegate.algebra.types import INT64_MAX, MAX_INSTANT, DataType, Kind
from tidegate.runtime.rejected_text import value_text
from tidegate.runtime.values import INEXACT, MISSING, NULL, OUT_OF_RANGE, Malformed, Unreadable, held_value

if TYPE_CHECKING:
    import polars as pl
    from pyspark.sql import types as spark_types

USER_TIMESTAMP = pa.timestamp("us", tz="UTC")
REJECTED_SCHEMA = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("attribute", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("value", pa.string()),
    ]
)


# --- types ------------------------------------------------------------------------------------------------------------


def held_arrow_type(type_: DataType) -> pa.DataType:
    """The Arrow type in which engines hold values of a type; a NULL of no type counts as an integer."""
    match type_.kind:
        case Kind.BOOLEAN:
            return pa.bool_()
        case Kind.DOUBLE:
            return pa.float64()
        case Kind.STRING:
            return pa.string()
        case Kind.BIGINT | Kind.TIMESTAMP | Kind.DATE | Kind.DURATION | Kind.DECIMAL | Kind.NULL:
            return pa.int64()
        case _:
            assert_never(type_.kind)


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
    """Rows as Python values; `QueryError` TG405 where there is an instant that Python's datetime cannot say."""
    try:
        rows: list[dict[str, Any]] = table.to_pylist()
    except (OverflowError, ValueError) as error:
        raise QueryError(
            "TG405",
            f"an instant among the results is beyond the years 1 to 9999 of Python's datetime ({error})",
            hint="read them as a table, which can hold it",
        ) from None
    return rows


def polars_type(type_: DataType) -> pl.DataType:
    """The Polars type in which the embedded engine holds values of a type."""
    from tidegate.runtime.embedded.terms import held_type

    return held_type(type_)


def polars_schema(schema: Schema) -> pl.Schema:
    import polars as pl

    return pl.Schema({a.name: polars_type(a.type) for a in schema.attributes})


def only(frame: pl.DataFrame, names: Sequence[str]) -> pl.DataFrame:
    """The columns of these names in this order; the frame itself where it has just them."""
    wanted = list(names)
    return frame if frame.columns == wanted else frame[:, wanted]


def stored_arrow_schema(schema: Schema) -> pa.Schema:
    """The columns of segments, with large strings, as every reader here understands them."""
    import polars as pl

    return pl.DataFrame(schema=polars_schema(schema)).to_arrow(compat_level=pl.CompatLevel.oldest()).schema


def spark_type(type_: DataType) -> spark_types.DataType:
    """The Spark type in which the Spark engine holds values of a type."""
    from pyspark.sql import types as t

    match type_.kind:
        case Kind.BOOLEAN:
            return t.BooleanType()
        case Kind.DOUBLE:
            return t.DoubleType()
        case Kind.STRING:
            return t.StringType()
        case Kind.BIGINT | Kind.TIMESTAMP | Kind.DATE | Kind.DURATION | Kind.DECIMAL | Kind.NULL:
            return t.LongType()
        case _:
            assert_never(type_.kind)


def spark_schema(schema: Schema) -> spark_types.StructType:
    """The held schema as a Spark struct; every field nullable, as files and joins give them."""
    from pyspark.sql import types as t

    return t.StructType([t.StructField(a.name, spark_type(a.type)) for a in schema.attributes])


# --- out --------------------------------------------------------------------------------------------------------------


def to_user_table(table: pa.Table, schema: Schema) -> pa.Table:
    """A held table as users see it: same rows, columns in the schema's order and its users' types."""
    seen = user_arrow_schema(schema)
    columns = [
        column if column.type == field.type else _user_column(column, a.type)
        for a, field, column in zip(schema.attributes, seen, map(table.column, schema.names), strict=True)
    ]
    return pa.Table.from_arrays(columns, schema=seen)


def _user_column(column: pa.Array | pa.ChunkedArray, type_: DataType) -> pa.Array:
    column = _array(column)
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
    made = pa.Array.from_buffers(pa.decimal128(type_.precision, type_.scale), len(values), [None, pa.py_buffer(words)])
    return pc.if_else(unscaled.is_valid(), made, None) if unscaled.null_count else made


def _unscaled(decimals: pa.Array) -> tuple[pa.Array, np.ndarray[Any, np.dtype[np.bool_]]]:
    """The unscaled values of a decimal128 array as int64, and which of them fit (NULLs do)."""
    words = np.frombuffer(decimals.buffers()[1], dtype=np.int64)[
        2 * decimals.offset : 2 * (decimals.offset + len(decimals))
    ]
    low, high = words[0::2].copy(), words[1::2]
    valid = _mask(decimals.is_valid())
    return pa.array(low, mask=~valid), (high == low >> 63) | ~valid


def _array(column: pa.Array | pa.ChunkedArray) -> pa.Array:
    """One array of a column, dictionaries decoded."""
    if isinstance(column, pa.ChunkedArray):
        column = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    return column.dictionary_decode() if pa.types.is_dictionary(column.type) else column


def _mask(array: pa.Array) -> np.ndarray[Any, np.dtype[np.bool_]]:
    return np.asarray(array.to_numpy(zero_copy_only=False), dtype=np.bool_)


# --- in ---------------------------------------------------------------------------------------------------------------

#: What a user may pass as rows: an Arrow table or batch, a pandas, Polars or batch Spark frame, rows as mappings or tuples.
Rows = Any


@dataclass(frozen=True, slots=True)
class Raw:
    """Columns as they arrived, by attribute: an Arrow array, or Python objects where the values have no common type."""

    columns: Mapping[str, pa.Array | Sequence[object]]
    count: int
    absent: frozenset[str] = frozenset()
    """Attributes that the input has no column for; `columns` has NULLs in their place."""


@dataclass(frozen=True, slots=True)
class Judged(Sequence[object]):
    """A column whose malformed values were found before it was stored: `values` has NULLs in their place."""

    values: pa.Array
    malformed: Mapping[int, Unreadable]

    def __len__(self) -> int:
        return len(self.values)

    def __getitem__(self, position: Any) -> Any:
        value = self.values[position]
        return self.malformed.get(position, value if value.is_valid else None)


@dataclass(frozen=True, slots=True)
class Validated:
    """What became of each row: `accepted` is held, in order; `rejected` has one row per malformed row
    (`REJECTED_SCHEMA`: position, first bad attribute, reason, value as text)."""

    accepted: pa.Table
    rejected: pa.Table

    @property
    def positions(self) -> pa.Array:
        """The places of the accepted rows in the input."""
        count = self.accepted.num_rows + self.rejected.num_rows
        bad = self.rejected.column("position").to_numpy()
        return pa.array(np.delete(np.arange(count), bad))


def raw(data: Rows, schema: Schema, *, absent: Collection[str] = ()) -> Raw:
    """Input of any accepted form, by attribute. Columns beyond the schema are ignored; a missing one is an error of the
    call unless it may be `absent`, a key missing in a single row a NULL. In pandas NaN means missing."""
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        data = data.read_all()
    if isinstance(data, pa.Table):
        return _raw_table(data, schema, absent)
    module = type(data).__module__.partition(".")[0]
    if module == "pyspark":
        if data.isStreaming:
            raise QueryError(
                "TG311",
                "a streaming DataFrame is no table of rows: it has no end",
                hint="read it by program.start(spark, sources=...), as the source of a stream",
            )
        missing_columns(data.columns, schema, absent)
        places = [i for i, name in enumerate(data.columns) if name in schema]
        plain = data.toDF(*(f"c{i}" for i in range(len(data.columns)))).select(*(f"c{i}" for i in places))
        return _raw_table(plain.toArrow().rename_columns([data.columns[i] for i in places]), schema, absent)
    if module == "polars":
        data = data.collect() if hasattr(data, "collect") else data
        if hasattr(data, "columns"):  # a series has none: what it exports is judged below
            return _raw_table(data.to_arrow(), schema, absent)
    if module == "pandas" and hasattr(data, "columns"):
        missing = missing_columns(list(data.columns), schema, absent)
        found = {name: _from_pandas(data[name]) for name in schema if name not in missing}
        return _with_absent(found, len(data), missing)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return _raw_table(_from_capsule(data), schema, absent)
    if isinstance(data, Mapping):
        missing = missing_columns(list(data), schema, absent)
        single = next((name for name in schema if name not in missing and _is_single(data[name])), None)
        if single is not None:
            raise QueryError(
                "TG311",
                f"{shown(single)} is a value, not a column: {shown(data[single])}",
                hint="one row is [{...}]; a mapping by itself has a column of values per name",
            )
        lists = {name: list(data[name]) for name in schema if name not in missing}
        if len({len(values) for values in lists.values()}) > 1:
            raise QueryError("TG311", "columns have different lengths", hint="give every column one value per row")
        return _with_absent(lists, len(next(iter(lists.values()), [])), missing)
    if isinstance(data, Iterable) and not isinstance(data, str | bytes):
        return _raw_rows(list(data), schema)
    raise QueryError(
        "TG311",
        f"{type(data).__name__} is no table of rows",
        hint="pass an Arrow table, any frame that exports one, or rows as mappings or tuples",
    )


def _is_single(values: object) -> bool:
    """Whether this is a value rather than several."""
    return isinstance(values, str | bytes) or not isinstance(values, Iterable)


def _from_capsule(data: Any) -> pa.Table:
    """The rows of any object that exports Arrow data, as a stream or as one batch of structs."""
    try:
        if hasattr(data, "__arrow_c_stream__"):
            return pa.RecordBatchReader.from_stream(data).read_all()
        return pa.Table.from_batches([pa.record_batch(data)])
    except (pa.ArrowException, ValueError, TypeError) as error:
        raise QueryError(
            "TG311",
            f"{type(data).__name__} exports no table of rows: {error}",
            hint="its Arrow data must be records, one field per attribute",
        ) from error


def _raw_table(table: pa.Table, schema: Schema, absent: Collection[str]) -> Raw:
    missing = missing_columns(table.column_names, schema, absent)
    found = {name: _readable(_array(table.column(name))) for name in schema if name not in missing}
    return _with_absent(found, table.num_rows, missing)


def _readable(column: pa.Array) -> pa.Array | Judged:
    """A column, with values of text that are not UTF-8 set apart: whoever reads one as text fails."""
    t = pa.types
    if not (t.is_string(column.type) or t.is_large_string(column.type) or t.is_string_view(column.type)):
        return column
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return _decoded(column.cast(pa.large_binary()).to_pylist())
    return column


def _decoded(values: Sequence[bytes | None]) -> Judged:
    texts: list[str | None] = []
    malformed: dict[int, Unreadable] = {}
    for position, value in enumerate(values):
        try:
            texts.append(None if value is None else value.decode("utf-8"))
        except UnicodeDecodeError:
            texts.append(None)
            malformed[position] = Unreadable((value or b"").decode("utf-8", "backslashreplace"))
    return Judged(pa.array(texts, pa.large_string()), malformed)


def _with_absent(columns: Mapping[str, pa.Array | Sequence[object]], count: int, missing: frozenset[str]) -> Raw:
    return Raw({**columns, **{name: pa.nulls(count) for name in missing}}, count, missing)


def holds_containers(values: Iterable[object]) -> bool:
    """Whether some value is a list, a dictionary or the like: Arrow goes down into them without end."""
    return any(issubclass(type_, Iterable) and not issubclass(type_, str | bytes) for type_ in set(map(type, values)))


def _from_pandas(series: Any) -> pa.Array | Sequence[object]:
    try:
        if series.dtype == object and holds_containers(series):
            raise pa.ArrowTypeError("lists or the like")
        return _readable(_array(pa.Array.from_pandas(series)))
    except (pa.ArrowInvalid, pa.ArrowTypeError, pa.ArrowNotImplementedError):
        missing = series.isna()
        return [None if gone else value for value, gone in zip(series, missing, strict=True)]


def _raw_rows(rows: list[Any], schema: Schema) -> Raw:
    names = schema.names
    columns: dict[str, list[object]] = {name: [] for name in names}
    for position, row in enumerate(rows):
        if isinstance(row, Mapping):
            for name in names:
                columns[name].append(row.get(name))
        elif isinstance(row, Sequence) and not isinstance(row, str | bytes) and len(row) == len(names):
            for name, value in zip(names, row, strict=True):
                columns[name].append(value)
        else:
            raise QueryError(
                "TG311",
                f"row {position} is no row of ({', '.join(names)}): {shown(row)}",
                hint="pass a mapping, or a tuple in this order",
            )
    return Raw(columns, len(rows))


def missing_columns(found: list[Any], schema: Schema, absent: Collection[str] = ()) -> frozenset[str]:
    """The attributes without a column; `QueryError` TG312 for one that may not be absent, or that is there twice."""
    missing = frozenset(name for name in schema if name not in found)
    if refused := [name for name in schema if name in missing and name not in absent]:
        raise QueryError(
            "TG312",
            f"input lacks {', '.join(map(repr, refused))}",
            hint=f"its columns are {', '.join(name if isinstance(name, str) else shown(name) for name in found) or 'none'}",
        )
    twice = [name for name in schema if found.count(name) > 1]
    if twice:
        raise QueryError("TG312", f"input has {', '.join(map(repr, twice))} more than once")
    return missing


def validate(data: Rows, schema: Schema) -> Validated:
    """Splits input into held rows and malformed ones.

    Malformed is NULL where the schema forbids it, text that does not parse, a value of another type, a number or instant
    out of range (instants: beyond ±MAX_INSTANT ticks), a value that its type cannot hold exactly, and every value of an
    absent column. A row is reported with its first malformed attribute, in the schema's order.
    """
    source = data if isinstance(data, Raw) else raw(data, schema)
    bad = np.zeros(source.count, dtype=np.bool_)
    held: list[pa.Array] = []
    rejected: list[tuple[int, str, str, str | None]] = []
    for attribute in schema.attributes:
        column = source.columns[attribute.name]
        values, failed = hold_column(column, attribute)
        if attribute.name in source.absent:
            failed = dict.fromkeys(range(source.count), MISSING)
        held.append(values)
        for position in sorted(failed.keys()):
            if not bad[position]:
                bad[position] = True
                rejected.append((position, attribute.name, failed[position], value_text(column[position])))
    table = pa.Table.from_arrays(held, schema=held_arrow_schema(schema)) if held else pa.table({})
    if not rejected:
        return Validated(table, REJECTED_SCHEMA.empty_table())
    rejects = [
        pa.array(column, field.type)
        for column, field in zip(zip(*sorted(rejected), strict=True), REJECTED_SCHEMA, strict=True)
    ]
    return Validated(table.filter(pa.array(~bad)), pa.Table.from_arrays(rejects, schema=REJECTED_SCHEMA))


def hold_column(column: pa.Array | Sequence[object], attribute: Attribute) -> tuple[pa.Array, dict[int, str]]:
    """A column as it is held, and the reason for each malformed position (whose held value is NULL)."""
    if isinstance(column, Judged):
        values, failed = hold_column(column.values, attribute)
        return values, failed | {position: value.reason for position, value in column.malformed.items()}
    if isinstance(column, pa.Array):
        fast = _hold_arrow(column, attribute)
        if fast is not None:
            values, masks = fast
            failed = {int(position): reason for mask, reason in masks for position in np.flatnonzero(mask)}
            return _finish(values, attribute, failed)
        objects: Sequence[object] = _objects(column)
    else:
        objects = column
    made: list[object] = []
    failed = {}
    seen: dict[object, object] = {}  # text repeats: parse each once
    for position, value in enumerate(objects):
        try:
            if isinstance(value, str):
                if value not in seen:
                    seen[value] = held_value(value, attribute.type)
                made.append(seen[value])
            else:
                made.append(held_value(value, attribute.type))
        except Malformed as error:
            made.append(None)
            failed[position] = error.reason
    return _finish(pa.array(made, held_arrow_type(attribute.type)), attribute, failed)


#: Instants beyond what a datetime can hold, or of a zone that nobody knows.
_NO_OBJECT = (ValueError, OverflowError, KeyError)


def _objects(column: pa.Array) -> Sequence[object]:
    """Values as Python objects; those that Python cannot represent as an object of no accepted type."""
    try:
        return list(column.to_pylist())
    except _NO_OBJECT:
        return [_unrepresentable(value) for value in column]


def _unrepresentable(value: pa.Scalar) -> object:
    try:
        return value.as_py()
    except _NO_OBJECT:
        return value


def _finish(values: pa.Array, attribute: Attribute, failed: dict[int, str]) -> tuple[pa.Array, dict[int, str]]:
    if attribute.temporal or attribute.type.kind is Kind.TIMESTAMP:
        least, greatest = pc.min_max(values).as_py().values()
        if least is not None and (least < -MAX_INSTANT or greatest > MAX_INSTANT):
            numbers = np.asarray(values.fill_null(0))
            for position in np.flatnonzero((numbers > MAX_INSTANT) | (numbers < -MAX_INSTANT)):
                failed.setdefault(int(position), OUT_OF_RANGE)
    if not attribute.nullable and values.null_count:
        for position in np.flatnonzero(~_mask(values.is_valid())):
            failed.setdefault(int(position), NULL)
    return values, failed


_JUDGED = {"tidegate": "judged"}


def stored_field(name: str, column: Sequence[object], attribute: Attribute) -> tuple[pa.Field, pa.Array]:
    """Python values of several types as an Arrow column: each is judged now, and one that is malformed keeps its reason."""
    held, failed = hold_column(column, attribute.as_nullable())
    fine = pa.array([position not in failed for position in range(len(column))], pa.bool_())
    values = _user_column(pc.if_else(fine, held, None), attribute.type)
    if not failed:
        return pa.field(name, values.type), values
    reasons = pa.array([failed.get(position) for position in range(len(column))], pa.string())
    texts = [value_text(value) if position in failed else None for position, value in enumerate(column)]
    parts = pa.StructArray.from_arrays([values, reasons, pa.array(texts, pa.string())], ["value", "reason", "text"])
    return pa.field(name, parts.type, metadata=_JUDGED), parts


def read_stored(table: pa.Table) -> pa.Table | Raw:
    """A table with columns of `stored_field` as what was stored; any other as it is."""
    marked = {f.name for f in table.schema if (f.metadata or {}).get(b"tidegate") == b"judged"}
    if not marked:
        return table
    columns = {name: _array(table.column(name)) for name in table.column_names}
    return Raw({name: _judged(c) if name in marked else c for name, c in columns.items()}, table.num_rows)


def _judged(parts: pa.StructArray) -> Judged:
    values, reasons, texts = parts.flatten()
    malformed = np.flatnonzero(_mask(reasons.is_valid()))
    return Judged(values, {int(i): Unreadable(str(texts[i]), str(reasons[i])) for i in malformed})


#: Arrow reads a year 0, which Python, the judge of single values, does not know.
_YEAR_1 = -62_135_596_800_000_000

_Masks = list[tuple["np.ndarray[Any, np.dtype[np.bool_]]", str]]


def _hold_arrow(column: pa.Array, attribute: Attribute) -> tuple[pa.Array, _Masks] | None:
    """Whole-column conversion for the common pairs of types; None where values have to be looked at one by one."""
    type_, source = attribute.type, column.type
    t = pa.types
    if t.is_null(source):
        return pa.nulls(len(column), held_arrow_type(type_)), []
    match type_.kind:
        case Kind.BOOLEAN if t.is_boolean(source):
            return column, []
        case Kind.STRING if t.is_string(source) or t.is_large_string(source) or t.is_string_view(source):
            return column.cast(pa.string()), []
        case Kind.DOUBLE if t.is_floating(source) or t.is_integer(source):
            return column.cast(pa.float64(), safe=False), []
        case Kind.BIGINT if t.is_integer(source):
            return _integers(column)
        case Kind.BIGINT if t.is_floating(source):
            return _whole_numbers(column)
        case Kind.TIMESTAMP if t.is_timestamp(source):
            return _rescaled(column.cast(pa.int64()), source.unit)
        case Kind.TIMESTAMP if t.is_date32(source):
            return _scaled(column.cast(pa.int32()).cast(pa.int64()), 86_400_000_000)
        case Kind.TIMESTAMP if t.is_string(source) or t.is_large_string(source):
            parsed = _parsed_timestamps(column)
            return None if parsed is None else (parsed, [])
        case Kind.DATE if t.is_date32(source):
            return column.cast(pa.int32()).cast(pa.int64()), []
        case Kind.DURATION if t.is_duration(source):
            return _rescaled(column.cast(pa.int64()), source.unit)
        case Kind.DURATION if t.is_integer(source):
            return _integers(column)
        case Kind.DECIMAL if t.is_decimal128(source) and source.scale == type_.scale:
            values, fits = _unscaled(column)
            limit = 10**type_.precision
            numbers = np.asarray(values.fill_null(0))
            return _without(values, ~fits | (numbers >= limit) | (numbers <= -limit), OUT_OF_RANGE)
        case _:
            return None


def _without(values: pa.Array, bad: np.ndarray[Any, np.dtype[np.bool_]], reason: str) -> tuple[pa.Array, _Masks]:
    """Values with the bad ones NULL, and their reason."""
    if not bad.any():
        return values, []
    return pc.if_else(pa.array(bad), pa.scalar(None, values.type), values), [(bad, reason)]


def _integers(column: pa.Array) -> tuple[pa.Array, _Masks]:
    if not pa.types.is_uint64(column.type):
        return column.cast(pa.int64()), []
    numbers = np.asarray(column.fill_null(0))
    return _without(column.cast(pa.int64(), safe=False), numbers > np.uint64(INT64_MAX), OUT_OF_RANGE)


def _whole_numbers(column: pa.Array) -> tuple[pa.Array, _Masks]:
    """Doubles as integers where they are whole, as pandas hands over integers with gaps."""
    numbers = np.asarray(column.fill_null(0).cast(pa.float64()))
    valid = _mask(column.is_valid())
    with np.errstate(invalid="ignore"):
        far = ~(np.abs(numbers) < 2.0**63)  # also NaN
        fraction = ~far & (numbers != np.trunc(numbers))
        values = np.where(far | fraction, 0, numbers).astype(np.int64)
    far |= np.isinf(numbers)
    masks: _Masks = [(mask, reason) for mask, reason in ((far, OUT_OF_RANGE), (fraction, INEXACT)) if mask.any()]
    return pa.array(values, mask=~valid | far | fraction), masks


def _scaled(values: pa.Array, factor: int) -> tuple[pa.Array, _Masks]:
    numbers = np.asarray(values.fill_null(0))
    bad = (numbers > INT64_MAX // factor) | (numbers < -(INT64_MAX // factor))
    scaled = np.where(bad, 0, numbers) * factor
    valid = _mask(values.is_valid())
    return pa.array(scaled, mask=~valid | bad), [(bad, OUT_OF_RANGE)] if bad.any() else []


def _rescaled(values: pa.Array, unit: str) -> tuple[pa.Array, _Masks]:
    """Counts of a unit as microseconds; nanoseconds are rounded down, as instants are."""
    match unit:
        case "us":
            return values, []
        case "ns":
            numbers = np.floor_divide(np.asarray(values.fill_null(0)), 1000)
            return pa.array(numbers, mask=~_mask(values.is_valid())), []
        case "ms":
            return _scaled(values, 1_000)
        case _:
            return _scaled(values, 1_000_000)


def _parsed_timestamps(column: pa.Array) -> pa.Array | None:
    """ISO text as microseconds if every value parses one way: all without offset (read as UTC), or all with one."""
    for target in (pa.timestamp("us"), USER_TIMESTAMP):
        try:
            parsed = column.cast(target).cast(pa.int64())
        except pa.ArrowInvalid:
            continue
        least = pc.min(parsed).as_py()
        return None if least is not None and least < _YEAR_1 else parsed
    return None
