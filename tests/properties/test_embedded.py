"""The embedded engine yields the complete result whatever the batching, the permitted disorder and the rejected
rows.
"""

from __future__ import annotations

import pytest

from tests.properties.families import FAMILIES, seeds
from tests.shards import shards

SHARDS = 8


@pytest.mark.parametrize(("family", "cases"), [("embedded", 200), ("windows", 80)])
@pytest.mark.parametrize("shard", shards(SHARDS))
def test_embedded_is_the_complete_result(family: str, cases: int, shard: int) -> None:
    for seed in seeds(cases)[shard::SHARDS]:
        failure = FAMILIES[family].run(seed)
        assert failure is None, failure
