"""Graphs of boxes and arrows, and their text for Mermaid."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from tidegate.algebra.printing.plans import printable

#: Characters of a line of a label; nobody reads more in a picture, and the text has the rest.
LINE: Final = 80


@dataclass(frozen=True, slots=True)
class Vertex:
    """A box: what it is, its name, and a line about it; `whole` is all that there is to say, where the line is a
    part.
    """

    kind: Literal["stream", "table", "buffer", "query", "result", "default", "context"]
    name: str
    about: str
    whole: str = ""


@dataclass(frozen=True, slots=True)
class Edge:
    """From one vertex to another, by their positions: rows that go there, kept while the label says so; or a transition
    of contexts. It is drawn `dotted` where what it leaves goes on.
    """

    source: int
    target: int
    label: str = ""
    dotted: bool = False


@dataclass(frozen=True, slots=True)
class Graph:
    vertices: tuple[Vertex, ...]
    edges: tuple[Edge, ...]


def shown(text: str) -> str:
    """A line of a label: what cannot be printed is spelled out, what is too long is cut off."""
    plain = printable(text[: LINE + 1]).replace("\n", " ")
    return plain if len(text) <= LINE and len(plain) <= LINE else plain[: LINE - 1] + "…"


_SHAPES: Final = {
    "stream": '(["{}"])',
    "table": '[("{}")]',
    "buffer": '["{}"]',
    "query": '{{{{"{}"}}}}',
    "result": '(["{}"])',
    "default": '(["{}"])',
    "context": '["{}"]',
}


def mermaid(graph: Graph) -> str:
    """The graph as text for Mermaid, which many notebooks and forges draw."""
    lines = ["flowchart LR"]
    for number, vertex in enumerate(graph.vertices):
        label = f"{_escaped(shown(vertex.name))}<br/>{_escaped(shown(vertex.about))}"
        lines.append(f"  n{number}{_SHAPES[vertex.kind].format(label)}")
    for edge in graph.edges:
        line = "-.->" if edge.dotted else "-->"
        arrow = f'{line}|"{_escaped(shown(edge.label))}"|' if edge.label else line
        lines.append(f"  n{edge.source} {arrow} n{edge.target}")
    return "\n".join(lines)


def _escaped(text: str) -> str:
    """As Mermaid's entity codes: everything but letters, digits and what is harmless inside quotes."""
    return "".join(c if c.isalnum() or c in " .,:_-+()" else f"#{ord(c)};" for c in text)
