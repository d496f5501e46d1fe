"""Rows by partition in arrays that are written in place: most partitions keep as many rows as before."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final, TypeAlias, TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tidegate.runtime.arrays import BoolArray, Int32Array, Int64Array
from tidegate.runtime.rows import Array, Unsupported

#: The first column of taken rows: the place of a partition among those that an increment looks at.
PARTITION: Final = "partition"
#: Places without a row may be so many, beside twice as many as the others.
LOOSE: Final = 4096
#: Rows of a result that may follow from one row and the one before it, such as ticks: a column of them takes 256 MiB.
MOST_OF_A_ROW: Final = 1 << 25
#: Those of all rows of an increment together: where progress moves on too far, few rows of many keys may have as many.
MOST_IN_ALL: Final = 1 << 26

T = TypeVar("T", bound=np.generic)
CountArray: TypeAlias = NDArray[np.integer[Any]]


def longer(known: NDArray[T], more: int) -> NDArray[T]:
    """An array with so many zeros behind it. They take no memory before something is written there."""
    grown = np.zeros(len(known) + more, dtype=known.dtype)
    grown[: len(known)] = known
    return grown


def counts(rows: pl.DataFrame, partitions: int) -> Int64Array:
    """How many rows each partition has."""
    return np.bincount(rows.get_column(PARTITION).to_numpy(), minlength=partitions).astype(np.int64, copy=False)


def ranges(first: Int64Array, count: CountArray) -> Int64Array:
    """Places in succession: so many from each first one on."""
    return np.repeat(first - (np.cumsum(count, dtype=np.int64) - count), count) + np.arange(int(count.sum()))


class RowArrays:
    """The rows of one table: those of partition p stand in succession from `_first[p]` on, where `_room[p]` have room.

    A partition that outgrows its room gets another one at the end; one that rows are added to, twice as much. All are
    packed once most places have no row. So putting rows costs what is put, and now and then some times as much.

    As long as no partition has had more than one row, and most have one, that of partition p stands at place p
    (`_is_single`). Then nothing else is noted than whether it is there.
    """

    #: Whether rows stand by partition at first, and integers are held in few bytes.
    compact: ClassVar[bool] = True

    def __init__(self, columns: Mapping[str, pl.DataType]) -> None:
        self.height = self._used = 0
        self._is_single = self.compact
        self._count: CountArray = np.zeros(0, dtype=np.uint8 if self.compact else np.int32)
        self._first: Int64Array = np.zeros(0, dtype=np.int64)
        self._room: Int32Array = np.zeros(0, dtype=np.int32)
        self._columns = {name: _Column(type_, narrow=self.compact) for name, type_ in columns.items()}

    @property
    def types(self) -> dict[str, pl.DataType]:
        return {name: column.type for name, column in self._columns.items()}

    @property
    def stored(self) -> int:
        """Places, with a row or without."""
        return self._used

    def bytes_of(self, partitions: int) -> int:
        """Bytes of memory, of so many partitions: places that never had a row take none."""
        arrays = (self._count,) if self._is_single else (self._count, self._first, self._room)
        noted = partitions * sum(array.itemsize for array in arrays)
        return noted + sum(column.bytes_of(self._used) for column in self._columns.values())

    def grow(self, partitions: int) -> None:
        more = partitions - len(self._count)
        if self._is_single:
            self._count = longer(self._count, more)
            return
        self._count, self._first, self._room = (
            longer(self._count, more),
            longer(self._first, more),
            longer(self._room, more),
        )

    def take(self, partitions: Int64Array) -> pl.DataFrame:
        """The rows of these partitions, in their order, with the places of the partitions. They stay here, too."""
        of = np.repeat(np.arange(len(partitions)), self._count[partitions])
        return self._taken(of, self._places(partitions))

    def take_some(self, partitions: Int64Array, of: Int64Array, places: Int64Array) -> pl.DataFrame:
        """Some rows of these partitions by their places, from 0 on. `of` has for each the place of its partition."""
        return self._taken(of, self._starts(partitions[of]) + places)

    def heights(self, partitions: Int64Array) -> Int64Array:
        """How many rows each of these partitions has."""
        return self._count[partitions].astype(np.int64)

    def _taken(self, of: Int64Array, at: Int64Array) -> pl.DataFrame:
        return pl.DataFrame(
            [pl.Series(PARTITION, of), *(column.take(at).alias(name) for name, column in self._columns.items())]
        )

    def last_of_each(self, partitions: Int64Array, names: Sequence[str]) -> pl.DataFrame:
        """Columns of the last row of each of these partitions, NULL where it has none."""
        count = self._count[partitions]
        at, known = self._starts(partitions) + (count.astype(np.int64) - 1), count > 0
        if known.all():
            return pl.DataFrame([self._columns[name].take(at).alias(name) for name in names])
        at = np.where(known, at, at[known.argmax()])  # any place that a row was written to
        return pl.DataFrame([self._columns[name].take(at, known).alias(name) for name in names])

    def last_arrays(self, partitions: Int64Array, names: Sequence[str]) -> list[Array]:
        """Columns of the last row of each of these partitions, all of which have one; `Unsupported` where some value is
        NULL or NaN.
        """
        at = self._starts(partitions) + (self._count[partitions].astype(np.int64) - 1)
        return [self._columns[name].array(at) for name in names]

    def put(self, partitions: Int64Array, rows: pl.DataFrame, *, one_each: bool = False) -> None:
        """From now on these partitions have these rows, which are in order of the places of their partitions, and no
        others. `one_each`: each has one.
        """
        count = np.ones(len(partitions), dtype=np.int64) if one_each else counts(rows, len(partitions))
        if self._is_single and not one_each and count.max(initial=0) > 1:
            self._note_places()
        self.height += rows.height - int(self._count[partitions].sum())
        if self._is_single:
            self._used = max(self._used, int(partitions.max(initial=-1)) + 1)
        else:
            outgrown = np.flatnonzero(count > self._room[partitions])
            more, moved = count[outgrown], partitions[outgrown]
            self._first[moved], self._room[moved] = self._used + np.cumsum(more) - more, more
            self._used += int(more.sum())
        self._count[partitions] = count
        self._write(self._starts(partitions) if one_each else self._places(partitions), rows)

    def add(self, partitions: Int64Array, before: Int64Array, rows: pl.DataFrame) -> None:
        """From now on these partitions have these rows, as in `put`, behind as many of their rows as `before` says. To
        do it again changes nothing.
        """
        if self._is_single:
            self._note_places()
        more = counts(rows, len(partitions))
        count = before + more
        outgrown = np.flatnonzero(count > self._room[partitions])
        if len(outgrown):
            self._move(partitions[outgrown], before[outgrown], 2 * count[outgrown])
        self.height += int((count - self._count[partitions]).sum())
        self._count[partitions] = count
        self._write(ranges(self._first[partitions] + before, more), rows)

    def drop(self, partitions: Int64Array, count: Int64Array) -> None:
        """From now on these partitions are without so many of their first rows, each of which it has."""
        if self._is_single:
            self._note_places()
        first, left = self._first[partitions] + count, self._count[partitions] - count
        room = self._room[partitions] - count
        self._first[partitions], self._count[partitions], self._room[partitions] = first, left, room
        self.height -= int(count.sum())

    def _write(self, at: Int64Array, rows: pl.DataFrame) -> None:
        for name, column in self._columns.items():
            column.put(at, rows.get_column(name), self._used)
        if self._used > 3 * self.height + LOOSE:
            self._pack(self._count)

    def _note_places(self) -> None:
        """From now on partitions may have any number of rows, anywhere."""
        room = self._count.astype(np.int32)
        first = np.arange(len(room))
        self._count, self._first, self._room, self._is_single = room.copy(), first, room, False

    def _move(self, partitions: Int64Array, count: Int64Array, room: Int64Array) -> None:
        """Gives other room to partitions that have so many rows."""
        first, used = self._used + np.cumsum(room) - room, self._used + int(room.sum())
        at, to = ranges(self._first[partitions], count), ranges(first, count)
        for column in self._columns.values():
            column.grow(used)
            column.move(at, to)
        self._first[partitions], self._room[partitions], self._used = first, room, used

    def _pack(self, room: CountArray) -> None:
        """All rows anew, with so much room in each partition; where there is no memory for it they stay where they
        are.
        """
        with suppress(MemoryError):
            if self._is_single:
                self._note_places()
            first, used = np.cumsum(room, dtype=np.int64) - room, int(room.sum())
            at, to = self._places(np.arange(len(self._count))), ranges(first, self._count)
            packed = [column.packed(at, to, used) for column in self._columns.values()]
            # Only now, as there may be no memory for one of them.
            self._first, self._room, self._used = first, room.astype(np.int32), used
            for column, (values, missing) in zip(self._columns.values(), packed, strict=True):
                column.hold(values, missing)

    def _starts(self, partitions: Int64Array) -> Int64Array:
        """Where the rows of these partitions begin; of one without rows anything."""
        return partitions if self._is_single else self._first[partitions]

    def _places(self, partitions: Int64Array) -> Int64Array:
        count = self._count[partitions]
        if self._is_single:
            return partitions if count.all() else partitions[count > 0]
        return self._first[partitions] if (count == 1).all() else ranges(self._first[partitions], count)


#: The types of integers that a column is held in, from the narrowest on, and their least and greatest values.
_INTEGERS: Final = tuple(
    (np.dtype(type_), int(np.iinfo(type_).min), int(np.iinfo(type_).max))
    for type_ in (np.int8, np.int16, np.int32, np.int64)
)


class _Column:
    """The values of a column, and where there are none; None as long as there are everywhere.

    Integers may be `narrow`: as wide as the widest of those that were put.
    """

    def __init__(self, type_: pl.DataType, *, narrow: bool) -> None:
        self.type = type_
        self._narrow = narrow and type_ == pl.Int64
        self._values: np.ndarray[Any, Any] = np.zeros(0, dtype=np.int8 if self._narrow else _held(type_))
        self._missing: BoolArray | None = None

    def bytes_of(self, height: int) -> int:
        """The bytes of so many places."""
        height = min(height, len(self._values))
        return height * (self._values.itemsize + (self._missing is not None))

    def take(self, at: Int64Array, known: BoolArray | None = None) -> pl.Series:
        """The values at these places, NULL where nothing is `known`; None: all are."""
        if known is not None and not known.any():
            return pl.Series([None], dtype=self.type).new_from_index(0, len(at))
        values = self._values[at]
        if self._narrow:
            values = values.astype(np.int64, copy=False)
        taken = pl.Series(values.tolist() if self.type == pl.String else values, dtype=self.type)
        if self._missing is not None:
            there = ~self._missing[at]
            known = there if known is None else known & there
        if known is None or known.all():
            return taken
        return taken.set(pl.Series(~known), None)

    def array(self, at: Int64Array) -> Array:
        """The values at these places, integers with 64 bits; `Unsupported` where one is NULL or NaN."""
        values = self._values[at]
        if self._missing is not None and self._missing[at].any():
            raise Unsupported
        if self.type == pl.Float64 and np.isnan(values).any():
            raise Unsupported
        return values.astype(np.int64, copy=False) if self._narrow else values

    @property
    def numbers(self) -> Int64Array:
        """The values at all places of a column of integers without NULLs that is not narrow."""
        assert not self._narrow
        return self._values

    def put(self, at: Int64Array, rows: pl.Series, height: int) -> None:
        """Writes these rows. There is room for `height` of them then, and for some more."""
        missing = rows.null_count() > 0
        if self._narrow:
            self._widen(rows, height)
        self.grow(height)
        if missing and self._missing is None:
            self._missing = np.zeros(len(self._values), dtype=np.bool_)
        if self._missing is not None:
            self._missing[at] = rows.is_null().to_numpy() if missing else False
        if missing and self.type != pl.String:
            rows = rows.fill_null(value=self.type != pl.Boolean and 0)
        self._values[at] = rows.to_numpy()

    def _widen(self, rows: pl.Series, height: int) -> None:
        """Makes the integers of so many rows as wide as these rows need."""
        held = self._values.dtype
        if held == np.int64 or (least := rows.min()) is None:
            return
        greatest = rows.max()
        needed = next(type_ for type_, low, high in _INTEGERS if low <= least and greatest <= high)  # type: ignore[operator]  # integers
        if needed.itemsize > held.itemsize:
            values = np.zeros(len(self._values), dtype=needed)
            values[:height] = self._values[:height]
            self._values = values

    def grow(self, height: int) -> None:
        if height > len(self._values):
            more = height + height // 2 - len(self._values)
            values = longer(self._values, more)
            self._missing = None if self._missing is None else longer(self._missing, more)
            self._values = values

    def move(self, at: Int64Array, to: Int64Array) -> None:
        """Writes the rows at some places to others, where there is room."""
        self._values[to] = self._values[at]
        if self._missing is not None:
            self._missing[to] = self._missing[at]

    def packed(self, at: Int64Array, to: Int64Array, height: int) -> tuple[np.ndarray[Any, Any], BoolArray | None]:
        """The rows at some places alone, at others, of so many: to be held instead of all."""
        values = np.zeros(height, dtype=self._values.dtype)
        values[to] = self._values[at]
        if self._missing is None or not (none := self._missing[at]).any():
            return values, None
        missing = np.zeros(height, dtype=np.bool_)
        missing[to] = none
        return values, missing

    def hold(self, values: np.ndarray[Any, Any], missing: BoolArray | None) -> None:
        self._values, self._missing = values, missing


def _held(type_: pl.DataType) -> Any:
    """The type of NumPy in which values are held; texts are objects."""
    types = {pl.Int64: np.int64, pl.Float64: np.float64, pl.Boolean: np.bool_}
    return types.get(type_.base_type(), np.object_)
