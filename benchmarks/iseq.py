"""The four experiments of the ISEQ paper (DEBS 2011, Section 4), with its three executions and the library's own.

    python benchmarks/iseq.py [--windows 2] [--density 200] [--length 10] [--only DENSITY]

Intervals of 20 kinds, 200 of them in a window, of which a sequence restricts 10 by a chain of ends. Varied are the
share of starts among these ends (all eleven of Table 2), the length of the sequence, that of the intervals, and how
many there are in a window, from 50 to 800. All this is as the paper has it, save one thing: the sequences of the
fourth experiment have 4 intervals instead of 10, of which 800 a window have thousands of millions of combinations.
There are as many intervals in each of its settings. Every setting has results, and all executions the same.

Beginnings are told to all. Measured are pairs of intervals that were compared, intervals that are kept on average at
the end of a batch, and processor time: three rounds, in each of which all executions take turns, and each is repeated
until it has run for a third of a second. Beside them stands what the paper says.
"""

from __future__ import annotations

import argparse
import random
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from pathlib import Path
from typing import Literal

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import PAIRS, Figure, declared
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
#: Seconds of processor time for which a way runs at least, again and again.
LEAST = 0.3
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

    @property
    def ends(self) -> list[Literal["ts", "te"]]:
        """Of each interval of the sequence the end that is restricted: starts and ends take turns as evenly as they
        can.
        """
        many = round(self.length * self.starts / 100)
        return ["ts" if (n + 1) * many // self.length > n * many // self.length else "te" for n in range(self.length)]

    def text(self) -> str:
        """The sequence: a chain of one end of each of its intervals."""
        names = [f"K{n}" for n in range(self.length)]
        chain = " < ".join(f"{name}.{end}" for name, end in zip(names, self.ends, strict=True))
        return f"EVENT ISEQ [{chain}] ({', '.join(names)}; {WINDOW})"

    def intervals(self, seed: int = 1) -> list[Interval]:
        """Intervals at random. In each window one combination gets the kinds that it needs, so that there are results:
        of 18 kinds there would be hardly any.
        """
        rng = random.Random(seed)
        found = []
        for _ in range(self.density * self.windows):
            middle = rng.uniform(0, self.windows * WINDOW)
            half = max(1.0, rng.gauss(self.part * WINDOW, self.part * WINDOW / 4) / 2)
            found.append((f"K{rng.randrange(KINDS)}", int(middle - half), int(middle + half) + 1))
        for first in range(0, self.windows * WINDOW, WINDOW):
            reached = first
            free = {n for n, (_, ts, te) in enumerate(found) if first <= ts and te < first + WINDOW}
            for number, end in enumerate(self.ends):
                place = 1 if end == "ts" else 2
                later = [n for n in free if int(found[n][place]) > reached]
                if not later:
                    break
                nearest = min(later, key=lambda n: (found[n][place], n))
                reached = int(found[nearest][place])
                found[nearest] = (f"K{number}", *found[nearest][1:])
                free.remove(nearest)
        return found


#: The ways that are compared. The library's own frees what it can after each batch, or by default.
Way = Literal["naive", "stacks", "punctuated", "embedded"]
WAYS: tuple[Way, ...] = (*EXECUTIONS, "embedded")


@dataclass(frozen=True, slots=True)
class Measured:
    """Pairs compared, averages of the intervals that are kept and of the beginnings that are remembered beside them,
    seconds of processor time, and results. The library's own execution does not count what it compares, and the
    paper's keep beginnings and intervals together: both are 0 then.
    """

    tested: int
    kept: float
    begun: float
    seconds: float
    results: int


#: What is usual here, as in the paper, and of how many intervals the sequences of the fourth experiment are.
BASE = Setting(length=10, starts=50, part=1 / 10, density=200, windows=2)
DENSE, DENSITIES, LENGTHS, PARTS = 4, (50, 100, 200, 400, 800), (2, 6, 10, 14, 18), (100, 50, 20, 10, 5)
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


def measure(setting: Setting, way: Way, intervals: Sequence[Interval]) -> Measured:
    """One way, repeated until it has run for `LEAST`: the time is that of one run."""
    once: Callable[[], Measured]
    once = (lambda: own(setting, intervals)) if way == "embedded" else (lambda: executed(setting, way, intervals))
    runs = [once()]
    while sum(run.seconds for run in runs) < LEAST:
        runs.append(once())
    return replace(runs[0], seconds=statistics.mean(run.seconds for run in runs))


def executed(setting: Setting, execution: Execution, intervals: Sequence[Interval]) -> Measured:
    """One of the paper's executions, in plain Python."""
    node = sequence(setting)._node
    assert isinstance(node, Match)
    running = IntervalExecution(interval_list(node), execution)
    kept, results, seconds = [], 0, 0.0
    for _, coming in batches(setting, intervals):
        began = time.process_time()
        results += sum(len(running.arrive(arrival)) for arrival in coming)
        seconds += time.process_time() - began
        kept.append(running.ended())
    return Measured(running.tested, statistics.mean(kept), 0, seconds, results)


def own(
    setting: Setting, intervals: Sequence[Interval], collect_garbage: Literal["exact", "amortised"] = "exact"
) -> Measured:
    """The library's execution, which frees what it can after each batch, or what is worth it."""
    kept, begun, seconds = [], [], 0.0
    with tg.program(R=sequence(setting)).session(threads=1, collect_garbage=collect_garbage) as session:
        for reached, coming in batches(setting, intervals):
            rows = [(arrival.id, arrival.role, arrival.ts, arrival.te) for arrival in coming]
            began = time.process_time()
            session.push("E", rows)
            session.advance("E", reached)
            report = session.step()
            seconds += time.process_time() - began
            kept.append(sum(count for name, count in report.live_rows.items() if name.startswith("E#")))
            begun.append(report.live_rows["beginnings of E"])
        session.finish()
        session.step()
        results = len(session.results("R"))
    return Measured(0, statistics.mean(kept), statistics.mean(begun), seconds, results)


def experiments(base: Setting, densities: Sequence[int] = DENSITIES) -> Iterator[tuple[str, str, Setting]]:
    """The name of each experiment, what is varied, and the setting."""
    for starts in range(0, 101, 10):
        yield "share of starts", f"{100 - starts}t-{starts}s", replace(base, starts=starts)
    for length in LENGTHS:
        yield "length", str(length), replace(base, length=length)
    for divisor in PARTS:
        yield "interval length", f"W/{divisor}", replace(base, part=1 / divisor)
    for density in densities:
        windows = base.windows * max(densities) // density
        dense = replace(base, length=min(base.length, DENSE), density=density, part=1 / 20, windows=windows)
        yield "density", str(density), dense


#: What each way took, in each round.
Rounds = dict[Way, list[Measured]]


def run(
    base: Setting, densities: Sequence[int] = DENSITIES, only: str | None = None, rounds: int = PAIRS
) -> Iterator[tuple[str, str, Setting, Rounds]]:
    """Of each setting the experiment, what is varied, and what each way took: the ways take turns."""
    for experiment, varied, setting in experiments(base, densities):
        if only not in (None, experiment):
            continue
        intervals = setting.intervals()
        found: Rounds = {way: [] for way in WAYS}
        for _ in range(rounds):
            for way in WAYS:
                found[way].append(measure(setting, way, intervals))
        if len({one.results for of_way in found.values() for one in of_way}) > 1:
            raise RuntimeError(f"{experiment}, {varied}: results differ: {found}")
        if not found["embedded"][0].results:
            raise RuntimeError(f"{experiment}, {varied}: no results, so nothing is compared")
        yield experiment, varied, setting, found


@dataclass(frozen=True, slots=True)
class Ratio:
    """What one way took beside another in a setting, in each round: the median, with the least and the greatest."""

    of: tuple[float, ...]

    @classmethod
    def of_time(cls, found: Rounds, one: Way, other: Way) -> Ratio:
        return cls(tuple(a.seconds / b.seconds for a, b in zip(found[one], found[other], strict=True)))

    @property
    def median(self) -> float:
        return statistics.median(self.of)

    def __str__(self) -> str:
        return f"{self.median:.2f} ({min(self.of):.2f}-{max(self.of):.2f})"


def figures(base: Setting = BASE, densities: Sequence[int] = DENSITIES, rounds: int = PAIRS) -> list[Figure]:
    """Of each experiment what is kept, how many pairs are compared, and the time, one execution beside the other."""
    made = []
    by_experiment: dict[str, dict[str, Rounds]] = {}
    for experiment, varied, _, found in run(base, densities, rounds=rounds):
        by_experiment.setdefault(experiment, {})[varied] = found
    for experiment, settings in by_experiment.items():
        title = f"interval sequences, {experiment}"
        kept = [found["embedded"][0].kept / max(found["punctuated"][0].kept, 1e-9) for found in settings.values()]
        made.append(declared(f"{title}: kept, embedded / punctuated, worst", max(kept), _all(kept)))
        sides: tuple[tuple[Way, Way], ...] = (("punctuated", "stacks"), ("stacks", "naive"))
        for one, other in sides:
            pairs = [found[one][0].tested / max(found[other][0].tested, 1) for found in settings.values()]
            made.append(declared(f"{title}: pairs, {one} / {other}", statistics.median(pairs), _all(pairs)))
            times = _times(settings, one, other)
            detail = f"{_each(times)}; the paper: {PAPER[experiment]}"
            made.append(declared(f"{title}: time, {one} / {other}", _median(times), detail))
        times = _times(settings, "embedded", "punctuated")
        made.append(declared(f"{title}: time, embedded / punctuated", _median(times), _each(times)))
    made += _beside_the_paper(by_experiment)
    for figure in made:
        print(figure.line(), flush=True)
    return made


def _beside_the_paper(of: dict[str, dict[str, Rounds]]) -> Iterator[Figure]:
    """The ratios that the paper tells in numbers, which are the targets."""
    shares, lengths = of["share of starts"], of["length"]
    first, last = str(min(LENGTHS)), str(max(LENGTHS))
    for name, ratios in (
        ("share of starts: time, stacks / naive, no starts", {"": Ratio.of_time(shares["100t-0s"], "stacks", "naive")}),
        (
            "share of starts: time, stacks / naive, from 80 % of starts on, worst",
            _times({varied: shares[varied] for varied in ("20t-80s", "10t-90s", "0t-100s")}, "stacks", "naive"),
        ),
        ("share of starts: time, punctuated / naive, worst", _times(shares, "punctuated", "naive")),
        ("length: time, punctuated / stacks, shortest", {"": Ratio.of_time(lengths[first], "punctuated", "stacks")}),
        ("length: time, punctuated / stacks, longest", {"": Ratio.of_time(lengths[last], "punctuated", "stacks")}),
    ):
        worst = max(ratio.median for ratio in ratios.values())
        yield declared(f"interval sequences, {name}", worst, _each(ratios))


def _times(settings: dict[str, Rounds], one: Way, other: Way) -> dict[str, Ratio]:
    return {varied: Ratio.of_time(found, one, other) for varied, found in settings.items()}


def _median(ratios: dict[str, Ratio]) -> float:
    return statistics.median(ratio.median for ratio in ratios.values())


def _each(ratios: dict[str, Ratio]) -> str:
    return ", ".join(f"{varied} {ratio}".strip() for varied, ratio in ratios.items())


def _all(ratios: Sequence[float]) -> str:
    return ", ".join(f"{ratio:.2f}" for ratio in ratios)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", type=int, default=BASE.windows)
    parser.add_argument("--density", type=int, default=BASE.density)
    parser.add_argument("--length", type=int, default=BASE.length)
    parser.add_argument("--only", choices=PAPER, help="one of the experiments")
    options = parser.parse_args()
    base = replace(BASE, length=options.length, density=options.density, windows=options.windows)
    ways = ", ".join(WAYS)
    heads = (
        "experiment",
        "",
        "results",
        f"pairs compared: {', '.join(EXECUTIONS)}",
        f"intervals kept: {ways} + beginnings, embedded by default + beginnings",
        f"seconds: {ways}",
    )
    print(f"| {' | '.join(heads)} |\n{'| --- ' * len(heads)}|")
    for experiment, varied, setting, found in run(base, only=options.only):
        first = [found[way][0] for way in WAYS]
        tested = ", ".join(f"{one.tested:,}" for one in first[:-1])
        by_default = own(setting, setting.intervals(), "amortised")
        kept = ", ".join(f"{one.kept:.1f}" for one in first)
        kept += f" + {first[-1].begun:.1f}, {by_default.kept:.1f} + {by_default.begun:.1f}"
        seconds = ", ".join(f"{statistics.median(one.seconds for one in found[way]):.3f}" for way in WAYS)
        print(f"| {experiment} | {varied} | {first[-1].results:,} | {tested} | {kept} | {seconds} |", flush=True)
    for experiment, said in PAPER.items():
        if options.only in (None, experiment):
            print(f"paper, {experiment}: {said}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
