"""What fails is remembered by row: later searches that meet there are not gone through again, and find the same."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tests.strategies.searched_sequences import Row, S, Searched, found_by, operator_of, random_searched
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.definition import EveryMatch
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import Concatenation, Pattern, Repetition, Step
from tidegate.algebra.semantics import bags_equal
from tidegate.algebra.time import INF
from tidegate.analysis.ordered.sequences.tables import tables_of
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.kernels.sequences import preferred
from tidegate.runtime.ordered.sequences import found
from tidegate.runtime.ordered.sequences.arrays import arrays_of
from tidegate.runtime.ordered.sequences.operator import compiled_search
from tidegate.runtime.ordered.sequences.told import states_told
from tidegate.runtime.rows import as_frame

UNTYPED: Any = S
ABC = {name: lambda m, name=name, value=value: m[name].v == value for value, name in enumerate("ABC", 1)}
EITHER = ABC | {"A": lambda m: m.A.v >= 1}


def node_of(pattern: str, **options: Any) -> Sequences:
    define = {name: condition for name, condition in options.pop("define").items() if name in pattern}
    relation: Any = UNTYPED.sequences(pattern, by="k", order="t", tie="n", define=define, **options)
    node: Sequences = relation._node
    assert not isinstance(tables_of(node), str), tables_of(node)
    return node


def told(node: Sequences) -> set[int]:
    """The states of a pattern that rows tell."""
    arrays = arrays_of(node)
    assert arrays is not None
    mask = states_told(arrays)
    return {state for state in range(mask.bit_length()) if mask >> state & 1}


def rows_of(values: str) -> tuple[Row, ...]:
    """One row every tick, from 0 on: `"12.3"` are the values 1, 2, NULL, 3."""
    return tuple((1, at, at, None if v == "." else int(v), float(at)) for at, v in enumerate(values))


def runs(rng: random.Random) -> tuple[Row, ...]:
    """Rows of one partition or two: runs of one value, many rows at one instant."""
    at, rows = 0, list[Row]()
    while len(rows) < 24:
        value = rng.choice((0, 1, 1, 2, None))
        for _ in range(rng.choice((1, 1, 2, 6))):
            at += rng.choice((0, 1, 1, 3))
            rows.append((rng.choice((1, 1, 1, 2)), at, len(rows), value, rng.choice((0.5, 2.0, None))))
    return tuple(rows)


def remembering(rng: random.Random) -> Searched:
    """A pattern of which searches are remembered, over long rows."""
    while True:
        node = random_searched(rng).node
        if isinstance(node.selection, EveryMatch) or isinstance(tables_of(node), str):
            continue
        if rng.random() < 0.5:  # most failures need another row at the end
            last: Pattern = Concatenation((Repetition(node.pattern, 1, None), Step(rng.choice(node.variables))))
            node = replace(node, pattern=last)
            try:
                _ = node.schema
            except QueryError:
                continue
        if not isinstance(tables_of(node), str) and told(node):
            return Searched(node, runs(rng))


def compare(first: int, cases: int, monkeypatch: pytest.MonkeyPatch) -> int:
    """What is found with and without a memory is the same; how many results there are."""
    results = 0
    for seed in range(first, first + cases):
        case = remembering(random.Random(seed))
        compiled_search.cache_clear()
        remembered = found_by(random.Random(seed), case)
        compiled_search.cache_clear()
        with monkeypatch.context() as patched:
            patched.setattr(found, "states_told", lambda _: 0)
            assert bags_equal(found_by(random.Random(seed), case), remembered), (seed, case.node.text(["S"]))
        results += len(remembered)
    return results


@pytest.fixture(autouse=True)
def _no_search_is_taken_from_another_test() -> Iterator[None]:
    yield
    compiled_search.cache_clear()


def test_random_patterns_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compare(0, 30, monkeypatch) > 15


@pytest.mark.long
@pytest.mark.parametrize("first", range(1_000, 9_000, 1_000))
def test_many_random_patterns_find_the_same(first: int, monkeypatch: pytest.MonkeyPatch) -> None:
    assert compare(first, 1_000, monkeypatch) > 500


@pytest.mark.parametrize("skip", ["past last row", "next row"])
@pytest.mark.parametrize("pattern", ["A+ B", "(A A)+ B", "A+ B | A C", "(A | B)+ C", "A+? C+ B", "(A A A)+ C | B B"])
def test_what_is_found_is_what_is_meant(pattern: str, skip: str) -> None:
    for define in (ABC, EITHER):
        node = node_of(pattern, define=define, skip=skip)
        assert told(node)
        for values in ("111113", "1111321112", "1111.11311132", "11211133111"):
            case = Searched(node, rows_of(values))
            for seed in range(2):
                assert bags_equal(found_by(random.Random(seed), case), case.meant), (values, seed)


def test_a_search_that_a_limit_ends_tells_nothing() -> None:
    """A start that is later has longer."""
    node = node_of("A+ B", define=ABC, within=4)
    case = Searched(node, rows_of("11111111112"))
    assert told(node)
    assert [row[1:] for row in case.meant] == [(6, 10, 10)]
    assert bags_equal(found_by(random.Random(0), case), case.meant)


def test_a_search_with_a_way_that_has_not_failed_goes_on() -> None:
    """From row 3, A fails as from row 0, and B goes on."""
    both = {"A": lambda m: m.A.v <= 2, "B": lambda m: m.B.v == 2, "C": lambda m: m.C.v == 3, "D": lambda m: m.D.v == 9}
    for pattern in ("A+ D | B A* C", "B A* C | A+ D"):
        node = node_of(pattern, define=both)
        case = Searched(node, rows_of("1112113"))
        assert [row[1:] for row in case.meant] == [(3, 6, 6)]
        assert bags_equal(found_by(random.Random(0), case), case.meant)


def test_a_search_that_a_row_behind_others_ends_tells_nothing_of_those_without_it() -> None:
    """Row 2 turns out to be no A with row 5, and from row 3 on there is none such."""
    ahead = {"A": lambda m: (m.A.v == 1) & (m.A.next(3).v != 9), "B": lambda m: m.B.v == 9}
    case = Searched(node_of("A+ B", define=ahead), rows_of("111119111"))
    assert told(case.node)
    assert [row[1:3] for row in case.meant] == [(3, 5)]
    assert bags_equal(found_by(random.Random(0), case), case.meant)


def test_which_states_a_row_tells() -> None:
    assert told(node_of("A+ B", define=ABC)) == {1, 2, 3}
    assert told(node_of("A+ B", define=ABC | {"B": lambda m: m.B.v > m.A.v})) == {1, 2}
    assert told(node_of("A+ B", define=ABC | {"A": lambda m: m.A.v >= m.A.prev().v})) == {1, 2, 3}
    assert told(node_of("A+ B", define=ABC | {"B": lambda m: m.B.v > m.A.first().v})) == set()
    assert told(node_of("A+ B", define=ABC | {"B": lambda m: m.B.v > m.A.last(1).v})) == set()
    assert told(node_of("A+ B", define=ABC | {"A": lambda m: (m.A.v == 1) & (m.A.agg(tg.count()) < 9)})) == set()
    assert told(node_of("A+ B", define=ABC, within=9)) == {1, 2, 3}
    assert told(node_of("A+ B", define=ABC, limits=lambda m: m.B.t - m.A.first().t <= 9)) == set()
    assert told(node_of("A+ B", define=ABC, limits=lambda m: m.B.t - m.A.t <= 9)) == set()
    assert told(node_of("A+ B", define=ABC, limits=lambda m: m.A.t - m.rows.first().t <= 9)) == set()
    assert told(node_of("A+ B", define=ABC | {"B": lambda m: (m.B.v == 2) & (m.B.t - m.A.t <= 9)})) == set()
    # No search is long, or a mask has no room for all states.
    assert told(node_of("A{1,7} B", define=ABC)) == set()
    assert told(node_of("A{1,60} B", define=ABC)) != set()
    assert told(node_of("A{1,80} B", define=ABC)) == set()


@pytest.mark.parametrize("last", ["3", ""], ids=["by a row", "by the end"])
@pytest.mark.parametrize("skip", ["past last row", "next row"])
def test_a_long_run_that_ends_in_vain_is_read_once(skip: str, last: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows come one a tick: a search that is over so many ticks after its start has read as many rows."""
    read, search, matches = list[int](), preferred.search, preferred.preferred_matches

    def counted(start: int, *others: Any) -> Any:
        result = search(start, *others)
        read.append(result[1] - start + 1)
        return result

    monkeypatch.setattr(preferred, "search", counted)
    monkeypatch.setattr(preferred, "preferred_matches", getattr(matches, "py_func", matches))
    node, rows = node_of("A+ B", define=ABC, skip=skip), rows_of("1" * 60 + last)
    frame = pl.DataFrame(rows, schema=polars_schema(node.input.schema), orient="row")
    _, result = operator_of(node).step([frame], -INF, INF)
    assert as_frame(result).is_empty()
    assert len(read) == 60
    # The first one, and at the end that of the last row.
    assert sum(rows > 2 for rows in read) == (1 if last else 2)
