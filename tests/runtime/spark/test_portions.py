"""On Spark: shards in portions, tasks of their own, have the rows of the shard together; of operators too."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.runtime import test_operator_portions as patterns
from tests.runtime.test_portions import RESULTS, batches, program
from tidegate import testing
from tidegate.runtime.engines.spark.eval.portions import Loads

pytestmark = pytest.mark.spark


def test_results_are_the_same_whatever_is_divided(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    rng, made = random.Random(5), batches(5)
    asked: Counter[tuple[str, int]] = Counter()

    def drawn(self: Loads, queries: Any, shards: int) -> dict[tuple[str, int], int]:
        some = [(query, shard) for query in queries for shard in range(shards) if rng.random() < 0.5]
        chosen = {one: rng.randint(2, 4) for one in some}
        asked.update(chosen)
        return chosen

    monkeypatch.setattr(Loads, "portions", drawn)
    with testing.drive(program(), spark=spark, driver_bytes=0, shard_bytes=1 << 20) as run:
        for batch in made:
            for name, rows in batch.items():
                run.add(name, rows)
                run.advance(name, t=rows[-1]["t"] - 1)
            run.step()
        run.finish()
        run.step()
        assert {place for report in run.reports for place in report.places.values()} == {"sharded"}
        found = {name: Counter(map(str, run.results(name))) for name in RESULTS}
    assert asked.total() > len(RESULTS)
    wanted = program().run({name: [row for batch in made for row in batch[name]] for name in ("E", "O")})
    assert found == {name: Counter(map(str, wanted[name].arrow().to_pylist())) for name in RESULTS}


def test_what_operators_find_is_the_same_whatever_is_divided(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng, made = random.Random(6), patterns.batches(6)
    chosen: list[str] = []

    def drawn(self: Loads, queries: Any, shards: int) -> dict[tuple[str, int], int]:
        return {(query, shard): rng.randint(2, 4) for query in queries for shard in range(shards) if rng.random() < 0.6}

    monkeypatch.setattr(Loads, "portions", drawn)
    with testing.drive(patterns.program(), spark=spark, driver_bytes=0) as run:
        for batch in made:
            run.add("R", batch)
            run.advance("R", t=batch[-1]["t"] - 1)
            run.step()
        run.finish()
        run.step()
        assert {place for report in run.reports for place in report.places.values()} == {"sharded"}
        chosen += [choice.step for report in run.reports for choice in report.choices]
        found = {name: Counter(map(str, run.results(name))) for name in patterns.RESULTS}
    assert any(step.startswith("Found, shard") for step in chosen)
    wanted = patterns.program().run({"R": [row for batch in made for row in batch]})
    assert found == {name: Counter(map(str, wanted[name].arrow().to_pylist())) for name in patterns.RESULTS}
