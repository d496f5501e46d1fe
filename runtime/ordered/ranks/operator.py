"""The operator that numbers the rows of groups, increment by increment. All rows of a group come in one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import polars as pl

from tidegate.algebra.ordered.ranks import Numbering, Ranks, peers_at
from tidegate.algebra.time import Extended
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.eval.lenient import SetAside
from tidegate.runtime.ordered.family import Family, Operator, Tables
from tidegate.runtime.ordered.new_events import evaluable, new_events, untied
from tidegate.runtime.ordered.ranks.places import Places, order_of
from tidegate.runtime.ordered.state_tables import StateTable
from tidegate.runtime.plan.steps import OrderedStep
from tidegate.runtime.rows import Rows, as_frame


@dataclass(frozen=True, slots=True)
class RanksOperator(Operator):
    """Rows with their numbers. It keeps nothing: rows wait in their buffer until their group is complete."""

    ordered: OrderedStep

    @property
    def node(self) -> Ranks:
        assert isinstance(self.ordered.node, Ranks)
        return self.ordered.node

    def events(self, leaves: Mapping[int, Rows], old: Extended, new: Extended) -> list[Rows]:
        (reading,) = self.node.readings
        return [new_events(reading, leaves[self.ordered.leaves[0]], old, new)]

    def step(
        self, events: Sequence[Rows], after: Extended, until: Extended, close_at: int | None = None
    ) -> tuple[RanksOperator, pl.DataFrame]:
        node, rows = self.node, as_frame(events[0])
        if not rows.height:
            return self, _no_rows(node)
        places = Places.of(node, rows)
        if node.needs_order and (tie := places.first_peer) is not None:
            raise peers_at(tie, node.input.schema[node.time].type)
        numbers = {
            Numbering.RANK: places.ranks,
            Numbering.DENSE_RANK: places.dense_ranks,
            Numbering.ROW_NUMBER: places.numbers,
        }
        columns = [pl.Series(column.name, numbers[column.numbering]()) for column in node.columns]
        return self, places.rows.hstack(columns)

    def evaluable(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        (reading,) = self.node.readings
        rows, aside = evaluable(reading.input.schema, reading.terms, events[0])
        return [rows], aside

    def untied(self, events: Sequence[Rows]) -> tuple[list[Rows], list[SetAside]]:
        (reading,) = self.node.readings
        rows, aside = untied(reading, as_frame(events[0]), order_of(self.node), peers_at)
        return [rows], aside

    def noting(self, noted: list[SetAside] | None) -> RanksOperator:
        return self

    def emptied(self) -> RanksOperator:
        return self

    def tables(self) -> dict[str, pl.DataFrame]:
        return {}

    def changes(self) -> dict[str, pl.DataFrame]:
        return {}

    def described(self) -> dict[str, StateTable]:
        return {}

    def counts(self) -> dict[str, int]:
        return {}


@lru_cache(maxsize=256)
def _no_rows(node: Ranks) -> pl.DataFrame:
    return pl.DataFrame(schema=polars_schema(node.schema))


class RanksFamily(Family[Ranks]):
    node = Ranks

    def start(self, ordered: OrderedStep) -> RanksOperator:
        return RanksOperator(ordered)

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> RanksOperator:
        return RanksOperator(ordered)
