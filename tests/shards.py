"""Shards of random cases: the first few in `make test`, all of them in `make test-all`."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet


def shards(count: int, quick: int = 1) -> list[int | ParameterSet]:
    """Numbers of shards, of which all but the first `quick` are long tests."""
    return [shard if shard < quick else pytest.param(shard, marks=pytest.mark.long) for shard in range(count)]
