"""The order of a group and the places of its rows, as users write them inside `ranked(...)` and `top_k(...)`."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeAlias

from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.expression import Expression, ValueOfGroup
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.ranks import Numbering

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Relation

#: What rows of a group are ordered by: values from the least on, or from the greatest.
RankOrder: TypeAlias = "Expression | str | Descending | Callable[[Relation], Expression | Descending]"
_NO_VALUE = ("TG132", "name what it orders by: tg.desc(r.x)")


@checked_calls
class RankExpression(ValueOfGroup):
    """A number that a row has among the rows of its group; it gets its name in `ranked(name=...)`.

    `QueryError` TG115 where it is used as the value of a row by itself.

    Examples:
        >>> tg.rank()
        rank()
    """

    __slots__ = ("_numbering",)

    def __init__(self, numbering: Numbering) -> None:
        self._numbering = numbering

    def __repr__(self) -> str:
        return f"{self._numbering.value}()"

    def _no_value(self) -> QueryError:
        return QueryError(
            "TG115",
            f"{self!r} looks at other rows: it has no value in a row by itself",
            hint='give it a name first: r.ranked(by="end", order=tg.desc(r.x), place=tg.rank())',
        )


@checked_calls
class Descending(ValueOfGroup):
    """A value by which rows are ordered from the greatest on, for `ranked(order=...)` and `top_k(order=...)`.

    Examples:
        >>> tg.desc("speed")
        desc('speed')
    """

    __slots__ = ("_value",)

    def __init__(self, value: Expression | str) -> None:
        self._value = value

    def __repr__(self) -> str:
        return f"desc({self._value!r})"

    def _no_value(self) -> QueryError:
        return QueryError(
            "TG115",
            f"{self!r} is an order, and no value",
            hint="it belongs into order= of top_k or ranked: order=tg.desc(r.x)",
        )


@called()
def rank() -> RankExpression:
    """One more than the rows of the group before this one and its peers, which are those with equal values of `order`.

    Examples:
        >>> halves = cars.with_(end=tg.ceil(cars.time, 3))
        >>> placed = halves.ranked(by="end", order=tg.desc("accel"), place=tg.rank(), dense=tg.dense_rank())
        >>> show(placed.select("end", "time", "place", "dense").where(placed.end == 3))
        3, 1, 1, 1
        3, 2, 1, 1
        3, 3, 3, 2
    """
    with Here():
        return RankExpression(Numbering.RANK)


@called()
def dense_rank() -> RankExpression:
    """One more than the different ranks of the group before this row's own: no number is left out.

    Examples:
        >>> halves = cars.with_(end=tg.ceil(cars.time, 3))
        >>> placed = halves.ranked(by="end", order="accel", place=tg.dense_rank())
        >>> show(placed.select("end", "time", "place").where(placed.end == 3))
        3, 1, 2
        3, 2, 2
        3, 3, 1
    """
    with Here():
        return RankExpression(Numbering.DENSE_RANK)


@called(value=_NO_VALUE)
def desc(value: Expression | str) -> Descending:
    """The order from the greatest value on, for `top_k` and `ranked`. NULL comes last all the same.

    Examples:
        >>> fastest = cars.with_(end=tg.ceil(cars.time, 3)).top_k(1, by="end", order=tg.desc("speed"))
        >>> show(fastest.select("end", "time", "speed"))
        3, 3, 95.0
        6, 4, 85.0
    """
    with Here():
        return Descending(value)
