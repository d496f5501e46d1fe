"""The plan as a graph: streams and tables, the buffers that they fill, the queries that read them, what these feed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tidegate.algebra.printing.plans import count_of, printable
from tidegate.analysis.report.report import finality
from tidegate.runtime.plan.layout import readers
from tidegate.runtime.plan.steps import Plan

#: Characters of a line of a label; nobody reads more in a picture, and the text has the rest.
_LINE: Final = 80


@dataclass(frozen=True, slots=True)
class Vertex:
    """A box: what it is, its name, and a line about it; `whole` is all that there is to say, where the line is a
    part.
    """

    kind: Literal["stream", "table", "buffer", "query", "result"]
    name: str
    about: str
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """Rows go from one vertex to another (by position); the label says while what they are kept for it."""

    source: int
    target: int
    label: str = ""


@dataclass(frozen=True, slots=True)
class Graph:
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]


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
    cut = first if len(first + more) <= _LINE else first[: _LINE - len(more) - 1] + "…"
    return Vertex("query", name, cut + more if more else first, "\nor ".join([first, *ways[1:]]) if more else "")


def _while(keeps: list[str]) -> str:
    return " or ".join(keep if keep in ("always", "never") else f"while {keep}" for keep in dict.fromkeys(keeps))


def shown(text: str) -> str:
    """A line of a label: what cannot be printed is spelled out, what is too long is cut off."""
    plain = printable(text[: _LINE + 1]).replace("\n", " ")
    return plain if len(text) <= _LINE and len(plain) <= _LINE else plain[: _LINE - 1] + "…"


_SHAPES: Final = {
    "stream": '(["{}"])',
    "table": '[("{}")]',
    "buffer": '["{}"]',
    "query": '{{{{"{}"}}}}',
    "result": '(["{}"])',
}


def mermaid(graph: Graph) -> str:
    """The graph as text for Mermaid, which many notebooks and forges draw."""
    lines = ["flowchart LR"]
    for number, vertex in enumerate(graph.vertices):
        label = f"{_escaped(shown(vertex.name))}<br/>{_escaped(shown(vertex.about))}"
        lines.append(f"  n{number}{_SHAPES[vertex.kind].format(label)}")
    for edge in graph.edges:
        arrow = f'-->|"{_escaped(shown(edge.label))}"|' if edge.label else "-->"
        lines.append(f"  n{edge.source} {arrow} n{edge.target}")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """As Mermaid's entity codes: everything but letters, digits and what is harmless inside quotes."""
    return "".join(c if c.isalnum() or c in " .,:_-+()" else f"#{ord(c)};" for c in text)
