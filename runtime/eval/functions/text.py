"""Text in Polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from tidegate.runtime.eval.functions.frame import Form

_LETTERS = list("ABCDEFGHIJKLMNOPQRSTUVWXYZ")
_SMALL = [letter.lower() for letter in _LETTERS]
#: Positions in strings are clamped here; no string is that long.
_LONG = 2**40


def _substring(a: pl.Expr, start: pl.Expr, length: pl.Expr) -> pl.Expr:
    length = length.clip(0, None)
    # What lies before the first character counts as taken; neither sum can overflow.
    before = (start.clip(None, 0) + length).clip(1, None) - 1
    taken = pl.when(start >= 1).then(length).otherwise(before)
    found = a.str.slice(start.clip(1, _LONG) - 1, taken.clip(None, _LONG))
    return pl.when(start.is_not_null() & length.is_not_null()).then(found)


FORMS: Final[Mapping[str, Form[pl.Expr]]] = {
    "concat": Form(lambda *parts: pl.concat_str(parts)),
    "lower": Form(lambda a: a.str.replace_many(_LETTERS, _SMALL)),
    "upper": Form(lambda a: a.str.replace_many(_SMALL, _LETTERS)),
    "length": Form(lambda a: a.str.len_chars().cast(pl.Int64)),
    "substring": Form(_substring),
    "trim": Form(lambda a: a.str.strip_chars(" ")),
    "starts_with": Form(lambda a, b: a.str.starts_with(b)),
    "ends_with": Form(lambda a, b: a.str.ends_with(b)),
    "contains": Form(lambda a, b: a.str.contains(b, literal=True)),
    "replace": Form(lambda a, old, new: a.str.replace_all(old, new, literal=True)),
}
