"""The embedded engine over Parquet files in many batches, beside Polars over all rows at once."""

from __future__ import annotations

import statistics
import time
from pathlib import Path

import polars as pl

from benchmarks import queries
from benchmarks.comparing import same
from benchmarks.figures import AS_POLARS, PAIRS, QUERIES, Figure, compared, declared
from tidegate.runtime.connectors.sources import Source, parquet
from tidegate.runtime.engines.embedded.session import Session


def measure(files: Path, few: Path, rows: int) -> tuple[list[Figure], bool]:
    """Figures of every query, and whether results were equal; `few` are files to warm up with."""
    batches = len(list(files.glob("*.parquet")))
    figures, equal = [], True
    for name in QUERIES:
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
        own, polars = (statistics.median(column) for column in zip(*times, strict=True))
        if name in AS_POLARS:
            figures.append(compared(f"{name}: rows/s, embedded / Polars", [batch / taken for taken, batch in times]))
        figures += [
            declared(f"{name}, embedded", rows / own, f"{batches} batches"),
            declared(f"{name}, Polars in one batch", rows / polars),
            compared(f"{name}: time, embedded / (2 x Polars + 10 ms a batch)", ratios),
        ]
        print(figures[-1].line(), flush=True)
    return figures, equal


def _scan(folder: Path) -> pl.LazyFrame:
    return pl.scan_parquet(f"{folder}/*.parquet")


def source(folder: Path) -> Source:
    return parquet(folder, per_batch=1, delay="1s", bounded=True)


def run(name: str, folder: Path) -> tuple[float, pl.DataFrame]:
    """Seconds of a run, a file a batch, and its result."""
    began = time.perf_counter()
    with Session(queries.program(name).facts, sources={"Events": source(folder)}) as session:
        session.process()
        taken = time.perf_counter() - began
        (stream,) = (query.stream for query in session._plan.queries)
        return taken, pl.DataFrame(session.table(stream))
