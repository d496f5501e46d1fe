"""Digests of pushed rows, which tell whether those of a batch that was begun are here again.

They cost a batch little beside itself: rows in Arrow's columns are summed at the speed of memory, since a cryptographic
hash of a million takes as long as finding their situations does.
"""

from __future__ import annotations

import datetime as dt
import hashlib
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.runtime.arrow_arrays import array_of_values
from tidegate.runtime.ingest.ingest import Arrival
from tidegate.runtime.ingest.raw_rows import CheckedColumn
from tidegate.runtime.state.errors import is_out_of_memory

#: Words of 32 bits that make one sum. The weights are of 64 bits: no change of a single word is lost, and those of two
#: seldom cancel each other, even of their highest bits alone.
_WORDS = 4096
_WEIGHTS = np.frombuffer(hashlib.shake_128(b"weights").digest(8 * _WORDS), np.uint64)
#: Python's types of values of which Arrow makes columns that differ where the values do, with the columns' types; None:
#: Arrow finds the one that fits.
_PLAIN: Final[Mapping[type, pa.DataType | None]] = {
    bool: pa.bool_(),
    int: pa.int64(),
    float: pa.float64(),
    str: pa.string(),
    dt.datetime: None,
    dt.date: None,
}


class _Digest(Protocol):
    def update(self, data: Any, /) -> None: ...


def digest_of(pushed: Mapping[str, Sequence[Arrival]], noted: Mapping[str, str]) -> str:
    """Identifies the rows that a session was given: the same again, also in another process, have the same.

    `noted` has the digests of frames, which were read when they were noted. "" where there are no rows.
    """
    if not pushed and not noted:
        return ""
    digest = hashlib.blake2b(repr(sorted(noted.items())).encode(), digest_size=16)
    try:
        for stream in sorted(pushed):
            for arrival in pushed[stream]:
                digest.update(repr((stream, list(arrival.rows.columns), arrival.rows.count)).encode())
                for column in arrival.rows.columns.values():
                    _add(digest, column)
    except (ValueError, TypeError, RecursionError, pa.ArrowException) as error:
        if isinstance(error, pa.ArrowException) and is_out_of_memory(error):
            raise
        return uuid.uuid4().hex  # values that can not be said: like no others
    return digest.hexdigest()


def _add(digest: _Digest, column: pa.Array | Sequence[object]) -> None:
    if isinstance(column, CheckedColumn):
        digest.update(repr([(i, value.reason, value.text) for i, value in column.malformed.items()]).encode())
        column = column.values
    array = column if isinstance(column, pa.Array) else _plain(column)
    if array is None:
        digest.update(repr(column).encode())
        return
    digest.update(f"{array.type} {len(array)}".encode())
    if array.null_count:
        _add_sums(digest, *_parts(array.is_valid()))
    for part in _parts(array) if len(array) > array.null_count else ():
        _add_sums(digest, part)


def _parts(array: pa.Array) -> Iterator[Any]:
    """The bytes of an array's values; of a slice only its own, so that it is like an array by itself."""
    if pa.types.is_boolean(array.type):
        yield from _parts(pl.Series(array).fill_null(False).cast(pl.UInt8).to_arrow())
    elif pa.types.is_primitive(array.type):
        width = array.type.bit_width // 8
        yield memoryview(array.buffers()[1])[array.offset * width : (array.offset + len(array)) * width]
    else:
        yield from filter(None, pa.concat_arrays([array, array[:0]]).buffers()[1:])


def _plain(column: Sequence[object]) -> pa.Array | None:
    """Python values as an Arrow array where it tells them apart: in a fifth of the time of their `repr`."""
    types = set(map(type, column)) - {type(None)}
    if len(types) != 1 or not types <= {*_PLAIN}:
        return None
    (type_,) = types
    try:
        return pa.array(column) if _PLAIN[type_] is None else array_of_values(column, _PLAIN[type_])
    except (ValueError, OverflowError):  # integers beyond 64 bits, text that is not UTF-8
        return None


def _add_sums(digest: _Digest, data: Any) -> None:
    """Adds the weighted sum of every `_WORDS` words instead of these, and what is left after them."""
    whole = len(data) // (_WORDS * 4) * _WORDS
    if whole:
        words = np.frombuffer(data, np.uint32, whole).reshape(-1, _WORDS)
        digest.update(np.einsum("ij,j->i", words, _WEIGHTS, dtype=np.uint64))
    digest.update(memoryview(data)[whole * 4 :])
