"""Numbers in Polars. Polars integers wrap silently, so overflow is tested separately (`beyond`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final

import polars as pl

from tidegate.algebra.terms import Lit
from tidegate.algebra.typed.terms import TypedTerm
from tidegate.algebra.types import INT64_MAX, INT64_MIN, Kind
from tidegate.runtime.eval.functions.frame import Form


def by_rows(a: pl.Expr, b: pl.Expr) -> tuple[pl.Expr, pl.Expr]:
    """Both operands as columns with one value per row, as fields of a struct are.

    Of what is one value for all rows Polars computes some functions in another way: division multiplies by its
    reciprocal, a third power is a product. The last bit differs then, and a result would depend on the batch it is
    computed in.
    """
    both = pl.struct(a.alias("a"), b.alias("b"))
    return both.struct.field("a"), both.struct.field("b")


def divided(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    """The quotient of two doubles, correctly rounded."""
    a, b = by_rows(a, b)
    return a / b


def _idiv(a: pl.Expr, b: pl.Expr) -> pl.Expr:
    # // rounds down: one up where a remainder is left and the signs differ.
    inexact = (a % b != 0) & ((a < 0) != (b < 0))
    return a // b + inexact.cast(pl.Int64)


def _clamped(a: pl.Expr, factor: int) -> pl.Expr:
    most = 10**18 // factor
    return a.clip(-most, most) * factor


def _least(term: TypedTerm, *args: pl.Expr) -> pl.Expr:
    return _unless_null(term, args, pl.min_horizontal(args))


def _greatest(term: TypedTerm, *args: pl.Expr) -> pl.Expr:
    greatest = pl.max_horizontal(args)
    if term.type.kind is Kind.DOUBLE:
        # The horizontal forms skip NaN, which is greatest.
        greatest = pl.when(reduce(or_, [arg.is_nan() for arg in args])).then(float("nan")).otherwise(greatest)
    return _unless_null(term, args, greatest)


def _unless_null(term: TypedTerm, args: Sequence[pl.Expr], result: pl.Expr) -> pl.Expr:
    nulls = [arg.is_null() for arg, typed in zip(args, term.args, strict=True) if typed.nullable]
    return pl.when(~reduce(or_, nulls)).then(result) if nulls else result


def _no_divisor(_: pl.Expr, b: pl.Expr) -> pl.Expr:
    return b == 0


# --- overflow --------------------------------------------------------------------------------------------------------
# Tests are exact. Decimals have 18 digits: sums of two fit int64, and only the result needs a look.


def outside(value: pl.Expr, low: int, high: int) -> pl.Expr:
    tests = [value < low] if low > INT64_MIN else []
    tests += [value > high] if high < INT64_MAX else []
    return reduce(or_, tests) if tests else pl.lit(False)


def _sum_beyond(term: TypedTerm, args: Sequence[pl.Expr], value: pl.Expr) -> pl.Expr:
    low, high = term.limits
    for place in (1, 0):
        shift = literal(term.args[place])
        if shift is not None:
            return outside(args[1 - place], low - shift, high - shift)
    if (low, high) != (INT64_MIN, INT64_MAX):
        return outside(value, low, high)
    # Overflow iff the result's sign differs from both operands'.
    return ((args[0] ^ value) & (args[1] ^ value)) < 0


def _difference_beyond(term: TypedTerm, args: Sequence[pl.Expr], value: pl.Expr) -> pl.Expr:
    low, high = term.limits
    shift = literal(term.args[1])
    if shift is not None:
        return outside(args[0], low + shift, high + shift)
    if (low, high) != (INT64_MIN, INT64_MAX):
        return outside(value, low, high)
    # Overflow iff the result's sign differs from the first operand's, and the operands' signs differ.
    return ((args[0] ^ args[1]) & (args[0] ^ value)) < 0


def _product_beyond(term: TypedTerm, args: Sequence[pl.Expr], value: pl.Expr) -> pl.Expr:
    low, high = term.limits
    for place in (1, 0):
        factor = literal(term.args[place])
        if factor is not None:
            return outside(args[1 - place], *_factor_range(low, high, factor))
    a, b = args
    wraps = (a != 0) & ((value // a != b) | ((a == -1) & (b == INT64_MIN)))
    return wraps | outside(value, low, high)


def literal(term: TypedTerm) -> int | None:
    value = term.source.value if isinstance(term.source, Lit) and not term.args else None
    return value if isinstance(value, int) else None


def _factor_range(low: int, high: int, factor: int) -> tuple[int, int]:
    """The integers whose multiple by `factor` lies within the limits."""
    if factor == 0:
        return INT64_MIN, INT64_MAX
    ends = (low, high) if factor > 0 else (high, low)
    return -(-ends[0] // factor), ends[1] // factor


def _rescaled_beyond(term: TypedTerm, args: Sequence[pl.Expr], _: pl.Expr) -> pl.Expr:
    factor = term.constants[0]
    assert isinstance(factor, int)
    return outside(args[0], *_factor_range(*term.limits, factor))


def _least_integer(_: TypedTerm, args: Sequence[pl.Expr], __: pl.Expr) -> pl.Expr:
    return args[0] == INT64_MIN


def _quotient_beyond(_: TypedTerm, args: Sequence[pl.Expr], __: pl.Expr) -> pl.Expr:
    return (args[0] == INT64_MIN) & (args[1] == -1)


FORMS: Final[Mapping[str, Form[pl.Expr]]] = {
    "add_int": Form(lambda a, b: a + b, beyond=_sum_beyond),
    "sub_int": Form(lambda a, b: a - b, beyond=_difference_beyond),
    "mul_int": Form(lambda a, b: a * b, beyond=_product_beyond),
    "idiv_int": Form(_idiv, fails=_no_divisor, beyond=_quotient_beyond),
    "floordiv_int": Form(lambda a, b: a // b, fails=_no_divisor, beyond=_quotient_beyond),
    "mod_int": Form(lambda a, b: a % b, fails=_no_divisor),
    "neg_int": Form(lambda a: -a, beyond=_least_integer),
    "abs_int": Form(lambda a: a.abs(), beyond=_least_integer),
    "add_double": Form(lambda a, b: a + b),
    "sub_double": Form(lambda a, b: a - b),
    "mul_double": Form(lambda a, b: a * b),
    "div_double": Form(divided, fails=_no_divisor),
    "neg_double": Form(lambda a: -a),
    "abs_double": Form(lambda a: a.abs()),
    "least": Form(_least, typed=True),
    "greatest": Form(_greatest, typed=True),
    "rescale": Form(lambda a, factor: a if factor == 1 else a * factor, beyond=_rescaled_beyond),
    "rescale_clamped": Form(_clamped),
    "int_to_double": Form(lambda a: a.cast(pl.Float64)),
    "decimal_to_double": Form(lambda a, factor: divided(a.cast(pl.Float64), pl.lit(float(factor)))),
}
