"""What is kept of a row of frames that move: its instant and number, and what the block that ends with it comes to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate, Form
from tidegate.algebra.ordered.over import FrameAggregate, Neighbour, Nth, Over, OverColumn, wait_of
from tidegate.algebra.terms import Attr, Term
from tidegate.algebra.types import BIGINT, DOUBLE, DataType
from tidegate.analysis.ordered.over import goes_by_time, is_best_by_range, is_of_blocks, need_of
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.ordered.over.layout import TIME, OverLayout, layout_of

#: The number of a row in its partition, from 1 on.
NUMBER: Final = "number"
#: Aggregates that are the value of one of the rows.
CHOSEN: Final = (Form.LEAST, Form.GREATEST, Form.EARLIEST, Form.LATEST)
#: Frames of so many rows are read whole: it takes no longer, and what is kept of a row is less.
FEW_ROWS: Final = 32
_ANY: Final = -1


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept for aggregates of a term that have the same form, and the same order beside that of rows; `form`
    None: the values alone, which others look up.
    """

    form: Form | None
    argument: Term
    by: Term | None = None


@dataclass(frozen=True, slots=True)
class Amounts:
    """What columns need, or wait for: so many rows, and so many ticks; negative where one says nothing."""

    rows: Int64Array
    ticks: Int64Array

    @classmethod
    def of(cls, amounts: Sequence[tuple[int | None, int | None]]) -> Amounts:
        said = [[_ANY if amount is None else amount for amount in pair] for pair in amounts]
        table = np.array(said, dtype=np.int64).reshape(-1, 2)
        return cls(table[:, 0].copy(), table[:, 1].copy())


@dataclass(frozen=True)
class QueuedLayout:
    """The columns of kept rows."""

    node: Over

    @property
    def over(self) -> OverLayout:
        return layout_of(self.node)

    @property
    def number(self) -> str:
        """The column by which rows ascend, and that says which are gone: instants where all go by these."""
        return TIME if goes_by_time(self.node) else NUMBER

    @cached_property
    def needs(self) -> Amounts:
        """What columns need of the rows before a row."""
        return Amounts.of([(need.rows, need.ticks) for need in map(need_of, self.node.columns)])

    @cached_property
    def waits(self) -> Amounts:
        """What a row waits for."""
        waits = filter(None, map(wait_of, self.node.columns))
        return Amounts.of([(wait.rows, wait.ticks) for wait in waits])

    @cached_property
    def kept(self) -> tuple[Kept, ...]:
        """What is kept of the arguments, each once."""
        kept = (self.kept_for(column) for column in self.node.columns)
        return tuple(dict.fromkeys(one for one in kept if one is not None))

    def kept_for(self, column: object) -> Kept | None:
        """What is kept for a column; None where places of rows say all."""
        match column:
            case FrameAggregate(Aggregate(argument=None)):
                return None
            case FrameAggregate(aggregate):
                assert aggregate.argument is not None
                return Kept(self.over.form(aggregate), aggregate.argument, aggregate.by)
            case Neighbour(argument=argument) | Nth(argument=argument):
                return Kept(None, argument)
        raise AssertionError(column)

    def goes_by_place(self, kept: Kept) -> bool:
        """Whether the row that is chosen is the first or the last one."""
        return kept.by == Attr(self.node.time)

    def part(self, kept: Kept, name: str) -> str:
        return f"kept {self.kept.index(kept)}.{name}"

    def parts(self, kept: Kept) -> dict[str, DataType]:
        """What a row has itself, totals of all rows before it, and what the block that ends with it comes to."""
        match kept.form:
            case None:
                return {"own": self.over.type_of(kept.argument)}
            case Form.COUNT:
                return {"is": BIGINT, "n": BIGINT}
            case Form.INTEGER_SUM:
                return {"is": BIGINT, "own": BIGINT, "n": BIGINT, "hi": BIGINT, "lo": BIGINT}
            case Form.DOUBLE_SUM:
                return {"is": BIGINT, "own": DOUBLE, "n": BIGINT, "sum": DOUBLE, "lost": DOUBLE}
        chosen = {"own": self.over.type_of(kept.argument), "key": BIGINT, "best": BIGINT}
        return chosen if kept.by is None or self.goes_by_place(kept) else {**chosen, "tie": BIGINT}

    def totals(self, kept: Kept) -> tuple[str, ...]:
        """Those of the parts that are totals of integers."""
        return tuple(name for name in self.parts(kept) if name in ("n", "hi", "lo"))

    @cached_property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of kept rows, beside the keys of their partitions."""
        columns = {TIME: BIGINT, NUMBER: BIGINT}
        for kept in self.kept:
            columns |= {self.part(kept, name): type_ for name, type_ in self.parts(kept).items()}
        if self.node.waits:
            columns |= {self.over.attribute(a.name): a.type for a in self.node.input.schema.attributes}
        return {name: polars_type(type_) for name, type_ in columns.items()}


@lru_cache(maxsize=256)
def queued_layout(node: Over) -> QueuedLayout | None:
    """The layout, where frames are made of blocks of rows, and one reaches far. None for other columns; and where all
    that reach far are least or greatest values by range of rows up to a row, as fewer rows are kept then.
    """
    far = [column for column in node.columns if _reaches_far(column)]
    only_best = not node.waits and all(map(is_best_by_range, far))
    return QueuedLayout(node) if far and not only_best and is_of_blocks(node) else None


def _reaches_far(column: OverColumn) -> bool:
    """Whether a column looks at more than a few rows, or at those of a span."""
    need, wait = need_of(column), wait_of(column)
    rows = [need.rows, *(() if wait is None else (wait.rows,))]
    return need.ticks is not None or any(many is None or many > FEW_ROWS for many in rows)
