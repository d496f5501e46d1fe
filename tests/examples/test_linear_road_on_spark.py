"""Linear Road on Spark: rows in disorder, in batches of any size, by a program that is started again and again."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import pytest

from examples.linear_road.checker import check
from examples.linear_road.queries import DISTANCES, program
from tests.examples.small_roads import bags, in_disorder, many_borders
from tidegate import testing

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


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
