"""Linear Road's rating: how many roads are answered in time, on this machine.

    python benchmarks/linear_road_rating.py --budget 3600                          # around the peak: a search
    python benchmarks/linear_road_rating.py --engine spark --budget 3600
    python benchmarks/linear_road_rating.py --roads 64 --start 0 --seconds 10800   # the rating of 64 roads

Roads are doubled until some are not answered in time, or the budget is spent; then halved in between. A number of
roads passes if every answer is right and was committed within its limit, counted from the beginning of its second, and
if answers do not come later and later.

The stretch of `--seconds` from `--start` on is fed at its own times: files lie ready, and those of a second are handed
over once it is over by the clock. They are read from a directory, with checkpoint and results on disk, or with a state
that is `--in-memory` alone. Before that the state is made that a full run would have, as fast as possible: of all that
was earlier (`--before run`), or of the last report of every car (`--before last`), which lacks what cars were charged
before; then of `--warm` seconds of input, on the engine that is rated.

It is a rating if it is fed for the whole three hours, from 0 on. The stretch around the peak says what a rating could
be.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # before Polars counts cores
    os.environ.setdefault("POLARS_MAX_THREADS", "2")

import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.figures import machine
from benchmarks.linear_road_answers import LIMITS, Tally, Wanted, wanted
from benchmarks.linear_road_engines import Batch, Embedded, Engine, OnSpark
from benchmarks.linear_road_input import Before, Feeder, Second, ahead, before, own_rows
from examples.linear_road.rows import DURATION, PERIOD
from tools.processes import cpu_seconds, family, resident_bytes

#: Seconds after the end of a stretch for which is waited for its answers.
PATIENCE = 30
#: Answers of the second half of a stretch may be so many times as late as those of the first, and so many seconds more.
LATER, SECONDS_LATER = 1.25, 0.5

#: Starts an engine in a folder, after the rows that were before.
Start = Callable[[Path, Iterable[pl.DataFrame]], Engine]


@dataclass(frozen=True, slots=True)
class Stretch:
    """What is fed at its own times, and after what."""

    start: int
    seconds: int
    warm: int
    before: Before
    distinct: int
    parts: int = 1

    @property
    def first(self) -> int:
        """Where the engine that is rated begins."""
        return max(0, self.start - self.warm)

    @property
    def end(self) -> int:
        return self.start + self.seconds

    def check(self) -> None:
        """Roads are made in steps of thirty seconds."""
        if self.start % PERIOD or self.warm % PERIOD or not 0 <= self.start < self.end <= DURATION:
            raise SystemExit(f"a stretch and what warms up begin at a multiple of {PERIOD}, within {DURATION} seconds")


@dataclass(slots=True)
class Outcome:
    """What a number of roads came to."""

    roads: int
    rates: Sequence[int]
    """Rows of each second."""
    batches: Sequence[Batch] = ()
    behind: Sequence[float] = ()
    """Of each batch, seconds from the end of its last second to its commit."""
    fed: float = 0.0
    cores: float = 0.0
    memory: int = 0
    kept: int = 0
    right: bool = False
    counts: dict[str, int] = field(default_factory=dict)
    slowest: dict[str, float] = field(default_factory=dict)

    @property
    def faults(self) -> list[str]:
        """Why it does not pass."""
        late = [name for name, limit in LIMITS.items() if self.slowest.get(name, 0.0) > limit]
        half = len(self.behind) // 2
        first, second = (sum(some) / max(len(some), 1) for some in (self.behind[:half], self.behind[half:]))
        growing = half > 0 and second > LATER * first + SECONDS_LATER
        return [
            *([f"late: {', '.join(late)}"] if late else []),
            *([f"answers come later and later: {first:.2f} s, then {second:.2f} s"] if growing else []),
            *([] if self.right else ["answers are WRONG or missing"]),
        ]

    @property
    def mean(self) -> float:
        """Rows a second."""
        return sum(self.rates) / max(len(self.rates), 1)

    @property
    def steps(self) -> dict[str, float]:
        """Seconds of all batches, step by step."""
        steps: dict[str, float] = {}
        for batch in self.batches:
            for name, seconds in batch.seconds.items():
                steps[name] = steps.get(name, 0.0) + seconds
        return steps

    @property
    def busy(self) -> float:
        """The share of the time in which a batch was at work."""
        return sum(self.steps.values()) / max(self.fed, 1e-9)

    @property
    def limit(self) -> str:
        """What limits it: the answers that come nearest to their limit, and the step that takes longest."""
        if not self.slowest or not self.steps:
            return "nothing was answered"
        kind = max(self.slowest, key=lambda name: self.slowest[name] / LIMITS[name])
        step = max(self.steps, key=lambda name: self.steps[name])
        share = self.steps[step] / max(sum(self.steps.values()), 1e-9)
        return (
            f"{kind}, {self.slowest[kind] / LIMITS[kind]:.0%} of their limit; busy {self.busy:.0%} of the time, with "
            f"{self.cores:.2f} cores, {share:.0%} of it in {step}"
        )

    def record(self) -> dict[str, Any]:
        """What is kept of it beside the rating."""
        return {
            "roads": self.roads,
            "mean": self.mean,
            "peak": max(self.rates, default=0),
            "fed": self.fed,
            "slowest": dict(self.slowest),
            "faults": self.faults,
            "limit": self.limit,
        }

    def lines(self) -> list[str]:
        """What is printed of it."""
        many, steps = max(len(self.batches), 1), self.steps
        a_batch = ", ".join(f"{name} {seconds / many:.2f}" for name, seconds in steps.items())
        verdict = "; ".join(self.faults) or "in time"
        return [
            f"{self.roads} roads: {self.mean:,.0f} rows/s in the mean, "
            f"{max(self.rates, default=0):,} at most, fed for {len(self.rates)} s: {verdict}",
            f"  {len(self.batches)} batches; busy {self.busy:.0%} of the time, {self.cores:.2f} cores; "
            f"seconds a batch: {a_batch}; {self.kept:,} rows kept, {self.memory / 1e9:.1f} GB",
            *(
                f"  {name:14}{self.counts.get(name, 0):12,}  slowest {self.slowest.get(name, 0.0):5.2f} s of {limit}"
                for name, limit in LIMITS.items()
            ),
        ]


def trial(roads: int, stretch: Stretch, engine: Start, answers: Wanted, folder: Path) -> Outcome:
    """Feeds so many roads at their own times."""
    source, results = folder / "in", folder / "out"
    source.mkdir(parents=True)
    seconds = ahead(stretch.distinct, roads, stretch.first, stretch.end, folder / "ahead", stretch.parts)
    warming = [second for second in seconds if second.time < stretch.start]
    timed = seconds[len(warming) :]
    outcome = Outcome(roads, [second.rows for second in timed])
    with engine(folder, before(stretch.before, stretch.distinct, roads, stretch.first)) as running:
        warm(running, warming, source)
        since, used = len(running.batches), cpu_seconds(family(os.getpid()))
        with Feeder(timed, source) as feeder:
            running.consume(sum(outcome.rates), feeder.at(stretch.end) + PATIENCE, feeder.handed)
            outcome.fed = time.monotonic() - feeder.began
        outcome.cores = (cpu_seconds(family(os.getpid())) - used) / outcome.fed
        outcome.memory = resident_bytes(family(os.getpid()))
        outcome.batches = running.batches[since:]
        outcome.kept = running.kept
    outcome.behind = [batch.at - feeder.at(batch.until + 1) for batch in outcome.batches]
    judge(outcome, feeder, Tally(stretch.distinct, stretch.start), answers, results)
    return outcome


def warm(engine: Engine, seconds: Sequence[Second], source: Path) -> None:
    """Feeds seconds as fast as the engine takes them, several together."""
    together = max(1, 1_000_000 // max((second.rows for second in seconds), default=1))
    for first in range(0, len(seconds), together):
        some = seconds[first : first + together]
        for second in some:
            second.hand_over(source)
        engine.consume(sum(second.rows for second in some))


def judge(outcome: Outcome, feeder: Feeder, tally: Tally, answers: Wanted, results: Path) -> None:
    """Reads the results: whether they are right, and how late each batch's were."""
    committed = {batch.number: batch.at for batch in outcome.batches}
    for name in LIMITS:
        for path in sorted((results / name).glob("*.parquet")):
            number = int(path.name.split("-")[1])
            if number not in committed:
                continue
            found = tally.add(name, pl.read_parquet(path))
            if found.height:
                late = committed[number] - feeder.at(int(found.select(pl.min("time")).item()))
                outcome.slowest[name] = max(late, outcome.slowest.get(name, 0.0))
    outcome.counts, outcome.right = dict(tally.counts), tally.right(answers, outcome.roads)


def search(
    passes: Callable[[int], bool], first: int, step: int, most: int, left: Callable[[], float], fed: float = 0.0
) -> tuple[int, int | None]:
    """The greatest number of roads that passes, and the least that does not, as far as the budget goes.

    Numbers are multiples of `step`. `left` are the seconds that are left. A number is tried if that is expected to be
    over before: a try takes the seconds for which roads are `fed`, and as many more as the roads are many.
    """
    good, bad, roads = 0, None, first
    while True:
        had = left()
        if passes(roads):
            good = roads
        else:
            bad = roads
        a_road = max(had - left() - fed, 0.0) / roads
        if bad is None:
            roads = min(2 * good, most)
        elif bad - good <= max(step, good // 8):
            return good, bad
        else:
            roads = max(step, (good + bad) // 2 // step * step)
        if roads in (good, bad) or fed + a_road * roads > left():
            return good, bad


def main() -> int:
    """Prints each trial; the exit status says whether all that was asked for by `--roads` passed, or any at all."""
    chosen = _options()
    stretch = Stretch(chosen.start, chosen.seconds, chosen.warm, chosen.before, chosen.distinct, chosen.parts)
    stretch.check()
    began = time.monotonic()
    print(machine())
    print(
        f"{chosen.engine}{', in memory' if chosen.in_memory else ''}: {stretch.start} to {stretch.end} of {DURATION} "
        f"s, after {stretch.start - stretch.first} s as fast as possible, "
        f"{'the state of a full run' if stretch.before == 'run' else 'the last report of every car'} before"
        + ("" if stretch.seconds == DURATION else "; not the three hours of a rating")
    )
    answers = wanted(own_rows(stretch.before, stretch.distinct, stretch.first, stretch.end), stretch.start)

    def engine(folder: Path, parts: Iterable[pl.DataFrame]) -> Engine:
        if chosen.engine == "spark":
            return OnSpark(folder, parts, chosen.driver_memory, chosen.driver_bytes)
        return Embedded(folder, parts, chosen.threads, in_memory=chosen.in_memory)

    tried: dict[int, Outcome] = {}

    def passes(roads: int) -> bool:
        with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
            outcome = trial(roads, stretch, engine, answers, Path(folder))
        print(*outcome.lines(), sep="\n", flush=True)
        tried[roads] = outcome
        return not outcome.faults

    if chosen.roads:
        passed = [passes(roads) for roads in chosen.roads]
        return 0 if all(passed) else 1
    good, bad = search(
        passes,
        chosen.first,
        chosen.distinct,
        chosen.most,
        lambda: chosen.budget - (time.monotonic() - began),
        chosen.seconds,
    )
    print(f"{good} roads are answered in time" + ("" if bad is None else f", {bad} are not"))
    found = rated(good, bad, stretch, tried)
    print(*told(found), sep="\n")
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(found), encoding="utf-8")
    return 0 if good else 1


def rated(good: int, bad: int | None, stretch: Stretch, tried: Mapping[int, Outcome]) -> dict[str, Any]:
    """What a search has found: the rating, of which stretch it is, and what it was like with the most roads that pass
    and with the fewest that do not.
    """
    found: dict[str, Any] = {"good": good, "bad": bad, "stretch": asdict(stretch)}
    found["passes"] = tried[good].record() if good in tried else None
    found["fails"] = tried[bad].record() if bad is not None and bad in tried else None
    return found


def told(found: Mapping[str, Any]) -> list[str]:
    """A rating as it is printed: stretch, rates, the slowest answer of each kind, and what limits."""
    stretch, lines = found["stretch"], []
    for name, verdict in (("passes", "in time"), ("fails", "not in time")):
        if (record := found[name]) is not None:
            slowest = ", ".join(f"{kind} {late:.2f} s of {LIMITS[kind]}" for kind, late in record["slowest"].items())
            lines += [
                f"  {record['roads']} roads, {verdict}: seconds {stretch['start']} to "
                f"{stretch['start'] + stretch['seconds']}, fed for {record['fed']:.0f} s, {record['mean']:,.0f} rows/s "
                f"in the mean, {record['peak']:,} at the peak",
                f"    slowest: {slowest}",
                f"    limit:   {'; '.join([*record['faults'], record['limit']])}",
            ]
    return lines


def _options() -> argparse.Namespace:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--engine", choices=("embedded", "spark"), default="embedded")
    options.add_argument("--roads", type=int, nargs="+", help="these numbers of roads, and no search")
    options.add_argument("--budget", type=float, default=1800, help="seconds for the whole search")
    options.add_argument("--first", type=int, default=8, help="roads that a search begins with")
    options.add_argument("--most", type=int, default=512, help="roads that a search ends with")
    options.add_argument("--distinct", type=int, default=1, help="roads that are made; the others are copies of them")
    options.add_argument("--start", type=int, default=7050)
    options.add_argument("--seconds", type=int, default=120)
    options.add_argument("--warm", type=int, default=300)
    options.add_argument("--before", choices=("run", "last"), default="run")
    options.add_argument("--parts", type=int, default=2, help="files of a second")
    options.add_argument("--threads", type=int, default=2, help="threads that read files (embedded)")
    options.add_argument("--in-memory", action="store_true", help="no checkpoint (embedded)")
    options.add_argument("--driver-memory", default="2g", help="of Spark's JVM")
    options.add_argument("--driver-bytes", type=int, help="bytes that an increment in Spark's driver may read")
    options.add_argument("--json", type=Path, metavar="FILE", help="for what a search has found, too")
    options.add_argument("--folder", type=Path, help="where files, checkpoint and results lie while they are needed")
    return options.parse_args()


if __name__ == "__main__":
    sys.exit(main())
