"""Numbers in Spark: what can leave int64 goes through a `try_` form, and is NULL there (`beyond`)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from functools import reduce
from math import prod
from operator import and_
from typing import Final

from pyspark.sql import Column
from pyspark.sql import functions as F

from tidegate.algebra.terms import Lit
from tidegate.algebra.typed.terms import TypedTerm, can_overflow
from tidegate.algebra.types import INT64_MAX, INT64_MIN
from tidegate.runtime.engines.spark.eval.functions.forms import divided, long
from tidegate.runtime.eval.functions.frame import Form


def _may_leave(term: TypedTerm) -> bool:
    """Whether the result may leave int64: also where an operand has failed, whose value is any integer then."""
    return can_overflow(term) or any(arg.fallible for arg in term.args)


def _add(term: TypedTerm, a: Column, b: Column) -> Column:
    a, b = _apart(term, a, b, ("add_int",), sum)
    return F.try_add(a, b) if _may_leave(term) else a + b


def subtract(term: TypedTerm, a: Column, b: Column) -> Column:
    return F.try_subtract(a, b) if _may_leave(term) else a - b


def _multiply(term: TypedTerm, a: Column, b: Column) -> Column:
    a, b = _apart(term, a, b, ("mul_int", "rescale"), prod)
    return F.try_multiply(a, b) if _may_leave(term) else a * b


def _apart(
    term: TypedTerm, a: Column, b: Column, kernels: Collection[str], combine: Callable[[list[int]], int]
) -> tuple[Column, Column]:
    """The operands of a sum, or of a product, such that Spark does not put constants of nested ones together.

    It does so for sums of sums and products of products, and where the constants leave int64, no row has a value.
    """

    def constants(term: TypedTerm) -> int:
        if term.kernel.name in kernels:
            return combine(
                [*map(constants, term.args), *(abs(value) for value in term.constants if isinstance(value, int))]
            )
        value = term.source.value if isinstance(term.source, Lit) else None
        return abs(value) if isinstance(value, int) else combine([])

    return (a.bitwiseOR(long(0)), b.bitwiseOR(long(0))) if constants(term) > INT64_MAX else (a, b)


def _idiv(term: TypedTerm, a: Column, b: Column) -> Column:
    possible = b != 0
    if _may_leave(term):
        possible = possible & ~((a == INT64_MIN) & (b == -1))
    return F.when(possible, divided(a, b))


def _floordiv(term: TypedTerm, a: Column, b: Column) -> Column:
    # `div` truncates: one down where a remainder is left and the signs differ.
    rest = F.when(b != 0, a % b)
    return _idiv(term, a, b) - ((rest != 0) & ((rest < 0) != (b < 0))).cast("bigint")


def _mod(a: Column, b: Column) -> Column:
    # `%` truncates: the remainder, if any, moves to the divisor's side.
    rest = F.when(b != 0, a % b)
    return F.when((rest != 0) & ((rest < 0) != (b < 0)), rest + b).otherwise(rest)


def _abs(term: TypedTerm, a: Column) -> Column:
    return F.when(a < 0, subtract(term, long(0), a)).otherwise(a)


def _rescale(term: TypedTerm, a: Column, factor: int) -> Column:
    return a if factor == 1 else _multiply(term, a, long(factor))


def _clamped(a: Column, factor: int) -> Column:
    most = 10**18 // factor
    beyond_all = F.when(a > most, long(10**18)).when(a < -most, long(-(10**18)))
    return beyond_all.otherwise(a.bitwiseOR(long(0)) * long(factor))


def _least(term: TypedTerm, *args: Column) -> Column:
    return _unless_null(term, args, F.least(*args)) if len(args) > 1 else args[0]


def _greatest(term: TypedTerm, *args: Column) -> Column:
    return _unless_null(term, args, F.greatest(*args)) if len(args) > 1 else args[0]


def _unless_null(term: TypedTerm, args: Sequence[Column], result: Column) -> Column:
    # Spark's own forms skip NULLs.
    present = [arg.isNotNull() for arg, typed in zip(args, term.args, strict=True) if typed.nullable]
    return F.when(reduce(and_, present), result) if present else result


def _no_divisor(_: Column, b: Column) -> Column:
    return b == 0


FORMS: Final[Mapping[str, Form[Column]]] = {
    "add_int": Form(_add, typed=True),
    "sub_int": Form(subtract, typed=True),
    "mul_int": Form(_multiply, typed=True),
    "idiv_int": Form(_idiv, fails=_no_divisor, typed=True),
    "floordiv_int": Form(_floordiv, fails=_no_divisor, typed=True),
    "mod_int": Form(_mod, fails=_no_divisor),
    "neg_int": Form(lambda term, a: subtract(term, long(0), a), typed=True),
    "abs_int": Form(_abs, typed=True),
    "add_double": Form(lambda a, b: a + b),
    "sub_double": Form(lambda a, b: a - b),
    "mul_double": Form(lambda a, b: a * b),
    "div_double": Form(lambda a, b: F.try_divide(a, b), fails=_no_divisor),
    "neg_double": Form(lambda a: -a),
    "abs_double": Form(lambda a: F.abs(a)),
    "least": Form(_least, typed=True),
    "greatest": Form(_greatest, typed=True),
    "rescale": Form(_rescale, typed=True),
    "rescale_clamped": Form(_clamped),
    "int_to_double": Form(lambda a: a.cast("double")),
    "decimal_to_double": Form(lambda a, factor: a.cast("double") / float(factor)),
}


def beyond(value: Column, low: int, high: int) -> Column:
    """Whether a result is beyond the limits: every kernel that can leave int64 yields NULL there; decimals end
    earlier.
    """
    lost = value.isNull()
    return lost if (low, high) == (INT64_MIN, INT64_MAX) else lost | (value < low) | (value > high)
