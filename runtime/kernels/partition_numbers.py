"""Partition numbers of 64-bit integer keys, by first appearance. A key keeps its number as long as the state lives.

A table over the range of the keys finds the number where that range is small, or not much larger than the keys are
many, else a hash table with open addressing.
Only the keys in the order of their numbers are state; both tables are built from them.
"""

from __future__ import annotations

from typing import Any

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Int32Array, Int64Array
from tidegate.runtime.kernels.compiling import INTS, OUT, OUT_NUMBERS, compiled

_FREE = -1
_LEAST, _GREATEST = -(1 << 63), (1 << 63) - 1
#: Ranges of keys up to this many have a table: 16 MB at most. So have larger ones of up to so many values a key: a hash
#: table takes up to half as much memory, and a look two places of it.
_SMALL_RANGE = 1 << 22
_SPARSE = 16
#: Places of a table are 32-bit integers, also with some room on both sides.
_LARGE_RANGE = 1 << 30
_TWO = nb.types.UniTuple(nb.int64, 2)  # type: ignore[no-untyped-call]  # numba has no types for it


class PartitionNumbers:
    """The numbers of the keys seen so far."""

    def __init__(self, keys: Int64Array | None = None) -> None:
        """Starts from the keys seen before, in the order of their numbers."""
        known = np.empty(0, dtype=np.int64) if keys is None else np.array(keys, dtype=np.int64)
        self._count = len(known)
        self._low = 0
        #: The number of each key from `_low` on, and of each number the place of its key there.
        self._dense: Int32Array | None = None
        self._offsets = np.empty(0, dtype=np.int32)
        #: Or the hash table, and the key of each number.
        self._table = np.empty(0, dtype=np.int32)
        self._keys = known
        self._cover(known)

    def __len__(self) -> int:
        return self._count

    @property
    def keys(self) -> Int64Array:
        """The keys, in the order of their numbers."""
        return self.keys_of(slice(0, self._count))

    def keys_of(self, numbers: Int64Array | Int32Array | slice) -> Int64Array:
        """The keys that have these numbers."""
        if self._dense is None:
            return self._keys[numbers]
        return self._offsets[numbers].astype(np.int64) + self._low

    @property
    def nbytes(self) -> int:
        """Bytes of memory: of keys that there are, as room for others takes none."""
        if self._dense is None:
            return self._table.nbytes + self._count * self._keys.itemsize
        return self._dense.nbytes + self._count * self._offsets.itemsize

    def assign(self, keys: Int64Array, out: Int32Array | None = None) -> Int32Array:
        """The partition number of every row, int32[n], in `out` if given. A new key gets the next number."""
        numbers = np.empty(len(keys), dtype=np.int32) if out is None else out[: len(keys)]
        row = 0
        while row < len(keys):
            if self._dense is not None:
                row, self._count = _look_up(keys, row, self._low, self._dense, self._offsets, self._count, numbers)
            else:
                row, self._count = _hash(keys, row, self._table, self._keys, self._count, numbers)
            if row < len(keys):
                self._cover(keys[row:])
        return numbers

    def find(self, keys: Int64Array) -> Int32Array:
        """The partition number of every row, int32[n], below 0 where its key has none."""
        numbers = np.empty(len(keys), dtype=np.int32)
        if self._dense is not None:
            _find_dense(keys, self._low, self._dense, numbers)
        else:
            _find_hashed(keys, self._table, self._keys, numbers)
        return numbers

    def _cover(self, coming: Int64Array) -> None:
        """Makes room for at least the first of the coming keys: a larger range, or a larger hash table."""
        known = self.keys
        both = [ends for part in (known, coming) if len(part) for ends in (int(part.min()), int(part.max()))]
        low, high = (min(both), max(both)) if both else (0, 0)
        if high - low < max(_SMALL_RANGE, min(_SPARSE * len(known), _LARGE_RANGE)):
            if len(known):  # some more on both sides, or keys that creep on would cost a table a batch
                more = (high - low) // (2 if high - low < _SMALL_RANGE else 8)
                low, high = max(low - more, _LEAST), min(high + more, _GREATEST)
            room = high - low + 1
            dense, offsets = np.full(room, _FREE, dtype=np.int32), np.empty(room, dtype=np.int32)
            offsets[: len(known)] = places = known - low
            dense[places] = np.arange(len(known), dtype=np.int32)
            # Only now, as there may be no memory: with a table that is larger than `_offsets` a kernel writes past its
            # end.
            self._low, self._dense, self._offsets = low, dense, offsets
            self._table, self._keys = np.empty(0, dtype=np.int32), np.empty(0, dtype=np.int64)
            return
        size = 1 << max(12, (4 * len(known)).bit_length())
        table, keys = np.full(size, _FREE, dtype=np.int32), np.empty(size // 2, dtype=np.int64)
        _enter(known, table)
        keys[: len(known)] = known
        self._table, self._keys, self._dense, self._offsets = table, keys, None, np.empty(0, dtype=np.int32)


@compiled(
    _TWO(INTS, nb.int64, nb.int64, OUT_NUMBERS, OUT_NUMBERS, nb.int64, OUT_NUMBERS),
    nogil=True,
)
def _look_up(
    keys: Int64Array, row: int, low: int, table: Int32Array, offsets: Int32Array, count: int, numbers: Int32Array
) -> tuple[int, int]:
    """Numbers rows from `row` on until a key lies outside the table; returns that row and the count of numbers so
    far. `offsets` are the places of the keys, by their numbers.
    """
    size, offset = np.uint64(table.shape[0]), np.uint64(np.int64(low))
    while row < keys.shape[0]:
        place = np.uint64(keys[row]) - offset
        if place >= size:
            break
        number = table[place]
        if number == _FREE:
            number = np.int32(count)
            table[place] = number
            offsets[count] = np.int32(place)
            count += 1
        numbers[row] = number
        row += 1
    return row, count


@compiled(nb.void(INTS, nb.int64, OUT_NUMBERS, OUT_NUMBERS), nogil=True)
def _find_dense(keys: Int64Array, low: int, table: Int32Array, numbers: Int32Array) -> None:
    size, offset = np.uint64(table.shape[0]), np.uint64(np.int64(low))
    for row in range(keys.shape[0]):
        place = np.uint64(keys[row]) - offset
        numbers[row] = table[place] if place < size else np.int32(_FREE)


@compiled(nb.uint64(nb.int64), inline="always")
def _mixed(key: int) -> Any:
    spread = np.uint64(key) * np.uint64(0x9E3779B97F4A7C15)
    return spread ^ (spread >> np.uint64(32))


@compiled(
    _TWO(INTS, nb.int64, OUT_NUMBERS, OUT, nb.int64, OUT_NUMBERS),
    nogil=True,
)
def _hash(
    keys: Int64Array, row: int, table: Int32Array, known: Int64Array, count: int, numbers: Int32Array
) -> tuple[int, int]:
    """Numbers rows from `row` on until the table is half full; returns the next row and the count of numbers so far."""
    mask = np.uint64(table.shape[0] - 1)
    while row < keys.shape[0] and 2 * count < table.shape[0]:
        key = keys[row]
        place = _mixed(key) & mask
        number = table[place]
        while number != _FREE and known[number] != key:
            place = (place + np.uint64(1)) & mask
            number = table[place]
        if number == _FREE:
            number = np.int32(count)
            table[place] = number
            known[count] = key
            count += 1
        numbers[row] = number
        row += 1
    return row, count


@compiled(nb.void(INTS, OUT_NUMBERS, OUT, OUT_NUMBERS), nogil=True)
def _find_hashed(keys: Int64Array, table: Int32Array, known: Int64Array, numbers: Int32Array) -> None:
    mask = np.uint64(table.shape[0] - 1)
    for row in range(keys.shape[0]):
        place = _mixed(keys[row]) & mask
        number = table[place]
        while number != _FREE and known[number] != keys[row]:
            place = (place + np.uint64(1)) & mask
            number = table[place]
        numbers[row] = number


@compiled(nb.void(INTS, OUT_NUMBERS), nogil=True)
def _enter(known: Int64Array, table: Int32Array) -> None:
    """Enters keys, all different, into an empty hash table."""
    mask = np.uint64(table.shape[0] - 1)
    for number in range(known.shape[0]):
        place = _mixed(known[number]) & mask
        while table[place] != _FREE:
            place = (place + np.uint64(1)) & mask
        table[place] = number
