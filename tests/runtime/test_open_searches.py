"""Searches that are open go on from their threads: what they find is the same, and they read what is new."""

from __future__ import annotations

import random
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tests.shards import cases
from tests.strategies.searched_sequences import (
    Row,
    S,
    Searched,
    found_by,
    in_order,
    operator_of,
    random_searched,
    reloaded,
    step_of,
)
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.sequences.definition import EveryMatch
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.pattern import longest
from tidegate.algebra.semantics import bags_equal
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.ordered.sequences.tables import tables_of
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.ordered import row_arrays
from tidegate.runtime.ordered import state as operator_state
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.sequences import found, nodes
from tidegate.runtime.ordered.sequences import operator as operators
from tidegate.runtime.ordered.sequences.kept import SearchedRows
from tidegate.runtime.ordered.sequences.open_searches import OpenSearches
from tidegate.runtime.ordered.sequences.rows import OrderedRows
from tidegate.runtime.ordered.state_tables import folded
from tidegate.runtime.ordered.table import load_operator
from tidegate.runtime.rows import as_frame
from tidegate.runtime.state.store.local import LocalStore

UNTYPED: Any = S
IS = {name: lambda m, name=name, value=value: m[name].v == value for value, name in enumerate("ABC", 1)}


@pytest.fixture
def gone_on(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Every open search goes on from its threads; how many have in each increment."""
    monkeypatch.setattr(found, "WORTH", 0)
    seen: list[int] = []
    kept = OpenSearches.gone_on

    def counted(self: OpenSearches, *given: Any) -> Any:
        added = kept(self, *given)
        seen.append(0 if added is None else len(added[0].partitions))
        return added

    monkeypatch.setattr(OpenSearches, "gone_on", counted)
    return seen


def node_of(pattern: str, **options: Any) -> Sequences:
    relation: Any = UNTYPED.sequences(pattern, by="k", order="t", tie="n", **options)
    node: Sequences = relation._node
    assert not isinstance(tables_of(node), str), tables_of(node)
    return node


def frame_of(node: Sequences, rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=polars_schema(node.input.schema), orient="row")


@pytest.mark.parametrize("first", [0, *(pytest.param(first, marks=pytest.mark.long) for first in (15, 30))])
def test_random_patterns(first: int, gone_on: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    """Of which most go on for some rows."""
    searched = 0
    for seed in range(first, first + 15):
        rng = random.Random(seed)
        try:
            node = random_node(rng)
        except QueryError:
            continue
        if isinstance(tables_of(node), str):
            continue
        searched += 1
        rows = long_rows(rng, 40)
        compare(node, rows, sorted(rng.sample(range(rows[-1][1]), 20)), rng, monkeypatch)
        case = random_searched(rng)
        assert bags_equal(found_by(rng, case), case.meant), seed
    assert searched > 5
    assert sum(gone_on) > 20


def random_node(rng: random.Random) -> Sequences:
    pattern = rng.choice(("A B* C", "A (B | A)* C", "(A B*)+ C", "A B{2,} C?", "A B*? C+ A", "A (B C?)* A | C"))
    options: dict[str, Any] = {"number": lambda m: m.number, "was": lambda m: m.B.first().prev().v}
    if rng.random() < 0.4:
        options["limits"] = lambda m: m.C.t - m.A.first().t <= 12
    if rng.random() < 0.4:
        options["within"] = rng.choice((4, 15, 40))
    define = {name: condition(rng, name) for name in "ABC"}
    relation: Any = UNTYPED.sequences(pattern, by="k", order="t", tie="n", define=define, **options)
    node: Sequences = relation._node
    _ = node.schema
    return node


def condition(rng: random.Random, name: str) -> Any:
    other = rng.choice("ABC")
    conditions: tuple[Any, ...] = (
        lambda m: m[name].v == "ABC".index(name) + 1,
        lambda m: m[name].v == "ABC".index(name) + 1,
        lambda m: m[name].v != 3,
        lambda m: m[name].v >= m[name].prev().v,
        lambda m: (m[name].v >= m[name].prev(2).v) | m[name].prev(2).v.is_null(),
        lambda m: (m[name].v >= m[other].first(1).v) | m[other].first(1).v.is_null(),
        lambda m: (m[name].x <= m[other].last(1).x) | (m[name].v == 2),
        lambda m: (m[name].v - m[other].prev().v >= 0) | (m[name].v < 3),
        lambda m: (m[name].v == 2) & (m[name].agg(tg.count()) <= 6),
        lambda m: m[name].v.same_as(m[other].v),
    )
    return rng.choice(conditions)


PATTERNS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("A B* C", {"define": IS}),
    ("A B* C | A", {"define": IS, "limits": lambda m: m.C.t - m.A.t <= 25}),
    ("A (B | A)* C", {"define": IS, "within": 30}),
    ("A B+ C?", {"define": {**IS, "B": lambda m: m.B.v >= m.A.v}}),
    ("A B* C", {"define": {"A": IS["A"], "B": lambda m: m.B.v >= m.B.prev().v, "C": lambda m: m.C.v != m.B.first().v}}),
    ("A B* C", {"define": {**IS, "B": lambda m: (m.B.v != 3) & (m.B.agg(tg.count()) < 9)}}),
    (
        "A B* C",
        {
            "define": {
                "A": IS["A"],
                "B": lambda m: (m.B.v == 2) & ((m.B.x >= m.B.last(1).prev().x) | (m.B.x < 9.0)),
                "C": IS["C"],
            }
        },
    ),
    ("(A B*?)+ C", {"define": IS, "was": lambda m: m.B.prev().v, "number": lambda m: m.number}),
)


def long_rows(rng: random.Random, count: int) -> list[Row]:
    """Rows of which few are C, at least one every other tick."""
    rows, at = list[Row](), 0
    for number in range(count):
        at += rng.choice((0, 1, 1, 2))
        v = rng.choice((1 if rng.random() < 0.3 else 2, *(2,) * 6, 3, None if rng.random() < 0.2 else 2))
        rows.append((rng.choice((1, 1, 2)), at, number, v, rng.choice((0.5, 7.0))))
    return rows


@pytest.mark.parametrize(("pattern", "options"), PATTERNS)
def test_long_searches(
    pattern: str, options: dict[str, Any], gone_on: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether they go on from threads or read everything again, they find the same at the same instants."""
    node, results = node_of(pattern, **options), 0
    for seed in range(4):
        rng = random.Random(seed)
        rows = long_rows(rng, 60)
        ends = sorted(rng.sample(range(rows[-1][1]), 25))
        result = compare(node, rows, ends, rng, monkeypatch)
        assert bags_equal(result, Searched(node, tuple(rows)).meant), seed
        results += len(result)
    assert results > 3
    assert sum(gone_on) > 20


def compare(
    node: Sequences, rows: list[Row], ends: list[int], rng: random.Random, monkeypatch: pytest.MonkeyPatch
) -> list[Row]:
    """Goes on from threads, and reads everything again: both find and keep the same in each increment."""
    again, order = [rng.random() < 0.1 for _ in ends], rng.sample(rows, len(rows))
    both: list[list[tuple[list[Row], Any]]] = []
    for worth in (0, 1 << 40):
        monkeypatch.setattr(found, "WORTH", worth)
        operator: Operator = operator_of(node)
        after: Extended = -INF
        steps: list[tuple[list[Row], Any]] = []
        for until, restart in zip((*ends, INF), (*again, False), strict=True):
            its = [row for row in order if after < row[1] <= until]
            operator, result = operator.step([frame_of(node, its)], after, until)
            steps.append((in_order(as_frame(result).rows()), operator.counts()))
            operator = reloaded(operator, node, until) if restart else operator
            after = until
        both.append(steps)
    assert both[0] == both[1]
    monkeypatch.setattr(found, "WORTH", 0)
    return [row for its, _ in both[0] for row in its]


def test_an_increment_may_be_evaluated_again(gone_on: list[int]) -> None:
    """From one operator, until what it has made counts."""
    node = node_of("A B* C", define=IS)
    begun, _ = operator_of(node).step([frame_of(node, [(1, 0, 0, 1, 0.0)])], -INF, 0)
    for _ in range(2):
        _, result = begun.step([frame_of(node, [(1, 1, 0, 3, 0.0)])], 0, 1)
        assert [row[-3:] for row in as_frame(result).rows()] == [(0, 1, 1)]
        after, result = begun.step([frame_of(node, [(1, 1, 0, 2, 0.0)])], 0, 1)
        assert not result.height
    _, result = after.step([frame_of(node, [(1, 2, 0, 3, 0.0)])], 1, 2)
    assert [row[-3:] for row in as_frame(result).rows()] == [(0, 2, 2)]
    assert gone_on == [0, 0, 1, 0, 1, 0]


def row(at: int, v: int, x: float = 0.0, *, key: int = 1) -> Row:
    return (key, at, 0, v, x)


def by_increment(node: Sequences, *increments: tuple[int, list[Row]]) -> list[list[Row]]:
    """What is found in increments up to these instants, with these rows: the first and the last instant of each match,
    and when it is certain.
    """
    operator: Operator = operator_of(node)
    after: Extended = -INF
    results: list[list[Row]] = []
    for until, rows in increments:
        operator, result = operator.step([frame_of(node, rows)], after, until)
        results.append(sorted(match[-3:] for match in as_frame(result).rows()))
        after = until
    return results


def test_a_search_goes_on_with_all_new_rows(gone_on: list[int]) -> None:
    """The first of them ends the match."""
    node = node_of("A B* C", define=IS)
    assert by_increment(node, (0, [row(0, 1)]), (2, [row(1, 3), row(2, 2)])) == [[], [(0, 1, 1)]]
    assert gone_on == [0, 0]


def test_an_open_search_is_looked_at_when_its_threads_end(gone_on: list[int]) -> None:
    node = node_of("A B* C | A", define=IS, limits=lambda m: m.C.t - m.A.t <= 5)
    assert by_increment(node, (0, [row(0, 1)]), (1, [row(1, 2)]), (9, [])) == [[], [], [(0, 0, 5)]]
    assert gone_on == [0, 1, 0]


def test_all_threads_of_a_search_go_on(gone_on: list[int]) -> None:
    """The preferred one ends with the third row, and the other one does not."""
    node = node_of("A B C | A B* D", define={**IS, "D": lambda m: m.D.v == 4})
    rows = [(at, [row(at, v)]) for at, v in enumerate((1, 2, 2, 2, 4))]
    assert by_increment(node, *rows) == [[], [], [], [], [(0, 4, 4)]]
    assert gone_on == [0, 0, 1, 1, 0]


#: A row that is C ends the match at once, and one that is none goes on with it.
ENDS: dict[str, Any] = {"A": IS["A"], "B": lambda m: m.B.v >= 2}


def test_threads_name_rows_of_their_partition(gone_on: list[int]) -> None:
    """Behind those of other partitions, behind rows that are gone, and behind rows that are not read."""
    node = node_of("A B*? C", define={**ENDS, "C": lambda m: m.C.v > m.A.x})
    two = [row(0, 1), row(0, 1, 5.0, key=2), row(1, 3, 50.0, key=2)]
    assert by_increment(node, (1, two), (2, [row(2, 7, key=2)])) == [[], [(0, 2, 2)]]
    late = [row(0, 9), row(1, 1, 5.0), row(2, 3, 50.0)]
    assert by_increment(node, (2, late), (3, [row(3, 7)])) == [[], [(1, 3, 3)]]
    last = node_of("A B*? C", define={**ENDS, "C": lambda m: m.C.v > m.B.x})
    many = [row(0, 1), *(row(at, 3, 50.0) for at in (1, 2, 3))]
    assert by_increment(last, (3, many), (4, [row(4, 3, 5.0)]), (5, [row(5, 7)])) == [[], [], [(0, 5, 5)]]
    assert gone_on == [0, 0, 0, 0, 0, 1, 0]


def test_conditions_look_back_from_rows_of_threads_and_from_new_ones(gone_on: list[int]) -> None:
    named = node_of("A B*? C", define={**ENDS, "C": lambda m: m.C.v > m.A.prev().x})
    four = [row(0, 9, 5.0), row(1, 1), row(2, 3), row(3, 3)]
    assert by_increment(named, (3, four), (4, [row(4, 7)])) == [[], [(1, 4, 4)]]
    new = node_of("A B*? C", define={**ENDS, "C": lambda m: m.C.v > m.C.prev(2).x})
    three = [row(0, 1, 50.0), row(1, 3, 5.0), row(2, 3)]
    assert by_increment(new, (2, three), (3, [row(3, 7)])) == [[], [(0, 3, 3)]]
    assert gone_on == [0, 0, 0, 0]


@pytest.mark.parametrize("search", ["compiled", "python"])
def test_what_is_added_stands_behind_what_was_there(
    search: str, gone_on: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever search reads the state: what was written first, and then what an increment has added."""
    node = node_of("A B+ C", define={"B": IS["B"], "C": IS["C"]})
    begun: Operator = operator_of(node)
    begun, _ = begun.step([frame_of(node, [row(0, 2)])], -INF, 0)
    base = {name: pl.DataFrame(table) for name, table in begun.tables().items()}
    longer, _ = begun.step([frame_of(node, [row(1, 2)])], 0, 1)
    delta = {name: pl.DataFrame(table) for name, table in (longer.changes() or {}).items()}
    assert gone_on == [0, 1]
    if search == "python":
        monkeypatch.setattr(operators, "compiled_search", lambda node: None)
    again = load_operator(step_of(node), folded([base, delta], longer.described(), whole=True), 1)
    _, result = again.step([frame_of(node, [row(2, 3)])], 1, 2)
    assert [match[-3:] for match in as_frame(result).rows()] == [(0, 2, 2)]


@pytest.mark.parametrize("keys", [1, 20])
def test_an_increment_reads_what_is_new(keys: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows together a few times, although no search ends before the last row."""
    read: list[int] = []
    made = OrderedRows.__init__

    def counted(self: OrderedRows, *given: Any) -> None:
        made(self, *given)
        read.append(self.height)

    monkeypatch.setattr(OrderedRows, "__init__", counted)
    node, batches, size = node_of("A B* C", define=IS, n=lambda m: m.rows.agg(tg.count())), 200, 100
    operator: Operator = operator_of(node)
    for batch in range(batches):
        times = range(batch * size, (batch + 1) * size)
        rows = [(at % keys, at, 0, 1 if at < keys else 2, 0.0) for at in times]
        operator, _ = operator.step([frame_of(node, rows)], times[0] - 1, times[-1])
    assert sum(read) < 3 * batches * size
    last = [(key, batches * size + key, 0, 3, 0.0) for key in range(keys)]
    _, result = operator.step([frame_of(node, last)], batches * size - 1, batches * size + keys)
    assert as_frame(result).get_column("n").to_list() == [batches * size // keys + 1] * keys


KINDS: tuple[tuple[str, dict[str, Any]], ...] = (
    ("A B* C", {}),
    ("A (A | B)* C", {"skip": "next row", "within": 30}),
    ("A B C", {"matches": "any", "within": 30}),
    ("A B+ C", {"matches": "next", "within": 30}),
    ("A (A | B)* C", {"matches": "contiguous", "within": 30}),
)


@pytest.mark.parametrize(("pattern", "how"), KINDS)
@pytest.mark.parametrize("seed", range(2))
def test_what_is_added_is_written_once(
    seed: int, pattern: str, how: dict[str, Any], gone_on: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With deltas of what changed, and restarts; against one run without any."""
    stream = tg.stream("S", "k string, t bigint, v bigint", progress="t")
    untyped: Any = stream
    program = tg.program(M=untyped.sequences(pattern, by="k", define=IS, n=lambda m: m.rows.agg(tg.count()), **how))
    rng = random.Random(seed)
    batches = [
        [
            (rng.choice("abc"), t, rng.choice((1, 2, 2, 2, 3 if rng.random() < 0.3 else 2)))
            for t in range(9 * b, 9 * b + 9)
        ]
        for b in range(25)
    ]
    again, results = [rng.random() < 0.3 for _ in batches], []
    for small in (10**6, 0):
        monkeypatch.setattr(operator_state, "SMALL", small)
        store = LocalStore(tmp_path / str(small), sync=False)
        session, live = Session(program.facts, store), []
        for number, rows in enumerate(batches):
            session.push("S", rows)
            session.advance("S", 9 * number + 8)
            session.step()
            live.append(session.live_rows())
            if small == 0 and again[number]:
                session.close()
                store = LocalStore(tmp_path / str(small), sync=False)
                session = Session(program.facts, store)
        session.finish()
        session.step()
        results.append((sorted(map(repr, session.results("M"))), live))
        session.close()
    assert results[0] == results[1]
    assert len(results[0][0]) > 3
    assert sum(gone_on) > 20


@pytest.mark.parametrize(("pattern", "how"), KINDS)
def test_a_batch_writes_what_is_new(pattern: str, how: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    stream = tg.stream("S", "t bigint, v bigint", progress="t")
    untyped: Any = stream
    how = {**how, "within": 10**6} if "within" in how else how
    program = tg.program(M=untyped.sequences(pattern, define=IS, **how))
    rows: list[int] = []
    kept = operator_state._delta

    def counted(*given: Any) -> Any:
        delta = kept(*given)
        rows.append(delta.rows)
        return delta

    monkeypatch.setattr(operator_state, "_delta", counted)
    with program.session() as session:
        for batch in range(40):
            times = np.arange(1000 * batch, 1000 * batch + 1000)
            session.push("S", {"t": times, "v": np.where(times == 0, 1, 2)})
            session.advance("S", int(times[-1]))
            session.step()
        assert session.live_rows()["M: state"] == 40_000
    assert sum(rows) < 5 * 40_000


#: Searches for every match, and those that begin at each row: of those rows go while others come.
WINDOWED: tuple[tuple[str, dict[str, Any]], ...] = (
    ("A B C", {"define": IS, "matches": "any", "within": 9, "was": lambda m: m.B.prev().v}),
    ("A B? (C | B)", {"define": {**IS, "B": lambda m: m.B.v >= m.B.prev().v}, "matches": "any", "within": 5}),
    ("A (B | C)+ C", {"define": IS, "matches": "any", "within": 4, "n": lambda m: m.rows.agg(tg.count())}),
    ("A B C", {"define": {**IS, "C": lambda m: m.C.x >= m.B.x}, "matches": "any", "within": 9}),
    ("A B+ C", {"define": IS, "matches": "next", "within": 9, "was": lambda m: m.B.first().prev(2).v}),
    ("A B+ C?", {"define": {**IS, "B": lambda m: m.B.x >= m.A.prev().x}, "matches": "next", "within": 7}),
    ("A !N B C", {"define": {**IS, "N": lambda m: m.N.v > m.A.v + 1}, "matches": "next", "within": 12}),
    ("A B* C", {"define": IS, "matches": "contiguous", "one": lambda m: m.rows.last(1).classifier}),
    ("A (A | B)* C", {"define": IS, "matches": "contiguous", "within": 12}),
    ("A B* C", {"define": IS, "skip": "next row", "was": lambda m: m.B.first().prev().v}),
    ("A (A | B)* C", {"define": IS, "skip": "next row", "within": 12, "rows": "all"}),
    ("A (A | B)* C | A B", {"define": {**IS, "C": lambda m: (m.C.v == 3) & (m.C.x > m.A.x)}, "skip": "next row"}),
    ("(A (A | B)*? C)?", {"define": IS, "skip": "next row", "within": 12, "empty": True}),
)


def is_judged(node: Sequences) -> bool:
    """Whether the meaning is told of so many rows: where any of them may be skipped, not of a repetition."""
    skips = node.selection in (EveryMatch("any"), EveryMatch("next"))
    return not skips or longest(node.pattern) is not None


def often_begun(rng: random.Random, count: int) -> list[Row]:
    """Rows of which many begin matches, and some end them."""
    rows, at = list[Row](), 0
    for number in range(count):
        at += rng.choice((0, 1, 1, 1))
        v = rng.choice((1, 1, 2, 2, 2, 2, 3, None if rng.random() < 0.2 else 2))
        rows.append((rng.choice((1, 1, 2)), at, number, v, rng.choice((0.5, 7.0))))
    return rows


@pytest.mark.parametrize(("pattern", "options"), WINDOWED)
def test_rows_go_while_others_come(
    pattern: str, options: dict[str, Any], gone_on: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As `test_long_searches`, with results of searches that stay open."""
    node, results = node_of(pattern, **options), 0
    for seed in range(3):
        rng = random.Random(seed)
        rows = often_begun(rng, 50)
        ends = sorted(rng.sample(range(rows[-1][1]), 25))
        result = compare(node, rows, ends, rng, monkeypatch)
        assert not is_judged(node) or bags_equal(result, Searched(node, tuple(rows)).meant), seed
        results += len(result)
    assert results > 3
    assert sum(gone_on) > 20


@pytest.mark.parametrize(("pattern", "options"), cases(WINDOWED, lambda _, options: "matches" in options))
def test_how_much_is_kept_decides_no_result(
    pattern: str, options: dict[str, Any], gone_on: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Threads are kept of some searches and not of others; all nodes are packed again and again."""
    monkeypatch.setattr(nodes, "LOOSE", 0)
    node = node_of(pattern, **options)
    for most in (0, 1, 3):
        monkeypatch.setattr(found, "MOST", most)
        rng = random.Random(most)
        rows = often_begun(rng, 40)
        compare(node, rows, sorted(rng.sample(range(rows[-1][1]), 20)), rng, monkeypatch)
    assert sum(gone_on) > 3


SLIDING: tuple[tuple[str, dict[str, Any]], ...] = (
    ("A B C", {"define": IS, "matches": "any"}),
    ("A B C", {"define": {**IS, "B": lambda m: m.B.x > 0.0, "C": lambda m: m.C.v > m.B.v}, "matches": "any"}),
    ("A B+ C", {"define": IS, "matches": "next"}),
    ("A (A | B)* C", {"define": IS, "matches": "contiguous"}),
    ("A (A | B)* C", {"define": IS, "skip": "next row"}),
)


@pytest.mark.parametrize(("pattern", "options"), SLIDING)
def test_an_increment_reads_what_is_new_where_rows_go(
    pattern: str, options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Beside what is new, rows of few threads, and those of what is found: whether 2,000 rows wait or 8,000."""
    read: list[int] = []
    made = OrderedRows.__init__

    def counted(self: OrderedRows, *given: Any) -> None:
        made(self, *given)
        read.append(self.height)

    monkeypatch.setattr(OrderedRows, "__init__", counted)
    for window in (2000, 8000):
        node = node_of(pattern, **options, within=window, n=lambda m: m.rows.agg(tg.count()))
        operator, results, at = operator_of(node), 0, 0
        for size in (*(window,) * 3, *(20,) * 120):
            if size == 20 and at == 3 * window:
                read.clear()
            times = range(at, at + size)
            rows = [(1, time, 0, of_window(time), float(time % 500 == 50)) for time in times]
            operator, result = operator.step([frame_of(node, rows)], at - 1, times[-1])
            results, at = results + result.height, at + size
        (kept,) = operator.counts().values()
        assert kept <= window + 1
        assert results > 0
        # What is found has its rows, and is in few increments.
        assert sorted(read)[len(read) // 2] < 80, window


def of_window(time: int) -> int:
    """The value of a row: some begin a match, and a few end those that are open."""
    return 1 if time % 1000 == 0 else 3 if time % 2000 == 1900 else 2


@pytest.mark.parametrize("search", ["compiled", "python"])
@pytest.mark.parametrize(("pattern", "how"), KINDS[1:])
def test_what_has_gone_is_left_out_where_it_was_written(
    search: str, pattern: str, how: dict[str, Any], gone_on: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that an increment has let go are in the deltas before it."""
    node = node_of(pattern, define=IS, was=lambda m: m.A.prev().v, **{**how, "within": 5})
    operator: Operator = operator_of(node)
    deltas = list[dict[str, pl.DataFrame]]()
    for at, v in enumerate((1, 2, 2, 2, 1, 2, 2, 2, 2)):
        operator, _ = operator.step([frame_of(node, [row(at, v)])], at - 1 if at else -INF, at)
        written = operator.changes() if deltas else operator.tables()
        deltas.append({name: pl.DataFrame(table) for name, table in (written or {}).items()})
    assert sum(gone_on) == 8
    assert operator.counts() == {"rows": 6}
    if search == "python":
        monkeypatch.setattr(operators, "compiled_search", lambda node: None)
    again = load_operator(step_of(node), folded(deltas, operator.described(), whole=True), 8)
    assert again.counts() == operator.counts()
    _, result = again.step([frame_of(node, [row(9, 3)])], 8, 9)
    assert {match[-4:] for match in as_frame(result).rows()} == {(2, 4, 9, 9)}


def test_rows_before_a_match_are_known_to_no_thread(gone_on: list[int]) -> None:
    """A search that asks for them reads all rows."""
    is_c: dict[str, Any] = {**IS, "N": lambda m: m.N.v == 3}
    node = node_of("!N[3] A B C", define=is_c, matches="any", within=9)
    rows = [(at, [row(at, v)]) for at, v in enumerate((3, 1, 2, 2, 1, 2, 3))]
    assert by_increment(node, *rows)[-1] == [(4, 6, 6)]
    assert sum(gone_on) == 0


EACH_OPEN: tuple[tuple[str, dict[str, Any]], ...] = (
    ("A B", {"matches": "any", "within": 5}),
    ("A B", {"matches": "next", "within": 5}),
    ("A B+", {"matches": "contiguous", "within": 5}),
    ("A B", {"skip": "next row", "within": 5}),
)


@pytest.mark.parametrize(("pattern", "how"), EACH_OPEN)
def test_a_match_of_a_partition_that_is_decided_is_found_once(
    pattern: str, how: dict[str, Any], gone_on: list[int]
) -> None:
    """The increment that decides it goes on with a partition that stays open, of which it has a match, or none."""
    node = node_of(pattern, define={name: IS[name] for name in "AB"}, **how)
    open_ = [row(6, 1), row(7, 1, key=2)]
    assert by_increment(node, (10, open_), (11, [row(11, 2), row(11, 1, key=2)])) == [[], [(6, 11, 11)]]
    stays = by_increment(
        node, (10, [*open_, row(10, 1, key=2)]), (12, [row(11, 2), row(11, 2, key=2), row(12, 1, key=2)])
    )
    of_other = [(10, 11, 11)] if how.get("skip") or how.get("matches") == "contiguous" else [(7, 11, 11), (10, 11, 11)]
    assert stays == [[], [(6, 11, 11), *of_other]]
    assert gone_on == [0, 1, 0, 1]


def test_matches_of_new_rows_are_found_once_where_a_partition_is_decided(gone_on: list[int]) -> None:
    node = node_of("A B", define={name: IS[name] for name in "AB"}, skip="next row", within=5)
    new = [row(11, 1), row(12, 2), row(12, 1, key=2)]
    assert by_increment(node, (10, [row(10, 1), row(10, 1, key=2)]), (12, new)) == [[], [(11, 12, 12)]]
    assert gone_on == [0, 1]


def test_what_an_increment_has_left_may_be_put_again_when_rows_have_been_packed(
    gone_on: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where memory is refused behind it; rows of another partition have the places of those that have gone."""
    monkeypatch.setattr(row_arrays, "LOOSE", 0)
    node = node_of("A B* C", define={**IS, "C": lambda m: (m.C.v == 3) & (m.C.x > m.A.x)}, skip="next row", within=400)
    begun = [(key, at, 0, 2 if at else 1, 0.5) for key, end in ((1, 50), (2, 150), (3, 50)) for at in range(end)]
    operator: Operator = operator_of(node)
    operator, _ = operator.step([frame_of(node, begun)], -INF, 149)
    next_ = [row(150, 3, 1.0), row(151, 1), *(row(at, 2) for at in range(152, 200)), row(150, 3, 1.0, key=2)]
    operator, found_ = operator.step([frame_of(node, next_)], 149, 201)
    assert [match[-3:] for match in as_frame(found_).rows()] == [(0, 150, 150)] * 2
    with monkeypatch.context() as refused:
        calls = count()
        kept = SearchedRows._note_look

        def note(self: SearchedRows, *given: Any) -> None:
            if next(calls) == 1:
                raise MemoryError
            kept(self, *given)

        refused.setattr(SearchedRows, "_note_look", note)
        with pytest.raises(MemoryError):
            operator.settled()  # type: ignore[attr-defined]
    last = [row(202, 3, 1.0), row(202, 3, 1.0, key=3)]
    _, found_ = operator.step([frame_of(node, last)], 201, 203)
    assert sorted((match[0], *match[-3:]) for match in as_frame(found_).rows()) == [
        (1, 151, 202, 202),
        (3, 0, 202, 202),
    ]
