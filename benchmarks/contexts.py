"""Queries in contexts: the experiments of the CAESAR paper (EDBT 2016, Section 7), in one process.

    python benchmarks/contexts.py [--rows 200000]

Cars report from segments; in each of these, contexts begin and end. A query finds a car that has become slower within a
minute, all of it in one window of a context. Asked is the same program twice, as it was written and as the optimiser
makes it: written, a query looks at all reports, and its context is looked up for what it finds (context-independent);
optimised, it is looked up first (context-aware). Of contexts that overlap, a query of each of them stands beside one of
all of them. Both sides of a comparison run in turn, and have the same results. Seconds are those of the process, on all
cores; latency is the longest batch.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import (
    IN_CONTEXTS,
    OVERLAPPING,
    OVERLAPS,
    PAIRS,
    SUSPENDED,
    WINDOWS,
    WORKLOADS,
    Figure,
    compared,
    declared,
    print_table,
)
from tidegate.analysis.facts import ProgramFacts
from tidegate.analysis.pipeline import analyse
from tidegate.contexts.optimiser.programs import optimised
from tidegate.contexts.optimiser.sharing import CONDITION_COST, LOOK_UP_COST, share_of
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions

#: Seconds of the stream, cars a segment, and segments. A car reports every half minute or so.
SECONDS, CARS, SEGMENTS = 3_600, 20, 100
BATCHES = 20
#: What stands in the name of a figure for the two sides.
SIDES = "CPU, context-independent / context-aware"

REPORTS = tg.stream("Reports", "car bigint, segment bigint, time bigint, speed double", progress="time")
SIGNALS = tg.stream("Signals", "segment bigint, time bigint, context bigint, begins boolean", progress="time")
Rows = dict[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class Setting:
    """Reports, contexts, and windows of each context and segment, which cover this share of the time; where they begin.

    `apart`: the beginnings of the contexts' first windows are so many seconds apart; else they are anywhere.
    """

    rows: int
    covered: float
    queries: int = 10
    contexts: int = 1
    windows: int = 2
    apart: int | None = None
    begin: str = "anywhere"

    def inputs(self, seed: int = 1) -> Rows:
        rng = np.random.default_rng(seed)
        cars = rng.integers(0, CARS * SEGMENTS, self.rows)
        rate = np.linspace(1.0, 3.0, self.rows)  # three times as many reports at the end as in the beginning
        at = np.cumsum(1 / rate)
        reports = pl.DataFrame(
            {
                "car": cars,
                "segment": cars % SEGMENTS,
                "time": (at / at[-1] * (SECONDS - 1)).astype(np.int64),
                "speed": rng.integers(0, 100, self.rows).astype(np.float64),
            }
        )
        return {"Reports": reports, "Signals": self.signals(rng)}

    def signals(self, rng: np.random.Generator) -> pl.DataFrame:
        """What begins and ends the windows of each context, segment by segment."""
        length = int(SECONDS * self.covered / self.windows)
        found: list[tuple[int, int, int, bool]] = []
        for segment in range(SEGMENTS if length else 0):
            for context in range(self.contexts):
                for window in range(self.windows):
                    first, room = SECONDS * window // self.windows, SECONDS // self.windows - length
                    begin = first + self.offset(room, rng) + (0 if self.apart is None else context * self.apart)
                    if self.covered >= 1:
                        begin, length = -1, SECONDS + 1
                    found += [(segment, begin, context, True), (segment, begin + length, context, False)]
        schema = {"segment": pl.Int64, "time": pl.Int64, "context": pl.Int64, "begins": pl.Boolean}
        return pl.DataFrame(found, schema=schema, orient="row").sort("time")

    def offset(self, room: int, rng: np.random.Generator) -> int:
        if self.apart is not None:
            return 0
        if self.begin == "anywhere":
            return int(rng.integers(0, max(room, 1)))
        early = min(int(rng.exponential(room / 20)), room)
        return early if self.begin == "early" else room - early

    def names(self) -> tuple[str, ...]:
        return tuple(f"c{number}" for number in range(self.contexts))


def model(setting: Setting) -> tg.ContextModel:
    made = tg.context_model("Critical", by="segment", default="calm", contexts=setting.names())
    for number, name in enumerate(setting.names()):
        its = SIGNALS.where(SIGNALS.context == number)
        made = made.initiate(name, when=its.where(its.begins)).terminate(name, when=its.where(~its.begins))
    return made


def slower(number: int) -> tg.Relation:
    """A car that has become slower by so much within a minute."""
    a, b = REPORTS.as_("a"), REPORTS.as_("b")
    near = (a.car == b.car, a.segment == b.segment, a.time < b.time, b.time <= a.time + 60)
    return a.join(b, *near, b.speed < a.speed - (80.0 + number))


def standing(setting: Setting) -> dict[str, tg.Relation]:
    """Queries in contexts, as one writes them who finds something first and asks for its context then."""
    made = model(setting)
    contexts = setting.names()
    return {
        f"Q{number}": inside(made, slower(number), contexts[number % len(contexts)])
        for number in range(setting.queries)
    }


def inside(made: tg.ContextModel, found: tg.Relation, *contexts: str) -> tg.Relation:
    rows = found.in_context(made, *contexts, by="b.segment", at="b.time", since="a.time")
    return rows.select(car="b.car", time="b.time", first="a.time")


def each(setting: Setting) -> dict[str, tg.Relation]:
    """Every query for every context by itself."""
    made = model(setting)
    return {
        f"Q{number} {name}".replace(" ", "_"): inside(made, slower(number), name)
        for number in range(setting.queries)
        for name in setting.names()
    }


def together(setting: Setting) -> dict[str, tg.Relation]:
    """Every query for all contexts."""
    made = model(setting)
    return {f"Q{number}": inside(made, slower(number), *setting.names()) for number in range(setting.queries)}


@dataclass(frozen=True, slots=True)
class Measured:
    """Seconds of the process, the longest batch in milliseconds, and the results."""

    seconds: float
    latency: float
    found: Mapping[str, Counter[Any]]


def written(relations: Mapping[str, tg.Relation]) -> ProgramFacts:
    return analyse(tg.program(**relations).definition)


def made(relations: Mapping[str, tg.Relation]) -> ProgramFacts:
    definition = tg.program(**relations).definition
    return optimised(definition, analyse(definition))


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
    return Measured(sum(cpu for cpu, _ in taken), 1000 * max(wall for _, wall in taken), found)


Sides = tuple[Measured, Measured]


def sides(setting: Setting) -> Iterator[Sides]:
    """The same program context-independent and context-aware, in turn."""
    inputs, relations = setting.inputs(), standing(setting)
    plans = written(relations), made(relations)
    for plan in plans:
        run(plan, {name: rows.head(2000) for name, rows in inputs.items()}, 4)  # what is loaded and compiled once
    for _ in range(PAIRS):
        one, other = (run(plan, inputs) for plan in plans)
        yield one, other


def grouped(setting: Setting) -> Iterator[Sides]:
    """Queries of each of several contexts, and of all of them."""
    inputs = setting.inputs()
    plans = made(each(setting)), made(together(setting))
    for plan in plans:
        run(plan, {name: rows.head(500) for name, rows in inputs.items()}, 2)
    for _ in range(PAIRS):
        one, other = (run(plan, inputs) for plan in plans)
        yield replace(one, found=once(one.found)), other


def once(found: Mapping[str, Counter[Any]]) -> dict[str, Counter[Any]]:
    """The results of queries of several contexts, each row once."""
    together: dict[str, Counter[Any]] = {}
    for name, rows in found.items():
        together.setdefault(name.partition("_")[0], Counter()).update(rows)
    return {name: Counter(dict.fromkeys(rows, 1)) for name, rows in together.items()}


@dataclass(slots=True)
class Comparison:
    """Figures, and whether both sides had the same results each time, and any."""

    figures: list[Figure]
    equal: bool = True

    def add(self, name: str, pairs: Sequence[Sides], value: Callable[[Measured], float]) -> None:
        self.figures.append(compared(name, [value(one) / value(other) for one, other in pairs]))
        print(self.figures[-1].line(), flush=True)
        for one, other in pairs:
            self.equal &= one.found == other.found
        if not self.equal:
            print(f"  {name}: RESULTS DIFFER")


def seconds(measured: Measured) -> float:
    return measured.seconds


def latency(measured: Measured) -> float:
    return measured.latency


def measure(rows: int = 200_000) -> tuple[list[Figure], bool]:
    """All figures, and whether results were equal."""
    done = Comparison([])
    for count in IN_CONTEXTS:
        pairs = [*sides(Setting(rows, 0.1, queries=count, contexts=2, windows=1))]
        done.add(f"{count} queries, contexts of 10 % of the stream: {SIDES}", pairs, seconds)
        if count == 10:
            done.add(
                f"{count} queries, contexts of 10 % of the stream: longest batch, independent / aware", pairs, latency
            )
    for share in SUSPENDED:
        pairs = [*sides(Setting(rows, 1 - share / 100))]
        done.add(f"10 queries, {share} % of the stream suspended: {SIDES}", pairs, seconds)
    for windows in WINDOWS:
        pairs = [*sides(Setting(rows, 0.2, windows=windows))]
        done.add(f"10 queries, windows of each segment: {windows}, 20 % of the stream: {SIDES}", pairs, seconds)
    for begin in ("anywhere", "early", "late"):
        taken = [aware.latency for _, aware in sides(Setting(rows, 0.1, begin=begin))]
        done.figures.append(declared(f"10 queries, windows {begin}: longest batch", statistics.median(taken)))
        print(done.figures[-1].line(), flush=True)
    done.figures += searches()
    few = rows // 4
    for contexts in OVERLAPPING:
        pairs = [*grouped(Setting(few, 0.25, queries=4, contexts=contexts, windows=1, apart=10))]
        done.add(f"overlapping contexts: {contexts}, 4 queries: CPU, each / together", pairs, seconds)
    for overlap in OVERLAPS:
        setting = Setting(few, 0.25, queries=4, contexts=8, windows=1, apart=900 - 60 * overlap)
        done.add(f"8 contexts of 15 min, overlap of {overlap} min: CPU, each / together", [*grouped(setting)], seconds)
    for count in WORKLOADS:
        pairs = [*grouped(Setting(few, 0.25, queries=count, contexts=15, windows=1, apart=10))]
        done.add(f"15 overlapping contexts, queries of each: {count}: CPU, each / together", pairs, seconds)
    return done.figures, done.equal


#: Queries of which each is two operators, a filter and a selection.
SEARCHED: Final = 12


def searches() -> list[Figure]:
    """How long the optimiser takes, and how long it takes to cost every way in which queries can share look-ups."""
    rows = REPORTS.where(REPORTS.speed > 1)
    context = model(Setting(0, 0.1))
    relations = {
        f"Q{number}": rows.where(rows.car == number)
        .in_context(context, "c0")
        .select("car", "time", n=rows.car + number)
        for number in range(SEARCHED)
    }
    definition = tg.program(**relations).definition
    facts = analyse(definition)
    taken = []
    for _ in range(PAIRS):
        begun = time.perf_counter()
        optimised(definition, facts)
        taken.append(1000 * (time.perf_counter() - begun))
    begun = time.perf_counter()
    shares = [share_of((REPORTS.car == number)._term) for number in range(SEARCHED)]
    ways = exhaustive(shares)
    exhausted = 1000 * (time.perf_counter() - begun)
    found = [
        declared("24 operators in contexts: search for a plan", statistics.median(taken)),
        declared("24 operators in contexts: exhaustive search", exhausted, f"{ways:,} ways"),
        declared("24 operators in contexts: exhaustive search / search", exhausted / statistics.median(taken)),
    ]
    for figure in found:
        print(figure.line(), flush=True)
    return found


def exhaustive(shares: Sequence[float]) -> int:
    """Costs every partition of queries into groups that share a look-up; gives how many there are (a Bell number)."""
    least, ways = float("inf"), 0
    groups: list[list[float]] = []

    def cost() -> float:
        return sum(min(1.0, sum(group)) * LOOK_UP_COST + len(group) * CONDITION_COST for group in groups)

    def place(number: int) -> None:
        nonlocal least, ways
        if number == len(shares):
            least, ways = min(least, cost()), ways + 1
            return
        for group in groups:
            group.append(shares[number])
            place(number + 1)
            group.pop()
        groups.append([shares[number]])
        place(number + 1)
        groups.pop()

    place(0)
    return ways


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=200_000)
    figures, equal = measure(options.parse_args().rows)
    print_table(figures)
    print("results: equal" if equal else "results: DIFFERENT")
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
