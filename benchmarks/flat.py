"""What an increment costs after a thousand batches, beside after ten: rows and bytes read as the engine counts them, and time.

python benchmarks/flat.py [--batches 1000] [--rows 2000]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import queries
from benchmarks.figures import Figure, print_table
from tidegate.runtime.batch_report import BatchReport
from tidegate.runtime.embedded.session import Session
from tidegate.runtime.sources import source

#: Batches that are compared, from the tenth on. What a batch reads depends on where it lies in a window and on how full
#: segments are: both come again after at most 40 batches.
FIRST, SPAN = 10, 100


def main() -> int:
    """Prints the figures; the exit status is 0."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--batches", type=int, default=1000)
    options.add_argument("--rows", type=int, default=2000, help="rows a batch, a thousand a second of event time")
    chosen = options.parse_args()
    print_table(measure(chosen.batches, chosen.rows))
    return 0


def measure(batches: int = 1000, size: int = 2000) -> list[Figure]:
    """The last SPAN batches beside those of a session that has just begun, per query: means of what is read, median times."""
    figures = []
    for name in queries.PROGRAMS:
        early, late = run(name, batches, size)
        for number, what in enumerate(("rows", "bytes")):
            one, other = (_mean_read(some, number) for some in (early, late))
            label = f"{name}: {what} read, batch {batches:,} / batch 10 ({other:,.0f} / {one:,.0f})"
            figures.append(Figure(label, other / one, "", most=1.1))
        one, other = (statistics.median(map(_milliseconds, some)) for some in (early, late))
        figures.append(Figure(f"{name}: time, the same ({other:.1f} ms / {one:.1f} ms)", other / one, "", most=1.5))
        for figure in figures[-3:]:
            print(figure.line(), flush=True)
    return figures


def run(name: str, batches: int, size: int) -> tuple[list[BatchReport], list[BatchReport]]:
    """Reports of early and of late batches, in turn, so that whatever else the machine does slows both down alike."""
    rows = queries.rows(batches * size, 100).with_columns(batch=pl.col("time").dt.epoch("us") // (size * 1000))
    parts = rows.partition_by("batch", include_key=False)
    facts, sources = queries.PROGRAMS[name]().facts, {"Events": source(None, delay="1s")}
    with Session(facts, sources=sources) as old, Session(facts, sources=sources) as young:
        for number in range(batches - SPAN):
            _step(old, parts[number])
        for number in range(FIRST):
            _step(young, parts[number])
        pairs = [
            (_step(young, parts[FIRST + number]), _step(old, parts[batches - SPAN + number])) for number in range(SPAN)
        ]
    return [early for early, _ in pairs], [late for _, late in pairs]


def _step(session: Session, rows: pl.DataFrame) -> BatchReport:
    session.push("Events", rows)
    return session.step()


def _mean_read(reports: list[BatchReport], number: int) -> float:
    return statistics.mean(sum(read[number] for read in report.read.values()) for report in reports)


def _milliseconds(report: BatchReport) -> float:
    return 1000 * sum(report.seconds.values())


if __name__ == "__main__":
    sys.exit(main())
