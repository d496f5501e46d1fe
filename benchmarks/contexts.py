"""Queries in contexts: the experiments of the CAESAR paper (EDBT 2016, Section 7), in one process.

    python benchmarks/contexts.py [--rows 200000]
    python benchmarks/contexts.py --own-results    # contexts whose queries have results of their own, by rows a batch

Cars report from segments; in each of these, contexts begin and end. A query finds a car that has become slower within a
minute, all of it in one window of a context. Asked is the same program twice, as it was written and as the optimiser
makes it: written, a query looks at all reports, and its context is looked up for what it finds (context-independent);
optimised, it is looked up first (context-aware). Where contexts overlap, both sides look contexts up first, one of them
each by itself, the other one all together. Both sides of a comparison run in turn, and have the same results. Seconds
are those of the process, on all cores; latency is the longest batch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.contexts_data import SECONDS, Rows, Setting, every_report, in_any, in_each, standing
from benchmarks.contexts_search import searches
from benchmarks.figures import (
    IN_CONTEXTS,
    IN_VAIN,
    OVERLAPPING,
    OVERLAPS,
    PAIRS,
    PER_CONTEXT,
    ROADS,
    SIDES,
    SUSPENDED,
    WINDOW_BEGINS,
    WINDOWS,
    WORKLOADS,
    Figure,
    compared,
    declared,
    print_table,
)
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse
from tidegate.contexts.optimiser import grouping, programs
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions

BATCHES = 20
#: Contexts of two minutes each, one after the other where they do not overlap.
MANY, LENGTH = 30, 120
#: Contexts, and queries in each, that have results of their own, and the rows of a run of them.
OWN_RESULTS, OWN_ROWS = ((15, 4), (2, 10), (15, 1), (2, 1)), (5_000, 50_000, 400_000)
#: Makes the queries of a setting.
Queries = Callable[[Setting], Mapping[str, tg.Relation]]


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of the process and by the clock, the longest batch in milliseconds, rows a second, and the results."""

    seconds: float
    latency: float
    rate: float
    found: Mapping[str, Counter[Any]]


def written(relations: Mapping[str, tg.Relation]) -> ProgramFacts:
    return analyse(tg.program(**relations).definition)


def made(relations: Mapping[str, tg.Relation]) -> ProgramFacts:
    definition = tg.program(**relations).definition
    return programs.optimised(definition, analyse(definition))


def apart(relations: Mapping[str, tg.Relation]) -> ProgramFacts:
    """As the optimiser makes it that puts nothing together of several contexts."""
    with (
        patch.object(grouping, "grouped", lambda *_: None),
        patch.object(grouping, "gathered", lambda queries, _: queries),
    ):
        return made(relations)


def run(facts: ProgramFacts, inputs: Rows, batches: int = BATCHES) -> Measured:
    """All rows in some batches of as many seconds each."""
    names = [query.query.stream for query in facts.queries if not query.query.inner and query.query.stream[0] == "Q"]
    span = -(-SECONDS // batches)
    taken = []
    with Session(facts, options=RunOptions(threads=1)) as session:
        for first in range(-span, SECONDS, span):
            for name, rows in inputs.items():
                some = rows.filter(pl.col("time").is_between(first, first + span, closed="left"))
                session.push(name, some)
                session.advance(name, first + span - 1)
            begun = time.process_time(), time.perf_counter()
            session.step()
            taken.append((time.process_time() - begun[0], time.perf_counter() - begun[1]))
        found = {name: Counter(tuple(row.values()) for row in session.results(name)) for name in names}
    rate = inputs["Reports"].height / sum(wall for _, wall in taken)
    return Measured(sum(cpu for cpu, _ in taken), 1000 * max(wall for _, wall in taken), rate, found)


Sides = tuple[Measured, Measured]


def sides(setting: Setting) -> Iterator[Sides]:
    """The same program context-independent and context-aware, in turn."""
    relations = standing(setting)
    return in_turn((written(relations), made(relations)), setting.inputs(), 2000)


def together(setting: Setting, queries: Queries = in_any) -> Iterator[Sides]:
    """The same program with each of several contexts by itself, and with all of them together."""
    relations = queries(setting)
    return in_turn((apart(relations), made(relations)), setting.inputs(), 500)


def in_turn(plans: tuple[ProgramFacts, ProgramFacts], inputs: Rows, few: int) -> Iterator[Sides]:
    """Two plans over the same rows, some times; each runs on a few of them before."""
    for plan in plans:
        run(plan, {name: rows.head(few) for name, rows in inputs.items()}, 4)  # what is loaded and compiled once
    for _ in range(PAIRS):
        one, other = (run(plan, inputs) for plan in plans)
        yield one, other


@dataclass(slots=True)
class Comparison:
    """Figures, and whether both sides had the same results each time, and any."""

    figures: list[Figure]
    equal: bool = True

    def add(self, name: str, pairs: Sequence[Sides], value: Callable[[Measured], float]) -> None:
        self.put(compared(name, [value(one) / value(other) for one, other in pairs]))
        for one, other in pairs:
            self.equal &= one.found == other.found and any(one.found.values())
        if not self.equal:
            print(f"  {name}: RESULTS DIFFER, or there are none")

    def put(self, figure: Figure) -> None:
        self.figures.append(figure)
        print(figure.line(), flush=True)

    def whole(self, title: str, pairs: Sequence[Sides]) -> None:
        """CPU, latency and throughput."""
        self.add(f"{title}: {SIDES}", pairs, seconds)
        self.add(f"{title}: longest batch, independent / aware", pairs, latency)
        for side, name in enumerate(("context-independent", "context-aware")):
            self.put(declared(f"{title}: {name}", statistics.median(pair[side].rate for pair in pairs)))


def seconds(measured: Measured) -> float:
    return measured.seconds


def latency(measured: Measured) -> float:
    return measured.latency


def measure(rows: int = 200_000) -> tuple[list[Figure], bool]:
    """All figures, and whether results were equal."""
    done = Comparison([])
    for count in IN_CONTEXTS:
        setting = Setting(rows, 0.1, queries=count, contexts=2, windows=1)
        done.whole(f"{count} queries, contexts of 10 % of the stream", [*sides(setting)])
    for count in PER_CONTEXT:
        setting = Setting(rows, 0.1, queries=2 * count, contexts=2, windows=1)
        done.whole(f"{count} queries in each of two contexts of 10 % of the stream", [*sides(setting)])
    for roads in ROADS:
        setting = Setting(rows * 2 // 5, 0.1, roads=roads)
        done.whole(f"10 queries, {roads} roads, two windows of 3 min", [*sides(setting)])
    for share in SUSPENDED:
        pairs = [*sides(Setting(rows, 1 - share / 100))]
        done.add(f"10 queries, {share} % of the stream suspended: {SIDES}", pairs, seconds)
    for windows in WINDOWS:
        pairs = [*sides(Setting(rows, 0.2, windows=windows))]
        done.add(f"10 queries, windows of each segment: {windows}, 20 % of the stream: {SIDES}", pairs, seconds)
    for begin in WINDOW_BEGINS:
        pairs = [*sides(Setting(rows, 0.1, begin=begin))]
        done.put(declared(f"10 queries, windows {begin}: longest batch", statistics.median(map(_aware, pairs))))
        done.add(f"10 queries, windows {begin}: longest batch, independent / aware", pairs, latency)
    done.figures += searches()
    overlapping(done, rows // 4)
    candidates(done, rows)
    return done.figures, done.equal


def overlapping(done: Comparison, rows: int) -> None:
    """What contexts have together, by their number, by how long they overlap, and by the queries in each."""
    for contexts in OVERLAPPING:
        pairs = [*together(Setting(rows, 0.25, queries=4, contexts=contexts, windows=1, apart=10))]
        done.add(f"overlapping contexts: {contexts}, 4 queries: CPU, each / together", pairs, seconds)
    for overlap in OVERLAPS:
        shift = LENGTH - overlap
        setting = Setting(rows, LENGTH / SECONDS, queries=4, contexts=MANY, windows=1, apart=shift)
        title = f"{MANY} contexts of {LENGTH // 60} min, overlap of {overlap} s"
        done.add(f"{title}: CPU, each / together", [*together(setting)], seconds)
    for count in WORKLOADS:
        setting = Setting(rows, 0.25, queries=count, contexts=15, windows=1, apart=10)
        done.add(
            f"15 overlapping contexts, queries of each: {count}: CPU, each / together", [*together(setting)], seconds
        )
    setting = Setting(rows, 0.25, queries=4, contexts=15, windows=1, apart=10)
    title = "15 overlapping contexts, 4 queries of each with results of their own"
    done.add(f"{title}: CPU, each / together", [*together(setting, in_each)], seconds)


def results_of_their_own() -> bool:
    """Prints what contexts have together whose queries have results of their own, by how many rows there are: CPU of
    each context by itself beside that of all. Whether results were equal.
    """
    equal = True
    for contexts, queries in OWN_RESULTS:
        for rows in OWN_ROWS:
            setting = Setting(rows, 0.25, queries=queries, contexts=contexts, windows=1, apart=10)
            pairs = [*together(setting, in_each)]
            equal &= all(one.found == other.found for one, other in pairs)
            found = sorted(one.seconds / other.seconds for one, other in pairs)
            more = statistics.median(1000 * (other.seconds - one.seconds) / BATCHES for one, other in pairs)
            print(
                f"{queries * contexts} results, {queries} in each of {contexts} contexts, {rows // BATCHES:,} rows a "
                f"batch: each / together {', '.join(f'{ratio:.2f}' for ratio in found)}; {more:+.1f} ms a batch",
                flush=True,
            )
    return equal


def candidates(done: Comparison, rows: int) -> None:
    """Rows a second where each is a candidate transition, by how many of them ask for what is so already."""
    inputs = {"Reports": Setting(rows, 0).inputs()["Reports"]}
    for share, limit in IN_VAIN.items():
        plan = made(every_report(limit))
        run(plan, {"Reports": inputs["Reports"].head(2000)}, 4)
        runs = [run(plan, inputs) for _ in range(PAIRS)]
        done.equal &= all(one.found == runs[0].found and any(one.found.values()) for one in runs)
        rate = statistics.median(one.rate for one in runs)
        done.put(declared(f"each report a candidate transition, {share} % in vain", rate))


def _aware(pair: Sides) -> float:
    return pair[1].latency


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=200_000)
    options.add_argument("--own-results", action="store_true", help="contexts with results of their own, and no more")
    chosen = options.parse_args()
    if chosen.own_results:
        equal = results_of_their_own()
    else:
        figures, equal = measure(chosen.rows)
        print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
