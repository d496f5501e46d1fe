"""Constraints and instants as text for people."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from tidegate.algebra.printing.terms import value_text
from tidegate.algebra.time import INF, Extended, duration_ticks, format_duration, signed_duration
from tidegate.algebra.types import DataType, Kind

T = TypeVar("T")

#: What hints propose as bounds and windows, in ticks and as it is written: the first that fits.
_SPANS: Final[Mapping[Kind, tuple[tuple[int, str], ...]]] = {
    Kind.TIMESTAMP: tuple((duration_ticks(text), f'"{text}"') for text in ("1h", "1d", "7d", "30d", "365d")),
    Kind.DATE: tuple((days, str(days)) for days in (1, 7, 30, 365)),
    Kind.BIGINT: tuple((10**zeros, str(10**zeros)) for zeros in (2, 3, 4, 6, 9)),
}


def amount(ticks: int, type_: DataType) -> str:
    """A number of ticks as text: a duration for timestamps, else the plain number."""
    return format_duration(ticks) if type_.kind is Kind.TIMESTAMP else str(ticks)


def first_of(parts: Sequence[T], most: int | None, text: Callable[[T], str]) -> list[str]:
    """The texts of the first `most` parts, and how many more there are; without such a number those of all."""
    texts = [text(part) for part in parts[:most]]
    return texts if len(texts) == len(parts) else [*texts, f"{len(parts) - len(texts):,} more"]


def factor(text: str) -> str:
    """A duration or a sum as a factor of a product: in parentheses where it has several parts."""
    return f"({text})" if " " in text else text


def ordinal(number: int) -> str:
    """1st, 2nd, 3rd, 4th, …"""
    ending = "th" if number % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(number % 10, "th")
    return f"{number}{ending}"


def shifted(name: str, by: int, type_: DataType) -> str:
    """`name`, `name + 5m` or `name - 5m`."""
    if by == 0:
        return name
    sign = "-" if by < 0 else "+"
    return f"{name} {signed_duration(by) if type_.kind is Kind.TIMESTAMP else f'{sign} {abs(by)}'}"


def at_most(v: str, w: str, c: int, type_: DataType) -> str:
    """The constraint `v - w <= c`, written with the sign that reads best: a bound one tick short becomes strict."""
    strict = c + 1 == 0 or (type_.kind is Kind.TIMESTAMP and len(amount(c + 1, type_)) < len(amount(c, type_)))
    bound, sign = (c + 1, "<") if strict else (c, "<=")
    return f"{shifted(v, -bound, type_)} {sign} {w}" if bound < 0 else f"{v} {sign} {shifted(w, bound, type_)}"


def instant(value: Extended, type_: DataType) -> str:
    """A progress value or bound as text."""
    if value in (INF, -INF):
        return "∞" if value == INF else "-∞"
    return value_text(int(value), type_)


def usual_spans(type_: DataType) -> tuple[tuple[int, str], ...]:
    """Bounds and windows that hints propose, in ticks and as text, shorter ones first."""
    return _SPANS[type_.kind]
