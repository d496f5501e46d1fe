"""Conditions in Polars; and, or, if and coalesce are the walk's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from tidegate.runtime.eval.functions.frame import Form

FORMS: Final[Mapping[str, Form[pl.Expr]]] = {
    "not": Form(lambda a: ~a),
    "is_null": Form(lambda a: a.is_null()),
    "is_not_null": Form(lambda a: a.is_not_null()),
    "eq_null_safe": Form(lambda a, b: a.eq_missing(b)),
    "eq": Form(lambda a, b: a == b),
    "ne": Form(lambda a, b: a != b),
    "lt": Form(lambda a, b: a < b),
    "le": Form(lambda a, b: a <= b),
    "gt": Form(lambda a, b: a > b),
    "ge": Form(lambda a, b: a >= b),
}
