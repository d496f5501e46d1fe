"""Values that stand in the names of folders: what a file lacks and a folder has is a column of all its rows."""

from __future__ import annotations

import datetime as dt
import json
import os
import warnings
from collections.abc import Mapping, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tests.runtime.inline_workers import InlineRun, Workers
from tidegate.runtime.connectors.folder_values import folder_values
from tidegate.runtime.connectors.sources import FileFormat, source_given
from tidegate.runtime.ingest.inputs import read_file
from tidegate.runtime.plan.placement import Limits

FORMATS: tuple[FileFormat, ...] = ("parquet", "csv", "json")
MAKE = {"parquet": tg.parquet, "csv": tg.csv, "json": tg.json}
NULL = "__HIVE_DEFAULT_PARTITION__"

events = tg.stream("S", "i bigint, day date, t bigint", progress="t")
PROGRAM = tg.program(Out=events)


def put(path: Path, rows: Sequence[Mapping[str, Any]], number: int = 0) -> None:
    """Writes rows as the ending of the path says; the file of the least number is the oldest."""
    path.parent.mkdir(parents=True, exist_ok=True)
    frame = pl.DataFrame(rows)
    match path.suffix:
        case ".parquet":
            frame.write_parquet(path)
        case ".csv":
            frame.write_csv(path)
        case _:
            path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    os.utime(path, (1_600_000_000 + number,) * 2)


def rows_of(program: tg.Program, source: tg.Source) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The results, and the rejected rows."""
    with program.session(sources={"S": source}) as session, warnings.catch_warnings(action="ignore"):
        list(session.process())
        return list(session.results("Out")), list(session.quarantine_rows())


@pytest.mark.parametrize(
    ("path", "values"),
    [
        ("/in/a.csv", {}),
        ("/in/day=1/a.csv", {"day": "1"}),
        ("/in/day=1/x/hour=2/a.csv", {"day": "1", "hour": "2"}),
        ("/in/day=1/day=2/a.csv", {"day": "2"}),
        ("/in/x=1.csv", {}),
        ("/in/x=a=b/a.csv", {"x": "a=b"}),
        (f"/in/x={NULL}/y=/a.csv", {"x": None, "y": None}),
        ("/in/t%3D=12%3A30 +1%2F2/a.csv", {"t=": "12:30 +1/2"}),
        ("/in/x=100%/y=%FF/z=%C3%A9/a.csv", {"x": "100%", "y": "%FF", "z": "é"}),
        ("/in=1/a.csv", {}),
        ("/in", {}),
    ],
)
def test_values_are_read_from_the_folders_below_the_directory(path: str, values: dict[str, str | None]) -> None:
    assert folder_values(path, "/in") == values


#: Of each type what a folder is called, and the value.
VALUES: dict[str, tuple[str, object]] = {
    "bigint": ("007", 7),
    "double": ("1.5", 1.5),
    "decimal(9, 2)": ("1.50", Decimal("1.50")),
    "boolean": ("true", True),
    "string": ("00%2F7 é", "00/7 é"),
    "date": ("2026-03-02", dt.date(2026, 3, 2)),
    "timestamp": ("2026-03-02 12%3A30%3A00", dt.datetime(2026, 3, 2, 12, 30, tzinfo=dt.UTC)),
    "duration": ("5m", 300_000_000),
}


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("null", [False, True])
def test_a_value_of_a_folder_is_read_as_its_type_says(tmp_path: Path, format_: FileFormat, null: bool) -> None:
    names = {type_: type_.partition("(")[0][:3] for type_ in VALUES}
    folders = (f"{names[type_]}={NULL if null else text}" for type_, (text, _) in VALUES.items())
    put(tmp_path.joinpath("in", *folders, f"a.{format_}"), [{"t": 1}, {"t": 2}])
    stream = tg.stream("S", f"t bigint, {', '.join(f'{name} {type_}' for type_, name in names.items())}", progress="t")
    results, rejected = rows_of(tg.program(Out=stream), MAKE[format_](tmp_path / "in", bounded=True))
    values = {names[type_]: None if null else value for type_, (_, value) in VALUES.items()}
    assert (results, rejected) == ([{"t": 1, **values}, {"t": 2, **values}], [])


@pytest.mark.parametrize("format_", FORMATS)
def test_a_wrong_value_of_a_folder_is_rejected_with_its_place(tmp_path: Path, format_: FileFormat) -> None:
    put(tmp_path / "in" / "day=yesterday" / f"a.{format_}", [{"i": 1, "t": 1}, {"i": 2, "t": 2}])
    put(tmp_path / "in" / "day=2026-03-02" / f"b.{format_}", [{"i": 3, "t": 3}])
    results, rejected = rows_of(PROGRAM, MAKE[format_](tmp_path / "in", bounded=True))
    assert [row["i"] for row in results] == [3]
    assert [(row["position"], row["attribute"], row["reason"]) for row in rejected] == [
        (0, "day", "unparseable"),
        (1, "day", "unparseable"),
    ]
    assert json.loads(rejected[0]["row"])["day"] == "yesterday"
    assert rejected[0]["origin"].endswith(f"day=yesterday/a.{format_}")


@pytest.mark.parametrize("format_", FORMATS)
def test_a_column_of_the_file_counts_as_it_stands_there(tmp_path: Path, format_: FileFormat) -> None:
    """Also its NULLs."""
    put(tmp_path / "in" / "day=2026-03-02" / f"a.{format_}", [{"i": 1, "day": "2026-01-01", "t": 1}] * 2)
    put(tmp_path / "in" / "day=2026-03-02" / f"b.{format_}", [{"i": 2, "day": None, "t": 2}], 1)
    results, _ = rows_of(PROGRAM, MAKE[format_](tmp_path / "in", bounded=True))
    assert [(row["i"], row["day"]) for row in results] == [(1, dt.date(2026, 1, 1))] * 2 + [(2, None)]


def test_a_key_that_some_lines_of_json_lack_is_null_there(tmp_path: Path) -> None:
    rows: list[dict[str, Any]] = [{"i": 1, "t": 1}, {"i": 2, "day": "2026-01-01", "t": 2}, {"i": 3, "t": 3}]
    put(tmp_path / "in" / "day=2026-03-02" / "a.json", rows)
    results, _ = rows_of(PROGRAM, tg.json(tmp_path / "in", bounded=True))
    assert [row["day"] for row in results] == [None, dt.date(2026, 1, 1), None]


def test_a_single_file_has_no_folders_and_a_directory_not_its_own_name(tmp_path: Path) -> None:
    put(tmp_path / "day=2026-03-02" / "a.csv", [{"i": 1, "t": 1}])
    for place in (tmp_path / "day=2026-03-02" / "a.csv", tmp_path / "day=2026-03-02"):
        results, rejected = rows_of(PROGRAM, tg.csv(place, bounded=True))
        assert (results, [row["reason"] for row in rejected]) == ([], ["missing column"])
        with pytest.raises(tg.QueryError, match="'day=2026-03-02': give the source the directory above it"):
            PROGRAM.run({"S": tg.csv(place)})
    results, rejected = rows_of(PROGRAM, tg.csv(tmp_path, bounded=True))
    assert ([row["day"].day for row in results], rejected) == ([2], [])


@pytest.mark.parametrize("folder", ["_day=2026-03-02", "link", f"day={NULL}"])
def test_no_directory_is_proposed_that_has_no_value(tmp_path: Path, folder: str) -> None:
    """Its folder is left out, is a link, or says that there is none."""
    stream = tg.stream("S", "t bigint, day date not null, _day date", progress="t")
    given = tmp_path / folder
    if folder == "link":
        put(tmp_path / "elsewhere" / "a.csv", [{"t": 1, "_day": "2026-03-02"}])
        given = tmp_path / "day=2026-03-02"
        given.symlink_to(tmp_path / "elsewhere")
    else:
        put(given / "a.csv", [{"t": 1} | ({"day": "2026-03-02"} if folder.startswith("_") else {"_day": None})])
    with pytest.raises(tg.QueryError, match=r"TG430(?s:.*)missing column") as refused:
        tg.program(Out=stream).run({"S": tg.csv(given)})
    assert "directory above it" not in str(refused.value)


def test_a_pattern_is_none_of_folders(tmp_path: Path) -> None:
    put(tmp_path / "in" / "day=2026-03-02" / "a.csv", [{"t": 1}])
    with pytest.warns(tg.RunWarning, match="without their folders, that fit pattern='day=.*' are read"):
        PROGRAM.run({"S": tg.csv(tmp_path / "in", pattern="day=*")})


def test_folders_that_name_no_attribute_say_nothing(tmp_path: Path) -> None:
    put(tmp_path / "in" / "region=eu" / "day=2026-03-02" / "Day=x" / "a.parquet", [{"i": 1, "t": 1}])
    results, rejected = rows_of(PROGRAM, tg.parquet(tmp_path / "in", bounded=True))
    assert (results, rejected) == ([{"i": 1, "day": dt.date(2026, 3, 2), "t": 1}], [])


def test_a_file_may_have_nothing_but_what_its_folders_say(tmp_path: Path) -> None:
    put(tmp_path / "in" / "i=1" / "t=5" / "day=2026-03-02" / "a.parquet", [{"other": 1}, {"other": 2}])
    results, _ = rows_of(PROGRAM, tg.parquet(tmp_path / "in", bounded=True))
    assert results == [{"i": 1, "day": dt.date(2026, 3, 2), "t": 5}] * 2


@pytest.mark.parametrize("format_", ["csv", "json"])
def test_broken_lines_are_said_as_lines(tmp_path: Path, format_: FileFormat) -> None:
    """Also where the first attribute is that of the folder."""
    path = tmp_path / "in" / "day=2026-03-02" / f"a.{format_}"
    put(path, [{"i": 1, "t": 1}])
    path.write_text(f"{path.read_text()}1,2,3\n")
    stream = tg.stream("S", "day date, i bigint, t bigint", progress="t")
    results, (rejected,) = rows_of(tg.program(Out=stream), MAKE[format_](tmp_path / "in", bounded=True))
    assert results == [{"day": dt.date(2026, 3, 2), "i": 1, "t": 1}]
    assert (rejected["position"], rejected["attribute"], rejected["row"]) == (1, None, '"1,2,3"')


@pytest.mark.parametrize("format_", ["csv", "parquet"])
def test_another_column_that_a_file_lacks_is_the_one_that_is_told(tmp_path: Path, format_: FileFormat) -> None:
    put(tmp_path / "in" / "day=2026-03-02" / f"a.{format_}", [{"more": "x", "t": 1}])
    with PROGRAM.session(sources={"S": MAKE[format_](tmp_path / "in", bounded=True)}) as session:
        with pytest.warns(tg.RunWarning, match=r"missing column, for i(?s:.*)in a folder name=value below"):
            list(session.process())
        (rejected,) = session.quarantine_rows()
    assert rejected["error"] == "the columns of the file are: more, t, day"
    assert json.loads(rejected["row"])["day"] == "2026-03-02"


def test_a_file_of_csv_is_read_once_where_a_folder_has_what_it_lacks(tmp_path: Path) -> None:
    """Where a column is missing, all its columns are read in another turn."""
    path = tmp_path / "in" / "day=2026-03-02" / "a.csv"
    put(path, [{"i": "one", "t": 1, "more": "x"}])
    path.write_text(f"{path.read_text()}1\n")
    assert {*read_file(str(path), "csv", events._node.schema, str(tmp_path / "in")).rows} == {"i", "t", "day"}
    assert {*read_file(str(path), "csv", events._node.schema).rows} == {"i", "t", "more"}


@pytest.mark.parametrize("format_", FORMATS)
def test_folders_may_have_the_time_and_what_is_complete(tmp_path: Path, format_: FileFormat) -> None:
    stream = tg.stream("S", "i bigint, day date, hour bigint", progress=("day", "hour"))
    for day, complete in ((1, "2026-03-01"), (2, NULL)):
        folder = tmp_path / "in" / f"complete={complete}" / f"day=2026-03-0{day}"
        put(folder / f"a.{format_}", [{"i": day, "hour": day}], day)
    source = MAKE[format_](tmp_path / "in", delay={"hour": 0}, progress_columns={"day": "complete"})
    with tg.program(Out=stream).session(sources={"S": source}) as session:
        list(session.process())
        assert session.progress["Out"]["day"] == (dt.date(2026, 3, 1) - dt.date(1970, 1, 1)).days
        assert [row["day"].day for row in session.results("Out")] == [1]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_punctuation_may_lie_in_a_folder(tmp_path: Path, format_: FileFormat) -> None:
    """What the folder has is that of every row."""
    path = tmp_path / "in" / "day=2026-03-02" / f"a.{format_}"
    rows = [{"i": 1, "t": 1, "complete": None}, {"i": None, "t": None, "complete": 5}]
    put(path, [*rows, {"i": 2, "t": 3, "complete": None}, {"i": 3, "t": None, "complete": 4}])
    source = MAKE[format_](tmp_path / "in", progress_columns={"t": "complete"})
    with PROGRAM.session(sources={"S": source}) as session, warnings.catch_warnings(action="ignore"):
        (report,) = session.process()
        counts = report.counts["S"]
        assert (counts.accepted, counts.rejected, counts.punctuations) == (2, {"null": 1}, 1)
        assert session.progress["Out"]["t"] == 5
        assert [row["i"] for row in session.results("Out")] == [1, 2]


@pytest.mark.parametrize("format_", FORMATS)
def test_a_folder_makes_no_punctuation(tmp_path: Path, format_: FileFormat) -> None:
    """Of what is complete it says the same in every row, and a row may have nothing but what folders have."""
    put(tmp_path / "in" / "complete=5" / f"a.{format_}", [{"i": None, "day": None, "t": None}, {"i": 1, "t": 5}])
    source = MAKE[format_](tmp_path / "in", bounded=True, progress_columns={"t": "complete"})
    results, rejected = rows_of(PROGRAM, source)
    assert ([row["i"] for row in results], [row["reason"] for row in rejected]) == ([1], ["null"])
    stream = tg.stream("S", "i bigint, day date, t bigint", progress="t")
    put(tmp_path / "of" / "day=2026-03-02" / "t=5" / f"a.{format_}", [{"i": None, "complete": 5}])
    source = MAKE[format_](tmp_path / "of", bounded=True, progress_columns={"t": "complete"})
    with tg.program(Out=stream).session(sources={"S": source}) as session:
        (report, *_) = session.process()
        assert (report.counts["S"].accepted, report.counts["S"].punctuations) == (1, 0)


def test_a_later_start_goes_on_with_new_folders(tmp_path: Path) -> None:
    options: dict[str, Any] = {"sources": {"S": tg.parquet(tmp_path / "in", delay=0, per_batch=1)}}
    for number in range(1, 4):
        put(tmp_path / "in" / f"day=2026-03-0{number}" / "a.parquet", [{"i": number, "t": number}], number)
        put(tmp_path / "in" / f"day=2026-03-0{number}" / "b.parquet", [{"i": -number, "t": number}], number)
        with PROGRAM.session(**options, checkpoint=tmp_path / "state") as session:
            list(session.process())
            assert [(row["i"], row["day"].day) for row in session.results("Out")] == [
                (sign * n, n) for n in range(1, number) for sign in (1, -1)
            ]


@pytest.mark.parametrize("format_", FORMATS)
@pytest.mark.parametrize("place", ["driver", "workers"])
def test_tasks_of_spark_read_them_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, format_: FileFormat, place: str
) -> None:
    """The directory is given by a path from where the program is started."""
    for day in range(1, 5):
        put(tmp_path / "in" / f"day=2026-03-0{day}" / f"a.{format_}", [{"i": day, "t": 1}])
    monkeypatch.chdir(tmp_path)
    workers, limits = Workers(monkeypatch), Limits(1 << 30) if place == "driver" else Limits(0)
    source = source_given(MAKE[format_]("in", bounded=True))
    run = InlineRun.of(workers, PROGRAM.facts, {"S": source}, {}, tmp_path / "state", limits=limits)
    (report,) = run.all()
    assert report.counts["S"].accepted == 4
    assert (workers.number > 0) == (place == "workers")
    with PROGRAM.session(sources={"S": source}, checkpoint=tmp_path / "state") as session:
        list(session.process())
        assert {(row["i"], row["day"].day) for row in session.results("Out")} == {(day, day) for day in range(1, 5)}


def test_static_tables_have_them_too(tmp_path: Path) -> None:
    for name in ("a", "b"):
        put(tmp_path / "in" / f"name={name}" / "x.csv", [{"id": ord(name)}])
    names = tg.table("Names", "id bigint, name string")
    joined = events.join(names, events.i == names.id).select(events.i, events.t, names.name)
    rows = [{"i": 97, "day": None, "t": 1}, {"i": 98, "day": None, "t": 2}]
    results = tg.program(Out=joined).run({"S": rows, "Names": tg.csv(tmp_path / "in")})
    assert {(row["i"], row["name"]) for row in results["Out"]} == {(97, "a"), (98, "b")}
