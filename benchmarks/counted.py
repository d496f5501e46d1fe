"""Matches that are counted and not listed: rows a second, and time by how many matches there are.

    python benchmarks/counted.py [--rows 1000000]

`A B+ C` over the events of a thousand keys, where any rows may be skipped: the share of B among rows makes matches few,
or more than anybody could list. `A before B, B overlaps C` over situations of one key: the window makes them many. Both
are grouped by windows of `detected`, and come in a hundred batches. Seconds are those of the process; ways take turns.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks import situations_data
from benchmarks.figures import PAIRS, Figure, compared, declared, print_table

BATCHES, KEYS = 100, 1000
#: Of a thousand rows, those that are B; as many are A as are C.
SHARES = (1, 100, 300, 600, 900)
ENDS = 50
#: Rows of a key that a match may span, and seconds of a pattern of situations.
SPAN, WINDOWS = 40, (500, 2_000, 10_000, 50_000, 100_000)
S = tg.stream("S", "k bigint, t bigint, v bigint", progress="t")
E = tg.stream("E", "key bigint, time bigint, a boolean, b boolean, c boolean", progress="time")


def matches_of_rows(share: int) -> tg.Relation:
    """`A B+ C`, where so many of a thousand rows are B."""
    define: Any = {
        "A": lambda m: m.A.v < ENDS,
        "B": lambda m: m.B.v >= 1000 - share,
        "C": lambda m: (m.C.v >= ENDS) & (m.C.v < 2 * ENDS),
    }
    return S.sequences("A B+ C", by="k", matches="any", within=SPAN * KEYS, define=define)


def row_patterns(share: int) -> tg.Program:
    """How many matches each key has in each hundred thousand ticks."""
    found = matches_of_rows(share)
    return tg.program(R=found.group_by("k", w=tg.ceil(found.detected, 100_000)).agg(n=tg.count()))


def situations(window: int) -> tg.Program:
    """How many matches of `A before B, B overlaps C` there are by the hour."""
    derived = E.partition_by("key").derive(A=tg.situation(E.a), B=tg.situation(E.b), C=tg.situation(E.c))
    found = derived.match(derived.A.before(derived.B), derived.B.overlaps(derived.C), within=window)
    return tg.program(R=found.group_by(w=tg.ceil(found.detected, 3600)).agg(n=tg.count()))


def events_of(rows: int) -> pl.DataFrame:
    """A row a tick, of each key in turn."""
    rng = np.random.default_rng(1)
    at = np.arange(rows)
    return pl.DataFrame({"k": at % KEYS, "t": at, "v": rng.integers(0, 1000, rows)})


def run(
    program: tg.Program, stream: str, time_of: str, events: pl.DataFrame, batches: int = BATCHES
) -> tuple[float, int]:
    """Seconds of the process, and how many matches there are."""
    begun = time.process_time()
    with program.session(threads=1) as session:
        step = -(-events.height // batches)
        for first in range(0, events.height, step):
            some = events.slice(first, step)
            session.push(stream, some)
            session.advance(stream, int(some[time_of][-1]))
            session.step()
        session.finish()
        session.step()
        found = pl.DataFrame(session.results("R"))
    return time.process_time() - begun, int(found["n"].sum())


def measure(rows: int = 1_000_000) -> tuple[list[Figure], bool]:
    """The figures, and whether matches that can be listed are as many as are counted."""
    events = events_of(rows)
    few = events.head(min(rows, 20_000))
    run(row_patterns(SHARES[0]), "S", "t", few, 2)
    turns = [[run(row_patterns(share), "S", "t", events) for share in SHARES] for _ in range(PAIRS)]
    slowest = max(statistics.median(seconds for seconds, _ in ways) for ways in zip(*turns, strict=True))
    figures = [
        declared("counted row patterns, A B+ C in 100 batches", rows / slowest, "the slowest of the shares below"),
        _spread("counted row patterns: time, most matches / least", turns, last_first=True),
    ]
    switches = situations_data.booleans(rows, 1)
    run(situations(WINDOWS[0]), "E", "time", switches.head(min(rows, 20_000)), 2)
    turns = [[run(situations(window), "E", "time", switches) for window in WINDOWS] for _ in range(PAIRS)]
    figures.append(_spread("counted patterns of situations: time, slowest window / quickest", turns))
    for figure in figures:
        print(figure.line(), flush=True)
    return figures, as_many_as_listed(few)


def _spread(name: str, turns: Sequence[Sequence[tuple[float, int]]], *, last_first: bool = False) -> Figure:
    """How many times as long the last takes as the first, or the slowest as the quickest; with matches and seconds."""
    taken = [[seconds for seconds, _ in turn] for turn in turns]
    ratios = [one[-1] / one[0] if last_first else max(one) / min(one) for one in taken]
    medians = [statistics.median(seconds) for seconds in zip(*taken, strict=True)]
    said = ", ".join(f"{number:.1e} in {seconds:.2f} s" for seconds, (_, number) in zip(medians, turns[0], strict=True))
    figure = compared(name, ratios)
    return replace(figure, detail=f"{said}; {figure.detail}")


def as_many_as_listed(events: pl.DataFrame) -> bool:
    """Whether matches that are few enough to be listed are as many as are counted."""
    with tg.program(R=matches_of_rows(SHARES[1])).session(threads=1) as session:
        session.push("S", events)
        session.finish()
        session.step()
        listed = pl.DataFrame(session.results("R")).height
    _, counted = run(row_patterns(SHARES[1]), "S", "t", events)
    return listed == counted > 0


def main() -> int:
    """Prints the figures; the exit status is 1 where matches that are listed are others than are counted."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    figures, equal = measure(options.parse_args().rows)
    print_table(figures)
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
