"""The analysis of rows with the row of another relation nearest in time: when they are complete, and what is kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from tidegate.algebra.formulas import And, Compare, Formula, Shift, Var
from tidegate.algebra.ordered.asof import COMPLETE, AsOf
from tidegate.algebra.schema import Schema
from tidegate.analysis.ordered.family import (
    COMPLETING,
    Family,
    StateBound,
    StoredRows,
    ZoneBuilder,
    event_zones,
    held,
    rate_of,
    renamed,
    stream_of,
    with_row,
)
from tidegate.analysis.zones.wording import amount, factor, usual_spans
from tidegate.analysis.zones.zone import Zone

#: The names of what is kept: the last right row of each partition, and left rows that wait.
LAST: Final = "last"
WAITING: Final = "waiting"


class AsOfFamily(Family[AsOf]):
    node = AsOf

    def zones(self, node: AsOf, build: ZoneBuilder) -> list[Zone]:
        """A result row at the event that completes it: one of the left input, or one of the right. It waits for both.

        The instants of the two rows are no variables of that event: they progress no further than it does, at the
        distance that the relations allow.
        """
        sides = [build.build_range(reading.input) for reading in node.readings]
        rows = [held(zone, node.left.schema, build) for zone in build.named(sides[0][0], node.left.schema)]
        known = node.left.schema
        if node.how == "inner":
            rows = with_row(rows, known, sides[1][0], node.right.schema, And(()), build)
            known = Schema((*known.attributes, *node.right.schema.attributes))
        time = node.left.schema[node.left_time].renamed(COMPLETING)
        both = Schema((time, *known.attributes))
        results: list[Zone] = []
        for (zones, _), (_, others), reading in zip(sides, reversed(sides), node.readings, strict=True):
            events = build.named(event_zones(zones, reading, COMPLETING), Schema((time,)))
            pairs = build.joined(events, rows, both, _relations(node))
            named = renamed(pairs, {COMPLETING: COMPLETE}) if node.waits else pairs
            results += [zone.ignoring(others) for zone in build.named(named, node.schema)]
        return build.pruned(results, node.schema)

    def with_progress(self, node: AsOf) -> Sequence[tuple[AsOf, str]]:
        """The operator that waits for rows ahead for a limited time only."""
        if not node.waits or node.within is not None:
            return ()
        ticks, span = usual_spans(node.left.schema[node.left_time].type)[0]
        return ((replace(node, within=ticks), f"wait for a limited time: asof_join(..., within={span})"),)

    def state(self, node: AsOf) -> StateBound:
        last = StoredRows(LAST, "last", of="that later rows look at")
        waiting = StoredRows(WAITING, "waiting", of="that wait for one after them")
        rows = {"backward": (last,), "forward": (waiting,), "nearest": (last, waiting)}[node.direction]
        bounds = {LAST: _last_bound, WAITING: _waiting_bound}
        return StateBound(tuple(f"{stored.name}: {bounds[stored.name](node)}" for stored in rows), rows)

    def one_by_one(self, node: AsOf, *, shared: bool) -> Sequence[str]:
        return ("each is a row of the result, or a part of one",)


def _relations(node: AsOf) -> Formula:
    """The relations of the instants of a result row, and of the event that completes it."""
    left, right, complete = Var(node.left_time), Var(node.right_time), Var(COMPLETING)
    if node.waits:
        relations = [Compare(left, "<=", complete)]
        if node.within is not None:
            relations.append(Compare(complete, "<=", Shift(left, node.within)))
    else:
        relations = [Compare(left, "=", complete)]
    if node.how == "inner":
        relations.append(Compare(right, "=" if node.direction == "forward" else "<=", complete))
        if node.direction != "nearest":
            first, last = (right, left) if node.direction == "backward" else (left, right)
            relations.append(Compare(first, "<" if node.strict else "<=", last))
        if node.within is not None:
            relations += [
                Compare(right, "<=", Shift(left, node.within)),
                Compare(left, "<=", Shift(right, node.within)),
            ]
    return And(tuple(relations))


def _last_bound(node: AsOf) -> str:
    """How many right rows are kept at most: one of each partition, with a limit only while one may look at it."""
    many = f"keys({stream_of(node.right)[1]} by {', '.join(node.right_keys)})" if node.right_keys else "1"
    if node.within is None:
        return many
    span = amount(node.within, node.left.schema[node.left_time].type)
    return f"{rate_of(node.right)} × {factor(span)}, at most {many}"


def _waiting_bound(node: AsOf) -> str:
    """How many left rows wait at most."""
    if node.within is None:
        return f"unbounded: rows of {stream_of(node.left)[1]} wait until one of {stream_of(node.right)[1]} follows"
    return f"{rate_of(node.left)} × {factor(amount(node.within, node.left.schema[node.left_time].type))}"
