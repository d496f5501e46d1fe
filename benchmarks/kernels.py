"""The compiled kernels: grouping a million rows in 100,000 groups beside Polars, and the search for matches by ranges
beside the general one, in pairs.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks import queries
from benchmarks.figures import Figure, declared
from benchmarks.pattern_runs import offsets, pattern_of, planned
from benchmarks.situations_data import Ints, intervals
from tidegate.runtime.eval.aggregates import compiled as grouping
from tidegate.runtime.eval.aggregates.partials import partial
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.kernels.cells import Situations, find_triggers
from tidegate.runtime.kernels.ranges.range_plan import plan_search
from tidegate.runtime.kernels.ranges.range_search import find_matches
from tidegate.runtime.kernels.search import enumerate_matches
from tidegate.runtime.kernels.search_plan import plan_steps

KEYS, SECONDS = 100, 100_000


def main() -> None:
    """Prints what the kernels take, medians of five."""
    grouped()
    measure()


def measure() -> list[Figure]:
    """What a situation takes in the search for matches."""
    ranges, general, count, matches = searched()
    detail = f"general {1e9 * general / count:.1f} ns; {count:,} situations of {KEYS} keys, {matches:,} matches"
    figure = declared("Q1, search for matches by ranges: a situation", 1e9 * ranges / count, detail)
    print(figure.line(), flush=True)
    return [figure]


def grouped() -> None:
    (buffer,) = queries.program("tumbling").explain().lowered().buffers
    assert buffer.partial is not None
    group = buffer.partial
    events = queries.rows(1_000_000, 1000).with_columns(pl.col("time").dt.epoch("us"))
    rows = evaluate(buffer.chain, {0: events})

    def run() -> None:
        partial(group, rows)

    run()  # compiles
    compiled = elapsed(run)
    grouping.MANY_ROWS = grouping.MANY_ROWS_LOADED = rows.height + 1
    plain = elapsed(run)
    print("grouping 1,000,000 rows by an integer and an instant: count, sum of doubles, maximum")
    print(f"  compiled {1000 * compiled:.0f} ms, Polars {1000 * plain:.0f} ms, ratio {plain / compiled:.1f}")


def searched() -> tuple[float, float, int, int]:
    """Q1, A before B and B overlaps C within 300 s, in one increment: seconds by ranges and in general, how many
    situations there are, and how many matches.
    """
    rng = np.random.default_rng(1)
    cells = [intervals(rng, SECONDS) for _ in range(3 * KEYS)]
    laid = laid_out(cells)
    pattern = pattern_of({(0, 1): "before", (1, 2): "overlaps"}, 3, within=300)
    triggers = find_triggers(laid, *offsets(pattern), -1, SECONDS)
    order, count = planned(pattern), len(laid.ts)
    steps, by_ranges = plan_steps(pattern, order), plan_search(pattern, order)
    matches = len(find_matches(by_ranges, laid, triggers, -1, SECONDS).detected)
    general = thread_median(lambda: enumerate_matches(steps, laid, triggers, -1, SECONDS))
    ranges = thread_median(lambda: find_matches(by_ranges, laid, triggers, -1, SECONDS))
    return ranges, general, count, matches


def elapsed(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of a call, median of several."""
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        taken.append(time.perf_counter() - start)
    return statistics.median(taken)


def thread_median(run: Callable[[], object], times: int = 5) -> float:
    """Seconds of this thread that a call takes, median of several; other work on the machine counts little."""
    taken = []
    for _ in range(times):
        start = time.thread_time()
        run()
        taken.append(time.thread_time() - start)
    return statistics.median(taken)


def laid_out(cells: list[tuple[Ints, Ints]]) -> Situations:
    """Situations cell by cell, three definitions a partition."""
    starts, ends = (np.concatenate([cell[side] for cell in cells]) for side in (0, 1))
    firsts = np.cumsum([0, *(len(own) for own, _ in cells)])
    return Situations(3, firsts, starts, ends, np.arange(len(starts)))


if __name__ == "__main__":
    main()
