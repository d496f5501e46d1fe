"""What is kept of a row of frames that move: its instant and number, and what the block that ends with it comes to."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import polars as pl

from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.ordered.over import FrameAggregate, Over
from tidegate.algebra.terms import Term
from tidegate.algebra.types import BIGINT, DOUBLE, DataType
from tidegate.analysis.ordered.over import goes_by_time
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.ordered.over.layout import TIME, OverLayout, layout_of

#: The number of a row in its partition, from 1 on.
NUMBER: Final = "number"
EXTREMES: Final = (Form.LEAST, Form.GREATEST)


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept for aggregates of a term that have the same form."""

    form: Form
    argument: Term


@dataclass(frozen=True)
class QueuedLayout:
    """The columns of kept rows."""

    node: Over

    @property
    def over(self) -> OverLayout:
        return layout_of(self.node)

    @cached_property
    def columns_of_node(self) -> tuple[FrameAggregate, ...]:
        return tuple(column for column in self.node.columns if isinstance(column, FrameAggregate))

    @cached_property
    def longest(self) -> int:
        """How many ticks the longest frame reaches back."""
        return max(column.frame.before or 0 for column in self.columns_of_node)

    @cached_property
    def kept(self) -> tuple[Kept, ...]:
        """What is kept of the arguments, each once."""
        kept = (self.kept_for(column) for column in self.columns_of_node)
        return tuple(dict.fromkeys(one for one in kept if one is not None))

    def kept_for(self, column: FrameAggregate) -> Kept | None:
        argument = column.aggregate.argument
        return None if argument is None else Kept(self.over.form(column.aggregate), argument)

    def part(self, kept: Kept, name: str) -> str:
        return f"kept {self.kept.index(kept)}.{name}"

    def parts(self, kept: Kept) -> dict[str, DataType]:
        """What a row has itself, totals of all rows before it, and what the block that ends with it comes to."""
        match kept.form:
            case Form.COUNT:
                return {"is": BIGINT, "n": BIGINT}
            case Form.INTEGER_SUM:
                return {"is": BIGINT, "own": BIGINT, "n": BIGINT, "hi": BIGINT, "lo": BIGINT}
            case Form.DOUBLE_SUM:
                return {"is": BIGINT, "own": DOUBLE, "n": BIGINT, "sum": DOUBLE, "lost": DOUBLE}
            case _:
                return {"own": self.over.type_of(kept.argument), "key": BIGINT, "best": BIGINT}

    def totals(self, kept: Kept) -> tuple[str, ...]:
        """Those of the parts that are totals of integers."""
        return tuple(name for name in self.parts(kept) if name in ("n", "hi", "lo"))

    @cached_property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of kept rows, beside the keys of their partitions."""
        columns = {TIME: BIGINT, NUMBER: BIGINT}
        for kept in self.kept:
            columns |= {self.part(kept, name): type_ for name, type_ in self.parts(kept).items()}
        return {name: polars_type(type_) for name, type_ in columns.items()}


@lru_cache(maxsize=256)
def queued_layout(node: Over) -> QueuedLayout | None:
    """The layout, where rows go by time; None for other columns."""
    return QueuedLayout(node) if goes_by_time(node) else None
