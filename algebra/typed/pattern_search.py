"""The search for a regular expression, in time that is linear in the text.

Python's own search goes back and tries again: `(?:a+)+$` takes 2^n steps for n letters, and one such row would hold up
a program for ever. Here all ways through a pattern are followed at once, each step of each way once a character, in
the order of preference that Python, Rust and Java have in common (Pike, "The text editor sam", 1987; Cox, "Regular
expression matching: the virtual machine approach", 2009).

    >>> search(r"\\Aa+(b|c)", "aac")
    (0, 3, 2, 3)
    >>> search("(?:a+)+b", "a" * 100) is None
    True
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

#: How a pattern writes the end of the text.
END: Final = "\0end"
_BEGIN: Final = r"\A"
#: Characters that Python's search may go back in, for a pattern with at most one choice.
_SHORT: Final = 1_000
_ATOM: Final = re.compile(r"\[\^?(?:\\.|[^\]\\])+\]|\\x00|\\.|[^\\]", re.DOTALL)
_REPETITION: Final = re.compile(r"([*+?]|\{(\d+)(,(\d*))?\})(\??)")

#: Where the match and each group begin and end; None for groups that take no part.
Places = tuple[int | None, ...]


@dataclass(frozen=True, slots=True)
class _Step:
    """A character that passes the test; or to go on at one of several places, the preferred first; or a place to note,
    a border of the text, the end of the pattern.
    """

    kind: Literal["character", "go", "note", "begin", "end", "found"]
    test: Callable[[str], object] | None = None
    to: tuple[int, ...] = ()
    note: int = 0


@dataclass(slots=True)
class _Program:
    """The steps of a pattern; `groups` of it, and `choices` where Python's search may go back."""

    text: str
    steps: list[_Step] = field(default_factory=list)
    place: int = 0
    groups: int = 0
    choices: int = 0

    def read(self) -> _Program:
        self._note(0)
        self._alternatives()
        self._note(1)
        self.steps.append(_Step("found"))
        return self

    def _note(self, number: int) -> None:
        self.steps.append(_Step("note", note=number))

    def _alternatives(self) -> None:
        """Steps up to the end or a closing parenthesis."""
        begin, ends = len(self.steps), []
        while True:
            self._sequence()
            if not self.text.startswith("|", self.place):
                break
            self.place += 1
            self.choices += 1
            self._insert(begin, _Step("go"))
            ends.append(len(self.steps))
            self.steps.append(_Step("go"))
            self.steps[begin] = _Step("go", to=(begin + 1, len(self.steps)))
            begin = len(self.steps)
        for end in ends:
            self.steps[end] = _Step("go", to=(len(self.steps),))

    def _sequence(self) -> None:
        while self.place < len(self.text) and self.text[self.place] not in "|)":
            begin = len(self.steps)
            self._atom()
            repetition = _REPETITION.match(self.text, self.place)
            if repetition is not None:
                self.place = repetition.end()
                self._repeat(begin, *repetition.groups())

    def _atom(self) -> None:
        if self.text.startswith(END, self.place):
            self.place += len(END)
            self.steps.append(_Step("end"))
        elif self.text.startswith(_BEGIN, self.place):
            self.place += len(_BEGIN)
            self.steps.append(_Step("begin"))
        elif self.text.startswith("(", self.place):
            plain = self.text.startswith("(?:", self.place)
            self.place += 3 if plain else 1
            self.groups += not plain
            number = self.groups
            if not plain:
                self._note(2 * number)
            self._alternatives()
            self.place += 1
            if not plain:
                self._note(2 * number + 1)
        else:
            atom = _ATOM.match(self.text, self.place)
            assert atom is not None
            self.place = atom.end()
            self.steps.append(_Step("character", _test(atom[0])))

    def _repeat(self, begin: int, sign: str, low: str | None, ranges: str | None, high: str | None, lazy: str) -> None:
        """Repeats the steps from `begin` on; a number of times is `low`, or goes up to `high` if there is a comma."""
        self.choices += 1
        least = {"*": 0, "+": 1, "?": 0}.get(sign[0], int(low or 0))
        most = 1 if sign == "?" else None
        if sign[0] == "{":
            most = least if ranges is None else int(high) if high else None
        body = self.steps[begin:]
        del self.steps[begin:]

        def once() -> None:
            shift = len(self.steps) - begin
            for step in body:
                self.steps.append(_Step(step.kind, step.test, tuple(to + shift for to in step.to), step.note))

        def choice(inside: int, outside: int) -> _Step:
            return _Step("go", to=(outside, inside) if lazy else (inside, outside))

        for _ in range(least):
            again = len(self.steps)
            once()
        if most is None and least:
            end = len(self.steps) + 1
            self.steps.append(_Step("go", to=(end, again) if lazy else (again, end)))
            return
        if most is None:
            again = len(self.steps)
            self.steps.append(_Step("go"))
            once()
            self.steps.append(_Step("go", to=(again,)))
            self.steps[again] = choice(again + 1, len(self.steps))
            return
        gates = []
        for _ in range(most - least):
            gates.append(len(self.steps))
            self.steps.append(_Step("go"))
            once()
        for gate in gates:
            self.steps[gate] = choice(gate + 1, len(self.steps))

    def _insert(self, place: int, step: _Step) -> None:
        """A step before others, which lead among themselves."""
        moved = [_Step(one.kind, one.test, tuple(to + 1 for to in one.to), one.note) for one in self.steps[place:]]
        self.steps[place:] = [step, *moved]


@lru_cache(1 << 10)
def _test(atom: str) -> Callable[[str], object]:
    """Whether a character is one of a set, or the one that is written."""
    return re.compile(atom).match


@lru_cache(1 << 10)
def _program(text: str) -> _Program:
    return _Program(text).read()


@lru_cache(1 << 10)
def _own(text: str) -> re.Pattern[str] | None:
    """The same for Python's search; None for a border that is optional, which Python refuses."""
    try:
        return re.compile(text.replace(END, r"\Z"))
    except re.error:
        return None


def search(pattern: str, text: str, start: int = 0) -> Places | None:
    """The places of the first match from a character on, and of its groups; None where there is no match."""
    program, own = _program(pattern), _own(pattern)
    if own is not None and program.choices <= 1 and len(text) <= _SHORT:
        found = own.search(text, start)
        if found is None:
            return None
        spans = [found.span(number) for number in range(own.groups + 1)]
        return tuple(None if place < 0 else place for span in spans for place in span)
    return _search(program, text, start)


def _search(program: _Program, text: str, start: int) -> Places | None:
    steps, nothing = program.steps, (None,) * (2 * program.groups + 2)
    found: Places | None = None
    ways: list[tuple[int, Places]] = []
    seen: set[int] = set()

    def follow(first: int, noted: Places, at: int) -> None:
        """Adds the steps that take a character, or end the match, and are reached from here without taking any."""
        waiting = [(first, noted)]
        while waiting:
            place, places = waiting.pop()
            if place in seen:
                continue
            seen.add(place)
            step = steps[place]
            match step.kind:
                case "go":
                    waiting += ((to, places) for to in reversed(step.to))
                case "note":
                    waiting.append((place + 1, (*places[: step.note], at, *places[step.note + 1 :])))
                case "begin" | "end":
                    if at == (0 if step.kind == "begin" else len(text)):
                        waiting.append((place + 1, places))
                case _:
                    ways.append((place, places))

    for at in range(start, len(text) + 1):
        if found is None:
            follow(0, nothing, at)
        elif not ways:
            break
        now, ways, seen = ways, [], set()
        for place, places in now:
            step = steps[place]
            if step.kind == "found":
                found = places
                break  # what follows is not preferred
            if at < len(text) and step.test is not None and step.test(text[at]):
                follow(place + 1, places, at + 1)
    return found
