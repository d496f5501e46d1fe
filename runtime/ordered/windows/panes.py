"""The panes that windows consist of, by number: which instants they have, and which windows have them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Protocol, assert_never

import numpy as np

from tidegate.algebra.ordered.windows.calendar import Unit, beginning, first_from
from tidegate.algebra.ordered.windows.kinds import (
    AnchoredWindow,
    CalendarWindow,
    CountWindow,
    CumulatingWindow,
    FixedWindow,
    HoppingWindow,
    LandmarkWindow,
    TimedWindow,
)
from tidegate.algebra.typed.kernels import DAY
from tidegate.runtime.arrays import BoolArray, Int64Array

#: Panes of a block that never ends.
ENDLESS: Final = 1 << 62
_YEAR: Final = 366


@dataclass(frozen=True, slots=True)
class Panes:
    """`many` panes in succession are a block, of which block b has the last one at `b * many`, later by the phase of
    its partition.

    A window that `grows` has the panes of its block so far. Another one has as many as a block: the last ones of a
    block and the first ones of the next. None begins before the first pane if all are `whole`. Of a partition the last
    pane is kept for ever if it `stays`. Windows are those that end with pane `first` or each `step`-th pane from there.
    """

    many: int
    grows: bool
    stays: bool = False
    whole: bool = False
    step: int = 1
    first: int = 0

    def are_windows(self, panes: Int64Array) -> BoolArray:
        """With which of the panes a window ends."""
        its: BoolArray = (panes - self.first) % self.step == 0
        return its

    @property
    def have_gaps(self) -> bool:
        """Whether there are panes between two windows that neither has."""
        return self.step > self.many

    def are_in_windows(self, panes: Int64Array) -> BoolArray:
        """Which of the panes a window has."""
        its: BoolArray = (self.first - panes) % self.step < self.many
        return its

    def block(self, pane: Int64Array, phase: Int64Array | int = 0) -> Int64Array:
        return -((phase - pane) // self.many)

    @property
    def reach(self) -> int:
        """How many panes later the last window that a pane makes be reported ends; -1: with the block of the pane."""
        if self.many == ENDLESS:
            return 0
        return -1 if self.grows else self.many - 1

    def last(self, pane: Int64Array) -> Int64Array:
        """The last window that a pane makes be reported."""
        return self.block(pane) * self.many if self.reach < 0 else pane + self.reach

    def before(self, window: Int64Array) -> Int64Array:
        """The last pane before the first one of a window."""
        return (self.block(window) - 1) * self.many if self.grows else window - self.many


@lru_cache(maxsize=256)
def panes_of(window: CountWindow | TimedWindow) -> Panes:
    match window:
        case HoppingWindow(size=size, every=every, pane=pane, empty=empty):
            return Panes(size // pane, size == pane, empty, step=every // pane)
        case CumulatingWindow(size=size, every=every, empty=empty):
            return Panes(size // every, grows=True, stays=empty)
        case CalendarWindow(size=many, empty=empty):
            return Panes(many, many == 1, empty)
        case LandmarkWindow():
            return Panes(ENDLESS, grows=True, stays=True)
        case CountWindow(size=size, every=every, offset=offset, pane=pane):
            return Panes(size // pane, size == pane, stays=True, whole=True, step=every // pane, first=offset // pane)
        case AnchoredWindow(size=size, every=every, pane=pane):
            many = size // pane
            return Panes(many, size == pane, stays=True, whole=True, step=every // pane, first=many)
        case _:
            assert_never(window)


class Axis(Protocol):
    """Where panes end in each partition; `at` are the places of these."""

    def of(self, time: Int64Array, at: Int64Array) -> Int64Array:
        """The pane of each instant: the first one that ends at it or later."""

    def end(self, pane: Int64Array, at: Int64Array) -> Int64Array: ...
    def ended(self, reached: int, partitions: int) -> Int64Array:
        """The last pane of each partition that ends by an instant."""


@dataclass(frozen=True, slots=True)
class EvenPanes:
    """Pane n ends at `n * every + offset`."""

    every: int
    offset: int

    def of(self, time: Int64Array, at: Int64Array) -> Int64Array:
        before = self.offset - time
        before //= self.every  # in place: each new array of all rows is new memory
        return np.negative(before, out=before)

    def end(self, pane: Int64Array, at: Int64Array) -> Int64Array:
        return pane * self.every + self.offset

    def ended(self, reached: int, partitions: int) -> Int64Array:
        return np.full(partitions, (reached - self.offset) // self.every)


@dataclass(frozen=True, slots=True)
class AnchoredPanes:
    """Pane n of a partition ends at `n * every` after an instant of its own."""

    every: int
    since: Int64Array

    def of(self, time: Int64Array, at: Int64Array) -> Int64Array:
        return -((self.since[at] - time) // self.every)

    def end(self, pane: Int64Array, at: Int64Array) -> Int64Array:
        return pane * self.every + self.since[at]

    def ended(self, reached: int, partitions: int) -> Int64Array:
        return (reached - self.since) // self.every


@dataclass(frozen=True, slots=True)
class CalendarPanes:
    """Pane n ends where unit n of a calendar begins."""

    unit: Unit
    zone: str | None

    def of(self, time: Int64Array, at: Int64Array) -> Int64Array:
        if not len(time):
            return time
        year = _YEAR if self.zone is None else _YEAR * DAY
        known = [np.arange(self._first_from(low), self._first_from(high) + 1) for low, high in _stretches(time, year)]
        numbers = np.concatenate(known)
        return numbers[np.searchsorted(self._ends(numbers), time)]

    def end(self, pane: Int64Array, at: Int64Array) -> Int64Array:
        numbers, places = np.unique(pane, return_inverse=True)
        return self._ends(numbers)[places]

    def ended(self, reached: int, partitions: int) -> Int64Array:
        return np.full(partitions, self._first_from(reached + 1) - 1)

    def _first_from(self, instant: int) -> int:
        return first_from(self.unit, self.zone, instant)

    def _ends(self, panes: Int64Array) -> Int64Array:
        return np.array([beginning(self.unit, self.zone, number) for number in panes.tolist()], dtype=np.int64)


def _stretches(time: Int64Array, year: int) -> list[tuple[int, int]]:
    """The first and the last instant of each stretch of time, where more than a year without any parts two.

    So an instant in the year 9999 does not make all units up to it be looked up.
    """
    low, high = int(time.min()), int(time.max())
    if high - low <= year:
        return [(low, high)]
    instants = np.unique(time)
    parts = np.split(instants, np.flatnonzero(np.diff(instants) > year) + 1)
    return [(int(part[0]), int(part[-1])) for part in parts]


@lru_cache(maxsize=256)
def axis_of(window: FixedWindow) -> Axis:
    match window:
        case HoppingWindow() | CumulatingWindow():
            return EvenPanes(window.pane, window.offset)
        case LandmarkWindow():
            return EvenPanes(window.every, window.since)
        case CalendarWindow():
            return CalendarPanes(window.unit, window.zone)
        case _:
            assert_never(window)
