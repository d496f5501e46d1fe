"""Rows on their way into files: a value keeps its meaning, also in a column of several types."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

import tidegate as tg
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
