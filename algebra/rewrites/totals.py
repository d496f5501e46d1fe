"""Sums that are put together from two halves, since a row's part of them may be beyond a bigint."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tidegate.algebra.schema import MARK
from tidegate.algebra.terms import Attr, Lit, Term, Value, attributes_of, call
from tidegate.algebra.types import BIGINT, DOUBLE

BITS: Final = 32
_HALF, _LOW_HALF, _UNIT = Lit(BITS, BIGINT), Lit(2**BITS - 1, BIGINT), Lit(2**BITS, BIGINT)
_ONE, _SIGN = Lit(1, BIGINT), Lit(BITS - 1, BIGINT)


def halves(value: Term) -> tuple[Term, Term]:
    """A bigint as `high * 2**32 + low`, the low half from -2**31 on: so small numbers have small halves, whatever
    their sign.
    """
    low = call("shift_right", call("shift_left", value, _HALF), _HALF)
    carried = call("bit_and", call("shift_right", value, _SIGN), _ONE)
    return call("add", call("shift_right", value, _HALF), carried), low


@dataclass(frozen=True, slots=True)
class Total:
    """A sum by the attributes of its halves: `high * 2**32 + low`, where the low one may be beyond 32 bits."""

    high: Attr
    low: Attr

    def term(self, *, lenient: bool) -> Term:
        """The sum; where it is beyond a bigint, NULL if that is lenient, else an error."""
        try_ = "try_" if lenient else ""
        carried = call("add", self.high, call("shift_right", self.low, _HALF))
        return call(f"{try_}add", call(f"{try_}mul", carried, _UNIT), call("bit_and", self.low, _LOW_HALF))

    @classmethod
    def of(cls, term: Term) -> Total | None:
        """The sum that a term makes of two hidden attributes; None where it is no such term."""
        names = sorted(attributes_of(term))
        if len(names) == 2 and all(name.startswith(MARK) for name in names):
            for high, low in (names, reversed(names)):
                total = cls(Attr(high), Attr(low))
                if total.term(lenient=False) == term:
                    return total
        return None

    def exact(self, high: Value, low: Value) -> int:
        """The sum of these halves, also where it is beyond a bigint."""
        assert isinstance(high, int)
        assert isinstance(low, int)
        return (high << BITS) + low

    def approximate(self) -> Term:
        """The sum as a double."""
        high, low = (call("cast_double", half) for half in (self.high, self.low))
        return call("add", call("mul", high, Lit(2.0**BITS, DOUBLE)), low)
