"""The one program on two engines: both read the replay's files, keep their state in a checkpoint, and write Parquet."""

from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

import tidegate as tg
from examples.operations_room import queries
from examples.operations_room.data import Replay
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import ParquetSink
from tidegate.runtime.plan.steps import Plan

STREAMS: Final = {"Schedule": "schedule", "Departure": "departure", "Weather": "weather"}
TABLES: Final = {"Airports": "airports", "Airlines": "airlines"}
RESULTS: Final = tuple(dict.fromkeys(query.stream for query in queries.program.definition.queries))

OnBatch = Callable[[BatchReport], None]


@dataclass(frozen=True, slots=True)
class Ran:
    """What a run was, besides the results that lie in its directories."""

    engine: str
    plan: Plan
    reports: tuple[BatchReport, ...]
    per_batch: int


class Run(Protocol):
    """Runs the program over a replay: its checkpoint and its results below `where`."""

    def __call__(self, replay: Replay, where: Path, *, per_batch: int, on_batch: OnBatch) -> Ran: ...


def sources(replay: Replay, per_batch: int) -> dict[str, tg.Source]:
    """The streams: directories of files that are complete, each with the delay that its stream declares."""
    return {
        name: tg.parquet(replay.path(path), per_batch=per_batch, delay=queries.delays[name], bounded=True)
        for name, path in STREAMS.items()
    }


def tables(replay: Replay) -> dict[str, tg.Source]:
    """The static tables."""
    return {name: tg.parquet(replay.path(path)) for name, path in TABLES.items()}


def results(where: Path) -> Mapping[str, ParquetSink]:
    """A directory per result, readable by anyone as of the last commit."""
    return {name: tg.parquet_sink(where / "results" / name) for name in RESULTS}


def embedded(replay: Replay, where: Path, *, per_batch: int, on_batch: OnBatch) -> Ran:
    """In this process, batch by batch until no file is left."""
    session = queries.program.session(
        sources=sources(replay, per_batch),
        statics=tables(replay),
        sinks=results(where),
        checkpoint=where / "checkpoint",
        collect_garbage="exact",
    )
    reports: list[BatchReport] = []
    with closing(session):
        while not reports or session.waiting_files():
            reports.append(session.step())
            on_batch(reports[-1])
        return Ran("In this process", reports[0].plan, tuple(reports), per_batch)


@dataclass(frozen=True, slots=True)
class OnSpark:
    """On Spark Structured Streaming: one query over all streams, until all files that are there have been read.

    `dataframes`: every increment as Spark DataFrames, also those that are so small that the driver is quicker.
    """

    dataframes: bool = False

    def __call__(self, replay: Replay, where: Path, *, per_batch: int, on_batch: OnBatch) -> Ran:
        from tidegate.runtime.engines.spark.setup.session import spark_session
        from tidegate.runtime.plan.sharding import DRIVER_BYTES, SHARD_BYTES

        spark = spark_session("Tidegate: operations room")
        reports: list[BatchReport] = []  # the query itself keeps the last ones only

        def reported(report: BatchReport) -> None:
            reports.append(report)
            on_batch(report)

        query = queries.program.start(
            spark,
            name="operations room",
            sources=sources(replay, per_batch),
            statics=tables(replay),
            sinks=results(where),
            checkpoint=where / "checkpoint",
            trigger="available_now",
            driver_bytes=0 if self.dataframes else DRIVER_BYTES,
            shard_bytes=0 if self.dataframes else SHARD_BYTES,
            collect_garbage="exact",
            on_batch=reported,
        )
        try:
            query.awaitTermination()
        finally:
            query.stop()
        return Ran(f"Spark {spark.version} on {spark.sparkContext.master}", reports[0].plan, tuple(reports), per_batch)
