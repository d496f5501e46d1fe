"""Schemas from what users have at hand: Spark DDL text, a Spark `StructType`, an Arrow schema, that of a Polars frame.

No such library is imported: a schema object says by itself which library made it.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from tidegate.algebra.diagnostics.shown import kind_of, nearest, shown
from tidegate.algebra.dsl.checks.suggestions import LATENESS
from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Attribute, Schema, checked_name, timestamps_are_temporal
from tidegate.algebra.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    MAX_DECIMAL_PRECISION,
    STRING,
    TIMESTAMP,
    DataType,
    decimal,
)

#: Spark's and Arrow's names of types, without their parameters. Smaller numbers widen to the ones that engines hold.
_TYPES: dict[str, DataType] = {
    **dict.fromkeys(("boolean", "bool"), BOOLEAN),
    **dict.fromkeys(("tinyint", "byte", "smallint", "short", "int", "integer", "bigint", "long"), BIGINT),
    **dict.fromkeys(("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32"), BIGINT),
    **dict.fromkeys(("float", "real", "double", "halffloat", "float32", "float64"), DOUBLE),
    **dict.fromkeys(("string", "varchar", "char", "character", "text", "large_string", "string_view", "utf8"), STRING),
    **dict.fromkeys(("timestamp", "timestamp_ltz", "timestamp_ntz"), TIMESTAMP),
    **dict.fromkeys(("date", "date32", "date64"), DATE),
    **dict.fromkeys(("interval", "duration"), DURATION),
}
_DECIMALS = ("decimal", "dec", "numeric", "decimal32", "decimal64", "decimal128")
_UNSUPPORTED = {
    **dict.fromkeys(
        ("binary", "large_binary", "binary_view", "fixed_size_binary"),
        "keep it in a table of its own, or encode it as a string",
    ),
    **dict.fromkeys(
        ("array", "list", "large_list", "list_view", "large_list_view", "fixed_size_list"),
        "explode it before the source",
    ),
    **dict.fromkeys(("time", "time32", "time64"), "add it to its date, or cast it to string, before the source"),
    "null": "no value says what it holds: cast it to the type that is meant before the source",
    "struct": "select its fields as attributes before the source",
    "map": "select its entries as attributes before the source",
    "variant": "select its fields as attributes before the source",
    "uint64": "it does not fit into bigint: cast it to bigint or string before the source",
    "decimal256": f"decimals have at most {MAX_DECIMAL_PRECISION} digits",
    "dictionary": "cast it to its value type",
    "interval year": "months have no fixed length: use an interval day to second",
}

#: What may follow the name of a type: its parameters, or words that say no more than the name.
_DETAILS = re.compile(r"(?:\(.*\)|\[.*\]|precision|(?:with|without)(?: local)? time zone|collate \w+)?", re.DOTALL)
_SPAN = re.compile(r"(?:(?:day|hour|minute|second)(?: ?\(.*\))?(?: to (?:hour|minute|second)(?: ?\(.*\))?)?|\[.*\])?")

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)+`)|(?P<text>'(?:[^'\\]|\\.)*')|(?P<word>\w+)|(?P<sign>[(),:<>]))", re.UNICODE
)


def to_schema(definition: object) -> Schema:
    """The schema that a definition gives: `Schema`, DDL text, `StructType`, that of Arrow or of Polars; else
    `QueryError`.
    """
    if isinstance(definition, Schema):
        return _well_named(definition)
    if isinstance(definition, str):
        return _checked(_read_ddl(definition))
    package = type(definition).__module__.split(".", 1)[0]
    if package == "polars" and hasattr(definition, "to_frame"):
        definition, package = _any(definition).to_frame().to_arrow().schema, "pyarrow"
    if package == "pyspark" and hasattr(definition, "fields"):
        return _checked(_read_fields((f.name, f.dataType.simpleString(), f.nullable) for f in _any(definition).fields))
    if package == "pyarrow" and hasattr(definition, "names"):
        return _checked(_read_fields((f.name, str(f.type), f.nullable) for f in _any(definition)))
    raise QueryError(
        "TG111",
        f"{kind_of(definition)} is no schema",
        hint="give that of the frame: frame.schema"
        if package == "polars"
        else (
            'give DDL text such as "id bigint, time timestamp not null", a StructType, or the schema of Arrow or Polars'
        ),
    )


def to_type(text: str) -> DataType:
    """The type that a name such as `bigint`, `decimal(10,2)` or Arrow's `timestamp[us, tz=UTC]` means."""
    parsed = re.fullmatch(r"\s*([\w]+)\s*(.*?)\s*", text.lower(), re.DOTALL)
    if parsed is None:
        raise QueryError("TG111", f"{shown(text)} is no type", hint=_spaced(text) or _known_types(text))
    base, rest = parsed[1], parsed[2]
    if base == "interval" and ("year" in rest or "month" in rest):
        raise QueryError("TG112", f"type {text.strip()!r} is not supported", hint=_UNSUPPORTED["interval year"])
    if base in _UNSUPPORTED:
        raise QueryError("TG112", f"type {text.strip()!r} is not supported", hint=_UNSUPPORTED[base])
    if base in _DECIMALS:
        return _decimal(text, rest)
    if base not in _TYPES:
        raise QueryError("TG111", f"unknown type {text.strip()!r}", hint=_spaced(rest) or _known_types(base))
    if (_SPAN if _TYPES[base] is DURATION else _DETAILS).fullmatch(rest) is None:
        raise QueryError(
            "TG111",
            f"{text.strip()!r} is no type: {rest!r} means nothing after {base}",
            hint="a comma stands before the next attribute: id bigint, time timestamp not null",
        )
    return _TYPES[base]


def _decimal(text: str, rest: str) -> DataType:
    sizes = re.fullmatch(r"(?:\(\s*(\d+)\s*(?:,\s*(\d+)\s*)?\))?", rest)
    if sizes is None:
        raise QueryError("TG111", f"{text.strip()!r} is no decimal type", hint="write decimal(10,2)")
    try:
        return decimal(int(sizes[1] or 10), int(sizes[2] or 0))
    except ValueError:
        raise QueryError(
            "TG112",
            f"type {text.strip()!r} is not supported",
            hint=f"decimals have 1 to {MAX_DECIMAL_PRECISION} digits, and no more of them after the point",
        ) from None


def _spaced(text: str) -> str:
    """What to write where a type comes after what is no type: that is the rest of a name, then."""
    last = re.search(r"(\w+)\s*$", text)
    return "a name with spaces or signs stands in backticks: `Room temp` double" if last and last[1] in _TYPES else ""


def _known_types(name: str) -> str:
    if name == "datetime":
        return "did you mean timestamp?"
    near = nearest(name, [*_TYPES, "decimal"])
    return (
        f"did you mean {' or '.join(near)}?"
        if near
        else "types: boolean, bigint, double, string, timestamp, date, decimal(p,s), interval day to second"
    )


def _any(value: object) -> Any:
    return value


def _read_fields(fields: Iterable[tuple[str, str, bool]]) -> Iterator[Attribute]:
    for name, type_text, nullable in fields:
        try:
            type_ = to_type(type_text)
        except QueryError as error:
            raise QueryError(error.code, f"attribute {name!r}: {error.message}", hint=error.hint) from None
        yield _attribute(name, type_, nullable)


def _attribute(name: str, type_: DataType, nullable: bool) -> Attribute:
    return Attribute(name, type_, nullable, temporal=timestamps_are_temporal(type_, nullable=nullable))


def _checked(attributes: Iterable[Attribute]) -> Schema:
    attributes = tuple(attributes)
    if not attributes:
        raise QueryError("TG111", "a schema without attributes", hint='write "id bigint, time timestamp not null"')
    often = Counter(attribute.name.lower() for attribute in attributes)
    twice = [a.name for a in attributes if often[a.name.lower()] > 1]
    if twice:
        raise QueryError("TG103", f"attribute {twice[0]!r} is given twice", hint="names differ in more than their case")
    return _well_named(Schema(attributes))


def _well_named(schema: Schema) -> Schema:
    """The schema; `QueryError` TG103 for a dot in a name, which would be read as a relation's prefix, and stripped."""
    for name in schema:
        checked_name(name, "an attribute")
    dotted = next((name for name in schema.names if "." in name), None)
    if dotted is not None:
        raise QueryError(
            "TG103",
            f"attribute {dotted!r}: what stands before a dot is the name of a relation, as in fs.time",
            hint=f"rename the column where the rows come from, for example to {dotted.replace('.', '_')}",
        )
    return schema


def _read_ddl(text: str) -> Iterator[Attribute]:
    if re.search(r"\bwatermark\s+for\b", text, re.IGNORECASE):
        raise QueryError("TG111", "a schema has attributes, and no watermark", hint=LATENESS)
    for tokens in _fields(text):
        words = tokens[:]
        name = words.pop(0)
        if name.startswith("`"):
            name = name[1:-1].replace("``", "`")
        if words and words[0] == ":":
            words.pop(0)
        if not words:
            raise QueryError("TG111", f"attribute {name!r} has no type", hint=f'write "{name} string"')
        lowered = [word.lower() for word in words]
        if "comment" in lowered:
            at = lowered.index("comment")
            if len(words) != at + 2 or not words[-1].startswith("'"):
                raise QueryError("TG111", f"attribute {name!r}: a comment is one text in quotes, at the end")
            words, lowered = words[:at], lowered[:at]
        nullable = lowered[-2:] != ["not", "null"]
        if not nullable:
            words = words[:-2]
        elif lowered[-1:] == ["null"] and len(words) > 1:
            words = words[:-1]
        yield from _read_fields([(name, _joined(words), nullable)])


def _fields(text: str) -> Iterator[list[str]]:
    """The words of each field: commas inside brackets separate nothing."""
    field: list[str] = []
    depth = position = 0
    while text[position:].strip():
        token = _TOKEN.match(text, position)
        if token is None:
            rest = text[position:].strip()
            raise QueryError(
                "TG111", f"the schema cannot be read at {rest[:20]!r}", hint="write name, type, name, type …"
            )
        position = token.end()
        word = token[token.lastgroup or 0]
        depth += (word in "(<") - (word in ")>")
        if word == "," and depth == 0:
            if not field:
                raise QueryError("TG111", "the schema has an empty field", hint="remove the extra comma")
            yield field
            field = []
        else:
            field.append(word)
    if field:
        yield field


def _joined(words: list[str]) -> str:
    return re.sub(r"\s*([(),<>:])\s*", r"\1", " ".join(words))
