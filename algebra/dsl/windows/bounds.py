"""Which windows there are, as users write it inside `windows(...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.durations import Duration, check_duration, duration_in_ticks
from tidegate.algebra.dsl.checks.relation import flag
from tidegate.algebra.dsl.expression import ValueOfGroup, to_expression
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.literals import plain
from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.calendar import is_zone, zone_hint
from tidegate.algebra.ordered.windows.calendar import LONGEST_DAYS, Unit
from tidegate.algebra.ordered.windows.kinds import (
    AnchoredWindow,
    CalendarWindow,
    CountWindow,
    CumulatingWindow,
    HoppingWindow,
    LandmarkWindow,
    SessionWindow,
    Window,
)
from tidegate.algebra.terms import Lit
from tidegate.algebra.types import DataType, Kind

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Relation
    from tidegate.algebra.dsl.windows.build import Windowed

_Build: TypeAlias = Callable[[DataType], Window]
_Aligned: TypeAlias = Callable[[int, int, int, bool], HoppingWindow | CumulatingWindow | AnchoredWindow]
#: From where ends are counted.
Align: TypeAlias = Literal["epoch", "first"]
_NO_SIZE: Final = ("TG160", 'say how long a window is: tg.hopping("1h", every="10m")')
_NO_EVERY: Final = ("TG160", 'say how far apart windows end: tg.hopping("1h", every="10m")')
#: When `empty` is true.
WITHOUT_ROWS: Final = "where windows without rows are wanted, too"


@checked_calls
class WindowBounds(ValueOfGroup):
    """Which windows there are: `tg.session`, `tg.hopping`, `tg.cumulating`, `tg.calendar`, `tg.landmark` or
    `tg.rows`, for `relation.windows(...)`.

    Examples:
        >>> tg.session("5m")
        session('5m')
    """

    __slots__ = ("_build", "_shown")

    def __init__(self, shown_as: str, build: _Build) -> None:
        self._shown, self._build = shown_as, build

    def __repr__(self) -> str:
        return self._shown

    def _no_value(self) -> QueryError:
        return QueryError(
            "TG110",
            f"{self._shown} says which windows there are, and has no value in a row",
            hint=f'write r.windows(tg.{self._shown}, by="key").agg(n=tg.count())',
        )


class WindowsOfRows:
    """Windows that are rows themselves: what aggregates of the rows in each are made of."""

    __slots__ = ()

    def _windowed(self, of: Relation, keys: tuple[str, ...], time: str, tie: str | None) -> Windowed:
        """A relation in these windows."""
        raise NotImplementedError


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
            return SessionWindow(positive_ticks("gap", gap, type_))

        return WindowBounds(f"session({gap!r})", build)


@called(size=_NO_SIZE, every=_NO_EVERY)
def hopping(
    size: Duration, *, every: Duration, offset: Duration = None, align: Align = "epoch", empty: bool = False
) -> WindowBounds:
    """Windows of one size that overlap: those without `start` and with `end`, for each `end` that is a multiple of
    `every`, plus `offset`.

    Multiples count from the epoch, 1970-01-01 UTC, as with `tg.ceil`: with `every` equal to the size each row is in one
    window, which ends at `tg.ceil(time, size)`; with a larger one there is time in no window. What is kept and merged
    are pieces of the greatest length of which both have a whole number. With `align="first"` windows begin with the
    first row of each key and each `every` after it, so the first `start` is the instant before. That instant is then
    kept for ever.

    `empty=True` also reports the windows without rows between two with rows of one key: `count` is 0 there, and other
    aggregates are NULL. `complete` says when a window is known: that is at its `end`, or, if it is empty, when the next
    row that is in a window comes.

    Examples:
        >>> show(cars.windows(tg.hopping(4, every=2), by="car").agg(n=tg.count(), fastest=tg.max(cars.speed)))
        red, -2, 2, 2, 90.0
        red, 0, 4, 4, 95.0
        red, 2, 6, 4, 95.0
        red, 4, 8, 2, 60.0
    """
    with Here():
        _require_one("align", align, ("epoch", "first"))
        if align == "first":
            if offset is not None:
                raise QueryError("TG160", "offset moves what the first row aligns", hint="leave one of both out")
            return _aligned("hopping", _anchored, size, every, None, empty, align)
        return _aligned("hopping", HoppingWindow, size, every, offset, empty)


@called(size=_NO_SIZE, every=_NO_EVERY)
def cumulating(size: Duration, *, every: Duration, offset: Duration = None, empty: bool = False) -> WindowBounds:
    """Windows that grow: from each multiple of `size`, plus `offset`, to each multiple of `every` up to the next one.

    The size is a multiple of `every`. As with `tg.hopping`, a window has its end and not its start, and `empty=True`
    also reports those without rows.

    Examples:
        >>> show(cars.windows(tg.cumulating(4, every=2), by="car").agg(n=tg.count(), fastest=tg.max(cars.speed)))
        red, 0, 2, 2, 90.0
        red, 0, 4, 4, 95.0
        red, 4, 6, 2, 60.0
        red, 4, 8, 2, 60.0
    """
    with Here():
        return _aligned("cumulating", CumulatingWindow, size, every, offset, empty)


@called(unit=("TG160", 'say which unit: tg.calendar("month", zone="Europe/Berlin")'))
def calendar(unit: Unit, *, zone: str = "UTC", size: int = 1, empty: bool = False) -> WindowBounds:
    """Days, weeks, months, quarters or years of a time zone, right also where its clocks change. With `size` the last
    so many of them, at the end of each.

    A week begins on Monday. As with `tg.hopping`, a window has its end and not its start: midnight belongs to the day
    before. Of dates, which are of no zone, the end is the last day of a window, and the start the day before the first.
    `empty=True` also reports windows without rows, as there. `QueryError` TG160 for another unit, a zone that is not
    known, and rows whose instants are whole numbers.

    Examples:
        >>> monthly = orders.windows(tg.calendar("month", zone="Europe/Berlin"), by="customer")
        >>> show(monthly.agg(n=tg.count()).select("customer", "end", "n"))
        Ada, 2026-03-31 22:00:00+00:00, 2
        Bob, 2026-03-31 22:00:00+00:00, 1
    """
    with Here():
        _require_one("unit", unit, tuple(LONGEST_DAYS))
        _require_zone(zone)
        many, shows_empty = _whole("size", size), flag("empty", empty, WITHOUT_ROWS)

        def build(type_: DataType) -> Window:
            if type_.kind is Kind.DATE:
                if zone != "UTC":
                    raise QueryError("TG160", f"dates are of no time zone: zone={zone!r}", hint="leave zone= out")
                return CalendarWindow(unit, many, None, shows_empty)
            if type_.kind is not Kind.TIMESTAMP:
                raise QueryError(
                    "TG160",
                    f"a calendar has instants and dates, and {type_} is neither",
                    hint="windows over whole numbers are tg.hopping(7, every=7)",
                )
            return CalendarWindow(unit, many, zone, shows_empty)

        counted = "" if many == 1 else f", size={many}"
        return WindowBounds(f"calendar({unit!r}, zone={zone!r}{counted}{_shown(shows_empty)})", build)


@called(since=("TG160", 'say since when: tg.landmark("2026-01-01T00:00Z", every="1h")'), every=_NO_EVERY)
def landmark(since: object, *, every: Duration) -> WindowBounds:
    """Windows that all begin at one instant: what there was since then, at each multiple of `every` after it by which
    there were new rows.

    Rows up to `since` are in none. What is kept is one partial result of each key, for ever.

    Examples:
        >>> show(cars.windows(tg.landmark(2, every=2), by="car").agg(n=tg.count(), fastest=tg.max(cars.speed)))
        red, 2, 4, 2, 95.0
        red, 2, 6, 4, 95.0
    """
    with Here():
        check_duration("every", every)

        def build(type_: DataType) -> Window:
            literal = to_expression(since, type_)._term
            if not isinstance(literal, Lit) or literal.type != type_ or not isinstance(literal.value, int):
                example = "2026-01-01T00:00Z" if type_.kind is Kind.TIMESTAMP else 0
                raise QueryError("TG160", f"since={shown(since)} is no instant here", hint=f"write since={example!r}")
            return LandmarkWindow(literal.value, positive_ticks("every", every, type_))

        return WindowBounds(f"landmark({shown(since)}, every={every!r})", build)


@called(size=("TG160", "say how many rows a window has: tg.rows(5)"))
def rows(size: int, *, every: int | None = None, align: Align = "epoch") -> WindowBounds:
    """Windows of `size` rows of one key in succession, one at each row whose number is a multiple of `every`.

    `every` is the size if it is left out: then each row is in one window. A window starts and ends with its first and
    last row, and is complete with that. Rows of one key and one instant need an
    order, `windows(..., tie="sequence")`. Rows that make no whole window are in none. With `align="first"` the first
    window is that of the first `size` rows, and each other one begins `every` rows later, which is something else where
    `every` does not divide the size.

    Examples:
        >>> show(cars.windows(tg.rows(4, every=2), by="car").agg(n=tg.count(), fastest=tg.max(cars.speed)))
        red, 1, 4, 4, 95.0
        red, 3, 6, 4, 95.0
    """
    with Here():
        whole = _whole("size", size)
        step = whole if every is None else _whole("every", every)
        _require_one("align", align, ("epoch", "first"))
        offset = whole % step if align == "first" else 0
        counted = ("" if every is None else f", every={step}") + _aligned_by(align)
        return WindowBounds(f"rows({whole}{counted})", lambda _: CountWindow(whole, step, offset))


def _aligned(
    name: str, kind: _Aligned, size: Duration, every: Duration, offset: Duration, empty: bool, align: Align = "epoch"
) -> WindowBounds:
    for option, given in (("size", size), ("every", every), ("offset", offset)):
        check_duration(option, given)
    shows_empty = flag("empty", empty, WITHOUT_ROWS)

    def build(type_: DataType) -> Window:
        whole, step = positive_ticks("size", size, type_), positive_ticks("every", every, type_)
        if kind is CumulatingWindow:
            _require_multiple(size, whole, every, step)
        turn = whole if whole % step == 0 else step
        moved = 0 if offset is None else duration_in_ticks(offset, type_, "offset") % turn
        return kind(whole, step, moved, shows_empty)

    moved = "" if offset is None else f", offset={offset!r}"
    moved += _aligned_by(align)
    return WindowBounds(f"{name}({size!r}, every={every!r}{moved}{_shown(shows_empty)})", build)


def _anchored(size: int, every: int, offset: int, empty: bool) -> AnchoredWindow:
    return AnchoredWindow(size, every, empty)


def _aligned_by(align: Align) -> str:
    return "" if align == "epoch" else f", align={align!r}"


def _shown(empty: bool) -> str:
    return ", empty=True" if empty else ""


def _require_one(option: str, given: object, known: tuple[str, ...]) -> None:
    if given not in known:
        names = " or ".join(f'{option}="{name}"' for name in known)
        raise QueryError("TG160", f"{option}={shown(given)} is not known", hint=f"write {names}")


def _require_zone(given: object) -> None:
    if not isinstance(given, str) or not is_zone(given):
        raise QueryError("TG160", f"{shown(given)} is no time zone", hint=zone_hint(given))


def _require_multiple(size: object, whole: int, every: object, step: int) -> None:
    if whole % step:
        raise QueryError(
            "TG160",
            f"size={shown(size)} is no multiple of every={shown(every)}",
            hint="windows grow piece by piece: choose a size that is one",
        )


def positive_ticks(option: str, given: Duration, type_: DataType) -> int:
    """A duration in ticks of a timeline; `QueryError` TG160 where it is not positive."""
    ticks = duration_in_ticks(given, type_, option)
    if ticks <= 0:
        example = "5m" if type_.kind is Kind.TIMESTAMP else 5
        raise QueryError("TG160", f"{option}={shown(given)} is not positive", hint=f"write {option}={example!r}, say")
    return ticks


def _whole(option: str, given: object) -> int:
    value = plain(given)
    if isinstance(value, bool) or not isinstance(value, int) or value <= 0:
        raise QueryError("TG160", f"{option}={shown(given)} is no positive whole number", hint=f"write {option}=5, say")
    return value
