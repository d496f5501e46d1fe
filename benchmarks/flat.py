"""What an increment costs after a thousand batches, beside after ten: rows and bytes read as the engine counts them, and time.

python benchmarks/flat.py [--batches 1000] [--rows 2000]
"""

from __future__ import annotations

import argparse
import resource
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import queries
from benchmarks.run import PROGRAMS
from tidegate.runtime.batch_report import BatchReport
from tidegate.runtime.embedded.session import Session
from tidegate.runtime.sources import source


def main() -> int:
    """Prints one line per query; the exit status says whether rows and bytes stay within 1.1, and time within 1.5."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--batches", type=int, default=1000)
    options.add_argument("--rows", type=int, default=2000, help="rows a batch, a thousand a second of event time")
    chosen = options.parse_args()
    print(f"embedded, {chosen.batches} batches of {chosen.rows} rows; medians of 20 batches late / early")
    print(f"  {'query':<16}{'rows read':>24}{'bytes read':>28}{'ms a batch':>22}{'MiB':>8}")
    flat = True
    for name in PROGRAMS:
        reports = run(name, chosen.batches, chosen.rows)
        early, late = reports[10:30], reports[-21:-1]
        lines = [_pair(early, late, number) for number in (0, 1)] + [_times(early, late)]
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        shown = [f"{b:,.1f} / {a:,.1f} = {b / a:.2f}" for a, b in lines]
        print(f"  {name:<16}{shown[0]:>24}{shown[1]:>28}{shown[2]:>22}{memory:>8.0f}")
        flat = flat and all(b <= limit * a for (a, b), limit in zip(lines, (1.1, 1.1, 1.5), strict=True))
    return 0 if flat else 1


def run(name: str, batches: int, size: int) -> list[BatchReport]:
    """Reports of a query over generated rows, one push and step a batch."""
    rows = queries.rows(batches * size, 100)
    reports = []
    with Session(PROGRAMS[name]().facts, sources={"Events": source(None, delay="1s")}) as session:
        for number in range(batches):
            session.push("Events", rows.slice(number * size, size))
            reports.append(session.step())
    return reports


def _pair(early: list[BatchReport], late: list[BatchReport], number: int) -> tuple[float, float]:
    return _median(early, number), _median(late, number)


def _median(reports: list[BatchReport], number: int) -> float:
    return statistics.median(sum(read[number] for read in report.read.values()) for report in reports)


def _times(early: list[BatchReport], late: list[BatchReport]) -> tuple[float, float]:
    seconds = [[1000 * sum(report.seconds.values()) for report in reports] for reports in (early, late)]
    return statistics.median(seconds[0]), statistics.median(seconds[1])


if __name__ == "__main__":
    sys.exit(main())
