"""What the queries answer to a small road for half an hour, or to a file, and whether the checker says the same.

    python -m examples.linear_road                                        # a road that is made
    python -m examples.linear_road FILE --out ANSWERS                     # rows of the benchmark
    python -m examples.linear_road FILE --lav paper --tolls TOLLS

FILE has the fifteen columns of the benchmark: Parquet with their names, or whole numbers with commas between and no
names, as a .csv, .dat or .txt. TOLLS has columns vid, day, xway and toll in the same two ways: what cars paid on days
before. ANSWERS is a new folder, in which each kind of answers is written as a Parquet file.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import polars as pl
import pyarrow as pa

import tidegate as tg
from examples.linear_road.checker import Answers, check
from examples.linear_road.files import rows
from examples.linear_road.generator import Options, Road
from examples.linear_road.queries import DISTANCES, answers, history
from examples.linear_road.rows import MILE, Lav, Row
from tidegate.runtime.connectors.sinks import CallbackSink, DiscardSink, Sink

COLUMNS: Mapping[str, tuple[str, ...]] = {
    "Notifications": ("vid", "time", "lav", "toll"),
    "Alerts": ("time", "xway", "seg", "dir", "vid"),
    "Balances": ("time", "qid", "balance"),
    "Daily": ("time", "qid", "sum"),
    "Charges": ("vid", "time", "toll"),
}
TOLLS = ("vid", "day", "xway", "toll")
TEXT = (".csv", ".dat", ".txt")
STEP = 60  # seconds of the input that are answered together


def read(file: Path, columns: Sequence[str]) -> pl.DataFrame:
    """The whole numbers of a file, by these names of its columns; `SystemExit` with a sentence where it has none."""
    try:
        given = read_numbers(file, columns)
    except (OSError, pl.exceptions.PolarsError) as error:
        lines = str(error).splitlines() or [type(error).__name__]
        raise SystemExit(f"{file} cannot be read as {len(columns)} columns of whole numbers: {lines[0]}") from None
    if any(given.null_count().row(0)):
        raise SystemExit(f"{file} has a row without all of its {len(columns)} numbers: is it cut off?")
    return given


def read_numbers(file: Path, columns: Sequence[str]) -> pl.DataFrame:
    if file.suffix in TEXT:
        return pl.read_csv(
            file, has_header=False, new_columns=list(columns), schema_overrides=[pl.Int64] * len(columns)
        )
    return pl.read_parquet(file, columns=list(columns)).cast(pl.Int64)


def steps(given: pl.DataFrame) -> Iterator[tuple[int, pl.DataFrame]]:
    """The rows in order of time, step by step, each with its last second."""
    for (number,), step in given.sort("time").group_by(pl.col("time") // STEP, maintain_order=True):
        yield (int(number) + 1) * STEP - 1, step


def answered(given: pl.DataFrame, lav: Lav, tolls: pl.DataFrame | None) -> dict[str, pl.DataFrame]:
    """What the queries answer, by the kind of answers."""
    found: dict[str, list[pl.DataFrame]] = {name: [] for name in COLUMNS}

    def collecting(name: str) -> CallbackSink:
        def take(table: pa.Table, _: int) -> None:
            found[name].append(pl.DataFrame(table).select(pl.all().cast(pl.Int64)))

        return tg.callback(take)

    statics: dict[str, object] = {"Distances": DISTANCES}
    if tolls is not None:
        statics["History"] = tolls
    program = answers(lav, None if tolls is None else history)
    sinks: dict[str, Sink] = {query.stream: DiscardSink() for query in program.definition.queries}
    sinks |= {name: collecting(name) for name in COLUMNS}
    with program.session(statics=statics, sinks=sinks) as session:
        for last, step in steps(given):
            session.push("Road", step)
            session.advance("Road", last)
            session.step()
        session.finish()
        session.process()
    return {name: pl.concat(found[name]) if found[name] else table((), name) for name in COLUMNS}


def expected(right: Answers) -> dict[str, pl.DataFrame]:
    """What the checker says, by the kind of answers."""
    return {
        "Notifications": table(right.notifications, "Notifications"),
        "Alerts": table(right.alerts, "Alerts"),
        "Balances": table([(time, qid, owed) for time, _, qid, owed in right.balances], "Balances"),
        "Daily": table(right.daily, "Daily"),
        "Charges": table(right.charges, "Charges"),
    }


def table(of: Sequence[tuple[int, ...]], name: str) -> pl.DataFrame:
    return pl.DataFrame(list(of), schema=dict.fromkeys(COLUMNS[name], pl.Int64), orient="row")


def same(found: pl.DataFrame, wanted: pl.DataFrame) -> bool:
    """Whether two tables have the same rows, each as often."""
    return found.columns == wanted.columns and found.sort(found.columns).equals(wanted.sort(wanted.columns))


def told(given: pl.DataFrame, right: Answers) -> Iterator[str]:
    """What there was on the roads."""
    minutes, above = right.minutes, sum(toll > 0 for _, _, _, toll in right.notifications)
    yield f"{given.height:,} rows, {len(right.accidents)} accidents"
    for (road, direction, _, feet), (begin, end) in sorted(right.accidents, key=lambda one: one[1]):
        yield f"  road {road}, {'west' if direction else 'east'}, segment {feet // MILE}: from {begin} to {end}"
    yield f"{minutes.all:,} minutes of segments"
    yield f"  {minutes.congested:,} congested, {minutes.blocked:,} with an accident near, {minutes.both:,} both"
    yield f"{above:,} tolls above 0"


def main(given: Sequence[str] | None = None) -> int:
    """Prints what there was and how many answers of each kind; the exit status says whether all were right."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("file", nargs="?", type=Path)
    options.add_argument(
        "--lav", choices=("reports", "paper"), default="reports", help="what the velocity is a mean of"
    )
    options.add_argument("--tolls", type=Path, help="what cars paid on days before; else that is made up")
    options.add_argument("--out", type=Path, help="a new folder for the answers")
    chosen = options.parse_args(given)
    if chosen.out is not None and chosen.out.exists():
        raise SystemExit(f"{chosen.out} is there already, and answers go to a new folder: name another one with --out")
    tolls = None if chosen.tolls is None else read(chosen.tolls, TOLLS).group_by(TOLLS[:3]).agg(pl.sum("toll"))
    if chosen.file is None:
        road = Road(0, Options(traffic=0.1, stretch=(40, 50), accidents=1 / 300))
        frame = pl.DataFrame(rows([road], 1800), schema=dict.fromkeys(Row._fields, pl.Int64), orient="row")
    else:
        frame = read(chosen.file, Row._fields)
    paid = None if tolls is None else {(vid, day, xway): toll for vid, day, xway, toll in tolls.iter_rows()}
    right = check(map(Row._make, frame.iter_rows()), paid, chosen.lav)
    print(*told(frame, right), sep="\n")
    found, wanted = answered(frame, chosen.lav, tolls), expected(right)
    equal = {name: same(found[name], wanted[name]) for name in COLUMNS}
    for name, frame in found.items():
        print(f"{name:14}{frame.height:10,}  {'as the checker says' if equal[name] else 'DIFFERENT'}")
    if chosen.out is not None:
        chosen.out.mkdir(parents=True)
        for name, frame in found.items():
            frame.write_parquet(chosen.out / f"{name}.parquet")
    return 0 if all(equal.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
