"""Rows of a stream judged value by value: held as engines hold them, or malformed for a reason.

Whole columns are converted where their type allows it, and single values (`values`) where it does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc

from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Value
from tidegate.algebra.types import INT64_MAX, MAX_INSTANT, DataType, Kind
from tidegate.runtime.arrays import BoolArray
from tidegate.runtime.arrow_arrays import array_of_numbers, array_of_values, empty_table
from tidegate.runtime.eval.columns import USER_TIMESTAMP, as_mask, held_arrow_schema, held_arrow_type
from tidegate.runtime.ingest.raw_rows import CheckedColumn, Raw, Rows, raw
from tidegate.runtime.ingest.rejected_text import value_text
from tidegate.runtime.ingest.values import INEXACT, MISSING, NULL, OUT_OF_RANGE, MalformedValue, held_value

REJECTED_SCHEMA = pa.schema(
    [
        pa.field("position", pa.int64(), nullable=False),
        pa.field("attribute", pa.string(), nullable=False),
        pa.field("reason", pa.string(), nullable=False),
        pa.field("value", pa.string()),
    ]
)

#: Rows that are judged together, where some are malformed.
JUDGED = 1 << 16


@dataclass(frozen=True, slots=True)
class ValidatedRows:
    """What became of each row: `accepted` is held, in order; `rejected` has one row per malformed row
    (`REJECTED_SCHEMA`: position, first bad attribute, reason, value as text)."""

    accepted: pa.Table
    rejected: pa.Table

    @property
    def positions(self) -> pa.Array:
        """The places of the accepted rows in the input."""
        count = self.accepted.num_rows + self.rejected.num_rows
        bad = pl.Series(self.rejected.column("position")).to_numpy()
        return array_of_numbers(np.delete(np.arange(count), bad))


def validated_pieces(source: Raw, schema: Schema) -> list[tuple[int, ValidatedRows]]:
    """What became of each row, by the numbers of the first rows of pieces.

    Many rows of which some are malformed are judged piece by piece: what that takes beside columns is a multiple of
    these, and is let go after each piece.
    """
    if source.count > JUDGED:
        table = _plainly_valid(source, schema)
        if table is not None:
            return [(0, ValidatedRows(table, empty_table(REJECTED_SCHEMA)))]
    firsts = range(0, source.count, JUDGED) if source.count else [0]
    return [(first, validate(source.piece(first, JUDGED), schema)) for first in firsts]


def _plainly_valid(source: Raw, schema: Schema) -> pa.Table | None:
    """All rows as they are held, where whole columns show that none is malformed; else None."""
    columns = []
    for attribute in schema.attributes:
        column = source.columns[attribute.name]
        held: tuple[pa.Array, _Masks] | None
        if attribute.name in source.absent or not isinstance(column, pa.Array | pa.ChunkedArray):
            return None
        if _is_text(column.type) and attribute.type.kind in (Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL):
            texts = pl.Series(column)
            numbers = _read_numbers(texts, attribute.type)
            held = None if numbers.null_count() > texts.null_count() else (numbers.to_arrow(), [])
        else:
            held = _hold_arrow(column, attribute)
        if held is None or held[1] or _is_beyond(held[0], attribute):
            return None
        if not attribute.nullable and held[0].null_count:
            return None
        columns.append(held[0])
    return pa.Table.from_arrays(columns, schema=held_arrow_schema(schema)) if columns else None


def validate(data: Rows, schema: Schema) -> ValidatedRows:
    """Splits input into held rows and malformed ones.

    Malformed is NULL where the schema forbids it, text that does not parse, a value of another type, a number or
    instant out of range (instants: beyond ±MAX_INSTANT ticks), a value that its type cannot hold exactly, and every
    value of an absent column. A row is reported with its first malformed attribute, in the schema's order.
    """
    source = data if isinstance(data, Raw) else raw(data, schema)
    bad = np.zeros(source.count, dtype=np.bool_)
    columns: list[pa.Array] = []
    rejected: list[tuple[int, str, str, str | None]] = []
    for attribute in schema.attributes:
        column = source.columns[attribute.name]
        values, failed = hold_column(column, attribute)
        if attribute.name in source.absent:
            failed = dict.fromkeys(range(source.count), MISSING)
        columns.append(values)
        for position in sorted(failed.keys()):
            if not bad[position]:
                bad[position] = True
                rejected.append((position, attribute.name, failed[position], value_text(column[position])))
    table = pa.Table.from_arrays(columns, schema=held_arrow_schema(schema)) if columns else pa.table({})
    if not rejected:
        return ValidatedRows(table, empty_table(REJECTED_SCHEMA))
    rejects = [
        array_of_values(column, field.type)
        for column, field in zip(zip(*sorted(rejected), strict=True), REJECTED_SCHEMA, strict=True)
    ]
    return ValidatedRows(table.filter(array_of_numbers(~bad)), pa.Table.from_arrays(rejects, schema=REJECTED_SCHEMA))


def hold_column(
    column: pa.Array | pa.ChunkedArray | Sequence[object], attribute: Attribute
) -> tuple[pa.Array | pa.ChunkedArray, dict[int, str]]:
    """A column as it is held, and the reason for each malformed position (whose held value is NULL)."""
    if isinstance(column, CheckedColumn):
        values, failed = hold_column(column.values, attribute)
        return values, failed | {position: value.reason for position, value in column.malformed.items()}
    if isinstance(column, pa.Array | pa.ChunkedArray):
        fast = _hold_arrow(column, attribute)
        if fast is not None:
            values, masks = fast
            failed = {int(position): reason for mask, reason in masks for position in np.flatnonzero(mask)}
            return _finish(values, attribute, failed)
        objects: Sequence[object] = _objects(column)
    else:
        objects = column
    converted: list[object] = []
    failed = {}
    seen: dict[object, object] = {}  # text repeats: parse each once
    for position, value in enumerate(objects):
        try:
            if isinstance(value, str):
                if value not in seen:
                    seen[value] = held_value(value, attribute.type)
                converted.append(seen[value])
            else:
                converted.append(held_value(value, attribute.type))
        except MalformedValue as error:
            converted.append(None)
            failed[position] = error.reason
    return _finish(array_of_values(converted, held_arrow_type(attribute.type)), attribute, failed)


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


def _is_beyond(values: pa.Array, attribute: Attribute) -> bool:
    """Whether some instant is out of range."""
    if not attribute.temporal and attribute.type.kind is not Kind.TIMESTAMP:
        return False
    ticks = pl.Series(values)  # Polars finds extremes three times as quickly as Arrow
    least, greatest = ticks.min(), ticks.max()
    return isinstance(least, int) and isinstance(greatest, int) and (least < -MAX_INSTANT or greatest > MAX_INSTANT)


def _finish(values: pa.Array, attribute: Attribute, failed: dict[int, str]) -> tuple[pa.Array, dict[int, str]]:
    if _is_beyond(values, attribute):
        numbers = np.asarray(values.fill_null(0))
        for position in np.flatnonzero((numbers > MAX_INSTANT) | (numbers < -MAX_INSTANT)):
            failed.setdefault(int(position), OUT_OF_RANGE)
    if not attribute.nullable and values.null_count:
        for position in np.flatnonzero(~as_mask(values.is_valid())):
            failed.setdefault(int(position), NULL)
    return values, failed


#: A whole number with zeros behind its point; sign, digits before the point and behind it, without zeros at the end.
_WHOLE = r"^\s*([+-]?[0-9]+)\.?0*\s*$"
_PLACES = r"^\s*([+-]?)([0-9]+)\.?([0-9]*?)0*\s*$"

#: Arrow reads a year 0, which Python, the judge of single values, does not know.
_YEAR_1 = -62_135_596_800_000_000

_Masks = list[tuple["BoolArray", str]]


def _hold_arrow(column: pa.Array, attribute: Attribute) -> tuple[pa.Array, _Masks] | None:
    """Whole-column conversion for the common pairs of types; None where values have to be looked at one by one."""
    type_, source = attribute.type, column.type
    t = pa.types
    if t.is_null(source):
        return pa.nulls(len(column), held_arrow_type(type_)), []
    match type_.kind:
        case Kind.BOOLEAN if t.is_boolean(source):
            return column, []
        case Kind.STRING if _is_text(source):
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
        case Kind.BIGINT | Kind.DOUBLE | Kind.DECIMAL | Kind.DATE if _is_text(source):
            return _parsed_texts(pl.Series(column), type_)
        case Kind.DECIMAL if t.is_decimal128(source) and source.scale == type_.scale:
            values, fits = _unscaled(column)
            limit = 10**type_.precision
            numbers = np.asarray(values.fill_null(0))
            return _without(values, ~fits | (numbers >= limit) | (numbers <= -limit), OUT_OF_RANGE)
        case _:
            return None


def _is_text(type_: pa.DataType) -> bool:
    t = pa.types
    return bool(t.is_string(type_) or t.is_large_string(type_) or t.is_string_view(type_))


def _unscaled(decimals: pa.Array) -> tuple[pa.Array, BoolArray]:
    """The unscaled values of a decimal128 array as int64, and which of them fit (NULLs do)."""
    words = np.frombuffer(decimals.buffers()[1], dtype=np.int64)[
        2 * decimals.offset : 2 * (decimals.offset + len(decimals))
    ]
    low, high = words[0::2].copy(), words[1::2]
    valid = as_mask(decimals.is_valid())
    return pa.array(low, mask=~valid), (high == low >> 63) | ~valid


def _without(values: pa.Array, bad: BoolArray, reason: str) -> tuple[pa.Array, _Masks]:
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
    valid = as_mask(column.is_valid())
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
    valid = as_mask(values.is_valid())
    return pa.array(scaled, mask=~valid | bad), [(bad, OUT_OF_RANGE)] if bad.any() else []


def _rescaled(values: pa.Array, unit: str) -> tuple[pa.Array, _Masks]:
    """Counts of a unit as microseconds; nanoseconds are rounded down, as instants are."""
    match unit:
        case "us":
            return values, []
        case "ns":
            numbers = np.floor_divide(np.asarray(values.fill_null(0)), 1000)
            return pa.array(numbers, mask=~as_mask(values.is_valid())), []
        case "ms":
            return _scaled(values, 1_000)
        case _:
            return _scaled(values, 1_000_000)


def _parsed_texts(texts: pl.Series, type_: DataType) -> tuple[pa.Array, _Masks]:
    """Numbers or dates as text. Common spellings of numbers are read as a whole column; any other value by itself, each
    different text once.
    """
    numbers = _read_numbers(texts, type_)
    left = (numbers.is_null() & texts.is_not_null()).arg_true()
    if not len(left):
        return numbers.to_arrow(), []
    rest = texts.gather(left)
    different = rest.unique()
    read: dict[str, Value] = {}
    reasons: dict[str, str] = {}
    for text in different:
        try:
            read[text] = held_value(text, type_)
        except MalformedValue as error:
            reasons[text] = error.reason
    values = rest.replace_strict(list(read), pl.Series(list(read.values()), dtype=numbers.dtype), default=None)
    why = rest.replace_strict(list(reasons), list(reasons.values()), default=None, return_dtype=pl.String)
    masks: _Masks = []
    for reason in sorted(set(reasons.values())):
        mask = np.zeros(len(texts), dtype=np.bool_)
        mask[left.filter(why == reason).to_numpy()] = True
        masks.append((mask, reason))
    return numbers.scatter(left, values).to_arrow(), masks


def _read_numbers(texts: pl.Series, type_: DataType) -> pl.Series:
    """Numbers in common spellings; NULL for any other text."""
    match type_.kind:
        case Kind.BIGINT:
            return _read_integers(texts)
        case Kind.DOUBLE:
            numbers = texts.cast(pl.Float64, strict=False)
            # Infinity may be what is written, or a number beyond the range.
            return numbers.set(~numbers.is_finite(), None)
        case Kind.DATE:  # a column has few that differ
            return pl.repeat(None, len(texts), dtype=pl.Int64, eager=True)
        case _:
            return _read_decimals(texts, type_)


def _read_integers(texts: pl.Series) -> pl.Series:
    """Plain integers, and those with zeros behind a point, as pandas writes columns with gaps; NULL for any other
    text.
    """
    numbers = texts.cast(pl.Int64, strict=False)
    left = (numbers.is_null() & texts.is_not_null()).arg_true()
    if not len(left):
        return numbers
    return numbers.scatter(left, texts.gather(left).str.extract(_WHOLE).cast(pl.Int64, strict=False))


def _read_decimals(texts: pl.Series, type_: DataType) -> pl.Series:
    """The unscaled values of numbers without an exponent that a decimal of this type holds exactly; NULL for any other
    text.
    """
    sign, whole, fraction = texts.str.extract_groups(_PLACES).struct.unnest().get_columns()
    unscaled = (sign + whole + fraction.str.pad_end(type_.scale, "0")).cast(pl.Int64, strict=False)
    limit = 10**type_.precision
    fits = (fraction.str.len_bytes() <= type_.scale) & (unscaled > -limit) & (unscaled < limit)
    return unscaled.set(~fits, None)


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
