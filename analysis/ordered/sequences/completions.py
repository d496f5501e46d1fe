"""How matches may end with rows to come, as far as limits ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton
from tidegate.algebra.ordered.sequences.definition import Point
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.analysis.ordered.sequences.conditions import NotCompiled

#: How many sets of variables are told apart at most.
MOST_COMPLETIONS = 4_000

Variables: TypeAlias = frozenset[str]


@dataclass(frozen=True, slots=True)
class Completion:
    """A way to end a match with rows to come, at least one: by limit, whether these have a row that its later point
    names, and one that its earlier point names.
    """

    later: tuple[bool, ...]
    earlier: tuple[bool, ...]


def completions_of(
    node: Sequences, of: Automaton, parts: Sequence[Sequence[tuple[int, int]]]
) -> tuple[tuple[tuple[Completion, ...], ...], ...]:
    """The completions from each state by each of some parts of its ways on, each from one place to another."""
    ends = _ends(node, of)
    return tuple(
        tuple(
            tuple(
                dict.fromkeys(
                    _completion(node, variables)
                    for way in state.transitions[begin:end]
                    if way.to is not None
                    for variables in sorted(ends[way.to], key=sorted)
                )
            )
            for begin, end in its
        )
        for state, its in zip(of.states, parts, strict=True)
    )


def _ends(node: Sequences, of: Automaton) -> dict[int, set[Variables]]:
    """From each state, with its own row among those to come: the sets of their variables, of those that limits name."""
    points = [point for limit in node.limits for point in (limit.later, limit.earlier) if point.variable is not None]
    named = {variable for point in points for variable in node.resolved(point.variable or "")}
    before: dict[int, list[int]] = {}
    for number, state in enumerate(of.states):
        for way in state.transitions:
            if way.to is not None:
                before.setdefault(way.to, []).append(number)
    own = {number: frozenset({state.variable} & named) for number, state in enumerate(of.states)}
    ends: dict[int, set[Variables]] = {number: set() for number in range(len(of.states))}
    waiting = [(number, own[number]) for number, state in enumerate(of.states) if number != BEGIN and state.ends]
    total = 0
    while waiting:
        number, variables = waiting.pop()
        if variables in ends[number]:
            continue
        ends[number].add(variables)
        total += 1
        if total > MOST_COMPLETIONS:
            raise NotCompiled("its limits name too many variables")
        waiting += [(state, variables | own[state]) for state in before.get(number, ()) if state != BEGIN]
    return ends


def _completion(node: Sequences, variables: Variables) -> Completion:
    def has(point: Point) -> bool:
        return point.variable is not None and any(v in variables for v in node.resolved(point.variable))

    return Completion(
        tuple(has(limit.later) for limit in node.limits), tuple(has(limit.earlier) for limit in node.limits)
    )
