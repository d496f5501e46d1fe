"""Rounding of numbers, their sign, and their bits."""

from __future__ import annotations

import math
from typing import Final

from tidegate.algebra.functions.numbers import truncated_division
from tidegate.algebra.functions.rules import (
    Operation,
    Rule,
    arity,
    coerce,
    constant,
    fixed,
    misfit,
    mismatch,
    rounded_range,
)
from tidegate.algebra.terms import Call, Lit
from tidegate.algebra.typed.kernels import Kernel
from tidegate.algebra.typed.terms import TypedTerm, apply
from tidegate.algebra.types import (
    BIGINT,
    BOOLEAN,
    DOUBLE,
    DURATION,
    INT64_MIN,
    MAX_DECIMAL_PRECISION,
    NULL,
    DataType,
    Kind,
    decimal,
)

# --- kernels ---------------------------------------------------------------------------------------------------------


def _round_half_away(value: int, factor: int) -> int:
    rounded = (abs(value) + factor // 2) // factor
    return -rounded if value < 0 else rounded


def _whole(x: float) -> float:
    """To the nearest whole number, halves away from zero."""
    if not math.isfinite(x):
        return x
    below = math.floor(abs(x))
    return math.copysign(float(below + (abs(x) - below >= 0.5)), x)


def _to_digits(x: float, digits: int) -> float:
    """The exact value of the double rounded to so many digits after the point, halves away from zero."""
    from decimal import ROUND_HALF_UP, Context, Decimal  # takes long to import

    if not math.isfinite(x):
        return x
    # As many digits as a double has at most, exactly.
    exact = Context(prec=1100, Emax=9999, Emin=-9999, rounding=ROUND_HALF_UP)
    return float(Decimal(x).quantize(Decimal(1).scaleb(-digits), context=exact))


def _floor(x: float) -> float:
    return float(math.floor(x)) if math.isfinite(x) else x


def _ceil(x: float) -> float:
    return float(math.ceil(x)) if math.isfinite(x) else x


def _trunc(x: float) -> float:
    return float(math.trunc(x)) if math.isfinite(x) else x


def _sign(x: float) -> float:
    return x if math.isnan(x) else float((x > 0) - (x < 0))


def wrapped(value: int) -> int:
    """The integer with the same last 64 bits."""
    return (value - INT64_MIN) % 2**64 + INT64_MIN


UNSCALE = Kernel("unscale", truncated_division, range=rounded_range, mentions=2)
UNSCALE_ROUNDED = Kernel("unscale_rounded", _round_half_away, range=rounded_range, mentions=2)
UNSCALE_DOWN = Kernel("unscale_down", lambda a, factor: a // factor, range=rounded_range, mentions=2)
UNSCALE_UP = Kernel("unscale_up", lambda a, factor: -(-a // factor), range=rounded_range, mentions=3)
ROUND = Kernel("round_double", _whole, mentions=4)
ROUND_TO = Kernel("round_double_to", _to_digits)
FLOOR = Kernel("floor_double", _floor, mentions=3)
CEIL = Kernel("ceil_double", _ceil, mentions=3)
TRUNC = Kernel("trunc_double", _trunc, mentions=4)
SIGN_INT = Kernel("sign_int", lambda a: (a > 0) - (a < 0), range=lambda _: (-1, 1))
SIGN_DOUBLE = Kernel("sign_double", _sign, mentions=4)
IS_NAN = Kernel("is_nan", math.isnan)
BIT_AND = Kernel("bit_and", lambda a, b: a & b)
BIT_OR = Kernel("bit_or", lambda a, b: a | b)
BIT_XOR = Kernel("bit_xor", lambda a, b: a ^ b)
BIT_NOT = Kernel("bit_not", lambda a: ~a)
SHIFT_LEFT = Kernel("shift_left", lambda a, bits: wrapped(a << bits))
SHIFT_RIGHT = Kernel("shift_right", lambda a, bits: a >> bits)
KERNELS: Final = (
    UNSCALE, UNSCALE_ROUNDED, UNSCALE_DOWN, UNSCALE_UP, ROUND, ROUND_TO, FLOOR, CEIL, TRUNC, SIGN_INT, SIGN_DOUBLE, IS_NAN, BIT_AND,
    BIT_OR, BIT_XOR, BIT_NOT, SHIFT_LEFT, SHIFT_RIGHT,
)  # fmt: skip

# --- rules -----------------------------------------------------------------------------------------------------------


def whole(double: Kernel, scaled: Kernel) -> Rule:
    """A rule that makes a number whole: of a double one by the kernel `double`, of a decimal by `scaled`."""

    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        takes = "a number"
        arity(call, args, 1, 1, takes)
        arg = coerce(args[0], BIGINT) if args[0].type == NULL else args[0]
        match arg.type.kind:
            case Kind.BIGINT:
                return arg
            case Kind.DOUBLE:
                return apply(double, (arg,), DOUBLE, call)
            case Kind.DECIMAL:
                return apply(scaled, (arg,), _with_scale(arg.type, 0), call, 10**arg.type.scale)
            case _:
                raise mismatch(call, args, takes)

    return rule


def _with_scale(type_: DataType, scale: int) -> DataType:
    """The type of a decimal that is rounded to a scale: a digit more, as 9.9 becomes 10."""
    return decimal(min(MAX_DECIMAL_PRECISION, type_.precision - type_.scale + scale + 1), scale)


_NUMBERS: Final = (Kind.DOUBLE, Kind.BIGINT, Kind.DECIMAL)


def _round(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a number, and a constant number of digits from 0 to 18"
    arity(call, args, 1, 2, takes)
    digits = 0 if len(args) == 1 else constant(args[1], BIGINT)
    if not isinstance(digits, int) or not 0 <= digits <= MAX_DECIMAL_PRECISION:
        raise misfit(call, args, takes, _NUMBERS, "x.round(2)", _multiples(args[0].type, digits))
    (arg, *_) = args
    if arg.type == DOUBLE and digits:
        return apply(ROUND_TO, (arg,), DOUBLE, call, digits)
    if arg.type.kind is not Kind.DECIMAL:
        return whole(ROUND, UNSCALE_ROUNDED)(call, (arg,))
    if arg.type.scale <= digits:
        return arg
    return apply(UNSCALE_ROUNDED, (arg,), _with_scale(arg.type, digits), call, 10 ** (arg.type.scale - digits))


def _multiples(type_: DataType, digits: object) -> str:
    """How a number is rounded to fewer digits than those before the point."""
    if not isinstance(digits, int) or not -MAX_DECIMAL_PRECISION <= digits < 0:
        return ""
    unit = 10**-digits
    written = f"tg.floor(x + {unit // 2}, {unit})" if type_ == BIGINT else f"(x / {unit}).round() * {unit}"
    return f"multiples of {unit} are {written}"


def _sign_rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a number or a duration"
    arity(call, args, 1, 1, takes)
    type_ = BIGINT if args[0].type == NULL else args[0].type
    if not (type_.is_numeric or type_ == DURATION):
        raise mismatch(call, args, takes)
    if type_ == DOUBLE:
        return apply(SIGN_DOUBLE, args, DOUBLE, call)
    return apply(SIGN_INT, (coerce(args[0], type_),), BIGINT, call)


def _shift(kernel: Kernel) -> Rule:
    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        takes = "a bigint, and a constant number of bits from 0 to 63"
        arity(call, args, 2, 2, takes)
        bits = constant(args[1], BIGINT)
        if args[0].type not in (BIGINT, NULL) or not isinstance(bits, int) or not 0 <= bits <= 63:
            raise misfit(call, args, takes, (Kind.BIGINT,), f"x.{call.op}(2)")
        return apply(kernel, (coerce(args[0], BIGINT),), BIGINT, call, bits)

    return rule


_BITS = tuple((Lit(bits, BIGINT),) for bits in (0, 1, 31, 62, 63))
_DIGITS = tuple((Lit(digits, BIGINT),) for digits in (0, 1, 2, 6, 18))
_HALF = "Halves away from zero; of a double its exact value is rounded, so 2.675 to 2 digits is 2.67."
_BIGINTS = (BIGINT, BIGINT)
OPERATIONS: Final = (
    Operation("round", "a number, digits", _round, "x.round(2)", counts=(1,), constants=((), *_DIGITS), doc=_HALF),
    Operation("trunc", "a number", whole(TRUNC, UNSCALE), "x.trunc()", counts=(1,), doc="Towards zero."),
    Operation("sign", "a number or duration", _sign_rule, "x.sign()", counts=(1,), doc="-1, 0 or 1; NaN of NaN."),
    Operation("is_nan", "a number", fixed(IS_NAN, (DOUBLE,), BOOLEAN), "x.is_nan()", counts=(1,)),
    Operation("bit_and", "two bigints", fixed(BIT_AND, _BIGINTS, BIGINT), "x.bit_and(y)", counts=(2,)),
    Operation("bit_or", "two bigints", fixed(BIT_OR, _BIGINTS, BIGINT), "x.bit_or(y)", counts=(2,)),
    Operation("bit_xor", "two bigints", fixed(BIT_XOR, _BIGINTS, BIGINT), "x.bit_xor(y)", counts=(2,)),
    Operation("bit_not", "a bigint", fixed(BIT_NOT, (BIGINT,), BIGINT), "x.bit_not()", counts=(1,)),
    Operation("shift_left", "a bigint, bits", _shift(SHIFT_LEFT), "x.shift_left(3)", counts=(1,), constants=_BITS, doc="Bits beyond the 64th are lost."),
    Operation("shift_right", "a bigint, bits", _shift(SHIFT_RIGHT), "x.shift_right(3)", counts=(1,), constants=_BITS, doc="The sign stays."),
)  # fmt: skip
