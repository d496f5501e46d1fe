"""Metrics of each batch, and hooks for `on_batch=`: a line in the log, Prometheus, OpenTelemetry, Spark's listeners."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tidegate.runtime.inspect.metrics.exporters import opentelemetry, prometheus
from tidegate.runtime.inspect.metrics.hooks import BufferUse, Metrics, Timeline, each, log

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    from tidegate.runtime.engines.spark.listener import MetricsListener

__all__ = ["BufferUse", "Metrics", "Timeline", "each", "log", "opentelemetry", "prometheus", "spark_listener"]


def spark_listener(listener: StreamingQueryListener) -> MetricsListener:
    """A hook that adds the metrics of each batch to the progress that `listener` gets of it from Spark.

    They are under the name `tidegate` of the observed metrics.

    Examples:
        >>> import threading
        >>> from pyspark.sql.streaming.listener import StreamingQueryListener
        >>> from tidegate import metrics
        >>> seen, ended = [], threading.Event()
        >>> class Listener(StreamingQueryListener):
        ...     def onQueryStarted(self, event): ...
        ...     def onQueryProgress(self, event):
        ...         seen.append(event.progress.observedMetrics["tidegate"].results)
        ...     def onQueryTerminated(self, event):
        ...         ended.set()
        >>> listener = metrics.spark_listener(Listener())
        >>> spark.streams.addListener(listener)
        >>> listened = program.start(spark, sources=inputs, checkpoint="listened", on_batch=listener)
        >>> ended.wait(60)
        True
        >>> spark.streams.removeListener(listener)
        >>> seen
        [{'Unpaid': 2}]
    """
    from tidegate.runtime.engines.spark.listener import MetricsListener

    return MetricsListener(listener)
