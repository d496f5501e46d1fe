"""The data types of attributes and terms, and how each value is held inside every engine.

Inside all engines a timestamp is its int64 count of microseconds since the epoch (UTC), a date its int64 count of days,
a duration int64 microseconds and a decimal its int64 unscaled value: plain integer arithmetic gives the same answer
everywhere. Conversion happens at sources and sinks only.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import assert_never


class Kind(Enum):
    """What a value is; also the name it prints as."""

    BOOLEAN = "boolean"
    BIGINT = "bigint"
    DOUBLE = "double"
    STRING = "string"
    TIMESTAMP = "timestamp"
    DATE = "date"
    DURATION = "duration"
    DECIMAL = "decimal"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class DataType:
    """A data type; `precision` and `scale` are used by decimals alone (precision at most 18)."""

    kind: Kind
    precision: int = 0
    scale: int = 0

    def __str__(self) -> str:
        return f"decimal({self.precision},{self.scale})" if self.kind is Kind.DECIMAL else self.kind.value

    @property
    def held_as(self) -> Kind:
        """What engines hold values as: boolean, bigint, double or string. A NULL of no type counts as an integer."""
        match self.kind:
            case Kind.BOOLEAN | Kind.DOUBLE | Kind.STRING:
                return self.kind
            case Kind.BIGINT | Kind.TIMESTAMP | Kind.DATE | Kind.DURATION | Kind.DECIMAL | Kind.NULL:
                return Kind.BIGINT
            case _:
                assert_never(self.kind)

    @property
    def is_integer_held(self) -> bool:
        """Whether values are held as int64."""
        return self.kind in (Kind.BIGINT, Kind.TIMESTAMP, Kind.DATE, Kind.DURATION, Kind.DECIMAL)

    @property
    def is_numeric(self) -> bool:
        return self.kind in (Kind.BIGINT, Kind.DOUBLE, Kind.DECIMAL)

    @property
    def can_be_time(self) -> bool:
        """Whether an attribute of this type can hold instants of a timeline."""
        return self.kind in (Kind.BIGINT, Kind.TIMESTAMP, Kind.DATE)

    @property
    def distance(self) -> DataType:
        """The type of temporal distances between instants of this type: a bigint counts ticks, or days of dates."""
        return DURATION if self.kind is Kind.TIMESTAMP else BIGINT


BOOLEAN = DataType(Kind.BOOLEAN)
BIGINT = DataType(Kind.BIGINT)
DOUBLE = DataType(Kind.DOUBLE)
STRING = DataType(Kind.STRING)
TIMESTAMP = DataType(Kind.TIMESTAMP)
DATE = DataType(Kind.DATE)
DURATION = DataType(Kind.DURATION)
NULL = DataType(Kind.NULL)

MAX_DECIMAL_PRECISION = 18

INT64_MIN, INT64_MAX = -(2**63), 2**63 - 1

#: Instants outside ±MAX_INSTANT ticks and constants outside ±MAX_SHIFT are refused, so that no shift can overflow
#: int64.
MAX_INSTANT = 2**61
MAX_SHIFT = 2**54


def decimal(precision: int, scale: int) -> DataType:
    """The decimal type with `precision` digits, `scale` of them after the point."""
    if not (1 <= precision <= MAX_DECIMAL_PRECISION and 0 <= scale <= precision):
        raise ValueError(
            f"decimal({precision},{scale}): precision is 1 to {MAX_DECIMAL_PRECISION}, scale 0 to precision"
        )
    return DataType(Kind.DECIMAL, precision, scale)
