"""In which spans of time rows have ticks, and these ticks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from tidegate.algebra.ordered.events import too_far
from tidegate.algebra.ordered.ticks import TICK, Ticks
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.ordered.row_arrays import MOST_IN_ALL, MOST_OF_A_ROW


@dataclass(frozen=True, slots=True)
class Spans:
    """Rows in order of partition and time. Row i has the ticks from `low[i]` to `high[i]`, both included, and no other
    row of its partition has them.
    """

    of: Int64Array
    at: Int64Array
    low: Int64Array
    high: Int64Array

    @classmethod
    def of_rows(cls, node: Ticks, of: Int64Array, at: Int64Array, after: int, until: int) -> Spans:
        """The spans later than `after`, up to `until`, of rows in partitions `of` at instants `at`. Without a limit the
        first row of a partition has all of its ticks.
        """
        order = np.lexsort((at, of))
        of, at = of[order], at[order]
        if node.within is None:
            first = np.ones(len(of), dtype=np.bool_)
            first[1:] = of[1:] != of[:-1]
            of, at = of[first], at[first]
            return cls(of, at, np.maximum(at, after + 1), np.full(len(at), until))
        high = np.minimum(at + node.within, until)
        same = of[1:] == of[:-1]
        high[:-1][same] = np.minimum(high[:-1], at[1:] - 1)[same]
        return cls(of, at, np.maximum(at, after + 1), high)

    @property
    def lasts(self) -> BoolArray:
        """Which rows are the last of their partition."""
        last = np.ones(len(self.of), dtype=np.bool_)
        last[:-1] = self.of[1:] != self.of[:-1]
        return last

    def ticks(self, node: Ticks, texts: Callable[[int], str]) -> tuple[Int64Array, Int64Array]:
        """The partitions and instants of all ticks. `EvaluationError` TG306 where a row, or all together, have more
        than memory holds; `texts` says the key of a partition.
        """
        first = next_tick(node, self.low)
        many = np.maximum((self.high - first) // node.every + 1, 0)
        in_all = int(many.sum(dtype=np.float64))
        if len(many) and ((most := int(many.max())) > MOST_OF_A_ROW or in_all > MOST_IN_ALL):
            last = int(np.argmax(many))
            at, of, type_ = int(self.high[last]), texts(int(self.of[last])), node.schema[TICK].type
            if most > MOST_OF_A_ROW:
                raise too_far(most, MOST_OF_A_ROW, "ticks come up to", at, type_, of)
            raise too_far(most, MOST_IN_ALL, "ticks come up to", at, type_, of, in_all=in_all)
        row = np.repeat(np.arange(len(many)), many)
        number = np.arange(len(row)) - np.repeat(np.cumsum(many) - many, many)
        return self.of[row], first[row] + number * node.every


def next_tick(node: Ticks, instants: Int64Array) -> Int64Array:
    """The first tick at each instant or after it."""
    return -((node.offset - instants) // node.every) * node.every + node.offset
