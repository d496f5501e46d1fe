"""Groups of a relation: what `group_by` yields and `agg` completes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.aggregates import AggregateExpression
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.relation import applied, free_name, fresh_origins, renamed
from tidegate.algebra.dsl.checks.suggestions import group_hint
from tidegate.algebra.dsl.expression import Expression
from tidegate.algebra.dsl.here import Here, unknown_name
from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.nodes import Group
from tidegate.algebra.schema import checked_name

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Relation


def given_aggregate(of: Relation, name: str, given: object, instead: str) -> AggregateExpression:
    """The aggregate that a user gives a name; `QueryError` TG115 for what is none, with what to do `instead`."""
    checked_name(name, "an attribute")
    aggregate = applied(given, of, hint=f"write {name}=lambda r: tg.max(r.x)") if callable(given) else given
    if not isinstance(aggregate, AggregateExpression):
        raise QueryError(
            "TG115", f"{name}={shown(aggregate)} is no aggregate", hint=f"write {name}=tg.max(...) or {instead}"
        )
    return aggregate


def aggregate_of(of: Relation, name: str, given: AggregateExpression, parts: list[Expression]) -> Aggregate:
    """The aggregate over rows of a relation, under this name; the expressions that it is written with go into
    `parts`.
    """
    its = [None if part is None else of._column(part) for part in (given._argument, given._by)]
    parts += [part for part in its if part is not None]
    argument, by = (None if part is None else part._term for part in its)
    return Aggregate(name, given._function, argument, by, given._parameter)


@checked_calls
class Grouped:
    """A relation in groups, waiting for `agg`.

    Examples:
        >>> daily
        Grouped by day; say what each group yields: .agg(...)
    """

    __slots__ = ("_base", "_columns", "_of", "_parts")

    def __init__(self, of: Relation, base: Relation, columns: list[tuple[str, str]], parts: list[Expression]) -> None:
        self._of, self._base, self._columns, self._parts = of, base, columns, parts

    def __repr__(self) -> str:
        return (
            f"Grouped by {', '.join(name for name, _ in self._columns) or 'nothing'}; say what each group yields: "
            ".agg(...)"
        )

    if not TYPE_CHECKING:  # type checkers shall refuse unknown methods themselves

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise unknown_name(f"no method of groups is called {name!r}", group_hint(name))

    @called("TG115", "each aggregate needs a name: .agg(n=tg.count()); attributes to keep go into group_by(...)")
    def agg(self, **named: AggregateExpression | Callable[[Relation], AggregateExpression]) -> Relation:
        """One row per group: its keys, then these aggregates.

        `QueryError` TG115 for what is no aggregate, or has no name; TG103 for a name that a key has.

        Examples:
            >>> show(daily.agg(orders=tg.count(), amount=tg.sum(orders.amount)))
            2026-03-02 00:00:00+00:00, 2, 42.5
            2026-03-03 00:00:00+00:00, 1, 8.0
        """
        with Here() as site:
            keys = tuple(source for _, source in self._columns)
            parts, aggregates, renames = list(self._parts), [], [(source, out) for out, source in self._columns]
            for name, given in named.items():
                aggregate = given_aggregate(self._of, name, given, "group by it")
                if name in {out for out, _ in self._columns}:
                    raise QueryError("TG103", f"{name!r} is a key of the groups already", hint="choose another name")
                hidden = free_name(name, keys)
                renames.append((hidden, name))
                aggregates.append(aggregate_of(self._of, hidden, aggregate, parts))
            group = Group(self._base._node, keys, tuple(aggregates))
            base = self._base._with(group, {}, site, parts)
            node = renamed(group, renames)
            origins = self._of._kept_origins(self._columns)
            return base._with(node, fresh_origins({**origins, **dict.fromkeys(named)}, "this agg"), site)
