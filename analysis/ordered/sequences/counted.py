"""The analysis of row patterns whose matches are counted without listing them (rule R47)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tidegate.algebra.ordered.sequences.counting.counted import CountedSequences
from tidegate.algebra.ordered.sequences.definition import DETECTED, LAST
from tidegate.algebra.schema import Schema
from tidegate.analysis.ordered.family import (
    Family,
    StateBound,
    StoredRows,
    ZoneBuilder,
    equal_instants,
    event_zones,
    keyed_event_zones,
    rate_of,
    stream_of,
    with_row,
)
from tidegate.analysis.zones.wording import amount, factor
from tidegate.analysis.zones.zone import Zone

#: The name of what is kept: rows of the last while, or what is known of all rows of a partition.
COUNTS: Final = "counts"


class CountedSequencesFamily(Family[CountedSequences]):
    node = CountedSequences

    def zones(self, node: CountedSequences, build: ZoneBuilder) -> list[Zone]:
        """The matches that end with the rows of an instant, which are certain at it."""
        (reading,) = node.readings
        of = node.sequences
        schema = of.input.schema
        zones = build.build(reading.input)
        last, detected = (schema[of.time].renamed(name) for name in (LAST, DETECTED))
        its = Schema((*(schema[key] for key in of.keys if schema[key].temporal), detected))
        events = build.named(keyed_event_zones(zones, reading, DETECTED, build), its)
        lasts, same = event_zones(zones, reading, LAST), equal_instants([(LAST, DETECTED)])
        results = with_row(events, its, lasts, Schema((last,)), same, build)
        return build.pruned(build.named(results, node.schema), node.schema)

    def state(self, node: CountedSequences) -> StateBound:
        of, within = node.sequences, node.counting.within
        many = f"keys({stream_of(of.input)[1]} by {', '.join(of.keys)})" if of.keys else "1"
        if within is None:
            return StateBound((f"{COUNTS}: {many}",), (StoredRows(COUNTS, "kept", of="of matches so far"),))
        span = amount(within, of.input.schema[of.time].type)
        bound = f"{COUNTS}: {rate_of(of.input)} × {factor(span)}"
        return StateBound((bound,), (StoredRows(COUNTS, "kept", of="with which matches may begin or go on"),))

    def one_by_one(self, node: CountedSequences, *, shared: bool) -> Sequence[str]:
        return ("each may be a row of a match",)

    def orders(self, node: CountedSequences) -> Sequence[str]:
        """Nothing is searched for."""
        return ("matches are counted, and not listed",)
