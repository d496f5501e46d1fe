"""Metrics in the progress that Spark's listeners see: per batch, under the name `tidegate` of the observed metrics."""

from __future__ import annotations

from typing import Final

from pyspark.sql import Row
from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.inspect.metrics.hooks import Metrics

#: Batches whose progress Spark has not told yet; more only wait where this was never added as a listener.
_WAITING: Final = 1_000
OBSERVED: Final = "tidegate"


class MetricsListener(StreamingQueryListener):
    """Hands all events of Spark to `listener`, progress with our metrics added. Both a hook and a listener:

    seen = tidegate.metrics.spark_listener(mine)
    spark.streams.addListener(seen)
    program.start(spark, on_batch=seen, ...)      # in mine: event.progress.observedMetrics["tidegate"]

    Spark computes observed metrics of its own while it reads, before a row is judged; these are known after the commit,
    and Spark tells of a batch after that. Where a micro-batch has several batches of ours, they are told as one.
    """

    def __init__(self, listener: StreamingQueryListener) -> None:
        self._listener = listener
        self._records: dict[tuple[str, int], Metrics] = {}

    def __call__(self, report: BatchReport) -> None:
        if report.spark is not None:
            key, metrics = (report.spark.query_id, report.spark.batch_id), Metrics.of(report)
            if key in self._records:  # a further batch of ours within this one of Spark's
                metrics = self._records[key].and_then(metrics)
            elif len(self._records) >= _WAITING:
                del self._records[next(iter(self._records))]
            self._records[key] = metrics

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # Spark's name
        self._listener.onQueryStarted(event)

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # Spark's name
        progress = event.progress
        record = self._records.pop((str(progress.id), progress.batchId), None)
        if record is not None:
            progress["observedMetrics"] = {**progress.observedMetrics, OBSERVED: Row(**record.to_dict())}
        self._listener.onQueryProgress(event)

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # Spark's name
        self._listener.onQueryIdle(event)

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # Spark's name
        self._listener.onQueryTerminated(event)
