"""A graph as SVG: layers from left to right, each box right of all that feed it."""

from __future__ import annotations

import html
import unicodedata
from dataclasses import dataclass
from itertools import chain
from typing import Final

from tidegate.algebra.printing.graph import Edge, Graph, Vertex, shown
from tidegate.algebra.printing.plans import printable

_CHARACTER, _LINE, _PADDING = 7.3, 16, 10  # pixels, of 12 pixel monospace
_ACROSS, _DOWN, _MARGIN, _PASSAGE = 56, 18, 12, 6.0
_FILLS: Final = {
    "stream": "#dbeafe",
    "table": "#e5e7eb",
    "buffer": "#fef3c7",
    "query": "#dcfce7",
    "result": "#dbeafe",
    "default": "#dbeafe",
    "context": "#fef3c7",
}


@dataclass(frozen=True, slots=True)
class Box:
    """Where a vertex is drawn."""

    x: float
    y: float
    width: float
    height: float


def svg(graph: Graph, title: str = "Plan: streams, buffers, queries") -> str:
    """The graph as one SVG element; text is escaped, and nothing in it runs or loads anything."""
    boxes, routes = placed(graph)
    width = max((box.x + box.width for box in boxes), default=0) + _MARGIN
    height = max((box.y + box.height for box in chain(boxes, *routes)), default=0) + _MARGIN
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" width="{width:.0f}" '
        f'height="{height:.0f}" role="img" font-family="monospace" font-size="12">',
        f"<title>{_text(title)}</title>",
        f'<rect width="{width:.0f}" height="{height:.0f}" fill="#ffffff"/>',
        '<defs><marker id="tidegate-arrow" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7" '
        'orient="auto"><path d="M0 0L10 5L0 10z" fill="#5b6470"/></marker></defs>',
    ]
    parts += [_edge(edge, boxes, route) for edge, route in zip(graph.edges, routes, strict=True)]
    parts += [_vertex(vertex, box) for vertex, box in zip(graph.vertices, boxes, strict=True)]
    return "\n".join([*parts, "</svg>"])


def layers(graph: Graph) -> list[int]:
    """Per vertex, the length of the longest way to it; an edge that closes a cycle does not count."""
    waiting = dict.fromkeys(range(len(graph.vertices)), 0)
    outgoing: dict[int, list[int]] = {number: [] for number in waiting}
    for edge in graph.edges:
        waiting[edge.target] += 1
        outgoing[edge.source].append(edge.target)
    layer = [0] * len(graph.vertices)
    while waiting:
        # In a cycle nothing is ready: the vertex that waits for least goes first, earlier ones before later ones.
        chosen = min(waiting, key=lambda number: (waiting[number], number))
        del waiting[chosen]
        for target in outgoing[chosen]:
            if target in waiting:
                waiting[target] -= 1
                layer[target] = max(layer[target], layer[chosen] + 1)
    return layer


def placed(graph: Graph) -> tuple[list[Box], list[list[Box]]]:
    """Where each vertex goes, and per edge the free places that it passes in the layers between its ends.

    In a layer all stand in the order of the middles of what feeds them.
    """
    layer = layers(graph)
    sizes = [(_width(vertex), 2.0 * _LINE + _PADDING) for vertex in graph.vertices]
    before: list[list[int]] = [[] for _ in graph.vertices]
    routes: list[list[int]] = []
    for edge in graph.edges:
        between = range(layer[edge.source] + 1, layer[edge.target])
        route = list(range(len(layer), len(layer) + len(between)))
        layer += between
        sizes += [(0.0, _PASSAGE)] * len(route)
        before += [[source] for source in (edge.source, *route)[: len(route)]]
        if layer[edge.source] < layer[edge.target]:
            before[edge.target].append((edge.source, *route)[-1])
        routes.append(route)
    columns: list[list[int]] = [[] for _ in range(max(layer, default=-1) + 1)]
    for number, depth in enumerate(layer):
        columns[depth].append(number)
    highest = max((sum(sizes[n][1] + _DOWN for n in column) for column in columns), default=0)
    boxes: dict[int, Box] = {}
    x = float(_MARGIN)
    for column in columns:
        column.sort(key=lambda n: _middle([boxes[source] for source in before[n]]))
        y = _MARGIN + (highest - sum(sizes[n][1] + _DOWN for n in column)) / 2
        width = max(sizes[n][0] for n in column)
        for n in column:
            boxes[n] = Box(x, y, sizes[n][0] or width, sizes[n][1])
            y += sizes[n][1] + _DOWN
        x += width + _ACROSS
    return [boxes[n] for n in range(len(graph.vertices))], [[boxes[n] for n in route] for route in routes]


def _middle(boxes: list[Box]) -> float:
    return sum(box.y + box.height / 2 for box in boxes) / len(boxes) if boxes else 0.0


def _width(vertex: Vertex) -> float:
    return max(_columns(shown(text)) for text in (vertex.name, vertex.about)) * _CHARACTER + 2 * _PADDING


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(c) in "WF" else 1 for c in text)


def _vertex(vertex: Vertex, box: Box) -> str:
    radius = 14 if vertex.kind in ("stream", "result", "default") else 3
    x, first = box.x + _PADDING, box.y + _LINE
    title = f"<title>{html.escape(printable(vertex.whole))}</title>" if vertex.whole else ""
    return (
        f'<g>{title}<rect x="{box.x:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{box.height}" rx="{radius}" '
        f'fill="{_FILLS[vertex.kind]}" stroke="#5b6470"/>'
        f'<text x="{x:.0f}" y="{first:.0f}" font-weight="bold">{_text(vertex.name)}</text>'
        f'<text x="{x:.0f}" y="{first + _LINE:.0f}">{_text(vertex.about)}</text></g>'
    )


def _edge(edge: Edge, boxes: list[Box], route: list[Box]) -> str:
    stations = [boxes[edge.source], *route, boxes[edge.target]]
    x, y = stations[0].x + stations[0].width, stations[0].y + stations[0].height / 2
    path = f"M{x:.0f} {y:.0f}"
    for box in stations[1:]:
        bend, middle = max(_ACROSS / 2, abs(box.x - x) / 3), box.y + box.height / 2
        path += f"C{x + bend:.0f} {y:.0f} {box.x - bend:.0f} {middle:.0f} {box.x:.0f} {middle:.0f}"
        x, y = box.x + box.width, middle
        path += f"L{x:.0f} {y:.0f}" if box is not stations[-1] else ""
    dashed = ' stroke-dasharray="4 3"' if edge.dotted or stations[-1].x <= stations[0].x else ""
    title = f"<title>{_text(edge.label)}</title>" if edge.label else ""
    return f'<path d="{path}" fill="none" stroke="#5b6470"{dashed} marker-end="url(#tidegate-arrow)">{title}</path>'


def _text(text: str) -> str:
    return html.escape(shown(text))
