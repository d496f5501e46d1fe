"""The queries of `situations` without tidegate: over all rows at once in Polars and DuckDB, and as a plain Python loop.

Q1: `A before B and B overlaps C`, certain when B ends, at most 300 s after A began. Q2, the aggressive drivers: certain
when B has ended, since it has a greatest duration, and C has lasted three seconds. A situation that is still open at
the end of the data ends later than everything. Pairs are joined by key and by spans of time, as joins by key alone have
far too many.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from pathlib import Path
from typing import Any

import polars as pl

OPEN = 1 << 60
WITHIN = 300
COLUMNS = ("key", "A.ts", "B.ts", "C.ts", "detected")
#: By query and symbol: the condition, as SQL and Polars read it, and the least and greatest duration.
SITUATIONS = {
    "Q1": {"A": ("a", 1, OPEN), "B": ("b", 1, OPEN), "C": ("c", 1, OPEN)},
    "Q2": {"A": ("accel > 8", 5, OPEN), "B": ("speed > 70", 4, 30), "C": ("accel < -9", 3, OPEN)},
}
#: What a B and a C, and an A and a B, have to be to each other.
SECOND = {
    "Q1": "b.ts < c.ts and c.ts < b.te and b.te < c.te",
    "Q2": "(b.ts < c.ts and c.ts < b.te or c.ts = b.te)",
}
FIRST = {
    "Q1": "a.te < b.ts",
    "Q2": (
        "(a.te = b.ts or a.ts < b.ts and b.ts < a.te and a.te < b.te or a.ts >= b.ts and a.te < b.te) and a.te < c.ts"
    ),
}
DETECTED = {"Q1": "b.te", "Q2": "greatest(b.te, c.ts + 2)"}
#: No B lasts longer in the data, so the C that begins in it, or as it ends, is in its span of time or the next.
SPAN = 128


def by_polars(query: str, files: Path) -> pl.DataFrame:
    """All rows sorted by key, situations between the rows where a condition changes, then two joins."""
    events = pl.read_parquet(f"{files}/*.parquet")
    if events["key"].n_unique() > 1:
        events = events.sort("key", maintain_order=True)
    a, b, c = (
        _situations(events, *definition).rename({"ts": f"{symbol}.ts", "te": f"{symbol}.te"})
        for symbol, definition in zip("abc", SITUATIONS[query].values(), strict=True)
    )
    columns = {name: pl.col(name) for name in ("a.ts", "a.te", "b.ts", "b.te", "c.ts", "c.te")}
    pairs = _near(b.filter(columns["b.te"] < OPEN), "b.ts", c, "c.ts", SPAN, 0).filter(_condition(SECOND[query]))
    pairs = pairs.with_columns(
        detected=columns["b.te"] if query == "Q1" else pl.max_horizontal("b.te", pl.col("c.ts") + 2)
    )
    found = _near(pairs, "b.ts", a, "a.ts", 512, -1).filter(_condition(FIRST[query]))
    found = found.filter(pl.col("detected") - pl.min_horizontal("a.ts", "b.ts") <= WITHIN)
    return found.select("key", "a.ts", "b.ts", "c.ts", "detected").rename(
        dict(zip(("a.ts", "b.ts", "c.ts"), COLUMNS[1:4], strict=True))
    )


def _situations(events: pl.DataFrame, condition: str, least: int, most: int) -> pl.DataFrame:
    holds = events.select("key", "time", holds=pl.sql_expr(condition))
    new_key = pl.col("key") != pl.col("key").shift()
    changes = holds.filter((pl.col("holds") != pl.col("holds").shift()) | new_key | (pl.int_range(pl.len()) == 0))
    te = (
        pl.when(pl.col("key") == pl.col("key").shift(-1)).then(pl.col("time").shift(-1)).otherwise(OPEN).fill_null(OPEN)
    )
    found = changes.select("key", "holds", ts="time", te=te).filter("holds").drop("holds")
    lasts = pl.col("te") - pl.col("ts")
    return found.filter((lasts >= least) & (lasts <= most))


def _near(left: pl.DataFrame, one: str, right: pl.DataFrame, other: str, span: int, first: int) -> pl.DataFrame:
    """Pairs of a key whose spans are the same, or next to each other: the right one later (0) or earlier (-1)."""
    spans = right.with_columns(span=pl.col(other) // span)
    return pl.concat(
        left.with_columns(span=pl.col(one) // span + shift).join(spans, on=["key", "span"])
        for shift in (first, first + 1)
    ).drop("span")


def _condition(text: str) -> pl.Expr:
    for name in ("a.ts", "a.te", "b.ts", "b.te", "c.ts", "c.te"):
        text = text.replace(name, f'"{name}"')
    return pl.sql_expr(text)


def by_duckdb(query: str, files: Path) -> pl.DataFrame:
    """The same in SQL, with window functions."""
    import duckdb

    parts = []
    for symbol, (condition, least, most) in SITUATIONS[query].items():
        parts.append(f"""
            {symbol}_changes as (
                select key, time, holds from (
                    select key, time, {condition} as holds, lag({condition}) over (partition by key order by time) as before
                    from events)
                where before is null or before <> holds),
            {symbol} as (
                select key, ts, te from (
                    select key, holds, time as ts, coalesce(lead(time) over (partition by key order by time), {OPEN}) as te
                    from {symbol}_changes)
                where holds and te - ts between {least} and {most})""")  # noqa: S608  # of the constants above
    text = f"""
        with events as (select * from read_parquet('{files}/*.parquet')), {",".join(parts)},
        pairs as (
            select b.key, b.ts as b_ts, b.te as b_te, c.ts as c_ts, {DETECTED[query]} as detected
            from (select *, unnest([ts // {SPAN}, ts // {SPAN} + 1]) as span from B where te < {OPEN}) b
            join (select *, ts // {SPAN} as span from C) c on b.key = c.key and b.span = c.span
            where {SECOND[query]})
        select b.key, a.ts as "A.ts", b_ts as "B.ts", c_ts as "C.ts", detected
        from (select *, unnest([b_ts // 512 - 1, b_ts // 512]) as span from pairs) b
        join (select *, ts // 512 as span from A) a on a.key = b.key and a.span = b.span
        where {FIRST[query].replace("b.ts", "b_ts").replace("b.te", "b_te").replace("c.ts", "c_ts")}
            and detected - least(a.ts, b_ts) <= {WITHIN}"""  # noqa: S608  # of the constants above
    with duckdb.connect(config={"threads": 1}) as connection:
        return pl.DataFrame(connection.sql(text).to_arrow_table())


def by_loop(query: str, rows: list[tuple[Any, ...]]) -> pl.DataFrame:
    """Event by event, with a few words of state per key; then the situations of every key, one against the other."""
    limits = [(least, most) for _, least, most in SITUATIONS[query].values()]
    begun: dict[Any, list[int | None]] = defaultdict(lambda: [None] * 3)
    found: dict[Any, list[list[tuple[int, int]]]] = defaultdict(lambda: [[], [], []])
    for key, time, *values in rows:
        state = begun[key]
        holds = values if query == "Q1" else (values[1] > 8, values[0] > 70, values[1] < -9)
        for symbol in range(3):
            start = state[symbol]
            if holds[symbol]:
                if start is None:
                    state[symbol] = time
            elif start is not None:
                if limits[symbol][0] <= time - start <= limits[symbol][1]:
                    found[key][symbol].append((start, time))
                state[symbol] = None
    for key, starts in begun.items():
        for symbol, start in enumerate(starts):
            if start is not None and symbol != 1 and limits[symbol][1] == OPEN:
                found[key][symbol].append((start, OPEN))
    matches = [match for key, (a, b, c) in found.items() for match in _matches(query, key, a, b, c)]
    return pl.DataFrame(matches, schema=list(COLUMNS), orient="row")


def _matches(query: str, key: Any, a: Any, b: Any, c: Any) -> list[tuple[Any, ...]]:
    found = []
    for b_ts, b_te in b:
        for c_ts, c_te in c[bisect_right(c, (b_ts, OPEN + 1)) : bisect_right(c, (b_te, OPEN + 1))]:
            if query == "Q1" and not c_ts < b_te < c_te:
                continue
            detected = b_te if query == "Q1" else max(b_te, c_ts + 2)
            for a_ts, a_te in a[bisect_left(a, (detected - WITHIN, 0)) : bisect_left(a, (b_te, 0))]:
                before = a_te < b_ts if query == "Q1" else _leads(a_ts, a_te, b_ts, b_te) and a_te < c_ts
                if before and detected - min(a_ts, b_ts) <= WITHIN:
                    found.append((key, a_ts, b_ts, c_ts, detected))
    return found


def _leads(a_ts: int, a_te: int, b_ts: int, b_te: int) -> bool:
    """A meets, overlaps, starts or lies within B."""
    return a_te == b_ts or a_ts < b_ts < a_te < b_te or (a_ts >= b_ts and a_te < b_te)
