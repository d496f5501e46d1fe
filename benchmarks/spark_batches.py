"""Events a second of a pattern on Spark by the size of its batches: from the first commit of a run to the last.

A batch is four files. Q1 and Q2 are those of `situations`; results are compared with one run in process.

python benchmarks/spark_batches.py [--times 3]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.comparing import same
from benchmarks.figures import BATCH_ROWS, PAIRS, SITUATIONS, Figure, declared, print_table
from benchmarks.files import write_files
from benchmarks.situations import events, program
from benchmarks.situations_spark import COLUMNS, CONFIG, FILES, results
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session
from tidegate.runtime.state.store.local import LocalStore

#: Rows of a run at most, batches at least and at most, and keys.
MOST, LEAST_BATCHES, MOST_BATCHES, KEYS = 20_000_000, 5, 40, 100
NAMES = {"key": "key"} | {f"{name[0].upper()}.{name[2:]}": name for name in COLUMNS[1:]}


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--times", type=int, default=PAIRS)
    chosen = options.parse_args()
    spark = spark_session("tidegate-batches", config=CONFIG)
    figures, equal = measure(spark, chosen.times)
    spark.stop()
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


def measure(spark: SparkSession, times: int = PAIRS) -> tuple[list[Figure], bool]:
    """A figure for each query and size, the median of several runs in turn."""
    figures: list[Figure] = []
    equal = True
    with tempfile.TemporaryDirectory() as work:
        for query in SITUATIONS:
            rates: dict[int, list[float]] = {rows: [] for rows in BATCH_ROWS}
            wanted = {}
            for rows in BATCH_ROWS:
                folder, batches = Path(work) / f"{query} {rows}", batches_of(rows)
                write_files(folder, events(query, batches * rows, KEYS), FILES * batches)
                wanted[rows] = in_process(query, folder, work)
            for _ in range(times):
                for rows in BATCH_ROWS:
                    taken, found = on_spark(spark, query, Path(work) / f"{query} {rows}", work)
                    rates[rows].append((batches_of(rows) - 1) * rows / taken)
                    equal = same(f"{query}, {rows:,} rows a batch", found, wanted[rows]) and equal
            for rows, found_rates in rates.items():
                detail = f"least {min(found_rates):,.0f}, greatest {max(found_rates):,.0f} of {len(found_rates)}"
                name = f"{query}, Spark, from commit to commit, {rows:,} rows a batch"
                figures.append(declared(name, statistics.median(found_rates), detail))
                print(figures[-1].line(), flush=True)
    return figures, equal


def batches_of(rows: int) -> int:
    """The batches of a run with so many rows a batch."""
    return min(max(MOST // rows, LEAST_BATCHES), MOST_BATCHES)


def on_spark(spark: SparkSession, query: str, files: Path, work: str) -> tuple[float, pl.DataFrame]:
    """Seconds from the first commit to the last, and the results."""
    folder = Path(tempfile.mkdtemp(dir=work))
    commits: list[float] = []
    running = start(
        spark,
        program(query).facts,
        sources={"Events": parquet(files, per_batch=FILES, delay=0, bounded=True)},
        sinks={"Found": parquet_sink(folder / "out")},
        checkpoint=folder / "checkpoint",
        options=RunOptions(on_batch=lambda _: commits.append(time.perf_counter())),
    )
    running.awaitTermination()
    return commits[-1] - commits[0], results(folder, NAMES)


def in_process(query: str, files: Path, work: str) -> pl.DataFrame:
    """The results of one batch in this process."""
    folder = Path(tempfile.mkdtemp(dir=work))
    sources = {"Events": parquet(files, delay=0, bounded=True)}
    sinks = {"Found": parquet_sink(folder / "out")}
    with Session(program(query).facts, LocalStore(folder / "checkpoint"), sources, sinks=sinks) as session:
        session.process()
    return results(folder, NAMES)


if __name__ == "__main__":
    sys.exit(main())
