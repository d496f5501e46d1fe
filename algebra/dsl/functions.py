"""Free functions of the DSL: constants, durations, windows, conditionals."""

from __future__ import annotations

import datetime as dt

from tidegate.algebra.dsl.calls import called
from tidegate.algebra.dsl.expression import Expression, Operand, build, constant, to_expression
from tidegate.algebra.dsl.here import Here
from tidegate.algebra.dsl.literals import literal, plain, timestamp_literal
from tidegate.algebra.errors import QueryError
from tidegate.algebra.shown import shown
from tidegate.algebra.terms import Lit
from tidegate.algebra.time import DurationLike, duration_ticks
from tidegate.algebra.types import BIGINT, BOOLEAN, DURATION, NULL, TIMESTAMP


@called()
def lit(value: object) -> Expression:
    """A constant; `lit(None)` is NULL."""
    with Here():
        return constant(literal(value))


@called()
def duration(value: DurationLike) -> Expression:
    """A duration from text such as `1h 30m`, `90s`, `PT1H30M`, or from a `timedelta`."""
    with Here():
        value = plain(value)  # type: ignore[assignment]  # numpy's are tested for below
        if not isinstance(value, str | dt.timedelta):
            raise QueryError(
                "TG104",
                f"{shown(value)} is no duration",
                hint='write tg.duration("1h 30m"), or tg.seconds(5) for a number',
            )
        return constant(Lit(duration_ticks(value), DURATION))


@called()
def milliseconds(count: int | float) -> Expression:
    """A duration of that many milliseconds."""
    return _of_unit("milliseconds", count, dt.timedelta(milliseconds=1))


@called()
def seconds(count: int | float) -> Expression:
    """A duration of that many seconds."""
    return _of_unit("seconds", count, dt.timedelta(seconds=1))


@called()
def minutes(count: int | float) -> Expression:
    """A duration of that many minutes."""
    return _of_unit("minutes", count, dt.timedelta(minutes=1))


@called()
def hours(count: int | float) -> Expression:
    """A duration of that many hours."""
    return _of_unit("hours", count, dt.timedelta(hours=1))


@called()
def days(count: int | float) -> Expression:
    """A duration of that many days."""
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
    """An instant from ISO text or a datetime; without a zone it is UTC."""
    with Here():
        return constant(timestamp_literal(value))


@called()
def floor(value: Operand, unit: DurationLike | int | Expression) -> Expression:
    """The last multiple of `unit` at or before the instant; multiples count from the epoch, 1970-01-01 UTC."""
    return _rounded("floor", value, unit)


@called()
def ceil(value: Operand, unit: DurationLike | int | Expression) -> Expression:
    """The first multiple of `unit` at or after the instant: the end of its window `( ]`, as the papers count."""
    return _rounded("ceil", value, unit)


@called()
def tumbling(value: Operand, size: DurationLike | int | Expression) -> Expression:
    """The end of the window `[ )` of that size that contains the instant, as Spark counts: `floor(value, size) + size`."""
    with Here():
        instant = to_expression(value)
        return floor(instant, size) + _unit(instant, size)


def _rounded(op: str, value: object, unit: object) -> Expression:
    with Here():
        instant = to_expression(value)
        return build(op, instant, _unit(instant, unit))


def _unit(instant: Expression, unit: object) -> Expression:
    return to_expression(unit, DURATION if instant.type in (TIMESTAMP, DURATION) else BIGINT)


@called()
def when(condition: Expression, then: Operand, otherwise: Operand = None) -> Expression:
    """`then` where the condition is true, else `otherwise` (NULL if not given)."""
    with Here():
        like = next((part.type for part in (then, otherwise) if isinstance(part, Expression)), None)
        test = to_expression(condition)
        if test.type not in (BOOLEAN, NULL):
            raise QueryError(
                "TG102", f"a condition must be boolean, {test!r} is {test.type}", hint="compare it with something"
            )
        parts = [constant(literal(None)) if part is None else to_expression(part, like) for part in (then, otherwise)]
        return build("if", test, *parts)


@called()
def coalesce(value: Operand, *others: Operand) -> Expression:
    """The first of the values that is not NULL."""
    return build("coalesce", value, *others)


@called()
def concat(value: Operand, *others: Operand) -> Expression:
    """The strings one after the other; NULL if one of them is."""
    return build("concat", value, *others)
