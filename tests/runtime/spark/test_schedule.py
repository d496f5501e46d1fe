"""Schedules on Spark: the same turns as embedded, and a turn that comes without new data."""

from __future__ import annotations

import datetime as dt
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

import tidegate as tg
from tests.runtime.test_schedule import beat, chain
from tidegate import testing

pytestmark = pytest.mark.spark


def reached(start: Callable[..., testing.Drive]) -> list[dict[str, object]]:
    """How far the results are after each batch, through a restart, a crash and the end."""
    schedule = tg.schedule(every={"Low": 2, "Alone": "3s"}, budget="1us")
    found: list[dict[str, object]] = []
    with start(chain(), clock="2026-03-02T12:00Z", schedule=schedule) as run:
        for t in range(1, 7):
            if t == 3:
                run.restart()
            if t == 4:
                run.kill("commit-before-manifest")
            found.append({**beat(run, t), "waiting": run.reports[-1].waiting})
            run.wait("1s")
        run.finish()
        run.step()
        assert [len(run.results(name)) for name in ("Low", "High", "Alone")] == [6, 6, 6]
    return found


def test_the_turns_are_those_of_the_embedded_engine(spark: SparkSession) -> None:
    assert reached(partial(testing.drive, spark=spark)) == reached(testing.drive)


def test_a_turn_comes_without_new_data_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.json").write_text('{"k": 2, "t": 1}')
    clock = testing.TestClock(dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC))
    query = chain().start(
        spark,
        sources={"E": tg.json(tmp_path / "in")},
        checkpoint=tmp_path / "checkpoint",
        trigger="100 milliseconds",
        clock=clock,
        schedule=tg.schedule(every={"Low": "10s"}),
        advance={"E": {"t": 1}},
    )

    def wait_for(condition: Callable[[], bool]) -> None:
        limit = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < limit
            assert query.isActive, query.exception()
            query.awaitTermination(0.1)

    try:
        wait_for(lambda: any(report.results.get("Alone") for report in query.reports))
        assert not any(report.results.get("Low") for report in query.reports)
        assert "the schedule: every 10s" in str(query.why("Low"))
        clock.now += dt.timedelta(seconds=10)
        wait_for(lambda: any(report.results.get("High") for report in query.reports))
    finally:
        query.stop()
