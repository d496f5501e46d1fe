"""Kinds of sketches, and the bits of values.

A sketch is a number for each of some places. Of a single value it is one place with its number; two sketches are merged
place by place, by the greatest number or by the sum. So a sketch depends on the values alone, and not on their order or
on how they came in parts.
"""

from __future__ import annotations

import math
import struct
from enum import Enum


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


def bits_of(number: float) -> int:
    """The bits of a double; equal numbers have equal ones."""
    bits: int = struct.unpack("<Q", struct.pack("<d", math.nan if math.isnan(number) else number + 0.0))[0]
    return bits
