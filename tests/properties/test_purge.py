"""Partner and kill rule change no result, whatever the program, the batching and the permitted disorder (rules R21 to
R23).
"""

from __future__ import annotations

import pytest

from tests.properties.families import FAMILIES, seeds
from tests.shards import shards

SHARDS = 16


@pytest.mark.parametrize(
    ("family", "cases"), [("partners", 240), ("kills", 400), ("purging", 80), ("looks", 160), ("looks-joined", 80)]
)
@pytest.mark.parametrize("shard", shards(SHARDS))
def test_freed_rows_change_no_result(family: str, cases: int, shard: int) -> None:
    for seed in seeds(cases)[shard::SHARDS]:
        failure = FAMILIES[family].run(seed)
        assert failure is None, failure
