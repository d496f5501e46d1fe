"""A program that reads a part of its input, as docs/how-to/changing-a-query.md says, has the results after the cut."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import pytest

import tidegate as tg

L = tg.stream("L", "k bigint, t bigint, v bigint", progress="t")
PARTS = L.partition_by("k").derive(A=tg.situation(L.v > 4), B=tg.situation(L.v < 4))
BRIEF = L.partition_by("k").derive(A=tg.situation(L.v > 4, at_most=6))
ANY = {"A": lambda m: m.A.v >= 0, "B": lambda m: m.B.v >= 0}
Row = tuple[int, int, int]


def _asof() -> tg.Relation:
    left, right = L.as_("l"), L.as_("r")
    return left.asof_join(right, by="k", within=8, strict=True).select(left.k, left.t, before=right.v)


#: Queries of which `holds` names a span, and this span.
WITH_A_SPAN: dict[str, tuple[tg.Relation, int]] = {
    "over": (L.over(by="k", order="t", range=10, n=tg.count(), s=tg.sum(L.v)), 10),
    "lag": (L.over(by="k", order="t", p=tg.lag(L.v, within=7)), 7),
    "hopping": (L.windows(tg.hopping(10, every=5), by="k").agg(n=tg.count_distinct(L.v)).select("k", "end", "n"), 10),
    "asof": (_asof(), 8),
    "ticks": (L.ticks(5, by="k", within=12), 12),
    "any": (L.sequences("A B", by="k", define=ANY, within=8, matches="any"), 8),
}
#: Queries that need all, and the words of `holds` that say so; None: the page says it.
WITHOUT: dict[str, tuple[tg.Relation, str | None]] = {
    "total": (L.over(by="k", order="t", p=tg.sum(L.v)), "keys"),
    "last": (L.over(by="k", order="t", p=tg.lag(L.v)), "keys"),
    "sessions": (L.windows(tg.session(5), by="k").agg(n=tg.count()), "keys"),
    "long sessions": (L.windows(tg.session(5), by="k").agg(n=tg.count_distinct(L.v)), "the longest session"),
    "rows": (L.windows(tg.rows(3), by="k").agg(s=tg.sum(L.v)), "keys"),
    "situations": (PARTS.A, "of a partition"),
    "brief situations": (BRIEF.A, "of a partition"),
    "patterns": (PARTS.match(PARTS.A.meets(PARTS.B), within=10), "of a partition"),
    "dedup": (L.dedup(by="k", within=8), None),
    "preferred": (L.sequences("A B", by="k", define=ANY, within=8), None),
}


def wrong(query: tg.Relation, back: int, rows: Callable[[Random], list[Row]]) -> int:
    """How often the results after a cut are others where rows up to so long before it are left out."""
    program = tg.program(X=query)
    (*_, facts) = program.explain().to_dict()["queries"]

    def after(rows: list[Row], cut: int) -> list[str]:
        found = program.run({"L": rows}).rows("X")
        return sorted(str(row) for row in found if all(row[name] > cut for name in facts["progress"]))

    differ = 0
    for seed in range(12):
        given = rows(Random(seed))
        cut = given[-1][1] * 2 // 3
        differ += after(given, cut) != after([row for row in given if row[1] > cut - back], cut)
    return differ


def some_rows(random: Random) -> list[Row]:
    at = 0
    return [(random.randrange(2), at := at + random.choice((1, 1, 2, 3, 6)), random.randrange(10)) for _ in range(80)]


def held(query: tg.Relation) -> list[str]:
    return [line for facts in tg.program(X=query).explain().to_dict()["queries"] for line in facts["holds"]]


@pytest.mark.parametrize("name", WITH_A_SPAN)
def test_rows_from_the_span_before_the_cut_are_enough(name: str) -> None:
    query, span = WITH_A_SPAN[name]
    (line,) = held(query)
    assert re.fullmatch(rf"\w+: rate\(L\) × {span}(, at most keys\(.*\))?", line)
    assert wrong(query, span, some_rows) == 0
    if name != "any":  # of which no match begins before the cut
        assert wrong(query, 0, some_rows) > 0


@pytest.mark.parametrize("name", WITHOUT)
def test_rows_from_no_time_before_the_cut_are_enough(name: str) -> None:
    query, words = WITHOUT[name]
    assert all(words in line for line in held(query)) if words else held(query) == ["rows: rate(L) × 8"]

    def rows(random: Random) -> list[Row]:
        """One key goes on without an end, as sessions do; the other one is silent for long."""
        silent = [(1, 1, 7), (1, 2, 8), (1, 70, 9), (1, 73, 2), (1, 77, 7)]
        on = [(0, at, random.randrange(10)) for at in range(1, 100)]
        return sorted([*silent, *on], key=lambda row: row[1])

    assert wrong(query, 20, rows) + wrong(query, 21, rows) > 0  # one of which leaves out an odd number of rows


def test_spans_of_queries_that_read_each_other_add_up() -> None:
    first = L.over(by="k", order="t", range=10, n=tg.count())
    both = first.where(first.n > 1).over(by="k", order="t", range=10, m=tg.sum(first.n))
    assert wrong(both, 10, some_rows) > 0
    assert wrong(both, 20, some_rows) == 0
