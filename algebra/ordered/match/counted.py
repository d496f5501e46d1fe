"""The number of matches of a pattern by partition and instant of detection, without listing them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidegate.algebra.functions.aggregates import Aggregate, Function
from tidegate.algebra.ordered.match.node import DETECTED, Match, RowIntervals
from tidegate.algebra.ordered.summary import Halves, Summary
from tidegate.algebra.printing.plans import aggregate_text


@dataclass(frozen=True, slots=True, eq=False)
class CountedMatches(Summary):
    """The number of matches of a pattern by partition and instant of detection."""

    @property
    def match(self) -> Match:
        assert isinstance(self.of, Match)
        return self.of


def counted(
    node: Match, keys: Sequence[str], aggregates: Sequence[Aggregate], totals: Sequence[Halves]
) -> CountedMatches | str:
    """The node that yields these groups of the matches without listing them, or why they are listed.

    Groups are those of partition and instant of detection, which are finer than those that are asked for.
    """
    known = (*node.keys, DETECTED)
    for key in keys:
        if key not in known:
            return f"their {key} is read, and matches that differ in it count together"
    for aggregate in aggregates:
        if aggregate.function is not Function.COUNT or aggregate.argument is not None:
            return f"{aggregate_text(aggregate)} is asked for"
    if totals:
        return f"a sum of {totals[0].argument} is asked for"
    if any(isinstance(situation, RowIntervals) for situation in node.situations):
        return "rows that are intervals may overlap"
    return CountedMatches(node, known, tuple(aggregates))
