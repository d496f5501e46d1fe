"""Instants that cut what comes into portions of about as many rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from tidegate.algebra.time import Extended

#: Rows that lie evenly between two instants, both of which are among theirs: how many, the first and the last.
Spread = tuple[int, int, int]


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
    rows_up_to = _rows_up_to(spreads)
    begin, end = rows_up_to(int(low)), rows_up_to(int(high))
    cuts: list[int] = []
    for number in range(1, portions):
        cut = _first_with(rows_up_to, begin + (end - begin) * number / portions, int(low), int(high))
        if (cuts[-1] if cuts else after) < cut < high:
            cuts.append(cut)
    return cuts


def _rows_up_to(spreads: Sequence[Spread]) -> Callable[[int], float]:
    """About how many rows there are up to an instant."""
    rows, first, last = (np.array(column) for column in zip(*spreads, strict=True))
    return lambda instant: float(rows @ np.clip((instant - first + 1) / (last - first + 1), 0.0, 1.0))


def _first_with(rows_up_to: Callable[[int], float], rows: float, low: int, high: int) -> int:
    """The first instant after `low`, `high` at last, up to which there are so many rows."""
    while high - low > 1:
        middle = (low + high) // 2
        if rows_up_to(middle) < rows:
            low = middle
        else:
            high = middle
    return high
