"""Frees situations, and given intervals beside derived ones, before window or horizon do: those with no partner left to
match (rule R29).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.algebra.ordered.derive import Derive
from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.ordered.match.detection import Detection, detection_of
from tidegate.analysis.ordered.match.matches import horizons, matching
from tidegate.analysis.zones.zone import NONE, Matrix, Variable, hull

#: The rule pays where situations without partners go at least so many times sooner than by the window or the horizon.
SOONER = 2


@dataclass(frozen=True, slots=True)
class PartnerRule:
    """The symbols of one derivation whose situations go sooner, and the symbols of their required partners."""

    symbols: tuple[str, ...]
    partners: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class SituationPartners:
    """The relations between the situations of every match, and the rules that free some sooner.

    `bounds[v][u]` is the most that endpoint u - endpoint v is in any match, None where it has no bound; endpoint 2i is
    the start of the i-th symbol, 2i + 1 its end.
    """

    bounds: tuple[tuple[int | None, ...], ...]
    freed: tuple[PartnerRule, ...]


def situation_partners(node: Match, *, always: bool) -> SituationPartners | None:
    """The rules that free derived situations sooner. None where none does or, unless `always`, where they hardly
    pay.
    """
    detected = detection_of(node)
    bounds = _bounds(detected)
    if bounds is None:
        return None
    derived = [place for place, situation in enumerate(node.situations) if isinstance(situation, Derive)]
    waits = {place: _waits(bounds, place, derived) for place in derived}
    if all(min(of.values(), default=INF) == INF for of in waits.values()) and len(node.situations) > 1:
        return None
    kept = _kept(detected)
    freed = []
    for derivation in dict.fromkeys(node.situations[place] for place in derived):
        places = [place for place in derived if node.situations[place] == derivation]
        # The only situation of a match has no part in any once it is over.
        longest = max(min(waits[place].values(), default=0 if len(node.situations) == 1 else INF) for place in places)
        by_keep = max(kept[place] for place in places)
        if _pays(longest, by_keep, always):
            pairs = [pair for place in places for pair in waits[place].items()]
            partners = [partner for partner, wait in pairs if _pays(wait, by_keep, always)]
            names = tuple(node.symbols[partner] for partner in dict.fromkeys(partners))
            freed.append(PartnerRule(tuple(node.symbols[place] for place in places), names))
    return SituationPartners(_rows(bounds), tuple(freed)) if freed else None


def given_partners(node: Match, *, always: bool) -> SituationPartners | None:
    """The rules that free given intervals beside derived situations, each of one symbol. None as `situation_partners`.

    What they wait for is derived: what is given beside them is asked for nothing.
    """
    derived = [place for place, situation in enumerate(node.situations) if isinstance(situation, Derive)]
    if len(derived) in (0, len(node.situations)):
        return None
    detected = detection_of(node)
    bounds = _bounds(detected)
    if bounds is None:
        return None
    kept, freed = _kept(detected), []
    for place in range(len(node.situations)):
        if place in derived:
            continue
        waits = _waits(bounds, place, derived)
        partners = [partner for partner, wait in waits.items() if _pays(wait, kept[place], always)]
        if partners:
            freed.append(PartnerRule((node.symbols[place],), tuple(node.symbols[partner] for partner in partners)))
    return SituationPartners(_rows(bounds), tuple(freed)) if freed else None


def _bounds(detected: Detection) -> Matrix | None:
    """The greatest bounds between the endpoints of a match; None where nothing matches."""
    zones = matching(detected).zones
    names: list[Variable] = [("a", name) for name in detected.pattern.base.layout.attributes]
    if not zones:
        return None
    return hull([zone.view(names) for zone in zones])


def _rows(bounds: Matrix) -> tuple[tuple[int | None, ...], ...]:
    return tuple(tuple(None if bound >= NONE else bound for bound in row) for row in bounds.tolist())


def _pays(wait: Extended, by_keep: Extended, always: bool) -> bool:
    return wait < by_keep and (always or SOONER * wait <= by_keep)


def _waits(bounds: Matrix, place: int, derived: Sequence[int]) -> dict[int, Extended]:
    """How long after a situation's end situations of each other symbol may still begin."""
    waits = {other: int(bounds[2 * place + 1, 2 * other]) for other in derived if other != place}
    return {other: INF if wait >= NONE else max(0, wait) for other, wait in waits.items()}


def _kept(detection: Detection) -> list[Extended]:
    """How long after its end a situation of each symbol stays without the rule."""
    if detection.within is not None:
        return [detection.within - 1] * len(detection.symbols)
    return [horizon.after_end for horizon in horizons(detection)]
