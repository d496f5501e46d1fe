"""Timelines as pictures: an SVG element for each partition, on one axis, and a page or a part of a notebook that has
them all.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tidegate.algebra.printing.plans import printable
from tidegate.runtime.inspect.timelines.axis import WIDTH, Axis
from tidegate.runtime.inspect.timelines.script import SCRIPT

if TYPE_CHECKING:
    from tidegate.runtime.inspect.timelines.timeline import Bar, Lane

_LABELS, _LANE, _BAR, _AXIS, _MARGIN = 120.0, 22.0, 14.0, 26.0, 8.0
_COLOURS: Final = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
#: Of more lines than these, each is as much paler: side by side they would be one red area.
_SOLID: Final = 40
_FITTED: Final = (
    SCRIPT.replace("WIDTH", f"{WIDTH:.0f}")
    .replace("LABELS", f"{_LABELS:.0f}")
    .replace("MARGIN", f"{_MARGIN:.0f}")
    .replace("SOLID", f"{_SOLID}")
)


def page(title: str, charts: Mapping[str, str], lanes: Sequence[Lane], tz: str | None, left_out: str) -> str:
    """A page of HTML that needs nothing else."""
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta name="viewport" content="width=device-width"><title>{_text(title)}</title></head>\n'
        '<body style="font-family: sans-serif; margin: '
        f'1em">\n{part(title, charts, lanes, tz, left_out)}\n</body></html>\n'
    )


def part(title: str, charts: Mapping[str, str], lanes: Sequence[Lane], tz: str | None, left_out: str) -> str:
    """The charts of all partitions with a title, a legend and a field to search for them, as a part of a page or
    notebook.

    `lanes`: those of one of them; `tz`: the zone whose clocks they show, None for plain numbers; `left_out`: what is
    not drawn.
    """
    parts = [
        # Without its script a chart that is wider than the screen scrolls: letters that shrink with it could not be
        # read.
        f'<div data-partition="{_text(name)}"><h4>{_text(name)}</h4>\n<div style="overflow-x: auto">{chart}</div></div>'
        for name, chart in charts.items()
    ]
    zone = "" if tz is None else f' <small style="font-weight: normal">times in {_text(tz)}</small>'
    search = (
        '<input class="timelines" type="search" style="background: transparent; color: inherit; border: 1px solid" '
        'placeholder="find a partition"> <small></small>'
        if len(parts) > 1
        else ""
    )
    more = f"<p><small>{_text(left_out)}</small></p>" if left_out else ""
    return (
        f"<div><h3>{_text(title)}{zone}</h3>\n{_legend(lanes)}{search}{more}\n"
        + "\n".join(parts or ["<p>No situations.</p>"])
        + f"\n<script>{_FITTED}</script></div>"
    )


def _legend(lanes: Sequence[Lane]) -> str:
    names = "".join(
        f'<span style="white-space: nowrap; margin-right: 1.2em"><span style="display: inline-block; width: 0.9em; '
        f'height: 0.9em; background: {colour}; opacity: 0.8"></span> {_text(name)}</span>'
        for name, colour in _colours(lanes).items()
    )
    signs = (
        "Ctrl and the wheel or two fingers zoom, dragging moves, a double click shows all, pointing or a tap "
        "says what a bar is."
    )
    if any(lane.detected is not None for lane in lanes):
        signs = (
            "red line: when a match was detected; dashed: had not ended then. A click on the name of a match "
            f"shows it. {signs}"
        )
    return f'<p style="font-size: 90%">{names}{signs}</p>\n' if lanes else ""


def drawn(lanes: Sequence[Lane], axis: Axis, left_out: int) -> str:
    """One partition as an SVG element; `left_out`: matches that have no lane in it.

    What starts with `data-` is for the script: places with so many digits that a 5,000th of the axis is right to the
    pixel.
    """
    rows = len(lanes) + (left_out > 0)
    height = _AXIS + _LANE * rows + _MARGIN
    names = [
        (
            f'<text x="{_LABELS - 8:.0f}" y="{_AXIS + _LANE * k + 15:.0f}" '
            f'text-anchor="end"{_extent(lane, axis)}>{_text(lane.name)}</text>'
        )
        for k, lane in enumerate(lanes)
    ]
    if left_out:
        whole = sum(lane.detected is not None for lane in lanes) + left_out
        note = f"{left_out:,} more {'match' if left_out == 1 else 'matches'}: most_matches={whole} draws all"
        names.append(
            f'<text x="8" y="{_AXIS + _LANE * (rows - 1) + 15:.0f}" font-size="12" fill="#666666">{note}</text>'
        )
    inside = [_mark(*mark, height, axis) for mark in axis.marks()]
    colours, opacity = _colours(lanes), _opacity(sum(lane.detected is not None for lane in lanes))
    for k, lane in enumerate(lanes):
        y = _AXIS + _LANE * k + 4
        for bar in lane.bars:
            inside += _bar(bar, y, colours.get(bar.symbol, _COLOURS[-1]), axis)
        if lane.detected is not None:
            at, finer = (f"{axis.x(lane.detected):.{digits}f}" for digits in (2, 6))
            about = f"{lane.name}: detected {axis.text(lane.detected)}" + (f", {lane.why}" if lane.why else "")
            inside.append(
                f'<line class="match" stroke-opacity="{opacity:.2f}" data-x="{finer}" x1="{at}" x2="{at}" '
                f'y1="{_AXIS:.0f}" y2="{y + _BAR:.0f}" stroke="#cc0000" '
                f'stroke-width="1.5"><title>{_text(about)}</title></line>'
            )
    width = _LABELS + WIDTH + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="timeline" data-axis="{html.escape(axis.to_json())}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" height="{height:.0f}" role="img" '
        f'font-family="sans-serif" font-size="12">\n<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>\n'
        + "\n".join(names)
        + "\n"
        f'<svg x="{_LABELS:.0f}" y="0" width="{WIDTH:.0f}" height="{height:.0f}" overflow="hidden">\n'
        + "\n".join(inside)
        + "\n</svg>\n</svg>"
    )


def _opacity(lines: int) -> float:
    """How solid lines are of which so many are shown: those of a year let see where they are dense. The script does the
    same.
    """
    return max(0.1, min(1.0, _SOLID / max(1, lines)))


def _extent(lane: Lane, axis: Axis) -> str:
    """From where to where a match lies, for who wants to see it alone."""
    if lane.detected is None:
        return ""
    ends = [axis.last if bar.end is None else bar.end for bar in lane.bars]
    first, last = min(lane.detected, *(bar.start for bar in lane.bars)), max(lane.detected, *ends)
    return f' data-from="{axis.x(first):.6f}" data-to="{axis.x(last):.6f}"'


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
                f'<rect data-x="{x:.6f}" data-w="{w:.6f}" x="{x:.2f}" y="{y:.0f}" width="{max(w, 1):.2f}" '
                f'height="{_BAR:.0f}" fill="{colour}" {look}><title>{_text(about)}</title></rect>'
            )
    return parts


_DASHED: Final = 'fill-opacity="0.3" stroke="#333333" stroke-dasharray="4 3"'


def _colours(lanes: Sequence[Lane]) -> dict[str, str]:
    return {
        name: _COLOURS[k % len(_COLOURS)] for k, name in enumerate(lane.name for lane in lanes if lane.detected is None)
    }


def _mark(instant: int, label: str, whole: str, height: float, axis: Axis) -> str:
    """A line of the axis with its label."""
    x = axis.x(instant)
    return (
        f'<line class="mark" data-x="{x:.2f}" x1="{x:.2f}" x2="{x:.2f}" y1="{_AXIS - 6:.0f}" '
        f'y2="{height:.0f}" stroke="#dddddd"/><text class="mark" data-x="{x:.2f}" x="{x + 2:.2f}" y="14" '
        f'fill="#666666">{label}<title>{whole}</title></text>'
    )


def _text(text: str) -> str:
    return html.escape(printable(text))
