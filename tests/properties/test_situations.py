"""Situations and matches of random patterns: the embedded engine yields what the operators mean, however events
arrive.
"""

from __future__ import annotations

import pytest

from tests.properties.families import FAMILIES, Family, by_delays, seeds
from tests.shards import shards
from tests.strategies.situations import random_situation_case

SHARDS = 8
CASES = 160


@pytest.mark.parametrize("shard", shards(SHARDS))
def test_situations_and_matches_are_the_complete_result(shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES["situations"].run(seed)
        assert failure is None, failure


def test_random_cases_have_results() -> None:
    family = Family(by_delays, make=random_situation_case, scripts=1)
    for seed in range(40):
        assert family.run(seed) is None
    assert family.tally.valid >= 25
    assert family.tally.with_results >= 20
    assert family.tally.results >= 50
    assert family.tally.joined >= 30
