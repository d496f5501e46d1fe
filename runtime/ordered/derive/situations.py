"""The common part of operators that derive situations: the events that they read, and their state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Self

import numpy as np
import polars as pl
import pyarrow as pa

from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.derive import CLOSED, OPEN, VALUES
from tidegate.analysis.state.thresholds import Extents
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.eval.relational import evaluate
from tidegate.runtime.ordered.derive.derivation import Derivation
from tidegate.runtime.ordered.derive.events import Source, array_of
from tidegate.runtime.ordered.derive.partition_states import PartitionStates, StateChange
from tidegate.runtime.ordered.derive.tables import SITUATIONS, bounds_of, changes, described, everything
from tidegate.runtime.ordered.derive.ties import untied
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.new_events import evaluable
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.rows import Rows, SmallRows, as_frame


class Situations(Operator):
    """An operator that derives situations: `states` are what is held of its partitions, `change` what its last
    increment has made of some, which counts once it is settled.
    """

    __slots__ = ()

    derivation: Derivation
    states: PartitionStates
    change: StateChange | None

    def settled(self) -> Self:
        """The operator, with what its last increment has made in `states`: there is no way back from then on."""
        if self.change is not None:
            self.change.settle(self.states)
        return self

    def events(self, leaves: Mapping[int, Rows], old: Extended, new: Extended) -> list[Rows]:
        events: list[Rows] = []
        for source in self.derivation.sources:
            rows = _encoded_rows(source, leaves[source.leaf]) if source.encoded else _rows(source, leaves[source.leaf])
            events.append(_between(rows, source.time, old, new))
        return events

    def evaluable(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        """Those of one source leave together. Event runs have been judged when they were stored."""
        kept, aside = list(events), list[SetAside]()
        for place, source in enumerate(self.derivation.sources):
            if source.encoded is None:
                readings = [self.derivation.situations[number].readings[0] for number in source.definitions]
                terms = [term for reading in readings for term in reading.terms]
                kept[place], gone = evaluable(source.schema, terms, events[place])
                aside += gone
        return kept, aside

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        kept, aside = list(events), list[SetAside]()
        for place, source in enumerate(self.derivation.sources):
            situations = [self.derivation.situations[number] for number in source.definitions]
            kept[place], gone = untied(source, situations, as_frame(events[place]))
            aside += gone
        return kept, aside

    def noting(self, noted: list[SetAside] | None) -> Self:
        values = {
            number: replace(run_values, aggregates=replace(run_values.aggregates, noted=noted))
            for number, run_values in self.derivation.values.items()
        }
        return replace(self, derivation=replace(self.derivation, values=values))  # type: ignore[type-var]  # a dataclass

    def tables(self) -> dict[str, pa.Table]:
        return everything(self.derivation, self.settled().states)

    def changes(self) -> dict[str, pa.Table] | None:
        change, states = self.change, self.settled().states
        if change is None:
            return None
        return changes(self.derivation, states.partitions, change.before, change.after, change.is_new)

    def described(self) -> dict[str, StateTable]:
        return described(self.derivation, self.states.partitions.schema)

    def bounds(self, tables: Mapping[str, pa.Table]) -> Mapping[str, Extents]:
        return bounds_of(tables[SITUATIONS]) if SITUATIONS in tables else {}

    def counts(self) -> dict[str, int]:
        """The numbers of open situations, closed ones, and values of aggregates."""
        states, derivation = self.settled().states, self.derivation
        values = sum(run_values.partials.height for run_values in derivation.values.values())
        return {OPEN: states.open, CLOSED: states.pool.rows, VALUES: values}


def _between(rows: Rows, name: str, old: Extended, new: Extended) -> Rows:
    """The rows whose instant is later than `old` and at most `new`."""
    time = array_of(rows, name)
    inside = [time > old] if isinstance(old, int) else []
    inside += [time <= new] if isinstance(new, int) else []
    if all(mask.all() for mask in inside):
        return rows
    mask = np.logical_and.reduce(inside)
    return rows.where(mask) if isinstance(rows, SmallRows) else rows.filter(pl.Series(mask))


def _rows(source: Source, stored: Rows) -> Rows:
    return evaluate(source.situation.input, {0: as_frame(stored)})


def _encoded_rows(source: Source, stored: Rows) -> Rows:
    """Event runs, with partition and time renamed as the situations call them."""
    assert source.encoded is not None
    encoding, situation = source.encoded.encoding, source.situation
    inner, outer = (*encoding.keys, encoding.time), (*situation.keys, situation.time)
    named = [*zip(inner, outer, strict=True), (encoding.until,) * 2, (encoding.holds,) * 2]
    if isinstance(stored, SmallRows):
        return SmallRows({new: stored.columns[name] for name, new in named}, stored.height)
    return pl.DataFrame([stored.get_column(name).alias(new) for name, new in named])
