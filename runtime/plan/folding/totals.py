"""Sums that are put together from two halves, since a row's part of them may be beyond a bigint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.algebra.terms import Attr, Lit, Term, Value, call
from tidegate.algebra.types import BIGINT

BITS: Final = 32
HALF: Final = Lit(BITS, BIGINT)
LOW_HALF: Final = Lit(2**BITS - 1, BIGINT)
_UNIT: Final = Lit(2**BITS, BIGINT)


@dataclass(frozen=True, slots=True)
class Total:
    """A sum by the attributes of its halves: `high * 2**32 + low`, where the low one may be beyond 32 bits."""

    high: Attr
    low: Attr

    def term(self, *, lenient: bool) -> Term:
        """The sum; where it is beyond a bigint, NULL if that is lenient, else an error."""
        try_ = "try_" if lenient else ""
        carried = call("add", self.high, call("shift_right", self.low, HALF))
        return call(f"{try_}add", call(f"{try_}mul", carried, _UNIT), call("bit_and", self.low, LOW_HALF))

    def exact(self, high: Value, low: Value) -> int:
        """The sum of these halves, also where it is beyond a bigint."""
        assert isinstance(high, int)
        assert isinstance(low, int)
        return (high << BITS) + low
