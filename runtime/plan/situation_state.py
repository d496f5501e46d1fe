"""What operators that derive situations keep, as values for people: the query, until when it matters, and its bound."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.algebra.nodes import OrderedNode
from tidegate.algebra.types import DataType
from tidegate.analysis.ordered.table import operator_state
from tidegate.runtime.plan.steps import OrderedStep, Plan, QueryPlan

#: What separates the number of a query inside another one from the name of that one.
_INSIDE = "~"


@dataclass(frozen=True, slots=True)
class Situations:
    """The situations that a query's operator keeps. It has read its events up to the query's progress p at `time`.

    `kind` is that of its instants. Situations that are over may be matched until p reaches, for some entry of `ahead`,
    their `start` or `end` plus so many ticks; none are kept where nothing is matched. `bounds` is the bound of what is
    kept.
    """

    query: str
    time: str
    kind: str
    ahead: Mapping[str, int]
    bounds: tuple[str, ...]
    what: str = "situations"


def state_name(query: str, what: str = "situations") -> str:
    """The name of what a query's operator keeps, beside those of buffers; a query inside another one counts as that
    one.
    """
    return f"{query.partition(_INSIDE)[0]}: {what}"


def deriving(plan: Plan) -> list[QueryPlan]:
    """The queries whose operators keep something of the events that they have read, and whose situations can be
    closed.
    """
    return [query for query in plan.queries if query.ordered is not None and query.ordered.reads_events]


def situation_state(plan: Plan) -> tuple[Situations, ...]:
    """The state of each operator of a plan, in the order of their queries."""
    return tuple(map(_situations, deriving(plan)))


def _situations(query: QueryPlan) -> Situations:
    assert query.ordered is not None
    node = query.ordered.node
    found = operator_state(query.facts.query)
    return Situations(
        query.name, query.ordered.time, instants_of(query.ordered).kind.value, found.ahead, found.bounds, node.keeps
    )


def instants_of(ordered: OrderedStep) -> DataType:
    """The type of an operator's instants."""
    node: OrderedNode = ordered.node
    return node.schema[node.completed_by].type
