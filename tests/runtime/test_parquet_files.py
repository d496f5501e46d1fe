"""Columns of Parquet files are the same whichever reader reads them."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tidegate.runtime.connectors.parquet_files import read_parquet

ROWS = 30_000


def column(type_: pa.DataType) -> pa.Array:
    """Values of a type with extremes and NULLs."""
    numbers = np.random.default_rng(7).integers(0, 100, ROWS)
    absent = numbers == 3
    if pa.types.is_boolean(type_):
        return pa.array(numbers > 50, mask=absent)
    if pa.types.is_floating(type_):
        values = numbers.astype(np.float64)
        values[:4] = np.nan, np.inf, -np.inf, -0.0
        return pa.array(values, mask=absent).cast(type_)
    if pa.types.is_string(type_):
        return pa.array([None if number == 3 else f"ä{number}" for number in numbers], type_)
    if pa.types.is_decimal(type_):
        return pa.array([None if number == 3 else Decimal(int(number)) for number in numbers], type_)
    small = pa.array(numbers, mask=absent)
    return small.cast(pa.int32()).cast(type_) if pa.types.is_date32(type_) else small.cast(type_)


TYPES = (
    pa.bool_(), pa.int8(), pa.int16(), pa.int32(), pa.int64(), pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(),
    pa.float32(), pa.float64(), pa.date32(), pa.string(), pa.large_string(), pa.decimal128(9, 2), pa.duration("us"),
    pa.timestamp("ms"), pa.timestamp("us"), pa.timestamp("ns"), pa.timestamp("us", "UTC"), pa.timestamp("ms", "Europe/Oslo"),
)  # fmt: skip


@pytest.mark.parametrize("compression", ["snappy", "zstd", "none"])
def test_every_type_is_as_arrow_reads_it(tmp_path: Path, compression: str) -> None:
    columns = {f"c{number}": column(type_) for number, type_ in enumerate(TYPES)}
    table = pa.table(columns)
    pq.write_table(table, tmp_path / "rows.parquet", compression=compression, row_group_size=7_000)
    wanted = [*columns, "not there"]
    found = read_parquet(str(tmp_path / "rows.parquet"), wanted)
    expected = pq.read_table(tmp_path / "rows.parquet")
    assert found.schema.equals(expected.schema)
    for name in columns:
        ours, theirs = found.column(name), expected.column(name)
        assert ours.is_valid().equals(theirs.is_valid()), name
        if pa.types.is_floating(ours.type):  # NaN equals nothing; -0.0 and 0.0 are told apart
            bits = [np.asarray(one.fill_null(0)).tobytes() for one in (ours, theirs)]
            assert bits[0] == bits[1]
        else:
            assert ours.equals(theirs), name
    assert read_parquet(str(tmp_path / "rows.parquet"), ["c2", "c12"]).column_names == ["c2", "c12"]


def test_most_columns_of_long_files_are_read_quickly(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the comparison above would compare Arrow with itself."""
    table = pa.table(
        {f"c{number}": column(type_) for number, type_ in enumerate((pa.int64(), pa.float64(), pa.bool_()))}
    )
    pq.write_table(table, tmp_path / "rows.parquet")

    def refuse(*_: object, **__: object) -> pa.Table:
        raise AssertionError("read by Arrow")

    monkeypatch.setattr(pq.ParquetFile, "read", refuse)
    assert read_parquet(str(tmp_path / "rows.parquet"), table.column_names).num_rows == ROWS
    with pytest.raises(AssertionError, match="read by Arrow"):
        read_parquet(str(tmp_path / "rows.parquet"), [])


def test_instants_of_96_bits_beside_quick_columns(tmp_path: Path) -> None:
    instants = [dt.datetime(2020, 1, 1) + dt.timedelta(seconds=second) for second in range(ROWS - 1)]
    table = pa.table({"t": pa.array([*instants, None], pa.timestamp("us")), "n": np.arange(ROWS)})
    pq.write_table(table, tmp_path / "rows.parquet", use_deprecated_int96_timestamps=True)
    assert read_parquet(str(tmp_path / "rows.parquet"), ["t", "n"]).equals(table)


@pytest.mark.parametrize("name", ["a*b[1]?.parquet", "key=3/part.parquet", "sp ace%20ä.parquet"])
def test_a_path_is_a_name_and_no_pattern(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True)
    table = pa.table({"n": np.arange(ROWS)})
    pq.write_table(table, path)
    pq.write_table(pa.table({"n": np.zeros(ROWS)}), tmp_path / "aXb1Y.parquet")
    assert read_parquet(str(path), ["n", "key"]).equals(table)


def test_what_polars_refuses_is_for_arrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    table = pa.table({"n": np.arange(ROWS)})
    pq.write_table(table, tmp_path / "rows.parquet")
    for fails in (OSError("no"), pl.exceptions.ComputeError("no")):

        def refuse(*_: object, error: Exception = fails, **__: object) -> object:
            raise error

        monkeypatch.setattr(pl, "read_parquet", refuse)
        assert read_parquet(str(tmp_path / "rows.parquet"), ["n"]).equals(table)


def test_a_damaged_file_is_arrows_error(tmp_path: Path) -> None:
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.table({"n": np.random.default_rng(1).integers(0, 1 << 60, ROWS)}), path)
    written = bytearray(path.read_bytes())
    written[4:200] = bytes(196)
    path.write_bytes(written)
    with pytest.raises((pa.ArrowException, OSError)):
        read_parquet(str(path), ["n"])


def test_zones_that_polars_does_not_know_are_for_arrow(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"n": np.arange(ROWS), "at": pa.array(np.arange(ROWS), pa.timestamp("us", "+05:30"))})
    pq.write_table(table, tmp_path / "rows.parquet")
    assert read_parquet(str(tmp_path / "rows.parquet"), ["n"]).equals(table.select(["n"]))
    assert "panic" not in capfd.readouterr().err


def test_a_file_that_is_replaced_meanwhile_is_read_as_it_was_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, original = tmp_path / "rows.parquet", pl.read_parquet
    table = pa.table({"n": np.zeros(ROWS, dtype=np.int64), "s": ["old"] * ROWS})
    pq.write_table(table, path)
    pq.write_table(pa.table({"n": np.ones(ROWS, dtype=np.int64), "s": ["new"] * ROWS}), tmp_path / "other")

    def replaced(*given: Any, **options: Any) -> Any:
        (tmp_path / "other").replace(path)
        return original(*given, **options)

    monkeypatch.setattr(pl, "read_parquet", replaced)
    assert read_parquet(str(path), ["n", "s"]).equals(table)
