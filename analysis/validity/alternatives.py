"""Alternatives: which of those that a query's conditions name leave an instant without a bound."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Join, Node, Select, children
from tidegate.algebra.printing.terms import term_text
from tidegate.algebra.program import Query
from tidegate.algebra.terms import Call, Term, attributes_of, conjunction, conjuncts, rename_attributes
from tidegate.analysis.federation.federation import federation
from tidegate.analysis.progress.propagation import Clause, propagation
from tidegate.analysis.validity.places import above_ordered, put
from tidegate.analysis.validity.written import qualified_name
from tidegate.analysis.zones.federation import Federation

#: Of more alternatives one does not look for those without a bound: each is analysed.
ALTERNATIVES = 12


@dataclass(frozen=True, slots=True)
class NarrowedQuery:
    """The query with one alternative alone, of each condition of which another one would be a bound.

    `lines` are these alternatives as they are written; `clause` says that there is no bound.
    """

    federation: Federation
    clause: Clause
    lines: tuple[str, ...]


def narrowed_query(query: Query, federation_: Federation, attribute: str, clause: Clause) -> NarrowedQuery:
    """The alternatives in which the attribute does not progress on the occurrence of a clause."""
    result, node = NarrowedQuery(federation_, clause, ()), query.node
    streams = {stream.name: stream for stream in federation_.occurrences}
    left = ALTERNATIVES
    for place, condition in _disjunctions(node, clause.occurrence):
        parts = _alternatives(condition)
        left -= len(parts)
        if left < 0:
            break
        tries = []
        for part in parts:
            narrowed = put(node, place, _with_instead(_at(node, place), condition, part))
            try:
                facts = federation(narrowed, streams, sites=query.sites)
            except QueryError:
                return result
            tries.append((part, narrowed, facts, _unbounded(facts, attribute, clause)))
        open_ = [(part, narrowed, facts, loose) for part, narrowed, facts, loose in tries if loose is not None]
        if open_ and len(open_) < len(parts):
            part, narrowed, facts, loose = open_[0]
            line = term_text(
                rename_attributes(part, {a: qualified_name(a, _at(node, place)) for a in attributes_of(part)})
            )
            result, node = NarrowedQuery(facts, loose, (*result.lines, line)), narrowed
    return result


def _disjunctions(node: Node, i: int) -> Iterator[tuple[tuple[int, ...], Term]]:
    """The conditions with alternatives on the way to an occurrence, with their places."""
    for step in above_ordered(node, i):
        if isinstance(step.node, Select | Join):
            for condition in conjuncts(step.node.condition):
                if isinstance(condition, Call) and condition.op == "or":
                    yield step.place, condition


def _alternatives(condition: Term) -> list[Term]:
    if isinstance(condition, Call) and condition.op == "or":
        return [alternative for part in condition.args for alternative in _alternatives(part)]
    return [condition]


def _at(node: Node, place: tuple[int, ...]) -> Node:
    for position in place:
        node = children(node)[position]
    return node


def _with_instead(node: Node, condition: Term, part: Term) -> Node:
    """A filter or join with another condition in the place of one."""
    assert isinstance(node, Select | Join)
    parts = [part if conjunct == condition else conjunct for conjunct in conjuncts(node.condition)]
    return replace(node, condition=conjunction(parts))


def _unbounded(federation_: Federation, attribute: str, clause: Clause) -> Clause | None:
    """The clause of the same occurrence that is not finite; None where there is none."""
    if attribute not in federation_.attributes:
        return None
    clauses = propagation(federation_, attribute).clauses
    return next(
        (candidate for candidate in clauses if candidate.occurrence == clause.occurrence and not candidate.is_finite),
        None,
    )
