"""Casts in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.algebra.functions.casts import DATE_TEXT, INSTANT_TEXT, INTEGER_TEXT, NUMBER_TEXT
from tidegate.algebra.typed.kernels import DAY, FIRST_DAY, LAST_DAY
from tidegate.runtime.engines.spark.eval.functions.forms import divided, floor_div, java, long, surely
from tidegate.runtime.engines.spark.eval.functions.instants import date, year
from tidegate.runtime.engines.spark.eval.functions.shared import by_polars
from tidegate.runtime.eval.functions.frame import Form


def _in_int64(a: Column) -> Column:
    return (a >= -(2.0**63)) & (a < 2.0**63)


def _no_timestamp(a: Column) -> Column:
    hour, minute, second, _ = _clock(a)
    in_range = (hour < 24) & (minute < 60) & (second < 60)
    return ~surely(_Civil.read(a, INSTANT_TEXT).valid() & in_range)


def _timestamp(a: Column) -> Column:
    hour, minute, second, micros = _clock(a)
    day = _Civil.read(a, INSTANT_TEXT).day_number()
    return day * long(DAY) + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros


def _instant_text(a: Column) -> Column:
    rest = F.pmod(a, long(DAY))
    units = (
        (DAY, 3_600_000_000, 2),
        (3_600_000_000, 60_000_000, 2),
        (60_000_000, 1_000_000, 2),
        (1_000_000, 1, 6),
    )
    clock = [_digits(divided(rest % long(w), long(u)), width) for w, u, width in units]
    marks = [F.lit(mark) for mark in "T::.Z"]
    timed = [part for pair in zip(marks, clock, strict=False) for part in pair]
    return F.concat(_date_text(floor_div(a, DAY)), *timed, marks[-1])


def _digits(value: Column, width: int) -> Column:
    return F.lpad(value.cast("string"), width, "0")


def _date_text(day: Column) -> Column:
    in_era, dash = date(day), F.lit("-")
    parts = _digits(year(day), 4), _digits(F.month(in_era), 2), _digits(F.dayofmonth(in_era), 2)
    return F.concat(parts[0], dash, parts[1], dash, parts[2])


def _group(text: Column, pattern: str, group: int) -> Column:
    return F.regexp_extract(text, java(pattern), group).try_cast("bigint")


def _clock(text: Column) -> tuple[Column, Column, Column, Column]:
    """Hour, minute, second and microsecond of an instant's text; what may be left out is 0."""
    hour, minute, second = (_group(text, INSTANT_TEXT, group) for group in (4, 5, 6))
    fraction = F.rpad(F.regexp_extract(text, java(INSTANT_TEXT), 7), 6, "0").try_cast("bigint")
    return hour, minute, F.coalesce(second, long(0)), fraction


@dataclass(frozen=True, slots=True)
class _Civil:
    """Year, month and day as read from text; NULL where the text has another form."""

    year: Column
    month: Column
    day: Column

    @classmethod
    def read(cls, text: Column, pattern: str) -> _Civil:
        return cls(*(_group(text, pattern, group) for group in (1, 2, 3)))

    def valid(self) -> Column:
        leap = (self.year % 4 == 0) & ((self.year % 100 != 0) | (self.year % 400 == 0))
        february = F.when(leap, 29).otherwise(28)
        days = F.when(self.month == 2, february).when(self.month.isin(4, 6, 9, 11), 30).otherwise(31)
        return (self.year >= 1) & self.month.between(1, 12) & (self.day >= 1) & (self.day <= days)

    def day_number(self) -> Column:
        """Days since the epoch of a valid date; years begin in March, so that leap days end them."""
        late = (self.month > 2).cast("bigint")
        year, month = self.year + late - 1, self.month + 9 - late * 12
        of_year = floor_div(month * 153 + 2, 5) + self.day - 1
        leaps = floor_div(year, 4) - floor_div(year, 100) + floor_div(year, 400)
        return year * 365 + leaps + of_year - 719_468


def _decimal_text(a: Column, scale: int) -> Column:
    if not scale:
        return a.cast("string")
    unit, sign = long(10**scale), F.when(a < 0, "-").otherwise("")
    # The remainder first: what failed before may be the least integer, which has no absolute value.
    return F.concat(sign, F.abs(divided(a, unit)).cast("string"), F.lit("."), _digits(F.abs(a % unit), scale))


FORMS: Final[Mapping[str, Form[Column]]] = {
    "bool_to_int": Form(lambda a: a.cast("bigint")),
    "double_to_int": Form(lambda a: F.when(_in_int64(a), a).try_cast("bigint"), fails=lambda a: ~_in_int64(a)),
    "parse_int": Form(
        lambda a: F.when(a.rlike(java(INTEGER_TEXT)), a).try_cast("bigint"),
        fails=lambda a: ~a.rlike(java(INTEGER_TEXT)) | a.try_cast("bigint").isNull(),
    ),
    "parse_double": Form(
        lambda a: F.when(a.rlike(java(NUMBER_TEXT)), a).try_cast("double"),
        fails=lambda a: ~a.rlike(java(NUMBER_TEXT)),
    ),
    "parse_date": Form(
        lambda a: _Civil.read(a, DATE_TEXT).day_number(),
        fails=lambda a: ~surely(_Civil.read(a, DATE_TEXT).valid()),
    ),
    "parse_timestamp": Form(_timestamp, fails=_no_timestamp),
    "int_to_string": Form(lambda a: a.cast("string")),
    "double_to_string": by_polars("double_to_string"),
    "decimal_to_string": Form(_decimal_text),
    "bool_to_string": Form(lambda a: a.cast("string")),
    "format_date": Form(_date_text, fails=lambda a: ~a.between(FIRST_DAY, LAST_DAY)),
    "format_timestamp": Form(_instant_text, fails=lambda a: ~a.between(FIRST_DAY * DAY, LAST_DAY * DAY + DAY - 1)),
}
