"""Sketches: what is kept of many values so that something is nearly known of them.

A sketch is a number for each of some places. Of a single value it is one place with its number; two sketches are merged
place by place, by the greatest number or by the sum. So a sketch depends on the values alone, and not on their order or
on how they came in parts.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from enum import Enum
from hashlib import blake2b
from typing import Final

from tidegate.algebra.terms import Value
from tidegate.algebra.types import DataType


class Sketch(Enum):
    """A kind of sketch.

    DISTINCT (HyperLogLog): a place for each of 4,096 classes of hashes, with the longest run of leading zeros in what
    else the hashes of its values have, and one more. QUANTILES: a place for each 64th part of a power of two, with how
    many values lie in it.
    """

    DISTINCT = "distinct"
    QUANTILES = "quantiles"

    @property
    def adds(self) -> bool:
        """Whether merged numbers are added; else the greatest counts."""
        return self is Sketch.QUANTILES


#: Bits of a hash that choose its class, and those that are left.
CLASS_BITS: Final = 12
CLASSES: Final = 1 << CLASS_BITS
REST_BITS: Final = 64 - CLASS_BITS
#: Bits of a double below the parts of a power of two that are told apart.
PART_BITS: Final = 46
#: Constants of the finaliser of SplitMix64.
GOLDEN: Final = 0x9E3779B97F4A7C15
FIRST: Final = 0xBF58476D1CE4E5B9
SECOND: Final = 0x94D049BB133111EB
_MASK: Final = (1 << 64) - 1
_INFINITE: Final = struct.unpack("<q", struct.pack("<d", math.inf))[0] >> PART_BITS


# --- different values -------------------------------------------------------------------------------------------------


def hash_of(value: Value) -> int:
    """64 bits that depend on the value alone; equal values have equal ones."""
    if isinstance(value, str):
        return int.from_bytes(blake2b(value.encode(), digest_size=8).digest(), "little")
    bits = _bits(value) if isinstance(value, float) else int(value or 0)
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


# --- quantiles --------------------------------------------------------------------------------------------------------


def part_of(value: Value, type_: DataType) -> int:
    """The part of the number line in which a value lies, from the least on."""
    number = float(value or 0) / 10.0**type_.scale
    bits = _bits(number)
    part = (bits & (_MASK >> 1)) >> PART_BITS
    return -part - 1 if bits >> 63 else part


def middle_of(part: int) -> float:
    """The middle of a part; of all values that are not finite or next to zero these themselves."""
    if part < 0:
        return -middle_of(-part - 1)
    if part == 0:
        return 0.0
    if part >= _INFINITE:
        return math.inf if part == _INFINITE else math.nan
    low, high = (_double(bound << PART_BITS) for bound in (part, part + 1))
    return low if math.isinf(high) else low + (high - low) / 2


def quantile_estimate(parts: Sequence[int], counts: Sequence[int], share: float) -> float | None:
    """The middle of the part of the value that so large a share of all others is below; None of no values.

    `parts` ascend. Of n values it is the one at place ⌊share · (n − 1)⌋, counted from 0.
    """
    from fractions import Fraction  # takes long to import

    if not parts:
        return None
    place = Fraction(share) * (sum(counts) - 1) // 1
    for part, count in zip(parts, counts, strict=True):
        place -= count
        if place < 0:
            return middle_of(part)
    return middle_of(parts[-1])


def _bits(number: float) -> int:
    """The bits of a double; equal numbers have equal ones."""
    bits: int = struct.unpack("<Q", struct.pack("<d", math.nan if math.isnan(number) else number + 0.0))[0]
    return bits


def _double(bits: int) -> float:
    number: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return number
