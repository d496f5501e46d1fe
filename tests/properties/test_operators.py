"""Operators of users, values of the rows around a row, as-of joins, windows and places in groups, in random programs:
the embedded engine yields what they mean, however events arrive.
"""Operators of users, values of the rows around a row, as-of joins, windows and ticks, in random programs: the embedded
engine yields what they mean, however events arrive.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.properties.families import FAMILIES, Family, by_delays, seeds
from tests.strategies.asof import random_asof_case
from tests.strategies.operators import random_operator_case
from tests.strategies.over import random_over_case
from tests.strategies.programs import Case
from tests.strategies.ranks import random_ranks_case
from tests.strategies.versions import random_versions_case
from tests.strategies.ticks import random_ticks_case
from tests.strategies.windows import random_windows_case

SHARDS = 2
CASES = 40


@pytest.mark.parametrize("shard", range(SHARDS))
def test_operators_of_users_yield_the_complete_result(shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES["operators"].run(seed)
        assert failure is None, failure


@pytest.mark.parametrize("shard", range(SHARDS))
def test_rows_have_the_values_of_the_rows_around_them(shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES["over"].run(seed)
        assert failure is None, failure


@pytest.mark.parametrize("shard", range(SHARDS))
def test_rows_have_the_rows_of_another_stream_nearest_in_time(shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES["asof"].run(seed)
        assert failure is None, failure


@pytest.mark.parametrize("shard", range(SHARDS))
def test_windows_have_the_rows_that_belong_to_them(shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES["row-windows"].run(seed)
        assert failure is None, failure


@pytest.mark.parametrize("shard", range(SHARDS))
def test_rows_have_their_places_in_their_groups(shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES["ranks"].run(seed)
        assert failure is None, failure


@pytest.mark.parametrize("shard", range(SHARDS))
def test_rows_have_the_versions_that_hold_at_their_instants(shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES["versions"].run(seed)
def test_ticks_follow_the_rows(shard: int) -> None:
    for seed in seeds(CASES)[shard::SHARDS]:
        failure = FAMILIES["ticks"].run(seed)
        assert failure is None, failure


@pytest.mark.parametrize(
    "make",
    [
        random_asof_case,
        random_operator_case,
        random_over_case,
        random_ranks_case,
        random_versions_case,
        random_windows_case,
    ],
    "make", [random_asof_case, random_operator_case, random_over_case, random_ticks_case, random_windows_case]
)
def test_random_cases_have_results(make: Callable[[int], Case]) -> None:
    family = Family(by_delays, make=make, scripts=1)
    for seed in range(30):
        assert family.run(seed) is None
    assert family.tally.valid >= 20
    assert family.tally.with_results >= 15
    assert family.tally.results >= 100
