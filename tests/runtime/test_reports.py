"""A run keeps the reports of its last batches only; `on_batch` sees every one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tidegate as tg
from tidegate.runtime.batch.report import KEPT_REPORTS, BatchReport

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def files(directory: Path, count: int) -> tg.Program:
    """A program over so many files of one row."""
    directory.mkdir()
    for number in range(count):
        (directory / f"{number:04d}.csv").write_text(f"t\n{number}\n")
    return tg.program(Out=tg.stream("E", "t bigint", progress="t").select("t"))


def test_a_session_gives_the_last_reports_of_many(tmp_path: Path) -> None:
    program, seen = files(tmp_path / "in", KEPT_REPORTS + 5), list[BatchReport]()
    with program.session(sources={"E": tg.csv(tmp_path / "in", per_batch=1)}, on_batch=seen.append) as session:
        reports = session.process()
    assert [report.seq for report in seen] == list(range(1, KEPT_REPORTS + 6))
    assert reports == seen[5:]


@pytest.mark.spark
def test_spark_keeps_the_last_reports(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.runtime.engines.spark.run.KEPT_REPORTS", 2)
    program, seen = files(tmp_path / "in", 3), list[BatchReport]()
    query = program.start(
        spark,
        sources={"E": tg.csv(tmp_path / "in", per_batch=1)},
        checkpoint=tmp_path / "checkpoint",
        on_batch=seen.append,
    )
    query.awaitTermination()
    assert [report.seq for report in seen] == [1, 2, 3]
    assert query.reports == seen[1:]


def test_a_report_has_every_query_that_was_asked_whether_it_advanced_or_not() -> None:
    events = tg.stream("E", "k bigint, t bigint, x bigint", progress="t")
    found = events.partition_by("k").derive(High=tg.situation(events.x > 5), Low=tg.situation(events.x < 2))
    paired = found.High.join(found.Low, found.High.k == found.Low.k, found.High.te == found.Low.ts)
    program = tg.program(All=events, Paired=paired.select(found.High.k, found.High.ts, found.Low.te))
    with program.session() as session:
        session.push("E", [(1, t, x) for t, x in enumerate((9, 1, 7))])
        assert dict(session.step().results) == {"All": 0, "Paired": 0}
        session.advance("E", 2)
        report = session.step()
        assert {name: report.results[name] for name in ("All", "Paired")} == {"All": 3, "Paired": 1}
        assert dict(session.step().results) == {"All": 0, "Paired": 0}
