"""Operators that gather rows in order, in random programs: the embedded engine yields what they mean, however events
arrive.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.properties.families import FAMILIES, Family, by_delays, seeds
from tests.shards import shards
from tests.strategies.asof import random_asof_case
from tests.strategies.contexts import random_contexts_case
from tests.strategies.contexts_inside import random_inside_case
from tests.strategies.counted import random_counted_case
from tests.strategies.operators import random_operator_case
from tests.strategies.over import random_over_case
from tests.strategies.programs import Case
from tests.strategies.ranks import random_ranks_case
from tests.strategies.sequences import random_sequences_case
from tests.strategies.ticks import random_ticks_case
from tests.strategies.versions import random_versions_case
from tests.strategies.windows import random_windows_case

SHARDS = 2
CASES = 40
KINDS = (
    *("operators", "over", "asof", "contexts", "contexts-above", "row-windows", "ranks", "versions", "ticks"),
    *("sequences", "counted", "contexts-inside"),
)


@pytest.mark.parametrize("shard", shards(SHARDS))
@pytest.mark.parametrize("kind", KINDS)
def test_operators_yield_the_complete_result(kind: str, shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES[kind].run(seed)
        assert failure is None, failure


@pytest.mark.parametrize(
    "make",
    [
        random_asof_case,
        random_contexts_case,
        random_counted_case,
        random_inside_case,
        random_operator_case,
        random_over_case,
        random_ranks_case,
        random_sequences_case,
        random_ticks_case,
        random_versions_case,
        random_windows_case,
    ],
)
def test_random_cases_have_results(make: Callable[[int], Case]) -> None:
    family = Family(by_delays, make=make, scripts=1)
    for seed in range(30):
        assert family.run(seed) is None
    assert family.tally.valid >= 20
    assert family.tally.with_results >= 15
    assert family.tally.results >= 100
