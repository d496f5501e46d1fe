"""The operator that derives the situations of one definition, increment by increment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import polars as pl

from tidegate.algebra.ordered.derive import Derive
from tidegate.algebra.time import Extended
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.ordered.derive.derivation import Derivation, SourceIncrement, key_schema, open_numbers, without
from tidegate.runtime.ordered.derive.partition_states import PartitionStates, StateChange, located_in
from tidegate.runtime.ordered.derive.situations import Situations
from tidegate.runtime.ordered.derive.tables import SITUATIONS, following, load_runs, load_values
from tidegate.runtime.ordered.family import Family, Operator, Tables
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows


@dataclass(frozen=True, slots=True)
class SituationOperator(Situations):
    """Situations of one definition, reported as they end. See `MatchOperator` for `states` and `change`."""

    ordered: OrderedStep
    derivation: Derivation
    states: PartitionStates
    change: StateChange | None = None

    @classmethod
    def start(cls, ordered: OrderedStep) -> SituationOperator:
        """The operator before the first event."""
        assert isinstance(ordered.node, Derive)
        derivation = Derivation.start((ordered.node,), ordered.leaves, ordered.encoded)
        return cls(ordered, derivation, derivation.states(key_schema(ordered.node)))

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[SituationOperator, pl.DataFrame]:
        """The operator after all events up to `until`, and the situations that have ended since `after`."""
        states = self.settled().states
        states.ready()
        located = located_in(states, self.derivation.sources, events, (), NEVER, close_at)
        before = states.extract(located.partitions)
        derivation, runs, (read,) = self.derivation.read(located.events, before.runs, close_at)
        rows = self._rows(derivation, read, located.partitions)
        derivation = without(derivation, self.derivation, open_numbers(before.runs), open_numbers(runs))
        change = StateChange(before, replace(before, runs=runs), np.empty(0, dtype=np.bool_))
        return replace(self, derivation=derivation, change=change), rows

    def _rows(self, derivation: Derivation, read: SourceIncrement, partitions: Int64Array) -> pl.DataFrame:
        node = self.ordered.node
        closed = derivation.lasting(read.source, read.closed)
        rows = self.states.partitions.rows(partitions[closed.partition]).with_columns(
            pl.Series("ts", closed.ts), pl.Series("te", closed.te)
        )
        if 0 in derivation.values:
            rows = pl.concat([rows, derivation.values[0].at_end(closed.run)], how="horizontal")
        return rows.select(node.schema.names).cast(polars_schema(node.schema))

    @classmethod
    def load(cls, ordered: OrderedStep, tables: Tables) -> SituationOperator:
        """The operator with its stored state."""
        fresh = cls.start(ordered)
        if SITUATIONS not in tables:
            return fresh
        partitions, runs = load_runs(fresh.derivation, fresh.states, tables[SITUATIONS])
        fresh.states.put(replace(fresh.states.extract(partitions), runs=runs))
        values = load_values(fresh.derivation, tables, open_numbers(runs))
        return replace(fresh, derivation=replace(fresh.derivation, values=values, numbers=following(tables)))

    def emptied(self) -> SituationOperator:
        return SituationOperator.start(self.ordered)


class DeriveFamily(Family[Derive]):
    node = Derive

    def start(self, ordered: OrderedStep) -> Operator:
        return SituationOperator.start(ordered)

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> Operator:
        return SituationOperator.load(ordered, tables)
