"""The rows of an increment in the order of their partitions and times, behind those that are kept of each partition."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
import polars as pl
from numpy.typing import NDArray

from tidegate.runtime.arrays import Float64Array, Int64Array, UInt8Array
from tidegate.runtime.kernels.partitions.rows import segmented

T = TypeVar("T", bound=np.generic)


@dataclass(frozen=True, slots=True)
class Block:
    """Rows by place: the rows of partition p are those from `offsets[p]` to `offsets[p + 1]`, the new ones from
    `first[p]` on. Place i holds row `source[i]` of the kept rows and then the new ones.
    """

    kept: pl.DataFrame
    new: pl.DataFrame
    source: Int64Array
    offsets: Int64Array
    first: Int64Array
    time: Int64Array
    known: dict[str, pl.Series] = field(default_factory=dict)

    @classmethod
    def of(
        cls, kept: pl.DataFrame, kept_in: Int64Array, new: pl.DataFrame, new_in: Int64Array, order: Int64Array,
        partitions: int, time: str
    ) -> Block:  # fmt: skip
        """The block of kept rows and new ones with the places of their partitions; `order` has the new rows by time."""
        source, offsets, first = segmented(kept_in, new_in, order, partitions)
        times = np.concatenate([kept.get_column(time).to_numpy(), new.get_column(time).to_numpy()])
        return cls(kept, new, source, offsets, first, times[source])

    @classmethod
    def of_kept(cls, kept: pl.DataFrame, kept_in: Int64Array, partitions: int, time: str) -> Block:
        """The block of kept rows without new ones."""
        nothing = np.empty(0, dtype=np.int64)
        return cls.of(kept, kept_in, kept.clear(), nothing, nothing, partitions, time)

    @property
    def height(self) -> int:
        return len(self.source)

    @property
    def kept_places(self) -> Int64Array:
        """The places of kept rows, in order: the k-th is that of kept row k."""
        return np.flatnonzero(self.source < self.kept.height)

    @property
    def new_places(self) -> Int64Array:
        """The place of each new row."""
        places = np.empty(self.height, dtype=np.int64)
        places[self.source] = np.arange(self.height)
        return places[self.kept.height :]

    def column(self, name: str) -> pl.Series:
        """A column of all rows, by place; NULL of kept rows where it is not kept."""
        if name not in self.known:
            new = self.new.get_column(name)
            kept = self.kept.get_column(name) if name in self.kept.columns else new.clear(self.kept.height)
            self.known[name] = pl.concat([kept, new], rechunk=True).gather(self.source)
        return self.known[name]

    def numbers(self, name: str) -> Int64Array:
        """A running number that kept rows have, by place; 0 of new rows, for a kernel to write."""
        numbers = np.zeros(self.height, dtype=np.int64)
        numbers[self.kept_places] = self.kept.get_column(name).to_numpy()
        return numbers

    def doubles(self, name: str) -> Float64Array:
        """A running double that kept rows have, by place; 0.0 of new rows, for a kernel to write."""
        doubles = np.zeros(self.height)
        doubles[self.kept_places] = self.kept.get_column(name).to_numpy()
        return doubles

    def with_running(self, name: str, running: str) -> pl.Series:
        """A column of all rows by place, and then a running value of the kept rows."""
        return pl.concat([self.column(name), self.kept.get_column(running).alias(name)], rechunk=True)

    def gathered(self, rows: pl.Series, places: Int64Array) -> pl.Series:
        """Values of such rows at places as the kernels number them: n + i is the running value at place i, -1 none."""
        kept = places >= self.height
        if kept.any():
            places = places.copy()
            places[kept] = self.height + self.source[places[kept] - self.height]
        return gathered(rows, places)

    def spread(self, keys: NDArray[T]) -> NDArray[T]:
        """Keys or flags of such rows as the kernels number them."""
        spread = np.zeros(2 * self.height, dtype=keys.dtype)
        spread[: self.height] = keys[: self.height]
        spread[self.height + self.kept_places] = keys[self.height :]
        return spread


def gathered(rows: pl.Series, places: Int64Array) -> pl.Series:
    """The values at places, NULL at negative ones."""
    missing = places < 0
    if not missing.any():
        return rows.gather(places)
    if missing.all():
        return pl.Series(rows.name, [None], rows.dtype).new_from_index(0, len(places))
    return rows.gather(pl.Series(places).set(pl.Series(missing), None))


def valid(rows: pl.Series) -> UInt8Array:
    """1 where there is a value."""
    if not rows.null_count():
        return np.ones(len(rows), dtype=np.uint8)
    return rows.is_not_null().cast(pl.UInt8).to_numpy()
