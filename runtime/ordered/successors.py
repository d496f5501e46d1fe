"""Partitions that others follow: they agree in all keys but some that only grow, so that the last one alone has rows to
come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import polars as pl

from tidegate.algebra.schema import Schema
from tidegate.runtime.arrays import BoolArray, Int64Array

Values = tuple[Any, ...]


class Successors:
    """Which of the partitions of which something is held follow each other (rule R60)."""

    def __init__(self, keys: Schema, growing: Sequence[str]) -> None:
        """`growing` are the keys that grow from row to row of those partitions that agree in the others."""
        self.growing = tuple(growing)
        self._others = [place for place, name in enumerate(keys.names) if name not in growing]
        self._last = [place for place, name in enumerate(keys.names) if name in growing]
        #: By the other keys the partitions of which something is held, each with the keys that grow.
        self._held: dict[Values, dict[int, Values]] = {}

    def hold(self, partitions: Int64Array, keys: pl.DataFrame, is_held: BoolArray) -> None:
        """From now on something is held of these partitions, or nothing."""
        for number, held, (others, last) in zip(partitions.tolist(), is_held.tolist(), self._split(keys), strict=True):
            if held:
                self._held.setdefault(others, {})[number] = last
            elif (known := self._held.get(others)) is not None:
                known.pop(number, None)
                if not known:
                    del self._held[others]

    def followed(self, partitions: Int64Array, keys: pl.DataFrame) -> Int64Array:
        """The partitions that one of these follows, or another one that is held, in order: of these, and of those that
        are held.
        """
        of: dict[Values, dict[int, Values]] = {}
        for number, (others, last) in zip(partitions.tolist(), self._split(keys), strict=True):
            of.setdefault(others, dict(self._held.get(others, ())))[number] = last
        found = [
            number
            for known in of.values()
            if len(known) > 1
            for latest in [max(known.values())]
            for number, last in known.items()
            if last < latest
        ]
        return np.array(sorted(found), dtype=np.int64)

    def _split(self, keys: pl.DataFrame) -> Iterator[tuple[Values, Values]]:
        """The other keys and those that grow, which compare: NULL is before all."""
        for row in keys.iter_rows():
            last = tuple((row[place] is not None, row[place]) for place in self._last)
            yield tuple(row[place] for place in self._others), last
