"""Arrival as a timeline: rows get the recorded clock of the batch that accepts them, and progress there needs no
data.
"""

from __future__ import annotations

import datetime as dt
import json
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.runtime.conftest import EITHER, Start
from tests.shards import shards
from tidegate import minutes, testing
from tidegate.algebra.errors import QueryError
from tidegate.algebra.semantics import evaluate_program
from tidegate.algebra.time import EPOCH, INF, format_instant, instant_ticks
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.state.failpoints import COMMITTED, SimulatedCrash, crash

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

detection = tg.stream("Detection", "area string, time timestamp", progress="time")
report = tg.stream("Report", "area string, received timestamp", progress="received")

NOON = "2026-03-02T12:00Z"
SOURCES = {"Detection": tg.source(None, delay="0s", skew_guard=None), "Report": tg.source(None, arrival="received")}


def alarms() -> tg.Program:
    d, r = detection.as_("d"), report.as_("r")
    alarm = d.anti_join(r, r.area == d.area, d.time <= r.received, r.received <= d.time + minutes(2))
    return tg.program(Alarm=alarm.select(d.area, d.time), Got=report)


def at(text: str) -> str:
    return f"2026-03-02T{text}Z"


def ticks(text: str) -> int:
    return instant_ticks(dt.datetime.fromisoformat(at(text)))


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_rows_get_the_clock_and_silence_is_an_answer(start: Start) -> None:
    with start(alarms(), sources=SOURCES, clock=NOON) as run:
        run.add("Detection", [("hall", at("11:59")), ("roof", at("11:59:30"))])
        run.finish("Detection")
        run.step()
        run.expect(Alarm=[], Got=[])
        run.wait("1m")
        run.add("Report", [("hall",)])
        run.step()
        run.expect(Alarm=[], Got=[("hall", at("12:01"))])  # exactly two minutes
        run.wait("29s 999999us")
        run.restart()
        run.step()
        run.expect(Alarm=[])
        run.wait("1us")
        run.step()
        run.expect(Alarm=[("roof", at("11:59:30"))])
        run.add("Report", [("roof",)])
        run.step()
        run.expect(Alarm=[], Got=[("roof", at("12:01:30.000001"))])
        assert run.counts["Report"].rejected == {}


def test_arrivals_go_on_while_the_clock_stands_still_or_runs_behind(start: Start) -> None:
    with start(alarms(), sources=SOURCES, clock=NOON) as run:
        run.finish("Detection")
        for seconds in (0, 0, -3600, 3599, 2):
            run.clock.now += dt.timedelta(seconds=seconds)
            run.add("Report", [("hall",), ("roof",)])
            run.step()
        received = sorted({row["received"] for row in run.results("Got")})
        noon = dt.datetime.fromisoformat(NOON)
        expected = [noon + dt.timedelta(microseconds=n) for n in range(4)] + [noon + dt.timedelta(seconds=1)]
        assert received == expected
        assert run.counts["Report"].accepted == 10
        # A clock that ran behind is caught up with.
        assert run.progress["Got"]["received"] == instant_ticks(expected[-1])


@pytest.mark.parametrize("seed", shards(12, 4))
def test_whatever_happens_semantics_over_the_instants_of_arrival_gives_the_same(seed: int) -> None:
    rng = random.Random(seed)
    places = ["batch-before-intent", "batch-after-intent", "commit-before-manifest", "commit-after-manifest"]
    detected: list[tuple[str, int]] = []
    reported: list[tuple[str, int]] = []
    program, clock, arrived = alarms(), dt.datetime.fromisoformat(NOON), -INF
    with testing.drive(program, sources=SOURCES, clock=clock) as run:
        reach = instant_ticks(clock)
        for _ in range(12):
            run.clock.now += dt.timedelta(seconds=rng.choice([-40, 0, 0, 1, 30, 59, 60, 90]))
            arrived = max(instant_ticks(run.clock.now), arrived + 1)
            new = []
            for _ in range(rng.randrange(3)):
                reach += rng.choice([1, 20_000_000, 60_000_000])
                new.append((rng.choice("ab"), reach))
            detected += new
            come = [(area, int(arrived)) for area in rng.choices("abc", k=rng.randrange(3))]
            reported += come
            run.add("Detection", [(area, format_instant(ticks)) for area, ticks in new])
            run.add("Report", [(area,) for area, _ in come])
            if rng.random() < 0.4:
                run.kill(rng.choice(places))
            run.step()
            sure = min(max((ticks for _, ticks in detected), default=-INF) - 1, arrived - 120_000_000)
            expected: Any = evaluate_program(program.definition, {"Detection": detected, "Report": reported})
            assert held(run, "Alarm", "time") == sorted(row for row in expected["Alarm"] if row[1] <= sure)
            assert held(run, "Got", "received") == sorted(expected["Got"])


def held(run: testing.Drive, name: str, instant: str) -> list[tuple[Any, ...]]:
    return sorted((row["area"], (row[instant] - EPOCH) // dt.timedelta(microseconds=1)) for row in run.results(name))


@pytest.mark.parametrize("place", [place for place in testing.PLACES_TO_DIE if place not in COMMITTED])
def test_a_batch_that_is_done_again_receives_its_rows_when_it_was_begun(place: str, tmp_path: Path) -> None:
    clock = testing.TestClock(dt.datetime.fromisoformat(NOON))
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"area": "hall"}\n{"area": 7}\n')

    def session() -> Session:
        sources = {"Report": tg.json(tmp_path / "in", arrival="received"), "Detection": SOURCES["Detection"]}
        return alarms().session(sources=sources, checkpoint=tmp_path / "state", clock=clock)

    with session() as first:
        first._store.packs = not place.startswith("store-publish")  # so few results would wait in a pack
        first._store.failpoints.arm(place, crash)
        with pytest.raises(SimulatedCrash):
            first.step()
        began = bool(first._store.list_files("intents"))
    clock.now += dt.timedelta(hours=1)
    (tmp_path / "in" / "b.json").write_text('{"area": "roof"}\n')
    with session() as second:
        second.process()
        got = sorted((row["area"], row["received"]) for row in second.results("Got"))
    later = clock.now
    assert got[0] == ("hall", clock.now - dt.timedelta(hours=1) if began else clock.now)
    assert got[1] == ("roof", later)
    assert began == (place not in ("batch-before-intent", "store-file-written", "store-file-synced"))


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize("same", [False, True])
def test_the_clock_of_a_batch_is_that_of_its_own_rows(lasting: bool, same: bool, tmp_path: Path) -> None:
    """Rows that are pushed again after a failure were received with it; other rows are received when they come."""
    clock = testing.TestClock(dt.datetime.fromisoformat(NOON))
    first, later = clock.now, clock.now + dt.timedelta(hours=2)
    rows = [("hall",), ("roof",)]
    again = [tuple(row) for row in rows] if same else [("hall",), ("loft",)]
    place = {"checkpoint": tmp_path / "state"} if lasting else {}
    session = alarms().session(sources=SOURCES, clock=clock, **place)  # type: ignore[arg-type]  # one option
    session.push("Report", rows)
    session._store.failpoints.arm("batch-after-intent", crash)
    with pytest.raises(SimulatedCrash):
        session.step()
    clock.now = later
    if lasting:
        session.close()
        session = alarms().session(sources=SOURCES, clock=clock, **place)  # type: ignore[arg-type]  # one option
    else:
        session.discard()
    with session:
        session.push("Report", again)
        session.step()
        session.finish()
        session.step()
        got = {(row["area"], row["received"]) for row in session.results("Got")}
    assert got == {(area, first if same else later) for (area,) in again}


def test_an_end_is_an_end_and_then_everything_is_late() -> None:
    with testing.drive(alarms(), sources=SOURCES, clock=NOON) as run:
        run.add("Detection", [("hall", at("12:00"))])
        run.finish()
        run.step()
        run.expect(Alarm=[("hall", at("12:00"))])
        assert run.progress["Got"]["received"] == INF
        run.add("Report", [("hall",)])
        run.step()
        assert run.counts["Report"].rejected == {"late": 1}


def test_complete_rows_were_all_received_when_they_were_read() -> None:
    before = dt.datetime.now(dt.UTC)
    rows = tg.source([("hall",), ("roof",)], arrival="received")
    received = {row["received"] for row in tg.program(Got=report).run({"Report": rows}).rows("Got")}
    assert len(received) == 1
    assert before <= received.pop() <= dt.datetime.now(dt.UTC)


def test_history_brings_its_own_instants_to_the_same_program() -> None:
    inputs = {"Report": [("hall", at("12:02"))], "Detection": [("hall", at("12:00")), ("hall", at("11:59"))]}
    found = alarms().run(inputs).rows("Alarm")
    assert [row["time"] for row in found] == [dt.datetime.fromisoformat(at("11:59"))]


def test_an_event_time_beside_the_arrival_has_its_own_promises(start: Start) -> None:
    both = tg.stream(
        "E",
        "k bigint, t timestamp, seen timestamp",
        progress=("t", "seen"),
        relations=lambda e: e.t <= e.seen,
    )
    lag = tg.program(Lag=both.select(both.k, both.t, both.seen))
    sources = {"E": tg.source(None, delay="1m", arrival="seen", key=("k", "t"), idle="5m", idle_follows="others")}
    with start(lag, sources=sources, clock=NOON) as run:
        run.add("E", [{"k": 1, "t": at("11:59")}, {"k": 2, "t": at("12:00:01")}, {"k": 3, "t": at("12:00")}])
        run.step()
        assert run.counts["E"].rejected == {"relation": 1}  # nothing arrives before it happens
        run.expect(Lag=[(1, at("11:59"), NOON), (3, at("12:00"), NOON)])
        run.wait("1m")
        run.add("E", [(3, at("12:00")), (4, at("11:58:59")), (5, at("11:59:30"))])
        run.step()
        assert run.counts["E"].rejected == {"relation": 1, "duplicate": 1, "late": 1}
        run.expect(Lag=[(5, at("11:59:30"), at("12:01"))])
        run.wait("1h")
        run.step()
        assert run.progress["Lag"]["seen"] == ticks("13:01")


def test_progress_columns_beside_the_arrival(start: Start) -> None:
    """A row that carries progress and nothing else has no arrival either, since it is no row."""
    both = tg.stream("E", "k bigint, t timestamp, seen timestamp", progress=("t", "seen"))
    sources = {"E": tg.source(None, arrival="seen", progress_columns={"t": "upto"})}
    with start(tg.program(Out=both.select(both.k, both.t)), sources=sources, clock=NOON) as run:
        run.add("E", [{"k": 1, "t": at("11:59"), "upto": None}, {"k": 2, "t": at("11:58"), "upto": at("11:58")}])
        run.add("E", [{"upto": at("11:59")}])
        run.step()
        run.expect(Out=[(1, at("11:59")), (2, at("11:58"))])
        counts = run.counts["E"]
        assert (counts.rows_in, counts.accepted, counts.punctuations) == (2, 2, 1)


def test_the_idle_follow_what_happened_and_not_when_it_came() -> None:
    other = tg.stream("Other", "k bigint, t timestamp", progress="t")
    third = tg.stream("Third", "k bigint, t timestamp", progress="t")
    program = tg.program(Got=report, Out=other, Last=third)
    sources = {
        "Report": tg.source(None, arrival="received"),
        "Other": tg.source(None, idle="1m", idle_follows="others"),
        "Third": tg.source(None, delay="0s", skew_guard=None),
    }
    with testing.drive(program, sources=sources, clock=NOON) as run:
        run.step()
        run.wait("1m")
        run.add("Third", [(1, at("14:00"))])
        run.step()
        assert run.progress["Out"]["t"] == ticks("14:00") - 1


def test_why_says_that_the_clock_moves_it() -> None:
    with testing.drive(alarms(), sources=SOURCES, clock=NOON) as run:
        run.add("Detection", [("hall", at("12:00"))])
        run.finish("Detection")
        run.step()
        assert "is moved by the clock: it is the time of arrival" in str(run.why("Alarm"))


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"arrival": "area"}, "no timestamp on which it progresses"),
        ({"arrival": "nothing"}, "name time or received"),
        ({"arrival": "n"}, "no timestamp on which it progresses"),
        ({"arrival": "received", "delay": {"received": "1m"}}, "the clock alone gives and moves it"),
        ({"arrival": "received", "progress_columns": {"received": "upto"}}, "the clock alone gives and moves it"),
        ({"arrival": "received", "skew_guard": {"received": "1m"}}, "the clock alone gives and moves it"),
        ({"arrival": "received", "age_guard": {"received": "1m"}}, "the clock alone gives and moves it"),
        ({"arrival": "received", "key": ("area", "received", "time")}, "arrives at another time"),
        ({"arrival": "received", "key": ("area",)}, "add time or n to the key"),
    ],
)
def test_options_that_do_not_fit_are_refused(options: Any, says: str) -> None:
    many = tg.stream(
        "Many", "area string, time timestamp, received timestamp, n bigint", progress=("time", "received", "n")
    )
    with pytest.raises(QueryError, match="TG401") as refused:
        tg.program(Out=many).session(sources={"Many": tg.source(None, **options)})
    assert says in str(refused.value)


def test_nobody_else_moves_an_arrival(start: Start) -> None:
    with start(alarms(), sources=SOURCES, clock=NOON) as run:
        run.advance("Report", received=at("13:00"))
        with pytest.raises(QueryError, match=r"TG401.*the clock alone moves it"):
            run.step()
    only = {"Report": tg.source(None, arrival="received", delay="1m")}
    with pytest.raises(QueryError, match=r"TG401.*never behind"):
        tg.program(Got=report).session(sources=only)


@pytest.mark.spark
def test_the_clock_goes_on_on_spark_without_any_data(spark: SparkSession, tmp_path: Path) -> None:
    for name in ("d", "r"):
        (tmp_path / name).mkdir()
    (tmp_path / "d" / "a.json").write_text(json.dumps({"area": "hall", "time": at("12:00")}))
    (tmp_path / "r" / "a.json").write_text(json.dumps({"area": "roof"}))
    clock = testing.TestClock(dt.datetime.fromisoformat(NOON))
    query = alarms().start(
        spark,
        sources={"Detection": tg.json(tmp_path / "d"), "Report": tg.json(tmp_path / "r", arrival="received")},
        checkpoint=tmp_path / "checkpoint",
        trigger="100 milliseconds",
        clock=clock,
        advance={"Detection": {"time": at("12:00")}},
    )

    def wait_for(condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < limit
            assert query.isActive, query.exception()
            query.awaitTermination(0.1)

    def found(name: str) -> int:
        return sum(report.results.get(name, 0) for report in query.reports)

    try:
        wait_for(lambda: found("Got") == 1)
        assert found("Alarm") == 0
        clock.now += dt.timedelta(minutes=2)
        wait_for(lambda: found("Alarm") == 1)
    finally:
        query.stop()


@pytest.mark.spark
def test_rows_that_spark_reads_itself_arrive_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"area": "hall"}\n')
    stream = spark.readStream.schema("area string").json(str(tmp_path / "in"))
    clock = testing.TestClock(dt.datetime.fromisoformat(NOON))
    program = tg.program(Got=report)
    query = program.start(
        spark,
        sources={"Report": tg.source(stream, arrival="received")},
        checkpoint=tmp_path / "checkpoint",
        clock=clock,
        driver_bytes=0,
    )
    query.awaitTermination()
    with program.session(checkpoint=tmp_path / "checkpoint") as session:
        assert session.results("Got") == [{"area": "hall", "received": clock.now}]
