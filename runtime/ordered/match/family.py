"""The family of pattern matches, as the runtime sees it."""

from __future__ import annotations

from tidegate.algebra.ordered.match.node import Match
from tidegate.algebra.time import Extended
from tidegate.runtime.ordered.family import Family, Operator, Tables
from tidegate.runtime.ordered.match.operator import MatchOperator
from tidegate.runtime.plan.steps import OrderedStep


class MatchFamily(Family[Match]):
    node = Match

    def start(self, ordered: OrderedStep) -> Operator:
        return MatchOperator.start(ordered)

    def load(self, ordered: OrderedStep, tables: Tables, reached: Extended) -> Operator:
        return MatchOperator.load(ordered, tables, reached)
