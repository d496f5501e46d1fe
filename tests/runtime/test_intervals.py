"""Patterns over rows that say when they begin and end: alone and beside derived situations, in any permitted order."""

from __future__ import annotations

import random

import pytest

import tidegate as tg
from tests.runtime.conftest import Start
from tidegate.algebra.errors import QueryError
from tidegate.testing import drive

by_start = tg.stream("S", "k bigint, a bigint, z bigint, x string", progress="a", relations=lambda s: s.a < s.z)
by_end = tg.stream("T", "k bigint, a bigint, z bigint, x string", progress="z", relations=lambda s: s.a < s.z)
readings = tg.stream("R", "k bigint, t bigint, x bigint", progress="t")


def intervals(stream: tg.Relation, name: str, *, points: bool = False) -> tg.Intervals:
    return stream.as_intervals(start="a", end="z", by="k", name=name, points=points)


def test_detected_as_if_derived_and_reported_by_progress_on_starts() -> None:
    A, B = intervals(by_start, "A"), intervals(by_start, "B")
    program = tg.program(M=tg.match(A.overlaps(B) | A.finished_by(B) | A.contains(B), within=20))
    with drive(program) as run:
        run.add("S", [(1, 5, 7, "b"), (1, 1, 9, "a")])
        run.advance("S", a=4)
        run.step()
        run.expect(M=[])  # a third that starts at 5 may come
        run.advance("S", a=5)
        run.step()
        # The whole group is allowed, so the start of B decides; what its row says of the end is in the result.
        run.expect(M=[(1, 1, 9, "a", 5, 7, "b", 5)])


def test_an_end_decides_when_it_is_reached_although_the_row_said_it_before() -> None:
    A, B = intervals(by_start, "A"), intervals(by_start, "B")
    with drive(tg.program(M=tg.match(A.contains(B), within=20))) as run:
        run.add("S", [(1, 1, 9, "a"), (1, 5, 7, "b")])
        run.advance("S", a=5)
        run.step()
        run.expect(M=[])
        run.advance("S", a=6)  # what is detected at 7 has begun by then
        run.step()
        run.expect(M=[(1, 1, 9, "a", 5, 7, "b", 7)])


def test_given_beside_derived(start: Start) -> None:
    shift = intervals(by_end, "Shift")
    high = readings.partition_by("k").derive(High=tg.situation(readings.x > 4, top=tg.max(readings.x))).High
    program = tg.program(M=tg.match(high.during(shift), shift.te - high.te <= 10))
    with start(program) as run:
        run.add("R", [(1, 0, 0), (1, 1, 9), (1, 3, 0)])
        run.add("T", [(1, 0, 8, "Ada"), (1, 2, 9, "Bob"), (2, 0, 8, "Eve")])
        run.advance("R", t=50)
        run.advance("T", z=7)
        run.step()
        run.expect(M=[])  # that the shift ends in time is certain when it ends
        run.restart()
        run.advance("T", z=8)
        run.step()
        run.expect(M=[(1, 1, 3, 9, 0, 8, "Ada", 8)])


def test_the_last_rows_come_last() -> None:
    A, B = intervals(by_end, "A"), intervals(by_end, "B")
    program = tg.program(M=tg.match(A.before(B), B.ts - A.te <= 5, within=20, emission="final"))
    with drive(program) as run:
        run.add("T", [(1, 6, 7, "b")])
        run.add("T", [(1, 1, 3, "a")])  # earlier, and later to come
        run.finish()
        run.step()
        run.expect(M=[(1, 1, 3, "a", 6, 7, "b", 7)])


@pytest.mark.parametrize(("z", "found"), [(2, True), (3, False)])
def test_points(z: int, *, found: bool) -> None:
    stream = tg.stream("P", "k bigint, a bigint, z bigint", progress="a", relations=lambda s: s.a <= s.z)
    A, B = intervals(stream, "A", points=True), intervals(stream, "B", points=True)
    program = tg.program(M=tg.match(A.te <= B.ts, A.ts == A.te, B.ts < B.te, within=10))
    rows = program.run({"P": [(1, z, z), (1, 2, 5)]}).rows("M")
    assert [(row["A.ts"], row["B.ts"], row["detected"]) for row in rows] == ([(2, 2, 2)] if found else [])


def test_rows_that_overlap_in_one_partition() -> None:
    A, B = intervals(by_start, "A"), intervals(by_start, "B")
    program = tg.program(M=tg.match(A.during(B), within=30))
    given = [(1, 0, 20, "long"), (1, 2, 4, "one"), (1, 3, 15, "two"), (1, 5, 6, "three")]
    rows = program.run({"S": given}).rows("M")
    found = sorted((row["A.x"], row["B.x"], row["detected"]) for row in rows)
    assert found == [("one", "long", 4), ("three", "long", 6), ("three", "two", 6), ("two", "long", 15)]


def test_many_rows_that_overlap_in_one_partition() -> None:
    """Those that begin later may end earlier: all that have not ended are partners, however many lie between."""
    rng = random.Random(3)
    begins = [(number, rng.randrange(60)) for number in range(40)]
    given = [(1, begin, begin + 1 + rng.choice((1, 2, 5, 30)), str(number)) for number, begin in begins]
    A, B = intervals(by_start, "A"), intervals(by_start, "B")
    rows = tg.program(M=tg.match(A.during(B), within=60)).run({"S": given}).rows("M")
    during = sorted((x, y) for _, a, z, x in given for _, b, end, y in given if b < a and z < end)
    assert sorted((row["A.x"], row["B.x"]) for row in rows) == during


def test_results_of_another_query_as_intervals() -> None:
    high = readings.partition_by("k").derive(High=tg.situation(readings.x > 4)).High
    again = high.where(high.te - high.ts >= 2).as_intervals(start=high.ts, end=high.te, by=high.k, name="Long")
    program = tg.program(M=tg.match(high.before(again), within=20, emission="final"))
    rows = program.run({"R": [(1, t, x) for t, x in enumerate([0, 9, 0, 9, 9, 0])]}).rows("M")
    assert [(row["High.ts"], row["Long.ts"], row["Long.te"], row["detected"]) for row in rows] == [(1, 3, 5, 5)]


def test_rows_that_are_no_periods() -> None:
    stream = tg.stream("P", "k bigint, a bigint, z bigint", progress="a", temporal="z")
    A = intervals(stream, "A")
    with pytest.raises(QueryError) as caught:
        tg.program(M=tg.match(A.te >= A.ts + 2, within=10)).explain()
    assert [problem.code for problem in caught.value.problems] == ["TG161"]
    filtered = intervals(stream.where(stream.a < stream.z), "A")
    tg.program(M=tg.match(filtered, within=10)).explain()


@pytest.mark.parametrize("points", [False, True])
def test_rows_that_are_periods_but_for_one_tick(points: bool) -> None:
    stream = tg.stream("P", "k bigint, a bigint, z bigint", progress="a", temporal="z")
    for by, fine in ((0 if points else 1, True), (-1 if points else 0, False)):
        given = intervals(stream.where(stream.a + by <= stream.z), "A", points=points)
        program = tg.program(M=tg.match(given, within=10))
        if fine:
            program.explain()
        else:
            with pytest.raises(QueryError, match="TG161"):
                program.explain()


def test_ends_without_bound_need_progress_on_starts() -> None:
    A, B = intervals(by_end, "A"), intervals(by_end, "B")
    with pytest.raises(QueryError) as caught:
        tg.program(M=tg.match(A.before(B), within=10)).explain()
    assert [problem.code for problem in caught.value.problems] == ["TG201"]
    C, D = intervals(by_start, "C"), intervals(by_start, "D")
    tg.program(M=tg.match(C.before(D), within=10)).explain()


def test_names_and_clashes() -> None:
    with pytest.raises(QueryError, match="TG114"):
        by_start.join(readings.as_("r")).as_intervals(start="a", end="z")
    with pytest.raises(QueryError, match="TG103"):
        by_start.as_intervals(start="a", end="a")
    assert intervals(by_start, "A").schema.names == ("A.k", "A.ts", "A.te", "A.x")
    assert by_start.as_intervals(start="a", end="z").as_("B").schema.names[0] == "B.ts"


def test_rows_of_a_static_table_are_no_situations_those_of_a_bounded_stream_are() -> None:
    columns = "k bigint, a bigint, z bigint"
    high = readings.partition_by("k").derive(High=tg.situation(readings.x > 4)).High
    table = tg.table("Shifts", columns)
    with pytest.raises(QueryError, match=r"TG162 .* static tables only(.|\n)*declare a stream"):
        table.where(table.a < table.z).as_intervals(start="a", end="z", by="k", name="Shift")
    ordered = tg.table("Log", "k bigint, t timestamp not null, x bigint")
    derived = ordered.partition_by("k", time="t").derive(On=tg.situation(ordered.x > 4)).On
    with pytest.raises(QueryError, match=r"TG162 .* static tables only(.|\n)*declare a stream"):
        tg.program(On=derived).explain()
    stream = tg.stream("Shifts", columns, progress="a", relations=lambda s: s.a < s.z)
    shift = stream.as_intervals(start="a", end="z", by="k", name="Shift")
    program = tg.program(M=tg.match(high.during(shift), within=20))
    sources = {"R": tg.source(None, delay=0), "Shifts": [(1, 0, 8)]}
    with program.session(sources=sources) as run:
        run.push("R", [(1, t, 9 if t == 3 else 0) for t in range(12)])
        run.step()
        assert [row["detected"] for row in run.results("M")] == [4]
