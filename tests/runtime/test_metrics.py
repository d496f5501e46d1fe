"""Metrics of each batch: their values by hand, the law of their bound, and what each hook makes of them."""

from __future__ import annotations

import datetime as dt
import json
import logging
import math
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tidegate import metrics
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.inspect.metrics.exporters import INSTRUMENTS, readings
from tidegate.runtime.inspect.metrics.hooks import BufferUse, Metrics
from tidegate.runtime.program import Program

orders = tg.stream("Orders", "order_id bigint, ordered timestamp", progress="ordered")
payments = tg.stream("Payments", "order_id bigint, paid timestamp", progress="paid")
ticks = tg.stream("T", "k bigint, t bigint", progress="t")
others = tg.stream("O", "k bigint, t bigint", progress="t")
CLOCK = dt.datetime(2026, 3, 2, 12, 40, tzinfo=dt.UTC)


def unpaid() -> Program:
    o, p = orders.as_("o"), payments.as_("p")
    return tg.program(
        Unpaid=o.anti_join(p, p.order_id == o.order_id, o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(30))
    )


def two_batches(on_batch: Callable[[BatchReport], None]) -> None:
    with unpaid().session(clock=lambda: CLOCK, on_batch=on_batch, collect_garbage="exact") as session:
        session.push("Orders", [(1, "2026-03-02T12:00Z"), (2, "2026-03-02T12:10Z"), (3, None)])
        session.push("Orders", [(5, "2026-03-02T12:20Z")])  # paid at once: freed before its time
        session.push("Payments", [(5, "2026-03-02T12:20Z")])
        session.advance("Orders", {"ordered": "2026-03-02T12:08Z"})
        session.advance("Payments", {"paid": "2026-03-02T12:35Z"})
        session.step()
        session.push("Orders", [(4, "2026-03-02T12:08Z")])
        session.finish()
        session.step()


def collected() -> list[BatchReport]:
    reports: list[BatchReport] = []
    two_batches(reports.append)
    return reports


def test_the_numbers_of_a_batch() -> None:
    first, second = (Metrics.of(report) for report in collected())
    plain = first.to_dict()
    assert set(plain.pop("seconds")) == {"ingest", "increments", "collect", "commit"}  # type: ignore[call-overload]
    sizes = {use.buffer: use.bytes for use in first.state}
    assert json.loads(json.dumps(plain)) == {
        "batch": 1,
        "clock": "2026-03-02T12:40:00Z",
        "rows": {
            "Orders": {"in": 4, "accepted": 3, "rejected": {"null": 1}, "punctuations": 0},
            "Payments": {"in": 1, "accepted": 1, "rejected": {}, "punctuations": 0},
        },
        "unreadable": {},
        "results": {"Unpaid": 1},
        "set_aside": {},
        "progress": {
            "Orders.ordered": "2026-03-02T12:08:00Z",
            "Payments.paid": "2026-03-02T12:35:00Z",
            "Unpaid.ordered": "2026-03-02T12:05:00Z",
        },
        "freed": {"Orders#0": 1},
        "state": {
            # Of the order at 12:10 alone: half an hour of horizon, and 12:10 is 2 minutes ahead of the orders' 12:08.
            "Orders#0": {"rows": 1, "bytes": sizes["Orders#0"], "extent": 0.0, "bound": 32 * 60.0},
            "Payments#0": {"rows": 1, "bytes": sizes["Payments#0"], "extent": 0.0, "bound": 42 * 60.0},
        },
        "places": {"Unpaid": "driver"},
        "choices": {},
    }
    assert {one.name: one.behind(first.clock) for one in first.progress} == {
        "Orders.ordered": 32 * 60.0,
        "Payments.paid": 5 * 60.0,
        "Unpaid.ordered": 35 * 60.0,
    }
    assert second.rows["Orders"].rejected == {"late": 1}
    assert {one.value for one in second.progress} == {math.inf}
    assert {one.behind(second.clock) for one in second.progress} == {0.0}
    assert [(use.rows, use.extent, use.bound) for use in second.state] == [(0, 0.0, 0.0)] * 2
    assert first.duration == sum(first.seconds.values()) > 0


def near() -> Program:
    t, o = ticks.as_("t"), others.as_("o")
    return tg.program(Near=t.join(o, t.k == o.k, o.t <= t.t + 4, t.t <= o.t + 6).select(k=t.k, at=t.t, other=o.t))


def windows() -> Program:
    return tg.program(Windows=ticks.group_by(end=tg.tumbling(ticks.t, 7)).agg(n=tg.count()))


def both() -> Program:
    """One buffer of T for readers that keep it for different times."""
    a, b = ticks.as_("a"), ticks.as_("b")
    return tg.program(
        Soon=a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 3).unqualified(),
        Later=a.anti_join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 11).unqualified(),
    )


@pytest.mark.parametrize("made", [near, windows, both])
def test_with_exact_garbage_collection_the_extent_stays_below_the_bound(made: Callable[[], Program]) -> None:
    program, draw = made(), random.Random(20)
    streams = [stream.name for stream in program.facts.program.inputs]
    tightest = math.inf
    for _ in range(6):
        with Session(program.facts, options=RunOptions(collect_garbage="exact", purging="off")) as session:
            reached = dict.fromkeys(streams, 0)
            for _ in range(25):
                for stream in streams:
                    session.push(stream, [(draw.randrange(2), reached[stream] + draw.randint(1, 9)) for _ in range(3)])
                    if draw.random() < 0.8:
                        reached[stream] += draw.randint(0, 6)
                        session.advance(stream, {"t": reached[stream]})
                for use in Metrics.of(session.step()).state:
                    if use.rows and use.bound is not None:
                        assert use.extent is not None
                        assert use.extent < use.bound
                        tightest = min(tightest, use.bound - use.extent)
    assert tightest == 1  # reached: less would be wrong


def test_of_rows_that_fold_extent_and_bound_are_those_of_rows_that_are_not_settled() -> None:
    t, o = ticks.as_("t"), others.as_("o")
    latest = t.left_join(o, t.k == o.k, o.t <= t.t).group_by(t.k, t.t).agg(at=tg.last(o.t, by=o.t))
    draw, seen = random.Random(20), 0
    with Session(
        tg.program(Latest=latest).facts, options=RunOptions(collect_garbage="exact", purging="off")
    ) as session:
        reached = {"T": 0, "O": 0}
        for _ in range(40):
            for stream in reached:
                session.push(stream, [(draw.randrange(2), reached[stream] + draw.randint(1, 9)) for _ in range(3)])
                reached[stream] += draw.randint(0, 6)
                session.advance(stream, {"t": reached[stream]})
            measured = Metrics.of(session.step())
            use = next(use for use in measured.state if use.buffer == "O#0")
            assert use.settled is not None
            assert use.settled <= 2
            assert use.bound is not None
            assert use.extent is not None
            if use.rows > use.settled > 0:
                assert use.extent < use.bound
                seen += use.extent > 0
            assert measured.to_dict()["state"]["O#0"]["settled"] == use.settled  # type: ignore[index]
            told = {labels: value for name, labels, value in readings(measured) if name == "state_settled_rows"}
            assert told == {("O#0",): use.settled}
    assert seen > 20
    assert reached["T"] > 60, "far more than any extent"


def test_nothing_bounds_rows_that_wait_for_a_stream_that_has_not_begun() -> None:
    with near().session() as session:
        session.push("T", [(1, 5)])
        session.advance("T", {"t": 5})
        report = session.step()
    state = {use.buffer: use for use in Metrics.of(report).state}
    assert state["T#0"] == BufferUse("T#0", 1, state["T#0"].bytes, "t", 0.0, None)
    assert {one.name: one.behind(0) for one in Metrics.of(report).progress} == dict.fromkeys(
        ("T.t", "O.t", "Near.at", "Near.other")
    )


def test_a_line_in_the_log_per_batch(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO, "tidegate"):
        two_batches(metrics.log())
    lines = [record for record in caplog.records if record.name == "tidegate"]
    assert [json.loads(record.getMessage())["batch"] for record in lines] == [1, 2]
    first = lines[0]
    assert "\n" not in first.getMessage()
    assert json.loads(first.getMessage()) == {"event": "batch", **json.loads(json.dumps(_metrics(first).to_dict()))}
    caplog.clear()
    with caplog.at_level(logging.WARNING, "mine"):
        two_batches(metrics.log(logging.getLogger("mine")))
    assert caplog.records == []


def _metrics(record: Any) -> Metrics:
    assert isinstance(record.metrics, Metrics)
    return record.metrics


def test_the_hooks_see_every_batch_in_every_way_to_run() -> None:
    seen: list[int] = []
    also: list[int] = []
    hook = metrics.each(lambda report: seen.append(report.seq), lambda report: also.append(report.seq))
    two_batches(hook)
    assert seen == also == [1, 2]
    unpaid().run({"Orders": [], "Payments": []}, on_batch=hook)
    assert seen == also == [1, 2, 1]


def expected() -> dict[tuple[str, str], float]:
    """By instrument and labels joined, after both batches."""
    return {
        ("batches", ""): 2,
        ("rows", "Orders accepted"): 3,
        ("rows", "Orders null"): 1,
        ("rows", "Orders late"): 1,
        ("rows", "Payments accepted"): 1,
        ("punctuations", "Orders"): 0,
        ("punctuations", "Payments"): 0,
        ("results", "Unpaid"): 2,
        ("freed_rows", "Orders#0"): 1,
        ("progress", "Orders ordered"): math.inf,
        ("progress", "Payments paid"): math.inf,
        ("progress", "Unpaid ordered"): math.inf,
        ("progress_behind_seconds", "Orders ordered"): 0,
        ("progress_behind_seconds", "Payments paid"): 0,
        ("progress_behind_seconds", "Unpaid ordered"): 0,
        **{
            (f"state_{what}", f"{name}#0"): 0
            for what in ("rows", "bytes", "extent", "bound")
            for name in ("Orders", "Payments")
        },
    }


def test_prometheus() -> None:
    client = pytest.importorskip("prometheus_client", reason="prometheus-client comes with the extra `prometheus`")
    registry = client.CollectorRegistry()
    exporter = metrics.prometheus(registry)
    two_batches(exporter.of("shop"))
    samples = [sample for family in registry.collect() for sample in family.samples]
    assert {sample.labels["program"] for sample in samples} == {"shop"}
    labels = {one.name: one.labels for one in INSTRUMENTS}
    found = {}
    for sample in samples:
        name = sample.name.removeprefix("tidegate_").removesuffix("_total")
        if name in labels:
            found[name, " ".join(sample.labels[label] for label in labels[name])] = sample.value
    assert found == expected()
    assert registry.get_sample_value("tidegate_batch_seconds_count", {"program": "shop"}) == 2
    steps = {sample.labels["step"] for sample in samples if sample.name == "tidegate_step_seconds_count"}
    assert steps == {"ingest", "increments", "collect", "commit"}
    two_batches(exporter.of("other"))
    assert registry.get_sample_value("tidegate_batches_total", {"program": "shop"}) == 2
    assert registry.get_sample_value("tidegate_batches_total", {"program": "other"}) == 2


def test_opentelemetry(caplog: pytest.LogCaptureFixture) -> None:
    sdk = pytest.importorskip("opentelemetry.sdk.metrics", reason="opentelemetry-sdk is a dependency of the tests")
    export = pytest.importorskip("opentelemetry.sdk.metrics.export")
    reader = export.InMemoryMetricReader()
    two_batches(metrics.opentelemetry(sdk.MeterProvider([reader], shutdown_on_exit=False).get_meter("test")))
    found: dict[tuple[str, str], float] = {}
    counts: dict[str, int] = {}
    labels = {f"tidegate.{one.name}": one.labels for one in INSTRUMENTS}
    for resource in reader.get_metrics_data().resource_metrics:
        for scope in resource.scope_metrics:
            for metric in scope.metrics:
                for point in metric.data.data_points:
                    assert point.attributes["program"] == ""
                    key = " ".join(point.attributes[label] for label in labels[metric.name])
                    if hasattr(point, "value"):
                        found[metric.name.removeprefix("tidegate."), key] = point.value
                    else:
                        counts[f"{metric.name} {key}".strip()] = point.count
    before_the_end = {f"{one.stream} {one.attribute}": one.value for one in Metrics.of(collected()[0]).progress}
    assert found == expected() | {("progress", name): value for name, value in before_the_end.items()}
    assert caplog.records == []
    assert counts.pop("tidegate.batch_seconds") == 2
    assert counts == {f"tidegate.step_seconds {step}": 2 for step in ("ingest", "increments", "collect", "commit")}


@pytest.mark.parametrize(
    ("make", "module", "extra"),
    [(metrics.prometheus, "prometheus_client", "prometheus"), (metrics.opentelemetry, "opentelemetry.metrics", "otel")],
)
def test_a_hook_without_its_package_says_what_to_install(
    make: Callable[[], object], module: str, extra: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(tg.QueryError, match="is not installed") as caught:
        make()
    assert caught.value.code == "TG422"
    assert f"tidegate[{extra}]" in str(caught.value)


def test_the_exporters_packages_are_loaded_by_their_hooks_only() -> None:
    program = (
        "import sys, tidegate.metrics; tidegate.metrics.log()\n"
        "print(sorted({name.split('.')[0] for name in sys.modules} & {'prometheus_client', 'opentelemetry', "
        "'pyspark'}))"
    )
    root = Path(__file__).resolve().parents[2]
    answer = subprocess.run([sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\n"
