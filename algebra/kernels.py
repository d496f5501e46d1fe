"""What the kernels compute: each a small function of values as held, in plain Python. Engines must agree with these.

A kernel knows one representation only (int64, double, string, boolean); `operations` chooses it for the types at hand.
"""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Callable, Mapping
from types import MappingProxyType

from tidegate.algebra.terms import Value
from tidegate.algebra.types import INT64_MAX, INT64_MIN

OVERFLOW, ZERO_DIVISION, BAD_CAST = "TG301", "TG302", "TG303"
DAY = 86_400_000_000
#: Days and years after which the Gregorian calendar repeats; every weekday too, as 7 divides the days.
ERA_DAYS, ERA_YEARS = 146_097, 400
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31

INTEGER_TEXT = r"^[+-]?[0-9]{1,30}$"
NUMBER_TEXT = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]{1,4})?$"
DATE_TEXT = r"^([0-9]{4})-([0-9]{2})-([0-9]{2})$"
INSTANT_TEXT = r"^([0-9]{4})-([0-9]{2})-([0-9]{2})[ T]([0-9]{2}):([0-9]{2})(?::([0-9]{2})(?:\.([0-9]{1,6}))?)?Z?$"


class KernelFailure(Exception):
    """A kernel has no value for these operands; `code` says why."""

    def __init__(self, code: str, reason: str) -> None:
        super().__init__(reason)
        self.code = code


def overflow() -> KernelFailure:
    return KernelFailure(OVERFLOW, "the result is out of range")


def bad_cast(value: object, target: str) -> KernelFailure:
    return KernelFailure(BAD_CAST, f"{value!r} is no {target}")


def compare(a: Value, b: Value) -> int:
    """-1, 0 or 1 as a is before, equal to or after b: NaN equals itself and is greatest, -0.0 equals 0.0."""
    if isinstance(a, float) and isinstance(b, float) and (math.isnan(a) or math.isnan(b)):
        return math.isnan(a) - math.isnan(b)
    # Python orders strings by code point, which is the order of their UTF-8 bytes.
    return (a > b) - (a < b)  # type: ignore[operator]  # both of one type, checked when the query was built


def truncated_division(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def _idiv(a: int, b: int) -> int:
    if b == 0:
        raise KernelFailure(ZERO_DIVISION, "division by zero")
    return truncated_division(a, b)


def _mod(a: int, b: int) -> int:
    return a - _idiv(a, b) * b


def _div(a: float, b: float) -> float:
    if b == 0.0:
        raise KernelFailure(ZERO_DIVISION, "division by zero")
    return a / b


def _multiply(a: float, b: float) -> float:
    return a * b


def _round_half_away(value: int, factor: int) -> int:
    rounded = (abs(value) + factor // 2) // factor
    return -rounded if value < 0 else rounded


def _sqrt(x: float) -> float:
    return math.nan if x < 0 else math.sqrt(x)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _ln(x: float) -> float:
    if x == 0.0:
        return -math.inf
    return math.nan if x < 0 else math.log(x)


def _power(x: float, y: float) -> float:
    x += 0.0  # -0.0 equals 0.0, so no result may tell them apart
    if y == 0.0:
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if math.isinf(y) and abs(x) == 1.0:
        return math.nan
    if x == 0.0 and y < 0:
        return math.inf
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:  # a negative number to a fractional power
        return math.nan


def civil(day: int) -> tuple[int, int, int]:
    """Year, month and day of a day number in the proleptic Gregorian calendar, for any integer."""
    era, within = divmod(day, ERA_DAYS)
    date = dt.date.fromordinal(dt.date(1970, 1, 1).toordinal() + within)
    return date.year + era * ERA_YEARS, date.month, date.day


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


def _substring(text: str, start: int, length: int) -> str:
    first, end = max(start, 1), start + max(length, 0)
    return text[first - 1 : max(end - 1, 0)] if end > first else ""


_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TO_LOWER, _TO_UPPER = str.maketrans(_UPPER, _LOWER), str.maketrans(_LOWER, _UPPER)


def _least(*values: Value) -> Value:
    best = values[0]
    for value in values[1:]:
        best = value if compare(value, best) < 0 else best
    return best


def _greatest(*values: Value) -> Value:
    best = values[0]
    for value in values[1:]:
        best = value if compare(value, best) > 0 else best
    return best


#: The kernels that are NULL when any operand is: operands (constants of the kernel last) to value or `KernelFailure`.
#: Integer results are checked against their limits by the caller, so these compute in unbounded integers.
STRICT: Mapping[str, Callable[..., Value]] = MappingProxyType(
    {
        "not": lambda a: not a,
        "eq": lambda a, b: compare(a, b) == 0,
        "ne": lambda a, b: compare(a, b) != 0,
        "lt": lambda a, b: compare(a, b) < 0,
        "le": lambda a, b: compare(a, b) <= 0,
        "gt": lambda a, b: compare(a, b) > 0,
        "ge": lambda a, b: compare(a, b) >= 0,
        "least": _least,
        "greatest": _greatest,
        "add_int": lambda a, b: a + b,
        "sub_int": lambda a, b: a - b,
        "mul_int": lambda a, b: a * b,
        "idiv_int": _idiv,
        "mod_int": _mod,
        "neg_int": lambda a: -a,
        "abs_int": abs,
        "floor_int": lambda a, unit: a // unit * unit,
        "ceil_int": lambda a, unit: -(-a // unit) * unit,
        "floor_div": lambda a, unit: a // unit,
        "part": lambda a, whole, unit: a % whole // unit,
        "rescale": lambda a, factor: a * factor,
        # Comparing decimals of different scale: what exceeds 18 digits is beyond every decimal, and stays so.
        "rescale_clamped": lambda a, factor: max(-(10**18), min(10**18, a * factor)),
        "unscale": truncated_division,
        "unscale_rounded": _round_half_away,
        "int_to_double": float,
        "decimal_to_double": lambda a, factor: float(a) / float(factor),
        "add_double": lambda a, b: a + b,
        "sub_double": lambda a, b: a - b,
        "mul_double": _multiply,
        "div_double": _div,
        "neg_double": lambda a: -a,
        "abs_double": abs,
        "sqrt": _sqrt,
        "exp": _exp,
        "ln": _ln,
        "power": _power,
        "concat": lambda *parts: "".join(parts),
        "lower": lambda s: s.translate(_TO_LOWER),
        "upper": lambda s: s.translate(_TO_UPPER),
        "length": len,
        "substring": _substring,
        "trim": lambda s: s.strip(" "),
        "starts_with": lambda s, part: s.startswith(part),
        "ends_with": lambda s, part: s.endswith(part),
        "contains": lambda s, part: part in s,
        "replace": lambda s, old, new: s.replace(old, new),
        "year": lambda day: civil(day)[0],
        "month": lambda day: civil(day)[1],
        "day": lambda day: civil(day)[2],
        "day_of_week": lambda day: (day + 3) % 7 + 1,
        "bool_to_int": int,
        "double_to_int": _double_to_int,
        "parse_int": _parse_int,
        "parse_double": _parse_double,
        "parse_date": _parse_date,
        "parse_timestamp": _parse_timestamp,
        "int_to_string": str,
        "bool_to_string": lambda a: "true" if a else "false",
        "format_date": _format_date,
        "format_timestamp": _format_timestamp,
    }
)

#: Kernels with a rule of their own for NULL or for what they evaluate at all.
SPECIAL = frozenset({"and", "or", "if", "coalesce", "is_null", "is_not_null", "eq_null_safe"})


#: Failures besides integer overflow, by kernel.
FAILURES: Mapping[str, str] = MappingProxyType(
    {
        "idiv_int": ZERO_DIVISION,
        "mod_int": ZERO_DIVISION,
        "div_double": ZERO_DIVISION,
        "double_to_int": BAD_CAST,
        "parse_int": BAD_CAST,
        "parse_double": BAD_CAST,
        "parse_date": BAD_CAST,
        "parse_timestamp": BAD_CAST,
        "format_date": BAD_CAST,
        "format_timestamp": BAD_CAST,
    }
)
