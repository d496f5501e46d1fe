"""The analysis of contexts: when their changes are complete, and how many windows are kept."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.algebra.errors import Problem
from tidegate.algebra.nodes import occurrences
from tidegate.algebra.ordered.transitions.definition import TIME
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.program import Query
from tidegate.analysis.ordered.family import Family, StateBound, StoredRows, ZoneBuilder, completing
from tidegate.analysis.zones.zone import Zone

#: The name of what is kept: windows that hold.
OPEN: Final = "open"


class TransitionsFamily(Family[Transitions]):
    node = Transitions

    def zones(self, node: Transitions, build: ZoneBuilder) -> list[Zone]:
        """A change at the candidate that completes it, which has its instant."""
        (reading,) = node.readings
        return build.named(completing(build.build(reading.input), reading, TIME), node.schema)

    def problems(self, node: Transitions, query: Query) -> list[Problem]:
        return []

    def with_progress(self, node: Transitions) -> Sequence[tuple[Transitions, str]]:
        return ()

    def state(self, node: Transitions) -> StateBound:
        bounds = (f"{OPEN}: {_partitions(node)} × {max(len(node.contexts) - 1, 1)}{_causes(node)}",)
        return StateBound(bounds, (StoredRows(OPEN, "open", noun="window", of="of contexts that hold"),))

    def freed(self, node: Transitions, *, always: bool) -> Sequence[str]:
        return ()

    def one_by_one(self, node: Transitions, *, shared: bool) -> Sequence[str]:
        return ("each may change which contexts hold",)


def _partitions(node: Transitions) -> str:
    """How many partitions there are at most: each had a candidate at some time."""
    if not node.keys:
        return "1"
    streams = dict.fromkeys(stream.name for stream in occurrences(node.input) if not stream.static)
    return f"keys({' and '.join(streams)} by {', '.join(node.keys)})"


def _causes(node: Transitions) -> str:
    """Contexts that hold by causes have a row for each of these."""
    by_causes = [context.name for context in node.contexts if context.held_by != "transition"]
    return f", and one for each cause that holds {', '.join(by_causes)}" if by_causes else ""
