"""Which windows there are, as users write it inside `windows(...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.durations import Duration, check_duration, duration_in_ticks
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.windows import AlignedWindow, CumulatingWindow, HoppingWindow, SessionWindow, Window
from tidegate.algebra.types import DataType, Kind

_Build: TypeAlias = Callable[[DataType], Window]
_NO_SIZE: Final = ("TG160", 'say how long a window is: tg.hopping("1h", every="10m")')
_NO_EVERY: Final = ("TG160", 'say how far apart windows end: tg.hopping("1h", every="10m")')


@checked_calls
class WindowBounds:
    """Which windows there are: `tg.session`, `tg.hopping` or `tg.cumulating`, for `relation.windows(...)`.

    Examples:
        >>> tg.session("5m")
        session('5m')
    """

    __slots__ = ("_build", "_shown")

    def __init__(self, shown_as: str, build: _Build) -> None:
        self._shown, self._build = shown_as, build

    def __repr__(self) -> str:
        return self._shown


@called(gap=("TG160", 'say how far apart rows of a session may be: tg.session("5m")'))
def session(gap: Duration) -> WindowBounds:
    """Sessions: rows of one key of which each is at most `gap` after the one before.

    A session begins with its first row, and ends `gap` after its last.

    Examples:
        >>> drives = cars.windows(tg.session(1), by="car").agg(n=tg.count(), fastest=tg.max(cars.speed))
        >>> show(drives)
        red, 1, 7, 6, 95.0
    """
    with Here():
        check_duration("gap", gap)

        def build(type_: DataType) -> Window:
            return SessionWindow(_ticks("gap", gap, type_))

        return WindowBounds(f"session({gap!r})", build)


@called(size=_NO_SIZE, every=_NO_EVERY)
def hopping(size: Duration, *, every: Duration, offset: Duration = None) -> WindowBounds:
    """Windows of one size that overlap: those without `start` and with `end`, for each `end` that is a multiple of
    `every`, plus `offset`.

    The size is a multiple of `every`. Multiples count from the epoch, 1970-01-01 UTC, as with `tg.ceil`: with `every`
    equal to the size each row is in one window, which ends at `tg.ceil(time, size)`.

    Examples:
        >>> show(cars.windows(tg.hopping(4, every=2), by="car").agg(n=tg.count(), fastest=tg.max(cars.speed)))
        red, -2, 2, 2, 90.0
        red, 0, 4, 4, 95.0
        red, 2, 6, 4, 95.0
        red, 4, 8, 2, 60.0
    """
    with Here():
        return _aligned("hopping", HoppingWindow, size, every, offset)


@called(size=_NO_SIZE, every=_NO_EVERY)
def cumulating(size: Duration, *, every: Duration, offset: Duration = None) -> WindowBounds:
    """Windows that grow: from each multiple of `size`, plus `offset`, to each multiple of `every` up to the next one.

    The size is a multiple of `every`. As with `tg.hopping`, a window has its end and not its start.

    Examples:
        >>> show(cars.windows(tg.cumulating(4, every=2), by="car").agg(n=tg.count(), fastest=tg.max(cars.speed)))
        red, 0, 2, 2, 90.0
        red, 0, 4, 4, 95.0
        red, 4, 6, 2, 60.0
        red, 4, 8, 2, 60.0
    """
    with Here():
        return _aligned("cumulating", CumulatingWindow, size, every, offset)


def _aligned(
    name: str, kind: Callable[[int, int, int], AlignedWindow], size: Duration, every: Duration, offset: Duration
) -> WindowBounds:
    for option, given in (("size", size), ("every", every), ("offset", offset)):
        check_duration(option, given)

    def build(type_: DataType) -> Window:
        whole, step = _ticks("size", size, type_), _ticks("every", every, type_)
        if whole % step:
            raise QueryError(
                "TG160",
                f"size={shown(size)} is no multiple of every={shown(every)}",
                hint="windows consist of whole pieces: choose a size that is one",
            )
        return kind(whole, step, 0 if offset is None else duration_in_ticks(offset, type_, "offset") % whole)

    moved = "" if offset is None else f", offset={offset!r}"
    return WindowBounds(f"{name}({size!r}, every={every!r}{moved})", build)


def _ticks(option: str, given: Duration, type_: DataType) -> int:
    ticks = duration_in_ticks(given, type_, option)
    if ticks <= 0:
        example = "5m" if type_.kind is Kind.TIMESTAMP else 5
        raise QueryError("TG160", f"{option}={shown(given)} is not positive", hint=f"write {option}={example!r}, say")
    return ticks
