"""What an increment costs after a thousand batches, beside after ten: rows and bytes read as the engine counts them,
and time.

Per query in memory, and of a program of all four queries with checkpoints and files on disk, on either engine.

python benchmarks/flat.py [--batches 1000] [--rows 2000] [--spark-batches 300]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path

import polars as pl
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import queries
from benchmarks.figures import QUERIES, Figure, declared, print_table
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet, source
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.state.store.local import LocalStore

SOURCES = {"Events": source(None, delay="1s")}
Step = Callable[[pl.DataFrame], BatchReport]
#: Batches that are compared, from the tenth on. What a batch reads depends on where it lies in a window and on how full
#: segments are: both come again after at most 40 batches.
FIRST, SPAN = 10, 100


def main() -> int:
    """Prints the figures; the exit status is 0."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--batches", type=int, default=1000)
    options.add_argument("--rows", type=int, default=2000, help="rows a batch, a thousand a second of event time")
    options.add_argument("--spark-batches", type=int, default=300, help="0: not on Spark")
    chosen = options.parse_args()
    figures = measure(chosen.batches, chosen.rows)
    with tempfile.TemporaryDirectory() as folder:
        figures += checkpointed(Path(folder), chosen.batches, chosen.rows)
    if chosen.spark_batches:
        from tidegate.runtime.engines.spark.setup.session import spark_session

        with tempfile.TemporaryDirectory() as folder:
            figures += on_spark(spark_session("tidegate-flat"), Path(folder), chosen.spark_batches, chosen.rows)
    print_table(figures)
    return 0


def measure(batches: int = 1000, size: int = 2000) -> list[Figure]:
    """The last SPAN batches beside those of a session that has just begun, per query: means of what is read, median
    times.
    """
    figures = []
    for name in QUERIES:
        facts = queries.program(name).facts
        with Session(facts, sources=SOURCES) as old, Session(facts, sources=SOURCES) as young:
            figures += _compared(f"{name}, in memory", partial(_step, old), partial(_step, young), batches, size)
    return figures


def checkpointed(folder: Path, batches: int = 1000, size: int = 2000) -> list[Figure]:
    """The same of all four queries together, with checkpoints and results on disk."""
    facts = queries.program(*QUERIES).facts
    old, young = (
        Session(
            facts,
            LocalStore(folder / name),
            SOURCES,
            sinks={stream: parquet_sink(folder / f"{name} results" / stream) for stream in facts.streams},
        )
        for name in ("old", "young")
    )
    with old, young:
        return _compared("all four, with a checkpoint", partial(_step, old), partial(_step, young), batches, size)


def on_spark(spark: SparkSession, folder: Path, batches: int = 300, size: int = 2000) -> list[Figure]:
    """The same on Spark: two streaming queries, each of which is given a file and waits for the next."""
    with _Streaming(spark, folder / "old") as old, _Streaming(spark, folder / "young") as young:
        return _compared("all four, Spark", old.step, young.step, batches, size)


def _compared(label: str, old: Step, young: Step, batches: int, size: int) -> list[Figure]:
    """Early and late batches in turn, so that whatever else the machine does slows both down alike."""
    rows = queries.rows(batches * size, 100).with_columns(batch=pl.col("time").dt.epoch("us") // (size * 1000))
    parts = rows.partition_by("batch", include_key=False)
    for part in parts[: batches - SPAN]:
        old(part)
    for part in parts[:FIRST]:
        young(part)
    pairs = [(young(parts[FIRST + number]), old(parts[batches - SPAN + number])) for number in range(SPAN)]
    return _figures(label, [early for early, _ in pairs], [late for _, late in pairs], batches)


def _figures(label: str, early: list[BatchReport], late: list[BatchReport], batches: int) -> list[Figure]:
    """Of several queries that one whose reads have grown most."""
    figures = []
    for number, what in enumerate(("rows", "bytes")):
        read = {query for report in late for query in report.read}
        means = {query: (_mean_read(late, query, number), _mean_read(early, query, number)) for query in sorted(read)}
        worst = max(means, key=lambda query: means[query][0] / means[query][1])
        one, other = means[worst]
        detail = f"{worst}: {one:,.0f} at batch {batches:,}, {other:,.0f} at batch {FIRST}"
        figures.append(declared(f"{label}: {what} read, late / early batches", one / other, detail))
    one, other = (statistics.median(map(_milliseconds, some)) for some in (late, early))
    figures.append(declared(f"{label}: time, late / early batches", one / other, f"{one:.1f} ms, {other:.1f} ms"))
    for figure in figures:
        print(figure.line(), flush=True)
    return figures


def _step(session: Session, rows: pl.DataFrame) -> BatchReport:
    session.push("Events", rows)
    return session.step()


class _Streaming:
    """A program of all four queries on Spark, with a directory of files that a context ends."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        from tidegate.runtime.engines.spark.engine import start

        self._files, self._number = folder / "in", 0
        self._files.mkdir(parents=True)
        facts = queries.program(*QUERIES).facts
        self._reports: list[BatchReport] = []
        self._query = start(
            spark,
            facts,
            sources={"Events": parquet(self._files, delay="1s")},
            sinks={stream: parquet_sink(folder / "out" / stream) for stream in facts.streams},
            checkpoint=folder / "checkpoint",
            trigger="0 seconds",
            options=RunOptions(on_batch=self._reports.append),
        )
        self._query.processAllAvailable()  # the first batch of a query runs at once, perhaps before there is a file
        self._before = len(self._reports)

    def __enter__(self) -> _Streaming:
        return self

    def __exit__(self, *_: object) -> None:
        self._query.stop()

    def step(self, rows: pl.DataFrame) -> BatchReport:
        """One file, one batch."""
        written = self._files / f".{self._number}.parquet"
        rows.write_parquet(written)
        written.rename(self._files / f"{self._number:05d}.parquet")
        self._number += 1
        self._query.processAllAvailable()
        assert len(self._reports) == self._before + self._number, "a file is a batch"
        return self._reports[-1]


def _mean_read(reports: list[BatchReport], query: str, number: int) -> float:
    return statistics.mean(report.read[query][number] if query in report.read else 0 for report in reports)


def _milliseconds(report: BatchReport) -> float:
    return 1000 * sum(report.seconds.values())


if __name__ == "__main__":
    sys.exit(main())
