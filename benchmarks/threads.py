"""How much faster a pattern is in process when two threads take in the files of a batch, with and without a key.

The pattern is Q1 of `situations`, in two batches of four files each, from Parquet to committed results. One and two
threads in turn, in this process, which has all cores; elapsed time, and results are compared.

python benchmarks/threads.py [--rows 10000000]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.comparing import same
from benchmarks.figures import PAIRS, THREADS, Figure, compared, declared, print_table
from benchmarks.situations import program, ratios
from benchmarks.situations_spark import BATCHES, FILES, written
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.state.store.local import LocalStore

KEYS = {"1,000 keys": 1000, "no key": 1}


def measure(rows: int, times: int = PAIRS) -> tuple[list[Figure], bool]:
    """Figures with and without a key, and whether both numbers of threads found the same."""
    figures: list[Figure] = []
    equal = True
    with tempfile.TemporaryDirectory() as work:
        for title, keys in KEYS.items():
            folder = Path(work) / str(keys)
            folder.mkdir()
            few = written(folder / "few", "Q1", 40_000, min(keys, 10))
            files = written(folder / "files", "Q1", rows, keys)
            for threads in THREADS:
                run(few, work, threads, keyed=keys > 1)
            taken: dict[int, list[float]] = {threads: [] for threads in THREADS}
            found = {}
            for _ in range(times):
                for threads in THREADS:
                    seconds, found[threads] = run(files, work, threads, keyed=keys > 1)
                    taken[threads].append(seconds)
            one, two = THREADS
            equal = same(f"Q1, {title}, {one} and {two} threads", found[two], found[one]) and equal
            figures += [declared(f"Q1, {title}, threads: {n}", rows / statistics.median(taken[n])) for n in THREADS]
            figures.append(compared(f"Q1, {title}: rows/s, two threads / one", ratios(taken[one], taken[two])))
            for figure in figures[-3:]:
                print(figure.line(), flush=True)
    return figures, equal


def run(files: Path, work: str, threads: int, *, keyed: bool) -> tuple[float, pl.DataFrame]:
    """Seconds of a run, and its results."""
    place = Path(tempfile.mkdtemp(dir=work))
    began = time.perf_counter()
    with Session(
        program("Q1", keyed=keyed).facts,
        store=LocalStore(place / "checkpoint"),
        sources={"Events": parquet(files, per_batch=FILES, delay=0, bounded=True)},
        sinks={"Found": parquet_sink(place / "results")},
        options=RunOptions(threads=threads),
    ) as session:
        session.process()
        taken = time.perf_counter() - began
        return taken, pl.DataFrame(session.table("Found"))


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=BATCHES * 5_000_000)
    options.add_argument("--times", type=int, default=PAIRS)
    chosen = options.parse_args()
    figures, equal = measure(chosen.rows, chosen.times)
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
