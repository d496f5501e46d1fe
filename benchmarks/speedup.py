"""How much faster a pattern is on two executors of a small cluster than on one, with and without a key.

Executors are processes with one core each; the pattern is Q1 of `situations`. One executor and two are measured in
turn, each time in a process of its own, the second run there, from Parquet to committed results; results are compared.

python benchmarks/speedup.py [--rows 10000000]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.comparing import same
from benchmarks.figures import EXECUTORS, PAIRS, Figure, compared, declared, print_table
from benchmarks.situations import ratios
from benchmarks.situations_spark import tidegate, written
from tidegate.runtime.engines.spark.setup.session import spark_session

ROOT = Path(__file__).resolve().parent.parent
KEYS = {"1,000 keys": 1000, "no key": 1}
MEMORY = 2048


def measure(rows: int, times: int = PAIRS) -> tuple[list[Figure], bool]:
    """Figures with and without a key, and whether one executor and two found the same."""
    figures: list[Figure] = []
    equal = True
    with tempfile.TemporaryDirectory() as work:
        for title, keys in KEYS.items():
            folder = Path(work) / str(keys)
            folder.mkdir()
            written(folder / "files", "Q1", rows, keys)
            written(folder / "few", "Q1", 40_000, min(keys, 10))
            seconds: dict[int, list[float]] = {executors: [] for executors in EXECUTORS}
            found = {}
            for _ in range(times):
                for executors in EXECUTORS:
                    command = [sys.executable, __file__, "--one", str(folder), "--executors", str(executors)]
                    done = subprocess.run(
                        [*command, "--keys", str(keys)], check=True, stdout=subprocess.PIPE, text=True
                    )
                    seconds[executors].append(json.loads(done.stdout.splitlines()[-1]))
                    found[executors] = pl.read_parquet(folder / f"{executors}.parquet")
            one, two = EXECUTORS
            equal = same(f"Q1, {title}, {one} and {two} executors", found[two], found[one]) and equal
            figures += [
                declared(f"Q1, {title}, executors: {n}", rows / statistics.median(seconds[n])) for n in EXECUTORS
            ]
            figures.append(compared(f"Q1, {title}: rows/s, two executors / one", ratios(seconds[one], seconds[two])))
            for figure in figures[-3:]:
                print(figure.line(), flush=True)
    return figures, equal


def run_one(folder: Path, executors: int, keys: int) -> None:
    """Prints the seconds of the second of two runs on so many executors, and leaves the results in a file."""
    config = {
        "spark.master": f"local-cluster[{executors},1,{MEMORY}]",
        "spark.executorEnv.PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    spark = spark_session("tidegate-speedup", config=config)
    with tempfile.TemporaryDirectory() as work:
        tidegate(spark, "Q1", folder / "few", work, keyed=keys > 1)
        tidegate(spark, "Q1", folder / "files", work, keyed=keys > 1)
        seconds, found = tidegate(spark, "Q1", folder / "files", work, keyed=keys > 1)
    found.write_parquet(folder / f"{executors}.parquet")
    spark.stop()
    print(json.dumps(seconds))


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--times", type=int, default=PAIRS)
    options.add_argument("--one", type=Path, help=argparse.SUPPRESS)
    options.add_argument("--executors", type=int, help=argparse.SUPPRESS)
    options.add_argument("--keys", type=int, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        run_one(chosen.one, chosen.executors, chosen.keys)
        return 0
    figures, equal = measure(chosen.rows, chosen.times)
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
