"""What a list of restrictions of ends says in vain, and what follows from it: interval sequences (rule R27)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import product

from tidegate.algebra.formulas import temporal_formula
from tidegate.algebra.ordered.match.node import DETECTED, Match, RowIntervals
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.terms import Term, conjuncts
from tidegate.algebra.time import INF
from tidegate.algebra.types import DataType
from tidegate.analysis.ordered.match.detection import detection_of
from tidegate.analysis.ordered.match.pattern import Symbol, base_zone, endpoint_attributes, named_layout
from tidegate.analysis.zones.normal_form import AnyOf, Bound, Normal, bounds_of, normal_form
from tidegate.analysis.zones.zone import Conflict, Zone

#: Endpoints of a list of which this is computed, and lines that `explain` has of it.
MOST_ENDS = 64
_LINES = 8


@dataclass(frozen=True, slots=True)
class Restrictions:
    """Restrictions that follow from the others, as they are written; and the orders of two ends that follow from all,
    each as (earlier, sign, later).
    """

    redundant: tuple[str, ...]
    inferred: tuple[tuple[str, str, str], ...]

    def lines(self) -> list[str]:
        """This for people."""
        orders = [f"{earlier} {sign} {later}" for earlier, sign, later in self.inferred]
        more = [f"and {len(orders) - _LINES} more"] if len(orders) > _LINES + 1 else []
        shown = orders[:_LINES] if more else orders
        inferred = [f"{', '.join([*shown, *more])}: inferred"] if orders else []
        return [*inferred, *(f"{said}: in vain, it follows from the others" for said in self.redundant)]


@lru_cache(maxsize=256)
def restrictions_of(node: Match) -> Restrictions | None:
    """What follows of the restrictions of an interval sequence; None for other matches, and for lists that have
    alternatives, contradict themselves or are very long.
    """
    if not is_interval_sequence(node):
        return None
    symbols, given = detection_of(node).symbols, _given(node)
    whole = None if given is None else _zone(symbols, _all_of(given))
    if given is None or whole is None:
        return None
    return Restrictions(tuple(_redundant(symbols, given)), tuple(_inferred(symbols, whole, list(_all_of(given)))))


def closed(node: Match) -> Zone | None:
    """All that follows of the restrictions and the window for the ends; None as `restrictions_of`."""
    symbols, given = detection_of(node).symbols, _given(node)
    if given is None or node.within is None:
        return None
    window = [Bound(a.te, b.ts, node.within) for a, b in product(symbols, symbols)]
    return _zone(symbols, [*_all_of(given), *window])


@lru_cache(maxsize=64)
def zone_of_matches(node: Match) -> Zone | None:
    """The zone of all matches of an interval sequence, over its ends and the instant of their detection; None as
    `restrictions_of`.

    Sets of Allen's relations would make a zone of each of their cases.
    """
    given = _given(node) if is_interval_sequence(node) else None
    if given is None:
        return None
    symbols = detection_of(node).symbols
    ends = [end for symbol in symbols for end in (symbol.ts, symbol.te)]
    known = [Bound(end, DETECTED, 0) for end in ends]
    window = [] if node.within is None else [Bound(DETECTED, symbol.ts, node.within) for symbol in symbols]
    zone = base_zone(symbols).arranged(named_layout([*ends, DETECTED])).conjoin([*_all_of(given), *known, *window])
    if isinstance(zone, Conflict):
        return None
    last = next((te for te in ends[1::2] if all(zone.distance(("a", te), ("a", end)) <= 0 for end in ends)), None)
    if last is None:
        return zone
    detected = zone.conjoin([Bound(DETECTED, last, 0)])
    assert isinstance(detected, Zone)
    return detected


def is_interval_sequence(node: Match) -> bool:
    """Whether a match is of intervals of rows alone, and waits for all of their ends."""
    return node.emission == "final" and all(isinstance(situation, RowIntervals) for situation in node.situations)


def _given(node: Match) -> list[tuple[Term, tuple[Bound, ...]]] | None:
    """The restrictions, each with the bounds that it states."""
    detection = detection_of(node)
    if 2 * len(detection.symbols) > MOST_ENDS:
        return None
    given = []
    for term in conjuncts(node.pattern):
        bounds = _bounds(term, detection.symbols, detection.pattern.time)
        if bounds is None:
            return None
        given.append((term, bounds))
    return given


def _all_of(given: Iterable[tuple[Term, tuple[Bound, ...]]]) -> Iterator[Bound]:
    return (bound for _, bounds in given for bound in bounds)


def _bounds(term: Term, symbols: Sequence[Symbol], time: DataType) -> tuple[Bound, ...] | None:
    """The bounds that a restriction states; None where it has alternatives."""
    normal = normal_form(temporal_formula(term, endpoint_attributes(symbols, time)))
    return None if _has_alternatives(normal) else tuple(bounds_of(normal))


def _has_alternatives(normal: Normal) -> bool:
    if isinstance(normal, Bound):
        return False
    return isinstance(normal, AnyOf) or any(map(_has_alternatives, normal.parts))


def _zone(symbols: Sequence[Symbol], bounds: Iterable[Bound]) -> Zone | None:
    zone = base_zone(symbols).conjoin(bounds)
    return None if isinstance(zone, Conflict) else zone


def _redundant(symbols: Sequence[Symbol], given: Sequence[tuple[Term, tuple[Bound, ...]]]) -> Iterator[str]:
    """Each restriction that follows from those that are left of the others."""
    left = list(given)
    for one in given:
        others = [other for other in left if other is not one]
        zone = _zone(symbols, _all_of(others))
        if zone is not None and all(zone.entails(bound) for bound in one[1]):
            left = others
            yield term_text(one[0])


def _inferred(symbols: Sequence[Symbol], zone: Zone, given: Sequence[Bound]) -> Iterator[tuple[str, str, str]]:
    """The orders of ends of two intervals that no restriction states by itself."""
    stated = {(bound.v, bound.w) for bound in given if bound.c <= 0}
    for a, b in product(symbols, symbols):
        if a is b:
            continue
        for earlier, later in product((a.ts, a.te), (b.ts, b.te)):
            most = zone.distance(("a", later), ("a", earlier))
            if most > 0 or most == INF or (earlier, later) in stated:
                continue
            equal = zone.distance(("a", earlier), ("a", later)) == most == 0
            if not equal or earlier < later:
                yield earlier, "=" if equal else "<=" if most == 0 else "<", later
