"""The columns of panes with partial results, and the grouping of rows that makes them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import polars as pl

from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.nodes import Group, Scan
from tidegate.algebra.ordered.windows.kinds import (
    AnchoredWindow,
    CountWindow,
    OpenedWindow,
    SessionWindow,
    TimedWindow,
    Window,
    shows_empty,
)
from tidegate.algebra.ordered.windows.node import Windows
from tidegate.algebra.schema import Attribute, Schema, StreamDef
from tidegate.algebra.terms import Attr
from tidegate.algebra.types import BIGINT
from tidegate.runtime.eval.columns import polars_type
from tidegate.runtime.ordered.windows.panes import Panes, panes_of
from tidegate.runtime.plan.aggregate_states import states

#: The number of a pane, how many rows of its partition there are up to its last one, and from where panes are counted.
PANE: Final = "pane"
ROWS: Final = "rows"
SINCE: Final = "since"
#: The first instant among new rows of a pane, the bounds of windows that rows bound, and of a row its partition, its
#: pane and, where rows are counted, its place. No attribute of a user has such a name.
FIRST: Final = "\0first"
FIRST_ROW: Final = "\0start"
LAST_ROW: Final = "\0end"
OF: Final = "\0of"
NUMBER: Final = "\0window"
PLACE: Final = "\0place"


@dataclass(frozen=True)
class PaneLayout:
    """Frames of panes have PARTITION, PANE and the columns of partial results. Where rows are counted there is ROWS,
    too, where panes are counted from a first row SINCE, and of new rows FIRST where there are windows without rows.
    """

    node: Windows

    @cached_property
    def window(self) -> CountWindow | TimedWindow:
        assert not isinstance(self.node.window, SessionWindow | OpenedWindow)
        return self.node.window

    @cached_property
    def panes(self) -> Panes:
        return panes_of(self.window)

    @property
    def shows_empty(self) -> bool:
        return shows_empty(self.window)

    @cached_property
    def group(self) -> Group:
        """The grouping of rows by partition and pane, with the bounds of windows that rows bound."""
        schema, time = self.node.input.schema, Attr(self.node.time)
        numbers = (Attribute(name, BIGINT, nullable=False) for name in (OF, NUMBER, PLACE))
        rows = StreamDef("rows", Schema((*schema.attributes, *numbers)), static=True)
        aggregates = (
            replace(aggregate, by=Attr(PLACE)) if self.node.goes_by_order(aggregate) else aggregate
            for aggregate in self.node.aggregates
        )
        bounds = (Aggregate(FIRST_ROW, Function.MIN, time), Aggregate(LAST_ROW, Function.MAX, time))
        counted = isinstance(self.window, CountWindow)
        return Group(Scan(rows), (OF, NUMBER), (*aggregates, *(bounds if counted else ())))

    @cached_property
    def lifting(self) -> Group:
        """The grouping of new rows."""
        first = Aggregate(FIRST, Function.MIN, Attr(self.node.time))
        return replace(self.group, aggregates=(*self.group.aggregates, first)) if self.shows_empty else self.group

    @cached_property
    def columns(self) -> dict[str, pl.DataType]:
        """The columns of panes, beside the keys of their partitions."""
        return {**dict.fromkeys((PANE, *counted_by(self.window)), polars_type(BIGINT)), **self.parts}

    @cached_property
    def parts(self) -> dict[str, pl.DataType]:
        """The columns of partial results."""
        return {state.column(part): polars_type(type_) for state in states(self.group) for part, type_ in state.parts}


def counted_by(window: Window) -> tuple[str, ...]:
    """The columns by which panes are counted in each partition."""
    if isinstance(window, CountWindow):
        return (ROWS,)
    return (SINCE,) if isinstance(window, AnchoredWindow) else ()
