"""Numbers: arithmetic, rounding and what functions of doubles there are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.algebra.functions.rules import (
    CONVERSIONS,
    Operation,
    arity,
    coerce,
    is_progress,
    mismatch,
    some_number,
    unify,
)
from tidegate.algebra.terms import Call, Lit, Value
from tidegate.algebra.typed.kernels import LITERAL, ZERO_DIVISION, Kernel, KernelFailure, Range, compare
from tidegate.algebra.typed.terms import TypedTerm, apply
from tidegate.algebra.types import (
    BIGINT,
    DATE,
    DOUBLE,
    DURATION,
    INT64_MAX,
    INT64_MIN,
    MAX_DECIMAL_PRECISION,
    NULL,
    TIMESTAMP,
    DataType,
    Kind,
    decimal,
)

# --- kernels ---------------------------------------------------------------------------------------------------------


def truncated_division(a: int, b: int) -> int:
    quotient = abs(a) // abs(b)
    return -quotient if (a < 0) != (b < 0) else quotient


def _idiv(a: int, b: int) -> int:
    if b == 0:
        raise KernelFailure(ZERO_DIVISION, "division by zero")
    return truncated_division(a, b)


def _floordiv(a: int, b: int) -> int:
    if b == 0:
        raise KernelFailure(ZERO_DIVISION, "division by zero")
    return a // b


def _mod(a: int, b: int) -> int:
    return a - _floordiv(a, b) * b


def _div(a: float, b: float) -> float:
    if b == 0.0:
        raise KernelFailure(ZERO_DIVISION, "division by zero")
    return a / b


def _least(*values: Value) -> Value:
    best = values[0]
    for value in values[1:]:
        best = value if compare(value, best) < 0 else best
    return best


def _greatest(*values: Value) -> Value:
    best = values[0]
    for value in values[1:]:
        best = value if compare(value, best) > 0 else best
    return best


def _product_range(a: Range, b: Range) -> Range:
    corners = [x * y for x in a for y in b]
    return min(corners), max(corners)


def _quotient_range(a: Range, b: Range) -> Range:
    # Only -1 makes a quotient larger than its dividend's range: |MIN| / -1.
    most = max(abs(a[0]), abs(a[1]))
    return -most, most if b[0] <= -1 <= b[1] else max(abs(a[1]), abs(a[0]) - 1)


def _rounded_down_range(a: Range, b: Range) -> Range:
    most = max(abs(a[0]), abs(a[1]))
    return -most, most if b[0] < 0 else max(a[1], 0)


def _remainder_range(a: Range, b: Range) -> Range:
    # Of the divisor's sign, and nearer to 0 than it; a dividend that is already is its own remainder.
    low, high = min(b[0] + 1, 0), max(b[1] - 1, 0)
    return (low if a[1] > 0 else max(low, a[0])), (high if a[0] < 0 else min(high, a[1]))


def _abs_range(a: Range) -> Range:
    low, high = abs(a[0]), abs(a[1])
    return (0 if a[0] <= 0 <= a[1] else min(low, high)), max(low, high)


def _least_range(*ranges: Range | None) -> Range | None:
    known = [limits for limits in ranges if limits is not None]
    return (min(a for a, _ in known), min(b for _, b in known)) if len(known) == len(ranges) else None


def _greatest_range(*ranges: Range | None) -> Range | None:
    known = [limits for limits in ranges if limits is not None]
    return (max(a for a, _ in known), max(b for _, b in known)) if len(known) == len(ranges) else None


def _no_zero(args: Sequence[TypedTerm]) -> bool:
    low, high = args[1].range or (INT64_MIN, INT64_MAX)
    return not low <= 0 <= high


def _no_zero_constant(args: Sequence[TypedTerm]) -> bool:
    divisor = args[1].source
    return args[1].kernel is LITERAL and isinstance(divisor, Lit) and bool(divisor.value)


ADD = Kernel("add_int", lambda a, b: a + b, range=lambda a, b: (a[0] + b[0], a[1] + b[1]))
SUB = Kernel("sub_int", lambda a, b: a - b, range=lambda a, b: (a[0] - b[1], a[1] - b[0]))
MUL = Kernel("mul_int", lambda a, b: a * b, range=_product_range)
IDIV = Kernel("idiv_int", _idiv, range=_quotient_range, failure=ZERO_DIVISION, total=_no_zero, mentions=4)
FLOORDIV = Kernel(
    "floordiv_int", _floordiv, range=_rounded_down_range, failure=ZERO_DIVISION, total=_no_zero, mentions=2
)
MOD = Kernel("mod_int", _mod, range=_remainder_range, failure=ZERO_DIVISION, total=_no_zero, mentions=5)
NEG = Kernel("neg_int", lambda a: -a, range=lambda a: (-a[1], -a[0]))
ABS = Kernel("abs_int", abs, range=_abs_range, mentions=2)
ADD_DOUBLE = Kernel("add_double", lambda a, b: a + b)
SUB_DOUBLE = Kernel("sub_double", lambda a, b: a - b)
MUL_DOUBLE = Kernel("mul_double", lambda a, b: a * b)
DIV_DOUBLE = Kernel("div_double", _div, failure=ZERO_DIVISION, total=_no_zero_constant)
NEG_DOUBLE = Kernel("neg_double", lambda a: -a)
ABS_DOUBLE = Kernel("abs_double", abs)
LEAST = Kernel("least", _least, range=_least_range, mentions=3)
GREATEST = Kernel("greatest", _greatest, range=_greatest_range, mentions=3)
KERNELS: Final = (
    *CONVERSIONS, ADD, SUB, MUL, IDIV, FLOORDIV, MOD, NEG, ABS, ADD_DOUBLE, SUB_DOUBLE, MUL_DOUBLE, DIV_DOUBLE, NEG_DOUBLE, ABS_DOUBLE, LEAST, GREATEST,
)  # fmt: skip
_BY_NAME = {kernel.name: kernel for kernel in KERNELS}

# --- rules -----------------------------------------------------------------------------------------------------------


def _additive(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    """add and sub: numbers, durations, and instants with what moves them."""
    lenient, op = call.op.startswith("try_"), call.op.removeprefix("try_")
    takes = "two numbers, two durations, or an instant and what moves it"
    arity(call, args, 2, 2, takes)
    left, right = (arg.type for arg in args)
    result: DataType | None = None
    moved_by = {Kind.TIMESTAMP: DURATION, Kind.DATE: BIGINT}
    if left.kind in moved_by and (right in (moved_by[left.kind], NULL) or is_progress(args[1].source)):
        result = left
    elif op == "add" and right.kind in moved_by and left in (moved_by[right.kind], NULL):
        result = right
    elif op == "sub" and left == right == TIMESTAMP:
        result = DURATION
    elif op == "sub" and left == right == DATE:
        result = BIGINT
    elif {left, right} <= {DURATION, NULL}:
        result = DURATION
    elif is_progress(args[0].source) and (right == DURATION or (op == "sub" and right.can_be_time)):
        result = BIGINT
    if result is not None:
        sides = tuple(coerce(arg, result) for arg in args) if NULL in (left, right) else args
        return apply(_BY_NAME[f"{op}_int"], sides, result, call, lenient=lenient)
    if not all(type_.is_numeric or type_ == NULL for type_ in (left, right)):
        raise mismatch(call, args, takes)
    to, unified = unify(call, args, takes, lenient=lenient)
    to, unified = some_number(to, unified)
    if to == DOUBLE:
        return apply(_BY_NAME[f"{op}_double"], unified, DOUBLE, call)
    if to.kind is Kind.DECIMAL:
        # One more digit than either side, up to the 18 that there are; beyond is overflow.
        whole = max(u.type.precision - u.type.scale for u in unified)
        to = decimal(min(MAX_DECIMAL_PRECISION, whole + to.scale + 1), to.scale)
    return apply(_BY_NAME[f"{op}_int"], unified, to, call, lenient=lenient)


def _multiplication(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    lenient = call.op.startswith("try_")
    takes = "two numbers, or a duration and a bigint"
    arity(call, args, 2, 2, takes)
    types = {arg.type for arg in args}
    if DURATION in types and types <= {DURATION, BIGINT, NULL} and [arg.type for arg in args].count(DURATION) == 1:
        return apply(
            MUL, tuple(coerce(a, BIGINT) if a.type == NULL else a for a in args), DURATION, call, lenient=lenient
        )
    if not all(type_.is_numeric or type_ == NULL for type_ in types):
        raise mismatch(call, args, takes)
    if DOUBLE in types:
        return apply(MUL_DOUBLE, tuple(coerce(arg, DOUBLE) for arg in args), DOUBLE, call)
    numbers = tuple(coerce(arg, BIGINT) if arg.type == NULL else arg for arg in args)
    if all(arg.type == BIGINT for arg in numbers):
        return apply(MUL, numbers, BIGINT, call, lenient=lenient)
    scale = sum(arg.type.scale for arg in numbers)
    if scale > MAX_DECIMAL_PRECISION:
        raise mismatch(
            call,
            args,
            f"decimals whose scales add up to at most {MAX_DECIMAL_PRECISION}",
            "cast one side to a smaller scale",
        )
    digits = sum(arg.type.precision if arg.type.kind is Kind.DECIMAL else MAX_DECIMAL_PRECISION for arg in numbers)
    return apply(MUL, numbers, decimal(min(MAX_DECIMAL_PRECISION, digits), scale), call, lenient=lenient)


def _division(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    """True division: both sides become doubles first."""
    takes = "two numbers or two durations"
    arity(call, args, 2, 2, takes)
    types = {arg.type for arg in args}
    if not (types <= {DURATION, NULL} or all(type_.is_numeric or type_ == NULL for type_ in types)):
        hint = "write x.div(2)" if args[0].type == DURATION and args[1].type == BIGINT else ""
        raise mismatch(call, args, takes, hint)
    return apply(
        DIV_DOUBLE, tuple(coerce(arg, DOUBLE) for arg in args), DOUBLE, call, lenient=call.op.startswith("try_")
    )


#: What there is instead of the operations on whole numbers where one of two numbers is none.
_OF_OTHER_NUMBERS: Final = {
    "idiv": "of other numbers write (x / y).trunc(), which is a double",
    "floordiv": "of other numbers write tg.floor(x / y), which is a double",
    "mod": "of other numbers write x - y * tg.floor(x / y), or x - y * (x / y).trunc() for the sign of x",
}


def _integer_division(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "two bigints, two durations, or a duration and a bigint"
    arity(call, args, 2, 2, takes)
    left, right = (BIGINT if arg.type == NULL else arg.type for arg in args)
    op, lenient = call.op.removeprefix("try_"), call.op.startswith("try_")
    results = {
        (BIGINT, BIGINT): BIGINT,
        (DURATION, DURATION): DURATION if op == "mod" else BIGINT,
        (DURATION, BIGINT): DURATION,
    }
    result = results.get((left, right))
    if result is None:
        numbers = left.is_numeric and right.is_numeric
        raise mismatch(call, args, takes, _OF_OTHER_NUMBERS[op] if numbers else "")
    sides = tuple(coerce(arg, BIGINT) if arg.type == NULL else arg for arg in args)
    return apply(_BY_NAME[f"{op}_int"], sides, result, call, lenient=lenient)


def _sign(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a number or a duration"
    arity(call, args, 1, 1, takes)
    type_ = BIGINT if args[0].type == NULL else args[0].type
    if not (type_.is_numeric or type_ == DURATION):
        raise mismatch(call, args, takes)
    return apply(
        _BY_NAME[f"{call.op}_{'double' if type_ == DOUBLE else 'int'}"], (coerce(args[0], type_),), type_, call
    )


def _extreme(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "values of one type"
    arity(call, args, 1, None, takes)
    to, unified = unify(call, args, takes)
    if to == NULL:
        raise mismatch(call, args, "at least one value that is not NULL")
    return apply(_BY_NAME[call.op], unified, to, call)


_TWO, _LEAST = "two numbers", "NULL if any is; NaN is greatest. A bigint that fits no decimal fails beside one."
OPERATIONS: Final = (
    Operation("add", "numbers, durations, instant and shift", _additive, "x + y", fallible=True, temporal=True, doc="Overflow fails."),
    Operation("sub", "numbers, durations, instants", _additive, "x - y", fallible=True, temporal=True, doc="Overflow fails."),
    Operation("mul", "numbers, duration and bigint", _multiplication, "x * y", fallible=True, doc="Overflow fails."),
    Operation("div", _TWO, _division, "x / y", fallible=True, doc="Both become doubles; division by zero fails, of doubles too."),
    Operation("idiv", "bigints, durations", _integer_division, "x.div(y)", fallible=True, doc="Truncates towards zero; by zero fails. What it leaves is x - x.div(y) * y."),
    Operation("floordiv", "bigints, durations", _integer_division, "x // y", fallible=True, doc="Rounds down, as Python does; by zero fails."),
    Operation("mod", "bigints, durations", _integer_division, "x % y", fallible=True, doc="Remainder of x // y, with the divisor's sign, as in Python; by zero fails."),
    Operation("neg", "a number or duration", _sign, "-x", fallible=True),
    Operation("abs", "a number or duration", _sign, "x.abs()", fallible=True),
    Operation("least", "values of one type", _extreme, "tg.min(x, y, …)", fallible=True, temporal=True, counts=(2,), doc=_LEAST),
    Operation("greatest", "values of one type", _extreme, "tg.max(x, y, …)", fallible=True, temporal=True, counts=(2,), doc=_LEAST),
)  # fmt: skip
TRY_OPERATIONS: Final = (
    Operation("try_add", "as add", _additive, "x.try_add(y)", doc="As add; NULL where that fails, though not where an operand does."),
    Operation("try_sub", "as sub", _additive, "x.try_sub(y)"),
    Operation("try_mul", "as mul", _multiplication, "x.try_mul(y)"),
    Operation("try_div", "as div", _division, "x.try_truediv(y)"),
    Operation("try_idiv", "as idiv", _integer_division, "x.try_div(y)"),
    Operation("try_floordiv", "as floordiv", _integer_division, "x.try_floordiv(y)"),
    Operation("try_mod", "as mod", _integer_division, "x.try_mod(y)"),
)  # fmt: skip
