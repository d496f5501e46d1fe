"""The plan as a graph: streams and tables, the buffers that they fill, the queries that read them, what these feed."""

from __future__ import annotations

from typing import Literal

from tidegate.algebra.printing.graph import LINE, Edge, Graph, Vertex
from tidegate.algebra.printing.plans import count_of
from tidegate.analysis.report.report import finality
from tidegate.runtime.plan.layout import readers
from tidegate.runtime.plan.steps import Plan


def plan_graph(plan: Plan) -> Graph:
    """Inputs, buffers and queries in the order of the plan; a result stream has a box of its own unless one query of
    its name feeds it."""
    vertices: list[Vertex] = []
    places: dict[tuple[str, str], int] = {}

    def add(vertex: Vertex) -> int:
        places[vertex.kind, vertex.name] = len(vertices)
        vertices.append(vertex)
        return len(vertices) - 1

    edges: list[Edge] = []
    feeding: dict[str, int] = {}
    for stream in plan.facts.program.inputs:
        kind: Literal["stream", "table"] = "table" if stream.static else "stream"
        about = "static" if stream.static else f"progress on {', '.join(stream.progress)}"
        feeding[stream.name] = add(Vertex(kind, stream.name, about))
    for buffer in plan.buffers:
        add(Vertex("buffer", buffer.id, buffer.holds))
    for query in plan.queries:
        place = add(_query(query.name, finality(query.facts)))
        if query.stream == query.name and sum(feeder.stream == query.stream for feeder in plan.queries) == 1:
            feeding[query.stream] = place
    for query in plan.queries:
        place = places["query", query.name]
        if query.stream not in feeding:
            feeding[query.stream] = add(Vertex("result", query.stream, "result"))
        if feeding[query.stream] != place:
            edges.append(Edge(place, feeding[query.stream]))
        tables = dict.fromkeys(leaf.static for leaf in query.leaves if leaf.static is not None)
        tables |= dict.fromkeys(name for leaf in query.leaves for name in leaf.later)
        edges += [Edge(feeding[name], place) for name in tables if name in feeding]
    for buffer in plan.buffers:
        place = places["buffer", buffer.id]
        sources = [buffer.stream.name, *(name for _, name in buffer.statics)]
        edges += [Edge(feeding[name], place) for name in dict.fromkeys(sources) if name in feeding]
        kept: dict[str, list[str]] = {}
        for reader in readers(plan, buffer):
            kept.setdefault(reader.query, []).append(reader.keep)
        edges += [Edge(place, places["query", name], _while(texts)) for name, texts in kept.items()]
    return Graph(tuple(vertices), tuple(edges))


def _query(name: str, ways: tuple[str, ...]) -> Vertex:
    """The box of a query: the first of the ways in which its rows may become final, and how many more there are."""
    if not ways:
        return Vertex("query", name, "static")
    more = f", or {count_of(len(ways) - 1, 'other way')}" if len(ways) > 1 else ""
    first = f"final when {ways[0]}"
    cut = first if len(first + more) <= LINE else first[: LINE - len(more) - 1] + "…"
    return Vertex("query", name, cut + more if more else first, "\nor ".join([first, *ways[1:]]) if more else "")


def _while(keeps: list[str]) -> str:
    return " or ".join(keep if keep in ("always", "never") else f"while {keep}" for keep in dict.fromkeys(keeps))
