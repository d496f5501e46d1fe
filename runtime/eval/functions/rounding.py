"""Rounding, signs and bits in Polars."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import polars as pl

from tidegate.runtime.eval.functions.frame import Form
from tidegate.runtime.eval.functions.shared import by_python


def _round(a: pl.Expr) -> pl.Expr:
    below = a.abs().floor()
    whole = below + (a.abs() - below >= 0.5).cast(pl.Float64)
    return pl.when(a < 0).then(-whole).otherwise(whole)


def _shift_left(a: pl.Expr, bits: int) -> pl.Expr:
    return a * (2**bits if bits < 63 else -(2**63))  # products wrap


def _shift_right(a: pl.Expr, bits: int) -> pl.Expr:
    return a // 2**bits if bits < 63 else -(a < 0).cast(pl.Int64)


FORMS: Final[Mapping[str, Form[pl.Expr]]] = {
    "unscale": Form(lambda a, factor: a.sign() * (a.abs() // factor)),
    "unscale_rounded": Form(lambda a, factor: a.sign() * ((a.abs() + factor // 2) // factor)),
    "unscale_down": Form(lambda a, factor: a // factor),
    "unscale_up": Form(lambda a, factor: -(-a // factor)),
    "round_double": Form(_round),
    "round_double_to": by_python("round_double_to"),
    "floor_double": Form(lambda a: a.floor()),
    "ceil_double": Form(lambda a: a.ceil()),
    "trunc_double": Form(lambda a: pl.when(a < 0).then(a.ceil()).otherwise(a.floor())),
    "sign_int": Form(lambda a: a.sign()),
    "sign_double": Form(lambda a: a.sign()),
    "is_nan": Form(lambda a: a.is_nan()),
    "bit_and": Form(lambda a, b: a & b),
    "bit_or": Form(lambda a, b: a | b),
    "bit_xor": Form(lambda a, b: a ^ b),
    "bit_not": Form(lambda a: ~a),
    "shift_left": Form(_shift_left),
    "shift_right": Form(_shift_right),
}
