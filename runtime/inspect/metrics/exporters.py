"""Metrics of each batch for Prometheus and OpenTelemetry; their packages are loaded when a hook is made."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

from tidegate.algebra.diagnostics.tracebacks import trimmed
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import INF
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.inspect.metrics.hooks import Metrics, OnBatch
from tidegate.version import VERSION

if TYPE_CHECKING:
    from opentelemetry.metrics import Meter
    from prometheus_client import CollectorRegistry

#: From a floor of a few milliseconds in this process to minutes on Spark.
_SECONDS: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


@dataclass(frozen=True, slots=True)
class Instrument:
    """One metric: counters add up over batches, gauges say how it is after the last one, histograms count durations."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    unit: str
    labels: tuple[str, ...]
    about: str


INSTRUMENTS: Final = (
    Instrument("batches", "counter", "", (), "Batches committed."),
    Instrument("rows", "counter", "", ("stream", "fate"), "Rows that came in, by fate: accepted or why rejected."),
    Instrument("punctuations", "counter", "", ("stream",), "Rows that carry progress and nothing else."),
    Instrument("unreadable_files", "counter", "", ("stream",), "Files set aside as they cannot be read."),
    Instrument("results", "counter", "", ("query",), "Result rows."),
    Instrument(
        "set_aside", "counter", "", ("query", "reason"), "Rows, groups and events that a query set aside, by reason."
    ),
    Instrument("batch_seconds", "histogram", "s", (), "Time per batch, from ingest to commit."),
    Instrument("step_seconds", "histogram", "s", ("step",), "Time per step of a batch."),
    Instrument(
        "progress",
        "gauge",
        "",
        ("stream", "attribute"),
        "How far a stream or result has arrived: seconds since 1970, or the number of an integer timeline.",
    ),
    Instrument("progress_behind_seconds", "gauge", "s", ("stream", "attribute"), "The batch's clock less progress."),
    Instrument("state_rows", "gauge", "", ("buffer",), "Rows stored."),
    Instrument("state_bytes", "gauge", "By", ("buffer",), "Size of stored rows."),
    Instrument("state_settled_rows", "gauge", "", ("buffer",), "Rows stored that are settled, of each class one."),
    Instrument(
        "freed_rows", "counter", "", ("buffer",), "Rows freed by the partner and kill rules, before keep would."
    ),
    Instrument(
        "state_extent", "gauge", "", ("buffer",), "From the oldest to the newest stored instant, as progress is."
    ),
    Instrument(
        "state_bound", "gauge", "", ("buffer",), "What bounds the extent, as progress is; infinite where nothing does."
    ),
)


def readings(metrics: Metrics) -> Iterator[tuple[str, tuple[str, ...], float]]:
    """What a batch adds to counters and histograms, and what gauges are set to: instrument, labels, value."""
    yield "batches", (), 1
    for stream, counts in metrics.rows.items():
        yield "rows", (stream, "accepted"), counts.accepted
        for reason, rows in counts.rejected.items():
            yield "rows", (stream, reason), rows
        yield "punctuations", (stream,), counts.punctuations
    for stream, files in metrics.unreadable.items():
        yield "unreadable_files", (stream,), files
    for query, rows in metrics.results.items():
        yield "results", (query,), rows
    for query, reasons in metrics.set_aside.items():
        for reason, rows in reasons.items():
            yield "set_aside", (query, reason), rows
    yield "batch_seconds", (), metrics.duration
    for step, seconds in metrics.seconds.items():
        yield "step_seconds", (step,), seconds
    for reading in metrics.progress:
        yield "progress", (reading.stream, reading.attribute), reading.value
        if (behind := reading.behind(metrics.clock)) is not None:
            yield "progress_behind_seconds", (reading.stream, reading.attribute), behind
    for buffer, rows in metrics.freed.items():
        yield "freed_rows", (buffer,), rows
    for use in metrics.state:
        yield "state_rows", (use.buffer,), use.rows
        yield "state_bytes", (use.buffer,), use.bytes
        if use.settled is not None:
            yield "state_settled_rows", (use.buffer,), use.settled
        if use.extent is not None:
            yield "state_extent", (use.buffer,), use.extent
            yield "state_bound", (use.buffer,), INF if use.bound is None else use.bound


@dataclass(frozen=True, slots=True)
class Exporter:
    """A hook for `on_batch`; `of("orders")` is one for a program of that name, where several share a registry or
    meter.
    """

    record: Mapping[str, Callable[[Mapping[str, str], float], None]]
    program: str = ""

    def __call__(self, report: BatchReport) -> None:
        labels = {instrument.name: instrument.labels for instrument in INSTRUMENTS}
        for name, values, value in readings(Metrics.of(report)):
            named = dict(zip(labels[name], values, strict=True))
            self.record[name]({"program": self.program, **named}, value)

    def of(self, program: str) -> OnBatch:
        return Exporter(self.record, program)


@trimmed
def prometheus(registry: CollectorRegistry | None = None) -> Exporter:
    """A hook that keeps `tidegate_…` metrics in a registry of Prometheus, the default one if none is given.

    Make one per registry and share it. Counters begin at zero with the process. `QueryError` TG422 without the extra.

    Examples:
        >>> from prometheus_client import CollectorRegistry
        >>> from tidegate import metrics
        >>> registry = CollectorRegistry()
        >>> results = program.run(inputs, on_batch=metrics.prometheus(registry).of("shop"))
        >>> registry.get_sample_value("tidegate_results_total", {"program": "shop", "query": "Unpaid"})
        2.0
    """
    try:
        import prometheus_client as client
    except ImportError as error:
        raise _missing("prometheus", "prometheus_client") from error
    chosen = client.REGISTRY if registry is None else registry

    def made(instrument: Instrument) -> Callable[[Mapping[str, str], float], None]:
        name, labels = f"tidegate_{instrument.name}", ("program", *instrument.labels)
        match instrument.kind:
            case "counter":
                counter = client.Counter(name, instrument.about, labels, registry=chosen)
                return lambda on, value: counter.labels(**on).inc(value)
            case "gauge":
                gauge = client.Gauge(name, instrument.about, labels, registry=chosen)
                return lambda on, value: gauge.labels(**on).set(value)
            case "histogram":
                histogram = client.Histogram(name, instrument.about, labels, registry=chosen, buckets=_SECONDS)
                return lambda on, value: histogram.labels(**on).observe(value)

    return Exporter({instrument.name: made(instrument) for instrument in INSTRUMENTS})


@trimmed
def opentelemetry(meter: Meter | None = None) -> Exporter:
    """A hook that records `tidegate.…` metrics with a meter of OpenTelemetry, the global provider's if none is given.

    `QueryError` TG422 without the extra.

    Examples:
        >>> from opentelemetry.sdk.metrics import MeterProvider
        >>> from opentelemetry.sdk.metrics.export import InMemoryMetricReader
        >>> from tidegate import metrics
        >>> reader = InMemoryMetricReader()
        >>> meter = MeterProvider([reader], shutdown_on_exit=False).get_meter("shop")
        >>> results = program.run(inputs, on_batch=metrics.opentelemetry(meter))
        >>> recorded = reader.get_metrics_data().resource_metrics[0].scope_metrics[0].metrics
        >>> [point.value for one in recorded for point in one.data.data_points if one.name == "tidegate.results"]
        [2]
    """
    try:
        from opentelemetry.metrics import get_meter
    except ImportError as error:
        raise _missing("otel", "opentelemetry-api") from error
    chosen = get_meter("tidegate", VERSION) if meter is None else meter

    def made(instrument: Instrument) -> Callable[[Mapping[str, str], float], None]:
        name = f"tidegate.{instrument.name}"
        match instrument.kind:
            case "counter":
                counter = chosen.create_counter(name, instrument.unit, instrument.about)
                return lambda on, value: counter.add(value, dict(on))
            case "gauge":
                gauge = chosen.create_gauge(name, instrument.unit, instrument.about)
                # Infinities are refused there, with a warning each time: such a gauge stays as it was.
                return lambda on, value: gauge.set(value, dict(on)) if math.isfinite(value) else None
            case "histogram":
                histogram = chosen.create_histogram(name, instrument.unit, instrument.about)
                return lambda on, value: histogram.record(value, dict(on))

    return Exporter({instrument.name: made(instrument) for instrument in INSTRUMENTS})


def _missing(extra: str, package: str) -> QueryError:
    return QueryError("TG422", f"{package} is not installed", hint=f"pip install 'tidegate[{extra}]'")
