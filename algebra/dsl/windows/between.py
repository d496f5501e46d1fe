"""Windows that rows of one relation open and rows of another close, as users ask for them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.durations import Duration, check_duration
from tidegate.algebra.dsl.checks.relation import flag, listed, what_else
from tidegate.algebra.dsl.contexts.handle import Contexts, require_since
from tidegate.algebra.dsl.expression import Expression, Origin
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.literals import plain
from tidegate.algebra.dsl.over.build import require_once
from tidegate.algebra.dsl.relation import Relation
from tidegate.algebra.dsl.windows.bounds import WITHOUT_ROWS, WindowsOfRows, positive_ticks
from tidegate.algebra.dsl.windows.build import Windowed
from tidegate.algebra.dsl.windows.opened import Asking, Opened
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import Node
from tidegate.algebra.ordered.windows.node import END, START
from tidegate.algebra.row_wise import is_static
from tidegate.algebra.terms import Attr
from tidegate.algebra.time import ONE_TYPE
from tidegate.algebra.types import BIGINT, MAX_SHIFT, DataType

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Column

#: What errors call the rows of each relation.
_OPENS, _CLOSES = "rows that open windows", "rows that close windows"


@checked_calls
class Between(Relation, Contexts, WindowsOfRows):
    """Windows that some rows open and others close, made by `tg.between`: a relation with the keys, `start` and `end`
    of each.

    `relation.windows(these).agg(...)` has aggregates of the rows in each, `relation.in_context(these)` the rows.

    Examples:
        >>> pulling = tg.between(cars.where(cars.accel > 0), cars.where(cars.accel < 0), by="car")
        >>> show(pulling.where(pulling.end - pulling.start > 2))
        red, 1, 4
    """

    __slots__ = ("_empty", "_opened")
    _opened: Opened
    _empty: bool

    def _inside(
        self,
        rows: Relation,
        contexts: tuple[str, ...],
        by: Column | Iterable[Column] | None,
        at: Column | None,
        since: str | None,
        values: Mapping[str, str],
        site: Site | None,
    ) -> Relation:
        keys, time = self._asked(rows, contexts, by, at, "in_context")
        require_since(since, time, rows.schema)
        if len(values) > 1 or any(name != START for name in values.values()):
            raise QueryError(
                "TG101",
                f"of a window that is open {shown(values)} is not known",
                hint='values={"since": "start"} is when the window of the row was opened',
            )
        return self._opened.inside(rows, keys, time, next(iter(values), ""), site, since)

    def _outside(
        self,
        rows: Relation,
        contexts: tuple[str, ...],
        by: Column | Iterable[Column] | None,
        at: Column | None,
        site: Site | None,
    ) -> Relation:
        return self._opened.outside(rows, *self._asked(rows, contexts, by, at, "not_in_context"), site)

    def _windowed(self, of: Relation, keys: tuple[str, ...], time: str, tie: str | None) -> WindowedBetween:
        return WindowedBetween(of, self, keys, time, tie)

    def _asked(
        self,
        rows: Relation,
        contexts: tuple[str, ...],
        by: Column | Iterable[Column] | None,
        at: Column | None,
        where: str,
    ) -> tuple[tuple[str, ...], str]:
        """The keys of rows, and the instant at which they are in a window or in none."""
        if contexts:
            raise QueryError(
                "TG187",
                f"these windows are one context, and {where} names {', '.join(map(shown, contexts))}",
                hint=f"leave the names out: {where}(windows)",
            )
        return self._placed(rows, () if by is None else listed(by), rows._order(at, where, "at"), where)

    def _placed(self, rows: Relation, by: Sequence[Column], time: str, where: str) -> tuple[tuple[str, ...], str]:
        """The names of rows' keys and instants; `QueryError` TG114 for other keys than those of the windows, TG102 for
        other types.
        """
        names = self._opened.names
        keys = tuple(rows._name_of(key, where) for key in by or names)
        if len(keys) != len(names):
            raise QueryError(
                "TG114",
                f"{where}(...) goes by {', '.join(keys)}, and these windows are of {', '.join(names) or 'all rows'}",
                hint="name as many attributes; none where they have the same names",
            )
        for here, there in ((time, END), *zip(keys, names, strict=True)):
            _require_same(rows, here, self, there, "the windows")
        return keys, time


@checked_calls
class WindowedBetween(Windowed):
    """A relation in windows that rows open and close, waiting for `agg`."""

    __slots__ = ("_windows",)

    def __init__(self, of: Relation, windows: Between, by: Sequence[str], time: str, tie: str | None) -> None:
        if tie is not None:
            raise QueryError(
                "TG114",
                f"windows between rows have the same rows whichever comes first: tie={tie!r} says nothing",
                hint="leave it out; it is for tg.rows(...); first and last values go by the order that they are given: "
                "tg.last(v, by=...)",
            )
        self._of, self._windows, self._tie = of, windows, None
        self._keys, self._time = windows._placed(of, by, time, "windows")
        _require_no_key(self._time, self._keys, "the rows in windows")

    @property
    def _shown(self) -> str:
        return "between rows that open and rows that close"

    @property
    def _others(self) -> tuple[Relation, ...]:
        return (self._windows,)

    def _made(self, aggregates: tuple[Aggregate, ...], site: Site | None) -> Node:
        windows = self._windows
        return windows._opened.aggregated(self._of, self._keys, self._time, aggregates, site, empty=windows._empty)


@called(
    opens=("TG114", 'say which rows open windows, and which close them: tg.between(begun, ended, by="key")'),
    closes=("TG114", 'say which rows close windows: tg.between(begun, ended, by="key")'),
)
def between(
    opens: Relation,
    closes: Relation,
    *,
    by: Column | Iterable[Column] = (),
    at_most: Duration = None,
    empty: bool = False,
    opens_at: Column | None = None,
    closes_at: Column | None = None,
) -> Between:
    """Windows that rows of one relation open and rows of another close: the keys, `start` and `end` of each.

    Of each key one window is open at most: where one is, another row of `opens` changes nothing. A row of `closes` ends
    it. As with `tg.hopping` and contexts, a window has its end and not its start: (start, end]. All rows of one instant
    are judged by what was before: they close the window that was open, and may open the next one. So no window ends as
    it begins.

    A window that no row closes stays open; `at_most` ends it so long after its start. `by` are attributes of both
    relations; a key that is NULL opens nothing. `opens_at`, `closes_at`: the instant of a row, where
    rows hold several.

    `relation.windows(these).agg(...)` has aggregates of the rows in each window, with `empty=True` also of windows
    without rows. `relation.in_context(these)` has the rows, and waits for no end.

    `QueryError` TG101 for a key that one of the relations lacks, TG102 for keys or instants of two types, TG114 for
    what is no relation and for an instant that is a key, TG117 where it has several instants, TG160 for an `at_most`
    that is no duration, TG162 for rows of a static table.

    Examples:
        >>> pulling = tg.between(cars.where(cars.accel > 0), cars.where(cars.accel < 0), by="car")
        >>> show(pulling)
        red, 1, 4
        >>> show(cars.windows(pulling, by="car").agg(n=tg.count(), fastest=tg.max(cars.speed)))
        red, 1, 4, 3, 95.0
        >>> show(cars.in_context(pulling, values={"since": "start"}).select("time", "speed", "since"))
        2, 90.0, 1
        3, 95.0, 1
        4, 85.0, 1
    """
    with Here() as site:
        for relation, which in ((opens, _OPENS), (closes, _CLOSES)):
            _require_streams(relation, which)
        shows_empty = flag("empty", empty, WITHOUT_ROWS)
        keys = tuple(_key(opens, key, _OPENS) for key in listed(by))
        names = tuple(key.rpartition(".")[2] for key in keys)
        require_once(names)
        opening = Asking(opens, keys, opens._order(opens_at, "between", "opens_at"))
        closing = Asking(
            closes,
            tuple(_key(closes, name, _CLOSES) for name in names),
            closes._order(closes_at, "between", "closes_at"),
        )
        for option, given, which in (("opens_at", opening, _OPENS), ("closes_at", closing, _CLOSES)):
            if not given.rows.schema[given.at].temporal:
                known = ", ".join(given.rows.schema.temporal)
                raise QueryError(
                    "TG117",
                    f"{option}={given.at!r} holds no instants",
                    hint=f"name one of {known}" if known else "rows without an instant open and close no windows",
                )
            _require_no_key(given.at, given.keys, which)
        for first, second in zip((*opening.keys, opening.at), (*closing.keys, closing.at), strict=True):
            _require_same(opens, first, closes, second, "rows that close")
        longest = _longest(at_most, opens.schema[opening.at].type)
        opened = Opened.of(opening, closing, names, longest, site)
        node = opened.whole()
        made = opened.changes._with(node, dict.fromkeys(node.schema, Origin("these windows")), site)
        windows = Between(made._node, made._origins, made._sites, made._results)
        windows._opened, windows._empty = opened, shows_empty
        return windows


def _require_streams(rows: object, which: str) -> None:
    """`QueryError` TG114 for what is no relation, TG162 for rows of static tables."""
    if not isinstance(rows, Relation):
        raise QueryError(
            "TG114",
            f"between got {what_else(rows)}",
            hint='write tg.between(begun, ended, by="key"); a value is compared by x.between(low, high)',
        )
    if is_static(rows._node):
        raise QueryError(
            "TG162",
            f"{which} are those of streams, and these are of static tables only",
            hint="declare a stream instead: rows or a frame given as its source are complete, so nothing waits for "
            "more",
        )


def _key(rows: Relation, key: Column, which: str) -> str:
    """The name of a key there; `QueryError` TG101 where these rows lack it, TG114 for what is computed."""
    part = _known(rows, key, which) if isinstance(key, str) else rows._column(key)
    if not isinstance(part._term, Attr):
        raise QueryError(
            "TG114",
            f"between goes by attributes, and {part!r} is computed",
            hint='give it one name in both relations first: with_(key=...), and then by="key"',
        )
    return part._term.name


def _known(rows: Relation, name: str, which: str) -> Expression:
    try:
        return rows._attribute(name)
    except QueryError as error:
        if error.code != "TG101":
            raise
        both = "" if which == _OPENS else f'; a key has one name in both relations: rename(...="{name}")'
        raise QueryError("TG101", f"{which} have no attribute {name!r}", hint=f"{error.hint}{both}") from None


def _require_no_key(at: str, keys: Sequence[str], which: str) -> None:
    """`QueryError` TG114 where the instant of rows is one of their keys."""
    if at in keys:
        raise QueryError(
            "TG114",
            f"{at!r} is the instant of {which}, and one of their keys",
            hint=f'leave it out of by=; or give the key a name of its own: with_(key=r.{at}), and then by="key"',
        )


def _longest(given: Duration, type_: DataType) -> int | None:
    """How many ticks a window lasts at most; `QueryError` TG160 for what is no such time."""
    check_duration("at_most", given)
    if given is None:
        return None
    number = plain(given)
    is_beyond = isinstance(number, int) and number > MAX_SHIFT and type_.distance == BIGINT
    ticks = MAX_SHIFT + 1 if is_beyond else positive_ticks("at_most", given, type_)
    if ticks > MAX_SHIFT:
        raise QueryError(
            "TG160",
            f"at_most={shown(given)} is longer than instants lie apart",
            hint="leave it out: windows last then until a row closes them",
        )
    return ticks


def _require_same(left: Relation, first: str, right: Relation, second: str, of: str) -> None:
    """`QueryError` TG102 for two attributes of different types."""
    its, other = left.schema[first], right.schema[second]
    if its.type != other.type:
        raise QueryError(
            "TG102",
            f"{first!r} is {its.type}, and {second!r} of {of} is {other.type}",
            hint=ONE_TYPE if its.temporal and other.temporal else "cast one",
        )
