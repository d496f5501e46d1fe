"""How long an analysis takes and how much memory: generous limits, since machines differ and are shared.

Measured on one loaded core: six streams 3 ms (60 ms with 32 alternatives and the greatest of six instants), a chain of
thirty 65 ms.
"""

from __future__ import annotations

import time
import tracemalloc

import pytest

from tests.analysis.build import eq, le, plus, query_facts, scan, stream
from tidegate.algebra.nodes import Imbed, Join, JoinKind, Node, Product, Select
from tidegate.algebra.terms import Attr, Term, call, conjunction, disjunction
from tidegate.analysis.federation.federation import federation


def chain(length: int, kind: JoinKind = "inner") -> Node:
    """Each stream within a window after the one before, or, for outer and anti-joins, after the first."""
    node = scan(stream("S0"), "s0")
    for i in range(1, length):
        before = f"s{i - 1}" if kind == "inner" else "s0"
        near: list[Term] = [
            eq(f"{before}.k", f"s{i}.k"),
            le(f"{before}.t", f"s{i}.t"),
            le(f"s{i}.t", plus(f"{before}.t", 60 + i)),
        ]
        node = Join(node, scan(stream(f"S{i}"), f"s{i}"), conjunction(near), kind)
    return node


def seconds(node: Node) -> float:
    """CPU time, the best of three runs."""
    found = []
    for _ in range(3):
        start = time.process_time()
        query_facts(node)
        found.append(time.process_time() - start)
    return min(found)


@pytest.mark.parametrize("kind", ["inner", "left", "anti"])
def test_a_chain_of_thirty_streams_takes_less_than_a_second(kind: JoinKind) -> None:
    assert seconds(chain(30, kind)) < 1


def test_a_query_of_six_streams_takes_less_than_fifty_milliseconds() -> None:
    assert seconds(chain(6)) < 0.05


def test_alternatives_cost_in_proportion() -> None:
    node: Node = scan(stream("S0"), "s0")
    for i in range(1, 6):
        node = Product(node, scan(stream(f"S{i}"), f"s{i}"))
    near = [
        disjunction(
            [
                conjunction([le(a, b), le(b, plus(a, 60))]),
                conjunction([le(b, plus(a, -1)), le(a, plus(b, 60))]),
            ]
        )
        for a, b in ((f"s{i - 1}.t", f"s{i}.t") for i in range(1, 6))
    ]
    latest = call("greatest", *(Attr(f"s{i}.t") for i in range(6)))
    assert seconds(Imbed(Select(node, conjunction(near)), "last", latest)) < 0.5


def test_memory_stays_small_with_a_thousand_zones() -> None:
    """Ten independent alternatives; the limit is four times as many (90 MB in all, measured)."""
    node: Node = scan(stream("S0"), "s0")
    for i in range(1, 11):
        node = Product(node, scan(stream(f"S{i}"), f"s{i}"))
    apart = [call("ne", Attr(f"s{i - 1}.t"), Attr(f"s{i}.t")) for i in range(1, 11)]
    latest = [le(plus(f"s{i - 1}.t", -60), f"s{i}.t") for i in range(1, 11)]
    near = [le(f"s{i}.t", plus(f"s{i - 1}.t", 60)) for i in range(1, 11)]
    tracemalloc.start()
    try:
        found = federation(Select(node, conjunction([*apart, *latest, *near])))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.zones) == 1024
    assert peak < 64 * 2**20
