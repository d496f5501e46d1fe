"""How even the tasks of an increment on Spark are where one key has half of all rows.

An interval join by key, and a pattern of situations by key, run on one core, cut for eight, and their tasks one after
the other. The first batches tell what shards take; then the shard of that key is divided. A core's share is an eighth
of the time of all tasks: a longer task is what the others wait for. What all tasks take together stands beside what
they took in the batches before, as one.

python benchmarks/skew.py [--rows 2000000]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks import queries, situations, situations_data
from benchmarks.figures import Figure, declared, print_table
from benchmarks.files import write_files
from benchmarks.scaling import jobs_named
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.spark.engine import start
from tidegate.runtime.engines.spark.setup.session import spark_session

#: Rows of a batch, its files, and the cores that its tasks are cut for.
ROWS, FILES, CORES = 2_000_000, 8, 8
#: The keys beside the one that has half of all rows, that one of situations, and how long its matches last at most.
KEYS, HOT, WITHIN = 1000, 1_000_000, 30_000
#: How late rows may be: of instants in microseconds, and of those in ticks.
DELAYS: dict[str, str | int] = {"interval join": "1s", "pattern": 1000}
#: Batches of a run; in the last ones the shard is divided by what was measured.
BATCHES, COUNTED = 6, 3
#: The batch of a run in which no shard is divided yet and workers have loaded what they need.
WHOLE = 1


def interval_join() -> tg.Relation:
    """Pairs of events of one key within a fifth of a second."""
    events = queries.events
    a, b = events.where(events.value < 0.2).as_("a"), events.where(events.value > 0.8).as_("b")
    pairs = a.join(b, a.key == b.key, a.time <= b.time, b.time <= a.time + tg.milliseconds(200))
    return pairs.select(key=a.key, first=a.time, second=b.time)


def pattern() -> tg.Relation:
    """A before B and B overlaps C; the events come at one a tick where one key has half of all."""
    switches = situations.switches
    derived = switches.partition_by("key").derive(
        A=tg.situation(switches.a), B=tg.situation(switches.b), C=tg.situation(switches.c)
    )
    return derived.match(derived.A.before(derived.B), derived.B.overlaps(derived.C), within=WITHIN)


def skewed(rows: int) -> pl.DataFrame:
    """Events of which every other one is of the same key."""
    made = queries.rows(rows, KEYS)
    return made.with_columns(pl.when(pl.Series(np.arange(rows) % 2 == 0)).then(1).otherwise("key").alias("key"))


def skewed_switches(rows: int) -> pl.DataFrame:
    """The same of situations: one key has an event a tick, the others together another one."""
    one = situations_data.booleans(rows // 2, 1).with_columns(pl.lit(HOT, pl.Int64).alias("key"))
    others = situations_data.booleans(rows // 2, KEYS, seed=2)
    spread = others.with_columns(pl.col("time") * KEYS + pl.col("key"))
    return pl.concat([one, spread.select(one.columns)]).sort("time", maintain_order=True)


#: By the name of a figure: the stream, what is asked of it, and its rows.
ASKED: dict[str, tuple[str, Callable[[], tg.Relation], Callable[[int], pl.DataFrame]]] = {
    "interval join": ("Events", interval_join, skewed),
    "pattern": ("Events", pattern, skewed_switches),
}


def measure(rows: int = ROWS, asked: Sequence[str] = tuple(ASKED)) -> list[Figure]:
    """The longest task beside a core's share of all."""
    return [_measured(name, rows) for name in asked]


def _measured(name: str, rows: int) -> Figure:
    with tempfile.TemporaryDirectory() as work:
        write_files(Path(work) / "files", ASKED[name][2](BATCHES * rows), BATCHES * FILES)
        command = [sys.executable, __file__, "--one", work, "--asked", name]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    every: list[list[float]] = json.loads(done.stdout.splitlines()[-1])
    tasks, first = every[-COUNTED:], every[WHOLE]
    uneven = [max(some) / (sum(some) / CORES) for some in tasks]
    before = f"before {max(first):.2f} s of {sum(first):.2f} s in {len(first)} tasks; "
    last = f"{max(tasks[-1]):.2f} s of {sum(tasks[-1]):.2f} s in {len(tasks[-1])} tasks"
    return declared(
        f"{name}, half of all rows of one key, Spark: longest task / a core's share",
        statistics.median(uneven),
        f"worst {max(uneven):.2f} of {len(uneven)} batches; {before}{last}",
    )


def run_one(work: Path, name: str) -> list[list[float]]:
    """Seconds of the increment's tasks, in each batch that has any."""
    config = {
        "spark.master": "local[1]",
        "spark.driver.memory": "4g",
        "spark.default.parallelism": str(CORES),
    }
    stream, relation, _ = ASKED[name]
    spark = spark_session("tidegate-skew", config=config)
    query = start(
        spark,
        tg.program(Found=relation()).facts,
        sources={stream: parquet(work / "files", per_batch=FILES, delay=DELAYS[name], bounded=True)},
        sinks={"Found": parquet_sink(work / "out")},
        checkpoint=work / "checkpoint",
        driver_bytes=0,
    )
    query.awaitTermination()
    found = [
        job.tasks
        for report in query.reports
        for job in jobs_named(spark, f"tidegate batch {report.seq}:")
        if job.name == "increment"
    ]
    spark.stop()
    return found


def main() -> int:
    """Prints the figure; the exit status is 0."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--asked", choices=ASKED, nargs="+", default=list(ASKED))
    options.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        print(json.dumps(run_one(chosen.one, *chosen.asked)))
    else:
        print_table(measure(chosen.rows, chosen.asked))
    return 0


if __name__ == "__main__":
    sys.exit(main())
