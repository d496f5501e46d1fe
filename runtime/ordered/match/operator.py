"""The pattern operator: it derives, keeps and matches situations, increment by increment."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Self, TypeAlias

import numpy as np
import polars as pl

from tidegate.algebra.ordered.derive import END, START, Derive
from tidegate.algebra.ordered.match.node import Match, RowIntervals, measures
from tidegate.algebra.time import Extended
from tidegate.algebra.types import MAX_INSTANT
from tidegate.analysis.ordered.match.chosen_orders import order_lines, pinned_order
from tidegate.analysis.ordered.match.detection import Detection, detection_of
from tidegate.analysis.ordered.match.matches import horizons
from tidegate.analysis.ordered.match.partners import SituationPartners, given_partners, situation_partners
from tidegate.runtime.arrays import BoolArray, Int32Array, Int64Array
from tidegate.runtime.eval.columns import only, polars_schema
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.kernels.cells import NONE, Situations, Triggers, arrange, find_triggers, next_looks, purge
from tidegate.runtime.kernels.counting import CountingSteps, MatchCount
from tidegate.runtime.kernels.partners import Partners, needed, of_use
from tidegate.runtime.kernels.ranges.range_plan import RangeSteps, plan_search
from tidegate.runtime.kernels.ranges.range_search import find_matches
from tidegate.runtime.kernels.search import Matches
from tidegate.runtime.kernels.search_plan import Pattern, Steps, triggering
from tidegate.runtime.kernels.situations import ClosedSituations, Runs
from tidegate.runtime.ordered.derive.derivation import (
    Derivation,
    SourceIncrement,
    joined,
    key_schema,
    open_numbers,
    without,
)
from tidegate.runtime.ordered.derive.partition_states import PartitionStates, StateChange, StateExtract, located_in
from tidegate.runtime.ordered.derive.run_values import ValueRequests
from tidegate.runtime.ordered.derive.situations import Situations as SituationsOperator
from tidegate.runtime.ordered.derive.tables import (
    SITUATIONS,
    following,
    load_closed,
    load_runs,
    load_values,
)
from tidegate.runtime.ordered.family import tell_matches
from tidegate.runtime.ordered.match.intervals import IntervalRows
from tidegate.runtime.ordered.match.order import MatchOrder
from tidegate.runtime.ordered.partition_store import EVER, ticks
from tidegate.runtime.ordered.partitions import Partitions
from tidegate.runtime.plan.steps import EncodedReading, OrderedStep
from tidegate.runtime.rows import Rows, as_frame

#: How the matches of a pattern are searched for, or counted.
PlannedSearch: TypeAlias = Steps | RangeSteps | CountingSteps
#: A horizon that has passed whatever the end: nothing of these is kept.
_GONE: Final = -3 * MAX_INSTANT


@dataclass(frozen=True, slots=True)
class CompiledPattern:
    """A pattern for the kernels. Role i has the situations of definition `definition[i]`.

    First come the definitions of derived situations, then one per symbol whose situations are given, with their leaves.
    """

    node: Match
    definitions: tuple[Derive, ...]
    leaves: tuple[int, ...]
    intervals: tuple[tuple[RowIntervals, int], ...]
    definition: tuple[int, ...]
    pattern: Pattern
    detection: Detection
    from_start: tuple[Int64Array, ...]
    from_end: tuple[Int64Array, ...]
    horizons: Int64Array
    partners: Partners | None
    given: Partners | None
    encoded: EncodedReading | None
    nothing: pl.DataFrame
    """No matches."""

    @classmethod
    def of(cls, ordered: OrderedStep) -> CompiledPattern:
        node = ordered.node
        assert isinstance(node, Match)
        definitions = tuple(dict.fromkeys(situation for situation in node.situations if isinstance(situation, Derive)))
        leaves = tuple(ordered.leaves[node.situations.index(situation)] for situation in definitions)
        given: list[tuple[RowIntervals, int]] = []
        numbers: list[int] = []
        for situation, leaf in zip(node.situations, ordered.leaves, strict=True):
            if isinstance(situation, RowIntervals):
                numbers.append(len(definitions) + len(given))
                given.append((situation, leaf))
            else:
                numbers.append(definitions.index(situation))
        definition = tuple(numbers)
        detection = detection_of(node)
        pattern = Pattern(
            definition=np.array(definition, dtype=np.int64),
            masks=detection.masks.astype(np.int64),
            at_least=np.array([_limits(situation)[0] for situation in node.situations], dtype=np.int64),
            at_most=np.array([_limits(situation)[1] for situation in node.situations], dtype=np.int64),
            zones=np.where(detection.zones >= MAX_INSTANT * 2, NONE, detection.zones),
            implied=np.where(detection.implied >= MAX_INSTANT * 2, NONE, detection.implied),
            within=NONE if node.within is None else node.within,
            final=node.emission == "final",
            disjoint=np.arange(len(definitions) + len(given)) < len(definitions),
        )
        starts, ends = triggering(pattern)
        return cls(
            node,
            definitions,
            leaves,
            tuple(given),
            definition,
            pattern,
            detection,
            _offsets(detection.start_offsets, definition, starts),
            _offsets(detection.end_offsets, definition, ends),
            _horizons(detection, definition, len(definitions)),
            _partners(ordered, definition, len(definitions)),
            _given(ordered, definition, len(definitions)),
            _by_definition(ordered, definitions),
            pl.DataFrame(schema=polars_schema(node.schema)),
        )

    @property
    def count(self) -> int:
        """The number of definitions."""
        return len(self.definitions) + len(self.intervals)

    def usable(self, closed: ClosedSituations, after: int) -> ClosedSituations:
        """The situations among these that the window lets take part in a match that is detected after an instant."""
        within = self.pattern.within
        return closed if within == NONE else closed.where(closed.ts > after - within)

    def left(self, situations: Situations, until: int) -> tuple[Situations, Int64Array]:
        """The situations that stay once all matches up to `until` are found, and the next instant to read each
        partition.
        """
        within, looked = self.pattern.within, (self.from_start, self.from_end)
        kept = purge(situations, within, self.horizons, until)
        if self.partners is None:
            return kept, next_looks(situations, *looked, within, self.horizons, until)
        useful, look = of_use(self.partners, situations, kept, until)
        next_look = next_looks(situations, *looked, within, self.horizons, until, useful)
        stays = useful[kept.origin]
        return kept if stays.all() else kept.where(stays), np.minimum(look, next_look)


def _by_definition(ordered: OrderedStep, definitions: Sequence[Derive]) -> EncodedReading | None:
    """How the operator reads event runs, with the bits of its definitions instead of its situations."""
    if ordered.encoded is None:
        return None
    assert isinstance(ordered.node, Match)
    places = [ordered.node.situations.index(definition) for definition in definitions]
    return replace(ordered.encoded, bits=tuple(ordered.encoded.bits[place] for place in places))


def _limits(situation: Derive | RowIntervals) -> tuple[int, int]:
    """The least and greatest duration of a situation."""
    if isinstance(situation, RowIntervals):
        return (0 if situation.points else 1), NONE
    return situation.at_least, NONE if situation.at_most is None else situation.at_most


def _horizons(detection: Detection, definition: Sequence[int], derived: int) -> Int64Array:
    """How long after its end a situation of each definition may still be matched. With a window only that decides.

    Intervals of rows stay where their rows are stored.
    """
    longest = np.full(max(definition) + 1, NONE)
    if detection.within is None:
        longest[:] = -EVER
        for number, horizon in zip(definition, horizons(detection), strict=True):
            longest[number] = max(longest[number], ticks(horizon.after_end))
    longest[derived:] = _GONE
    return longest


def _partners(ordered: OrderedStep, definition: Sequence[int], derived: int) -> Partners | None:
    """The rule that frees situations sooner, where the plan uses it."""
    node = ordered.node
    assert isinstance(node, Match)
    rule = None if ordered.purging == "off" else situation_partners(node, always=ordered.purging == "always")
    return None if rule is None else _compiled(node, rule, definition, derived)


def _given(ordered: OrderedStep, definition: Sequence[int], derived: int) -> Partners | None:
    """The rule that frees given intervals beside derived situations, where the plan uses it."""
    node = ordered.node
    assert isinstance(node, Match)
    rule = None if ordered.purging == "off" else given_partners(node, always=ordered.purging == "always")
    return None if rule is None else _compiled(node, rule, definition, derived)


def _compiled(node: Match, rule: SituationPartners, definition: Sequence[int], derived: int) -> Partners:
    numbers = np.arange(max(definition) + 1)
    freed = [definition[node.symbols.index(symbol)] for freeing in rule.freed for symbol in freeing.symbols]
    return Partners(
        definition=np.array(definition, dtype=np.int64),
        derived=numbers < derived,
        freed=np.isin(numbers, freed),
        bounds=np.array([[NONE if c is None else c for c in row] for row in rule.bounds], dtype=np.int64),
    )


def _offsets(by_role: Sequence[Sequence[int]], definition: Sequence[int], lasts: BoolArray) -> tuple[Int64Array, ...]:
    """The offsets of the roles of each definition. They are empty where such an endpoint makes no match certain."""
    return tuple(
        np.array(
            sorted({o for role, d in zip(by_role, definition, strict=True) if d == number for o in role}),
            dtype=np.int64,
        )[: None if lasts[number] else 0]
        for number in range(max(definition) + 1)
    )


@dataclass(frozen=True, slots=True)
class MatchOperator(SituationsOperator):
    """The matches of a pattern, reported as they are detected.

    `states` are what is held of the partitions; an increment changes them only once it is settled, by the `change` that
    it made of some. `order` is what the search for matches goes by, `steps` the pattern in that order. Neither has a
    part in what is found. With `since`, the next increment yields only the matches that are detected after that
    instant. `search_seconds` is what the last search took.
    """

    matching: CompiledPattern
    derivation: Derivation
    states: PartitionStates
    order: MatchOrder
    steps: PlannedSearch
    change: StateChange | None = None
    since: Extended | None = None
    search_seconds: float = field(default=0.0, compare=False)

    @classmethod
    def start(cls, ordered: OrderedStep) -> MatchOperator:
        """The operator before the first event."""
        matching = CompiledPattern.of(ordered)
        derivation = Derivation.start(matching.definitions, matching.leaves, matching.encoded)
        states = derivation.states(key_schema(matching.node.situations[0]), matching.count)
        order = MatchOrder.initial(matching.detection, pinned_order(matching.node))
        return cls(matching, derivation, states, order, cls.planned(matching.pattern, order.order))

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[MatchOperator, pl.DataFrame]:
        """The operator after all events up to `until`, and the matches detected since `after`."""
        matching, states, low, high = self.matching, self.settled().states, ticks(after), ticks(until)
        states.ready()
        given = self._interval_rows(events[len(self.derivation.sources) :])
        located = located_in(
            states, self.derivation.sources, events, [rows.rows for rows in given.values()], high, close_at
        )
        before = states.extract(located.partitions)
        derivation, runs, reads = self.derivation.read(located.events, before.runs, close_at)
        closed = _closed(derivation, reads, given, located.other_rows)
        first = low if self.since is None else max(low, ticks(self.since))
        if first > low:
            closed = matching.usable(closed, first)
        every = _all_runs(derivation, runs, matching.count)
        situations = arrange(before.kept, closed, every, len(located.partitions))
        number = np.concatenate([before.number, closed.run, every.number.ravel()])[situations.origin]
        began = time.perf_counter()
        triggers = find_triggers(situations, matching.from_start, matching.from_end, first, high)
        found = Found(
            PartitionKeys(states.partitions, located.partitions), derivation, reads, given, situations, number
        )
        rows, matches = self.detected(found, triggers, first, high)
        search_seconds = time.perf_counter() - began
        kept, look = matching.left(situations, high)
        change = StateChange(
            before,
            StateExtract(located.partitions, runs, kept, number[kept.origin], look),
            _is_new(before, situations, kept),
        )
        if derivation.values:
            live = np.concatenate([change.after.number, open_numbers(runs)])
            earlier = np.concatenate([before.number, open_numbers(before.runs)])
            derivation = without(derivation, self.derivation, earlier, live)
        order = self.order.after(situations, matching.definition, matches)
        same = order.order is self.order.order or np.array_equal(order.order, self.order.order)
        steps = self.steps if same else self.planned(matching.pattern, order.order)
        now = replace(
            self,
            derivation=derivation,
            states=states,
            order=order,
            steps=steps,
            change=change,
            since=None,
            search_seconds=search_seconds,
        )
        return now, rows

    def finding_after(self, instant: Extended) -> Self:
        """A match is detected at one instant, which is of itself and not of the increments that there are."""
        return replace(self, since=instant)

    @staticmethod
    def planned(pattern: Pattern, order: Int64Array) -> PlannedSearch:
        """The search for the matches in these orders."""
        return plan_search(pattern, order)

    def detected(
        self, found: Found, triggers: Triggers, after: int, until: int
    ) -> tuple[pl.DataFrame, Matches | MatchCount]:
        """The rows of the matches that are detected after one instant, up to another, and what the search cost."""
        assert isinstance(self.steps, Steps | RangeSteps)
        matches = find_matches(self.steps, found.situations, triggers, after, until)
        tell_matches(len(matches.detected))
        return self._rows(found, matches), matches

    def events(self, leaves: Mapping[int, Rows], old: Extended, new: Extended) -> list[Rows]:
        given = [evaluate(interval.input, {0: as_frame(leaves[leaf])}) for interval, leaf in self.matching.intervals]
        return [*super(MatchOperator, self).events(leaves, old, new), *given]

    def needs(self, leaf: int, rows: pl.DataFrame, reached: Extended) -> BoolArray | None:
        rule = self.matching.given
        if rule is None or self.since is not None:
            return None
        states, count, until = self.settled().states, self.matching.count, ticks(reached)
        found = np.zeros(rows.height, dtype=np.bool_)
        for place, (intervals, of_leaf) in enumerate(self.matching.intervals):
            if of_leaf != leaf:
                continue
            role = self.matching.definition.index(len(self.matching.definitions) + place)
            given = evaluate(intervals.input, {0: rows})
            if not rule.freed[self.matching.definition[role]] or given.height != rows.height:
                return None
            partitions, partition = states.held_by(given)
            extract = states.extract(partitions)
            every = _all_runs(self.derivation, extract.runs, count)
            situations = arrange(extract.kept, ClosedSituations.empty(), every, len(partitions))
            ts, te = (given.get_column(name).to_numpy().astype(np.int64) for name in (START, END))
            found |= needed(rule, role, situations, partition, ts, te, until)
        return found

    def orders(self) -> list[str]:
        order = self.order
        return order_lines(self.matching.node, order.order.tolist(), order.chosen_by, "seen or assumed")

    def emptied(self) -> MatchOperator:
        """The operator without situations. It keeps the search order that it has chosen."""
        matching = self.matching
        derivation = Derivation.start(matching.definitions, matching.leaves, matching.encoded)
        states = derivation.states(self.states.partitions.schema, matching.count)
        return replace(self, derivation=derivation, states=states, change=None, since=None)

    def _interval_rows(self, rows: Sequence[Rows]) -> dict[int, IntervalRows]:
        first = len(self.matching.definitions)
        parts = zip(self.matching.intervals, rows, strict=True)
        return {
            first + place: IntervalRows.of(interval, first + place, as_frame(part))
            for place, ((interval, _), part) in enumerate(parts)
        }

    def _rows(self, found: Found, matches: Matches) -> pl.DataFrame:
        derivation, intervals, situations, number = found.derivation, found.intervals, found.situations, found.number
        node, detected = self.matching.node, matches.detected
        if not len(detected):
            return self.matching.nothing
        columns = found.keys.of(_partition_of(situations, matches.situation[:, 0])).get_columns()
        events = {n: read.run_events[n] for read in found.reads for n in read.run_events}
        for role, (symbol, definition) in enumerate(zip(node.symbols, self.matching.definition, strict=True)):
            place = matches.situation[:, role]
            te = situations.te[place]
            ends, unknown = pl.Series(f"{symbol}.te", te), (te > detected) & (definition not in intervals)
            columns.append(pl.Series(f"{symbol}.ts", situations.ts[place]))
            columns.append(ends.set(pl.Series(unknown), None) if unknown.any() else ends)
            values = None
            if definition in intervals and measures(intervals[definition].intervals):
                values = intervals[definition].values(number[place])
            elif definition in derivation.values:
                values = self._values(
                    derivation, definition, events[definition], number[place], te <= detected, detected
                )
            if values is not None:
                columns += [column.alias(f"{symbol}.{column.name}") for column in values.get_columns()]
        rows = only(pl.DataFrame([*columns, pl.Series("detected", detected)]), node.schema.names)
        wanted = self.matching.nothing.schema
        return rows if rows.schema == wanted else rows.cast(wanted)

    def _values(
        self,
        derivation: Derivation,
        definition: int,
        events: pl.DataFrame,
        run: Int64Array,
        over: BoolArray,
        detected: Int64Array,
    ) -> pl.DataFrame:
        """The aggregates of situations at the detection. Those that are over by then cover all of their events."""
        values = derivation.values[definition]
        at_end = values.at_end(run[over]).with_columns(pl.Series("row", np.flatnonzero(over)))
        asked = ValueRequests(run[~over], detected[~over])
        at = values.at(asked, self.derivation.values[definition].partials, events)
        both = pl.concat([at_end, at.with_columns(pl.Series("row", np.flatnonzero(~over)))])
        return both.sort("row").drop("row")

    @classmethod
    def load(cls, ordered: OrderedStep, tables: Mapping[str, pl.DataFrame], reached: Extended) -> MatchOperator:
        """The operator with its stored state, for the progress `reached`."""
        fresh = cls.start(ordered)
        if SITUATIONS not in tables:
            return fresh
        rows, states, matching, high = tables[SITUATIONS], fresh.states, fresh.matching, ticks(reached)
        partitions, runs = load_runs(fresh.derivation, states, rows)
        closed, every = load_closed(states, rows), _all_runs(fresh.derivation, runs, matching.count)
        situations = arrange(Situations.empty(matching.count), closed, every, len(partitions))
        kept, look = matching.left(situations, high)
        number = np.concatenate([closed.run, every.number.ravel()])[situations.origin[kept.origin]]
        states.put(StateExtract(partitions, runs, kept, number, look))
        values = load_values(fresh.derivation, tables, np.concatenate([number, open_numbers(runs)]))
        derivation = replace(fresh.derivation, values=values, numbers=following(tables))
        return replace(fresh, derivation=derivation)


@dataclass(frozen=True, slots=True)
class PartitionKeys:
    """The keys of partitions, looked up by position in `numbers`."""

    partitions: Partitions
    numbers: Int64Array

    def of(self, places: Int64Array) -> pl.DataFrame:
        return self.partitions.rows(self.numbers[places])


@dataclass(frozen=True, slots=True)
class Found:
    """What an increment searches, and what the values of its matches are made of. `number` are those of the
    situations, `keys` of their partitions.
    """

    keys: PartitionKeys
    derivation: Derivation
    reads: Sequence[SourceIncrement]
    intervals: Mapping[int, IntervalRows]
    situations: Situations
    number: Int64Array


def _is_new(before: StateExtract, situations: Situations, kept: Situations) -> BoolArray:
    """Which of the kept situations ended since the last increment."""
    is_new: BoolArray = situations.origin[kept.origin] >= len(before.kept.ts)
    return is_new


def _closed(
    derivation: Derivation,
    reads: Sequence[SourceIncrement],
    intervals: Mapping[int, IntervalRows],
    partitions: Sequence[Int32Array],
) -> ClosedSituations:
    """The situations that closed in an increment with an allowed duration, and the intervals, by definition."""
    closed: ClosedSituations | None = None
    for rows, partition in zip(intervals.values(), partitions, strict=True):
        ended = rows.closed(partition)
        closed = ended if closed is None else joined(closed, ended)
    for read in reads:
        lasting = derivation.lasting(read.source, read.closed)
        definitions = read.source.definitions
        ended = lasting if definitions == tuple(range(len(definitions))) else _renamed(lasting, definitions)
        closed = ended if closed is None else joined(closed, ended)
    assert closed is not None
    return closed


def _renamed(closed: ClosedSituations, definitions: Sequence[int]) -> ClosedSituations:
    """The situations with the numbers of these definitions instead of a source's own."""
    return replace(closed, symbol=np.array(definitions, dtype=np.int16)[closed.symbol])


def _partition_of(situations: Situations, places: Int64Array) -> Int64Array:
    """The partitions of some of the situations."""
    sizes = np.diff(situations.offsets[:: situations.definitions])
    partitions: Int64Array = np.repeat(np.arange(len(sizes)), sizes)[places]
    return partitions


def _all_runs(derivation: Derivation, runs: Sequence[Runs], count: int) -> Runs:
    """The runs of all sources, a column per definition."""
    if len(runs) == 1 and derivation.sources[0].definitions == tuple(range(count)):
        return runs[0]
    all_runs = Runs.empty(len(runs[0].last) if runs else 0, count)
    for source, source_runs in zip(derivation.sources, runs, strict=True):
        columns = list(source.definitions)
        all_runs.start[:, columns], all_runs.number[:, columns] = source_runs.start, source_runs.number
    return all_runs
