"""Instants in Polars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import polars as pl

from tidegate.algebra.typed.kernels import ERA_DAYS, ERA_YEARS
from tidegate.algebra.typed.terms import TypedTerm
from tidegate.runtime.eval.functions.frame import Form
from tidegate.runtime.eval.functions.numbers import literal


def date(day: pl.Expr) -> pl.Expr:
    """The day's date in the first era after the epoch: month, day and weekday repeat every 400 years."""
    return (day % ERA_DAYS).cast(pl.Int32).cast(pl.Date)


def year(day: pl.Expr) -> pl.Expr:
    return date(day).dt.year().cast(pl.Int64) + day // ERA_DAYS * ERA_YEARS


def _floor_beyond(term: TypedTerm, args: Sequence[pl.Expr], _: pl.Expr) -> pl.Expr:
    unit = literal(term.args[1]) or 1
    return args[0] < -(-term.limits[0] // unit) * unit


def _ceil_beyond(term: TypedTerm, args: Sequence[pl.Expr], _: pl.Expr) -> pl.Expr:
    unit = literal(term.args[1]) or 1
    return args[0] > term.limits[1] // unit * unit


FORMS: Final[Mapping[str, Form[pl.Expr]]] = {
    "floor_int": Form(lambda a, unit: a - a % unit, beyond=_floor_beyond),
    # A remainder has the sign of the divisor.
    "ceil_int": Form(lambda a, unit: a - a % -unit, beyond=_ceil_beyond),
    "floor_div": Form(lambda a, unit: a // unit),
    "part": Form(lambda a, whole, unit: a % whole // unit),
    "year": Form(year),
    "month": Form(lambda a: date(a).dt.month().cast(pl.Int64)),
    "day": Form(lambda a: date(a).dt.day().cast(pl.Int64)),
    "day_of_week": Form(lambda a: (a % 7 + 3) % 7 + 1),
}
