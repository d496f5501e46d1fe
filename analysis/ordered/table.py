"""The families of ordered operators that the analysis knows. Each is loaded when a program has such an operator."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from types import MappingProxyType
from typing import Any, Final

from tidegate.algebra.errors import InternalError
from tidegate.algebra.nodes import OrderedNode
from tidegate.algebra.ordered.families import by_node
from tidegate.algebra.program import Query
from tidegate.algebra.row_wise import ordered_operator
from tidegate.analysis.ordered.family import Family, StateBound

#: By the name of a node the module of its family here; the class there is the node's name with `Family` after it.
MODULES: Final[Mapping[str, str]] = MappingProxyType(
    {
        "AsOf": "asof",
        "CountedMatches": "match.counted",
        "CountedSequences": "sequences.counted",
        "Derive": "derive",
        "GroupedWindows": "transitions",
        "Match": "match.family",
        "Over": "over",
        "Process": "process",
        "Ranks": "ranks",
        "Sequences": "sequences.family",
        "Ticks": "ticks",
        "Transitions": "transitions",
        "Windows": "windows",
    }
)
#: Facts of which a family need not say anything.
OPTIONAL: Final = (
    "problems",
    "of_one_row",
    "with_progress",
    "completion_hint",
    "declarations",
    "freed",
    "freed_inputs",
    "summary",
    "orders",
    "per_start",
    "implied",
    "joins_rows",
    "alike",
    "together",
)


def family_of(node: OrderedNode) -> Family[Any]:
    """The family of an operator; `InternalError` TG904 where the analysis has none."""
    of = type(node)
    family = _loaded(of.__name__).get(of) if of.__name__ in MODULES else None
    if family is None:
        raise InternalError("TG904", f"the analysis has no family of {of.__name__}")
    return family


def all_families() -> dict[type[OrderedNode], Family[Any]]:
    """All of them, loaded and checked."""
    return {node: family for name in MODULES for node, family in _loaded(name).items()}


@cache
def _loaded(name: str) -> dict[type[OrderedNode], Family[Any]]:
    """The family of nodes of this name; `InternalError` TG904 for one that lacks a fact."""
    module = import_module(f"tidegate.analysis.ordered.{MODULES[name]}")
    return by_node("the analysis", Family, (getattr(module, f"{name}Family")(),), optional=OPTIONAL)


def operator_growth(query: Query) -> tuple[str, ...]:
    """Whether one row may begin exponentially many rows of a query's ordered operator, if it has one, for people."""
    operator = ordered_operator(query.node)
    return () if operator is None else tuple(family_of(operator).per_start(operator))


def operator_state(query: Query) -> StateBound:
    """What the ordered operator of a query keeps, if it has one."""
    operator = ordered_operator(query.node)
    return StateBound((), ()) if operator is None else family_of(operator).state(operator)
