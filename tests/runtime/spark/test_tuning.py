"""On Spark, too, results never depend on choices: random ones in every batch, among all places."""

from __future__ import annotations

import random
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from tests.runtime.spark.test_engine import expected, files, published, run, write
from tests.runtime.test_tuning import AnyChoice
from tidegate.runtime.engines import options as run_options
from tidegate.runtime.engines.spark.executor import SparkExecutor
from tidegate.runtime.tuning.choices import Way
from tidegate.runtime.tuning.tuner import TUNING, Tuner, choices_of

pytestmark = pytest.mark.spark


@pytest.mark.long
@pytest.mark.parametrize("seed", range(2))
def test_results_are_the_same_whatever_is_chosen(
    seed: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tuners: list[AnyChoice] = []

    def tuner_for(tune: object) -> Tuner:
        del tune
        tuners.append(AnyChoice(random.Random(seed)))
        return tuners[-1]

    monkeypatch.setattr(run_options, "tuner_for", tuner_for)
    write(tmp_path / "in", range(12))
    query = run(spark, {"E": files(tmp_path / "in", bounded=True)}, tmp_path, shard_bytes=1 << 20)
    assert published(tmp_path / "out") == expected(range(12))
    taken = set[str]().union(*(tuner.taken for tuner in tuners))
    assert {way.partition(",")[0] for way in taken} == {"driver", "workers", "sharded"}
    last = query.reports[-1]
    assert all(str(choice) in str(query.explanation()) for choice in last.choices)
    manifest = query._run.setup.checkpoint.manifest
    assert manifest is not None
    assert tuple(choices_of(manifest.extra.get(TUNING))) == last.choices


@pytest.mark.parametrize("driver_bytes", [2_000, 20_000])
def test_rows_of_files_decide_who_reads_them_not_their_bytes(
    driver_bytes: int, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Few bytes of a file, whose rows take 32,000 bytes or more: the driver takes four times `driver_bytes`."""
    by_workers: list[int] = []
    ingest_job = SparkExecutor._ingest_job

    def counting(self: SparkExecutor, *given: Any) -> Any:
        by_workers.append(driver_bytes)
        return ingest_job(self, *given)

    monkeypatch.setattr(SparkExecutor, "_ingest_job", counting)
    (tmp_path / "in").mkdir()
    rows = pa.table({"k": [1] * 2000, "t": [7] * 2000, "v": [3] * 2000})
    pq.write_table(rows, tmp_path / "in" / "a.parquet")
    assert (tmp_path / "in" / "a.parquet").stat().st_size < 4000
    run(spark, {"E": files(tmp_path / "in", bounded=True)}, tmp_path, driver_bytes=driver_bytes)
    assert bool(by_workers) is (driver_bytes < 8_000)


def test_a_place_says_nothing_the_first_time_that_it_does_a_step() -> None:
    """It loads then what the step needs: the driver's first batches were no measure either."""
    learning = Tuner()
    executor = SimpleNamespace(tuner=learning, _tried=set())
    for place in (Way("driver"), Way("workers", tasks=2, cores=2)):
        for seconds in (50.0, 1.0):
            SparkExecutor._learn(executor, {"Q": (place, 1_000_000)}, seconds)  # type: ignore[arg-type]
        assert learning.seconds("Q", place, 1_000_000) < 2
