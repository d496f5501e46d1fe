"""Interval sequences: combinations of intervals whose ends are in an order, within a window."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.errors import QueryError
from tidegate.testing import drive

EVENTS = tg.stream("E", "kind string, a bigint, z bigint", progress="z", relations=lambda e: e.a < e.z)


def kind(name: str, *, points: bool = False) -> tg.Intervals:
    rows = EVENTS.where(EVENTS.kind == name.rstrip("2").lower()).select("a", "z")
    return rows.as_intervals(start="a", end="z", name=name, points=points)


A, B, C, D = (kind(name) for name in "ABCD")
UNTYPED: Any = EVENTS
#: The trace of Examples 2 and 3 of the paper, in the order of ends.
TRACE = [("b", 3, 6), ("d", 6, 10), ("b", 9, 11), ("c", 4, 12), ("a", 7, 14), ("d", 9, 15), ("a", 8, 16)]


def test_the_second_example_of_the_paper_step_by_step() -> None:
    """Its list is A.ts < B.te < C.te < D.te: the text of the paper has starts in the place of ends."""
    found = tg.iseq(A.ts < B.te, B.te < C.te, C.te < D.te, of=(A, B, C, D), within=30)
    known = {
        ("d", 9, 15): [(7, 14, 9, 11, 4, 12, 9, 15, 15)],
        ("a", 8, 16): [(8, 16, 9, 11, 4, 12, 9, 15, 16)],
    }
    with drive(tg.program(R=found)) as run:
        for event in TRACE:
            run.add("E", [event])
            run.advance("E", z=event[2])
            run.step()
            run.expect(R=known.get(event, []))


def test_both_relations_of_the_first_example() -> None:
    one = tg.iseq(A.ts < B.ts, B.ts < C.ts, of=(A, B, C), within=30)
    other = tg.iseq(A.overlaps(B), B.overlaps(C), of=(A, B, C), within=30)
    rows = [("a", 1, 4), ("b", 2, 6), ("c", 5, 9), ("a", 0, 12)]
    results = tg.program(One=one, Other=other).run({"E": rows})
    assert sorted(map(tuple, (row.values() for row in results["One"].rows()))) == [
        (0, 12, 2, 6, 5, 9, 12),
        (1, 4, 2, 6, 5, 9, 9),
    ]
    assert [tuple(row.values()) for row in results["Other"].rows()] == [(1, 4, 2, 6, 5, 9, 9)]


def test_a_combination_lasts_less_than_the_window() -> None:
    rows = [("a", 0, 3), ("b", 2, 10)]
    for within, matches in ((10, 0), (11, 1)):
        found = tg.iseq(A.ts < B.ts, of=(A, B), within=within)
        assert len(tg.program(R=found).run({"E": rows})["R"].rows()) == matches


def test_one_kind_may_be_there_twice_and_distances_are_restrictions() -> None:
    again = A.as_("A2")
    found = tg.iseq(A.te <= again.ts, again.ts - A.te <= 3, of=(A, again), within=20)
    rows = [("a", 0, 3), ("a", 3, 5), ("a", 9, 10)]
    assert [tuple(row.values()) for row in tg.program(R=found).run({"E": rows})["R"].rows()] == [(0, 3, 3, 5, 5)]


def test_a_list_that_contradicts_itself_is_refused_with_the_cycle() -> None:
    found = tg.iseq(A.ts < B.ts, B.ts < C.ts, C.ts < A.ts, of=(A, B, C), within=30)
    (problem,) = tg.program(R=found).check()
    assert problem.code == "TG212"
    text = "\n".join(problem.because)
    assert all(part in text for part in ("A.ts", "B.ts", "C.ts"))


@pytest.mark.parametrize(
    ("make", "says"),
    [
        (lambda: tg.iseq(A.ts < B.ts, of=(A,), within=3), "TG101 B is restricted, and is not in the sequence"),
        (lambda: tg.iseq(A.ts < B.ts, of=(A, B), within=0), "TG160 within=0 is not positive"),
        (lambda: tg.iseq(A.ts < B.ts, of=(A, B), within=None), "TG114 an interval sequence has a window"),
        (lambda: tg.iseq(of=(), within=3), "TG124 an interval sequence of no intervals"),
        (lambda: tg.iseq(of=(UNTYPED,), within=3), "TG114 .* is no intervals"),
    ],
)
def test_what_can_not_be_is_said(make: Any, says: str) -> None:
    with pytest.raises(QueryError, match=says):
        make()
