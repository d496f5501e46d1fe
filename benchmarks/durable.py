"""What a batch of 50 rows costs with a checkpoint on disk, beside one in memory: 1, 5, 20 and 100 queries.

python benchmarks/durable.py
"""

from __future__ import annotations

import itertools
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks import queries
from benchmarks.figures import DURABLE, SINKS, Figure, declared, print_table
from benchmarks.files import write_files
from tidegate.runtime.connectors.sinks import Sink, parquet_sink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

#: A batch is a second of events, so that every query advances in every batch.
BATCHES, ROWS, WARM, SESSIONS = 60, 50, 10, 3
events = queries.events


def program(count: int) -> tg.Program:
    """Windows, groupings above a join, non-events and selections of the join, each with a threshold of its own."""
    a, b = events.as_("a"), events.as_("b")
    near = (a.key == b.key, a.time <= b.time, b.time <= a.time + tg.seconds(2))
    pairs = a.join(b, *near).select(key=a.key, time=b.time, one=a.value, other=b.value)
    found: dict[str, tg.Relation] = {}
    for number in range(count):
        least = 0.1 + 0.8 * number / count
        ending = tg.ceil(pairs.time, "1s")
        kinds = (
            lambda least=least: (
                events.where(events.value > least)
                .group_by(events.key, end=tg.ceil(events.time, "1s"))
                .agg(n=tg.count(), top=tg.max(events.value))
            ),
            lambda least=least, ending=ending: (
                pairs.where(pairs.one > least).group_by(key=pairs.key, end=ending).agg(n=tg.count())
            ),
            lambda least=least, ending=ending: (
                pairs.where(pairs.other > least).group_by(end=ending).agg(n=tg.count(), top=tg.max(pairs.one))
            ),
            lambda least=least: (
                a.anti_join(b, a.key == b.key, a.time < b.time, b.time <= a.time + tg.seconds(1))
                .where(a.value > least)
                .select(key=a.key, time=a.time)
            ),
            lambda least=least: pairs.where(pairs.one > least),
        )
        found[f"Q{number}"] = kinds[number % len(kinds)]()
    return tg.program(**found)


def steps(made: tg.Program, batches: int, *, on_disk: bool, sinks: bool = False) -> list[float]:
    """Milliseconds of each batch of a session; with `sinks` every query has a directory for its results."""
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_files(place / "in", queries.rows(batches * ROWS, 20, per_second=ROWS), batches)
        sources = {"Events": parquet(place / "in", per_batch=1, delay="1s", bounded=True)}
        given: dict[str, Sink] = {n: parquet_sink(place / "out" / n) for n in made.facts.streams} if sinks else {}
        store: Store = LocalStore(place / "checkpoint") if on_disk else MemoryStore()
        with Session(made.facts, store, sources, sinks=given) as session:
            for _ in range(batches):
                began = time.perf_counter()
                session.step()
                taken.append(1000 * (time.perf_counter() - began))
    return taken


def measure() -> list[Figure]:
    """Medians of sessions that take turns, in memory and on disk; and what a further query adds, at worst."""
    figures, on_disk = [], {}
    for count in DURABLE:
        made = program(count)
        taken: dict[bool, list[float]] = {False: [], True: []}
        for _ in range(SESSIONS):
            for where in (False, True):
                taken[where].append(statistics.median(steps(made, BATCHES, on_disk=where)[WARM:]))
        on_disk[count] = statistics.median(taken[True])
        for where, name in ((False, "in memory"), (True, "on disk")):
            detail = ", ".join(f"{one:.1f}" for one in taken[where])
            figures.append(
                declared(f"a batch of 50 rows, queries: {count}, {name}", statistics.median(taken[where]), detail)
            )
            print(figures[-1].line(), flush=True)
    each = [(on_disk[more] - on_disk[few]) / (more - few) for few, more in itertools.pairwise(DURABLE)]
    figures.append(declared("a batch of 50 rows on disk: each further query, at most", max(each)))
    with_sinks = [statistics.median(steps(program(SINKS), BATCHES, on_disk=True, sinks=True)[WARM:]) for _ in range(3)]
    detail = ", ".join(f"{one:.1f}" for one in with_sinks)
    figures.append(
        declared(
            f"a batch of 50 rows, queries: {SINKS}, on disk, results to directories",
            statistics.median(with_sinks),
            detail,
        )
    )
    print(figures[-2].line(), figures[-1].line(), sep="\n", flush=True)
    return figures


if __name__ == "__main__":
    print_table(measure())
