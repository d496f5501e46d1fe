"""Windows that hop, by the number of panes that one has: the same rows, ends and increments, CPU seconds of each."""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg

#: Panes of a window.
SIZES = (1, 1_000, 1_000_000)
BATCHES = 20

E = tg.stream("E", "k bigint, t bigint, v bigint, x double", progress="t")
AGGREGATES: Mapping[str, Mapping[str, Any]] = {
    "count and sum": {"n": tg.count(), "total": tg.sum(E.v)},
    "least and greatest": {"least": tg.min(E.v), "greatest": tg.max(E.x)},
    "mean of doubles": {"mean": tg.avg(E.x)},
    "last by another order": {"last": tg.last(E.x, by=E.v)},
}


def main() -> None:
    """Prints seconds by aggregates, keys and size."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=400_000)
    options.add_argument("--keys", type=int, nargs="*", default=[1, 100])
    chosen = options.parse_args()
    print(f"{chosen.rows:,} rows, a row of each key in each pane, {BATCHES} increments: CPU seconds, median of three")
    print(f"{'aggregates':24} {'keys':>6} " + " ".join(f"{size:>12,}" for size in SIZES) + "   last / first")
    for name in AGGREGATES:
        for keys in chosen.keys:
            events = rows(chosen.rows, keys)
            taken = [statistics.median(run(events, name, size) for _ in range(3)) for size in SIZES]
            shown = " ".join(f"{seconds:12.2f}" for seconds in taken)
            print(f"{name:24} {keys:6} {shown} {taken[-1] / taken[0]:14.2f}", flush=True)


def rows(count: int, keys: int) -> pl.DataFrame:
    """A row of each key at each tick."""
    rng = np.random.default_rng(1)
    number = np.arange(count)
    return pl.DataFrame(
        {
            "k": number % keys,
            "t": number // keys,
            "v": rng.integers(0, 1000, count),
            "x": rng.random(count),
        }
    )


def run(events: pl.DataFrame, name: str, size: int) -> float:
    """CPU seconds for all rows in increments, up to the last instant; windows that are open then are left so."""
    begun = time.process_time()
    windows = E.windows(tg.hopping(size, every=1), by="k").agg(**AGGREGATES[name])
    with tg.program(W=windows).session() as session:
        step = -(-events.height // BATCHES)
        for first in range(0, events.height, step):
            some = events.slice(first, step)
            session.push("E", some)
            session.advance("E", int(some["t"][-1]))
            session.step()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
