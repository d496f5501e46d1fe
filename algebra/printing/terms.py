"""Text of values and terms, as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import assert_never

from tidegate.algebra.terms import Attr, Call, Lit, Param, Term, Value
from tidegate.algebra.time import format_duration, format_instant
from tidegate.algebra.typed.kernels import civil
from tidegate.algebra.types import DataType, Kind

#: Operations that are written between their operands, or before one: the sign, and how closely it binds.
SIGNS: Mapping[str, tuple[str, int]] = MappingProxyType(
    {
        "or": ("|", 1), "and": ("&", 2), "not": ("~", 3),
        "eq": ("=", 4), "ne": ("!=", 4), "lt": ("<", 4), "le": ("<=", 4), "gt": (">", 4), "ge": (">=", 4), "eq_null_safe": ("<=>", 4),
        "concat": ("||", 5), "add": ("+", 6), "sub": ("-", 6),
        "mul": ("*", 7), "div": ("/", 7), "idiv": ("div", 7), "mod": ("%", 7), "neg": ("-", 8),
    }
)  # fmt: skip
_ATOM = 9


def value_text(value: Value, type_: DataType) -> str:
    """A value as held, printed as what it is: a duration as `1h 30m`, an instant as ISO text, a string in quotes."""
    if value is None:
        return "NULL"
    match type_.kind:
        case Kind.BOOLEAN:
            return "true" if value else "false"
        case Kind.STRING:
            return "'" + str(value).replace("'", "''") + "'"
        case Kind.TIMESTAMP:
            return format_instant(int(value))
        case Kind.DURATION:
            return format_duration(int(value))
        case Kind.DATE:
            return "{:04d}-{:02d}-{:02d}".format(*civil(int(value)))
        case Kind.DECIMAL:
            digits = str(abs(int(value))).rjust(type_.scale + 1, "0")
            sign = "-" if int(value) < 0 else ""
            return sign + (digits[: -type_.scale] + "." + digits[-type_.scale :] if type_.scale else digits)
        case Kind.BIGINT | Kind.DOUBLE | Kind.NULL:
            return repr(value)
        case _:
            assert_never(type_.kind)


def term_text(term: Term) -> str:
    """The term as one line, with the parentheses that it needs."""
    return _term(term)[0]


def _term(term: Term) -> tuple[str, int]:
    match term:
        case Attr(name):
            return name, _ATOM
        case Lit(value, type_):
            text = value_text(value, type_)
            if type_.kind is Kind.DURATION and any(sign in text for sign in (" - ", " + ")):
                return text, SIGNS["sub"][1]
            return text, 7 if text.startswith("-") else _ATOM
        case Param(name):
            return f"${name}", _ATOM
        case Call(op, args) if op in SIGNS and args:
            sign, binding = SIGNS[op]
            if len(args) == 1 and op in ("not", "neg"):
                return sign + _inside(args[0], binding + 1), binding
            # Only the first operand of - / div % may bind as loosely as the operation itself; comparisons never chain.
            first = binding + 1 if binding == 4 else binding
            rest = binding if op in ("and", "or", "add", "mul", "concat") else binding + 1
            texts = [_inside(args[0], first), *(_inside(arg, rest) for arg in args[1:])]
            return f" {sign} ".join(texts), binding if len(args) > 1 else _ATOM
        case Call(op, args):
            return f"{op}({', '.join(term_text(arg) for arg in args)})", _ATOM
        case _:
            assert_never(term)


def _inside(term: Term, least: int) -> str:
    text, binding = _term(term)
    return text if binding >= least else f"({text})"
