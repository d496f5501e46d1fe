"""The operator that counts the matches of a pattern without listing them, increment by increment."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import polars as pl

from tidegate.algebra.ordered.match.counted import CountedMatches
from tidegate.algebra.time import Extended
from tidegate.algebra.types import INT64_MAX
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.eval.columns import only, polars_schema
from tidegate.runtime.kernels.cells import Triggers
from tidegate.runtime.kernels.counting import CountingSteps, MatchCount, count_matches
from tidegate.runtime.kernels.search import Matches
from tidegate.runtime.kernels.search_plan import Pattern
from tidegate.runtime.ordered.family import Family, Operator, Tables
from tidegate.runtime.ordered.match.operator import Found, MatchOperator, PlannedSearch
from tidegate.runtime.plan.steps import OrderedStep

_PARTITION: Final = "\0partition"
_INSTANT: Final = "\0instant"
_NUMBER: Final = "\0number"


@dataclass(frozen=True, slots=True, kw_only=True)
class CountedMatchesOperator(MatchOperator):
    """The number of matches by partition and instant of detection; all else is as where they are listed."""

    counted: CountedMatches

    @staticmethod
    def planned(pattern: Pattern, order: Int64Array) -> PlannedSearch:
        return CountingSteps.planned(pattern, order)

    def detected(
        self, found: Found, triggers: Triggers, after: int, until: int
    ) -> tuple[pl.DataFrame, Matches | MatchCount]:
        assert isinstance(self.steps, CountingSteps)
        counted = count_matches(self.steps.steps, self.steps.tails, found.situations, triggers, after, until)
        return self._counts(found, counted), counted

    def _counts(self, found: Found, counted: MatchCount) -> pl.DataFrame:
        """A row for each partition and instant. A number that is beyond its type is NULL."""
        node = self.counted
        by = pl.DataFrame({_PARTITION: counted.partition, _INSTANT: counted.instant, _NUMBER: counted.number})
        groups = by.group_by(_PARTITION, _INSTANT).agg(pl.col(_NUMBER).cast(pl.Int128).sum())
        number = pl.when(pl.col(_NUMBER) <= INT64_MAX).then(pl.col(_NUMBER)).cast(pl.Int64)
        groups = groups.with_columns(number)
        keys = found.keys.of(groups.get_column(_PARTITION).to_numpy())
        told = [groups.get_column(_NUMBER).alias(aggregate.name) for aggregate in node.aggregates]
        instants = groups.get_column(_INSTANT).alias(node.completed_by)
        result = only(pl.DataFrame([*keys.get_columns(), instants, *told]), node.schema.names)
        wanted = polars_schema(node.schema)
        return result if result.schema == wanted else result.cast(wanted)


class CountedMatchesFamily(Family[CountedMatches]):
    node = CountedMatches

    def start(self, ordered: OrderedStep) -> Operator:
        return _counting(ordered, MatchOperator.start(_listing(ordered)))

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> Operator:
        return _counting(ordered, MatchOperator.load(_listing(ordered), tables, reached))


def _listing(ordered: OrderedStep) -> OrderedStep:
    """The step of the operator that lists the matches."""
    assert isinstance(ordered.node, CountedMatches)
    return replace(ordered, node=ordered.node.match)


def _counting(ordered: OrderedStep, of: MatchOperator) -> CountedMatchesOperator:
    """The operator that has the same state, and counts."""
    assert isinstance(ordered.node, CountedMatches)
    steps = CountedMatchesOperator.planned(of.matching.pattern, of.order.order)
    return CountedMatchesOperator(
        of.matching, of.derivation, of.states, of.order, steps, of.change, counted=ordered.node
    )
