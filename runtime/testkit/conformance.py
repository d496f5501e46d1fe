"""Every operation with its form in each engine, and the typed samples on which all forms are compared.

Operations resolve to kernels (by type). A family of functions is a module of `algebra.functions`, which has their
meaning in Python; of `runtime.eval.functions`, which has their forms in Polars; and of
`runtime.engines.spark.eval.functions`, for those in Spark.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from tidegate.algebra.errors import QueryError
from tidegate.algebra.functions.rules import Operation
from tidegate.algebra.schema import Attribute, Schema
from tidegate.algebra.terms import Attr, Call, Term, Value
from tidegate.algebra.typed.operations import OPERATIONS, operation, resolve
from tidegate.algebra.typed.terms import typed_nodes
from tidegate.algebra.types import (
    BIGINT,
    BOOLEAN,
    DATE,
    DOUBLE,
    DURATION,
    INT64_MAX,
    INT64_MIN,
    MAX_INSTANT,
    STRING,
    TIMESTAMP,
    DataType,
    Kind,
    decimal,
)

NAN, INF = float("nan"), float("inf")
_DAY = 86_400_000_000
#: 0001-01-01, 1969-12-31T23:59:59.999999, 1970, 2000-02-29, 2013-03-31T01:30, 9999-12-31T23:59:59.999999.
_INSTANTS = (-719_162 * _DAY, -1, 0, 11_016 * _DAY, 1_364_693_400_000_000, 2_932_897 * _DAY - 1)

#: The types that conformance is shown for: two scales of decimals, as only they convert.
TYPES: tuple[DataType, ...] = (
    BOOLEAN, BIGINT, DOUBLE, STRING, TIMESTAMP, DATE, DURATION, decimal(18, 0), decimal(10, 2), decimal(18, 6)
)  # fmt: skip


def boundary_values(type_: DataType) -> tuple[Value, ...]:
    """Values of a type on which engines are likely to differ; NULL is among them."""
    match type_.kind:
        case Kind.BOOLEAN:
            return (True, False, None)
        case Kind.BIGINT:
            return (0, 1, -1, 2, -3, 7, 10**9 + 7, 2**53 + 1, -(2**62), INT64_MAX, INT64_MIN, INT64_MIN + 1, None)
        case Kind.DOUBLE:
            tail = (5e-324, 1.7976931348623157e308, 9007199254740993.0, -(2.0**63), 2.0**63, INF, -INF, NAN, None)
            return (0.0, -0.0, 1.0, -1.0, 0.1, -2.5, 3.0, 1000.0, *tail)
        case Kind.STRING:
            dates = (
                "2000-02-29",
                "1900-02-29",
                "9999-12-31T23:59:59.999999Z",
                "1969-12-31 23:59",
                "2013-13-01",
                "2000-02-29\n",
                "0000-01-01",
            )
            numbers = (
                "42",
                "-9223372036854775808",
                "9223372036854775808",
                "+7",
                "1.5e3",
                ".5",
                "1e400",
                "1_0",
                "٣",
                "NaN",
                " 1",
                "1\n",
            )
            return ("", " ", "a", "A", "aa", "é", "e\u0301", "ﬀİ", "\uffff", "𝄞 x", "ab ab", *dates, *numbers, None)
        case Kind.TIMESTAMP:
            return (*_INSTANTS, MAX_INSTANT, -MAX_INSTANT, INT64_MAX, INT64_MIN, None)
        case Kind.DATE:
            return (*(t // _DAY for t in _INSTANTS), -25_509, 10**8, -(10**8) - 1, INT64_MAX, None)
        case Kind.DURATION:
            return (0, 1, -1, 3_600_000_000, -5_400_000_001, INT64_MAX, INT64_MIN, None)
        case Kind.DECIMAL:
            most = 10**type_.precision - 1
            return (0, 1, -1, 150, -149, 999_999, most, -most, most // 2, None)
        case Kind.NULL:
            return (None,)


@dataclass(frozen=True, slots=True)
class Sample:
    """A term over attributes `a0`, `a1`, … of one overload of an operation, and rows of values for them."""

    term: Term
    schema: Schema
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the conformance table: the operation, its kernels by engine form, its samples."""

    operation: Operation
    kernels: frozenset[str]
    samples: tuple[Sample, ...]


_MOST_ROWS = 400


def conformance_table() -> Iterator[Row]:
    """All operations, decimals' casts among them, each with every overload over `TYPES`."""
    names = [*OPERATIONS, "cast_decimal_18_0", "cast_decimal_5_2", "cast_decimal_18_6", "try_cast_decimal_5_2"]
    for name in names:
        samples = tuple(_samples(name))
        kernels = {node.kernel.name for s in samples for node in typed_nodes(resolve(s.term, s.schema)) if node.args}
        yield Row(operation(name), frozenset(kernels), samples)


def _samples(name: str) -> Iterator[Sample]:
    for types in _argument_types(name):
        schema = Schema(tuple(Attribute(f"a{i}", type_) for i, type_ in enumerate(types)))
        args = tuple(Attr(attribute) for attribute in schema.names)
        for constants in operation(name).constants:
            term = Call(name, (*constants, *args) if operation(name).constants_first else (*args, *constants))
            try:
                resolve(term, schema)
            except QueryError:
                continue
            yield Sample(term, schema, tuple(_rows(types)))


def _argument_types(name: str) -> Iterator[tuple[DataType, ...]]:
    for count in operation(name).counts:
        yield from product(TYPES, repeat=count)


def _rows(types: tuple[DataType, ...]) -> list[tuple[Value, ...]]:
    """Combinations of boundary values; of very many, every n-th with n coprime to the number of values."""
    rows = list(product(*(boundary_values(type_) for type_ in types)))
    step = len(rows) // _MOST_ROWS + 1
    return rows[:: step + (step % 2 == 0 and step > 1)]
