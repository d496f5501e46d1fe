"""The analysis of rows with their place in their group: when they are complete. Nothing is kept of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.algebra.errors import Problem
from tidegate.algebra.ordered.ranks import Ranks
from tidegate.algebra.program import Query
from tidegate.algebra.schema import Schema
from tidegate.analysis.ordered.family import Family, StateBound, ZoneBuilder, completing, equal_instants, held
from tidegate.analysis.zones.zone import Zone

#: The time of the row that completes a group, while zones are built; no attribute of a user has such a name.
_COMPLETING: Final = "\0completing"


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
        time = schema[node.time].renamed(_COMPLETING)
        completed = build.named(completing(zones, reading, _COMPLETING), Schema((time,)))
        rows = [held(zone, schema, build) for zone in build.named(zones, schema)]
        both = Schema((time, *schema.attributes))
        pairs = build.joined(completed, rows, both, equal_instants([(node.time, _COMPLETING)]))
        return build.pruned(build.named(pairs, node.schema), node.schema)

    def problems(self, node: Ranks, query: Query) -> list[Problem]:
        return []

    def with_progress(self, node: Ranks) -> Sequence[tuple[Ranks, str]]:
        return ()

    def state(self, node: Ranks) -> StateBound:
        return StateBound((), ())

    def freed(self, node: Ranks, *, always: bool) -> Sequence[str]:
        return ()

    def one_by_one(self, node: Ranks, *, shared: bool) -> Sequence[str]:
        return ("each is a row of the result",)
