"""Automata in which the variables of the rows so far say the state: for matches of which all are asked for."""

from __future__ import annotations

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton, State, Transition
from tidegate.analysis.ordered.sequences.conditions import NotCompiled

#: How many states there are at most.
MOST_STATES = 500


def deterministic(of: Automaton) -> Automaton:
    """The automaton with one way for each variable, the end of the match last. A match is one path then, though the
    pattern may have several ways to it. Its states are sets of states of the other.
    """
    begin = frozenset((BEGIN,))
    numbers, waiting = {begin: BEGIN}, [begin]
    states: dict[int, State] = {}
    while waiting:
        current = waiting.pop()
        ways = []
        for after in of.following(current).values():
            if after not in numbers:
                numbers[after] = len(numbers)
                waiting.append(after)
            ways.append(Transition(numbers[after]))
        if len(numbers) > MOST_STATES:
            raise NotCompiled("its rows can have too many beginnings in common")
        end = (Transition(None),) if any(of.states[state].ends for state in current) else ()
        states[numbers[current]] = State(of.variable(min(current)), False, (*ways, *end))
    return Automaton(tuple(states[number] for number in range(len(numbers))))
