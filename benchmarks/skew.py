"""How even the tasks of an increment on Spark are where one key has half of all rows.

An interval join by key runs on one core, cut for eight, and its tasks one after the other. The first batches tell what
shards take; then the shard of that key is divided. A core's share is an eighth of the time of all tasks: a longer task
is what the others wait for.

python benchmarks/skew.py [--rows 2000000]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks import queries
from benchmarks.figures import Figure, declared, print_table
from benchmarks.files import write_files
from benchmarks.scaling import jobs_named
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session

#: Rows of a batch, its files, and the cores that its tasks are cut for.
ROWS, FILES, CORES = 2_000_000, 8, 8
#: Batches of a run; in the last ones the shard is divided by what was measured.
BATCHES, COUNTED = 6, 3


def program() -> tg.Program:
    """Pairs of events of one key within a fifth of a second."""
    events = queries.events
    a, b = events.where(events.value < 0.2).as_("a"), events.where(events.value > 0.8).as_("b")
    pairs = a.join(b, a.key == b.key, a.time <= b.time, b.time <= a.time + tg.milliseconds(200))
    return tg.program(Pairs=pairs.select(key=a.key, first=a.time, second=b.time))


def skewed(rows: int) -> pl.DataFrame:
    """Events of which every other one is of the same key."""
    made = queries.rows(rows, 1000)
    return made.with_columns(pl.when(pl.Series(np.arange(rows) % 2 == 0)).then(1).otherwise("key").alias("key"))


def measure(rows: int = ROWS) -> list[Figure]:
    """The longest task beside a core's share of all."""
    with tempfile.TemporaryDirectory() as work:
        write_files(Path(work) / "files", skewed(BATCHES * rows), BATCHES * FILES)
        done = subprocess.run([sys.executable, __file__, "--one", work], check=True, stdout=subprocess.PIPE, text=True)
    tasks: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    uneven = [max(some) / (sum(some) / CORES) for some in tasks]
    detail = f"worst {max(uneven):.2f} of {len(uneven)} batches; {max(tasks[-1]):.2f} s of {sum(tasks[-1]):.2f} s"
    name = "interval join, half of all rows of one key, Spark: longest task / a core's share"
    return [declared(name, statistics.median(uneven), detail)]


def run_one(work: Path) -> list[list[float]]:
    """Seconds of the increment's tasks, in each of the last batches."""
    config = {
        "spark.master": "local[1]",
        "spark.driver.memory": "4g",
        "spark.default.parallelism": str(CORES),
    }
    spark = spark_session("tidegate-skew", config=config)
    query = start(
        spark,
        program().facts,
        sources={"Events": parquet(work / "files", per_batch=FILES, delay="1s", bounded=True)},
        sinks={"Pairs": parquet_sink(work / "out")},
        checkpoint=work / "checkpoint",
        driver_bytes=0,
    )
    query.awaitTermination()
    found = [
        job.tasks
        for report in query.reports[-COUNTED:]
        for job in jobs_named(spark, f"tidegate batch {report.seq}:")
        if job.name == "increment"
    ]
    spark.stop()
    return found


def main() -> int:
    """Prints the figure; the exit status is 0."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        print(json.dumps(run_one(chosen.one)))
    else:
        print_table(measure(chosen.rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
