"""What Python writes as `sequences` is printed as the clause MATCH_RECOGNIZE, which means the same."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest

import tidegate as tg
from tests.algebra.text.row_pattern_examples import as_bag, result
from tidegate.algebra.nodes import Row
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.text.row_patterns.printer import match_recognize_text

ROWS = tg.stream("Rows", "k string, t bigint, n bigint, x bigint, c string", progress="t")
ALTERNATELY: dict[str, Any] = {"A": lambda m: m.A.c == "a", "B": lambda m: m.B.c != "a"}
#: Pattern, options and measures.
PYTHON: Mapping[str, Mapping[str, Any]] = {
    "values": {"pattern": "A B+", "top": lambda m: m.A.x, "low": lambda m: m.B.x + m.rows.x * 2},
    "rows of a variable": {
        "pattern": "A B+ A",
        "one": lambda m: m.A.first().x,
        "two": lambda m: m.B.last(1).x,
        "three": lambda m: m.rows.first(2).c,
        "four": lambda m: m.A.first(1).value(ROWS.x * 2 - ROWS.n),
    },
    "rows beside": {
        "pattern": "A B",
        "before": lambda m: m.A.prev().x,
        "after": lambda m: m.B.last().next(2).x,
        "nested": lambda m: m.A.first(0).prev(2).c,
    },
    "the whole match": {
        "pattern": "A B*",
        "rows": "all",
        "end": lambda m: m.final.rows.x,
        "so_far": lambda m: m.rows.x,
    },
    "aggregates": {
        "pattern": "(A | B){2,}",
        "rows": "all",
        "counted": lambda m: m.rows.agg(tg.count()),
        "summed": lambda m: m.A.agg(tg.sum(ROWS.x + 1)),
        "most": lambda m: m.final.B.agg(tg.max(ROWS.x)),
        "names": lambda m: m.rows.agg(tg.count_distinct(ROWS.c)),
    },
    "variables": {
        "pattern": "A (B | C)",
        "define": {"B": lambda m: m.B.c == "b"},
        "of": lambda m: m.rows.classifier,
        "before": lambda m: m.rows.prev().classifier,
        "number": lambda m: m.number,
    },
    "subsets": {
        "pattern": "A B A? B",
        "subsets": {"U": ("A", "B")},
        "skip": "last B",
        "sum": lambda m: m.U.agg(tg.sum(ROWS.x)),
        "first_x": lambda m: m.U.first().x,
    },
    "limits": {"pattern": "A B+ A", "within": 6, "limits": lambda m: m.A.t - m.B.first().t <= 4, "of": lambda m: m.B.t},
    "least distances": {"pattern": "A B", "limits": lambda m: m.B.t - m.A.t >= 2},
    "absences": {
        "pattern": "!N[3] A B !N[2]",
        "define": ALTERNATELY | {"N": lambda m: m.N.x > 3},
        "of": lambda m: m.B.x,
    },
    "unmatched rows": {"pattern": "A B", "rows": "all", "unmatched": True, "skip": "next row"},
    "no empty matches": {"pattern": "A* | B", "rows": "all", "empty": False},
    "conditions": {
        "pattern": "A B+",
        "define": {
            "A": lambda m: (m.A.x > 1) | m.A.prev().x.is_null(),
            "B": lambda m: (m.B.x >= m.A.x - 2) & (m.rows.agg(tg.count()) <= 3) & ~(m.B.next().x == 0),
        },
    },
    "no measures": {"pattern": "PERMUTE(A, B) ^? $?"},
}


def some_rows(seed: int) -> tuple[Row, ...]:
    rng = random.Random(seed)
    times = sorted(rng.randrange(30) for _ in range(24))
    return tuple(
        (rng.choice(("k", "l")), t, n, rng.choice((0, 1, 2, 3, 5, None)), rng.choice("aab"))
        for n, t in enumerate(times)
    )


@pytest.mark.parametrize("name", PYTHON)
def test_python_is_printed_as_sql_that_means_the_same(name: str) -> None:
    options = {"define": ALTERNATELY, **PYTHON[name]}
    written = ROWS.sequences(by="k", tie="n", **options)
    text = tg.query_text(written)
    read = tg.read_query(text, ROWS)
    assert tg.query_text(read) == text
    assert read.schema == written.schema
    results = [(result(written, rows), result(read, rows)) for rows in map(some_rows, range(10))]
    assert all(as_bag(of_python) == as_bag(of_text) for of_python, of_text in results)
    assert any(of_python for of_python, _ in results)


def test_a_clause_of_python_is_read_over_what_python_selects() -> None:
    positive = ROWS.where(ROWS.x > 0)
    written = positive.sequences("A B", by="k", tie="n", define=ALTERNATELY, x=lambda m: m.A.x)
    node = written._node
    assert isinstance(node, Sequences)
    read = positive.match_recognize(match_recognize_text(node))
    rows = tuple(row for row in some_rows(0) if isinstance(row[3], int) and row[3] > 0)
    assert as_bag(result(read, rows)) == as_bag(result(written, rows)) != []
