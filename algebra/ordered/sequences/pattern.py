"""Row patterns: regular expressions over variables, with rows that must not come."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import permutations
from typing import Literal, TypeAlias, assert_never


@dataclass(frozen=True, slots=True)
class Step:
    """One row, for which the variable's condition is true."""

    variable: str


@dataclass(frozen=True, slots=True)
class Concatenation:
    """The parts one after the other; of none, the empty pattern."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Alternation:
    """One of the parts; those before are preferred."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Repetition:
    """The part so many times; `most` None: any number of times. Greedy: more times are preferred, else fewer."""

    part: Pattern
    least: int
    most: int | None
    greedy: bool = True


@dataclass(frozen=True, slots=True)
class Permutation:
    """The parts in any order; preferred is the order that comes first by the places where they are written."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True, slots=True)
class Exclusion:
    """The part, of which the rows are not among the rows of a match that are reported."""

    part: Pattern


@dataclass(frozen=True, slots=True)
class Anchor:
    """No row, but the start or the end of the partition."""

    at: Literal["start", "end"]


@dataclass(frozen=True, slots=True)
class Absence:
    """No row that satisfies a variable's condition; or no rows that are the part, which is a group then: in order, each
    with its condition true, and any rows between them.

    Between two steps: none between the rows of these, with `within` none up to so many ticks after the first of them.
    Before the first row of a match: none within `within` ticks before it; after the last row: none within `within`
    ticks after it. Rows of the match do not count.
    """

    part: Pattern
    within: int | None = None

    @property
    def is_group(self) -> bool:
        """Whether several rows, or one of several variables, must not come."""
        return not isinstance(self.part, Step)

    @property
    def variable(self) -> str:
        """The variable of the one row that must not come."""
        assert isinstance(self.part, Step)
        return self.part.variable

    @property
    def apart(self) -> tuple[Absence, ...]:
        """Absences that together say the same: of alternatives none may come."""
        if not isinstance(self.part, Alternation):
            return (self,)
        return tuple(one for part in self.part.parts for one in Absence(part, self.within).apart)


Pattern: TypeAlias = Step | Concatenation | Alternation | Repetition | Permutation | Exclusion | Anchor | Absence
EMPTY = Concatenation(())


def parts_of(pattern: Pattern) -> tuple[Pattern, ...]:
    """The patterns that a pattern is made of."""
    match pattern:
        case Step() | Anchor() | Absence():
            return ()
        case Concatenation(parts) | Alternation(parts) | Permutation(parts):
            return parts
        case Repetition() | Exclusion():
            return (pattern.part,)
        case _:
            assert_never(pattern)


def patterns_of(pattern: Pattern) -> Iterator[Pattern]:
    """The pattern and all patterns inside it, in the order in which they are written."""
    stack = [pattern]
    while stack:
        current = stack.pop()
        yield current
        stack.extend(reversed(parts_of(current)))


def variables_of(pattern: Pattern) -> tuple[str, ...]:
    """The variables that rows of a match can have, in the order in which they are first written."""
    return tuple(dict.fromkeys(part.variable for part in patterns_of(pattern) if isinstance(part, Step)))


def absent_in(pattern: Pattern) -> tuple[str, ...]:
    """The variables of rows that must not come."""
    absences = (part for part in patterns_of(pattern) if isinstance(part, Absence))
    return tuple(dict.fromkeys(variable for absence in absences for variable in variables_of(absence.part)))


def is_nullable(pattern: Pattern) -> bool:
    """Whether no row at all can be a match of the pattern."""
    match pattern:
        case Step():
            return False
        case Anchor() | Absence():
            return True
        case Concatenation(parts) | Permutation(parts):
            return all(map(is_nullable, parts))
        case Alternation(parts):
            return any(map(is_nullable, parts))
        case Repetition(part, least):
            return least == 0 or is_nullable(part)
        case Exclusion(part):
            return is_nullable(part)
        case _:
            assert_never(pattern)


def longest(pattern: Pattern) -> int | None:
    """How many rows a match has at most; None: there is no such number."""
    match pattern:
        case Step():
            return 1
        case Anchor() | Absence():
            return 0
        case Concatenation(parts) | Permutation(parts):
            return _total(map(longest, parts), sum)
        case Alternation(parts):
            return _total(map(longest, parts), max)
        case Repetition(part, _, most):
            return _repeated(longest(part), most)
        case Exclusion(part):
            return longest(part)
        case _:
            assert_never(pattern)


def longest_by_variable(pattern: Pattern) -> dict[str, int | None]:
    """How many rows with each variable a match has at most; None: there is no such number."""
    match pattern:
        case Step(variable):
            return {variable: 1}
        case Anchor() | Absence():
            return {}
        case Concatenation(parts) | Permutation(parts):
            return _totals(map(longest_by_variable, parts), sum)
        case Alternation(parts):
            return _totals(map(longest_by_variable, parts), max)
        case Repetition(part, _, most):
            return {variable: _repeated(rows, most) for variable, rows in longest_by_variable(part).items()}
        case Exclusion(part):
            return longest_by_variable(part)
        case _:
            assert_never(pattern)


def shortest(pattern: Pattern) -> int:
    """How many rows a match has at least."""
    match pattern:
        case Step():
            return 1
        case Anchor() | Absence():
            return 0
        case Concatenation(parts) | Permutation(parts):
            return sum(map(shortest, parts))
        case Alternation(parts):
            return min(map(shortest, parts))
        case Repetition(part, least):
            return least * shortest(part)
        case Exclusion(part):
            return shortest(part)
        case _:
            assert_never(pattern)


def _repeated(rows: int | None, most: int | None) -> int | None:
    if rows == 0 or most == 0:
        return 0
    return None if rows is None or most is None else rows * most


def _total(rows: Iterable[int | None], combined: Callable[[list[int]], int]) -> int | None:
    counted = list(rows)
    known = [number for number in counted if number is not None]
    return combined(known or [0]) if len(known) == len(counted) else None


def _totals(parts: Iterable[Mapping[str, int | None]], combined: Callable[[list[int]], int]) -> dict[str, int | None]:
    counted: dict[str, list[int | None]] = {}
    for part in parts:
        for variable, rows in part.items():
            counted.setdefault(variable, []).append(rows)
    return {variable: _total(rows, combined) for variable, rows in counted.items()}


def orders_of(pattern: Permutation) -> Alternation:
    """The permutation as the orders that it allows, the preferred one first."""
    return Alternation(tuple(Concatenation(order) for order in permutations(pattern.parts)))


#: How closely the signs of a pattern bind: alternation, concatenation, and what a quantifier stands behind.
_ALTERNATION, _CONCATENATION, _QUANTIFIED = range(3)


def pattern_text(pattern: Pattern, ticks: Callable[[int], str] = str) -> str:
    """The pattern as SQL writes it; an absence of N as `!N`, or `!N[10s]`, of a group as `!(B C)`. `ticks` is the text
    of a number of ticks.
    """
    return _text(pattern, ticks, _ALTERNATION)


def _text(pattern: Pattern, ticks: Callable[[int], str], binding: int) -> str:
    match pattern:
        case Step(variable):
            return variable
        case Absence(part, within):
            absent = _text(part, ticks, _ALTERNATION)
            return f"!{f'({absent})' if pattern.is_group else absent}{'' if within is None else f'[{ticks(within)}]'}"
        case Anchor(at):
            return "^" if at == "start" else "$"
        case Exclusion(part):
            return f"{{- {_text(part, ticks, _ALTERNATION)} -}}"
        case Permutation(parts):
            return f"PERMUTE({', '.join(_text(part, ticks, _ALTERNATION) for part in parts)})"
        case Concatenation(()):
            return "()"
        case Concatenation(parts):
            text = " ".join(_text(part, ticks, _CONCATENATION if len(parts) > 1 else binding) for part in parts)
            return f"({text})" if binding >= _QUANTIFIED or (binding == _CONCATENATION and len(parts) > 1) else text
        case Alternation(parts):
            text = " | ".join(_text(part, ticks, _CONCATENATION) for part in parts)
            return f"({text})" if binding > _ALTERNATION else text
        case Repetition(part):
            text = f"{_text(part, ticks, _QUANTIFIED)}{_quantifier(pattern)}"
            return f"({text})" if binding >= _QUANTIFIED else text
        case _:
            assert_never(pattern)


def _quantifier(repetition: Repetition) -> str:
    least, most = repetition.least, repetition.most
    match least, most:
        case 0, None:
            text = "*"
        case 1, None:
            text = "+"
        case 0, 1:
            text = "?"
        case _, None:
            text = f"{{{least},}}"
        case _:
            text = f"{{{least}}}" if least == most else f"{{{least},{most}}}"
    return text if repetition.greedy else f"{text}?"
