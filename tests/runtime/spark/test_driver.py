"""What must not pass through Spark's driver: rows of the state, of results, of the rejected, however large they are."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import Source, parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.executor import SparkExecutor
from tidegate.runtime.state.store.local import LocalStore

pytestmark = pytest.mark.spark

events = tg.stream("E", "id bigint, k bigint, t bigint, v double", progress="t")


def program() -> tg.Program:
    """A self-join, a non-event whose rows other rows free, a grouping of a join, partial aggregates."""
    a, b = events.as_("a"), events.as_("b")
    near = a.join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 25).select(k=a.k, t=b.t, v=a.v)
    alone = a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 5)
    return tg.program(
        Near=near,
        Alone=alone.select(k=a.k, t=a.t),
        Grouped=near.group_by(near.k, w=tg.ceil(near.t, 20)).agg(n=tg.count()),
        Counted=events.group_by(events.k, w=tg.ceil(events.t, 40)).agg(n=tg.count(), v=tg.sum(events.v)),
    )


def write(directory: Path) -> list[dict[str, Any]]:
    """Five files, each with a row that came before and one that is late; all rows in order."""
    directory.mkdir()
    every = []
    for number in range(5):
        rows = [{"id": 6 * number + i, "k": i % 2, "t": number * 10 + i, "v": i / 3} for i in range(6)]
        rows += [rows[0], {"id": -1, "k": 0, "t": -100, "v": 0.0}] if number else []
        path = directory / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # Spark takes the oldest files first
        every += rows
    return every


def source(directory: Path) -> Source:
    return parquet(directory, per_batch=1, delay=4, key=("id", "t"), policy="quarantine", bounded=True)


@pytest.mark.parametrize(
    ("shard_bytes", "place"), [pytest.param(0, "catalyst", marks=pytest.mark.long), (1 << 30, "sharded")]
)
def test_the_driver_reads_no_rows(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shard_bytes: int, place: str
) -> None:
    write(tmp_path / "in")
    facts = program().facts
    with Session(facts, sources={"E": source(tmp_path / "in")}) as session:
        session.process()
        expected = {name: sorted(map(str, session.results(name))) for name in facts.streams}
    opened: list[str] = []
    read_table, checksum = LocalStore.read_table, LocalStore.checksum

    def reading(self: LocalStore, path: str, columns: Any = None) -> Any:
        opened.append(path)
        return read_table(self, path, columns)

    def summing(self: LocalStore, path: str) -> str:
        opened.append(path)
        return checksum(self, path)

    # Workers are other processes, where these stay as they are.
    monkeypatch.setattr(LocalStore, "read_table", reading)
    monkeypatch.setattr(LocalStore, "checksum", summing)
    query = start(
        spark,
        facts,
        sources={"E": source(tmp_path / "in")},
        sinks={name: parquet_sink(tmp_path / "out" / name) for name in facts.streams},
        checkpoint=tmp_path / "checkpoint",
        driver_bytes=0,
        shard_bytes=shard_bytes,
        options=RunOptions(purging="always", collect_garbage="exact"),
    )
    query.awaitTermination()
    # Rejected rows are merged by the driver, at most some megabytes of them in a batch.
    assert [path for path in opened if not path.startswith(("positions/", "quarantine/"))] == []
    places: set[str] = {place for report in query.reports for place in report.places.values()}
    assert places == {place}
    assert len(query.reports) == 5
    assert sum(sum(report.counts["E"].rejected.values()) for report in query.reports) == 8
    for name, wanted in expected.items():
        files = sorted((tmp_path / "out" / name).glob("*.parquet"))
        assert sorted(str(row) for path in files for row in pq.read_table(path).to_pylist()) == wanted
        assert wanted


@pytest.mark.parametrize(("driver_bytes", "place"), [(700, "sharded"), (1 << 20, "driver")])
def test_the_driver_holds_rows_only_where_it_evaluates(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, driver_bytes: int, place: str
) -> None:
    """It takes in all files, and what workers evaluate it reads no more."""
    monkeypatch.setattr(SparkExecutor, "_ingest_job", None)
    write(tmp_path / "in")
    a, b = events.as_("a"), events.as_("b")
    near = a.join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 25).select(k=a.k, t=b.t, v=a.v)
    query = start(
        spark,
        tg.program(Near=near).facts,
        sources={"E": parquet(tmp_path / "in", per_batch=1, delay=4)},
        checkpoint=tmp_path / "checkpoint",
        driver_bytes=driver_bytes,
    )
    query.awaitTermination()
    run = query._run
    assert {place for report in query.reports for place in report.places.values()} == {place}
    assert sum(segment.rows for some in run.runner.state.segments.values() for segment in some)
    assert bool(run.executor.local.cache.rows) is (place == "driver")
