"""Collection and compaction on Spark: the same rows stay as in the driver, and none pass through it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.runtime.batch.executor import Rewrite
from tidegate.runtime.batch.garbage import GarbageCollection
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.spark.engine import RunningQuery
from tidegate.runtime.state.batch import Batch
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.segments import Segment
from tidegate.runtime.state.store.local import LocalStore

pytestmark = pytest.mark.spark

events = tg.stream("E", "k bigint, t bigint, v double, s string, b boolean", progress="t")


def program() -> tg.Program:
    """Rows of every type that live for a while, and partial aggregates."""
    a, b = events.as_("a"), events.as_("b")
    near = a.join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 25)
    return tg.program(
        Near=near.select(t=a.t, u=b.t, v=a.v, s=b.s, b=b.b),
        Counted=events.group_by(events.k, w=tg.ceil(events.t, 40)).agg(n=tg.count(), v=tg.sum(events.v)),
    )


def write(directory: Path) -> None:
    directory.mkdir()
    for number in range(10):
        rows = [
            {"k": i % 2, "t": number * 10 + i, "v": None if i == 1 else i / 3, "s": "é" * i or None, "b": i > 2 or None}
            for i in range(6)
        ]
        path = directory / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))


def run(spark: SparkSession, directory: Path, driver_bytes: int, collect: GarbageCollection) -> RunningQuery:
    query = program().start(
        spark,
        sources={"E": tg.parquet(directory / "in", per_batch=1, delay=4)},
        checkpoint=directory / str(driver_bytes),
        driver_bytes=driver_bytes,
        collect_garbage=collect,
    )
    assert isinstance(query, RunningQuery)
    query.awaitTermination()
    return query


def held(directory: Path) -> dict[str, tuple[list[str], dict[str, tuple[int, int]]]]:
    """Per buffer the rows that the last manifest names, and the bounds that it gives for them."""
    store = LocalStore(directory)
    manifest = inspect(store).manifest
    assert manifest is not None
    found = {}
    for name, segments in manifest.segments.items():
        assert len({segment.schema for segment in segments}) == 1
        rows = sorted(str(row) for segment in segments for row in store.read_table(segment.path).to_pylist())
        limits = [segment.bounds for segment in segments]
        bounds = {a: (min(b[a][0] for b in limits), max(b[a][1] for b in limits)) for a in limits[0]}
        found[name] = rows, bounds
    return found


@pytest.mark.long
@pytest.mark.parametrize("collect", ["amortised", "exact"])
def test_spark_keeps_the_rows_that_the_driver_keeps(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collect: GarbageCollection
) -> None:
    write(tmp_path / "in")
    there = run(spark, tmp_path, 64 << 20, collect)
    here: list[int] = []
    rewrite = EmbeddedExecutor.rewrite

    def counting(self: EmbeddedExecutor, batch: Batch, rewrites: list[Rewrite]) -> list[tuple[Segment, ...]]:
        here.append(len(rewrites))
        return rewrite(self, batch, rewrites)

    monkeypatch.setattr(EmbeddedExecutor, "rewrite", counting)
    spread = run(spark, tmp_path, 0, collect)
    assert len(here) == 10
    assert not any(here)
    assert [report.live_rows for report in spread.reports] == [report.live_rows for report in there.reports]
    found = held(tmp_path / "0")
    assert found == held(tmp_path / str(64 << 20))
    assert all(rows for rows, _ in found.values())
    results: list[dict[str, Any]] = []
    for driver_bytes in (0, 64 << 20):
        with program().session(checkpoint=tmp_path / str(driver_bytes)) as session:
            results.append({name: sorted(map(str, session.results(name))) for name in ("Near", "Counted")})
    assert results[0] == results[1]
    assert all(results[0].values())
