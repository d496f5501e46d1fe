"""Casts: conversions between types, and the texts that they read and write."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.instants import FLOOR_DIV
from tidegate.algebra.functions.rounding import UNSCALE, UNSCALE_ROUNDED
from tidegate.algebra.functions.rules import RESCALE, Operation, Rule, arity, coerce, mismatch
from tidegate.algebra.terms import Call
from tidegate.algebra.typed.kernels import BAD_CAST, DAY, FIRST_DAY, LAST_DAY, Kernel, bad_cast, civil
from tidegate.algebra.typed.terms import TypedTerm, apply
from tidegate.algebra.types import (
    BIGINT,
    DATE,
    DOUBLE,
    DURATION,
    INT64_MAX,
    INT64_MIN,
    NULL,
    STRING,
    TIMESTAMP,
    DataType,
    Kind,
    decimal,
)

# --- kernels ---------------------------------------------------------------------------------------------------------

INTEGER_TEXT: Final = r"^[+-]?[0-9]{1,30}$"
NUMBER_TEXT: Final = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
DATE_TEXT: Final = r"^([0-9]{4})-([0-9]{2})-([0-9]{2})$"
INSTANT_TEXT: Final = (
    r"^([0-9]{4})-([0-9]{2})-([0-9]{2})[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?Z?$"
)


def _format_date(day: int) -> str:
    if not FIRST_DAY <= day <= LAST_DAY:
        raise bad_cast(day, "date of the years 1 to 9999")
    return "{:04d}-{:02d}-{:02d}".format(*civil(day))


def _format_timestamp(ticks: int) -> str:
    day, rest = divmod(ticks, DAY)
    seconds, micros = divmod(rest, 1_000_000)
    return f"{_format_date(day)}T{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}.{micros:06d}Z"


def _day_number(year: str, month: str, day: str, text: str) -> int:
    try:
        return (dt.date(int(year), int(month), int(day)) - dt.date(1970, 1, 1)).days
    except ValueError:
        raise bad_cast(text, "date of the years 1 to 9999") from None


def _parse_date(text: str) -> int:
    parts = re.match(DATE_TEXT, text, re.ASCII)
    if parts is None or text.endswith("\n"):
        raise bad_cast(text, "date (YYYY-MM-DD)")
    return _day_number(parts[1], parts[2], parts[3], text)


def _parse_timestamp(text: str) -> int:
    parts = re.match(INSTANT_TEXT, text, re.ASCII)
    if parts is None or text.endswith("\n"):
        raise bad_cast(text, "timestamp (YYYY-MM-DDTHH:MM:SS.ffffffZ)")
    hour, minute, second = int(parts[4]), int(parts[5]), int(parts[6] or 0)
    if hour > 23 or minute > 59 or second > 59:
        raise bad_cast(text, "timestamp")
    micros = int((parts[7] or "").ljust(6, "0"))
    return (
        _day_number(parts[1], parts[2], parts[3], text) * DAY
        + ((hour * 60 + minute) * 60 + second) * 1_000_000
        + micros
    )


def _parse_int(text: str) -> int:
    if re.match(INTEGER_TEXT, text, re.ASCII) is None or text.endswith("\n") or not INT64_MIN <= int(text) <= INT64_MAX:
        raise bad_cast(text, "bigint")
    return int(text)


def _parse_double(text: str) -> float:
    if re.match(NUMBER_TEXT, text, re.ASCII) is None or text.endswith("\n"):
        raise bad_cast(text, "double")
    return float(text)


def _double_to_int(x: float) -> int:
    if not -(2.0**63) <= x < 2.0**63:
        raise bad_cast(x, "bigint")
    return int(x)


def _double_text(x: float) -> str:
    return {math.inf: "Infinity", -math.inf: "-Infinity"}.get(x) or ("NaN" if math.isnan(x) else repr(x + 0.0))


def _decimal_text(value: int, scale: int) -> str:
    digits = str(abs(value)).rjust(scale + 1, "0")
    sign = "-" if value < 0 else ""
    return f"{sign}{digits[:-scale]}.{digits[-scale:]}" if scale else sign + digits


BOOL_TO_INT = Kernel("bool_to_int", int)
DOUBLE_TO_INT = Kernel("double_to_int", _double_to_int, failure=BAD_CAST, mentions=2)
PARSE_INT = Kernel("parse_int", _parse_int, failure=BAD_CAST, mentions=2)
PARSE_DOUBLE = Kernel("parse_double", _parse_double, failure=BAD_CAST, mentions=2)
PARSE_DATE = Kernel("parse_date", _parse_date, failure=BAD_CAST, mentions=12)
PARSE_TIMESTAMP = Kernel("parse_timestamp", _parse_timestamp, failure=BAD_CAST, mentions=24)
INT_TO_STRING = Kernel("int_to_string", str)
DOUBLE_TO_STRING = Kernel("double_to_string", _double_text)
DECIMAL_TO_STRING = Kernel("decimal_to_string", _decimal_text, mentions=4)
BOOL_TO_STRING = Kernel("bool_to_string", lambda a: "true" if a else "false")
FORMAT_DATE = Kernel("format_date", _format_date, failure=BAD_CAST, mentions=4)
FORMAT_TIMESTAMP = Kernel("format_timestamp", _format_timestamp, failure=BAD_CAST, mentions=16)
KERNELS: Final = (
    BOOL_TO_INT, DOUBLE_TO_INT, PARSE_INT, PARSE_DOUBLE, PARSE_DATE, PARSE_TIMESTAMP,
    INT_TO_STRING, DOUBLE_TO_STRING, DECIMAL_TO_STRING, BOOL_TO_STRING, FORMAT_DATE, FORMAT_TIMESTAMP,
)  # fmt: skip

# --- rules -----------------------------------------------------------------------------------------------------------

_CASTS: Mapping[tuple[Kind, str], Kernel] = MappingProxyType(
    {
        (Kind.BOOLEAN, "bigint"): BOOL_TO_INT,
        (Kind.DOUBLE, "bigint"): DOUBLE_TO_INT,
        (Kind.STRING, "bigint"): PARSE_INT,
        (Kind.STRING, "double"): PARSE_DOUBLE,
        (Kind.STRING, "date"): PARSE_DATE,
        (Kind.STRING, "timestamp"): PARSE_TIMESTAMP,
        (Kind.BIGINT, "string"): INT_TO_STRING,
        (Kind.DOUBLE, "string"): DOUBLE_TO_STRING,
        (Kind.BOOLEAN, "string"): BOOL_TO_STRING,
        (Kind.DATE, "string"): FORMAT_DATE,
        (Kind.TIMESTAMP, "string"): FORMAT_TIMESTAMP,
    }
)
#: Casts between types that are held alike: instants and durations as their ticks, and back.
_SAME = frozenset(
    {(kind, "bigint") for kind in (Kind.TIMESTAMP, Kind.DATE, Kind.DURATION)}
    | {(Kind.BIGINT, name) for name in ("timestamp", "date", "duration")}
)
#: Casts that change the unit of what is held.
_OTHER = frozenset(
    {(Kind.DATE, "timestamp"), (Kind.TIMESTAMP, "date"), (Kind.DECIMAL, "bigint")}
    | {(Kind.DECIMAL, "string")}
    | {(kind, "double") for kind in (Kind.BIGINT, Kind.DECIMAL)}
)
_TARGETS: Mapping[str, DataType] = MappingProxyType(
    {"bigint": BIGINT, "double": DOUBLE, "string": STRING, "timestamp": TIMESTAMP, "date": DATE, "duration": DURATION}
)
#: What a number says that becomes a value of time.
_UNITS: Mapping[str, str] = MappingProxyType(
    {
        "timestamp": ' A bigint is microseconds since 1970-01-01 UTC: of seconds write `(x * 1_000_000).cast("timestamp")`.',
        "duration": ' A bigint is microseconds: of seconds write `(x * 1_000_000).cast("duration")`.',
        "date": " A bigint is days since 1970-01-01.",
    }
)


def cast(name: str) -> Operation:
    lenient, target = name.startswith("try_"), name.removeprefix("try_").removeprefix("cast_")
    prefix = "try_cast" if lenient else "cast"
    if target.startswith("decimal_"):
        precision, scale = (int(part) for part in target.split("_")[1:])
        try:
            to = decimal(precision, scale)
        except ValueError as error:
            raise QueryError(
                "TG102", str(error), hint="decimal(18,2) has 18 digits, 2 of them after the point"
            ) from None
        return Operation(
            name,
            "a bigint or decimal",
            _decimal_cast(to, lenient),
            f'x.{prefix}("{to}")',
            fallible=True,
            doc="Rounds half away from zero.",
        )
    to = _TARGETS[target]
    takes = "any of " + ", ".join(sorted({kind.value for kind, goal in (*_CASTS, *_SAME, *_OTHER) if goal == target}))

    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        arity(call, args, 1, 1, takes)
        (arg,) = args
        kind = arg.type.kind
        if arg.type in (to, NULL):
            return coerce(arg, to)
        if (kind, target) in _SAME:
            return apply(RESCALE, args, to, call, 1)
        if to == TIMESTAMP and kind is Kind.DATE:
            return apply(RESCALE, args, to, call, DAY, lenient=lenient)
        if to == DATE and kind is Kind.TIMESTAMP:
            return apply(FLOOR_DIV, args, to, call, DAY)
        if kind is Kind.DECIMAL and to == BIGINT:
            return apply(UNSCALE, args, to, call, 10**arg.type.scale)
        if kind is Kind.DECIMAL and to == STRING:
            return apply(DECIMAL_TO_STRING, args, to, call, arg.type.scale)
        if to == DOUBLE and arg.type.is_numeric:
            return coerce(arg, to)
        kernel = _CASTS.get((kind, target))
        if kernel is None:
            raise mismatch(call, args, takes, _cast_hint(kind, target))
        return apply(kernel, args, to, call, lenient=lenient)

    doc = f"Converts to {target}{'; NULL where it fails' if lenient else ''}.{_UNITS.get(target, '')}"
    return Operation(name, takes, rule, f'x.{prefix}("{target}")', fallible=True, doc=doc)


def _cast_hint(kind: Kind, target: str) -> str:
    """Where no cast leads from one type to the other, two do: all types become bigint, and bigint becomes all."""
    if kind is Kind.DOUBLE and target.startswith("decimal"):
        return 'a double is no exact number: take .cast("bigint") first, of (x * 100).round() for hundredths'
    return 'take .cast("bigint") first'


def _decimal_cast(to: DataType, lenient: bool) -> Rule:
    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        takes = "a bigint or decimal"
        arity(call, args, 1, 1, takes)
        (arg,) = args
        if arg.type == NULL:
            return coerce(arg, to)
        if arg.type.kind not in (Kind.BIGINT, Kind.DECIMAL):
            raise mismatch(call, args, takes, _cast_hint(arg.type.kind, "decimal"))
        shift = to.scale - arg.type.scale
        kernel = RESCALE if shift >= 0 else UNSCALE_ROUNDED
        return apply(kernel, args, to, call, 10 ** abs(shift), lenient=lenient)

    return rule


OPERATIONS: Final = tuple(cast(prefix + target) for prefix in ("cast_", "try_cast_") for target in _TARGETS)
