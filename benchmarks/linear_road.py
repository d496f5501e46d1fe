"""Linear Road: how many reports a second the queries answer on one core, and how many roads within the limits.

    python benchmarks/linear_road.py --roads 16 64
    python benchmarks/linear_road.py --roads 32 64 --at-their-times --seconds 180

Input is the stretch from `--start` on, at the peak of the three hours, in batches of a second. Before it comes, as fast
as possible, the last report of every car that was there earlier, so that what is kept is what a full run would keep.
Roads beyond `--distinct` are copies of those with other cars. Answers of the first ones are compared with the
checker's, and of the others there have to be as many.

As fast as possible, seconds are those of this process. With `--at-their-times` each second is given when it is over by
the clock, a batch takes all that is there, and an answer's delay is from the instant of its row to the end of the
batch. That is a rating only if it is fed for the whole three hours.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

if __name__ == "__main__":  # before Polars counts cores
    os.environ.setdefault("POLARS_MAX_THREADS", "1")

import polars as pl
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import machine
from examples.linear_road.checker import check
from examples.linear_road.files import history, steps
from examples.linear_road.generator import CARS, QUESTIONS, Road
from examples.linear_road.queries import DISTANCES, program
from examples.linear_road.rows import Row
from tidegate.runtime.connectors.sinks import CallbackSink

LIMITS = {"Notifications": 5, "Alerts": 5, "Balances": 5, "Daily": 10}  # seconds
KEYS = {"Notifications": "vid", "Alerts": "vid", "Balances": "qid", "Daily": "qid"}
CHUNK = 500_000  # rows of the history in a batch


@dataclass
class Answered:
    """What a run answers, with how late it is: the rows of the first roads, and the number of all."""

    distinct: int
    since: int
    clock: float | None = None
    counts: Counter[str] = field(default_factory=Counter)
    first: dict[str, list[pl.DataFrame]] = field(default_factory=dict)
    slowest: dict[str, float] = field(default_factory=dict)

    def sink(self, name: str) -> CallbackSink:
        def take(table: pa.Table, _: int) -> None:
            found = pl.DataFrame(table).filter(pl.col("time") >= self.since)
            if not found.height:
                return
            self.counts[name] += found.height
            per_road = CARS if KEYS[name] == "vid" else QUESTIONS
            self.first.setdefault(name, []).append(found.filter(pl.col(KEYS[name]) < self.distinct * per_road))
            if self.clock is not None:
                earliest = int(found.select(pl.min("time")).item())
                delay = time.monotonic() - self.clock - (earliest - self.since)
                self.slowest[name] = max(delay, self.slowest.get(name, 0.0))

        return tg.callback(take)

    def right(self, given: list[Row], copies: float) -> bool:
        """Whether the first roads' answers are the checker's, and there are as many of all."""
        answers = check(given)
        wanted: dict[str, Sequence[tuple[int, ...]]] = {
            "Notifications": answers.notifications,
            "Alerts": answers.alerts,
            "Balances": [(asked, qid, owed) for asked, _, qid, owed in answers.balances],
            "Daily": answers.daily,
        }
        right = True
        for name, rows in wanted.items():
            expected = Counter(row for row in rows if row[1 if name == "Notifications" else 0] >= self.since)
            found = Counter(row for frame in self.first.get(name, []) for row in frame.iter_rows())
            right = right and found == expected and self.counts[name] == expected.total() * copies
        return right


def seconds(roads: list[Road], total: int, start: int, end: int) -> Iterator[tuple[int, pl.DataFrame]]:
    """The input second by second."""
    for step in steps(roads, total, end):
        frame = pl.DataFrame(dict(step))
        for second in range(max(start, int(step["time"][0])), min(int(step["time"][0]) + 30, end)):
            yield second, frame.filter(pl.col("time") == second)


def made(total: int, distinct: int, start: int, end: int, folder: Path) -> tuple[list[Path], pl.DataFrame, list[Row]]:
    """The stretch as files of a second, what came before it, and both as rows of the distinct roads."""
    folder.mkdir(parents=True)
    fresh = [Road(number) for number in range(distinct)]
    before = history(fresh, total, start)
    paths = []
    for second, frame in seconds([Road(number) for number in range(distinct)], total, start, end):
        paths.append(folder / f"{second:05d}.parquet")
        frame.write_parquet(paths[-1], compression="lz4", statistics=False)
    own = pl.concat([before, *(pl.read_parquet(path) for path in paths)]).filter(pl.col("vid") < distinct * CARS)
    return paths, before, [Row(*row) for row in own.iter_rows()]


def measure(total: int, chosen: argparse.Namespace, folder: Path) -> bool:
    """Prints what so many roads take; whether the answers were right, and in time where that is asked."""
    start, end = chosen.start, chosen.start + chosen.seconds
    distinct = min(total, chosen.distinct)
    paths, before, own = made(total, distinct, start, end, folder)
    answered = Answered(distinct, start)
    sinks = {
        query.stream: answered.sink(query.stream) for query in program.definition.queries if query.stream in LIMITS
    }
    others = {query.stream: tg.callback(lambda *_: None) for query in program.definition.queries}
    with program.session(statics={"Distances": DISTANCES}, sinks=others | sinks, threads=chosen.threads) as session:
        for part in before.iter_slices(CHUNK):
            session.push("Road", part)
            session.advance("Road", int(part["time"][-1]) - 1)
            session.step()
        taken, rows = [], []
        answered.clock = began = time.monotonic()
        while paths:
            ready = 1
            if chosen.at_their_times:
                time.sleep(max(0.0, began + int(paths[0].stem) + 1 - start - time.monotonic()))
                ready = sum(began + int(path.stem) + 1 - start <= time.monotonic() for path in paths)
            used = time.process_time()
            frame = pl.concat([pl.read_parquet(path) for path in paths[:ready]])
            session.push("Road", frame)
            session.advance("Road", int(paths[ready - 1].stem))
            session.step()
            taken.append(time.process_time() - used)
            rows.append(frame.height)
            del paths[:ready]
        kept = sum(session.live_rows().values())
    right = answered.right(own, total / distinct)
    rate, spent = sum(rows) / (end - start), sum(taken)
    print(
        f"{total} roads, {rate:,.0f} rows/s for {end - start} s in {len(rows)} batches; {before.height:,} cars before, "
        f"{kept:,} rows kept: {sum(rows) / spent:,.0f} rows/s of one core, {1e6 * spent / sum(rows):.2f} µs a row, "
        f"longest batch {max(taken):.2f} s; answers {'right' if right else 'WRONG'}"
    )
    in_time = True
    if chosen.at_their_times:
        for name, limit in LIMITS.items():
            slowest = answered.slowest.get(name, 0.0)
            in_time = in_time and slowest <= limit
            print(f"  {name:14}{answered.counts[name]:12,}  slowest {slowest:5.2f} s of {limit}")
    return right and in_time


def main() -> int:
    """Prints the figures; the exit status says whether all answers were right and in time."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--roads", type=int, nargs="+", default=[16])
    options.add_argument("--distinct", type=int, default=1)
    options.add_argument("--start", type=int, default=7050)
    options.add_argument("--seconds", type=int, default=100)
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--at-their-times", action="store_true")
    chosen = options.parse_args()
    print(machine())
    fine = True
    with tempfile.TemporaryDirectory() as folder:
        for total in chosen.roads:
            fine = measure(total, chosen, Path(folder) / str(total)) and fine
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
