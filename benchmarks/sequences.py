"""Row patterns: rows a second of one core, in one batch and in many, in order and not, beside Polars and Python.

And how long a batch takes in which all rows so far wait for the rest of one match, of each kind of search.

A scan of one partition, many partitions, quantifiers and navigation are there twice: as the queries with which DuckDB
measures its MATCH_RECOGNIZE, word for word and over its rows (`duckdb_patterns.py`), beside loops in Python that find
the same; and as ours, over values at random. The session has one thread, and Polars has one thread too, where
`POLARS_MAX_THREADS=1` is set; seconds are those of the process, on all cores. The installed DuckDB does not read the
clause. `pandas-match-recognize` needs NumPy before 2.2, so it is run in an environment of its own, which is made in
`out/peer` where packages can be installed; without it that line says that it is not available.

python benchmarks/sequences.py [--rows 2000000] [--peer PYTHON] [--only-peer]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.duckdb_patterns import MOST, PATTERNS
from benchmarks.figures import OPEN_MATCHES, PAIRS, PEER_FIGURE, SEQUENCES, Figure, compared, declared, print_table

BATCHES = 100
S = tg.stream("S", "k bigint, t bigint, v bigint", progress="t")
Row = tuple[Any, ...]
#: The scan with pandas-match-recognize, in a Python that has it: of rows in one file, with the matches in another.
CLAUSE = (
    "SELECT * FROM events MATCH_RECOGNIZE (ORDER BY t MEASURES A.t AS t1, B.t AS t2, A.v AS was, B.v AS later "
    "ONE ROW PER MATCH AFTER MATCH SKIP PAST LAST ROW PATTERN (A B) DEFINE A AS A.v < 100, B AS B.v > 900)"
)
PEER = """
import sys, time
import pandas
from pandas_match_recognize import match_recognize
events = pandas.read_csv(sys.argv[1])
begun = time.process_time()
found = match_recognize(sys.argv[2], events)
taken = time.process_time() - begun
found[["t1", "t2", "was", "later"]].to_csv(sys.argv[3], index=False)
print(taken)
"""


@dataclass(frozen=True, slots=True)
class Shape:
    """A query over rows of so many keys, with values below `values`."""

    keys: int
    values: int
    matches: Callable[[], tg.Relation]


def three_steps() -> tg.Relation:
    """One row in a hundred may begin a match."""
    define: Any = {"A": lambda m: m.A.v < 10, "B": lambda m: m.B.v < 500, "C": lambda m: m.C.v > 500}
    return S.sequences("A B C", by="k", define=define, within=1_000_000, skip="next row", was=lambda m: m.A.v)


def scan() -> tg.Relation:
    define: Any = {"A": lambda m: m.A.v < 100, "B": lambda m: m.B.v > 900}
    return S.sequences("A B", define=define, was=lambda m: m.A.v, then=lambda m: m.B.v)


def partitions() -> tg.Relation:
    define: Any = {"A": lambda m: m.A.v < 100, "B": lambda m: m.B.v > 900}
    return S.sequences("A B", by="k", define=define, was=lambda m: m.A.v, then=lambda m: m.B.v)


def quantifiers() -> tg.Relation:
    define: Any = {"A": lambda m: m.A.v < 200, "B": lambda m: m.B.v >= 200, "C": lambda m: m.C.v < 500}
    return S.sequences("A B{2,5} C?", by="k", define=define, rows_in_it=lambda m: m.rows.agg(tg.count()))


def navigation() -> tg.Relation:
    define: Any = {"Down": lambda m: m.Down.v < m.Down.prev().v, "Up": lambda m: m.Up.v > m.Up.prev().v}
    return S.sequences("X Down+ Up+", by="k", define=define, low=lambda m: m.Down.v, high=lambda m: m.Up.v)


SHAPES: Mapping[str, Shape] = {
    "three steps": Shape(1000, 1000, three_steps),
    "scan": Shape(1, 1000, scan),
    "partitions": Shape(10_000, 1000, partitions),
    "quantifiers": Shape(100, 1000, quantifiers),
    "navigation": Shape(100, 1000, navigation),
}
#: The version of `pandas-match-recognize` that is compared, and the rows that it gets: of more it takes minutes.
PEER_VERSION, PEER_ROWS = "0.2.5", 20_000
assert tuple(SHAPES) == SEQUENCES


_IS: Any = {"A": lambda m: m.A.v == 1, "B": lambda m: m.B.v == 2, "C": lambda m: m.C.v == 3}
#: Searches of which all rows wait for a C.
OPEN: Mapping[str, Callable[[], tg.Relation]] = {
    "next row": lambda: S.sequences("A B* C", by="k", define=_IS, skip="next row"),
    "any": lambda: S.sequences("A B C", by="k", define=_IS, matches="any", within=10_000_000),
    "next": lambda: S.sequences("A B+ C", by="k", define=_IS, matches="next", within=10_000_000),
    "contiguous": lambda: S.sequences("A B* C", by="k", define=_IS, matches="contiguous"),
}
assert tuple(OPEN) == OPEN_MATCHES


def main() -> int:
    """Prints the figures; the exit status is 1 where results differ."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--rows", type=int, default=MOST)
    options.add_argument("--peer", metavar="PYTHON", help="a Python that has pandas-match-recognize")
    options.add_argument("--only-peer", action="store_true", help="nothing else than that comparison")
    chosen = options.parse_args()
    figures, equal = ([], True) if chosen.only_peer else measure(chosen.rows)
    its, alike = with_peer(chosen.peer or peer_python())
    print_table(figures + its)
    return 0 if equal and alike else 1


def measure_all() -> tuple[list[Figure], bool]:
    """All figures, with that of `pandas-match-recognize` where it is available."""
    figures, equal = measure()
    its, alike = with_peer(peer_python())
    return figures + its, equal and alike


def measure(rows: int = MOST) -> tuple[list[Figure], bool]:
    """The figures that need nothing else than what is installed, and whether all ways have the same results."""
    figures, equal = list[Figure](), True
    for name, shape in SHAPES.items():
        its, _, alike = timed_in_batches(name, shape.matches, events_of(rows, shape))
        figures += its
        equal &= alike
    for name, pattern in PATTERNS.items():
        events = pattern.events(rows)
        its, found, alike = timed_in_batches(f"{name} of DuckDB", pattern.matches, events)
        figures += its
        equal &= alike and found.select(pattern.columns).sort(pattern.columns).equals(pattern.by_loop(events))
    events, shape = events_of(rows, SHAPES["partitions"]), SHAPES["partitions"]
    find = shape.matches
    pairs = [(run(find, events, 10), run(find, events, 10, disorder=1000)) for _ in range(PAIRS)]
    equal &= all(same(one, two) for (one, _), (two, _) in pairs)
    ratios = [two / one for (_, one), (_, two) in pairs]
    figures.append(compared("row pattern, partitions: time, out of order / in order", ratios))
    figures.append(
        compared("row pattern, open: time of a batch, last quarter / first", [growth(rows // 5) for _ in range(PAIRS)])
    )
    for name, matches in OPEN.items():
        ratios = [waiting(matches, 100_000) / waiting(matches, 1000) for _ in range(PAIRS)]
        figures.append(compared(f"row pattern, open, {name}: time of a batch, 100,000 rows / 1,000", ratios))
    ratios = [in_vain(rows // 10, 10_000) / in_vain(rows // 10, 100) for _ in range(PAIRS)]
    figures.append(compared("row pattern, runs in vain: time, of 10,000 rows / of 100", ratios))
    ratios = [begun(rows // 10, 1000) / begun(rows // 10, 10) for _ in range(PAIRS)]
    figures.append(compared("row pattern, begun in vain: time, 1,000 rows in a window / 10", ratios))
    shape, events = SHAPES["three steps"], events_of(rows, SHAPES["three steps"])
    timed = [(run(shape.matches, events, 1), by_polars(events)) for _ in range(PAIRS)]
    equal &= all(same(own.select("k", "first", "last"), theirs) for (own, _), (theirs, _) in timed)
    ratios = [theirs / own for (_, own), (_, theirs) in timed]
    figures.append(compared("row pattern, three steps: rows/s, embedded / Polars", ratios))
    few = events[: rows // 10]
    looped = [(run(shape.matches, few, 1), by_python(few)) for _ in range(PAIRS)]
    equal &= all(same(own.select("k", "first", "last"), theirs) for (own, _), (theirs, _) in looped)
    ratios = [theirs / own for (_, own), (_, theirs) in looped]
    figures.append(compared("row pattern, three steps: rows/s, embedded / Python loop", ratios))
    for figure in figures:
        print(figure.line(), flush=True)
    return figures, equal


def timed_in_batches(
    name: str, matches: Callable[[], tg.Relation], events: pl.DataFrame
) -> tuple[list[Figure], pl.DataFrame, bool]:
    """The rates in one batch and in many, the matches, and whether these are always the same."""
    run(matches, events[: events.height // 20], 2)  # what is loaded and compiled once
    runs = [(run(matches, events, 1), run(matches, events, BATCHES)) for _ in range(PAIRS)]
    figures = [
        rate(f"row pattern, {name}: one batch", [events.height / taken for (_, taken), _ in runs]),
        rate(f"row pattern, {name}: {BATCHES} batches", [events.height / taken for _, (_, taken) in runs]),
    ]
    return figures, runs[0][0][0], all(same(one, many) for (one, _), (many, _) in runs)


def rate(name: str, rates: Sequence[float]) -> Figure:
    """The median of several runs."""
    return declared(
        name, statistics.median(rates), f"least {min(rates):,.0f}, greatest {max(rates):,.0f} of {len(rates)}"
    )


def events_of(rows: int, shape: Shape) -> pl.DataFrame:
    rng = np.random.default_rng(1)
    keys, values = rng.integers(0, shape.keys, rows), rng.integers(0, shape.values, rows)
    return pl.DataFrame({"k": keys, "t": np.arange(rows), "v": values})


def run(
    matches: Callable[[], tg.Relation], events: pl.DataFrame, batches: int, *, disorder: int = 0
) -> tuple[pl.DataFrame, float]:
    """The matches, and seconds of the process. `disorder`: by how many places rows come later or earlier at most."""
    if disorder:
        rng = np.random.default_rng(2)
        order = np.argsort(np.arange(events.height) + rng.integers(0, disorder, events.height), kind="stable")
        events = events[order]
    begun = time.process_time()
    with tg.program(R=matches()).session(threads=1) as session:
        step = -(-events.height // batches)
        for first in range(0, events.height, step):
            some = events.slice(first, step)
            session.push("S", some)
            session.advance("S", first + some.height - 1 - disorder)
            session.step()
        session.finish()
        session.step()
        taken = time.process_time() - begun
        return pl.DataFrame(session.results("R")), taken


def growth(rows: int, batches: int = 40) -> float:
    """How many times as long a batch takes in the last quarter as in the first, of a search that is open throughout."""
    define: Any = {"A": lambda m: m.A.v == 1, "B": lambda m: m.B.v == 2, "C": lambda m: m.C.v == 3}
    times, taken = np.arange(rows), list[float]()
    events = pl.DataFrame({"k": times, "t": times, "v": np.where(times == 0, 1, 2)})
    with tg.program(R=S.sequences("A B* C", define=define)).session(threads=1) as session:
        for some in events.iter_slices(rows // batches):
            begun = time.process_time()
            session.push("S", some)
            session.advance("S", some["t"][-1])
            session.step()
            taken.append(time.process_time() - begun)
    return sum(taken[-batches // 4 :]) / sum(taken[: batches // 4])


def waiting(matches: Callable[[], tg.Relation], rows: int, batches: int = 20, batch: int = 50) -> float:
    """Seconds of the process for a batch of 50 rows while so many wait for the rest of one match: the median."""
    times, taken = np.arange(rows + batches * batch), list[float]()
    events = pl.DataFrame({"k": np.zeros_like(times), "t": times, "v": np.where(times == 0, 1, 2)})
    with tg.program(R=matches()).session(threads=1) as session:
        session.push("S", events[:rows])
        session.advance("S", rows - 1)
        session.step()
        for some in events[rows:].iter_slices(batch):
            begun = time.process_time()
            session.push("S", some)
            session.advance("S", some["t"][-1])
            session.step()
            taken.append(time.process_time() - begun)
    return statistics.median(taken)


def in_vain(rows: int, length: int) -> float:
    """Seconds of a search over runs of so many rows, of which each may begin a match, and none does."""
    define: Any = {"A": lambda m: m.A.v == 1, "B": lambda m: m.B.v == 2}
    return _over_rows(S.sequences("A+ B", define=define), np.where(np.arange(rows) % length, 1, 3))


def begun(rows: int, window: int) -> float:
    """Seconds of a search for every match, of which 2^n begin in windows of so many rows, and none ends in them."""
    define: Any = {"A": lambda m: m.A.v == 1, "B": lambda m: m.B.v == 2, "C": lambda m: m.C.v == 3}
    place = np.arange(rows) % (2 * window)
    values = np.where(place == 0, 1, np.where(place == 2 * window - 1, 3, 2))
    return _over_rows(S.sequences("A B+ C", define=define, matches="any", within=window), values)


def _over_rows(matches: tg.Relation, values: Any) -> float:
    """Seconds of the process, with rows of these values in one batch, of which none is in a match."""
    times = np.arange(len(values))
    begun = time.process_time()
    with tg.program(R=matches).session(threads=1) as session:
        session.push("S", pl.DataFrame({"k": 0, "t": times, "v": values}))
        session.finish()
        session.step()
        taken = time.process_time() - begun
        assert not list(session.results("R"))
    return taken


def by_polars(events: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    """Three steps with Polars: rows beside the next two of their key."""
    begun = time.process_time()
    ahead = [pl.col(name).shift(-by).over("k").alias(f"{name}{by}") for name in "vt" for by in (1, 2)]
    beside = events.with_columns(*ahead)
    fits = (pl.col("v") < 10) & (pl.col("v1") < 500) & (pl.col("v2") > 500) & (pl.col("t2") - pl.col("t") <= 1_000_000)
    found = beside.filter(fits).select("k", first="t", last="t2")
    return found, time.process_time() - begun


def by_python(events: pl.DataFrame) -> tuple[pl.DataFrame, float]:
    """Three steps as a loop over rows, with what has begun by key."""
    begun = time.process_time()
    begins: dict[int, int] = {}
    second: dict[int, int] = {}
    found: list[Row] = []
    for k, t, v in events.iter_rows():
        first = second.pop(k, None)
        if first is not None and v > 500 and t - first <= 1_000_000:
            found.append((k, first, t))
        before = begins.pop(k, None)
        if before is not None and v < 500:
            second[k] = before
        if v < 10:
            begins[k] = t
    taken = time.process_time() - begun
    return pl.DataFrame(found, schema={"k": pl.Int64, "first": pl.Int64, "last": pl.Int64}, orient="row"), taken


def same(one: pl.DataFrame, other: pl.DataFrame) -> bool:
    columns = sorted(one.columns)
    return one.select(columns).sort(columns).equals(other.select(columns).sort(columns))


def peer_python(folder: Path = Path("out/peer")) -> str | None:
    """A Python that has `pandas-match-recognize`, in an environment that is made where there is none. None where it
    cannot be installed.
    """
    python = folder / "bin" / "python"
    if not python.exists():
        try:
            for command in (
                [sys.executable, "-m", "venv", str(folder)],
                [str(python), "-m", "pip", "install", "--quiet", f"pandas-match-recognize=={PEER_VERSION}"],
            ):
                subprocess.run(command, check=True, capture_output=True, timeout=300)
        except (subprocess.SubprocessError, OSError):
            shutil.rmtree(folder, ignore_errors=True)
            return None
    return str(python)


def with_peer(python: str | None) -> tuple[list[Figure], bool]:
    """The figure of `pandas-match-recognize`, if there is such a Python, and whether its matches are equal."""
    if python is None:
        print(f"{PEER_FIGURE}: not available, as it cannot be installed", flush=True)
        return [], True
    ratios, equal = beside_pandas(PEER_ROWS, python)
    figure = compared(PEER_FIGURE, ratios)
    print(figure.line(), flush=True)
    return [figure], equal


def beside_pandas(rows: int, python: str) -> tuple[list[float], bool]:
    """How many times as long the scan takes with pandas-match-recognize, in pairs, and whether matches are equal."""
    shape, ratios, equal = SHAPES["scan"], list[float](), True
    events = events_of(rows, shape)
    with tempfile.TemporaryDirectory() as folder:
        given, found = (str(Path(folder) / name) for name in ("given.csv", "found.csv"))
        events.write_csv(given)
        run(shape.matches, events, 1)  # kernels are loaded
        for _ in range(PAIRS):
            own, taken = run(shape.matches, events, 1)
            command = [python, "-c", PEER, given, CLAUSE, found]
            told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            equal &= same(own.select("was", t1="first", t2="last", later="then"), pl.read_csv(found))
            ratios.append(float(told.split()[-1]) / taken)
    return ratios, equal


if __name__ == "__main__":
    sys.exit(main())
