"""One value from a user's input to how it is held: what is accepted for each type, and why a value is malformed."""

from __future__ import annotations

import datetime as dt
import math
import re
from decimal import Decimal, InvalidOperation
from typing import Any, assert_never

from tidegate.algebra.errors import QueryError
from tidegate.algebra.terms import Value
from tidegate.algebra.time import duration_ticks, instant_ticks
from tidegate.algebra.types import INT64_MAX, INT64_MIN, DataType, Kind

NULL = "null"
UNPARSEABLE = "unparseable"
WRONG_TYPE = "wrong type"
OUT_OF_RANGE = "out of range"
INEXACT = "inexact"
MISSING = "missing column"
#: The error of a line of JSON that holds something else.
NO_OBJECT = "no JSON object"

#: How a number is written, for every type of numbers: what Python's `float` reads, in ASCII and without underscores.
_NUMBER = re.compile(r"[+-]?(?:([0-9]+\.?[0-9]*|\.[0-9]+)(?:e([+-]?[0-9]+))?|inf|infinity|nan)", re.IGNORECASE)
#: A number with more digits than this before its point is beyond the range of every exact type.
_MOST_DIGITS = 40
_BOOLEANS = {"true": True, "false": False}
_EPOCH_DAY = dt.date(1970, 1, 1).toordinal()


class MalformedValue(Exception):
    """A value that an attribute cannot hold; `reason` is one of the constants above."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnreadableValue:
    """Stands for a value that was refused before it came here; prints as its text.

    With an `error` it stands for every value of a line that could not be taken apart, and has the line.
    """

    def __init__(self, text: str, reason: str = UNPARSEABLE, error: str | None = None) -> None:
        self.text = text
        self.reason = reason
        self.error = error

    def __str__(self) -> str:
        return self.text


def held_value(value: object, type_: DataType) -> Value:
    """A Python value as engines hold it; `MalformedValue` where the type cannot hold it.

    Text is parsed for every type, numbers by one grammar; an instant without offset is UTC; finer than a microsecond is
    rounded down. NULL is held as it is: whether it is allowed is the attribute's matter.
    """
    if value is None:
        return None
    if isinstance(value, UnreadableValue):
        raise MalformedValue(value.reason)
    if hasattr(value, "item") and not isinstance(value, str | bytes):  # numpy scalars
        value = _item(value)
    if value is None or (isinstance(value, dt.date) and value != value):  # pandas' NaT equals nothing
        return None
    match type_.kind:
        case Kind.BOOLEAN:
            return _boolean(value)
        case Kind.BIGINT:
            return _bigint(value)
        case Kind.DOUBLE:
            return _double(value)
        case Kind.STRING:
            if isinstance(value, str):
                return _utf8(value)
        case Kind.TIMESTAMP:
            return _timestamp(value)
        case Kind.DATE:
            return _date(value)
        case Kind.DURATION:
            return _duration(value)
        case Kind.DECIMAL:
            return _decimal(value, type_)
        case Kind.NULL:
            pass
        case _:
            assert_never(type_.kind)
    raise MalformedValue(WRONG_TYPE)


def _item(value: Any) -> object:
    """The value of a numpy scalar; an array is no value."""
    if getattr(value, "ndim", 0):
        raise MalformedValue(WRONG_TYPE)
    try:
        return value.item()
    except (TypeError, ValueError):
        raise MalformedValue(WRONG_TYPE) from None


def _utf8(value: str) -> str:
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:  # half a surrogate pair
        raise MalformedValue(UNPARSEABLE) from None
    return value


def _boolean(value: object) -> bool:
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        truth = _BOOLEANS.get(value.strip().lower())
        if truth is None:
            raise MalformedValue(UNPARSEABLE)
        return truth
    raise MalformedValue(WRONG_TYPE)


def _int64(value: int) -> int:
    if not INT64_MIN <= value <= INT64_MAX:
        raise MalformedValue(OUT_OF_RANGE)
    return value


def _bigint(value: object) -> int:
    match value:
        case bool():
            raise MalformedValue(WRONG_TYPE)
        case int():
            return _int64(value)
        case float():
            if not abs(value) < 2.0**63:  # also NaN
                raise MalformedValue(OUT_OF_RANGE)
            if value != math.trunc(value):
                raise MalformedValue(INEXACT)
            return int(value)
        case Decimal() | str():
            number = _exact(value) if isinstance(value, str) else value
            if not number.is_finite() or (
                number and number.adjusted() > _MOST_DIGITS
            ):  # 1e999999999 is not written out
                raise MalformedValue(OUT_OF_RANGE)
            if number and (number.adjusted() < 0 or number != number.to_integral_value()):
                raise MalformedValue(INEXACT)
            return _int64(int(number))
        case _:
            raise MalformedValue(WRONG_TYPE)


def _exact(text: str) -> Decimal:
    """The number that a text spells, exactly; `MalformedValue` for a text that spells none, or one beyond what a
    Decimal can hold.
    """
    spelled = _NUMBER.fullmatch(text := text.strip())
    if spelled is None:
        raise MalformedValue(UNPARSEABLE)
    try:
        return Decimal(text)
    except InvalidOperation:  # an exponent of 19 digits or more
        digits, exponent = spelled.groups()
        if not digits.strip("0."):
            return Decimal(0)
        raise MalformedValue(INEXACT if exponent.startswith("-") else OUT_OF_RANGE) from None


def _double(value: object) -> float:
    match value:
        case bool():
            raise MalformedValue(WRONG_TYPE)
        case float():
            return value
        case int() | Decimal():
            try:
                number = float(value)
            except (OverflowError, ValueError):
                raise MalformedValue(OUT_OF_RANGE) from None
            if math.isinf(number) and not (isinstance(value, Decimal) and value.is_infinite()):
                raise MalformedValue(OUT_OF_RANGE)
            return number
        case str():
            if _NUMBER.fullmatch(text := value.strip()) is None:
                raise MalformedValue(UNPARSEABLE)
            number = float(text)
            if math.isinf(number) and "inf" not in text.lower():  # 1e400
                raise MalformedValue(OUT_OF_RANGE)
            return number
        case _:
            raise MalformedValue(WRONG_TYPE)


def _timestamp(value: object) -> int:
    match value:
        case dt.datetime():
            return instant_ticks(value)
        case dt.date():
            return (value.toordinal() - _EPOCH_DAY) * 86_400_000_000
        case str():
            try:
                return instant_ticks(dt.datetime.fromisoformat(value.strip()))
            except ValueError:
                raise MalformedValue(UNPARSEABLE) from None
        case _:
            raise MalformedValue(WRONG_TYPE)


def _date(value: object) -> int:
    match value:
        case dt.datetime():
            midnight = dt.time(0) == value.timetz().replace(tzinfo=None)
            if not midnight:
                raise MalformedValue(INEXACT)
            return value.toordinal() - _EPOCH_DAY
        case dt.date():
            return value.toordinal() - _EPOCH_DAY
        case str():
            try:
                return dt.date.fromisoformat(value.strip()).toordinal() - _EPOCH_DAY
            except ValueError:
                raise MalformedValue(UNPARSEABLE) from None
        case _:
            raise MalformedValue(WRONG_TYPE)


def _duration(value: object) -> int:
    match value:
        case bool():
            raise MalformedValue(WRONG_TYPE)
        case int():
            return _int64(value)
        case dt.timedelta():
            return (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
        case str():
            try:
                return duration_ticks(value)
            except (QueryError, ValueError):  # or more digits than Python reads
                raise MalformedValue(UNPARSEABLE) from None
        case _:
            raise MalformedValue(WRONG_TYPE)


def _decimal(value: object, type_: DataType) -> int:
    match value:
        case bool():
            raise MalformedValue(WRONG_TYPE)
        case int() | Decimal():
            number = Decimal(value)
        case float():
            number = Decimal(repr(value))  # the shortest text that reads back as this double is what its user meant
        case str():
            number = _exact(value)
        case _:
            raise MalformedValue(WRONG_TYPE)
    if not number.is_finite() or (number and number.adjusted() > _MOST_DIGITS):
        raise MalformedValue(OUT_OF_RANGE)
    _, digits, exponent = number.as_tuple()
    significant = "".join(map(str, digits)).rstrip("0")
    shift = int(exponent) + len(digits) - len(significant) + type_.scale
    if significant and shift < 0:
        raise MalformedValue(INEXACT)
    unscaled = int(significant) * 10**shift if significant else 0
    if unscaled >= 10**type_.precision:
        raise MalformedValue(OUT_OF_RANGE)
    return -unscaled if number < 0 else unscaled
