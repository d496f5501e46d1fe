"""Running a deployment until it is told to stop: batches, a health endpoint, metrics, and a clean end on SIGTERM."""

from __future__ import annotations

import gc
import json
import logging
import os
import shlex
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from types import FrameType
from typing import Any

from tidegate.algebra.errors import QueryError
from tidegate.algebra.printing.plans import count_of
from tidegate.algebra.time import duration_ticks, format_duration
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.batch.status import Line, Status, asides, fates, finals, joined
from tidegate.runtime.cli.deployment import Deployment
from tidegate.runtime.connectors.sources import sources_given
from tidegate.runtime.inspect.live_display import LiveDisplay
from tidegate.runtime.inspect.metrics.hooks import OnBatch, each
from tidegate.runtime.inspect.metrics.hooks import log as log_lines
from tidegate.runtime.state.manifest import SourceCounts, added
from tidegate.runtime.state.store.paths import local_directory
from tidegate.version import VERSION

#: Seconds beyond the time between two looks, after which a run that has neither looked nor ended a batch counts as
#: unhealthy: a batch over all that came in while nothing ran takes long, and is healthy.
STALE = 600.0
_UNHEALTHY = ("stale", "failed")


@dataclass(slots=True)
class Health:
    """What the endpoint says of a run: since when it is alive, its last batch, and why it ended if it failed."""

    every: float = 0.0
    """Seconds between two looks."""
    stop: Event = field(default_factory=Event)
    """Set when the run was told to stop."""
    begun: bool = False
    """Whether the program has started: until then a session opens, or Spark starts."""
    looked: float = field(default_factory=time.monotonic)
    report: BatchReport | None = None
    error: str | None = None

    def after(self, report: BatchReport) -> None:
        self.looked, self.report = time.monotonic(), report

    def to_dict(self) -> dict[str, object]:
        """As JSON; `status` is "starting", "ok", "stopping", "stale" or "failed"."""
        silent = time.monotonic() - self.looked
        health: dict[str, object] = {"status": self._status(silent), "seconds_since_look": round(silent, 1)}
        if self.error is not None:
            health["error"] = self.error
        if self.report is not None:
            health |= {
                "batch": self.report.seq,
                "results": finals(self.report.plan, self.report.progress),
                "live_rows": sum(self.report.live_rows.values()),
            }
        return health

    def _status(self, silent: float) -> str:
        if self.error is not None:
            return "failed"
        if silent > self.every + STALE:  # also a stop that hangs
            return "stale"
        if self.stop.is_set():
            return "stopping"
        return "ok" if self.begun else "starting"


@dataclass(slots=True)
class Tally:
    """What a run has done since it began, for the lines that it leaves behind."""

    batches: int = 0
    counts: dict[str, SourceCounts] = field(default_factory=dict)
    results: dict[str, int] = field(default_factory=dict)
    final: dict[str, str] = field(default_factory=dict)
    set_aside: dict[str, dict[str, int]] = field(default_factory=dict)

    def after(self, report: BatchReport) -> None:
        self.batches += 1
        self.final = finals(report.plan, report.progress)
        for name, counts in report.counts.items():
            self.counts[name] = self.counts.get(name, SourceCounts()) + counts
        for name, rows in report.results.items():
            self.results[name] = self.results.get(name, 0) + rows
        self.set_aside = added(self.set_aside, report.set_aside)

    def status(self) -> Status:
        """Rows by their fate, and results with up to where they are final."""
        out = (
            Line("out", name, joined([count_of(self.results.get(name, 0), "row"), final]))
            for name, final in self.final.items()
        )
        return Status(count_of(self.batches, "batch"), (*fates("in", self.counts), *out, *asides(self.set_aside)))


def operate(
    deployment: Deployment,
    *,
    once: bool = False,
    port: int | None = None,
    host: str = "127.0.0.1",
    log: bool = False,
    progress: bool | None = None,
) -> None:
    """Runs until SIGTERM or SIGINT, or, with `once`, until all that is there has been read; the batch that runs then is
    finished. What it runs is on standard error in the beginning, unless `once`, with what looks like a mistake in the
    program; what it did, rejected rows among it, in the end.

    `port`: where `/health` and, if Prometheus' package is installed, `/metrics` are served, by default on this machine
    alone. `log`: with a line of JSON for each batch.
    """
    sources_given(deployment.sources)
    health, tally = Health(deployment.seconds), Tally()
    display = LiveDisplay(False if log else progress, "the first batch")
    with _stopping() as stop, _served(host, port, health), _logged(log) as line, display:
        health.stop = stop
        hooks: list[OnBatch] = [health.after, tally.after, display.after]
        hooks += [hook for hook in (line, _metrics() if port is not None else None) if hook is not None]
        after = each(*hooks)

        def begun() -> None:
            if stop.is_set():
                return
            health.begun = True
            if not once:
                print(_beginning(deployment, host, port), file=sys.stderr, flush=True)
            for note in deployment.program.notes():
                print(note, file=sys.stderr, flush=True)

        service = _Service(deployment, stop, health, after, once, begun)
        try:
            if deployment.engine == "spark":
                service.on_spark()
            else:
                service.embedded()
        except Exception as error:
            health.error = str(error)
            raise
    print(tally.status(), file=sys.stderr)
    if tally.set_aside or any(counts.rejected for counts in tally.counts.values()):
        print(f"rejected rows and why: tidegate quarantine {shlex.quote(deployment.checkpoint)}", file=sys.stderr)


def _beginning(deployment: Deployment, host: str, port: int | None) -> str:
    """What runs, and where: whoever reads a log finds the checkpoint and the endpoint there."""
    results = ", ".join(sorted(query.stream for query in deployment.program.definition.queries))
    where = "on Spark" if deployment.engine == "spark" else "in this process"
    served = "" if port is None else f"; http://{host}:{port}/health and {_metrics_place()}"
    return (
        f"tidegate {VERSION} runs {results} {where}, with the checkpoint {local_directory(deployment.checkpoint)}; "
        f"looks for new files every {format_duration(duration_ticks(deployment.every))}{served}"
    )


def _metrics_place() -> str:
    """Where Prometheus finds metrics, or what is missing."""
    return "/metrics" if _has_prometheus() else f"no /metrics: {_PROMETHEUS}"


@contextmanager
def _logged(wanted: bool) -> Iterator[OnBatch | None]:
    """The hook that writes a line for each batch to standard error, with what else the loggers of Tidegate say."""
    if not wanted:
        yield None
        return
    logger, handler = logging.getLogger("tidegate"), logging.StreamHandler()
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        yield log_lines()
    finally:
        logger.setLevel(before)
        logger.removeHandler(handler)


def _leave_loaded_alone() -> None:
    """Has Python's collection of garbage look no more at what is loaded: some 200,000 objects, which take the time of
    ten batches, every now and then.
    """
    gc.collect()
    gc.freeze()


@dataclass(frozen=True, slots=True)
class _Service:
    """A deployment while it runs: until it is told to stop or, with `once`, until all that is there has been read.

    `after` sees every batch, and `begun` is called when the program has started.
    """

    deployment: Deployment
    stop: Event
    health: Health
    after: Callable[[BatchReport], None]
    once: bool
    begun: Callable[[], None]

    def embedded(self) -> None:
        with self.deployment.program.session(
            sources=self.deployment.sources,
            statics=self.deployment.statics,
            sinks=self.deployment.sinks,
            checkpoint=self.deployment.checkpoint,
            quarantine_keep=self.deployment.quarantine_keep,
            tune=self.deployment.tune,
            threads=self.deployment.threads,
            on_batch=self.after,
        ) as session:
            self.begun()
            due = True  # what a stop has left undone
            loaded = False
            while not self.stop.is_set():
                if due:
                    session.step()
                if not (loaded or self.once):
                    _leave_loaded_alone()
                    loaded = True
                self.health.looked = time.monotonic()
                if not (session.waiting_files() or session._runner.state.is_unfinished):
                    if self.once:
                        return
                    self.stop.wait(self.deployment.seconds)
                due = session.due

    def on_spark(self) -> None:
        from tidegate.runtime.extras import spark_extra

        with spark_extra():
            from tidegate.runtime.engines.spark.setup.session import spark_session
        print("starting Spark", file=sys.stderr, flush=True)
        try:
            with _interrupted():
                spark = spark_session("tidegate", config=self.deployment.spark)
        except KeyboardInterrupt:  # nothing was begun that has to be ended
            return
        if self.stop.is_set():
            return
        query = self.deployment.program.start(
            spark,
            sources=self.deployment.sources,
            statics=self.deployment.statics,
            sinks=self.deployment.sinks,
            checkpoint=self.deployment.checkpoint,
            quarantine_keep=self.deployment.quarantine_keep,
            tune=self.deployment.tune,
            trigger="available_now" if self.once else self.deployment.every,
            on_batch=self.after,
            progress=False,
        )
        self.begun()
        try:
            while not self.stop.is_set() and not query.awaitTermination(1):
                if not query.status["isTriggerActive"]:
                    self.health.looked = time.monotonic()
        finally:
            query.stop()


@contextmanager
def _stopping() -> Iterator[Event]:
    """Set when the process is told to stop; what was done at these signals before is done again afterwards."""
    stop = Event()

    def told(*_: object) -> None:
        if not stop.is_set():
            os.write(2, b"stopping\n")  # safe in a signal handler, where print is not
        stop.set()

    before = {number: signal.signal(number, told) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _interrupted() -> Iterator[None]:
    """Being told to stop also ends what runs inside, by KeyboardInterrupt; Spark's own handlers go with it."""
    before = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}

    def told(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        if callable(handler):
            handler(number, frame)
        raise KeyboardInterrupt

    try:
        for number in before:
            signal.signal(number, told)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


_PROMETHEUS = "they need pip install 'tidegate[prometheus]'"


def _has_prometheus() -> bool:
    from importlib.util import find_spec

    return find_spec("prometheus_client") is not None


def _metrics() -> Callable[[BatchReport], None] | None:
    """The hook that keeps metrics, where Prometheus' package is installed."""
    if not _has_prometheus():
        return None
    from tidegate.runtime.inspect.metrics.exporters import prometheus

    return prometheus()


@contextmanager
def _served(host: str, port: int | None, health: Health) -> Iterator[None]:
    if port is None:
        yield
        return

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:  # the name that http.server calls
            if self.path == "/health":
                status = health.to_dict()
                self._answer(
                    503 if status["status"] in _UNHEALTHY else 200, "application/json", json.dumps(status).encode()
                )
            elif self.path == "/metrics" and _has_prometheus():
                from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

                self._answer(200, CONTENT_TYPE_LATEST, generate_latest())
            else:
                self._answer(404, "text/plain", f"there are /health and {_metrics_place()}\n".encode())

        do_HEAD = do_GET  # of balancers

        def _answer(self, status: int, kind: str, body: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        def log_message(self, *_: Any) -> None:
            """Nothing: whoever asks each second would fill the log."""

    try:
        server = ThreadingHTTPServer((host, port), Handler)
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else "ports are 0 to 65535"
        raise QueryError(
            "TG401", f"port {port} of {host} cannot be served: {reason}", hint="choose another --port or --host"
        ) from error
    with server:
        thread = Thread(target=server.serve_forever, name="tidegate-health", daemon=True)
        thread.start()
        try:
            yield
        finally:
            server.shutdown()
            thread.join()
