"""What the operators of all windows do alike."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Self, TypeVar

import polars as pl

from tidegate.algebra.nodes import Group
from tidegate.algebra.ordered.windows.node import END, START, Windows
from tidegate.algebra.schema import Schema
from tidegate.algebra.time import Extended
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.aggregates.partials import final
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.lenient import Lenient, SetAside
from tidegate.runtime.ordered.family import Tables
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.row_operator import RowOperator, RowStore
from tidegate.runtime.ordered.windows.layout import FIRST_ROW, LAST_ROW
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows

S = TypeVar("S", bound=RowStore[Any])


@dataclass(frozen=True, slots=True)
class WindowsOperator(RowOperator[S]):
    """Windows of rows: `held` are partial results or rows of open ones, `made` what the last increment has made of
    some, before and after, which counts once it is settled.
    """

    ordered: OrderedStep
    held: S
    made: tuple[Any, Any] | None = None
    #: Takes the windows with sums that do not fit, which are NULL then; None: they are errors.
    noted: list[SetAside] | None = None

    @classmethod
    def fresh(cls, ordered: OrderedStep) -> Self:
        """The operator before the first row."""
        raise NotImplementedError

    def loaded(self, tables: Tables, reached: Extended) -> Self:
        """A fresh operator with its stored state."""
        raise NotImplementedError

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[Self, pl.DataFrame]:
        raise NotImplementedError

    @property
    def node(self) -> Windows:
        return windows_of(self.ordered)

    def reported(self, group: Group, windows: pl.DataFrame, partitions: Int64Array) -> pl.DataFrame:
        """Complete windows as rows of the result: from places in `partitions`, bounds, and partial results."""
        node, number = self.node, group.keys[0]
        if not windows.height:
            return no_windows(node)
        numbered = windows.with_columns(pl.int_range(pl.len(), dtype=pl.Int64).alias(key) for key in group.keys)
        walk = Lenient({})
        values = final(group, numbered) if self.noted is None else walk.finished(group, numbered, None)
        of = partitions[windows.get_column(PARTITION).to_numpy()]
        columns = {column.name: column for column in (*windows.get_columns(), *values.get_columns())}
        if FIRST_ROW in columns:  # windows that rows bound have their bounds among the aggregates
            columns |= {START: columns[FIRST_ROW].alias(START), END: columns[LAST_ROW].alias(END)}
        named = (*node.bounds, *(aggregate.name for aggregate in node.aggregates))
        result = self.in_result(of, (columns[name] for name in named))
        if self.noted is not None:
            for aside in walk.aside:
                place = aside.row[number]
                assert isinstance(place, int)
                self.noted.append(replace(aside, row=result.row(place, named=True), schema=node.schema))
        return result

    def in_result(self, partitions: Int64Array, columns: Iterable[pl.Series]) -> pl.DataFrame:
        """Rows of the result, each with the keys of one of these partitions and with these columns."""
        node = self.node
        keys = self.held.partitions.rows(partitions).get_columns() if node.keys else []
        by_name = {column.name: column for column in (*keys, *columns)}
        return pl.DataFrame([by_name[name] for name in node.schema.names])

    def noting(self, noted: list[SetAside] | None) -> Self:
        return replace(self, noted=noted)


@lru_cache(maxsize=256)
def no_windows(node: Windows) -> pl.DataFrame:
    """The result without rows."""
    return pl.DataFrame(schema=polars_schema(node.schema))


def windows_of(ordered: OrderedStep) -> Windows:
    assert isinstance(ordered.node, Windows)
    return ordered.node


def keys_of(node: Windows) -> Schema:
    """The attributes by which partitions are told apart."""
    return Schema(tuple(node.input.schema[key] for key in node.keys))
