"""Conditions in Spark; and, or, if and coalesce are the walk's own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column

from tidegate.runtime.eval.functions.frame import Form

FORMS: Final[Mapping[str, Form[Column]]] = {
    "not": Form(lambda a: ~a),
    "is_null": Form(lambda a: a.isNull()),
    "is_not_null": Form(lambda a: a.isNotNull()),
    "eq_null_safe": Form(lambda a, b: a.eqNullSafe(b)),
    "eq": Form(lambda a, b: a == b),
    "ne": Form(lambda a, b: a != b),
    "lt": Form(lambda a, b: a < b),
    "le": Form(lambda a, b: a <= b),
    "gt": Form(lambda a, b: a > b),
    "ge": Form(lambda a, b: a >= b),
}
