"""Generated input as Parquet files of so many seconds each, and as rows.

python -m examples.linear_road.files FOLDER --roads 256 --distinct 8 --start 6900 --end 7200
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import polars as pl

from examples.linear_road.generator import CARS, QUESTIONS, Columns, Options, Road
from examples.linear_road.rows import DURATION, PERIOD, POSITION, Row


def rows(roads: Sequence[Road], end: int = DURATION) -> list[Row]:
    """The input of these roads, in order of time."""
    found = [
        Row(*values)
        for step in steps(roads, len(roads), end)
        for values in zip(*(step[name].tolist() for name in Row._fields), strict=True)
    ]
    return sorted(found, key=lambda row: row.time)


def steps(roads: Sequence[Road], total: int, end: int = DURATION, start: int = 0) -> Iterator[Columns]:
    """The rows of `total` roads, step by step in order of time; those that are more than there are, are the same ones
    again with other cars and questions. Steps that are over before `start` are made and not given.
    """
    for begin, parts in zip(range(0, end, PERIOD), zip(*(road.steps(end) for road in roads), strict=True), strict=True):
        if begin + PERIOD <= start:
            continue
        copies = [
            _renumbered(parts[number % len(roads)], number - number % len(roads))
            if number >= len(roads)
            else parts[number]
            for number in range(total)
        ]
        whole = {name: np.concatenate([part[name] for part in copies]) for name in Row._fields}
        order = np.argsort((whole["time"] - whole["time"].min()).astype(np.int8), kind="stable")
        yield {name: values[order] for name, values in whole.items()}


def history(roads: Sequence[Road], total: int, end: int) -> pl.DataFrame:
    """The last report before `end` of every car that ever was on these roads, in order of time: what queries keep of
    the past, without the past.
    """
    last = pl.DataFrame()
    for parts in zip(*(road.steps(end) for road in roads), strict=True):
        reports = pl.concat([pl.DataFrame(dict(part)).filter(pl.col("type") == POSITION) for part in parts])
        last = pl.concat([last, reports]).unique("vid", keep="last") if last.height else reports
    own = {name: last[name].to_numpy() for name in Row._fields}
    number = len(roads)
    copies = [pl.DataFrame(dict(_renumbered(own, by))) for by in range(number, total, number)]
    whole = pl.concat([last, *copies], how="vertical_relaxed")
    return whole.filter(pl.col("xway") < total).sort("time")


def _renumbered(columns: Columns, by: int) -> Columns:
    """The same road under a number that is greater by `by`, with cars and questions of its own."""
    shifts = {"vid": by * CARS, "xway": by, "qid": by * QUESTIONS}
    shifted = {name: np.where(columns[name] < 0, -1, columns[name] + np.int64(shift)) for name, shift in shifts.items()}
    return {**columns, **shifted}


def write(
    folder: Path, roads: Sequence[Road], total: int, start: int = 0, end: int = DURATION, seconds: int = 1
) -> list[Path]:
    """The input from `start` up to before `end` as files of so many seconds, a divisor of thirty. What comes before is
    made and not written, so that all cars are there which would be.
    """
    folder.mkdir(parents=True)
    written = []
    for step in steps(roads, total, end, start):
        first = int(step["time"][0])
        for begin in range(max(first, start), min(first + PERIOD, end), seconds):
            low, high = np.searchsorted(step["time"], [begin, begin + seconds])
            frame = pl.DataFrame({name: values[low:high] for name, values in step.items()})
            written.append(folder / f"{begin:05d}.parquet")
            frame.write_parquet(written[-1], compression="lz4", statistics=False)
    return written


def main() -> None:
    """Writes files, and says how many rows there are."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("folder", type=Path)
    options.add_argument("--roads", type=int, default=1)
    options.add_argument("--distinct", type=int, default=8, help="roads that are made; the others are copies of them")
    options.add_argument("--start", type=int, default=0)
    options.add_argument("--end", type=int, default=DURATION)
    options.add_argument("--seconds", type=int, default=1)
    options.add_argument("--seed", type=int, default=1)
    chosen = options.parse_args()
    roads = [Road(number, Options(seed=chosen.seed)) for number in range(min(chosen.roads, chosen.distinct))]
    files = write(chosen.folder, roads, chosen.roads, chosen.start, chosen.end, chosen.seconds)
    count = sum(pl.scan_parquet(file).select(pl.len()).collect().item() for file in files)
    print(f"{count:,} rows in {len(files)} files, {count / (chosen.end - chosen.start):,.0f} a second")


if __name__ == "__main__":
    main()
