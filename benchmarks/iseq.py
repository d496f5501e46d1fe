"""The four experiments of the ISEQ paper (DEBS 2011, Section 4), with its three executions and the library's own.

    python benchmarks/iseq.py [--windows 4] [--density 60] [--length 6]

Intervals of 20 kinds, of which a sequence restricts some by a chain of ends. Varied are the share of starts among these
ends (Table 2), the length of the sequence, that of the intervals, and how many there are in a window, from 50 to 800.
The paper has 200 intervals in a window and sequences of 10 elsewhere; less is usual here, since the executions are
plain Python. Of 800 a window there are four in a sequence: ten have thousands of millions of matches. Beginnings are
told to all. Measured are pairs of intervals that were compared, intervals that are kept on average at the end of a
batch, and time. Beside them stands what the paper says.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import Figure, declared
from tidegate.algebra.ordered.match.node import Match
from tidegate.runtime.testkit.interval_executions import (
    EXECUTIONS,
    Arrival,
    Execution,
    IntervalExecution,
    arrivals,
)
from tidegate.runtime.testkit.interval_lists import interval_list

KINDS, WINDOW = 20, 10_000
#: What the paper says of its figures, in its words' order: experiment, and what it saw.
PAPER = {
    "share of starts": "stacks / naive 0.4 without starts, 1.03 to 1.12 from 80 % on; less than 5 % less is kept",
    "length": "punctuated / stacks 0.55 to 0.34, falling with the length; kept: steady",
    "interval length": "both gain more, and keep less, with longer intervals",
    "density": "naive grows sharply from 200 on, and stacks beside punctuated; sparser input keeps less",
}
Interval = tuple[str, int, int]


@dataclass(frozen=True, slots=True)
class Setting:
    """A sequence of so many intervals, of whose ends so many in a hundred are starts; average length of an interval as
    a part of the window; intervals in a window, and how many windows there are.
    """

    length: int
    starts: int
    part: float
    density: int
    windows: int

    def text(self) -> str:
        """The sequence: a chain of one end of each of its intervals."""
        names = [f"K{n}" for n in range(self.length)]
        many = round(self.length * self.starts / 100)
        # Starts and ends take turns as evenly as they can.
        ends = ["ts" if (n + 1) * many // self.length > n * many // self.length else "te" for n in range(self.length)]
        chain = " < ".join(f"{name}.{end}" for name, end in zip(names, ends, strict=True))
        return f"EVENT ISEQ [{chain}] ({', '.join(names)}; {WINDOW})"

    def intervals(self, seed: int = 1) -> list[Interval]:
        rng = random.Random(seed)
        found = []
        for _ in range(self.density * self.windows):
            middle = rng.uniform(0, self.windows * WINDOW)
            half = max(1.0, rng.gauss(self.part * WINDOW, self.part * WINDOW / 4) / 2)
            found.append((f"K{rng.randrange(KINDS)}", int(middle - half), int(middle + half) + 1))
        return found


@dataclass(frozen=True, slots=True)
class Measured:
    """Pairs compared, average of what is kept, seconds of processor time, and results."""

    tested: int
    kept: float
    seconds: float
    results: int


#: What is usual here, and in how many intervals the fourth experiment has which numbers in a window.
BASE = Setting(length=6, starts=50, part=1 / 10, density=60, windows=4)
DENSE, DENSITIES = 4, (50, 100, 200, 400, 800)
#: Batches of a window.
STEPS = 10


def sequence(setting: Setting) -> tg.Relation:
    rows = tg.stream(
        "E",
        "id bigint, kind string, a bigint, z bigint",
        progress="z",
        relations=lambda e: e.a < e.z,
        begins=tg.Begins(id="id", start="a", end="z"),
    )
    given = {
        f"K{n}": rows.where(rows.kind == f"K{n}").select("a", "z").as_intervals(start="a", end="z", name=f"K{n}")
        for n in range(setting.length)
    }
    return tg.read_query(setting.text(), given)


def batches(setting: Setting, intervals: Sequence[Interval]) -> Iterator[tuple[int, list[Arrival]]]:
    """What comes of the kinds that the sequence restricts, some times a window, and up to when it is complete."""
    kinds = {f"K{n}" for n in range(setting.length)}
    coming = arrivals(interval for interval in intervals if interval[0] in kinds)
    step = WINDOW // STEPS
    for number, some in groupby(coming, key=lambda arrival: arrival.at // step):
        yield (number + 1) * step - 1, list(some)


def measure(setting: Setting, execution: Execution, intervals: Sequence[Interval]) -> Measured:
    node = sequence(setting)._node
    assert isinstance(node, Match)
    running = IntervalExecution(interval_list(node), execution)
    kept, results, seconds = [], 0, 0.0
    for _, coming in batches(setting, intervals):
        began = time.process_time()
        results += sum(len(running.arrive(arrival)) for arrival in coming)
        seconds += time.process_time() - began
        kept.append(running.ended())
    return Measured(running.tested, statistics.mean(kept), seconds, results)


def own(setting: Setting, intervals: Sequence[Interval]) -> Measured:
    """The library's execution, which frees what it can after each batch. What it compares it does not count."""
    kept, seconds = [], 0.0
    with tg.program(R=sequence(setting)).session(threads=1, collect_garbage="exact") as session:
        for reached, coming in batches(setting, intervals):
            rows = [(arrival.id, arrival.role, arrival.ts, arrival.te) for arrival in coming]
            began = time.process_time()
            session.push("E", rows)
            session.advance("E", reached)
            report = session.step()
            seconds += time.process_time() - began
            kept.append(sum(count for name, count in report.live_rows.items() if name.startswith("E#")))
        session.finish()
        session.step()
        results = len(session.results("R"))
    return Measured(0, statistics.mean(kept), seconds, results)


def experiments(base: Setting, densities: Sequence[int] = DENSITIES) -> Iterator[tuple[str, str, Setting]]:
    """The name of each experiment, what is varied, and the setting."""
    for starts in range(0, 101, 20):
        yield "share of starts", f"{100 - starts}t-{starts}s", replace(base, starts=starts)
    for length in range(2, 19, 4):
        yield "length", str(length), replace(base, length=length)
    for divisor in (100, 50, 20, 10, 5):
        yield "interval length", f"W/{divisor}", replace(base, part=1 / divisor)
    for density in densities:
        yield "density", str(density), replace(base, length=min(base.length, DENSE), density=density, part=1 / 20)


def run(base: Setting, densities: Sequence[int] = DENSITIES) -> Iterator[tuple[str, str, list[Measured]]]:
    """Of each setting the experiment, what is varied, and what each execution and the library took, in this order."""
    for experiment, varied, setting in experiments(base, densities):
        intervals = setting.intervals()
        found = [*(measure(setting, execution, intervals) for execution in EXECUTIONS), own(setting, intervals)]
        if len({one.results for one in found}) > 1:
            raise RuntimeError(f"{experiment}, {varied}: results differ: {found}")
        yield experiment, varied, found


def figures(base: Setting = BASE, densities: Sequence[int] = DENSITIES) -> list[Figure]:
    """Of each experiment what is kept, how many pairs are compared, and the time, one execution beside the other."""
    made = []
    naive, stacks, punctuated = range(len(EXECUTIONS))
    by_experiment: dict[str, list[list[Measured]]] = {}
    for experiment, _, found in run(base, densities):
        by_experiment.setdefault(experiment, []).append(found)
    for experiment, settings in by_experiment.items():
        title = f"interval sequences, {experiment}"
        kept = [found[-1].kept / max(found[punctuated].kept, 1e-9) for found in settings]
        made.append(declared(f"{title}: kept, embedded / punctuated, worst", max(kept), _all(kept)))
        for one, other in ((punctuated, stacks), (stacks, naive)):
            sides = f"{EXECUTIONS[one]} / {EXECUTIONS[other]}"
            pairs = [found[one].tested / max(found[other].tested, 1) for found in settings]
            made.append(declared(f"{title}: pairs, {sides}", statistics.median(pairs), _all(pairs)))
            times = [found[one].seconds / max(found[other].seconds, 1e-9) for found in settings]
            detail = f"{_all(times)}; the paper: {PAPER[experiment]}"
            made.append(declared(f"{title}: time, {sides}", statistics.median(times), detail))
        times = [found[-1].seconds / max(found[punctuated].seconds, 1e-9) for found in settings]
        made.append(declared(f"{title}: time, embedded / punctuated", statistics.median(times), _all(times)))
    for figure in made:
        print(figure.line(), flush=True)
    return made


def _all(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=BASE.windows)
    parser.add_argument("--density", type=int, default=BASE.density)
    parser.add_argument("--length", type=int, default=BASE.length)
    options = parser.parse_args()
    base = replace(BASE, length=options.length, density=options.density, windows=options.windows)
    names = [*EXECUTIONS, "own"]
    three = ", ".join(EXECUTIONS)
    print(
        f"| experiment | | results | pairs compared: {three} | kept: {', '.join(names)} | seconds: {', '.join(names)} |"
    )
    print("| --- | --- | --- | --- | --- | --- |")
    for experiment, varied, found in run(base):
        tested = ", ".join(f"{one.tested:,}" for one in found[:3])
        kept = ", ".join(f"{one.kept:.1f}" for one in found)
        seconds = ", ".join(f"{one.seconds:.2f}" for one in found)
        print(f"| {experiment} | {varied} | {found[-1].results:,} | {tested} | {kept} | {seconds} |", flush=True)
    for experiment, said in PAPER.items():
        print(f"paper, {experiment}: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
