"""Values near quantiles: how many values lie in each part of the number line."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import Final

from tidegate.algebra.functions.sketches.kinds import bits_of
from tidegate.algebra.terms import Value
from tidegate.algebra.types import DataType

#: Bits of a double below the parts of a power of two that are told apart.
PART_BITS: Final = 46
_MASK: Final = (1 << 64) - 1
_INFINITE: Final = struct.unpack("<q", struct.pack("<d", math.inf))[0] >> PART_BITS


def part_of(value: Value, type_: DataType) -> int:
    """The part of the number line in which a value lies, from the least on."""
    number = float(value or 0) / 10.0**type_.scale
    bits = bits_of(number)
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


def _double(bits: int) -> float:
    number: float = struct.unpack("<d", struct.pack("<Q", bits))[0]
    return number
