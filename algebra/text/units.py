"""Units of quantities such as `8m/s2`: a table with dimensions, exact factors to SI, and durations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from types import MappingProxyType

from tidegate.algebra.diagnostics.shown import nearest
from tidegate.algebra.errors import QueryError
from tidegate.algebra.time import MICROSECONDS, NO_LENGTH

#: Exponents of metre, kilogram, second, ampere, kelvin and radian.
Dimension = tuple[int, int, int, int, int, int]
TIME: Dimension = (0, 0, 1, 0, 0, 0)
_BASE = ("m", "kg", "s", "A", "K", "rad")


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit by the name it is written with; a quantity of it times `factor` is one in SI base units."""

    name: str
    dimension: Dimension
    factor: Fraction

    def __mul__(self, other: Unit) -> Unit:
        return self._with(other, 1, "*")

    def __truediv__(self, other: Unit) -> Unit:
        return self._with(other, -1, "/")

    def _with(self, other: Unit, sign: int, written: str) -> Unit:
        a, b = self.dimension, other.dimension
        dimension = (
            a[0] + sign * b[0],
            a[1] + sign * b[1],
            a[2] + sign * b[2],
            a[3] + sign * b[3],
            a[4] + sign * b[4],
            a[5] + sign * b[5],
        )
        return Unit(f"{self.name}{written}{other.name}", dimension, self.factor * other.factor**sign)

    @property
    def measures(self) -> str:
        """The dimension, as errors name it: the quantity where it has a name, else its base units."""
        powers = [
            f"{base}{exponent if exponent != 1 else ''}"
            for base, exponent in zip(_BASE, self.dimension, strict=True)
            if exponent
        ]
        return _QUANTITIES.get(self.dimension, " ".join(powers) or "a plain number")


_QUANTITIES: Mapping[Dimension, str] = MappingProxyType(
    {
        (1, 0, 0, 0, 0, 0): "a length",
        (0, 1, 0, 0, 0, 0): "a mass",
        TIME: "a time",
        (0, 0, 0, 1, 0, 0): "a current",
        (0, 0, 0, 0, 1, 0): "a temperature",
        (0, 0, 0, 0, 0, 1): "an angle",
        (0, 0, -1, 0, 0, 0): "a frequency",
        (1, 0, -1, 0, 0, 0): "a speed",
        (1, 0, -2, 0, 0, 0): "an acceleration",
        (1, 1, -2, 0, 0, 0): "a force",
        (-1, 1, -2, 0, 0, 0): "a pressure",
        (2, 1, -2, 0, 0, 0): "an energy",
        (2, 1, -3, 0, 0, 0): "a power",
        (2, 1, -3, -1, 0, 0): "a voltage",
    }
)


def _table() -> dict[str, Unit]:
    length, mass, time = (1, 0, 0, 0, 0, 0), (0, 1, 0, 0, 0, 0), TIME
    speed, frequency, pressure = (1, 0, -1, 0, 0, 0), (0, 0, -1, 0, 0, 0), (-1, 1, -2, 0, 0, 0)
    energy, power, mile = (2, 1, -2, 0, 0, 0), (2, 1, -3, 0, 0, 0), "1609.344"
    rows: list[tuple[str, Dimension, str]] = [
        ("m", length, "1"), ("km", length, "1000"), ("cm", length, "1/100"), ("mm", length, "1/1000"),
        ("mi", length, mile), ("mile", length, mile), ("miles", length, mile), ("ft", length, "0.3048"),
        ("yd", length, "0.9144"), ("nmi", length, "1852"),
        ("kg", mass, "1"), ("g", mass, "1/1000"), ("t", mass, "1000"), ("lb", mass, "0.45359237"),
        ("us", time, "1/1000000"), ("ms", time, "1/1000"),
        *((name, time, "1") for name in ("s", "sec", "second", "seconds")),
        *((name, time, "60") for name in ("min", "minute", "minutes")),
        *((name, time, "3600") for name in ("h", "hour", "hours")),
        *((name, time, "86400") for name in ("d", "day", "days")),
        *((name, time, "604800") for name in ("w", "week", "weeks")),
        ("mph", speed, "1609.344/3600"), ("kmh", speed, "1000/3600"), ("kph", speed, "1000/3600"),
        *((name, speed, "1852/3600") for name in ("kn", "knot", "knots")),
        ("Hz", frequency, "1"), ("kHz", frequency, "1000"), ("rpm", frequency, "1/60"),
        ("A", (0, 0, 0, 1, 0, 0), "1"), ("mA", (0, 0, 0, 1, 0, 0), "1/1000"), ("K", (0, 0, 0, 0, 1, 0), "1"),
        ("rad", (0, 0, 0, 0, 0, 1), "1"), ("deg", (0, 0, 0, 0, 0, 1), "0.017453292519943295"), ("°", (0, 0, 0, 0, 0, 1), "0.017453292519943295"),
        ("N", (1, 1, -2, 0, 0, 0), "1"), ("kN", (1, 1, -2, 0, 0, 0), "1000"),
        ("Pa", pressure, "1"), ("hPa", pressure, "100"), ("kPa", pressure, "1000"), ("mbar", pressure, "100"), ("bar", pressure, "100000"),
        ("J", energy, "1"), ("kJ", energy, "1000"), ("Wh", energy, "3600"), ("kWh", energy, "3600000"),
        ("W", power, "1"), ("kW", power, "1000"), ("MW", power, "1000000"),
        ("V", (2, 1, -3, -1, 0, 0), "1"), ("mV", (2, 1, -3, -1, 0, 0), "1/1000"), ("kV", (2, 1, -3, -1, 0, 0), "1000"),
    ]  # fmt: skip
    return {name: Unit(name, dimension, _fraction(factor)) for name, dimension, factor in rows}


def _fraction(text: str) -> Fraction:
    over, _, under = text.partition("/")
    return Fraction(over) / Fraction(under or 1)


UNITS: Mapping[str, Unit] = MappingProxyType(_table())
#: Where only a duration can stand, `m` is the minute, as in Python's `at_least="5m"`.
_DURATIONS: Mapping[str, Unit] = MappingProxyType(
    {name: Unit(name, TIME, Fraction(ticks, 1_000_000)) for name, ticks in MICROSECONDS.items()}
    | {name: unit for name, unit in UNITS.items() if unit.dimension == TIME}
)
#: No double has as many before its point or zeros after it, and Python reads and writes numbers of ten times as many.
_DIGITS = 400
_POWERS = {"": 1, "2": 2, "3": 3, "^2": 2, "^3": 3, "²": 2, "³": 3}


def unit_of(text: str) -> Unit:
    """The unit that is written so, such as `km/h` or `m/s2`; `QueryError` TG174 with the nearest names."""
    over, slash, under = text.partition("/")
    unit = _power(over, text)
    if slash:
        unit = unit / _power(under, text)
    return Unit(text, unit.dimension, unit.factor)


def _power(part: str, text: str) -> Unit:
    name = part.rstrip("23²³^")
    unit = power = _named(name, UNITS, text)
    for _ in range(_POWERS[part[len(name) :]] - 1):
        power = power * unit
    return power


def _named(name: str, table: Mapping[str, Unit], text: str) -> Unit:
    """By its name; words of three letters and more in any case, and of durations all but M, which may be months."""
    any_case = len(name) > 2 or (table is _DURATIONS and name != "M")
    named = table.get(name) or (table.get(name.lower()) if any_case else None)
    if named is None:
        near = nearest(name, table)
        hint = f"did you mean {' or '.join(near)}?" if near else f"such as {_EXAMPLES if table is UNITS else _TIMES}"
        raise QueryError("TG174", f"unknown unit {text!r}", hint=hint)
    return named


_TIMES = "ms, s, min, h, d, SECONDS, MINUTES, HOURS, DAYS"
_EXAMPLES = "m, km, s, h, mph, km/h, m/s2, kW, Pa; the reference lists all"


def number_of(text: str) -> Fraction:
    """A number as it is written; `QueryError` TG110 for one of so many digits that no value has them."""
    if len(text) > _DIGITS:
        raise QueryError("TG110", f"a number of {len(text)} digits fits no type", hint="write a smaller number")
    exponent = int(text.lower().partition("e")[2] or 0)
    if abs(exponent) > _DIGITS:
        nearer = "farther from" if exponent < 0 else "nearer to"
        raise QueryError("TG110", f"{text} fits no type", hint=f"write a number {nearer} 0")
    return Fraction(text.rstrip("."))


def duration_unit(text: str) -> Unit:
    """A unit of time, by a name that may stand in a duration."""
    if NO_LENGTH.match(f"1{text}"):
        hint = "months and years differ in length: say it in days"
        raise QueryError("TG174", f"unknown unit {text!r}", hint=hint)
    return _named(text, _DURATIONS, text)


def converted(number: Fraction, of: Unit, to: Unit) -> int | float:
    """A quantity in another unit of its dimension."""
    exact = number * of.factor / to.factor
    return exact.numerator if exact.denominator == 1 else float(exact)
