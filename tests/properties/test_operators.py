"""Operators of users in random programs: the embedded engine yields what they mean, however events arrive."""

from __future__ import annotations

import pytest

from tests.properties.families import FAMILIES, Family, by_delays, seeds
from tests.strategies.operators import random_operator_case

SHARDS = 2
CASES = 40


@pytest.mark.parametrize("shard", range(SHARDS))
def test_operators_of_users_yield_the_complete_result(shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES["operators"].run(seed)
        assert failure is None, failure


def test_random_cases_have_results() -> None:
    family = Family(by_delays, make=random_operator_case, scripts=1)
    for seed in range(30):
        assert family.run(seed) is None
    assert family.tally.valid >= 20
    assert family.tally.with_results >= 15
    assert family.tally.results >= 100
