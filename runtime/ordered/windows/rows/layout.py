"""What is kept of a row until the last of its windows is complete, and rows by partition behind those that are kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.ordered.windows.kinds import OpenedWindow
from tidegate.algebra.ordered.windows.node import Windows, terms_of
from tidegate.algebra.terms import Term
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import BIGINT, DataType
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.eval.joins.bands import evaluated
from tidegate.runtime.eval.terms import compile_term
from tidegate.runtime.ordered.over.block import Block
from tidegate.runtime.ordered.partition_store import NO_LOOK
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.windows.layout import counted_by

TIME: Final = "time"
#: Of a row in a window that rows open and close: when it was opened, and the row's own instant if it closes it, else
#: NO_LOOK.
OPENED: Final = "opened"
CLOSED: Final = "closed"


@dataclass(frozen=True)
class RowLayout:
    """The columns of kept rows: by what panes are counted (the number of the row, or from where on), the instant, what
    the row does to its window, and the arguments of aggregates.
    """

    node: Windows

    @cached_property
    def arguments(self) -> tuple[Term, ...]:
        return terms_of(self.node.aggregates)

    def argument(self, term: Term) -> str:
        return f"argument {self.arguments.index(term)}"

    def type_of(self, term: Term) -> DataType:
        return term_type(term, self.node.input.schema)

    @cached_property
    def in_block(self) -> tuple[str, ...]:
        """The columns of rows in a block."""
        marks = (OPENED, CLOSED) if isinstance(self.node.window, OpenedWindow) else ()
        return (TIME, *marks, *map(self.argument, self.arguments))

    @cached_property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of kept rows, beside the keys of their partitions."""
        of_arguments = {self.argument(term): self.type_of(term) for term in self.arguments}
        types = {name: of_arguments.get(name, BIGINT) for name in (*counted_by(self.node.window), *self.in_block)}
        return {name: polars_type(type_) for name, type_ in types.items()}

    def block(
        self, known: pl.DataFrame, rows: pl.DataFrame, of: Int64Array, order: Int64Array, partitions: int
    ) -> Block:
        """New rows, which are in partitions `of` and are to be taken in this order, behind those that are kept."""
        schema, window = self.node.input.schema, self.node.window
        terms = evaluated(rows, *(compile_term(term, schema) for term in self.arguments)).get_columns()
        new = [rows.get_column(self.node.time).alias(TIME)]
        if isinstance(window, OpenedWindow):
            closes = rows.get_column(window.closes).fill_null(value=False).to_numpy()
            closed = np.where(closes, new[0].to_numpy(), NO_LOOK)
            new += [rows.get_column(window.opened).alias(OPENED), pl.Series(CLOSED, closed)]
        new += [column.alias(self.argument(term)) for term, column in zip(self.arguments, terms, strict=True)]
        kept = known.select(self.in_block)
        kept_in = known.get_column(PARTITION).to_numpy()
        return Block.of(kept, kept_in, pl.DataFrame(new), of, order, partitions, TIME)

    def block_of_known(self, known: pl.DataFrame, partitions: int) -> Block:
        """Rows that are kept, without new ones."""
        return Block.of_kept(known.select(self.in_block), known.get_column(PARTITION).to_numpy(), partitions, TIME)

    def kept(self, block: Block, of: Int64Array, counted: Mapping[str, Int64Array], at: Int64Array) -> pl.DataFrame:
        """The rows at these places as they are kept; `of` and `counted` are by place."""
        columns = [pl.Series(PARTITION, of[at]), *(pl.Series(name, values[at]) for name, values in counted.items())]
        return pl.DataFrame([*columns, *(block.column(name).gather(at).alias(name) for name in self.in_block)])


@lru_cache(maxsize=256)
def row_layout(node: Windows) -> RowLayout:
    return RowLayout(node)
