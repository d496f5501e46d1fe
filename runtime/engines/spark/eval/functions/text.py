"""Text in Spark."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.runtime.engines.spark.eval.functions.forms import long
from tidegate.runtime.engines.spark.eval.functions.shared import by_polars
from tidegate.runtime.eval.functions.frame import Form

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _substring(text: Column, start: Column, length: Column) -> Column:
    longest = long(2**31 - 1)  # positions are 32-bit integers in Spark, and so are lengths in bytes
    length = F.when(length < 0, long(0)).otherwise(length)
    # What lies before the first character counts as taken; neither sum can overflow.
    before = F.greatest(F.least(start, long(0)) + length, long(1)) - 1
    taken = F.when(start >= 1, length).otherwise(before)
    first = F.least(F.greatest(start, long(1)), longest)
    part = F.substring(text, first.cast("int"), F.least(taken, longest).cast("int"))
    return F.when(start.isNotNull() & length.isNotNull(), part)


FORMS: Final[Mapping[str, Form[Column]]] = {
    "concat": Form(lambda *parts: F.concat(*parts)),
    "lower": Form(lambda a: F.translate(a, _LETTERS, _LETTERS.lower())),
    "upper": Form(lambda a: F.translate(a, _LETTERS.lower(), _LETTERS)),
    "length": Form(lambda a: F.length(a).cast("bigint")),
    "substring": Form(_substring),
    "trim": Form(lambda a: F.trim(a)),
    "ltrim": Form(lambda a: F.ltrim(a)),
    "rtrim": Form(lambda a: F.rtrim(a)),
    "lpad": Form(lambda a, length, fill: F.lpad(a, length, fill)),
    "rpad": Form(lambda a, length, fill: F.rpad(a, length, fill)),
    "split_part": Form(lambda a, separator, number: F.split_part(a, F.lit(separator), F.lit(number))),
    "concat_ws": Form(lambda *given: F.concat_ws(given[-1], *given[:-1])),
    "reverse": Form(lambda a: F.reverse(a)),
    "position": Form(lambda a, b: F.call_function("instr", a, b).cast("bigint")),
    "initcap": by_polars("initcap"),
    "levenshtein": Form(lambda a, b: F.levenshtein(a, b).cast("bigint")),
    "starts_with": Form(lambda a, b: F.startswith(a, b)),
    "ends_with": Form(lambda a, b: F.endswith(a, b)),
    "contains": Form(lambda a, b: F.contains(a, b)),
    "replace": Form(lambda a, old, new: F.replace(a, old, new)),
}
