"""The calendar: beginnings of months and weeks, months added, local time, and instants as text of any form."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from tidegate.algebra.diagnostics.shown import nearest
from tidegate.algebra.formulas import UNITS
from tidegate.algebra.functions.instants import FLOOR, PART, day_of
from tidegate.algebra.functions.numbers import ADD
from tidegate.algebra.functions.rules import (
    RESCALE,
    Operation,
    Rule,
    arity,
    coerce,
    constant,
    misfit,
    mismatch,
    value_hint,
)
from tidegate.algebra.terms import Call, Lit
from tidegate.algebra.typed.kernels import (
    BAD_CAST,
    DAY,
    ERA_DAYS,
    FIRST_DAY,
    LAST_DAY,
    Kernel,
    Range,
    bad_cast,
    civil,
    day_number,
)
from tidegate.algebra.typed.terms import TypedTerm, apply, literal_leaf
from tidegate.algebra.types import BIGINT, DATE, DURATION, NULL, STRING, TIMESTAMP, Kind

if TYPE_CHECKING:
    from zoneinfo import ZoneInfo

# --- kernels ---------------------------------------------------------------------------------------------------------

ERA_MONTHS: Final = 4800


def _start(months: int) -> Kernel:
    """The first day of so many months, counted from January."""

    def value(day: int) -> int:
        year, month, _ = civil(day)
        return day_number(year, (month - 1) // months * months + 1, 1)

    return Kernel(f"start_of_{months}_months", value, range=lambda a: (a[0] - 31 * months, a[1]))


def _added(day: int, months: int) -> int:
    year, month, of_month = civil(day)
    year, month = divmod(12 * year + month - 1 + months, 12)
    first = day_number(year, month + 1, 1)
    after = day_number(year + (month + 1) // 12, (month + 1) % 12 + 1, 1)
    return min(first + of_month - 1, after - 1)


def _added_range(a: Range, months: int) -> Range:
    days = months * ERA_DAYS // ERA_MONTHS
    return a[0] + days - 31, a[1] + days + 31


def _in_calendar(ticks: int) -> tuple[dt.datetime, int]:
    """An instant in years that Python knows, in which the calendar is the same, and the ticks to it."""
    day, first, last = ticks // DAY, FIRST_DAY + 1, LAST_DAY - 1
    eras = (
        -((day - first) // ERA_DAYS) if day < first else -((day - last + ERA_DAYS - 1) // ERA_DAYS) if day > last else 0
    )
    moved = ticks + eras * ERA_DAYS * DAY
    return dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(microseconds=moved), moved


@lru_cache(1 << 6)
def _zone(name: str) -> ZoneInfo:
    from zoneinfo import ZoneInfo  # takes long to import

    return ZoneInfo(name)


_TICK: Final = dt.timedelta(microseconds=1)


def to_local(ticks: int, zone: str) -> int:
    offset = _in_calendar(ticks)[0].astimezone(_zone(zone)).utcoffset()
    assert offset is not None
    return ticks + offset // _TICK


def from_local(ticks: int, zone: str) -> int:
    # Of an hour that there is twice the first; in one that there is not, as before the clock changes.
    offset = _in_calendar(ticks)[0].replace(tzinfo=_zone(zone)).utcoffset()
    assert offset is not None
    return ticks - offset // _TICK


def _shifted_range(a: Range, _: str) -> Range:
    return a[0] - 2 * DAY, a[1] + 2 * DAY


_MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
#: What a directive reads, by its name; groups have the names of what they are.
_READS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "Y": r"(?P<Y>[0-9]{4})", "m": r"(?P<m>[0-9]{2})", "d": r"(?P<d>[0-9]{2})", "H": r"(?P<H>[0-9]{2})",
        "M": r"(?P<M>[0-9]{2})", "S": r"(?P<S>[0-9]{2})", "f": r"(?P<f>[0-9]{1,6})", "j": r"(?P<j>[0-9]{3})",
        "I": r"(?P<I>[0-9]{2})", "p": r"(?P<p>AM|PM)", "z": r"(?P<z>Z|[+-][0-9]{2}:?[0-9]{2})",
        "b": f"(?P<b>{'|'.join(name[:3] for name in _MONTHS)})", "B": f"(?P<B>{'|'.join(_MONTHS)})",
        "a": f"(?:{'|'.join(name[:3] for name in _DAYS)})", "A": f"(?:{'|'.join(_DAYS)})", "%": "%",
    }
)  # fmt: skip
_DIRECTIVE: Final = re.compile(r"%(.)", re.DOTALL)


def _format(ticks: int, pattern: str) -> str:
    day, rest = divmod(ticks, DAY)
    if not FIRST_DAY <= day <= LAST_DAY:
        raise bad_cast(ticks, "timestamp of the years 1 to 9999")
    year, month, of_month = civil(day)
    seconds, micros = divmod(rest, 1_000_000)
    hour, week_day = seconds // 3600, (day + 3) % 7
    parts = {
        "Y": f"{year:04d}", "m": f"{month:02d}", "d": f"{of_month:02d}", "H": f"{hour:02d}", "M": f"{seconds // 60 % 60:02d}",
        "S": f"{seconds % 60:02d}", "f": f"{micros:06d}", "j": f"{day - day_number(year, 1, 1) + 1:03d}",
        "I": f"{(hour - 1) % 12 + 1:02d}", "p": "AM" if hour < 12 else "PM", "z": "+0000", "b": _MONTHS[month - 1][:3],
        "B": _MONTHS[month - 1], "a": _DAYS[week_day][:3], "A": _DAYS[week_day], "%": "%",
    }  # fmt: skip
    return _DIRECTIVE.sub(lambda match: parts[match[1]], pattern)


@lru_cache(1 << 10)
def _reader(pattern: str) -> re.Pattern[str]:
    """What a pattern reads; `ValueError` for one that does not tell the day, or says a part twice."""
    parts, at = [], 0
    for directive in _DIRECTIVE.finditer(pattern):
        parts += [re.escape(pattern[at : directive.start()]), _READS[directive[1]]]
        at = directive.end()
    reader = re.compile("".join([*parts, re.escape(pattern[at:])]))  # re.error, a ValueError, for a part said twice
    names = set(reader.groupindex)
    months, hours = names & {"m", "b", "B", "j"}, names & {"H", "I"}
    if "Y" not in names or len(months) > 1 or len(hours) > 1 or ("I" in names) != ("p" in names):
        raise ValueError(pattern)
    return reader


def _parse(text: str, pattern: str) -> int:
    match = _reader(pattern).fullmatch(text)
    if match is None:
        raise bad_cast(text, f"timestamp of the form {pattern}")
    part = match.groupdict()
    month = int(part.get("m") or 1)
    if part.get("b") or part.get("B"):
        month = [name[:3] for name in _MONTHS].index((part.get("b") or part.get("B") or "")[:3]) + 1
    try:
        date = dt.date(int(part["Y"]), month, int(part.get("d") or 1))
        if part.get("j"):
            date = date.replace(month=1, day=1) + dt.timedelta(int(part["j"]) - 1)
            if date.year != int(part["Y"]):
                raise ValueError(part["j"])
    except (ValueError, OverflowError):
        raise bad_cast(text, "date of the years 1 to 9999") from None
    hour, minute, second = int(part.get("H") or 0), int(part.get("M") or 0), int(part.get("S") or 0)
    if part.get("I"):
        hour = int(part["I"]) % 12 + 12 * (part["p"] == "PM") if 1 <= int(part["I"]) <= 12 else 24
    offset = 0
    if part.get("z") and part["z"] != "Z":
        digits = part["z"][1:].replace(":", "")
        offset = (-60 if part["z"][0] == "-" else 60) * (60 * int(digits[:2]) + int(digits[2:]))
    if hour > 23 or minute > 59 or second > 59:
        raise bad_cast(text, "timestamp")
    day = date.toordinal() - dt.date(1970, 1, 1).toordinal()
    seconds = (hour * 60 + minute) * 60 + second - offset
    return day * DAY + seconds * 1_000_000 + int((part.get("f") or "").ljust(6, "0"))


def _iso(day: int) -> tuple[int, int]:
    """Year and number of the week (ISO 8601), in the first era after the epoch."""
    week = dt.date.fromordinal(dt.date(1970, 1, 1).toordinal() + day % ERA_DAYS).isocalendar()
    return week.year + day // ERA_DAYS * 400, week.week


STARTS: Final = MappingProxyType({"year": _start(12), "quarter": _start(3), "month": _start(1)})
START_OF_WEEK = Kernel("start_of_week", lambda day: day - (day + 3) % 7, range=lambda a: (a[0] - 6, a[1]), mentions=2)
QUARTER = Kernel("quarter", lambda day: (civil(day)[1] + 2) // 3)
WEEK = Kernel("week", lambda day: _iso(day)[1])
WEEK_YEAR = Kernel("week_year", lambda day: _iso(day)[0], mentions=2)
DAY_OF_YEAR = Kernel("day_of_year", lambda day: day - day_number(civil(day)[0], 1, 1) + 1)
ADD_MONTHS = Kernel("add_months", _added, range=_added_range, mentions=2)
TO_LOCAL = Kernel("to_local", to_local, range=_shifted_range)
FROM_LOCAL = Kernel("from_local", from_local, range=_shifted_range)
FORMAT = Kernel("format", _format, failure=BAD_CAST)
PARSE = Kernel("parse", _parse, failure=BAD_CAST)
KERNELS: Final = (
    *STARTS.values(), START_OF_WEEK, QUARTER, WEEK, WEEK_YEAR, DAY_OF_YEAR, ADD_MONTHS, TO_LOCAL, FROM_LOCAL, FORMAT, PARSE,
)  # fmt: skip

# --- rules -----------------------------------------------------------------------------------------------------------

_DATED: Final = "a timestamp or a date"
_DATED_KINDS: Final = (Kind.TIMESTAMP, Kind.DATE)
_MOST_MONTHS: Final = 120_000


def _dated(call: Call, args: tuple[TypedTerm, ...], count: int, takes: str) -> TypedTerm:
    arity(call, args, count, count, takes)
    if args[0].type.kind not in _DATED_KINDS:
        raise mismatch(call, args, takes, value_hint(call, args[0], Kind.TIMESTAMP))
    return args[0]


def _part_of_day(kernel: Kernel) -> Rule:
    """A number that a day has."""

    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        return apply(kernel, (day_of(_dated(call, args, 1, _DATED), call),), BIGINT, call)

    return rule


def _truncate(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    units = (*STARTS, "week", *UNITS)
    takes = f"{_DATED}, and one of {', '.join(units)}"
    arg = _dated(call, args, 2, takes)
    unit = constant(args[1], STRING)
    if unit in UNITS and arg.type == TIMESTAMP:
        return apply(FLOOR, (arg, literal_leaf(Lit(UNITS[str(unit)], DURATION))), TIMESTAMP, call)
    if unit == "day":
        return arg
    kernel = START_OF_WEEK if unit == "week" else STARTS.get(str(unit))
    if kernel is None:
        hint = "a date has no hours" if unit in UNITS else ""
        raise misfit(call, args, takes, _DATED_KINDS, 'x.truncate("month")', hint)
    day = apply(kernel, (day_of(arg, call),), DATE, call)
    return day if arg.type == DATE else apply(RESCALE, (day,), TIMESTAMP, call, DAY)


def _add_months(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = f"{_DATED}, and a constant number of months up to {_MOST_MONTHS:,}"
    arg = _dated(call, args, 2, takes)
    months = constant(args[1], BIGINT)
    if not isinstance(months, int) or abs(months) > _MOST_MONTHS:
        raise misfit(call, args, takes, _DATED_KINDS, "x.add_months(1)")
    day = apply(ADD_MONTHS, (day_of(arg, call),), DATE, call, months)
    if arg.type == DATE:
        return day
    midnight = apply(RESCALE, (day,), TIMESTAMP, call, DAY)
    return apply(ADD, (midnight, apply(PART, (arg,), DURATION, call, DAY, 1)), TIMESTAMP, call)


def is_zone(name: str) -> bool:
    try:
        return bool(_zone(name))
    except (KeyError, ValueError, OSError):
        return False


@lru_cache(maxsize=1)
def _zones() -> tuple[str, ...]:
    """The names of all time zones; their files are looked through for them, which takes 30 ms."""
    from zoneinfo import available_timezones  # as above

    return tuple(sorted(available_timezones()))


def zone_hint(name: object) -> str:
    near = nearest(name, _zones()) if isinstance(name, str) else []
    meant = " or ".join(f'"{zone}"' for zone in near)
    return f"did you mean {meant}?" if near else 'zones are called "Europe/Berlin", "America/New_York", "UTC"'


def _local(kernel: Kernel) -> Rule:
    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        takes = "a timestamp, and the constant name of a time zone"
        arity(call, args, 2, 2, takes)
        zone = constant(args[1], STRING)
        if args[0].type not in (TIMESTAMP, NULL) or not isinstance(zone, str) or not is_zone(zone):
            written = f'x.{call.op}("Europe/Berlin")'
            raise misfit(call, args, takes, (Kind.TIMESTAMP,), written, zone_hint(zone))
        return apply(kernel, (coerce(args[0], TIMESTAMP),), TIMESTAMP, call, zone)

    return rule


def _format_rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = f"{_DATED}, and a constant pattern with at least one part of it"
    if args and args[0].type.is_numeric:
        raise mismatch(call, args, takes, 'numbers become text with x.round(2).cast("string")')
    arg = _dated(call, args, 2, takes)
    pattern = constant(args[1], STRING)
    if not isinstance(pattern, str) or not _directives(pattern):
        raise misfit(call, args, takes, _DATED_KINDS, 'x.format("%d.%m.%Y")', _pattern_hint(pattern))
    ticks = arg if arg.type == TIMESTAMP else apply(RESCALE, (arg,), TIMESTAMP, call, DAY)
    return apply(FORMAT, (ticks,), STRING, call, pattern)


def _parse_rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a string, and a constant pattern with %Y, at most one month and one hour"
    arity(call, args, 2, 2, takes)
    pattern = constant(args[1], STRING)
    refused = misfit(call, args, takes, (Kind.STRING,), f'x.{call.op}("%d.%m.%Y")', _pattern_hint(pattern))
    if args[0].type not in (STRING, NULL) or not isinstance(pattern, str) or not _directives(pattern):
        raise refused
    try:
        _reader(pattern)
    except (ValueError, re.error):
        raise refused from None
    return apply(PARSE, (coerce(args[0], STRING),), TIMESTAMP, call, pattern, lenient=call.op.startswith("try_"))


def _directives(pattern: str) -> tuple[str, ...]:
    """The parts of an instant that a pattern has; none where a % begins nothing known."""
    names = re.findall(r"%(.|$)", pattern, re.DOTALL)
    return tuple(name for name in names if name != "%") if all(name in _READS for name in names) else ()


_DIRECTIVES_HINT: Final = f"there are %{' %'.join(_READS)}, such as in %d.%m.%Y %H:%M"
#: Parts of patterns as Java, Spark and Oracle write them. After a colon MM is meant of minutes.
_OF_OTHERS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "yyyy|uuuu|YYYY": "%Y", "(?<=:)MM": "%M", "MMMM|Month": "%B", "MMM|Mon": "%b", "MM": "%m", "DDD": "%j", "dd|DD": "%d",
        "HH24|HH": "%H", "HH12|hh": "%I", "mm|MI": "%M", "ss|SS": "%S", "S{3,9}|f{3,6}|FF[369]?": "%f", "EEEE": "%A", "E+": "%a",
        "a|AM|PM": "%p", "X+|Z+": "%z", "'T'|T": "T", "'Z'": "Z",
    }
)  # fmt: skip
_PART_OF_OTHERS: Final = re.compile("|".join(f"({part})" for part in _OF_OTHERS) + r"|[-/.:, ]")


def _pattern_hint(pattern: object) -> str:
    """How a pattern of another language is written here, or which parts there are."""
    if not isinstance(pattern, str):
        return ""
    parts, ours = list(_PART_OF_OTHERS.finditer(pattern)), tuple(_OF_OTHERS.values())
    written = "".join(ours[part.lastindex - 1] if part.lastindex else part[0] for part in parts)
    known = "%" in written and "".join(part[0] for part in parts) == pattern
    return f'write "{written}"' if known else _DIRECTIVES_HINT


def _texts(*values: str) -> tuple[tuple[Lit, ...], ...]:
    return tuple((Lit(value, STRING),) for value in values)


_ZONES = _texts("UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata")
_SHIFTS = tuple((Lit(months, BIGINT),) for months in (0, 1, -1, 12, 4799, -4801, 120_000))
OPERATIONS: Final = (
    Operation("truncate", "timestamp or date, unit", _truncate, 'x.truncate("month")', fallible=True, counts=(1,), constants=_texts(*STARTS, "week", *UNITS), temporal=True, doc="The beginning of the year, quarter, month, week (Monday), day, hour, minute or second."),
    Operation("quarter", "timestamp or date", _part_of_day(QUARTER), "x.quarter()", counts=(1,), doc="1 to 4."),
    Operation("week", "timestamp or date", _part_of_day(WEEK), "x.week()", counts=(1,), doc="Number of the week, as ISO 8601 counts: 1 to 53."),
    Operation("week_year", "timestamp or date", _part_of_day(WEEK_YEAR), "x.week_year()", counts=(1,), doc="The year that the week belongs to."),
    Operation("day_of_year", "timestamp or date", _part_of_day(DAY_OF_YEAR), "x.day_of_year()", counts=(1,), doc="1 to 366."),
    Operation("add_months", "timestamp or date, months", _add_months, "x.add_months(1)", fallible=True, counts=(1,), constants=_SHIFTS, doc="The same day of another month, or its last day if that has fewer."),
    Operation("to_local", "a timestamp, a zone", _local(TO_LOCAL), 'x.to_local("Europe/Berlin")', fallible=True, counts=(1,), constants=_ZONES, doc="What a clock there shows, as if it were UTC."),
    Operation("from_local", "a timestamp, a zone", _local(FROM_LOCAL), 'x.from_local("Europe/Berlin")', fallible=True, counts=(1,), constants=_ZONES, doc="The instant at which a clock there shows it: the first if there are two; if there is none, as before the clock changed."),
    Operation("format", "timestamp or date, pattern", _format_rule, 'x.format("%d.%m.%Y")', fallible=True, counts=(1,), constants=_texts("%Y-%m-%dT%H:%M:%S.%fZ", "%a %d %b", "%j %I%p %% %A %B %z", "\\d%d"), doc="Text by a pattern; years are 1 to 9999."),
    Operation("parse_timestamp", "a string, a pattern", _parse_rule, 'x.parse_timestamp("%d.%m.%Y")', fallible=True, counts=(1,), constants=_texts("%Y-%m-%d", "%Y-%m-%dT%H:%M:%S.%f%z", "%Y-%m-%d %H:%M", "%d.%m.%Y", "%Y"), doc="The instant that a text of this form says; fails for other text."),
    Operation("try_parse_timestamp", "a string, a pattern", _parse_rule, 'x.try_parse_timestamp("%d.%m.%Y")', counts=(1,), constants=_texts("%Y-%m-%d", "%B %d %Y"), doc="The same; NULL for other text."),
)  # fmt: skip
