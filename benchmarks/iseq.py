"""The four experiments of the ISEQ paper (DEBS 2011, Section 4), with its three executions and the library's own.

    python benchmarks/iseq.py [--windows 6] [--density 60] [--length 6]

Intervals of 20 kinds, of which a sequence restricts some by a chain of ends. Varied are the share of starts among these
ends (Table 2), the length of the sequence, that of the intervals, and how many there are in a window. The paper has 200
intervals in a window and sequences of 10; less is usual here, since the executions are plain Python. Counted is what
does not depend on the machine: pairs of intervals that were compared, and intervals and beginnings that are kept on
average. Beside them stands what the paper says.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import Figure, declared
from tidegate.algebra.ordered.match.node import Match
from tidegate.runtime.testkit.interval_executions import EXECUTIONS, Execution, IntervalExecution, arrivals
from tidegate.runtime.testkit.interval_lists import interval_list

KINDS, WINDOW = 20, 10_000
#: What the paper says of its figures, in its words' order: experiment, and what it saw.
PAPER = {
    "share of starts": "time: stacks −60 % without starts, +3 to +12 % from 80 % on; kept: less than 5 % less",
    "length": "time: punctuated 45 to 66 % less than stacks, growing with length; kept: steady",
    "interval length": "time and kept: longer intervals gain more",
    "density": "time: naive grows sharply from 200 on; kept: sparser input gains more",
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


#: What is usual here.
BASE = Setting(length=6, starts=50, part=1 / 10, density=60, windows=6)


def sequence(setting: Setting) -> tg.Relation:
    rows = tg.stream("E", "kind string, a bigint, z bigint", progress="z", relations=lambda e: e.a < e.z)
    given = {
        f"K{n}": rows.where(rows.kind == f"K{n}").select("a", "z").as_intervals(start="a", end="z", name=f"K{n}")
        for n in range(setting.length)
    }
    return tg.read_query(setting.text(), given)


def measure(setting: Setting, execution: Execution, intervals: Sequence[Interval]) -> Measured:
    node = sequence(setting)._node
    assert isinstance(node, Match)
    running = IntervalExecution(interval_list(node), execution)
    coming = [arrival for arrival in arrivals(intervals) if arrival.role in node.symbols]
    began, results = time.process_time(), 0
    for arrival in coming:
        results += len(running.arrive(arrival))
    seconds = time.process_time() - began
    return Measured(running.tested, running.total / max(len(coming), 1), seconds, results)


def own(setting: Setting, intervals: Sequence[Interval]) -> Measured:
    """The library's execution, ten batches a window. What it compares it does not count."""
    rows = sorted(intervals, key=lambda interval: interval[2])
    size = max(setting.density // 10, 1)
    batches = [rows[at : at + size] for at in range(0, len(rows), size)]
    kept = results = 0
    with tg.program(R=sequence(setting)).session(threads=1) as session:
        began = time.process_time()
        for batch in batches:
            session.push("E", batch)
            session.advance("E", batch[-1][2] - 1)
            report = session.step()
            kept += sum(report.live_rows.values())
        session.finish()
        session.step()
        seconds = time.process_time() - began
        results = len(session.results("R"))
    return Measured(0, kept / len(batches), seconds, results)


def experiments(base: Setting) -> Iterator[tuple[str, str, Setting]]:
    """The name of each experiment, what is varied, and the setting."""
    for starts in range(0, 101, 20):
        yield "share of starts", f"{100 - starts}t-{starts}s", replace(base, starts=starts)
    for length in range(2, 19, 4):
        yield "length", str(length), replace(base, length=length)
    for divisor in (100, 50, 20, 10, 5):
        yield "interval length", f"W/{divisor}", replace(base, part=1 / divisor)
    for density in (base.density // 4, base.density // 2, base.density, base.density * 2):
        yield "density", str(density), replace(base, density=density, part=1 / 20)


def run(base: Setting) -> Iterator[tuple[str, str, list[Measured]]]:
    """Of each setting the experiment, what is varied, and what each execution and the library took, in this order."""
    for experiment, varied, setting in experiments(base):
        intervals = setting.intervals()
        found = [*(measure(setting, execution, intervals) for execution in EXECUTIONS), own(setting, intervals)]
        if len({one.results for one in found}) > 1:
            raise RuntimeError(f"{experiment}, {varied}: results differ: {found}")
        yield experiment, varied, found


def figures(base: Setting = BASE) -> list[Figure]:
    """Of each experiment what is kept and how many pairs are compared, one execution beside the other."""
    made = []
    naive, stacks, punctuated = range(len(EXECUTIONS))
    by_experiment: dict[str, list[list[Measured]]] = {}
    for experiment, _, found in run(base):
        by_experiment.setdefault(experiment, []).append(found)
    for experiment, settings in by_experiment.items():
        title = f"interval sequences, {experiment}"
        kept = [found[-1].kept / found[punctuated].kept for found in settings]
        made.append(declared(f"{title}: kept, embedded / punctuated, worst", max(kept), _all(kept)))
        for one, other in ((punctuated, stacks), (stacks, naive)):
            pairs = [found[one].tested / max(found[other].tested, 1) for found in settings]
            detail = f"{_all(pairs)}; the paper: {PAPER[experiment]}"
            name = f"{title}: pairs, {EXECUTIONS[one]} / {EXECUTIONS[other]}"
            made.append(declared(name, statistics.median(pairs), detail))
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
