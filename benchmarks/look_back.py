"""Looking back and windows from Parquet files, beside Polars and DuckDB over all rows at once, on one core each.

    python benchmarks/look_back.py --rows 10000000

As-of join, previous value, running total, versions, first row of each key, sessions, windows that hop and the greatest
three of each window. Each query runs in a process of its own, all ways in turn, and results are compared. The engine
reads a file a batch and keeps its results in memory, as the others do. Seconds are the process's own.
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

if __name__ == "__main__":  # before Polars counts cores
    os.environ["POLARS_MAX_THREADS"] = "1"

import duckdb
import numpy as np
import polars as pl

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import tidegate as tg
from benchmarks.comparing import same
from benchmarks.figures import PAIRS
from benchmarks.files import write_files
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.session import Session

BATCHES, KEYS = 100, (1_000, 100_000)
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


def by_polars(query: str, rows: int, keys: int, files: Path) -> pl.DataFrame:
    """The query in Polars, over all rows, which come in order of time."""
    window = rows // 50
    e = pl.scan_parquet(f"{files}/E/*.parquet")
    pane = ((pl.col("t") + window - 1) // window).alias("pane")
    match query:
        case "as-of join":
            q = pl.scan_parquet(f"{files}/Q/*.parquet").select("k", "t", price="v")
            return e.select("k", "t").join_asof(q, on="t", by="k", check_sortedness=False).collect()
        case "previous value":
            return e.select("k", "t", before=pl.col("v").shift().over("k")).collect()
        case "running total":
            return e.select("k", "t", total=pl.col("v").cum_sum().over("k")).collect()
        case "versions":
            until = pl.col("t").shift(-1).over("k")
            return e.select("k", "t", until=until).filter(pl.col("until").is_not_null()).collect()
        case "first of each key":
            return e.select("k", "t", "v").unique("k", keep="first", maintain_order=True).collect()
        case "sessions":
            gap = GAP * keys
            begins = (pl.col("t") - pl.col("t").shift() > gap).fill_null(value=True)
            numbered = e.with_columns(number=begins.cum_sum().over("k"))
            found = numbered.group_by("k", "number").agg(
                start=pl.col("t").first(), end=pl.col("t").last() + gap, n=pl.len(), total=pl.col("v").sum()
            )
            return found.drop("number").collect()
        case "windows that hop":
            panes = e.group_by("k", pane).agg(n=pl.len(), most=pl.col("v").max())
            hops = (
                panes.with_columns(hop=pl.lit([0, 1, 2, 3, 4]))
                .explode("hop")
                .with_columns(end=pl.col("pane") + pl.col("hop"))
            )
            found = hops.group_by("k", "end").agg(pl.col("n").sum(), pl.col("most").max())
            return found.with_columns(start=(pl.col("end") - 5) * window, end=pl.col("end") * window).collect()
        case "greatest three":
            sums = e.group_by("k", (pane * window).alias("w")).agg(total=pl.col("v").sum())
            ordered = sums.sort("w", "total", "k", descending=[False, True, False])
            return ordered.group_by("w", maintain_order=True).head(3).collect()
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


def run(query: str, rows: int, keys: int, files: Path) -> pl.DataFrame:
    """The query in the engine, a file a batch."""
    program = tg.program(R=relation(query, rows, keys))
    names = ("E", "Q") if query == "as-of join" else ("E",)
    sources = {name: parquet(files / name, per_batch=1, delay=0, bounded=True) for name in names}
    with Session(program.facts, sources=sources) as session:
        session.process()
        return pl.DataFrame(session.table("R"))


def compare(query: str, keys: int, rows: int, folder: Path) -> dict[str, list[float]]:
    """Seconds of each way, in turn, and whether results were equal; for a process of its own."""
    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[-1:])
    ways: Mapping[str, Callable[[Path], pl.DataFrame]] = {
        "embedded": lambda files: run(query, rows, keys, files),
        "polars": lambda files: by_polars(query, rows, keys, files),
        "duckdb": lambda files: by_duckdb(query, rows, keys, files),
    }
    for name, count, parts in (("few", min(rows, 100_000), 4), ("files", rows, BATCHES)):
        (folder / name).mkdir()
        for stream, seed in (("E", 1), ("Q", 2)):
            write_files(folder / name / stream, events(count, keys, seed), parts)
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


def measure(rows: int) -> bool:
    """Prints the figures of every query with every number of keys; whether results were equal."""
    equal = True
    print(f"{'query':20}{'keys':>8}{'embedded':>14}{'Polars':>14}{'DuckDB':>14}  embedded / the faster of the two")
    for query in SQL:
        for keys in KEYS:
            with tempfile.TemporaryDirectory() as folder:
                command = [sys.executable, __file__, "--one", query, str(keys), folder, "--rows", str(rows)]
                told = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
            taken = json.loads(told.splitlines()[-1])
            equal = equal and all(taken["equal"])
            ways = [taken[way] for way in ("embedded", "polars", "duckdb")]
            rates = "".join(f"{rows / statistics.median(way) / 1e6:10.2f} M/s" for way in ways)
            ratios = " ".join(f"{own / min(others):.2f}" for own, *others in zip(*ways, strict=True))
            print(f"{query:20}{keys:8,}{rates}  {ratios}", flush=True)
    print("results: equal" if equal else "results: DIFFERENT")
    return equal


def main() -> int:
    """Prints the figures; the exit status says whether results were equal."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rows", type=int, default=10_000_000)
    options.add_argument("--one", nargs=3, metavar=("QUERY", "KEYS", "FOLDER"))
    chosen = options.parse_args()
    if chosen.one:
        query, keys, folder = chosen.one
        print(json.dumps(compare(query, int(keys), chosen.rows, Path(folder))))
        return 0
    return 0 if measure(chosen.rows) else 1


if __name__ == "__main__":
    sys.exit(main())
