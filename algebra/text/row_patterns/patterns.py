"""PATTERN: which rows follow each other in a match."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.pattern import (
    EMPTY,
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
)
from tidegate.algebra.text.parsing import Part, Text, is_quoted, name_of
from tidegate.algebra.text.row_patterns.language import ABSENT, PATTERNS

#: Repetitions that a quantifier can ask for.
_MOST = 1 << 31


@dataclass(frozen=True, slots=True)
class PatternReader:
    """Reads a pattern; `ticks` says how many ticks a duration has. `absences` are those that were read, and where."""

    text: Text
    ticks: Callable[[Part], int]
    absences: dict[Absence, Part] = field(default_factory=dict)

    def read(self, tree: Part) -> Pattern:
        """The pattern that a part of the text stands for."""
        match tree.kind:
            case "step":
                return Step(self._variable(tree.parts[0]))
            case "empty":
                return EMPTY
            case "at_start" | "at_end":
                return Anchor("start" if tree.kind == "at_start" else "end")
            case "absence" | "absence_of_group":
                part = Step(name_of(tree.parts[0])) if tree.kind == "absence" else self.read(tree.parts[0])
                absence = Absence(part, self.ticks(tree.parts[1]) if len(tree.parts) > 1 else None)
                for one in (absence, *absence.apart):
                    self.absences.setdefault(one, tree)
                return absence
            case "exclusion":
                return Exclusion(self.read(tree.parts[0]))
            case "concatenation":
                return Concatenation(self._all(tree))
            case "alternation":
                return Alternation(self._all(tree))
            case "permutation":
                return Permutation(self._all(tree))
            case _:
                return self._repeated(tree)

    def _all(self, tree: Part) -> tuple[Pattern, ...]:
        return tuple(map(self.read, tree.parts))

    def _variable(self, part: Part) -> str:
        """The name of a variable; `QueryError` TG170 for a word that says something else in other languages."""
        name = name_of(part)
        if name.upper() == "NOT" and not is_quoted(part):
            raise QueryError("TG170", f"{name!r} does not fit here", hint=ABSENT, site=self.text.at(part))
        return name

    def _repeated(self, tree: Part) -> Repetition:
        counts = [self._count(part) for part in tree.parts if part.kind == "NUMBER"]
        least, most = _bounds(tree.kind, counts)
        if most is not None and (most == 0 or most < least):
            raise QueryError(
                "TG178",
                f"from {least} times to {most} times" if most else "a part that comes no times",
                hint="a part is repeated once at least, or left out of the pattern: A{1,3}, A{2,}, A{,5}",
                site=self.text.at(tree.parts[1]),
            )
        return Repetition(self.read(tree.parts[0]), least, most, tree.parts[-1].kind != "reluctant")

    def _count(self, part: Part) -> int:
        if not part.text.isdecimal() or len(part.text) > 10 or int(part.text) > _MOST:
            raise QueryError(
                "TG178",
                f"{part.text} times",
                hint="a quantifier has whole numbers that are not very large: A{1,3}",
                site=self.text.at(part),
            )
        return int(part.text)


def read_pattern(given: str, ticks: Callable[[Text, Part], int]) -> Pattern:
    """The pattern of a text that has nothing else; `QueryError` TG170 where it does not fit the grammar."""
    text = Text(given, "pattern", PATTERNS)
    return PatternReader(text, lambda part: ticks(text, part)).read(text.parse())


def _bounds(kind: str, counts: list[int]) -> tuple[int, int | None]:
    match kind, counts:
        case "any", _:
            return 0, None
        case "some", _:
            return 1, None
        case "optional", _:
            return 0, 1
        case "exactly", [count]:
            return count, count
        case "from", [least]:
            return least, None
        case "up_to", [most]:
            return 0, most
        case "range", [least, most]:
            return least, most
        case _:
            raise AssertionError(kind)
