"""The family of row patterns in the analysis: the instants of matches, and what is kept and said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tidegate.algebra.formulas import And, Compare, Formula, Shift, Var
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.ordered.sequences.counting.countable import over_row
from tidegate.algebra.ordered.sequences.counting.counted import counted
from tidegate.algebra.ordered.sequences.definition import DETECTED, FIRST, LAST, EveryMatch, within
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.summary import Halves, Summary
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import conjuncts
from tidegate.analysis.ordered.family import (
    Family,
    OneRow,
    StateBound,
    StoredRows,
    ZoneBuilder,
    event_zones,
    with_row,
)
from tidegate.analysis.ordered.sequences.bounds import ROWS, bound_of
from tidegate.analysis.ordered.sequences.growth import growing
from tidegate.analysis.ordered.sequences.tables import tables_of
from tidegate.analysis.ordered.sequences.waits import span_of, waits_of
from tidegate.analysis.zones.wording import usual_spans
from tidegate.analysis.zones.zone import Zone


class SequencesFamily(Family[Sequences]):
    node = Sequences

    def zones(self, node: Sequences, build: ZoneBuilder) -> list[Zone]:
        """A match at the instant at which it is certain, with instants for its first and its last row, and for the row
        that is reported of it where each is.
        """
        (reading,) = node.readings
        schema = node.input.schema
        zones = build.build(reading.input)
        first, last, detected = (schema[node.time].renamed(name) for name in (FIRST, LAST, DETECTED))
        results = build.named(event_zones(zones, reading, DETECTED), Schema((detected,)))
        whole = Schema((detected,))
        if node.reported.rows == "all":
            results = with_row(results, whole, zones, schema, And(()), build)
            whole = Schema((*whole.attributes, *schema.attributes))
        keys = () if node.reported.rows == "all" else tuple(schema[key] for key in node.keys if schema[key].temporal)
        for instants in (Schema((*keys, first)), Schema((last,))):
            its = event_zones(zones, reading, instants.names[-1])
            results = with_row(results, whole, its, instants, And(()), build)
            whole = Schema((*whole.attributes, *instants.attributes))
        results = build.constrain(results, _relations(node))
        return build.pruned(build.named(results, node.schema), node.schema)

    def of_one_row(self, node: Sequences) -> Sequence[OneRow]:
        """Of the condition of each variable what reads its row alone. The last row of the variable is that row."""
        found = []
        for of in node.definitions:
            own = {part: over_row(node, of.variable, part) for part in conjuncts(of.condition)}
            hint = f"in the condition of {of.variable} its last row is the row itself; the one before is PREV(x), "
            found.append(
                OneRow(
                    {term: part for part, term in own.items() if not isinstance(term, str)},
                    hint + f"or LAST({of.variable}.x, 1) of those of {of.variable}",
                )
            )
        return found

    def with_progress(self, node: Sequences) -> Sequence[tuple[Sequences, str]]:
        """The pattern of which matches last a limited time."""
        if span_of(node) is not None:
            return ()
        ticks, span = usual_spans(node.input.schema[node.time].type)[0]
        return ((replace(node, limits=(*node.limits, within(ticks))), f"limit how long a match lasts: within={span}"),)

    def summary(
        self, node: Sequences, keys: Sequence[str], aggregates: Sequence[Aggregate], totals: Sequence[Halves]
    ) -> Summary | str:
        return counted(node, keys, aggregates, totals)

    def orders(self, node: Sequences) -> Sequence[str]:
        """What searches for the matches."""
        tables = tables_of(node)
        if isinstance(tables, str):
            return (f"matches are searched for in Python, since {tables}",)
        return ("matches are searched for by compiled kernels",)

    def per_start(self, node: Sequences) -> Sequence[str]:
        if node.per_start is not None:
            return (f"limit {node.per_start:,}: a row that begins more matches stops the program (TG307)",)
        if not (parts := growing(node)):
            return ()
        assert isinstance(node.selection, EveryMatch)
        skips = node.selection.skipping == "any"
        choice = "a row may be skipped or not" if skips else "a row may have one variable or another"
        endless = f"{'each of ' if len(parts) > 1 else ''}which has no upper bound"
        return (
            f"no limit: {choice} in {' and '.join(parts)}, {endless},",
            "so every row may double the matches that begin with one; per_start=1000 stops the program there (TG307)",
        )

    def state(self, node: Sequences) -> StateBound:
        return StateBound((bound_of(node),), (StoredRows(ROWS, "kept", of="that matches may need"),))

    def one_by_one(self, node: Sequences, *, shared: bool) -> Sequence[str]:
        return ("each may be a row of a match",)


def _relations(node: Sequences) -> Formula:
    """The relations of the instants of a match."""
    first, last, detected = Var(FIRST), Var(LAST), Var(DETECTED)
    waits = waits_of(node)
    relations = [Compare(first, "<=", last), Compare(last, "<=", detected)]
    if waits.span is not None:
        relations.append(Compare(last, "<=", Shift(first, waits.span)))
    if waits.after_first is not None:
        relations.append(Compare(detected, "<=", Shift(first, waits.after_first)))
    if waits.after_last is not None:
        relations.append(Compare(detected, "<=", Shift(last, waits.after_last)))
    if node.reported.rows == "all":
        row = Var(node.time)
        relations += [Compare(first, "<=", row), Compare(row, "<=", last)]
    return And(tuple(relations))
