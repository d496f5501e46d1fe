"""On Spark, too, results never depend on choices: random ones in every batch, among all places."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from tests.runtime.spark.test_engine import expected, files, published, run, write
from tests.runtime.test_tuning import AnyChoice
from tidegate.runtime.engines import options as run_options
from tidegate.runtime.tuning.tuner import TUNING, Tuner, choices_of

pytestmark = pytest.mark.spark


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
