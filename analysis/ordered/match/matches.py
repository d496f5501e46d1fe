"""The relations of every match of a pattern: its instants, its detection, and how long intervals wait (rule R27)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from tidegate.algebra.allen import Allen, relations_in
from tidegate.algebra.ordered.match.node import DETECTED
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.ordered.match.detection import Detection
from tidegate.analysis.ordered.match.pattern import General, Pair, Symbol, interval_bound, mask_cases, named_layout
from tidegate.analysis.zones.expansion import MAX_ZONES, expand
from tidegate.analysis.zones.normal_form import Bound, Normal, conjoin, disjoin, estimate_zones
from tidegate.analysis.zones.pruning import maximal, prune_equal_flags
from tidegate.analysis.zones.zone import NONE, Conflict, Matrix, Variable, Zone, around, attribute_of

#: The attribute of a match that holds the instant of its detection.

#: Relations of A to B in which B ends first.
_B_ENDS_FIRST = (Allen.CONTAINS, Allen.STARTED_BY, Allen.OVERLAPPED_BY)


@dataclass(frozen=True, slots=True, eq=False)
class Horizon:
    """How long intervals of a symbol can take part in matches that are not yet detected.

    Over all matches, `detected <= ts + after_start` and `detected <= te + after_end`, both attained; +∞ where nothing
    bounds them, -∞ where there is no match. `end_known`: `te <= detected` in every match. `witness` is a case, over the
    endpoints and `detected`, in which `detected - te` has no bound.
    """

    symbol: Symbol
    after_start: Extended
    after_end: Extended
    end_known: bool
    witness: Zone | None


def relations(detection: Detection) -> Normal:
    """The relations between `detected` and the endpoints of every match, with ends that are not yet known.

    Exactly: for endpoints and an instant that satisfy it there is a match detected by then, and within its window even
    then.
    """
    return conjoin(part for _, part in stages(detection))


def stages(detection: Detection) -> Iterator[tuple[str, Normal]]:
    """The parts of `relations`, each with the term that demands it; none for the pattern's own condition."""
    symbols, earliest = detection.symbols, detection.emission == "earliest"
    yield "the intervals", conjoin(map(interval_bound, symbols))
    for symbol in symbols:
        yield f"the duration of {symbol.name}", conjoin(_limits(symbol))
    last = [name for symbol in symbols for name in ((symbol.ts,) if earliest else (symbol.ts, symbol.te))]
    yield f"{detection.emission} detection", conjoin(Bound(name, DETECTED, 0) for name in last)
    if earliest:
        yield (
            f"{detection.emission} detection",
            conjoin(bound for symbol in symbols for bound in _duration_known(symbol)),
        )
    if detection.within is not None:
        yield "the window", conjoin(Bound(DETECTED, symbol.ts, detection.within) for symbol in symbols)
    for pair in detection.pattern.pairs:
        yield "", _pair_certain(symbols, pair)
    for general in detection.pattern.general:
        yield "", _general_certain(detection, general) if earliest else general.condition


def _limits(symbol: Symbol) -> Iterator[Bound]:
    if symbol.at_least is not None:
        yield Bound(symbol.ts, symbol.te, -symbol.at_least)
    if symbol.at_most is not None:
        yield Bound(symbol.te, symbol.ts, symbol.at_most)


def _duration_known(symbol: Symbol) -> Iterator[Bound]:
    """The condition that the limits of the duration are certain by `detected`."""
    if symbol.at_least is not None:
        yield Bound(symbol.ts, DETECTED, 1 - symbol.at_least)
    if symbol.at_most is not None:
        yield Bound(symbol.te, DETECTED, 0)


def _pair_certain(symbols: Sequence[Symbol], pair: Pair) -> Normal:
    """The condition that the intervals are in a relation of the mask, and that this is certain by `detected`."""
    a, b = symbols[pair.i], symbols[pair.j]
    cases: list[Normal] = []
    for part, case in mask_cases(pair.mask, a, b, pair.source):
        relation = relations_in(part)[0]
        alone = part == relation.bit and relation.group is not None
        cases.append(conjoin((case, Bound(_first_end(relation, a, b), DETECTED, 0, pair.source))) if alone else case)
    return disjoin(cases)


def _first_end(relation: Allen, a: Symbol, b: Symbol) -> str:
    return b.te if relation in _B_ENDS_FIRST else a.te


def _general_certain(detection: Detection, general: General) -> Normal:
    """The condition that some pair of endpoints contradicts each zone of the negation by `detected`."""
    begun = [Bound(symbol.ts, DETECTED, 0) for symbol in detection.symbols]
    start = detection.pattern.base.arranged(
        named_layout([*detection.pattern.base.layout.attributes, DETECTED])
    ).conjoin(begun)
    assert not isinstance(start, Conflict)
    return conjoin(_dead(start, zone, general) for zone in general.negation)


def _dead(start: Zone, zone: Zone, general: General) -> Normal:
    names = tuple(zone.layout.attributes)
    cases: list[Normal] = []
    matrices: list[Matrix] = []
    for v, row in zip(names, zone.matrix.tolist(), strict=True):
        for u, d in zip(names, row, strict=True):
            if u == v or d >= NONE:
                continue
            # u - v > d, and both v and v + d are past.
            bounds = (
                Bound(v, u, -d - 1, general.source),
                Bound(v, DETECTED, 0, general.source),
                Bound(v, DETECTED, -d, general.source),
            )
            case = start.conjoin(bounds)
            if isinstance(case, Zone):
                cases.append(conjoin(bounds))
                matrices.append(case.matrix)
    return disjoin(cases[k] for k in maximal(matrices))


@dataclass(frozen=True, slots=True, eq=False)
class Matching:
    """The zones of all matches, the conflicts of the other cases, and whether the zones hold nothing but matches."""

    zones: tuple[Zone, ...]
    conflicts: tuple[Conflict, ...]
    is_exact: bool


@lru_cache(maxsize=16)  # of a large pattern some megabytes
def matching(detection: Detection) -> Matching:
    """Zones that have in them all that satisfies `relations`, over the endpoints and `detected`.

    These are exactly its zones where `is_exact`. Alternatives multiply, so that patterns of many have more cases than
    can be looked at: before there are too many, those so far are taken for the smallest zone around them.
    """
    conflicts: list[Conflict] = []
    zones, exact = [Zone.free(named_layout([*detection.pattern.base.layout.attributes, DETECTED]))], True
    for demanded_by, part in stages(detection):
        if len(zones) > 1 and len(zones) * estimate_zones(part) > MAX_ZONES:
            zones, exact = [around(zones, "all alternatives before")], False
        expansion = expand(zones, part, MAX_ZONES, demanded_by)
        zones = expansion.zones
        conflicts += expansion.conflicts
    return Matching(tuple(zones), tuple(conflicts), exact)


def match_zones(detection: Detection) -> list[Zone]:
    """The zones of all matches, over the endpoints and `detected`, the very instant of the detection; or of more, where
    the pattern has too many cases (`is_exact`)."""
    layout = named_layout([*detection.pattern.base.layout.attributes, DETECTED])
    wide = named_layout([*layout.attributes, *(other_end(symbol) for symbol in detection.symbols)])
    zones: list[Zone] = []
    for case in matching(detection).zones:
        for reason in _not_before(detection):
            expansion = expand([case.arranged(wide)], reason, MAX_ZONES)
            zones += (zone.arranged(layout) for zone in expansion.zones)
    return prune_equal_flags(zones)


def _not_before(detection: Detection) -> Iterator[Normal]:
    """Reasons why a match is not detected before `detected`. At least one holds."""
    symbols = detection.symbols
    if detection.emission == "final":
        yield from (Bound(DETECTED, symbol.te, 0) for symbol in symbols)
        return
    for symbol in symbols:
        yield Bound(DETECTED, symbol.ts, 0)
        if symbol.at_least is not None and symbol.at_least > 1:
            yield Bound(DETECTED, symbol.ts, symbol.at_least - 1)
        if symbol.at_most is not None:
            yield Bound(DETECTED, symbol.te, 0)
    for pair in detection.pattern.pairs:
        a, b = symbols[pair.i], symbols[pair.j]
        for part, case in mask_cases(pair.mask, a, b, pair.source):
            relation = relations_in(part)[0]
            if part == relation.bit and relation.group is not None:
                yield conjoin((case, Bound(DETECTED, _first_end(relation, a, b), 0, pair.source)))
    for general in detection.pattern.general:
        for zone in general.negation:
            yield _alive(detection, zone)


def other_end(symbol: Symbol) -> str:
    """Another end that an interval might have, by all that is known before `detected`."""
    return f"another {symbol.te}"


def _alive(detection: Detection, zone: Zone) -> Normal:
    """That the zone of a negation is satisfied by the endpoints known before `detected` and some others."""
    given = zone.edges[len(detection.pattern.base.edges) :]
    mentioned = {attribute_of(row) for edge in given for row in (edge.w, edge.v)}
    others = {symbol.te: other_end(symbol) for symbol in detection.symbols if symbol.te in mentioned}
    parts: list[Normal] = [
        Bound(
            others.get(attribute_of(edge.v), attribute_of(edge.v)),
            others.get(attribute_of(edge.w), attribute_of(edge.w)),
            edge.c,
            edge.source,
        )
        for edge in given
    ]
    for symbol in detection.symbols:
        if symbol.te in others:
            other = others[symbol.te]
            same = conjoin((Bound(symbol.te, DETECTED, -1), Bound(other, symbol.te, 0), Bound(symbol.te, other, 0)))
            unknown = conjoin((Bound(DETECTED, symbol.te, 0), Bound(DETECTED, other, 0)))
            parts += [Bound(symbol.ts, other, interval_bound(symbol).c), disjoin((same, unknown))]
    return conjoin(parts)


@lru_cache(maxsize=128)
def horizons(detection: Detection) -> tuple[Horizon, ...]:
    """The horizon of each symbol, or more than that, where the pattern has too many cases (`is_exact`)."""
    zones = match_zones(detection)
    return tuple(_horizon(symbol, zones) for symbol in detection.symbols)


def _horizon(symbol: Symbol, zones: Sequence[Zone]) -> Horizon:
    detected: Variable = ("a", DETECTED)
    ts: Variable = ("a", symbol.ts)
    te: Variable = ("a", symbol.te)
    return Horizon(
        symbol,
        max((zone.distance(ts, detected) for zone in zones), default=-INF),
        max((zone.distance(te, detected) for zone in zones), default=-INF),
        all(zone.distance(detected, te) <= 0 for zone in zones),
        next((zone for zone in zones if zone.distance(te, detected) == INF), None),
    )
