"""Inner queries: each operator that gathers events in order becomes a query, which the rest of its query reads (rule
R28).

Such an operator keeps what it needs of earlier rows as its own state, so that towards the analysis a row of its result
rests on the row that completes it. Where it stands inside a query, or above more than row-wise parts, the query is cut
there: the operator, or what it reads, feeds a stream that no user sees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tidegate.algebra.errors import QueryError
from tidegate.algebra.nodes import Imbed, Node, OrderedNode, Project, Rename, Scan, Select, children, with_children
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.row_wise import has_ordered_operator, is_row_wise, is_static, ordered_operator
from tidegate.algebra.schema import StreamDef

if TYPE_CHECKING:
    from tidegate.analysis.facts import ProgramFacts

#: The definition that the analysis infers of the stream that a query feeds.
Infer = Callable[[Query], StreamDef]


def with_inner_queries(program: ProgramDef, infer: Infer, shared: Collection[Node] = ()) -> ProgramDef:
    """The program with a query of its own for every operator that gathers events in order. One that is `shared` is
    an inner query also where it is the root of one.
    """
    if not any(has_ordered_operator(query.node) for query in program.queries):
        return program
    cutter = _Cutter(
        infer,
        {query.name for query in program.queries} | {s.name for s in program.inputs} | program.result_names,
        shared,
    )
    for query in program.queries:
        cutter.queries.append(cutter.cut_query(query))
    return ProgramDef(tuple(cutter.queries))


@dataclass(slots=True)
class _Cutter:
    infer: Infer
    taken: set[str]
    shared: Collection[Node]
    queries: list[Query] = field(default_factory=list)
    scans: dict[Node, Scan] = field(default_factory=dict)

    def cut_query(self, query: Query) -> Query:
        if not has_ordered_operator(query.node):
            return query
        return query.over(self.cut(query, query.node, root=True))

    def cut(self, query: Query, node: Node, *, root: bool = False) -> Node:
        """The node over streams of inner queries. A whole query may be an operator itself."""
        is_operator = root and query.declared is None and _core_operator(node) not in self.shared
        if is_operator and ordered_operator(below := self.below(query, node)) is not None:
            return below
        match node:
            case OrderedNode():
                return self.inner_query(query, self.below(query, node))
            case _:
                return with_children(node, tuple(self.cut(query, child) for child in children(node)))

    def below(self, query: Query, node: Node) -> Node:
        """The node with inner queries for the inputs of its outermost operators that are more than row-wise."""
        match node:
            case OrderedNode():
                return node.over(tuple(self.source(query, input_) for input_ in node.inputs))
            case Select() | Project() | Rename() | Imbed():
                return with_children(node, tuple(self.below(query, child) for child in children(node)))
            case _:
                return node

    def source(self, query: Query, node: Node) -> Node:
        if is_static(node):
            raise QueryError(
                "TG162",
                "rows are read in order from streams, and this reads static tables only",
                hint="declare a stream instead: rows or a frame given as its source are complete, so nothing waits "
                "for more",
                site=query.sites.get(node, query.site),
            )
        cut = self.cut(query, node)
        return cut if is_row_wise(cut) else self.inner_query(query, cut)

    def inner_query(self, query: Query, node: Node) -> Scan:
        """The stream of the query that computes a node; equal nodes share one."""
        if node not in self.scans:
            name = self.free(query.stream)
            inner = Query(name, name, node, None, query.site, query.sites, inner=True)
            self.scans[node] = Scan(self.infer(inner))
            self.queries.append(inner)
        return self.scans[node]

    def free(self, stream: str) -> str:
        number = 1
        while f"{stream}~{number}" in self.taken:
            number += 1
        self.taken.add(f"{stream}~{number}")
        return f"{stream}~{number}"


def inner_owner(stream: str) -> str:
    """The query of which a stream is an unnamed part; empty for any other stream."""
    return stream.rpartition("~")[0]


def users_names(streams: Iterable[StreamDef]) -> frozenset[str]:
    """The names of those streams that are no unnamed parts of a query."""
    return frozenset(stream.name for stream in streams if not inner_owner(stream.name))


def owner_of(name: str) -> str:
    """The query that the user knows: the owner of an inner query, or the query itself."""
    return inner_owner(name) or name


def inner_names(facts: ProgramFacts) -> dict[str, str]:
    """The names of inner queries for people: the query that each is a part of, and what its rows hold."""
    names: dict[str, str] = {}
    for query in (query.query for query in facts.queries if query.query.inner):
        operator = _core_operator(query.node)
        what = operator.produces if isinstance(operator, OrderedNode) else "rows"
        owner = inner_owner(query.stream)
        name, number = f"{owner} (its {what})", 1
        while name in names.values():
            number += 1
            name = f"{owner} (its {what}, {number})"
        names[query.stream] = name
    return names


def with_inner_names(text: str, names: Mapping[str, str]) -> str:
    """A text for people, in which `names` replace those of inner queries."""
    for inner, name in names.items():
        text = re.sub(rf"(?<!\w){re.escape(inner)}(?!\d)", name, text)
    return text


def _core_operator(node: Node) -> Node:
    """The operator below renames, projections and computed attributes."""
    while isinstance(node, Select | Project | Rename | Imbed):
        (node,) = children(node)
    return node
