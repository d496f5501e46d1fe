"""The analysis of row patterns: how long a match lasts, when it is certain, and how many rows are kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

from tidegate.algebra.formulas import And, Compare, Formula, Shift, Var
from tidegate.algebra.functions.aggregates import Aggregate
from tidegate.algebra.ordered.sequences.automata.automaton import automaton
from tidegate.algebra.ordered.sequences.counting.counted import counted
from tidegate.algebra.ordered.sequences.definition import DETECTED, FIRST, LAST, EveryMatch, within
from tidegate.algebra.ordered.sequences.navigation import Classifier, Navigation, RowValue, reach_of
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.outlines import Outline, outlines_of, place_in, rows_after
from tidegate.algebra.ordered.sequences.pattern import Absence, Anchor, longest, patterns_of, shortest
from tidegate.algebra.ordered.summary import Halves, Summary
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import attributes_of
from tidegate.analysis.ordered.family import (
    Family,
    StateBound,
    StoredRows,
    ZoneBuilder,
    event_zones,
    rate_of,
    stream_of,
    with_row,
)
from tidegate.analysis.ordered.sequences.growth import growing
from tidegate.analysis.ordered.sequences.tables import tables_of
from tidegate.analysis.zones.wording import amount, factor, usual_spans
from tidegate.analysis.zones.zone import Zone

#: The name of what is kept.
ROWS: Final = "rows"


@dataclass(frozen=True, slots=True)
class Waits:
    """How long after its first row, and after its last, a match is certain at the latest, in ticks; None: nobody knows.
    `span` is how long it lasts at most.
    """

    span: int | None
    after_first: int | None
    after_last: int | None


def waits_of(node: Sequences) -> Waits:
    """How long matches last and wait."""
    span, trailing = span_of(node), _trailing(node)
    ahead = _reads_ahead(node) or any(isinstance(p, Anchor) and p.at == "end" for p in patterns_of(node.pattern))
    if ahead:
        return Waits(span, None, None)
    every = isinstance(node.selection, EveryMatch)
    # A row is of no match once the matches that may begin there have not come: so long after it.
    decided = not node.reported.unmatched and (every or longest(node.pattern) == shortest(node.pattern))
    return Waits(span, None if span is None else span + trailing, trailing if decided else None)


def span_of(node: Sequences) -> int | None:
    """How long a match lasts at most, by its limits, whichever way through the pattern it takes; None: for ever."""
    spans = [_span(node, outline) for outline in outlines_of(node)]
    known = [span for span in spans if span is not None]
    return max(known, default=0) if len(known) == len(spans) else None


def _span(node: Sequences, outline: Outline) -> int | None:
    """The greatest difference of the last row of a match and its first one; 0 where they contradict each other."""
    if len(outline) < 2:
        return 0
    edges = [(later, earlier, 0) for earlier, later in pairwise(range(len(outline)))]
    for limit in node.limits:
        later, earlier = (place_in(outline, point) for point in (limit.later, limit.earlier))
        if later is not None and earlier is not None:
            edges.append((earlier, later, limit.most))
    distance: list[int | None] = [0, *(None for _ in outline[1:])]
    for _ in outline:
        for earlier, later, most in edges:
            by = distance[earlier]
            if by is not None and (distance[later] is None or by + most < (distance[later] or 0)):
                distance[later] = by + most
    return distance[-1] if distance[0] == 0 else 0


def _trailing(node: Sequences) -> int:
    """How long after its last row a match waits at most for rows that must not come. One that may stand there has its
    limit.
    """
    return max((part.within or 0 for part in patterns_of(node.pattern) if isinstance(part, Absence)), default=0)


def _reads_ahead(node: Sequences) -> bool:
    """Whether a row behind the last one of a match decides something of it."""
    by_name = {navigation.name: navigation for navigation in node.navigations}
    steps = {
        d.variable: _ahead(by_name[name] for name in attributes_of(d.condition) if name in by_name)
        for d in node.definitions
    }
    measured = _ahead(
        by_name[name] for measure in node.measures for name in attributes_of(measure.term) if name in by_name
    )
    if measured:
        return True
    if not any(steps.values()):
        return False
    of = automaton(node.pattern)
    return any(
        steps.get(state.variable, 0) > after for state, after in zip(of.states[1:], rows_after(of)[1:], strict=True)
    )


def _ahead(navigations: Iterable[Navigation]) -> int:
    return max((n.row.step for n in navigations if isinstance(n, RowValue | Classifier)), default=0)


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
        return StateBound((_bound(node),), (StoredRows(ROWS, "kept", of="that matches may need"),))

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


def _bound(node: Sequences) -> str:
    """How many rows are kept at most: some of each partition, and those of a span."""
    many = f"keys({stream_of(node.input)[1]} by {', '.join(node.keys)}) × " if node.keys else ""
    waits, rows = waits_of(node), longest(node.pattern)
    back, _ = reach_of(node.navigations)
    leading = max((p.within or 0 for p in patterns_of(node.pattern) if isinstance(p, Absence)), default=0)
    adjacent = not isinstance(node.selection, EveryMatch) or node.selection.skipping == "contiguous"
    if waits.after_first is not None:
        span = amount(waits.after_first + leading, node.input.schema[node.time].type)
        summands = [f"{many}{back:,}"] if back else []
        return f"{ROWS}: {' + '.join([*summands, f'{rate_of(node.input)} × {factor(span)}'])}"
    if adjacent and rows is not None and not leading:
        return f"{ROWS}: {many}{rows + back:,}"
    return f"{ROWS}: unbounded: missing within="
