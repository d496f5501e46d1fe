"""Situations and temporal patterns, batch by batch, on either engine: when a row appears, what it says, what is
kept.
"""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import tidegate as tg
from tests.runtime.conftest import EITHER, Start
from tidegate.algebra.allen import Allen
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import EvaluationError

readings = tg.stream("R", "key bigint, t bigint, x double, n bigint", progress="t")


def rows(values: str, *, key: int = 1, start: int = 0) -> list[tuple[int, int, float | None, int]]:
    """One reading a tick: x is the digit, NULL where it is `-`; nothing where it is a blank."""
    return [
        (key, start + tick, None if digit == "-" else float(digit), tick)
        for tick, digit in enumerate(values)
        if digit != " "
    ]


def high(at_least: int = 1, at_most: int | None = None) -> tg.Intervals:
    derived = readings.partition_by("key").derive(
        H=tg.situation(readings.x > 4, at_least=at_least, at_most=at_most, top=tg.max(readings.x), n=tg.count())
    )
    return derived.H


def pair() -> tg.Derived:
    """A while the last reading was 1 or 3, B while it was 2 or 3: 3 is both."""
    one, two = readings.x.is_in(1.0, 3.0), readings.x.is_in(2.0, 3.0)
    return readings.partition_by("key").derive(A=tg.situation(one), B=tg.situation(two))


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_a_situation_is_reported_when_the_first_reading_after_it_is_final(start: Start) -> None:
    with start(tg.program(High=high())) as run:
        run.add("R", rows("057 8"))
        run.advance("R", t=4)
        run.step()
        run.expect(High=[])
        run.add("R", rows("1", start=5))
        run.step()
        run.expect(High=[])  # another reading at 5 may come
        run.restart()
        run.advance("R", t=5)
        run.step()
        run.expect(High=[(1, 1, 5, 8.0, 3)])


def test_null_and_gaps(start: Start) -> None:
    with start(tg.program(High=high())) as run:
        run.add("R", rows("5-55  5-0"))
        run.finish()
        run.step()
        # NULL is not true; where there is no reading, nothing has changed.
        run.expect(High=[(1, 0, 1, 5.0, 1), (1, 2, 7, 5.0, 3)])


def test_first_and_last_skip_null_of_a_situation_as_of_a_group() -> None:
    is_set, first, last = readings.n < 3, tg.first(readings.x, by=readings.t), tg.last(readings.x, by=readings.t)
    derived = readings.partition_by("key").derive(
        A=tg.situation(is_set, first=first, last=last), B=tg.situation(~is_set)
    )
    grouped = readings.where(is_set).group_by(readings.key, w=tg.ceil(readings.t, 10)).agg(first=first, last=last)
    program = tg.program(A=derived.A, Hits=derived.match(derived.A.meets(derived.B)), Grouped=grouped)
    found = program.run({"R": [(1, 1, None, 0), (1, 2, 7.0, 1), (1, 3, None, 2), (1, 4, 9.0, 3)]})
    for name, prefix in (("A", ""), ("Hits", "A."), ("Grouped", "")):
        assert [(row[f"{prefix}first"], row[f"{prefix}last"]) for row in found.rows(name)] == [(7.0, 7.0)], name


def test_what_is_open_at_the_end_is_not_reported(start: Start) -> None:
    with start(tg.program(High=high())) as run:
        run.add("R", rows("0555"))
        run.finish()
        run.step()
        run.expect(High=[])


@pytest.mark.parametrize(("length", "found"), [(1, False), (2, True), (4, True), (5, False)])
def test_limits_of_a_duration_are_inclusive(length: int, *, found: bool) -> None:
    program = tg.program(High=high(at_least=2, at_most=4))
    results = program.run({"R": rows("0" + "5" * length + "0")})["High"].arrow().to_pylist()
    assert [(row["ts"], row["te"]) for row in results] == ([(1, 1 + length)] if found else [])


def test_equal_times_need_a_tie_break() -> None:
    events = [(1, 0, 5.0, 1), (1, 3, 5.0, 3), (1, 3, 0.0, 2), (1, 4, 0.0, 4)]
    with pytest.raises(EvaluationError, match="TG304 two events of one partition at 3"):
        tg.program(High=high()).run({"R": tg.source(events, ties="fail")})
    tied = readings.partition_by("key", tie="n").derive(H=tg.situation(readings.x > 4))
    results = tg.program(High=tied.H).run({"R": events})["High"].arrow().to_pylist()
    # At 3 the reading 0 comes first: one period ends there and another begins.
    assert [(row["ts"], row["te"]) for row in results] == [(0, 3), (3, 4)]


#: Readings in which A and B are in each relation: A holds at 1 and 3, B at 2 and 3; and when that is certain.
RELATED = {
    Allen.BEFORE: ("01020", 3),
    Allen.MEETS: ("0120", 2),
    Allen.OVERLAPS: ("01320", 3),
    Allen.FINISHED_BY: ("0130", 3),
    Allen.CONTAINS: ("01310", 3),
    Allen.STARTS: ("0320", 2),
    Allen.EQUALS: ("030", 2),
    Allen.STARTED_BY: ("0310", 2),
    Allen.DURING: ("02320", 3),
    Allen.FINISHES: ("0230", 3),
    Allen.OVERLAPPED_BY: ("02310", 3),
    Allen.MET_BY: ("0210", 2),
    Allen.AFTER: ("02010", 3),
}


@pytest.mark.parametrize("relation", Allen)
def test_every_relation_is_matched_by_its_own_readings_only_and_when_it_is_certain(relation: Allen) -> None:
    derived = pair()
    condition = getattr(derived.A, relation.value)(derived.B)
    program = tg.program(Found=derived.match(condition, within=10))
    for other, (values, detected) in RELATED.items():
        results = program.run({"R": rows(values)})["Found"].arrow().to_pylist()
        assert [row["detected"] for row in results] == ([detected] if other is relation else [])


@pytest.mark.parametrize("relation", Allen)
def test_a_pattern_of_the_converse_is_the_same(relation: Allen) -> None:
    derived = pair()
    there = derived.match(getattr(derived.A, relation.value)(derived.B), within=10)
    back = derived.match(getattr(derived.B, relation.converse.value)(derived.A), within=10)
    program = tg.program(There=there, Back=back.select(*there.schema.names))
    for values, _ in RELATED.values():
        results = program.run({"R": rows(values)})
        assert results["There"].rows() == results["Back"].rows()


def test_any_two_situations_are_in_one_relation() -> None:
    derived = pair()
    queries = {
        r.name: derived.match(getattr(derived.A, r.value)(derived.B), emission="final", within=99) for r in Allen
    }
    values = "0120130320310132012310231001"
    results = tg.program(**queries).run({"R": rows(values)})
    found = [(row["A.ts"], row["B.ts"]) for name in queries for row in results[name].arrow().to_pylist()]
    every = tg.program(Every=derived.match(derived.A, derived.B, emission="final", within=99)).run({"R": rows(values)})
    assert len(found) == len(set(found)) > 20
    assert sorted(found) == sorted((row["A.ts"], row["B.ts"]) for row in every["Every"].arrow().to_pylist())


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_a_match_is_reported_before_its_situations_end(start: Start) -> None:
    derived = pair()
    hits = derived.match(
        derived.A.overlaps(derived.B) | derived.A.finished_by(derived.B) | derived.A.contains(derived.B), within=50
    )
    with start(tg.program(Hits=hits)) as run:
        run.add("R", rows("011"))
        run.advance("R", t=2)
        run.step()
        run.expect(Hits=[])
        run.add("R", rows("33", start=3))
        run.advance("R", t=3)
        run.step()
        # However they end, it is one of the three.
        run.expect(Hits=[(1, 1, None, 3, None, 3)])
        run.kill()
        run.add("R", rows("0", start=5))
        run.finish()
        run.step()
        run.expect(Hits=[])


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_different_values_are_counted_over_batches_and_restarts(start: Start) -> None:
    """Of those that are over, of those up to the detection, and of none but NULL; 0.0 is -0.0, and NaN is one value."""
    events = tg.stream("E", "key bigint, t bigint, on boolean, x double, name string", progress="t")
    nan = float("nan")
    derived = events.partition_by("key").derive(
        On=tg.situation(
            events.on, kinds=tg.count_distinct(events.x), names=tg.count_distinct(events.name), n=tg.count()
        ),
        Off=tg.situation(~events.on, kinds=tg.count_distinct(events.x)),
    )
    with start(tg.program(On=derived.On, Meet=derived.match(derived.On.meets(derived.Off), within=20))) as run:
        run.add("E", [(1, 1, True, 0.0, "a"), (1, 2, True, nan, "a"), (2, 1, True, None, "b")])
        run.advance("E", t=2)
        run.step()
        run.expect(On=[], Meet=[])
        run.restart()
        run.add("E", [(1, 3, True, -0.0, "b"), (1, 4, True, nan, None), (2, 3, True, None, "b")])
        run.advance("E", t=4)
        run.step()
        run.restart()
        run.add("E", [(1, 5, True, 2.0, "a"), (1, 6, False, 2.0, "a"), (1, 7, False, 3.0, "a"), (2, 5, False, 1.0, "")])
        run.finish()
        run.step()
        run.expect(On=[(1, 1, 6, 3, 2, 5), (2, 1, 5, 0, 1, 2)])
        run.expect(Meet=[(1, 1, 6, 3, 2, 5, 6, None, 1, 6), (2, 1, 5, 0, 1, 2, 5, None, 1, 5)])


@pytest.mark.parametrize("name", ["run", "run until", "run request", "~run until", "value"])
def test_events_may_have_columns_of_any_name(start: Start, name: str) -> None:
    events = tg.stream("E", f"key bigint, t bigint, a boolean, b boolean, `{name}` bigint", progress="t")
    derived = events.partition_by("key").derive(
        A=tg.situation(events.a), B=tg.situation(events.b, n=tg.count_distinct(events[name]), s=tg.sum(events[name]))
    )
    found = tg.match(derived.A.overlaps(derived.B), within=100).select("B.n", "B.s", "detected")
    with start(tg.program(Found=found)) as run:
        run.add("E", [(1, 1, True, False, 4), (1, 2, True, True, 5), (1, 3, True, True, 6), (1, 4, False, True, 7)])
        run.add("E", [(1, 5, False, True, 8)])
        run.finish()
        run.step()
        run.expect(Found=[(3, 18, 4)])


def test_a_least_duration_is_reached_without_a_reading(start: Start) -> None:
    derived = readings.partition_by("key").derive(H=tg.situation(readings.x > 4, at_least=10, n=tg.count()))
    with start(tg.program(Long=derived.match(derived.H, within=50))) as run:
        run.add("R", rows("055"))
        run.advance("R", t=9)
        run.step()
        run.expect(Long=[])
        run.advance("R", t=10)
        run.step()
        run.expect(Long=[(1, 1, None, 2, 10)])


@pytest.mark.parametrize(("within", "found"), [(6, 1), (5, 0)])
def test_a_window_is_inclusive(within: int, found: int) -> None:
    derived = pair()
    pattern = derived.A.before(derived.B)
    # A [0, 1), B [6, 7): known at 6, or at its end.
    early = derived.match(pattern, within=within)
    late = derived.match(pattern, within=within + 1, emission="final")
    for hits in (early, late):
        assert tg.program(Hits=hits).run({"R": rows("10    20")})["Hits"].arrow().num_rows == found


def test_the_same_situation_twice() -> None:
    first = high()
    second = first.as_("again")
    hits = tg.match(first.before(second), second.ts - first.te <= 3, within=99)
    results = tg.program(Hits=hits).run({"R": rows("505000050505000")})["Hits"].arrow().to_pylist()
    assert sorted((row["H.ts"], row["again.ts"]) for row in results) == [(0, 2), (7, 9), (7, 11), (9, 11)]


def test_partitions_do_not_mix(start: Start) -> None:
    derived = pair()
    with start(tg.program(Hits=derived.match(derived.A.meets(derived.B), within=9))) as run:
        run.add("R", [*rows("010", key=1), *rows("020", key=2, start=1), *rows("0120", key=None, start=5)])  # type: ignore[arg-type]
        run.finish()
        run.step()
        run.expect(Hits=[(None, 6, 7, 7, None, 7)])


def test_situations_that_look_alike_are_of_their_own_streams(start: Start) -> None:
    others = tg.stream("S", "key bigint, t bigint, x double, n bigint", progress="t")
    one = readings.partition_by("key").derive(A=tg.situation(readings.x > 4)).A
    other = others.partition_by("key").derive(B=tg.situation(others.x > 4)).B
    with start(tg.program(M=tg.match(one.overlaps(other), within=9, emission="final"))) as run:
        run.add("R", rows("055500"))
        run.add("S", rows("005550"))
        run.finish()
        run.step()
        run.expect(M=[(1, 1, 4, 2, 5, 5)])


def test_situations_are_joined_and_grouped_as_any_stream(start: Start) -> None:
    periods = high()
    lonely = tg.stream("Check", "key bigint, t bigint", progress="t").as_("c")
    checked = periods.join(lonely, periods.key == lonely.key, periods.ts <= lonely.t, lonely.t < periods.te)
    program = tg.program(
        Checked=checked.select(periods.key, start=periods.ts, checked=lonely.t, end=periods.te),
        PerTen=periods.group_by(end=tg.ceil(periods.te, 10)).agg(n=tg.count(), longest=tg.max(periods.te - periods.ts)),
    )
    with start(program) as run:
        run.add("R", rows("0550005550"))
        run.add("Check", [(1, 2), (1, 3), (1, 7)])
        run.finish()
        run.step()
        run.expect(Checked=[(1, 1, 2, 3), (1, 6, 7, 9)], PerTen=[(10, 2, 3)])


def test_nothing_is_kept_of_what_is_over(start: Start) -> None:
    derived = pair()
    with start(tg.program(Hits=derived.match(derived.A.before(derived.B), within=5)), collect_garbage="exact") as run:
        run.add("R", rows("010" + "0" * 20))
        run.advance("R", t=22)
        run.step()
        assert sum(run.live_rows.values()) == 0


def refused(code: str, *conditions: object, **options: object) -> QueryError:
    with pytest.raises(QueryError) as caught:
        tg.program(Hits=tg.match(*conditions, **options)).facts  # type: ignore[arg-type]
    assert caught.value.code == code
    return caught.value


def test_conditions_on_values_are_no_part_of_a_pattern() -> None:
    found = readings.partition_by("key").derive(
        A=tg.situation(readings.x > 4, n=tg.count()), B=tg.situation(readings.x < 4)
    )
    for pattern in ([found.A.before(found.B), found.A.n > 2], [found.A.before(found.B) | (found.A.n > 2)]):
        with pytest.raises(QueryError, match=r"TG153 .*A\.n > 2\n(?s:.*)filter the matches by it"):
            found.match(*pattern, within=9)


def test_keywords_of_a_situation_that_are_meant_otherwise() -> None:
    def derive(**given: object) -> object:
        made: Any = tg.situation
        return readings.partition_by("key").derive(A=made(readings.x > 4, **given))

    with pytest.raises(QueryError, match=r"TG115 .*(?s:.*)did you mean at_least=\?"):
        derive(atleast=3)
    with pytest.raises(QueryError, match=r"TG103 A has ts already: an end of the period(?s:.*)ts_="):
        derive(ts=tg.count())
    with pytest.raises(QueryError, match="TG103 A has key already: a key of its partition"):
        derive(key=tg.count())


def test_patterns_that_can_not_match_or_wait_for_ever_are_refused() -> None:
    derived = pair()
    a, b = derived.A, derived.B
    never = refused("TG212", a.before(b), b.ts - a.ts >= 9, within=5)
    assert "detected" in str(never)
    refused("TG212", a.before(b), b.before(a), within=5)
    refused("TG213", a.before(b))
    refused("TG153", a.before(b), a.ts > 5, within=5)
    refused("TG103", a.before(b), a.before(high().as_("B")), within=5)


def test_matches_with_a_bounded_wait_need_no_window() -> None:
    derived = pair()
    a, b = derived.A, derived.B
    hits = (
        tg.program(Hits=tg.match(a.before(b), b.ts - a.te <= 2)).run({"R": rows("0100202")})["Hits"].arrow().to_pylist()
    )
    assert [(row["A.ts"], row["B.ts"]) for row in hits] == [(1, 4)]


def test_each_way_to_cut_the_input_gives_the_same_matches() -> None:
    derived = pair()
    hits = tg.program(Hits=derived.match(derived.A.overlaps(derived.B) | derived.A.meets(derived.B), within=8))
    events = rows("0132012013320120")
    wanted = hits.run({"R": events})["Hits"].arrow().to_pylist()
    assert len(wanted) > 2
    for cut in itertools.combinations(range(1, len(events)), 2):
        with hits.session() as session:
            for low, high_ in itertools.pairwise((0, *cut, len(events))):
                session.push("R", events[low:high_])
                session.advance("R", {"t": high_ - 1})
                session.step()
            session.finish()
            session.step()
            assert sorted(map(str, session.results("Hits"))) == sorted(map(str, wanted))


@pytest.mark.parametrize("ahead", [16, 29])
def test_a_key_that_is_a_second_instant_lets_no_result_of_its_events_pass(ahead: int) -> None:
    """The progress of such a key may be far beyond that of the events' time, for which situations wait."""
    events = tg.stream(
        "E",
        "k bigint, u bigint, t bigint, v bigint",
        progress=("t", "u"),
        relations=lambda row: (row.u <= row.t + 10) & (row.t <= row.u + 12),
    )
    derived = events.partition_by("k", "u", time="t").derive(
        High=tg.situation(events.v > 0), Low=tg.situation(events.v < 0)
    )
    met = derived.match(derived.High.meets(derived.Low), within=20)
    pairs = events.sequences(
        "A B",
        by=("k", "u"),
        order="t",
        within=20,
        matches="any",
        define={"A": lambda row: row.A.v > 0, "B": lambda row: row.B.v < 0},
    )
    counted = pairs.group_by("k", "u", "detected").agg(n=tg.count())
    with tg.program(High=derived.High, Met=met, Counted=counted).session() as session:
        session.push("E", [(1, 16, 10, 1), (1, 16, 20, -1), (1, 16, 28, 0)])
        session.step()
        session.advance("E", {"u": ahead})
        session.step()
        assert session.progress["High"]["u"] < 16
        session.advance("E", {"t": 24})
        session.step()
        session.finish()
        session.step()
        assert [(row["u"], row["ts"], row["te"]) for row in session.results("High")] == [(16, 10, 20)]
        (found,) = session.results("Met")
        assert found["u"] == 16
        (found,) = session.results("Counted")
        assert (found["u"], found["n"]) == (16, 1)
