"""The families of ordered operators that the analysis knows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from tidegate.algebra.errors import InternalError
from tidegate.algebra.nodes import OrderedNode
from tidegate.algebra.ordered.families import by_node
from tidegate.algebra.program import Query
from tidegate.algebra.row_wise import ordered_operator
from tidegate.analysis.ordered.asof import AsOfFamily
from tidegate.analysis.ordered.derive import DeriveFamily
from tidegate.analysis.ordered.family import Family, StateBound
from tidegate.analysis.ordered.match.counted import CountedMatchesFamily
from tidegate.analysis.ordered.match.family import MatchFamily
from tidegate.analysis.ordered.over import OverFamily
from tidegate.analysis.ordered.process import ProcessFamily
from tidegate.analysis.ordered.ranks import RanksFamily
from tidegate.analysis.ordered.sequences.counted import CountedSequencesFamily
from tidegate.analysis.ordered.sequences.family import SequencesFamily
from tidegate.analysis.ordered.ticks import TicksFamily
from tidegate.analysis.ordered.transitions import GroupedWindowsFamily, TransitionsFamily
from tidegate.analysis.ordered.windows import WindowsFamily

FAMILIES: Final[Mapping[type[OrderedNode], Family[Any]]] = by_node(
    "the analysis",
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
    optional=(
        "problems",
        "of_one_row",
        "with_progress",
        "completion_hint",
        "declarations",
        "freed",
        "summary",
        "orders",
        "per_start",
        "implied",
        "joins_rows",
        "alike",
        "together",
    ),
)


def family_of(node: OrderedNode) -> Family[Any]:
    """The family of an operator; `InternalError` TG904 where the analysis has none."""
    family = FAMILIES.get(type(node))
    if family is None:
        raise InternalError("TG904", f"the analysis has no family of {type(node).__name__}")
    return family


def operator_growth(query: Query) -> tuple[str, ...]:
    """Whether one row may begin exponentially many rows of a query's ordered operator, if it has one, for people."""
    operator = ordered_operator(query.node)
    return () if operator is None else tuple(family_of(operator).per_start(operator))


def operator_state(query: Query) -> StateBound:
    """What the ordered operator of a query keeps, if it has one."""
    operator = ordered_operator(query.node)
    return StateBound((), ()) if operator is None else family_of(operator).state(operator)
