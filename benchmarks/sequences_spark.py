"""Events a second of a row pattern on Spark: from the first commit of a run to the last, a million rows a batch.

The pattern is the one of three steps, and a batch is four files. Results are compared with one run in process.

python benchmarks/sequences_spark.py [--times 3]
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

import tidegate as tg
from benchmarks.comparing import same
from benchmarks.figures import PAIRS, SEQUENCE_ON_SPARK, Figure, declared, print_table
from benchmarks.files import write_files
from benchmarks.sequences import SHAPES, events_of
from benchmarks.situations_spark import CONFIG, FILES
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session

SHAPE, ROWS, BATCHES = SHAPES["three steps"], 1_000_000, 10


def main() -> int:
    """Prints the figure; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--times", type=int, default=PAIRS)
    chosen = options.parse_args()
    spark = spark_session("tidegate-sequences", config=CONFIG)
    figures, equal = measure(spark, chosen.times)
    spark.stop()
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


def measure(
    spark: SparkSession, times: int = PAIRS, *, rows: int = ROWS, batches: int = BATCHES
) -> tuple[list[Figure], bool]:
    """The median of several runs, and whether all have the results of the embedded engine."""
    with tempfile.TemporaryDirectory() as work:
        events, files = events_of(batches * rows, SHAPE), Path(work) / "events"
        write_files(files, events, FILES * batches)
        with program().session() as session:
            session.push("S", events)
            session.finish()
            session.step()
            wanted = pl.DataFrame(session.results("Found"))
        rates, equal = list[float](), True
        for _ in range(times):
            taken, found = on_spark(spark, files, work)
            rates.append((batches - 1) * rows / taken)
            equal = same("three steps on Spark", found, wanted) and equal
        detail = f"least {min(rates):,.0f}, greatest {max(rates):,.0f} of {len(rates)}"
        figures = [declared(SEQUENCE_ON_SPARK, statistics.median(rates), detail)]
        print(figures[0].line(), flush=True)
    return figures, equal


def program() -> tg.Program:
    return tg.program(Found=SHAPE.matches())


def on_spark(spark: SparkSession, files: Path, work: str) -> tuple[float, pl.DataFrame]:
    """Seconds from the first commit to the last, and the results."""
    folder = Path(tempfile.mkdtemp(dir=work))
    commits: list[float] = []
    running = start(
        spark,
        program().facts,
        sources={"S": parquet(files, per_batch=FILES, delay=0, bounded=True)},
        sinks={"Found": parquet_sink(folder / "out")},
        checkpoint=folder / "checkpoint",
        options=RunOptions(on_batch=lambda _: commits.append(time.perf_counter())),
    )
    running.awaitTermination()
    return commits[-1] - commits[0], pl.read_parquet(folder / "out" / "*.parquet")


if __name__ == "__main__":
    sys.exit(main())
