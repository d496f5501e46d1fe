"""Queries in contexts as text: what it means, that it is printed back, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

import tidegate as tg
from tests.contexts.traffic import MINUTES, REPORTS, STOPPED, traffic
from tidegate.algebra.nodes import Row
from tidegate.algebra.printing.plans import node_text

POSITIONS = tg.stream(
    "PositionReport", "vid bigint, xway bigint, lane string, seg bigint, sec bigint, arrived bigint", progress="sec"
)
STREAMS = {
    "Minutes": tg.stream("Minutes", "seg bigint, sec bigint, cars bigint, speed double", progress="sec"),
    "Stopped": tg.stream("Stopped", "seg bigint, sec bigint, place bigint, cleared boolean", progress="sec"),
    "PositionReport": POSITIONS,
}
MODEL = """
MODEL Traffic BY seg
CONTEXT clear, congestion, accident HELD BY SET
DEFAULT clear;
"""
#: The deriving queries of the paper's Figure 3, with the clauses that its grammar lacks.
DERIVING = """
SWITCH CONTEXT congestion(m.speed) PATTERN Minutes m WHERE m.cars > 50 AND m.speed < 40 CONTEXT clear;
SWITCH CONTEXT clear PATTERN Minutes m WHERE m.cars < 30 OR m.speed > 50 CONTEXT congestion;
INITIATE CONTEXT accident PATTERN Stopped WHERE NOT cleared CAUSE place;
TERMINATE CONTEXT accident PATTERN Stopped s WHERE s.cleared CAUSE s.place;
"""
#: Its queries 1 and 2.
PROCESSING = """
DERIVE TollNotification(p.vid, p.sec, 5 AS toll) PATTERN NewTravelingCar p CONTEXT congestion;
DERIVE NewTravelingCar(p2.vid, p2.xway, p2.seg, p2.lane, p2.sec)
PATTERN SEQ(NOT PositionReport p1, PositionReport p2)
WHERE p1.sec + 30 = p2.sec AND p1.vid = p2.vid AND p2.lane <> 'exit'
CONTEXT congestion;
"""
FIGURE_3 = MODEL + DERIVING + PROCESSING


def read(text: str, **options: Any) -> tg.ContextQueries:
    return tg.read_contexts(text, STREAMS, **options)


def report(vid: int, seg: int, sec: int, lane: str = "travel") -> Row:
    return (vid, 0, lane, seg, sec, 0)


def rows(queries: tg.ContextQueries, **inputs: list[Row]) -> dict[str, list[Row]]:
    program = tg.program(**queries.results)
    found = program.run({stream.name: inputs.get(stream.name, []) for stream in program.definition.inputs})
    return {name: sorted(tuple(row.values()) for row in found[name].rows()) for name in queries.results}


MINUTE_ROWS: list[Row] = [(7, 60, 60, 30.0), (7, 120, 10, 60.0)]


def test_the_running_example() -> None:
    """A car enters a congested segment: no report of it 30 seconds before, in this window."""
    reports = [report(1, 7, 40), report(1, 7, 70), report(1, 7, 100), report(2, 7, 75, "exit"), report(3, 8, 70)]
    found = rows(read(FIGURE_3), Minutes=MINUTE_ROWS, PositionReport=reports)
    assert found == {"TollNotification": [(1, 70, 5)], "NewTravelingCar": [(1, 0, 7, "travel", 70)]}


def test_the_model_is_that_of_python() -> None:
    assert repr(read(FIGURE_3).model) == repr(traffic()).replace("by segment", "by seg")
    inputs: dict[str, Any] = {"Minutes": MINUTE_ROWS, "Stopped": [(7, 70, 1, False), (7, 80, 1, True)]}
    queries = read(MODEL + DERIVING + "DERIVE In(r.vid, r.sec) PATTERN PositionReport r CONTEXT congestion, accident")
    assert rows(queries, **inputs, PositionReport=[report(1, 7, 60), report(2, 7, 61), report(3, 9, 61)]) == {
        "In": [(2, 61)]
    }
    windows = tg.program(W=queries.model.windows("congestion")).run({"Minutes": MINUTE_ROWS, "Stopped": []})
    assert [tuple(row.values()) for row in windows["W"].rows()] == [(7, 120, 60, 30.0)]


def test_it_is_printed_back() -> None:
    queries = read(FIGURE_3)
    text = str(queries)
    again = read(text)
    assert str(again) == text
    assert repr(again.model) == repr(queries.model)
    assert {name: node_text(one._node) for name, one in again.results.items()} == {
        name: node_text(one._node) for name, one in queries.results.items()
    }
    assert text.startswith("MODEL Traffic BY seg\nCONTEXT clear, congestion, accident HELD BY SET\nDEFAULT clear;\n\n")
    assert "SWITCH CONTEXT congestion(m.speed)\nPATTERN Minutes m\nWHERE m.cars > 50 AND m.speed < 40.0\n" in text
    assert "INITIATE CONTEXT accident\nPATTERN Stopped\nWHERE NOT cleared\nCAUSE place;" in text
    assert "PATTERN SEQ(NOT PositionReport p1, PositionReport p2)\n" in text
    assert "DERIVE TollNotification(p.vid, p.sec, 5 AS toll)" in text


@pytest.mark.parametrize(
    "item",
    [
        "p.vid + p.place AS place",
        "-p.place AS place",
        "NOT p.open AS open",
        "p.vid < p.place AS place",
        "p.lane = 'p.lane' AS lane",
        "p.place",
        "p.vid AS place",
        'p."to place"',
        'p."to place" AS place',
        'p."to place" AS "place"',
        'p.vid AS "p place"',
    ],
)
@pytest.mark.parametrize("query", ["DERIVE A({}, p.sec)", "INITIATE CONTEXT accident({})"])
def test_values_are_printed_with_the_names_that_they_do_not_have(query: str, item: str) -> None:
    schema = "vid bigint, seg bigint, place bigint, lane string, open boolean, `to place` bigint, sec bigint"
    reports = {"Reports": tg.stream("Reports", schema, progress="sec")}
    queries = tg.read_contexts(MODEL + query.format(item) + " PATTERN Reports p", reports)
    again = tg.read_contexts(str(queries), reports)
    assert again.queries == queries.queries
    assert str(again) == str(queries)


@pytest.mark.parametrize("where", ["{a} AND {n} AND {b}", "({a} AND {n}) AND {b}", "{a} AND ({n} AND {b})"])
def test_brackets_around_conditions_that_hold_together_say_nothing(where: str) -> None:
    """Also of an event that must not come: a condition that does not name it is none of its own."""
    text = MODEL + "INITIATE CONTEXT congestion PATTERN SEQ(Minutes a, NOT Stopped n, Minutes b) WHERE "
    queries = read(text + where.format(a="a.cars = 3", n="n.place > 5", b="b.cars = 5"))
    again = read(str(queries))
    assert str(again) == str(queries)
    for one in (queries, again):
        begun = tg.program(S=one.model.starts("congestion"))
        for cars, found in ((3, [2]), (4, [])):
            result = begun.run({"Minutes": [(7, 0, cars, 0.0), (7, 2, 5, 0.0)], "Stopped": []})
            assert result["S"]["began"] == found


def test_names_in_quotes_are_printed_so() -> None:
    text = 'DERIVE "Where"(p.vid AS "context", p.sec) PATTERN PositionReport p CONTEXT congestion'
    queries = read(MODEL + DERIVING + text)
    assert 'DERIVE "Where"(p.vid AS "context", p.sec)' in str(queries)
    assert queries.results["Where"].schema.names == ("context", "sec")


def test_a_sequence_lies_in_one_window_and_partition() -> None:
    text = "DERIVE Two(a.vid, b.sec) PATTERN SEQ(PositionReport a, PositionReport b) WHERE a.vid = b.vid"
    again = [*MINUTE_ROWS, (7, 130, 60, 30.0)]
    reports = [report(1, 7, 61), report(1, 7, 62), report(1, 8, 70), report(1, 7, 131), report(2, 7, 62)]
    inside = read(MODEL + DERIVING + text + " CONTEXT congestion")
    assert rows(inside, Minutes=again, PositionReport=reports) == {"Two": [(1, 62)]}
    anywhere = read(MODEL + DERIVING + text)
    assert rows(anywhere, Minutes=again, PositionReport=reports) == {"Two": [(1, 62), (1, 131), (1, 131)]}
    default = read(MODEL + DERIVING + text + " CONTEXT clear")
    assert rows(default, PositionReport=reports) == {"Two": [(1, 62), (1, 131), (1, 131)]}


WINDOW = "congestion.began, congestion.speed, {0}.sec - congestion.began AS after"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (f"DERIVE A(r.sec, {WINDOW.format('r')}) PATTERN PositionReport r", [(70, 60, 30.0, 10), (140, 130, 20.0, 10)]),
        ("DERIVE A(sec, congestion.began) PATTERN PositionReport WHERE congestion.speed > 25", [(70, 60)]),
        (f"DERIVE A(b.sec, {WINDOW.format('b')}) PATTERN SEQ(Minutes a, PositionReport b)", [(140, 130, 20.0, 10)]),
        (
            "DERIVE A(b.sec, congestion.speed) PATTERN SEQ(NOT Minutes a, PositionReport b) "
            "WHERE a.speed < congestion.speed",
            [(70, 30.0)],
        ),
        (
            "DERIVE A(a.sec, congestion.speed) PATTERN SEQ(PositionReport a, NOT Minutes b) "
            "WHERE b.sec <= a.sec + 20 AND b.sec <= congestion.began + 65",
            [(70, 30.0), (140, 20.0)],
        ),
    ],
    ids=("an event", "a condition", "several events", "none before", "none after"),
)
def test_a_query_reads_the_window_that_it_lies_in(query: str, expected: list[Row]) -> None:
    """One of 30.0 from 60 to 120, one of 20.0 from 130 on; at 135 the speed is 10.0."""
    queries = read(MODEL + DERIVING + query + " CONTEXT congestion")
    minutes: list[Row] = [*MINUTE_ROWS, (7, 130, 60, 20.0), (7, 135, 60, 10.0)]
    reports = [report(1, 7, sec) for sec in (50, 70, 125, 140)]
    assert rows(queries, Minutes=minutes, PositionReport=reports) == {"A": expected}
    again = read(str(queries))
    assert again.queries == queries.queries
    assert str(again) == str(queries)


def test_of_several_contexts_no_window_is_read() -> None:
    text = "DERIVE A(a.sec, clear.began) PATTERN Stopped a CONTEXT clear, accident"
    message = "TG187 clear.began is of a window, and the query does not stand in clear alone\n  contexts:10:17"
    with pytest.raises(tg.QueryError, match=message):
        read(SAID + text)


def test_an_event_comes_before_a_context_of_its_name() -> None:
    queries = read(MODEL + DERIVING + "DERIVE A(clear.sec) PATTERN PositionReport clear CONTEXT clear")
    assert rows(queries, PositionReport=[report(1, 7, 50)]) == {"A": [(50,)]}


def test_an_event_between_two_others_is_absent() -> None:
    text = """DERIVE Pair(a.sec AS first, b.sec) PATTERN SEQ(PositionReport a, SEQ(NOT Stopped s, PositionReport b))
    WHERE a.vid = b.vid AND s.place > 3 AND b.vid > 0 CONTEXT clear"""
    reports = [report(1, 7, 10), report(1, 7, 20), report(1, 7, 30)]
    stops: list[Row] = [(7, 5, 9, False), (7, 25, 5, False), (7, 15, 2, False), (8, 15, 9, False)]
    queries = read(MODEL + DERIVING.replace("Stopped WHERE NOT cleared", "Stopped WHERE place = 99") + text)
    assert rows(queries, PositionReport=reports, Stopped=stops) == {"Pair": [(10, 20)]}


def test_a_deriving_query_of_several_events_begins_with_the_first() -> None:
    """The whole match has to lie in the window."""
    text = "TERMINATE CONTEXT accident PATTERN SEQ(Stopped a, Stopped b) WHERE a.place = 0 AND b.place = 0;"
    told = "DERIVE In(r.vid, r.sec) PATTERN PositionReport r CONTEXT accident"
    queries = read(MODEL + "INITIATE CONTEXT accident PATTERN Stopped s WHERE s.place = 1;" + text + told)
    stopped: list[Row] = [(7, 10, 0, True), (7, 20, 1, True), (7, 30, 0, True), (7, 40, 0, True)]
    assert rows(queries, Stopped=stopped, PositionReport=[report(n, 7, 10 * n) for n in range(1, 7)]) == {
        "In": [(3, 30), (4, 40)]
    }


FOLLOWED = "PATTERN SEQ(PositionReport a, NOT PositionReport b) WHERE a.vid = b.vid AND "


@pytest.mark.parametrize(
    ("bound", "expected"),
    [
        ("b.sec <= a.sec + 30", [(1, 40), (1, 71), (2, 10), (2, 12)]),
        ("b.sec < a.sec + 30", [(1, 10), (1, 40), (1, 71), (2, 10), (2, 12)]),
        ("b.sec - a.sec <= 31", [(1, 71), (2, 10), (2, 12)]),
        ("(b.sec <= a.sec + 5 OR b.sec <= a.sec + 30)", [(1, 40), (1, 71), (2, 10), (2, 12)]),
    ],
)
def test_an_event_does_not_follow(bound: str, expected: list[Row]) -> None:
    queries = read(SAID + f"DERIVE Last(a.vid, a.sec) {FOLLOWED}{bound}")
    reports = [report(1, 7, 10), report(1, 7, 40), report(1, 7, 71), report(2, 7, 10), report(2, 8, 12)]
    assert rows(queries, PositionReport=reports) == {"Last": expected}
    assert str(read(str(queries))) == str(queries)


@pytest.mark.parametrize("contexts", ["congestion", "congestion, accident"])
def test_what_must_not_follow_must_not_do_so_in_the_window(contexts: str) -> None:
    """What is pending as the window ends, at 120, is discarded."""
    queries = read(SAID + f"DERIVE Last(a.vid, a.sec) {FOLLOWED}b.sec <= a.sec + 20 CONTEXT {contexts}")
    reports = [report(1, 7, 60), report(2, 7, 61), report(3, 7, 70), report(3, 7, 90), report(4, 7, 100)]
    reports += [report(5, 7, 101), report(6, 7, 100), report(6, 7, 121)]
    found = rows(queries, Minutes=MINUTE_ROWS, PositionReport=reports)
    assert found == {"Last": [(2, 61), (3, 90), (4, 100), (6, 100)]}


def test_what_must_not_follow_goes_by_any_event() -> None:
    """The match is certain 20 seconds after its first event, or at its last one if that is later."""
    text = """DERIVE Pair(a.vid, b.sec) PATTERN SEQ(PositionReport a, PositionReport b, NOT Stopped s, NOT Minutes m)
    WHERE a.vid = b.vid AND s.sec <= a.sec + 20 AND m.sec <= b.sec AND s.place = 9 CONTEXT congestion"""
    stops: list[Row] = [(7, 85, 9, True), (7, 91, 9, True)]
    at = [(1, 70, 80), (2, 71, 81), (3, 64, 88), (4, 64, 84), (5, 95, 118), (6, 101, 110), (7, 100, 110)]
    reports = [report(vid, 7, sec) for vid, *seconds in at for sec in seconds]
    with pytest.raises(tg.QueryError, match="TG182 the conditions let m come before the end of the match only"):
        read(SAID + text)
    found = rows(
        read(SAID + text.replace(", NOT Minutes m", "").replace("m.sec <= b.sec AND ", "")),
        Minutes=MINUTE_ROWS,
        Stopped=stops,
        PositionReport=reports,
    )
    assert found == {"Pair": [(3, 88), (4, 84), (5, 118), (7, 110)]}


def test_a_context_begins_as_nothing_has_followed() -> None:
    text = """MODEL Traffic BY seg CONTEXT clear, accident DEFAULT clear;
    INITIATE CONTEXT accident PATTERN SEQ(Stopped s, NOT Stopped c)
    WHERE NOT s.cleared AND c.cleared AND c.place = s.place AND c.sec <= s.sec + 10 CONTEXT clear;
    TERMINATE CONTEXT accident PATTERN Stopped s WHERE s.cleared;
    DERIVE In(r.vid, r.sec) PATTERN PositionReport r CONTEXT accident"""
    stopped: list[Row] = [(7, 10, 1, False), (7, 15, 1, True), (7, 30, 1, False), (7, 50, 1, True), (7, 45, 2, False)]
    reports = [report(vid, 7, sec) for vid, sec in enumerate((21, 40, 41, 50, 51, 56))]
    # The stop at 45 lies in the accident, so that it begins none at 55.
    found = rows(read(text), Stopped=stopped, PositionReport=reports)
    assert found == {"In": [(2, 41), (3, 50)]}


def test_queries_that_derive_one_event_are_united() -> None:
    one, two = (f"DERIVE In(r.vid, r.sec) PATTERN PositionReport r CONTEXT {c};" for c in ("congestion", "clear"))
    found = rows(read(MODEL + DERIVING + one + two), Minutes=MINUTE_ROWS, PositionReport=[report(1, 7, 70)] * 2)
    assert found == {"In": [(1, 70), (1, 70)]}


def test_queries_may_be_added_to_a_model() -> None:
    text = "DERIVE Slow(r.car, r.time) PATTERN Reports r CONTEXT congestion"
    queries = tg.read_contexts(text, {"Reports": REPORTS}, model=traffic())
    assert str(queries) == "DERIVE Slow(r.car, r.time)\nPATTERN Reports r\nCONTEXT congestion;"
    assert repr(queries.model) == repr(traffic())
    assert repr(queries) == str(queries)


SAID = MODEL + DERIVING
ASK = "DERIVE A(r.vid) PATTERN PositionReport r"


def test_a_sequence_lies_in_one_window_of_one_of_several_contexts() -> None:
    derive = (
        "DERIVE Two(a.vid, a.sec AS first, b.sec AS last) "
        "PATTERN SEQ(PositionReport a, NOT Stopped s, PositionReport b) "
        "WHERE a.vid = b.vid AND s.place = 9 CONTEXT congestion, accident"
    )
    read_ = read(MODEL + DERIVING + derive)
    stopped: list[Row] = [(7, 110, 1, False), (7, 140, 9, False), (7, 150, 1, True), (7, 155, 9, True)]
    reports = [report(1, 7, sec) for sec in (60, 70, 115, 130, 145, 160)]
    found = rows(read_, Minutes=MINUTE_ROWS, Stopped=stopped, PositionReport=reports)
    # Congestion is (60, 120], and an accident (110, 155]. At 140 comes what must not.
    assert found["Two"] == [(1, 70, 115), (1, 115, 130)]
    assert str(read(str(read_))) == str(read_)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ASK, "TG187 the text is of no model"),
        (MODEL + "DERIVE A PATTERN PositionReport r", "TG170 'PATTERN' does not fit here(.|\n)*name what is derived"),
        (MODEL + "DERIVE A(r.vid) PATTERN PositionReport r -> x", "TG170(.|\n)*write SEQ"),
        (MODEL + "SELECT a", "TG170(.|\n)*expected: DERIVE, INITIATE, SWITCH, TERMINATE"),
        (MODEL.replace("DEFAULT clear", "DEFAULT free") + ASK, "TG187 the default(.|\n)*list it: CONTEXT .*, free "),
        (MODEL.replace("SET", "HEAP") + ASK, "TG187 a context is held by no HEAP"),
        (MODEL + "SWITCH CONTEXT full PATTERN Minutes", "TG187 switch names 'full'(.|\n)*contexts:5:1"),
        (MODEL + "SWITCH CONTEXT congestion PATTERN Minute", "TG173 there is no stream Minute(.|\n)*mean Minutes"),
        (MODEL + "SWITCH CONTEXT congestion PATTERN Minutes m WHERE n.cars > 5", "TG172 n is no event(.|\n)*are m"),
        (MODEL + "SWITCH CONTEXT congestion PATTERN Minutes m WHERE m.car > 5", "TG101 unknown attribute"),
        (MODEL + "SWITCH CONTEXT congestion PATTERN Minutes WHERE avg(cars) > 5", "TG115(.|\n)*group them in Python"),
        (MODEL + "SWITCH CONTEXT clear PATTERN SEQ(Minutes, Minutes)", "TG103 two events are called Minutes"),
        (
            MODEL + "SWITCH CONTEXT clear PATTERN SEQ(Minutes m, NOT Stopped s)",
            "TG182 nothing says until when s must(.|\n)*WHERE s.sec <= m.sec",
        ),
        (
            MODEL + "SWITCH CONTEXT clear PATTERN SEQ(Minutes m, NOT Stopped s) WHERE s.sec <= m.sec",
            "TG182 the conditions let s come before the end of the match only(.|\n)*NOT is of what comes after m.sec: "
            "WHERE s.sec <= m.sec \\+ ",
        ),
        (MODEL + "SWITCH CONTEXT clear PATTERN NOT Stopped s", "TG182 nothing is to come"),
        (MODEL + "SWITCH CONTEXT clear PATTERN SEQ(NOT Stopped s, Minutes m)", "TG175 the absence of s would begin"),
        (MODEL + "TERMINATE CONTEXT accident PATTERN Stopped CONTEXT clear", "TG187 a query that terminates accident"),
        (
            SAID + "DERIVE A(b.sec) PATTERN SEQ(NOT Stopped a, Stopped b) CONTEXT clear, accident",
            "TG175 the absence of a would begin",
        ),
        (SAID + "DERIVE A(a.sec + 1) PATTERN Stopped a", "TG114 a.sec \\+ 1 has no name"),
        (SAID + "DERIVE A(a.sec, a.sec) PATTERN Stopped a", "TG103 sec is there twice"),
        (SAID + "DERIVE A(a.sec) PATTERN Stopped a CAUSE a.place", "TG187 an event that is derived has no"),
        (SAID + "DERIVE A(a.sec, congestion.began) PATTERN Stopped a", "TG187 congestion.began is(.|\n)*TEXT cong"),
        (
            SAID + "DERIVE A(a.sec, clear.end) PATTERN Stopped a CONTEXT clear",
            "TG101 a window of clear has no 'end'\n  contexts:10:17(.|\n)*a window has began, speed",
        ),
        (SAID + "SWITCH CONTEXT clear PATTERN Minutes m WHERE clear.began < m.sec", "TG172 clear is no event"),
        (SAID + "DERIVE A(b.sec) PATTERN B b; DERIVE B(a.sec) PATTERN A a", "TG211 A is derived of itself"),
        (
            MODEL + "INITIATE CONTEXT congestion PATTERN Stopped CAUSE place",
            "TG187 congestion does not(.|\n)*: CONTEXT congestion HELD BY BAG$",
        ),
        (
            MODEL + "INITIATE CONTEXT clear PATTERN Stopped",
            "TG187 clear is(.|\n)*: SWITCH CONTEXT clear PATTERN ..., or TERMINATE CONTEXT ... PATTERN ...$",
        ),
        (MODEL + "TERMINATE CONTEXT clear PATTERN Stopped", "TG187 clear is(.|\n)*: INITIATE CONTEXT ... PATTERN ...$"),
        (MODEL + ASK + " CONTEXT clear", "TG187 Traffic has no(.|\n)*: INITIATE CONTEXT congestion PATTERN ...$"),
        (MODEL.replace("clear, congestion", "clear, clear"), "TG187 two contexts (.|\n)*list clear once"),
        (MODEL.replace("clear, cong", "clear, accident, cong"), "TG187 two (.|\n)* accident(.|\n)*list accident once"),
        (MODEL.replace("DEFAULT clear", "DEFAULT accident"), "TG187 accident is(.|\n)*hint *leave HELD BY out$"),
        (MODEL.replace("BY seg\n", "BY seg, seg\n"), "TG103 rows are partitioned by seg twice"),
        (SAID + "DERIVE A(b.sec) PATTERN SEQ(Stopped a, Stopped b) WHERE place = 1", "hint *write a.place or b.place$"),
        (SAID + "DERIVE A(a.place) PATTERN Stopped a CONTEXT clear", "TG202(.|\n)*hint *keep an instant: a.sec$"),
        (SAID + "DERIVE Stopped(a.sec) PATTERN Stopped a", "TG211 (.|\n)*a stream is called Stopped, too: derive it"),
        (SAID + "DERIVE Traffic(a.sec) PATTERN Stopped a", "TG122 Traffic is the name of the model"),
        (
            MODEL.replace("Traffic", "Stopped") + DERIVING,
            "TG122 Stopped is the name of a model of contexts and of a stream that is read by initiate accident\n"
            "  contexts:8:1(.|\n)*give the model another name",
        ),
        (
            MODEL.replace("Traffic", "PositionReport") + DERIVING + ASK + " CONTEXT clear",
            "TG122 PositionReport is the name of a model of contexts and of a stream that is read in its contexts",
        ),
        (
            MODEL + "SWITCH CONTEXT clear PATTERN A; DERIVE A(s.seg, s.sec) PATTERN Stopped s CONTEXT accident",
            "TG211 A is derived in a context",
        ),
        (
            SAID + "DERIVE A(b.sec) PATTERN SEQ(NOT Stopped s, NOT Minutes m, Stopped b) WHERE s.sec < m.sec",
            "TG175 (.|\n)* is of two absent events",
        ),
    ],
)  # fmt: skip
def test_what_is_refused(text: str, message: str) -> None:
    with pytest.raises(tg.QueryError, match=message):
        read(text if "PATTERN" in text else text + DERIVING)


def test_a_derived_event_named_like_the_stream_that_it_reads() -> None:
    minutes = {"Given": STREAMS["Minutes"], **STREAMS}
    with pytest.raises(tg.QueryError, match=r"TG122 Minutes is an input stream and a result(.|\n)*another name$"):
        tg.read_contexts(SAID + "DERIVE Minutes(m.sec) PATTERN Given m", minutes)


def test_what_is_no_text() -> None:
    wrong: Any = 5
    with pytest.raises(tg.QueryError, match="TG114 queries are text, not a int"):
        tg.read_contexts(wrong, {"Minutes": MINUTES, "Stopped": STOPPED})
