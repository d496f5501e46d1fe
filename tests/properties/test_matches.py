"""What the analysis says of all matches of random patterns holds of them, and no less could be said."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from itertools import pairwise

import pytest

from tests.properties.test_detection import likely_match
from tests.shards import shards
from tests.strategies.patterns import RandomPattern, random_chain, random_pattern
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.match.node import DETECTED, Emission
from tidegate.algebra.time import INF
from tidegate.algebra.types import BIGINT
from tidegate.analysis.ordered.match import matches
from tidegate.analysis.ordered.match.detection import Detection, detection, detection_time
from tidegate.analysis.ordered.match.matches import Horizon, horizons, match_zones, matching, relations
from tidegate.analysis.zones.normal_form import Bound, holds
from tidegate.analysis.zones.zone import Zone, attribute_of

SHARDS = 8
PATTERNS = 20
MATCHES = 12
FAR = 1_000


def pattern_of(seed: int) -> RandomPattern:
    return random_pattern(seed, points=seed % 3 == 0)


def random_detection(seed: int, made: RandomPattern) -> Detection | None:
    """A random pattern, with and without window, early and final; None where it has too many cases."""
    emission: Emission = "final" if seed % 4 == 0 else "earliest"
    try:
        return detection(made.symbols, made.condition, BIGINT, (None, None, 5)[seed // 2 % 3], emission)
    except QueryError as error:
        if error.code != "TG150":
            raise
        return None


def endpoints_at(found: Detection, point: dict[str, int]) -> tuple[int, ...]:
    return tuple(point[name] for name in found.pattern.base.layout.attributes)


def point_of(zone: Zone) -> dict[str, int]:
    return {attribute_of(row): value for row, value in zone.point().items()}


def inside(zone: Zone, point: dict[str, int]) -> bool:
    rows = [point[attribute_of(row)] for row in zone.layout.rows]
    return all(v - w <= zone.matrix[i, j] for i, w in enumerate(rows) for j, v in enumerate(rows))


def check_match(found: Detection, zones: list[Zone], horizon: tuple[Horizon, ...], values: tuple[int, ...]) -> bool:
    """A match satisfies the relations, some zone and the horizons; the relations hold from its detection on, no
    earlier.
    """
    detected = detection_time(found, values)
    at = dict(zip(found.pattern.base.layout.attributes, values, strict=True))
    last = INF if found.within is None else min(values[0::2]) + found.within
    demanded, exact = relations(found), matching(found).is_exact
    for instant in range(min(values), max(values) + 12):
        expected = detected is not None and detected <= instant <= last
        assert holds(demanded, {**at, DETECTED: instant}) == expected, (found, values, instant)
        if exact or instant == detected:
            zoned = any(inside(zone, {**at, DETECTED: instant}) for zone in zones)
            assert zoned == (instant == detected), (found, values)
    if detected is None:
        return False
    for one, ts, te in zip(horizon, values[0::2], values[1::2], strict=True):
        assert detected <= ts + one.after_start, (found, values)
        assert detected <= te + one.after_end, (found, values)
        assert te <= detected or not one.end_known, (found, values)
    return True


def check_attained(found: Detection, zones: list[Zone], one: Horizon) -> str:
    """Some match reaches the horizon, and where it has none, any number of ticks."""
    for name, most in ((one.symbol.ts, one.after_start), (one.symbol.te, one.after_end)):
        ticks = FAR if most == INF else int(most)
        farthest = (zone.conjoin([Bound(name, DETECTED, -ticks)]) for zone in zones)
        point = point_of(next(zone for zone in farthest if isinstance(zone, Zone)))
        assert detection_time(found, endpoints_at(found, point)) == point[DETECTED] >= point[name] + ticks
    assert (one.witness is None) == (one.after_end < INF)
    if not one.end_known:
        later = (zone.conjoin([Bound(DETECTED, one.symbol.te, -1)]) for zone in zones)
        point = point_of(next(zone for zone in later if isinstance(zone, Zone)))
        assert detection_time(found, endpoints_at(found, point)) == point[DETECTED] < point[one.symbol.te]
    return "unbounded" if one.after_end == INF else "bounded"


def zones_of(found: Detection) -> list[Zone] | None:
    """The zones of all matches; None where a single condition has too many cases."""
    try:
        return match_zones(found)
    except QueryError as error:
        if error.code != "TG150":
            raise
        return None


def check(seeds: range, make: Callable[[int], RandomPattern] = pattern_of) -> Counter[str]:
    tally: Counter[str] = Counter()
    for seed in seeds:
        made = make(seed)
        found = random_detection(seed, made)
        if found is None or (zones := zones_of(found)) is None:
            tally["refused"] += 1
            continue
        horizon = horizons(found)
        rng = random.Random(f"{seed}/matches")
        for _ in range(MATCHES):
            drawn = likely_match(rng, made)
            closed = [max(ts + 1, 9) if te == INF else te for ts, te in zip(drawn[0::2], drawn[1::2], strict=True)]
            values = tuple(int(v) for pair in zip(drawn[0::2], closed, strict=True) for v in pair)
            tally["match" if check_match(found, zones, horizon, values) else "no match"] += 1
        if not matching(found).is_exact:
            tally["inexact"] += 1
            continue
        for zone in zones:
            point = point_of(zone)
            assert detection_time(found, endpoints_at(found, point)) == point[DETECTED], (found, point)
        if zones:
            tally.update(check_attained(found, zones, one) for one in horizon)
        else:
            assert all(one.after_end == -INF for one in horizon)
            tally["never"] += 1
    return tally


@pytest.mark.parametrize("shard", shards(SHARDS))
def test_zones_and_horizons_of_random_patterns(shard: int) -> None:
    tally = check(range(shard * PATTERNS, (shard + 1) * PATTERNS))
    assert min(tally[kind] for kind in ("match", "no match", "bounded", "unbounded")) >= 5, tally
    assert tally["never"], tally
    assert tally["refused"] <= 0.1 * PATTERNS, tally


@pytest.mark.parametrize("limit", [8, pytest.param(24, marks=pytest.mark.long)])
def test_zones_around_too_many_cases_have_all_matches_in_them(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches, "MAX_ZONES", limit)
    tally = check(range(2 * PATTERNS), random_chain)
    assert min(tally["inexact"], tally["match"]) >= 10, tally


@pytest.mark.long
@pytest.mark.parametrize(("first", "last"), list(pairwise(range(10_000, 11_001, 250))))
def test_zones_and_horizons_of_many_random_patterns(first: int, last: int) -> None:
    check(range(first, last))
