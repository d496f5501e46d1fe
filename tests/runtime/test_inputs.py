"""Rows on their way into files: a value keeps its meaning, also in a column of several types."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.runtime.inputs import read_file
from tidegate.runtime.raw_rows import raw
from tidegate.runtime.sources import Files
from tidegate.runtime.stored_rows import input_table, read_stored
from tidegate.runtime.validation import validate

S = tg.stream("S", "t timestamp, d date, i bigint", progress="t")
NOON = dt.datetime(2026, 3, 2, 12, tzinfo=dt.UTC)
FINE = {"t": NOON, "d": NOON.date(), "i": 1}


@pytest.mark.parametrize(
    "values", [{"i": True}, {"i": 1.5}, {"i": 2**70}, {"t": 3.5}, {"t": 3}, {"d": NOON}, {"t": True}, {"i": "one"}]
)
def test_what_is_malformed_stays_malformed(values: dict[str, Any]) -> None:
    schema = S._node.schema
    rows = [FINE, FINE | values, FINE]
    assert validate(rows, schema).rejected.column("position").to_pylist() == [1]
    assert validate(read_stored(input_table(rows, schema)), schema).rejected.column("position").to_pylist() == [1]


def test_what_is_fine_stays_fine() -> None:
    schema = S._node.schema
    rows = [FINE, FINE | {"t": "2026-03-02T12:00Z", "i": 2.0}, FINE | {"i": None}, FINE | {"d": "2026-03-02"}]
    assert validate(read_stored(input_table(rows, schema)), schema).accepted == validate(rows, schema).accepted


def test_a_column_twice_is_said_whatever_else_a_file_has(tmp_path: Path) -> None:
    instants = pa.array([NOON.replace(tzinfo=None)], pa.timestamp("us"))
    table = pa.Table.from_arrays([instants, instants, pa.array([1])], names=["t", "t", "i"])
    pq.write_table(table, tmp_path / "rows.parquet", use_deprecated_int96_timestamps=True)
    (tmp_path / "rows.csv").write_text("t,t,i\n2026-03-02T12:00Z,2026-03-02T12:00Z,1\nbroken\n")
    for format_ in ("parquet", "csv"):
        with pytest.raises(tg.QueryError, match="'t' more than once") as raised:
            raw(read_file(str(tmp_path / f"rows.{format_}"), format_, S._node.schema), S._node.schema, absent="d")
        assert raised.value.code == "TG312"


def test_columns_beyond_the_schema_may_be_there_twice(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("t,d,i,x,x\n2026-03-02T12:00Z,2026-03-02,1,1,1\nbroken\n")
    checked = validate(read_file(str(tmp_path / "rows.csv"), "csv", S._node.schema), S._node.schema)
    assert (checked.accepted.num_rows, checked.rejected.column("position").unique().to_pylist()) == (1, [1])


def test_what_is_being_written_is_left_out(tmp_path: Path) -> None:
    for name in (
        "a.csv",
        ".a.csv",
        "_SUCCESS",
        "b.csv._COPYING_",
        "_temporary/0/c.csv",
        "day/_a.csv",
        "day/d=1/b_.csv",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    source = Files(str(tmp_path), "csv")
    found = {file.path for file in source.found()}
    assert found == {str(tmp_path / name) for name in ("a.csv", "day/d=1/b_.csv")}
    there = [str(path) for path in tmp_path.rglob("*") if path.is_file()]
    assert {path for path in there if source.takes(path)} == found
