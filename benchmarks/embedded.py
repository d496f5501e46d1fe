"""The embedded engine over Parquet files in many batches, beside Polars over all rows at once, and how much memory it takes.

python benchmarks/embedded.py QUERY FOLDER prints the memory of a run in a process of its own, as JSON.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import time
from pathlib import Path

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import queries
from benchmarks.comparing import same
from benchmarks.figures import Figure
from tidegate.runtime.embedded.session import Session
from tidegate.runtime.sinks import DiscardSink
from tidegate.runtime.sources import Source, parquet

PAIRS = 3


def measure(files: Path, few: Path, rows: int) -> tuple[list[Figure], bool]:
    """Figures of every query, and whether results were equal; `few` are files to warm up with."""
    batches = len(list(files.glob("*.parquet")))
    figures, equal = [], True
    for name in queries.PROGRAMS:
        for folder in (few, few):
            run(name, folder)
            queries.batch_polars(name, _scan(folder))
        ratios, times = [], []
        for _ in range(PAIRS):
            taken, found = run(name, files)
            began = time.perf_counter()
            expected = queries.batch_polars(name, _scan(files))
            batch = time.perf_counter() - began
            times.append((taken, batch))
            ratios.append(taken / (2 * batch + 0.01 * batches))
        equal = same(f"{name}, embedded", found, expected) and equal
        best, polars = (min(column) for column in zip(*times, strict=True))
        figures += [
            Figure(f"{name}, embedded, {batches} batches", rows / best, "rows/s"),
            Figure(f"{name}, Polars in one batch", rows / polars, "rows/s"),
            Figure(f"{name}: time / (2 x Polars + 10 ms a batch)", statistics.median(ratios), "", most=1),
        ]
        print(figures[-1].line(), flush=True)
    return figures, equal


def _scan(folder: Path) -> pl.LazyFrame:
    return pl.scan_parquet(f"{folder}/*.parquet")


def _source(folder: Path) -> Source:
    return parquet(folder, per_batch=1, delay="1s", bounded=True)


def run(name: str, folder: Path) -> tuple[float, pl.DataFrame]:
    """Seconds of a run, a file a batch, and its result."""
    began = time.perf_counter()
    with Session(queries.PROGRAMS[name]().facts, sources={"Events": _source(folder)}) as session:
        session.process()
        taken = time.perf_counter() - began
        (stream,) = (query.stream for query in session.plan.queries)
        return taken, pl.DataFrame(session.table(stream))


def memory(files: Path, few: Path) -> list[Figure]:
    """Peak memory of each query beyond the process's base, results discarded, beside what it may be."""
    figures = []
    for name in queries.PROGRAMS:
        command = [sys.executable, __file__, name, str(files), str(few)]
        found = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
        allowed = 2 * found["live"] / 2**20 + 1024
        figures += [
            Figure(f"{name}, embedded: live state at most", found["live"] / 2**20, "MiB"),
            Figure(f"{name}, embedded: peak memory beyond the base", found["more"] / 2**20, "MiB", most=round(allowed)),
        ]
        print(figures[-1].line(), flush=True)
    return figures


def _memory_of(name: str, files: Path, few: Path) -> dict[str, int]:
    """Greatest live state, and peak resident memory beyond that of the process when it has run a few rows, in bytes."""
    run(name, few)
    base = _status("VmRSS")
    live = 0
    facts = queries.PROGRAMS[name]().facts
    (stream,) = facts.streams
    with Session(facts, sources={"Events": _source(files)}, sinks={stream: DiscardSink()}) as session:
        while session.waiting_files():
            live = max(live, sum(session.step().live_bytes.values()))
    return {"live": live, "more": _status("VmHWM") - base}


def _status(field: str) -> int:
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(field))


if __name__ == "__main__":
    print(json.dumps(_memory_of(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))))
