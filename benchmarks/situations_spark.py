"""Situations and patterns on Spark beside what Spark has for them: the same files, from Parquet to committed results.

Q1 is `A before B and B overlaps C within 300 s` over three boolean attributes at 1 Hz, Q2 the aggressive drivers.
Compared are Spark SQL in batch (window functions find gaps and islands, joins by key and span of time) and, for Q1,
Spark's own state functions, a Python function per key with numpy inside. Rates are rows a second; results are compared.

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
from benchmarks.figures import PAIRS, SQL, SQL_KEYS, STATE_KEYS, Figure, compared, declared, print_table
from benchmarks.files import write_files
from benchmarks.situations import events, program, ratios
from benchmarks.situations_batch import DETECTED, FIRST, OPEN, SECOND, SITUATIONS, SPAN, WITHIN
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session

#: Batches of a run, and files of a batch, each with the rows of a span of time.
BATCHES, FILES = 2, 4
NAMES = "abc"
COLUMNS = ["key", "a_ts", "a_te", "b_ts", "b_te", "c_ts"]
CONFIG = {"spark.driver.memory": "6g"}


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--times", type=int, default=PAIRS)
    chosen = options.parse_args()
    spark = spark_session("tidegate-situations", config=CONFIG)
    figures, equal = measure(spark, chosen.times)
    spark.stop()
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


def measure(spark: SparkSession, times: int = PAIRS) -> tuple[list[Figure], bool]:
    """Both sizes of batches, state functions and numbers of keys: all that is compared runs in turn."""
    figures: list[Figure] = []
    equal = True

    def add(figure: Figure) -> None:
        figures.append(figure)
        print(figure.line(), flush=True)

    with tempfile.TemporaryDirectory() as work:
        few = written(Path(work) / "few", "Q1", 40_000, 10)
        for run in (tidegate, sql):
            run(spark, "Q1", few, work)
        states(spark, few, work)
        for query, rows in SQL:
            title, count = f"{query}, Spark, {rows:,} rows a batch", BATCHES * rows
            files = written(Path(work) / f"{query} {rows}", query, count, SQL_KEYS)
            ours, theirs = [], []
            for _ in range(times):
                taken, found = tidegate(spark, query, files, work)
                ours.append(taken)
                taken, wanted = sql(spark, query, files, work)
                theirs.append(taken)
                equal = same(title, found, wanted) and equal
            add(declared(title, count / statistics.median(ours)))
            add(declared(f"{title}: Spark SQL in batch", count / statistics.median(theirs)))
            add(compared(f"{title}: rows/s, Spark / Spark SQL", ratios(theirs, ours)))
        count = BATCHES * max(rows for _, rows in SQL)
        some = {keys: written(Path(work) / f"{keys} keys", "Q1", count, keys) for keys in (100, *STATE_KEYS)}
        own: dict[int, list[float]] = {keys: [] for keys in some}
        functions: dict[int, list[float]] = {keys: [] for keys in STATE_KEYS}
        for _ in range(times):
            for keys, files in some.items():
                taken, found = tidegate(spark, "Q1", files, work)
                own[keys].append(taken)
                if keys in STATE_KEYS:
                    taken, wanted = states(spark, files, work)
                    functions[keys].append(taken)
                    equal = same(f"Q1, {keys:,} keys, Spark's own state functions", found, wanted) and equal
        for keys in STATE_KEYS:
            add(declared(f"Q1, {keys:,} keys, Spark's own state functions", count / statistics.median(functions[keys])))
            add(compared(f"Q1, {keys:,} keys: rows/s, Spark / its state functions", ratios(functions[keys], own[keys])))
        add(compared("Q1, Spark: time, 100,000 keys / 100 keys", ratios(own[100_000], own[100])))
    return figures, equal


def written(folder: Path, query: str, rows: int, keys: int) -> Path:
    """The events as Parquet files of neighbouring spans of time."""
    write_files(folder, events(query, rows, keys), FILES * BATCHES)
    return folder


def tidegate(
    spark: SparkSession, query: str, files: Path, work: str, *, keyed: bool = True
) -> tuple[float, pl.DataFrame]:
    """Seconds of a run, exactly once, and its results."""
    folder = Path(tempfile.mkdtemp(dir=work))
    began = time.perf_counter()
    running = start(
        spark,
        program(query, keyed=keyed).facts,
        sources={"Events": parquet(files, per_batch=FILES, delay=0, bounded=True)},
        sinks={"Found": parquet_sink(folder / "out")},
        checkpoint=folder / "checkpoint",
    )
    running.awaitTermination()
    taken = time.perf_counter() - began
    own = {"key": "key"} if keyed else {}
    return taken, results(folder, own | {f"{name[0].upper()}.{name[2:]}": name for name in COLUMNS[1:]})


def results(folder: Path, names: Mapping[str, str]) -> pl.DataFrame:
    """What was written below a folder, with these names changed; nothing where no file was written."""
    if not any(folder.glob("out/*.parquet")):
        return pl.DataFrame(schema=dict.fromkeys(names.values(), pl.Int64))
    return pl.read_parquet(f"{folder}/out/*.parquet").select(pl.col(old).alias(new) for old, new in names.items())


def sql(spark: SparkSession, query: str, files: Path, work: str) -> tuple[float, pl.DataFrame]:
    """The same in one batch job: changes by a window function, situations from each to the next, joins."""
    folder = Path(tempfile.mkdtemp(dir=work))
    began = time.perf_counter()
    conditions = (F.expr(condition).alias(symbol) for symbol, (condition, _, _) in SITUATIONS[query].items())
    rows = spark.read.parquet(str(files)).select("key", "time", *conditions)
    by_time = Window.partitionBy("key").orderBy("time")
    before = rows.select("*", *(F.lag(symbol).over(by_time).alias(f"{symbol}0") for symbol in SITUATIONS[query]))
    changes = before.select(
        "key", "time", F.explode(F.array_compact(F.array(*map(_as_change, SITUATIONS[query])))).alias("change")
    )
    turns = changes.select("key", "time", "change.symbol", "change.now")
    by_symbol = Window.partitionBy("key", "symbol").orderBy("time")
    te = F.coalesce(F.lead("time").over(by_symbol), F.lit(OPEN))
    spans = turns.select("key", "symbol", "now", F.col("time").alias("ts"), te.alias("te"))
    situations = spans.where("now").persist()
    _matched(query, situations).write.parquet(str(folder / "out"))
    taken = time.perf_counter() - began
    situations.unpersist()
    return taken, results(folder, dict(zip(COLUMNS, COLUMNS, strict=True)))


def _as_change(symbol: str) -> Column:
    change = F.struct(F.lit(symbol).alias("symbol"), F.col(symbol).alias("now"))
    return F.when(F.coalesce(F.col(symbol) != F.col(f"{symbol}0"), F.col(symbol)), change)


def _matched(query: str, situations: DataFrame) -> DataFrame:
    """The B and C that belong together, and the A of each; by key and span of time."""
    a, b, c = (
        situations.where(f"symbol = '{symbol}' and te - ts between {least} and {most}").select(
            "key", F.col("ts").alias(f"{symbol.lower()}_ts"), F.col("te").alias(f"{symbol.lower()}_te")
        )
        for symbol, (_, least, most) in SITUATIONS[query].items()
    )
    b = b.where(f"b_te < {OPEN}")
    pairs = _near(b, f"b_ts div {SPAN} + shift", c, f"c_ts div {SPAN}").where(_named(SECOND[query]))
    pairs = pairs.withColumn("detected", F.expr(_named(DETECTED[query])))
    found = _near(pairs, "b_ts div 512 + shift - 1", a, "a_ts div 512").where(_named(FIRST[query]))
    return found.where(f"detected - least(a_ts, b_ts) <= {WITHIN}").select(*COLUMNS)


def _near(left: DataFrame, one: str, right: DataFrame, other: str) -> DataFrame:
    """Pairs of a key whose spans are the same, or next to each other; a row of the left side stands in both, by its
    `shift`.
    """
    both = left.withColumn("shift", F.explode(F.array(F.lit(0), F.lit(1)))).withColumn("span", F.expr(one))
    return both.drop("shift").join(right.withColumn("span", F.expr(other)), ["key", "span"]).drop("span")


def _named(text: str) -> str:
    """With columns as they are named here."""
    return text.replace(".ts", "_ts").replace(".te", "_te")


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
    """Situations of one key by numpy, and the matches that they complete; state are those of the last WITHIN
    seconds.
    """
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
