"""How `windows(...).agg(...)` makes its node."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NoReturn

from tidegate.algebra.diagnostics.shown import kind_of, shown
from tidegate.algebra.dsl.aggregates import AggregateExpression
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.suggestions import group_hint
from tidegate.algebra.dsl.expression import Expression, Origin
from tidegate.algebra.dsl.grouping import aggregate_of, given_aggregate
from tidegate.algebra.dsl.here import Here, unknown_name
from tidegate.algebra.dsl.windows.bounds import WindowBounds, WindowsOfRows
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import Node
from tidegate.algebra.ordered.windows.kinds import (
    AnchoredWindow,
    CountWindow,
    CumulatingWindow,
    HoppingWindow,
    Window,
)
from tidegate.algebra.ordered.windows.node import Windows
from tidegate.algebra.printing.plans import ticks_text
from tidegate.algebra.types import DataType, Kind

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Relation

#: Windows that one row may be in. Each is a row of the result: of 10 million a single row takes 1.5 GB.
MOST_WINDOWS: Final = 10_000_000


@checked_calls
class Windowed:
    """A relation in windows, waiting for `agg`.

    Examples:
        >>> cars.windows(tg.session(5), by="car")
        session(5) by car, in order of time; say what each window yields: .agg(...)
    """

    __slots__ = ("_bounds", "_keys", "_of", "_tie", "_time", "_window")

    def __init__(
        self, of: Relation, bounds: WindowBounds, keys: tuple[str, ...], time: str, tie: str | None = None
    ) -> None:
        self._of, self._bounds, self._keys, self._time, self._tie = of, bounds, keys, time, tie
        self._window = window_of(bounds, of.schema[time].type)
        if isinstance(self._window, HoppingWindow | CumulatingWindow | AnchoredWindow):
            self._require_few(self._window)
        if tie is not None and not isinstance(self._window, CountWindow):
            raise QueryError(
                "TG114",
                f"{bounds!r} has the same rows whichever comes first: tie={tie!r} says nothing",
                hint="leave it out; it is for tg.rows(...); first and last values go by the order that they are given: "
                "tg.last(v, by=...)",
            )

    @property
    def _shown(self) -> str:
        """Which windows, as users write it."""
        return repr(self._bounds)

    def _require_few(self, window: HoppingWindow | CumulatingWindow | AnchoredWindow) -> None:
        if window.size > MOST_WINDOWS * window.every:
            raise QueryError(
                "TG160",
                f"one row would be in {window.size // window.every:,} windows of {self._shown}, and at most "
                f"{MOST_WINDOWS:,} are allowed",
                hint=f"choose a larger every=; or for what there was up to each row, take {self._up_to_each(window)}",
            )

    def _up_to_each(self, window: HoppingWindow | CumulatingWindow | AnchoredWindow) -> str:
        """How the rows are asked for that are in a window which ends with a row, for each row."""
        type_, keys, computed = self._of.schema[self._time].type, self._keys, ""
        if isinstance(window, CumulatingWindow):
            name, time = "window", f"r.{self._time}" if self._time.isidentifier() else f'r["{self._time}"]'
            while name in self._of.schema:
                name += "_"
            moved = f" - {_duration(window.offset, type_)}" if window.offset else ""
            computed = f"with_({name}=lambda r: tg.ceil({time}{moved}, {_duration(window.size, type_)}))."
            keys = (*keys, name)
        names = ", ".join(f'"{key}"' for key in keys)
        by = f"by=({names}), " if len(keys) > 1 else f"by={names}, " if keys else ""
        # A window is open at its start, and a range has both of its ends.
        return f'{computed}over({by}order="{self._time}", range={_duration(window.size - 1, type_)}, ...)'

    @property
    def _others(self) -> tuple[Relation, ...]:
        """Relations beside this one that the windows depend on."""
        return ()

    def _made(self, aggregates: tuple[Aggregate, ...], site: Site | None) -> Node:
        """The windows with these aggregates: the keys, `start`, `end` and the aggregates first."""
        return Windows(self._of._node, self._keys, self._time, self._window, aggregates, self._tie)

    def __repr__(self) -> str:
        by = f" by {', '.join(self._keys)}" if self._keys else ""
        order = self._time if self._tie is None else f"{self._time}, {self._tie}"
        return f"{self._shown}{by}, in order of {order}; say what each window yields: .agg(...)"

    if not TYPE_CHECKING:  # type checkers shall refuse unknown methods themselves

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise unknown_name(f"no method of windows is called {name!r}", group_hint(name))

    @called("TG115", "each aggregate needs a name: .agg(n=tg.count()); attributes to keep go into by=")
    def agg(self, **named: AggregateExpression | Callable[[Relation], AggregateExpression]) -> Relation:
        """One row per window that holds a row: the keys, `start` and `end`, then these aggregates. With `empty=True`
        there are also windows without rows, and `complete`.

        `QueryError` TG115 for what is no aggregate, TG103 for a name that is taken, TG132 for an aggregate that keeps
        every value of all rows since an instant.

        Examples:
            >>> show(cars.windows(tg.session(5), by="car").agg(n=tg.count()))
            red, 1, 11, 6
        """
        with Here() as site:
            parts: list[Expression] = []
            given = {name: given_aggregate(self._of, name, one, "name it in by=") for name, one in named.items()}
            aggregates = tuple(aggregate_of(self._of, name, one, parts) for name, one in given.items())
            node = self._made(aggregates, site)
            origin = Origin("these windows")
            kept = {key: self._of._origins.get(key, origin) for key in self._keys}
            origins = {name: kept.get(name, origin) for name in node.schema}
            return self._of._with(node, origins, site, parts, self._others)


def _duration(ticks: int, type_: DataType) -> str:
    """So many ticks of instants of a type, as users write them."""
    text = ticks_text(ticks, type_)
    return {Kind.TIMESTAMP: f'"{text}"', Kind.DATE: f'"{text}d"'}.get(type_.kind, text)


def windowed(
    of: Relation, bounds: WindowBounds | WindowsOfRows, keys: tuple[str, ...], time: str, tie: str | None
) -> Windowed:
    """The rows of a relation in windows."""
    if isinstance(bounds, WindowsOfRows):
        return bounds._windowed(of, keys, time, tie)
    return Windowed(of, bounds, keys, time, tie)


def window_of(bounds: object, type_: DataType) -> Window:
    """The windows over instants of a type; `QueryError` TG114 for what is none, TG160 for durations that do not fit."""
    if hasattr(type(bounds), "schema"):  # a relation
        raise QueryError(
            "TG114",
            f"{kind_of(bounds)} says not which windows there are",
            hint="windows between rows are taken as tg.between(...) has made them; what is selected of them are rows: "
            "choose by which rows open and close them, or afterwards, windows(these).agg(...).where(...)",
        )
    if isinstance(bounds, Expression):
        raise QueryError(
            "TG114",
            f"{bounds!r} is a value of a row, and says not which windows there are",
            hint="as a key it goes into group_by(w=...); windows that do not overlap are "
            'tg.hopping("10s", every="10s") here',
        )
    if not isinstance(bounds, WindowBounds):
        raise QueryError(
            "TG114",
            f"{shown(bounds)} says not which windows there are",
            hint='write tg.session("5m"), tg.hopping("1h", every="10m"), tg.cumulating("1d", every="1h"), tg.rows(5), '
            'or tg.between(begun, ended, by="key")',
        )
    return bounds._build(type_)
