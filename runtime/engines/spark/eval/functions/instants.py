"""Instants in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.algebra.typed.kernels import ERA_DAYS, ERA_YEARS
from tidegate.algebra.typed.terms import TypedTerm
from tidegate.runtime.engines.spark.eval.functions.forms import divided, floor_div, long
from tidegate.runtime.engines.spark.eval.functions.numbers import subtract
from tidegate.runtime.eval.functions.frame import Form


def date(day: Column) -> Column:
    """The day's date in the first era after the epoch: month, day and weekday repeat every 400 years."""
    return F.date_from_unix_date(F.pmod(day, long(ERA_DAYS)).cast("int"))


def year(day: Column) -> Column:
    return F.year(date(day)).cast("bigint") + floor_div(day, ERA_DAYS) * ERA_YEARS


def _ceil(term: TypedTerm, a: Column, unit: Column) -> Column:
    rest = F.pmod(a, unit)
    return subtract(term, a, F.when(rest == 0, long(0)).otherwise(rest - unit))


FORMS: Final[Mapping[str, Form[Column]]] = {
    "floor_int": Form(lambda term, a, unit: subtract(term, a, F.pmod(a, unit)), typed=True),
    "ceil_int": Form(_ceil, typed=True),
    "floor_div": Form(floor_div),
    "part": Form(lambda a, whole, unit: divided(F.pmod(a, long(whole)), long(unit))),
    "year": Form(year),
    "month": Form(lambda a: F.month(date(a)).cast("bigint")),
    "day": Form(lambda a: F.dayofmonth(date(a)).cast("bigint")),
    "day_of_week": Form(lambda a: (F.pmod(a, long(7)) + 3) % 7 + 1),
}
