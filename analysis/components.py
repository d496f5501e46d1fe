"""Components of a program: which result streams depend on which, and in what order they are evaluated (rule R18)."""

from __future__ import annotations

from dataclasses import dataclass

from tidegate.algebra.nodes import occurrences
from tidegate.algebra.program import ProgramDef


@dataclass(frozen=True, slots=True)
class Component:
    """Result streams that depend on each other, in the order of the program; most components have one."""

    streams: tuple[str, ...]
    recursive: bool


def components(program: ProgramDef) -> tuple[Component, ...]:
    """The strongly connected components of the dependency graph, sources first, then in the order of the program."""
    order = list(dict.fromkeys(query.stream for query in program.queries))
    edges = dependencies(program)
    if not edges:
        return tuple(Component((stream,), recursive=False) for stream in order)
    import networkx as nx

    graph = nx.DiGraph()
    graph.add_nodes_from(order)
    graph.add_edges_from(edges)
    condensed = nx.condensation(graph)
    members = {c: tuple(sorted(condensed.nodes[c]["members"], key=order.index)) for c in condensed}
    sequence = nx.lexicographical_topological_sort(condensed, key=lambda c: order.index(members[c][0]))
    return tuple(
        Component(members[c], len(members[c]) > 1 or (members[c][0], members[c][0]) in edges) for c in sequence
    )


def dependencies(program: ProgramDef) -> set[tuple[str, str]]:
    """Pairs (read, fed) of result streams."""
    results = program.result_names
    return {
        (stream.name, query.stream)
        for query in program.queries
        for stream in occurrences(query.node)
        if stream.name in results
    }
