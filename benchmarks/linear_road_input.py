"""Input of Linear Road's benchmarks: what was before a stretch, and the stretch itself as files that are handed over
second by second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Literal

import numpy as np
import polars as pl

from examples.linear_road.files import copies, history, steps
from examples.linear_road.generator import Road
from examples.linear_road.rows import PERIOD, Row

#: Rows of what was before that are given at once.
CHUNK = 1_000_000

#: What was before a stretch: all of it, or the last report of every car.
Before = Literal["run", "last"]


@dataclass(frozen=True, slots=True)
class Second:
    """The rows of a second: a folder of files that is not handed over yet, and how many they are."""

    time: int
    folder: Path
    rows: int

    def hand_over(self, source: Path) -> None:
        """Moves the folder to where files are looked for, at one blow: rows of one second belong to one batch."""
        self.folder.rename(source / self.folder.name)


def before(kind: Before, distinct: int, total: int, end: int) -> Iterator[pl.DataFrame]:
    """What was before `end`, in parts of about `CHUNK` rows in order of time; those of a second are in one part."""
    roads = [Road(number) for number in range(distinct)]
    if end <= 0:
        return
    if kind == "last":  # of all roads it may not fit in memory beside what is kept of it
        for part in _parts(history(roads, distinct, end), max(1, CHUNK * distinct // total)):
            yield copies(part, distinct, total)
        return
    for step in steps(roads, total, end):
        yield from _parts(pl.DataFrame(dict(step)), CHUNK)


def ahead(distinct: int, total: int, start: int, end: int, folder: Path, parts: int = 1) -> list[Second]:
    """Writes the input from `start` up to before `end`, a folder a second with its rows in so many files."""
    written = []
    for step in steps([Road(number) for number in range(distinct)], total, end, start):
        begin = int(step["time"][0]) // PERIOD * PERIOD
        frame = pl.DataFrame(dict(step))
        for second in range(max(begin, start), min(begin + PERIOD, end)):
            low, high = np.searchsorted(step["time"], [second, second + 1])
            if low == high:
                continue
            place = folder / f"{second:05d}"
            place.mkdir(parents=True)
            for part, (first, after) in enumerate(pairwise(np.linspace(low, high, parts + 1, dtype=np.int64))):
                if first < after:
                    file = place / f"{part}.parquet"
                    frame[int(first) : int(after)].write_parquet(file, compression="lz4", statistics=False)
            written.append(Second(second, place, int(high - low)))
    return written


def own_rows(kind: Before, distinct: int, start: int, end: int) -> list[Row]:
    """The input of the first roads up to before `end`: what was before `start`, and what came then."""
    rows = [Row(*row) for part in before(kind, distinct, distinct, start) for row in part.iter_rows()]
    for step in steps([Road(number) for number in range(distinct)], distinct, end, start):
        frame = pl.DataFrame(dict(step)).filter(pl.col("time").is_between(start, end, closed="left"))
        rows += (Row(*row) for row in frame.iter_rows())
    return rows


class Feeder:
    """Hands seconds over, each when it is over by the clock."""

    def __init__(self, seconds: Sequence[Second], source: Path) -> None:
        self._seconds, self._source = seconds, source
        self._stopped = threading.Event()
        self.handed = threading.Event()
        """Set as a second is handed over; whoever waits for the next one clears it."""
        self._thread = threading.Thread(target=self._feed, name="linear-road-feeder", daemon=True)
        self.began = 0.0
        """When the first second began, by `time.monotonic`."""

    def __enter__(self) -> Feeder:
        self.began = time.monotonic()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()

    def at(self, second: float) -> float:
        """When a second begins, by `time.monotonic`."""
        return self.began + second - self._seconds[0].time

    def _feed(self) -> None:
        for second in self._seconds:
            if self._stopped.wait(max(0.0, self.at(second.time + 1) - time.monotonic())):
                return
            second.hand_over(self._source)
            self.handed.set()


def _parts(rows: pl.DataFrame, most: int) -> Iterator[pl.DataFrame]:
    """Rows in order of time, about so many together."""
    times, first = rows["time"].to_numpy(), 0
    while first < rows.height:
        after = int(np.searchsorted(times, times[min(first + most, rows.height) - 1], side="right"))
        yield rows[first:after]
        first = after
