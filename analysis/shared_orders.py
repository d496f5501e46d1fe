"""Operators over rows in order: those of one key and order become one, in whatever queries they stand (decision 73).

What rows look at around them is kept by key. Of several operators that go through the same rows in the same order each
would keep its own, and look every key up by itself.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from tidegate.algebra.errors import Site
from tidegate.algebra.nodes import Node, Project, Rename, children, nodes_of, with_children
from tidegate.algebra.ordered.over import Over, OverColumn, terms_of, with_name, with_terms
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.row_wise import has_ordered_operator
from tidegate.algebra.terms import Attr, Param, Term, substitute
from tidegate.algebra.typed.operations import resolve

_Order: TypeAlias = tuple[Node, tuple[str, ...], str, str | None, bool]


def with_shared_orders(program: ProgramDef) -> tuple[ProgramDef, frozenset[Node]]:
    """The program in which operators of one input, key and order are one, and the operators that several queries read,
    or several parts of one.
    """
    found: dict[_Order, dict[Over, int]] = {}
    for query in program.queries:
        if has_ordered_operator(query.node):
            for node in nodes_of(query.node):
                if isinstance(node, Over) and _can_share(node):
                    uses = found.setdefault(_order(node), {})
                    uses[node] = uses.get(node, 0) + 1
    groups = {order: _Together(tuple(uses)) for order, uses in found.items() if sum(uses.values()) > 1}
    if not groups:
        return program, frozenset()
    shared: dict[Node, None] = {}
    queries = tuple(_shared(query, groups, shared) for query in program.queries)
    return ProgramDef(queries), frozenset(shared)


def _order(node: Over) -> _Order:
    return node.input, node.keys, node.time, node.tie, node.needs_order


def _can_share(node: Over) -> bool:
    """Whether rows of the operator are complete at once, one by one, and come whatever its columns are. A row that has
    no value for some term is not seen by the operator at all.
    """
    terms = (term for column in node.columns for term in terms_of(column))
    return not (node.waits or node.merges_equal or any(resolve(term, node.known).fallible for term in terms))


@dataclass(frozen=True)
class _Together:
    """The columns of operators of one order, each once, and under which names each operator's own are among them."""

    members: tuple[Over, ...]
    columns: dict[str, OverColumn] = field(default_factory=dict)
    names: dict[Over, dict[str, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        taken = {name for member in self.members for name in member.schema}
        for member in self.members:
            names = self.names.setdefault(member, {})
            for column in member.columns:
                own = _renamed(column, names)
                names[column.name] = self._placed(own, taken)

    def _placed(self, column: OverColumn, taken: Collection[str]) -> str:
        """The name of a column among all: that of an equal one, its own one if it is free, or a new one."""
        for name, other in self.columns.items():
            if with_name(column, name) == other:
                return name
        name = column.name
        while name in self.columns or (name != column.name and name in taken):
            name += "'"
        self.columns[name] = with_name(column, name)
        return name

    def over(self, input_: Node) -> Over:
        """The operator with all columns."""
        return replace(self.members[0], input=input_, columns=tuple(self.columns.values()))


def _renamed(column: OverColumn, names: dict[str, str]) -> OverColumn:
    """The column with the new names of columns that it reads."""

    def renamed(leaf: Attr | Param) -> Term:
        return Attr(names.get(leaf.name, leaf.name)) if isinstance(leaf, Attr) else leaf

    return with_terms(column, lambda term: substitute(term, renamed))


def _shared(query: Query, groups: dict[_Order, _Together], shared: dict[Node, None]) -> Query:
    sites: dict[Term | Node, Site] = {}

    def rewritten(node: Node) -> Node:
        below = with_children(node, tuple(map(rewritten, children(node))))
        together = groups.get(_order(node)) if isinstance(node, Over) and _can_share(node) else None
        if together is None or not isinstance(node, Over):
            return below
        (input_,) = children(below)
        operator = together.over(input_)
        shared[operator] = None
        if node in query.sites:
            sites[operator] = query.sites[node]
        return _with_own_columns(operator, node, together.names[node])

    node = rewritten(query.node)
    return query if node == query.node else replace(query, node=node, sites={**query.sites, **sites})


def _with_own_columns(operator: Over, node: Over, names: dict[str, str]) -> Node:
    """The rows of the operator with a member's columns, by its names."""
    wanted = (*node.input.schema.names, *(names[column.name] for column in node.columns))
    rows: Node = operator if wanted == operator.schema.names else Project(operator, wanted)
    pairs = tuple((new, old) for old, new in names.items() if new != old)
    return Rename(rows, pairs) if pairs else rows
