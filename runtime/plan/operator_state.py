"""What ordered operators keep, as values for people: the query, until when rows matter, and their bound."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.algebra.nodes import OrderedNode
from tidegate.algebra.types import DataType
from tidegate.analysis.ordered.family import StateBound
from tidegate.runtime.plan.steps import OrderedStep, Plan, QueryPlan

#: What separates the number of a query inside another one from the name of that one.
_INSIDE = "~"


@dataclass(frozen=True, slots=True)
class OperatorState:
    """What a query's operator keeps. It has read its events up to the query's progress p at `time`.

    `kind` is that of its instants. `what` are its rows, in a word.
    """

    query: str
    time: str
    kind: str
    keeps: StateBound
    what: str


def state_name(query: str, what: str) -> str:
    """The name of what a query's operator keeps, beside those of buffers; a query inside another one counts as that
    one.
    """
    return f"{query.partition(_INSIDE)[0]}: {what}"


def queries_that_keep(plan: Plan) -> list[QueryPlan]:
    """The queries whose operators keep something of the events that they have read."""
    return [query for query in plan.queries if query.ordered is not None and query.ordered.reads_events]


def operator_states(plan: Plan) -> tuple[OperatorState, ...]:
    """The state of each operator of a plan, in the order of their queries."""
    return tuple(
        OperatorState(
            query.name,
            query.ordered.time,
            instants_of(query.ordered).kind.value,
            query.ordered.keeps,
            query.ordered.node.keeps,
        )
        for query in queries_that_keep(plan)
        if query.ordered is not None
    )


def instants_of(ordered: OrderedStep) -> DataType:
    """The type of an operator's instants."""
    node: OrderedNode = ordered.node
    return node.schema[node.completed_by].type
