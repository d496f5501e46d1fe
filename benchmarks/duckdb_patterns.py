"""The queries with which DuckDB measures its MATCH_RECOGNIZE, word for word, and loops in Python that find the same.

Queries and rows are those of `benchmark/micro/match_recognize` of duckdb/duckdb, as pull request 25255 added them: what
stands in the brackets of the clause, over what each file loads. There a query counts its result. The loops are ours.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby, repeat
from typing import Any

import numpy as np
import polars as pl

import tidegate as tg
from benchmarks.figures import DUCKDB_PATTERNS

Row = tuple[Any, ...]
#: The rows of the largest of them.
MOST = max(rows for rows, _ in DUCKDB_PATTERNS.values())
IN_ORDER = """
    ORDER BY i
    MEASURES i AS start_i
    ONE ROW PER MATCH
    PATTERN (A B)
    DEFINE A AS v = 0, B AS v = 1
"""


@dataclass(frozen=True, slots=True)
class DuckdbPattern:
    """A clause, and the values of its rows by their numbers. `per_partition` rows follow each other in one partition;
    None: there are no partitions. `loop` finds the values that the result has in `columns`.
    """

    rows: int
    clause: str
    values: Callable[[Any], Any]
    loop: Callable[[pl.DataFrame], Iterable[Row]]
    per_partition: int | None = None
    columns: tuple[str, ...] = ("first", "last")

    def matches(self) -> tg.Relation:
        schema = "i bigint, v bigint" if self.per_partition is None else "p bigint, i bigint, v bigint"
        return tg.stream("S", schema, progress="i").match_recognize(self.clause)

    def events(self, rows: int = MOST) -> pl.DataFrame:
        """The rows, of which the largest of the queries has `rows`."""
        i = np.arange(self.rows * rows // MOST)
        keys = {} if self.per_partition is None else {"p": i // self.per_partition}
        return pl.DataFrame({**keys, "i": i, "v": self.values(i)})

    def by_loop(self, events: pl.DataFrame) -> pl.DataFrame:
        schema = dict.fromkeys(self.columns, pl.Int64)
        return pl.DataFrame(list(self.loop(events)), schema=schema, orient="row").sort(self.columns)


def adjacent(events: pl.DataFrame) -> Iterable[Row]:
    """The first and the last row of 0 and 1 side by side in a partition."""
    begun = dict[int, int]()
    keys = events["p"].to_list() if "p" in events.columns else repeat(0)
    for p, i, v in zip(keys, events["i"].to_list(), events["v"].to_list(), strict=False):
        first = begun.pop(p, None)
        if v == 1 and first is not None:
            yield first, i
        elif v == 0:
            begun[p] = i


def alternating(events: pl.DataFrame) -> Iterable[Row]:
    """All rows of three runs that follow each other, below 12, above, and below: each with the first and the last."""
    both = zip(events["i"].to_list(), events["v"].to_list(), strict=True)
    runs = [(low, [i for i, _ in run]) for low, run in groupby(both, key=lambda row: row[1] < 12)]
    at = 0
    while at + 2 < len(runs):
        if not runs[at][0]:
            at += 1
            continue
        rows = [i for _, run in runs[at : at + 3] for i in run]
        yield from ((i, rows[0], rows[-1]) for i in rows)
        at += 3


def above(events: pl.DataFrame) -> Iterable[Row]:
    """The first and the last row of a row and those above it that follow."""
    i, v = events["i"].to_list(), events["v"].to_list()
    at = 0
    while at < len(v):
        end = at + 1
        while end < len(v) and v[end] > v[at]:
            end += 1
        if end > at + 1:
            yield i[at], i[end - 1]
        at = end


PATTERNS = {
    "scan": DuckdbPattern(DUCKDB_PATTERNS["scan"][0], IN_ORDER, lambda i: i % 5, adjacent),
    "partitions": DuckdbPattern(
        DUCKDB_PATTERNS["partitions"][0], f"\n    PARTITION BY p{IN_ORDER}", lambda i: i % 5, adjacent, 100
    ),
    "quantifier": DuckdbPattern(
        DUCKDB_PATTERNS["quantifier"][0],
        """
    ORDER BY i
    MEASURES i AS start_i
    ALL ROWS PER MATCH
    PATTERN (A+ B+ A+)
    DEFINE A AS v < 12, B AS v >= 12
""",
        lambda i: i % 17,
        alternating,
        columns=("i", "first", "last"),
    ),
    "navigation": DuckdbPattern(
        DUCKDB_PATTERNS["navigation"][0],
        """
    ORDER BY i
    MEASURES i AS start_i
    ONE ROW PER MATCH
    PATTERN (A B+)
    DEFINE A AS true, B AS v > LAST(A.v)
""",
        lambda i: i * 2654435761 % 1000,
        above,
    ),
}
