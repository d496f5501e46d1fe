"""Any fair order of increments, and any progress that lags, give the same results; so do schedules (rule R24)."""

from __future__ import annotations

import pytest

from tests.properties.families import FAMILIES, seeds
from tests.shards import shards

SHARDS = 4
LONG = range(30_000, 31_000)
#: Cases of a quick run: with schedules as users give them, in any order with any lag, and that by the rules alone.
QUICK = {
    "scheduled": 40,
    "scheduled-recursive": 16,
    "scheduled-over": 30,
    "scheduled-parts": 10,
    "turns": 24,
    "turns-kills": 16,
    "turns-recursive": 12,
    "lagging": 30,
}


@pytest.mark.parametrize(("family", "cases"), QUICK.items())
@pytest.mark.parametrize("shard", shards(SHARDS))
def test_what_lags_comes_later_and_is_the_same(family: str, cases: int, shard: int) -> None:
    for seed in seeds(cases)[shard::SHARDS]:
        failure = FAMILIES[family].run(seed)
        assert failure is None, failure


@pytest.mark.long
@pytest.mark.parametrize("family", QUICK)
@pytest.mark.parametrize("shard", range(SHARDS))
def test_many_programs_that_lag(family: str, shard: int) -> None:
    for seed in LONG[shard::SHARDS]:
        failure = FAMILIES[family].run(seed)
        assert failure is None, failure
    tally = FAMILIES[family].tally
    assert tally.lagged > tally.valid, tally
