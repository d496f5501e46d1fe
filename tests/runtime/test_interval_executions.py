"""The executions of the ISEQ paper: its examples step by step, and what each keeps of them."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

import tidegate as tg
from tidegate import testing
from tidegate.algebra.ordered.match.node import Match
from tidegate.runtime.testkit.interval_executions import EXECUTIONS, Execution, IntervalExecution, arrivals
from tidegate.runtime.testkit.interval_lists import IntervalList, interval_list

EVENTS = tg.stream("E", "kind string, a bigint, z bigint", progress="z", relations=lambda e: e.a < e.z)
KINDS = {
    name: EVENTS.where(EVENTS.kind == name).select("a", "z").as_intervals(start="a", end="z", name=name)
    for name in "ABCD"
}
#: Examples 2 and 3. The paper prints starts in the place of ends, which its text means.
EXAMPLE = "EVENT ISEQ [A.ts < B.te < C.te < D.te] (A, B, C, D; 30)"
TRACE = [("B", 3, 6), ("D", 6, 10), ("B", 9, 11), ("C", 4, 12), ("A", 7, 14), ("D", 9, 15), ("A", 8, 16)]
FOUND = {(9, 15): [(7, 14, 9, 11, 4, 12, 9, 15)], (8, 16): [(8, 16, 9, 11, 4, 12, 9, 15)]}


def list_of(text: str) -> IntervalList:
    node = tg.read_query(text, KINDS)._node
    assert isinstance(node, Match)
    return interval_list(node)


def kept(running: IntervalExecution) -> dict[str, list[tuple[int, int | None]]]:
    return {role: found for role in "ABCD" if (found := running.kept(role))}


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_the_second_example_step_by_step(execution: Execution) -> None:
    running = IntervalExecution(list_of(EXAMPLE), execution)
    for arrival in arrivals(TRACE):
        found = running.arrive(arrival)
        ends = (arrival.ts, arrival.te)
        assert found == ([] if arrival.te is None else FOUND.get((arrival.ts, arrival.te), []))
        if ends == (6, 10):
            assert "D" not in kept(running), "no C is there yet"


@pytest.mark.parametrize("execution", ["naive", "stacks"])
def test_what_has_left_the_window_goes(execution: Execution) -> None:
    """What comes at 35 lets b of 3 and c of 4 go. The paper keeps d, which has no c any more: its chain leads on."""
    running = IntervalExecution(list_of(EXAMPLE), execution)
    for arrival in arrivals(TRACE):
        running.arrive(arrival)
    assert kept(running) == {
        "A": [(7, 14), (8, 16)], "B": [(3, 6), (9, 11)], "C": [(4, 12)], "D": [(9, 15)]
    }  # fmt: skip
    running.arrive(arrivals([("A", 20, 35)])[1])
    assert kept(running) == {"A": [(7, 14), (8, 16), (20, 35)], "B": [(9, 11)]}


def test_the_third_example_beginnings_drop_what_no_beginning_goes_before() -> None:
    running = IntervalExecution(list_of(EXAMPLE), "punctuated")
    steps: Mapping[tuple[str, int, int | None], dict[str, list[tuple[int, int | None]]]] = {
        ("B", 3, 6): {},
        ("D", 6, 10): {"A": [(7, None), (8, None)]},
        ("B", 9, 11): {"A": [(7, None), (8, None)], "B": [(9, 11)]},
        ("A", 7, 14): {"A": [(7, 14), (8, None)], "B": [(9, 11)], "C": [(4, 12)]},
        ("A", 8, 16): {"A": [(7, 14), (8, 16)], "B": [(9, 11)], "C": [(4, 12)], "D": [(9, 15)]},
    }
    for arrival in arrivals(TRACE):
        running.arrive(arrival)
        expected = steps.get((arrival.role, arrival.ts, arrival.te))
        assert expected is None or kept(running) == expected


def test_the_longest_orders_of_ends_are_indexed() -> None:
    of = list_of(EXAMPLE)
    assert of.ordered_ends == (3, 5, 7)
    assert of.ordered_points == (0, 3, 5, 7)
    assert list_of("EVENT ISEQ [A.ts < B.ts < C.ts] (A, B, C; 30)").ordered_ends in ((1,), (3,), (5,))
    # From the start of an interval to its end is no step, so no path of ends is longer than this one.
    assert list_of("EVENT ISEQ [A.te < B.ts] (A, B; 30)").ordered_points == (0, 2)


def test_indices_compare_fewer_pairs() -> None:
    intervals = [("ABCD"[n * 7 % 4], n, n + 1 + n * 5 % 7) for n in range(200)]
    tested = {}
    for execution in EXECUTIONS:
        running = IntervalExecution(list_of("EVENT ISEQ [A.te < B.te < C.te AND A.ts < C.ts] (A, B, C; 20)"), execution)
        found = sorted(one for arrival in arrivals(intervals) if arrival.role != "D" for one in running.arrive(arrival))
        tested[execution] = running.tested, len(found)
    assert len({number for _, number in tested.values()}) == 1
    assert tested["naive"][1] > 100
    assert tested["naive"][0] > tested["stacks"][0] > 0


def test_lists_with_alternatives_are_refused() -> None:
    with pytest.raises(tg.QueryError, match="TG114 the executions of ISEQ are for lists without alternatives"):
        list_of("EVENT ISEQ [(A.ts < B.ts OR A.ts > B.ts)] (A, B; 30)")


@pytest.mark.parametrize("execution", EXECUTIONS)
def test_a_sequence_is_executed_as_it_is_found(execution: Execution) -> None:
    """By intervals of one kind under two names, too."""
    again = KINDS["A"].as_("A2")
    found = tg.iseq(KINDS["A"].te < again.te, KINDS["B"].ts < again.te, of=(KINDS["A"], again, KINDS["B"]), within=20)
    intervals = [("AB"[n % 2], n, n + 2 + n % 3) for n in range(14)]
    ran = testing.execute_iseq(found, [*intervals, ("C", 1, 2)], execution)
    rows = tg.program(R=found).run({"E": intervals})["R"].rows()
    assert sorted(ran.results) == sorted(tuple(row.values())[:-1] for row in rows)
    assert len(rows) > 20
    assert 0 < ran.mean < ran.most
    assert ran.compared > 0


def test_executions_that_there_are_not() -> None:
    found = tg.iseq(KINDS["A"].ts < KINDS["B"].ts, of=(KINDS["A"], KINDS["B"]), within=9)
    with pytest.raises(tg.QueryError, match="TG114 no execution is called 'quick'"):
        testing.execute_iseq(found, [], "quick")  # type: ignore[arg-type]
    with pytest.raises(tg.QueryError, match=r"(?s)TG114 .* is no interval sequence"):
        testing.execute_iseq(EVENTS, [])


# --- the warehouse of section 3 ---------------------------------------------------------------------------------------

READINGS = [(0, 55), (2, 70), (4, 95), (6, 80), (8, 110), (10, 120), (12, 90), (14, 60), (16, 30)]


def test_the_warehouse() -> None:
    """Temperatures become intervals, and intervals of items in the warehouse are compared with them."""
    sensors = tg.stream("Sensors", "room string, at bigint, temperature bigint", progress="at")
    stays = tg.stream(
        "Stays", "room string, item string, a bigint, z bigint", progress="z", relations=lambda s: s.a < s.z
    )
    heat = sensors.partition_by("room", time="at").derive(
        HIGH=tg.situation(sensors.temperature > 100),
        MEDIUM=tg.situation((sensors.temperature > 50) & (sensors.temperature <= 100)),
        LOW=tg.situation(sensors.temperature <= 50),
    )
    stay = stays.as_intervals(start="a", end="z", by="room", name="STAY")
    rows = {
        "Sensors": [("hall", at, temperature) for at, temperature in READINGS],
        "Stays": [("hall", "milk", 9, 11), ("hall", "rice", 9, 13), ("cellar", "milk", 9, 11)],
    }
    program = tg.program(
        High=heat.HIGH,
        Medium=heat.MEDIUM,
        Spoiled=tg.read_query("EVENT ISEQ [HIGH contains STAY] (HIGH, STAY; 60)", {"HIGH": heat.HIGH, "STAY": stay}),
        Warming=tg.read_query(
            "EVENT ISEQ [MEDIUM meets HIGH] (MEDIUM, HIGH; 60)", {"MEDIUM": heat.MEDIUM, "HIGH": heat.HIGH}
        ),
    )
    results = program.run(rows)
    assert [(row["ts"], row["te"]) for row in results["High"].rows()] == [(8, 12)]
    assert sorted((row["ts"], row["te"]) for row in results["Medium"].rows()) == [(0, 8), (12, 16)]
    assert [(row["STAY.item"], row["detected"]) for row in results["Spoiled"].rows()] == [("milk", 12)]
    assert [tuple(row.values()) for row in results["Warming"].rows()] == [("hall", 0, 8, 8, 12, 12)]
