"""Automata in which the variables of the rows so far say the state: for matches of which all are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations
from typing import TypeAlias

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton, State, Transition
from tidegate.analysis.ordered.sequences.programs import NotCompiled
from tidegate.analysis.ordered.sequences.ways import NO_ABSENCES, Absences, End, Guard, Ways

#: How many states there are at most.
MOST_STATES = 500
#: How many absences at most decide in one state where one variable leads.
MOST_GUARDS = 3

#: A way on or, to None, the end of a match, with the rows that must not come on it.
_Way: TypeAlias = tuple[int | None, Absences]


@dataclass(frozen=True, slots=True)
class _Members:
    """States of a pattern: those to which the variables of the rows so far lead, and those of them to which they lead
    with the rows that have not come.
    """

    all: frozenset[int]
    left: frozenset[int]


def deterministic(of: Automaton, *, adjacent: bool) -> tuple[Automaton, tuple[Ways, ...]]:
    """The automaton with one way for each variable and what has come that must not, the end of the match last; and its
    ways. A match is one path then, though the pattern may have several ways to it. Its states are sets of states of the
    other. `adjacent`: no rows lie between those of a match, so none that must not.

    Of what has come the words know nothing: a state in which no match is left still says how others would go on.
    """
    begin = _Members(frozenset((BEGIN,)), frozenset((BEGIN,)))
    numbers, waiting = {begin: BEGIN}, [begin]
    states, found = dict[int, State](), dict[int, Ways]()
    while waiting:
        current = waiting.pop()
        left = [way for state in sorted(current.left) for way in _ways(of, state, adjacent=adjacent)]
        ways, guards = list[Transition](), list[Guard]()
        for members in of.following(current.all).values():
            for guard, after in _outcomes(members, [way for way in left if way[0] in members]):
                if after not in numbers:
                    numbers[after] = len(numbers)
                    waiting.append(after)
                ways.append(Transition(numbers[after]))
                guards.append(guard)
        if len(numbers) > MOST_STATES:
            raise NotCompiled("its rows can have too many beginnings in common")
        ends_here = any(of.states[state].ends for state in current.all)
        if ends_here:
            ways.append(Transition(None))
            guards.append(Guard())
        number = numbers[current]
        states[number] = State(of.variable(min(current.all)), False, tuple(ways))
        found[number] = Ways(tuple(guards), _ends(left), ((0, len(ways)),), ends_here, not current.left)
    count = range(len(numbers))
    return Automaton(tuple(states[number] for number in count)), tuple(found[number] for number in count)


def _ways(of: Automaton, state: int, *, adjacent: bool) -> Iterator[_Way]:
    """The ways on from a state of the pattern."""
    for way in of.states[state].transitions:
        between = state != BEGIN and way.to is not None
        yield way.to, NO_ABSENCES if adjacent and between else frozenset(way.absences)


def _outcomes(members: frozenset[int], ways: Sequence[_Way]) -> Iterator[tuple[Guard, _Members]]:
    """Where these ways lead, all with one variable, by which of the rows have come that must not on some of them."""
    asked = sorted({absence for _, absences in ways for absence in absences}, key=repr)
    if len(asked) > MOST_GUARDS:
        raise NotCompiled("too many rows must not come before the same row")
    for come in chain.from_iterable(combinations(asked, count) for count in range(len(asked) + 1)):
        left = frozenset(to for to, absences in ways if to is not None and not absences & set(come))
        yield Guard(frozenset(asked) - set(come), frozenset(come)), _Members(members, left)


def _ends(ways: Sequence[_Way]) -> tuple[End, ...]:
    """The ends of a match, but for those where more must not come than at another one."""
    ends = dict.fromkeys(absences for to, absences in ways if to is None)
    return tuple(End(absences) for absences in ends if not any(other < absences for other in ends))
