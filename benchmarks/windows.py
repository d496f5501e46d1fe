"""Windows that hop, by the number of panes that one has, and frames that move, by that of their rows: the same rows and
increments, CPU seconds of each. And batches of a thousand rows where a million is kept.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import MOVED, MOVED_LITTLE, PAIRS, PANED, PANES, Figure, compared, print_table

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
#: Frames of so many rows, by what is asked of them.
MOVING_LITTLE: Mapping[str, Callable[[int], tg.Relation]] = {
    "least": lambda size: E.over(by="k", order="t", range=size - 1, least=tg.min(E.v)),
    "mean of doubles": lambda size: E.over(by="k", order="t", range=size - 1, mean=tg.avg(E.x)),
    "least by rows": lambda size: E.over(by="k", order="t", rows=(size - 1, 0), least=tg.min(E.v)),
    "mean of doubles by rows": lambda size: E.over(by="k", order="t", rows=(size - 1, 0), mean=tg.avg(E.x)),
    "first in order of time": lambda size: E.over(by="k", order="t", range=size - 1, first=tg.first(E.x, by=E.t)),
    "last by another order": lambda size: E.over(by="k", order="t", range=size - 1, last=tg.last(E.x, by=E.v)),
    "greatest, a tick ahead": lambda size: E.over(by="k", order="t", range=(size - 1, 1), most=tg.max(E.v)),
}
assert tuple(MOVING_LITTLE) == MOVED_LITTLE
#: Rows that are there before, and those of a small batch; how many batches come before those that are measured.
LOADED, SMALL, FIRST = 1_000_000, 1_000, 10


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
            figures.append(
                _figure(f"{kind}, {name}, {keys} keys: time, {max(sizes):,} {part} / 1, worst", sizes, turns)
            )
    sizes = PANES[1]
    for name in MOVING_LITTLE:
        turns = [[run_little(name, size, share) for size in sizes] for _ in range(PAIRS)]
        figures.append(_figure(f"frames in small batches, {name}: time, {max(sizes):,} rows / 1, worst", sizes, turns))
    return figures


def _figure(said: str, sizes: Sequence[int], turns: Sequence[Sequence[float]]) -> Figure:
    """How many times as long the slowest size takes as the first one, by the seconds of each in each turn."""
    figure = compared(said, [max(others) / one for one, *others in turns])
    medians = (statistics.median(taken) for taken in zip(*turns, strict=True))
    seconds = ", ".join(f"{taken:.2f} s with {size:,}" for taken, size in zip(medians, sizes, strict=True))
    figure = replace(figure, detail=f"{seconds}; {figure.detail}")
    print(figure.line(), flush=True)
    return figure


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


def run_little(name: str, size: int, share: float) -> float:
    """CPU seconds for as many small batches as there are large ones, behind rows that were there before."""
    loaded, small = int(share * LOADED), max(1, int(share * SMALL))
    first = loaded + FIRST * small
    events = rows(first + BATCHES * small, 1)
    with tg.program(W=MOVING_LITTLE[name](size)).session() as session:

        def step(some: pl.DataFrame) -> None:
            session.push("E", some)
            session.advance("E", int(some["t"][-1]))
            session.step()

        for part in events.head(loaded).iter_slices(-(-loaded // 4)):
            step(part)
        for part in events[loaded:first].iter_slices(small):
            step(part)
        begun = time.process_time()
        for part in events[first:].iter_slices(small):
            step(part)
        return time.process_time() - begun


if __name__ == "__main__":
    main()
