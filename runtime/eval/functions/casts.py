"""Casts in Polars."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import polars as pl

from tidegate.algebra.functions.casts import DATE_TEXT, INSTANT_TEXT, INTEGER_TEXT, NUMBER_TEXT
from tidegate.algebra.typed.kernels import DAY, FIRST_DAY, LAST_DAY
from tidegate.runtime.eval.functions.frame import Form
from tidegate.runtime.eval.functions.instants import date, year
from tidegate.runtime.eval.functions.shared import by_python


def _digits(value: pl.Expr, width: int) -> pl.Expr:
    return value.cast(pl.String).str.zfill(width)


def _date_text(day: pl.Expr) -> pl.Expr:
    in_era = date(day)
    return pl.format("{}-{}-{}", _digits(year(day), 4), _digits(in_era.dt.month(), 2), _digits(in_era.dt.day(), 2))


def _instant_text(a: pl.Expr) -> pl.Expr:
    rest = a % DAY
    clock = [
        (rest // 3_600_000_000, 2),
        (rest // 60_000_000 % 60, 2),
        (rest // 1_000_000 % 60, 2),
        (rest % 1_000_000, 6),
    ]
    hour, minute, second, micros = (_digits(part, width) for part, width in clock)
    return pl.format("{}T{}:{}:{}.{}Z", _date_text(a // DAY), hour, minute, second, micros)


def _no_timestamp(a: pl.Expr) -> pl.Expr:
    clock = _clock(a)
    in_range = (clock[0] < 24) & (clock[1] < 60) & (clock[2] < 60)
    return ~(_Civil.read(a, INSTANT_TEXT).valid() & in_range).fill_null(False)


def _timestamp(a: pl.Expr) -> pl.Expr:
    hour, minute, second, micros = _clock(a)
    day = _Civil.read(a, INSTANT_TEXT).day_number()
    return day * DAY + ((hour * 60 + minute) * 60 + second) * 1_000_000 + micros


def _clock(text: pl.Expr) -> tuple[pl.Expr, pl.Expr, pl.Expr, pl.Expr]:
    """Hour, minute, second and microsecond of an instant's text; what may be left out is 0."""
    hour, minute, second = (_group(text, INSTANT_TEXT, group) for group in (4, 5, 6))
    fraction = text.str.extract(INSTANT_TEXT, 7).fill_null("").str.pad_end(6, "0").cast(pl.Int64, strict=False)
    return hour, minute, second.fill_null(0), fraction


def _group(text: pl.Expr, pattern: str, group: int) -> pl.Expr:
    return text.str.extract(pattern, group).cast(pl.Int64, strict=False)


@dataclass(frozen=True, slots=True)
class _Civil:
    """Year, month and day as read from text; NULL where the text has another form."""

    year: pl.Expr
    month: pl.Expr
    day: pl.Expr

    @classmethod
    def read(cls, text: pl.Expr, pattern: str) -> _Civil:
        return cls(*(_group(text, pattern, group) for group in (1, 2, 3)))

    def valid(self) -> pl.Expr:
        leap = (self.year % 4 == 0) & ((self.year % 100 != 0) | (self.year % 400 == 0))
        february = pl.when(leap).then(29).otherwise(28)
        days = pl.when(self.month == 2).then(february).when(self.month.is_in([4, 6, 9, 11])).then(30).otherwise(31)
        return (self.year >= 1) & self.month.is_between(1, 12) & (self.day >= 1) & (self.day <= days)

    def day_number(self) -> pl.Expr:
        """Days since the epoch of a valid date; years begin in March, so that leap days end them."""
        late = (self.month > 2).cast(pl.Int64)
        year, month = self.year + late - 1, self.month + 9 - 12 * late
        of_year = (153 * month + 2) // 5 + self.day - 1
        return year * 365 + year // 4 - year // 100 + year // 400 + of_year - 719_468


def _decimal_text(a: pl.Expr, scale: int) -> pl.Expr:
    whole = (a.abs() // 10**scale).cast(pl.String)
    sign = pl.when(a < 0).then(pl.lit("-")).otherwise(pl.lit(""))
    return pl.format("{}{}.{}", sign, whole, _digits(a.abs() % 10**scale, scale)) if scale else a.cast(pl.String)


def _integer(a: pl.Expr) -> pl.Expr:
    return a.cast(pl.Int64, strict=False)


FORMS: Final[Mapping[str, Form[pl.Expr]]] = {
    "bool_to_int": Form(_integer),
    "double_to_int": Form(_integer, fails=lambda a: ~((a >= -(2.0**63)) & (a < 2.0**63))),
    "parse_int": Form(_integer, fails=lambda a: ~a.str.contains(INTEGER_TEXT) | _integer(a).is_null()),
    "parse_double": Form(lambda a: a.cast(pl.Float64, strict=False), fails=lambda a: ~a.str.contains(NUMBER_TEXT)),
    "parse_date": Form(
        lambda a: _Civil.read(a, DATE_TEXT).day_number(),
        fails=lambda a: ~_Civil.read(a, DATE_TEXT).valid().fill_null(False),
    ),
    "parse_timestamp": Form(_timestamp, fails=_no_timestamp),
    "int_to_string": Form(lambda a: a.cast(pl.String)),
    "double_to_string": by_python("double_to_string"),
    "decimal_to_string": Form(_decimal_text),
    "bool_to_string": Form(lambda a: a.cast(pl.String)),
    "format_date": Form(_date_text, fails=lambda a: ~a.is_between(FIRST_DAY, LAST_DAY)),
    "format_timestamp": Form(_instant_text, fails=lambda a: ~a.is_between(FIRST_DAY * DAY, LAST_DAY * DAY + DAY - 1)),
}
