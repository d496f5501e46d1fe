"""Timelines: situations and matches of each partition as a picture, since people would rather look at intervals than read them.

A lane per name of situations, a lane per match below them, a line where each match was detected. In a browser the wheel
zooms in time, dragging moves, and pointing at a bar shows its row.
"""

from __future__ import annotations

import datetime as dt
import html
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa

from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError
from tidegate.algebra.pretty import printable
from tidegate.algebra.shown import shown
from tidegate.algebra.time import instant_ticks, ticks_instant
from tidegate.runtime.columns import user_rows
from tidegate.runtime.given import kind_of

_LABELS, _WIDTH, _LANE, _BAR, _AXIS, _MARGIN = 120.0, 880.0, 22.0, 14.0, 26.0, 8.0
_COLOURS: Final = ("#4477aa", "#ee6677", "#228833", "#ccbb44", "#66ccee", "#aa3377", "#bbbbbb")
_TICKS: Final = 8
#: What instants of the axis may lie apart: seconds to days, in microseconds; further apart, days as round numbers are.
_STEPS: Final = tuple(1_000_000 * seconds for seconds in (1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400))
_MINUTE: Final = 60_000_000
#: Wheel and drag move the part of the time axis that is shown; the names at the left stay. A notebook has the script once for
#: each chart: those that listen already are left alone.
_SCRIPT: Final = """
document.querySelectorAll('svg.timeline').forEach(function (svg) {
  if (svg.listens) { return; }
  svg.listens = true;
  var inner = svg.querySelector('svg'), full = inner.viewBox.baseVal, width = full.width, from = null;
  function show(x, w) {
    w = Math.max(width / 5000, Math.min(width, w));
    x = Math.max(0, Math.min(width - w, x));
    inner.setAttribute('viewBox', x + ' ' + full.y + ' ' + w + ' ' + full.height);
  }
  function at(event) {
    var box = inner.getBoundingClientRect(), view = inner.viewBox.baseVal;
    return view.x + (event.clientX - box.left) / box.width * view.width;
  }
  inner.addEventListener('wheel', function (event) {
    event.preventDefault();
    var view = inner.viewBox.baseVal, x = at(event), by = event.deltaY > 0 ? 1.25 : 0.8;
    show(x - (x - view.x) * by, view.width * by);
  });
  inner.addEventListener('mousedown', function (event) { from = at(event); });
  window.addEventListener('mouseup', function () { from = null; });
  window.addEventListener('mousemove', function (event) {
    if (from !== null) { var view = inner.viewBox.baseVal; show(view.x + from - at(event), view.width); }
  });
});
"""


@dataclass(frozen=True, slots=True)
class Bar:
    """A period in a lane; `end` None: it had not ended."""

    start: int
    end: int | None
    about: str


@dataclass(frozen=True, slots=True)
class Lane:
    """Periods under one name; `detected` where the lane is a match."""

    name: str
    bars: tuple[Bar, ...]
    detected: int | None = None


@dataclass(frozen=True, slots=True)
class Timeline:
    """The lanes of each partition, by what its keys are; `instants`: times are timestamps, not plain numbers."""

    partitions: Mapping[str, tuple[Lane, ...]]
    instants: bool

    def svg(self, partition: str) -> str:
        """The timeline of a partition as one SVG element; text is escaped, and nothing in it loads anything."""
        if partition not in [*self.partitions]:  # a list is no key, and no partition either
            with Here():
                names = ", ".join(map(repr, list(self.partitions)[:5])) or "none"
                raise QueryError("TG402", f"there is no partition {shown(partition)} here", hint=f"partitions: {names}")
        lanes = self.partitions[partition]
        known = [end for lane in lanes for bar in lane.bars for end in (bar.start, bar.end) if end is not None]
        known += [lane.detected for lane in lanes if lane.detected is not None]
        first, last = (min(known), max(known)) if known else (0, 1)
        return _drawn(lanes, first, max(last, first + 1), self.instants)

    def html(self) -> str:
        """A page with all partitions, which needs nothing else."""
        title = "Timelines"
        parts = [f"<h2>{html.escape(printable(name))}</h2>\n{self.svg(name)}" for name in self.partitions]
        return (
            f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{title}</title></head>\n<body>\n'
            + "\n".join(parts or ["<p>No situations.</p>"])
            + f"\n<script>{_SCRIPT}</script>\n</body></html>\n"
        )

    def save(self, path: str | Path) -> None:
        """Writes `html` to a file."""
        Path(path).write_text(self.html(), encoding="utf-8")

    def _repr_html_(self) -> str:
        """For notebooks."""
        parts = [f"<h4>{html.escape(printable(name))}</h4>{self.svg(name)}" for name in self.partitions]
        return "".join(parts) + f"<script>{_SCRIPT}</script>"


def timeline(
    situations: Mapping[str, Any], matches: Any = None, *, partition_by: str | Sequence[str] = (), most: int = 20
) -> Timeline:
    """The timeline of results: tables of situations by name, with `ts` and `te`, and the table of a match of them.

    Tables are Arrow's, or frames that have Arrow data, such as those of Polars. Rows are told apart by the attributes `partition_by`; of at most `most` partitions, those with matches first.
    """
    with Here():
        if not isinstance(situations, Mapping):
            raise QueryError(
                "TG402",
                f"situations are tables by name, not {kind_of(situations)}",
                hint='write {"A": session.table("A")}',
            )
        if not (type(most) is int and most >= 1):
            raise QueryError("TG402", f"most={shown(most)} is no number of partitions", hint="give 1 or more")
        tables = {name: _table(given) for name, given in situations.items()}
        of_matches = None if matches is None else _table(matches)
        keys = (partition_by,) if isinstance(partition_by, str) else tuple(partition_by)
        found: dict[str, dict[str, list[Bar]]] = {}
        matched: dict[str, list[Lane]] = {}
        instants = False
        for name, table in tables.items():
            for row in user_rows(table):
                _require(row, (*keys, "ts", "te"), name)
                instants = instants or isinstance(row["ts"], dt.date)
                lanes = found.setdefault(_key(row, keys), {})
                lanes.setdefault(name, []).append(Bar(_ticks(row["ts"]), _ticks(row["te"]), _about(row)))
        for number, row in enumerate(() if of_matches is None else user_rows(of_matches), start=1):
            _require(row, (*keys, "detected"), "matches")
            instants = instants or isinstance(row["detected"], dt.date)
            bars = [
                Bar(_ticks(row[column]), _ticks(row.get(f"{column[:-3]}.te")), f"{column[:-3]}\n{_about(row)}")
                for column in row
                if column.endswith(".ts")
            ]
            lane = Lane(f"match {number}", tuple(bars), _ticks(row["detected"]))
            matched.setdefault(_key(row, keys), []).append(lane)
        order = [*matched, *(key for key in found if key not in matched)][:most]
        return Timeline(
            {
                key: (
                    *(Lane(name, tuple(found.get(key, {}).get(name, ()))) for name in situations),
                    *matched.get(key, ()),
                )
                for key in order
            },
            instants,
        )


def _table(given: Any) -> pa.Table:
    if isinstance(given, pa.Table):
        return given
    if not hasattr(given, "__arrow_c_stream__"):
        raise QueryError("TG402", f"{kind_of(given)} is no table of results", hint='give session.table("Name")')
    return pa.table(given)


def _require(row: Mapping[str, Any], names: Iterable[str], what: str) -> None:
    missing = [name for name in names if name not in row]
    if missing:
        raise QueryError(
            "TG402",
            f"{what} has no {', '.join(missing)}",
            hint=f"give the rows of situations and of a match of them; columns here: {', '.join(row)}",
        )


def _key(row: Mapping[str, Any], keys: Sequence[str]) -> str:
    return ", ".join(f"{key} = {row[key]}" for key in keys)


def _about(row: Mapping[str, Any]) -> str:
    return "\n".join(f"{name}: {value}" for name, value in row.items() if value is not None)


def _ticks(value: Any) -> Any:
    """Microseconds of a timestamp or of a date's midnight, numbers as they are."""
    if isinstance(value, dt.date) and not isinstance(value, dt.datetime):
        value = dt.datetime(value.year, value.month, value.day, tzinfo=dt.UTC)
    return instant_ticks(value) if isinstance(value, dt.datetime) else value


def _drawn(lanes: Sequence[Lane], first: int, last: int, instants: bool) -> str:
    height = _AXIS + _LANE * len(lanes) + _MARGIN
    scale = _WIDTH / (last - first)

    def x(instant: int) -> float:
        return (instant - first) * scale

    names = [
        f'<text x="{_LABELS - 8:.0f}" y="{_AXIS + _LANE * k + 15:.0f}" text-anchor="end">{_text(lane.name)}</text>'
        for k, lane in enumerate(lanes)
    ]
    step = _step(first, last, instants)
    drawn = [
        _tick(x(at), at, height, step if instants else None) for at in range(-(-first // step) * step, last + 1, step)
    ]
    colours = {
        name: _COLOURS[k % len(_COLOURS)] for k, name in enumerate(lane.name for lane in lanes if lane.detected is None)
    }
    for k, lane in enumerate(lanes):
        y = _AXIS + _LANE * k + 4
        for bar in lane.bars:
            end = last if bar.end is None else bar.end
            colour = colours.get(bar.about.split("\n", 1)[0] if lane.detected is not None else lane.name, _COLOURS[-1])
            dashes = "" if bar.end is not None else ' stroke="#333333" stroke-dasharray="4 3"'
            drawn.append(
                f'<rect x="{x(bar.start):.2f}" y="{y:.0f}" width="{max(x(end) - x(bar.start), 1):.2f}" height="{_BAR:.0f}" '
                f'fill="{colour}" fill-opacity="0.8"{dashes}><title>{_text(bar.about)}</title></rect>'
            )
        if lane.detected is not None:
            at = x(lane.detected)
            drawn.append(
                f'<line x1="{at:.2f}" x2="{at:.2f}" y1="{_AXIS:.0f}" y2="{y + _BAR:.0f}" stroke="#cc0000" '
                f'vector-effect="non-scaling-stroke"><title>{_text(lane.name)}: detected</title></line>'
            )
    inside = "\n".join(drawn)
    width = _LABELS + _WIDTH + _MARGIN
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="timeline" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" font-family="sans-serif" font-size="12">\n'
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>\n' + "\n".join(names) + "\n"
        f'<svg x="{_LABELS:.0f}" y="0" width="{_WIDTH:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {_WIDTH:.0f} {height:.0f}" preserveAspectRatio="none">\n{inside}\n</svg>\n</svg>'
    )


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


def _tick(x: float, instant: int, height: float, step: int | None) -> str:
    """A line of the axis with its label; `step` is how far apart they are, None on a timeline of numbers."""
    label, text = (str(instant),) * 2 if step is None else _labels(instant, step)
    return (
        f'<line x1="{x:.2f}" x2="{x:.2f}" y1="{_AXIS - 6:.0f}" y2="{height:.0f}" stroke="#dddddd" '
        f'vector-effect="non-scaling-stroke"/><text x="{x + 2:.2f}" y="14" fill="#666666">{label}<title>{text}</title></text>'
    )


def _labels(instant: int, step: int) -> tuple[str, str]:
    """What tells an instant from those a step apart, and all of it."""
    text = ticks_instant(instant).isoformat(sep=" ", timespec="microseconds")
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
