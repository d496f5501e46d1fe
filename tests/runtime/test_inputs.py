"""Rows on their way into files: a value keeps its meaning, also in a column of several types."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.algebra.schema import Attribute
from tidegate.algebra.types import BIGINT, DATE, DOUBLE, decimal
from tidegate.runtime.connectors.sources import Files
from tidegate.runtime.ingest.inputs import read_file
from tidegate.runtime.ingest.raw_rows import raw
from tidegate.runtime.ingest.stored_rows import input_table, read_stored
from tidegate.runtime.ingest.validation import hold_column, validate
from tidegate.runtime.ingest.values import held_value

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
            raw(read_file(str(tmp_path / f"rows.{format_}"), format_, S._node.schema).rows, S._node.schema, absent="d")
        assert raised.value.code == "TG312"


def test_columns_beyond_the_schema_may_be_there_twice(tmp_path: Path) -> None:
    (tmp_path / "rows.csv").write_text("t,d,i,x,x\n2026-03-02T12:00Z,2026-03-02,1,1,1\nbroken\n")
    checked = validate(read_file(str(tmp_path / "rows.csv"), "csv", S._node.schema).rows, S._node.schema)
    assert (checked.accepted.num_rows, checked.rejected.column("position").unique().to_pylist()) == (1, [1])


def test_a_number_in_json_that_no_type_holds_is_one_malformed_value(tmp_path: Path) -> None:
    """Python's reader of JSON fails at more than 4,300 digits, and at exponents of 20: the line is a row all the
    same.
    """
    stream = tg.stream("S", "t timestamp, x double, i bigint", progress="t")
    numbers = [("1.0", "1e3"), ("1e99999999999999999999", "1"), ("1", "9" * 5000), ("0.5", "9007199254740993.0")]
    lines = [f'{{"t": "2026-03-02T12:00Z", "x": {x}, "i": {i}}}' for x, i in numbers]
    (tmp_path / "rows.json").write_text("\n".join([*lines, '{"t": 1e99999999999999999999, "i": ', ""]))
    checked = validate(read_file(str(tmp_path / "rows.json"), "json", stream._node.schema).rows, stream._node.schema)
    assert checked.accepted.select(["x", "i"]).to_pylist() == [{"x": 1.0, "i": 1000}, {"x": 0.5, "i": 2**53 + 1}]
    rejected = [(row["position"], row["attribute"], row["reason"]) for row in checked.rejected.to_pylist()]
    assert rejected == [(1, "x", "out of range"), (2, "i", "out of range"), (4, "t", "unparseable")]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
def test_numbers_as_text_are_not_read_one_by_one(type_: pa.DataType, monkeypatch: pytest.MonkeyPatch) -> None:
    looked: list[str] = []

    def look(value: Any, of: Any) -> Any:
        looked.append(value)
        return held_value(value, of)

    monkeypatch.setattr("tidegate.runtime.ingest.validation.held_value", look)
    whole = pa.array([text for n in range(1000) for text in (f"{n}", f"-{n}.0", f"+{n}.", None)], type_)
    broken = pa.array([f"{n}.{n % 100:02}" for n in range(1000)], type_)
    for column, of in [
        (whole, BIGINT),
        (whole, DOUBLE),
        (whole, decimal(9, 2)),
        (broken, DOUBLE),
        (broken, decimal(9, 2)),
    ]:
        assert not hold_column(column, Attribute("a", of))[1]
    assert looked == []
    values, failed = hold_column(pa.array(["many", "1e2", "inf", "many", "7"], type_), Attribute("a", BIGINT))
    assert (values.to_pylist(), failed) == (
        [None, 100, None, None, 7],
        {0: "unparseable", 2: "out of range", 3: "unparseable"},
    )
    assert sorted(looked) == ["1e2", "inf", "many"]


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string(), pa.string_view()])
def test_each_date_as_text_is_read_once(type_: pa.DataType) -> None:
    texts = pa.array(["2026-03-02", None, "2.3.2026", " 2026-03-03 ", "1969-12-31", "2.3.2026"], type_)
    values, failed = hold_column(texts, Attribute("a", DATE))
    assert (values.to_pylist(), failed) == (
        [20514, None, None, 20515, -1, None],
        {2: "unparseable", 5: "unparseable"},
    )
    days = pa.array(["2026-03-02"] * 1000, type_)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate.runtime.ingest.validation._objects", None)  # of single values
        assert hold_column(days, Attribute("a", DATE))[0].to_pylist() == [20514] * 1000


def test_what_is_being_written_is_left_out(tmp_path: Path) -> None:
    for name in (
        "a.csv",
        ".a.csv",
        "_SUCCESS",
        "b.csv._COPYING_",
        "_temporary/0/c.csv",
        "day/_a.csv",
        "day/d=1/b_.csv",
        "_day=1/c.csv",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    source = Files(str(tmp_path), "csv")
    found = {file.path for file in source.found()}
    assert found == {str(tmp_path / name) for name in ("a.csv", "day/d=1/b_.csv")}
    there = [str(path) for path in tmp_path.rglob("*") if path.is_file()]
    assert {path for path in there if source.takes(path)} == found
