"""`make bench`: every figure that the docs quote, beside its target, in one run on generated data; results are compared.

All figures of one run belong together: on a noisy machine read ratios, not absolute times. A missed target is printed;
the exit status is 1 only where results differ.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import embedded, flat, floors, queries
from benchmarks.figures import Figure, print_table
from benchmarks.files import write_files
from benchmarks.state import freed_state
from tidegate.analysis.pipeline import analyse


def main() -> int:
    """Measures, and prints one table at the end; the exit status says whether results were equal."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--keys", type=int, default=1000)
    options.add_argument("--batches", type=int, default=100)
    options.add_argument("--no-spark", action="store_true")
    chosen = options.parse_args()
    figures = analysis_times()
    with tempfile.TemporaryDirectory() as folder:
        files, few = Path(folder) / "files", Path(folder) / "few"
        rows = queries.rows(chosen.rows, chosen.keys)
        write_files(files, rows, chosen.batches)
        write_files(few, rows.head(min(chosen.rows // 10, 200_000)), 8)
        print(f"{chosen.rows:,} rows, {chosen.keys:,} keys, in {chosen.batches} files", flush=True)
        made, equal = embedded.measure(files, few, chosen.rows)
        figures += made + embedded.memory(files, few) + [floors.embedded()] + flat.measure()
        if not chosen.no_spark:
            made, same = on_spark(Path(folder), files, few, chosen.rows, chosen.keys)
            figures, equal = figures + made, equal and same
    made, same = freed_state(min(chosen.rows, 200_000), chosen.batches)
    figures, equal = figures + made, equal and same
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


def on_spark(folder: Path, files: Path, few: Path, count: int, keys: int) -> tuple[list[Figure], bool]:
    """Figures of the Spark engine, in a session on all cores."""
    from benchmarks import on_spark as compared
    from tidegate.runtime.spark.session import spark_session

    write_files(folder / "large", queries.rows(count, keys), compared.FILES)
    spark = spark_session("tidegate-bench", config=compared.CONFIG)
    try:
        figures, equal = compared.measure(spark, folder / "large", files, few, count)
        return [*figures, floors.on_spark(spark)], equal
    finally:
        spark.stop()


def analysis_times() -> list[Figure]:
    six = 1000 * median(partial(analyse, queries.typical().definition))
    chain = 1000 * median(partial(analyse, queries.chain(30).definition))
    return [
        Figure("analysis of a query over six streams", six, "ms", most=50),
        Figure("analysis of a chain of 30 streams", chain, "ms", most=1000),
    ]


def median(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of a call, median of several."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


if __name__ == "__main__":
    sys.exit(main())
