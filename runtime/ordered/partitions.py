"""The numbers of partitions. Each combination of keys has one for as long as it has state; then another may have it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Final

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.ordered.events import key_text
from tidegate.algebra.schema import Schema
from tidegate.algebra.types import DataType, Kind
from tidegate.runtime.arrays import BoolArray, Int32Array, Int64Array
from tidegate.runtime.arrow_arrays import array_of_numbers
from tidegate.runtime.eval.aggregates.partials import same_zero
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.kernels.partition_numbers import PartitionNumbers
from tidegate.runtime.ordered.state_tables import KEY
from tidegate.runtime.rows import Rows, SmallRows

#: A column is made of so many pieces at most, before it is put together.
_CHUNKS: Final = 256


class Partitions:
    """The partitions seen so far. Each combination of keys has a number, by first appearance, or one that was free."""

    def __init__(self, schema: Schema, known: pl.DataFrame) -> None:
        """`schema` has the key attributes, `known` the keys of partitions 0, 1, ..."""
        self.schema, self.known = schema, known
        # Of each number the row of `known` with its keys; None: the row of this number. Keys of free numbers have a
        # row, too, until others have the number.
        self._row: Int64Array | None = None
        self._free = np.empty(0, dtype=np.int64)
        alone = schema.attributes[0] if len(schema) == 1 else None
        self._integer = alone is not None and alone.type.is_integer_held
        self._integers: PartitionNumbers | None = None
        self._numbers: dict[object, int] | None = None
        if self._integer and not known.to_series().null_count():
            self._integers = PartitionNumbers(known.to_series().to_numpy())

    @classmethod
    def of(cls, schema: Schema) -> Partitions:
        """The partitions of a schema, none so far. Without keys there is one."""
        return cls(schema, pl.DataFrame(schema=polars_schema(schema)) if len(schema) else pl.DataFrame({"": [0]}))

    def __len__(self) -> int:
        if self._integers is not None:
            return len(self._integers)
        return self.known.height if self._row is None else len(self._row)

    @property
    def nbytes(self) -> int:
        """Bytes of memory of the keys and what finds their numbers, without that of keys which are no integers."""
        if self._integers is not None:
            return self._integers.nbytes
        return int(self.known.estimated_size()) + (0 if self._row is None else self._row.nbytes)

    def rows(self, numbers: Int64Array | Int32Array) -> pl.DataFrame:
        """The keys of the partitions with these numbers, one row each."""
        if self._integers is None:
            return self.known[numbers if self._row is None else self._row[numbers]]
        (name,) = self.schema.names
        return pl.Series(name, self._integers.keys_of(numbers)).to_frame()

    def text(self, number: int) -> str:
        """The keys of the partition with this number, as people read them; empty without keys."""
        names = self.schema.names
        return key_text(self.schema, names, self.rows(np.array([number])).row(0)) if names else ""

    def arrays(self, numbers: Int64Array | Int32Array) -> list[pa.Array]:
        """The keys of the partitions with these numbers, as Arrow columns."""
        if self._integers is not None:
            return [array_of_numbers(self._integers.keys_of(numbers))]
        table = self.rows(numbers).to_arrow(compat_level=pl.CompatLevel.oldest())
        return [column.combine_chunks() for column in table.columns]

    def kept(self, numbers: Int64Array) -> pl.DataFrame:
        """The keys of the partitions with these numbers, one row each, with the column names of stored tables."""
        named = zip(self.rows(numbers).get_columns(), key_columns(self.schema), strict=True)
        return pl.DataFrame([column.alias(name) for column, name in named])

    def of_kept(self, rows: pl.DataFrame) -> Int32Array:
        """The partition number of every row of a stored table."""
        if not len(self.schema):
            return self.assign(rows)
        names = enumerate(self.schema.names)
        return self.assign(rows.select(pl.col(KEY.format(place)).alias(name) for place, name in names))

    @property
    def gives_again(self) -> bool:
        """Whether numbers can be free: not those of integer keys, whose tables are made anew in less time."""
        return self._integers is None and len(self.schema) > 0

    def free(self, numbers: Int64Array) -> None:
        """From now on other keys may have these numbers."""
        gone = np.unique(numbers)
        gone = gone[~self._is_free(len(self))[gone]]
        if not len(gone):
            return
        with self._consistent():
            known = self._by_keys()
            for key in self._hashable(self.rows(gone)):
                del known[key]
            self._free = np.concatenate([self._free, gone])

    def read(self, events: pl.DataFrame, time: str) -> EventColumns:
        """Events as run-length encoding reads them: block by block, with integer keys looked up per block."""
        if self._integers is not None and not (key := events.get_column(self.schema.names[0])).null_count():
            return EventColumns(self._integers, key, events.get_column(time))
        return EventColumns(None, pl.Series(self.assign(events)), events.get_column(time))

    def assign(self, events: Rows) -> Int32Array:
        """The partition number of every row. Without keys there is one partition."""
        if not len(self.schema) or not events.height:
            return np.zeros(events.height, dtype=np.int32)
        if isinstance(events, SmallRows):
            if self._integers is not None:
                return self._integers.assign(events.columns[self.schema.names[0]])
            events = events.only(self.schema.names).frame()
        if self._integers is not None:
            key = events.get_column(self.schema.names[0])
            if not key.null_count():
                return self._integers.assign(key.to_numpy())
            self.known, self._integers = pl.DataFrame({self.schema.names[0]: self._integers.keys}), None
        return self._numbers_by(self._assign, events)

    def find(self, rows: pl.DataFrame) -> Int32Array:
        """The partition number of every row, below 0 where its keys have none. Without keys there is one partition."""
        if not len(self.schema) or not rows.height:
            return np.zeros(rows.height, dtype=np.int32)
        if self._integers is None:
            return self._numbers_by(self._find, rows)
        key = rows.get_column(self.schema.names[0])
        numbers = self._integers.find(key.fill_null(0).to_numpy())
        return np.where(key.is_null().to_numpy(), np.int32(-1), numbers)

    def _numbers_by(self, number: Callable[[pl.DataFrame], Int32Array], rows: pl.DataFrame) -> Int32Array:
        """The partition number of every row, by a function of keys that are all different."""
        keys = rows.select(_key(name, self.schema[name].type) for name in self.schema)
        distinct = keys.unique(maintain_order=True)
        numbers = number(distinct)
        if distinct.height == keys.height:
            return numbers
        on = [column for name in self.schema for column in _comparable(name, self.schema[name].type)]
        wanted, numbered = keys.select(on), distinct.select(*on, pl.Series("\0\0number", numbers))
        joined = wanted.join(numbered, on=wanted.columns, how="left", nulls_equal=True, maintain_order="left")
        return joined.get_column("\0\0number").to_numpy()

    def _find(self, keys: pl.DataFrame) -> Int32Array:
        """The partition numbers of keys that are all different, below 0 of those that have none."""
        known = self._by_keys()
        return np.array([known.get(key, -1) for key in self._hashable(keys)], dtype=np.int32)

    def _assign(self, keys: pl.DataFrame) -> Int32Array:
        """The partition numbers of keys that are all different."""
        if not self.known.height:
            self.known, self._numbers = keys, None
            return np.arange(keys.height, dtype=np.int32)
        with self._consistent():
            known, many = self._by_keys(), len(self)
            before, fresh = len(known), itertools.chain(self._free.tolist(), itertools.count(many))
            assigned = np.fromiter(
                (
                    number if (number := known.get(key)) is not None else known.setdefault(key, next(fresh))
                    for key in self._hashable(keys)
                ),
                dtype=np.int32,
                count=keys.height,
            )
            if len(known) > before:
                more = max(many, int(assigned.max()) + 1)
                new = self._is_free(more)[assigned] | (assigned >= many)
                self._enter(keys.filter(new), assigned[new], more)
                self._free = self._free[len(known) - before :]
        return assigned

    def _enter(self, keys: pl.DataFrame, numbers: Int32Array, many: int) -> None:
        """These keys have these numbers now, of so many."""
        known, row = pl.concat([self.known, keys]), self._row
        if row is not None or known.height > many:
            row = np.arange(many) if row is None else np.concatenate([row, np.empty(many - len(row), dtype=np.int64)])
            row[numbers] = self.known.height + np.arange(keys.height)
        if row is not None and known.height > 2 * many:
            known, row = known[row], None
        self.known, self._row = known.rechunk() if known.n_chunks() > _CHUNKS else known, row

    def _by_keys(self) -> dict[object, int]:
        """The numbers that are not free, by keys."""
        if self._numbers is None:
            numbers = np.flatnonzero(~self._is_free(len(self)))
            self._numbers = dict(zip(self._hashable(self.rows(numbers)), numbers.tolist(), strict=True))
        return self._numbers

    def _is_free(self, many: int) -> BoolArray:
        """Which of so many numbers are free."""
        is_free = np.zeros(many, dtype=np.bool_)
        is_free[self._free] = True
        return is_free

    @contextmanager
    def _consistent(self) -> Iterator[None]:
        """Where something breaks off, such as for want of memory, the numbers are read from the known keys again."""
        try:
            yield
        except BaseException:
            self._numbers = None
            raise

    def _hashable(self, keys: pl.DataFrame) -> Iterable[object]:
        """The rows, with a value that equals itself in the place of NaN. Of one column they are its values: Python's
        search for garbage has to look at tuples, and not at texts.
        """
        has_nan = any(attribute.type.kind is Kind.DOUBLE for attribute in self.schema.attributes)
        if keys.width == 1:
            values = keys.to_series().to_list()
            return ("NaN" if value != value else value for value in values) if has_nan else values
        if not has_nan:
            return keys.iter_rows(buffer_size=1 << 16)
        return (tuple("NaN" if value != value else value for value in row) for row in keys.iter_rows())


class EventColumns:
    """Partition numbers and times of events; the columns may be in several pieces, and `known` numbers their keys."""

    def __init__(self, known: PartitionNumbers | None, keys: pl.Series, time: pl.Series) -> None:
        self._known, self._keys, self._time = known, keys, time
        self._numbers = np.empty(0, dtype=np.int32)

    def partitions(self, first: int, end: int) -> Int32Array:
        keys = self._keys.slice(first, end - first).to_numpy()
        if self._known is None:
            return keys
        if len(self._numbers) < len(keys):
            self._numbers = np.empty(len(keys), dtype=np.int32)
        return self._known.assign(keys, self._numbers)

    def times(self, first: int, end: int) -> Int64Array:
        return self._time.slice(first, end - first).to_numpy()


def _key(name: str, type_: DataType) -> pl.Expr:
    return same_zero(pl.col(name)).alias(name) if type_.kind is Kind.DOUBLE else pl.col(name)


def _comparable(name: str, type_: DataType) -> list[pl.Expr]:
    """A key as columns to join by: of doubles two, since Polars' joins find no NaN in sorted columns."""
    column = pl.col(name)
    if type_.kind is not Kind.DOUBLE:
        return [column]
    return [column.fill_nan(0.0), column.is_nan().alias(f"\0{name}")]


def key_columns(keys: Schema) -> dict[str, pl.DataType]:
    """The key columns of stored tables. Without keys there is one, as all events are one partition."""
    types = list(polars_schema(keys).values()) or [pl.Int64()]
    return {KEY.format(place): type_ for place, type_ in enumerate(types)}
