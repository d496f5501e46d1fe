"""The families of ordered operators that the runtime knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidegate.algebra.errors import InternalError
from tidegate.algebra.nodes import OrderedNode
from tidegate.algebra.ordered.families import by_node
from tidegate.algebra.time import Extended
from tidegate.runtime.ordered.asof.operator import AsOfFamily
from tidegate.runtime.ordered.derive.operator import DeriveFamily
from tidegate.runtime.ordered.family import Family, Operator, Tables
from tidegate.runtime.ordered.match.counted import CountedMatchesFamily
from tidegate.runtime.ordered.match.family import MatchFamily
from tidegate.runtime.ordered.over.operator import OverFamily
from tidegate.runtime.ordered.process.operator import ProcessFamily
from tidegate.runtime.ordered.ranks.operator import RanksFamily
from tidegate.runtime.ordered.row_operator import KeptRowsOperator
from tidegate.runtime.ordered.sequences.counting.operator import CountedSequencesFamily
from tidegate.runtime.ordered.sequences.operator import SequencesFamily
from tidegate.runtime.ordered.ticks.operator import TicksFamily
from tidegate.runtime.ordered.transitions.grouped import GroupedWindowsFamily
from tidegate.runtime.ordered.transitions.operator import TransitionsFamily
from tidegate.runtime.ordered.windows.family import WindowsFamily
from tidegate.runtime.plan.steps import OrderedStep

FAMILIES: Final[Mapping[type[OrderedNode], Family[Any]]] = by_node(
    "the runtime",
    Family,
    (
        AsOfFamily(),
        CountedMatchesFamily(),
        CountedSequencesFamily(),
        DeriveFamily(),
        GroupedWindowsFamily(),
        MatchFamily(),
        OverFamily(),
        ProcessFamily(),
        RanksFamily(),
        SequencesFamily(),
        TicksFamily(),
        TransitionsFamily(),
        WindowsFamily(),
    ),
)


def family_of(node: OrderedNode) -> Family[Any]:
    """The family of an operator; `InternalError` TG904 where the runtime has none."""
    family = FAMILIES.get(type(node))
    if family is None:
        raise InternalError("TG904", f"the runtime has no family of {type(node).__name__}")
    return family


def start_operator(ordered: OrderedStep) -> Operator:
    """The operator before the first event."""
    return _following(ordered, family_of(ordered.node).start(ordered))


def load_operator(ordered: OrderedStep, tables: Tables, reached: Extended) -> Operator:
    """The operator with its stored state, for the progress `reached`."""
    return _following(ordered, family_of(ordered.node).load(ordered, tables, reached))


def _following(ordered: OrderedStep, operator: Operator) -> Operator:
    """The operator, which knows by which keys its partitions follow each other, and which are told to end."""
    if ordered.growing and isinstance(operator, KeptRowsOperator):
        operator.held.follow(ordered.growing, [[key for key, _ in ended.keys] for ended in ordered.ended])
    return operator
