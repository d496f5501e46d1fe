"""The rows that a row pattern yields over all rows of its input."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest

import tidegate as tg
from tests.strategies.written_sequences import sequences
from tidegate.algebra.nodes import Row
from tidegate.algebra.ordered.sequences.definition import Reported
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.semantics import aggregated
from tidegate.algebra.time import instant_ticks, last_instant
from tidegate.algebra.types import BIGINT, DATE, MAX_INSTANT, TIMESTAMP

A: Any = lambda r: r.x == 0  # noqa: E731
B: Any = lambda r: r.x == 1  # noqa: E731
MEASURES: dict[str, Any] = {"n": lambda r: r.number, "label": lambda r: getattr(r, "is"), "sum": lambda r: r.count_all}
#: Instant, tie and value.
ROWS: list[Row] = [(1, 0, 0), (2, 0, 1), (2, 1, 1), (4, 0, 2), (5, 0, 0)]


def result(node: Sequences, rows: list[Row]) -> list[Row]:
    found = node.rows([rows], aggregated)
    assert all(len(row) == len(node.schema.names) for row in found)
    return found


def test_one_row_of_each_match() -> None:
    node = sequences("A B*", A=A, B=B, measures=MEASURES)
    assert node.schema.names == ("n", "label", "sum", "first", "last", "detected")
    assert result(node, ROWS) == [(1, "B", 3, 1, 2, 4), (2, "A", 1, 5, 5, MAX_INSTANT)]
    # The order of rows as they come is none.
    assert result(node, ROWS[::-1]) == result(node, ROWS)


def test_all_rows_with_those_of_no_match() -> None:
    node = sequences("A {- B -} B?", A=A, B=B, measures=MEASURES, reported=Reported("all", unmatched=True))
    assert result(node, ROWS) == [
        (1, 0, 1, "A", 1, 0, 1, 2, 2),
        (2, 1, 1, "B", 3, 1, 1, 2, 2),
        (4, 0, None, None, None, 2, 4, 4, 4),
        (5, 0, None, None, None, 0, 5, 5, MAX_INSTANT),
    ]


@pytest.mark.parametrize("empty", [True, False])
def test_empty_matches(empty: bool) -> None:
    node = sequences("B?", B=B, measures=MEASURES, reported=Reported("all", empty=empty))
    rows = result(node, ROWS)
    assert [row for row in rows if row[3] is not None] == [
        (2, 0, 2, "B", 1, 1, 2, 2, 2),
        (2, 1, 3, "B", 1, 1, 2, 2, 2),
    ]
    none = [(t, 0, number, None, 0, x, t, t, t) for t, x, number in ((1, 0, 1), (4, 2, 4), (5, 0, 5))]
    assert [row for row in rows if row[3] is None] == (none if empty else [])


def test_partitions_are_apart() -> None:
    keyed = tg.stream("E", "k string, t bigint, tie bigint, x bigint", progress="t")
    node = replace(sequences("A B", A=A, B=B), input=keyed._node, keys=("k",))
    rows: list[Row] = [(key, *row) for key in ("u", None, "v") for row in ROWS if key != "v" or row[2] != 1]
    assert sorted(result(node, rows), key=str) == [("u", 1, 2, 2), (None, 1, 2, 2)]


def test_a_condition_without_a_value_is_not_true() -> None:
    node = sequences("A", A=lambda r: 1 // r.x >= 1, measures={"m": lambda r: 1 // (r.first_x - 1)})
    assert result(node, ROWS) == [(None, 2, 2, 2), (None, 2, 2, 2)]


def test_the_end_of_the_input_is_the_last_instant_of_the_timeline() -> None:
    last = dt.datetime(9999, 12, 31, 23, 59, 59, 999_999, tzinfo=dt.UTC)
    assert last_instant(TIMESTAMP) == instant_ticks(last)
    assert last_instant(DATE) == (last - dt.datetime(1970, 1, 1, tzinfo=dt.UTC)).days
    assert last_instant(BIGINT) == MAX_INSTANT
    times = tg.stream("E", "t timestamp, tie bigint, x bigint", progress="t")
    node = replace(sequences("A+", A=A), input=times._node)
    assert result(node, [(7, 0, 0)]) == [(7, 7, instant_ticks(last))]
    assert node.schema["detected"].type == TIMESTAMP


def test_rows_near_the_last_instant_have_no_later_one() -> None:
    last = last_instant(TIMESTAMP)
    times = tg.stream("E", "t timestamp, tie bigint, x bigint", progress="t")
    node = replace(sequences("A B | A", A=A, B=B, limits=[10]), input=times._node)
    assert result(node, [(last - 3, 0, 0)]) == [(last - 3, last - 3, last)]


def test_its_text_names_what_it_reads() -> None:
    node = sequences("A B+", B=lambda r: r.x < r.prev_x, limits=[9], measures={"low": lambda r: r.last_B_x})
    assert node.text(["E"]) == (
        "sequences of E by () in order of t, tie; pattern A B+; B as x < PREV(x); low = B.x; "
        "last - first <= 9; skip past last row"
    )
