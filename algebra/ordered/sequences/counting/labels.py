"""A row pattern as an automaton of which each sequence of labels has one path: counting paths then counts matches."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton

#: States and transitions of an automaton by which matches are counted: each row costs as many additions.
MOST_STATES: Final = 64
MOST_TRANSITIONS: Final = 512


@dataclass(frozen=True, slots=True)
class LabelledStep:
    """From a state to another one by a row with a label, the number of a variable."""

    source: int
    label: int
    target: int


@dataclass(frozen=True, slots=True)
class LabelledAutomaton:
    """States 0 (before the first row, entered by nothing), 1, ...; each state has one step at most by a label.

    The labelled matches of the pattern are the paths from 0 to a state of `accepting`, each match exactly one.
    """

    labels: tuple[str, ...]
    states: int
    steps: tuple[LabelledStep, ...]
    accepting: frozenset[int]


def labelled_automaton(of: Automaton) -> LabelledAutomaton | None:
    """The automaton of the same labelled matches in which each has one path; None where it would be too large.

    It is the subset construction over the labels, in the order in which states are found.
    """
    labels = tuple(dict.fromkeys(state.variable for state in of.states[BEGIN + 1 :]))
    begin = frozenset((BEGIN,))
    numbers: dict[frozenset[int], int] = {begin: 0}
    steps: list[LabelledStep] = []
    waiting = [begin]
    for states in waiting:
        following = of.following(states)
        for label, variable in enumerate(labels):
            if (target := following.get(variable)) is None:
                continue
            if target not in numbers:
                numbers[target] = len(numbers)
                waiting.append(target)
            steps.append(LabelledStep(numbers[states], label, numbers[target]))
        if len(numbers) > MOST_STATES or len(steps) > MOST_TRANSITIONS:
            return None
    ends = {state for state, content in enumerate(of.states) if content.ends}
    accepting = frozenset(number for states, number in numbers.items() if number and states & ends)
    return LabelledAutomaton(labels, len(numbers), tuple(steps), accepting)
