"""The calendar in Polars."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import polars as pl

from tidegate.algebra.functions.calendar import ERA_MONTHS, STARTS
from tidegate.algebra.typed.kernels import ERA_DAYS, ERA_YEARS
from tidegate.algebra.typed.terms import TypedTerm
from tidegate.runtime.eval.functions.frame import Form
from tidegate.runtime.eval.functions.instants import date
from tidegate.runtime.eval.functions.shared import by_python


def _start(unit: str) -> Callable[[pl.Expr], pl.Expr]:
    every = {"year": "1y", "quarter": "1q", "month": "1mo"}[unit]
    return lambda day: _number(date(day).dt.truncate(every)) + day // ERA_DAYS * ERA_DAYS


def _number(in_era: pl.Expr) -> pl.Expr:
    return in_era.cast(pl.Int32).cast(pl.Int64)


def _add_months(day: pl.Expr, months: int) -> pl.Expr:
    eras, rest = divmod(months, ERA_MONTHS)
    return _number(date(day).dt.offset_by(f"{rest}mo")) + (day // ERA_DAYS + eras) * ERA_DAYS


def _wrapped_up(_: TypedTerm, args: Sequence[pl.Expr], value: pl.Expr) -> pl.Expr:
    """Whether what is before the operand has become greater."""
    return value > args[0]


def _wrapped(term: TypedTerm, args: Sequence[pl.Expr], value: pl.Expr) -> pl.Expr:
    (months,) = term.constants
    return value < args[0] if int(months) > 0 else value > args[0]


FORMS: Final[Mapping[str, Form[pl.Expr]]] = {
    **{kernel.name: Form(_start(unit), beyond=_wrapped_up) for unit, kernel in STARTS.items()},
    "start_of_week": Form(lambda a: a - (a % 7 + 3) % 7, beyond=_wrapped_up),
    "quarter": Form(lambda a: date(a).dt.quarter().cast(pl.Int64)),
    "week": Form(lambda a: date(a).dt.week().cast(pl.Int64)),
    "week_year": Form(lambda a: date(a).dt.iso_year().cast(pl.Int64) + a // ERA_DAYS * ERA_YEARS),
    "day_of_year": Form(lambda a: date(a).dt.ordinal_day().cast(pl.Int64)),
    "add_months": Form(_add_months, beyond=_wrapped),
    # The rules of time zones are those of one database on all engines: Python's.
    **{name: by_python(name) for name in ("to_local", "from_local", "format", "parse")},
}
