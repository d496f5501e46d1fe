"""Text: in code points. Large and small letters are those of ASCII alone, but for `initcap`, which knows all."""

from __future__ import annotations

import re
from typing import Final

from tidegate.algebra.functions.rules import Operation, Rule, arity, coerce, constant, fixed, misfit, mismatch
from tidegate.algebra.terms import Call, Lit, Value
from tidegate.algebra.typed.kernels import Kernel, never
from tidegate.algebra.typed.terms import TypedTerm, apply
from tidegate.algebra.types import BIGINT, BOOLEAN, NULL, STRING, Kind

# --- kernels ---------------------------------------------------------------------------------------------------------

_LOWER, _UPPER = "abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_TO_LOWER, _TO_UPPER = str.maketrans(_UPPER, _LOWER), str.maketrans(_LOWER, _UPPER)


def _substring(text: str, start: int, length: int) -> str:
    first, end = max(start, 1), start + max(length, 0)
    return text[first - 1 : max(end - 1, 0)] if end > first else ""


def padding(fill: str, length: int) -> str:
    """As much of a repeated fill as is ever needed."""
    return (fill * length)[:length]


def _lpad(text: str, length: int, fill: str) -> str:
    return text[:length] if len(text) >= length else padding(fill, length - len(text)) + text


def _rpad(text: str, length: int, fill: str) -> str:
    return text[:length] if len(text) >= length else text + padding(fill, length - len(text))


def _split_part(text: str, separator: str, number: int) -> str:
    parts = text.split(separator)
    place = number - 1 if number > 0 else number
    return parts[place] if -len(parts) <= place < len(parts) else ""


def _concat_ws(*given: Value) -> str:
    *parts, separator = given
    return str(separator).join(str(part) for part in parts if part is not None)


#: Letters and digits of all scripts, with the accents that are characters of their own.
_WORD: Final = re.compile(r"[^\W_](?:[^\W_]|[\u0300-\u036F])*")


def _initcap(text: str) -> str:
    return _WORD.sub(lambda word: word[0][0].title() + word[0][1:].lower(), text)


def _levenshtein(left: str, right: str) -> int:
    costs = list(range(len(right) + 1))
    for row, character in enumerate(left, 1):
        last, costs[0] = costs[0], row
        for column, against in enumerate(right, 1):
            last, costs[column] = (
                costs[column],
                min(costs[column] + 1, costs[column - 1] + 1, last + (character != against)),
            )
    return costs[-1]


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
LTRIM = Kernel("ltrim", lambda s: s.lstrip(" "))
RTRIM = Kernel("rtrim", lambda s: s.rstrip(" "))
LPAD = Kernel("lpad", _lpad, mentions=4)
RPAD = Kernel("rpad", _rpad, mentions=4)
SPLIT_PART = Kernel("split_part", _split_part, mentions=2)
CONCAT_WS = Kernel("concat_ws", _concat_ws, takes_null=True, nullable=never)
REVERSE = Kernel("reverse", lambda s: s[::-1])
POSITION = Kernel("position", lambda s, part: s.find(part) + 1, mentions=4)
INITCAP = Kernel("initcap", _initcap)
LEVENSHTEIN = Kernel("levenshtein", _levenshtein)
KERNELS: Final = (
    CONCAT, LOWER, UPPER, LENGTH, SUBSTRING, TRIM, STARTS_WITH, ENDS_WITH, CONTAINS, REPLACE, LTRIM, RTRIM, LPAD, RPAD, SPLIT_PART,
    CONCAT_WS, REVERSE, POSITION, INITCAP, LEVENSHTEIN,
)  # fmt: skip

# --- rules -----------------------------------------------------------------------------------------------------------


def _concat(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    arity(call, args, 1, None, "strings")
    if any(arg.type not in (STRING, NULL) for arg in args):
        raise mismatch(call, args, "strings", '.cast("string") makes a string of a bigint, boolean, date or timestamp')
    return apply(CONCAT, tuple(coerce(arg, STRING) for arg in args), STRING, call)


def _replace(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a string and two constant strings, the first not empty"
    arity(call, args, 3, 3, takes)
    constants = [constant(arg, STRING) for arg in args[1:]]
    wrong = [at for at, literal in enumerate(constants, 1) if not isinstance(literal, str) or (at == 1 and not literal)]
    if args[0].type != STRING or wrong:
        raise misfit(call, args, takes, (Kind.STRING,), 'x.replace("a", "b")', wrong=wrong)
    return apply(REPLACE, args, STRING, call)


#: Longer padding would make one value of megabytes.
_MOST_PADDED: Final = 10_000


def _pad(kernel: Kernel) -> Rule:
    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        takes = f"a string, a constant length up to {_MOST_PADDED:,}, and a constant string that is not empty"
        arity(call, args, 2, 3, takes)
        length = constant(args[1], BIGINT)
        fill = " " if len(args) == 2 else constant(args[2], STRING)
        fits = isinstance(length, int) and 0 <= length <= _MOST_PADDED
        string = args[0].type in (STRING, NULL)
        if not string or not isinstance(length, int) or not fits or not isinstance(fill, str) or not fill:
            raise misfit(call, args, takes, (Kind.STRING,), f'x.{call.op}(8, "0")', wrong=(2 if fits else 1,))
        return apply(kernel, (coerce(args[0], STRING),), STRING, call, length, fill)

    return rule


def _split(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a string, a constant string that is not empty, and a constant number of a part, from 1 or from -1"
    arity(call, args, 3, 3, takes)
    separator, number = constant(args[1], STRING), constant(args[2], BIGINT)
    hint = 'write x.split_part(",", 1), or -1 for the last part'
    fits = isinstance(number, int) and 0 < abs(number) < 2**31
    string = args[0].type in (STRING, NULL)
    if not string or not isinstance(separator, str) or not separator or not isinstance(number, int) or not fits:
        raise misfit(call, args, takes, (Kind.STRING,), 'x.split_part(",", 1)', hint, wrong=(1 if fits else 2,))
    return apply(SPLIT_PART, (coerce(args[0], STRING),), STRING, call, separator, number)


def _with_separator(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
    takes = "a constant string, and strings"
    arity(call, args, 2, None, takes)
    separator = constant(args[0], STRING)
    if not isinstance(separator, str) or any(arg.type not in (STRING, NULL) for arg in args[1:]):
        raise mismatch(call, args, takes, '.cast("string") makes a string of a number, boolean, date or timestamp')
    return apply(CONCAT_WS, tuple(coerce(arg, STRING) for arg in args[1:]), STRING, call, separator)


_PADDED = tuple((Lit(length, BIGINT), Lit(fill, STRING)) for length, fill in ((0, "x"), (3, "x"), (7, "a𝄞-")))
_PARTS = tuple(
    (Lit(separator, STRING), Lit(number, BIGINT)) for separator in ("-", " ", "00", "a") for number in (1, 2, -1, -3)
)
_REPLACED = tuple(
    (Lit(old, STRING), Lit(new, STRING)) for old, new in (("a", "bb"), ("ab", ""), (" ", "$0\\1"), ("aa", "a"))
)
OPERATIONS: Final = (
    Operation("concat", "strings", _concat, "x.concat(y, …)", counts=(2,), doc="NULL if any is."),
    Operation("lower", "a string", fixed(LOWER, (STRING,), STRING), "x.lower()", doc="ASCII letters only."),
    Operation("upper", "a string", fixed(UPPER, (STRING,), STRING), "x.upper()", doc="ASCII letters only."),
    Operation("length", "a string", fixed(LENGTH, (STRING,), BIGINT), "x.length()", doc="In code points."),
    Operation("substring", "a string, start, length", fixed(SUBSTRING, (STRING, BIGINT, BIGINT), STRING), "x.substring(start, length)", counts=(3,), doc="Characters at positions start to start + length - 1, the first is 1."),
    Operation("trim", "a string", fixed(TRIM, (STRING,), STRING), "x.trim()", doc="Spaces (U+0020) only."),
    Operation("starts_with", "two strings", fixed(STARTS_WITH, (STRING, STRING), BOOLEAN), "x.starts_with(y)"),
    Operation("ends_with", "two strings", fixed(ENDS_WITH, (STRING, STRING), BOOLEAN), "x.ends_with(y)"),
    Operation("contains", "two strings", fixed(CONTAINS, (STRING, STRING), BOOLEAN), "x.contains(y)"),
    Operation("ltrim", "a string", fixed(LTRIM, (STRING,), STRING), "x.ltrim()", counts=(1,), doc="Spaces (U+0020) only."),
    Operation("rtrim", "a string", fixed(RTRIM, (STRING,), STRING), "x.rtrim()", counts=(1,), doc="Spaces (U+0020) only."),
    Operation("lpad", "a string and constants", _pad(LPAD), 'x.lpad(5, "0")', counts=(1,), constants=_PADDED, doc="What is longer is cut at its end."),
    Operation("rpad", "a string and constants", _pad(RPAD), 'x.rpad(5, "0")', counts=(1,), constants=_PADDED, doc="What is longer is cut at its end."),
    Operation("position", "two strings", fixed(POSITION, (STRING, STRING), BIGINT), "x.position(y)", counts=(2,), doc="Where the second begins in the first; the first character is at 1, and 0 is nowhere."),
    Operation("split_part", "a string and constants", _split, 'x.split_part("-", 1)', counts=(1,), constants=_PARTS, doc="The part with this number, from the end if negative; empty where there is none."),
    Operation("concat_ws", "a constant and strings", _with_separator, 'tg.concat_ws("-", x, y)', counts=(1, 2), constants=tuple((Lit(separator, STRING),) for separator in ("", "-")), constants_first=True, doc="With the separator between them; NULL is left out, and the result never NULL."),
    Operation("reverse", "a string", fixed(REVERSE, (STRING,), STRING), "x.reverse()", counts=(1,), doc="By code points."),
    Operation("initcap", "a string", fixed(INITCAP, (STRING,), STRING), "x.initcap()", counts=(1,), doc="The first letter of each word large, the others small, of all scripts. Words are made of letters, digits and accents on them; what is neither ends one: O'Neill, Jean-Luc, A_B."),
    Operation("levenshtein", "two strings", fixed(LEVENSHTEIN, (STRING, STRING), BIGINT), "x.levenshtein(y)", counts=(2,), doc="How many code points are to be changed, added or left out."),
    Operation("replace", "a string and two constants", _replace, "x.replace(old, new)", counts=(1,), constants=_REPLACED, doc="Every occurrence, left to right."),
)  # fmt: skip
