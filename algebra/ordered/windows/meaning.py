"""The windows of the rows of a partition, each with its rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tidegate.algebra.ordered.windows.kinds import (
    AnchoredWindow,
    CountWindow,
    FixedWindow,
    HoppingWindow,
    LandmarkWindow,
    OpenedWindow,
    SessionWindow,
    Window,
)
from tidegate.algebra.ordered.windows.panes import before, end_of, is_end, pane_of


@dataclass(frozen=True, slots=True)
class Found:
    """A window, with the places of its rows, and when it is known that it has no others."""

    start: int
    end: int
    rows: Sequence[int]
    complete: int


def windows_in(window: Window, times: Sequence[int], opened: Sequence[tuple[int, bool]] = ()) -> list[Found]:
    """All windows over rows at these instants, which ascend where the window counts rows. `opened` says of each row of
    windows that rows open when its window was opened, and whether it closes it.
    """
    match window:
        case OpenedWindow():
            return list(_opened(times, opened))
        case SessionWindow(gap):
            return list(_sessions(gap, times))
        case CountWindow(size, every, offset):
            lasts = range(size + (offset - size) % every, len(times) + 1, every)
            return [Found(times[n - size], times[n - 1], range(n - size, n), times[n - 1]) for n in lasts]
        case AnchoredWindow(size, every, empty):
            since = min(times) - 1
            starting = HoppingWindow(size, every, since + size, empty)
            return [found for found in _timed(starting, times) if found.start >= since]
        case _:
            return list(_timed(window, times))


def _sessions(gap: int, times: Sequence[int]) -> Iterator[Found]:
    order = sorted(range(len(times)), key=times.__getitem__)
    firsts = [at for at in range(len(order)) if at == 0 or times[order[at]] - times[order[at - 1]] > gap]
    for first, after in pairwise([*firsts, len(order)]):
        rows = order[first:after]
        end = times[rows[-1]] + gap
        yield Found(times[rows[0]], end, rows, end)


def _opened(times: Sequence[int], opened: Sequence[tuple[int, bool]]) -> Iterator[Found]:
    for end, (start, closes) in zip(times, opened, strict=True):
        if closes:
            yield Found(start, end, [at for at, (its, _) in enumerate(opened) if its == start], end)


def _timed(window: FixedWindow, times: Sequence[int]) -> Iterator[Found]:
    inside = {time: [pane for pane in _panes_of(window, time) if is_end(window, pane)] for time in times}
    panes = sorted({pane for found in inside.values() for pane in found})
    for pane in panes:
        start, end = end_of(window, before(window, pane)), end_of(window, pane)
        yield Found(start, end, [at for at, time in enumerate(times) if start < time <= end], end)
    for pane, following in pairwise(panes) if window.empty else ():
        for empty in range(pane + 1, following):
            if not is_end(window, empty):
                continue
            end = end_of(window, empty)
            told = min(time for time, found in inside.items() if found and time > end)
            yield Found(end_of(window, before(window, empty)), end, (), told)


def _panes_of(window: FixedWindow, time: int) -> Iterator[int]:
    """The last panes of the windows that hold an instant and are reported because of it."""
    pane = pane_of(window, time)
    if isinstance(window, LandmarkWindow):
        yield from [pane] if time > window.since else []
        return
    while end_of(window, before(window, pane)) < time:
        yield pane
        pane += 1
