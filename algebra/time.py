"""Durations and instants: from what a user writes to int64 ticks, and back to text."""

from __future__ import annotations

import datetime as dt
import re
from typing import Final

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.types import MAX_INSTANT, MAX_SHIFT, DataType, Kind

_NAMES = {
    1: ("us", "\u00b5s", "\u03bcs", "usec", "microsecond"),
    1_000: ("ms", "msec", "millisecond"),
    1_000_000: ("s", "sec", "second"),
    60_000_000: ("m", "min", "minute"),
    3_600_000_000: ("h", "hr", "hour"),
    86_400_000_000: ("d", "day"),
    7 * 86_400_000_000: ("w", "week"),
}
#: Units by every name that people write; those that are words, or cut short like words, have a plural.
MICROSECONDS = {name: ticks for ticks, names in _NAMES.items() for name in names} | {
    f"{name}s": ticks for ticks, names in _NAMES.items() for name in names if len(name) > 2 or name == "hr"
}
_UNITS = (("d", 86_400_000_000), ("h", 3_600_000_000), ("m", 60_000_000), ("s", 1_000_000), ("ms", 1_000), ("us", 1))
_SHORT = re.compile(r"\s*([+-]?\s*\d+(?:\.\d+)?)\s*([a-z\u00b5\u03bc]+)", re.IGNORECASE)
_AND = re.compile(r"\s*,\s*|\s+and\s+", re.IGNORECASE)
_ISO = re.compile(
    "(?P<sign>-)?P{w}{d}(?:T{h}{m}{s})?".format_map(
        {unit: rf"(?:(?P<{unit}>\d+(?:[.,]\d+)?){unit.upper()})?" for unit in "wdhms"}
    )
)
#: What people write of months and years, of which some is near to other units.
NO_LENGTH = re.compile(
    r"\s*(?:-?P(?:\d+[YMWD])*\d+[YM].*|[+-]?\s*[\d.]+\s*(?:mo|mon|months?|q|quarters?|y|yr|years?)\b.*)",
    re.IGNORECASE | re.DOTALL,
)
#: More characters than any duration needs; Python reads no numbers of 4,300.
_LONGEST = 400
EPOCH = dt.datetime(1970, 1, 1, tzinfo=dt.UTC)

#: What mends that two instants are of different types: what a cast yields is no instant.
ONE_TYPE: Final = "declare both as one type in their schemas: what a cast yields is no instant"

DurationLike = dt.timedelta | str

#: Progress and bounds: an int64 tick count or one of ±INF (the only floats allowed).
INF = float("inf")
Extended = int | float


def duration_ticks(value: object) -> int:
    """Microseconds of a `timedelta`, an ISO-8601 duration (`PT1H30M`) or text such as `90s`, `1h 30m`, `30 minutes`."""
    if not isinstance(value, dt.timedelta | str):
        raise QueryError("TG104", f"{shown(value)} is not a duration", hint='write "90s", or a datetime.timedelta')
    if isinstance(value, dt.timedelta):
        ticks = (value.days * 86_400 + value.seconds) * 1_000_000 + value.microseconds
    else:
        ticks = _parse(value) if len(value) <= _LONGEST else MAX_SHIFT + 1
    if abs(ticks) > MAX_SHIFT:
        raise QueryError(
            "TG104",
            f"duration {shown(value)} is longer than {format_duration(MAX_SHIFT)}",
            hint="use a shorter duration",
        )
    return ticks


def whole_days(value: object, ticks: int) -> int:
    """The days of a duration, which is what moves dates; `QueryError` TG104 where something of a day is left over."""
    days, rest = divmod(ticks, MICROSECONDS["d"])
    if rest:
        raise QueryError(
            "TG104",
            f"{shown(value)} is no whole number of days, and dates move by whole days",
            hint='write "2d"; for a part of a day, declare a timestamp instead of the date in the schema',
        )
    return days


def _parse(text: str) -> int:
    iso = _ISO.fullmatch(text.strip())
    if iso and any(iso[unit] for unit in "wdhms"):
        parts = {unit: (iso[unit] or "0").replace(",", ".") for unit in "wdhms"}  # ISO 8601 has either decimal sign
        total = sum(_fraction(number, MICROSECONDS[unit], text) for unit, number in parts.items())
        return -total if iso["sign"] else total
    position, total = 0, 0
    while position < len(text):
        part = _SHORT.match(text, position)
        if part is None or part[2].lower() not in MICROSECONDS or part[2] == "M":
            break
        total += _fraction("".join(part[1].split()), MICROSECONDS[part[2].lower()], text)
        position = part.end()
        if (between := _AND.match(text, position)) and _SHORT.match(text, between.end()):
            position = between.end()
    if position == 0 or text[position:].strip():
        unit = _SHORT.match(text, position)
        asked = "" if unit is None else unit[2].lower()
        near = nearest(asked, MICROSECONDS) or [asked[:-1]] * (asked[:-1] in MICROSECONDS)
        hint = f"did you mean {near[0]}? " if near else ""
        if unit is not None and unit[2] == "M":
            months = f"move instants by them, t.add_months({unit[1]}); else "
            hint = f'write "{unit[1]}m" for minutes; months differ in length: {months}'
        elif (capital := _ISO.fullmatch(text.strip().upper())) and any(capital[unit] for unit in "wdhms"):
            hint = f'did you mean "{capital[0]}"? '
        elif NO_LENGTH.match(text, position):
            hint = (
                "months and years differ in length: say it in days, or move instants by months: t.add_months(1); else "
            )
        hint += 'write "90s", "1h 30m", "30 minutes", "PT1H30M" or a datetime.timedelta'
        raise QueryError("TG104", f"{text!r} is not a duration", hint=hint)
    return total


def _fraction(number: str, unit: int, text: str) -> int:
    whole, _, part = number.partition(".")
    parts: int = 10 ** len(part)
    ticks, rest = divmod((abs(int(whole)) * parts + int(part or 0)) * unit, parts)
    if rest:
        raise QueryError("TG104", f"duration {text!r} is finer than a microsecond", hint="round it to microseconds")
    return -ticks if whole.startswith("-") else ticks


def format_duration(ticks: int) -> str:
    """A duration as people read it: `1h 30m`, `-500ms`, `0s`; `1d - 1us` where that has fewer parts."""
    sign, opposite = ("-", "+") if ticks < 0 else ("", "-")
    parts = in_units(abs(ticks))
    short_of = [
        (in_units(abs(ticks) + count * size), f"{count}{unit}") for unit, size in _UNITS[-3:] for count in range(1, 10)
    ]
    whole, missing = min(short_of, key=lambda pair: len(pair[0]))
    if len(whole) + 1 < len(parts):
        return f"{sign}{' '.join(whole)} {opposite} {missing}"
    return sign + " ".join(parts)


def signed_duration(ticks: int) -> str:
    """A duration as it moves an instant: `+ 30m`, `- 1d + 1us`."""
    return f"{'-' if ticks < 0 else '+'} {format_duration(ticks).removeprefix('-')}"


def in_units(ticks: int) -> list[str]:
    """A duration of 0 or more as the sum of its units: `59m`, `59s`."""
    parts = []
    for unit, size in _UNITS:
        count, ticks = divmod(ticks, size)
        if count:
            parts.append(f"{count}{unit}")
    return parts or ["0s"]


def instant_ticks(value: dt.datetime) -> int:
    """Microseconds since the epoch of a datetime; a naive one is read as UTC."""
    aware = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    delta = aware - EPOCH
    return (delta.days * 86_400 + delta.seconds) * 1_000_000 + delta.microseconds


def ticks_instant(ticks: int) -> dt.datetime:
    """The datetime (UTC) of a tick count; `OverflowError` outside the years 1 to 9999."""
    return EPOCH + dt.timedelta(microseconds=ticks)


def last_instant(type_: DataType) -> int:
    """The greatest instant of a timeline, which stands for the end of the input: the last one of the year 9999 for
    timestamps and dates, of integers the greatest that can be an instant.
    """
    last = dt.datetime.max.replace(tzinfo=dt.UTC)
    match type_.kind:
        case Kind.TIMESTAMP:
            return instant_ticks(last)
        case Kind.DATE:
            return (last - EPOCH).days
        case _:
            return MAX_INSTANT


def format_instant(ticks: int) -> str:
    """An instant as ISO text, or its tick count where no calendar year fits it."""
    try:
        return ticks_instant(ticks).isoformat().replace("+00:00", "Z")
    except OverflowError:
        return f"{ticks} ticks"
