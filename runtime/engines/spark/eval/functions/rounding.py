"""Rounding, signs and bits in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.runtime.engines.spark.eval.functions.forms import divided, floor_div, long
from tidegate.runtime.engines.spark.eval.functions.shared import by_polars
from tidegate.runtime.eval.functions.frame import Form


def _rounded(a: Column, factor: int) -> Column:
    # What overflowed before may be any integer here: it means nothing, but must not fail.
    half = long(factor // 2)
    return divided(F.when(a < 0, F.try_subtract(a, half)).otherwise(F.try_add(a, half)), long(factor))


def _rounded_up(a: Column, factor: int) -> Column:
    return _negative(floor_div(_negative(a), factor))


def _negative(a: Column) -> Column:
    return F.try_subtract(long(0), a)


def _floor(a: Column) -> Column:
    # Spark's own is a bigint, which large doubles do not fit.
    near = F.rint(a)
    return near - (near > a).cast("double")


def _ceil(a: Column) -> Column:
    near = F.rint(a)
    return near + (near < a).cast("double")


def _round(a: Column) -> Column:
    below = _floor(F.abs(a))
    whole = below + (F.abs(a) - below >= 0.5).cast("double")
    return F.when(a < 0, -whole).otherwise(whole)


FORMS: Final[Mapping[str, Form[Column]]] = {
    "unscale": Form(lambda a, factor: divided(a, long(factor))),
    "unscale_rounded": Form(_rounded),
    "unscale_down": Form(floor_div),
    "unscale_up": Form(_rounded_up),
    "round_double": Form(_round),
    "round_double_to": by_polars("round_double_to"),
    "floor_double": Form(_floor),
    "ceil_double": Form(_ceil),
    "trunc_double": Form(lambda a: F.when(a < 0, _ceil(a)).otherwise(_floor(a))),
    "sign_int": Form(lambda a: F.signum(a).cast("bigint")),
    "sign_double": Form(lambda a: F.signum(a)),
    "is_nan": Form(lambda a: F.when(a.isNotNull(), F.isnan(a))),
    "bit_and": Form(lambda a, b: a.bitwiseAND(b)),
    "bit_or": Form(lambda a, b: a.bitwiseOR(b)),
    "bit_xor": Form(lambda a, b: a.bitwiseXOR(b)),
    "bit_not": Form(lambda a: F.bitwise_not(a)),
    "shift_left": Form(lambda a, bits: F.shiftleft(a, bits)),
    "shift_right": Form(lambda a, bits: F.shiftright(a, bits)),
}
