"""One look-up of contexts for all queries that look at rows of one stream (rule R54)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Scan, Select, nodes_of
from tidegate.algebra.program import Query
from tidegate.algebra.rewrites.conditions import can_fail, selected
from tidegate.algebra.terms import (
    TRUE,
    Call,
    Lit,
    Term,
    attributes_of,
    conjunction,
    conjuncts,
    disjunction,
    rename_attributes,
)
from tidegate.contexts.optimiser.filters import ContextFilter, Models, filter_of
from tidegate.contexts.optimiser.push_down import lowered, with_filters_lowered

#: The share of rows that a comparison is taken to let through, by its operation; of any other condition the last one.
SHARES: Final[Mapping[str, float]] = {"eq": 0.1, "lt": 0.3, "le": 0.3, "gt": 0.3, "ge": 0.3, "ne": 0.9}
ANY_SHARE: Final = 0.5
#: What it costs to look a row up, and to ask a condition of a row, in nanoseconds.
LOOK_UP_COST: Final = 40.0
CONDITION_COST: Final = 4.0


@dataclass(frozen=True, slots=True)
class LookUpAtStream:
    """A filter on rows of a stream as they come, and the conditions that a query asks of them below it."""

    filter: ContextFilter
    stream: Scan
    condition: Term


def sharing(queries: Sequence[Query], models: Models) -> Sequence[Query]:
    """The queries in which those that look up one context of rows of one stream look it up once, each a query of its
    own; the others are those that were given.
    """
    asking: dict[Node, dict[tuple[str, Node], LookUpAtStream]] = {}
    for query in sorted(queries, key=lambda query: query.name):
        for node in nodes_of(query.node):
            if (found := look_up_at_stream(node, models)) is not None:
                asking.setdefault(_joined(found), {})[query.name, node] = found
    alike = {joined: some for joined, some in asking.items() if len(some) > 1}
    shared = {joined: source_of(some.values()) for joined, some in alike.items()}
    taking_part = {name for some in alike.values() for name, _ in some}

    def lower(made: ContextFilter, rows: Node) -> Node | None:
        return lowered(made, rows, models, lambda at_stream, stream: _over(shared, at_stream, stream))

    # A query that is the look-up alone takes part as it is.
    return [
        replace(with_filters_lowered(query, models, lower)) if query.name in taking_part else query for query in queries
    ]


def _joined(found: LookUpAtStream) -> Node:
    """The joins alone, whatever is asked of what they find, or carried."""
    return ContextFilter(found.filter.joins, TRUE, ()).over(found.stream)


def _over(shared: Mapping[Node, Node], made: ContextFilter, stream: Scan) -> Node | None:
    source = shared.get(_joined(LookUpAtStream(made, stream, TRUE)))
    return None if source is None else made.over(source)


def look_up_at_stream(node: Node, models: Models) -> LookUpAtStream | None:
    """The root of a query as a look-up of rows of a stream; None where it is none, or reads more than one row each."""
    found = filter_of(node, models)
    if found is None:
        return None
    made, rows = found
    asked: list[Term] = []
    while not isinstance(rows, Scan):
        match rows:
            case Select(input_, condition) if not can_fail(condition, input_.schema):
                asked += conjuncts(condition)
            case Project(input_):
                pass
            case Rename(input_, pairs):
                old = {new: name for name, new in pairs}
                made, asked = made.named(old), [rename_attributes(part, old) for part in asked]
            case Imbed(input_, name, term) if name not in made.read and not can_fail(term, input_.schema):
                asked = [part for part in asked if name not in attributes_of(part)]
            case _:
                return None
        rows = input_
        if not made.fits(rows.schema):
            return None
    return None if rows.stream.static else LookUpAtStream(made, rows, conjunction(asked))


def source_of(look_ups: Iterable[LookUpAtStream]) -> Node:
    """The rows that are looked up for several queries: those that any of them asks for, or all of the stream where it
    costs more to tell than to look up.
    """
    asked = {found.condition: found.stream for found in look_ups}
    (stream, *_) = asked.values()
    share = min(1.0, sum(map(share_of, asked)))
    conditions = sum(len(conjuncts(condition)) for condition in asked)
    if conditions * CONDITION_COST + share * LOOK_UP_COST >= LOOK_UP_COST:
        return stream
    return selected(stream, disjunction([*asked]))


def share_of(condition: Term) -> float:
    """About which share of rows a condition lets through."""
    share = 1.0
    for part in conjuncts(condition):
        match part:
            case Call("or", args):
                share *= min(1.0, sum(map(share_of, args)))
            case Call(op, _):
                share *= SHARES.get(op, ANY_SHARE)
            case Lit(value):
                share *= float(value is True)
            case _:
                share *= ANY_SHARE
    return share
