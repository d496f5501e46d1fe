"""The calendar in Spark."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.algebra.functions.calendar import ERA_MONTHS, STARTS
from tidegate.algebra.typed.kernels import ERA_DAYS, ERA_YEARS
from tidegate.runtime.engines.spark.eval.functions.forms import floor_div, long
from tidegate.runtime.engines.spark.eval.functions.instants import date
from tidegate.runtime.engines.spark.eval.functions.shared import by_polars
from tidegate.runtime.eval.functions.frame import Form


def _start(unit: str) -> Callable[[Column], Column]:
    return lambda day: _moved(day, F.trunc(date(day), unit))


def _moved(day: Column, in_era: Column) -> Column:
    """The day by so many as a date in its era is after the day's own: NULL where it leaves int64."""
    return F.try_add(day, F.unix_date(in_era).cast("bigint") - F.pmod(day, long(ERA_DAYS)))


def _add_months(day: Column, months: int) -> Column:
    eras, rest = divmod(months, ERA_MONTHS)
    # A difference, as Spark would move the constant of a sum behind the day.
    in_era = F.pmod(day, long(ERA_DAYS)) - long(eras * ERA_DAYS)
    return F.try_add(day, F.unix_date(F.add_months(date(day), rest)).cast("bigint") - in_era)


FORMS: Final[Mapping[str, Form[Column]]] = {
    **{kernel.name: Form(_start(unit)) for unit, kernel in STARTS.items()},
    "start_of_week": Form(lambda a: F.try_subtract(a, (F.pmod(a, long(7)) + 3) % 7)),
    "quarter": Form(lambda a: F.quarter(date(a)).cast("bigint")),
    "week": Form(lambda a: F.weekofyear(date(a)).cast("bigint")),
    "week_year": Form(
        lambda a: F.extract(F.lit("YEAROFWEEK"), date(a)).cast("bigint") + floor_div(a, ERA_DAYS) * ERA_YEARS
    ),
    "day_of_year": Form(lambda a: F.dayofyear(date(a)).cast("bigint")),
    "add_months": Form(_add_months),
    **{name: by_polars(name) for name in ("to_local", "from_local", "format", "parse")},
}
