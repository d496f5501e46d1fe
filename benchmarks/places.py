"""Where Spark evaluates an increment soonest, by the bytes that are relevant: what `DRIVER_BYTES` and `SHARD_BYTES`
rest on.

python benchmarks/places.py [--megabytes 4 16 64 256] [--times 3]

One program, a join by key with a grouping above it (that of `large.py`), has one increment over all its rows: at each
size in the driver, by shards and as DataFrames, in turn. Printed are the median seconds of the increment, and between
which sizes one place overtakes another. The exit status is 1 where a result is wrong.
"""

from __future__ import annotations

import argparse
import math
import statistics
import sys
import tempfile
from collections.abc import Mapping, Sequence
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.large import PAIR_BYTES, SOON, program, write

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: By place, the limits that send every increment there.
PLACES: Mapping[str, Mapping[str, int]] = {
    "driver": {"driver_bytes": 1 << 40},
    "sharded": {"driver_bytes": 0, "shard_bytes": 1 << 40},
    "catalyst": {"driver_bytes": 0, "shard_bytes": 0},
}
Taken = dict[str, float]


def main() -> int:
    """Prints a line per size, then where places cross."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    options.add_argument(
        "--megabytes", type=int, nargs="+", default=[4, 16, 64, 256], help="of relevant segments, about"
    )
    options.add_argument("--times", type=int, default=3)
    options.add_argument("--places", nargs="+", choices=PLACES, default=list(PLACES), metavar="PLACE")
    chosen = options.parse_args()
    from tidegate.runtime.engines.spark.setup.session import spark_session

    spark = spark_session("tidegate-places")
    tasks = spark.sparkContext.defaultParallelism
    print(f"seconds of one increment, median of {chosen.times}; {tasks} tasks at once")
    print(f"  {'relevant':<14}" + "".join(f"{place:>12}" for place in chosen.places), flush=True)
    found: dict[float, Taken] = {}
    equal = True
    try:
        with tempfile.TemporaryDirectory() as folder:
            measure(spark, Path(folder) / "warm", 4, chosen.places, 1)
            for size in sorted(chosen.megabytes):
                read, taken, same = measure(spark, Path(folder) / str(size), size, chosen.places, chosen.times)
                found[read], equal = taken, equal and same
                print(
                    f"  {read:>10,.1f} MiB" + "".join(f"{taken[place]:>12.2f}" for place in chosen.places), flush=True
                )
    finally:
        spark.stop()
    for one, other in combinations(chosen.places, 2):
        print(f"  {other} overtakes {one} {crossing(found, one, other)}")
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


def measure(
    spark: SparkSession, folder: Path, megabytes: int, places: Sequence[str], times: int
) -> tuple[float, Taken, bool]:
    """MiB that the increment reads, median seconds per place, and whether every result was right."""
    folder.mkdir()
    pairs = (megabytes << 20) // PAIR_BYTES
    write(folder, pairs, 2)
    seconds: dict[str, list[float]] = {place: [] for place in places}
    read, equal = 0.0, True
    for number in range(times):
        for place in places:
            size, taken, same = _run(spark, folder, place, pairs, folder / f"{place}{number}")
            seconds[place].append(taken)
            read, equal = size / (1 << 20), equal and same
    return read, {place: statistics.median(taken) for place, taken in seconds.items()}, equal


def _run(spark: SparkSession, folder: Path, place: str, pairs: int, work: Path) -> tuple[int, float, bool]:
    """Bytes, seconds and correctness of the one increment."""
    from tidegate.runtime.connectors.sinks import parquet_sink
    from tidegate.runtime.connectors.sources import parquet
    from tidegate.runtime.engines.spark.engine import start

    query = start(
        spark,
        program(pairs + 4 * SOON).facts,
        sources={name: parquet(folder / name, delay={"t": 2 * SOON}, bounded=True) for name in ("Orders", "Payments")},
        sinks={"Paid": parquet_sink(work / "out")},
        checkpoint=work / "checkpoint",
        **PLACES[place],  # type: ignore[arg-type]  # limits only
    )
    query.awaitTermination()
    report = max(query.reports, key=lambda one: one.read.get("Paid", (0, 0))[1])
    assert report.places["Paid"] == place
    expected = pl.read_parquet(folder / "expected.parquet").sort("customer")
    found = pl.read_parquet(f"{work}/out/*.parquet").select(expected.columns).sort("customer")
    return report.read["Paid"][1], report.seconds["increments"], found.equals(expected.cast({"n": pl.Int64}))


def crossing(found: Mapping[float, Taken], one: str, other: str) -> str:
    """From which size on `other` is sooner than `one`, on a straight line between logarithms of sizes."""
    sizes: Sequence[float] = sorted(found)
    gain = [math.log(found[size][one] / found[size][other]) for size in sizes]
    if gain[-1] <= 0:
        return f"beyond {sizes[-1]:,.0f} MiB"
    last = next((i for i in range(len(sizes) - 1, -1, -1) if gain[i] <= 0), None)
    if last is None:
        return f"before {sizes[0]:,.0f} MiB"
    (low, high), (below, above) = list(pairwise(sizes))[last], list(pairwise(gain))[last]
    share = -below / (above - below)
    return f"at about {math.exp(math.log(low) + share * (math.log(high) - math.log(low))):,.0f} MiB"


if __name__ == "__main__":
    sys.exit(main())
