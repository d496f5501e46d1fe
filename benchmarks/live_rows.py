"""What a batch of fifty rows costs beside a thousand live rows, and beside a million: joins by key within a day.

With a thousand keys and a million rows a payment meets a thousand orders. A semi- or anti-join needs one of them. An
interval join yields them all, which is work by its results and not by live rows; so with few keys it is measured where
a payment meets the orders of 43 seconds, of a million live ones about one.

python benchmarks/live_rows.py [--most 1000000]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import LIVE_ROWS, LOOK_UPS, PAIRS, Figure, compared, print_table
from tidegate.runtime.connectors.sources import source
from tidegate.runtime.engines.embedded.session import Session

#: Rows of each side in a batch, the batches that count, and those before them.
ROWS, BATCHES, WARM = 50, 40, 10
US = 1_000_000
BEGIN, DAY = 1_700_000_000 * US, 86_400 * US
placed = tg.stream("Placed", "key bigint, time timestamp, amount bigint", progress="time").as_("placed")
paid = tg.stream("Paid", "key bigint, time timestamp, amount bigint", progress="time").as_("paid")
SOURCES = {"Placed": source(None, delay="1s"), "Paid": source(None, delay="1s")}


def program(kind: str) -> tg.Program:
    """Payments with an order of their key within the day before, in the join of that kind; in a narrow join with one
    that is half a day old, less up to 43 seconds.
    """
    least, most = tg.seconds(0), tg.days(1)
    if kind == "narrow join":
        least, most = tg.seconds(12 * 3_600 - 43), tg.hours(12)
    near = placed.key == paid.key, placed.time + least <= paid.time, paid.time <= placed.time + most
    joins = {"anti-join": paid.anti_join, "semi-join": paid.semi_join}
    return tg.program(Found=joins.get(kind, paid.join)(placed, *near))


def main() -> int:
    """Prints the ratios; the exit status is 0."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--most", type=int, default=LIVE_ROWS[-1])
    print_table(measure((LIVE_ROWS[0], options.parse_args().most)))
    return 0


def measure(sizes: tuple[int, int] = LIVE_ROWS) -> list[Figure]:
    """CPU of a batch beside many live rows, by that beside few, in turn."""
    few, many = sizes
    figures = []
    for shape in LOOK_UPS:
        kind, _, keys = shape.partition(", ")
        among = many if keys == "a row a key" else few
        pairs = [(cpu_of_a_batch(kind, many, among), cpu_of_a_batch(kind, few, few)) for _ in range(PAIRS)]
        name = f"{shape}: CPU a batch, {LIVE_ROWS[-1]:,} live rows / {LIVE_ROWS[0]:,}"
        ratios = [one / other for one, other in pairs]
        figures.append(compared(name, ratios))
        print(figures[-1].line(), *(f"{1000 * one:.1f} / {1000 * other:.1f} ms" for one, other in pairs), flush=True)
    return figures


def cpu_of_a_batch(kind: str, live: int, keys: int) -> float:
    """Seconds of the process's own time, the mean of many batches, beside so many live orders of so many keys.

    The mean has the batches in it that merge segments and make indexes.
    """
    rng = np.random.default_rng(live)
    with Session(program(kind).facts, sources=SOURCES) as session:
        for some in np.array_split(np.arange(live), 10):
            times = BEGIN + some * (DAY // 2 // live)
            session.push("Placed", _rows(rng, times, keys))
            session.push("Paid", _rows(rng, times[-1:], keys))
            session.step()
        taken = []
        for number in range(WARM + BATCHES):
            times = BEGIN + DAY // 2 + number * US // 2 + np.arange(ROWS)
            session.push("Placed", _rows(rng, times, keys))
            session.push("Paid", _rows(rng, times, keys))
            before = time.process_time()
            session.step()
            taken.append(time.process_time() - before)
    return statistics.mean(taken[WARM:])


def _rows(rng: np.random.Generator, times: np.ndarray, keys: int) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "key": rng.integers(0, keys, len(times)),
            "time": pl.Series(times).cast(pl.Datetime("us", "UTC")),
            "amount": rng.integers(0, 100, len(times)),
        }
    )


if __name__ == "__main__":
    sys.exit(main())
