"""Rows in one of two forms: a Polars frame or, where they are few, arrays without NULL and NaN, which NumPy compares as
they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.schema import Schema
from tidegate.algebra.types import Kind
from tidegate.runtime.arrow_arrays import array_of_numbers, array_of_values

#: A column: 64-bit integers or doubles, booleans, or strings as Python objects.
Array = np.ndarray[Any, np.dtype[Any]]

#: More rows than this are faster in Polars, which uses all cores and hashes where this sorts.
MOST: Final = 5_000
#: Pairs of rows that a join compares are arrays up to this number.
MOST_PAIRS: Final = 1 << 18
#: Segments are written with large strings, as every reader here understands them.
_ARROW = pl.CompatLevel.oldest()


class Unsupported(Exception):
    """These rows have a NULL, a NaN or are too many for NumPy; Polars evaluates them."""


@dataclass(frozen=True, slots=True)
class SmallRows:
    """The rows of a small batch, as one array per column."""

    columns: Mapping[str, Array]
    height: int

    @classmethod
    def of(cls, frame: pl.DataFrame) -> SmallRows:
        """The rows of a frame; `Unsupported` where they are many or some value is missing."""
        if not are_few(frame.height):
            raise Unsupported
        return cls({name: array_of(frame.get_column(name)) for name in frame.columns}, frame.height)

    def only(self, names: Sequence[str]) -> SmallRows:
        """The columns of these names, in this order."""
        return SmallRows({name: self.columns[name] for name in names}, self.height)

    def where(self, mask: Array) -> SmallRows:
        """The rows where a mask is true."""
        kept = int(np.count_nonzero(mask))
        if kept == self.height:
            return self
        return SmallRows({name: column[mask] for name, column in self.columns.items()}, kept)

    def take(self, places: Array) -> SmallRows:
        """The rows at these places."""
        return SmallRows({name: column[places] for name, column in self.columns.items()}, len(places))

    def frame(self) -> pl.DataFrame:
        """The rows as a frame."""
        return pl.DataFrame([series(name, column) for name, column in self.columns.items()])

    def table(self) -> pa.Table:
        """The rows as an Arrow table, with large strings as in segments."""
        return pa.Table.from_arrays(list(map(_arrow, self.columns.values())), names=list(self.columns))

    def bounds(self, names: Sequence[str]) -> dict[str, tuple[int, int]]:
        """The least and greatest value of these int64 columns; empty where there is no row."""
        if not self.height:
            return {}
        return {name: (int(self.columns[name].min()), int(self.columns[name].max())) for name in names}

    @property
    def bytes(self) -> int:
        return sum(column.nbytes for column in self.columns.values())


#: Rows as Polars or, where they are few, as arrays.
Rows = pl.DataFrame | SmallRows


def are_few(rows: int) -> bool:
    """Whether so many rows may be arrays."""
    return rows <= MOST


def are_few_pairs(pairs: int) -> bool:
    """Whether so many pairs of rows may be arrays."""
    return pairs <= MOST_PAIRS


def rows_where(rows: Rows, mask: Array) -> Rows:
    """The rows where a mask is true."""
    return rows.where(mask) if isinstance(rows, SmallRows) else rows.filter(pl.Series(mask))


def as_frame(rows: Rows) -> pl.DataFrame:
    """The rows as a Polars frame."""
    return rows.frame() if isinstance(rows, SmallRows) else rows


def as_table(rows: Rows) -> pa.Table:
    """The rows as an Arrow table, for segments."""
    return rows.table() if isinstance(rows, SmallRows) else rows.to_arrow(compat_level=_ARROW)


def size_of(rows: Rows) -> int:
    """The size of the rows, roughly, in bytes."""
    return rows.bytes if isinstance(rows, SmallRows) else int(rows.estimated_size())


def stacked(parts: Sequence[SmallRows]) -> SmallRows:
    """Concatenates parts that have the same columns in the same order."""
    if len(parts) == 1:
        return parts[0]
    names = parts[0].columns
    return SmallRows(
        {name: np.concatenate([part.columns[name] for part in parts]) for name in names},
        sum(part.height for part in parts),
    )


def no_rows(schema: Schema) -> SmallRows:
    """An empty batch of a schema."""
    return SmallRows({a.name: np.empty(0, dtype=dtype_of(a.type.kind)) for a in schema.attributes}, 0)


def dtype_of(kind: Kind) -> type:
    """The NumPy type of a kind's values."""
    match kind:
        case Kind.BOOLEAN:
            return np.bool_
        case Kind.DOUBLE:
            return np.float64
        case Kind.STRING:
            return np.object_
        case _:
            return np.int64


def numbered(columns: Iterable[Array]) -> tuple[Array, Array]:
    """Numbers the distinct rows from 0 without gaps: the number of each row, and the first row of each number."""
    numbers: Array | None = None
    for column in columns:
        codes, firsts = _coded(column)
        if numbers is not None:
            codes, firsts = _coded(numbers * (int(codes.max(initial=0)) + 1) + codes)
        numbers = codes
    assert numbers is not None, "rows are numbered by at least one column"
    return numbers, firsts


def _coded(column: Array) -> tuple[Array, Array]:
    """The number of each value among the different ones in their order, and the first place of each.

    `np.unique` says the same. Of a few hundred values it takes twice the time, for what else it can do.
    """
    order = np.argsort(column, kind="stable")
    ordered = column[order]
    is_new = np.ones(len(column), dtype=np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=is_new[1:])
    codes = np.empty(len(column), dtype=np.int64)
    codes[order] = np.cumsum(is_new) - 1
    return codes, order[is_new]


def array_of(column: pl.Series) -> Array:
    """The values of a column; `Unsupported` where one is missing or NaN."""
    if column.null_count():
        raise Unsupported
    if column.dtype == pl.String:
        values = np.empty(len(column), dtype=np.object_)
        values[:] = column.to_list()
        return values
    array: Array = column.to_numpy()
    if column.dtype == pl.Float64 and np.isnan(array).any():
        raise Unsupported
    return array


def series(name: str, column: Array) -> pl.Series:
    """The values of an array as a column of a frame."""
    if column.dtype == np.object_:
        return pl.Series(name, column.tolist(), dtype=pl.String)
    return pl.Series(name, column)


def _arrow(column: Array) -> pa.Array:
    if column.dtype == np.object_:
        return array_of_values(column.tolist(), pa.large_string())
    return array_of_numbers(column)
