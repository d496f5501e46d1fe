"""`tidegate run`: a query as text over files."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.runtime.cli.commands import main

QUERY = """FROM CarSensors PARTITION BY car
DEFINE A AS accel > 8 AT LEAST 2s, B AS speed > 70
PATTERN A overlaps B WITHIN 1 MINUTES
RETURN car, A.ts AS began, count(A) AS n
"""
ROWS = [
    {"car": 1, "time": t, "speed": 80.0 if 3 <= t < 9 else 0.0, "accel": 9.0 if 1 <= t < 5 else 0.0} for t in range(12)
]


def query(folder: Path, text: str = QUERY) -> str:
    path = folder / "query.tps"
    path.write_text(text)
    return str(path)


def table(time: pa.DataType) -> pa.Table:
    rows = [{**row, "time": row["time"] * 1_000_000} for row in ROWS] if pa.types.is_timestamp(time) else ROWS
    schema = pa.schema([("car", pa.int32()), ("time", time), ("speed", pa.float32()), ("accel", pa.float64())])
    return pa.Table.from_pylist(rows, schema=schema)


@pytest.mark.parametrize("directory", [True, False])
def test_parquet_with_timestamps(tmp_path: Path, capsys: pytest.CaptureFixture[str], directory: bool) -> None:
    data = tmp_path / "cars"
    data.mkdir()
    pq.write_table(table(pa.timestamp("us", "UTC")), data / "part.parquet")
    path = data if directory else data / "part.parquet"
    assert main(["run", "--query", query(tmp_path), "--input", f"CarSensors={path}"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "car,began,n,detected\n1,1970-01-01T00:00:01+00:00,4,1970-01-01T00:00:05+00:00\n"
    assert printed.err == "1 result\n"


@pytest.mark.parametrize("named", ["-", "/dev/fd/{}"])
def test_a_query_comes_through_a_pipe(tmp_path: Path, capsys: pytest.CaptureFixture[str], named: str) -> None:
    pq.write_table(table(pa.timestamp("us", "UTC")), tmp_path / "cars.parquet")
    (end, begin), before = os.pipe(), os.dup(0)
    os.write(begin, QUERY.encode())
    os.close(begin)
    os.dup2(end, 0)
    try:
        given = ["run", "--query", named.format(end), "--input", f"CarSensors={tmp_path / 'cars.parquet'}"]
        assert main(given) == 0
    finally:
        os.dup2(before, 0)
        os.close(before)
        os.close(end)
    assert capsys.readouterr().err == "1 result\n"


def test_parquet_with_integer_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(table(pa.int64()), tmp_path / "cars.parquet")
    given = ["run", "--query", query(tmp_path), "--input", f"CarSensors={tmp_path / 'cars.parquet'}"]
    assert main(given) == 1
    assert "TG177 CarSensors: which attribute is the time?" in capsys.readouterr().err
    assert main([*given, "--time", "time"]) == 1
    assert "--unit time=s" in capsys.readouterr().err
    assert main([*given, "--time", "time", "--unit", "time=s", "--out", str(tmp_path / "out")]) == 0
    written = pq.read_table(tmp_path / "out" / "Matches.parquet").to_pylist()
    assert written == [{"car": 1, "began": 1, "n": 4, "detected": 5}]


def test_csv_needs_a_schema_and_counts_what_it_rejects(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lines = ["car,time,speed,accel", *(",".join(map(str, row.values())) for row in ROWS), "1,x,2,3", "1,y,2,3"]
    (tmp_path / "cars.csv").write_text("\n".join(lines) + "\n")
    ordered = QUERY.replace("PARTITION BY car", "ORDER BY time PARTITION BY car")
    given = ["run", "--query", query(tmp_path, ordered), "--input", f"CarSensors={tmp_path / 'cars.csv'}"]
    assert main(given) == 1
    assert "TG177" in capsys.readouterr().err
    schema = "car bigint, time bigint, speed double, accel double"
    assert main([*given, "--schema", schema, "--unit", "time=s"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "car,began,n,detected\n1,1,4,5\n"
    assert '2 rows rejected: unparseable\n  such as time of {"car": "1", "time": "x"' in printed.err
    assert "in cars.csv" in printed.err


def test_a_file_that_is_no_parquet_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "cars.parquet").write_text("no")
    given = ["run", "--query", query(tmp_path), "--input", f"CarSensors={tmp_path / 'cars.parquet'}"]
    for more in ([], ["--time", "time", "--schema", "car bigint, time timestamp, speed double, accel double"]):
        assert main([*given, *more]) == 1
        assert re.match(r"TG412 .*cars\.parquet cannot be read as parquet: ", capsys.readouterr().err)


def test_columns_that_no_attribute_can_hold_matter_where_the_query_names_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = {
        "tags": pa.array([["a"]] * len(ROWS)),
        "where": pa.array([{"x": 1}] * len(ROWS)),
        "at": pa.array([1] * len(ROWS), pa.time64("us")),
        "big": pa.array(range(len(ROWS)), pa.uint64()),
        "kind": pa.array(["a"] * len(ROWS)).dictionary_encode(),
        "a.b": pa.array(range(len(ROWS))),
        "Twice": pa.array(range(len(ROWS))),
        "twice": pa.array(range(len(ROWS))),
    }
    made = table(pa.timestamp("us", "UTC"))
    for name, values in others.items():
        made = made.append_column(name, values)
    pq.write_table(made, tmp_path / "cars.parquet")
    source = ["--input", f"CarSensors={tmp_path / 'cars.parquet'}"]
    assert main(["run", "--query", query(tmp_path), *source]) == 0
    assert capsys.readouterr().err == "1 result\n"
    for condition, code, hint in (
        ("tags IS NULL", "TG112", "explode"),
        ("big > 8", "TG112", "--schema"),
        ("kind = 'a'", "TG112", "--schema"),
        ('"a.b" > 1', "TG103", "a_b"),
        ("twice > 1", "TG103", "case"),
    ):
        assert main(["run", "--query", query(tmp_path, QUERY.replace("accel > 8", condition)), *source]) == 1
        error = capsys.readouterr().err
        assert error.startswith(f"{code} CarSensors ({tmp_path / 'cars.parquet'}): attribute ")
        assert "query.tps:2:13" in error
        assert hint in error.split("hint")[1]
    named = [*source, "--schema", "car bigint, time timestamp, speed double, accel double, big bigint"]
    assert main(["run", "--query", query(tmp_path, QUERY.replace("accel > 8", "big >= 1 AND big < 5")), *named]) == 0
    assert "1,1970-01-01T00:00:01+00:00,4," in capsys.readouterr().out


def test_row_patterns_are_queries(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "ticks.csv").write_text("symbol,time,price\na,0,5\na,1,4\na,2,3\na,3,6\nb,1,2\n")
    clause = """FROM Ticks MATCH_RECOGNIZE (
        PARTITION BY symbol ORDER BY time
        MEASURES A.price AS top, B.price AS bottom
        PATTERN (A B+ C) WITHIN 5
        DEFINE B AS B.price < PREV(B.price), C AS C.price > B.price
    )"""
    given = ["--query", query(tmp_path, clause), "--schema", "symbol string, time bigint, price bigint"]
    files = ["--input", f"Ticks={tmp_path / 'ticks.csv'}"]
    assert main(["check", *given]) == 0
    assert capsys.readouterr().out.endswith("is valid\n")
    assert main(["run", *given, *files]) == 0
    assert capsys.readouterr().out == "symbol,top,bottom,first,last,detected\na,5,3,0,3,3\n"
    assert main(["timeline", *given, *files, "--out", str(tmp_path / "drawn.svg")]) != 0
    assert "TG114" in capsys.readouterr().err


def test_errors_show_the_query_or_no_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(table(pa.int64()), tmp_path / "cars.parquet")
    given = ["run", "--query", query(tmp_path), "--input", f"CarSensors={tmp_path / 'cars.parquet'}"]
    assert main(given) == 1
    assert "it could be time\n" in capsys.readouterr().err  # and not car, by which it is partitioned
    assert main([*given, "--time", "tim", "--unit", "time=s"]) == 1
    assert "query.tps:1:6   FROM CarSensors" in capsys.readouterr().err
    assert main([*given, "--time", "time", "--unit", "time=s", "--close-open", "3"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("TG417")
    assert ".py:" not in error


def test_a_warning_names_the_file_of_the_query(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = "FROM CarSensors\nDEFINE A AS speed > 5, B AS accel > 5\nPATTERN A finishes B WITHIN 5m"
    command = ["check", "--query", query(tmp_path, text), "--schema", "time timestamp, speed double, accel double"]
    with pytest.warns(tg.AmbiguousRelationWarning) as caught:
        assert main(command) == 0
    assert [(Path(one.filename).name, one.lineno) for one in caught] == [("query.tps", 3)]


def test_a_python_file_is_no_query(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "queries.py").write_text("from __future__ import annotations\nimport tidegate as tg\n")
    assert main(["explain", "--query", str(tmp_path / "queries.py"), "--schema", "t timestamp"]) == 1
    told = capsys.readouterr()
    assert "queries.py is a Python file: name it without --query" in told.out + told.err


def test_an_input_may_be_a_pattern_of_names(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "out").mkdir()
    pq.write_table(table(pa.timestamp("us", "UTC")), tmp_path / "out" / "cars-1.parquet")
    (tmp_path / "out" / "read.me").touch()
    given = ["run", "--query", query(tmp_path), "--input", f"CarSensors={tmp_path}/out/cars-*.parquet"]
    assert main(given) == 0
    assert capsys.readouterr().err == "1 result\n"
    assert main([*given, "--out", str(tmp_path / "out")]) == 1
    assert "TG409" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("path", "code"), [("CarSensors=nowhere", "TG413"), ("CarSensors", "TG401"), ("Cars=cars.parquet", "TG173")]
)
def test_inputs_that_are_none(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, path: str, code: str
) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(table(pa.timestamp("us", "UTC")), "cars.parquet")
    assert main(["run", "--query", query(tmp_path), "--input", path]) == 1
    assert code in capsys.readouterr().err


def test_what_comes_first_of_two_events_is_said_in_words_of_the_query(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = table(pa.timestamp("us", "UTC"))
    pq.write_table(pa.concat_tables([made, made.slice(2, 1)]), tmp_path / "cars.parquet")
    assert main(["run", "--query", query(tmp_path), "--input", f"CarSensors={tmp_path / 'cars.parquet'}"]) == 1
    error = capsys.readouterr().err
    assert error.startswith("TG304")
    assert "ORDER BY time, attribute" in error
    assert "partition_by" not in error
