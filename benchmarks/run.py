"""`make bench`: analysis times, and rows per second of both engines beside batch Polars and native Structured Streaming.

All figures of one run belong together: on a noisy machine read ratios, not absolute times. Results are compared first.
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import queries
from benchmarks.state import freed_state
from tidegate.analysis.pipeline import analyse
from tidegate.runtime.embedded.session import Session
from tidegate.runtime.sources import parquet

PROGRAMS = {
    "tumbling": queries.tumbling,
    "interval join": queries.interval_join,
    "silence": queries.silence,
    "frames": queries.frames,
}


def main() -> int:
    """Measures what is asked for and prints one line per figure; the exit status says whether results were equal."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=2_000_000)
    options.add_argument("--keys", type=int, default=1000)
    options.add_argument("--batches", type=int, default=100)
    options.add_argument("--no-spark", action="store_true")
    chosen = options.parse_args()
    analysis_times()
    equal = embedded(chosen.rows, chosen.keys, chosen.batches)
    equal = freed_state(min(chosen.rows, 200_000), chosen.batches) and equal
    if not chosen.no_spark:
        from benchmarks.on_spark import compare

        equal = compare(chosen.rows, chosen.keys) and equal
    print(f"peak memory of this process: {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:.0f} MiB")
    return 0 if equal else 1


def analysis_times() -> None:
    print("analysis, median of 5 (targets: 50 ms and 1 s)")
    for name, program in (("six streams", queries.typical()), ("chain of 30 streams", queries.chain(30))):
        print(f"  {name:<22}{1000 * median(partial(analyse, program.definition)):>9.1f} ms")


def median(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of a call, median of several."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def embedded(count: int, keys: int, batches: int) -> bool:
    """The embedded engine over Parquet files in many batches, beside Polars over all rows at once."""
    print(f"embedded, {count:,} rows from Parquet, {keys:,} keys, {batches} batches; batch Polars over the same files")
    print(
        f"  {'query':<16}{'rows/s':>12}{'Polars':>14}{'time / (2 Polars + 10 ms a batch)':>36}{'ms a batch, late/early':>26}"
    )
    equal = True
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder), queries.rows(count, keys), batches)
        for name, make in PROGRAMS.items():
            start = time.perf_counter()
            with Session(
                make().facts, sources={"Events": parquet(folder, per_batch=1, delay="1s", bounded=True)}
            ) as session:
                seconds = [sum(report.seconds.values()) for report in session.process()]
                taken = time.perf_counter() - start
                (result,) = (q.stream for q in session.plan.queries)
                found = pl.DataFrame(session.table(result))
            start = time.perf_counter()
            expected = queries.batch_polars(name, pl.read_parquet(f"{folder}/*.parquet"))
            batch = time.perf_counter() - start
            equal = same(name, found, expected) and equal
            tenth = max(1, len(seconds) // 10)
            early, late = statistics.median(seconds[tenth : 3 * tenth]), statistics.median(seconds[-2 * tenth : -1])
            print(
                f"  {name:<16}{count / taken:>12,.0f}{count / batch:>14,.0f}{taken / (2 * batch + 0.01 * batches):>36.2f}"
                f"{1000 * late:>18.1f} / {1000 * early:.1f}"
            )
    return equal


def write_files(folder: Path, frame: pl.DataFrame, parts: int) -> None:
    size = -(-frame.height // parts)
    for number in range(parts):
        frame.slice(number * size, size).write_parquet(folder / f"{number:05d}.parquet")


def same(name: str, found: pl.DataFrame, expected: pl.DataFrame) -> bool:
    """Whether two results are equal as bags, doubles up to rounding."""
    expected = expected.select(found.columns)
    order = [column for column in found.columns if found.schema[column] != pl.Float64]
    one = found.sort(order)
    other = expected.with_columns(pl.col(c).cast(found.schema[c]) for c in found.columns).sort(order)
    equal = one.height == other.height and all(_same_column(one[c], other[c]) for c in found.columns)
    if not equal:
        print(f"  {name}: RESULTS DIFFER ({one.height} rows against {other.height})")
    return equal


def _same_column(one: pl.Series, other: pl.Series) -> bool:
    if one.dtype != pl.Float64:
        return one.equals(other)
    return bool(np.allclose(one.to_numpy(), other.to_numpy(), rtol=1e-9, atol=1e-9))


if __name__ == "__main__":
    sys.exit(main())
