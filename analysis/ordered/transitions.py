"""The analysis of contexts: when their changes are complete, and how many windows are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tidegate.algebra.nodes import occurrences
from tidegate.algebra.ordered.transitions.definition import BEGAN, TIME, ContextType, Transition
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.analysis.ordered.family import (
    Family,
    StateBound,
    StoredRows,
    ZoneBuilder,
    keyed_event_zones,
)
from tidegate.analysis.zones.zone import Zone

#: The name of what is kept: windows that hold.
OPEN: Final = "open"


class TransitionsFamily(Family[Transitions]):
    node = Transitions

    def zones(self, node: Transitions, build: ZoneBuilder) -> list[Zone]:
        """A change at the candidate that completes it, which has its instant and its keys."""
        return _at_rows(node, build)

    def state(self, node: Transitions) -> StateBound:
        bounds = (f"{OPEN}: {_partitions(node)} × {max(len(node.contexts) - 1, 1)}{_causes(node)}",)
        stored = StoredRows(OPEN, "open", noun="window", of="of contexts that hold")
        if not node.dated:  # of no window that is closed anything is kept
            stored = replace(stored, instant=BEGAN, verb="since", kept="until they are closed")
        return StateBound(bounds, (stored,))

    def one_by_one(self, node: Transitions, *, shared: bool) -> Sequence[str]:
        return ("each may change which contexts hold",)

    def implied(self, node: Transitions) -> Sequence[str]:
        """What each transition asks for, with what it leaves unsaid."""
        return [
            f"{number}: where {where_text(transition)}, {does_text(transition, node.contexts, node.default)}"
            for number, transition in enumerate(node.transitions)
        ]


class GroupedWindowsFamily(Family[GroupedWindows]):
    node = GroupedWindows

    def zones(self, node: GroupedWindows, build: ZoneBuilder) -> list[Zone]:
        """A change of a grouped window at the change of a context that completes it."""
        return _at_rows(node, build)

    def state(self, node: GroupedWindows) -> StateBound:
        bounds = (f"{OPEN}: {_partitions(node)} × {len(node.contexts)}",)
        return StateBound(bounds, (StoredRows(OPEN, "open", noun="window", of="of contexts that hold"),))

    def one_by_one(self, node: GroupedWindows, *, shared: bool) -> Sequence[str]:
        return ("each may change which contexts hold",)


def _at_rows(node: Transitions | GroupedWindows, build: ZoneBuilder) -> list[Zone]:
    """A row at the one that completes it, which has its instant and its keys."""
    (reading,) = node.readings
    events = keyed_event_zones(build.build(reading.input), reading, TIME, build)
    return build.pruned(build.named(events, node.schema), node.schema)


def where_text(transition: Transition) -> str:
    """In which contexts a transition counts, for people."""
    return f"{' or '.join(transition.within)} holds before the row's instant"


def does_text(transition: Transition, contexts: Sequence[ContextType], default: str) -> str:
    """What a transition does where it counts, for people."""
    context = transition.context
    by_causes = next(one.held_by for one in contexts if one.name == context) != "transition"
    if transition.action == "terminate":
        if transition.one_cause:
            return f"takes one cause of {context} away, and ends it as none is left"
        return f"ends {context}{', whatever its causes' if by_causes else ''}"
    ended = [name for name in transition.within if name != default] if transition.action == "switch" else []
    ends = [f"ends {' and '.join(ended)}"] if ended else []
    if context == default:
        return "; ".join([*ends, f"{default} holds where none is left"])
    begins = f"adds a cause to {context}, which begins" if by_causes else f"begins {context}"
    return "; ".join([*ends, f"{begins}{', anew where it held' if context in ended else ', unless it holds'}"])


def _partitions(node: Transitions | GroupedWindows) -> str:
    """How many partitions there are at most: each had a candidate, or a change, at some time."""
    if not node.keys:
        return "1"
    streams = dict.fromkeys(stream.name for stream in occurrences(node.input) if not stream.static)
    return f"keys({' and '.join(streams)} by {', '.join(node.keys)})"


def _causes(node: Transitions) -> str:
    """Contexts that hold by causes have a row for each of these."""
    by_causes = [context.name for context in node.contexts if context.held_by != "transition"]
    return f", and one for each cause that holds {', '.join(by_causes)}" if by_causes else ""
