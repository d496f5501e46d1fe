"""The analysis of situations: their relations. Nothing can be wrong with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from tidegate.algebra.formulas import temporal_formula
from tidegate.algebra.functions.aggregates import Form
from tidegate.algebra.nodes import OrderedNode
from tidegate.algebra.ordered.derive import Derive, derivation_relations
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.terms import conjunction
from tidegate.analysis.ordered.family import Family, StateBound, StoredRows, ZoneBuilder, keyed_event_zones
from tidegate.analysis.zones.zone import Zone

#: The names of what is kept: situations that are open, those that are over and may still be matched, and the partial
#: values of their aggregates.
OPEN: Final = "open"
CLOSED: Final = "closed"
VALUES: Final = "values"
#: The columns of their instants.
KEPT_START: Final = "start"
KEPT_END: Final = "end"


class DeriveFamily(Family[Derive]):
    node = Derive

    def zones(self, node: Derive, build: ZoneBuilder) -> list[Zone]:
        (reading,) = node.readings
        events = keyed_event_zones(build.build(reading.input), reading, node.completed_by, build)
        zones = build.named(events, node.schema)
        relations = conjunction(derivation_relations(node))
        return build.constrain(zones, temporal_formula(relations, node.schema))

    def state(self, node: Derive) -> StateBound:
        return StateBound(("of a partition one that is open", *different_values("", node)), situation_rows({}))

    def one_by_one(self, node: Derive, *, shared: bool) -> Sequence[str]:
        return reasons(node, shared=shared)


def situation_rows(ahead: Mapping[str, int]) -> tuple[StoredRows, ...]:
    """What is kept of situations: open ones, those that are over and may still be matched, and their aggregates.

    `ahead` says by how much progress has to be beyond the start or the end of those that are over for them to go.
    """
    return (
        StoredRows(OPEN, "open", KEPT_START, "since", "until they end"),
        StoredRows(CLOSED, "over", KEPT_END, "ended", "while a match may need them", ahead),
        StoredRows(VALUES, "aggregates", noun="partial value", of="of these", counted=False),
    )


def different_values(symbol: str, situation: Derive) -> list[str]:
    """The number of distinct values that count_distinct keeps of each situation."""
    arguments = dict.fromkeys(a.argument for a in situation.aggregates if a.entry.form is Form.DISTINCT)
    texts = [term_text(argument) for argument in arguments if argument is not None]
    return [f"of each{symbol} the different values of {text}" for text in texts]


def reasons(node: OrderedNode, *, shared: bool) -> list[str]:
    """Why each event of situations is stored by itself, as far as their definitions say it."""
    events = [reading for reading in node.readings if reading.time is not None]
    intervals = len(events) < len(node.readings)
    causes = {
        "some situations are rows already": intervals,
        "an aggregate reads each of them": any(len(reading.terms) > 1 for reading in events),
        "a tie-break orders them": any(reading.tie is not None for reading in events),
        "they come from several streams": not intervals and not shared,
    }
    why = [reason for reason, applies in causes.items() if applies]
    return [] if not events else why or ["more than its partition and time decides whether one is final"]
