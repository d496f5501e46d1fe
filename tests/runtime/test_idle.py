"""Sources that fall silent: heartbeats, punctuation, and the idle policy with what it costs."""

from __future__ import annotations

import datetime as dt
import json
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import tidegate as tg
from tests.runtime.conftest import EITHER, Start
from tidegate import testing
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import instant_ticks

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

a = tg.stream("A", "k bigint, t timestamp", progress="t")
b = tg.stream("B", "k bigint, t timestamp", progress="t")
c = tg.stream("C", "k bigint, t bigint", progress="t")
d = tg.stream("D", "k bigint, day date", progress="day")


def both() -> tg.Program:
    return tg.program(Both=a.select(a.k, a.t).union(b.select(b.k, b.t)))


def at(text: str) -> str:
    return f"2026-03-02T{text}Z"


def ticks(text: str) -> int:
    return instant_ticks(dt.datetime.fromisoformat(at(text)))


@pytest.mark.parametrize("start", EITHER, indirect=True)
def test_an_idle_source_follows_the_clock_and_late_rows_are_what_it_costs(start: Start) -> None:
    sources = {"A": tg.source(None, delay="1m"), "B": tg.source(None, delay="1m", idle="5m")}
    with start(both(), sources=sources, clock=at("12:00")) as run:
        run.add("A", [(1, at("12:00")), (2, at("12:10"))])
        run.add("B", [(3, at("11:59"))])
        run.step()
        run.expect(Both=[])
        run.wait("4m 59.999999s")
        run.step()
        run.expect(Both=[])  # silent for not quite long enough
        run.restart()
        run.wait("1us")
        run.step()
        run.expect(Both=[(1, at("12:00")), (3, at("11:59"))])  # B is taken to have arrived up to 12:00
        run.add("B", [(4, at("12:00")), (5, at("12:00:00.000001"))])
        run.step()
        assert run.counts["B"].rejected == {"late": 1}
        run.wait("4m")
        run.step()
        assert run.progress["Both"]["t"] == ticks("12:00")  # B has spoken, so it is not idle any more


def test_an_idle_source_is_never_less_far_behind_than_its_delay() -> None:
    with testing.drive(both(), sources={"B": tg.source(None, delay="20m", idle="5m")}, clock=at("12:00")) as run:
        run.finish("A")
        run.step()
        run.wait("5m")
        run.step()
        assert run.progress["Both"]["t"] == ticks("11:45")


def test_an_idle_source_follows_the_others(start: Start) -> None:
    sources = {"A": tg.source(None, delay="1m"), "B": tg.source(None, idle="5m", idle_follows="others")}
    with start(both(), sources=sources, clock=at("12:00")) as run:
        run.add("A", [(1, at("08:00"))])
        run.add("B", [(2, at("07:00"))])
        run.step()
        run.expect(Both=[])
        run.wait("5m")
        run.add("A", [(3, at("08:10"))])
        run.step()
        run.expect(Both=[(1, at("08:00")), (2, at("07:00"))])
        run.finish("A")
        run.step()
        # Nobody is left to follow: that A has ended says nothing of B.
        assert run.results("Both")[2:] == []


def test_a_source_that_never_spoke_is_idle_too_and_one_that_ended_is_not() -> None:
    sources = {"A": tg.source(None, idle="1m"), "B": tg.source(None, idle="1m", idle_follows="others")}
    with testing.drive(both(), sources=sources, clock=at("12:00")) as run:
        run.finish("A")
        run.step()
        run.wait("1h")
        run.add("B", [(1, at("11:00"))])
        run.step()
        run.expect(Both=[])
        run.wait("1h")
        run.step()
        run.expect(Both=[])
    with testing.drive(both(), sources={"A": tg.source(None, idle="1m")}, clock=at("12:00")) as run:
        run.finish("B")
        run.step()
        run.wait("1m")
        run.step()
        assert run.progress["Both"]["t"] == ticks("12:00")


def test_only_like_timelines_are_followed_and_dates_when_they_are_over() -> None:
    program = tg.program(OfC=c.select(c.k, c.t), OfD=d.select(d.k, d.day), OfA=a.select(a.k, a.t))
    sources = {
        "C": tg.source(None, idle="1m", idle_follows="others"),
        "D": tg.source(None, idle="2h"),
        "A": tg.source(None, delay="0s"),
    }
    with testing.drive(program, sources=sources, clock="2026-03-02T00:00Z") as run:
        run.step()
        run.wait("119m")
        run.add("A", [(1, at("02:00"))])
        run.step()
        assert run.progress["OfC"]["t"] == float("-inf")
        run.wait("1m")
        run.step()
        epoch = dt.date(1970, 1, 1)
        assert run.progress["OfD"]["day"] == (dt.date(2026, 3, 1) - epoch).days  # the second has only begun
        assert run.progress["OfC"]["t"] == float(
            "-inf"
        )  # D is not followed, nor is A, whose timestamps are no integers


def test_punctuation_in_rows_and_in_files_of_its_own(start: Start, tmp_path: Path) -> None:
    sources = {"B": tg.source(None, progress_columns={"t": "complete to"}, policy="fail")}
    with start(both(), sources=sources) as run:
        run.finish("A")
        run.add("B", [{"k": 1, "t": at("12:00"), "complete to": None}])
        run.step()
        run.expect(Both=[])
        run.add("B", [{"complete to": at("11:59")}, {"complete to": at("12:00")}])
        run.step()
        run.expect(Both=[(1, at("12:00"))])
        counts = run.counts["B"]
        assert (counts.rows_in, counts.accepted, counts.punctuations) == (1, 1, 2)


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_a_file_with_nothing_but_progress_is_punctuation(tmp_path: Path, format_: str) -> None:
    (tmp_path / "in").mkdir()
    text = {"csv": f"upto\n{at('12:00')}\n", "json": json.dumps({"upto": at("12:00")}) + "\n"}[format_]
    (tmp_path / "in" / "a").write_text(text)
    make: Any = {"csv": tg.csv, "json": tg.json}[format_]
    with both().session(sources={"B": make(tmp_path / "in", progress_columns={"t": "upto"})}) as session:
        session.finish("A")
        counts = session.step().counts["B"]
        assert (counts.rows_in, counts.rejected, counts.punctuations) == (0, {}, 1)
        assert session.progress["Both"]["t"] == ticks("12:00")


def put(folder: Path, number: int, *rows: tuple[int, str]) -> None:
    path = folder / f"{number}.csv"
    path.write_text("k,t\n" + "".join(f"{k},{at(time)}\n" for k, time in rows))
    os.utime(path, (1_600_000_000 + number, 1_600_000_000 + number))  # the oldest is read first


def behind(folder: Path, run: Callable[[dt.datetime], None], *, late: bool) -> None:
    """A run stands still for an hour; the oldest of the files that lie there then has no rows."""
    noon = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)
    put(folder, 1, (1, "12:00"))
    run(noon)
    put(folder, 2)
    if not late:
        put(folder, 3, (2, "12:10"))
        put(folder, 4, (3, "12:20"))
    run(noon + dt.timedelta(hours=1))
    if late:
        put(folder, 3, (2, "12:10"))
        run(noon + dt.timedelta(hours=1))


@pytest.mark.parametrize("late", [False, True])
def test_a_source_with_unread_files_is_not_silent(tmp_path: Path, late: bool) -> None:
    (tmp_path / "in").mkdir()
    sources = {"A": tg.csv(tmp_path / "in", per_batch=1, delay="1m", idle="5m")}
    counts = []

    def run(clock: dt.datetime) -> None:
        with tg.program(Out=a).session(sources=sources, checkpoint=tmp_path / "state", clock=lambda: clock) as session:
            session.process()
            counts.append(session.counts["A"])

    behind(tmp_path / "in", run, late=late)
    assert counts[-1].rejected == ({"late": 1} if late else {})
    assert counts[-1].accepted == (1 if late else 3)


@pytest.mark.spark
def test_a_source_with_unread_files_is_not_silent_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    sources = {"A": tg.csv(tmp_path / "in", per_batch=1, delay="1m", idle="5m")}
    reports = []

    def run(clock: dt.datetime) -> None:
        query = tg.program(Out=a).start(spark, sources=sources, checkpoint=tmp_path / "state", clock=lambda: clock)
        query.awaitTermination()
        reports.extend(query.reports)

    behind(tmp_path / "in", run, late=False)
    found = [report.counts["A"] for report in reports if "A" in report.counts]
    assert sum(one.accepted for one in found) == 3
    assert not any(one.rejected for one in found)


def test_options_that_make_no_sense_are_refused() -> None:
    program = tg.program(OfC=c.select(c.k, c.t))
    for options in ({"idle": "1m"}, {"idle": "-1m", "idle_follows": "others"}, {"idle_follows": "nobody"}):
        with pytest.raises(QueryError, match="TG401"):
            program.session(sources={"C": tg.source(None, **options)})  # type: ignore[arg-type]  # that is the point


@pytest.mark.spark
def test_silence_is_noticed_on_spark_without_any_data(spark: SparkSession, tmp_path: Path) -> None:
    for name in "AB":
        (tmp_path / name).mkdir()
    (tmp_path / "A" / "a.json").write_text(json.dumps({"k": 1, "t": at("12:00")}))
    clock = testing.TestClock(dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC))
    query = both().start(
        spark,
        sources={"A": tg.json(tmp_path / "A"), "B": tg.json(tmp_path / "B", idle="5m")},
        checkpoint=tmp_path / "checkpoint",
        trigger="100 milliseconds",
        clock=clock,
    )

    def wait_for(condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < limit
            assert query.isActive, query.exception()
            query.awaitTermination(0.1)

    try:
        wait_for(lambda: bool(query.reports))
        query.advance("A", {"t": at("12:30")})
        clock.now += dt.timedelta(minutes=6)
        wait_for(lambda: query.reports[-1].bounds["B", "t"] == ticks("12:01"))
        wait_for(lambda: sum(report.results.get("Both", 0) for report in query.reports) == 1)
    finally:
        query.stop()
