"""What a batch of a few rows costs, from the look for files to the commit: five queries, embedded and on Spark, and a
pattern.

python benchmarks/floors.py
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import TypeAlias

import polars as pl
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks import queries
from benchmarks.figures import Figure, declared, print_table
from benchmarks.files import write_files
from benchmarks.situations_data import booleans
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import Source, parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session

#: A batch is a second of events, so that every query advances in every batch.
BATCHES, ROWS, WARM = 60, 50, 10
#: In process the floor is measured so often: from one session to the next it differs by a quarter.
SESSIONS = 5
events = queries.events
Delay: TypeAlias = int | str


def program() -> tg.Program:
    """A window, a join with two groupings above it, a non-event, and a selection of the join."""
    a, b = events.as_("a"), events.as_("b")
    near = (a.key == b.key, a.time <= b.time, b.time <= a.time + tg.seconds(2))
    pairs = a.join(b, *near).select(key=a.key, time=b.time, one=a.value, other=b.value)
    return tg.program(
        Windows=events.group_by(events.key, end=tg.ceil(events.time, "1s")).agg(n=tg.count(), top=tg.max(events.value)),
        ByKey=pairs.group_by(key=pairs.key, end=tg.ceil(pairs.time, "1s")).agg(n=tg.count()),
        All=pairs.group_by(end=tg.ceil(pairs.time, "1s")).agg(n=tg.count(), top=tg.max(pairs.one)),
        Alone=a.anti_join(b, a.key == b.key, a.time < b.time, b.time <= a.time + tg.seconds(1)).select(
            key=a.key, time=a.time
        ),
        High=pairs.where(pairs.one > 0.9),
    )


def main() -> int:
    """Prints the median of each; the exit status is 0."""
    figures = [embedded(), one_pattern()]
    spark = spark_session("tidegate-floors")
    print_table([*figures, on_spark(spark), one_pattern_on_spark(spark)])
    spark.stop()
    return 0


def pattern() -> tg.Program:
    """Matches of three situations: A before B, and B overlaps C."""
    stream = tg.stream("Events", "key bigint, time bigint, a boolean, b boolean, c boolean", progress="time")
    found = stream.partition_by("key").derive(
        A=tg.situation(stream.a), B=tg.situation(stream.b), C=tg.situation(stream.c)
    )
    return tg.program(Matches=found.match(found.A.before(found.B), found.B.overlaps(found.C), within=300))


def embedded() -> Figure:
    """Milliseconds a batch, best measured before a JVM runs beside it."""
    return _median(f"{ROWS} rows, five queries, embedded", *(_steps(program(), *_rows()) for _ in range(SESSIONS)))


def one_pattern() -> Figure:
    """The same for a program of one pattern: ten seconds of five keys in every batch."""
    return _median(f"{ROWS} events, one pattern, embedded", *(_steps(pattern(), *_events()) for _ in range(SESSIONS)))


def _steps(made: tg.Program, rows: pl.DataFrame, delay: Delay) -> list[float]:
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder) / "in", rows, BATCHES)
        session = Session(made.facts, sources={"Events": _source(Path(folder) / "in", delay, bounded=True)})
        with session:
            for _ in range(BATCHES):
                began = time.perf_counter()
                session.step()
                taken.append(1000 * (time.perf_counter() - began))
    return taken


def on_spark(spark: SparkSession) -> Figure:
    """Milliseconds a batch: the whole trigger."""
    return _median(f"{ROWS} rows, five queries, Spark", _triggers(spark, program(), *_rows()))


def one_pattern_on_spark(spark: SparkSession) -> Figure:
    """The same for a program of one pattern."""
    return _median(f"{ROWS} events, one pattern, Spark", _triggers(spark, pattern(), *_events()))


def _triggers(spark: SparkSession, made: tg.Program, rows: pl.DataFrame, delay: Delay) -> list[float]:
    """Files come one at a time: of files that are there already a trigger reads several, each as a batch."""
    facts = made.facts
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder / "files", rows, BATCHES)
        (folder / "in").mkdir()
        sinks = {name: parquet_sink(folder / "out" / name) for name in facts.streams}
        sources = {"Events": _source(folder / "in", delay, bounded=False)}
        query = start(spark, facts, sources=sources, sinks=sinks, checkpoint=folder / "checkpoint", trigger="0 seconds")
        try:
            query.processAllAvailable()
            for file in sorted((folder / "files").iterdir()):
                file.rename(folder / "in" / file.name)
                query.processAllAvailable()
            return [p["durationMs"]["triggerExecution"] for p in query.recentProgress if "addBatch" in p["durationMs"]]
        finally:
            query.stop()


def _source(folder: Path, delay: Delay, *, bounded: bool) -> Source:
    return parquet(folder, per_batch=1, delay=delay, bounded=bounded)


def _events() -> tuple[pl.DataFrame, Delay]:
    return booleans(BATCHES * ROWS, 5), 1


def _rows() -> tuple[pl.DataFrame, Delay]:
    return queries.rows(BATCHES * ROWS, 20, per_second=ROWS), "1s"


def _median(what: str, *sessions: list[float]) -> Figure:
    """The median of the batches of each session, and of several the median of these."""
    medians = [statistics.median(taken[WARM:]) for taken in sessions]
    detail = ", ".join(f"{one:.1f}" for one in medians) if len(medians) > 1 else ""
    figure = declared(f"a batch of {what}", statistics.median(medians), detail)
    print(figure.line(), flush=True)
    return figure


if __name__ == "__main__":
    sys.exit(main())
