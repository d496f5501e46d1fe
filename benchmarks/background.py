"""A session in the background: events that threads push, and the memory of one whose consumer is too slow.

python benchmarks/background.py
"""

from __future__ import annotations

import statistics
import sys
import time
from dataclasses import replace
from pathlib import Path
from threading import Thread
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import PAIRS, Figure, compared, declared, print_table
from benchmarks.memory import Peak
from tidegate.runtime.connectors.sources import source

#: Rows of a push; pushes of each producer, and of one whose consumer is too slow.
ROWS, PUSHES, SLOW_PUSHES = 1000, 1000, (500, 2000)
#: A consumer that sleeps so long takes a tenth of what the batches could give it.
SLOW_SECONDS, QUEUE = 0.1, 20_000
US = 1_000_000
events = tg.stream("Events", "key bigint, time timestamp, amount bigint", progress="time")
program = tg.program(
    PerTenth=events.group_by(key=events.key, end=tg.tumbling(events.time, "100ms")).agg(total=tg.sum(events.amount))
)


def main() -> int:
    """Prints the figures; the exit status is 0."""
    print_table(measure())
    return 0


def measure() -> list[Figure]:
    """Events a second of two producers, and memory beside a consumer that is too slow."""
    _seconds(1, 5, 0.0, QUEUE)  # what is loaded once
    rates = [2 * PUSHES * ROWS / _seconds(2, PUSHES, 0.0, 200_000) for _ in range(PAIRS)]
    memory, detail = [], []
    for _ in range(PAIRS):
        less, more = (_peak(pushes) for pushes in SLOW_PUSHES)
        memory.append(more / less)
        detail.append(f"{less >> 20} and {more >> 20} MiB")
    few, many = (pushes * ROWS for pushes in SLOW_PUSHES)
    pairs = compared(f"a consumer ten times too slow: peak memory, {many:,} rows / {few:,}", memory)
    figures = [
        declared("in the background, two threads that push", statistics.median(rates), _rates(rates)),
        replace(pairs, detail=f"{pairs.detail}; {'; '.join(detail)}"),
    ]
    for figure in figures:
        print(figure.line(), flush=True)
    return figures


def _rates(rates: list[float]) -> str:
    return ", ".join(f"{rate:,.0f}" for rate in rates)


def _peak(pushes: int) -> int:
    with Peak() as peak:
        _seconds(1, pushes, SLOW_SECONDS, QUEUE)
    return max(peak.more, 1 << 20)


def _seconds(producers: int, pushes: int, pause: float, queue_rows: int) -> float:
    """How long it takes until all is committed. The consumer pauses after each batch."""

    def take(table: Any, batch: int) -> None:
        time.sleep(pause)

    sources = {"Events": source(None, delay="10s" if producers > 1 else "0s")}
    with program.session(sources, sinks={"PerTenth": tg.callback(take)}) as session:
        begin = time.perf_counter()
        with session.background(queue_rows=queue_rows, batch_rows=queue_rows) as run:
            threads = [Thread(target=_push, args=(run, number, pushes)) for number in range(producers)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            run.finish()
        taken = time.perf_counter() - begin
        assert session.counts["Events"].accepted == producers * pushes * ROWS
    return taken


def _push(run: tg.BackgroundSession, number: int, pushes: int) -> None:
    rng = np.random.default_rng(number)
    keys, amounts = rng.integers(0, 100, ROWS), rng.integers(0, 100, ROWS)
    for push in range(pushes):  # ten milliseconds of events each, so that no producer is late beside the other
        times = pl.Series(1_700_000_000 * US + (push * ROWS + np.arange(ROWS)) * 10).cast(pl.Datetime("us", "UTC"))
        run.push("Events", pl.DataFrame({"key": keys, "time": times, "amount": amounts}))


if __name__ == "__main__":
    sys.exit(main())
