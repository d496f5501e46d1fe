"""What people and tools read of an analysis: text, JSON, zones on request."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import tidegate as tg
from tidegate import hours, minutes
from tidegate.analysis.report.report import MOST_LISTED, explain


def frames() -> tg.Program:
    start = tg.stream("FireStart", "fid bigint, time timestamp", progress="time").as_("fs")
    end = tg.stream("FireEnd", "fid bigint, time timestamp", progress="time").as_("fe")
    fires = start.join(
        end, start.fid == end.fid, minutes(1) <= end.time - start.time, end.time - start.time <= hours(24)
    )
    return tg.program(Fire=fires.select(start=start.time, end=end.time))


TEXT = """\
query Fire
  schema      start timestamp not null
              end timestamp not null
  relations   end <= start + 1d
              start + 1m <= end
  progress    start, end
  final when  start <= min(FireStart.time, FireEnd.time - 1d)
              or end <= min(FireStart.time + 1m, FireEnd.time)
  kept        FireStart  while time > p(start) and time + 1d > p(end)
              FireEnd    while time - 1m > p(start) and time > p(end)
  state       FireStart  rate(FireStart) × (1d + skew(FireStart) + lag)
              FireEnd    rate(FireEnd) × (skew(FireEnd) + lag)"""

WORDS = """

where
  p(t)        up to which t the result is final
  rate        rows of the stream in a unit of time
  skew        how far its rows are ahead of the time up to which it is complete
  lag         how far the slowest stream is behind the fastest"""


def test_the_text_of_a_query() -> None:
    assert frames().explain().report == TEXT + WORDS


def test_zones_come_on_request() -> None:
    text = str(explain(frames().facts, zones=True))
    assert text == TEXT + "\n  zone 1      end <= start + 1d\n              start + 1m <= end" + WORDS


def test_of_many_streams_the_text_names_the_first_and_how_many_more_there_are() -> None:
    """With each of 200 streams it had the 200 others, 1.3 MB in all."""

    def chain(number: int) -> Any:
        streams = [tg.stream(f"S{i}", "k bigint, t bigint", progress="t").as_(f"s{i}") for i in range(number)]
        joined: Any = streams[0]
        for before, after in pairwise(streams):
            joined = joined.join(after, before.k == after.k, before.t <= after.t, after.t <= before.t + 5)
        return tg.program(Q=joined).explain()

    explained = chain(MOST_LISTED + 2)
    report = explained.report
    first = [f"t{'' if i == 0 else f' + {5 * i}'} > p(s{i}.t)" for i in range(MOST_LISTED)]
    assert f"S0   while {' and '.join(first)} and 2 more\n" in report
    read = [f"S{i}.t{'' if i == 0 else f' - {5 * i}'}" for i in range(MOST_LISTED)]
    assert f"final when  s0.t <= min({', '.join(read)}, 2 more)\n" in report
    assert "more" not in chain(MOST_LISTED).report
    (query,) = explained.to_dict()["queries"]
    assert "more" not in json.dumps(query)
    assert query["occurrences"][0]["kept"].count(" and ") == MOST_LISTED + 1


def test_words_are_explained_where_they_occur_and_rules_are_not_named() -> None:
    rooms = tg.stream("Rooms", "room string, time timestamp", progress="time")
    assert "lag" not in tg.program(Copy=rooms).explain().report
    assert "where" not in tg.program(Copy=tg.table("Rooms", "room string")).explain().report
    o = tg.stream("O", "id bigint, time timestamp", progress="time").as_("o")
    p = tg.stream("P", "id bigint, time timestamp", progress="time").as_("p")
    unpaid = o.anti_join(p, o.id == p.id, o.time <= p.time, p.time <= o.time + minutes(30))
    text = str(tg.program(Unpaid=unpaid).explain())
    assert "rule" not in text
    assert "freed when  a row of P that has come keeps it out of Unpaid" in text
    assert text.index("\n  buffer      the stored rows of a stream") < text.index("\nbuffer O#0")


def test_json_says_the_same() -> None:
    report = json.loads(json.dumps(explain(frames().facts, zones=True).to_dict()))
    (query,) = report["queries"]
    assert report["components"] == [["Fire"]]
    assert query["progress"] == ["start", "end"]
    assert query["final_when"] == {
        "start": "min(FireStart.time, FireEnd.time - 1d)",
        "end": "min(FireStart.time + 1m, FireEnd.time)",
    }
    assert [(o["stream"], o["state"], o["horizon"]) for o in query["occurrences"]] == [
        ("FireStart", "bounded", 24 * 3_600_000_000),
        ("FireEnd", "bounded", 0),
    ]
    assert query["zones"] == [["end <= start + 1d", "start + 1m <= end"]]


def test_an_anti_join_shows_what_each_zone_ignores() -> None:
    start = tg.stream("Start", "id bigint, time timestamp", progress="time").as_("s")
    stop = tg.stream("Stop", "id bigint, time timestamp", progress="time").as_("e")
    open_ = start.anti_join(stop, start.time < stop.time, stop.time <= start.time + minutes(5))
    report = json.loads(json.dumps(explain(tg.program(Open=open_).facts, zones=True).to_dict()))
    assert report["queries"][0]["zones"] == [["ignores Stop"], ["e.time <= time + 5m", "time < e.time"]]


def test_a_static_result_and_a_table_are_called_what_they_are() -> None:
    text = str(tg.program(Copy=tg.table("Rooms", "room string")).explain())
    assert "progress    none: the result is static" in text
    assert "state       Rooms  the table Rooms" in text


def test_a_part_that_no_user_has_named_is_told_with_its_query() -> None:
    readings = tg.stream("Readings", "k bigint, x bigint, time timestamp", progress="time")
    calls = tg.stream("Calls", "k bigint, called timestamp", progress="called")
    hot = readings.partition_by("k").derive(Hot=tg.situation(readings.x > 5, at_least="10m")).Hot
    alone = hot.anti_join(calls, calls.k == hot.k, hot.ts <= calls.called, calls.called <= hot.ts + hours(1))
    text = str(tg.program(Alone=alone).explain().report)
    assert "  lag         how far the slowest" in text
    assert text.endswith("\n  Alone~1     Alone (its situations): computed first, and read as a stream")

    daily = alone.group_by(day=tg.floor(alone.ts, "1d")).agg(n=tg.count())
    (problem,) = tg.program(Daily=daily).check()
    assert "Hot.te has no upper bound relative to day" in problem.message
    assert not [line for line in (problem.message, *problem.because) if "~" in line]
    assert any(line.endswith("(known of a part of Daily)") for line in problem.because)


def test_what_a_pattern_holds_of_each_partition_stands_below_the_state() -> None:
    temps = tg.stream("Temps", "k bigint, time timestamp, c double", progress="time")
    found = temps.partition_by("k").derive(
        Hot=tg.situation(temps.c > 90, at_least="5m"), Cold=tg.situation(temps.c < 5)
    )
    program = tg.program(Swing=found.match(found.Hot.before(found.Cold), within="1h"), Hot=found.Hot)
    swing, hot = str(program.explain().report).split("\n\n")[:2]
    lines = [
        "of a partition at most 11 Hot that began within 1h and are over, and one that is open",
        "of a partition all Cold that began within 1h and are over, and one that is open",
    ]
    assert f"  holds       {lines[0]}\n              {lines[1]}" in swing
    assert swing.index("  state ") < swing.index("  holds ")
    assert hot.endswith("\n  holds       of a partition one that is open")
    queries: Any = program.explain().to_dict()["queries"]
    assert [query["holds"] for query in queries] == [lines, ["of a partition one that is open"]]
