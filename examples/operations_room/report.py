"""The operations room on the screen: progress while it runs, the report at the end, and the picture.

Plain data in, text out; nothing here knows Tidegate, Spark or Polars. Widths follow an 100-column terminal.
"""

import html
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TextIO, TypeAlias

WIDTH: Final = 100
BARS: Final = " ▁▂▃▄▅▆▇█"
TALLEST: Final = 360
"""Minutes; longer delays are drawn as this, or one flight a day late would flatten a whole month."""

Cell: TypeAlias = str | int | float | bool | datetime | None


@dataclass(frozen=True, slots=True)
class Tick:
    """The state of a run after one batch: rows are totals so far; `progress` is the slowest promised result's.

    `progress` None: nothing is final yet, or, with `ended`, everything is.
    """

    batch: int
    batches: int | None
    rows_in: int
    results: Mapping[str, int]
    live_rows: int
    progress: datetime | None
    seconds: float
    ended: bool = False


@dataclass(frozen=True, slots=True)
class Result:
    """One query's answer: its best rows for show, the number of all rows, and whether they were checked equal."""

    name: str
    meaning: str
    columns: Sequence[str]
    top: Sequence[Sequence[Cell]]
    total: int
    path: str
    differences: Sequence[str] | None
    """None: not compared; empty: equal to the expected rows."""


@dataclass(frozen=True, slots=True)
class Fate:
    """What became of a stream's rows; `rejected` counts by reason, `bad` those that had to be rejected, where known."""

    stream: str
    rows_in: int
    accepted: int
    rejected: Mapping[str, int]
    bad: Mapping[str, int] | None = None

    @property
    def balanced(self) -> bool:
        """in = accepted + Σ rejected[reason]"""
        return self.rows_in == self.accepted + sum(self.rejected.values())

    @property
    def rightly(self) -> bool:
        """No other rows were rejected, nor for other reasons, than had to be."""
        return self.bad is None or _some(self.rejected) == _some(self.bad)


@dataclass(frozen=True, slots=True)
class State:
    """The most rows of one buffer after any batch, against the bound proven before the run."""

    occurrence: str
    most: int
    bound: int | None
    """None: no finite bound was proven."""
    formula: str

    @property
    def kept(self) -> bool:
        return self.bound is None or self.most <= self.bound


@dataclass(frozen=True, slots=True)
class Lane:
    """One airport in the picture: `episodes` `[start, end)`, `delays` (time, minutes), `missing` times of non-departures."""

    name: str
    episodes: Sequence[tuple[datetime, datetime]]
    delays: Sequence[tuple[datetime, int]]
    missing: Sequence[datetime]


@dataclass(frozen=True, slots=True)
class Picture:
    """Lanes over the time `[start, end)`."""

    title: str
    start: datetime
    end: datetime
    lanes: Sequence[Lane]

    def __post_init__(self) -> None:
        if self.start >= self.end:
            raise ValueError(f"nothing to draw between {self.start} and {self.end}")


@dataclass(frozen=True, slots=True)
class Report:
    """Everything the run ends with."""

    title: str
    engine: str
    seconds: float
    batches: int
    results: Sequence[Result]
    fates: Sequence[Fate]
    states: Sequence[State]
    picture: Picture
    picture_path: str
    output_path: str
    notes: Sequence[str] = field(default=())

    @property
    def ok(self) -> bool:
        """No result differs, the counts of rows add up, and no state exceeded its bound."""
        return (
            not any(result.differences for result in self.results)
            and all(fate.balanced and fate.rightly for fate in self.fates)
            and all(state.kept for state in self.states)
        )


def progress_line(tick: Tick) -> str:
    """One line for one batch."""
    batch = f"{tick.batch}/{tick.batches}" if tick.batches else str(tick.batch)
    until = f"final to {_moment(tick.progress)}" if tick.progress else "nothing final yet"
    until = "all final".ljust(len(until)) if tick.ended else until
    counts = "  ".join(f"{name} {count:,}" for name, count in tick.results.items())
    return (
        f"batch {batch:>7}  {tick.seconds:6.1f} s  in {tick.rows_in:>9,}  live {tick.live_rows:>7,}  {until}  {counts}"
    )


class Live:
    """Shows the latest batch: in place on a terminal, else one line every `every` seconds, so that logs stay short."""

    def __init__(self, out: TextIO | None = None, *, every: float = 10.0) -> None:
        self._out = sys.stdout if out is None else out
        self._every = every
        self._shown = float("-inf")
        self._pending: Tick | None = None

    def update(self, tick: Tick) -> None:
        self._pending = tick
        if self._out.isatty():
            self._out.write("\r\x1b[2K" + progress_line(tick)[: _columns(self._out)])
            self._out.flush()
        elif tick.seconds - self._shown >= self._every:
            self._print(tick)

    def close(self) -> None:
        """Leave the last batch's line standing."""
        if self._out.isatty():
            if self._pending is not None:
                self._out.write("\n")
        elif self._pending is not None:
            self._print(self._pending)
        self._out.flush()

    def _print(self, tick: Tick) -> None:
        self._out.write(progress_line(tick) + "\n")
        self._out.flush()
        self._shown = tick.seconds
        self._pending = None


def final_report(report: Report) -> str:
    """The whole report as text."""
    parts = [
        f"{report.title}\n{'=' * len(report.title)}",
        f"{report.engine}: {report.batches:,} batches in {report.seconds:.1f} s",
        *(_result(result) for result in report.results),
        "Rows by fate\n" + _indent(fates_table(report.fates)),
        "Live state against its proven bound (most rows after any batch)\n" + _indent(states_table(report.states)),
        text_picture(report.picture),
        *report.notes,
        f"picture  {report.picture_path}\nresults  {report.output_path}",
        _verdict(report),
    ]
    return "\n\n".join(parts) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Columns aligned, numbers to the right, NULL as –."""
    body = list(rows)
    texts = [[_cell(value) for value in row] for row in body]
    widths = [max(len(line[place]) for line in [list(columns), *texts]) for place in range(len(columns))]
    right = [
        bool(body) and all(row[place] is None or _is_number(row[place]) for row in body)
        for place in range(len(columns))
    ]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if flush else cell.ljust(width)
            for cell, width, flush in zip(cells, widths, right, strict=True)
        )
        return "  ".join(padded).rstrip()

    return "\n".join([line(list(columns)), line(["─" * width for width in widths]), *(line(text) for text in texts)])


def fates_table(fates: Sequence[Fate]) -> str:
    """One row per stream, one column per reason that occurred, and whether in = accepted + Σ rejected."""
    reasons = list(dict.fromkeys(reason for fate in fates for reason in fate.rejected))
    rows: list[list[Cell]] = [
        [
            fate.stream,
            fate.rows_in,
            fate.accepted,
            *(fate.rejected.get(reason, 0) for reason in reasons),
            _judged(fate),
        ]
        for fate in fates
    ]
    return table(["stream", "in", "accepted", *reasons, ""], rows)


def _judged(fate: Fate) -> str:
    if not fate.balanced:
        return "DOES NOT ADD UP"
    if not fate.rightly:
        wanted = ", ".join(f"{rows} {reason}" for reason, rows in _some(fate.bad or {}).items())
        return f"SHOULD BE {wanted or 'NONE'}"
    return "adds up" if fate.bad is None else "adds up, all bad rows found"


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    return {reason: rows for reason, rows in counts.items() if rows}


def states_table(states: Sequence[State]) -> str:
    """One row per buffered occurrence: most, bound, share of it, formula."""
    rows: list[list[Cell]] = []
    for state in states:
        share = "" if not state.bound else f"{state.most / state.bound:.0%}"
        verdict = share if state.kept else f"{share} EXCEEDED"
        rows.append([state.occurrence, state.most, state.bound, verdict, state.formula])
    return table(["buffer", "most", "bound", "used", "bound as proven"], rows)


def text_picture(picture: Picture, width: int = WIDTH) -> str:
    """Per airport three rows over the period: worst delay, poor visibility, flights that did not depart."""
    margin = 14
    bins = width - margin
    lines = [picture.title]
    for lane in picture.lanes:
        delays = _binned(picture, lane.delays, bins)
        worst = [min(max(values, default=0), TALLEST) for values in delays]
        missing = [len(values) for values in _binned(picture, [(moment, 1) for moment in lane.missing], bins)]
        fog = "".join("▒" if shaded else "·" for shaded in _shaded(picture, lane.episodes, bins))
        lines += [
            lane.name,
            "  worst delay".ljust(margin) + _bars(worst),
            "  visibility".ljust(margin) + fog,
            "  missing".ljust(margin) + _bars(missing),
        ]
    lines.append(" " * margin + _axis(picture, bins))
    lines.append(
        " " * margin + f"▒ poor visibility; each row's highest bar is its maximum, delays beyond {TALLEST} minutes cut"
    )
    return "\n".join(line.rstrip() for line in lines)


def svg_picture(picture: Picture, width: int = 1200) -> str:
    """The picture as a stand-alone SVG: bands of poor visibility, worst delays upwards, non-departures downwards.

    One path per lane and kind of mark, whatever the number of flights, so that a year stays small.
    """
    left, right, top, up, down, gap = 90, 30, 64, 90, 40, 26
    plot = width - left - right
    pitch = up + down + gap
    bottom = top + pitch * len(picture.lanes) - gap
    bins = plot // 2
    counts = {
        lane.name: [len(v) for v in _binned(picture, [(moment, 1) for moment in lane.missing], bins)]
        for lane in picture.lanes
    }
    most = max((max(values) for values in counts.values()), default=0) or 1

    def x(moment: datetime) -> float:
        share = (moment - picture.start) / (picture.end - picture.start)
        return left + plot * min(max(share, 0.0), 1.0)

    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + 50}" width="{width}" '
        f'height="{bottom + 50}" font-family="sans-serif" font-size="12" fill="#333" role="img">',
        f"<title>{html.escape(picture.title)}</title>",
        '<rect width="100%" height="100%" fill="#fff"/>',
        f'<text x="{left}" y="24" font-size="16" font-weight="bold">{html.escape(picture.title)}</text>',
        _legend(left, 44),
    ]
    for moment, label in _days(picture, at_most=16):
        out.append(f'<path d="M{x(moment):.1f} {top}V{bottom}" stroke="#eee"/>')
        out.append(f'<text x="{x(moment):.1f}" y="{bottom + 20}" text-anchor="middle">{label}</text>')
    for number, lane in enumerate(picture.lanes):
        base = top + pitch * number + up
        out.append(f"<g><title>{html.escape(lane.name)}</title>")
        for start, end in lane.episodes:
            if end <= picture.start or start >= picture.end:
                continue
            out.append(
                f'<rect class="episode" x="{x(start):.1f}" y="{base - up}" width="{max(x(end) - x(start), 1):.1f}" '
                f'height="{up + down}" fill="#9db4c8" fill-opacity="0.55">'
                f"<title>poor visibility {_moment(start)} to {_moment(end)}</title></rect>"
            )
        worst = [min(max(values, default=0), TALLEST) for values in _binned(picture, lane.delays, bins)]
        out.append(_marks("delays", worst, left, plot, base, -up / TALLEST, "#c77700"))
        out.append(_marks("missing", counts[lane.name], left, plot, base, down / most, "#b3001b"))
        out.append(f'<path d="M{left} {base}H{left + plot}" stroke="#888"/>')
        out.append(
            f'<text x="{left - 8}" y="{base + 4}" text-anchor="end" font-weight="bold">{_short(lane.name)}</text>'
        )
        out.append(f'<text x="{left - 8}" y="{base - up + 10}" text-anchor="end" fill="#888">{TALLEST} min +</text>')
        out.append(f'<text x="{left - 8}" y="{base + down}" text-anchor="end" fill="#888">{most} flights</text>')
        out.append("</g>")
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _result(result: Result) -> str:
    head = f"{result.name}: {result.total:,} rows. {result.meaning}"
    match result.differences:
        case None:
            check = "not compared"
        case []:
            check = "checked equal to the batch computation"
        case found:
            check = f"DIFFERS from the batch computation in {len(found):,} places, first: {found[0]}"
    return f"{head}\n" + _indent(f"{table(result.columns, result.top)}\n{check}; all rows: {result.path}")


def _verdict(report: Report) -> str:
    if not report.ok:
        return "NOT AS EXPECTED: see the words in capitals above"
    checked = sum(result.differences is not None for result in report.results)
    return f"All as expected: {checked} of {len(report.results)} results checked equal, all rows accounted for, state within bounds"


def _is_number(value: Cell) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _cell(value: Cell) -> str:
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case int():
            return str(value)
        case float():
            return f"{value:,.1f}"
        case datetime():
            return _moment(value)
        case str():
            return value


def _moment(moment: datetime) -> str:
    return moment.astimezone(UTC).strftime("%Y-%m-%d %H:%M")


def _short(name: str) -> str:
    return html.escape(name if len(name) <= 11 else name[:10] + "…")


def _indent(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _columns(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns - 1
    except (OSError, ValueError):
        return WIDTH


def _bin(picture: Picture, moment: datetime, bins: int) -> int:
    return (moment - picture.start) * bins // (picture.end - picture.start)


def _binned(picture: Picture, marks: Sequence[tuple[datetime, int]], bins: int) -> list[list[int]]:
    found: list[list[int]] = [[] for _ in range(bins)]
    for moment, value in marks:
        place = _bin(picture, moment, bins)
        if 0 <= place < bins:
            found[place].append(value)
    return found


def _shaded(picture: Picture, episodes: Sequence[tuple[datetime, datetime]], bins: int) -> list[bool]:
    """Which bins an episode touches; an episode that ends where a bin begins does not touch it."""
    found = [False] * bins
    for start, end in episodes:
        first = max(_bin(picture, start, bins), 0)
        last = min(_bin(picture, end - timedelta(microseconds=1), bins), bins - 1)
        for place in range(first, last + 1):
            found[place] = True
    return found


def _bars(values: Sequence[int]) -> str:
    """One character a value, up to a full block at the maximum; any positive value shows at least the lowest bar."""
    top = max((*values, 0))
    levels = len(BARS) - 1
    return "".join(BARS[-(-value * levels // top)] if value > 0 else " " for value in values)


def _days(picture: Picture, at_most: int) -> list[tuple[datetime, str]]:
    """Midnights, UTC, at a round distance of days that yields at most so many, with their labels."""
    day = timedelta(days=1)
    span = -(-(picture.end - picture.start) // day)
    step = next((days for days in (1, 2, 5, 10, 30) if span <= days * at_most), 60)
    midnight = picture.start.astimezone(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    first = midnight if midnight == picture.start else midnight + day
    moments = [first + day * number for number in range(0, span + 1, step)]
    return [(moment, f"{moment:%b} {moment.day}") for moment in moments if picture.start <= moment < picture.end]


def _axis(picture: Picture, bins: int) -> str:
    line = [" "] * bins
    end = 0
    for moment, label in _days(picture, at_most=max(bins // 9, 1)):
        place = _bin(picture, moment, bins)
        text = f"│{label}"
        if place >= end and place + len(text) <= bins:
            line[place : place + len(text)] = text
            end = place + len(text) + 1
    return "".join(line).rstrip()


def _marks(kind: str, values: Sequence[int], left: int, plot: int, base: float, unit: float, colour: str) -> str:
    step = plot / len(values)
    path = "".join(
        f"M{left + (place + 0.5) * step:.1f} {base:g}v{value * unit:.1f}"
        for place, value in enumerate(values)
        if value > 0
    )
    return f'<path class="{kind}" d="{path}" stroke="{colour}" stroke-width="{min(step, 3):.1f}" fill="none"/>'


def _legend(left: int, y: int) -> str:
    entries = [("#9db4c8", "poor visibility"), ("#c77700", "worst delay"), ("#b3001b", "not departed within 2 h")]
    places = [left, left + 130, left + 240]
    return "".join(
        f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{colour}"/><text x="{x + 18}" y="{y}">{label}</text>'
        for x, (colour, label) in zip(places, entries, strict=True)
    )
