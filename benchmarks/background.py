"""A session in the background: events that threads push, and the memory of one whose consumer is too slow.

python benchmarks/background.py
python benchmarks/background.py PUSHES

With a number, it prints by how many bytes a process grows while so many pushes come whose consumer is too slow: its
greatest resident memory, as the system has it, less what it held after such a session of few pushes. What a process
grows by beside more pushes is divided by the bytes of the further rows: 1 if all were kept, 0 if memory does not depend
on how many there are.
"""

from __future__ import annotations

import statistics
import subprocess
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
from benchmarks.memory import gained, resident
from tidegate.runtime.connectors.sources import source

#: Rows of a push; pushes of each producer, and of one whose consumer is too slow.
ROWS, PUSHES, SLOW_PUSHES = 1000, 1000, (500, 2000)
#: A consumer that sleeps so long takes a tenth of what the batches could give it.
SLOW_SECONDS, QUEUE = 0.1, 20_000
#: Pushes before memory counts: the queue is full, and a batch of as many rows has been taken several times.
WARM = 100
#: Bytes of a row: three columns of eight.
ROW_BYTES = 24
US = 1_000_000
events = tg.stream("Events", "key bigint, time timestamp, amount bigint", progress="time")
program = tg.program(
    PerTenth=events.group_by(key=events.key, end=tg.tumbling(events.time, "100ms")).agg(total=tg.sum(events.amount))
)


def main() -> int:
    """Prints the figures, or the growth with so many pushes; the exit status is 0."""
    if len(sys.argv) > 1:
        print(growth(int(sys.argv[1])))
    else:
        print_table(measure())
    return 0


def measure() -> list[Figure]:
    """Events a second of two producers, and memory beside a consumer that is too slow."""
    _seconds(1, 5, 0.0, QUEUE)  # what is loaded once
    rates = [2 * PUSHES * ROWS / _seconds(2, PUSHES, 0.0, 200_000) for _ in range(PAIRS)]
    few, many = (pushes * ROWS for pushes in SLOW_PUSHES)
    further = (many - few) * ROW_BYTES
    memory, detail = [], []
    for _ in range(PAIRS):
        less, more = (_in_process(pushes) for pushes in SLOW_PUSHES)
        memory.append((more - less) / further)
        detail.append(f"{less / 2**20:.1f} and {more / 2**20:.1f} MiB")
    pairs = compared(f"a consumer ten times too slow: memory of {many - few:,} further rows / their bytes", memory)
    figures = [
        declared("in the background, two threads that push", statistics.median(rates), _rates(rates)),
        replace(pairs, detail=f"{pairs.detail}; growth by {few:,} and {many:,} rows: {'; '.join(detail)}"),
    ]
    for figure in figures:
        print(figure.line(), flush=True)
    return figures


def _rates(rates: list[float]) -> str:
    return ", ".join(f"{rate:,.0f}" for rate in rates)


def _in_process(pushes: int) -> int:
    command = [sys.executable, __file__, str(pushes)]
    return int(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)


def growth(pushes: int) -> int:
    """Bytes by which this process's resident memory goes beyond what it is after a session that was as full."""
    _seconds(1, WARM, SLOW_SECONDS, QUEUE)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the greatest so far is what there is now
    base = resident("VmRSS")
    _seconds(1, pushes, SLOW_SECONDS, QUEUE)
    return gained(base)


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
