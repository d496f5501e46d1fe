"""Aggregates of a group, as users write them inside `agg(...)`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, NoReturn, overload

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called, checked_calls, refuse_texts
from tidegate.algebra.dsl.checks.suggestions import aggregate_hint, matched_rows_hint, row_value_hint
from tidegate.algebra.dsl.expression import (
    Expression,
    MatchOrigin,
    Operand,
    ValueOfGroup,
    build,
    constant,
    to_expression,
)
from tidegate.algebra.dsl.here import Here, unknown_name
from tidegate.algebra.dsl.literals import whole_text
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.functions.aggregates import Aggregate, Function, aggregate_type
from tidegate.algebra.terms import Lit
from tidegate.algebra.types import BOOLEAN, NULL

_NO_ARGUMENT = ("TG132", "name what it aggregates: tg.sum(r.x); only count() works without, and counts rows")
_NO_CONDITION = ("TG132", "name the condition: tg.count_if(r.x > 5)")
#: The variable in `F.price` or `FIRST(F.price)`.
_VARIABLE: Final = re.compile(r"\w+(?=\.)")
_NO_ORDER = ("TG132", "name what the rows of a group are ordered by: by=r.time")


@checked_calls
class AggregateExpression(ValueOfGroup):
    """A value computed from the rows of a group; it gets its name in `agg(name=...)`.

    In `tg.situation(..., name=...)` it is computed from the events of a situation. NULLs are skipped. `QueryError`
    TG115 where it is used as the value of a row.

    Examples:
        >>> largest = tg.max(orders.amount)
        >>> largest
        max(amount)
        >>> show(daily.agg(largest=largest))
        2026-03-02 00:00:00+00:00, 30.0
        2026-03-03 00:00:00+00:00, 8.0
    """

    __slots__ = ("_argument", "_by", "_function", "_parameter", "_site")

    def __init__(
        self,
        function: Function,
        argument: Expression | None,
        by: Expression | None = None,
        site: Site | None = None,
        parameter: float | str | None = None,
    ) -> None:
        self._function, self._argument, self._by, self._site = function, argument, by, site
        self._parameter = parameter

    def __repr__(self) -> str:
        inside = "" if self._argument is None else repr(self._argument)
        inside += "" if self._parameter is None else f", {self._parameter!r}"
        return f"{self._function.value}({inside}" + ("" if self._by is None else f", by={self._by!r}") + ")"

    if not TYPE_CHECKING:  # type checkers shall refuse unknown methods themselves

        def __getattr__(self, name: str) -> NoReturn:
            if name.startswith("_"):
                raise AttributeError(name)
            raise unknown_name(f"no method of aggregates is called {name!r}: {self!r}", aggregate_hint(name))

    def _no_value(self) -> QueryError:
        function, variable = self._function.value, self._variable()
        return QueryError(
            "TG115",
            f"{self!r} is an aggregate: it has no value in a row",
            hint=row_value_hint(function) if variable is None else matched_rows_hint(function, variable),
        )

    def _variable(self) -> str | None:
        """The variable of a row pattern that it reads a row of, or `rows`; None: it reads rows of relations."""
        for part in (self._argument, self._by):
            for name, use in () if part is None else part._reads.items():
                if isinstance(use.origin, MatchOrigin):
                    named = _VARIABLE.search(name)
                    return "rows" if named is None else named[0]
        return None


def _aggregate(
    function: Function,
    argument: object | None,
    by: object | None = None,
    filter: Expression | None = None,
    parameter: float | str | None = None,
) -> AggregateExpression:
    """With `filter` the argument is NULL in other rows, which every aggregate skips."""
    with Here() as site:
        for text in (argument, by):
            if isinstance(text, str):
                raise QueryError(
                    "TG115",
                    f"{function.value} takes an attribute of a relation, not the text {text!r}",
                    hint=f"write relation.{text}" if text.isidentifier() else "write relation.name",
                )
        of = None if argument is None else to_expression(argument)
        if filter is not None:
            of = build("if", _condition(filter), to_expression(True) if of is None else of, constant(Lit(None, NULL)))
        order = None if by is None else to_expression(by)
        described = Aggregate("", function, None if of is None else of._term, None if order is None else order._term)
        aggregate_type(described, None if of is None else of.type, None if order is None else order.type)
        return AggregateExpression(function, of, order, site, parameter)


def _condition(given: object) -> Expression:
    test = to_expression(given)
    if test.type not in (BOOLEAN, NULL):
        raise QueryError(
            "TG102", f"a condition must be boolean, {test!r} is {test.type}", hint="compare it with something"
        )
    return test


@called()
def count(argument: Expression | None = None, *, filter: Expression | None = None) -> AggregateExpression:
    """Number of rows, or of rows in which the argument is not NULL.

    With `filter`, which every aggregate takes, only rows count for which the condition is true.

    Examples:
        >>> show(daily.agg(orders=tg.count(), vouchers=tg.count(orders.voucher)))
        2026-03-02 00:00:00+00:00, 2, 1
        2026-03-03 00:00:00+00:00, 1, 1
        >>> of_ada = tg.sum(orders.amount, filter=orders.customer == "Ada")
        >>> show(daily.agg(large=tg.count(filter=orders.amount > 10), of_ada=of_ada))
        2026-03-02 00:00:00+00:00, 2, 12.5
        2026-03-03 00:00:00+00:00, 0, 8.0
    """
    return _aggregate(Function.COUNT, argument, filter=filter)


@called(argument=_NO_ARGUMENT)
def count_distinct(argument: Expression, *, filter: Expression | None = None) -> AggregateExpression:
    """Number of different values, NULL not counted.

    Examples:
        >>> show(daily.agg(customers=tg.count_distinct(orders.customer)))
        2026-03-02 00:00:00+00:00, 2
        2026-03-03 00:00:00+00:00, 1
    """
    return _aggregate(Function.COUNT_DISTINCT, argument, filter=filter)


@called(argument=_NO_ARGUMENT)
def sum(argument: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """Sum; one of integers that does not fit its type is NULL and reported, or fails the batch, as `on_error` says.

    It is NULL where there is no value. `QueryError` TG102 for what is no number and no duration.

    Examples:
        >>> show(daily.agg(amount=tg.sum(orders.amount)))
        2026-03-02 00:00:00+00:00, 42.5
        2026-03-03 00:00:00+00:00, 8.0
    """
    return _aggregate(Function.SUM, argument, filter=filter)


@called(argument=_NO_ARGUMENT)
def try_sum(argument: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """Sum; NULL where one of integers does not fit its type.

    Examples:
        >>> show(daily.agg(sum=tg.try_sum(orders.pieces + (2**63 - 6))))
        2026-03-02 00:00:00+00:00, None
        2026-03-03 00:00:00+00:00, 9223372036854775802
    """
    return _aggregate(Function.TRY_SUM, argument, filter=filter)


@called(argument=_NO_ARGUMENT)
def avg(argument: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """Mean, as a double; NULL where there is no value.

    Examples:
        >>> show(daily.agg(mean=tg.avg(orders.amount)))
        2026-03-02 00:00:00+00:00, 21.25
        2026-03-03 00:00:00+00:00, 8.0
    """
    return _aggregate(Function.AVG, argument, filter=filter)


@called(argument=_NO_ARGUMENT, by=_NO_ORDER)
def first(argument: Operand, *, by: Operand, filter: Expression | None = None) -> AggregateExpression:
    """The value that is not NULL in the row in which `by` is least; among ties the smallest value.

    As every aggregate, it skips rows in which the argument is NULL, and those in which `by` is. In `derive`, by the
    time of the events, it goes by their order, which the tie-break is a part of.

    Examples:
        >>> show(daily.agg(customer=tg.first(orders.customer, by=orders.ordered)))
        2026-03-02 00:00:00+00:00, Ada
        2026-03-03 00:00:00+00:00, Ada
    """
    return _aggregate(Function.FIRST, argument, by, filter)


@called(argument=_NO_ARGUMENT, by=_NO_ORDER)
def last(argument: Operand, *, by: Operand, filter: Expression | None = None) -> AggregateExpression:
    """The value that is not NULL in the row in which `by` is greatest; among ties the smallest value.

    As every aggregate, it skips rows in which the argument is NULL, and those in which `by` is. In `derive`, by the
    time of the events, it goes by their order, which the tie-break is a part of.

    Examples:
        >>> show(daily.agg(customer=tg.last(orders.customer, by=orders.ordered)))
        2026-03-02 00:00:00+00:00, Bob
        2026-03-03 00:00:00+00:00, Ada
    """
    return _aggregate(Function.LAST, argument, by, filter)


def _no_filter(filter: Expression | None) -> None:
    if filter is not None:
        raise QueryError("TG132", "only aggregates of one argument take filter=", hint="in a row, write tg.when(...)")


@overload
def min(argument: Operand, /, *, filter: Expression | None = None) -> AggregateExpression: ...
@overload
def min(argument: Operand, second: Operand, /, *others: Operand) -> Expression: ...
@called()
def min(*arguments: Operand, filter: Expression | None = None) -> Expression | AggregateExpression:
    """Of one argument, the least value in a group; of several, the least of them in the row (the earliest instant).

    In a group NULLs are skipped; in a row the result is NULL if one of the values is.

    Examples:
        >>> show(daily.agg(least=tg.min(orders.amount)))
        2026-03-02 00:00:00+00:00, 12.5
        2026-03-03 00:00:00+00:00, 8.0
        >>> show(tg.min(orders.amount, 10))
        10.0, 10.0, 8.0
    """
    with Here():
        if len(arguments) > 1:
            _no_filter(filter)
            refuse_texts("min", *arguments)
            return build("least", *arguments)
        return _aggregate(Function.MIN, arguments[0] if arguments else None, filter=filter)


@overload
def max(argument: Operand, /, *, filter: Expression | None = None) -> AggregateExpression: ...
@overload
def max(argument: Operand, second: Operand, /, *others: Operand) -> Expression: ...
@called()
def max(*arguments: Operand, filter: Expression | None = None) -> Expression | AggregateExpression:
    """Of one argument, the greatest value in a group; of several, the greatest of them in the row (the latest instant).

    In a group NULLs are skipped; in a row the result is NULL if one of the values is.

    Examples:
        >>> show(daily.agg(most=tg.max(orders.amount)))
        2026-03-02 00:00:00+00:00, 30.0
        2026-03-03 00:00:00+00:00, 8.0
        >>> show(tg.max(orders.amount, 10))
        12.5, 30.0, 10.0
    """
    with Here():
        if len(arguments) > 1:
            _no_filter(filter)
            refuse_texts("max", *arguments)
            return build("greatest", *arguments)
        return _aggregate(Function.MAX, arguments[0] if arguments else None, filter=filter)


@called(condition=_NO_CONDITION)
def count_if(condition: Expression, *, filter: Expression | None = None) -> AggregateExpression:
    """Number of rows for which a condition is true; as `tg.count(filter=condition)`.

    Examples:
        >>> show(daily.agg(large=tg.count_if(orders.amount > 10)))
        2026-03-02 00:00:00+00:00, 2
        2026-03-03 00:00:00+00:00, 0
    """
    with Here():
        test = _condition(condition)
        return _aggregate(Function.COUNT, None, filter=test if filter is None else test & _condition(filter))


@called(condition=_NO_CONDITION)
def bool_and(condition: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """Whether a condition is true of all rows in which it is not NULL; NULL where there are none. As `tg.min` of it.

    Examples:
        >>> show(daily.agg(all_large=tg.bool_and(orders.amount > 10)))
        2026-03-02 00:00:00+00:00, True
        2026-03-03 00:00:00+00:00, False
    """
    return _of_condition(Function.MIN, condition, filter)


@called(condition=_NO_CONDITION)
def bool_or(condition: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """Whether a condition is true of a row; NULL where it is NULL in all. As `tg.max` of it.

    Examples:
        >>> show(daily.agg(any_large=tg.bool_or(orders.amount > 20)))
        2026-03-02 00:00:00+00:00, True
        2026-03-03 00:00:00+00:00, False
    """
    return _of_condition(Function.MAX, condition, filter)


def _of_condition(function: Function, condition: object, filter: Expression | None) -> AggregateExpression:
    with Here():
        return _aggregate(function, _condition(condition), filter=filter)


@called(argument=_NO_ARGUMENT, by=_NO_ORDER)
def arg_min(argument: Operand, by: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """The value in the row in which another is least; among ties the smallest value. As `tg.first(argument, by=by)`.

    Examples:
        >>> show(daily.agg(customer=tg.arg_min(orders.customer, orders.amount)))
        2026-03-02 00:00:00+00:00, Ada
        2026-03-03 00:00:00+00:00, Ada
    """
    return _aggregate(Function.FIRST, argument, by, filter)


@called(argument=_NO_ARGUMENT, by=_NO_ORDER)
def arg_max(argument: Operand, by: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """The value in the row in which another is greatest; among ties the smallest value. As `tg.last(argument, by=by)`.

    Examples:
        >>> show(daily.agg(customer=tg.arg_max(orders.customer, orders.amount)))
        2026-03-02 00:00:00+00:00, Bob
        2026-03-03 00:00:00+00:00, Ada
    """
    return _aggregate(Function.LAST, argument, by, filter)


@called(argument=_NO_ARGUMENT)
def any_value(argument: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """A value of the group that is not NULL: always the smallest, so that results do not depend on the order of rows.

    Examples:
        >>> show(daily.agg(customer=tg.any_value(orders.customer)))
        2026-03-02 00:00:00+00:00, Ada
        2026-03-03 00:00:00+00:00, Ada
    """
    return _aggregate(Function.MIN, argument, filter=filter)


@called(argument=_NO_ARGUMENT)
def variance(argument: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """Variance of a sample, as a double: exact but for the last rounding. NULL where there are fewer than two values.

    Examples:
        >>> show(daily.agg(variance=tg.variance(orders.pieces)))
        2026-03-02 00:00:00+00:00, 4.5
        2026-03-03 00:00:00+00:00, None
    """
    return _aggregate(Function.VARIANCE, argument, filter=filter)


@called(argument=_NO_ARGUMENT)
def stddev(argument: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """Standard deviation of a sample, as a double: the square root of the variance.

    Examples:
        >>> show(daily.agg(deviation=tg.stddev(orders.pieces)))
        2026-03-02 00:00:00+00:00, 2.121...
        2026-03-03 00:00:00+00:00, None
    """
    return _aggregate(Function.STDDEV, argument, filter=filter)


@called(argument=_NO_ARGUMENT)
def median(argument: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """The value in the middle, as a double; the mean of the two in the middle where their number is even.

    Examples:
        >>> show(daily.agg(median=tg.median(orders.amount)))
        2026-03-02 00:00:00+00:00, 21.25
        2026-03-03 00:00:00+00:00, 8.0
    """
    return _aggregate(Function.MEDIAN, argument, filter=filter)


@called(argument=_NO_ARGUMENT, share=("TG132", "say which share of the values is below it: tg.quantile(r.x, 0.9)"))
def quantile(argument: Operand, share: float, *, filter: Expression | None = None) -> AggregateExpression:
    """The value that a constant share of the values, from 0 to 1, is below, as a double; in proportion between two
    values.

    Examples:
        >>> show(daily.agg(p90=tg.quantile(orders.amount, 0.9)))
        2026-03-02 00:00:00+00:00, 28.25
        2026-03-03 00:00:00+00:00, 8.0
    """
    with Here():
        return _aggregate(Function.QUANTILE, argument, filter=filter, parameter=_share("quantile", share))


def _share(function: str, given: object) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 <= given <= 1:
        raise QueryError(
            "TG132", f"{shown(given)} is no share of the values", hint=f"it is from 0 to 1: tg.{function}(r.x, 0.9)"
        )
    return float(given)


@called(argument=_NO_ARGUMENT)
def approx_distinct(argument: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """About how many different values there are, NULL not counted: with an error of 1.6 % in two of three cases.

    What is kept of a group is a sketch of at most 4,096 places, however many values there are. Two sketches merge, so
    windows and groups of streams keep no values. The same values give the same number, in whatever order and batches
    they come.

    Examples:
        >>> show(daily.agg(customers=tg.approx_distinct(orders.customer)))
        2026-03-02 00:00:00+00:00, 2
        2026-03-03 00:00:00+00:00, 1
    """
    return _aggregate(Function.APPROX_DISTINCT, argument, filter=filter)


@called(
    argument=_NO_ARGUMENT, share=("TG132", "say which share of the values is below it: tg.approx_quantile(r.x, 0.9)")
)
def approx_quantile(argument: Operand, share: float, *, filter: Expression | None = None) -> AggregateExpression:
    """The value that a constant share of the values, from 0 to 1, is below, within 0.8 % of one of them, as a double.

    What is kept of a group is how many values lie in each 64th part of a power of two. Two of these merge, so windows
    and groups of streams keep no values. The same values give the same number, in whatever order and batches they come.

    Examples:
        >>> show(daily.agg(p90=tg.approx_quantile(orders.amount, 0.9)))
        2026-03-02 00:00:00+00:00, 12.5625
        2026-03-03 00:00:00+00:00, 8.0625
    """
    with Here():
        return _aggregate(Function.APPROX_QUANTILE, argument, filter=filter, parameter=_share("approx_quantile", share))


@called(argument=_NO_ARGUMENT)
def mode(argument: Operand, *, filter: Expression | None = None) -> AggregateExpression:
    """The most frequent value, of several the smallest.

    Examples:
        >>> show(daily.agg(mode=tg.mode(orders.customer)))
        2026-03-02 00:00:00+00:00, Ada
        2026-03-03 00:00:00+00:00, Ada
    """
    return _aggregate(Function.MODE, argument, filter=filter)


@called(argument=_NO_ARGUMENT, separator=("TG132", 'say what stands between: tg.string_agg(r.x, ", ", by=r.time)'))
def string_agg(
    argument: Operand, separator: str, *, by: Operand = None, filter: Expression | None = None
) -> AggregateExpression:
    """The strings of a group with a constant separator between them, in the order of `by`, or their own.

    Of equal orders the smaller string comes first. Rows in which `by` is NULL are skipped.

    Examples:
        >>> show(daily.agg(customers=tg.string_agg(orders.customer, "+", by=-orders.amount)))
        2026-03-02 00:00:00+00:00, Bob+Ada
        2026-03-03 00:00:00+00:00, Ada
    """
    with Here():
        given: object = separator
        if not isinstance(given, str):
            raise QueryError(
                "TG132", f"{shown(separator)} is no separator", hint='it is text: tg.string_agg(r.x, ", ", by=r.time)'
            )
        return _aggregate(Function.STRING_AGG, argument, argument if by is None else by, filter, whole_text(separator))
