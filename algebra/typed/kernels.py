"""Kernels: what computes the values of a function for one representation of its operands, in plain Python.

A kernel knows what values are held as (int64, double, string, boolean); an operation chooses it for the types at hand.
Engines have forms of kernels under the same names, which must agree with these.
"""

from __future__ import annotations

import datetime as dt
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.algebra.terms import Value

if TYPE_CHECKING:
    from tidegate.algebra.typed.terms import TypedTerm

OVERFLOW, ZERO_DIVISION, BAD_CAST = "TG301", "TG302", "TG303"
DAY = 86_400_000_000
#: Days and years after which the Gregorian calendar repeats; every weekday too, as 7 divides the days.
ERA_DAYS, ERA_YEARS = 146_097, 400
FIRST_DAY, LAST_DAY = -719_162, 2_932_896  # 0001-01-01 and 9999-12-31

#: Least and greatest integer.
Range = tuple[int, int]
#: Ranges of the operands, then the constants, to the range of the result before any limit; None where nothing is known.
RangeRule = Callable[..., Range | None]
Constant = int | float | str
Evaluator = Callable[[Mapping[str, Value]], Value]


def any_operand(args: Sequence[TypedTerm]) -> bool:
    return any(arg.nullable for arg in args)


def never(_: Sequence[TypedTerm]) -> bool:
    return False


def always(_: Sequence[TypedTerm]) -> bool:
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel: its meaning in Python, and what is known of its values before it runs.

    `python` takes the operands, then the constants, and raises `KernelFailure` where there is no value. It is called
    where no operand is NULL, unless `takes_null`. Its integers are unbounded: the caller checks them against the result
    type. `lazy` is there instead for kernels that do not evaluate every operand. `nullable`: whether the value can be
    NULL. `failure`: the code of its failure besides overflow, and `total`: whether it cannot fail so for these
    operands. `mentions`: how often an expression of an engine mentions its operands.
    """

    name: str
    python: Callable[..., Value] | None = None
    lazy: Callable[[Sequence[Evaluator]], Evaluator] | None = None
    range: RangeRule | None = None
    nullable: Callable[[Sequence[TypedTerm]], bool] = any_operand
    takes_null: bool = False
    failure: str | None = None
    total: Callable[[Sequence[TypedTerm]], bool] = never
    mentions: int = 1


#: What stands at the leaves of typed terms.
LITERAL, ATTRIBUTE, PARAMETER = Kernel("literal"), Kernel("attribute"), Kernel("parameter")


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


def key_of(value: Value) -> Value | tuple[str]:
    """Equal for exactly the values that are one: NULL for NULL, NaN for NaN, 0.0 for -0.0."""
    if isinstance(value, float):
        return ("NaN",) if math.isnan(value) else value + 0.0
    return value


def civil(day: int) -> tuple[int, int, int]:
    """Year, month and day of a day number in the proleptic Gregorian calendar, for any integer."""
    era, within = divmod(day, ERA_DAYS)
    date = dt.date.fromordinal(dt.date(1970, 1, 1).toordinal() + within)
    return date.year + era * ERA_YEARS, date.month, date.day


def day_number(year: int, month: int, day: int) -> int:
    """The number of a day, for any year; the day is counted from the first of its month."""
    era, within = divmod(year, ERA_YEARS)
    first = dt.date(within + ERA_YEARS, month, 1).toordinal() - dt.date(1970, 1, 1).toordinal()
    return first + (era - 1) * ERA_DAYS + day - 1
