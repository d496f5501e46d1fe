"""Columns between users and engines: what is accepted, what is malformed and why, and the way out again."""

from __future__ import annotations

import datetime as dt
import itertools
import json
import math
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    MAX_INSTANT,
    STRING,
    TIMESTAMP,
    DataType,
    decimal,
)
from tidegate.runtime.eval.columns import to_user_table, user_arrow_schema
from tidegate.runtime.ingest.inputs import read_file
from tidegate.runtime.ingest.raw_rows import CheckedColumn, raw
from tidegate.runtime.ingest.rejected_text import row_texts
from tidegate.runtime.ingest.stored_rows import input_table, read_stored
from tidegate.runtime.ingest.validation import hold_column, validate
from tidegate.runtime.ingest.values import MalformedValue, held_value

NOON = dt.datetime(2013, 1, 1, 12, tzinfo=dt.UTC)
NOON_TICKS = 1_357_041_600_000_000


def schema(**types: DataType) -> Schema:
    return Schema(tuple(Attribute(name, type_) for name, type_ in types.items()))


@pytest.mark.parametrize(
    ("value", "type_", "held"),
    [
        (True, BOOLEAN, True),
        (" TRUE ", BOOLEAN, True),
        ("yes", BOOLEAN, "unparseable"),
        (1, BOOLEAN, "wrong type"),
        ("7", BIGINT, 7),
        (7.0, BIGINT, 7),
        (7.5, BIGINT, "inexact"),
        (math.nan, BIGINT, "out of range"),
        (2**63, BIGINT, "out of range"),
        ("-9223372036854775808", BIGINT, -(2**63)),
        ("9223372036854775808", BIGINT, "out of range"),
        ("1_000", BIGINT, "unparseable"),
        ("1.0", BIGINT, 1),
        (" +5. ", BIGINT, 5),
        (".0", BIGINT, 0),
        ("1e3", BIGINT, 1000),
        ("12.5E1", BIGINT, 125),
        ("1.5", BIGINT, "inexact"),
        ("1e-1", BIGINT, "inexact"),
        ("0.0e-7", BIGINT, 0),
        ("9007199254740993.0", BIGINT, 2**53 + 1),
        ("9223372036854775807.000", BIGINT, 2**63 - 1),
        ("9.223372036854775808e18", BIGINT, "out of range"),
        ("0" * 5000 + "7", BIGINT, 7),
        ("9" * 5000, BIGINT, "out of range"),
        ("1" + "0" * 30 + "e-30", BIGINT, 1),
        ("inf", BIGINT, "out of range"),
        ("nan", BIGINT, "out of range"),
        ("1e99999999999999999999", BIGINT, "out of range"),
        ("1e-99999999999999999999", BIGINT, "inexact"),
        ("0.0e99999999999999999999", BIGINT, 0),
        ("\u0665", BIGINT, "unparseable"),
        ("0x10", BIGINT, "unparseable"),
        ("1,5", BIGINT, "unparseable"),
        ("", BIGINT, "unparseable"),
        (".", BIGINT, "unparseable"),
        ("+5", DOUBLE, 5.0),
        ("5.", DOUBLE, 5.0),
        ("\u0665", DOUBLE, "unparseable"),
        ("1_0", DOUBLE, "unparseable"),
        ("1e99999999999999999999", DOUBLE, "out of range"),
        ("1e-99999999999999999999", DOUBLE, 0.0),
        (True, BIGINT, "wrong type"),
        ("1e3", DOUBLE, 1000.0),
        ("-inf", DOUBLE, -math.inf),
        ("one", DOUBLE, "unparseable"),
        (10**400, DOUBLE, "out of range"),
        (Decimal("1e400"), DOUBLE, "out of range"),
        (Decimal("-Infinity"), DOUBLE, -math.inf),
        ("-1e400", DOUBLE, "out of range"),
        ("+Infinity", DOUBLE, math.inf),
        ("text", STRING, "text"),
        (5, STRING, "wrong type"),
        ("\ud800", STRING, "unparseable"),
        (NOON, TIMESTAMP, NOON_TICKS),
        (NOON.replace(tzinfo=None), TIMESTAMP, NOON_TICKS),
        ("2013-01-01T13:00:00+01:00", TIMESTAMP, NOON_TICKS),
        ("2013-01-01 12:00:00", TIMESTAMP, NOON_TICKS),
        ("2013-01-32", TIMESTAMP, "unparseable"),
        (NOON_TICKS, TIMESTAMP, "wrong type"),
        (dt.date(1970, 1, 3), DATE, 2),
        ("1969-12-31", DATE, -1),
        (NOON, DATE, "inexact"),
        ("90s", DURATION, 90_000_000),
        (dt.timedelta(microseconds=-1), DURATION, -1),
        ("soon", DURATION, "unparseable"),
        ("12.5", decimal(5, 2), 1250),
        (Decimal("-12.50"), decimal(5, 2), -1250),
        (0.1, decimal(5, 2), 10),
        ("12.505", decimal(5, 2), "inexact"),
        (1000, decimal(5, 2), "out of range"),
        ("", decimal(5, 2), "unparseable"),
        ("1e-1000000", decimal(5, 2), "inexact"),
        ("1e2", decimal(5, 2), 10000),
        ("+.5", decimal(5, 2), 50),
        ("1_0", decimal(5, 2), "unparseable"),
        ("\u0665", decimal(5, 2), "unparseable"),
        ("0e50", decimal(5, 2), 0),
        ("1e99999999999999999999", decimal(5, 2), "out of range"),
        ("NaN", decimal(5, 2), "out of range"),
        ("1.50" + "0" * 5000, decimal(5, 2), 150),
        ("0." + "1" * 5000, decimal(5, 2), "inexact"),
        ("0.00", decimal(5, 2), 0),
        (Decimal("120"), decimal(5, 2), 12000),
        (Decimal("1e999999999"), BIGINT, "out of range"),
        (Decimal("1e3"), BIGINT, 1000),
        ("9" * 5000 + "s", DURATION, "unparseable"),
        (np.array([1]), BIGINT, "wrong type"),
        (np.int64(7), BIGINT, 7),
        (pd.Series([1, 2]), DOUBLE, "wrong type"),
        (pd.NaT, TIMESTAMP, None),
        (pd.NaT, DATE, None),
        (np.datetime64("NaT"), TIMESTAMP, None),
    ],
)
def test_each_value_is_held_or_malformed_for_a_reason(value: object, type_: DataType, held: object) -> None:
    try:
        found: object = held_value(value, type_)
    except MalformedValue as error:
        found = error.reason
    assert found == held
    assert type(found) is type(held)


def test_a_row_is_rejected_once_with_its_first_bad_attribute() -> None:
    rows = [("1", 2.0), (None, None), ("x", "y"), (3, "y"), (4, None)]
    result = validate(rows, Schema((Attribute("a", BIGINT, nullable=False), Attribute("b", DOUBLE))))
    assert result.accepted.to_pylist() == [{"a": 1, "b": 2.0}, {"a": 4, "b": None}]
    assert result.positions.to_pylist() == [0, 4]
    assert result.rejected.to_pylist() == [
        {"position": 1, "attribute": "a", "reason": "null", "value": None},
        {"position": 2, "attribute": "a", "reason": "unparseable", "value": "x"},
        {"position": 3, "attribute": "b", "reason": "unparseable", "value": "y"},
    ]


class Untold:
    """What has no text."""

    def __str__(self) -> str:
        raise RuntimeError("none")

    __repr__ = __str__


def endless() -> list[object]:
    found: list[object] = []
    found.append(found)
    return found


def deep() -> list[object]:
    found: list[object] = []
    for _ in range(100_000):
        found = [found]
    return found


ODD: dict[str, object] = {
    "a long integer": 10**5000,
    "a key that is a tuple": {(1, 2): 3},
    "an endless list": endless(),
    "a deep list": deep(),
    "no text": Untold(),
    "an array": np.array([1, 2]),
    "half a surrogate pair as a key": {"\ud800": 1},
}


@pytest.mark.parametrize("value", ODD.values(), ids=ODD)
def test_rejected_values_have_a_text_whatever_they_are(value: object) -> None:
    (rejected,) = validate([(1,), (value,)], Schema((Attribute("a", BIGINT),))).rejected.to_pylist()
    assert rejected["position"] == 1
    assert isinstance(rejected["value"], str)
    assert len(rejected["value"]) <= 200
    stored = read_stored(input_table([{"a": value}], Schema((Attribute("a", BIGINT),))))
    assert validate(stored, Schema((Attribute("a", BIGINT),))).rejected.to_pylist()[0]["value"] == rejected["value"]
    ((text, _),) = row_texts({"a": [value], "b": ["beside"]}, pl.Series([0]))
    assert json.loads(text)["b"] == "beside"


@pytest.mark.parametrize("name", ["an endless list", "a deep list", "an array"])
def test_a_frame_with_values_that_contain_others_has_rejected_rows(name: str) -> None:
    frame = pd.DataFrame({"a": pd.Series([1, ODD[name], None], dtype=object)})
    result = validate(frame, Schema((Attribute("a", BIGINT),)))
    assert result.rejected.column("position").to_pylist() == [1]
    assert result.accepted.column("a").to_pylist() == [1, None]


def not_utf8(*values: bytes | None, type_: pa.DataType | None = None) -> pa.Array:
    """A column of text that is none."""
    found = pa.array(values, pa.large_binary() if type_ == pa.large_string() else pa.binary())
    return found.view(type_ or pa.string())


@pytest.mark.parametrize("type_", [pa.string(), pa.large_string()])
def test_rows_whose_text_is_not_utf8_are_rejected_and_the_others_stay(type_: pa.DataType) -> None:
    column = not_utf8(b"caf\xe9", b"fine", None, b"7", type_=type_)
    wanted = {STRING: ["fine", None, "7"], BIGINT: [None, 7]}
    for attribute_type, held in wanted.items():
        result = validate(pa.table({"a": column}), Schema((Attribute("a", attribute_type),)))
        assert result.accepted.column("a").to_pylist() == held
        assert result.rejected.to_pylist()[0] == {
            "position": 0,
            "attribute": "a",
            "reason": "unparseable",
            "value": "caf\\xe9",
        }


@pytest.mark.parametrize("type_", [BIGINT, STRING, DATE, TIMESTAMP], ids=str)
def test_a_zone_that_nobody_knows_breaks_nothing(type_: DataType) -> None:
    """An instant is the same in every zone, and no value of another type."""
    column = pa.array([1, None], pa.timestamp("us", tz="Mars/Phobos"))
    result = validate(pa.table({"a": column}), Schema((Attribute("a", type_),)))
    if type_ == TIMESTAMP:
        assert result.accepted.column("a").to_pylist() == [1, None]
    else:
        assert result.rejected.column("value").to_pylist() == ["1"]
    ((text, _),) = row_texts({"a": column}, pl.Series([0]))
    assert json.loads(text) == {"a": 1}


def test_rows_are_told_as_text_one_by_one_where_a_value_of_their_column_has_none() -> None:
    """Also where there are more than are taken together, in any order, and where no column is known."""
    numbers = list(range(600))
    columns = {"n": pa.array(numbers), "t": not_utf8(*(b"\xe9" if n == 300 else b"fine" for n in numbers))}
    told = [json.loads(text) for text, _ in row_texts(columns, pl.Series(numbers[::-1]))]
    assert [row["n"] for row in told] == numbers[::-1]
    assert {row["n"] for row in told if row["t"] != "fine"} == {300}
    assert [*row_texts({}, pl.Series([4, 5]))] == [("{}", None)] * 2


def test_instants_beyond_the_guard_are_out_of_range() -> None:
    ticks = pa.array([MAX_INSTANT, MAX_INSTANT + 1, -MAX_INSTANT, -MAX_INSTANT - 1])
    for type_, column in ((TIMESTAMP, ticks.cast(pa.timestamp("us"))), (BIGINT, ticks)):
        result = validate(pa.table({"t": column}), Schema((Attribute("t", type_, nullable=False, temporal=True),)))
        assert result.positions.to_pylist() == [0, 2]
        assert result.rejected.column("reason").to_pylist() == ["out of range"] * 2
    plain = validate(pa.table({"t": ticks}), schema(t=BIGINT))
    assert plain.rejected.num_rows == 0


def test_a_year_before_the_first_is_unparseable_whatever_stands_beside_it() -> None:
    for beside in ("2026-03-02", "2026-03-02T12:00Z", "soon"):
        result = validate(pa.table({"t": ["0000-12-31", "0001-01-01", beside]}), schema(t=TIMESTAMP))
        assert result.positions.to_pylist()[0] == 1
        assert result.rejected.to_pylist()[0]["position"] == 0
        assert result.rejected.to_pylist()[0]["reason"] == "unparseable"


@pytest.mark.parametrize("form", ["arrow", "batch", "pandas", "polars", "lazy", "mappings", "tuples", "columns"])
def test_every_form_of_input_gives_the_same_held_rows(form: str) -> None:
    wanted = schema(t=TIMESTAMP, n=BIGINT, s=STRING, d=DATE)
    values: dict[str, list[Any]] = {
        "t": [NOON, NOON + dt.timedelta(seconds=1)],
        "n": [1, None],
        "s": ["ä", None],
        "d": [dt.date(2013, 1, 1), None],
    }
    table = pa.table({"unused": [0, 0], **{name: values[name] for name in reversed(values)}})
    data: object
    match form:
        case "arrow":
            data = table
        case "batch":
            data = table.to_batches()[0]
        case "pandas":
            data = table.to_pandas()
        case "polars":
            data = pl.DataFrame(table)
        case "lazy":
            data = pl.DataFrame(table).lazy()
        case "mappings":
            data = table.to_pylist()
        case "tuples":
            data = list(zip(*values.values(), strict=True))
        case _:
            data = values
    result = validate(data, wanted)
    assert result.rejected.num_rows == 0
    assert result.accepted.to_pylist() == [
        {"t": NOON_TICKS, "n": 1, "s": "ä", "d": 15706},
        {"t": NOON_TICKS + 1_000_000, "n": None, "s": None, "d": None},
    ]


def test_pandas_gaps_are_missing_and_mixed_columns_are_judged_by_value() -> None:
    frame = pd.DataFrame({"n": [1.0, float("nan"), 2.5], "m": [1, "x", None]})
    result = validate(frame, schema(n=BIGINT, m=BIGINT))
    assert result.accepted.to_pylist() == [{"n": 1, "m": 1}]
    assert result.rejected.select(["position", "attribute", "reason"]).to_pylist() == [
        {"position": 1, "attribute": "m", "reason": "unparseable"},
        {"position": 2, "attribute": "n", "reason": "inexact"},
    ]


def test_calls_that_make_no_sense_say_what_is_missing() -> None:
    with pytest.raises(QueryError, match="lacks 'b'"):
        validate(pa.table({"a": [1]}), schema(a=BIGINT, b=BIGINT))
    with pytest.raises(QueryError, match="int is no table of rows"):
        validate(7, schema(a=BIGINT))
    with pytest.raises(QueryError, match="row 0 is no row"):
        validate([(1, 2)], schema(a=BIGINT))


ARROW_TYPES = [
    pa.int8(),
    pa.int64(),
    pa.uint64(),
    pa.float32(),
    pa.float64(),
    pa.string(),
    pa.large_string(),
    pa.bool_(),
    pa.timestamp("s"),
    pa.timestamp("ms"),
    pa.timestamp("us", "UTC"),
    pa.date32(),
    pa.duration("ms"),
    pa.duration("us"),
    pa.decimal128(7, 2),
    pa.decimal128(20, 3),
]
TYPES = [BOOLEAN, BIGINT, DOUBLE, STRING, TIMESTAMP, DATE, DURATION, decimal(5, 2), decimal(18, 3)]


def python_values(type_: pa.DataType) -> st.SearchStrategy[object]:
    if pa.types.is_integer(type_):
        low, high = (
            (0, 2**type_.bit_width - 1)
            if type_ == pa.uint64()
            else (-(2 ** (type_.bit_width - 1)), 2 ** (type_.bit_width - 1) - 1)
        )
        return st.integers(low, high) | st.integers(0, 100)
    if pa.types.is_floating(type_):
        return st.floats(width=32) | st.integers(-5, 5).map(float)
    if pa.types.is_boolean(type_):
        return st.booleans()
    if pa.types.is_timestamp(type_):
        moments = st.datetimes(dt.datetime(1800, 1, 1), dt.datetime(2200, 1, 1)).map(lambda v: v.replace(microsecond=0))
        return moments.map(lambda v: v.replace(tzinfo=dt.UTC)) if type_.tz else moments
    if pa.types.is_date(type_):
        return st.dates()
    if pa.types.is_duration(type_):
        return st.timedeltas(dt.timedelta(days=-9000), dt.timedelta(days=9000)).map(
            lambda v: v - v % dt.timedelta(milliseconds=1)
        )
    if pa.types.is_decimal(type_):
        return st.decimals(-99999, 99999, places=type_.scale)
    texts = [
        "1",
        " -2 ",
        "1.5",
        "true",
        "x",
        "",
        "2013-01-01",
        "2013-01-01T00:00:01Z",
        "2013-01-01 05:00:00.25",
        "3s",
        "1e5",
    ]
    return st.sampled_from(texts) | number_texts()


@st.composite
def number_texts(draw: st.DrawFn) -> str:
    """Numbers as they may be written, and what nearly is one: of few digits, or of about as many as a type holds."""
    digits = st.text("0123456789", max_size=3) | st.sampled_from(
        ["9223372036854775807", "9223372036854775808", "9007199254740993", "0" * 20 + "1", "99999", "100000", "500"]
    )
    text = draw(st.sampled_from(["", "", "+", "-", "+-"])) + draw(digits)
    text += draw(st.sampled_from(["", "", ".", ".0", ".000", ".5", ".25", ".250", ".2505", ".1" + "0" * 40, "._5"]))
    text += draw(st.sampled_from(["", "", "", "e2", "E-1", "e+0", "e400", "e", "e" + "9" * 20, "_0"]))
    text = draw(st.sampled_from([text, text, text, "inf", "-Infinity", "nan", "\u0665", "0x1F", "1,5"]))
    around = st.sampled_from(["", "", "", " ", "\t", "\x1f", "\xa0", "\n"])
    return draw(around) + text + draw(around)


@given(st.data())
@settings(max_examples=400, deadline=None)
def test_whole_columns_are_converted_as_their_values_are(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from(ARROW_TYPES))
    type_ = data.draw(st.sampled_from(TYPES))
    values = data.draw(st.lists(st.none() | python_values(source), max_size=6))
    attribute = Attribute("a", type_, nullable=data.draw(st.booleans()))
    column = pa.array(values, source)
    if data.draw(st.booleans()):
        column = pa.concat_arrays([pa.array([None], source), column]).slice(1)
    fast = hold_column(column, attribute)
    slow = hold_column(column.to_pylist(), attribute)
    assert repr(fast[0].to_pylist()) == repr(slow[0].to_pylist())  # by text: NaN equals itself there
    assert fast[1] == slow[1]


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_what_leaves_as_users_see_it_comes_back_the_same(data: st.DataObject) -> None:
    held_values = {
        "t": (TIMESTAMP, st.integers(-MAX_INSTANT, MAX_INSTANT)),
        "d": (DATE, st.integers(-700_000, 2_900_000)),
        "u": (DURATION, st.integers(-(2**63), 2**63 - 1)),
        "p": (decimal(18, 4), st.integers(-(10**18) + 1, 10**18 - 1)),
        "q": (decimal(3, 3), st.integers(-999, 999)),
        "n": (BIGINT, st.integers(-(2**63), 2**63 - 1)),
        "x": (DOUBLE, st.floats(allow_nan=False)),
        "s": (STRING, st.text(max_size=5)),
        "b": (BOOLEAN, st.booleans()),
    }
    names = data.draw(st.lists(st.sampled_from(sorted(held_values)), unique=True, min_size=1))
    wanted = schema(**{name: held_values[name][0] for name in names})
    count = data.draw(st.integers(0, 5))
    columns = {
        name: pa.array(
            data.draw(st.lists(st.none() | held_values[name][1], min_size=count, max_size=count)),
            user_arrow_schema(wanted).field(name).type
            if held_values[name][0] in (STRING, BOOLEAN, DOUBLE)
            else pa.int64(),
        )
        for name in names
    }
    held = pa.table(columns)
    outside = to_user_table(held, wanted)
    assert outside.schema.equals(user_arrow_schema(wanted))
    back = validate(outside, wanted)
    assert back.rejected.num_rows == 0
    assert back.accepted.equals(held)


def test_rows_that_are_stored_first_are_judged_as_they_were_given(tmp_path: Path) -> None:
    declared = Schema(
        (
            Attribute("k", BIGINT),
            Attribute("d", DOUBLE),
            Attribute("s", STRING),
            Attribute("t", TIMESTAMP, nullable=False, temporal=True),
            Attribute("e", DURATION),
            Attribute("m", decimal(5, 2)),
        )
    )
    rows: list[tuple[object, ...]] = [
        (1, 1, "a", NOON, "90s", 1),
        (1.5, 0.5, "b", NOON, "90s", 1),
        (2**53 + 1, Decimal("1e400"), "c", NOON, "90s", 1),
        (True, 1, "d", NOON, "90s", 1),
        ("7", "2.5", 5, NOON.isoformat(), dt.timedelta(1), "2.25"),
        ("seven", 1, "f", None, 5, 1),
        (None, None, None, dt.date(2013, 1, 1), None, 0.125),
        (2**70, "-inf", object(), "9999-12-31T23:00-05:00", None, 1),
        (2**53 + 1, 3, None, "9999-12-31T23:00-05:00", 5, Decimal("1.5")),
    ]
    pq.write_table(input_table(rows, declared), tmp_path / "rows.parquet")
    stored, given = (
        validate(read_file(str(tmp_path / "rows.parquet"), "parquet", declared).rows, declared),
        validate(rows, declared),
    )
    assert stored.accepted.equals(given.accepted)
    assert stored.positions.equals(given.positions)
    assert [(r["position"], r["attribute"], r["reason"]) for r in stored.rejected.to_pylist()] == [
        (1, "k", "inexact"),
        (2, "d", "out of range"),
        (3, "k", "wrong type"),
        (4, "s", "wrong type"),
        (5, "k", "unparseable"),
        (6, "m", "inexact"),
        (7, "k", "out of range"),
    ]
    assert stored.rejected.drop_columns("value").equals(given.rejected.drop_columns("value"))
    assert stored.rejected.column("value").to_pylist()[:4] == ["1.5", "1E+400", "True", "5"]


@given(
    st.text("aä€😀¿", min_size=3, max_size=6).map(str.encode)
    | st.lists(st.sampled_from([b"a", b"\xc3", b"\xa4"])).map(b"".join),
    st.lists(st.integers(1, 12), min_size=1, max_size=4).map(sorted),
    st.sets(st.integers(0, 9), max_size=2),
    st.sampled_from([(pa.binary(), pa.string()), (pa.large_binary(), pa.large_string())]),
    st.tuples(st.integers(0, 2), st.integers(1, 6)),
)
@settings(max_examples=400)
def test_exactly_the_values_that_are_not_utf8_are_set_apart(
    text: bytes, cuts: list[int], missing: set[int], types: tuple[pa.DataType, pa.DataType], part: tuple[int, int]
) -> None:
    """Also where two of them make a character together."""
    pieces = [text[begin:end] for begin, end in itertools.pairwise([0, *cuts, 99])]
    values = [None if position in missing else piece for position, piece in enumerate(pieces)]
    first, count = part
    column = pa.array(values, types[0]).view(types[1]).slice(first, count)
    read = raw(pa.table({"s": column}), schema(s=STRING)).columns["s"]
    expected: list[str | None] = []
    broken = set()
    for position, value in enumerate(values[first : first + count]):
        try:
            expected.append(None if value is None else value.decode())
        except UnicodeDecodeError:
            expected.append(None)
            broken.add(position)
    found: Any = read.values if isinstance(read, CheckedColumn) else read
    assert set(read.malformed if isinstance(read, CheckedColumn) else ()) == broken
    assert found.to_pylist() == expected


def test_what_lies_behind_a_null_is_not_read_as_text() -> None:
    bits = pa.py_buffer(b"\x01")
    column = pa.Array.from_buffers(
        pa.string(), 2, [bits, pa.py_buffer(np.array([0, 1, 2], np.int32)), pa.py_buffer(b"a\xff")]
    )
    assert validate(pa.table({"s": column}), schema(s=STRING)).accepted.column("s").to_pylist() == ["a", None]
