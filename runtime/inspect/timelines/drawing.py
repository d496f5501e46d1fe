"""Timelines as pictures: an SVG element for each partition, on one axis, and a page or a part of a notebook that has them all."""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from tidegate.algebra.pretty import printable
from tidegate.algebra.time import format_duration, ticks_instant
from tidegate.runtime.inspect.timelines.script import SCRIPT
from tidegate.runtime.inspect.timelines.zones import in_zone, ticks_of_wall, wall_ticks

if TYPE_CHECKING:
    from tidegate.runtime.inspect.timelines.timeline import Bar, Lane

_LABELS, _WIDTH, _LANE, _BAR, _AXIS, _MARGIN = 120.0, 880.0, 22.0, 14.0, 26.0, 8.0
_COLOURS: Final = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
_TICKS: Final = 8
#: What instants of the axis may lie apart: seconds to days, in microseconds; further apart, days as round numbers are.
_STEPS: Final = tuple(1_000_000 * seconds for seconds in (1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400))
_MINUTE: Final = 60_000_000
_HOUR: Final = 60 * _MINUTE
_FITTED: Final = (
    SCRIPT.replace("WIDTH", f"{_WIDTH:.0f}").replace("LABELS", f"{_LABELS:.0f}").replace("MARGIN", f"{_MARGIN:.0f}")
)


@dataclass(frozen=True, slots=True)
class Axis:
    """The instants that are drawn, from the first to the last; `zone`: whose clocks are shown, None for plain numbers."""

    first: int
    last: int
    zone: dt.tzinfo | None

    def x(self, instant: int) -> float:
        """Where an instant lies."""
        return (instant - self.first) * _WIDTH / (self.last - self.first)

    def text(self, instant: int, timespec: str = "auto") -> str:
        """An instant in full."""
        if self.zone is None:
            return str(instant)
        return in_zone(ticks_instant(instant), self.zone).isoformat(sep=" ", timespec=timespec)

    def length(self, ticks: int) -> str:
        """How long a period is."""
        return str(ticks) if self.zone is None else format_duration(ticks)

    def marks(self, step: int) -> list[int]:
        """Instants a step apart, round as the zone's clocks show them."""
        if self.zone is None:
            return list(range(-(-self.first // step) * step, self.last + 1, step))
        first, last = wall_ticks(self.first, self.zone), wall_ticks(self.last, self.zone)
        if step > _HOUR:  # days of 23 hours too begin at midnight
            walls = range(-(-first // step) * step, last + 1, step)
            return [ticks_of_wall(wall, self.zone) for wall in walls]
        offset = first - self.first  # an hour that clocks show twice has its marks twice
        return [wall - offset for wall in range(-(-first // step) * step, self.last + offset + 1, step)]


def page(title: str, charts: Mapping[str, str], lanes: Sequence[Lane], tz: str | None) -> str:
    """A page of HTML that needs nothing else."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{_text(title)}</title></head>\n'
        f'<body style="font-family: sans-serif; margin: 1em">\n{part(title, charts, lanes, tz)}\n</body></html>\n'
    )


def part(title: str, charts: Mapping[str, str], lanes: Sequence[Lane], tz: str | None) -> str:
    """The charts of all partitions with a title, a legend and a field to search for them, as a part of a page or notebook.

    `lanes`: those of one of them; `tz`: the zone whose clocks they show, None for plain numbers.
    """
    parts = [
        # Without its script a chart that is wider than the screen scrolls: letters that shrink with it could not be read.
        f'<div data-partition="{_text(name)}"><h4>{_text(name)}</h4>\n<div style="overflow-x: auto">{chart}</div></div>'
        for name, chart in charts.items()
    ]
    zone = "" if tz is None else f' <small style="font-weight: normal">times in {_text(tz)}</small>'
    search = '<input class="timelines" type="search" placeholder="find a partition">' if len(parts) > 1 else ""
    return (
        f"<div><h3>{_text(title)}{zone}</h3>\n{_legend(lanes)}{search}\n"
        + "\n".join(parts or ["<p>No situations.</p>"])
        + f"\n<script>{_FITTED}</script></div>"
    )


def _legend(lanes: Sequence[Lane]) -> str:
    names = "".join(
        f'<span style="white-space: nowrap; margin-right: 1.2em"><span style="display: inline-block; width: 0.9em; '
        f'height: 0.9em; background: {colour}; opacity: 0.8"></span> {_text(name)}</span>'
        for name, colour in _colours(lanes).items()
    )
    signs = "Ctrl and the wheel or two fingers zoom, dragging moves, a double click shows all, pointing or a tap says what a bar is."
    if any(lane.detected is not None for lane in lanes):
        signs = f"red line: when a match was detected; dashed: had not ended then. {signs}"
    return f'<p style="font-size: 90%">{names}{signs}</p>\n' if lanes else ""


def drawn(lanes: Sequence[Lane], axis: Axis, left_out: int) -> str:
    """One partition as an SVG element; `left_out`: matches that have no lane in it."""
    rows = len(lanes) + (left_out > 0)
    height = _AXIS + _LANE * rows + _MARGIN
    names = [
        f'<text x="{_LABELS - 8:.0f}" y="{_AXIS + _LANE * k + 15:.0f}" text-anchor="end">{_text(lane.name)}</text>'
        for k, lane in enumerate(lanes)
    ]
    if left_out:
        whole = sum(lane.detected is not None for lane in lanes) + left_out
        told = f"{left_out:,} more {'match' if left_out == 1 else 'matches'}: most_matches={whole} draws all"
        names.append(
            f'<text x="8" y="{_AXIS + _LANE * (rows - 1) + 15:.0f}" font-size="12" fill="#666666">{told}</text>'
        )
    step = _step(axis.first, axis.last, axis.zone is not None)
    inside = [_tick(at, height, step, axis) for at in axis.marks(step)]
    colours = _colours(lanes)
    for k, lane in enumerate(lanes):
        y = _AXIS + _LANE * k + 4
        for bar in lane.bars:
            inside += _bar(bar, y, colours.get(bar.symbol, _COLOURS[-1]), axis)
        if lane.detected is not None:
            at = f"{axis.x(lane.detected):.2f}"
            about = f"{lane.name}: detected {axis.text(lane.detected)}" + (f", {lane.why}" if lane.why else "")
            inside.append(
                f'<line data-x="{at}" x1="{at}" x2="{at}" y1="{_AXIS:.0f}" y2="{y + _BAR:.0f}" stroke="#cc0000" '
                f'stroke-width="1.5"><title>{_text(about)}</title></line>'
            )
    width = _LABELS + _WIDTH + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="timeline" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" font-family="sans-serif" font-size="12">\n'
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>\n' + "\n".join(names) + "\n"
        f'<svg x="{_LABELS:.0f}" y="0" width="{_WIDTH:.0f}" height="{height:.0f}" overflow="hidden">\n'
        + "\n".join(inside)
        + "\n</svg>\n</svg>"
    )


def _bar(bar: Bar, y: float, colour: str, axis: Axis) -> list[str]:
    """A period as a rectangle; what of it was still to come when its match was detected, or is not known, is dashed."""
    end = axis.last if bar.end is None else bar.end
    until = axis.text(bar.end) if bar.end is not None else "an end that is not known"
    lasted = f" ({axis.length(bar.end - bar.start)})" if bar.end is not None else ""
    about = f"{bar.symbol} from {axis.text(bar.start)} to {until}{lasted}\n{bar.about}".strip()
    if bar.open_from is not None:
        known = min(bar.open_from, end)
    else:
        known = bar.start if bar.end is None else end
    pieces = [(bar.start, known, 'fill-opacity="0.8"'), (known, end, _DASHED)]
    parts = []
    for first, last, look in pieces if bar.start < end else pieces[:1]:
        if last > first or bar.start == end:
            x, w = axis.x(first), axis.x(last) - axis.x(first)
            parts.append(
                f'<rect data-x="{x:.2f}" data-w="{w:.2f}" x="{x:.2f}" y="{y:.0f}" width="{max(w, 1):.2f}" height="{_BAR:.0f}" '
                f'fill="{colour}" {look}><title>{_text(about)}</title></rect>'
            )
    return parts


_DASHED: Final = 'fill-opacity="0.3" stroke="#333333" stroke-dasharray="4 3"'


def _colours(lanes: Sequence[Lane]) -> dict[str, str]:
    return {
        name: _COLOURS[k % len(_COLOURS)] for k, name in enumerate(lane.name for lane in lanes if lane.detected is None)
    }


def _step(first: int, last: int, instants: bool) -> int:
    """How far apart the instants are that the axis shows: whole hours and the like, so that there are some."""
    least = max(1, (last - first) // _TICKS)
    units = [step for step in _STEPS if step >= least] if instants else []
    unit = _STEPS[-1] if instants and least > _STEPS[-1] else 1
    return units[0] if units and least > _STEPS[0] else unit * _round_number(-(-least // unit))


def _round_number(least: int) -> int:
    """The least number 1, 2 or 5 times a power of ten that is no less."""
    power: int = 10 ** (len(str(least)) - 1)
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= least)


def _tick(instant: int, height: float, step: int, axis: Axis) -> str:
    """A line of the axis with its label; `step` is how far apart they are."""
    x = axis.x(instant)
    label, text = (str(instant),) * 2 if axis.zone is None else _labels(axis.text(instant, "microseconds"), step)
    return (
        f'<line data-x="{x:.2f}" x1="{x:.2f}" x2="{x:.2f}" y1="{_AXIS - 6:.0f}" y2="{height:.0f}" stroke="#dddddd"/>'
        f'<text data-x="{x + 2:.2f}" x="{x + 2:.2f}" y="14" fill="#666666">{label}<title>{text}</title></text>'
    )


def _labels(text: str, step: int) -> tuple[str, str]:
    """What tells an instant from those a step apart, and all of it."""
    if step >= _STEPS[-1]:
        return text[:10], text[:19]
    if step >= _MINUTE:
        return text[5:16], text[:19]
    if step >= _STEPS[0]:
        return text[11:19], text[:19]
    digits = 7 - len(str(step))  # a step is 1, 2 or 5 times a power of ten
    return text[11 : 20 + digits], text[: 20 + digits]


def _text(text: str) -> str:
    return html.escape(printable(text))
