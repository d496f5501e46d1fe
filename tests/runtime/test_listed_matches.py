"""Every match that skips any rows, listed from the rows that matches end with: the same as by a thread for each."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

from tests.strategies.searched_sequences import Row, S, Searched, found_by, operator_of
from tests.strategies.sequences import random_pattern
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import variables_of
from tidegate.algebra.semantics import bags_equal
from tidegate.algebra.time import INF
from tidegate.analysis.ordered.sequences.bounds import ROWS
from tidegate.analysis.ordered.sequences.tables import tables_of
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.kernels.sequences.threads import EVER
from tidegate.runtime.ordered.sequences import found
from tidegate.runtime.ordered.sequences.arrays import arrays_of
from tidegate.runtime.ordered.sequences.listed import listed_within
from tidegate.runtime.ordered.sequences.operator import compiled_search
from tidegate.runtime.rows import as_frame

UNTYPED: Any = S
ABC = {name: lambda m, name=name, value=value: m[name].v == value for value, name in enumerate("ABC", 1)}


def node_of(pattern: str, **options: Any) -> Sequences:
    every = {"matches": "any"} | options
    define = {name: condition for name, condition in ABC.items() if name in pattern} | every.pop("define", {})
    relation: Any = UNTYPED.sequences(pattern, by="k", order="t", tie="n", define=define, **every)
    node: Sequences = relation._node
    assert not isinstance(tables_of(node), str), tables_of(node)
    return node


def within(node: Sequences) -> int | None:
    arrays = arrays_of(node)
    assert arrays is not None
    return listed_within(arrays)


def rows_of(values: str) -> tuple[Row, ...]:
    """One row every tick, from 0 on: `"12.3"` are the values 1, 2, NULL, 3."""
    return tuple((1, at, at, None if v == "." else int(v), float(at)) for at, v in enumerate(values))


def random_listed(rng: random.Random, most: int) -> Searched:
    """A pattern whose matches are listed, over a few rows of one partition or two, many at one instant."""
    while True:
        pattern = random_pattern(rng, skips=True)
        define = {name: _condition(rng, name) for name in variables_of(pattern) if rng.random() < 0.9}
        limit: dict[str, Any] = {"within": rng.choice((0, 1, 3, 6))} if rng.random() < 0.7 else {}
        relation: Any = UNTYPED
        try:
            relation = UNTYPED.sequences(
                pattern, by=rng.choice(((), "k")), order="t", tie="n", matches="any", define=define, **limit,
                value=lambda m: m.rows.v, label=lambda m: m.rows.classifier,
            )  # fmt: skip
        except QueryError:
            continue
        node: Sequences = relation._node
        if isinstance(tables_of(node), str) or within(node) is None:
            continue
        at, rows = 0, list[Row]()
        for number in range(rng.randint(1, most)):
            at += rng.choice((0, 0, 1, 1, 2, 4))
            rows.append((rng.choice((1, 1, 1, 2)), at, number, rng.choice((0, 1, 1, 2, None)), 0.5))
        return Searched(node, tuple(rng.sample(rows, len(rows))))


def _condition(rng: random.Random, name: str) -> Any:
    number = rng.choice((0, 1, 2))
    conditions: tuple[Any, ...] = (
        lambda m: m[name].v == number,
        lambda m: m[name].v >= number,
        lambda m: m[name].v != m[name].prev().v,
    )
    return rng.choice(conditions)


@pytest.mark.parametrize(
    "first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in range(200, 2_000, 200))]
)
def test_random_patterns(first: int) -> None:
    """In increments, with rows in any order, and with restarts in between."""
    matches = 0
    for seed in range(first, first + (40 if not first else 200)):
        rng = random.Random(seed)
        case = random_listed(rng, 6)
        meant = case.meant
        assert bags_equal(found_by(rng, case), meant), (seed, case.node.text(["S"]), case.rows)
        matches += len(meant)
    assert matches > 40


def test_longer_rows_as_by_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = 0
    for seed in range(60):
        case = random_listed(random.Random(f"long {seed}"), 11)
        listed = found_by(random.Random(seed), case)
        compiled_search.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(found, "listed_within", lambda _: None)
            assert bags_equal(found_by(random.Random(seed), case), listed), seed
        compiled_search.cache_clear()
        matches += len(listed)
    assert matches > 100


def test_which_patterns_are_listed() -> None:
    assert within(node_of("A B+ C", within=9)) == 9
    assert within(node_of("A B+ C", limits=lambda m: [m.rows.t - m.rows.first().t <= 7], within=9)) == 7
    assert within(node_of("A B C")) == EVER
    assert within(node_of("A B", define={"B": lambda m: m.B.v > m.B.prev().v})) == EVER
    assert within(node_of("A B", define={"B": lambda m: m.B.v > m.A.v})) is None
    assert within(node_of("A B", define={"B": lambda m: m.B.next().v > 0})) is None
    assert within(node_of("A B", within=9, limits=lambda m: m.B.t - m.A.t <= 3)) is None
    assert within(node_of("A !N B", within=9)) is None
    assert within(node_of("A B", within=9, per_start=5)) is None
    assert within(node_of("A B", within=9, matches="next")) is None
    assert within(node_of("A B", within=9, matches="contiguous")) is None


def test_beginnings_of_no_match_are_not_told_apart() -> None:
    """Of forty rows there are 2^40 sets; a thread for each of them would not end."""
    node = node_of("A B+ C", within=50)
    assert found_by(random.Random(0), Searched(node, rows_of("1" + "2" * 40))) == []
    late = rows_of("1" + "2" * 10 + "." * 60 + "2223")
    assert found_by(random.Random(0), Searched(node, late)) == []
    one = found_by(random.Random(0), Searched(node, rows_of("1" + "2" * 10 + "." * 60 + "123")))
    assert [row[1:] for row in one] == [(71, 73, 73)]


def test_a_match_lasts_as_long_as_it_may() -> None:
    node = node_of("A B", within=3)
    case = Searched(node, rows_of("1..2"))
    assert [row[1:] for row in case.meant] == [(0, 3, 3)]
    assert found_by(random.Random(0), case) == case.meant
    assert found_by(random.Random(0), Searched(node, rows_of("1...2"))) == []
    # Of two rows that may begin it, in one increment, the earlier one is too far.
    rows = pl.DataFrame(rows_of("11..2"), schema=polars_schema(node.input.schema), orient="row")
    _, result = operator_of(node).step([rows], -INF, INF)
    assert [row[1:] for row in as_frame(result).rows()] == [(1, 4, 4)]


def test_of_two_ways_to_a_row_the_one_that_began_later_counts() -> None:
    last = {"D": lambda m: m.D.v == 4}
    for pattern in ("(A | B B) C D", "(B B | A) C D"):
        case = Searched(node_of(pattern, within=4, define=last), rows_of("212.34"))
        assert [row[1:] for row in case.meant] == [(1, 5, 5)]
        assert found_by(random.Random(0), case) == case.meant


@pytest.mark.parametrize(
    ("pattern", "options", "kept"),
    [
        ("A", {}, 0),
        ("A B", {"within": 3}, 3),
        ("A B", {"within": 5}, 5),
        ("A B", {}, 5),
        ("B A", {"within": 9}, 4),
        ("A B+ C", {"within": 9}, 5),
    ],
)
def test_rows_stay_from_the_first_that_may_begin_a_match(pattern: str, options: dict[str, Any], kept: int) -> None:
    node = node_of(pattern, **options)
    rows = pl.DataFrame(rows_of("12121"), schema=["k", "t", "n", "v", "x"], orient="row")
    operator, _ = operator_of(node).step([rows], -INF, 4)
    assert operator.counts()[ROWS] == kept
