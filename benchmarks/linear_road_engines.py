"""The engines that Linear Road's rating runs: from a directory of files to a checkpoint and results on disk."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, Self

import polars as pl
import pyarrow as pa

import tidegate as tg
from benchmarks.linear_road_answers import LIMITS
from examples.linear_road.queries import DISTANCES, program
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import DiscardSink, Sink
from tidegate.runtime.engines.embedded.session import Session

#: Seconds between two looks whether a query on Spark is still at work.
LOOK = 1.0
_STATICS = {"Distances": DISTANCES}
_UNREAD: dict[str, Sink] = {query.stream: DiscardSink() for query in program.definition.queries}


@dataclass(frozen=True, slots=True)
class Batch:
    """A batch that was committed: when, by `time.monotonic`, how many rows it read, up to which second, and the
    seconds of its steps.
    """

    number: int
    at: float
    rows: int
    until: float
    seconds: dict[str, float]


class Engine(Protocol):
    """An engine at work in a folder, after the rows that were before: it reads the directory `in`, and writes a file of
    each kind of answers a batch to `out`.
    """

    @property
    def batches(self) -> list[Batch]:
        """The batches so far."""

    @property
    def kept(self) -> int:
        """Rows that are kept."""

    def consume(self, rows: int, until: float = float("inf"), handed: threading.Event | None = None) -> None:
        """Returns once so many further rows are answered, or at an instant of `time.monotonic`.

        Files are there, or come as `handed` says.
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


def make_state(checkpoint: Path, parts: Iterable[pl.DataFrame]) -> None:
    """A checkpoint after these rows, which come in order of time; of their answers nothing is kept."""
    with program.session(statics=_STATICS, sinks=_UNREAD, checkpoint=checkpoint) as session:
        _push(session, parts)


def _push(session: Session, parts: Iterable[pl.DataFrame]) -> None:
    for part in parts:
        session.push("Road", part)
        session.advance("Road", int(part.select(pl.max("time")).item()))
        session.step()


class _Batches:
    """What both engines note of their batches."""

    def __init__(self) -> None:
        self.batches: list[Batch] = []
        self.kept = 0

    @property
    def rows(self) -> int:
        return sum(batch.rows for batch in self.batches)

    def note(self, report: BatchReport) -> None:
        at, counts = time.monotonic(), report.counts.get("Road")
        self.kept = sum(report.live_rows.values())
        self.batches.append(
            Batch(
                report.seq,
                at,
                0 if counts is None else counts.rows_in,
                float(report.bounds["Road", "time"]),
                dict(report.seconds),
            )
        )


class Embedded(_Batches):
    """A session in this process, a batch as soon as there are files; its state is on disk, or `in_memory` alone."""

    def __init__(
        self, folder: Path, parts: Iterable[pl.DataFrame], threads: int = 1, *, in_memory: bool = False
    ) -> None:
        super().__init__()
        self._counts = False
        if not in_memory:
            make_state(folder / "state", parts)
        self._session = program.session(
            {"Road": _source(folder)},
            statics=_STATICS,
            sinks=self._written_here(folder) if in_memory else _sinks(folder),
            checkpoint=None if in_memory else folder / "state",
            on_batch=self.note,
            threads=threads,
        )
        if in_memory:
            _push(self._session, parts)
        self._counts = True
        gc.collect()
        gc.freeze()  # as `tidegate start` does: a full collection looks at all that is loaded

    def consume(self, rows: int, until: float = float("inf"), handed: threading.Event | None = None) -> None:
        wanted, coming = self.rows + rows, threading.Event() if handed is None else handed
        while self.rows < wanted and time.monotonic() < until:
            coming.clear()  # before the look: what comes after it is waited for no more
            if self._session.waiting_files():
                self._session.step()
            else:
                _wait(coming, until)

    def _written_here(self, folder: Path) -> dict[str, Sink]:
        """Functions that write what a directory has of a session with a checkpoint."""

        def sink(name: str) -> Sink:
            place = folder / "out" / name
            place.mkdir(parents=True)

            def write(table: pa.Table, batch: int) -> None:
                if self._counts:
                    pl.DataFrame(table).write_parquet(place / f"part-{batch:010d}-{name}.parquet", compression="lz4")

            return tg.callback(write)

        return _UNREAD | {name: sink(name) for name in LIMITS}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._session.close()


class OnSpark(_Batches):
    """A query on Spark with two cores, a micro-batch as soon as there are files.

    Increments with up to `driver_bytes` of relevant rows and state may be evaluated by the driver's own process.
    """

    def __init__(
        self, folder: Path, parts: Iterable[pl.DataFrame], memory: str = "2g", driver_bytes: int | None = None
    ) -> None:
        super().__init__()
        self._noted = threading.Event()
        make_state(folder / "state", parts)
        spark = tg.spark_session("linear-road", master="local[2]", config={"spark.driver.memory": memory})
        self._query = program.start(
            spark,
            sources={"Road": _source(folder)},
            statics=_STATICS,
            sinks=_sinks(folder),
            checkpoint=folder / "state",
            trigger={"processingTime": "0 seconds"},
            driver_bytes=driver_bytes,
            on_batch=self.note,
        )

    def note(self, report: BatchReport) -> None:
        super().note(report)
        self._noted.set()

    def consume(self, rows: int, until: float = float("inf"), handed: threading.Event | None = None) -> None:
        wanted = self.rows + rows
        while self.rows < wanted and time.monotonic() < until:
            if not self._query.isActive:
                self._query.awaitTermination()  # which raises what has ended it
                return
            _wait(self._noted, min(until, time.monotonic() + LOOK))
            self._noted.clear()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._query.stop()


def _wait(event: threading.Event, until: float) -> None:
    """Returns once an event is set, or at an instant of `time.monotonic`."""
    event.wait(None if until == float("inf") else max(0.0, until - time.monotonic()))


def _source(folder: Path) -> tg.Source:
    """Files that have all rows of their second: each row says that everything up to it has arrived."""
    return tg.parquet(folder / "in", progress_columns={"time": "time"})


def _sinks(folder: Path) -> dict[str, Sink]:
    """A directory for each kind of answers."""
    return _UNREAD | {name: tg.parquet_sink(folder / "out" / name) for name in LIMITS}
