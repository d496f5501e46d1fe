"""Linear Road on Spark: rows in disorder, in batches of any size, by a program that is started again and again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import pytest

from examples.linear_road import contexts
from examples.linear_road.checker import check
from examples.linear_road.queries import DISTANCES, program
from tests.examples.small_roads import bags, example, in_contexts, in_disorder, many_borders
from tidegate import testing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: Where a batch is killed: before it is committed, and after.
PLACES = ("batch-after-intent", "commit-before-manifest", "commit-after-manifest", "commit-after-gc")


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize(("driver_bytes", "shard_bytes"), [(64 << 20, 0), (0, 1 << 20)])
def test_any_batches_in_disorder(driver_bytes: int, shard_bytes: int, spark: SparkSession) -> None:
    """In the driver, and by shards; every fourth batch is killed, and every fifth is the last of its run."""
    rows = many_borders(range(40, 43), minutes=5)
    right = bags(check(rows))
    assert all(right.values())
    with testing.drive(
        program,
        spark=spark,
        statics={"Distances": DISTANCES},
        driver_bytes=driver_bytes,
        shard_bytes=shard_bytes,
    ) as run:
        for number, (batch, until) in enumerate(in_disorder(rows, 3)):
            run.add("Road", batch)
            run.advance("Road", time=until)
            if number % 4 == 3:
                run.kill("commit-before-manifest")
            run.step()
            if number % 5 == 4:
                run.restart()
        run.finish()
        run.step()
        found = {name: Counter(tuple(row.values()) for row in run.results(name)) for name in right}
    assert found == right


@pytest.mark.parametrize(
    "spark_bytes",
    [
        None,
        pytest.param((64 << 20, 0), marks=[pytest.mark.spark, pytest.mark.long]),
        pytest.param((0, 1 << 20), marks=[pytest.mark.spark, pytest.mark.long]),
    ],
)
def test_said_in_contexts_under_kills(spark_bytes: tuple[int, int] | None, request: pytest.FixtureRequest) -> None:
    """Embedded, and on Spark in the driver and by shards: while contexts are open, every batch is killed, at one
    place after the other, and every third is the last of its run.
    """
    rows = many_borders(range(40, 42), minutes=4) + example()
    right = in_contexts(check(rows))
    assert all(right.values())
    options: dict[str, Any] = {}
    if spark_bytes is not None:
        options = {
            "spark": request.getfixturevalue("spark"),
            "driver_bytes": spark_bytes[0],
            "shard_bytes": spark_bytes[1],
        }
    with testing.drive(contexts.program, statics={"Distances": DISTANCES}, **options) as run:
        for number, (batch, until) in enumerate(in_disorder(rows, 5)):
            run.add("Road", batch)
            run.advance("Road", time=until)
            run.kill(PLACES[number % len(PLACES)])
            run.step()
            if number % 3 == 2:
                run.restart()
        run.finish()
        run.step()
        found = {name: Counter(tuple(row.values()) for row in run.results(name)) for name in right}
    assert number >= len(PLACES) - 1
    assert found == right
