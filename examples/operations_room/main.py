"""The operations room: New York's flights and weather of 2013, replayed and answered while they arrive.

    python -m examples.operations_room                      # January, on Spark
    python -m examples.operations_room --embedded           # the same program in this process
    python -m examples.operations_room --year --dataframes  # the whole year, every increment as Spark DataFrames

Exit status 1: a result differs from the batch computation, rows are unaccounted for, or state exceeded its bound.
"""

import argparse
import shutil
import sys
import time
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import TextIO

from examples.operations_room import data, engines, expected, report
from examples.operations_room.findings import full_report
from tidegate.algebra.time import EPOCH, INF, Extended
from tidegate.runtime.batch_report import BatchReport

OUTPUT = Path("out") / "operations_room"


class Progress:
    """Turns what each batch did into a line on the screen."""

    def __init__(self, out: TextIO, batches: int) -> None:
        self._live, self._batches, self._began = report.Live(out, every=2.0), batches, time.monotonic()
        self._rows, self._results = 0, dict.fromkeys(engines.RESULTS, 0)

    def __call__(self, done: BatchReport) -> None:
        self._rows += sum(counts.rows_in for counts in done.counts.values())
        for name, rows in done.results.items():
            self._results[name] += rows
        self._live.update(
            report.Tick(
                batch=done.seq,
                batches=self._batches,
                rows_in=self._rows,
                results={name: self._results[name] for name in ("NotDeparted", "WorstDelay", "Bunching")},
                live_rows=sum(done.live_rows.values()),
                progress=_moment(slowest := _slowest(done)),
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


def _moment(ticks: Extended) -> datetime | None:
    return None if ticks in (INF, -INF) else EPOCH + timedelta(microseconds=ticks)


def arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="operations_room", description=__doc__.splitlines()[0] if __doc__ else None)
    data.add_arguments(parser)
    parser.add_argument("--embedded", action="store_true", help="in this process instead of on Spark")
    parser.add_argument("--dataframes", action="store_true", help="every increment as Spark DataFrames, small ones too")
    parser.add_argument("--per-batch", type=int, default=2, help="files of each stream in one batch (2)")
    parser.add_argument(
        "--output", type=Path, help=f"a new directory for input, state and results ({OUTPUT}, replaced)"
    )
    chosen = parser.parse_args(argv)
    if chosen.per_batch < 1:
        parser.error("--per-batch must be at least 1")
    if "late" in chosen.bad_rows and chosen.per_batch * chosen.hours >= 48:
        parser.error(
            "a batch of two days or more does not find all late rows: choose fewer --hours or --per-batch, or --bad-rows"
        )
    if chosen.output is not None and chosen.output.exists():
        parser.error(f"{chosen.output} exists: choose a new directory")
    return chosen


def main(argv: Sequence[str] | None = None, out: TextIO | None = None) -> int:
    chosen, screen = arguments(argv), sys.stdout if out is None else out
    where = OUTPUT if chosen.output is None else chosen.output
    if where.exists():
        shutil.rmtree(where)
    period = data.chosen_period(chosen)
    replay = data.prepare(where / "input", period, hours=chosen.hours, bad=chosen.bad_rows, seed=chosen.seed)
    rows = ", ".join(f"{count:,} {name}" for name, count in replay.rows.items())
    engine = "in this process" if chosen.embedded else "on Spark, which takes some seconds to start"
    print(f"replaying {rows} rows, in {replay.files} files each, {engine}", file=screen, flush=True)

    run: engines.Run = engines.embedded if chosen.embedded else engines.OnSpark(chosen.dataframes)
    progress = Progress(screen, -(-replay.files // chosen.per_batch))
    try:
        ran = run(replay, where, per_batch=chosen.per_batch, on_batch=progress)
    finally:
        progress.close()

    seconds = progress.seconds
    found = full_report(ran, replay, where, seconds=seconds, wanted=expected.results(period))
    (where / "picture.svg").write_text(report.svg_picture(found.picture), encoding="utf-8")
    print("\n" + report.final_report(found), file=screen, end="")
    return 0 if found.ok else 1
