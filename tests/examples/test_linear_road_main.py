"""Linear Road as a command: over a road that is made, and over files of the benchmark's columns."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from examples.linear_road import __main__ as command
from examples.linear_road.__main__ import COLUMNS, main, same, steps
from examples.linear_road.checker import Answers, check
from examples.linear_road.rows import Row, daily
from tests.examples.small_roads import example, many_borders


def frame(rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=dict.fromkeys(Row._fields, pl.Int64), orient="row")


@pytest.mark.parametrize("suffix", ["parquet", "csv", "dat"])
def test_a_file_is_answered(suffix: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file, rows = tmp_path / f"road.{suffix}", [*example()[::-1], daily(70, 5, 0, 9, 3)]
    if suffix == "parquet":
        frame(rows).cast(pl.Int32).write_parquet(file)
    else:
        frame(rows).write_csv(file, include_header=False)
    assert main([str(file), "--out", str(tmp_path / "out")]) == 0
    printed = capsys.readouterr().out
    assert f"{len(rows)} rows, 1 accidents\n  road 0, east, segment 13: from 91 to 125\n" in printed
    assert "Notifications         68  as the checker says\n" in printed
    assert "1 tolls above 0\n" in printed
    alerts = pl.read_parquet(tmp_path / "out" / "Alerts.parquet")
    assert alerts.columns == list(COLUMNS["Alerts"])
    assert alerts.rows() == [(120, 0, 13, 0, 102)]


def test_a_file_that_is_none_and_answers_that_are_there_are_told_at_once(tmp_path: Path) -> None:
    whole = ",".join(map(str, range(15)))
    for name, text, said in (
        ("missing.dat", None, "cannot be read as 15 columns of whole numbers: No such file"),
        ("empty.dat", "", "cannot be read as 15 columns of whole numbers: empty"),
        ("other.parquet", "not Parquet", "cannot be read as 15 columns of whole numbers: "),
        ("cut.dat", f"{whole}\n0,1,2", "has a row without all of its 15 numbers: is it cut off?"),
    ):
        if text is not None:
            (tmp_path / name).write_text(text)
        with pytest.raises(SystemExit) as refused:
            main([str(tmp_path / name)])
        assert str(refused.value).startswith(f"{tmp_path / name} {said}")
    with pytest.raises(SystemExit, match="is there already, and answers go to a new folder"):
        main([str(tmp_path / "missing.dat"), "--out", str(tmp_path)])


def test_tolls_of_days_before_and_the_papers_velocity(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [*many_borders(range(3), minutes=4), daily(70, 5, 0, 10**6, 3), daily(71, 6, 0, 10**6 + 1, 3)]
    frame(rows).write_parquet(tmp_path / "road.parquet")
    # What a car paid for a road on a day may be on several lines.
    (tmp_path / "tolls.csv").write_text("5,3,0,40\n5,3,0,2\n5,4,0,7\n")
    chosen = ["--lav", "paper", "--tolls", str(tmp_path / "tolls.csv"), "--out", str(tmp_path / "out")]
    assert main([str(tmp_path / "road.parquet"), *chosen]) == 0
    assert "DIFFERENT" not in capsys.readouterr().out
    paid = pl.read_parquet(tmp_path / "out" / "Daily.parquet").filter(pl.col("qid") >= 10**6)
    assert sorted(paid.rows()) == [(70, 10**6, 42), (71, 10**6 + 1, 0)]
    told = pl.read_parquet(tmp_path / "out" / "Notifications.parquet").rows()
    assert sorted(told) == sorted(check(rows, lav="paper").notifications)


def test_a_road_that_is_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 0
    assert capsys.readouterr().out.count("as the checker says") == len(COLUMNS)


def test_answers_that_are_not_the_checkers_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def wrong(*given: object) -> Answers:
        answers = check(example())
        answers.notifications[0] = (*answers.notifications[0][:3], 1)
        return answers

    frame(example()).write_parquet(tmp_path / "road.parquet")
    monkeypatch.setattr(command, "check", wrong)
    assert main([str(tmp_path / "road.parquet")]) == 1
    assert capsys.readouterr().out.count("DIFFERENT") == 1


def test_tables_are_compared_as_bags() -> None:
    one, twice = (pl.DataFrame({"a": values}) for values in ([1, 2], [2, 1, 2]))
    assert same(one, one.reverse())
    assert not same(one, twice)
    assert not same(one, one.rename({"a": "b"}))


def test_steps_are_minutes() -> None:
    rows = [row._replace(time=time) for row, time in zip(example(), (120, 59, 0, 60), strict=False)]
    assert [(last, step["time"].to_list()) for last, step in steps(frame(rows))] == [
        (59, [0, 59]),
        (119, [60]),
        (179, [120]),
    ]
