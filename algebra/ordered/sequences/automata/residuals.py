"""Beginnings of matches that may go on alike: with the same variables of rows to come."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton


@lru_cache(maxsize=256)
def residuals(of: Automaton) -> Mapping[frozenset[int], int]:
    """By the states in which a match can be whose rows so far have some variables, a number: equal where the same
    variables of rows to come end the match. So it does not depend on how the pattern is written.

    These are the states of the least automaton that is deterministic over variables: states are told apart by whether
    the match may end there, and then, as long as that tells more of them apart, by where each variable leads.
    """
    steps = _steps(of)
    ends = {number for number, state in enumerate(of.states) if state.ends}
    numbers = {states: int(bool(states & ends)) for states in steps}
    while True:
        known: dict[object, int] = {}
        refined = {
            states: known.setdefault(
                (numbers[states], frozenset((v, numbers[to]) for v, to in its.items())), len(known)
            )
            for states, its in steps.items()
        }
        if len(known) == len(set(numbers.values())):
            return refined
        numbers = refined


def _steps(of: Automaton) -> dict[frozenset[int], dict[str, frozenset[int]]]:
    """The sets of states that a match can come to, and to which set each variable leads from there."""
    steps: dict[frozenset[int], dict[str, frozenset[int]]] = {}
    waiting = [frozenset((BEGIN,))]
    while waiting:
        current = waiting.pop()
        if current not in steps:
            steps[current] = of.following(current)
            waiting += steps[current].values()
    return steps
