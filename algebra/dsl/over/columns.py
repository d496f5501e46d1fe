"""What rows say of the rows before and after them, as users write it inside `over(...)`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.durations import Duration, check_duration
from tidegate.algebra.dsl.expression import Expression, Operand, ValueOfGroup, to_expression
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.literals import held_by
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.ordered.over import Frame, Neighbour, NextDifferent, Nth, OverColumn, PreviousDifferent, RowNumber
from tidegate.algebra.terms import Lit, Term
from tidegate.algebra.types import DataType

#: A column by its name, the terms of its arguments, and the frame and the duration in ticks that it is given.
Build: TypeAlias = Callable[[str, Sequence[Term], Frame, int | None], OverColumn]

#: Rows that a frame may have on each side, and how far away in rows one may be that is looked at.
MOST_ROWS: Final = 1 << 40
_NO_ARGUMENT = ("TG132", "name what it looks at: tg.lag(r.x)")


@checked_calls
class OverExpression(ValueOfGroup):
    """A value that a row has because of the rows around it; it gets its name in `over(name=...)`.

    `QueryError` TG115 where it is used as the value of a row by itself.

    Examples:
        >>> before = tg.lag(cars.speed)
        >>> before
        lag(speed, 1)
        >>> show(cars.over(by="car", order="time", before=before).select("time", "before").where(lambda r: r.time < 3))
        1, None
        2, 60.0
    """

    __slots__ = ("_argument", "_build", "_shown", "_site", "_within")

    def __init__(
        self,
        shown_as: str,
        argument: Expression | None,
        build: Build,
        within: Duration = None,
        site: Site | None = None,
    ) -> None:
        self._shown, self._argument, self._build, self._within, self._site = shown_as, argument, build, within, site

    def __repr__(self) -> str:
        return self._shown

    def _no_value(self) -> QueryError:
        return QueryError(
            "TG115",
            f"{self!r} looks at other rows: it has no value in a row by itself",
            hint='give it a name first: r.over(by="key", order="time", before=tg.lag(r.x)), and compute with that name',
        )


def _expression(function: str, argument: object) -> Expression:
    if isinstance(argument, str):
        raise QueryError(
            "TG115",
            f"{function} takes an attribute of a relation, not the text {argument!r}",
            hint=f"write relation.{argument}" if argument.isidentifier() else "write relation.name",
        )
    return to_expression(argument)


def _count(function: str, n: object) -> int:
    if isinstance(n, bool) or not isinstance(n, int) or not 1 <= n <= MOST_ROWS:
        raise QueryError("TG114", f"{function} counts rows from 1 on, not {shown(n)}", hint=f"write {function}(r.x, 1)")
    return n


def _default(function: str, default: object, type_: DataType) -> Lit:
    """What stands for a row that there is not, as a value of the type of the others where that can be."""
    constant = to_expression(default, type_)._term
    if not isinstance(constant, Lit):
        raise QueryError(
            "TG114",
            f"the default of {function} is a constant, not {shown(default)}",
            hint=f"leave it out, add at=tg.{function}(...) of the order, else the same, which is NULL where there is "
            f"no such row, and compute afterwards: tg.when(r.at.is_null(), ..., r.{function})",
        )
    return held_by(constant, type_)


def _neighbour(
    function: str, sign: int, argument: object, n: object, default: object, within: Duration
) -> OverExpression:
    with Here() as site:
        of, count = _expression(function, argument), _count(function, n)
        check_duration("within", within)
        instead = None if default is None else _default(function, default, of.type)

        def build(name: str, terms: Sequence[Term], frame: Frame, ticks: int | None) -> OverColumn:
            return Neighbour(name, terms[0], sign * count, ticks, instead)

        given = "" if default is None else f", {default!r}"
        bound = "" if within is None else f", within={within!r}"
        return OverExpression(f"{function}({of!r}, {count}{given}{bound})", of, build, within, site)


@called(argument=_NO_ARGUMENT)
def lag(argument: Operand, n: int = 1, default: Operand = None, *, within: Duration = None) -> OverExpression:
    """The value in the row that is `n` rows before this one in its partition, NULL or `default` where there is none.

    `within`: only rows that are at most so long ago count; older ones need not be kept. A value that is NULL stays
    NULL.

    Examples:
        >>> gap = cars.over(by="car", order="time", before=tg.lag(cars.speed, default=0.0))
        >>> show(gap.select("time", gain=gap.speed - gap.before).where(lambda r: r.time <= 3))
        1, 60.0
        2, 30.0
        3, 5.0
    """
    return _neighbour("lag", -1, argument, n, default, within)


@called(argument=_NO_ARGUMENT)
def lead(argument: Operand, n: int = 1, default: Operand = None, *, within: Duration = None) -> OverExpression:
    """The value in the row that is `n` rows after this one in its partition.

    A row is complete once that row is there: the attribute `complete` says when. With `within` it waits so long at
    most, and has NULL or `default` then. Without, rows still waiting when the input ends are not reported, unless it is
    said where the input ends (`close_at`).

    Examples:
        >>> next = cars.over(by="car", order="time", next=tg.lead(cars.speed, within=1))
        >>> show(next.select("time", "next", "complete").where(lambda r: r.time >= 5))
        5, 50.0, 6
        6, None, 7
    """
    return _neighbour("lead", 1, argument, n, default, within)


@called(argument=_NO_ARGUMENT)
def previous_different(argument: Operand) -> OverExpression:
    """The last value before this row's in its partition that is another one; NULL is a value like others.

    Examples:
        >>> fast = cars.with_(fast=cars.speed > 80)
        >>> was = fast.over(by="car", order="time", was=tg.previous_different(fast.fast))
        >>> show(was.select("time", "was").where(lambda r: r.time <= 3))
        1, None
        2, False
        3, False
    """
    with Here() as site:
        of = _expression("previous_different", argument)

        def build(name: str, terms: Sequence[Term], frame: Frame, ticks: int | None) -> OverColumn:
            return PreviousDifferent(name, terms[0])

        return OverExpression(f"previous_different({of!r})", of, build, site=site)


@called(argument=_NO_ARGUMENT)
def next_different(argument: Operand, *, within: Duration = None) -> OverExpression:
    """The first value after this row's in its partition that is another one; NULL is a value like others.

    As with `lead`, a row is complete once that value is there, or `within` is over. Without `within` rows are kept
    for as long as the value stays the same.

    Examples:
        >>> fast = cars.with_(fast=cars.speed > 80)
        >>> turns = fast.over(by="car", order="time", turns=tg.next_different(fast.fast, within=3))
        >>> show(turns.select("time", "turns", "complete").where(lambda r: r.time <= 2))
        1, True, 2
        2, False, 5
    """
    with Here() as site:
        of = _expression("next_different", argument)
        check_duration("within", within)

        def build(name: str, terms: Sequence[Term], frame: Frame, ticks: int | None) -> OverColumn:
            return NextDifferent(name, terms[0], ticks)

        bound = "" if within is None else f", within={within!r}"
        return OverExpression(f"next_different({of!r}{bound})", of, build, within, site)


@called(argument=_NO_ARGUMENT, n=("TG132", "say which row of the frame: tg.nth(r.x, 1)"))
def nth(argument: Operand, n: int) -> OverExpression:
    """The value in the n-th row of the frame, from 1 on, whether it is NULL or not; NULL where the frame is shorter.

    Examples:
        >>> start = cars.over(by="car", order="time", start=tg.nth(cars.speed, 1))
        >>> show(start.select("time", "start").where(lambda r: r.time <= 2))
        1, 60.0
        2, 60.0
    """
    with Here() as site:
        of, number = _expression("nth", argument), _count("nth", n)

        def build(name: str, terms: Sequence[Term], frame: Frame, ticks: int | None) -> OverColumn:
            return Nth(name, terms[0], number, frame)

        return OverExpression(f"nth({of!r}, {number})", of, build, site=site)


@called()
def row_number() -> OverExpression:
    """The number of the row in its partition, from 1 on.

    Examples:
        >>> numbered = cars.over(by="car", order="time", number=tg.row_number())
        >>> show(numbered.select("time", "number").where(lambda r: r.number <= 2))
        1, 1
        2, 2
    """
    with Here() as site:

        def build(name: str, terms: Sequence[Term], frame: Frame, ticks: int | None) -> OverColumn:
            return RowNumber(name)

        return OverExpression("row_number()", None, build, site=site)
