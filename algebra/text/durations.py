"""Durations of the text languages, on the timeline of some events."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction

from tidegate.algebra.dsl.checks.durations import Duration
from tidegate.algebra.dsl.here import written_at
from tidegate.algebra.errors import QueryError
from tidegate.algebra.schema import Attribute
from tidegate.algebra.text.parsing import Part, Text
from tidegate.algebra.text.units import TIME, UNITS, Unit, duration_unit, number_of
from tidegate.algebra.time import duration_ticks
from tidegate.algebra.types import Kind


def duration_of(text: Text, part: Part, time: Attribute, units: Mapping[str, Unit]) -> Duration:
    """What the DSL takes as a duration on the timeline of `time`: text where it has timestamps, ticks on others."""
    parts = part.parts
    with written_at(text.at(part)):
        kind = time.type.kind
        tick = UNITS["d"] if kind is Kind.DATE else units.get(time.name)
        if len(parts) == 1 and parts[0].kind == "NUMBER":
            if kind is Kind.TIMESTAMP:
                raise QueryError("TG174", f"{parts[0].text} of what?", hint=f"give it a unit: {parts[0].text}s")
            return _whole(number_of(parts[0].text), parts[0].text)
        seconds = _seconds(text, parts) if parts[0].kind == "NUMBER" else seconds_of(*parts)
        if kind is Kind.TIMESTAMP:
            return f"{ticks_of(seconds)}us"
        if tick is None or tick.dimension != TIME:
            raise QueryError(
                "TG174",
                f"{time.name} counts in integers, and nobody says how long one is",
                hint=f'write a number of them, or say it: units={{"{time.name}": "s"}}, --unit {time.name}=s',
            )
        return _whole(seconds / tick.factor, f"the duration in {tick.name}")


def seconds_of(*parts: Part) -> Fraction:
    """A duration as people write it, in any form but a number without a unit."""
    texts = (part.text.strip("'\"") for part in parts)
    return Fraction(duration_ticks(" ".join(texts)), 1_000_000)


def ticks_of(seconds: Fraction) -> int:
    """Microseconds; `QueryError` TG104 where that is no whole number of them."""
    ticks = seconds * 1_000_000
    if ticks.denominator != 1:
        raise QueryError("TG104", "a duration finer than a microsecond", hint="round it to microseconds")
    return ticks.numerator


def _seconds(text: Text, parts: tuple[Part, ...]) -> Fraction:
    """Numbers, each with its unit, as a sum."""
    seconds = Fraction(0)
    for number, unit in zip(parts[::2], parts[1::2], strict=True):
        with written_at(text.at(number)):
            count = number_of(number.text)
        with written_at(text.at(unit)):
            seconds += count * duration_unit(unit.text).factor
    return seconds


def _whole(number: Fraction, what: str) -> int:
    if number.denominator != 1:
        raise QueryError("TG174", f"{what} is no whole number of ticks", hint="round it")
    return number.numerator
