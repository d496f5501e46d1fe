"""The picture of a run: per airport how late departures were by day and hour, poor visibility, and flights that did not
leave.

Plain data in; text and SVG out. Times are New York's, without a zone. A month and a year are drawn alike: a column is a
day.
"""

from __future__ import annotations

import html
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import Final

HOUR: Final = timedelta(hours=1)
DAY: Final = timedelta(days=1)
BARS: Final = " ▁▂▃▄▅▆▇█"
#: Average delay of an hour's departures: less than so many minutes has this colour; then how it is called.
LEVELS: Final = (
    (5.0, "#fdf0d5", "less than 5"),
    (15.0, "#fdd49e", "5 to 15"),
    (30.0, "#fc8d59", "15 to 30"),
    (60.0, "#d7301f", "30 to 60"),
    (float("inf"), "#7f0000", "60 or more"),
)
FOG, MISSING, INK, FAINT = "#5b7f9e", "#6a3d9a", "#333", "#888"


@dataclass(frozen=True, slots=True)
class Hour:
    """Departures of an airport in the hour from `start` on, and their average delay in minutes."""

    start: datetime
    departures: int
    delay: float


@dataclass(frozen=True, slots=True)
class Lane:
    """An airport: its hours with departures, periods `[start, end)` of poor visibility, planned times of those that did
    not leave.
    """

    name: str
    hours: Sequence[Hour]
    episodes: Sequence[tuple[datetime, datetime]]
    missing: Sequence[datetime]


@dataclass(frozen=True, slots=True)
class Picture:
    """Airports over the days from `start` on."""

    title: str
    start: date
    days: int
    lanes: Sequence[Lane]

    def __post_init__(self) -> None:
        if self.days < 1:
            raise ValueError("a picture has one day or more")

    def day_of(self, moment: datetime) -> int | None:
        """The column of a moment, None outside the picture."""
        column = (moment.date() - self.start).days
        return column if 0 <= column < self.days else None


@dataclass(slots=True)
class Day:
    """What a column says of an airport's day."""

    departures: int = 0
    minutes: float = 0.0
    poor: timedelta = timedelta(0)
    missing: int = 0

    @property
    def delay(self) -> float:
        """The average delay in minutes."""
        return self.minutes / self.departures if self.departures else 0.0


def days_of(picture: Picture, lane: Lane) -> list[Day]:
    """An airport's days, one for each column."""
    found = [Day() for _ in range(picture.days)]
    for hour in lane.hours:
        if (column := picture.day_of(hour.start)) is not None:
            found[column].departures += hour.departures
            found[column].minutes += hour.departures * hour.delay
    for moment in lane.missing:
        if (column := picture.day_of(moment)) is not None:
            found[column].missing += 1
    for column, day in enumerate(found):
        midnight = datetime.combine(picture.start, time()) + column * DAY
        overlaps = (min(end, midnight + DAY) - max(start, midnight) for start, end in lane.episodes)
        day.poor = sum((length for length in overlaps if length > timedelta(0)), timedelta(0))
    return found


def text_picture(picture: Picture, width: int = 100) -> str:
    """Per airport three lines over the period: average delay, hours of poor visibility, flights that did not leave."""
    margin = 14
    columns = min(picture.days, width - margin) if picture.days > width - margin else picture.days
    wide = max((width - margin) // picture.days, 1)  # characters of a day
    lines = [picture.title]
    for lane in picture.lanes:
        days = days_of(picture, lane)
        groups = [days[k * picture.days // columns : (k + 1) * picture.days // columns] for k in range(columns)]
        rows: Mapping[str, Iterable[float]] = {
            "average delay": (sum(day.minutes for day in g) / max(sum(day.departures for day in g), 1) for g in groups),
            "visibility": (max(day.poor / HOUR for day in g) for g in groups),
            "did not leave": (max(day.missing for day in g) for g in groups),
        }
        lines.append(lane.name)
        lines += [f"{name:>{margin - 1}} " + "".join(bar * wide for bar in _bars(list(v))) for name, v in rows.items()]
    lines.append(" " * margin + _text_axis(picture, columns * wide))
    lines.append(" " * margin + "each line's highest bar is its maximum; visibility: hours of less than three miles;")
    lines.append(" " * margin + "did not leave: flights still there two hours after their time")
    return "\n".join(line.rstrip() for line in lines)


def svg_picture(picture: Picture, width: int = 1200) -> str:
    """The picture as an SVG that needs nothing else: a column is a day, a row an hour of it, its colour the average
    delay.

    Below, per day, hours of poor visibility and flights that did not leave. One path for each colour of an airport, so
    that a year stays small; pointing at a day says its figures.
    """
    left, right, top, row, strip, gap = 104, 16, 70, 5, 26, 30
    wide = (width - left - right) / picture.days
    pitch = 24 * row + 2 * (strip + 6) + gap
    bottom = top + pitch * len(picture.lanes) - gap
    plot = width - left - right
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 40}" width="{width}" '
        f'height="{bottom + 40}" font-family="sans-serif" font-size="12" fill="{INK}" role="img">',
        f"<title>{html.escape(picture.title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{left}" y="24" font-size="16" font-weight="bold">{html.escape(picture.title)}</text>',
        _legend(left, 50),
    ]
    for column, label in _marked_days(picture, at_most=16):
        x = left + column * wide
        out.append(f'<path d="M{x:.1f} {top - 8}V{bottom + 4}" stroke="#ccc"/>')
        out.append(f'<text x="{x + 3:.1f}" y="{bottom + 18}">{label}</text>')
    for number, lane in enumerate(picture.lanes):
        y = top + pitch * number
        days = days_of(picture, lane)
        most = max((day.missing for day in days), default=0)
        out.append(f"<g><title>{html.escape(lane.name)}</title>")
        out.append(
            f'<text x="{left - 40}" y="{y + 12}" text-anchor="end" font-weight="bold">{html.escape(lane.name)}</text>'
        )
        out += [
            f'<text x="{left - 6}" y="{y + hour * row + 9}" text-anchor="end" fill="{FAINT}">{hour}:00</text>'
            for hour in (0, 6, 12, 18)
        ]
        out += _hours(picture, lane, left, y, wide, row)
        y += 24 * row + 6
        out.append(_strip("poor", [day.poor / DAY for day in days], left, y + strip, wide, strip, FOG))
        out.append(_named(left, plot, y + strip, "up to 24 h", "poor visibility", strip))
        y += strip + 6
        out.append(
            _strip("missing", [day.missing / (most or 1) for day in days], left, y + strip, wide, strip, MISSING)
        )
        out.append(_named(left, plot, y + strip, f"up to {most}", "did not leave", strip))
        out += _pointed(picture, days, left, top + pitch * number, wide, pitch - gap)
        out.append("</g>")
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _hours(picture: Picture, lane: Lane, left: float, top: float, wide: float, row: int) -> list[str]:
    """One path of cells for each colour; an hour without departures has none."""
    cells: dict[str, list[str]] = defaultdict(list)
    for (column, hour), delay in sorted(_cells(picture, lane).items()):
        colour = next(colour for below, colour, _ in LEVELS if delay < below)
        cells[colour].append(f"M{left + column * wide:.1f} {top + hour * row:g}h{wide:.1f}v{row}h-{wide:.1f}z")
    return [f'<path class="hours" fill="{colour}" d="{"".join(path)}"/>' for colour, path in cells.items()]


def _cells(picture: Picture, lane: Lane) -> dict[tuple[int, int], float]:
    """The average delay by day and hour; when clocks go back, two hours are one cell."""
    sums: dict[tuple[int, int], list[Hour]] = defaultdict(list)
    for hour in lane.hours:
        if (column := picture.day_of(hour.start)) is not None:
            sums[column, hour.start.hour].append(hour)
    return {
        place: sum(hour.delay * hour.departures for hour in hours) / sum(hour.departures for hour in hours)
        for place, hours in sums.items()
    }


def _strip(kind: str, shares: Sequence[float], left: float, base: float, wide: float, high: int, colour: str) -> str:
    """A bar for each day, upwards from the base."""
    path = "".join(
        f"M{left + column * wide:.1f} {base:g}v-{share * high:.1f}h{wide:.1f}v{share * high:.1f}z"
        for column, share in enumerate(shares)
        if share > 0
    )
    return f'<path class="{kind}" fill="{colour}" d="{path}"/>'


def _named(left: int, plot: float, base: float, most: str, name: str, high: int) -> str:
    """The line below a strip, what its bars are, and what the highest one can be."""
    return (
        f'<path d="M{left} {base:g}h{plot:.1f}" stroke="#bbb"/>'
        f'<text x="{left - 6}" y="{base - high + 9:g}" text-anchor="end" fill="{FAINT}">{most}</text>'
        f'<text x="{left - 6}" y="{base:g}" text-anchor="end" fill="{FAINT}" font-size="11">{name}</text>'
    )


def _pointed(picture: Picture, days: Sequence[Day], left: float, top: float, wide: float, high: float) -> list[str]:
    """An invisible rectangle over each day, which says its figures to who points at it."""
    found = []
    for column, day in enumerate(days):
        told = (
            f"{_label(picture.start + column * DAY)}: {day.departures} departures, {day.delay:.0f} minutes "
            f"late on average, {day.poor / HOUR:.0f} hours of poor visibility, {day.missing} flights had not "
            "left two hours after their time"
        )
        found.append(
            f'<rect x="{left + column * wide:.1f}" y="{top:g}" width="{wide:.1f}" height="{high:g}" fill="#fff" '
            f'fill-opacity="0"><title>{told}</title></rect>'
        )
    return found


def _legend(left: int, y: int) -> str:
    """What the colours are, in the order of the delay."""
    out, x = [f'<text x="{left}" y="{y}">average delay by hour, in minutes:</text>'], left + 205
    for _, colour, name in LEVELS:
        out.append(
            f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/><text x="{x + 17}" '
            f'y="{y}">{name}</text>'
        )
        x += 36 + 7 * len(name)
    out.append(f'<text x="{x + 10}" y="{y}" fill="{FAINT}">white: no departure</text>')
    return "".join(out)


def _bars(values: Sequence[float]) -> str:
    """One character a value, up to a full block at the maximum; any positive value shows at least the lowest bar."""
    top = max((*values, 0))
    levels = len(BARS) - 1
    return "".join(BARS[min(int(-(-value * levels // top)), levels)] if value > 0 else " " for value in values)


def _label(day: date) -> str:
    return f"{day:%b} {day.day}"


def _marked_days(picture: Picture, at_most: int) -> list[tuple[int, str]]:
    """Columns with their labels: each of so many days, or the first of each month."""
    step = next((days for days in (1, 2, 5, 10) if picture.days <= days * at_most), None)
    days = [(column, picture.start + column * DAY) for column in range(picture.days)]
    if step is None:
        return [(column, f"{day:%b}") for column, day in days if day.day == 1]
    return [(column, _label(day)) for column, day in days[::step]]


def _text_axis(picture: Picture, width: int) -> str:
    line, end = [" "] * width, 0
    for column, label in _marked_days(picture, at_most=max(width // 9, 1)):
        place, text = column * width // picture.days, f"│{label}"
        if place >= end and place + len(text) <= width:
            line[place : place + len(text)] = text
            end = place + len(text) + 1
    return "".join(line).rstrip()
