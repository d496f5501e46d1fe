"""Text in Polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import polars as pl

from tidegate.algebra.functions.text import padding
from tidegate.runtime.eval.functions.frame import Form
from tidegate.runtime.eval.functions.numbers import by_rows
from tidegate.runtime.eval.functions.shared import by_python

_LETTERS = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SMALL = [letter.lower() for letter in _LETTERS]
#: Positions in strings are clamped here; no string is that long.
_LONG = 2**40


def _substring(a: pl.Expr, start: pl.Expr, length: pl.Expr) -> pl.Expr:
    length = length.clip(0, None)
    # What lies before the first character counts as taken; neither sum can overflow.
    before = (start.clip(None, 0) + length).clip(1, None) - 1
    taken = pl.when(start >= 1).then(length).otherwise(before)
    part = a.str.slice(start.clip(1, _LONG) - 1, taken.clip(None, _LONG))
    return pl.when(start.is_not_null() & length.is_not_null()).then(part)


def _lpad(a: pl.Expr, length: int, fill: str) -> pl.Expr:
    lacking = length - a.str.len_chars().cast(pl.Int64)
    filled = pl.concat_str([pl.lit(padding(fill, length)).str.slice(0, lacking.clip(0, None)), a])
    return pl.when(lacking > 0).then(filled).otherwise(a.str.slice(0, length))


def _rpad(a: pl.Expr, length: int, fill: str) -> pl.Expr:
    return pl.concat_str([a, pl.lit(padding(fill, length))]).str.slice(0, length)


def _split_part(a: pl.Expr, separator: str, number: int) -> pl.Expr:
    place = number - 1 if number > 0 else number
    part = a.str.split(separator).list.get(place, null_on_oob=True).fill_null("")
    return pl.when(a.is_not_null()).then(part)


def _position(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    a, b = by_rows(a, b)
    before = a.str.splitn(b, 2).struct.field("field_0").str.len_chars().cast(pl.Int64)
    position = pl.when(b == "").then(1).when(a.str.contains(b, literal=True)).then(before + 1).otherwise(0)
    return pl.when(a.is_not_null() & b.is_not_null()).then(position)


def _concat_ws(*given: Any) -> pl.Expr:
    *parts, separator = given
    return pl.concat_str(parts, separator=separator, ignore_nulls=True)


FORMS: Final[Mapping[str, Form[pl.Expr]]] = {
    "concat": Form(lambda *parts: pl.concat_str(parts)),
    "lower": Form(lambda a: a.str.replace_many(_LETTERS, _SMALL)),
    "upper": Form(lambda a: a.str.replace_many(_SMALL, _LETTERS)),
    "length": Form(lambda a: a.str.len_chars().cast(pl.Int64)),
    "substring": Form(_substring),
    "trim": Form(lambda a: a.str.strip_chars(" ")),
    "ltrim": Form(lambda a: a.str.strip_chars_start(" ")),
    "rtrim": Form(lambda a: a.str.strip_chars_end(" ")),
    "lpad": Form(_lpad),
    "rpad": Form(_rpad),
    "split_part": Form(_split_part),
    "concat_ws": Form(_concat_ws),
    # Polars' own reverses what is seen as one character as a whole.
    "reverse": Form(lambda a: a.str.split("").list.reverse().list.join("")),
    "position": Form(_position),
    "initcap": by_python("initcap"),
    "levenshtein": by_python("levenshtein"),
    "starts_with": Form(lambda a, b: a.str.starts_with(b)),
    "ends_with": Form(lambda a, b: a.str.ends_with(b)),
    "contains": Form(lambda a, b: a.str.contains(b, literal=True)),
    "replace": Form(lambda a, old, new: a.str.replace_all(old, new, literal=True)),
}
