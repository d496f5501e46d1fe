"""`make bench`: every figure that the docs quote, beside its target, in one run on generated data; results are compared.

All figures of one run belong together: on a noisy machine read ratios, not absolute times. A missed target is printed;
the exit status is 1 only where results differ. `--resume FILE` keeps each section's figures, and goes on after the last
one that is there; `--write PAGE` puts the table into a page of the docs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import embedded, flat, floors, held, on_spark, queries, situations, situations_spark, speedup, threads
from benchmarks.data import Data
from benchmarks.figures import DECLARED, Figure, declared, machine, print_table, write_table
from benchmarks.state import freed_state
from tidegate.analysis.pipeline import analyse

Measured = tuple[list[Figure], bool]


def main() -> int:
    """Measures, and prints one table at the end; the exit status says whether results were equal."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--keys", type=int, default=1000)
    options.add_argument("--batches", type=int, default=100)
    options.add_argument(
        "--spark-batches", type=int, default=300, help="of the long run on Spark whose cost is to be flat"
    )
    options.add_argument("--no-spark", action="store_true")
    options.add_argument("--only", nargs="+", choices=SECTIONS, metavar="SECTION", help=f"of {', '.join(SECTIONS)}")
    options.add_argument("--resume", type=Path, metavar="FILE")
    options.add_argument("--write", type=Path, metavar="PAGE", help="which must have the table's markers")
    chosen = options.parse_args()
    size = {name: getattr(chosen, name) for name in ("rows", "keys", "batches", "spark_batches")}
    done = _load(chosen.resume, size)
    wanted = [name for name in chosen.only or SECTIONS if not (chosen.no_spark and name.startswith("spark"))]
    with tempfile.TemporaryDirectory() as folder, Data(Path(folder), **size) as data:
        print(f"{chosen.rows:,} rows, {chosen.keys:,} keys, in {chosen.batches} files", flush=True)
        for name in wanted:
            if name not in done:
                done[name] = SECTIONS[name](data)
                _save(chosen.resume, size, done)
    figures = [figure for made, _ in done.values() for figure in made]
    equal = all(same for _, same in done.values())
    figures.sort(key=lambda figure: list(DECLARED).index(figure.name))
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    if chosen.write is not None and equal:
        write_table(chosen.write, figures, f"{chosen.rows:,} rows on {machine()}. All results were equal.")
    return 0 if equal else 1


def analysis_times(_: Data) -> Measured:
    six = 1000 * median(partial(analyse, queries.typical().definition))
    chain = 1000 * median(partial(analyse, queries.chain(30).definition))
    figures = [
        declared("analysis of a query over six streams", six),
        declared("analysis of a chain of 30 streams", chain),
    ]
    return figures, True


def median(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of a call, median of several."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


#: What is measured, in this order: the floor of the embedded engine before a JVM runs beside it.
SECTIONS: dict[str, Callable[[Data], Measured]] = {
    "analysis": analysis_times,
    "embedded": lambda data: embedded.measure(data.files, data.few, data.rows),
    "memory": lambda data: held.measure(data, "embedded"),
    "floor": lambda _: ([floors.embedded(), floors.one_pattern()], True),
    "flat": lambda _: (flat.measure(), True),
    "flat-checkpoint": lambda data: (flat.checkpointed(data.folder / "checkpoints"), True),
    "state": lambda data: freed_state(min(data.rows, 200_000), data.batches),
    "situations": lambda data: situations.measure(data.rows),
    "threads": lambda data: threads.measure(data.rows),
    "spark": lambda data: on_spark.measure(data.spark, data.large, data.files, data.few, data.rows),
    "spark-flat": lambda data: (flat.on_spark(data.spark, data.folder / "streaming", data.spark_batches), True),
    "spark-floor": lambda data: ([floors.on_spark(data.spark), floors.one_pattern_on_spark(data.spark)], True),
    "spark-situations": lambda data: situations_spark.measure(data.spark),
    "spark-executors": lambda data: speedup.measure(data.rows),
    "spark-memory": lambda data: held.measure(data, "Spark"),
}


def _load(file: Path | None, size: dict[str, int]) -> dict[str, Measured]:
    """What an earlier run of the same size has measured."""
    if file is None or not file.exists():
        return {}
    saved: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    if saved["size"] != size:
        raise SystemExit(f"{file} is of another run: {saved['size']}")
    return {name: ([declared(*one) for one in made], same) for name, (made, same) in saved["sections"].items()}


def _save(file: Path | None, size: dict[str, int], done: dict[str, Measured]) -> None:
    if file is not None:
        sections = {
            name: ([(one.name, one.value, one.detail) for one in made], same) for name, (made, same) in done.items()
        }
        file.write_text(json.dumps({"size": size, "sections": sections}, indent=1), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
