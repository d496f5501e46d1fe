"""How matches may end with rows to come, as far as limits and conditions ask for it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton
from tidegate.algebra.ordered.sequences.definition import Point
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.analysis.ordered.sequences.demands import Demand
from tidegate.analysis.ordered.sequences.programs import NotCompiled

#: How many kinds of ends are told apart at most.
MOST_COMPLETIONS = 4_000


@dataclass(frozen=True, slots=True, order=True)
class _Rest:
    """Rows to come up to the end of a match: those of their variables that limits name, and the demands of conditions
    that are known before them: all that are `asked`, and of these those of which no first row comes before, `bare`.
    """

    variables: tuple[str, ...] = ()
    asked: tuple[bool, ...] = ()
    bare: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Completion:
    """A way to end a match with rows to come, at least one: by limit, whether these have a row that its later point
    names, and one that its earlier point names. By demand, whether it is asked with these rows, and whether also if the
    first row that it reads is not there.
    """

    later: tuple[bool, ...]
    earlier: tuple[bool, ...]
    asked: tuple[bool, ...]
    bare: tuple[bool, ...]


def completions_of(
    node: Sequences, of: Automaton, parts: Sequence[Sequence[tuple[int, int]]], demands: Sequence[Demand]
) -> tuple[tuple[tuple[Completion, ...], ...], ...]:
    """The completions from each state by each of some parts of its ways on, each from one place to another."""
    ends = _ends(node, of, demands)
    return tuple(
        tuple(
            tuple(
                dict.fromkeys(
                    _completion(node, rest)
                    for way in state.transitions[begin:end]
                    if way.to is not None
                    for rest in sorted(ends[way.to])
                )
            )
            for begin, end in its
        )
        for state, its in zip(of.states, parts, strict=True)
    )


def _ends(node: Sequences, of: Automaton, demands: Sequence[Demand]) -> dict[int, set[_Rest]]:
    """From each state, with its own row among those to come: what may come up to an end."""
    points = [point for limit in node.limits for point in (limit.later, limit.earlier) if point.variable is not None]
    named = {variable for point in points for variable in node.resolved(point.variable or "")}
    before: dict[int, list[int]] = {}
    for number, state in enumerate(of.states):
        for way in state.transitions:
            if way.to is not None:
                before.setdefault(way.to, []).append(number)
    ends: dict[int, set[_Rest]] = {number: set() for number in range(len(of.states))}
    none = _Rest(asked=(False,) * len(demands), bare=(False,) * len(demands))
    waiting = [
        (number, _with_row(none, state.variable, named, demands))
        for number, state in enumerate(of.states)
        if number != BEGIN and state.ends
    ]
    total = 0
    while waiting:
        number, rest = waiting.pop()
        if rest in ends[number]:
            continue
        ends[number].add(rest)
        total += 1
        if total > MOST_COMPLETIONS:
            raise NotCompiled("its limits and conditions name too many variables")
        waiting += [
            (state, _with_row(rest, of.states[state].variable, named, demands))
            for state in before.get(number, ())
            if state != BEGIN
        ]
    return ends


def _with_row(rest: _Rest, variable: str, named: set[str], demands: Sequence[Demand]) -> _Rest:
    """The rows to come with one more before them."""
    asked, bare = list(rest.asked), list(rest.bare)
    for number, demand in enumerate(demands):
        if variable == demand.variable:
            asked[number], bare[number] = True, variable not in demand.first
            continue
        asked[number] &= variable not in demand.last
        bare[number] &= variable not in demand.first
    variables = tuple(sorted({*rest.variables, *({variable} & named)}))
    return _Rest(variables, tuple(asked), tuple(bare))


def _completion(node: Sequences, rest: _Rest) -> Completion:
    def has(point: Point) -> bool:
        return point.variable is not None and any(v in rest.variables for v in node.resolved(point.variable))

    later, earlier = tuple(has(one.later) for one in node.limits), tuple(has(one.earlier) for one in node.limits)
    return Completion(later, earlier, rest.asked, rest.bare)
