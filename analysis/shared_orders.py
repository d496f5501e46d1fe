"""Operators that go through the same rows in the same order become one, in whatever queries they stand (decision 73).

What rows look at around them is kept by key. Of several operators each would keep its own, and look every key up by
itself.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import TypeAlias

from tidegate.algebra.errors import Site
from tidegate.algebra.nodes import Node, OrderedNode, Project, Rename, children, nodes_of, with_children
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.row_wise import has_ordered_operator
from tidegate.algebra.terms import Term
from tidegate.analysis.ordered.table import family_of

_Order: TypeAlias = tuple[tuple[Node, ...], Hashable]


@dataclass(frozen=True, slots=True)
class _Together:
    """One operator for several, and by operator the names of its attributes that others have there."""

    operator: OrderedNode
    names: Mapping[OrderedNode, Mapping[str, str]]


def with_shared_orders(program: ProgramDef) -> tuple[ProgramDef, frozenset[Node]]:
    """The program in which operators of the same rows and order are one, and the operators that several queries read,
    or several parts of one.
    """
    found: dict[_Order, dict[OrderedNode, int]] = {}
    for query in program.queries:
        if has_ordered_operator(query.node):
            for node in nodes_of(query.node):
                if isinstance(node, OrderedNode) and (order := _order(node)) is not None:
                    uses = found.setdefault(order, {})
                    uses[node] = uses.get(node, 0) + 1
    groups = {
        order: _Together(*family_of(next(iter(uses))).together(tuple(uses)))
        for order, uses in found.items()
        if sum(uses.values()) > 1
    }
    if not groups:
        return program, frozenset()
    shared: dict[Node, None] = {}
    queries = tuple(_shared(query, groups, shared) for query in program.queries)
    return ProgramDef(queries), frozenset(shared)


def _order(node: OrderedNode) -> _Order | None:
    """What operators have in common that can be one; None of one that is by itself."""
    alike = family_of(node).alike(node)
    return None if alike is None else (node.inputs, alike)


def _shared(query: Query, groups: Mapping[_Order, _Together], shared: dict[Node, None]) -> Query:
    sites: dict[Term | Node, Site] = {}

    def rewritten(node: Node) -> Node:
        below = with_children(node, tuple(map(rewritten, children(node))))
        order = _order(node) if isinstance(node, OrderedNode) else None
        if order not in groups or order is None or not isinstance(node, OrderedNode):
            return below
        together = groups[order]
        operator = together.operator.over(children(below))
        shared[operator] = None
        if node in query.sites:
            sites[operator] = query.sites[node]
        return _with_own_names(operator, node, together.names[node])

    node = rewritten(query.node)
    return query if node == query.node else replace(query, node=node, sites={**query.sites, **sites})


def _with_own_names(operator: Node, node: Node, names: Mapping[str, str]) -> Node:
    """The rows of the operator with the attributes of a node alone, by its names."""
    wanted = tuple(names.get(name, name) for name in node.schema.names)
    rows = operator if wanted == operator.schema.names else Project(operator, wanted)
    pairs = tuple((other, own) for own, other in names.items() if own != other)
    return Rename(rows, pairs) if pairs else rows
