"""The analysis of rows with their place in their group: when they are complete. Nothing is kept of them."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.ordered.ranks import Ranks
from tidegate.algebra.schema import Schema
from tidegate.analysis.ordered.family import (
    COMPLETING,
    Family,
    StateBound,
    ZoneBuilder,
    equal_instants,
    event_zones,
    with_row,
)
from tidegate.analysis.zones.zone import Zone


class RanksFamily(Family[Ranks]):
    node = Ranks

    def zones(self, node: Ranks, build: ZoneBuilder) -> list[Zone]:
        """A row at the event that completes it: the last one of its group, which has the same instant.

        The row's other instants are no variables of that event. So they progress as far as that instant does, and no
        row passes by one of them before its group is complete.
        """
        (reading,) = node.readings
        schema = node.input.schema
        zones = build.build(reading.input)
        event = Schema((schema[node.time].renamed(COMPLETING),))
        events = build.named(event_zones(zones, reading, COMPLETING), event)
        pairs = with_row(events, event, zones, schema, equal_instants([(node.time, COMPLETING)]), build)
        return build.pruned(build.named(pairs, node.schema), node.schema)

    def state(self, node: Ranks) -> StateBound:
        return StateBound((), ())

    def one_by_one(self, node: Ranks, *, shared: bool) -> Sequence[str]:
        return ("each is a row of the result",)
