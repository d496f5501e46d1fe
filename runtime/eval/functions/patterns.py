"""Patterns of text in Polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from tidegate.algebra.functions.patterns import like_pattern, read_pattern
from tidegate.runtime.eval.functions.frame import Form


def _extract(a: pl.Expr, pattern: str, group: int) -> pl.Expr:
    written = read_pattern(pattern).for_others()
    return pl.when(a.str.contains(written)).then(a.str.extract(written, group).fill_null(""))


FORMS: Final[Mapping[str, Form[pl.Expr]]] = {
    "like": Form(lambda a, pattern: a.str.contains(like_pattern(pattern).for_others())),
    "regexp_like": Form(lambda a, pattern: a.str.contains(read_pattern(pattern).for_others())),
    "regexp_extract": Form(_extract),
    "regexp_replace": Form(
        lambda a, pattern, new: a.str.replace_all(read_pattern(pattern).for_others(), new.replace("$", "$$"))
    ),
}
