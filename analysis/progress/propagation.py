"""Propagation functions: how far the result's progress follows from the inputs' (TSA Def. 25, rule R11)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import DataType
from tidegate.analysis.progress.symbolic import Alternatives, function_text, least_of_greatest
from tidegate.analysis.zones.federation import Federation
from tidegate.analysis.zones.zone import Zone

if TYPE_CHECKING:
    import sympy


@dataclass(frozen=True, slots=True, eq=False)
class Clause:
    """What one occurrence demands in one zone: progress reaches `max over y of (b_y - d(a, y))`.

    `distances` holds `d(a, y)` for every progressing attribute y of the occurrence's stream, +∞ where unbounded.
    """

    zone: Zone
    occurrence: int
    stream: str
    distances: tuple[tuple[str, Extended], ...]

    @property
    def is_finite(self) -> bool:
        """Whether the clause yields progress before the stream ends."""
        return any(distance != INF for _, distance in self.distances)


@dataclass(frozen=True, slots=True, eq=False)
class Propagation:
    """The propagation function of an output attribute: the least of its clauses; without any, +∞ (a static result)."""

    attribute: str
    type: DataType
    clauses: tuple[Clause, ...]

    @property
    def is_finite(self) -> bool:
        """Whether finite progress of all inputs gives finite progress, or more: a progressing attribute."""
        return all(clause.is_finite for clause in self.clauses)

    def evaluate(self, b: Mapping[tuple[str, str], Extended]) -> Extended:
        """Progress of the attribute where `b[stream, attribute]` is that of the inputs.

        A finished input gives +∞ even at infinite distance; an input not yet begun gives -∞.
        """
        return min(
            (max(difference(b[c.stream, y], d) for y, d in c.distances) for c in self.clauses),
            default=INF,
        )

    def describe(self, most: int | None = None) -> str:
        """The simplified function as text, such as `min(Smoke.time, FireEnd.time - 1m)`; ∞ distances are left out. Of
        many arguments `most` are printed.
        """
        return function_text(self._alternatives(), self.type, most)

    def expression(self) -> sympy.Expr:
        """The function as a simplified sympy expression in ticks, over one symbol per input progress (`Smoke.time`)."""
        return least_of_greatest(self._alternatives())

    def _alternatives(self) -> Alternatives:
        return [tuple((f"{clause.stream}.{y}", d) for y, d in clause.distances) for clause in self.clauses]


@dataclass(frozen=True, slots=True)
class Latencies:
    """How far each attribute comes behind the inputs while these progress side by side: L of rule R17."""

    of: Mapping[str, Extended]
    inputs: frozenset[tuple[str, str]]

    @classmethod
    def among(cls, functions: Mapping[str, Propagation]) -> Latencies:
        """The latencies of these attributes; the functions are evaluated once, at progress 0 of all inputs."""
        inputs = frozenset(
            (clause.stream, y) for f in functions.values() for clause in f.clauses for y, _ in clause.distances
        )
        together = dict.fromkeys(inputs, 0)
        return cls({a: -f.evaluate(together) for a, f in functions.items()}, inputs)


def difference(b: Extended, d: Extended) -> Extended:
    """`b - d` with `+∞ - ∞ = +∞` and `-∞ - x = -∞`."""
    if b in (INF, -INF):
        return b
    return -INF if d == INF else b - d


def propagation(federation: Federation, attribute: str) -> Propagation:
    """The propagation function of a temporal attribute; clauses that another one always undercuts are left out.

    Distances are taken zone by zone; maximising them over zones first would be unsound.
    """
    clauses: list[Clause] = []
    for i, stream in enumerate(federation.occurrences):
        speaking = [zone for zone in federation.zones if i not in zone.ignored]
        if not stream.progress or not speaking:
            continue
        distances = [tuple(zone.distance(("a", attribute), ("x", i, y)) for y in stream.progress) for zone in speaking]
        first = dict(zip(reversed(distances), reversed(speaking), strict=True))
        for distance in dict.fromkeys(distances):
            clause = Clause(first[distance], i, stream.name, tuple(zip(stream.progress, distance, strict=True)))
            clauses.append(clause)
    return Propagation(attribute, federation.schema[attribute].type, tuple(_undominated(clauses)))


def propagations(federation: Federation) -> dict[str, Propagation]:
    """The propagation functions of all temporal attributes of the result."""
    return {attribute: propagation(federation, attribute) for attribute in federation.attributes}


def _undominated(clauses: Sequence[Clause]) -> list[Clause]:
    kept: list[Clause] = []
    for clause in clauses:
        if any(_undercuts(other, clause) for other in kept):
            continue
        kept = [*(other for other in kept if not _undercuts(clause, other)), clause]
    return kept


def _undercuts(first: Clause, second: Clause) -> bool:
    """Whether `first` never exceeds `second`: the same stream's progress, no distance shorter."""
    if first.stream != second.stream:
        return False
    distances = dict(second.distances)
    return all(d >= distances[y] for y, d in first.distances)
