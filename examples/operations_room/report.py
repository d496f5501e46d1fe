"""The operations room on the screen: progress while it runs, and the report at the end.

Plain data in, text out; nothing here knows Tidegate, Spark or Polars. Times are New York's, without a zone. Widths
follow a terminal of 100 columns.
"""

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final, TextIO, TypeAlias

from examples.operations_room.picture import Picture, text_picture

WIDTH: Final = 100

Cell: TypeAlias = str | int | float | bool | datetime | None


@dataclass(frozen=True, slots=True)
class Table:
    """Named columns and their rows, for the screen as text and for the page."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]

    def __str__(self) -> str:
        return table(self.columns, self.rows)


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
class Finality:
    """How long after what a row tells it was final, of the rows of one result: the median and the longest."""

    result: str
    rule: str
    """When a row is final, as derived before the run."""
    median: timedelta | None
    """None: no rows."""
    longest: timedelta | None


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
    output_path: str
    finality: Sequence[Finality] = ()
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
        "Of each result the rows that tell most. Times are New York's here, and UTC in the files.",
        *(_result(result) for result in report.results),
        "Rows by fate\n" + _indent(str(fates_table(report.fates))),
        "Live state against its proven bound (most rows after any batch; below it, the bound as proven)\n"
        + _indent(states_text(report.states)),
        "How long after what it tells a row was final, in replay time\n"
        + _indent(str(finality_table(report.finality))),
        text_picture(report.picture),
        *report.notes,
        f"results  {report.output_path}",
        verdict(report),
    ]
    return "\n\n".join(parts) + "\n"


def table(columns: Sequence[str], rows: Iterable[Sequence[Cell]]) -> str:
    """Columns aligned, numbers to the right, NULL as –."""
    body = list(rows)
    texts = [[cell_text(value) for value in row] for row in body]
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


def fates_table(fates: Sequence[Fate]) -> Table:
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
    return Table(["stream", "in", "accepted", *reasons, ""], rows)


def _judged(fate: Fate) -> str:
    if not fate.balanced:
        return "DOES NOT ADD UP"
    if not fate.rightly:
        wanted = ", ".join(f"{rows} {reason}" for reason, rows in _some(fate.bad or {}).items())
        return f"SHOULD BE {wanted or 'NONE'}"
    return "adds up" if fate.bad is None else "adds up, all bad rows found"


def _some(counts: Mapping[str, int]) -> dict[str, int]:
    return {reason: rows for reason, rows in counts.items() if rows}


def states_table(states: Sequence[State]) -> Table:
    """One row per buffered occurrence: most, bound, share of it, formula."""
    rows: list[list[Cell]] = []
    for state in states:
        share = "" if not state.bound else f"{state.most / state.bound:.0%}"
        verdict = share if state.kept else f"{share} EXCEEDED"
        rows.append([state.occurrence, state.most, state.bound, verdict, state.formula])
    return Table(["buffer", "most", "bound", "used", "bound as proven"], rows)


def states_text(states: Sequence[State]) -> str:
    """The same for the screen, with the formula below each buffer: beside it, a line would be wider than most
    windows.
    """
    shown = states_table(states)
    head, rule, *lines = table(shown.columns[:-1], [row[:-1] for row in shown.rows]).splitlines()
    below = (f"{line}\n  {state.formula}" for line, state in zip(lines, states, strict=True))
    return "\n".join([head, rule, *below])


def again(report: Report) -> str:
    """A further run of the same replay, in a few lines."""
    wrong = [f"{result.name} {judgement(result)}" for result in report.results if result.differences]
    head = f"{report.engine}: {report.batches:,} batches in {report.seconds:.1f} s"
    return "\n".join([head, *report.notes, *wrong, f"results  {report.output_path}", verdict(report)]) + "\n"


def finality_table(finality: Sequence[Finality]) -> Table:
    """One row per result: what was derived before the run, and what the run has shown."""
    rows: list[list[Cell]] = [[one.result, _length(one.median), _length(one.longest), one.rule] for one in finality]
    return Table(["result", "median", "longest", "final when, as proven"], rows)


def _length(length: timedelta | None) -> str:
    """A duration in hours and minutes."""
    if length is None:
        return "no rows"
    minutes = round(length / timedelta(minutes=1))
    return f"{minutes // 60} h {minutes % 60:02} min"


def judgement(result: Result) -> str:
    """Whether a result is as the batch computation has it."""
    match result.differences:
        case None:
            return "not compared"
        case []:
            return "checked equal to the batch computation"
        case found:
            return f"DIFFERS from the batch computation in {len(found):,} places, first: {found[0]}"


def _result(result: Result) -> str:
    head = f"{result.name}: {result.total:,} rows. {result.meaning}"
    return f"{head}\n" + _indent(f"{table(result.columns, result.top)}\n{judgement(result)}; all rows: {result.path}")


def verdict(report: Report) -> str:
    """Whether all is as it has to be, in one line."""
    if not report.ok:
        return "NOT AS EXPECTED: see the words in capitals above"
    checked = sum(result.differences is not None for result in report.results)
    return (
        f"All as expected: {checked} of {len(report.results)} results checked equal, all rows accounted for, "
        "state within bounds"
    )


def _is_number(value: Cell) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def cell_text(value: Cell) -> str:
    """A value as people read it; NULL as –."""
    match value:
        case None:
            return "–"
        case bool():
            return str(value).lower()
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.1f}"
        case datetime():
            return _moment(value)
        case str():
            return value


def _moment(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%d %H:%M")


def _indent(text: str) -> str:
    return "\n".join(f"  {line}".rstrip() for line in text.splitlines())


def _columns(out: TextIO) -> int:
    try:
        return os.get_terminal_size(out.fileno()).columns - 1
    except (OSError, ValueError):
        return WIDTH
