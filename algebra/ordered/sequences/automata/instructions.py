"""A row pattern as instructions, one after the other, with counts and orders written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, assert_never

from tidegate.algebra.ordered.sequences.pattern import (
    Absence,
    Alternation,
    Anchor,
    Concatenation,
    Exclusion,
    Pattern,
    Permutation,
    Repetition,
    Step,
    orders_of,
)


@dataclass(frozen=True, slots=True)
class Row:
    """A row is matched; `state` is the one then."""

    state: int


@dataclass(frozen=True, slots=True)
class Choice:
    """It goes on at one of these places, the first ones preferred."""

    places: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Pass:
    """An absence or an anchor."""

    mark: Absence | Anchor


@dataclass(frozen=True, slots=True)
class Enter:
    """A time of a repetition begins after which there may be more, and need not be."""

    time: int


@dataclass(frozen=True, slots=True)
class Leave:
    """Such a time ends. It goes on at `place`, or, without a row since it began, at `end`: a time without rows is the
    last one.
    """

    time: int
    place: int
    end: int


Instruction: TypeAlias = Row | Choice | Pass | Enter | Leave


class Program:
    """The pattern as instructions, one after the other."""

    def __init__(self) -> None:
        self.instructions: list[Instruction] = []
        #: Variable and exclusion of each state.
        self.steps: list[tuple[str, bool]] = [("", False)]
        self.times = 0

    @property
    def after_rows(self) -> list[int]:
        """Where it goes on after each row, in the order of states."""
        return [place + 1 for place, instruction in enumerate(self.instructions) if isinstance(instruction, Row)]

    def add(self, pattern: Pattern, *, excluded: bool) -> None:
        match pattern:
            case Step(variable):
                self.instructions.append(Row(len(self.steps)))
                self.steps.append((variable, excluded))
            case Anchor():
                self.instructions.append(Pass(pattern))
            case Absence():
                self.instructions += [Pass(absence) for absence in pattern.apart]
            case Concatenation(parts):
                for part in parts:
                    self.add(part, excluded=excluded)
            case Exclusion(part):
                self.add(part, excluded=True)
            case Permutation():
                self.add(orders_of(pattern), excluded=excluded)
            case Alternation(parts):
                self._one_of(parts, excluded)
            case Repetition():
                self._repeated(pattern, excluded)
            case _:
                assert_never(pattern)

    def _reserve(self) -> int:
        """The place of an instruction that is known later."""
        self.instructions.append(Choice(()))
        return len(self.instructions) - 1

    def _one_of(self, parts: tuple[Pattern, ...], excluded: bool) -> None:
        choice, begins, ends = self._reserve(), [], []
        for part in parts:
            begins.append(len(self.instructions))
            self.add(part, excluded=excluded)
            ends.append(self._reserve())
        self.instructions[choice] = Choice(tuple(begins))
        for end in ends:
            self.instructions[end] = Choice((len(self.instructions),))

    def _repeated(self, repetition: Repetition, excluded: bool) -> None:
        """The times that there are at least, then those beyond. After the last one that must be it can end."""
        least, most = repetition.least, repetition.most
        beyond = 1 if most is None else most - least
        choices, leaves = [], []
        for time in range(least + beyond):
            if time < least - 1 or not beyond:
                self.add(repetition.part, excluded=excluded)
                continue
            if time >= least:
                choices.append(self._reserve())
            number, self.times = self.times, self.times + 1
            self.instructions.append(Enter(number))
            self.add(repetition.part, excluded=excluded)
            leaves.append((self._reserve(), number))
        end = len(self.instructions)
        for choice in choices:
            self.instructions[choice] = Choice((choice + 1, end) if repetition.greedy else (end, choice + 1))
        for leave, number in leaves:
            again = choices[-1] if most is None and leave == leaves[-1][0] else leave + 1
            self.instructions[leave] = Leave(number, again, end)
