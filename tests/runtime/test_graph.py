"""The plan as a graph, as Mermaid and SVG, and what notebooks show: complete, in layers, and escaped."""

from __future__ import annotations

import html
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

import tidegate as tg
from tidegate.algebra.printing.drawing import layers, placed, svg
from tidegate.algebra.printing.graph import Edge, Graph, Vertex, mermaid, shown
from tidegate.algebra.printing.plans import printable
from tidegate.runtime.cli.commands import main
from tidegate.runtime.inspect.graph import plan_graph
from tidegate.runtime.program import Program

orders = tg.stream("Orders", "order_id bigint, ordered timestamp", progress="ordered")
payments = tg.stream("Payments", "order_id bigint, paid timestamp", progress="paid")
zones = tg.table("Zones", "order_id bigint, zone string")


def several() -> Program:
    o, p, z = orders.as_("o"), payments.as_("p"), zones.as_("z")
    near = (o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(30))
    unpaid = tg.result_of("Unpaid", o.anti_join(p, p.order_id == o.order_id, *near)).as_("u")
    soon = (o.ordered <= unpaid.ordered, unpaid.ordered <= o.ordered + tg.hours(1))
    return tg.program(
        Zoned=unpaid.join(z, unpaid.order_id == z.order_id).select(zone=z.zone, at=unpaid.ordered),
        Again=unpaid.join(o, o.order_id == unpaid.order_id, *soon).select(at=unpaid.ordered),
        PerQuarter=payments.group_by(end=tg.tumbling(payments.paid, "15m")).agg(n=tg.count()),
    )


def recursive() -> Program:
    """Chains of steps, each a row of the stream after one of the chain."""
    steps = tg.stream("Step", "k bigint, t bigint", progress="t")
    chain = tg.result("Chain", "k bigint, t bigint", progress="t")
    s, c = steps.as_("s"), chain.as_("c")
    longer = s.join(c, s.k == c.k, c.t < s.t, s.t <= c.t + 5).select(k=s.k, t=s.t)
    return tg.program(
        tg.query(chain, steps.where(steps.k > 0).select(k=steps.k, t=steps.t), name="begin"),
        tg.query(chain, longer, name="go_on"),
    )


def hostile() -> Program:
    """An attribute and a constant that mean something in HTML, XML, Mermaid, or to a terminal."""
    name = '</pre><script>alert("1")</script> `]` & 漢字'
    schema = pa.schema([pa.field("k", pa.string()), pa.field(name, pa.timestamp("us", "UTC"), nullable=False)])
    events = tg.stream("Events", schema, progress=name)
    return tg.program(end=events.where(events["k"] != name + "<b> \x00 \u202e \x1b[31m"))


MADE = [several, recursive, hostile]


def names(graph: Graph) -> set[tuple[str, str]]:
    return {(graph.vertices[edge.source].name, graph.vertices[edge.target].name) for edge in graph.edges}


def test_the_graph_of_a_program() -> None:
    graph = plan_graph(several().explain().lowered())
    kinds = {vertex.name: vertex.kind for vertex in graph.vertices}
    assert {name for name, kind in kinds.items() if kind == "query"} == {"Unpaid", "Zoned", "Again", "PerQuarter"}
    assert (kinds["Orders"], kinds["Zones"]) == ("stream", "table")
    assert "result" not in kinds.values()
    assert {
        ("Orders", "Orders#0"),
        ("Orders#0", "Unpaid"),
        ("Orders#0", "Again"),
        ("Payments#0", "Unpaid"),
        ("Payments#1", "PerQuarter"),
        ("Unpaid", "Unpaid#1"),
        ("Zones", "Unpaid#1"),  # joined row by row, before it is stored
    } <= names(graph)
    (label,) = {edge.label for edge in graph.edges if graph.vertices[edge.target].name == "PerQuarter"}
    assert label == "while end > p(end)"


def test_a_query_with_several_ways_to_be_final_says_so_and_shows_all_where_one_points_at_it() -> None:
    o, p = orders.as_("o"), payments.as_("p")
    paid = o.join(p, p.order_id == o.order_id, o.ordered <= p.paid, p.paid <= o.ordered + tg.minutes(30))
    long = "x" * 70
    graph = plan_graph(tg.program(Paid=paid, **{long: paid.rename(ordered=long)}).explain().lowered())
    (short, cut) = (vertex for vertex in graph.vertices if vertex.kind == "query")
    assert short.about == "final when ordered <= min(Orders.ordered, Payments.paid - 30m), or 1 other way"
    assert short.whole.splitlines()[1].startswith("or paid <= ")
    assert len(cut.about) == 80
    assert cut.about.endswith(", or 1 other way")
    titles = [element.text for element in ET.fromstring(svg(graph)).iter() if element.tag.endswith("}title")]
    assert short.whole in titles


def test_a_result_that_several_queries_feed_has_a_box_of_its_own() -> None:
    graph = plan_graph(recursive().explain().lowered())
    assert ("result", "Chain") in {(vertex.kind, vertex.name) for vertex in graph.vertices}
    assert {("begin", "Chain"), ("go_on", "Chain"), ("Chain", "Chain#0"), ("Chain#0", "go_on")} <= names(graph)


@pytest.mark.parametrize("made", MADE)
def test_the_graph_is_complete(made: Callable[[], Program]) -> None:
    plan = made().explain().lowered()
    found = names(plan_graph(plan))
    for buffer in plan.buffers:
        readers = {query.name for query, _ in plan.readers(buffer)}
        assert {target for source, target in found if source == buffer.id} == readers
        assert any(target == buffer.id for _, target in found)


@pytest.mark.parametrize("made", MADE)
def test_boxes_stand_in_layers_and_apart(made: Callable[[], Program]) -> None:
    graph = plan_graph(made().explain().lowered())
    layer = layers(graph)
    backward = [edge for edge in graph.edges if layer[edge.source] >= layer[edge.target]]
    assert len(backward) == (1 if made is recursive else 0)
    boxes, routes = placed(graph)
    every = [*boxes, *(box for route in routes for box in route)]
    for i, one in enumerate(every):
        for other in every[:i]:
            beside = one.x + one.width <= other.x or other.x + other.width <= one.x
            assert beside or one.y + one.height <= other.y or other.y + other.height <= one.y
    for edge, route in zip(graph.edges, routes, strict=True):
        assert len(route) == max(0, layer[edge.target] - layer[edge.source] - 1)


@pytest.mark.parametrize("made", MADE)
def test_svg_is_well_formed_and_shows_every_name(made: Callable[[], Program]) -> None:
    graph = plan_graph(made().explain().lowered())
    picture = ET.fromstring(svg(graph))
    kinds = {element.tag.rpartition("}")[2] for element in picture.iter()}
    assert kinds == {"svg", "title", "rect", "defs", "marker", "path", "g", "text"}
    assert {key for element in picture.iter() for key in element.attrib} & {
        "href",
        "onclick",
        "onload",
        "style",
    } == set()
    texts = [element.text for element in picture.iter() if element.tag.endswith("}text")]
    assert texts == [shown(text) for vertex in graph.vertices for text in (vertex.name, vertex.about)]
    width, height = float(picture.attrib["width"]), float(picture.attrib["height"])
    for box in placed(graph)[0]:
        assert 0 < box.x < box.x + box.width < width
        assert 0 < box.y < box.y + box.height < height


NODE = re.compile(r'  n(\d+)(?:\(\["(.*)"\]\)|\[\("(.*)"\)\]|\["(.*)"\]|\{\{"(.*)"\}\})')
ARROW = re.compile(r'  n(\d+) -->(?:\|"(.*)"\|)? n(\d+)')


@pytest.mark.parametrize("made", MADE)
def test_mermaid_says_the_same(made: Callable[[], Program]) -> None:
    graph = plan_graph(made().explain().lowered())
    head, *lines = mermaid(graph).split("\n")
    assert head == "flowchart LR"

    def read(text: str) -> str:
        assert re.fullmatch(r"[\w .,:_+()#;-]*", text)  # nothing that ends the quotes or starts a tag
        return re.sub(r"#(\d+);", lambda code: chr(int(code[1])), text)

    vertices: list[tuple[str, ...]] = []
    edges: list[Edge] = []
    for line in lines:
        if (match := NODE.fullmatch(line)) is not None:
            assert int(match[1]) == len(vertices)
            label = next(text for text in match.groups()[1:] if text is not None)
            vertices.append(tuple(map(read, label.split("<br/>"))))
        else:
            arrow = ARROW.fullmatch(line)
            assert arrow is not None, line
            edges.append(Edge(int(arrow[1]), int(arrow[3]), read(arrow[2] or "")))
    assert vertices == [(shown(vertex.name), shown(vertex.about)) for vertex in graph.vertices]
    assert edges == [Edge(edge.source, edge.target, shown(edge.label)) for edge in graph.edges]


def test_lines_of_a_label_are_printable_and_short() -> None:
    assert shown("a\x00b\u202e") == "a\\u0000b\\u202e"
    assert shown("x" * 80) == "x" * 80
    assert len(shown("x" * (1 << 20))) == len(shown("\x00" * 80)) == 80
    wide = Graph((Vertex("stream", "漢" * 10, ""), Vertex("stream", "a" * 10, "")), ())
    assert placed(wide)[0][0].width > placed(wide)[0][1].width
    assert ET.fromstring(svg(Graph((), ()))) is not None


def test_notebooks_show_everything_escaped() -> None:
    program = hostile()
    explanation = program.explain()
    relation = orders.where(orders.order_id < 5)
    with program.session() as session:
        why = session.why(session._plan.queries[0].stream)
    assert repr(explanation.plan) == explanation.plan
    shown_here = [
        (program, repr(program)),
        (explanation, explanation.report),
        (explanation, str(explanation).removeprefix(f"{explanation.report}\n\n")),
        (explanation.plan, explanation.plan),
        (explanation.report, explanation.report),
        (why, str(why)),
        (relation, repr(relation)),
    ]
    for value, text in shown_here:
        found = value._repr_html_()  # type: ignore[attr-defined]  # each has one
        assert "<script" not in found
        assert f">{html.escape(printable(text))}</pre>" in found
        assert not {"\x00", "\u202e", "\x1b"} & set(found)


def test_a_program_that_is_not_valid_shows_its_problems() -> None:
    o, p = orders.as_("o"), payments.as_("p")
    program = tg.program(Never=o.anti_join(p, o.order_id == p.order_id, o.ordered <= p.paid))
    found = program._repr_html_()
    assert html.escape(printable(str(program.check()[0]))) in found
    assert "<svg" not in found


def test_the_command_line_prints_the_graph(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "alarm.py"
    file.write_text(
        'import tidegate as tg\ns = tg.stream("S", "t timestamp, v double", progress="t")\nprogram = tg.program(A=s)\n'
    )
    assert main(["explain", str(file), "--graph", "mermaid"]) == 0
    assert capsys.readouterr().out.startswith("flowchart LR\n")
    assert main(["explain", str(file), "--graph", "svg"]) == 0
    assert ET.fromstring(capsys.readouterr().out).tag.endswith("svg")
