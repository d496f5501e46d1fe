"""Ordered operators in the embedded engine: an increment of their rows, and their state as tables of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import polars as pl

from tidegate.algebra.errors import InternalError
from tidegate.algebra.nodes import Derive, Match
from tidegate.algebra.row_wise import derivations
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.columns import polars_schema
from tidegate.runtime.embedded.relational import evaluate
from tidegate.runtime.embedded.run_values import RunValues
from tidegate.runtime.embedded.situations import NUMBER, Derivation, Read
from tidegate.runtime.kernels.situations import NEVER
from tidegate.runtime.plan.steps import Ordered

#: The layout of what an operator keeps.
VERSION: Final = 1

Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class SituationOperator:
    """Situations of one definition, reported as they end."""

    ordered: Ordered
    derivation: Derivation

    @classmethod
    def start(cls, ordered: Ordered) -> SituationOperator:
        """Before the first event."""
        return cls(ordered, Derivation.start(derivations(ordered.node), ordered.leaves))

    def step(self, events: Sequence[pl.DataFrame], until: Extended) -> tuple[SituationOperator, pl.DataFrame]:
        """The operator after all events up to `until`, and the rows that they complete."""
        derivation, (read,) = self.derivation.read(events, ended=until == INF)
        rows = self._rows(derivation, read)
        return replace(self, derivation=_of_use(derivation)), rows

    def _rows(self, derivation: Derivation, read: Read) -> pl.DataFrame:
        node = self.ordered.node
        closed = derivation.lasting(read.source, read.closed)
        rows = derivation.keys_of(closed.slot).with_columns(pl.Series("ts", closed.ts), pl.Series("te", closed.te))
        if 0 in derivation.values:
            rows = pl.concat([rows, derivation.values[0].at_end(closed.run)], how="horizontal")
        return rows.select(node.schema.names).cast(polars_schema(node.schema))  # type: ignore[arg-type]

    def tables(self) -> Tables:
        """What is kept, as tables by name."""
        return kept_tables(self.derivation)

    @classmethod
    def load(cls, ordered: Ordered, tables: Tables) -> SituationOperator:
        """The operator with what was kept."""
        fresh = cls.start(ordered)
        return replace(fresh, derivation=loaded(fresh.derivation, tables))


def _of_use(derivation: Derivation) -> Derivation:
    """The state without values of runs that are over."""
    live = np.concatenate([runs.number[runs.start != NEVER] for runs in derivation.runs])
    return replace(derivation, values={number: one.only(live) for number, one in derivation.values.items()})


def kept_tables(derivation: Derivation) -> dict[str, pl.DataFrame]:
    """Open runs and values of runs; nothing of what is empty."""
    found = {"open": derivation.open()}
    found |= {f"values {number}": one.partials for number, one in derivation.values.items()}
    return {name: table for name, table in found.items() if table.height}


def loaded(derivation: Derivation, tables: Tables) -> Derivation:
    """The state of which `kept_tables` made tables."""
    values = {
        number: RunValues.of(derivation.situations[number], tables.get(f"values {number}"))
        for number in derivation.values
    }
    if "open" not in tables:
        return replace(derivation, values=values)
    rows = tables["open"]
    greatest = rows.get_column(NUMBER).max()
    assert isinstance(greatest, int)
    return derivation.with_open(rows, values, 1 + greatest)


Operator = SituationOperator


def start_operator(ordered: Ordered) -> Operator:
    """The operator before the first event."""
    match ordered.node:
        case Derive():
            return SituationOperator.start(ordered)
        case Match():
            raise InternalError("TG490", "no matches yet")


def load_operator(ordered: Ordered, tables: Tables) -> Operator:
    """The operator with what was kept."""
    match ordered.node:
        case Derive():
            return SituationOperator.load(ordered, tables)
        case Match():
            raise InternalError("TG490", "no matches yet")


def events_of(
    derivation: Derivation, leaves: Mapping[int, pl.LazyFrame], old: Extended, new: Extended
) -> list[pl.DataFrame]:
    """The events of an increment by source: those later than all read before, up to how far all have arrived."""
    found: list[pl.LazyFrame] = []
    for source in derivation.sources:
        time = pl.col(source.time)
        inside = [time > old] if isinstance(old, int) else []
        inside += [time <= new] if isinstance(new, int) else []
        rows = evaluate(source.situation.input, {0: leaves[source.leaf]})
        found.append(rows.filter(*inside) if inside else rows)
    return pl.collect_all(found)
