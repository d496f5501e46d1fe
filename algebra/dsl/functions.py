"""Free functions of the DSL: constants, durations, windows, conditionals."""

from __future__ import annotations

import datetime as dt
from typing import Final

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.checks.calls import called, refuse_texts
from tidegate.algebra.dsl.expression import (
    DurationOption,
    Expression,
    Operand,
    build,
    constant,
    duration_given,
    to_expression,
)
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.literals import literal, plain, timestamp_literal
from tidegate.algebra.errors import QueryError
from tidegate.algebra.terms import Lit
from tidegate.algebra.time import DurationLike, duration_ticks
from tidegate.algebra.types import BOOLEAN, DATE, DURATION, NULL, STRING, TIMESTAMP, DataType, Kind

#: What `tumbling` lacks where it stands in `windows`, with its size alone.
_NO_SIZE: Final = (
    'write tg.tumbling(r.time, "10s"), a key of group_by; in windows(...) it is tg.hopping("10s", every="10s")'
)


@called()
def lit(value: object) -> Expression:
    """A constant; `lit(None)` is NULL.

    It is needed only where no attribute is beside the value: `1 - orders.amount` makes a constant by itself.
    `QueryError` TG110 for a Python value that a query cannot hold.

    Examples:
        >>> tg.lit("Ada"), tg.lit(None)
        ('Ada', NULL)
        >>> show(tg.lit(12) - orders.pieces)
        7, 10, 12
    """
    with Here():
        return constant(literal(value))


@called()
def duration(value: DurationOption) -> Expression:
    """A duration from text such as `1h 30m`, `90s`, `PT1H30M`, or from a `timedelta`.

    Units are us, ms, s, m, h, d and w, or their names. `QueryError` TG104 for what is no duration, is finer than a
    microsecond, or longer than some 570 years.

    Examples:
        >>> tg.duration("PT1H30M")
        1h 30m
        >>> show(orders.ordered - tg.duration("90 minutes"))
        2026-03-02 10:30:00+00:00, 2026-03-02 10:37:00+00:00, 2026-03-03 08:10:30+00:00
    """
    with Here():
        value = duration_given(value)
        if not isinstance(value, str | dt.timedelta):
            raise QueryError(
                "TG104",
                f"{shown(value)} is no duration",
                hint='write tg.duration("1h 30m"), or tg.seconds(5) for a number',
            )
        return constant(Lit(duration_ticks(value), DURATION))


@called()
def milliseconds(count: int | float) -> Expression:
    """A duration of that many milliseconds.

    `QueryError` TG104 for what is no number.

    Examples:
        >>> tg.milliseconds(1500)
        1s 500ms
    """
    return _of_unit("milliseconds", count, dt.timedelta(milliseconds=1))


@called()
def seconds(count: int | float) -> Expression:
    """A duration of that many seconds.

    `QueryError` TG104 for what is no number.

    Examples:
        >>> p.paid <= o.ordered + tg.seconds(90)
        p.paid <= o.ordered + 1m 30s
    """
    return _of_unit("seconds", count, dt.timedelta(seconds=1))


@called()
def minutes(count: int | float) -> Expression:
    """A duration of that many minutes.

    `QueryError` TG104 for what is no number.

    Examples:
        >>> p.paid <= o.ordered + tg.minutes(30)
        p.paid <= o.ordered + 30m
    """
    return _of_unit("minutes", count, dt.timedelta(minutes=1))


@called()
def hours(count: int | float) -> Expression:
    """A duration of that many hours.

    `QueryError` TG104 for what is no number.

    Examples:
        >>> p.paid <= o.ordered + tg.hours(1.5)
        p.paid <= o.ordered + 1h 30m
    """
    return _of_unit("hours", count, dt.timedelta(hours=1))


@called()
def days(count: int | float) -> Expression:
    """A duration of that many days of 24 hours.

    `QueryError` TG104 for what is no number.

    Examples:
        >>> show(orders.ordered + tg.days(14))
        2026-03-16 12:00:00+00:00, 2026-03-16 12:07:00+00:00, 2026-03-17 09:40:30+00:00
    """
    return _of_unit("days", count, dt.timedelta(days=1))


def _of_unit(name: str, count: object, unit: dt.timedelta) -> Expression:
    with Here():
        count = plain(count)
        if not isinstance(count, int | float) or isinstance(count, bool) or count != count:
            raise QueryError(
                "TG104",
                f"tg.{name} takes a number, not {shown(count)}",
                hint=f"multiply the value: x * tg.{name}(1)"
                if isinstance(count, Expression)
                else f'write tg.{name}(5); text is read by tg.duration("5m")',
            )
        try:
            return constant(Lit(duration_ticks(count * unit), DURATION))
        except OverflowError:
            raise QueryError(
                "TG104", f"{shown(count)} × {unit} is too long a duration", hint="use a shorter duration"
            ) from None


@called()
def timestamp(value: dt.datetime | str) -> Expression:
    """An instant from ISO text or a datetime; without a zone it is UTC.

    Text beside a timestamp becomes one by itself: `orders.ordered > "2026-03-02T12:00Z"`.

    Examples:
        >>> tg.timestamp("2026-03-02T13:00+01:00")
        2026-03-02T12:00:00Z
        >>> show(orders.ordered - tg.timestamp("2026-03-02") < tg.hours(24))
        True, True, False
    """
    with Here():
        return constant(timestamp_literal(value))


@called()
def floor(value: Operand, unit: DurationLike | int | Expression | None = None) -> Expression:
    """The last multiple of `unit` at or before the instant; multiples count from the epoch, 1970-01-01 UTC.

    The unit is a duration for timestamps, one of whole days or their number for dates, a whole number for integers.
    Without one the value is a number, and rounded down to a whole one.

    Examples:
        >>> show(tg.floor(orders.ordered, "15m"))
        2026-03-02 12:00:00+00:00, 2026-03-02 12:00:00+00:00, 2026-03-03 09:30:00+00:00
        >>> show(tg.floor(-orders.amount))
        -13.0, -30.0, -8.0
    """
    return _rounded("floor", value, unit)


@called()
def ceil(value: Operand, unit: DurationLike | int | Expression | None = None) -> Expression:
    """The first multiple of `unit` at or after the instant: the end of its window `( ]`, as the papers count.

    The unit is a duration for timestamps, one of whole days or their number for dates, a whole number for integers.
    Without one the value is a number, and rounded up to a whole one.

    Examples:
        >>> show(tg.ceil(orders.ordered, "15m"))
        2026-03-02 12:00:00+00:00, 2026-03-02 12:15:00+00:00, 2026-03-03 09:45:00+00:00
        >>> show(tg.ceil(orders.amount))
        13.0, 30.0, 8.0
    """
    return _rounded("ceil", value, unit)


@called(size=("TG114", _NO_SIZE))
def tumbling(value: Operand, size: DurationLike | int | Expression) -> Expression:
    """The end of the window `[ )` of that size that contains the instant, as Spark counts: `floor(value, size) + size`.

    The size is a duration for timestamps, one of whole days or their number for dates, a whole number for integers.

    Examples:
        >>> show(tg.tumbling(orders.ordered, "15m"))
        2026-03-02 12:15:00+00:00, 2026-03-02 12:15:00+00:00, 2026-03-03 09:45:00+00:00
        >>> show(orders.group_by(end=tg.tumbling(orders.ordered, "15m")).agg(orders=tg.count()))
        2026-03-02 12:15:00+00:00, 2
        2026-03-03 09:45:00+00:00, 1
    """
    with Here():
        return floor(_rounded_by(_attribute(value, "tumbling"), "tumbling"), size) + size


def _rounded(op: str, value: object, unit: object) -> Expression:
    with Here():
        given = _attribute(value, op)
        return build(op, given) if unit is None else build(op, _rounded_by(given, op), unit, shift=True)


#: What is counted in units of a size: instants, their differences and whole numbers.
_COUNTED = (Kind.TIMESTAMP, Kind.DATE, Kind.DURATION, Kind.BIGINT, Kind.NULL)


def _rounded_by(value: Expression, what: str) -> Expression:
    if value.type.kind in _COUNTED:
        return value
    raise QueryError(
        "TG102",
        f"{what} takes an instant, a duration or a bigint, not {value!r}, which is {value.type}",
        hint="give an attribute that holds instants: r.time",
    )


def _attribute(value: object, what: str) -> Expression:
    """What is rounded; a bare text is meant as the name of an attribute, which a window does not know."""
    if isinstance(value, str):
        raise QueryError(
            "TG102",
            f"{what} takes an instant, not the text {shown(value)}",
            hint="give the attribute of a relation: r.time",
        )
    return to_expression(value)


@called()
def when(condition: Expression, then: Operand, *more: Operand | Expression, otherwise: Operand = None) -> Expression:
    """`then` where the condition is true, else `otherwise` (NULL if not given).

    More conditions, each with its value, may follow: the first that is true decides. A last value alone is `otherwise`.
    Only the value that is taken is computed. `QueryError` TG102 for what is no condition, or values of two types.

    Examples:
        >>> show(tg.when(orders.amount > 10, "large", "small"))
        large, large, small
        >>> show(tg.when(orders.amount > 20, "large", orders.amount > 10, "middle", otherwise="small"))
        middle, large, small
    """
    with Here():
        given: tuple[object, ...] = (condition, then, *more)
        if len(given) % 2 and otherwise is not None:
            raise QueryError(
                "TG114", "tg.when has two values for where no condition is true", hint="leave one of them out"
            )
        last = given[-1] if len(given) % 2 else otherwise
        pairs = list(zip(given[0::2], given[1::2], strict=False))
        values = [*(value for _, value in pairs), last]
        like = next((value.type for value in values if isinstance(value, Expression) and value.type != NULL), None)
        result = _value_or_null(last, like)
        for asked, value in reversed(pairs):
            test = to_expression(asked)
            if test.type not in (BOOLEAN, NULL):
                raise QueryError(
                    "TG102", f"a condition must be boolean, {test!r} is {test.type}", hint="compare it with something"
                )
            result = build("if", test, _value_or_null(value, like), result)
        return result


def _value_or_null(value: object, like: DataType | None) -> Expression:
    return constant(literal(None)) if value is None else to_expression(value, like)


@called()
def coalesce(value: Operand, *others: Operand) -> Expression:
    """The first of the values that is not NULL; later ones are not computed.

    Examples:
        >>> show(tg.coalesce(orders.voucher.trim(), "none"))
        10, none, Ten off
    """
    with Here():
        refuse_texts("coalesce", value, *others)
        return build("coalesce", value, *others)


@called()
def concat(value: Operand, *others: Operand) -> Expression:
    """The strings one after the other; NULL if one of them is.

    Examples:
        >>> show(tg.concat("Dear ", orders.customer, "!"))
        Dear Ada!, Dear Bob!, Dear Ada!
    """
    with Here():
        refuse_texts("concat", value, *others)
        return build("concat", value, *others, like=STRING)


@called()
def concat_ws(separator: str, value: Operand, *others: Operand) -> Expression:
    """The strings one after the other with a constant separator between them; NULLs are left out.

    Examples:
        >>> show(tg.concat_ws(", ", orders.customer, orders.voucher.trim()))
        Ada, 10, Bob, Ada, Ten off
    """
    with Here():
        refuse_texts("concat_ws", value, *others)
        return build("concat_ws", separator, value, *others, like=STRING)


@called()
def days_between(start: Operand, end: Operand) -> Expression:
    """How many days a date, or the day of a timestamp (in UTC), is after another; negative where it is before.

    Examples:
        >>> show(tg.days_between(tg.timestamp("2026-03-01T23:00Z"), orders.ordered))
        1, 1, 2
    """
    with Here():
        days = [part.to_date() if part.type == TIMESTAMP else part for part in map(to_expression, (start, end))]
        for part in days:
            if part.type not in (DATE, NULL):
                raise QueryError(
                    "TG102", f"days_between takes two timestamps or dates, {part!r} is {part.type}", hint="cast it"
                )
        return build("sub", days[1], days[0], shift=True)
