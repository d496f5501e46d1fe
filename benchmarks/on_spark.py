"""The Spark engine beside native Structured Streaming: the same files, exactly once, to committed Parquet results."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

from benchmarks import queries
from benchmarks.run import PROGRAMS, same, write_files
from tidegate.runtime.sinks import parquet_sink
from tidegate.runtime.sources import parquet
from tidegate.runtime.spark.engine import start
from tidegate.runtime.spark.session import spark_session

FILES, FILES_A_BATCH = 12, 4
SCHEMA = "key bigint, time timestamp, value double"


def compare(count: int, keys: int) -> bool:
    """Rows per second of both, one after the other, from files to committed results; the first pair warms Spark up."""
    spark = spark_session("tidegate-bench")
    print(f"Spark, {count:,} rows from {FILES} Parquet files, {FILES_A_BATCH} a batch, to committed Parquet results")
    print(f"  {'query':<16}{'rows/s':>12}{'native':>14}{'ratio':>8}")
    equal = True
    try:
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder) / "in"
            files.mkdir()
            write_files(files, queries.rows(count, keys), FILES)
            for name in ("tumbling", "tumbling", "interval join"):
                ours, found = tidegate(spark, name, files, Path(tempfile.mkdtemp(dir=folder)))
                theirs = native(spark, name, files, Path(tempfile.mkdtemp(dir=folder)))
                print(f"  {name:<16}{count / ours:>12,.0f}{count / theirs:>14,.0f}{theirs / ours:>8.2f}")
                equal = same(name, found, queries.batch_polars(name, pl.read_parquet(f"{files}/*.parquet"))) and equal
    finally:
        spark.stop()
    return equal


def tidegate(spark: SparkSession, name: str, files: Path, work: Path) -> tuple[float, pl.DataFrame]:
    facts = PROGRAMS[name]().facts
    (stream,) = facts.streams
    began = time.perf_counter()
    query = start(
        spark,
        facts,
        sources={"Events": parquet(files, per_batch=FILES_A_BATCH, delay="1s", bounded=True)},
        sinks={stream: parquet_sink(work / "out")},
        checkpoint=work / "checkpoint",
    )
    query.awaitTermination()
    taken = time.perf_counter() - began
    return taken, pl.read_parquet(f"{work}/out/*.parquet")


def native(spark: SparkSession, name: str, files: Path, work: Path) -> float:
    """Structured Streaming's own way. Its last windows stay open: it has no end of input."""
    began = time.perf_counter()
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_A_BATCH)
    made = _native_query(name, lambda: read.parquet(str(files)).withWatermark("time", "1 second"))
    query = (
        made.writeStream.format("parquet")
        .option("path", str(work / "out"))
        .option("checkpointLocation", str(work / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return time.perf_counter() - began


def _native_query(name: str, read: Callable[[], DataFrame]) -> DataFrame:
    """`read` is called for each reference to the stream: a read of its own."""
    if name == "tumbling":
        windows = read().groupBy("key", F.window("time", "10 seconds"))
        return windows.agg(F.count("*").alias("n"), F.sum("value").alias("total"), F.max("value").alias("top"))
    a = read().where("value < 0.2").select("key", F.col("time").alias("first"))
    b = read().where("value > 0.8").select(F.col("key").alias("other"), F.col("time").alias("second"))
    near = (F.col("second") >= F.col("first")) & (F.col("second") <= F.col("first") + F.expr("interval 2 seconds"))
    return a.join(b, (F.col("key") == F.col("other")) & near).select("key", "first", "second")
