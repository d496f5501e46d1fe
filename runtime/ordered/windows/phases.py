"""Where the blocks of panes of a partition end: a number that its keys give it, the same in every run.

Were it one number for all, the blocks of all partitions would end in one increment.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
import polars as pl

from tidegate.runtime.arrays import Int64Array

UInt64Array = np.ndarray[Any, np.dtype[np.uint64]]
#: Of SplitMix64: what follows is said to pass tests of randomness.
_STEP: Final = np.uint64(0x9E3779B97F4A7C15)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)


def phases(keys: pl.DataFrame, many: int) -> Int64Array:
    """A number from 0 to `many` - 1 for each row. Equal keys have equal numbers, in all versions of all libraries: what
    is stored depends on it.
    """
    found = np.zeros(keys.height, dtype=np.uint64)
    for column in keys:
        found = _mixed(found + _STEP + _bits(column))
    return (found % np.uint64(many)).astype(np.int64)


def _mixed(values: UInt64Array) -> UInt64Array:
    values = (values ^ (values >> np.uint64(30))) * _FIRST
    values = (values ^ (values >> np.uint64(27))) * _SECOND
    return values ^ (values >> np.uint64(31))


def _bits(column: pl.Series) -> UInt64Array:
    """A number for each value; NULL and NaN have numbers of their own."""
    if column.dtype == pl.Null:
        return np.zeros(len(column), dtype=np.uint64)
    if column.dtype == pl.String:
        bits = _of_texts(column.fill_null(""))
    elif column.dtype == pl.Float64:
        bits = _mixed(column.fill_null(0.0).fill_nan(float("inf")).to_numpy().copy().view(np.uint64))
        bits[column.is_nan().fill_null(value=False).to_numpy()] = _FIRST
    else:
        bits = column.to_physical().fill_null(0).cast(pl.Int64).to_numpy().copy().view(np.uint64)
    bits[column.is_null().to_numpy()] = _SECOND
    return bits


def _of_texts(column: pl.Series) -> UInt64Array:
    """The sum of a text's bytes, each times a number of its place."""
    texts: Any = column.to_arrow(compat_level=pl.CompatLevel.oldest())
    _, offsets, data = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    first, last = int(ends[0]), int(ends[-1])
    if first == last:
        return np.zeros(len(texts), dtype=np.uint64)
    lengths = np.diff(ends)
    place = np.arange(last - first) - np.repeat(ends[:-1] - first, lengths)
    parts = np.frombuffer(data, dtype=np.uint8)[first:last].astype(np.uint64) * _mixed(place.astype(np.uint64) + _STEP)
    sums = np.concatenate([np.zeros(1, dtype=np.uint64), np.cumsum(parts)])
    made: UInt64Array = sums[ends[1:] - first] - sums[ends[:-1] - first] + lengths.astype(np.uint64)
    return made
