"""The analysis of windows that depend on rows or overlap: when they are complete, and how many are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, assert_never

from tidegate.algebra.formulas import And, Compare, Formula, Shift, Var
from tidegate.algebra.ordered.windows.calendar import LONGEST_DAYS
from tidegate.algebra.ordered.windows.kinds import (
    AnchoredWindow,
    CalendarWindow,
    CountWindow,
    CumulatingWindow,
    HoppingWindow,
    LandmarkWindow,
    OpenedWindow,
    RowWindow,
    SessionWindow,
    TimedWindow,
    shows_empty,
)
from tidegate.algebra.ordered.windows.node import COMPLETE, END, START, Windows
from tidegate.algebra.schema import Schema
from tidegate.algebra.typed.kernels import DAY
from tidegate.analysis.ordered.family import (
    ROW,
    Family,
    StateBound,
    StoredRows,
    ZoneBuilder,
    equal_instants,
    event_zones,
    rate_of,
    renamed,
    stream_of,
    with_row,
)
from tidegate.analysis.zones.wording import amount, factor
from tidegate.analysis.zones.zone import Zone

#: The names of what is kept: open sessions, windows that no row has closed, what windows that grow have come to, and
#: the panes of which those consist that hop; and the rows of open windows, where an aggregate needs every value.
SESSIONS: Final = "sessions"
OPEN: Final = "windows"
TOTALS: Final = "totals"
PANES: Final = "panes"
ROWS: Final = "rows"
#: The column of the starts of sessions, and of windows that no row has closed.
FIRST: Final = "first"
#: A key of a row of the window while zones are built; no attribute of a user has such a name.
_KEY: Final = "\0{}"


class WindowsFamily(Family[Windows]):
    node = Windows

    def zones(self, node: Windows, build: ZoneBuilder) -> list[Zone]:
        """A window when it is complete, with an instant for its start and one for a row: of those that rows make the
        last, whose keys are those of the first, too. Of windows without rows it is the one that completes them.
        """
        (reading,) = node.readings
        schema, window = node.input.schema, node.window
        zones = build.build(reading.input)
        time = schema[node.time]
        keys = tuple(schema[key] for key in node.keys if schema[key].temporal)
        start, end, row, at = (time.renamed(name) for name in (START, END, ROW, node.completed_by))
        known = Schema((at,))
        events = build.named(event_zones(zones, reading, node.completed_by), known)
        first = Schema((*keys, start)) if isinstance(window, RowWindow) else Schema((start,))
        last = Schema((*(key.renamed(_KEY.format(key.name)) for key in keys), row))
        its = renamed(event_zones(zones, reading, ROW), {key.name: _KEY.format(key.name) for key in keys})
        pairs = with_row(events, known, its, last, And(()), build)
        known = Schema((at, *last.attributes))
        if not isinstance(window, RowWindow):
            known = Schema((at, *keys, row))
            pairs = build.named(renamed(pairs, {_KEY.format(key.name): key.name for key in keys}), known)
        if shows_empty(window):
            pairs = with_row(pairs, known, event_zones(zones, reading, END), Schema((end,)), And(()), build)
            known = Schema((*known.attributes, end))
        relations = _relations(node, [key.name for key in keys])
        results = with_row(pairs, known, event_zones(zones, reading, START), first, relations, build)
        return build.pruned(build.named(results, node.schema), node.schema)

    def state(self, node: Windows) -> StateBound:
        many = f"keys({stream_of(node.input)[1]} by {', '.join(node.keys)})" if node.keys else ""
        window = node.window
        if node.keeps_rows:
            return StateBound((f"{ROWS}: {_rows(node, many)}",), (StoredRows(ROWS, "open", of="of windows"),))
        if isinstance(window, SessionWindow):
            return StateBound((f"{SESSIONS}: {many or 1}",), (StoredRows(SESSIONS, "open", of="of sessions"),))
        if isinstance(window, OpenedWindow):
            stored = StoredRows(OPEN, "open", FIRST, "since", "until a row closes it", noun="window")
            return StateBound((f"{OPEN}: {many or 1}",), (stored,))
        panes = panes_in(window)
        if panes is None:
            return StateBound((f"{TOTALS}: {many or 1}",), (StoredRows(TOTALS, "open", of="of windows so far"),))
        bound = f"{many} × {panes:,}" if many else f"{panes:,}"
        return StateBound((f"{PANES}: {bound}",), (StoredRows(PANES, "open", of="of panes that windows share"),))

    def one_by_one(self, node: Windows, *, shared: bool) -> Sequence[str]:
        if isinstance(node.window, CountWindow):
            return ("rows are counted",)
        return ("its instant decides which windows it is in",)


def panes_in(window: CountWindow | TimedWindow) -> int | None:
    """The panes that windows have, where each begins before the one before has ended; None: they grow until they end,
    or until another one begins.
    """
    match window:
        case CumulatingWindow() | LandmarkWindow():
            return None
        case CalendarWindow(size=many):
            return many if many > 1 else None
        case HoppingWindow() | AnchoredWindow() | CountWindow():
            return window.size // window.pane if window.size > window.pane else None
        case _:
            assert_never(window)


def _rows(node: Windows, keys: str) -> str:
    """How many rows are in windows that are not complete, for people; some stay that count panes."""
    window, rate = node.window, rate_of(node.input)
    match window:
        case SessionWindow():
            return f"{rate} × the longest session"
        case OpenedWindow():
            return f"{rate} × the longest window"
        case CountWindow(size=size):
            last = f"{max(size - 1, 1):,}"
            return f"{keys} × {last}" if keys else last
        case _:
            span = amount(_longest(window), node.input.schema[node.time].type)
            stays = window.empty or isinstance(window, AnchoredWindow)
            return f"{keys or 1} + {rate} × {factor(span)}" if stays else f"{rate} × {factor(span)}"


def _relations(node: Windows, keys: Sequence[str]) -> Formula:
    """The relations of a window's bounds and a row of it, or one that completes it: of those that rows make the last
    row.
    """
    start, end, row = Var(START), Var(END), Var(ROW)
    window = node.window
    if isinstance(window, RowWindow):
        equal = equal_instants([(key, _KEY.format(key)) for key in keys])
        gap = window.gap if isinstance(window, SessionWindow) else 0
        return And((Compare(start, "<=", row), Compare(end, "=", Shift(row, gap)), equal))
    return And((*_extent(window), Compare(start, "<", row), *_completion(window)))


def _extent(window: TimedWindow) -> tuple[Formula, ...]:
    """How far apart the bounds of a window are."""
    start, end = Var(START), Var(END)
    match window:
        case HoppingWindow(size=size) | AnchoredWindow(size=size):
            return (Compare(end, "=", Shift(start, size)),)
        case CumulatingWindow(size=size, every=every):
            return (Compare(Shift(start, every), "<=", end), Compare(end, "<=", Shift(start, size)))
        case CalendarWindow():
            return (Compare(start, "<=", end), Compare(end, "<=", Shift(start, _longest(window))))
        case LandmarkWindow():
            return (Compare(start, "<", end),)
        case _:
            assert_never(window)


def _completion(window: TimedWindow) -> tuple[Formula, ...]:
    """Where the row is that a window holds, or that tells that it holds none."""
    end, row = Var(END), Var(ROW)
    if not window.empty:
        last = (Compare(end, "<", Shift(row, window.every)),) if isinstance(window, LandmarkWindow) else ()
        return (Compare(row, "<=", end), *last)
    # With rows it is complete at its end, which is no further from the row; without them with the row itself.
    complete = Var(COMPLETE)
    longest = Compare(complete, "<=", Shift(row, _longest(window)))
    return (Compare(end, "<=", complete), Compare(row, "<=", complete), longest)


def _longest(window: TimedWindow) -> int:
    """How long a window is at most."""
    match window:
        case CalendarWindow(unit=unit, size=size, zone=None):
            return size * LONGEST_DAYS[unit]
        case CalendarWindow(unit=unit, size=size):
            # Between two instants the clocks of a zone are set by less than two days.
            return size * LONGEST_DAYS[unit] * DAY + 2 * DAY
        case LandmarkWindow(every=every):
            return every
        case _:
            return window.size
