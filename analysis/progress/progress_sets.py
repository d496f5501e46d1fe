"""Progressing sets of attributes (TSA Def. 7, rule R10)."""

from __future__ import annotations

from collections.abc import Collection
from itertools import combinations

from tidegate.algebra.time import INF
from tidegate.analysis.zones.federation import Federation


def is_progressing_set(federation: Federation, attributes: Collection[str]) -> bool:
    """Whether upper bounds of these attributes bound a finite prefix of the result.

    In every zone, every stream that it does not ignore must have a progressing attribute y that one of the attributes
    bounds: `y <= a + c`. The empty set is progressing iff the result is static.
    """
    return all(not demand.isdisjoint(attributes) for demand in demands(federation))


def minimal_progressing_sets(federation: Federation, largest: int = 3) -> tuple[frozenset[str], ...]:
    """All progressing sets of at most `largest` attributes that contain no smaller one, by size."""
    sets: list[frozenset[str]] = []
    for size in range(largest + 1):
        for chosen in map(frozenset, combinations(federation.attributes, size)):
            if not any(smaller <= chosen for smaller in sets) and is_progressing_set(federation, chosen):
                sets.append(chosen)
    return tuple(sets)


def demands(federation: Federation) -> frozenset[frozenset[str]]:
    """For each zone and stream that it does not ignore: the attributes that bound the stream there."""
    return frozenset(
        frozenset(
            a
            for a in federation.attributes
            if any(zone.distance(("a", a), ("x", i, y)) != INF for y in federation.occurrences[i].progress)
        )
        for zone in federation.zones
        for i in federation.sources(zone)
        if federation.occurrences[i].progress
    )


def is_static(federation: Federation) -> bool:
    """Whether the result waits for no stream: no zone speaks of one."""
    return not any(federation.occurrences[i].progress for zone in federation.zones for i in federation.sources(zone))
