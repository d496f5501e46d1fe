"""Functions of doubles in Polars, which has most from the same library as Python."""

from __future__ import annotations

from collections.abc import Mapping
from operator import methodcaller
from typing import Final

import polars as pl

from tidegate.algebra.functions.doubles import TRIGONOMETRY
from tidegate.runtime.eval.functions.frame import Form
from tidegate.runtime.eval.functions.numbers import by_rows
from tidegate.runtime.eval.functions.shared import by_python


def _power(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """As Java's pow: unlike in C, NaN to any power but 0 and 1 to an infinite or NaN power are NaN."""
    a, b = by_rows(a, b)
    base = pl.when(a == 0.0).then(0.0).otherwise(a)
    undefined = (b != 0.0) & (a.is_nan() | b.is_nan() | (b.is_infinite() & (a.abs() == 1.0)))
    power = pl.when(undefined).then(float("nan")).otherwise(base.pow(b))
    return pl.when(a.is_not_null() & b.is_not_null()).then(power)


FORMS: Final[Mapping[str, Form[pl.Expr]]] = {
    "sqrt": Form(lambda a: a.sqrt()),
    "exp": Form(lambda a: a.exp()),
    "ln": Form(lambda a: a.log()),
    "power": Form(_power),
    **{kernel.name: Form(methodcaller(method)) for kernel, method in TRIGONOMETRY.items()},
    "degrees": Form(lambda a: a.degrees()),
    "radians": Form(lambda a: a.radians()),
    # Other bases are natural logarithms divided there: log10 of 1000 would be less than 3.
    **{name: by_python(name) for name in ("log10", "log2", "log", "atan2")},
}
