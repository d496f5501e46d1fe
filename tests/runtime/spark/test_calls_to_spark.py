"""How often the driver's Python calls its JVM for the increments of a batch: every call costs, however small the
data.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.executor import SparkExecutor

pytestmark = pytest.mark.spark

BATCHES = 4
events = tg.stream("E", "k bigint, t bigint, v double", progress="t")


def program() -> tg.Program:
    """Five joins with groupings, none of which share a part."""
    made = {}
    for number in range(5):
        a, b = events.as_("a"), events.as_("b")
        pairs = a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 10 + number).select(k=a.k, t=b.t, v=a.v, w=b.v)
        grouped = pairs.group_by(k=pairs.k, end=tg.ceil(pairs.t, 20))
        made[f"Q{number}"] = grouped.agg(n=tg.count(), total=tg.sum(pairs.v), top=tg.max(pairs.w))
    return tg.program(**made)


@contextmanager
def counted(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[int, float]]]:
    """Calls and seconds of the increments of each batch."""
    batches: list[tuple[int, float]] = []
    calls = 0
    client = type(spark.sparkContext._gateway._gateway_client)  # type: ignore[union-attr]
    send_command, increments = client.send_command, SparkExecutor.increments

    def sending(self: Any, *given: Any, **named: Any) -> Any:
        nonlocal calls
        calls += 1
        return send_command(self, *given, **named)

    def counting(self: SparkExecutor, *given: Any) -> Any:
        nonlocal calls
        calls, began = 0, time.perf_counter()
        done = increments(self, *given)
        batches.append((calls, time.perf_counter() - began))
        return done

    monkeypatch.setattr(client, "send_command", sending)
    monkeypatch.setattr(SparkExecutor, "increments", counting)
    yield batches


@pytest.mark.long
def test_calls_of_a_batch_stay_few(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "in").mkdir()
    for number in range(BATCHES):
        rows = [{"k": i % 3, "t": 20 * number + i, "v": i / 3} for i in range(20)]
        path = tmp_path / "in" / f"{number}.parquet"
        pq.write_table(pa.Table.from_pylist(rows), path)
        os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # Spark takes the oldest files first
    with counted(spark, monkeypatch) as batches:
        query = start(
            spark,
            program().facts,
            sources={"E": parquet(tmp_path / "in", per_batch=1, delay=0, bounded=True)},
            checkpoint=tmp_path / "checkpoint",
            driver_bytes=0,
            shard_bytes=0,
        )
        query.awaitTermination()
    assert len(batches) >= BATCHES - 1
    assert all(calls <= 2500 for calls, _ in batches[1:]), batches
