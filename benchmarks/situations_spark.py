"""Situations and a pattern on Spark beside what Spark has for it: the same files, from Parquet to committed results.

The pattern is `A before B and B overlaps C within 300 s` over three boolean attributes at 1 Hz. Compared are Spark SQL in
batch (window functions find gaps and islands, joins by key and span of time) and Spark's own state functions, a Python
function per key with numpy inside. Rates are rows a second; results are compared.

python benchmarks/situations_spark.py [--times 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.state import GroupStateTimeout
from pyspark.sql.window import Window

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.comparing import same
from benchmarks.figures import SQL, Figure, declared, print_table
from benchmarks.files import write_files
from benchmarks.situations import program
from benchmarks.situations_data import booleans
from tidegate.runtime.sinks import parquet_sink
from tidegate.runtime.sources import parquet
from tidegate.runtime.spark.engine import start
from tidegate.runtime.spark.session import spark_session

WITHIN = 300
#: Batches of a run, and files of a batch, each with the rows of a span of time.
BATCHES, FILES = 2, 4
NAMES = "abc"
COLUMNS = ["key", "a_ts", "a_te", "b_ts", "b_te", "c_ts"]
CONFIG = {"spark.driver.memory": "6g"}


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--times", type=int, default=3)
    chosen = options.parse_args()
    spark = spark_session("tidegate-situations", config=CONFIG)
    figures, equal = measure(spark, chosen.times)
    spark.stop()
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


def measure(spark: SparkSession, times: int = 3) -> tuple[list[Figure], bool]:
    """Both sizes of batches in pairs of runs, state functions once, and two numbers of keys."""
    figures: list[Figure] = []
    equal = True

    def add(name: str, value: float, detail: str = "") -> None:
        figures.append(declared(name, value, detail))
        print(figures[-1].line(), flush=True)

    with tempfile.TemporaryDirectory() as work:
        few = written(Path(work) / "few", 40_000, 10)
        for run in (tidegate, sql, states):
            run(spark, few, work)
        for rows in SQL:
            title, count = f"Q1, Spark, {rows:,} rows a batch", BATCHES * rows
            files = written(Path(work) / str(rows), count, 1000)
            ours, theirs = [], []
            for _ in range(times):
                taken, found = tidegate(spark, files, work)
                ours.append(taken)
                taken, wanted = sql(spark, files, work)
                theirs.append(taken)
                equal = same(title, found, wanted) and equal
            add(title, count / statistics.median(ours))
            add(f"{title}: Spark SQL in batch", count / statistics.median(theirs))
            ratios = [other / own for own, other in zip(ours, theirs, strict=True)]
            shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
            add(f"{title}: rows/s, Spark / Spark SQL", statistics.median(ratios), shown)
            if rows == max(SQL):
                taken, wanted = states(spark, files, work)
                equal = same("Q1, Spark's own state functions", found, wanted) and equal
                add("Q1, Spark's own state functions", count / taken)
                add("Q1, Spark: rows/s, Spark / its state functions", taken / statistics.median(ours))
        by_keys = {}
        for keys in (100, 100_000):
            files = written(Path(work) / f"{keys} keys", BATCHES * max(SQL), keys)
            by_keys[keys] = statistics.median(tidegate(spark, files, work)[0] for _ in range(times))
        add("Q1, Spark: time, 100,000 keys / 100 keys", by_keys[100_000] / by_keys[100])
    return figures, equal


def written(folder: Path, rows: int, keys: int) -> Path:
    """The events as Parquet files of neighbouring spans of time."""
    write_files(folder, booleans(rows, keys, NAMES), FILES * BATCHES)
    return folder


def tidegate(spark: SparkSession, files: Path, work: str) -> tuple[float, pl.DataFrame]:
    """Seconds of a run, exactly once, and its results."""
    folder = Path(tempfile.mkdtemp(dir=work))
    began = time.perf_counter()
    query = start(
        spark,
        program("Q1").facts,
        sources={"Events": parquet(files, per_batch=FILES, delay=0, bounded=True)},
        sinks={"Found": parquet_sink(folder / "out")},
        checkpoint=folder / "checkpoint",
    )
    query.awaitTermination()
    taken = time.perf_counter() - began
    return taken, results(folder, {"key": "key"} | {f"{name[0].upper()}.{name[2:]}": name for name in COLUMNS[1:]})


def results(folder: Path, names: Mapping[str, str]) -> pl.DataFrame:
    """What was written below a folder, with these names changed; nothing where no file was written."""
    if not any(folder.glob("out/*.parquet")):
        return pl.DataFrame(schema=dict.fromkeys(names.values(), pl.Int64))
    return pl.read_parquet(f"{folder}/out/*.parquet").select(pl.col(old).alias(new) for old, new in names.items())


def sql(spark: SparkSession, files: Path, work: str) -> tuple[float, pl.DataFrame]:
    """The same in one batch job: changes by a window function, situations from each to the next, joins."""
    folder = Path(tempfile.mkdtemp(dir=work))
    began = time.perf_counter()
    by_time = Window.partitionBy("key").orderBy("time")
    rows = spark.read.parquet(str(files))
    before = rows.select("*", *(F.lag(name).over(by_time).alias(f"{name}0") for name in NAMES))
    changes = before.select(
        "key", "time", F.explode(F.array_compact(F.array(*(_as_change(name) for name in NAMES)))).alias("change")
    )
    turns = changes.select("key", "time", "change.symbol", "change.now")
    by_symbol = Window.partitionBy("key", "symbol").orderBy("time")
    spans = turns.select("key", "symbol", "now", F.col("time").alias("ts"), F.lead("time").over(by_symbol).alias("te"))
    situations = spans.where("now").persist()
    _matched(situations).write.parquet(str(folder / "out"))
    taken = time.perf_counter() - began
    situations.unpersist()
    return taken, results(folder, dict(zip(COLUMNS, COLUMNS, strict=True)))


def _as_change(name: str) -> Column:
    change = F.struct(F.lit(name).alias("symbol"), F.col(name).alias("now"))
    return F.when(F.coalesce(F.col(name) != F.col(f"{name}0"), F.col(name)), change)


def _matched(situations: DataFrame) -> DataFrame:
    """A before B, B overlaps C, B.te - A.ts <= WITHIN; by key and span of WITHIN seconds."""
    span = F.expr(f"b_te div {WITHIN}")
    a = situations.where("symbol = 'a' and te is not null").selectExpr(
        "key", "ts as a_ts", "te as a_te", f"explode(array(ts div {WITHIN}, ts div {WITHIN} + 1)) as span"
    )
    b = situations.where("symbol = 'b' and te is not null").selectExpr("key", "ts as b_ts", "te as b_te")
    c = situations.where("symbol = 'c'").selectExpr("key", "ts as c_ts", "te as c_te")
    pairs = a.join(b.withColumn("span", span), ["key", "span"]).where(f"a_te < b_ts and b_te - a_ts <= {WITHIN}")
    overlap = "b_ts < c_ts and c_ts < b_te and (c_te is null or b_te < c_te)"
    inside = c.selectExpr("*", f"explode(array(c_ts div {WITHIN}, c_ts div {WITHIN} + 1)) as span")
    return pairs.join(inside, ["key", "span"]).where(overlap).select(*COLUMNS)


#: As text: arrays in the state fail in Spark's workers (KeyError: 'elementType').
STATE = "kept string"
RESULT = ", ".join(f"{name} bigint" for name in COLUMNS)


def states(spark: SparkSession, files: Path, work: str) -> tuple[float, pl.DataFrame]:
    """The same as a function of Python per key with state, in Structured Streaming."""
    folder = Path(tempfile.mkdtemp(dir=work))
    began = time.perf_counter()
    schema = "key bigint, time bigint, a boolean, b boolean, c boolean"
    rows = spark.readStream.schema(schema).option("maxFilesPerTrigger", FILES).parquet(str(files))
    found = rows.groupBy("key").applyInPandasWithState(per_key, RESULT, STATE, "append", GroupStateTimeout.NoTimeout)
    query = (
        found.writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    return time.perf_counter() - began, results(folder, dict(zip(COLUMNS, COLUMNS, strict=True)))


NEVER = -1


def per_key(key: Any, frames: Iterable[Any], state: Any) -> Iterator[Any]:
    """Situations of one key by numpy, and the matches that they complete; state are those of the last WITHIN seconds."""
    import pandas as pd

    rows = pd.concat(list(frames)).sort_values("time")
    times = rows["time"].to_numpy()
    known = json.loads(state.get[0]) if state.exists else ([], [], [], [], [NEVER] * 3, [False] * 3)
    a_ts, a_te, c_ts, c_te, opened, last = known
    spans = []
    for place, name in enumerate(NAMES):
        values = rows[name].to_numpy(dtype=bool)
        changes = np.flatnonzero(values != np.concatenate([[last[place]], values[:-1]]))
        starts, ends = times[changes[values[changes]]], times[changes[~values[changes]]]
        if last[place]:
            starts = np.concatenate([[opened[place]], starts])
        last[place] = bool(values[-1])
        opened[place] = int(starts[-1]) if last[place] else NEVER
        spans.append((starts, ends))
    (a_starts, a_ends), (b_starts, b_ends), (c_starts, c_ends) = spans
    a_from = np.concatenate([np.array(a_ts, dtype=np.int64), a_starts[: len(a_ends)]])
    a_to = np.concatenate([np.array(a_te, dtype=np.int64), a_ends])
    c_from = np.concatenate([np.array(c_ts, dtype=np.int64), c_starts])
    c_to = np.concatenate([np.array(c_te, dtype=np.int64), c_ends, [1 << 62] * (len(c_starts) - len(c_ends))])
    found = []
    for b_ts, b_te in zip(b_starts, b_ends, strict=False):
        c = np.searchsorted(c_from, b_te) - 1
        if c < 0 or not (b_ts < c_from[c] and b_te < c_to[c]):
            continue
        low, high = np.searchsorted(a_from, b_te - WITHIN), np.searchsorted(a_to, b_ts)
        found += [(*key, a_from[a], a_to[a], b_ts, b_te, c_from[c]) for a in range(low, high)]
    past = times[-1] - WITHIN
    live_a, live_c = a_from >= past, (c_to >= past) & (c_to < 1 << 62)
    kept = (a_from[live_a], a_to[live_a], c_from[live_c], c_to[live_c])
    state.update((json.dumps((*(part.tolist() for part in kept), opened, last)),))
    yield pd.DataFrame(found, columns=COLUMNS)


if __name__ == "__main__":
    sys.exit(main())
