"""The embedded engine yields the complete result whatever the batching, the permitted disorder and the rejected rows."""

from __future__ import annotations

import pytest

from tests.properties.families import FAMILIES, seeds

SHARDS = 4


@pytest.mark.parametrize("shard", range(SHARDS))
def test_embedded_is_the_complete_result(shard: int) -> None:
    for seed in seeds(240)[shard::SHARDS]:
        failure = FAMILIES["embedded"].run(seed)
        assert failure is None, failure
