"""Situations and patterns from Parquet files to committed results, beside reading alone, Polars, DuckDB and a Python
loop.

    python benchmarks/situations.py --events 10000000

Everything runs on one core, each query in a process of its own, all ways and numbers of keys in turn; results are
compared. The engine reads a file of five million events a batch, as on Spark, and its checkpoint and results are
directories. Reading alone is pyarrow with one thread.
Rates are by the process's own time, so that other work on the machine counts little; elapsed time, with the waiting for
the disk, stands beside it.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

if __name__ == "__main__":  # before Polars counts cores
    os.environ["POLARS_MAX_THREADS"] = "1"

import polars as pl
import pyarrow.parquet as pq

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks import situations_batch, situations_data
from benchmarks.comparing import same
from benchmarks.figures import KEYS, PAIRS, SITUATIONS, Figure, compared, declared, print_table
from benchmarks.files import write_files
from tidegate.runtime.connectors.sinks import parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.state.store.local import LocalStore

#: Events of a file, which is a batch.
BATCH = 5_000_000
#: Seconds by which a process's own time goes on in some kernels.
STEP = 0.01
#: Events that the loop in Python sees, whose time is scaled up.
LOOPED = 500_000

switches = tg.stream("Events", "key bigint, time bigint, a boolean, b boolean, c boolean", progress="time")
readings = tg.stream("Events", "key bigint, time bigint, speed double, accel double", progress="time")


def program(query: str, *, keyed: bool = True) -> tg.Program:
    """`A before B and B overlaps C within 300 s`, with or without a key; or the aggressive drivers with durations."""
    if query == "Q1":
        parted = switches.partition_by("key") if keyed else switches.partition_by()
        derived = parted.derive(A=tg.situation(switches.a), B=tg.situation(switches.b), C=tg.situation(switches.c))
        found = derived.match(derived.A.before(derived.B), derived.B.overlaps(derived.C), within=300)
    else:
        derived = readings.partition_by("key").derive(
            A=tg.situation(readings.accel > 8, at_least=5),
            B=tg.situation(readings.speed > 70, at_least=4, at_most=30),
            C=tg.situation(readings.accel < -9, at_least=3),
        )
        a, b, c = derived.A, derived.B, derived.C
        found = derived.match(
            a.meets(b) | a.overlaps(b) | a.starts(b) | a.during(b),
            b.contains(c) | b.finished_by(c) | b.overlaps(c) | b.meets(c),
            a.before(c),
            within=300,
        )
    return tg.program(Found=found)


def events(query: str, count: int, keys: int) -> pl.DataFrame:
    """What a query is run on."""
    return situations_data.booleans(count, keys) if query == "Q1" else situations_data.cars(count, keys)


def run(query: str, files: Path) -> pl.DataFrame:
    """The results of the engine, a file a batch, all of them committed."""
    place = Path(tempfile.mkdtemp(dir=files.parent))
    try:
        with Session(
            program(query).facts,
            store=LocalStore(place / "checkpoint"),
            sources={"Events": parquet(files, per_batch=1, delay=0, bounded=True)},
            sinks={"Found": parquet_sink(place / "results")},
        ) as session:
            session.process()
            found = pl.DataFrame(session.table("Found"))
    finally:
        shutil.rmtree(place)
    return found.select("key", "A.ts", "B.ts", "C.ts", "detected")


def read(files: Path) -> int:
    """All columns read by pyarrow alone."""
    rows = 0
    for path in sorted(files.glob("*.parquet")):
        with pq.ParquetFile(path) as file:
            rows += file.read(use_threads=False).num_rows
    return rows


#: Seconds of each run by way, whether results were equal, and how many matches there were.
Taken = dict[str, list[float]]


def compare(query: str, folder: Path, count: int) -> dict[int, Taken]:
    """Every way with every number of keys, in turns; for a process of its own."""
    cores = sorted(os.sched_getaffinity(0))
    os.sched_setaffinity(0, cores[-1:])
    ways: dict[str, Callable[[Path], object]] = {
        "reading": read,
        "embedded": lambda files: run(query, files),
        "polars": lambda files: situations_batch.by_polars(query, files),
        "duckdb": lambda files: situations_batch.by_duckdb(query, files),
    }
    taken: dict[int, Taken] = {}
    for keys in KEYS:
        frame = events(query, max(count, keys), keys)  # one event of each key at least
        (folder / str(keys)).mkdir()
        write_files(folder / str(keys) / "few", frame.head(min(count, 200_000)), 2)
        write_files(folder / str(keys) / "files", frame, -(-count // BATCH))
        write_files(folder / str(keys) / "looped", frame.head(min(count, LOOPED)), 1)
        taken[keys] = {name: [] for name in (*ways, *(f"{name} elapsed" for name in ways), "loop", "equal", "matches")}
        for way in ways.values():
            way(folder / str(keys) / "few")
    del frame
    for _ in range(PAIRS):
        for keys in KEYS:
            _turn(query, folder / str(keys), max(count, keys), ways, taken[keys])
    return taken


def _turn(query: str, folder: Path, count: int, ways: dict[str, Callable[[Path], object]], taken: Taken) -> None:
    """Each way once, and a comparison of their results."""
    found: dict[str, object] = {}
    for name, way in ways.items():
        began, elapsed = time.process_time(), time.perf_counter()
        found[name] = way(folder / "files")
        taken[name].append(max(time.process_time() - began, STEP))
        taken[f"{name} elapsed"].append(time.perf_counter() - elapsed)
    tables = {name: table for name, table in found.items() if isinstance(table, pl.DataFrame)}
    equal = all(same(f"{query}, {name}", tables["embedded"], tables[name]) for name in ("polars", "duckdb"))
    rows = pl.read_parquet(folder / "looped" / "*.parquet").rows()
    began = time.process_time()
    by_hand = situations_batch.by_loop(query, rows)
    taken["loop"].append(max(time.process_time() - began, STEP) * count / len(rows))
    equal = same(f"{query}, Python loop", by_hand, situations_batch.by_polars(query, folder / "looped")) and equal
    taken["equal"].append(float(equal))
    taken["matches"].append(float(tables["embedded"].height))


def measure(count: int) -> tuple[list[Figure], bool]:
    """Figures of both queries for every number of keys, and whether all results were equal."""
    figures: list[Figure] = []
    equal = True
    for query in SITUATIONS:
        command = [sys.executable, __file__, "--one", query, "--events", str(count)]
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        *notes, line = done.stdout.splitlines()
        print("".join(f"{note}\n" for note in notes), end="")
        taken: dict[int, Taken] = {int(keys): found for keys, found in json.loads(line).items()}
        equal = equal and all(all(found["equal"]) for found in taken.values())
        by_polars = {keys: ratios(found["polars"], found["embedded"]) for keys, found in taken.items()}
        for keys, found in taken.items():
            figures += _figures(f"{query}, {keys:,} keys, one core", found, max(count, keys))
        slowest = min(by_polars, key=lambda keys: statistics.median(by_polars[keys]))
        many_keys = ratios(taken[max(KEYS)]["embedded"], taken[100]["embedded"])
        worst = compared(f"{query}, one core: embedded / Polars, worst number of keys", by_polars[slowest])
        figures += [
            replace(worst, detail=f"{slowest:,} keys: {worst.detail}"),
            compared(f"{query}, one core: time, 100,000 keys / 100 keys", many_keys),
        ]
        for figure in figures[-2:]:
            print(figure.line(), flush=True)
    return figures, equal


#: The ways, as the figures name them.
NAMES = {
    "embedded": "embedded",
    "reading": "pyarrow reading alone",
    "polars": "Polars in one batch",
    "duckdb": "DuckDB in one batch",
    "loop": "Python loop",
}


def _figures(title: str, taken: Taken, count: int) -> list[Figure]:
    elapsed = f"elapsed {count / statistics.median(taken['embedded elapsed']):,.0f}, {taken['matches'][0]:,.0f} matches"
    made = [
        declared(f"{title}: {name}", count / statistics.median(taken[way]), elapsed if way == "embedded" else "")
        for way, name in NAMES.items()
    ]
    for way, name in (("reading", "reading alone"), ("polars", "Polars")):
        made.append(compared(f"{title}: embedded / {name}", ratios(taken[way], taken["embedded"])))
    for figure in made:
        print(figure.line(), flush=True)
    return made


def ratios(one: list[float], other: list[float]) -> list[float]:
    """The first of each pair divided by the second."""
    return [left / right for left, right in zip(one, other, strict=True)]


def main() -> int:
    """Prints the figures; the exit status says whether results were equal."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--events", type=int, default=10_000_000)
    options.add_argument("--one", choices=SITUATIONS, help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        with tempfile.TemporaryDirectory() as folder:
            print(json.dumps(compare(chosen.one, Path(folder), chosen.events)))
        return 0
    figures, equal = measure(chosen.events)
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
