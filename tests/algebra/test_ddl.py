"""Schemas from DDL text, Arrow and Spark's `StructType`."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.algebra.dsl.ddl import to_schema, to_type
from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.types import BIGINT, BOOLEAN, DATE, DOUBLE, DURATION, STRING, TIMESTAMP, decimal


@pytest.mark.parametrize(
    "schema",
    [
        "time timestamp, `a.b` bigint",
        pa.schema([("time", pa.timestamp("us")), ("a.b", pa.int64())]),
        Schema((Attribute("time", TIMESTAMP), Attribute("a.b", BIGINT))),
    ],
    ids=["ddl", "arrow", "schema"],
)
def test_a_dot_in_a_name_is_refused_wherever_a_stream_is_defined(schema: object) -> None:
    defines: list[Callable[[], object]] = [
        lambda: tg.stream("S", schema, progress="time"),
        lambda: tg.table("S", schema),
        lambda: tg.result("S", schema, progress="time"),
    ]
    for define in defines:
        with pytest.raises(QueryError) as raised:
            define()
        assert raised.value.code == "TG103"
        assert "'a.b'" in raised.value.message
        assert "a_b" in raised.value.hint
        assert raised.value.site is not None
        assert raised.value.site.line == define.__code__.co_firstlineno


def test_the_schema_of_a_polars_frame() -> None:
    frame = pl.DataFrame(
        schema={
            "k": pl.Int32,
            "s": pl.String,
            "x": pl.Float64,
            "t": pl.Datetime("ns", "UTC"),
            "d": pl.Date,
            "w": pl.Duration,
        }
    )
    assert to_schema(frame.schema) == to_schema("k int, s string, x double, t timestamp, d date, w interval")
    with pytest.raises(QueryError, match="TG111 a DataFrame is no schema") as caught:
        to_schema(frame)
    assert "frame.schema" in caught.value.hint


@pytest.mark.parametrize("text", ["k int, Temp (C) double", "k int, Room temp double", "k int, the room temp string"])
def test_a_name_of_several_words_is_told_how_it_is_written(text: str) -> None:
    with pytest.raises(QueryError, match="TG111") as caught:
        to_schema(text)
    assert "backticks" in caught.value.hint


def test_ddl_text_with_all_that_spark_allows() -> None:
    text = """
        id INT NOT NULL, `my name` string COMMENT 'who, or what', price decimal(10, 2), flag: boolean,
        seen timestamp NOT NULL, changed timestamp_ntz, day date, took interval day to second, code varchar(3)
    """
    assert to_schema(text) == Schema(
        (
            Attribute("id", BIGINT, nullable=False),
            Attribute("my name", STRING),
            Attribute("price", decimal(10, 2)),
            Attribute("flag", BOOLEAN),
            Attribute("seen", TIMESTAMP, nullable=False, temporal=True),
            Attribute("changed", TIMESTAMP),
            Attribute("day", DATE),
            Attribute("took", DURATION),
            Attribute("code", STRING),
        )
    )


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        *((name, BIGINT) for name in ("tinyint", "smallint", "int", "integer", "bigint", "LONG", "short", "byte")),
        *((name, DOUBLE) for name in ("float", "real", "double")),
        ("decimal", decimal(10, 0)),
        ("numeric(18)", decimal(18, 0)),
        ("char(7)", STRING),
        ("timestamp_ltz", TIMESTAMP),
        ("timestamp with local time zone", TIMESTAMP),
        ("double precision", DOUBLE),
        ("string collate UTF8_LCASE", STRING),
        ("interval", DURATION),
        ("interval hour(2) to second(6)", DURATION),
        ("duration[us]", DURATION),
    ],
)
def test_types_widen_to_what_engines_hold(text: str, type_: object) -> None:
    assert to_type(text) == type_


def test_arrow_schema() -> None:
    schema = pa.schema(
        [
            pa.field("id", pa.int32(), nullable=False),
            pa.field("t", pa.timestamp("us", "UTC"), nullable=False),
            ("u", pa.timestamp("ns")),
            ("x", pa.float32()),
            ("s", pa.large_string()),
            ("d", pa.date32()),
            ("p", pa.decimal128(12, 3)),
            ("w", pa.duration("ms")),
            ("b", pa.bool_()),
        ]
    )
    assert to_schema(schema) == Schema(
        (
            Attribute("id", BIGINT, nullable=False),
            Attribute("t", TIMESTAMP, nullable=False, temporal=True),
            Attribute("u", TIMESTAMP),
            Attribute("x", DOUBLE),
            Attribute("s", STRING),
            Attribute("d", DATE),
            Attribute("p", decimal(12, 3)),
            Attribute("w", DURATION),
            Attribute("b", BOOLEAN),
        )
    )


def test_spark_struct_type() -> None:
    types = pytest.importorskip("pyspark.sql.types", reason="Spark is an extra")
    struct = types.StructType(
        [
            types.StructField("id", types.IntegerType(), False),
            types.StructField("t", types.TimestampType(), False),
            types.StructField("n", types.TimestampNTZType()),
            types.StructField("w", types.DayTimeIntervalType()),
            types.StructField("p", types.DecimalType(9, 4)),
            types.StructField("c", types.CharType(3)),
        ]
    )
    assert to_schema(struct) == Schema(
        (
            Attribute("id", BIGINT, nullable=False),
            Attribute("t", TIMESTAMP, nullable=False, temporal=True),
            Attribute("n", TIMESTAMP),
            Attribute("w", DURATION),
            Attribute("p", decimal(9, 4)),
            Attribute("c", STRING),
        )
    )


def test_null_may_be_said() -> None:
    assert to_schema("a int null, b timestamp not null") == to_schema("a int, b timestamp not null")


def test_a_schema_is_a_schema() -> None:
    schema = to_schema("a int")
    assert to_schema(schema) is schema


@pytest.mark.parametrize(
    ("definition", "code", "message", "hint"),
    [
        ("a strng", "TG111", "attribute 'a': unknown type 'strng'", "did you mean string"),
        ("a array<int>", "TG112", "attribute 'a': type 'array<int>' is not supported", "explode"),
        ("a map<string,int>, b int", "TG112", "attribute 'a': type 'map<string,int>' is not supported", "select"),
        ("a decimal(38,2)", "TG112", "attribute 'a': type 'decimal(38,2)' is not supported", "1 to 18 digits"),
        (
            "a interval year to month",
            "TG112",
            "attribute 'a': type 'interval year to month' is not supported",
            "months",
        ),
        ("a", "TG111", "attribute 'a' has no type", 'write "a string"'),
        ("a int,, b int", "TG111", "the schema has an empty field", "comma"),
        ("a int; b int", "TG111", "the schema cannot be read at '; b int'", "name, type"),
        ("a.b int", "TG111", "the schema cannot be read at '.b int'", "name, type"),
        ("", "TG111", "a schema without attributes", "write"),
        ("a int, A string", "TG103", "attribute 'a' is given twice", "case"),
        (pa.schema([("u", pa.uint64())]), "TG112", "attribute 'u': type 'uint64' is not supported", "cast"),
        (
            pa.schema([("u", pa.list_(pa.int8()))]),
            "TG112",
            "attribute 'u': type 'list<item: int8>' is not supported",
            "",
        ),
        (
            "a int b string",
            "TG111",
            "attribute 'a': 'int b string' is no type: 'b string' means nothing after int",
            "a comma stands before the next attribute",
        ),
        (
            "t timestamp not nul",
            "TG111",
            "attribute 't': 'timestamp not nul' is no type: 'not nul' means nothing after timestamp",
            "",
        ),
        (
            "d interval day x string",
            "TG111",
            "attribute 'd': 'interval day x string' is no type: 'day x string' means nothing after interval",
            "",
        ),
        (7, "TG111", "an int is no schema", "StructType"),
    ],
)
def test_what_cannot_be_a_schema_says_why(definition: object, code: str, message: str, hint: str) -> None:
    with pytest.raises(QueryError) as raised:
        to_schema(definition)
    assert (raised.value.code, raised.value.message) == (code, message)
    assert hint in raised.value.hint
