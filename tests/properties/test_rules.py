"""The rules of the analysis hold on random programs, rows and arrivals: nothing early, late, twice, missing or
retracted.
"""

from __future__ import annotations

import pytest

from tests.properties.families import FAMILIES, seeds
from tests.shards import shards

SHARDS = 8


@pytest.mark.parametrize(("family", "cases"), [("rules", 320), ("staged", 160)])
@pytest.mark.parametrize("shard", shards(SHARDS))
def test_increments_by_the_rules_are_the_complete_result(family: str, cases: int, shard: int) -> None:
    chosen = FAMILIES[family]
    for seed in seeds(cases)[shard::SHARDS]:
        failure = chosen.run(seed)
        assert failure is None, failure
