"""`tidegate run`: a query as text over files."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.runtime.cli import main

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
    assert printed.err == "1 results\n"


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
    lines = ["car,time,speed,accel", *(",".join(map(str, row.values())) for row in ROWS), "1,x,2,3"]
    (tmp_path / "cars.csv").write_text("\n".join(lines) + "\n")
    ordered = QUERY.replace("PARTITION BY car", "ORDER BY time PARTITION BY car")
    given = ["run", "--query", query(tmp_path, ordered), "--input", f"CarSensors={tmp_path / 'cars.csv'}"]
    assert main(given) == 1
    assert "TG177" in capsys.readouterr().err
    schema = "car bigint, time bigint, speed double, accel double"
    assert main([*given, "--schema", schema, "--unit", "time=s"]) == 0
    printed = capsys.readouterr()
    assert printed.out == "car,began,n,detected\n1,1,4,5\n"
    assert "1 row rejected" in printed.err


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
