"""Time zones by name: the clock in which instants are shown."""

from __future__ import annotations

import datetime as dt
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import MICROSECONDS, instant_ticks, ticks_instant

#: Clocks do not change twice within it.
_WEEK: Final = 7 * MICROSECONDS["d"]


def zone_of(name: object) -> dt.tzinfo:
    """The zone of that name; `QueryError` TG402 for a name that no zone of this machine has."""
    if name == "UTC":
        return dt.UTC  # needs no data of zones, which not every machine has
    try:
        return ZoneInfo(name)  # type: ignore[arg-type]  # what is no text is refused as a name is that no zone has
    except (LookupError, ValueError, TypeError, AttributeError, OSError):
        zones = available_timezones()
        hint = (
            'write a name such as "America/New_York"'
            if zones
            else "pip install tzdata: this machine has no data of zones"
        )
        by_name = {zone.rpartition("/")[2]: zone for zone in zones} | {zone: zone for zone in zones}
        near = nearest(name, by_name, 1) if isinstance(name, str) else []
        hint = f"did you mean {by_name[near[0]]!r}?" if near else hint
        raise QueryError("TG402", f"tz={shown(name)} is no time zone", hint=hint) from None


def in_zone(value: dt.datetime, zone: dt.tzinfo) -> dt.datetime:
    """An instant as the clocks of a zone show it; in UTC at the ends of time, which have no other name in some
    zones.
    """
    instant = value if value.tzinfo is not None else value.replace(tzinfo=dt.UTC)
    try:
        return instant.astimezone(zone)
    except OverflowError:
        return instant


def clock_offsets(first: int, last: int, zone: dt.tzinfo) -> list[tuple[int, int, int]]:
    """The parts of a period in which the clocks of a zone are ahead of UTC by one offset: the first and last tick, and
    the offset.
    """

    def offset(instant: int) -> int:
        return instant_ticks(in_zone(ticks_instant(instant), zone).replace(tzinfo=dt.UTC)) - instant

    offsets, begin, apart = [], first, max(_WEEK, (last - first) // 2_000)
    for at in (*range(first, last, apart), last):
        while offset(begin) != offset(at):
            before, after = begin, at  # halved until they are neighbours: clocks change between them
            while after - before > 1:
                between = (before + after) // 2
                before, after = (between, after) if offset(between) == offset(begin) else (before, between)
            offsets.append((begin, before, offset(begin)))
            begin = after
    return [*offsets, (begin, last, offset(begin))]
