"""Conditions on single attributes as sets of values: never true together, or nothing new."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.evaluation import evaluate_term
from tidegate.algebra.program import Query
from tidegate.algebra.terms import Lit, Term, conjunction, substitute
from tidegate.algebra.types import DataType
from tidegate.analysis.ordered.family import OneRow
from tidegate.analysis.report import predicate_sets
from tidegate.analysis.report.predicate_sets import notes

S = tg.stream(
    "S", "time timestamp, conc double, n bigint, price decimal(6,2), area string, ok boolean", progress="time"
)
T = tg.stream("T", "seen timestamp, m bigint", progress="seen")


def told(relation: tg.Relation) -> list[str]:
    (query,) = tg.program(Out=relation).definition.queries
    return [f"{note.code} {note.message}" for note in notes(query)]


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        ([S.conc > 5, S.conc < 3], "TG220 never true: conc > 5.0 and conc < 3.0"),
        ([(S.conc > 5) & (S.conc <= 5)], "TG220 never true: conc > 5.0 and conc <= 5.0"),
        ([S.n > 5, S.n < 6], "TG220 never true: n > 5 and n < 6"),
        ([S.n > 5.5, S.n < 6], "TG220 never true: n > 5.5 and n < 6"),
        ([S.area == "a", S.area == "b"], "TG220 never true: area = 'a' and area = 'b'"),
        ([S.area.is_in("a", "b"), ~(S.area < "c")], "TG220 never true: (area = 'a' | area = 'b') and (~area < 'c')"),
        ([S.time > "2026-01-02", S.time < "2026-01-01"], "TG220 never true: time > 2026-01-02"),
        ([S.conc > 5, S.conc > 3], "TG221 says nothing new: conc > 3.0, as conc > 5.0"),
        ([S.conc > 3, S.conc > 5], "TG221 says nothing new: conc > 3.0, as conc > 5.0"),
        ([S.n.is_in(1, 2), S.n < 9], "TG221 says nothing new: n < 9, as (n = 1 | n = 2)"),
        ([S.n != 3, S.n > 4], "TG221 says nothing new: n != 3, as n > 4"),
        ([(S.n < 1) | (S.n > 5), S.n.between(2, 4)], "TG220 never true: (n < 1 | n > 5) and 2 <= n and n <= 4"),
    ],
)
def test_what_is_said_in_vain_is_noted(conditions: list[tg.Expression], expected: str) -> None:
    for relation in (S.where(*conditions), *([S.where(conditions[0]).where(conditions[1])] if conditions[1:] else [])):
        (note,) = told(relation)
        assert note.startswith(expected)


@pytest.mark.parametrize(
    "conditions",
    [
        [S.conc > 5, S.conc < 6],
        [S.conc > 5, S.n < 3],
        [S.area > "a", S.area < "b"],
        [S.conc + 1 > 5, S.conc < 3],
        [(S.conc > 5) | (S.n > 3), S.conc < 3],
        [S.ok, ~S.ok],
        [S.price > 5.1, S.price < 5],
        [S.conc.is_null(), S.conc > 3],
        [S.n >= 2.0**53, S.n <= 2**53],
        [S.n == 2.0**53, S.n == 2**53 + 1],  # as doubles both are equal
    ],
)
def test_what_can_be_true_or_is_not_compared_exactly_is_left_alone(conditions: list[tg.Expression]) -> None:
    assert told(S.where(*conditions)) == []


@pytest.mark.parametrize(
    ("define", "expected"),
    [
        ("A AS n = 0 AND n = 1", ["TG220 never true: n = 0 and n = 1"]),
        ("A AS A.n = 0 AND n = 1", ["TG220 never true: n = 0 and n = 1"]),
        ("A AS n > 3, B AS n > 5 AND LAST(B.n) > 3", ["TG221 says nothing new: n > 3, as n > 5"]),
        ("B AS n < LAST(B.n)", ["TG220 never true: n < n"]),
        ("B AS n > 3 AND n > LAST(n)", ["TG220 never true: n > n"]),
        ("B AS n > 3 AND NOT n = LAST(U.n)", ["TG220 never true: (~n = n)"]),
        ("B AS n > 3 AND B.n >= n", ["TG221 says only that n is not NULL: n >= n, as both sides are one value"]),
        ("A AS n = 0, B AS n = 1", []),
        ("A AS n = 0 OR n = 1", []),
        ("B AS n < LAST(B.n, 1) AND n < PREV(n) AND n < FIRST(B.n)", []),
        ("B AS n < A.n AND n < FIRST(n) AND n < MAX(B.n)", []),
        ("A AS n = 0 AND NEXT(n) = 1", []),
    ],
)
def test_conditions_of_row_patterns_are_compared(define: str, expected: list[str]) -> None:
    """Those of one variable, on its row: the last one of the variable."""
    found = S.match_recognize(f"ORDER BY time PATTERN (A B+) WITHIN 5m SUBSET U = (A, B) DEFINE {define}")
    assert told(found) == expected
    assert all(note.site is not None for note in tg.program(Out=found).notes())


def test_a_row_that_is_compared_with_itself_is_told_so() -> None:
    found: Any = S.sequences("A B+", within="5m", define={"B": lambda m: m.B.n < m.B.last().n})
    (note,) = tg.program(Out=found).notes()
    assert (note.code, note.message) == ("TG220", "never true: n < n")
    assert "the one before is PREV(x), or LAST(B.x, 1) of those of B" in note.hint
    assert told(S.where(S.n < S.n)) == ["TG220 never true: n < n"]


def test_a_value_that_equals_itself_is_one_that_is_not_null() -> None:
    """So the condition does leave rows out, and can be said as it is meant."""
    (note,) = tg.program(Out=S.where(S.n == S.n)).notes()
    assert (note.code, note.message) == (
        "TG221",
        "says only that n is not NULL: n = n, as both sides are one value",
    )
    assert note.hint == "both sides are one value; compare two, or ask is_not_null()"
    assert [true((S.n == S.n)._term, value) for value in (None, 0)] == [False, True]


def test_a_join_s_condition_is_compared_with_selections_right_below() -> None:
    joined = S.where(S.n > 5).join(T, S.n == T.m, S.n < 3, S.time < T.seen, T.seen < S.time + "1h")
    assert told(joined) == ["TG220 never true: n > 5 and n < 3"]
    assert told(joined.distinct().union(joined.distinct())) == ["TG220 never true: n > 5 and n < 3"]


def test_selections_on_top_of_each_other_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Fifty in a row took twenty seconds: each had all that are below it compared anew."""
    seen: list[int] = []
    compared = predicate_sets._compared

    def counted(query: Query, name: str, type_: DataType, terms: list[Term], row: OneRow) -> Any:
        seen.append(len(terms))
        return compared(query, name, type_, terms, row)

    monkeypatch.setattr(predicate_sets, "_compared", counted)
    stacked: tg.Relation = S
    for least in range(5):
        stacked = stacked.where(S.n > least)
    assert told(stacked)
    assert seen == [5]
    seen.clear()
    told(stacked.join(T, S.n == T.m, S.n < 30, S.time < T.seen, T.seen < S.time + "1h"))
    assert seen == [6]


def test_of_many_conditions_only_so_many_pairs_are_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predicate_sets, "MAX_PAIRS", 3)
    some = [S.n > 1, S.n > 2, S.n > 3]
    assert told(S.where(*some))
    assert told(S.where(*some, S.n > 4)) == []
    assert len(told(S.where(*some, S.conc > 5, S.conc > 6))) == len(told(S.where(*some)))


def test_the_report_has_the_notes() -> None:
    explanation = tg.program(Out=S.where(S.conc > 5, S.conc < 3)).explain()
    assert "note        never true: conc > 5.0 and conc < 3.0   test_predicate_sets.py:" in explanation.report
    report = json.loads(json.dumps(explanation.to_dict()))
    assert [note["code"] for note in report["queries"][0]["notes"]] == ["TG220"]
    assert tg.program(Out=S.where(S.conc > 5)).notes() == []


def test_notes_are_true_of_every_value() -> None:
    rng = random.Random(3)
    kinds = dict.fromkeys(("TG220", "TG221"), 0)
    for _ in range(150):
        parts = [random_condition(rng) for _ in range(rng.randint(2, 3))]
        (query,) = tg.program(Out=S.where(*parts)).definition.queries
        for note in notes(query):
            kinds[note.code] += 1
            terms = [part for part in parts if repr(part) in note.message]
            assert len({repr(part) for part in terms}) >= 2
            for value in (None, *range(-1, 6)):
                truths = [true(term._term, value) for term in parts]
                if note.code == "TG220":
                    assert not all(truths), note
                else:
                    wide = next(
                        p
                        for p in terms
                        if note.message.startswith((f"says nothing new: {p!r}, as", f"says nothing new: ({p!r}), as"))
                    )
                    others = [truth for part, truth in zip(parts, truths, strict=True) if repr(part) != repr(wide)]
                    assert all(truths) == all(others), note
    assert min(kinds.values()) > 18


def random_condition(rng: random.Random, depth: int = 1) -> tg.Expression:
    if depth and rng.random() < 0.4:
        one, other = random_condition(rng, 0), random_condition(rng, 0)
        return rng.choice((lambda: one | other, lambda: ~(one & other), lambda: ~one))()
    value = rng.choice((0, 1, 2, 3, 4, 1.5, 2.0))
    return rng.choice(
        (S.n < value, S.n <= value, S.n > value, S.n >= value, S.n == value, S.n != value, value < S.n, value >= S.n)
    )


def true(term: Term, value: int | None) -> bool:
    from tidegate.algebra.types import BIGINT

    return evaluate_term(substitute(conjunction([term]), lambda _: Lit(value, BIGINT)), {}) is True


def test_conditions_are_compared_without_sympy() -> None:
    code = (
        "import sys, tidegate as tg\n"
        "s = tg.stream('S', 't bigint, n bigint, m bigint', progress='t')\n"
        "p = tg.program(Out=s.where(s.n > 1, s.n < 3))\n"
        "assert p.check() == [] == p.notes()\n"
        "assert 'sympy' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
