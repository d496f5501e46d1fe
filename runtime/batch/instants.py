"""Instants and progress values of any timeline, as text and as plain values."""

from __future__ import annotations

from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.time import INF, Extended, format_instant
from tidegate.algebra.types import DATE, Kind


def instant_text(value: Extended, kind: Kind) -> str:
    """An instant or progress value as text."""
    if isinstance(value, float):
        return "∞" if value == INF else "-∞"
    match kind:
        case Kind.TIMESTAMP:
            return format_instant(value)
        case Kind.DATE:
            return value_text(value, DATE)
        case _:
            return str(value)


def plain_instant(value: Extended, kind: Kind) -> str | int:
    """The same for JSON: ISO text, a number for integer time, the infinities as `inf` and `-inf`."""
    if isinstance(value, float):
        return "inf" if value == INF else "-inf"
    return value if kind is Kind.BIGINT else instant_text(value, kind)
