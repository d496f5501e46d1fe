"""Python values as constants, of the type that stands beside them."""

from __future__ import annotations

import datetime as dt
import math
import sys
from decimal import Decimal
from fractions import Fraction
from types import MethodType

from tidegate.algebra.diagnostics.shown import kind_of, shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.terms import Lit
from tidegate.algebra.time import duration_ticks, instant_ticks
from tidegate.algebra.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    INT64_MAX,
    INT64_MIN,
    MAX_DECIMAL_PRECISION,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    Kind,
    decimal,
)

_EXACT_IN_DOUBLE = 2**53


def literal(value: object, like: DataType | None = None, *, shift: bool = False) -> Lit:
    """The constant that a Python value means beside an operand of type `like`.

    Text beside a duration is a duration, beside an instant it is an instant, or with `shift` (what is added to or
    subtracted from an instant) a duration: of a date whole days, if it is no date itself. Integers beside doubles and
    decimals become such. `QueryError` TG110 for values that are none of a query's.
    """
    kind = None if like is None else like.kind
    value = plain(value)
    match value:
        case None:
            return Lit(None, NULL)
        case bool():
            return Lit(value, BOOLEAN)
        case int():
            return _integer(value, kind)
        case float():
            return Lit(value, DOUBLE)
        case str():
            return _text(value, kind, shift)
        case Decimal():
            return _decimal(value)
        case dt.datetime():
            return timestamp_literal(value)
        case dt.date():
            if kind is Kind.TIMESTAMP:
                return timestamp_literal(dt.datetime(value.year, value.month, value.day))
            return Lit(value.toordinal() - dt.date(1970, 1, 1).toordinal(), DATE)
        case dt.timedelta():
            return Lit(duration_ticks(value), DURATION)
        case _:
            of_frames = type(value).__module__.partition(".")[0] in ("polars", "pyspark", "pandas")
            hint = "values are numbers, text, bool, Decimal, datetime, date and timedelta"
            if of_frames:
                hint = "expressions are made of a relation's attributes: relation.amount > 10, not of columns of frames"
            elif isinstance(value, MethodType):
                hint = f'an attribute that is named like a method is written relation["{value.__name__}"]'
            raise QueryError(
                "TG110",
                f"{kind_of(value)} is no value of a query: {shown(value)}",
                hint=hint,
            )


def plain(value: object) -> object:
    """A numpy scalar as the Python value that it is, so that it prints, hashes and compares as such; others unchanged.

    `QueryError` TG110 for what no Python value equals: NaT, parts of a microsecond, years and months, long doubles.
    """
    kind = type(value)
    if kind.__module__ != "numpy" or not hasattr(value, "dtype") or not hasattr(value, "item"):
        return value
    scalar: object = value.item() if getattr(value, "shape", None) == () else value
    if kind.__name__ in ("datetime64", "timedelta64") and isinstance(scalar, int):
        # What is finer or coarser than Python's own units is given as its number of units.
        try:
            exact = value.astype(f"{kind.__name__}[us]")  # type: ignore[attr-defined]  # numpy is not loaded for this
            scalar = exact.item() if exact == value else value
        except TypeError:
            scalar = value
    if type(scalar).__module__ == "numpy" or scalar is None:
        raise QueryError(
            "TG110",
            f"no value of a query is exactly {shown(value)}",
            hint="instants and durations are whole microseconds; write a datetime, a timedelta or a number",
        )
    return scalar


def timestamp_literal(value: object) -> Lit:
    """An instant from a datetime or ISO text; what has no zone is read as UTC."""
    value = plain(value)
    if isinstance(value, str):
        try:
            value = dt.datetime.fromisoformat(value)
        except ValueError:
            raise QueryError(
                "TG110",
                f"{shown(value)} is no timestamp",
                hint='write ISO text such as "2013-01-01T00:00Z", or a datetime',
            ) from None
    if not isinstance(value, dt.datetime):
        raise QueryError(
            "TG110", f"{shown(value)} is no timestamp", hint='write ISO text such as "2013-01-01T00:00Z", or a datetime'
        )
    return Lit(instant_ticks(value), TIMESTAMP)


def held_by(constant: Lit, type_: DataType) -> Lit:
    """A number as a constant of another type of numbers, where that holds it exactly; others as they are."""
    value, given = constant.value, constant.type
    if given == type_ or not (given.is_numeric and type_.is_numeric) or isinstance(value, str) or value is None:
        return constant
    if not math.isfinite(value):
        return constant
    number = Fraction(value) / 10**given.scale
    if type_.kind is Kind.DOUBLE:
        return Lit(float(number), type_) if Fraction(float(number)) == number else constant
    held = number * 10**type_.scale
    most = 10**type_.precision - 1 if type_.kind is Kind.DECIMAL else INT64_MAX
    return Lit(int(held), type_) if held.denominator == 1 and abs(held) <= most else constant


def _integer(value: int, kind: Kind | None) -> Lit:
    if not INT64_MIN <= value <= INT64_MAX:
        hint = "use a double: float(...)"
        if abs(value) > sys.float_info.max:
            hint = 'a double holds no such number, the greatest is 1.8e308; float("inf") is more than any'
        raise QueryError("TG110", f"{shown(value)} does not fit into 64 bits", hint=hint)
    if kind is Kind.DOUBLE and abs(value) <= _EXACT_IN_DOUBLE:
        return Lit(float(value), DOUBLE)
    if kind is Kind.DECIMAL and abs(value) < 10**MAX_DECIMAL_PRECISION:
        return _decimal(Decimal(value))
    return Lit(value, BIGINT)


def _text(value: str, kind: Kind | None, shift: bool) -> Lit:
    if kind is Kind.DURATION or (shift and kind is Kind.TIMESTAMP):
        return Lit(duration_ticks(value), DURATION)
    if kind is Kind.TIMESTAMP:
        return timestamp_literal(value)
    if kind is Kind.DATE:
        try:
            return literal(dt.date.fromisoformat(value))
        except ValueError:
            if shift:
                return Lit(duration_ticks(value), DURATION)
            raise QueryError(
                "TG110", f"{shown(value)} is no date", hint='write ISO text such as "2013-01-31"'
            ) from None
    return Lit(whole_text(value), STRING)


def whole_text(value: str) -> str:
    """The text; `QueryError` TG110 where it has half of a character, which no engine takes."""
    try:
        value.encode()
    except UnicodeEncodeError:
        raise QueryError(
            "TG110",
            f"half of a character is no text: {shown(value)}",
            hint='read texts as UTF-8; errors="replace" writes \ufffd for what is none',
        ) from None
    return value


def _decimal(value: Decimal) -> Lit:
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise QueryError("TG110", f"{value} is no number", hint="doubles know NaN and infinity, decimals do not")
    scale = max(0, -exponent)
    precision = max(len(digits) + max(0, exponent), scale, 1)
    if precision > MAX_DECIMAL_PRECISION:
        raise QueryError(
            "TG110", f"{value} has more than {MAX_DECIMAL_PRECISION} digits", hint="round it, or use a double"
        )
    unscaled = int("".join(map(str, digits))) * 10 ** max(0, exponent)
    return Lit(-unscaled if sign else unscaled, decimal(precision, scale))
