"""Matches of patterns towards the runtime."""

from __future__ import annotations

from collections.abc import Sequence

from tidegate.algebra.ordered.match import Match
from tidegate.algebra.time import Extended
from tidegate.analysis.ordered.match.chosen_orders import chosen_orders, first_statistics, order_lines, pinned_order
from tidegate.analysis.ordered.match.detection import detection_of
from tidegate.runtime.ordered.derive.operator import reasons_of
from tidegate.runtime.ordered.family import Family, Operator, Tables
from tidegate.runtime.ordered.match.operator import MatchOperator
from tidegate.runtime.plan.steps import Ordered


class MatchFamily(Family[Match]):
    node = Match

    def start(self, ordered: Ordered) -> Operator:
        return MatchOperator.start(ordered)

    def load(self, ordered: Ordered, tables: Tables, reached: Extended) -> Operator:
        return MatchOperator.load(ordered, tables, reached)

    def one_by_one(self, ordered: Ordered) -> Sequence[str]:
        return reasons_of(ordered)

    def first_orders(self, node: Match) -> Sequence[str]:
        """A run learns, and chooses again."""
        statistics = first_statistics(detection_of(node))
        return order_lines(node, chosen_orders(statistics, pinned_order(node)), statistics, "assumed")
