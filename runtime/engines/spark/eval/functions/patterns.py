"""Patterns of text in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.algebra.functions.patterns import like_pattern, read_pattern
from tidegate.runtime.eval.functions.frame import Form


def _extract(a: Column, pattern: str, group: int) -> Column:
    written = read_pattern(pattern).for_others()
    return F.when(a.rlike(written), F.regexp_extract(a, written, group))


def _replace(a: Column, pattern: str, new: str) -> Column:
    plain = new.replace("\\", "\\\\").replace("$", "\\$")
    return F.regexp_replace(a, read_pattern(pattern).for_others(), plain)


FORMS: Final[Mapping[str, Form[Column]]] = {
    "like": Form(lambda a, pattern: a.rlike(like_pattern(pattern).for_others())),
    "regexp_like": Form(lambda a, pattern: a.rlike(read_pattern(pattern).for_others())),
    "regexp_extract": Form(_extract),
    "regexp_replace": Form(_replace),
}
