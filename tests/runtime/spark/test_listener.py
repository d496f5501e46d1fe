"""Metrics reach Spark's listeners, with the progress of the batch that they are of."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.listener import StreamingQueryListener

import tidegate as tg
from tidegate import metrics
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.inspect.state_listing import list_state
from tidegate.runtime.state.store.local import LocalStore

pytestmark = pytest.mark.spark

ticks = tg.stream("T", "k bigint, t bigint", progress="t")


class Mine(StreamingQueryListener):
    """Keeps what it is told."""

    def __init__(self) -> None:
        self.progress: list[Any] = []
        self.ended = threading.Event()

    def onQueryStarted(self, event: Any) -> None:
        del event

    def onQueryProgress(self, event: Any) -> None:
        self.progress.append(event.progress)

    def onQueryTerminated(self, event: Any) -> None:
        del event
        self.ended.set()


def test_progress_of_each_batch_carries_its_metrics(spark: SparkSession, tmp_path: Path) -> None:
    directory = tmp_path / "in"
    directory.mkdir()
    for number in range(3):
        rows = [{"k": 1, "t": 10 * number + i} for i in (1, 2, 9)] + [{"k": 1, "t": None}]
        pq.write_table(pa.Table.from_pylist(rows), directory / f"{number}.parquet")
    program = tg.program(Windows=ticks.group_by(end=tg.tumbling(ticks.t, 10)).agg(n=tg.count()))
    mine = Mine()
    seen = metrics.spark_listener(mine)
    reports: list[BatchReport] = []
    spark.streams.addListener(seen)
    try:
        query = program.start(
            spark,
            sources={"T": tg.parquet(directory, per_batch=1, delay=3)},
            checkpoint=tmp_path / "state",
            on_batch=metrics.each(seen, reports.append),
        )
        query.awaitTermination()
        assert mine.ended.wait(60)
    finally:
        spark.streams.removeListener(seen)
    told = {one.batchId: one.observedMetrics["tidegate"] for one in mine.progress if "tidegate" in one.observedMetrics}
    assert len(reports) >= 3
    done: dict[int, metrics.Metrics] = {}
    for report in reports:  # a micro-batch has as many of ours as there are files left
        assert report.spark is not None
        number, own = report.spark.batch_id, metrics.Metrics.of(report)
        done[number] = done[number].and_then(own) if number in done else own
    assert {number: row.asDict() for number, row in told.items()} == {n: one.to_dict() for n, one in done.items()}
    assert sum(one.rows["T"].rows_in for one in done.values() if "T" in one.rows) == 12
    assert sum(row.rows["T"]["rejected"].get("null", 0) for row in told.values() if "T" in row.rows) == 3
    assert all(one.numInputRows is not None for one in mine.progress)  # Spark's own figures are there as well
    listing = list_state(LocalStore(tmp_path / "state"))
    assert {one.held.buffer: one.rows for one in listing.buffers} == reports[-1].live_rows
