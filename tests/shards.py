"""Which cases are quick, and which are long tests: those in `make test`, all of them in `make test-all`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest
from _pytest.mark.structures import ParameterSet


def shards(count: int, quick: int = 1) -> list[int | ParameterSet]:
    """Numbers of shards of random cases, of which all but the first `quick` are long tests."""
    return [shard if shard < quick else pytest.param(shard, marks=pytest.mark.long) for shard in range(count)]


def cases(rows: Iterable[tuple[object, ...]], quick: Callable[..., bool]) -> list[ParameterSet]:
    """Cases with several parameters each, of which those that are not `quick` are long tests."""
    return [pytest.param(*row, marks=() if quick(*row) else pytest.mark.long) for row in rows]
