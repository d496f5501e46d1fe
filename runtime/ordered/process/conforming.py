"""What a step returns, as it is held: only a value that stays the same may change its type."""

from __future__ import annotations

import traceback
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final

import polars as pl

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.ddl import to_schema
from tidegate.algebra.errors import Site
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Value
from tidegate.algebra.types import BIGINT, BOOLEAN, DOUBLE, STRING, DataType, Kind
from tidegate.runtime.eval.columns import polars_schema, polars_type
from tidegate.runtime.ordered.row_arrays import PARTITION

_BREAKS: Final = "{} breaks what it declares: "
#: Kinds of values that are held as whole numbers, and read as something else.
_WRITTEN: Final = (Kind.TIMESTAMP, Kind.DATE, Kind.DURATION, Kind.DECIMAL)


@lru_cache(maxsize=256)
def table_schema(columns: str) -> Schema:
    """The columns of a table, from their DDL text."""
    return to_schema(columns)


def conforming(what: str, where: str, rows: Any, schema: Schema) -> pl.DataFrame:
    """Rows with their partitions and the columns of the schema, as held; `EvaluationError` TG305 for other columns, and
    for a type that would change a value.
    """
    columns = (Attribute(PARTITION, BIGINT), *schema.attributes)
    names = [column.name for column in columns]
    if not isinstance(rows, pl.DataFrame) or {*rows.columns} != {*names}:
        got = ", ".join(rows.columns) if isinstance(rows, pl.DataFrame) else type(rows).__name__
        wanted = ", ".join(f'"{name}"' for name in names)
        hint = f"return a frame of Polars with them: .select({wanted})"
        raise wrong(what, f"{where} has the columns {', '.join(names)}, and step returned {got}", hint=hint)
    return pl.DataFrame([_held(what, where, rows.get_column(column.name), column) for column in columns])


def nothing(schema: Schema) -> pl.DataFrame:
    """No rows of these columns."""
    return pl.DataFrame(schema={PARTITION: pl.Int64(), **polars_schema(schema)})


def _held(what: str, where: str, values: pl.Series, column: Attribute) -> pl.Series:
    type_ = polars_type(column.type)
    if values.dtype == type_:
        return values
    if not _may_become(values.dtype, type_):
        raise wrong(
            what,
            f"{where} has {column.name} {column.type}, and step returned {values.dtype}{_example(values)}",
            hint=_mend(column, values.dtype),
        )
    cast = values.cast(type_, strict=False)
    # A double holds no more than 53 bits of a whole number, a bigint not the greatest numbers without a sign.
    changed = cast.is_null() & values.is_not_null()
    if values.dtype.is_integer() and type_ == pl.Float64():
        changed |= cast.cast(values.dtype, strict=False).ne_missing(values)
    if changed.any():
        raise wrong(
            what,
            f"{where} has {column.name} {column.type}, which cannot hold {values.filter(changed)[0]}, "
            f"and step returned {values.dtype}",
            hint="return a number that it can hold, or NULL",
        )
    return cast


def _may_become(given: pl.DataType, type_: pl.DataType) -> bool:
    """Whether a type can take over values of another as they are: a wider number, or no value at all."""
    wider = (type_ == pl.Int64() and given.is_integer()) or (type_ == pl.Float64() and given.is_numeric())
    return given == pl.Null() or (wider and not given.is_decimal())


def _example(values: pl.Series) -> str:
    examples = values.drop_nulls()
    return f" ({shown(examples[0])})" if len(examples) else ""


def _mend(column: Attribute, given: pl.DataType) -> str:
    """What to return, or to declare, instead."""
    expression = f'pl.col("{column.name}")'
    match column.type.kind:
        case Kind.TIMESTAMP if given.is_temporal():
            return f'instants are whole numbers, microseconds: return {expression}.dt.epoch("us")'
        case Kind.DATE if given.is_temporal():
            return f'dates are whole numbers, days: return {expression}.dt.epoch("d")'
        case Kind.DURATION if given.is_temporal():
            return f"durations are whole numbers, microseconds: return {expression}.dt.total_microseconds()"
        case Kind.DECIMAL:
            return f"decimals are whole numbers: return how often it is {value_text(1, column.type)}"
    types = ((pl.Float64, DOUBLE), (pl.Float32, DOUBLE), (pl.String, STRING), (pl.Boolean, BOOLEAN))
    declared = next((type_ for dtype, type_ in types if given == dtype), BIGINT if given.is_integer() else None)
    instead = "" if declared is None or column.name == PARTITION else f"declare {column.name} {declared}, or "
    return f"{instead}cast it: {expression}.cast(pl.{polars_type(column.type)})"


def row_text(row: Mapping[str, Any], types: Mapping[str, DataType]) -> str:
    """A row, of which instants are written as such."""
    return "{" + ", ".join(f"{name!r}: {written(value, types.get(name))}" for name, value in row.items()) + "}"


def written(value: Value, type_: DataType | None) -> str:
    """A value as Python writes it; an instant, a duration or a decimal as what it is."""
    return shown(value) if value is None or type_ is None or type_.kind not in _WRITTEN else value_text(value, type_)


def wrong(what: str, message: str, hint: str) -> EvaluationError:
    """`EvaluationError` TG305 of an operator that does not do what it declares."""
    return EvaluationError("TG305", _BREAKS.format(what) + message, hint=hint)


def without_operator(what: str, message: str) -> str:
    """What is wrong, without the operator of which it is."""
    return message.removeprefix(_BREAKS.format(what))


def failed(what: str, method: str, function: Any, error: Exception, hint: str = "") -> EvaluationError:
    """`EvaluationError` TG305 for a user's `method` that raised an error, with the line of it that did."""
    file = getattr(getattr(function, "__code__", None), "co_filename", None)
    lines = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename == file]
    because = (str(Site(lines[-1].filename, lines[-1].lineno or 0, lines[-1].line or "")),) if lines else ()
    # Polars writes its errors over several lines.
    text = " ".join(str(error).split())
    return EvaluationError(
        "TG305", f"{method} of {what} failed: {type(error).__name__}: {text}", because=because, hint=hint
    )
