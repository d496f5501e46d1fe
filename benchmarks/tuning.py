"""A session in the background whose load changes while it runs: latency and time of the cores, tuned and fixed.

The progression is that of Table 5.5 of Körber's thesis at a tenth of its size: as many events a second as can be, then
a million a second, half a million, a tenth of one, and back, of the aggressive drivers. A push has a thousand events.
Latency is from a push to the commit that its events are in.

Beside tuned sessions stand fixed waits for a batch, each in a run of its own. One session is tuned to be quick: its
p50 is compared with the least of any fixed wait, in each phase. One has time: it is said how far its p99 is beyond
that, and how much more of the cores it takes than the fixed wait that keeps it and takes the least of them.

python benchmarks/tuning.py [--part 0.1]
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import FIXED_WAITS, PHASES, QUICK, SPARING, Figure, declared, print_table
from benchmarks.situations import events, program
from tidegate.algebra.time import duration_ticks
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

    def __str__(self) -> str:
        return f"{1000 * self.p50:.1f} ms, p99 {1000 * self.p99:.1f} ms, {self.core_seconds:.2f} s of cores"


def main() -> int:
    """Prints the figures; the exit status is 0."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--part", type=float, default=1.0, help="of the events of each phase")
    print_table(measure(options.parse_args().part))
    return 0


def measure(part: float = 1.0) -> list[Figure]:
    """Latencies of the session that is to be quick; of the one that has time whether it keeps it, and its cores."""
    frames = pushes(part)
    run([some[:500] for some in frames[:2]], tune=QUICK, batch_time=None)  # what is loaded and compiled once
    quick, sparing = (run(frames, tune=tune, batch_time=None) for tune in (QUICK, SPARING))
    fixed = {wait: run(frames, tune="throughput", batch_time=wait) for wait in FIXED_WAITS}
    figures = []
    for number, (name, _, _) in enumerate(PHASES):
        own = quick[number]
        wait, best = min(((w, some[number]) for w, some in fixed.items()), key=lambda one: one[1].p50)
        detail = f"{own}; a fixed wait of {wait}: {best}"
        figures.append(
            declared(f"changing load, {name}: p50, tuned for {QUICK} / best fixed wait", own.p50 / best.p50, detail)
        )
        print(figures[-1].line(), flush=True)
    asked = duration_ticks(SPARING) / 1_000_000
    paced = [number for number, (*_, rate) in enumerate(PHASES) if rate is not None]
    late = max(paced, key=lambda number: sparing[number].p99)
    name = f"changing load, tuned for {SPARING}: p99 / that time, worst phase"
    figures.append(declared(name, sparing[late].p99 / asked, f"{PHASES[late][0]}: {sparing[late]}"))
    least = {number: _least_cores(fixed, number, asked) for number in paced}
    worst = max(paced, key=lambda number: sparing[number].core_seconds / least[number])
    name = f"changing load, tuned for {SPARING}: cores / the least of a fixed wait that keeps it, worst phase"
    detail = f"{PHASES[worst][0]}: {sparing[worst]}; {least[worst]:.2f} s of cores"
    figures.append(declared(name, sparing[worst].core_seconds / least[worst], detail))
    for figure in figures[-2:]:
        print(figure.line(), flush=True)
    return figures


def _least_cores(fixed: Mapping[str, Sequence[Phase]], number: int, most: float) -> float:
    """The least time of the cores that a fixed wait takes in a phase whose p99 is no more than that."""
    return min(some[number].core_seconds for some in fixed.values() if some[number].p99 <= most)


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
