"""What the forms in Spark share."""

from __future__ import annotations

from pyspark.sql import Column
from pyspark.sql import functions as F


def long(value: int) -> Column:
    return F.lit(value).cast("bigint")


def surely(condition: Column) -> Column:
    return F.coalesce(condition, F.lit(False))


def divided(a: Column, b: Column) -> Column:
    """Integer division, truncated towards zero."""
    return F.call_function("div", a, b)


def floor_div(a: Column, unit: int) -> Column:
    # `div` truncates: one down where a remainder is left below zero.
    return divided(a, long(unit)) - (a % long(unit) < 0).cast("bigint")


def java(pattern: str) -> str:
    """Java's `$` also matches before a last line break, `\\z` does not."""
    return pattern.removesuffix("$") + r"\z"
