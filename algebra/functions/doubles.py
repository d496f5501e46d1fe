"""Functions of doubles: what Python's `math` yields, on every engine to the last bit; NaN where that has none."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from tidegate.algebra.functions.rules import Operation, fixed
from tidegate.algebra.typed.kernels import Kernel
from tidegate.algebra.types import DOUBLE

# --- kernels ---------------------------------------------------------------------------------------------------------


def _sqrt(x: float) -> float:
    return math.nan if x < 0 else math.sqrt(x)


def _exp(x: float) -> float:
    try:
        return math.exp(x)
    except OverflowError:
        return math.inf


def _ln(x: float) -> float:
    if x == 0.0:
        return -math.inf
    return math.nan if x < 0 else math.log(x)


def _power(x: float, y: float) -> float:
    x += 0.0  # -0.0 equals 0.0, so no result may tell them apart
    if y == 0.0:
        return 1.0
    if math.isnan(x) or math.isnan(y):
        return math.nan
    if math.isinf(y) and abs(x) == 1.0:
        return math.nan
    if x == 0.0 and y < 0:
        return math.inf
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:  # a negative number to a fractional power
        return math.nan


def _log(x: float, base: float) -> float:
    if base <= 0.0 or base == 1.0 or math.isnan(base):
        return math.nan
    return _quotient(_ln(x), _ln(base))


def _quotient(a: float, b: float) -> float:
    return math.nan if math.isinf(a) and math.isinf(b) else a / b


def _atan2(y: float, x: float) -> float:
    return math.atan2(y + 0.0, x + 0.0)  # -0.0 equals 0.0, so no result may tell them apart


def _of(function: Callable[[float], float]) -> Callable[[float], float]:
    """The function with NaN where Python raises, and infinity where the result is too large."""

    def value(x: float) -> float:
        try:
            return function(x)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.copysign(math.inf, function(math.copysign(1.0, x)))

    return value


def _logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    def value(x: float) -> float:
        return -math.inf if x == 0.0 else math.nan if x < 0 else function(x)

    return value


SQRT = Kernel("sqrt", _sqrt)
EXP = Kernel("exp", _exp)
LN = Kernel("ln", _ln)
POWER = Kernel("power", _power, mentions=8)
LOG10 = Kernel("log10", _logarithm(math.log10))
LOG2 = Kernel("log2", _logarithm(math.log2))
LOG = Kernel("log", _log)
ATAN2 = Kernel("atan2", _atan2)
#: With what Polars calls them.
TRIGONOMETRY: Final = {
    Kernel(function.__name__, _of(function)): polars
    for function, polars in (
        (math.sin, "sin"), (math.cos, "cos"), (math.tan, "tan"), (math.asin, "arcsin"), (math.acos, "arccos"),
        (math.atan, "arctan"), (math.sinh, "sinh"), (math.cosh, "cosh"), (math.tanh, "tanh"),
    )
}  # fmt: skip
DEGREES, RADIANS = Kernel("degrees", math.degrees), Kernel("radians", math.radians)
KERNELS: Final = (SQRT, EXP, LN, LOG10, LOG2, LOG, POWER, *TRIGONOMETRY, ATAN2, DEGREES, RADIANS)

# --- rules -----------------------------------------------------------------------------------------------------------

_ONE, _TWO = (DOUBLE,), (DOUBLE, DOUBLE)
_DOCS = {
    "asin": "NaN beyond 1.",
    "acos": "NaN beyond 1.",
    "sin": "Of radians.",
    "cos": "Of radians.",
    "tan": "Of radians.",
}
OPERATIONS: Final = (
    Operation("sqrt", "a number", fixed(SQRT, _ONE, DOUBLE), "x.sqrt()", doc="NaN below zero."),
    Operation("exp", "a number", fixed(EXP, _ONE, DOUBLE), "x.exp()"),
    Operation("ln", "a number", fixed(LN, _ONE, DOUBLE), "x.ln()", doc="-inf at zero, NaN below."),
    Operation("log10", "a number", fixed(LOG10, _ONE, DOUBLE), "x.log10()", doc="As ln; exact for powers of ten."),
    Operation("log2", "a number", fixed(LOG2, _ONE, DOUBLE), "x.log2()", doc="As ln; exact for powers of two."),
    Operation("log", "a number and a base", fixed(LOG, _TWO, DOUBLE), "x.log(y)", counts=(2,), doc="ln of the one divided by ln of the other; NaN for a base that is 1 or not positive."),
    Operation("power", "two numbers", fixed(POWER, _TWO, DOUBLE), "x ** y", counts=(2,), doc="As Java's pow."),
    *(Operation(kernel.name, "a number", fixed(kernel, _ONE, DOUBLE), f"x.{kernel.name}()", counts=(1,), doc=_DOCS.get(kernel.name, "")) for kernel in TRIGONOMETRY),
    Operation("atan2", "two numbers", fixed(ATAN2, _TWO, DOUBLE), "x.atan2(y)", counts=(2,), doc="The angle of the point (y, x)."),
    Operation("degrees", "a number", fixed(DEGREES, _ONE, DOUBLE), "x.degrees()", counts=(1,), doc="Of radians."),
    Operation("radians", "a number", fixed(RADIANS, _ONE, DOUBLE), "x.radians()", counts=(1,), doc="Of degrees."),
)  # fmt: skip
