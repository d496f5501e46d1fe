"""Linear Road: how many reports a second the queries answer on one core.

    python benchmarks/linear_road.py --roads 16 64

Input is the stretch from `--start` on, at the peak of the three hours, in batches of `--together` seconds. Before it
comes, as fast as possible, the last report of every car that was there earlier, so that of cars is kept what a full run
would keep. Roads beyond `--distinct` are copies of those with other cars. Answers of the first ones are compared with
the checker's, and of the others there have to be as many. Seconds are those of this process.

How many roads are answered in time, `linear_road_rating.py` measures.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

if __name__ == "__main__":  # before Polars counts cores
    os.environ.setdefault("POLARS_MAX_THREADS", "1")

import polars as pl
import pyarrow as pa

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.figures import machine
from benchmarks.linear_road_answers import LIMITS, Tally, wanted
from benchmarks.linear_road_input import ahead, before, own_rows
from examples.linear_road.queries import DISTANCES, program
from tidegate.runtime.connectors.sinks import CallbackSink, DiscardSink, Sink
from tidegate.runtime.engines.embedded.executor import EmbeddedExecutor
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.ordered.row_operator import RowOperator


@dataclass(frozen=True, slots=True)
class Measured:
    """What so many roads took: rows of the stretch, seconds of one core, those of the longest batch; whether the
    answers were right.
    """

    roads: int
    rows: int
    seconds: float
    longest: float
    right: bool
    bytes: float
    """Bytes of memory that operators hold, for each car that there ever was."""

    @property
    def row(self) -> float:
        """Microseconds of one core a row."""
        return 1e6 * self.seconds / self.rows


def measure(total: int, chosen: argparse.Namespace, folder: Path) -> Measured:
    """Prints what so many roads take."""
    start, end = chosen.start, chosen.start + chosen.seconds
    distinct = min(total, chosen.distinct)
    seconds = ahead(distinct, total, start, end, folder)
    tally = Tally(distinct, start)
    sinks: dict[str, Sink] = {query.stream: DiscardSink() for query in program.definition.queries}
    sinks |= {name: counting(tally, name) for name in LIMITS}
    with program.session(statics={"Distances": DISTANCES}, sinks=sinks, threads=chosen.threads) as session:
        cars = 0
        for part in before("last", distinct, total, start):
            session.push("Road", part)
            session.advance("Road", int(part.select(pl.max("time")).item()))
            session.step()
            cars += part.height
        taken = []
        for first in range(0, len(seconds), chosen.together):
            some = seconds[first : first + chosen.together]
            used = time.process_time()
            session.push("Road", pl.concat([pl.read_parquet(second.folder / "*.parquet") for second in some]))
            session.advance("Road", some[-1].time)
            session.step()
            taken.append(time.process_time() - used)
        kept = sum(session.live_rows().values())
        held = held_bytes(session)
    right = tally.right(wanted(own_rows("last", distinct, start, end), start), total)
    rows, spent = sum(second.rows for second in seconds), sum(taken)
    made = Measured(total, rows, spent, max(taken), right, sum(held.values()) / cars)
    print(
        f"{total} roads, {rows / (end - start):,.0f} rows/s for {end - start} s in {len(taken)} batches; {cars:,} cars "
        f"before, {kept:,} rows kept: {rows / spent:,.0f} rows/s of one core, {made.row:.2f} µs a row, "
        f"longest batch {made.longest:.2f} s; answers {'right' if right else 'WRONG'}"
    )
    print(f"  {made.bytes:.0f} bytes a car: {of_each(held, cars)}")
    return made


def held_bytes(session: Session) -> dict[str, int]:
    """The bytes of memory that the operators of queries hold by car, by query."""
    executor = session._runner.executor
    assert isinstance(executor, EmbeddedExecutor)
    operators = {name: one.operator for name, one in executor.operators.known.items()}
    return {
        name: operator.settled().nbytes
        for name, operator in operators.items()
        if isinstance(operator, RowOperator) and "vid" in operator.settled().partitions.schema
    }


def of_each(held: Mapping[str, int], cars: int) -> str:
    """What each operator holds for a car, the most first."""
    return ", ".join(f"{name} {held[name] / cars:.1f}" for name in sorted(held, key=held.__getitem__, reverse=True))


def counting(tally: Tally, name: str) -> CallbackSink:
    """A sink that counts the rows of a result."""

    def take(table: pa.Table, _: int) -> None:
        tally.add(name, pl.DataFrame(table))

    return tg.callback(take)


def main() -> int:
    """Prints the figures; the exit status says whether all answers were right."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--roads", type=int, nargs="+", default=[16])
    options.add_argument("--distinct", type=int, default=1)
    options.add_argument("--start", type=int, default=7050)
    options.add_argument("--seconds", type=int, default=100)
    options.add_argument("--together", type=int, default=1, help="seconds of a batch")
    options.add_argument("--threads", type=int, default=1)
    options.add_argument("--json", type=Path, metavar="FILE", help="for the figures, too")
    chosen = options.parse_args()
    print(machine())
    with tempfile.TemporaryDirectory() as folder:
        found = [measure(total, chosen, Path(folder) / str(total)) for total in chosen.roads]
    if chosen.json is not None:
        chosen.json.write_text(json.dumps([asdict(made) for made in found]), encoding="utf-8")
    return 0 if all(made.right for made in found) else 1


if __name__ == "__main__":
    sys.exit(main())
