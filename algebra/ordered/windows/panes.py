"""The panes that windows in time consist of, with numbers: the largest pieces of which both a window and the distance
of two have a whole number.
"""

from __future__ import annotations

from typing import assert_never

from tidegate.algebra.ordered.windows.calendar import beginning, first_from
from tidegate.algebra.ordered.windows.kinds import (
    CalendarWindow,
    CumulatingWindow,
    FixedWindow,
    HoppingWindow,
    LandmarkWindow,
)


def end_of(window: FixedWindow, pane: int) -> int:
    """Where a pane ends, and so the windows of which it is the last one."""
    match window:
        case HoppingWindow() | CumulatingWindow():
            return pane * window.pane + window.offset
        case LandmarkWindow():
            return pane * window.every + window.since
        case CalendarWindow():
            return beginning(window.unit, window.zone, pane)
        case _:
            assert_never(window)


def pane_of(window: FixedWindow, instant: int) -> int:
    """The pane of an instant: the first one that ends at it or later."""
    match window:
        case HoppingWindow() | CumulatingWindow():
            return -((window.offset - instant) // window.pane)
        case LandmarkWindow():
            return -((window.since - instant) // window.every)
        case CalendarWindow():
            return first_from(window.unit, window.zone, instant)
        case _:
            assert_never(window)


def is_end(window: FixedWindow, pane: int) -> bool:
    """Whether a window ends with a pane."""
    return not isinstance(window, HoppingWindow) or pane * window.pane % window.every == 0


def before(window: FixedWindow, pane: int) -> int:
    """The last pane before the first one of the window that ends with a pane: where it ends, the window starts."""
    match window:
        case HoppingWindow():
            return pane - window.size // window.pane
        case CumulatingWindow():
            many = window.size // window.every
            return (pane - 1) // many * many
        case LandmarkWindow():
            return 0
        case CalendarWindow():
            return pane - window.size
        case _:
            assert_never(window)
