"""The analysis of instants at equal distances: when they are complete, and of which partitions there are more."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.algebra.formulas import And, Compare, Formula, Shift, Var
from tidegate.algebra.ordered.ticks import TICK, Ticks
from tidegate.algebra.schema import Schema
from tidegate.analysis.ordered.family import (
    ROW,
    Family,
    StateBound,
    StoredRows,
    ZoneBuilder,
    event_zones,
    rate_of,
    stream_of,
    with_row,
)
from tidegate.analysis.zones.wording import amount, factor
from tidegate.analysis.zones.zone import Zone

#: The name of what is kept: an instant of each partition that has ticks to come.
TICKING: Final = "ticking"


class TicksFamily(Family[Ticks]):
    node = Ticks

    def zones(self, node: Ticks, build: ZoneBuilder) -> list[Zone]:
        """A tick at its instant, after a row with its keys: the row is state, as whatever an operator has kept is."""
        (reading,) = node.readings
        schema = node.input.schema
        zones = build.build(reading.input)
        tick, time = (schema[node.time].renamed(name) for name in (TICK, ROW))
        event, row = Schema((tick,)), Schema((*(schema[key] for key in node.keys if schema[key].temporal), time))
        events = build.named(event_zones(zones, reading, TICK), event)
        results = with_row(events, event, event_zones(zones, reading, ROW), row, _relations(node), build)
        return build.pruned(build.named(results, node.schema), node.schema)

    def state(self, node: Ticks) -> StateBound:
        many = f"keys({stream_of(node.input)[1]} by {', '.join(node.keys)})" if node.keys else "1"
        if node.within is not None and node.keys:
            span = amount(node.within, node.input.schema[node.time].type)
            many = f"{rate_of(node.input)} × {factor(span)}, at most {many}"
        return StateBound((f"{TICKING}: {many}",), (StoredRows(TICKING, "ticking", of="that ticks follow"),))

    def one_by_one(self, node: Ticks, *, shared: bool) -> Sequence[str]:
        return ("its instant decides which ticks there are",)


def _relations(node: Ticks) -> Formula:
    """The relations of a tick and the row that it follows."""
    tick, row = Var(TICK), Var(ROW)
    limit = () if node.within is None else (Compare(tick, "<=", Shift(row, node.within)),)
    return And((Compare(row, "<=", tick), *limit))
