"""Looking back and windows from Parquet files, beside Polars and DuckDB over all rows at once, on one core each.

    python benchmarks/look_back.py --rows 10000000

As-of join, previous value, running total, versions, first row of each key, sessions, windows that hop and the greatest
three of each window. Each query runs in a process of its own, all ways in turn, and results are compared. The engine
reads a file a batch and keeps its results in memory, as the others do. Seconds are the process's own. Memory is that of
one more process, where results are discarded.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

if __name__ == "__main__":  # before Polars counts cores
    os.environ["POLARS_MAX_THREADS"] = "1"

import duckdb
import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.comparing import same
from benchmarks.figures import (
    LOOK_BACK,
    LOOK_BACK_KEYS,
    ONE_KEY,
    ONE_KEY_FORMS,
    PAIRS,
    Figure,
    compared,
    declared,
    print_table,
)
from benchmarks.files import write_files
from benchmarks.memory import forget_peak, gained, resident
from tidegate.runtime.connectors.sinks import DiscardSink
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.session import Session

BATCHES = 100
#: Rows that are run before it counts, so that nothing is loaded or compiled while it does.
FEW = 100_000
#: The columns that some query reads. The files have another one, which Polars and DuckDB leave unread by themselves.
E = tg.stream("E", "k bigint, t bigint, v bigint", progress="t")
Q = tg.stream("Q", "k bigint, t bigint, v bigint", progress="t")
#: A row a tick, so spans are numbers of rows: a session's gap by the number of keys, windows by that of rows.
GAP = 2


def relation(query: str, rows: int, keys: int) -> tg.Relation:
    """The query as a user writes it."""
    window = rows // 50
    match query:
        case "as-of join":
            left, right = E.as_("e"), Q.as_("q")
            joined = left.asof_join(right, by=[("e.k", "q.k")])
            return joined.select(k=joined["e.k"], t=joined["e.t"], price=joined["q.v"])
        case "left join and last":
            left, right = E.as_("e"), Q.as_("q")
            pairs = left.left_join(right, left.k == right.k, right.t <= left.t).select(
                left.k, left.t, v=right.v, at=right.t
            )
            return pairs.group_by(pairs.k, pairs.t).agg(price=tg.last(pairs.v, by=pairs.at))
        case "previous value":
            return E.over(by="k", before=tg.lag(E.v)).select("k", "t", "before")
        case "running total":
            return E.over(by="k", total=tg.sum(E.v)).select("k", "t", "total")
        case "versions":
            return E.versions(by="k").select("k", "t", "until")
        case "first of each key":
            return E.distinct_on("k").select("k", "t", "v")
        case "sessions":
            return E.windows(tg.session(GAP * keys), by="k").agg(n=tg.count(), total=tg.sum(E.v))
        case "windows that hop":
            return E.windows(tg.hopping(5 * window, every=window), by="k").agg(n=tg.count(), most=tg.max(E.v))
        case "greatest three":
            sums = E.group_by("k", w=tg.ceil(E.t, window)).agg(total=tg.sum(E.v))
            return sums.top_k(3, by="w", order=(tg.desc("total"), "k"))
        case _:
            raise ValueError(query)


#: The queries in SQL, over E and Q.
SQL: Mapping[str, str] = {
    "as-of join": "select E.k, E.t, Q.v as price from E asof left join Q on E.k = Q.k and E.t >= Q.t",
    "previous value": "select k, t, lag(v) over (partition by k order by t) as before from E",
    "running total": "select k, t, sum(v) over (partition by k order by t)::bigint as total from E",
    "versions": """
        select * from (select k, t, lead(t) over (partition by k order by t) as until from E) where until is not null
    """,
    "first of each key": "select k, min(t) as t, arg_min(v, t) as v from E group by k",
    "sessions": """
        with begun as (
            select *, coalesce(t - lag(t) over (partition by k order by t) > $gap, true) as begins from E
        ), numbered as (select *, sum(begins::int) over (partition by k order by t) as number from begun)
        select k, min(t) as "start", max(t) + $gap as "end", count(*) as n, sum(v)::bigint as total
        from numbered group by k, number
    """,
    "windows that hop": """
        with panes as (
            select k, (t + $window - 1) // $window as pane, count(*) as n, max(v) as most from E group by all
        )
        select k, (pane + hop - 5) * $window as "start", (pane + hop) * $window as "end", sum(n)::bigint as n,
            max(most) as most
        from panes, range(5) hops(hop) group by all
    """,
    "greatest three": """
        with sums as (
            select k, (t + $window - 1) // $window * $window as w, sum(v)::bigint as total from E group by all
        )
        select * from sums qualify row_number() over (partition by w order by total desc, k) <= 3
    """,
}


assert tuple(SQL) == LOOK_BACK

#: Queries for which Polars' streaming engine takes less time than the one in memory.
STREAMED: Final = frozenset({"first of each key", "sessions", "windows that hop", "greatest three"})


def by_polars(query: str, rows: int, keys: int, files: Path) -> pl.DataFrame:
    """The query in Polars, over all rows, which come in order of time, in the form and with the engine that are the
    fastest known.
    """
    return in_polars(query, rows, keys, files).collect(engine="streaming" if query in STREAMED else "in-memory")


def in_polars(query: str, rows: int, keys: int, files: Path) -> pl.LazyFrame:
    """The query in Polars."""
    window = rows // 50
    e = pl.scan_parquet(f"{files}/E/*.parquet")
    pane = ((pl.col("t") + window - 1) // window).alias("pane")
    match query:
        case "as-of join":
            q = pl.scan_parquet(f"{files}/Q/*.parquet").select("k", "t", price="v")
            return e.select("k", "t").join_asof(q, on="t", by="k", check_sortedness=False)
        case "previous value":
            return e.select("k", "t", before=pl.col("v").shift().over("k"))
        case "running total":
            return e.select("k", "t", total=pl.col("v").cum_sum().over("k"))
        case "versions":
            until = pl.col("t").shift(-1).over("k")
            return e.select("k", "t", until=until).filter(pl.col("until").is_not_null())
        case "first of each key":
            return e.select("k", "t", "v").unique("k", keep="first")
        case "sessions":
            gap = GAP * keys
            begins = (pl.col("t") - pl.col("t").shift() > gap).fill_null(value=True)
            numbered = e.with_columns(number=begins.cum_sum().over("k"))
            found = numbered.group_by("k", "number").agg(
                start=pl.col("t").min(), end=pl.col("t").max() + gap, n=pl.len(), total=pl.col("v").sum()
            )
            return found.drop("number")
        case "windows that hop":
            panes = e.group_by("k", pane).agg(n=pl.len(), most=pl.col("v").max())
            hops = (
                panes.with_columns(hop=pl.lit([0, 1, 2, 3, 4]))
                .explode("hop")
                .with_columns(end=pl.col("pane") + pl.col("hop"))
            )
            found = hops.group_by("k", "end").agg(pl.col("n").sum(), pl.col("most").max())
            return found.with_columns(start=(pl.col("end") - 5) * window, end=pl.col("end") * window)
        case "greatest three":
            sums = e.group_by("k", (pane * window).alias("w")).agg(total=pl.col("v").sum())
            ordered = sums.sort("w", "total", "k", descending=[False, True, False])
            return ordered.group_by("w", maintain_order=True).head(3)
        case _:
            raise ValueError(query)


def by_duckdb(query: str, rows: int, keys: int, files: Path) -> pl.DataFrame:
    """The query in DuckDB on one thread."""
    with duckdb.connect(config={"threads": 1}) as connection:
        for name in ("E", "Q"):
            connection.execute(f"create view {name} as from read_parquet('{files}/{name}/*.parquet')")
        given = {"gap": GAP * keys, "window": rows // 50}
        found = connection.execute(SQL[query], {k: v for k, v in given.items() if f"${k}" in SQL[query]})
        return pl.DataFrame(found.to_arrow_table())


def session_of(query: str, rows: int, keys: int, files: Path, *, discard: bool = False) -> Session:
    """The query in the engine, a file a batch."""
    program = tg.program(R=relation(query, rows, keys))
    names = ("E", "Q") if query == "as-of join" else ("E",)
    sources = {name: parquet(files / name, per_batch=1, delay=0, bounded=True) for name in names}
    return Session(program.facts, sources=sources, sinks={"R": DiscardSink()} if discard else {})


def run(query: str, rows: int, keys: int, files: Path) -> pl.DataFrame:
    """Its results."""
    with session_of(query, rows, keys, files) as session:
        session.process()
        return pl.DataFrame(session.table("R"))


def memory(query: str, rows: int, keys: int, folder: Path) -> dict[str, int]:
    """Bytes of live state at most, and of the process beyond what it had after a few rows; of files that are there."""
    live = 0
    for name in ("few", "files"):
        base = resident("VmRSS")
        with session_of(query, rows, keys, folder / name, discard=True) as session:
            while session.waiting_files():
                live = max(live, sum(session.step().live_bytes.values()))
    return {"live": live, "more": gained(base)}


def one_key(form: str, rows: int = ONE_KEY) -> tuple[float, float]:
    """Seconds of a look-up of so many rows of one key on either side, and mebibytes that it takes, after one of few
    rows, so that all is loaded that it needs. The rows are those that Polars finds.
    """
    for seed, count in ((1, rows // 8), (2, rows)):
        sides = {name: events(count, 1, seed + number) for number, name in enumerate("EQ")}
        expected = sides["E"].join_asof(sides["Q"], on="t", by="k", check_sortedness=False)
        expected = expected.select("k", "t", price="v_right")
        forget_peak()
        base, began = resident("VmRSS"), time.process_time()
        with tg.program(R=relation(form, count, 1)).session(threads=1) as session:
            for name, side in sides.items():
                session.push(name, side)
            session.finish()
            session.step()
            found = session.table("R")
        taken, more = time.process_time() - began, gained(base) / 2**20
        if not same(form, pl.DataFrame(found), expected):
            raise RuntimeError(f"{form}: other rows than Polars finds")
    return taken, more


def compare(query: str, rows: int, keys: int, folder: Path) -> dict[str, list[float]]:
    """Seconds of each way, in turn, and whether results were equal; of files that are there."""
    ways: Mapping[str, Callable[[Path], pl.DataFrame]] = {
        "embedded": lambda files: run(query, rows, keys, files),
        "polars": lambda files: by_polars(query, rows, keys, files),
        "duckdb": lambda files: by_duckdb(query, rows, keys, files),
    }
    for way in ways.values():
        way(folder / "few")
    taken: dict[str, list[float]] = {**{name: [] for name in ways}, "equal": []}
    for turn in range(PAIRS):
        results = {}
        for name, way in ways.items():
            began = time.process_time()
            results[name] = way(folder / "files")
            taken[name].append(time.process_time() - began)
        if not turn:
            equal = all(same(f"{query}, {keys:,} keys, {name}", results["embedded"], results[name]) for name in ways)
            taken["equal"].append(float(equal))
    return taken


def events(count: int, keys: int, seed: int) -> pl.DataFrame:
    """A row a tick, of any key."""
    rng = np.random.default_rng(seed)
    return pl.DataFrame(
        {
            "k": rng.integers(0, keys, count),
            "t": np.arange(count),
            "v": rng.integers(0, 1000, count),
            "x": rng.random(count),
        }
    )


def write(rows: int, keys: int, folder: Path) -> None:
    """The files of both streams, and a few rows of each."""
    for name, count, parts in (("few", min(rows, FEW), 4), ("files", rows, BATCHES)):
        (folder / name).mkdir()
        for stream, seed in (("E", 1), ("Q", 2)):
            write_files(folder / name / stream, events(count, keys, seed), parts)


def measure(rows: int = 10_000_000) -> tuple[list[Figure], bool]:
    """The figures of every query with every number of keys, and whether results were equal."""
    figures, equal = [], True
    for keys in LOOK_BACK_KEYS:
        with tempfile.TemporaryDirectory() as folder:
            write(rows, keys, Path(folder))
            for query in LOOK_BACK:
                taken, held = (_told(what, query, keys, folder, rows) for what in ("compare", "memory"))
                equal = equal and all(taken["equal"])
                made = _figures(f"{query}, {keys:,} keys, one core", rows, taken, held)
                print(*(figure.line() for figure in made), sep="\n", flush=True)
                figures += made
    for form in ONE_KEY_FORMS:
        seconds, more = _told("one key", form)
        title = f"{form}, {ONE_KEY:,} rows on either side, one key"
        figures += [declared(title, 1000 * seconds), declared(f"{title}: memory", more)]
        print(*(figure.line() for figure in figures[-2:]), sep="\n", flush=True)
    return figures, equal


def _told(*what: object) -> Any:
    """What a process of its own measures."""
    command = [sys.executable, __file__, "--one", *map(str, what)]
    told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    return json.loads(told.splitlines()[-1])


def _figures(title: str, rows: int, taken: Mapping[str, list[float]], held: Mapping[str, int]) -> list[Figure]:
    ways = {"embedded in 100 batches": "embedded", "Polars in one batch": "polars", "DuckDB in one batch": "duckdb"}
    rates = [declared(f"{title}: {said}", rows / statistics.median(taken[way])) for said, way in ways.items()]
    turns = zip(*(taken[way] for way in ways.values()), strict=True)
    ratios = [own / min(others) for own, *others in turns]
    most = 2 * held["live"] + 2**30
    detail = f"{held['more'] / 2**20:,.0f} MiB, live {held['live'] / 2**20:,.0f} MiB"
    return [
        *rates,
        compared(f"{title}: time, embedded / the faster of them", ratios),
        declared(f"{title}: peak memory / (2 x live state + 1 GiB)", held["more"] / most, detail),
    ]


def main() -> int:
    """Prints the figures; the exit status says whether results were equal."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--one", nargs="+", metavar="WHAT", help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.one:
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    match chosen.one:
        case None:
            figures, equal = measure(chosen.rows)
            print_table(figures)
            print("results: equal" if equal else "results: DIFFERENT")
            return 0 if equal else 1
        case ["one key", form]:
            print(json.dumps(one_key(form)))
        case [what, query, keys, folder, rows]:
            work: Callable[..., object] = compare if what == "compare" else memory
            print(json.dumps(work(query, int(rows), int(keys), Path(folder))))
        case _:
            options.error(f"nothing is called {chosen.one}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
