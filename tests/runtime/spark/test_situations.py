"""Situations and patterns on Spark, in the driver and by shards of the partitions: the same rows, and the same
state.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import Source, parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.state.store.local import LocalStore

pytestmark = pytest.mark.spark

readings = tg.stream("R", "name string, t bigint, x bigint", progress="t")
DRIVER, SHARDS = {"driver_bytes": 64 << 20}, {"driver_bytes": 0}
FILES = 6


def program(*, keyed: bool = True) -> tg.Program:
    """A pattern of event runs, one with aggregates, and situations by themselves."""
    parts = readings.partition_by("name") if keyed else readings.partition_by()
    found = parts.derive(A=tg.situation(readings.x.is_in(1, 3)), B=tg.situation(readings.x.is_in(2, 3)))
    summed = parts.derive(
        S=tg.situation(readings.x > 0, n=tg.count(), top=tg.max(readings.x)), T=tg.situation(readings.x > 1)
    )
    return tg.program(
        Found=found.match(found.A.before(found.B) | found.A.overlaps(found.B), within=12),
        Sums=summed.match(summed.S.contains(summed.T) | summed.S.started_by(summed.T), within=30),
        Alone=found.A,
    )


def write(folder: Path, *, keyed: bool = True, by_key: bool = False, apart: bool = False) -> Path:
    """Readings in files of neighbouring spans of time, or of some names each; `apart`: spans in two files, even and
    odd.
    """
    rng = random.Random(7)
    rows = []
    for name in ("one", "two", "three", None) if keyed else ("one",):
        value = 0
        for t in range(120):
            value = rng.randrange(4) if rng.random() < 0.3 else value
            rows.append((name, t, value))
    rows.sort(key=lambda row: (str(row[0]), row[1]) if by_key else (row[1], str(row[0])))
    folder.mkdir()
    frame = pl.DataFrame(rows, schema={"name": pl.String, "t": pl.Int64, "x": pl.Int64}, orient="row")
    count = 4 if by_key else FILES
    for number in range(count):
        low, high = (len(rows) * place // count for place in (number, number + 1))
        path = folder / f"{number}.parquet"
        some = frame[low:high]
        if apart:
            some = frame.filter(pl.col("t") // 40 == number // 2, pl.col("t") % 2 == number % 2)
        some.write_parquet(path)
        os.utime(path, (1_600_000_000 + number,) * 2)
    return folder


def source(files: Path, per_batch: int | None = 2) -> Source:
    return parquet(files, per_batch=per_batch, delay=0, bounded=True)


def expected(files: Path, *, keyed: bool = True) -> dict[str, Counter[str]]:
    rows = pl.read_parquet(f"{files}/*.parquet").to_dicts()
    found = program(keyed=keyed).run({"R": rows})
    return {name: Counter(map(str, found[name].arrow().to_pylist())) for name in ("Found", "Sums", "Alone")}


def results(folder: Path) -> dict[str, Counter[str]]:
    found = {}
    for name in ("Found", "Sums", "Alone"):
        paths = sorted((folder / name).glob("*.parquet"))
        found[name] = Counter(str(row) for path in paths for row in pl.read_parquet(path).to_dicts())
    return found


def on_spark(
    spark: SparkSession, files: Path, folder: Path, place: dict[str, int], *, keyed: bool = True, per_batch: int = 2
) -> list[BatchReport]:
    sinks = {name: parquet_sink(folder / "out" / name) for name in ("Found", "Sums", "Alone")}
    query = start(
        spark,
        program(keyed=keyed).facts,
        sources={"R": source(files, per_batch)},
        sinks=sinks,
        checkpoint=folder / "checkpoint",
        **place,  # type: ignore[arg-type]  # bytes only
    )
    query.awaitTermination()
    return query.reports


def test_shards_find_what_the_driver_finds(spark: SparkSession, tmp_path: Path) -> None:
    files = write(tmp_path / "in")
    reports = on_spark(spark, files, tmp_path, SHARDS)
    assert {place for report in reports for place in report.places.values()} == {"sharded"}
    assert not any(report.interleaved for report in reports)
    assert results(tmp_path / "out") == expected(files)


def test_without_a_key_slices_are_stitched_in_the_driver(spark: SparkSession, tmp_path: Path) -> None:
    files = write(tmp_path / "in", keyed=False)
    reports = on_spark(spark, files, tmp_path, SHARDS, keyed=False, per_batch=4)
    assert {place for report in reports for place in report.places.values()} == {"driver"}
    assert not any(report.interleaved for report in reports)
    assert results(tmp_path / "out") == expected(files, keyed=False)


def test_files_of_a_key_each_do_not_interleave(spark: SparkSession, tmp_path: Path) -> None:
    files = write(tmp_path / "in", by_key=True)
    reports = on_spark(spark, files, tmp_path, SHARDS, per_batch=4)
    assert not any(report.interleaved for report in reports)
    assert results(tmp_path / "out") == expected(files)


@pytest.mark.parametrize(("keyed", "place"), [(True, "sharded"), (False, "driver")])
def test_slices_that_interleave_are_read_again(keyed: bool, place: str, spark: SparkSession, tmp_path: Path) -> None:
    """Two files a batch, each a task's: shards find it, and without a key the driver."""
    files = write(tmp_path / "in", keyed=keyed, apart=True)
    reports = on_spark(spark, files, tmp_path, SHARDS, keyed=keyed)
    assert {one for report in reports for one in report.places.values()} == {place}
    # Of the next batches nothing is joined before all of it is seen.
    assert [report.interleaved for report in reports] == [True, False, False]
    assert results(tmp_path / "out") == expected(files, keyed=keyed)
    for name, found in results(tmp_path / "out").items():
        assert sum(report.results.get(name, 0) for report in reports) == found.total() > 0


@pytest.mark.long
def test_a_run_goes_on_in_shards_in_the_driver_and_embedded(spark: SparkSession, tmp_path: Path) -> None:
    waiting = sorted(write(tmp_path / "in").iterdir())
    files, facts = tmp_path / "now", program().facts
    files.mkdir()
    sinks = {name: parquet_sink(tmp_path / "out" / name) for name in ("Found", "Sums", "Alone")}
    for place in (SHARDS, DRIVER, "embedded", {"driver_bytes": 0, "shard_bytes": 300}, SHARDS, "embedded"):
        path = waiting.pop(0)
        path.rename(files / path.name)
        given = {"R": parquet(files, delay=0, bounded=not waiting)}
        if isinstance(place, dict):
            query = start(
                spark,
                facts,
                sources=given,
                sinks=sinks,
                checkpoint=tmp_path / "checkpoint",
                **place,  # type: ignore[arg-type]  # bytes only
            )
            query.awaitTermination()
        else:
            with Session(facts, LocalStore(tmp_path / "checkpoint"), sources=given, sinks=sinks) as session:
                session.process()
    assert not waiting
    assert results(tmp_path / "out") == expected(files)
