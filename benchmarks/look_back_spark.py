"""What looks back and windows on Spark, beside native Structured Streaming, where that has a word for it.

    python benchmarks/look_back_spark.py --rows 10000000

Sessions, windows that hop, the first row of each key, and the greatest three of each window, from the same files to
committed Parquet results, both in turn. As-of joins, rows before and running totals are state functions of one's own
there. Ranks within a window are refused, but two aggregations say the greatest of it: sums, and the first of a sorted
list of these. Seconds are of the clock, on as many cores as Spark is given.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import polars as pl
import polars.selectors as cs
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.comparing import same, same_until
from benchmarks.data import CONFIG
from benchmarks.figures import LOOK_BACK_KEYS, LOOK_BACK_NATIVE, PAIRS, Figure, compared, declared, print_table
from benchmarks.files import write_files
from benchmarks.native import FILES_A_BATCH
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session

FILES = 100
E = tg.stream("E", "k bigint, t timestamp, v bigint", progress="t")
SCHEMA = "k bigint, t timestamp, v bigint"
#: Microseconds between rows. No row is at the border of a window, where (start, end] and [start, end) differ.
STEP, BORDER = 10, 3
#: Results of which native streaming leaves the last ones open, by the instant that decides.
OPEN_AT_END: Mapping[str, str] = {"sessions": "end", "windows that hop": "end", "greatest three": "w"}


def relation(query: str, rows: int, keys: int) -> tg.Relation:
    """The query as a user writes it."""
    window = rows // 50 * STEP
    match query:
        case "sessions":
            sessions = E.windows(tg.session(tg.duration(f"{2 * keys * STEP}us")), by="k")
            return sessions.agg(n=tg.count(), total=tg.sum(E.v))
        case "windows that hop":
            hops = tg.hopping(tg.duration(f"{5 * window}us"), every=tg.duration(f"{window}us"))
            return E.windows(hops, by="k").agg(n=tg.count(), most=tg.max(E.v))
        case "first of each key":
            return E.distinct_on("k").select("k", "t", "v")
        case "greatest three":
            sums = E.group_by("k", w=tg.ceil(E.t, tg.duration(f"{window}us"))).agg(total=tg.sum(E.v))
            return sums.top_k(3, by="w", order=(tg.desc("total"), "k"))
        case _:
            raise ValueError(query)


def native_query(query: str, read: DataFrame, rows: int, keys: int) -> DataFrame:
    """The same in Structured Streaming."""
    window = rows // 50 * STEP
    match query:
        case "sessions":
            by = read.groupBy("k", F.session_window("t", f"{2 * keys * STEP} microseconds").alias("w"))
            made = by.agg(F.count("*").alias("n"), F.sum("v").alias("total"))
            return made.select("k", F.col("w.start").alias("start"), F.col("w.end").alias("end"), "n", "total")
        case "windows that hop":
            hops = F.window("t", f"{5 * window} microseconds", f"{window} microseconds").alias("w")
            made = read.groupBy("k", hops).agg(F.count("*").alias("n"), F.max("v").alias("most"))
            return made.select("k", F.col("w.start").alias("start"), F.col("w.end").alias("end"), "n", "most")
        case "first of each key":
            return read.dropDuplicates(["k"])
        case "greatest three":
            of_window = F.window("t", f"{window} microseconds").alias("w")
            sums = read.groupBy("k", of_window).agg(F.sum("v").alias("total"))
            ranked = F.array_sort(F.collect_list(F.struct((-F.col("total")).alias("less"), "k")))
            by_window = sums.groupBy(F.window("w", f"{window} microseconds").alias("w"))
            first = by_window.agg(F.slice(ranked, 1, 3).alias("first")).select("w", F.explode("first").alias("one"))
            return first.select("one.k", F.col("w.end").alias("w"), (-F.col("one.less")).alias("total"))
        case _:
            raise ValueError(query)


def tidegate(spark: SparkSession, query: str, rows: int, keys: int, files: Path, work: str) -> tuple[float, Path]:
    """Seconds of a run, and where its results are."""
    folder = Path(tempfile.mkdtemp(dir=work))
    began = time.perf_counter()
    running = start(
        spark,
        tg.program(R=relation(query, rows, keys)).facts,
        sources={"E": parquet(files, per_batch=FILES_A_BATCH, delay=0, bounded=True)},
        sinks={"R": parquet_sink(folder / "out")},
        checkpoint=folder / "checkpoint",
    )
    running.awaitTermination()
    return time.perf_counter() - began, folder / "out"


def native(spark: SparkSession, query: str, rows: int, keys: int, files: Path, work: str) -> tuple[float, Path]:
    """Seconds of a run, and where its results are."""
    folder = Path(tempfile.mkdtemp(dir=work))
    began = time.perf_counter()
    read = spark.readStream.schema(SCHEMA).option("maxFilesPerTrigger", FILES_A_BATCH).parquet(str(files))
    query_ = native_query(query, read.withWatermark("t", "0 seconds"), rows, keys)
    writing = query_.writeStream.format("parquet").option("path", str(folder / "out"))
    writing = writing.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True)
    writing.start().awaitTermination()
    return time.perf_counter() - began, folder / "out"


def results(place: Path) -> pl.DataFrame:
    """Spark writes nanoseconds, this engine microseconds."""
    instants = cs.datetime().dt.epoch("us").cast(pl.Datetime("us", "UTC"))
    return pl.read_parquet(f"{place}/*.parquet").with_columns(instants)


def equal(query: str, ours: Path, theirs: Path) -> bool:
    """Whether results are equal. Of rows with one key in one batch, native streaming keeps any."""
    expected, found = results(ours), results(theirs)
    if query == "first of each key":
        return same(query, found.select("k"), expected.select("k"))
    return same_until(query, found, expected.select(found.columns), OPEN_AT_END[query])


def events(count: int, keys: int) -> pl.DataFrame:
    """A row each ten microseconds, of any key."""
    rng = np.random.default_rng(7)
    at = pl.Series(np.arange(count) * STEP + BORDER).cast(pl.Datetime("us", "UTC"))
    return pl.DataFrame({"k": rng.integers(0, keys, count), "t": at, "v": rng.integers(0, 1000, count)})


def measure(spark: SparkSession, rows: int = 10_000_000) -> tuple[list[Figure], bool]:
    """The figures of every query with every number of keys, and whether results were equal."""
    figures, all_equal = [], True
    for query in LOOK_BACK_NATIVE:
        for keys in LOOK_BACK_KEYS:
            with tempfile.TemporaryDirectory() as work:
                for name, count, parts in (("few", min(rows, 100_000), 4), ("files", rows, FILES)):
                    write_files(Path(work) / name, events(count, keys), parts)
                for way in (tidegate, native):
                    way(spark, query, rows, keys, Path(work) / "few", work)
                taken: list[tuple[float, float]] = []
                for _ in range(PAIRS):
                    ours, place = tidegate(spark, query, rows, keys, Path(work) / "files", work)
                    theirs, other = native(spark, query, rows, keys, Path(work) / "files", work)
                    taken.append((ours, theirs))
                all_equal = equal(query, place, other) and all_equal
            title = f"{query}, {keys:,} keys"
            own, others = (rows / statistics.median(way) for way in zip(*taken, strict=True))
            made = [
                declared(f"{title}, Spark", own),
                declared(f"{title}, native Structured Streaming", others),
                compared(f"{title}: rows/s, Spark / native", [theirs / ours for ours, theirs in taken]),
            ]
            print(*(figure.line() for figure in made), sep="\n", flush=True)
            figures += made
    return figures, all_equal


def main() -> int:
    """Prints the figures; the exit status says whether results were equal."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000_000)
    chosen = options.parse_args()
    spark = spark_session("tidegate-look-back", config=CONFIG)
    try:
        figures, equal_ = measure(spark, chosen.rows)
        print_table(figures)
        print("results: equal" if equal_ else "results: DIFFERENT")
        return 0 if equal_ else 1
    finally:
        spark.stop()


if __name__ == "__main__":
    sys.exit(main())
