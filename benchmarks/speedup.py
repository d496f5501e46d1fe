"""How much faster queries are on two executors of a small cluster than on one, where workers do what they can.

Executors are processes with one core each; the queries are Q1 of `situations`, with and without a key, and three of the
page's. One executor and two are measured in turn, each time in a process of its own, from Parquet to committed results.
A rate is that of a query at work: of the rows of all batches after the first, from its commit to that of the last. Each
query has gone through a dozen small batches before: a JVM that has just started compiles, on the cores that count.
Results are compared. The driver has no core of its own on two.

python benchmarks/speedup.py [--rows 40000000]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl
from pyspark.sql import SparkSession

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import queries
from benchmarks.comparing import same
from benchmarks.figures import EXECUTORS, ON_EXECUTORS, PAIRS, Figure, compared, declared, print_table
from benchmarks.files import write_files
from benchmarks.situations import events, program, ratios
from benchmarks.situations_spark import FILES
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session

ROOT = Path(__file__).resolve().parent.parent
MEMORY, FEW = 2048, 40_000
#: All have as many files, of as many rows. So many small ones come before them.
BATCHES, SMALL_BATCHES = 5, 12


def measure(rows: int, times: int = PAIRS) -> tuple[list[Figure], bool]:
    """Figures of each query, and whether one executor and two found the same."""
    figures: list[Figure] = []
    equal = True
    with tempfile.TemporaryDirectory() as work:
        folder = Path(work)
        for title, keys in ON_EXECUTORS.items():
            (folder / title).mkdir()
            for name, count, batches in (("few", min(rows, FEW), SMALL_BATCHES), ("files", rows, BATCHES)):
                frame = queries.rows(count, 1000) if keys is None else events("Q1", count, keys)
                write_files(folder / title / name, frame, batches * FILES)
        seconds: dict[int, list[dict[str, float]]] = {executors: [] for executors in EXECUTORS}
        for _ in range(times):
            for executors in EXECUTORS:
                command = [sys.executable, __file__, "--one", work, "--executors", str(executors)]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
                seconds[executors].append(json.loads(done.stdout.splitlines()[-1]))
        for title in ON_EXECUTORS:
            found = [pl.read_parquet(folder / title / f"{executors}.parquet") for executors in EXECUTORS]
            taken = [[some[title] for some in seconds[executors]] for executors in EXECUTORS]
            equal = same(f"{title}, {EXECUTORS} executors", found[-1], found[0]) and equal
            figures += [
                declared(f"{title}, executors: {executors}", rows * (BATCHES - 1) / BATCHES / statistics.median(some))
                for executors, some in zip(EXECUTORS, taken, strict=True)
            ]
            figures.append(compared(f"{title}: rows/s, two executors / one", ratios(taken[0], taken[-1])))
            for figure in figures[-3:]:
                print(figure.line(), flush=True)
    return figures, equal


def run_one(work: Path, executors: int) -> None:
    """Prints the seconds of each query's batches after the first, and leaves its results in a file."""
    config = {
        "spark.master": f"local-cluster[{executors},1,{MEMORY}]",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    spark = spark_session("tidegate-speedup", config=config)
    taken: dict[str, float] = {}
    for title in ON_EXECUTORS:
        for name in ("few", "files"):
            taken[title], found = _run(spark, title, work / title / name)
        found.write_parquet(work / title / f"{executors}.parquet")
    spark.stop()
    print(json.dumps(taken))


def _run(spark: SparkSession, title: str, files: Path) -> tuple[float, pl.DataFrame]:
    """Seconds of a run whose workers do what they can, from the first commit to the last, and its results."""
    keys = ON_EXECUTORS[title]
    made = queries.program(title) if keys is None else program("Q1", keyed=keys > 1)
    (name,) = made.facts.streams if keys is None else ("Found",)
    committed: list[float] = []
    with tempfile.TemporaryDirectory() as place:
        running = start(
            spark,
            made.facts,
            sources={"Events": parquet(files, per_batch=FILES, delay="1s" if keys is None else 0, bounded=True)},
            sinks={name: parquet_sink(Path(place) / "out")},
            checkpoint=Path(place) / "checkpoint",
            driver_bytes=0,
            options=RunOptions(on_batch=lambda _: committed.append(time.perf_counter())),
        )
        running.awaitTermination()
        paths = sorted(Path(place).glob("out/*.parquet"))
        return committed[-1] - committed[0], pl.read_parquet(paths) if paths else pl.DataFrame()


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=40_000_000)
    options.add_argument("--times", type=int, default=PAIRS)
    options.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--executors", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        run_one(chosen.one, chosen.executors)
        return 0
    figures, equal = measure(chosen.rows, chosen.times)
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
