"""A session in the background whose load changes while it runs: latency and time of the cores, tuned and fixed.

The progression is that of Table 5.5 of Körber's thesis at a tenth of its size: as many events a second as can be, then
a million a second, half a million, a tenth of one, and back, of the aggressive drivers. Beside the tuned session stand
fixed waits for a batch, each in a run of its own; the best of them in a phase is the one with the least p50 of the
latency that does not take more time of the cores than the tuned one, by a tenth. A push has a thousandth of a second of
events, or a thousand. Latency is from a push to the commit that its events are in.

python benchmarks/tuning.py [--part 0.1]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import FIXED_WAITS, PHASES, TUNED, Figure, declared, print_table
from benchmarks.situations import events, program
from tidegate.runtime.connectors.sources import source
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions

KEYS, PUSH = 100, 1000


@dataclass(frozen=True, slots=True)
class Phase:
    """What a phase has shown: latencies of its pushes in seconds, the process's own time, and its length."""

    latencies: list[float]
    core_seconds: float
    seconds: float

    @property
    def p50(self) -> float:
        return statistics.median(self.latencies)

    @property
    def p99(self) -> float:
        return float(np.quantile(self.latencies, 0.99))


def main() -> int:
    """Prints the figures; the exit status is 0."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--part", type=float, default=1.0, help="of the events of each phase")
    print_table(measure(options.parse_args().part))
    return 0


def measure(part: float = 1.0) -> list[Figure]:
    """The tuned session's latency by that of the best fixed wait, in each phase."""
    frames = pushes(part)
    run([some[:500] for some in frames[:2]], tune=TUNED, batch_time=None)  # what is loaded and compiled once
    tuned = run(frames, tune=TUNED, batch_time=None)
    fixed = {wait: run(frames, tune="throughput", batch_time=wait) for wait in FIXED_WAITS}
    figures = []
    for number, (name, _, _) in enumerate(PHASES):
        own = tuned[number]
        sparing = {w: some[number] for w, some in fixed.items() if some[number].core_seconds <= 1.1 * own.core_seconds}
        wait, best = min(
            (sparing or {w: some[number] for w, some in fixed.items()}).items(), key=lambda one: one[1].p50
        )
        detail = (
            f"tuned p50 {1000 * own.p50:.1f} ms, p99 {1000 * own.p99:.1f} ms, {own.core_seconds:.2f} s of cores; "
            f"best fixed wait {wait}: {1000 * best.p50:.1f} ms, {1000 * best.p99:.1f} ms, {best.core_seconds:.2f} s"
        )
        figures.append(declared(f"changing load, {name}: p50, tuned / best fixed wait", own.p50 / best.p50, detail))
        print(figures[-1].line(), flush=True)
    return figures


def pushes(part: float) -> list[list[pl.DataFrame]]:
    """The frames of each phase, made beforehand, with instants that go on through all phases."""
    whole = events("Q2", sum(int(part * count) for _, count, _ in PHASES), KEYS)
    found, begin = [], 0
    for _, count, _ in PHASES:
        end = begin + int(part * count)
        found.append([whole[place : min(place + PUSH, end)] for place in range(begin, end, PUSH)])
        begin = end
    return found


def run(frames: Sequence[Sequence[pl.DataFrame]], *, tune: Any, batch_time: str | None) -> list[Phase]:
    """What each phase has shown."""
    commits: list[tuple[float, int]] = []

    def committed(report: Any) -> None:
        done = (commits[-1][1] if commits else 0) + report.counts["Events"].rows_in
        commits.append((time.perf_counter(), done))

    sources = {"Events": source(None, delay=1)}
    sinks = {"Found": tg.callback(lambda table, batch: None)}
    options = RunOptions(on_batch=committed, tune=tune)
    found: list[Phase] = []
    pushed = 0
    opened = Session(program("Q2").facts, sources=sources, sinks=sinks, options=options)
    with opened as session, session.background(batch_time=batch_time) as background:
        for (_, _, rate), some in zip(PHASES, frames, strict=False):
            told: list[tuple[float, int]] = []
            began, cores = time.perf_counter(), time.process_time()
            for number, frame in enumerate(some):
                if rate is not None and (wait := began + number * PUSH / rate - time.perf_counter()) > 0:
                    time.sleep(wait)
                told.append((time.perf_counter(), pushed + frame.height))
                background.push("Events", frame)
                pushed += frame.height
            background.flush()
            seconds, cores = time.perf_counter() - began, time.process_time() - cores
            found.append(Phase(_latencies(told, commits), cores, seconds))
    return found


def _latencies(told: Sequence[tuple[float, int]], commits: Sequence[tuple[float, int]]) -> list[float]:
    """Seconds from each push to the commit after which so many events were committed."""
    counts = np.array([count for _, count in commits])
    places = np.searchsorted(counts, [count for _, count in told])
    return [commits[place][0] - at for place, (at, _) in zip(places, told, strict=True)]


if __name__ == "__main__":
    sys.exit(main())
