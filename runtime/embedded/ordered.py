"""Ordered operators in the embedded engine: an increment of their rows, and their state as tables of a checkpoint."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import polars as pl

from tidegate.algebra.nodes import Derive, Match
from tidegate.algebra.time import INF, Extended
from tidegate.runtime.columns import polars_schema
from tidegate.runtime.embedded.events import Source
from tidegate.runtime.embedded.matches import MatchOperator
from tidegate.runtime.embedded.relational import evaluate
from tidegate.runtime.embedded.situations import Derivation, Read, kept_tables, key_schema, live_runs, loaded
from tidegate.runtime.plan.steps import Ordered

Tables = Mapping[str, pl.DataFrame]


@dataclass(frozen=True, slots=True)
class SituationOperator:
    """Situations of one definition, reported as they end."""

    ordered: Ordered
    derivation: Derivation

    @classmethod
    def start(cls, ordered: Ordered) -> SituationOperator:
        """Before the first event."""
        assert isinstance(ordered.node, Derive)
        keys = key_schema(ordered.node)
        return cls(ordered, Derivation.start((ordered.node,), ordered.leaves, keys, ordered.stretched))

    def step(
        self, events: Sequence[pl.DataFrame], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[SituationOperator, pl.DataFrame]:
        """The operator after all events up to `until`, and the situations that have ended since `after`."""
        derivation, (read,) = self.derivation.read(events, close_at)
        rows = self._rows(derivation, read)
        return replace(self, derivation=live_runs(derivation)), rows

    def _rows(self, derivation: Derivation, read: Read) -> pl.DataFrame:
        node = self.ordered.node
        closed = derivation.lasting(read.source, read.closed)
        rows = derivation.keys_of(closed.slot).with_columns(pl.Series("ts", closed.ts), pl.Series("te", closed.te))
        if 0 in derivation.values:
            rows = pl.concat([rows, derivation.values[0].at_end(closed.run)], how="horizontal")
        return rows.select(node.schema.names).cast(polars_schema(node.schema))

    def tables(self) -> Tables:
        """What is kept, as tables by name."""
        return kept_tables(self.derivation)

    @classmethod
    def load(cls, ordered: Ordered, tables: Tables) -> SituationOperator:
        """The operator with what was kept."""
        fresh = cls.start(ordered)
        return replace(fresh, derivation=loaded(fresh.derivation, tables))


Operator = SituationOperator | MatchOperator


def start_operator(ordered: Ordered) -> Operator:
    """The operator before the first event."""
    match ordered.node:
        case Derive():
            return SituationOperator.start(ordered)
        case Match():
            return MatchOperator.start(ordered)


def load_operator(ordered: Ordered, tables: Tables) -> Operator:
    """The operator with what was kept."""
    match ordered.node:
        case Derive():
            return SituationOperator.load(ordered, tables)
        case Match():
            return MatchOperator.load(ordered, tables)


def left_at(operator: Operator, reached: Extended) -> Operator:
    """What is left of an operator that has read its events so far: nothing once there are no more, as none ends then."""
    if reached != INF:
        return operator
    if isinstance(operator, SituationOperator):
        return SituationOperator.start(operator.ordered)
    return operator.emptied()


def events_of(
    operator: Operator, leaves: Mapping[int, pl.DataFrame], old: Extended, new: Extended
) -> list[pl.DataFrame]:
    """What an operator reads in an increment, by source: the events later than all read before, up to how far all have
    arrived, then the rows of given situations that may matter.
    """
    found: list[pl.DataFrame] = []
    for source in operator.derivation.sources:
        rows = _stretches(source, leaves[source.leaf]) if source.stretched else _rows(source, leaves[source.leaf])
        found.append(_between(rows, source.time, old, new))
    if isinstance(operator, MatchOperator):
        matching = operator.matching
        found += [evaluate(one.input, {0: leaves[leaf]}) for one, leaf in matching.given]
    return found


def _between(rows: pl.DataFrame, name: str, old: Extended, new: Extended) -> pl.DataFrame:
    """The rows whose instant is later than `old` and at most `new`."""
    time = rows.get_column(name)
    inside = [time > old] if isinstance(old, int) else []
    inside += [time <= new] if isinstance(new, int) else []
    return rows if all(mask.all() for mask in inside) else rows.filter(*inside)


def _rows(source: Source, stored: pl.DataFrame) -> pl.DataFrame:
    return evaluate(source.situation.input, {0: stored})


def _stretches(source: Source, stored: pl.DataFrame) -> pl.DataFrame:
    """Stretches with partition and time under the names that the situations give them."""
    assert source.stretched is not None
    stretches, situation = source.stretched.stretches, source.situation
    named = zip((*stretches.keys, stretches.time), (*situation.keys, situation.time), strict=True)
    return stored.select(*(pl.col(name).alias(outer) for name, outer in named), stretches.until, stretches.holds)
