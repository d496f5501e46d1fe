"""The Spark engine beside native Structured Streaming: the same files, exactly once, to committed Parquet results."""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path

import polars as pl
from pyspark.sql import SparkSession

from benchmarks import queries
from benchmarks.comparing import same, same_until
from benchmarks.data import Data
from benchmarks.figures import PAIRS, QUERIES, Figure, compared, declared
from benchmarks.native import FILES_A_BATCH, native
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.engine import start

#: Results of which native streaming leaves the last ones open, since it has no end of input, by the instant that
#: decides.
OPEN_AT_END = {"tumbling": "end", "silence": "time", "frames": "end"}


#: Queries for which native streaming takes minutes: they are given a quarter of the rows.
SLOW = ("silence", "frames")


def measure(data: Data) -> tuple[list[Figure], bool]:
    """Rows per second of both in turn, from files to committed results; warmed up with a few rows."""
    figures, equal = [], True
    with tempfile.TemporaryDirectory() as work:
        for name in QUERIES:
            files, rows = data.quarter if name in SLOW else (data.large, data.rows)
            made, same_rows = _pairs(data.spark, name, files, data.few, work, rows)
            figures += made
            equal = equal and same_rows
            for figure in made:
                print(figure.line(), flush=True)
    return figures, equal


def _pairs(spark: SparkSession, name: str, files: Path, few: Path, work: str, rows: int) -> tuple[list[Figure], bool]:
    expected = queries.batch_polars(name, pl.scan_parquet(f"{files}/*.parquet"))
    equal = True
    ours, theirs = [], []
    tidegate(spark, name, few, work)
    native(spark, name, few, work)
    for _ in range(PAIRS):
        taken, found, _ = tidegate(spark, name, files, work)
        ours.append(taken)
        equal = same(f"{name}, Spark", found, expected) and equal
        taken, found = native(spark, name, files, work)
        theirs.append(taken)
        equal = _same_as_native(name, found, expected) and equal
    ratios = [other / one for one, other in zip(ours, theirs, strict=True)]
    figures = [
        declared(f"{name}, Spark", rows / statistics.median(ours)),
        declared(f"{name}, native Structured Streaming", rows / statistics.median(theirs)),
        compared(f"{name}: rows/s, Spark / native", ratios),
    ]
    return figures, equal


def tidegate(spark: SparkSession, name: str, files: Path, work: str) -> tuple[float, pl.DataFrame, int]:
    """Seconds of a run, its result, and the greatest live state in bytes."""
    folder = Path(tempfile.mkdtemp(dir=work))
    facts = queries.program(name).facts
    (stream,) = facts.streams
    reports: list[BatchReport] = []
    began = time.perf_counter()
    query = start(
        spark,
        facts,
        sources={"Events": parquet(files, per_batch=FILES_A_BATCH, delay="1s", bounded=True)},
        sinks={stream: parquet_sink(folder / "out")},
        checkpoint=folder / "checkpoint",
        options=RunOptions(on_batch=reports.append),
    )
    query.awaitTermination()
    taken = time.perf_counter() - began
    live = max(sum(report.live_bytes.values()) for report in reports)
    return taken, pl.read_parquet(f"{folder}/out/*.parquet"), live


def _same_as_native(name: str, found: pl.DataFrame, expected: pl.DataFrame) -> bool:
    if name not in OPEN_AT_END:
        return same(f"{name}, native", found, expected)
    return same_until(f"{name}, native", found, expected, OPEN_AT_END[name])
