"""What open searches have found so far, by partition, in tables that kernels read as they stand."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final

import numpy as np

from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.ordered.row_arrays import ranges

#: Places without a node may be so many, beside twice as many as the others.
LOOSE: Final = 4096


@dataclass(frozen=True, slots=True)
class NewNodes:
    """Nodes of some partitions: each has those with numbers from `first` on. Up to `behind` it has them already, and
    from there on `count` of these rows, in order of partitions.
    """

    first: Int64Array
    behind: Int64Array
    count: Int64Array
    rows: Int64Array

    def only(self, chosen: BoolArray) -> NewNodes:
        """The same of the chosen partitions, and none of the others."""
        count = np.where(chosen, self.count, 0)
        rows = self.rows[np.repeat(chosen, self.count)]
        return NewNodes(np.where(chosen, self.first, 0), np.where(chosen, self.behind, 0), count, rows)

    def at(self, places: Int64Array) -> NewNodes:
        """Those of the partitions at these places, which are in order and have all new ones."""
        return NewNodes(self.first[places], self.behind[places], self.count[places], self.rows)


class NodeArrays:
    """Rows of integers by partition, with numbers that last: new ones come behind the others, and the first ones go.

    The row with number n of partition p stands at `at[p] + n` in `table`. A partition that outgrows its room gets twice
    as much; all are packed once most places have no row. So it costs what is added, and now and then a few times that.
    """

    def __init__(self, width: int) -> None:
        self.table: Int64Array = np.empty((0, width), dtype=np.int64)
        self.at, self.first, self.end, self._room_first, self._room_end = (np.zeros(0, np.int64) for _ in range(5))
        self.height = self._used = 0

    @property
    def nbytes(self) -> int:
        return int(self._used * self.table.shape[1] * self.table.itemsize + 5 * self.at.nbytes)

    def grow(self, partitions: int) -> None:
        for name in ("at", "first", "end", "_room_first", "_room_end"):
            known = getattr(self, name)
            setattr(self, name, np.concatenate([known, np.zeros(partitions - len(known), dtype=np.int64)]))

    def hold(self, partitions: Int64Array, new: NewNodes) -> None:
        """From now on these partitions have these nodes, and no others. To do it again changes nothing."""
        stay, end = new.behind - new.first, new.behind + new.count
        room_first, room_end = self._room_first[partitions], self._room_end[partitions]
        at = np.where(stay > 0, self.at[partitions], room_first - new.behind)
        outgrown = np.flatnonzero(at + end > room_end)
        if len(outgrown):
            room = 2 * (stay + new.count)[outgrown]
            first = self._used + np.cumsum(room) - room
            self._extend(self._used + int(room.sum()))
            count = stay[outgrown]
            self.table[ranges(first, count)] = self.table[ranges(at[outgrown] + new.first[outgrown], count)]
            at[outgrown] = first - new.first[outgrown]
            room_first[outgrown], room_end[outgrown] = first, first + room
        self.table[ranges(at + new.behind, new.count)] = new.rows
        self.height += int((end - new.first - self.end[partitions] + self.first[partitions]).sum())
        self.at[partitions], self.first[partitions], self.end[partitions] = at, new.first, end
        self._room_first[partitions], self._room_end[partitions] = room_first, room_end
        if self._used > 3 * self.height + LOOSE:
            self._pack()

    def _extend(self, used: int) -> None:
        """Makes the table so long, and half as much longer."""
        if used > len(self.table):
            longer = np.empty((used + used // 2, self.table.shape[1]), dtype=np.int64)
            longer[: self._used] = self.table[: self._used]
            self.table = longer
        self._used = used

    def _pack(self) -> None:
        """All rows anew; where there is no memory for it they stay where they are."""
        with suppress(MemoryError):
            count = self.end - self.first
            first = np.cumsum(count) - count
            packed, at, room_end = self.table[ranges(self.at + self.first, count)], first - self.first, first + count
            self.table, self._used = packed, self.height
            self.at, self._room_first, self._room_end = at, first, room_end


def none_of(partitions: Int64Array, nodes: NodeArrays) -> NewNodes:
    """No nodes of these partitions."""
    none = np.zeros(len(partitions), dtype=np.int64)
    return NewNodes(none, none, none, nodes.table[:0])
