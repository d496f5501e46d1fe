"""Temporal patterns in the embedded engine: situations derived, kept and matched, increment by increment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.nodes import Derive, Given, Match
from tidegate.algebra.situations import measures
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import MAX_INSTANT
from tidegate.analysis.detection import Detection, detection_of
from tidegate.analysis.match_orders import pinned_order
from tidegate.analysis.matches import horizons
from tidegate.runtime.columns import only, polars_schema
from tidegate.runtime.embedded.given import GivenRows
from tidegate.runtime.embedded.match_order import MatchOrder
from tidegate.runtime.embedded.run_values import Asked
from tidegate.runtime.embedded.situations import (
    Derivation,
    Read,
    joined,
    kept_tables,
    key_schema,
    live_runs,
    loaded,
)
from tidegate.runtime.kernels.layout import NONE, Situations, arrange, find_triggers, purge
from tidegate.runtime.kernels.pattern_plan import Pattern, Steps, plan_steps, triggering
from tidegate.runtime.kernels.patterns import Matches, enumerate_matches
from tidegate.runtime.kernels.situations import Bools, Closed, Ints, Runs
from tidegate.runtime.plan.steps import Ordered, Stretched

#: Later than every instant, as the kernels take progress.
_EVER: Final = 2 * MAX_INSTANT - 1


#: A horizon that has passed whatever the end: nothing of these is kept.
_GONE: Final = -3 * MAX_INSTANT


@dataclass(frozen=True, slots=True)
class Matching:
    """A pattern as the kernels take it. Role i has the situations of definition `definition[i]`.

    First come the definitions of derived situations, then one per symbol whose situations are given, with their leaves.
    """

    node: Match
    definitions: tuple[Derive, ...]
    leaves: tuple[int, ...]
    given: tuple[tuple[Given, int], ...]
    definition: tuple[int, ...]
    pattern: Pattern
    detection: Detection
    from_start: tuple[Ints, ...]
    from_end: tuple[Ints, ...]
    horizons: Ints
    stretched: Stretched | None

    @classmethod
    def of(cls, ordered: Ordered) -> Matching:
        node = ordered.node
        assert isinstance(node, Match)
        definitions = tuple(dict.fromkeys(one for one in node.situations if isinstance(one, Derive)))
        leaves = tuple(ordered.leaves[node.situations.index(one)] for one in definitions)
        given: list[tuple[Given, int]] = []
        numbers: list[int] = []
        for one, leaf in zip(node.situations, ordered.leaves, strict=True):
            if isinstance(one, Given):
                numbers.append(len(definitions) + len(given))
                given.append((one, leaf))
            else:
                numbers.append(definitions.index(one))
        definition = tuple(numbers)
        found = detection_of(node)
        pattern = Pattern(
            definition=np.array(definition, dtype=np.int64),
            masks=found.masks.astype(np.int64),
            at_least=np.array([_limits(one)[0] for one in node.situations], dtype=np.int64),
            at_most=np.array([_limits(one)[1] for one in node.situations], dtype=np.int64),
            zones=np.where(found.zones >= MAX_INSTANT * 2, NONE, found.zones),
            implied=np.full((2 * len(definition),) * 2, NONE),
            within=NONE if node.within is None else node.within,
            final=node.emission == "final",
            disjoint=np.arange(len(definitions) + len(given)) < len(definitions),
        )
        lasts = triggering(pattern)
        return cls(
            node,
            definitions,
            leaves,
            tuple(given),
            definition,
            pattern,
            found,
            _offsets(found.start_offsets, definition, lasts),
            _offsets(found.end_offsets, definition, lasts),
            _horizons(found, definition, len(definitions)),
            _by_definition(ordered, definitions),
        )

    @property
    def count(self) -> int:
        """All definitions."""
        return len(self.definitions) + len(self.given)


def _by_definition(ordered: Ordered, definitions: Sequence[Derive]) -> Stretched | None:
    """The operator's stretches, with the bits of its definitions instead of its situations."""
    if ordered.stretched is None:
        return None
    assert isinstance(ordered.node, Match)
    places = [ordered.node.situations.index(one) for one in definitions]
    return replace(ordered.stretched, bits=tuple(ordered.stretched.bits[place] for place in places))


def _limits(one: Derive | Given) -> tuple[int, int]:
    """The limits of a situation's duration."""
    if isinstance(one, Given):
        return (0 if one.points else 1), NONE
    return one.at_least, NONE if one.at_most is None else one.at_most


def _horizons(found: Detection, definition: Sequence[int], derived: int) -> Ints:
    """How long after its end a situation of each definition may still be matched; with a window, that alone decides.

    Given ones stay where their rows are stored.
    """
    longest = np.full(max(definition) + 1, NONE)
    if found.within is None:
        longest[:] = -_EVER
        for number, horizon in zip(definition, horizons(found), strict=True):
            longest[number] = max(longest[number], _ticks(horizon.after_end))
    longest[derived:] = _GONE
    return longest


def _offsets(by_role: Sequence[Sequence[int]], definition: Sequence[int], lasts: Bools) -> tuple[Ints, ...]:
    """What the roles of each definition have, together; nothing where its situations make no match certain."""
    return tuple(
        np.array(
            sorted({o for role, d in zip(by_role, definition, strict=True) if d == number for o in role}),
            dtype=np.int64,
        )[: None if lasts[number] else 0]
        for number in range(max(definition) + 1)
    )


@dataclass(frozen=True, slots=True)
class MatchOperator:
    """Matches of a pattern, reported as they are detected. `kept` are situations that are over, `number` their runs.

    `order` is what the search for matches goes by, `steps` the pattern in that order. Neither has a part in what is found.
    """

    matching: Matching
    derivation: Derivation
    kept: Situations
    number: Ints
    order: MatchOrder
    steps: Steps

    @classmethod
    def start(cls, ordered: Ordered) -> MatchOperator:
        """Before the first event."""
        matching = Matching.of(ordered)
        keys = key_schema(matching.node.situations[0])
        derivation = Derivation.start(matching.definitions, matching.leaves, keys, matching.stretched)
        order = MatchOrder.initial(matching.detection, pinned_order(matching.node))
        return cls(
            matching,
            derivation,
            Situations.empty(matching.count),
            np.empty(0, dtype=np.int64),
            order,
            plan_steps(matching.pattern, order.order),
        )

    def step(
        self, events: Sequence[pl.DataFrame], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[MatchOperator, pl.DataFrame]:
        """The operator after all events up to `until`, and the matches detected since `after`."""
        derived = len(self.derivation.sources)
        derivation, reads = self.derivation.read(events[:derived], close_at)
        given = self._given(events[derived:])
        closed, runs = _closed(derivation, reads, given), _all_runs(derivation, self.matching.count)
        low, high = _ticks(after), _ticks(until)
        situations = arrange(self.kept, closed, runs, len(derivation.partitions))
        number = np.concatenate([self.number, closed.run, runs.number.ravel()])[situations.origin]
        triggers = find_triggers(situations, self.matching.from_start, self.matching.from_end, low, high)
        found = enumerate_matches(self.steps, situations, triggers, low, high)
        rows = self._rows(derivation, reads, given, situations, number, found)
        kept = purge(situations, self.matching.pattern.within, self.matching.horizons, high)
        number = number[kept.origin]
        order = self.order.after(situations, self.matching.definition, found)
        same = order.order is self.order.order or np.array_equal(order.order, self.order.order)
        steps = self.steps if same else plan_steps(self.matching.pattern, order.order)
        return MatchOperator(self.matching, live_runs(derivation, number), kept, number, order, steps), rows

    def emptied(self) -> MatchOperator:
        """The operator without situations, in the order of search that it has come to."""
        one = self.matching
        derivation = Derivation.start(one.definitions, one.leaves, self.derivation.partitions.schema, one.stretched)
        kept, number = Situations.empty(one.count), np.empty(0, dtype=np.int64)
        return replace(self, derivation=derivation, kept=kept, number=number)

    def _given(self, rows: Sequence[pl.DataFrame]) -> dict[int, GivenRows]:
        first = len(self.matching.definitions)
        parts = zip(self.matching.given, rows, strict=True)
        return {first + place: GivenRows.of(one, first + place, part) for place, ((one, _), part) in enumerate(parts)}

    def _rows(
        self,
        derivation: Derivation,
        reads: Sequence[Read],
        given: Mapping[int, GivenRows],
        situations: Situations,
        number: Ints,
        found: Matches,
    ) -> pl.DataFrame:
        node, detected = self.matching.node, found.detected
        cell = np.searchsorted(situations.offsets, found.situation[:, 0], side="right") - 1
        rows = derivation.keys_of(cell // situations.definitions)
        own = {n: (read.own[n]) for read in reads for n in read.own}
        for role, (symbol, definition) in enumerate(zip(node.symbols, self.matching.definition, strict=True)):
            place = found.situation[:, role]
            te = situations.te[place]
            ends = pl.Series(f"{symbol}.te", te).set(pl.Series((te > detected) & (definition not in given)), None)
            rows = rows.hstack([pl.Series(f"{symbol}.ts", situations.ts[place]), ends])
            values = None
            if definition in given and measures(given[definition].given):
                values = given[definition].values(number[place])
            elif definition in derivation.values:
                values = self._values(derivation, definition, own[definition], number[place], te <= detected, detected)
            if values is not None:
                rows = rows.hstack(values.rename({name: f"{symbol}.{name}" for name in values.columns}))
        rows = only(rows.hstack([pl.Series("detected", detected)]), node.schema.names)
        wanted = polars_schema(node.schema)
        return rows if rows.schema == wanted else rows.cast(wanted)

    def _values(
        self, derivation: Derivation, definition: int, own: pl.DataFrame, run: Ints, over: Bools, detected: Ints
    ) -> pl.DataFrame:
        """Aggregates of situations as of the detection: of those that are over by then, over all of their events."""
        values = derivation.values[definition]
        at_end = values.at_end(run[over]).with_columns(pl.Series("row", np.flatnonzero(over)))
        asked = Asked(run[~over], detected[~over])
        at = values.at(asked, self.derivation.values[definition].partials, own)
        both = pl.concat([at_end, at.with_columns(pl.Series("row", np.flatnonzero(~over)))])
        return both.sort("row").drop("row")

    def tables(self) -> dict[str, pl.DataFrame]:
        """What is kept, as tables by name."""
        cells = np.repeat(np.arange(len(self.kept.offsets) - 1), np.diff(self.kept.offsets))
        columns = [
            pl.Series("definition", cells % self.kept.definitions),
            pl.Series("start", self.kept.ts),
            pl.Series("end", self.kept.te),
            pl.Series("number", self.number),
        ]
        closed = self.derivation.kept_keys(cells // self.kept.definitions).hstack(columns)
        return kept_tables(self.derivation) | ({"closed": closed} if closed.height else {})

    @classmethod
    def load(cls, ordered: Ordered, tables: Mapping[str, pl.DataFrame]) -> MatchOperator:
        """The operator with what was kept."""
        fresh = cls.start(ordered)
        derivation = loaded(fresh.derivation, tables)
        if "closed" not in tables:
            return replace(fresh, derivation=derivation)
        rows = tables["closed"]
        columns = {name: rows.get_column(name).to_numpy() for name in ("definition", "start", "end", "number")}
        slot = derivation.slots_of(rows)
        closed = Closed(
            slot, columns["definition"].astype(np.int16), columns["start"], columns["end"], columns["number"]
        )
        kept = arrange(fresh.kept, closed, None, len(derivation.partitions))
        following = 1 + max(int(columns["number"].max()), derivation.numbers - 1)
        derivation = replace(derivation, numbers=following)
        return replace(fresh, derivation=derivation, kept=kept, number=closed.run[kept.origin])


def _closed(derivation: Derivation, reads: Sequence[Read], given: Mapping[int, GivenRows]) -> Closed:
    """What closed in an increment and is of the right duration, and what is given, by definition."""
    found: Closed | None = None
    for rows in given.values():
        own = rows.closed(derivation.partitions)
        found = own if found is None else joined(found, own)
    for read in reads:
        lasting = derivation.lasting(read.source, read.closed)
        symbol = np.array(read.source.definitions, dtype=np.int16)[lasting.symbol]
        own = Closed(lasting.slot, symbol, lasting.ts, lasting.te, lasting.run)
        found = own if found is None else joined(found, own)
    assert found is not None
    return found


def _all_runs(derivation: Derivation, count: int) -> Runs:
    """The runs of all sources, a column per definition."""
    if len(derivation.runs) == 1 and derivation.sources[0].definitions == tuple(range(count)):
        return derivation.runs[0].grown(len(derivation.partitions))
    slots = len(derivation.partitions)
    found = Runs.empty(slots, count)
    for source, runs in zip(derivation.sources, derivation.runs, strict=True):
        known, columns = min(slots, len(runs.last)), list(source.definitions)
        found.start[:known, columns] = runs.start[:known]
        found.number[:known, columns] = runs.number[:known]
    return found


def _ticks(progress: Extended) -> int:
    if progress in (INF, -INF):
        return _EVER if progress == INF else -_EVER
    return int(progress)
