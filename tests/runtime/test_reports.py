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
