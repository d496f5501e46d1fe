"""Automata in which the variables of the rows so far say the state: for matches of which all are asked for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, combinations

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton, State, Transition
from tidegate.analysis.ordered.sequences.conditions import NotCompiled
from tidegate.analysis.ordered.sequences.ways import NO_ABSENCES, Absences, End, Guard, Ways

#: How many states there are at most.
MOST_STATES = 500
#: How many absences at most decide in one state where one variable leads.
MOST_GUARDS = 3


@dataclass(frozen=True, slots=True)
class _Members:
    """States of a pattern: those to which the variables of the rows so far lead, and those of them to which they lead
    with the rows that have not come.
    """

    all: frozenset[int]
    left: frozenset[int]


@dataclass(slots=True)
class _Variable:
    """Where one variable leads: to which states, and to which of these if no row of some has come."""

    all: set[int] = field(default_factory=set)
    left: list[tuple[int, Absences]] = field(default_factory=list)

    def outcomes(self) -> Iterator[tuple[Guard, _Members]]:
        """By which of the rows that must not come have come, the states to which it leads."""
        asked = sorted({absence for _, absences in self.left for absence in absences}, key=repr)
        if len(asked) > MOST_GUARDS:
            raise NotCompiled("too many rows must not come before the same row")
        for come in chain.from_iterable(combinations(asked, count) for count in range(len(asked) + 1)):
            left = frozenset(state for state, absences in self.left if not absences & set(come))
            yield Guard(frozenset(asked) - set(come), frozenset(come)), _Members(frozenset(self.all), left)


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
        following, ends, ends_here = dict[str, _Variable](), list[Absences](), False
        for state in sorted(current.all):
            for way in of.states[state].transitions:
                between = state != BEGIN and way.to is not None
                absences = NO_ABSENCES if adjacent and between else frozenset(way.absences)
                if way.to is None:
                    ends_here = True
                    ends += [absences] if state in current.left else []
                    continue
                leads = following.setdefault(of.variable(way.to), _Variable())
                leads.all.add(way.to)
                leads.left += [(way.to, absences)] if state in current.left else []
        ways, guards = [], []
        for guard, after in chain.from_iterable(leads.outcomes() for leads in following.values()):
            if after not in numbers:
                numbers[after] = len(numbers)
                waiting.append(after)
            ways.append(Transition(numbers[after]))
            guards.append(guard)
        if len(numbers) > MOST_STATES:
            raise NotCompiled("its rows can have too many beginnings in common")
        number, all_ways = numbers[current], (*ways, *((Transition(None),) if ends_here else ()))
        states[number] = State(of.variable(min(current.all)), False, all_ways)
        found[number] = Ways(
            (*guards, *((Guard(),) if ends_here else ())),
            tuple(End(absences) for absences in dict.fromkeys(ends) if not any(other < absences for other in ends)),
            ((0, len(all_ways)),),
            ends_here,
            not current.left,
        )
    count = range(len(numbers))
    return Automaton(tuple(states[number] for number in count)), tuple(found[number] for number in count)
