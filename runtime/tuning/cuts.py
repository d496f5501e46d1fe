"""Instants that cut what comes into portions of about as many rows."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from tidegate.algebra.time import Extended

#: Rows that lie evenly between two instants, both of which are among theirs: how many, the first and the last.
Spread = tuple[int, int, int]
#: An instant is looked for among so many at most.
_BITS: Final = 64


def cuts_of(spreads: Sequence[Spread], after: Extended, until: Extended, portions: int) -> list[int]:
    """Instants in ascending order, all between `after` and `until`: so many portions, or fewer where there are not as
    many instants, end at these and at `until`.

    Portions are half open: a cut is the last instant of one of them.

    >>> cuts_of([(100, 1, 100)], 0, math.inf, 4)
    [25, 50, 75]
    >>> cuts_of([(100, 1, 100), (300, 101, 200)], 0, 200, 2)
    [134]
    """
    low = max([after, min((first for _, first, _ in spreads), default=0) - 1])
    high = min([until, max((last for _, _, last in spreads), default=0)])
    if not spreads or math.isinf(low) or math.isinf(high) or low >= high:
        return []
    begin, end = _rows_up_to(spreads, int(low)), _rows_up_to(spreads, int(high))
    cuts: list[int] = []
    for number in range(1, portions):
        cut = _first_with(spreads, begin + (end - begin) * number / portions, int(low), int(high))
        if (cuts[-1] if cuts else after) < cut < high:
            cuts.append(cut)
    return cuts


def _first_with(spreads: Sequence[Spread], rows: float, low: int, high: int) -> int:
    """The first instant after `low`, `high` at last, up to which there are so many rows."""
    for _ in range(_BITS):
        if high - low <= 1:
            break
        middle = (low + high) // 2
        if _rows_up_to(spreads, middle) < rows:
            low = middle
        else:
            high = middle
    return high


def _rows_up_to(spreads: Sequence[Spread], instant: int) -> float:
    return sum(rows * min(1.0, max(0, instant - first + 1) / (last - first + 1)) for rows, first, last in spreads)
