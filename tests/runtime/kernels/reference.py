"""Situations and matches by brute force, written from their definitions, for the tests of the kernels."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.kernels.cells import NONE
from tidegate.runtime.kernels.search_plan import ALL, Pattern

#: (u, v, c): endpoint u - endpoint v <= c, endpoints as in a pattern's matrices.
Atom = tuple[int, int, int]


@dataclass(frozen=True)
class Event:
    partition: int
    time: int
    true: frozenset[int]


@dataclass(frozen=True, order=True)
class Situation:
    """A run of true events; `end` is None where no later event is false."""

    partition: int
    condition: int
    start: int
    end: int | None
    events: tuple[int, ...] = ()


def situations(events: Sequence[Event], conditions: int) -> list[Situation]:
    """The situations of a complete stream, events of equal time in the order given."""
    found = []
    for partition in sorted({event.partition for event in events}):
        own = sorted((event for event in events if event.partition == partition), key=lambda event: event.time)
        for condition in range(conditions):
            for truth, run in itertools.groupby(enumerate(own), key=lambda item: condition in item[1].true):
                members = list(run)
                after = members[-1][0] + 1
                start, end = members[0][1].time, own[after].time if after < len(own) else None
                if truth and start != end:
                    found.append(Situation(partition, condition, start, end, tuple(event.time for _, event in members)))
    return found


#: The thirteen relations, on the endpoints of A and B, in the order of the bits of masks.
ALLEN: tuple[Callable[[Int64Array, Int64Array, Int64Array, Int64Array], BoolArray], ...] = (
    lambda a, b, c, d: b < c,
    lambda a, b, c, d: b == c,
    lambda a, b, c, d: (a < c) & (c < b) & (b < d),
    lambda a, b, c, d: (a < c) & (b == d),
    lambda a, b, c, d: (a < c) & (d < b),
    lambda a, b, c, d: (a == c) & (b < d),
    lambda a, b, c, d: (a == c) & (b == d),
    lambda a, b, c, d: (a == c) & (d < b),
    lambda a, b, c, d: (c < a) & (b < d),
    lambda a, b, c, d: (c < a) & (b == d),
    lambda a, b, c, d: (c < a) & (a < d) & (d < b),
    lambda a, b, c, d: a == d,
    lambda a, b, c, d: d < a,
)


@dataclass(frozen=True)
class Spec:
    """A pattern as its author would say it: pair constraints, durations, and a conjunction of disjunctions of atoms."""

    definition: tuple[int, ...]
    masks: dict[tuple[int, int], int]
    at_least: tuple[int, ...]
    at_most: tuple[int | None, ...]
    clauses: tuple[tuple[Atom, ...], ...] = ()
    within: int | None = None
    final: bool = False

    def holds(self, ends: Int64Array) -> BoolArray:
        """Whether the pattern holds, for endpoints int64[2m, cases]."""
        true = np.ones(ends.shape[1], dtype=np.bool_)
        for (one, other), mask in self.masks.items():
            allowed = [relation for bit, relation in enumerate(ALLEN) if mask >> bit & 1]
            pair = (ends[2 * one], ends[2 * one + 1], ends[2 * other], ends[2 * other + 1])
            true &= np.any([relation(*pair) for relation in allowed], axis=0)
        for role, (least, most) in enumerate(zip(self.at_least, self.at_most, strict=True)):
            length = ends[2 * role + 1] - ends[2 * role]
            true &= (length >= least) & (length <= (NONE if most is None else most))
        for clause in self.clauses:
            true &= np.any([ends[u] - ends[v] <= c for u, v, c in clause], axis=0)
        return true

    def reach(self) -> int:
        """Unknown ends that far beyond the instant show every case: one constraint is violated, or none can be."""
        numbers = [sum(abs(c) + 1 for _, _, c in clause) for clause in self.clauses]
        return max([2, *numbers, *self.at_least, *(most + 1 for most in self.at_most if most is not None)])


def certain(spec: Spec, chosen: Sequence[Situation], instant: int) -> bool:
    """Whether the pattern holds however the ends not known at the instant turn out, tried one by one."""
    ends = [end for s in chosen for end in (s.start, s.end if s.end is not None and s.end <= instant else None)]
    unknown = [place for place, end in enumerate(ends) if end is None]
    values = range(instant + 1, instant + 2 + spec.reach())
    completions = itertools.product(values, repeat=len(unknown))
    cases = np.array(list(completions), dtype=np.int64)
    table = np.empty((len(ends), len(cases)), dtype=np.int64)
    for place, end in enumerate(ends):
        table[place] = cases[:, unknown.index(place)] if end is None else end
    return bool(spec.holds(table).all())


def detection(spec: Spec, chosen: Sequence[Situation], until: int) -> int | None:
    """When the match is detected, by `until`; None if it is not."""
    starts, ends = [s.start for s in chosen], [s.end for s in chosen]
    if spec.final:
        known = [end for end in ends if end is not None]
        instants = [max(known)] if len(known) == len(ends) else []
    else:
        instants = list(range(max(starts), until + 1))
    for instant in instants:
        if instant <= until and certain(spec, chosen, instant):
            return instant if spec.within is None or instant - min(starts) <= spec.within else None
    return None


@dataclass(frozen=True)
class Match:
    chosen: tuple[tuple[int, int, int], ...]
    detected: int


def matches(spec: Spec, found: Iterable[Situation], until: int) -> list[Match]:
    """All matches detected by `until`: every combination of situations of one partition is tried."""
    made = []
    pool = list(found)
    for partition in sorted({s.partition for s in pool}):
        choices = [
            [s for s in pool if s.partition == partition and s.condition == definition]
            for definition in spec.definition
        ]
        for chosen in itertools.product(*choices):
            instant = detection(spec, chosen, until)
            if instant is not None:
                made.append(Match(tuple((s.partition, s.condition, s.start) for s in chosen), instant))
    return made


@dataclass(frozen=True)
class Compiled:
    """The pattern as the kernel takes it, with the offsets of its triggers per definition."""

    pattern: Pattern
    from_start: tuple[Int64Array, ...]
    from_end: tuple[Int64Array, ...]


def compile_spec(spec: Spec, definitions: int) -> Compiled:
    """Zones of the negated clauses, closed, and the offsets that they and the durations yield."""
    roles = len(spec.definition)
    masks = np.full((roles, roles), ALL, dtype=np.int64)
    for pair, mask in spec.masks.items():
        masks[pair] = mask
    zones = [zone for clause in spec.clauses if (zone := _negated(clause, roles)) is not None]
    implied = np.full((2 * roles, 2 * roles), NONE)
    for clause in spec.clauses:
        if len(clause) == 1:
            ((u, v, c),) = clause
            implied[v, u] = min(implied[v, u], c)
    pattern = Pattern(
        definition=np.array(spec.definition, dtype=np.int64),
        masks=masks,
        at_least=np.array(spec.at_least, dtype=np.int64),
        at_most=np.array([NONE if most is None else most for most in spec.at_most], dtype=np.int64),
        zones=np.array(zones, dtype=np.int64).reshape(-1, 2 * roles, 2 * roles),
        implied=implied,
        within=NONE if spec.within is None else spec.within,
        final=spec.final,
    )
    offsets: list[list[set[int]]] = [[{0} for _ in range(definitions)] for _ in range(2)]
    for role, definition in enumerate(spec.definition):
        offsets[0][definition].add(spec.at_least[role] - 1)
        for end in (0, 1):
            for zone in zones:
                bounds = zone[2 * role + end]
                offsets[end][definition] |= {int(bound) for bound in bounds if 0 <= bound < NONE}
    starts, ends = (tuple(np.array(sorted(own), dtype=np.int64) for own in kind) for kind in offsets)
    return Compiled(pattern, starts, ends)


def _negated(clause: tuple[Atom, ...], roles: int) -> Int64Array | None:
    """The closed zone in which no atom of the clause holds; None if there is none."""
    size = 2 * roles
    zone = [[0 if v == u else NONE for u in range(size)] for v in range(size)]
    for role in range(roles):
        zone[2 * role + 1][2 * role] = -1
    for u, v, c in clause:
        zone[u][v] = min(zone[u][v], -c - 1)
    for via, v, u in itertools.product(range(size), repeat=3):
        if NONE not in (zone[v][via], zone[via][u]):
            zone[v][u] = min(zone[v][u], zone[v][via] + zone[via][u])
    return None if any(zone[v][v] < 0 for v in range(size)) else np.array(zone, dtype=np.int64)
