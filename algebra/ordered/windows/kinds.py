"""Which windows there are."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TypeAlias

from tidegate.algebra.ordered.windows.calendar import Unit
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.types import DataType


@dataclass(frozen=True, slots=True)
class SessionWindow:
    """The rows of which each is at most `gap` ticks after the one before; it ends `gap` ticks after the last."""

    gap: int

    def text(self, instants: DataType) -> str:
        return f"session({ticks_text(self.gap, instants)})"


@dataclass(frozen=True, slots=True)
class CountWindow:
    """`size` rows in succession, of which the last is row `every`, 2 `every`, ..., each plus `offset`."""

    size: int
    every: int
    offset: int = 0

    @property
    def pane(self) -> int:
        return _pane(self.size, self.every)

    def text(self, instants: DataType) -> str:
        offset = f", offset {self.offset}" if self.offset else ""
        return f"rows({self.size}, every {self.every}{offset})"


@dataclass(frozen=True, slots=True)
class OpenedWindow:
    """The rows with one instant in `opened`, where the window starts, up to the row for which `closes` is true.

    Rows of a partition come window by window: each is later than all of a window that was opened sooner, and `opened`
    is not later than the row. A window without a row that closes it has not ended.
    """

    opened: str
    closes: str

    def text(self, instants: DataType) -> str:
        return f"from {self.opened} until {self.closes}"


@dataclass(frozen=True, slots=True)
class HoppingWindow:
    """(end - size, end] for each end that is a multiple of `every`, plus `offset`. `empty`: also those without rows,
    between two with rows.
    """

    size: int
    every: int
    offset: int = 0
    empty: bool = False

    @property
    def pane(self) -> int:
        return _pane(self.size, self.every)

    def text(self, instants: DataType) -> str:
        return _aligned_text("hopping", self, instants)


@dataclass(frozen=True, slots=True)
class CumulatingWindow:
    """From each multiple of `size`, plus `offset`, to each multiple of `every` up to the next one, its end included.
    `size` is a multiple of `every`. `empty`: also those without rows, between two with rows.
    """

    size: int
    every: int
    offset: int = 0
    empty: bool = False

    @property
    def pane(self) -> int:
        return self.every

    def text(self, instants: DataType) -> str:
        return _aligned_text("cumulating", self, instants)


@dataclass(frozen=True, slots=True)
class CalendarWindow:
    """The last `size` units of the calendar of a time zone, at the end of each unit; `zone` None: of dates, at the last
    day of each. `empty`: also those without rows, between two with rows.
    """

    unit: Unit
    size: int
    zone: str | None
    empty: bool = False

    def text(self, instants: DataType) -> str:
        empty = ", empty ones too" if self.empty else ""
        place = "" if self.zone is None else f" in {self.zone}"
        return f"calendar({self.size} {self.unit}{'s' if self.size > 1 else ''}{place}{empty})"


@dataclass(frozen=True, slots=True)
class LandmarkWindow:
    """From `since` to each end, so many times `every` later, since whose predecessor there is a row."""

    since: int
    every: int

    @property
    def empty(self) -> bool:
        return False

    def text(self, instants: DataType) -> str:
        return f"landmark({value_text(self.since, instants)}, every {ticks_text(self.every, instants)})"


@dataclass(frozen=True, slots=True)
class AnchoredWindow:
    """Windows of a size, each `every` after the one before, of which the first begins with the first row of the
    partition. `empty`: also those without rows, between two with rows.
    """

    size: int
    every: int
    empty: bool = False

    @property
    def pane(self) -> int:
        return _pane(self.size, self.every)

    def text(self, instants: DataType) -> str:
        empty = ", empty ones too" if self.empty else ""
        each = f"{ticks_text(self.size, instants)}, every {ticks_text(self.every, instants)}"
        return f"hopping({each} from the first row{empty})"


#: Windows with the same ends in every partition, all that consist of panes in time, and those that rows bound.
FixedWindow: TypeAlias = HoppingWindow | CumulatingWindow | CalendarWindow | LandmarkWindow
TimedWindow: TypeAlias = FixedWindow | AnchoredWindow
RowWindow: TypeAlias = SessionWindow | CountWindow | OpenedWindow
Window: TypeAlias = RowWindow | TimedWindow


def _pane(size: int, every: int) -> int:
    """How large the pieces are of which all windows consist."""
    return math.gcd(size, every)


def shows_empty(window: Window) -> bool:
    """Whether windows without rows are reported: then a window may be complete later than at its end."""
    return not isinstance(window, RowWindow) and window.empty


def _aligned_text(name: str, window: HoppingWindow | CumulatingWindow, instants: DataType) -> str:
    offset = f", offset {ticks_text(window.offset, instants)}" if window.offset else ""
    empty = ", empty ones too" if window.empty else ""
    return f"{name}({ticks_text(window.size, instants)}, every {ticks_text(window.every, instants)}{offset}{empty})"
