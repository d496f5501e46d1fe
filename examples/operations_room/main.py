"""The operations room: New York's flights and weather of 2013, replayed and answered while they arrive.

    python -m examples.operations_room                      # January, in this process and then on Spark
    python -m examples.operations_room --embedded           # in this process alone
    python -m examples.operations_room --year --dataframes  # the whole year, every increment on Spark as DataFrames

Exit status 1: a result differs from the batch computation, rows are unaccounted for, or state exceeded its bound.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import TextIO

import polars as pl

from examples.operations_room import data, engines, expected, page, report, tour
from examples.operations_room.findings import full_report, local_moment, read
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.batch.report import BatchReport

OUTPUT = Path("out") / "operations_room"
DAY = timedelta(days=1)


class Progress:
    """Turns what each batch did into a line on the screen."""

    def __init__(self, out: TextIO, batches: int) -> None:
        self._live, self._batches, self._began = report.Live(out, every=2.0), batches, time.monotonic()
        self._rows, self._results = 0, dict.fromkeys(engines.RESULTS, 0)

    def __call__(self, done: BatchReport) -> None:
        self._rows += sum(counts.rows_in for counts in done.counts.values())
        for name, rows in done.results.items():
            self._results[name] += rows
        slowest = _slowest(done)
        self._live.update(
            report.Tick(
                batch=done.seq,
                batches=self._batches,
                rows_in=self._rows,
                results={name: self._results[name] for name in ("NotDeparted", "WorstDelay", "LateInFog")},
                live_rows=sum(done.live_rows.values()),
                progress=None if slowest in (INF, -INF) else local_moment(int(slowest)),
                seconds=self.seconds,
                ended=slowest == INF,
            )
        )

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    def close(self) -> None:
        self._live.close()


def _slowest(done: BatchReport) -> Extended:
    """Up to when all results are final."""
    return min(max(values.values()) for values in done.progress.values())


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="operations_room", description=__doc__.splitlines()[0] if __doc__ else None)
    data.add_arguments(parser)
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--embedded", action="store_true", help="in this process only")
    where.add_argument("--spark", action="store_true", help="on Spark only")
    parser.add_argument("--spark-after", type=Path, metavar="FILE", help="Spark is there when this file is")
    parser.add_argument("--dataframes", action="store_true", help="every increment as Spark DataFrames, small ones too")
    parser.add_argument(
        "--per-batch", type=int, help="files of each stream in one batch (1 in this process, those of a day on Spark)"
    )
    parser.add_argument(
        "--output", type=Path, help=f"a new directory for input, state and results ({OUTPUT}, replaced)"
    )
    chosen = parser.parse_args(argv)
    if chosen.per_batch is not None and chosen.per_batch < 1:
        parser.error("--per-batch must be at least 1")
    if "late" in chosen.bad_rows and (chosen.per_batch or 1) * chosen.hours >= 48:
        parser.error(
            "a batch of two days or more does not find all late rows: choose fewer --hours or --per-batch, "
            "or --bad-rows"
        )
    if chosen.output is not None and chosen.output.exists():
        parser.error(f"{chosen.output} exists: choose a new directory")
    return chosen


def main(argv: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    chosen, screen = arguments(argv), sys.stdout if out is None else out
    where = OUTPUT if chosen.output is None else chosen.output
    if where.exists():
        shutil.rmtree(where)
    stops = tour.stops()
    for stop in stops:
        print(f"{stop.title}\n{'-' * len(stop.title)}\n{stop.text}\n", file=screen, flush=True)

    period = data.chosen_period(chosen)
    replay = data.prepare(where / "input", period, hours=chosen.hours, bad=chosen.bad_rows, seed=chosen.seed)
    rows = ", ".join(f"{count:,} {name}" for name, count in replay.rows.items())
    print(f"replaying {rows} rows, in {replay.files} files each", file=screen, flush=True)
    print("the first run ever compiles what it needs, before its first batch: up to half a minute", file=screen)
    print("rows read (in) and held (live), up to when all is final, and rows of results:", file=screen, flush=True)
    wanted = expected.results(period)
    a_day = max(1, DAY // timedelta(hours=chosen.hours))
    reports = []
    if not chosen.spark:
        ran = run(engines.embedded, replay, where / "embedded", chosen.per_batch or 1, wanted, screen)
        print("\n" + report.final_report(ran), file=screen, flush=True)
        reports.append(ran)
    if not chosen.embedded:
        if chosen.spark_after is not None:
            wait_for(chosen.spark_after, screen)
        print("on Spark, which takes some seconds to start", file=screen, flush=True)
        on_spark = engines.OnSpark(chosen.dataframes)
        ran = run(on_spark, replay, where / "spark", chosen.per_batch or a_day, wanted, screen)
        print("\n" + (report.again(ran) if reports else report.final_report(ran)), file=screen, flush=True)
        reports.append(ran)

    results = where / ("spark" if chosen.spark else "embedded") / "results"
    situations = {name: read(results / name, wanted[name]) for name in ("Fog", "Wave", "LateInFog")}
    page.save(where / "report.html", reports, stops, situations)
    print(f"all of it as a page: {where / 'report.html'}", file=screen)
    return 0 if all(ran.ok for ran in reports) else 1


def wait_for(file: Path, screen: TextIO) -> None:
    """Returns when the file is there, and says every ten seconds that it is not."""
    began = said = time.monotonic()
    while not file.exists():
        if time.monotonic() - said >= 10:
            said = time.monotonic()
            print(f"Spark is being installed ... {said - began:.0f} s", file=screen, flush=True)
        time.sleep(0.1)


def run(
    engine: engines.Run,
    replay: data.Replay,
    where: Path,
    per_batch: int,
    wanted: dict[str, pl.DataFrame],
    screen: TextIO,
) -> report.Report:
    """Runs the program on an engine, with progress on the screen, and reports on it."""
    progress = Progress(screen, -(-replay.files // per_batch))
    try:
        ran = engine(replay, where, per_batch=per_batch, on_batch=progress)
    finally:
        progress.close()
    return full_report(ran, replay, where, seconds=progress.seconds, wanted=wanted)
