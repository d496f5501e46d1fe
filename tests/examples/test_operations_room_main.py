"""The operations room end to end: a few days embedded equal the batch answers, and Spark equals embedded."""

from __future__ import annotations

import io
import re
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import polars as pl
import pytest

from examples.operations_room import data, engines, expected
from examples.operations_room.findings import fates, full_report, read
from examples.operations_room.main import arguments, main, wait_for
from tidegate.runtime.inspect.live_state import state_use

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FOGGY = data.Period(date(2013, 1, 12), 3)  # with episodes of poor visibility at all three airports


@pytest.fixture(scope="module")
def replay(tmp_path_factory: pytest.TempPathFactory) -> data.Replay:
    return data.prepare(tmp_path_factory.mktemp("replay") / "input", FOGGY, bad=("null", "relation", "unparseable"))


@pytest.fixture(scope="module")
def wanted() -> dict[str, pl.DataFrame]:
    return expected.results(FOGGY)


def answers(where: Path, wanted: dict[str, pl.DataFrame]) -> dict[str, pl.DataFrame]:
    return {name: read(where / "results" / name, wanted[name]) for name in engines.RESULTS}


def test_days_embedded_are_reported_as_expected(tmp_path: Path) -> None:
    screen = io.StringIO()
    days = ["--start", "2013-01-12", "--days", "5"]
    assert main(["--embedded", *days, "--output", str(tmp_path / "room")], screen) == 0
    text = screen.getvalue()
    assert text.count("checked equal to the batch computation") == 8
    assert "WorstDelay: 0 rows" not in text
    assert text.count("adds up, all bad rows found") == 3
    assert "EXCEEDED" not in text
    assert "DIFFERS" not in text
    assert "All as expected: 8 of 8 results checked equal, all rows accounted for, state within bounds" in text
    in_order = ["A question", "final when", "TG201", "tg.match(", "replaying", "batch ", "Rows by fate", "report.html"]
    assert sorted(in_order, key=text.index) == in_order
    page = (tmp_path / "room" / "report.html").read_text(encoding="utf-8")
    for part in ("TG201", 'class="hours"', 'class="timeline"', "LateInFog", "adds up, all bad rows found"):
        assert part in page
    assert re.findall(r"""(?:src|href)=["'](?!#)|url\(|@import|http(?!://www\.w3\.org/2000/svg)""", page) == []


@pytest.mark.parametrize("per_batch", [1, 3])
def test_batching_does_not_matter(
    tmp_path: Path, replay: data.Replay, wanted: dict[str, pl.DataFrame], per_batch: int
) -> None:
    ran = engines.embedded(replay, tmp_path, per_batch=per_batch, on_batch=lambda _: None)
    found = answers(tmp_path, wanted)
    assert {name: expected.differences(wanted[name], found[name]) for name in wanted} == {name: [] for name in wanted}
    assert all(wanted[name].height > 0 for name in wanted)
    assert len(ran.reports) == -(-replay.files // per_batch)
    assert all(fate.balanced and fate.rightly for fate in fates(ran.reports, replay))
    used = state_use(ran.plan, ran.reports)
    assert all(use.span is not None for use in used)
    assert sum(use.most for use in used) > 1_000


def test_a_wrong_answer_is_noticed(tmp_path: Path, replay: data.Replay, wanted: dict[str, pl.DataFrame]) -> None:
    ran = engines.embedded(replay, tmp_path, per_batch=3, on_batch=lambda _: None)
    assert full_report(ran, replay, tmp_path, seconds=1.0, wanted=wanted).ok
    for name in ("Bunching", "PoorStart"):
        off = {**wanted, name: wanted[name].head(wanted[name].height - 1)}
        assert not full_report(ran, replay, tmp_path, seconds=1.0, wanted=off).ok


@pytest.mark.spark
@pytest.mark.parametrize(
    "dataframes", [pytest.param(False, id="driver"), pytest.param(True, id="dataframes", marks=pytest.mark.long)]
)
def test_spark_equals_embedded(
    tmp_path: Path, spark: SparkSession, replay: data.Replay, wanted: dict[str, pl.DataFrame], dataframes: bool
) -> None:
    run = engines.OnSpark(dataframes)
    on_spark = run(replay, tmp_path / "spark", per_batch=4, on_batch=lambda _: None)
    here = engines.embedded(replay, tmp_path / "embedded", per_batch=4, on_batch=lambda _: None)
    found, same = answers(tmp_path / "spark", wanted), answers(tmp_path / "embedded", wanted)
    assert {name: expected.differences(same[name], found[name]) for name in same} == {name: [] for name in same}
    assert fates(on_spark.reports, replay) == fates(here.reports, replay)
    ordered = {"Fog", "Wave", "LateInFog"}  # never DataFrames: in the driver, or by shards
    places = {p for report in on_spark.reports for name, p in report.places.items() if name not in ordered}
    assert places == ({"catalyst"} if dataframes else {"driver"})
    # The partner and kill rules free rows in the driver only; keep frees the same everywhere.
    for one, other in zip(on_spark.reports, here.reports, strict=True):
        freed = {name for name, rows in other.live_rows.items() if rows < one.live_rows[name]}
        assert one.live_rows == {**other.live_rows, **{name: one.live_rows[name] for name in freed}}
        assert not freed or dataframes


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (["--per-batch", "0"], "at least 1"),
        (["--per-batch", "16"], "two days or more"),
        (["--output", "."], "exists"),
    ],
)
def test_what_cannot_be_run_is_refused(given: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        arguments(given)
    assert told in capsys.readouterr().err


def test_spark_waits_until_it_is_installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now, looks, installed, screen = iter(range(0, 100, 3)), iter(range(8)), tmp_path / ".ready", io.StringIO()

    def sleep(_: float) -> None:
        if next(looks, None) is None:
            installed.touch()

    monkeypatch.setattr("time.monotonic", lambda: float(next(now)))
    monkeypatch.setattr("time.sleep", sleep)
    wait_for(installed, screen)
    assert screen.getvalue().count("Spark is being installed") >= 2
