"""Ordered operators in the embedded engine: an increment of their rows, and their state as tables of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tidegate.algebra.nodes import Derive, Match
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.eval.small.increment import Rows, as_frame
from tidegate.runtime.eval.small.rows import Few
from tidegate.runtime.kernels.situations import NEVER, Ints
from tidegate.runtime.ordered.derive.operator import Derivation, Read, key_schema, open_numbers, without
from tidegate.runtime.ordered.events import Source, array_of
from tidegate.runtime.ordered.match.operator import MatchOperator
from tidegate.runtime.ordered.partition_states import Made, PartitionStates, located_in
from tidegate.runtime.ordered.tables import (
    SITUATIONS,
    Keeping,
    following,
    load_runs,
    load_values,
)
from tidegate.runtime.plan.steps import Ordered

Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class SituationOperator(Keeping):
    """Situations of one definition, reported as they end. See `MatchOperator` for `states` and `made`."""

    ordered: Ordered
    derivation: Derivation
    states: PartitionStates
    made: Made | None = None

    @classmethod
    def start(cls, ordered: Ordered) -> SituationOperator:
        """Before the first event."""
        assert isinstance(ordered.node, Derive)
        derivation = Derivation.start((ordered.node,), ordered.leaves, ordered.stretched)
        return cls(ordered, derivation, derivation.states(key_schema(ordered.node)))

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[SituationOperator, pl.DataFrame]:
        """The operator after all events up to `until`, and the situations that have ended since `after`."""
        states = self.settled().states
        states.ready()
        located = located_in(states, self.derivation.sources, events, (), NEVER, close_at)
        before = states.cut(located.slots)
        derivation, runs, (read,) = self.derivation.read(located.events, before.runs, close_at)
        rows = self._rows(derivation, read, located.slots)
        derivation = without(derivation, self.derivation, open_numbers(before.runs), open_numbers(runs))
        made = Made(before, replace(before, runs=runs), np.empty(0, dtype=np.bool_))
        return replace(self, derivation=derivation, made=made), rows

    def _rows(self, derivation: Derivation, read: Read, slots: Ints) -> pl.DataFrame:
        node = self.ordered.node
        closed = derivation.lasting(read.source, read.closed)
        rows = self.states.partitions.rows(slots[closed.slot]).with_columns(
            pl.Series("ts", closed.ts), pl.Series("te", closed.te)
        )
        if 0 in derivation.values:
            rows = pl.concat([rows, derivation.values[0].at_end(closed.run)], how="horizontal")
        return rows.select(node.schema.names).cast(polars_schema(node.schema))

    @classmethod
    def load(cls, ordered: Ordered, tables: Tables) -> SituationOperator:
        """The operator with what was kept."""
        fresh = cls.start(ordered)
        if SITUATIONS not in tables:
            return fresh
        slots, runs = load_runs(fresh.derivation, fresh.states, tables[SITUATIONS])
        fresh.states.put(replace(fresh.states.cut(slots), runs=runs))
        values = load_values(fresh.derivation, tables, open_numbers(runs))
        return replace(fresh, derivation=replace(fresh.derivation, values=values, numbers=following(tables)))


Operator = SituationOperator | MatchOperator


def start_operator(ordered: Ordered) -> Operator:
    """The operator before the first event."""
    match ordered.node:
        case Derive():
            return SituationOperator.start(ordered)
        case Match():
            return MatchOperator.start(ordered)


def load_operator(ordered: Ordered, tables: Tables, reached: Extended) -> Operator:
    """The operator with what was kept when progress was `reached`."""
    match ordered.node:
        case Derive():
            return SituationOperator.load(ordered, tables)
        case Match():
            return MatchOperator.load(ordered, tables, reached)


def left_at(operator: Operator, reached: Extended) -> Operator:
    """What is left of an operator that has read its events so far: nothing once there are no more, as none ends then."""
    if reached != INF:
        return operator
    if isinstance(operator, SituationOperator):
        return SituationOperator.start(operator.ordered)
    return operator.emptied()


def noting(operator: Operator, noted: list[SetAside] | None) -> Operator:
    """The operator whose sums that do not fit are NULL, and noted; None: they are errors."""
    values = {
        number: replace(one, aggregates=replace(one.aggregates, noted=noted))
        for number, one in operator.derivation.values.items()
    }
    return replace(operator, derivation=replace(operator.derivation, values=values))


def events_of(operator: Operator, leaves: Mapping[int, Rows], old: Extended, new: Extended) -> list[Rows]:
    """What an operator reads in an increment, by source: the events later than all read before, up to how far all have
    arrived, then the rows of given situations that may matter.
    """
    found: list[Rows] = []
    for source in operator.derivation.sources:
        rows = _stretches(source, leaves[source.leaf]) if source.stretched else _rows(source, leaves[source.leaf])
        found.append(_between(rows, source.time, old, new))
    if isinstance(operator, MatchOperator):
        matching = operator.matching
        found += [evaluate(one.input, {0: as_frame(leaves[leaf])}) for one, leaf in matching.given]
    return found


def _between(rows: Rows, name: str, old: Extended, new: Extended) -> Rows:
    """The rows whose instant is later than `old` and at most `new`."""
    time = array_of(rows, name)
    inside = [time > old] if isinstance(old, int) else []
    inside += [time <= new] if isinstance(new, int) else []
    if all(mask.all() for mask in inside):
        return rows
    mask = np.logical_and.reduce(inside)
    return rows.where(mask) if isinstance(rows, Few) else rows.filter(pl.Series(mask))


def _rows(source: Source, stored: Rows) -> Rows:
    return evaluate(source.situation.input, {0: as_frame(stored)})


def _stretches(source: Source, stored: Rows) -> Rows:
    """Stretches with partition and time under the names that the situations give them."""
    assert source.stretched is not None
    stretches, situation = source.stretched.stretches, source.situation
    inner, outer = (*stretches.keys, stretches.time), (*situation.keys, situation.time)
    named = [*zip(inner, outer, strict=True), (stretches.until,) * 2, (stretches.holds,) * 2]
    if isinstance(stored, Few):
        return Few({new: stored.columns[name] for name, new in named}, stored.height)
    return pl.DataFrame([stored.get_column(name).alias(new) for name, new in named])
