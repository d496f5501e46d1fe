"""Files that are put away or written again after they were read, seen from a run on Spark that was stopped in
between.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tests.runtime.spark.test_which_files import (
    FILES,
    counts,
    embedded,
    expected,
    on_spark,
    program,
    published,
    sinks,
    write,
)
from tidegate.runtime.engines.spark.engine import RunningQuery
from tidegate.runtime.state.failpoints import crash
from tidegate.runtime.state.store.local import LocalStore

pytestmark = pytest.mark.spark

SCHEMA = "k bigint, t bigint, a boolean"
events, others = tg.stream("S", SCHEMA, progress="t"), tg.stream("R", SCHEMA, progress="t")


def crashed(spark: SparkSession, place: Path, where: str, skip: int = 0) -> None:
    store = LocalStore(place / "state")
    store.failpoints.arm(where, crash, skip=skip)
    with pytest.raises(tg.InternalError, match="TG491"):
        on_spark(spark, place, 1, checkpoint=store)


@pytest.mark.parametrize("where", ["commit-after-manifest", "commit-after-gc"])
def test_what_a_batch_read_is_put_away_before_spark_knows(spark: SparkSession, tmp_path: Path, where: str) -> None:
    """Spark runs its batch again, and what it read is known."""
    write(tmp_path / "in", range(3))
    wanted = expected(tmp_path)
    crashed(spark, tmp_path, where)
    (tmp_path / "in" / "part-00.parquet").unlink()
    assert counts(on_spark(spark, tmp_path, 1).reports) == [(10, {})] * 2
    assert published(tmp_path) == wanted


@pytest.mark.parametrize("driver_bytes", [0, 64 << 20])
def test_a_file_that_goes_before_it_is_read_is_told_as_one_that_cannot_be_read(
    spark: SparkSession, tmp_path: Path, driver_bytes: int
) -> None:
    write(tmp_path / "in", range(4))
    store, going = LocalStore(tmp_path / "state"), tmp_path / "in" / "part-01.parquet"
    store.failpoints.arm("batch-after-intent", going.unlink)
    with pytest.raises(tg.QueryError, match=f"TG412 .*{going} cannot be read as parquet"):
        on_spark(spark, tmp_path, None, checkpoint=store, driver_bytes=driver_bytes)
    assert counts(on_spark(spark, tmp_path, None, driver_bytes=driver_bytes).reports) == [(30, {})]


@pytest.mark.parametrize("driver_bytes", [0, 64 << 20])
def test_a_file_that_is_written_again_before_it_is_read_counts_as_it_was_read(
    spark: SparkSession, tmp_path: Path, driver_bytes: int
) -> None:
    write(tmp_path / "in", range(4))
    wanted = expected(tmp_path)
    store = LocalStore(tmp_path / "state")
    store.failpoints.arm("batch-after-intent", lambda: write(tmp_path / "in", range(1, 2), age=5))
    assert counts(on_spark(spark, tmp_path, None, checkpoint=store, driver_bytes=driver_bytes).reports) == [(40, {})]
    assert counts(on_spark(spark, tmp_path, None, driver_bytes=driver_bytes).reports) == []
    assert published(tmp_path) == wanted


@pytest.mark.parametrize("sources", ["one source", pytest.param("two sources", marks=pytest.mark.long)])
def test_a_streaming_dataframe_of_several_sources_beside_files(
    spark: SparkSession, tmp_path: Path, sources: str
) -> None:
    """Each is read to its end, whatever was put away meanwhile."""
    program = tg.program(
        A=events.partition_by("k").derive(A=tg.situation(events.a)).A,
        B=others.partition_by("k").derive(B=tg.situation(others.a)).B,
    )
    write(tmp_path / "in")
    write(tmp_path / "rows", range(2))
    wanted = expected(tmp_path)

    def run(checkpoint: Any) -> RunningQuery:
        rows = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).parquet(str(tmp_path / "rows"))
        if sources == "two sources":
            rows = rows.union(spark.readStream.schema(SCHEMA).parquet(str(tmp_path / "rows")).where("false"))
        given = {"R": tg.source(rows, delay=0), "S": tg.parquet(tmp_path / "in", delay=0, per_batch=1, bounded=True)}
        sinks = {"A": tg.parquet_sink(tmp_path / "out")}
        query: RunningQuery = program.start(spark, sources=given, sinks=sinks, checkpoint=checkpoint)
        query.awaitTermination()
        return query

    store = LocalStore(tmp_path / "state")
    store.failpoints.arm("commit-before-manifest", crash, skip=6)
    with pytest.raises(tg.InternalError, match="TG491"):
        run(store)
    for path in sorted((tmp_path / "in").iterdir())[:6]:
        path.unlink()
    read = [report.counts["S"].rows_in for report in run(tmp_path / "state").reports if "S" in report.counts]
    assert read == [10] * (FILES - 6)
    assert published(tmp_path) == wanted


@pytest.mark.parametrize("more", [False, True])
def test_a_file_that_was_written_again_is_refused_as_by_a_session(
    spark: SparkSession, tmp_path: Path, *, more: bool
) -> None:
    write(tmp_path / "in", range(2))
    on_spark(spark, tmp_path, 1, bounded=False)
    write(tmp_path / "in", range(1), age=-1)
    if more:
        write(tmp_path / "in", range(2, 3))
    with pytest.raises(tg.QueryError, match=r"TG411 S: .*part-00.parquet was read with"):
        on_spark(spark, tmp_path, 1)
    with pytest.raises(tg.QueryError, match=r"TG411 S: .*part-00.parquet was read with"):
        embedded(tmp_path, 1)
    (tmp_path / "in" / "part-00.parquet").unlink()
    assert counts(on_spark(spark, tmp_path, 1).reports) == [(10, {})] * more


def test_a_file_that_was_written_again_is_passed_over_where_bad_files_are_set_aside(
    spark: SparkSession, tmp_path: Path
) -> None:
    given = {"S": tg.parquet(tmp_path / "in", delay=0, on_bad_file="quarantine")}

    def run() -> list[Any]:
        query = program.start(spark, sources=given, sinks=sinks(tmp_path), checkpoint=tmp_path / "state")
        query.awaitTermination()
        return counts(query.reports)

    write(tmp_path / "in", range(2))
    assert run() == [(20, {})]
    write(tmp_path / "in", range(1), age=-1)
    write(tmp_path / "in", range(2, 3))
    with pytest.warns(tg.RunWarning, match="TG443 S: 1 file that changed after it was read"):
        assert run() == [(10, {})]


def test_a_file_that_is_written_again_while_a_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    write(tmp_path / "in", range(3))
    with pytest.raises(tg.QueryError, match="TG411"):
        on_spark(spark, tmp_path, 1, on_batch=lambda _: write(tmp_path / "in", range(1), age=-1))


def test_rows_that_a_checkpoint_keeps_are_as_they_were_whatever_their_time(spark: SparkSession, tmp_path: Path) -> None:
    """A copy of a checkpoint that was made in its place may have other times."""
    program = tg.program(A=events.partition_by("k").derive(A=tg.situation(events.a)).A)
    rows = [{"k": 1, "t": t, "a": t % 3 == 0} for t in range(10)]
    for spark_is_new in (False, False, True):
        if spark_is_new:
            shutil.rmtree(tmp_path / "state" / "spark")
        query = program.start(spark, sources={"S": tg.source(rows, delay=0)}, checkpoint=tmp_path / "state")
        query.awaitTermination()
        for path in (tmp_path / "state").rglob("*.parquet"):
            os.utime(path, (1_600_000_000, 1_600_000_000))
