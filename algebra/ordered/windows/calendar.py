"""Units of the calendar of a time zone, or of dates, by number: where they begin, and how long they last at most."""

from __future__ import annotations

from bisect import bisect_left
from functools import lru_cache
from types import MappingProxyType
from typing import Final, Literal, TypeAlias

from tidegate.algebra.functions.calendar import from_local, to_local
from tidegate.algebra.typed.kernels import DAY, civil, day_number

Unit: TypeAlias = Literal["day", "week", "month", "quarter", "year"]
#: The days of a unit at most.
LONGEST_DAYS: Final = MappingProxyType({"day": 1, "week": 7, "month": 31, "quarter": 92, "year": 366})
_MONTHS: Final = MappingProxyType({"month": 1, "quarter": 3, "year": 12})
#: The Monday before 1970-01-01, a Thursday.
_MONDAY: Final = -3


@lru_cache(1 << 16)
def beginning(unit: Unit, zone: str | None, number: int) -> int:
    """The instant at which a unit begins, of those that are counted from that of 1970-01-01.

    Where midnight is there twice, at the first; where it is not there, as the clock changes. Of dates, which have no
    zone, the last day before it: a window has its end, and not its start.
    """
    if zone is None:
        return _first_day(unit, number) - 1
    midnight = _first_day(unit, number) * DAY
    begins = from_local(midnight, zone)
    if to_local(begins, zone) == midnight:
        return begins
    # The first instant at which the clock shows more: it has changed by then, and that may be before midnight.
    return begins - DAY + bisect_left(range(begins - DAY, begins), midnight, key=lambda at: to_local(at, zone))


def first_from(unit: Unit, zone: str | None, instant: int) -> int:
    """The first unit that begins at an instant or after it."""
    number = _unit_of(unit, instant if zone is None else to_local(instant, zone) // DAY)
    while beginning(unit, zone, number) < instant:
        number += 1
    while beginning(unit, zone, number - 1) >= instant:
        number -= 1
    return number


def _first_day(unit: Unit, number: int) -> int:
    if unit == "day":
        return number
    if unit == "week":
        return 7 * number + _MONDAY
    year, month = divmod(number * _MONTHS[unit], 12)
    return day_number(1970 + year, month + 1, 1)


def _unit_of(unit: Unit, day: int) -> int:
    if unit == "day":
        return day
    if unit == "week":
        return (day - _MONDAY) // 7
    year, month, _ = civil(day)
    return (12 * (year - 1970) + month - 1) // _MONTHS[unit]
