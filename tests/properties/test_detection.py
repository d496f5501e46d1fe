"""Random patterns with shifts, durations and disjunctions across pairs are detected when brute force says."""

from __future__ import annotations

import random
from collections import Counter

import numpy as np
import pytest

from tests.analysis.completions import asked, certain_from, endpoints
from tests.properties.brute import holds
from tests.shards import shards
from tests.strategies.patterns import ROOM, RandomPattern, random_intervals, random_pattern
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import BIGINT
from tidegate.analysis.ordered.match.detection import detection, detection_time

SHARDS = 8
PATTERNS = 25
MATCHES = 6
TRIES = 8
FAR = 1_000


def likely_match(rng: random.Random, made: RandomPattern) -> tuple[Extended, ...]:
    """Intervals that satisfy the pattern if unknown ends are late, where some of a few tries do."""
    full = asked(made.symbols, made.condition)
    for _ in range(TRIES):
        values = random_intervals(rng, made.symbols)
        late = {
            name: np.array([FAR if value == INF else value], dtype=np.int64)
            for name, value in zip(endpoints(made.symbols), values, strict=True)
        }
        if holds(full, late).all():
            break
    return values


def check(seeds: range, *, points: bool) -> Counter[str]:
    """How matches of random patterns came out; fails at the first that brute force detects at another instant."""
    tally: Counter[str] = Counter()
    for seed in seeds:
        made = random_pattern(seed, points=points)
        try:
            found = detection(made.symbols, made.condition, BIGINT)
        except QueryError as error:
            if error.code != "TG150":
                raise
            tally["refused"] += MATCHES
            continue
        rng = random.Random(f"{seed}/matches")
        for _ in range(MATCHES):
            values = likely_match(rng, made)
            expected = certain_from(made.symbols, made.condition, values, ROOM)
            assert detection_time(found, values) == expected, (made, values)
            if expected is None:
                tally["none"] += 1
                continue
            v = [value + o for value, offsets in zip(values[0::2], found.start_offsets, strict=True) for o in offsets]
            v += [value + o for value, offsets in zip(values[1::2], found.end_offsets, strict=True) for o in offsets]
            assert expected in v, (made, values)
            tally["at once" if expected == max(values[0::2]) else "by an end" if expected in values else "between"] += 1
    return tally


@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("shard", shards(SHARDS))
def test_random_patterns_are_detected_at_the_earliest_instant(shard: int, points: bool) -> None:
    tally = check(range(shard * PATTERNS, (shard + 1) * PATTERNS), points=points)
    assert min(tally[kind] for kind in ("none", "at once", "by an end")) >= 5, tally
    assert tally["between"], tally
    assert tally["refused"] <= 0.1 * PATTERNS * MATCHES, tally


@pytest.mark.long
@pytest.mark.parametrize("points", [False, True])
@pytest.mark.parametrize("shard", range(SHARDS))
def test_many_random_patterns_are_detected_at_the_earliest_instant(shard: int, points: bool) -> None:
    check(range(10_000 + shard * 125, 10_000 + (shard + 1) * 125), points=points)
