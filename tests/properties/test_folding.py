"""Folding changes no result, whatever the query, the batching, the disorder and the lag (rules R30 to R35)."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict

import pytest

from tests.properties.families import FAMILIES, seeds
from tests.properties.folded import run
from tests.shards import shards
from tests.strategies.parts import random_parts_case
from tidegate.algebra.errors import QueryError
from tidegate.analysis.pipeline import analyse

SHARDS, OF_PARTS, OF_RUNS = 8, 8, 7


@pytest.mark.parametrize("shard", shards(SHARDS))
def test_folded_rows_change_no_result(shard: int) -> None:
    counts: Counter[str] = Counter()
    for seed in seeds(800)[shard::SHARDS]:
        failure, statistics = run(seed)
        assert failure is None, failure
        counts.update({name: bool(number) for name, number in asdict(statistics).items()})
    assert counts["merged"] > counts["cases"] / 4, counts
    assert min(counts.values()) > 0, counts


def is_cut(seed: int) -> bool:
    """Whether the query of a case is valid, and some part of it a stream of its own (rule R36)."""
    try:
        return any(query.query.cut for query in analyse(random_parts_case(seed).program).queries)
    except QueryError:
        return False


@pytest.mark.parametrize("shard", shards(OF_PARTS))
def test_parts_that_are_streams_of_their_own_change_no_result(shard: int) -> None:
    cut = 0
    for seed in seeds(240)[shard::OF_PARTS]:
        if is_cut(seed):
            cut += 1
            failure = FAMILIES["parts" if cut % 3 else "parts-turns"].run(seed)
            assert failure is None, failure
    assert cut > 1


@pytest.mark.parametrize(("family", "cases"), [("folding", 120), ("folding-turns", 80)])
@pytest.mark.parametrize("shard", shards(OF_RUNS))
def test_folded_runs_give_the_complete_result(family: str, cases: int, shard: int) -> None:
    for seed in seeds(cases)[shard::OF_RUNS]:
        failure = FAMILIES[family].run(seed)
        assert failure is None, failure
    assert family != "folding" or FAMILIES[family].tally.folded > 0
