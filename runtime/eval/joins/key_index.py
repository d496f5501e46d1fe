"""Indexes of segments by a key: which rows may have one of some keys, without a look at the others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

import numpy as np
import polars as pl

from tidegate.runtime.arrays import Int64Array, UInt64Array
from tidegate.runtime.eval.small.rows import MOST, Array, SmallRows, Unsupported, array_of

#: Segments of fewer rows have no index: all of their rows are taken.
INDEXED: Final = 256

_NUMBERS: Final = (pl.Int64, pl.Float64)


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The rows of a segment in the order of the hashes of their keys. NULL is a key like others.

    `columns` has an array for each column of numbers without NULL: rows at a few places are taken from it at once.
    """

    hashes: UInt64Array
    rows: Int64Array
    columns: Mapping[str, Array]

    @classmethod
    def of(cls, frame: pl.DataFrame, column: str) -> KeyIndex:
        """The index of a segment by a column."""
        hashes = frame.get_column(column).hash(0).to_numpy()
        order = np.argsort(hashes)
        numbers = (one for one in frame.iter_columns() if one.dtype in _NUMBERS and not one.null_count())
        return cls(hashes[order], order, {one.name: one.to_numpy() for one in numbers})

    @property
    def bytes(self) -> int:
        """The size in memory, beside that of the segment, whose numbers are not copied."""
        return 16 * len(self.rows)

    def small_rows(self, frame: pl.DataFrame, wanted: UInt64Array) -> SmallRows:
        """The rows of the segment whose keys have one of these hashes; `Unsupported` where they have a NULL or NaN."""
        places = self.find(wanted)
        if len(places) > MOST:
            raise Unsupported
        found = {}
        for name in frame.columns:
            known = self.columns.get(name)
            if known is None:
                found[name] = array_of(frame.get_column(name).gather(places))
            else:
                found[name] = known[places]
                if known.dtype == np.float64 and np.isnan(found[name]).any():
                    raise Unsupported
        return SmallRows(found, len(places))

    def find(self, wanted: UInt64Array) -> Int64Array:
        """The rows whose keys have one of these hashes, in their order; `wanted` has each hash once."""
        first = np.searchsorted(self.hashes, wanted)
        counts = np.searchsorted(self.hashes, wanted, side="right") - first
        hit = counts > 0
        first, counts = first[hit], counts[hit]
        ends = np.cumsum(counts)
        if not len(ends):
            return np.empty(0, dtype=np.int64)
        places = np.arange(ends[-1]) - np.repeat(ends - counts, counts) + np.repeat(first, counts)
        return np.sort(self.rows[places])


def size_of_index(rows: pl.DataFrame) -> int:
    """The size that an index of a segment will have, in bytes: a hash and a place for each row."""
    return 16 * rows.height


def hashes_of(keys: pl.Series) -> UInt64Array:
    """The hash of each key once."""
    found: UInt64Array = np.unique(keys.hash(0).to_numpy())
    return found
