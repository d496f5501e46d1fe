"""Groups that are nearly as many as rows, on one core: count, sum and maximum per key and window, beside Polars.

Five million rows fall into 1.8 million groups, in one batch. Time is the process's own, which has one core; the first
run of each is not counted, and results are compared.

python benchmarks/groups.py [--rows 5000000]
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

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.comparing import same
from benchmarks.figures import PAIRS, Figure, compared, declared, print_table
from benchmarks.files import write_files
from benchmarks.situations import ratios
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.session import Session

ROWS, ROWS_A_KEY, WINDOW = 5_000_000, 2.5, 10_000_000

readings = tg.stream("Readings", "key bigint, time bigint, value double", progress="time")
counted = readings.group_by(readings.key, end=tg.ceil(readings.time, WINDOW)).agg(
    n=tg.count(), total=tg.sum(readings.value), top=tg.max(readings.value)
)
program = tg.program(Counted=counted)


def rows(count: int) -> pl.DataFrame:
    """Readings in order of time, within one window."""
    random = np.random.default_rng(3)
    keys = random.integers(0, max(1, int(count / ROWS_A_KEY)), count)
    return pl.DataFrame({"key": keys, "time": np.arange(1, count + 1), "value": random.random(count)})


def measure(count: int = ROWS) -> tuple[list[Figure], bool]:
    """The rate and how it stands to that of Polars, and whether results were equal."""
    done = subprocess.run(
        [sys.executable, __file__, "--one", "--rows", str(count)], check=True, stdout=subprocess.PIPE, text=True
    )
    told = json.loads(done.stdout.splitlines()[-1])
    figures = [
        declared("grouping, five rows for two groups, one core", count / statistics.median(told["own"])),
        compared(
            "grouping, five rows for two groups, one core: embedded / Polars", ratios(told["polars"], told["own"])
        ),
    ]
    for figure in figures:
        print(figure.line(), flush=True)
    return figures, told["equal"]


def run_one(count: int) -> None:
    """Prints the seconds of both in turn."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    own, polars, equal = [], [], True
    with tempfile.TemporaryDirectory() as work:
        files = Path(work) / "files"
        write_files(files, rows(count), 1)
        for _ in range(PAIRS + 1):
            began = time.process_time()
            found = embedded(files)
            own.append(time.process_time() - began)
            began = time.process_time()
            wanted = by_polars(files)
            polars.append(time.process_time() - began)
            equal = same("grouping", found, wanted) and equal
    print(json.dumps({"own": own[1:], "polars": polars[1:], "equal": equal}))


def embedded(files: Path) -> pl.DataFrame:
    """The results of one batch over a file."""
    with Session(program.facts, sources={"Readings": parquet(files, delay=0, bounded=True)}) as session:
        session.process()
        return pl.DataFrame(session.table("Counted"))


def by_polars(files: Path) -> pl.DataFrame:
    end = -(-pl.col("time") // WINDOW) * WINDOW
    value = pl.col("value")
    grouped = pl.scan_parquet(f"{files}/*.parquet").group_by("key", end=end)
    return grouped.agg(n=pl.len(), total=value.sum(), top=value.max()).collect()


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=ROWS)
    options.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        run_one(chosen.rows)
        return 0
    figures, equal = measure(chosen.rows)
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
