"""Why a query in a context has no rows: where its context holds, and what holds instead."""

from __future__ import annotations

import datetime as dt
import re
from pathlib import Path

import pytest

import tidegate as tg
from tests.contexts.traffic import REPORTS, program, traffic
from tidegate import testing
from tidegate.runtime.inspect import suspension

#: Segment 1 is congested since 10 and has an accident since 15, 2 an accident since 21 after congestion, 3 congestion
#: since 12, 4 an accident since 5; 5 is clear since 11.
MINUTES = [
    (1, 10, 60, 30.0),
    (2, 10, 60, 30.0),
    (2, 20, 10, 60.0),
    (3, 12, 60, 30.0),
    (5, 8, 60, 30.0),
    (5, 11, 10, 60.0),
]
STOPPED = [(1, 15, 7, False), (2, 21, 7, False), (4, 5, 7, False)]


def several() -> tg.Program:
    """Queries in one of several contexts, in the default one, in none, and at other instants and places than theirs."""
    model = traffic()
    reports = REPORTS.with_(minute=tg.floor(REPORTS.time, 10))
    grouped = REPORTS.in_context(model, "accident", "clear")
    return tg.program(
        One=REPORTS.in_context(model, "accident"),
        Either=REPORTS.in_context(model, "congestion", "accident"),
        Default=REPORTS.in_context(model, "clear"),
        Quiet=REPORTS.in_context(model, "clear", "accident"),
        NoAccident=REPORTS.not_in_context(model, "accident"),
        Neither=REPORTS.not_in_context(model, "congestion", "accident"),
        Busy=REPORTS.not_in_context(model, "clear"),
        Border=reports.in_context(model, "accident", at="minute"),
        Own=reports.in_context(model, "accident", at="time"),
        Before=reports.not_in_context(model, "accident", "clear", at="minute"),
        Ahead=REPORTS.with_(ahead=REPORTS.segment + 1).in_context(model, "accident", by="ahead"),
        Grouped=grouped.group_by("segment", w=tg.ceil(grouped.time, 20)).agg(cars=tg.count()),
    )


#: What is said of each of them.
SAID = {
    "One": [
        "in context  since 5 where segment = 4: accident holds",
        "since 15 where segment = 1: accident holds",
        "since 21 where segment = 2: accident holds",
        "suspended  since 11 where segment = 5: accident does not hold, clear does",
        "since 30 or before where segment = 3: accident does not hold, congestion has held since 12",
        "since ever in every other partition: accident does not hold, clear does",
    ],
    "Either": [
        "in context  since 5 where segment = 4: accident holds",
        "since 10 where segment = 1: congestion and accident hold",
        "since 12 where segment = 3: congestion holds",
        "since 21 where segment = 2: accident holds",
        "suspended  since 11 where segment = 5: none of congestion, accident holds",
        "since ever in every other partition: none of congestion, accident holds",
    ],
    "Default": [
        "in context  since 11 where segment = 5: clear holds",
        "since ever in every other partition: clear holds",
        "suspended  since 5 where segment = 4: accident holds",
        "since 10 where segment = 1: congestion and accident hold",
        "since 12 where segment = 3: congestion holds",
        "since 21 where segment = 2: accident holds",
    ],
    "Quiet": [
        "in context  since 5 where segment = 4: accident holds",
        "since 15 where segment = 1: accident holds",
        "since 11 where segment = 5: clear holds",
        "since 21 where segment = 2: accident holds",
        "since ever in every other partition: clear holds",
        "suspended  since 30 or before where segment = 3: none of accident, clear holds, congestion has held since 12",
    ],
    "NoAccident": [
        "not in context  since 11 where segment = 5: accident does not hold, clear does",
        "since 30 or before where segment = 3: accident does not hold, congestion has held since 12",
        "since ever in every other partition: accident does not hold, clear does",
        "suspended  since 5 where segment = 4: accident holds",
        "since 15 where segment = 1: accident holds",
        "since 21 where segment = 2: accident holds",
    ],
    "Neither": [
        "not in context  since 11 where segment = 5: none of congestion, accident holds",
        "since ever in every other partition: none of congestion, accident holds",
        "suspended  since 5 where segment = 4: accident holds",
        "since 10 where segment = 1: congestion and accident hold",
        "since 12 where segment = 3: congestion holds",
        "since 21 where segment = 2: accident holds",
    ],
    "Busy": [
        "not in context  since 5 where segment = 4: accident holds",
        "since 10 where segment = 1: congestion and accident hold",
        "since 12 where segment = 3: congestion holds",
        "since 21 where segment = 2: accident holds",
        "suspended  since 11 where segment = 5: clear holds",
        "since ever in every other partition: clear holds",
    ],
    "Border": [
        "in context  for minute > 5 where segment = 4: accident holds",
        "for minute > 15 where segment = 1: accident holds",
        "for minute > 21 where segment = 2: accident holds",
        "suspended  for minute > 11 where segment = 5: accident does not hold, clear does",
        "for minute > 30 where segment = 3: accident does not hold, congestion has held since 12",
        "for every minute in every other partition: accident does not hold, clear does",
    ],
    "Before": [
        "not in context  for minute > 30 where segment = 3: "
        "none of accident, clear holds, congestion has held since 12",
        "suspended  for minute > 5 where segment = 4: accident holds",
        "for minute > 15 where segment = 1: accident holds",
        "for minute > 11 where segment = 5: clear holds",
        "for minute > 21 where segment = 2: accident holds",
        "for every minute in every other partition: clear holds",
    ],
}
SAID["Own"] = SAID["One"]
SAID["Ahead"] = [line.replace("segment", "ahead") for line in SAID["One"]]
SAID["Grouped"] = SAID["Quiet"]


def lines(text: str) -> list[str]:
    """What is said of contexts."""
    kept, on = [], False
    for line in text.splitlines():
        on = line.lstrip().startswith(("in context", "not in context", "suspended")) or (on and not line[2:3].strip())
        kept += [re.sub(" {2,}", "  ", line.strip())] if on else []
    return kept


def test_where_a_query_is_suspended(tmp_path: Path) -> None:
    """In congestion, and in no accident: each for itself, in the order in which they are written."""
    with program().session(checkpoint=tmp_path) as session:
        assert lines(str(session.why("Toll"))) == []
        session.push("Minutes", MINUTES)
        session.push("Stopped", STOPPED)
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        told = lines(str(session.why("Toll")))
        assert told == [
            "in context  since 10 where segment = 1: congestion holds",
            "since 12 where segment = 3: congestion holds",
            "suspended  since 30 or before where segment = 4: congestion does not hold, accident has held since 5",
            "since 11 where segment = 5: congestion does not hold, clear does",
            "since 30 or before where segment = 2: congestion does not hold, accident has held since 21",
            "since ever in every other partition: congestion does not hold, clear does",
            *SAID["NoAccident"],
        ]
        assert lines(str(session.why("Toll", {"time": 40}))) == told
        assert lines(str(session.why("Free"))) == SAID["Default"]
        assert lines(str(session.why("Accidents"))) == lines(str(session.why("Traffic"))) == []
    assert lines(str(program().why(tmp_path, "Toll"))) == told


def test_each_way_of_standing_in_contexts() -> None:
    with several().session() as session:
        session.push("Minutes", MINUTES)
        session.push("Stopped", STOPPED)
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        assert {name: lines(str(session.why(name))) for name in SAID} == SAID


def test_nothing_has_happened_yet() -> None:
    """The default has held in every partition, for as long as there is anything to tell."""
    with several().session() as session:
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        assert lines(str(session.why("Either"))) == [
            "suspended  since ever in every partition: none of congestion, accident holds"
        ]
        assert lines(str(session.why("Neither"))) == [
            "not in context  since ever in every partition: none of congestion, accident holds"
        ]
        assert lines(str(session.why("Default"))) == ["in context  since ever in every partition: clear holds"]
        assert lines(str(session.why("Border"))) == [
            "suspended  for every minute in every partition: accident does not hold, clear does"
        ]


def test_a_row_without_a_key_is_in_no_context() -> None:
    """Whatever holds in the partition that transitions without a key have."""
    with several().session() as session:
        session.push("Stopped", [(None, 5, 7, False)])
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        assert lines(str(session.why("One"))) == [
            "suspended  since ever where segment = NULL: a row without a key is in no context",
            "since ever in every other partition: accident does not hold, clear does",
        ]
        assert lines(str(session.why("Busy"))) == [
            "not in context  since ever where segment = NULL: a row without a key is in no context",
            "suspended  since ever in every other partition: clear holds",
        ]


def test_which_instant_is_the_rows_own() -> None:
    """That by which they progress, whatever it is called and was looked up before."""
    trips = tg.stream(
        "Trips",
        "segment bigint, left bigint, time bigint",
        progress="time",
        temporal="left",
        relations=lambda t: (t.left <= t.time) & (t.time <= t.left + 9),
    )
    model, renamed = traffic(), trips.rename(time="arrived")
    with tg.program(
        Left=trips.in_context(model, "accident", at="left"),
        Arrived=trips.in_context(model, "accident", at="time"),
        Renamed=renamed.where(renamed.segment > 0).in_context(model, "accident", at="arrived"),
        Both=trips.not_in_context(model, "congestion", at="left").in_context(model, "accident", at="time"),
    ).session() as session:
        session.push("Stopped", STOPPED)
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        first = {name: lines(str(session.why(name)))[0] for name in ("Left", "Arrived", "Renamed")}
        assert first == {
            "Left": "in context  for left > 5 where segment = 4: accident holds",
            "Arrived": "in context  since 5 where segment = 4: accident holds",
            "Renamed": "in context  since 5 where segment = 4: accident holds",
        }
        both = lines(str(session.why("Both")))
        assert "for every left in every other partition: congestion does not hold, clear does" in both
        assert "in context  since 5 where segment = 4: accident holds" in both


def test_keys_and_instants_of_other_types() -> None:
    closed = tg.stream("Closed", "road string, day date, at timestamp, shut boolean", progress="at")
    cars = tg.stream("Cars", "road string, day date, at timestamp", progress="at")
    model = tg.context_model("Roads", by=("road", "day"), default="open", contexts=("shut", "jam"))
    model = model.initiate("shut", when=closed.where(closed.shut), at="at")
    model = model.terminate("shut", when=closed.where(~closed.shut), at="at")
    with tg.program(Q=cars.not_in_context(model, "shut", at="at")).session() as session:
        session.push("Closed", [("A 1", dt.date(2026, 1, 2), dt.datetime(2026, 1, 2, 7, tzinfo=dt.UTC), True)])
        session.advance("Closed", dt.datetime(2026, 1, 2, 8, tzinfo=dt.UTC))
        session.step()
        assert lines(str(session.why("Q"))) == [
            "not in context  since ever in every other partition: shut does not hold, open does",
            "suspended  since 2026-01-02T07:00:00Z where road = 'A 1', day = 2026-01-02: shut holds",
        ]


def test_other_joins_with_changes_are_no_contexts() -> None:
    """A user's own look-up of the last change, whether it ends the context or begins it; and a condition beside one."""
    model = traffic()
    changes = model.changes.where(model.changes.context == "accident").rename(time="at", segment="its")
    own = REPORTS.asof_join(changes, by=[("segment", "its")], tie="change", strict=True, how="inner")
    late = REPORTS.in_context(model, "accident")
    with tg.program(Own=own, Late=late.where(late.car > 3)).session() as session:
        session.push("Stopped", [(4, 5, 7, False)])
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        assert lines(str(session.why("Own"))) == []
        assert lines(str(session.why("Late"))) == [
            "in context  since 5 where segment = 4: accident holds",
            "suspended  since ever in every other partition: accident does not hold, clear does",
        ]


def test_the_default_since_an_instant() -> None:
    with program().session() as session:
        session.push("Minutes", MINUTES[1:3])
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        assert lines(str(session.why("PerWindow"))) == [
            "suspended  since 20 where segment = 2: congestion does not hold, clear does",
            "since ever in every other partition: congestion does not hold, clear does",
        ]


def test_many_partitions_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    with program().session() as session:
        session.push("Minutes", [(segment, 10, 60, 30.0) for segment in range(8)])
        session.push("Stopped", [(segment, 10, 7, False) for segment in range(20, 27)])
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        told = lines(str(session.why("Toll")))
        more = "… and in 3 more partitions", "… and in 2 more partitions"
        assert [line for line in told if line.startswith("…")] == [*more, *more]
        assert len(told) == 4 * 6 + 2
        monkeypatch.setattr(suspension, "MOST_WINDOWS", 14)
        assert lines(str(session.why("Toll"))) == [
            "suspended  where congestion does not hold: Traffic has 15 windows that hold",
            "where accident holds: Traffic has 15 windows that hold",
        ]
        session.finish()
        session.step()
        assert lines(str(session.why("Toll"))) == []


def test_many_partitions_of_several_contexts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suspension, "MOST_WINDOWS", 0)
    with several().session() as session:
        session.push("Stopped", STOPPED[:1])
        session.advance("Minutes", 30)
        session.advance("Stopped", 30)
        session.step()
        assert lines(str(session.why("Either"))) == [
            "suspended  where none of congestion, accident holds: Traffic has 1 window that holds"
        ]
        assert lines(str(session.why("Neither"))) == [
            "suspended  where one of congestion, accident holds: Traffic has 1 window that holds"
        ]


def test_without_partitions_there_are_no_others() -> None:
    events = tg.stream("Events", "time bigint, on boolean", progress="time")
    model = tg.context_model("Switch", by=(), default="off", contexts="on").initiate("on", when=events.where(events.on))
    told = tg.program(Q=events.in_context(model, "on"), R=events.not_in_context(model, "on"))
    with told.session() as session:
        session.push("Events", [(1, False)])
        session.advance("Events", 1)
        session.step()
        assert lines(str(session.why("Q"))) == ["suspended  since ever: on does not hold"]
        assert lines(str(session.why("R"))) == ["not in context  since ever: on does not hold"]
        session.push("Events", [(2, True)])
        session.advance("Events", 2)
        session.step()
        assert lines(str(session.why("Q"))) == ["in context  since 2: on holds"]
        assert lines(str(session.why("R"))) == ["suspended  since 2: on holds"]


@pytest.mark.spark
@pytest.mark.long
def test_on_spark(spark: object) -> None:
    with testing.drive(several(), spark=spark) as run:  # type: ignore[arg-type]  # a session
        run.add("Minutes", MINUTES)
        run.add("Stopped", STOPPED)
        run.advance("Minutes", end=30)
        run.advance("Stopped", time=30)
        run.step()
        assert {name: lines(str(run.why(name))) for name in SAID} == SAID


def test_aggregates_as_a_context_ends_name_it() -> None:
    changes = tg.stream("Changes", "k bigint, t bigint, v bigint", progress="t")
    model = tg.context_model("M", by="k", default="d", contexts="c")
    model = model.initiate("c", when=changes.where(changes.v == 1)).terminate("c", when=changes.where(changes.v == 0))
    rows = tg.stream("Rows", "k bigint, t bigint", progress="t")
    counted = rows.windows(model.as_windows("c"), by="k").agg(n=tg.count())
    with tg.program(Q=counted).session() as session:
        session.push("Changes", [(1, 1, 1)])
        session.push("Rows", [(1, 2)])
        for name in ("Changes", "Rows"):
            session.advance(name, 3)
        session.step()
        said = str(session.why("Q"))
    assert "where k = 1: c holds" in said
    assert "in every other partition: c does not hold" in said
    assert "open" not in said
