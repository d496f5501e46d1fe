"""A row pattern as an automaton with ordered transitions: what may come next, the preferred first."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Final, Literal, assert_never

from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.automata.instructions import (
    Choice,
    Enter,
    Instruction,
    Leave,
    Pass,
    Program,
    Row,
)
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
    parts_of,
    pattern_text,
    patterns_of,
)

#: The state before the first row.
BEGIN: Final = 0
#: How many steps a pattern has at most once its counts and orders are written out, and how many transitions.
MOST_STEPS: Final = 5_000
MOST_TRANSITIONS: Final = 50_000


@dataclass(frozen=True, slots=True)
class Transition:
    """A way on: to the state of the next row, or, `to` None, to the end of the match. `absences` and `anchors` are
    those on the way.

    An anchor at the start stands at transitions from the beginning alone, one at the end at those to the end of the
    match: elsewhere neither is ever true.
    """

    to: int | None
    absences: tuple[Absence, ...] = ()
    anchors: frozenset[Literal["start", "end"]] = frozenset()


@dataclass(frozen=True, slots=True)
class State:
    """A step of the pattern whose row has been matched; the beginning has no variable. Transitions are in order of
    preference. `excluded`: the row is not among those that are reported.
    """

    variable: str
    excluded: bool
    transitions: tuple[Transition, ...]

    @property
    def ends(self) -> bool:
        """Whether a match may end in this state."""
        return any(way.to is None for way in self.transitions)


@dataclass(frozen=True, slots=True)
class Automaton:
    """The states of a pattern, the beginning first, then the steps as they are written, with counts and orders written
    out. From each state the end of the match can be reached, except perhaps from the beginning.

    The rows of a match, each with its variable, are those of a path from the beginning to the end, and paths in order
    of preference are the ways of the definition in this order. Of two equal ways the preferred one is there alone.
    """

    states: tuple[State, ...]

    def variable(self, state: int) -> str:
        return self.states[state].variable

    def after(self, labels: Sequence[str]) -> frozenset[int]:
        """The states in which a match can be whose rows so far have these variables."""
        current = frozenset((BEGIN,))
        for label in labels:
            current = self.following(current).get(label, frozenset())
        return current

    def following(self, states: Iterable[int]) -> dict[str, frozenset[int]]:
        """By variable, the states to which a row that has it leads from any of these. Variables are in order of
        preference, from the least state on.

        Sets of states are the states of an automaton that is deterministic over variables: the subset construction.
        """
        found: dict[str, set[int]] = {}
        for state in sorted(states):
            for way in self.states[state].transitions:
                if way.to is not None:
                    found.setdefault(self.variable(way.to), set()).add(way.to)
        return {variable: frozenset(members) for variable, members in found.items()}


def automaton(pattern: Pattern) -> Automaton:
    """The automaton of a pattern; `QueryError` TG180 where it would be too large."""
    _check_size(pattern)
    program = Program()
    program.add(pattern, excluded=False)
    transitions, count = [], 0
    for place in (0, *program.after_rows):
        ways = _only_possible(_ways_from(program.instructions, place), at_begin=place == 0)
        transitions.append(ways)
        count += len(ways)
        if count > MOST_TRANSITIONS:
            raise _too_large(pattern, f"more than {MOST_TRANSITIONS:,} ways from step to step")
    return Automaton(
        tuple(
            State(variable, excluded, ways)
            for (variable, excluded), ways in zip(program.steps, _that_end(transitions), strict=True)
        )
    )


def size_of(pattern: Pattern) -> int:
    """How many steps, anchors and absences a pattern has once its counts and orders are written out."""
    match pattern:
        case Step() | Anchor():
            return 1
        case Absence(part):
            return size_of(part)
        case Permutation(parts):
            return factorial(min(len(parts), 20)) * sum(map(size_of, parts))
        case Repetition(part, least, most):
            return (least + 1 if most is None else most) * max(size_of(part), 1)
        case Concatenation() | Alternation() | Exclusion():
            return sum(map(size_of, parts_of(pattern)))
        case _:
            assert_never(pattern)


def _check_size(pattern: Pattern) -> None:
    if (size := size_of(pattern)) > MOST_STEPS:
        raise _too_large(pattern, f"{size:,} steps, and may have {MOST_STEPS:,}")


def _too_large(pattern: Pattern, how: str) -> QueryError:
    parts = [part for part in patterns_of(pattern) if isinstance(part, Permutation | Repetition)]
    largest = max(parts, key=_own_size, default=pattern)
    if isinstance(largest, Permutation):
        hint = "name fewer in PERMUTE, or match any of them, as in (A | B)*, and compare what the match has of each"
    else:
        hint = "a lower count; or none, as in A+, and a condition that counts: COUNT(A.*) <= 100000"
    return QueryError(
        "TG180",
        f"the pattern is too large: with counts and orders written out it has {how}",
        because=(f"{pattern_text(largest)} alone has {size_of(largest):,}",),
        hint=hint,
    )


def _own_size(pattern: Pattern) -> int:
    """By how much a repetition or permutation multiplies what is in it."""
    inside = sum(map(size_of, parts_of(pattern)))
    return size_of(pattern) // max(inside, 1)


def _ways_from(instructions: Sequence[Instruction], begin: int) -> Iterator[Transition]:
    """The transitions that lead on from a place, the preferred first, each once."""
    seen = set[tuple[int, Transition, frozenset[int]]]()
    found = set[Transition]()
    waiting = [(begin, Transition(None), frozenset[int]())]
    while waiting:
        place, way, entered = waiting.pop()
        if (place, way, entered) in seen:
            continue
        seen.add((place, way, entered))
        instruction = instructions[place] if place < len(instructions) else None
        match instruction:
            case None | Row():
                way = Transition(None if instruction is None else instruction.state, way.absences, way.anchors)
                if way not in found:
                    found.add(way)
                    yield way
            case Choice(places):
                waiting += [(to, way, entered) for to in reversed(places)]
            case Pass(mark):
                waiting.append((place + 1, _passing(way, mark), entered))
            case Enter(time):
                waiting.append((place + 1, way, entered | {time}))
            case Leave(time, to, end):
                waiting.append((end if time in entered else to, way, entered))
            case _:
                assert_never(instruction)


def _passing(way: Transition, mark: Absence | Anchor) -> Transition:
    if isinstance(mark, Anchor):
        return Transition(None, way.absences, way.anchors | {mark.at})
    return way if mark in way.absences else Transition(None, (*way.absences, mark), way.anchors)


def _only_possible(ways: Iterator[Transition], *, at_begin: bool) -> tuple[Transition, ...]:
    """Without those that an anchor forbids wherever rows lie."""
    return tuple(
        way for way in ways if ("start" not in way.anchors or at_begin) and ("end" not in way.anchors or way.to is None)
    )


def _that_end(transitions: Sequence[tuple[Transition, ...]]) -> list[tuple[Transition, ...]]:
    """Without those to states from which no match ends."""
    before: dict[int | None, list[int]] = {}
    for state, ways in enumerate(transitions):
        for way in ways:
            before.setdefault(way.to, []).append(state)
    ends: set[int | None] = {None}
    waiting: list[int | None] = [None]
    while waiting:
        new = set(before.get(waiting.pop(), ())) - ends
        ends |= new
        waiting += new
    return [tuple(way for way in ways if way.to in ends) for ways in transitions]
