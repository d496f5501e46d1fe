"""A pool of closed situations by partition. Taking out and putting back some partitions does not touch the others."""

from __future__ import annotations

import numba as nb
import numpy as np

from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.kernels.cells import Situations
from tidegate.runtime.kernels.compiling import INTS, OUT, OUT_TABLE, compiled

#: Rows of the pool: what is known of a situation.
_DEFINITION, _TS, _TE, _NUMBER = range(4)
#: Places of the pool that may be unused, beside twice as many as are used.
_LOOSE = 4096


class SituationPool:
    """The closed situations of all partitions: partition p has the places first[p] to first[p] + count[p].

    It has room for some more; a partition that outgrows its room moves to the pool's end, and the pool is packed once
    most of it is unused. So putting costs what is put, and now and then as much again.
    """

    def __init__(self, definitions: int, partitions: int = 0) -> None:
        self.definitions = definitions
        self.rows = 0
        self._first, self._count, self._room = (np.zeros(partitions, dtype=np.int64) for _ in range(3))
        self._pool = np.empty((4, 0), dtype=np.int64)
        self._used = 0

    @property
    def places(self) -> int:
        """The size of the pool, used places and unused ones."""
        return self._pool.shape[1]

    def grow(self, partitions: int) -> None:
        """Makes room for at least this many partitions."""
        known = len(self._count)
        if partitions > known:
            more = np.zeros(max(partitions, known + known // 2) - known, dtype=np.int64)
            self._first, self._count, self._room = (
                np.concatenate([old, more]) for old in (self._first, self._count, self._room)
            )

    def take(self, partitions: Int64Array) -> tuple[Situations, Int64Array]:
        """Copies the situations of these partitions, renumbered 0, 1, ..., and the numbers of their runs."""
        total = int(self._count[partitions].sum())
        offsets = np.zeros(len(partitions) * self.definitions + 1, dtype=np.int64)
        ts, te, number = (np.empty(total, dtype=np.int64) for _ in range(3))
        _take(self._first, self._count, partitions, self.definitions, self._pool, offsets, ts, te, number)
        return Situations(self.definitions, offsets, ts, te, number), number

    def put(self, partitions: Int64Array, kept: Situations, number: Int64Array) -> None:
        """Replaces the situations of these partitions by those of partitions 0, 1, ... of `kept`; `number` has their
        runs.
        """
        self.rows += len(kept.ts) - int(self._count[partitions].sum())
        if self._used > 3 * self.rows + _LOOSE:
            self._pack()
        self._reserve(self._used + len(kept.ts) + len(kept.ts) // 2)
        self._used = _put(
            partitions, self.definitions, kept.offsets, kept.ts, kept.te, number,
            self._first, self._count, self._room, self._used, self._pool,
        )  # fmt: skip

    def _reserve(self, places: int) -> None:
        if places > self.places:
            larger = np.empty((4, max(places, self.places + self.places // 2)), dtype=np.int64)
            larger[:, : self._used] = self._pool[:, : self._used]
            self._pool = larger

    def _pack(self) -> None:
        first = np.cumsum(self._count) - self._count
        places = np.repeat(self._first - first, self._count) + np.arange(int(self._count.sum()))
        self._pool = self._pool.take(places, axis=1)  # row by row, as the kernels read it: an index would turn it round
        self._first, self._room, self._used = first, self._count.copy(), len(places)


@compiled(nb.void(INTS, INTS, INTS, nb.int64, OUT_TABLE, OUT, OUT, OUT, OUT), nogil=True)
def _take(
    first: Int64Array,
    count: Int64Array,
    partitions: Int64Array,
    definitions: int,
    pool: Int64Array,
    offsets: Int64Array,
    ts: Int64Array,
    te: Int64Array,
    number: Int64Array,
) -> None:
    place = 0
    for index in range(partitions.shape[0]):
        begin = first[partitions[index]]
        for slot in range(begin, begin + count[partitions[index]]):
            offsets[index * definitions + pool[_DEFINITION, slot] + 1] += 1
            ts[place] = pool[_TS, slot]
            te[place] = pool[_TE, slot]
            number[place] = pool[_NUMBER, slot]
            place += 1
    for cell in range(offsets.shape[0] - 1):
        offsets[cell + 1] += offsets[cell]


@compiled(nb.int64(INTS, nb.int64, INTS, INTS, INTS, INTS, OUT, OUT, OUT, nb.int64, OUT_TABLE), nogil=True)
def _put(
    partitions: Int64Array, definitions: int, offsets: Int64Array, ts: Int64Array, te: Int64Array, number: Int64Array, first: Int64Array, count: Int64Array, room: Int64Array,
    used: int, pool: Int64Array,
) -> int:  # fmt: skip
    """Writes the situations into the pool. Returns the number of places in use afterwards."""
    for index in range(partitions.shape[0]):
        partition, cell = partitions[index], index * definitions
        total = offsets[cell + definitions] - offsets[cell]
        if total > room[partition]:
            first[partition] = used
            room[partition] = total + total // 2
            used += room[partition]
        count[partition] = total
        place = first[partition]
        for definition in range(definitions):
            for new in range(offsets[cell + definition], offsets[cell + definition + 1]):
                pool[_DEFINITION, place] = definition
                pool[_TS, place] = ts[new]
                pool[_TE, place] = te[new]
                pool[_NUMBER, place] = number[new]
                place += 1
    return used
