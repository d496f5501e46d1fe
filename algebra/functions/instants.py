"""Instants: rounding, and their parts in UTC in the proleptic Gregorian calendar."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.functions import rounding
from tidegate.algebra.functions.rounding import whole
from tidegate.algebra.functions.rules import RESCALE, Operation, Rule, arity, mismatch
from tidegate.algebra.terms import Call, Lit
from tidegate.algebra.typed.kernels import DAY, Kernel, civil
from tidegate.algebra.typed.terms import TypedTerm, apply
from tidegate.algebra.types import BIGINT, DATE, DURATION, MAX_SHIFT, TIMESTAMP, Kind

# --- kernels ---------------------------------------------------------------------------------------------------------

_SECOND: Final = 1_000_000

FLOOR = Kernel(
    "floor_int",
    lambda a, unit: a // unit * unit,
    range=lambda a, unit: (a[0] // unit[0] * unit[0], a[1] // unit[0] * unit[0]),
    mentions=2,
)
CEIL = Kernel(
    "ceil_int",
    lambda a, unit: -(-a // unit) * unit,
    range=lambda a, unit: (-(-a[0] // unit[0]) * unit[0], -(-a[1] // unit[0]) * unit[0]),
    mentions=3,
)
#: Whole units since the epoch.
FLOOR_DIV = Kernel(
    "floor_div", lambda a, unit: a // unit, range=lambda a, unit: (a[0] // unit, a[1] // unit), mentions=2
)
#: How many of a unit there are in the part of a whole.
PART = Kernel("part", lambda a, whole, unit: a % whole // unit, range=lambda _, whole, unit: (0, whole // unit - 1))
YEAR = Kernel("year", lambda day: civil(day)[0], mentions=2)
MONTH = Kernel("month", lambda day: civil(day)[1])
DAY_OF_MONTH = Kernel("day", lambda day: civil(day)[2])
DAY_OF_WEEK = Kernel("day_of_week", lambda day: (day + 3) % 7 + 1)
KERNELS: Final = (FLOOR, CEIL, FLOOR_DIV, PART, YEAR, MONTH, DAY_OF_MONTH, DAY_OF_WEEK)

# --- rules -----------------------------------------------------------------------------------------------------------


def _rounding(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    """floor and ceil: multiples of a constant unit since the epoch (ticks), or of an integer."""
    takes = "an instant, duration or bigint, and a constant unit greater than zero; or a number alone"
    arity(call, args, 1, 2, takes)
    if len(args) == 1:
        down = call.op == "floor"
        return whole(*((rounding.FLOOR, rounding.UNSCALE_DOWN) if down else (rounding.CEIL, rounding.UNSCALE_UP)))(
            call, args
        )
    unit_type = {Kind.TIMESTAMP: DURATION, Kind.DURATION: DURATION, Kind.DATE: BIGINT, Kind.BIGINT: BIGINT}.get(
        args[0].type.kind
    )
    unit = args[1].source
    if unit_type is None or not isinstance(unit, Lit) or unit.type != unit_type:
        needs = {
            Kind.TIMESTAMP: 'a duration as its unit: "1h"',
            Kind.DURATION: 'a duration as its unit: "1h"',
            Kind.DATE: 'whole days as its unit: "7 days", or 7',
            Kind.BIGINT: "a whole number as its unit",
        }
        raise mismatch(call, args, takes, f"{args[0].type} takes {needs[args[0].type.kind]}" if unit_type else "")
    if not isinstance(unit.value, int) or not 0 < unit.value <= MAX_SHIFT:
        raise mismatch(call, args, takes, "the unit must be greater than zero")
    return apply(FLOOR if call.op == "floor" else CEIL, args, args[0].type, call)


def _calendar(kernel: Kernel) -> Rule:
    """Parts of the date; total on int64, as the calendar repeats every 400 years."""

    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        takes = "a timestamp or a date"
        arity(call, args, 1, 1, takes)
        if args[0].type.kind not in (Kind.TIMESTAMP, Kind.DATE):
            raise mismatch(call, args, takes)
        return apply(kernel, (day_of(args[0], call),), BIGINT, call)

    return rule


def day_of(arg: TypedTerm, call: Call) -> TypedTerm:
    """The day of a timestamp or date."""
    return arg if arg.type == DATE else apply(FLOOR_DIV, (arg,), DATE, call, DAY)


def _clock(whole: int, unit: int) -> Rule:
    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        arity(call, args, 1, 1, "a timestamp")
        if args[0].type != TIMESTAMP:
            raise mismatch(call, args, "a timestamp")
        return apply(PART, args, BIGINT, call, whole, unit)

    return rule


def _to_date(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    arity(call, args, 1, 1, "a timestamp")
    if args[0].type != TIMESTAMP:
        raise mismatch(call, args, "a timestamp")
    return apply(FLOOR_DIV, args, DATE, call, DAY)


def _to_timestamp(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    arity(call, args, 1, 1, "a date")
    if args[0].type != DATE:
        raise mismatch(call, args, "a date")
    return apply(RESCALE, args, TIMESTAMP, call, DAY)


_UNITS = tuple((Lit(unit, type_),) for type_ in (BIGINT, DURATION) for unit in (1, 7, 3_600_000_000))
_DATED = "timestamp or date"
OPERATIONS: Final = (
    Operation("floor", "instant and unit", _rounding, "tg.floor(x, unit)", fallible=True, temporal=True, counts=(1,), constants=((), *_UNITS), doc="Last multiple of the unit at or before; without a unit the whole number."),
    Operation("ceil", "instant and unit", _rounding, "tg.ceil(x, unit)", fallible=True, temporal=True, counts=(1,), constants=((), *_UNITS), doc="First multiple of the unit at or after; without a unit the whole number."),
    Operation("year", _DATED, _calendar(YEAR), "x.year()"),
    Operation("month", _DATED, _calendar(MONTH), "x.month()"),
    Operation("day", _DATED, _calendar(DAY_OF_MONTH), "x.day()"),
    Operation("day_of_week", _DATED, _calendar(DAY_OF_WEEK), "x.day_of_week()", doc="Monday is 1, Sunday 7."),
    Operation("hour", "a timestamp", _clock(DAY, 3600 * _SECOND), "x.hour()"),
    Operation("minute", "a timestamp", _clock(3600 * _SECOND, 60 * _SECOND), "x.minute()"),
    Operation("second", "a timestamp", _clock(60 * _SECOND, _SECOND), "x.second()", doc="Whole seconds."),
    Operation("to_date", "a timestamp", _to_date, "x.to_date()", doc="Its day in UTC."),
    Operation("to_timestamp", "a date", _to_timestamp, "x.to_timestamp()", fallible=True, doc="Its midnight in UTC."),
)  # fmt: skip
