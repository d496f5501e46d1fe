"""Indexes of segments by a key: which rows may have one of some keys, without a look at the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl

#: Segments of fewer rows have no index: all of their rows are taken.
INDEXED: Final = 256

Ints = np.ndarray[Any, np.dtype[np.int64]]
Hashes = np.ndarray[Any, np.dtype[np.uint64]]


@dataclass(frozen=True, slots=True)
class KeyIndex:
    """The rows of a segment in the order of the hashes of their keys. NULL is a key like others."""

    hashes: Hashes
    rows: Ints

    @classmethod
    def of(cls, keys: pl.Series) -> KeyIndex:
        """The index of a column."""
        hashes = keys.hash(0).to_numpy()
        order = np.argsort(hashes)
        return cls(hashes[order], order)

    @property
    def bytes(self) -> int:
        """The size in memory."""
        return self.hashes.nbytes + self.rows.nbytes

    def find(self, wanted: Hashes) -> Ints:
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


def hashes_of(keys: pl.Series) -> Hashes:
    """The hash of each key once."""
    found: Hashes = np.unique(keys.hash(0).to_numpy())
    return found
