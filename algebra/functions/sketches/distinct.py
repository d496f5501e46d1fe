"""About how many different values there are: HyperLogLog."""

from __future__ import annotations

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import Final

from tidegate.algebra.functions.sketches.kinds import bits_of
from tidegate.algebra.terms import Value

#: Bits of a hash that choose its class, and those that are left.
CLASS_BITS: Final = 12
CLASSES: Final = 1 << CLASS_BITS
REST_BITS: Final = 64 - CLASS_BITS
#: Constants of the finaliser of SplitMix64.
GOLDEN: Final = 0x9E3779B97F4A7C15
FIRST: Final = 0xBF58476D1CE4E5B9
SECOND: Final = 0x94D049BB133111EB
_MASK: Final = (1 << 64) - 1


def hash_of(value: Value) -> int:
    """64 bits that depend on the value alone; equal values have equal ones."""
    if isinstance(value, str):
        return int.from_bytes(blake2b(value.encode(), digest_size=8).digest(), "little")
    bits = bits_of(value) if isinstance(value, float) else int(value or 0)
    mixed = (bits + GOLDEN) & _MASK
    mixed = (mixed ^ (mixed >> 30)) * FIRST & _MASK
    mixed = (mixed ^ (mixed >> 27)) * SECOND & _MASK
    return mixed ^ (mixed >> 31)


def class_of(value: Value) -> tuple[int, int]:
    """The class of a value's hash, and the leading zeros of the rest, and one."""
    hashed = hash_of(value)
    rest = hashed & ((1 << REST_BITS) - 1)
    return hashed >> REST_BITS, REST_BITS - rest.bit_length() + 1


def distinct_estimate(numbers: Sequence[int]) -> int:
    """About how many different values there are, from the numbers of the classes that have any.

    The improved raw estimator of Ertl, "New cardinality estimation algorithms for HyperLogLog sketches", 2017,
    algorithm 6. Its standard error is 1.04 / sqrt(classes).
    """
    counts = [0] * (REST_BITS + 2)
    counts[0] = CLASSES - len(numbers)
    for number in numbers:
        counts[number] += 1
    if counts[0] == CLASSES:
        return 0
    z = CLASSES * _tau(1 - counts[REST_BITS + 1] / CLASSES)
    for count in reversed(counts[1 : REST_BITS + 1]):
        z = 0.5 * (z + count)
    z += CLASSES * _sigma(counts[0] / CLASSES)
    return round(CLASSES * CLASSES / (2 * math.log(2) * z))


def _sigma(x: float) -> float:
    y, z, before = 1.0, x, -1.0
    while z != before:
        x *= x
        before = z
        z += x * y
        y += y
    return z


def _tau(x: float) -> float:
    if x in (0.0, 1.0):
        return 0.0
    y, z, before = 1.0, 1 - x, -1.0
    while z != before:
        x = math.sqrt(x)
        before = z
        y *= 0.5
        z -= (1 - x) ** 2 * y
    return z / 3
