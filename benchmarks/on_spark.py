"""The Spark engine beside native Structured Streaming: the same files, exactly once, to committed Parquet results."""

from __future__ import annotations

import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import polars.selectors as cs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import queries
from benchmarks.comparing import contained, same
from benchmarks.figures import Figure
from benchmarks.memory import Peak
from tidegate.runtime.sinks import parquet_sink
from tidegate.runtime.sources import parquet
from tidegate.runtime.spark.engine import start

FILES, FILES_A_BATCH = 12, 4
SCHEMA = "key bigint, time timestamp, value double"
#: What native streaming can express, with the target for how many times as fast this is, and how often both run.
NATIVE = {"tumbling": (2.0, 3), "interval join": (1.5, 2)}
#: Native streaming holds its state in the JVM: with the 2 GiB that sessions have otherwise it mostly collects garbage.
CONFIG = {"spark.driver.memory": "8g"}


def measure(spark: SparkSession, large: Path, small: Path, few: Path, rows: int) -> tuple[list[Figure], bool]:
    """Rows per second of both, one after the other, from files to committed results; warmed up with a few rows.

    The interval join reads the `small` files. Native streaming looks at all pairs of a key in a batch, and drops state only
    between batches: of 3.3M rows a batch it had joined two in six minutes.
    """
    figures, equal = [], True
    with tempfile.TemporaryDirectory() as work:
        for name in queries.PROGRAMS:
            files = small if name == "interval join" else large
            expected = queries.batch_polars(name, pl.scan_parquet(f"{files}/*.parquet"))
            ours, theirs = [], []
            tidegate(spark, name, few, work)
            if name in NATIVE:
                native(spark, name, few, work)
            with Peak() as peak:
                _, _, live = tidegate(spark, name, files, work)
            for number in range(NATIVE.get(name, (0, 1))[1]):
                taken, found, _ = tidegate(spark, name, files, work)
                ours.append(taken)
                equal = same(f"{name}, Spark", found, expected) and equal
                if name in NATIVE:
                    taken, found = native(spark, name, files, work)
                    theirs.append(taken)
                    if number == 0:
                        equal = _same_as_native(name, found, expected) and equal
            figures.append(Figure(f"{name}, Spark", rows / statistics.median(ours), "rows/s"))
            if theirs:
                ratios = [other / one for one, other in zip(ours, theirs, strict=True)]
                figures.append(
                    Figure(f"{name}, native Structured Streaming", rows / statistics.median(theirs), "rows/s")
                )
                label = f"{name}: Spark / native ({', '.join(f'{ratio:.2f}' for ratio in ratios)})"
                figures.append(Figure(label, statistics.median(ratios), "", least=NATIVE[name][0]))
            allowed = round(2 * live / 2**20 + 1024)
            label = f"{name}, Spark: peak memory beyond the base, JVM and workers"
            figures.append(Figure(label, peak.more / 2**20, "MiB", most=allowed))
            for figure in figures[-2:]:
                print(figure.line(), flush=True)
    return figures, equal


def tidegate(spark: SparkSession, name: str, files: Path, work: str) -> tuple[float, pl.DataFrame, int]:
    """Seconds of a run, its result, and the greatest live state in bytes."""
    folder = Path(tempfile.mkdtemp(dir=work))
    facts = queries.PROGRAMS[name]().facts
    (stream,) = facts.streams
    began = time.perf_counter()
    query = start(
        spark,
        facts,
        sources={"Events": parquet(files, per_batch=FILES_A_BATCH, delay="1s", bounded=True)},
        sinks={stream: parquet_sink(folder / "out")},
        checkpoint=folder / "checkpoint",
    )
    query.awaitTermination()
    taken = time.perf_counter() - began
    live = max(sum(report.live_bytes.values()) for report in query.reports)
    return taken, pl.read_parquet(f"{folder}/out/*.parquet"), live


def native(spark: SparkSession, name: str, files: Path, work: str) -> tuple[float, pl.DataFrame]:
    """The same in Structured Streaming's own way. Its last windows stay open: it has no end of input."""
    folder = Path(tempfile.mkdtemp(dir=work))
    began = time.perf_counter()
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_A_BATCH)
    made = _native_query(name, lambda: read.parquet(str(files)).withWatermark("time", "1 second"))
    query = (
        made.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    taken = time.perf_counter() - began
    instants = cs.datetime().dt.epoch("us").cast(pl.Datetime("us", "UTC"))  # Spark writes nanoseconds
    return taken, pl.read_parquet(f"{folder}/out/*.parquet").with_columns(instants)


def _native_query(name: str, read: Callable[[], DataFrame]) -> DataFrame:
    """`read` is called for each reference to the stream: a read of its own."""
    if name == "tumbling":
        windows = read().groupBy("key", F.window("time", "10 seconds"))
        made = windows.agg(F.count("*").alias("n"), F.sum("value").alias("total"), F.max("value").alias("top"))
        return made.select("key", F.col("window.end").alias("end"), "n", "total", "top")
    a = read().where("value < 0.2").select("key", F.col("time").alias("first"))
    b = read().where("value > 0.8").select(F.col("key").alias("other"), F.col("time").alias("second"))
    near = (F.col("second") >= F.col("first")) & (F.col("second") <= F.col("first") + F.expr("interval 2 seconds"))
    return a.join(b, (F.col("key") == F.col("other")) & near).select("key", "first", "second")


def _same_as_native(name: str, found: pl.DataFrame, expected: pl.DataFrame) -> bool:
    if name == "tumbling":
        return contained(f"{name}, native", found, expected, ["key", "end"], least=0.9)
    return same(f"{name}, native", found, expected)
