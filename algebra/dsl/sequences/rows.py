"""The rows of a match, as the conditions and measures of a row pattern speak of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from tidegate.algebra.diagnostics.shown import nearest, shown
from tidegate.algebra.dsl.aggregates import AggregateExpression
from tidegate.algebra.dsl.checks.calls import called, checked_calls
from tidegate.algebra.dsl.checks.suggestions import AGGREGATES_OF_ROWS, matched_rows_hint
from tidegate.algebra.dsl.expression import Expression, MatchOrigin, Operand, ValueOfGroup, attribute_expression
from tidegate.algebra.dsl.grouping import aggregate_of
from tidegate.algebra.dsl.here import Here, unknown_name
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.navigation import (
    Classifier,
    MatchNumber,
    Navigation,
    RowOf,
    RowsAggregate,
    RowValue,
    attribute_of,
    navigation_text,
)
from tidegate.algebra.terms import Attr

if TYPE_CHECKING:
    from tidegate.algebra.dsl.relation import Relation


class Navigations:
    """What the conditions and measures of one pattern read, by name."""

    def __init__(self, of: Relation, variables: tuple[str, ...], subsets: Mapping[str, tuple[str, ...]]) -> None:
        self.of, self.variables, self.subsets = of, variables, subsets
        self.origin = MatchOrigin("this match")
        self.by_name: dict[str, Navigation] = {}
        self.parts: list[Expression] = []

    def resolved(self, variable: str) -> tuple[str, ...]:
        """The variables that a name stands for."""
        return self.subsets.get(variable, (variable,))

    def names_of(self, variables: tuple[str, ...]) -> tuple[str, ...]:
        """The variables as they are written: a subset by its own name."""
        return next(((name,) for name, of in self.subsets.items() if of == variables), variables)

    def read(self, navigation: Navigation) -> Expression:
        """The value of a navigation, which gets its text as its name; with a sign behind it where the relation has an
        attribute of this name, as the last row's `x` is written `x`.
        """
        name = navigation_text(navigation)
        while name in self.of.schema:
            name += "'"
        named = (
            replace(navigation, aggregate=replace(navigation.aggregate, name=name))
            if isinstance(navigation, RowsAggregate)
            else replace(navigation, name=name)
        )
        self.by_name[name] = named
        return attribute_expression(attribute_of(named, self.of.schema), self.origin)


@checked_calls
class MatchedRow(ValueOfGroup):
    """A row of a match, of which attributes are values: `m.A.price`.

    `m.A` is the last row with the variable `A` so far, `m.A.first()` the first one, `m.A.last(1)` the one before the
    last; `m.A.prev()` and `m.A.next()` are the rows before and after it in the partition. A value is NULL where there
    is no such row.

    Examples:
        >>> faster = {"B": lambda m: m.B.speed > m.A.speed}
        >>> up = cars.sequences("A B", by="car", define=faster, to=lambda m: m.B.speed)
        >>> show(up.select("to", "first", "last").where(up.first < 3))
        90.0, 1, 2
    """

    __slots__ = ("_final", "_navigations", "_row")

    def __init__(self, navigations: Navigations, row: RowOf, *, final: bool) -> None:
        self._navigations, self._row, self._final = navigations, row, final

    def __repr__(self) -> str:
        return navigation_text(RowValue("", Attr("*"), self._row, self._final))

    def _no_value(self) -> QueryError:
        variable = self._variable
        return QueryError(
            "TG110",
            f"{self!r} is a row of the match, and no value",
            hint=f"name an attribute: m.{variable}.x; how many rows there are is m.{variable}.agg(tg.count())",
        )

    @property
    def _variable(self) -> str:
        """What users write behind `m.` for the rows of which this is one."""
        return next(iter(self._navigations.names_of(self._row.variables)), "rows")

    def __getitem__(self, name: str) -> Expression:
        with Here():
            return self.value(self._navigations.of._attribute(name))

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Expression: ...

    else:

        def __getattr__(self, name: str) -> Expression:
            if name.startswith("_"):
                raise AttributeError(name)
            known = self._navigations.of.schema
            if name not in known:
                near = nearest(name, known, 3)
                hint = f"did you mean {' or '.join(near)}?" if near else f"attributes here: {', '.join(known)}"
                if name in AGGREGATES_OF_ROWS:
                    hint = matched_rows_hint(name, self._variable)
                raise unknown_name(f"rows of the match have no attribute {name!r}", hint)
            with Here():
                return self.value(self._navigations.of._attribute(name))

    @called()
    def value(self, value: Operand) -> Expression:
        """The value of an expression over the attributes of the row.

        Examples:
            >>> kmh = lambda m: m.A.value(cars.speed * 3.6)
            >>> show(cars.sequences("A", by="car", kmh=kmh).select("kmh").where(lambda r: r.first < 2))
            216.0
        """
        with Here():
            part = self._navigations.of._column(value)
            self._navigations.parts.append(part)
            return self._navigations.read(RowValue("", part._term, self._row, self._final))

    @called()
    def first(self, offset: int = 0) -> MatchedRow:
        """The first row with the variable, or the one that is `offset` of these after it."""
        return self._of("first", offset)

    @called()
    def last(self, offset: int = 0) -> MatchedRow:
        """The last row with the variable, or the one that is `offset` of these before it."""
        return self._of("last", offset)

    def _of(self, end: str, offset: int) -> MatchedRow:
        with Here():
            _check_number(end, offset)
            if self._row.step:
                raise QueryError(
                    "TG114",
                    f"{end} chooses a row of a variable, and {self!r} is a row beside one",
                    hint=f"choose first: m.A.{end}({offset or ''}).{'next' if self._row.step > 0 else 'prev'}()",
                )
            return self._with(RowOf(self._row.variables, "first" if end == "first" else "last", offset))

    @called()
    def prev(self, n: int = 1) -> MatchedRow:
        """The row that is `n` rows before this one in the partition."""
        return self._beside("prev", n, -1)

    @called()
    def next(self, n: int = 1) -> MatchedRow:
        """The row that is `n` rows after this one in the partition: a match waits for it."""
        return self._beside("next", n, 1)

    def _beside(self, name: str, n: int, sign: int) -> MatchedRow:
        with Here():
            _check_number(name, n)
            return self._with(replace(self._row, step=self._row.step + sign * n))

    def _with(self, row: RowOf) -> MatchedRow:
        return MatchedRow(self._navigations, row, final=self._final)

    @called()
    def agg(self, aggregate: AggregateExpression) -> Expression:
        """An aggregate of the rows with the variable.

        Examples:
            >>> rising = {"B": lambda m: m.B.speed > m.B.prev().speed}
            >>> up = cars.sequences("A B+", by="car", define=rising, mean=lambda m: m.B.agg(tg.avg(cars.speed)))
            >>> show(up.select("mean", "first", "last").where(up.first < 3))
            92.5, 1, 3
        """
        with Here():
            if not isinstance(aggregate, AggregateExpression):
                raise QueryError(
                    "TG115", f"{shown(aggregate)} is no aggregate", hint="write m.A.agg(tg.max(relation.x))"
                )
            if self._row != RowOf(self._row.variables):
                raise QueryError("TG115", f"{self!r} is one row, and aggregates are of all", hint="write m.A.agg(...)")
            its = aggregate_of(self._navigations.of, "", aggregate, self._navigations.parts)
            return self._navigations.read(RowsAggregate(its, self._row.variables, self._final))

    @property
    def classifier(self) -> Expression:
        """The variable that the row has; NULL for a row outside of the match."""
        with Here():
            return self._navigations.read(Classifier("", self._row, self._final))


def _check_number(name: str, n: object) -> None:
    if isinstance(n, bool) or not isinstance(n, int) or n < 0:
        raise QueryError("TG114", f"{name} counts rows from 0 on, not {shown(n)}", hint=f"write {name}(1)")


@checked_calls
class MatchedRows:
    """The match that a condition or a measure speaks of: `m.A` is the last row so far with the variable `A`.

    `m.rows` is the last row so far, whatever its variable; `m.final.A` the last one of the whole match.

    Examples:
        >>> slower = {"B": lambda m: m.B.speed < m.A.speed}
        >>> slow = cars.sequences("A B", by="car", define=slower, to=lambda m: m.B.speed)
        >>> show(slow.select("to", "first", "last"))
        85.0, 3, 4
        50.0, 5, 6
    """

    __slots__ = ("_final", "_navigations")

    def __init__(self, navigations: Navigations, *, final: bool = False) -> None:
        self._navigations, self._final = navigations, final

    def __repr__(self) -> str:
        return f"a match of {', '.join(self._navigations.variables)}"

    def __getitem__(self, variable: str) -> MatchedRow:
        with Here():
            if variable not in self._navigations.variables:
                raise QueryError("TG101", f"the pattern has no variable {shown(variable)}", hint=self._known(variable))
            return MatchedRow(self._navigations, RowOf(self._navigations.resolved(variable)), final=self._final)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> MatchedRow: ...

    else:

        def __getattr__(self, name: str) -> MatchedRow:
            if name.startswith("_"):
                raise AttributeError(name)
            if name not in self._navigations.variables:
                raise unknown_name(f"the pattern has no variable {name!r}", self._known(name))
            return MatchedRow(self._navigations, RowOf(self._navigations.resolved(name)), final=self._final)

    def _known(self, name: object) -> str:
        near = nearest(str(name), self._navigations.variables, 3)
        return f"did you mean {' or '.join(near)}?" if near else f"variables: {', '.join(self._navigations.variables)}"

    @property
    def rows(self) -> MatchedRow:
        """The last row of the match so far."""
        return MatchedRow(self._navigations, RowOf(), final=self._final)

    @property
    def number(self) -> Expression:
        """The number of the match in its partition, from 1 on."""
        with Here():
            return self._navigations.read(MatchNumber(""))

    @property
    def final(self) -> MatchedRows:
        """The same of the whole match, where rows of a match are reported one by one."""
        return MatchedRows(self._navigations, final=True)
