"""First and last of situations whose events of one instant are in an order: batch by batch, on either engine."""

from __future__ import annotations

import itertools

import pytest

import tidegate as tg
from tests.runtime.conftest import EITHER, Start
from tidegate.algebra.printing.plans import node_text
from tidegate.algebra.semantics import evaluate

Event = tuple[int, int, int | None, int | None]

readings = tg.stream("R", "k bigint, t bigint, z bigint, x bigint", progress="t")

#: The first of A's events has 9, the last 8; the smallest of its first instant is 7, that of its last one 6.
EVENTS: list[Event] = [(1, 1, 0, 9), (1, 1, 1, 7), (1, 2, 0, 6), (1, 2, 1, 8), (1, 3, 0, 1)]

TEXT = """
    FROM R ORDER BY t, z PARTITION BY k DEFINE A AS x > 4, B AS x < 3 PATTERN A meets B WITHIN 50
    RETURN first(A.x) AS f, last(A.x) AS l
"""


def ends(by: tg.Expression = readings.t) -> tg.Derived:
    """Situations A, with the first and the last of x by time, and B."""
    return readings.partition_by("k", tie="z").derive(
        A=tg.situation(readings.x > 4, f=tg.first(readings.x, by=by), l=tg.last(readings.x, by=by)),
        B=tg.situation(readings.x < 3),
    )


def programs() -> dict[str, tg.Program]:
    derived = ends()
    return {
        "situations": tg.program(M=derived.A),
        "match": tg.program(M=derived.match(derived.A.meets(derived.B), within=50)),
        "text": tg.program(M=tg.read_query(TEXT, readings)),
    }


def found(rows: list[dict[str, object]]) -> list[tuple[object, object]]:
    return [tuple(row[next(n for n in row if n.split(".")[-1] == name)] for name in "fl") for row in rows]  # type: ignore[misc]


@pytest.mark.parametrize("kind", ["situations", "match", "text"])
def test_they_go_by_the_order_of_events(kind: str) -> None:
    program = programs()[kind]
    for events in itertools.islice(itertools.permutations(EVENTS), 0, None, 7):
        assert found(program.run({"R": list(events)}).rows("M")) == [(9, 8)], events


@pytest.mark.parametrize("kind", ["situations", "match", "text"])
def test_over_batches_and_restarts_that_part_an_instant(start: Start, kind: str) -> None:
    with start(programs()[kind]) as run:
        for events, progress in ((EVENTS[1:2], 0), ([EVENTS[3], EVENTS[0]], 1), ([EVENTS[2]], 2), (EVENTS[4:], 3)):
            run.add("R", events)
            run.step()
            run.restart()
            run.advance("R", t=progress)
            run.step()
            run.restart()
        run.expect(M=[{"situations": (1, 1, 3, 9, 8), "match": (1, 1, 3, 9, 8, 3, None, 3), "text": (9, 8, 3)}[kind]])


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_up_to_a_detection_within_a_situation(start: Start) -> None:
    """B ends at 3, at the first event of that instant; A goes on. What is known of A then has all of the instant."""
    high, low = readings.x > 4, readings.x > 8
    order = {"by": readings.t}
    derived = readings.partition_by("k", tie="z").derive(
        A=tg.situation(high, f=tg.first(readings.x, **order), l=tg.last(readings.x, **order)), B=tg.situation(low)
    )
    program = tg.program(M=derived.match(derived.A.contains(derived.B), within=50))
    events = [(1, 1, 1, 6), (1, 1, 0, 7), (1, 2, 0, 9), (1, 3, 2, 8), (1, 3, 1, 5), (1, 3, 0, 7), (1, 4, 0, 5)]
    with start(program) as run:
        for t in range(1, 5):
            run.add("R", [event for event in events if event[1] == t])
            run.advance("R", t=t)
            run.step()
        run.expect(M=[(1, 1, None, 7, 8, 2, 3, 3)])
    assert found(program.run({"R": events}).rows("M")) == [(7, 8)]


def test_null_is_skipped_and_a_tie_that_is_null_comes_first() -> None:
    shown = readings.z.is_null() | (readings.z >= 0)
    derived = readings.partition_by("k", tie="z").derive(
        A=tg.situation(shown, f=tg.first(readings.x, by=readings.t), l=tg.last(readings.x, by=readings.t))
    )
    program = tg.program(M=derived.A)
    events: list[Event] = [(1, 1, 0, 3), (1, 1, None, 5), (1, 2, 3, None), (1, 2, None, 2), (1, 2, 1, 4), (1, 3, -1, 0)]
    assert found(program.run({"R": events}).rows("M")) == [(5, 4)]
    assert evaluate(derived.A._node, {"R": list(events)}) == [(1, 1, 3, 5, 4)]
    nothing: list[Event] = [(k, t, z, None if t < 3 else x) for k, t, z, x in events]
    assert found(program.run({"R": nothing}).rows("M")) == [(None, None)]


def test_by_another_term_ties_go_to_the_smallest_value() -> None:
    program = tg.program(M=ends(by=readings.t + 0).A)
    assert found(program.run({"R": EVENTS}).rows("M")) == [(7, 6)]


def test_the_order_is_a_part_of_what_a_checkpoint_belongs_to() -> None:
    assert "f = first(x, by=(t, z)), l = last(x, by=(t, z))" in node_text(ends().A._node)
    assert "f = first(x, by=t + 0)" in node_text(ends(by=readings.t + 0).A._node)
