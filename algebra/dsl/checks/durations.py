"""Durations as users write them, in ticks of a timeline."""

from __future__ import annotations

import datetime as dt
from typing import TypeAlias

from tidegate.algebra.diagnostics.shown import shown
from tidegate.algebra.dsl.expression import DurationOption, Expression, to_expression
from tidegate.algebra.dsl.literals import plain
from tidegate.algebra.errors import QueryError
from tidegate.algebra.terms import Lit
from tidegate.algebra.time import duration_ticks, whole_days
from tidegate.algebra.types import DURATION, INT64_MAX, DataType, Kind

#: A duration: text such as "5s", a `timedelta`, or ticks on an integer timeline; on one of dates days in any of these
#: ways.
Duration: TypeAlias = "DurationOption | int | None"


def check_duration(option: str, value: object) -> None:
    """`QueryError` TG104 or TG160 for what is no duration on any timeline; whether it fits is for the timeline to
    say.
    """
    given = plain(value)
    if isinstance(given, str):
        duration_ticks(given)
    elif isinstance(given, bool) or not isinstance(given, dt.timedelta | int | Expression | None):
        raise QueryError("TG160", f"{option}={shown(value)} is no duration", hint='write "5s", or a number of ticks')


def duration_in_ticks(value: Duration, type_: DataType, where: str) -> int:
    """A duration in ticks of a timeline of that type: a duration on one of timestamps, a whole number on others, or
    days of dates.
    """
    on_dates = type_.kind is Kind.DATE
    wanted = type_.distance
    number = plain(value)
    if isinstance(number, int) and abs(number) > INT64_MAX:
        if wanted == DURATION:
            raise _other_kind(where, value, wanted)
        raise QueryError(
            "TG160",
            f"{where}={shown(value)} is longer than instants lie apart",
            hint="write a number of ticks, or of days of dates, that is shorter",
        )
    given = to_expression(value, DURATION if on_dates and isinstance(value, str) else wanted)
    term = given._term
    if on_dates and isinstance(term, Lit) and isinstance(term.value, int) and given._type == DURATION:
        return whole_days(value, term.value)
    if not isinstance(term, Lit) or not isinstance(term.value, int) or given._type != wanted:
        raise _other_kind(where, value, wanted)
    return term.value


def _other_kind(where: str, value: object, wanted: DataType) -> QueryError:
    return QueryError(
        "TG160",
        f"{where} is {'a duration' if wanted == DURATION else 'a number of ticks'} here, not {shown(value)}",
        hint='write "5s"' if wanted == DURATION else "write a whole number, such as 5",
    )
