"""Prunes zones of a federation that say nothing new (rule R7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tidegate.analysis.zones.zone import NONE, Matrix, Rounding, Variable, Zone, is_copy

#: So many candidates, or fewer, are compared whole: that is then cheaper than entry by entry.
COMPARED_WHOLE = 32


def prune(zones: list[Zone], attributes: Sequence[str], occurrences: int) -> list[Zone]:
    """The zones without the redundant ones, in order.

    A zone C is needed for its result rows, and for each occurrence that it does not ignore. A zone D with the same
    flags that contains C serves all of these needs; one that ignores more serves the result rows and the occurrences
    that it does not ignore. C goes if every need is served. Ignoring *less* never serves: containment blind to flags
    would lose the second zone of an anti-join, and its right side would never be awaited.
    """
    zones = prune_equal_flags(zones)
    by_flags: dict[frozenset[int], list[Zone]] = {}
    for zone in zones:
        by_flags.setdefault(zone.ignored, []).append(zone)
    if len(by_flags) == 1:
        return zones
    every = frozenset(range(occurrences))
    groups = {every - flags: group for flags, group in by_flags.items()}
    coarser_than = _subsets(groups)
    names: list[Variable] = [("a", name) for name in attributes]
    dropped: set[int] = set()
    for speaking, group in groups.items():
        coarser = coarser_than(speaking)
        # Nobody else speaks of some occurrence of this group: no zone of it can go.
        if not coarser or not speaking <= frozenset[int]().union(*coarser):
            continue
        served: dict[int, frozenset[int]] = {id(zone): frozenset() for zone in group}
        for fewer in coarser:
            wider = groups[fewer]
            over: list[Variable] = list(names)
            # A rounding too: that D says more of it than C does is not seen in the instants that it rounds.
            rows = dict.fromkeys(
                row for layout in {id(zone.layout): zone.layout for zone in wider}.values() for row in layout.rows
            )
            over.extend(row for row in rows if is_copy(row) or isinstance(row, Rounding))
            for zone, inside in zip(group, _inside_any(group, wider, over), strict=True):
                if inside:
                    served[id(zone)] |= fewer
        dropped.update(id(zone) for zone in group if served[id(zone)] >= speaking)
    return [zone for zone in zones if id(zone) not in dropped] if dropped else zones


def widest(zones: Sequence[Zone]) -> list[Zone]:
    """The zones without those that have all constraints of another one, which ignores more, and further ones.

    Of the left side of a left or anti-join these are all that need pairs: what another zone makes with the right side
    lies in that zone by itself and in what the wider one makes, and these serve all needs (see `prune`).
    """
    chosen: list[Zone] = []
    for zone in sorted(zones, key=lambda zone: len(zone.ignored), reverse=True):
        if not any(zone.extends(wider) for wider in chosen):
            chosen.append(zone)
    kept = set(map(id, chosen))
    return [zone for zone in zones if id(zone) in kept]


def _subsets(sets: Iterable[frozenset[int]]) -> Callable[[frozenset[int]], list[frozenset[int]]]:
    """What finds the proper subsets of a set among these: each is looked for under its rarest member only."""
    sets = list(sets)
    uses = Counter(member for subset in sets for member in subset)
    by_rarest: dict[int | None, list[frozenset[int]]] = {}
    for subset in sets:
        by_rarest.setdefault(min(subset, key=lambda member: uses[member], default=None), []).append(subset)
    return lambda of: [subset for member in (None, *of) for subset in by_rarest.get(member, ()) if subset < of]


def prune_equal_flags(zones: list[Zone]) -> list[Zone]:
    """Drops zones contained in another zone with the same flags, of equal ones all but the first."""
    if len(zones) < 2:
        return zones
    groups: dict[tuple[object, ...], list[int]] = {}
    for position, zone in enumerate(zones):
        key = (zone.ignored, zone.layout.rows, tuple(zone.layout.attributes.items()))
        groups.setdefault(key, []).append(position)
    kept = sorted(group[k] for group in groups.values() for k in maximal([zones[p].matrix for p in group]))
    return [zones[position] for position in kept]


def maximal(matrices: Sequence[Matrix]) -> list[int]:
    """Positions of the closed matrices that are contained in no other, of equal ones the first."""
    if len(matrices) < 2:
        return list(range(len(matrices)))
    # A container has more missing bounds, or the same ones and a larger sum: it comes first, and one look back
    # suffices.
    flat = np.stack([matrix.ravel() for matrix in matrices])
    missing = flat >= NONE
    sums = np.where(missing, 0, flat).astype(np.float64).sum(axis=1)
    order = np.lexsort((-sums, -missing.sum(axis=1)))
    # Only entries that differ can decide. Going entry by entry leaves few candidates soon, those with the fewest values
    # first: they are the constraints themselves, not sums of them. What is left is compared whole.
    varying = flat[:, (flat != flat[0]).any(axis=0)]
    varying = varying[:, np.argsort((np.diff(np.sort(varying, axis=0), axis=0) != 0).sum(axis=0), kind="stable")]
    by_entry = np.ascontiguousarray(varying.T)
    kept = np.empty(len(flat), dtype=np.intp)
    number = 0
    for position in order.tolist():
        candidates, values = kept[:number], varying[position]
        for entry, value in zip(by_entry, values.tolist(), strict=True):
            if len(candidates) <= COMPARED_WHOLE:
                break
            candidates = candidates[entry[candidates] >= value]
        if not len(candidates) or not (varying[candidates] >= values).all(axis=1).any():
            kept[number] = position
            number += 1
    return sorted(kept[:number].tolist())


def _inside_any(zones: Sequence[Zone], others: Sequence[Zone], variables: Sequence[Variable]) -> list[bool]:
    if not others:
        return [False] * len(zones)
    stack = np.stack([other.view(variables) for other in others])
    return [bool((zone.view(variables) <= stack).all(axis=(1, 2)).any()) for zone in zones]
