"""The measured queries in native Structured Streaming, as whoever knows it well would write them: joins have a time
bucket.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import polars as pl
import polars.selectors as cs
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F

SCHEMA = "key bigint, time timestamp, value double"
#: As many files a batch as the Spark engine gets.
FILES_A_BATCH = 4


def native(spark: SparkSession, name: str, files: Path, work: str) -> tuple[float, pl.DataFrame]:
    """The same in Structured Streaming's own way. Its last windows stay open."""
    folder = Path(tempfile.mkdtemp(dir=work))
    began = time.perf_counter()
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_A_BATCH)
    made = native_query(name, lambda: read.parquet(str(files)).withWatermark("time", "1 second"))
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


def native_query(name: str, read: Callable[[], DataFrame]) -> DataFrame:
    """`read` is called for each reference to the stream: a read of its own."""
    if name == "tumbling":
        windows = read().groupBy("key", F.window("time", "10 seconds"))
        made = windows.agg(F.count("*").alias("n"), F.sum("value").alias("total"), F.max("value").alias("top"))
        return made.select("key", F.col("window.end").alias("end"), "n", "total", "top")
    a = read().where("value < 0.2").select("key", F.col("time").alias("first"))
    if name == "silence":
        b = read().select(F.col("key").alias("other"), F.col("time").alias("later"))
        soon = (F.col("later") > F.col("first")) & (F.col("later") <= F.col("first") + F.expr("interval 5 seconds"))
        paired = _near(a, "first", b, "later", 5, soon, "left_outer")
        return paired.where(F.col("later").isNull()).select("key", F.col("first").alias("time"))
    if name == "frames":
        return _frames(read)
    b = read().where("value > 0.8").select(F.col("key").alias("other"), F.col("time").alias("second"))
    near = (F.col("second") >= F.col("first")) & (F.col("second") <= F.col("first") + F.expr("interval 2 seconds"))
    return _near(a, "first", b, "second", 2, near, "inner").select("key", "first", "second")


def _bucket(instant: str, seconds: int) -> Column:
    return F.expr(f"unix_micros({instant}) div {seconds * 1_000_000}")


def _near(left: DataFrame, one: str, right: DataFrame, other: str, seconds: int, near: Column, kind: str) -> DataFrame:
    """A join by key, span of time and `near`: the right row's instant is at most so many seconds after the left one's.

    Spans of time as buckets, as in the Polars and DuckDB versions: a right row stands in its own span and in the one
    before, a left row in its own, so that each pair meets once and an outer join has each left row once. Spark looks up
    partners by the equal columns alone: by key and bucket it looks at rows of ten seconds at most, by key at all that
    it holds.
    """
    spans = F.array(_bucket(other, seconds), _bucket(other, seconds) - 1)
    twice = right.withColumn("other_bucket", F.explode(spans))
    equal = (F.col("key") == F.col("other")) & (F.col("bucket") == F.col("other_bucket"))
    return left.withColumn("bucket", _bucket(one, seconds)).join(twice, equal & near, kind)


def _frames(read: Callable[[], DataFrame]) -> DataFrame:
    """Two joins and a grouping one after the other.

    Spark wants one event time a stream: the start goes on as a number. So that it can drop events, it must be told what
    follows: that they are at most five seconds before the end. Each join holds the watermark back by its five seconds.
    Of the second join a frame stands in each second from its start to its end, as in the Polars version.
    """
    a = read().where("value < 0.02").select("key", F.col("time").alias("start"))
    b = read().where("value > 0.98").select(F.col("key").alias("other"), F.col("time").alias("end"))
    c = read().select(F.col("key").alias("c_key"), "time", "value", _bucket("time", 1).alias("c_second"))
    seconds = F.expr("interval 5 seconds")
    soon = (F.col("end") > F.col("start")) & (F.col("end") <= F.col("start") + seconds)
    whole = _near(a, "start", b, "end", 5, soon, "inner").select("key", F.unix_micros("start").alias("ticks"), "end")
    each = whole.withColumn("second", F.explode(F.sequence(F.expr("ticks div 1000000"), _bucket("end", 1))))
    after = (F.unix_micros("time") > F.col("ticks")) & (F.col("time") > F.col("end") - seconds)
    equal = (F.col("key") == F.col("c_key")) & (F.col("second") == F.col("c_second"))
    inside = each.join(c, equal & after & (F.col("time") < F.col("end")))
    grouped = inside.groupBy("key", "ticks", "end").agg(F.max("value").alias("top"), F.count("*").alias("n"))
    return grouped.select("key", F.timestamp_micros("ticks").alias("start"), "end", "top", "n")
