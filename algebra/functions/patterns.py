"""Patterns of text: LIKE, and the regular expressions that mean the same in Python, Polars (Rust) and Spark (Java).

A pattern is read, checked and written anew for each of them. What differs between them is refused with the reason.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.rules import Operation, Rule, arity, coerce, constant, misfit
from tidegate.algebra.terms import Call, Lit
from tidegate.algebra.typed.kernels import Kernel, always
from tidegate.algebra.typed.pattern_search import END, search
from tidegate.algebra.typed.terms import TypedTerm, apply
from tidegate.algebra.types import BIGINT, BOOLEAN, NULL, STRING, DataType, Kind

# --- regular expressions ---------------------------------------------------------------------------------------------

_CLASSES: Final = {"d": "0-9", "w": "0-9A-Za-z_", "s": r" \t\n\r\x0B\x0C"}
_CONTROLS: Final = {"n": "\n", "r": "\r", "t": "\t"}
_NUL: Final = r"\x00"
_SPECIAL: Final = frozenset("\\^$.|?*+()[]{}")
#: Larger repetitions would make programs of megabytes of Rust's patterns.
_MOST_REPEATED: Final = 1000
#: Steps of a pattern with its repetitions written out. Rust takes up to a kilobyte for one, and 10 megabytes for all.
_MOST_STEPS: Final = 10_000
#: Parentheses in each other, and groups. Rust takes 250 levels, of which one of these can need four.
_MOST_DEPTH: Final = 50
_MOST_GROUPS: Final = 100


@dataclass(frozen=True, slots=True)
class Pattern:
    """A regular expression as all engines understand it, but for the end of the text; how many groups it has."""

    text: str
    groups: int
    empty: bool  # whether it can match no characters

    def for_others(self) -> str:
        """For Rust and Java, where `\\Z` is unknown, or also matches before a last line break."""
        return self.text.replace(END, r"\z")


@lru_cache(1 << 10)
def read_pattern(text: str) -> Pattern:
    """The pattern; `QueryError` TG134 for what is none, or would not mean the same on all engines."""
    reader = _Reader(text)
    written, empty = reader.alternatives()
    if reader.place < len(text):
        raise reader.refused("a parenthesis is closed that was not opened")
    return Pattern(written, reader.groups, empty)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.place, self.groups = text, 0, 0
        self.steps = 0  # with repetitions written out
        self.depth = 0

    def refused(self, why: str, hint: str = "") -> QueryError:
        marked = f"{self.text!r}, at character {self.place + 1}"
        return QueryError(
            "TG134",
            f"no regular expression: {why}: {marked}",
            hint=hint or "there are literals, . ^ $ | ( ) (?: ) [ ] \\d \\w \\s, and * + ? {2,5} with ? after them",
        )

    def _next(self) -> str:
        return self.text[self.place : self.place + 1]

    def _take(self, wanted: str) -> bool:
        if self.text.startswith(wanted, self.place):
            self.place += len(wanted)
            return True
        return False

    def alternatives(self) -> tuple[str, bool]:
        """Text and whether it can match nothing, up to the end or a closing parenthesis."""
        parts, empty = [], False
        while True:
            alternative, can_be_empty = self._sequence()
            if not alternative:
                self._add_steps(1, self.place)
            parts.append(alternative)
            empty |= can_be_empty
            if not self._take("|"):
                break
        return "|".join(parts), empty

    def _sequence(self) -> tuple[str, bool]:
        parts, empty = [], True
        while self._next() not in ("", "|", ")"):
            before, steps = self.groups, self.steps
            start = self.place
            atom, can_be_empty = self._atom()
            quantifier, least, most = self._quantifier()
            if quantifier:
                if most is None or most > 1:
                    if can_be_empty:
                        self.place = start
                        raise self.refused(
                            "what is repeated can match no characters", "engines end such loops differently"
                        )
                    if self.groups > before:
                        self.place = start
                        raise self.refused("a group that is repeated", "write (?:...) around what is repeated")
                atom, can_be_empty = atom + quantifier, can_be_empty or least == 0
                self.steps += (self.steps - steps) * (max(least, most or 1, 1) - 1)
            self._add_steps(int(least != most), start)
            parts.append(atom)
            empty &= can_be_empty
        return "".join(parts), empty

    def _add_steps(self, more: int, start: int) -> None:
        """Steps that take no character: the choice of a repetition, an alternative of nothing."""
        self.steps += more
        if self.steps > _MOST_STEPS:
            self.place = start
            raise self.refused(_many(self.steps), "repetitions of repetitions multiply: take smaller numbers")

    def _quantifier(self) -> tuple[str, int, int | None]:
        for sign, least, most in (("*", 0, None), ("+", 1, None), ("?", 0, 1)):
            if self._take(sign):
                return self._lazy(sign), least, most
        if self._next() != "{":
            return "", 1, 1
        repetition = re.compile(r"\{([0-9]{1,4})(,([0-9]{0,4}))?\}").match(self.text, self.place)
        if repetition is None:
            raise self.refused("{ begins no repetition", "write \\{ for the character")
        least = int(repetition[1])
        most = least if repetition[2] is None else int(repetition[3]) if repetition[3] else None
        if max(least, most or 0) > _MOST_REPEATED or (most is not None and most < least):
            raise self.refused(f"repetitions go up to {_MOST_REPEATED}, the smaller number first")
        self.place = repetition.end()
        return self._lazy(repetition[0]), least, most

    def _lazy(self, quantifier: str) -> str:
        if self._next() in ("*", "+", "{"):
            raise self.refused("a repetition of a repetition")
        return quantifier + "?" if self._take("?") else quantifier

    def _atom(self) -> tuple[str, bool]:
        self.steps += 1
        if self._take("("):
            plain = self._take("?:")
            if not plain:
                if self._next() == "?":
                    raise self.refused("(? begins a group that engines know differently", "there are (...) and (?:...)")
                self.groups += 1
            self.depth += 1
            if self.depth > _MOST_DEPTH:
                raise self.refused(f"parentheses are nested more than {_MOST_DEPTH} deep")
            if self.groups > _MOST_GROUPS:
                raise self.refused(f"it has more than {_MOST_GROUPS} groups", "(?:...) is none")
            inside, empty = self.alternatives()
            if not self._take(")"):
                raise self.refused("a parenthesis is not closed")
            self.depth -= 1
            return f"({'?:' if plain else ''}{inside})", empty
        if self._take("["):
            return self._set(), False
        for sign, written, empty in ((".", r"[^\n]", False), ("^", r"\A", True), ("$", END, True)):
            if self._take(sign):
                return written, empty
        if self._take("\\"):
            if self._next() in _CLASSES:
                return f"[{_CLASSES[self._character()]}]", False
            if self._next().lower() in _CLASSES:
                self.steps += 1
                return f"[^{_CLASSES[self._character().lower()]}]", False
            return self._escaped(), False
        if self._next() in _SPECIAL:
            raise self.refused(
                f"{self._next()} without what it belongs to", f"write \\{self._next()} for the character"
            )
        return literal(self._character()), False

    def _character(self) -> str:
        self.place += 1
        return self.text[self.place - 1]

    def _escaped(self) -> str:
        if not self._next():
            raise self.refused("nothing follows the last \\")
        if self._next() in _CONTROLS:
            return "\\" + self._character()
        if self._next().isalnum():
            raise self.refused(f"\\{self._next()} is not the same on all engines")
        return literal(self._character())

    def _set(self) -> str:
        others = self._take("^")
        parts = ["^" if others else ""]
        while not self._take("]"):
            if not self._next():
                raise self.refused("a [ is not closed")
            if self._next() == "[":
                raise self.refused("a [ inside of a [ ]", "write \\[ for the character")
            escaped = self._take("\\")
            if escaped and self._next() in _CLASSES:
                parts.append(_CLASSES[self._character()])
                continue
            low = self._member(escaped=escaped)
            if self._next() == "-" and self.text[self.place + 1 : self.place + 2] not in ("]", ""):
                self.place += 1
                high = self._member(escaped=self._take("\\"))
                if _meant(high) < _meant(low):
                    raise self.refused("a range of characters from the later to the earlier")
                low += "-" + high
            parts.append(low)
        if len(parts) == 1:
            raise self.refused("[ ] without a character")
        self.steps += sum(map(len, parts)) // (2 if others else 4) + 1
        return f"[{''.join(parts)}]"

    def _member(self, *, escaped: bool) -> str:
        return self._escaped() if escaped else literal(self._character())


def _many(steps: int) -> str:
    return f"it has {steps:,} steps, and at most {_MOST_STEPS:,} are allowed"


def literal(character: str) -> str:
    """A character as itself in every dialect, in a set and outside."""
    if character == "\0":
        return _NUL
    plain = character.isalnum() or not character.isascii() or character in "_<> \n\t\r"
    return character if plain else "\\" + character


def _meant(written: str) -> str:
    """The character that a literal, or an escaped letter, stands for."""
    return "\0" if written == _NUL else _CONTROLS.get(written[1:], written[-1])


@lru_cache(1 << 10)
def like_pattern(text: str) -> Pattern:
    """A pattern of LIKE as a regular expression: % is any characters, _ one; \\ takes the next as itself."""
    parts, place = [], 0
    while place < len(text):
        character = text[place]
        if character == "\\" and place + 1 < len(text):
            place += 1
            parts.append(literal(text[place]))
        else:
            parts.append({"%": r"[\s\S]*", "_": r"[\s\S]"}.get(character, literal(character)))
        place += 1
    return Pattern(rf"\A{''.join(parts)}{END}", 0, empty=False)


# --- kernels ---------------------------------------------------------------------------------------------------------


def _like(text: str, pattern: str) -> bool:
    return search(like_pattern(pattern).text, text) is not None


def _matches(text: str, pattern: str) -> bool:
    return search(read_pattern(pattern).text, text) is not None


def _extract(text: str, pattern: str, group: int) -> str | None:
    found = search(read_pattern(pattern).text, text)
    if found is None:
        return None
    begin, end = found[2 * group], found[2 * group + 1]
    return "" if begin is None or end is None else text[begin:end]


def _replace(text: str, pattern: str, new: str) -> str:
    """All matches replaced; the rule takes no pattern that can match no characters. Each search may read the text to
    its end, so that time may be quadratic in the text.
    """
    written, parts, place = read_pattern(pattern).text, [], 0
    while (found := search(written, text, place)) is not None:
        begin, end = found[0], found[1]
        assert begin is not None
        assert end is not None
        parts += [text[place:begin], new]
        place = end
    return "".join((*parts, text[place:]))


LIKE = Kernel("like", _like)
MATCHES = Kernel("regexp_like", _matches)
EXTRACT = Kernel("regexp_extract", _extract, nullable=always, mentions=2)
REPLACE = Kernel("regexp_replace", _replace)
KERNELS: Final = (LIKE, MATCHES, EXTRACT, REPLACE)

# --- rules -----------------------------------------------------------------------------------------------------------


def _pattern_rule(
    kernel: Kernel, takes: str, result: DataType, written: str, check: Callable[..., str], *types: DataType
) -> Rule:
    """A string, a constant pattern, and more constants of these types; `check` takes all constants, and says what the
    last may be if it is wrong.
    """

    def rule(call: Call, args: tuple[TypedTerm, ...]) -> TypedTerm:
        arity(call, args, 2 + len(types), 2 + len(types), takes)
        constants = [constant(arg, type_) for arg, type_ in zip(args[1:], (STRING, *types), strict=True)]
        given = [value for value in constants if isinstance(value, str | int)]
        if args[0].type not in (STRING, NULL) or len(given) < len(constants):
            raise misfit(call, args, takes, (Kind.STRING,), written)
        if hint := check(*given):
            raise misfit(call, args, takes, (Kind.STRING,), written, hint, wrong=(len(given),))
        return apply(kernel, (coerce(args[0], STRING),), result, call, *given)

    return rule


def _has_group(pattern: str, group: int) -> str:
    groups = read_pattern(pattern).groups
    if 0 <= group <= groups:
        return ""
    return (
        f"0 is all of the match, and 1 to {groups} are its groups"
        if groups
        else "0 is all of the match; a group is written (...)"
    )


#: How others refer to a group in the text that replaces a match.
_REFERENCE: Final = re.compile(r"\\(\d|g<)|\$(\d|\{)")


def _replaceable(pattern: str, new: str) -> str:
    if read_pattern(pattern).empty:
        raise QueryError(
            "TG134",
            f"a pattern that matches no characters is replaced differently by engines: {pattern!r}",
            hint="take + instead of *",
        )
    if reference := _REFERENCE.search(new):
        raise QueryError(
            "TG134",
            f"regexp_replace takes text as it is, and {reference[0]!r} would refer to a group: {new!r}",
            hint=f"x.regexp_extract({pattern!r}, 1) is the first group; texts are put together with tg.concat(a, b)",
        )
    return ""


def _readable(pattern: str) -> str:
    read_pattern(pattern)
    return ""


def _complete(pattern: str) -> str:
    """`QueryError` TG134 for a pattern of LIKE whose last \\ takes no character as itself, or of too many steps."""
    if len(pattern) > _MOST_STEPS:
        raise QueryError(
            "TG134",
            f"no pattern of like: {_many(len(pattern))}: {pattern!r}",
            hint="x.contains(text) searches for plain text of any length, and x == text compares whole texts",
        )
    if (len(pattern) - len(pattern.rstrip("\\"))) % 2:
        raise QueryError(
            "TG134",
            f"nothing follows the last \\ of a pattern of like: {pattern!r}",
            hint="\\ takes the next character as itself; write it twice for one of them",
        )
    return ""


def _texts(*values: str) -> tuple[Lit, ...]:
    return tuple(Lit(value, STRING) for value in values)


_SAMPLES = (r"a", r"^\d+$", r"(?:a|aa)b?", r"[^a-c\s]+", r"\.[0-9]{1,3}|T", r"^$", r".", r"e.?x?", r"\w+?\W", "[é\\-z]")
_WITH_GROUPS = ((r"(\d+)-(\d+)", 2), (r"(a)|(b)", 2), (r"^(.)(.*)$", 1), (r"[A-Z]", 0), (r"(\d{2}):?(?:\d{2})?", 1))
OPERATIONS: Final = (
    Operation("like", "a string and a constant", _pattern_rule(LIKE, "a string and a constant pattern", BOOLEAN, 'x.like("a%")', _complete), 'x.like("a%")', counts=(1,), constants=tuple(_texts(pattern) for pattern in ("%", "a%", "%b", "_", "%a%b%", "1.5\\\\%", "__", "")), doc="% is any characters, _ is one; \\ takes the next as itself, which there has to be."),
    Operation("regexp_like", "a string and a constant", _pattern_rule(MATCHES, "a string and a constant pattern", BOOLEAN, 'x.regexp_like("^a+$")', _readable), 'x.regexp_like("^a+$")', counts=(1,), constants=tuple(_texts(pattern) for pattern in _SAMPLES), doc="Whether the pattern matches somewhere."),
    Operation("regexp_extract", "a string and constants", _pattern_rule(EXTRACT, "a string, a constant pattern and the number of one of its groups", STRING, 'x.regexp_extract("(a+)b", 1)', _has_group, BIGINT), 'x.regexp_extract("(a+)b", 1)', counts=(1,), constants=tuple((Lit(pattern, STRING), Lit(group, BIGINT)) for pattern, group in _WITH_GROUPS), doc="The group of the first match, 0 is all of it; NULL where there is none, empty where the group is no part of it."),
    Operation("regexp_replace", "a string and constants", _pattern_rule(REPLACE, "a string, a constant pattern and a constant string", STRING, 'x.regexp_replace("a+", "b")', _replaceable, STRING), 'x.regexp_replace("a+", "b")', counts=(1,), constants=tuple(_texts(pattern, "$\\-") for pattern in (r"\d", r"a+", r"[^\w]", r"(a)|b")), doc="Every match, left to right, by the text as it is; references to groups, such as \\1 and $1, are refused."),
)  # fmt: skip
