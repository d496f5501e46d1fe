"""Row patterns keep no more rows than the printed bound says, and wait no longer than what their results promise."""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from math import inf
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tests.properties.families import seeds
from tests.shards import shards
from tests.strategies.kept_rows import random_kept
from tests.strategies.searched_sequences import Row, S, Searched, operator_of, random_searched
from tidegate.algebra.ordered.sequences.definition import DETECTED, FIRST, LAST
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.ordered.sequences.bounds import ROWS, bound_of
from tidegate.analysis.ordered.sequences.waits import waits_of
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.ordered.sequences import operator as operators

SHARDS = 8
CASES = 240
SEARCHED = ("compiled", "in Python")
_S: Any = S


def case_of(seed: int) -> Searched:
    rng = random.Random(f"kept rows {seed}")
    return random_searched(rng) if seed % 3 == 0 else random_kept(rng)


def increments(rng: random.Random, case: Searched) -> Iterator[tuple[list[Row], Extended, Extended]]:
    """The rows in increments, at last with an instant long after the last one."""
    times = sorted(row[1] for row in case.rows)
    ends = {rng.randint(times[0] - 1, times[-1] + 8) for _ in range(6)} | {times[-1] + 60}
    after: Extended = -INF
    for until in (*sorted(ends), INF):
        yield [row for row in case.rows if after < row[1] <= until], after, until
        after = until


def most(bound: str, rows: Sequence[Row], until: Extended, keys: Sequence[str]) -> float:
    """How many rows a bound allows at an instant: with keys, a span without their number ends there."""
    _, _, text = bound.partition(": ")
    if text.startswith("unbounded"):
        return inf
    of_key: dict[object, list[int]] = {}
    for row in rows:
        of_key.setdefault(row[0] if keys else None, []).append(row[1])
    total = 0
    for summand in text.split(" + "):
        *factors, number = summand.split(" × ")
        if not any(factor.startswith("rate(") for factor in factors):
            total += len(of_key) * int(number)
        elif keys and not factors[0].startswith("keys("):
            total += sum(row[1] > until - int(number) for row in rows)
        else:
            total += sum(greatest(times, int(number)) for times in of_key.values())
    return total


def greatest(times: Iterable[int], span: int) -> int:
    """The most instants in any closed interval of a length."""
    its = list(times)
    return max(sum(first <= at <= first + span for at in its) for first in its)


@pytest.mark.parametrize("searched", SEARCHED)
@pytest.mark.parametrize("shard", shards(SHARDS))
def test_no_more_rows_are_kept_than_the_bound_says(shard: int, searched: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if searched == "in Python":
        monkeypatch.setattr(operators, "compiled_search", lambda node: None)
    bounded = attained = 0
    for seed in seeds(CASES)[shard::SHARDS]:
        case = case_of(seed)
        bound = bound_of(case.node)
        operator, come = operator_of(case.node), list[Row]()
        for rows, after, until in increments(random.Random(seed), case):
            frame = pl.DataFrame(rows, schema=polars_schema(case.node.input.schema), orient="row")
            operator, _ = operator.step([frame], after, until)
            come += rows
            kept = operator.counts()[ROWS]
            allowed = most(bound, come, until, case.node.keys)
            where = f"{seed}\n{case.node.text(['S'])}\n{bound}\n{sorted(come, key=lambda row: row[1:3])}\n{until}"
            assert kept <= allowed, where
            bounded += allowed < len(come)
            attained += 0 < kept == allowed < len(come)
    assert bounded > 40
    assert attained > 8


@pytest.mark.parametrize("shard", shards(4))
def test_matches_are_certain_in_the_time_that_is_promised(shard: int) -> None:
    promised = attained = 0
    for seed in seeds(CASES)[shard::4]:
        case = case_of(seed)
        waits, names = waits_of(case.node), case.node.schema.names
        for row in case.meant:
            first, last, detected = (row[names.index(name)] for name in (FIRST, LAST, DETECTED))
            for wait, since in ((waits.after_first, first), (waits.after_last, last)):
                if wait is not None:
                    assert detected - since <= wait, f"{seed}\n{case.node.text(['S'])}\n{case.rows}\n{row}"
                    promised += 1
                    attained += detected - since == wait > 0
    assert promised > 20
    assert attained > 4


@pytest.mark.parametrize("searched", SEARCHED)
def test_rows_go_that_can_not_decide_a_match(searched: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though no row comes to their key."""
    if searched == "in Python":
        monkeypatch.setattr(operators, "compiled_search", lambda node: None)
    node = node_of("!N[5] A", define={"A": lambda m: m.A.v == 1, "N": lambda m: m.N.v == 9})
    operator, kept = operator_of(node), list[int]()
    after: Extended = -INF
    for until in (3, 4, 5, 7, 8):
        rows = [row for row in ((1, 0, 0, 9, 0.0), (1, 3, 1, 2, 0.0), (2, 3, 2, 2, 0.0)) if after < row[1] <= until]
        frame = pl.DataFrame(rows, schema=polars_schema(node.input.schema), orient="row")
        operator, _ = operator.step([frame], after, until)
        kept.append(operator.counts()[ROWS])
        after = until
    assert kept == [3, 3, 2, 2, 0]


def node_of(pattern: str, **options: Any) -> Sequences:
    names = {name: lambda m, name=name: m[name].v >= 1 for name in "ABCN" if name in pattern}
    define = {**names, **options.pop("define", {})}
    relation: Any = _S.sequences(pattern, by="k", order="t", tie="n", define=define, **options)
    node: Sequences = relation._node
    return node


AHEAD: dict[str, Any] = {"A": lambda m: m.A.next(2).v > 0}
SOON: dict[str, Any] = {"A": lambda m: (m.A.next(2).v > 0) & (m.A.next(2).t - m.A.t <= 7)}
COUNTED: dict[str, Any] = {"A": lambda m: (m.A.v >= 1) & (m.A.agg(tg.count()) <= 2)}
COUNTED_TOGETHER: dict[str, Any] = {
    "A": lambda m: m.rows.agg(tg.count()) <= 5,
    "B": lambda m: m.rows.agg(tg.count()) < 4,
}
NOT_AHEAD: dict[str, Any] = {"N": lambda m: m.N.next().v > 0}


BOUNDS: list[tuple[str, dict[str, Any], str]] = [
    ("A", {}, "0"),
    ("A B C", {}, "keys(S by k) × 2"),
    ("A", {"define": AHEAD}, "keys(S by k) × 2"),
    ("A B", {"define": AHEAD}, "keys(S by k) × 3"),
    ("A B", {"define": AHEAD, "within": 4}, "keys(S by k) × 3"),
    ("A B C", {"define": AHEAD, "within": 4}, "rate(S) × 4"),
    ("A", {"define": SOON}, "rate(S) × 7"),
    ("A B", {"define": SOON, "within": 4}, "rate(S) × 11"),
    ("A B*", {"define": AHEAD, "within": 4}, "keys(S by k) × 2 + keys(S by k) × rate(S) × 4"),
    ("A B", {"b": lambda m: m.A.prev(3).v}, "keys(S by k) × 4"),
    ("A B", {"within": 4, "b": lambda m: m.A.prev(3).v}, "keys(S by k) × 3 + rate(S) × 4"),
    ("A", {"b": lambda m: m.number}, "keys(S by k) × 1"),
    ("^ A B", {}, "keys(S by k) × 1"),
    ("A B $", {}, "keys(S by k) × 2"),
    ("A B* $", {"within": 4}, "keys(S by k) × 1 + keys(S by k) × rate(S) × 4"),
    ("!N[5] A B", {}, "keys(S by k) × 1 + keys(S by k) × rate(S) × 5"),
    ("!N[5] A", {}, "rate(S) × 5"),
    ("A B !N[5]", {}, "keys(S by k) × 1 + rate(S) × 5"),
    ("A B !N[5]", {"within": 4}, "rate(S) × 9"),
    ("!N[5] A B", {"within": 4}, "rate(S) × 9"),
    ("A B !N[5]", {"define": NOT_AHEAD}, "keys(S by k) × 2 + keys(S by k) × rate(S) × 5"),
    ("A B", {"matches": "any", "within": 4}, "rate(S) × 4"),
    ("A", {"matches": "any"}, "0"),
    ("A B* C", {}, "unbounded: B* has no upper count: missing within= or B{0,n}"),
    (
        "A+? (B C){2,}",
        {},
        "unbounded: A+? and (B C){2,} have no upper count: missing within= or A{1,n}? and (B C){2,n}",
    ),
    ("A+", {"define": COUNTED}, "keys(S by k) × 1"),
    ("A+ B{3}", {"define": COUNTED}, "keys(S by k) × 4"),
    ("(A | B)+", {"define": COUNTED}, "unbounded: (A | B)+ has no upper count: missing within= or (A | B){1,n}"),
    ("(A | B)+", {"define": COUNTED_TOGETHER}, "keys(S by k) × 4"),
    ("A+ C+", {"define": COUNTED}, "unbounded: C+ has no upper count: missing within= or C{1,n}"),
    ("A+", {"define": COUNTED, "matches": "contiguous"}, "unbounded: A+ has no upper count: missing within= or A{1,n}"),
    ("A B", {"matches": "next"}, "unbounded: waits for B for ever: missing within= or first(B) - last(A) <= c"),
    (
        "A B C",
        {"matches": "any", "limits": lambda m: m.B.t - m.A.t <= 3},
        "unbounded: waits for C for ever: missing within= or first(C) - last(B) <= c",
    ),
    (
        "A B+",
        {"matches": "any"},
        "unbounded: waits for B and another B for ever: missing within= or first(B) - last(A) <= c and "
        "last(B) - first(B) <= c",
    ),
    ("A B A", {"matches": "any"}, "unbounded: missing within="),
    ("(A B)+ C", {"matches": "any"}, "unbounded: missing within="),
]


@pytest.mark.parametrize(("pattern", "options", "bound"), BOUNDS, ids=range(len(BOUNDS)))
def test_the_bound_is_printed(pattern: str, options: dict[str, Any], bound: str) -> None:
    assert bound_of(node_of(pattern, **options)) == f"rows: {bound}"


@pytest.mark.parametrize(
    ("pattern", "options", "after_first", "after_last"),
    [
        ("A B", {}, None, 0),
        ("A B", {"define": AHEAD}, None, None),
        ("A B C", {"define": AHEAD}, None, 0),
        ("A", {"define": SOON}, 7, 7),
        ("A B !N[5]", {"define": SOON, "within": 4}, 11, 7),
        ("A B !N[9]", {"define": SOON, "within": 4}, 13, 9),
        ("!N[5] A B", {"within": 4}, 4, 0),
        ("A B !(N C)[5]", {"within": 4}, 9, 5),
        ("A B !(N C)[5]", {"within": 4, "define": {"C": lambda m: m.C.next().v > 0}}, None, None),
        ("A B !(N C)[5]", {"within": 4, "define": {"C": lambda m: m.C.next().t - m.C.t <= 3}}, 12, 8),
        ("A B !N[5]", {"define": NOT_AHEAD, "within": 4}, None, None),
        ("!N[5] A B", {"define": NOT_AHEAD, "within": 4}, 4, 0),
        ("!N[5] A", {"define": {"N": lambda m: m.N.next(2).v > 0}}, None, None),
        ("A B", {"n": lambda m: m.A.next().v}, None, 0),
        ("A B", {"n": lambda m: m.B.next().v}, None, None),
        ("A", {"define": SOON, "n": lambda m: m.A.next(2).v}, 7, 7),
        ("A (B C C | D)", {"matches": "next", "within": 9, "define": {"B": lambda m: m.B.next(2).v > 0}}, None, None),
        ("A", {"define": {"A": lambda m: m.A.next().t.same_as(m.A.t + 2)}}, None, None),
        ("A", {"define": {"A": lambda m: (m.A.next(2).v > 0) & (m.A.next().t - m.A.t <= 7)}}, None, None),
    ],
)
def test_how_long_matches_wait(
    pattern: str, options: dict[str, Any], after_first: int | None, after_last: int | None
) -> None:
    waits = waits_of(node_of(pattern, **options))
    assert (waits.after_first, waits.after_last) == (after_first, after_last)
