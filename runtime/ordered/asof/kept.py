"""What is kept of each partition: the last right row, and the left rows that wait."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import polars as pl

from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.schema import Schema
from tidegate.analysis.ordered.asof import LAST, WAITING
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.ordered.row_arrays import RowArrays, counts
from tidegate.runtime.ordered.row_operator import RowStore


@dataclass(frozen=True)
class AsOfLayout:
    """The columns of kept rows, beside the keys of their partitions. Names of attributes have a prefix, so that none is
    that of a key's column.
    """

    node: AsOf

    @staticmethod
    def column(attribute: str) -> str:
        return f"row {attribute}"

    @property
    def left_time(self) -> str:
        return self.column(self.node.left_time)

    @property
    def right_time(self) -> str:
        return self.column(self.node.right_time)

    @cached_property
    def left(self) -> dict[str, pl.DataType]:
        return {self.column(name): type_ for name, type_ in polars_schema(self.node.left.schema).items()}

    @cached_property
    def right(self) -> dict[str, pl.DataType]:
        return {self.column(name): type_ for name, type_ in polars_schema(self.node.right.schema).items()}

    @cached_property
    def none(self) -> pl.DataFrame:
        """A row of NULLs, which stands for no right row."""
        return pl.DataFrame(schema=self.right).clear(1)

    @cached_property
    def waiting(self) -> dict[str, pl.DataType]:
        """A left row that waits; where the nearest is asked for with the last right row up to it, or NULLs."""
        return {**self.left, **self.right} if self.remembers else self.left

    @property
    def looks_back(self) -> bool:
        return self.node.direction != "forward"

    @property
    def remembers(self) -> bool:
        """Whether a row that waits has a right row already."""
        return self.node.direction == "nearest"

    @property
    def tables(self) -> tuple[str, ...]:
        """What the operator keeps."""
        return (*((LAST,) if self.looks_back else ()), *((WAITING,) if self.node.waits else ()))

    def stored(self, rows: pl.DataFrame, schema: Schema) -> pl.DataFrame:
        """Rows of an input under the names that they are kept with."""
        return pl.DataFrame([rows.get_column(name).alias(self.column(name)) for name in schema.names])


@lru_cache(maxsize=256)
def layout_of(node: AsOf) -> AsOfLayout:
    """The layout of an operator's kept rows."""
    return AsOfLayout(node)


@dataclass(frozen=True, slots=True)
class KeptExtract:
    """The rows of some partitions in order of PARTITION, which says their places in `partitions`."""

    partitions: Int64Array
    last: pl.DataFrame
    waiting: pl.DataFrame
    look: Int64Array
    version: int = 0

    def has_rows(self, rows: pl.DataFrame) -> BoolArray:
        """Which of the partitions have rows in a table."""
        return counts(rows, len(self.partitions)) > 0


class KeptRows(RowStore[KeptExtract]):
    """The kept rows of all partitions."""

    gives_again = True

    def __init__(self, keys: Schema, layout: AsOfLayout) -> None:
        super().__init__(keys)
        self.layout = layout
        self.last_rows, self.waiting_rows = RowArrays(layout.right), RowArrays(layout.waiting)
        self._nothing = self.extract(np.empty(0, dtype=np.int64))

    def emptied(self) -> KeptRows:
        return KeptRows(self.partitions.schema, self.layout)

    def arrays(self) -> Sequence[RowArrays]:
        return (self.last_rows, self.waiting_rows)

    def extract(self, partitions: Int64Array) -> KeptExtract:
        return KeptExtract(
            partitions,
            self.last_rows.take(partitions),
            self.waiting_rows.take(partitions),
            self.look(partitions),
            self.version,
        )

    def nothing(self) -> KeptExtract:
        """The rows of no partition."""
        return replace(self._nothing, version=self.version)

    def hold(self, extract: KeptExtract) -> BoolArray:
        self.last_rows.put(extract.partitions, extract.last)
        self.waiting_rows.put(extract.partitions, extract.waiting)
        return extract.has_rows(extract.last) | extract.has_rows(extract.waiting)

    def room(self, partitions: int) -> None:
        self.last_rows.grow(partitions)
        self.waiting_rows.grow(partitions)

    def tables_of(self, extract: KeptExtract) -> dict[str, pl.DataFrame]:
        rows = {LAST: extract.last, WAITING: extract.waiting}
        return {name: rows[name] for name in self.layout.tables}
