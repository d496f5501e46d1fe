"""Sets of values of one attribute, as intervals of numbers or of texts: whether they share any, or one holds another.

They are compared thousands of times where a model has a hundred contexts, so nothing here is symbolic.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final, TypeAlias

Value: TypeAlias = int | Fraction | str
#: A place on the line: its beginning, its end, or right before (-1) or right behind (1) a value.
Cut: TypeAlias = tuple[int, Value, int]
Interval: TypeAlias = tuple[Cut, Cut]

_BEGINNING: Final[Cut] = (-1, 0, 0)
_END: Final[Cut] = (1, 0, 0)


@dataclass(frozen=True, slots=True)
class ValueSet:
    """Values in any of some intervals, which are in order and do not touch."""

    intervals: tuple[Interval, ...]

    @property
    def is_empty(self) -> bool:
        return not self.intervals

    def __and__(self, other: ValueSet) -> ValueSet:
        both = ((max(low, begin), min(high, end)) for low, high in self.intervals for begin, end in other.intervals)
        return ValueSet(tuple((low, high) for low, high in both if low < high))

    def __or__(self, other: ValueSet) -> ValueSet:
        joined: list[Interval] = []
        for low, high in sorted((*self.intervals, *other.intervals)):
            if joined and low <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(high, joined[-1][1])
            else:
                joined.append((low, high))
        return ValueSet(tuple(joined))

    def __le__(self, other: ValueSet) -> bool:
        """Whether the other set has all values of this one."""
        return all(any(begin <= low and high <= end for begin, end in other.intervals) for low, high in self.intervals)


NONE: Final = ValueSet(())
ALL: Final = ValueSet(((_BEGINNING, _END),))


def less(value: Value) -> ValueSet:
    return ValueSet(((_BEGINNING, (0, value, -1)),))


def at_most(value: Value) -> ValueSet:
    return ValueSet(((_BEGINNING, (0, value, 1)),))


def more(value: Value) -> ValueSet:
    return ValueSet((((0, value, 1), _END),))


def at_least(value: Value) -> ValueSet:
    return ValueSet((((0, value, -1), _END),))


def exactly(value: Value) -> ValueSet:
    return ValueSet((((0, value, -1), (0, value, 1)),))


def common(sets: Iterable[ValueSet]) -> ValueSet:
    """The values that all sets have."""
    shared = ALL
    for one in sets:
        shared &= one
    return shared


def together(sets: Iterable[ValueSet]) -> ValueSet:
    """The values that any of the sets has."""
    joined = NONE
    for one in sets:
        joined |= one
    return joined
