"""Windows that hop, by the number of panes that one has, and frames that move, by that of their rows: the same rows and
increments, CPU seconds of each.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import MOVED, PAIRS, PANED, PANES, Figure, compared, print_table

BATCHES = 20
#: Rows by the number of keys: so many that windows of each size move on.
ROWS: Mapping[int, int] = {1: 3_000_000, 100: 400_000}
assert all(ROWS[keys] >= 3 * keys * max(sizes) for keys, sizes in PANES.items())

E = tg.stream("E", "k bigint, t bigint, v bigint, x double", progress="t")
AGGREGATES: Mapping[str, Mapping[str, Any]] = {
    "count and sum": {"n": tg.count(), "total": tg.sum(E.v)},
    "least and greatest": {"least": tg.min(E.v), "greatest": tg.max(E.x)},
    "mean of doubles": {"mean": tg.avg(E.x)},
    "last by another order": {"last": tg.last(E.x, by=E.v)},
}
assert tuple(AGGREGATES) == PANED
MOVING: Mapping[str, Mapping[str, Any]] = {
    "least": {"least": tg.min(E.v)},
    "mean of doubles": {"mean": tg.avg(E.x)},
}
assert tuple(MOVING) == MOVED


def main() -> None:
    """Prints the figures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--share", type=float, default=1.0, help="a share of the rows, to try it")
    print_table(measure(options.parse_args().share))


def measure(share: float = 1.0) -> list[Figure]:
    """By aggregates and keys, how many times as long the slowest size takes as windows of one pane, or frames of one
    row; sizes in turn.
    """
    figures = []
    for kind, name in [*(("windows", name) for name in AGGREGATES), *(("frames", name) for name in MOVING)]:
        for keys, sizes in PANES.items():
            events = rows(int(share * ROWS[keys]), keys)
            run(events.head(events.height // 10), kind, name, sizes[-1])
            turns = [[run(events, kind, name, size) for size in sizes] for _ in range(PAIRS)]
            part = "panes" if kind == "windows" else "rows"
            said = f"{kind}, {name}, {keys} keys: time, {max(sizes):,} {part} / 1, worst"
            figure = compared(said, [max(others) / one for one, *others in turns])
            medians = (statistics.median(taken) for taken in zip(*turns, strict=True))
            seconds = ", ".join(f"{taken:.2f} s with {size:,}" for taken, size in zip(medians, sizes, strict=True))
            figures.append(replace(figure, detail=f"{seconds}; {figure.detail}"))
            print(figures[-1].line(), flush=True)
    return figures


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


def run(events: pl.DataFrame, kind: str, name: str, size: int) -> float:
    """CPU seconds for all rows in increments, up to the last instant; windows that are open then are left so. A frame
    has as many rows as its size says.
    """
    begun = time.process_time()
    if kind == "windows":
        asked = E.windows(tg.hopping(size, every=1), by="k").agg(**AGGREGATES[name])
    else:
        asked = E.over(by="k", order="t", range=size - 1, **MOVING[name])
    with tg.program(W=asked).session() as session:
        step = -(-events.height // BATCHES)
        for first in range(0, events.height, step):
            some = events.slice(first, step)
            session.push("E", some)
            session.advance("E", int(some["t"][-1]))
            session.step()
    return time.process_time() - begun


if __name__ == "__main__":
    main()
