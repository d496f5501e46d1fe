"""Text: in code points, and what depends on letters for those of ASCII alone."""

from __future__ import annotations

from typing import Final

from tidegate.algebra.functions.hints import mismatch
from tidegate.algebra.functions.rules import Operation, arity, coerce, fixed
from tidegate.algebra.kernels import Kernel
from tidegate.algebra.terms import Call, Lit
from tidegate.algebra.typed import Typed, apply
from tidegate.algebra.types import BIGINT, BOOLEAN, NULL, STRING

# --- kernels ---------------------------------------------------------------------------------------------------------

_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TO_LOWER, _TO_UPPER = str.maketrans(_UPPER, _LOWER), str.maketrans(_LOWER, _UPPER)


def _substring(text: str, start: int, length: int) -> str:
    first, end = max(start, 1), start + max(length, 0)
    return text[first - 1 : max(end - 1, 0)] if end > first else ""


CONCAT = Kernel("concat", lambda *parts: "".join(parts))
LOWER = Kernel("lower", lambda s: s.translate(_TO_LOWER))
UPPER = Kernel("upper", lambda s: s.translate(_TO_UPPER))
LENGTH = Kernel("length", len)
SUBSTRING = Kernel("substring", _substring, mentions=4)
TRIM = Kernel("trim", lambda s: s.strip(" "))
STARTS_WITH = Kernel("starts_with", lambda s, part: s.startswith(part))
ENDS_WITH = Kernel("ends_with", lambda s, part: s.endswith(part))
CONTAINS = Kernel("contains", lambda s, part: part in s)
REPLACE = Kernel("replace", lambda s, old, new: s.replace(old, new))
KERNELS: Final = (CONCAT, LOWER, UPPER, LENGTH, SUBSTRING, TRIM, STARTS_WITH, ENDS_WITH, CONTAINS, REPLACE)

# --- rules -----------------------------------------------------------------------------------------------------------


def _concat(call: Call, args: tuple[Typed, ...]) -> Typed:
    arity(call, args, 1, None, "strings")
    if any(arg.type not in (STRING, NULL) for arg in args):
        raise mismatch(call, args, "strings", '.cast("string") makes a string of a bigint, boolean, date or timestamp')
    return apply(CONCAT, tuple(coerce(arg, STRING) for arg in args), STRING, call)


def _replace(call: Call, args: tuple[Typed, ...]) -> Typed:
    takes = "a string and two constant strings, the first not empty"
    arity(call, args, 3, 3, takes)
    constants = [arg.source for arg in args[1:]]
    if (
        args[0].type != STRING
        or not all(isinstance(c, Lit) and isinstance(c.value, str) for c in constants)
        or constants[0] == Lit("", STRING)
    ):
        raise mismatch(call, args, takes)
    return apply(REPLACE, args, STRING, call)


_REPLACED = tuple(
    (Lit(old, STRING), Lit(new, STRING)) for old, new in (("a", "bb"), ("ab", ""), (" ", "$0\\1"), ("aa", "a"))
)
OPERATIONS: Final = (
    Operation("concat", "strings", _concat, "x.concat(y, …)", "||", counts=(2,), doc="NULL if any is."),
    Operation("lower", "a string", fixed(LOWER, (STRING,), STRING), "x.lower()", doc="ASCII letters only."),
    Operation("upper", "a string", fixed(UPPER, (STRING,), STRING), "x.upper()", doc="ASCII letters only."),
    Operation("length", "a string", fixed(LENGTH, (STRING,), BIGINT), "x.length()", doc="In code points."),
    Operation("substring", "a string, start, length", fixed(SUBSTRING, (STRING, BIGINT, BIGINT), STRING), "x.substring(start, length)", counts=(3,), doc="Characters at positions start to start + length - 1, the first is 1."),
    Operation("trim", "a string", fixed(TRIM, (STRING,), STRING), "x.trim()", doc="Spaces (U+0020) only."),
    Operation("starts_with", "two strings", fixed(STARTS_WITH, (STRING, STRING), BOOLEAN), "x.starts_with(y)"),
    Operation("ends_with", "two strings", fixed(ENDS_WITH, (STRING, STRING), BOOLEAN), "x.ends_with(y)"),
    Operation("contains", "two strings", fixed(CONTAINS, (STRING, STRING), BOOLEAN), "x.contains(y)"),
    Operation("replace", "a string and two constants", _replace, "x.replace(old, new)", counts=(1,), constants=_REPLACED, doc="Every occurrence, left to right."),
)  # fmt: skip
