"""Recursion to the future: what is accepted, with which rank and step, and how far a component progresses (R19,
R20).
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.analysis.build import HOUR, SECOND, eq, facts, le, lt, plus, scan, stream
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.nodes import Imbed, Join, Node, Project, Rename, Select
from tidegate.algebra.program import Query
from tidegate.algebra.schema import StreamDef
from tidegate.algebra.terms import Call
from tidegate.algebra.time import INF
from tidegate.algebra.types import TIMESTAMP
from tidegate.analysis.facts import Recursion
from tidegate.analysis.recursion import component_progress

A = stream("A", values=())
P = stream("P", values=())
Q = stream("Q", values=())


def step(source: StreamDef, into: StreamDef, by: int, *, name: str = "") -> Query:
    """A query that shifts the instants of a stream, and feeds another with them."""
    return reading(scan(source, "s"), into, plus("s.t", by), name or f"{source.name}-{into.name}")


def reading(node: Node, into: StreamDef, at: Call | None = None, name: str = "more") -> Query:
    made = Imbed(node, "t", at) if at is not None else Rename(node, (("s.t", "t"),))
    return Query(name, into.name, Project(made, ("t",)), into)


def recursion_of(*queries: Query) -> Recursion:
    found = facts(*queries).recursions
    return next(iter(found.values()))


def refusal(*queries: Query) -> tuple[str, ...]:
    with pytest.raises(QueryError) as caught:
        facts(*queries)
    assert [problem.code for problem in caught.value.problems] == ["TG210"]
    return caught.value.problems[0].because


def test_a_step_of_its_own_is_the_step_of_the_rank() -> None:
    rank = recursion_of(step(A, P, 0), step(P, P, 5)).rank
    assert (rank.scale, rank.step) == (1, 5)
    assert rank.of("P", {"t": 12}) - rank.of("P", {"t": 7}) == 5
    limit = rank.of("P", {"t": 12})
    assert rank.below("P", limit) == {"t": 11}


def test_the_slowest_way_round_is_the_step() -> None:
    assert recursion_of(step(A, P, 0), step(P, P, 5, name="five"), step(P, P, 3, name="three")).rank.step == 3


def test_a_cycle_of_several_shares_its_advance() -> None:
    """One tick in a cycle of two: half a tick a step, so ticks are scaled by two."""
    found = recursion_of(step(A, P, 0), step(P, Q, 4), step(Q, P, -3))
    rank = found.rank
    assert (rank.scale, rank.step) == (2, 1)
    for row in range(-3, 4):
        assert rank.of("Q", {"t": row + 4}) - rank.of("P", {"t": row}) >= 1
        assert rank.of("P", {"t": row - 3}) - rank.of("Q", {"t": row}) >= 1
        for definition in ("P", "Q"):
            for limit in range(-12, 12):
                assert (rank.of(definition, {"t": row}) < limit) == (row <= rank.below(definition, limit)["t"])


def test_a_cycle_that_does_not_advance_is_told_at_the_query_that_closes_it() -> None:
    with pytest.raises(QueryError) as caught:
        facts(step(A, P, 0), step(P, Q, 4), step(Q, P, -6))
    (problem,) = caught.value.problems
    assert problem.message == "not valid: Q depends on rows of its own that are not earlier"
    assert problem.query == "P-Q"


def test_the_place_of_a_standstill_is_that_of_the_bound_that_closes_it() -> None:
    ahead = replace(step(P, Q, 4), sites={plus("s.t", 4): Site("queries.py", 4)})
    back = replace(step(Q, P, -6), sites={plus("s.t", -6): Site("queries.py", 6)})
    with pytest.raises(QueryError) as caught:
        facts(step(A, P, 0), ahead, back)
    assert caught.value.problems[0].site == Site("queries.py", 4)


def test_one_of_the_queries_of_a_stream_declares_it() -> None:
    first, more = replace(step(A, P, 0), declared=None), step(P, P, 5)
    for queries in ((first, more), (more, first)):
        assert recursion_of(*queries).rank.step == 5


def test_every_way_round_has_to_advance() -> None:
    assert refusal(step(A, P, 0), step(P, P, 0)) == (
        "P.t <= t   in P-P",
        "together: a row of P may depend on others at the same instant, itself among them",
    )
    assert refusal(step(A, P, 0), step(P, Q, 4), step(Q, P, -6))[-1] == (
        "together: a row of Q may depend on later ones, by up to 2"
    )
    # The one cycle advances, the other one does not.
    refusal(step(A, P, 0), step(P, P, 1), step(P, Q, 4), step(Q, P, -4))


def test_negation_counts_as_any_other_dependency() -> None:
    """Under an anti-join, too, only rows within the condition matter."""
    after = Join(scan(A, "s"), scan(P, "p"), le("p.t", plus("s.t", -2)), "anti")
    assert recursion_of(reading(after, P)).rank.step == 2
    refusal(reading(Join(scan(A, "s"), scan(P, "p"), le("p.t", "s.t"), "anti"), P))


def test_declared_relations_of_the_stream_itself_may_be_used() -> None:
    """start + 3 <= end is proved of new rows from that of old ones; only thanks to it the step from start advances
    end.
    """
    frames = stream("F", ("start", "end"), (), progress=("end",), relations=le(plus("start", 3), "end"))
    begin = Rename(Project(Imbed(scan(A, "s"), "end", plus("s.t", 3)), ("s.t", "end")), (("s.t", "start"),))
    old = scan(frames, "f")
    move = Select(
        Imbed(Imbed(old, "start", plus("f.start", 4)), "end", plus("f.end", 4)), le(plus("f.start", 3), "f.end")
    )
    found = recursion_of(
        Query("begin", "F", begin, frames), Query("move", "F", Project(move, ("start", "end")), frames)
    )
    assert found.rank.step == 4


def test_one_of_two_attributes_is_enough_to_advance() -> None:
    """The start stays, the end moves on: of a frame's rows those with earlier ends come first."""
    hour = plus("start", HOUR, timestamps=True)
    frames = stream("F", ("start", "end"), (), progress=("start", "end"), relations=le("end", hour), type_=TIMESTAMP)
    a = stream("A", values=(), type_=TIMESTAMP)
    begin = Rename(
        Project(Imbed(scan(a, "s"), "end", plus("s.t", 0, timestamps=True)), ("s.t", "end")), (("s.t", "start"),)
    )
    grown = Imbed(Rename(scan(frames, "f"), (("f.start", "start"),)), "end", plus("f.end", SECOND, timestamps=True))
    move = Select(grown, le("end", hour))
    found = recursion_of(
        Query("begin", "F", begin, frames), Query("move", "F", Project(move, ("start", "end")), frames)
    )
    rank = found.rank
    assert (rank.scale, rank.step) == (1, SECOND)
    for length in (0, 5, 3599):
        one = rank.of("F", {"start": 0, "end": length * SECOND})
        other = rank.of("F", {"start": 0, "end": (length + 1) * SECOND})
        assert other - one >= SECOND


def test_progress_is_the_greatest_fixpoint() -> None:
    """A reaches 10; P follows it, and its own steps hold nothing back, neither at first nor after a finished input."""
    found = recursion_of(step(A, P, 0), step(P, P, 5))
    assert component_progress(found, {("A", "t"): 10}) == {"A-P": {"t": 10}, "P-P": {"t": 15}}
    assert component_progress(found, {("A", "t"): -INF}) == {"A-P": {"t": -INF}, "P-P": {"t": -INF}}
    assert component_progress(found, {("A", "t"): INF}) == {"A-P": {"t": INF}, "P-P": {"t": INF}}


def test_progress_of_alternatives_that_descend_slowly_is_found_at_once() -> None:
    """A row reads rows up to one tick later by u, or an hour earlier by t: u alone would descend tick by tick."""
    two = stream("T", ("t", "u"), (), progress=("t", "u"))
    first = stream("B", ("t", "u"), (), progress=("t", "u"))
    begin = Rename(scan(first, "b"), (("b.t", "t"), ("b.u", "u")))
    made = Imbed(Imbed(scan(two, "r"), "t", plus("r.t", HOUR)), "u", plus("r.u", 1))
    condition = le("r.u", plus("r.t", 2 * HOUR))
    again = Select(Select(made, condition), le(plus("r.t", 0), plus("r.u", 0)))
    loose = Join(
        scan(A, "s"), scan(two, "r"), Call("and", (lt(plus("r.t", HOUR), "s.t"), le("r.u", plus("s.t", 1)))), "inner"
    )
    found = recursion_of(
        Query("begin", "T", begin, two),
        Query("again", "T", Project(again, ("t", "u")), two),
        Query("loose", "T", Project(Imbed(Rename(loose, (("s.t", "u"),)), "t", plus("u", 0)), ("t", "u")), two),
    )
    b = {("B", "t"): 0, ("B", "u"): 10 * HOUR, ("A", "t"): 20 * HOUR}
    reached = component_progress(found, b)
    assert reached["begin"] == {"t": 0, "u": 10 * HOUR}
    assert HOUR <= reached["loose"]["t"] <= 20 * HOUR


def test_same_instants_of_both_are_equal() -> None:
    """A dependency that holds an instant fast is refused, however it is written."""
    same = Join(scan(A, "s"), scan(P, "p"), eq("p.t", "s.t"), "semi")
    refusal(step(A, P, 0), reading(same, P))
