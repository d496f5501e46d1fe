"""What leads on from the states of a pattern, and what ends a match there, as kernels search by it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tidegate.algebra.ordered.sequences.automata.automaton import BEGIN, Automaton
from tidegate.algebra.ordered.sequences.pattern import Absence

Absences = frozenset[Absence]
NO_ABSENCES: Absences = frozenset()


@dataclass(frozen=True, slots=True)
class Guard:
    """When a way may be taken: no row of `absent` has come, and one of each of `present`. `first`: the match begins
    with the first row of its partition.
    """

    absent: Absences = NO_ABSENCES
    present: Absences = NO_ABSENCES
    first: bool = False


@dataclass(frozen=True, slots=True)
class End:
    """An end of a match, which is one if no row of `absent` comes. `first`: if its row is the first of the partition.
    `last`: if its last row is the last one.
    """

    absent: Absences = NO_ABSENCES
    first: bool = False
    last: bool = False


@dataclass(frozen=True, slots=True)
class Ways:
    """The ways on from a state: a guard for each, and the ends, the preferred first.

    `parts` are the ways between two ends, each as the place of the first one and the place behind the last: those from
    end i on up to end j stand at `i * (len(ends) + 1) + j`, where 0 stands for the first way, i for those behind the
    i-th end, and the last j for all up to the last way. `ends_here`: some match ends in the state. `vain`: none whose
    rows so far have led there.
    """

    guards: tuple[Guard, ...]
    ends: tuple[End, ...]
    parts: tuple[tuple[int, int], ...]
    ends_here: bool
    vain: bool = False


def preferred_ways(of: Automaton) -> tuple[Ways, ...]:
    """The ways of each state where rows of a match follow each other, and the preferred match is asked for."""
    found = []
    for number, state in enumerate(of.states):
        begin, places, ends = number == BEGIN, list[int](), list[End]()
        for place, way in enumerate(state.transitions):
            # An empty match depends on no rows around it, and the row at which it would be is behind it.
            if way.to is None and not (begin and "end" in way.anchors):
                places.append(place)
                absent = NO_ABSENCES if begin else frozenset(way.absences)
                ends.append(End(absent, "start" in way.anchors, "end" in way.anchors))
        guards = tuple(
            Guard(frozenset(way.absences if begin and way.to is not None else ()), first="start" in way.anchors)
            for way in state.transitions
        )
        begins, stops = [0, *(place + 1 for place in places)], [*places, len(state.transitions)]
        parts = tuple((first, stop) if first <= stop else (0, 0) for first in begins for stop in stops)
        found.append(Ways(guards, tuple(ends), parts, bool(ends)))
    return tuple(found)


def absences_of(ways: tuple[Ways, ...]) -> Iterator[tuple[str, Absence]]:
    """The rows that must not come before a match, between two of its rows, or after it, with where they stand."""
    for number, of in enumerate(ways):
        for guard in of.guards:
            for absence in sorted(guard.absent | guard.present, key=repr):
                yield "before" if number == BEGIN else "between", absence
        for end in of.ends:
            for absence in sorted(end.absent, key=repr):
                yield "after", absence
