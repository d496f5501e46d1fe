"""How deeply a query nests: walked without recursion, parts in common once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from tidegate.algebra.nodes import Group, Imbed, Join, Node, Select, children
from tidegate.algebra.terms import Call, Term

_T = TypeVar("_T", bound=object)


def depth_of(node: Node) -> int:
    """Operators on the longest way to a stream, and twice the operations nested in the deepest term."""
    operators: dict[int, int] = {}
    operations: dict[int, int] = {}
    nodes: dict[int, Node] = {}

    def inputs(node: Node) -> Iterable[Node]:
        nodes[id(node)] = node
        return children(node)

    depth = _longest(node, inputs, operators)
    terms = [term for operator in nodes.values() for term in _terms(operator)]
    return depth + 2 * max((_longest(term, _arguments, operations) for term in terms), default=0)


def _terms(node: Node) -> list[Term]:
    match node:
        case Select(_, condition) | Join(_, _, condition, _):
            return [condition]
        case Imbed(_, _, term):
            return [term]
        case Group(_, _, aggregates):
            return [term for aggregate in aggregates for term in aggregate.terms]
        case _:
            return []


def _arguments(term: Term) -> Iterable[Term]:
    return term.args if isinstance(term, Call) else ()


def _longest(root: _T, below: Callable[[_T], Iterable[_T]], known: dict[int, int]) -> int:
    """Length of the longest way down; `known` has those of what was met before, by identity."""
    waiting = [(root, False)]
    while waiting:
        current, ready = waiting.pop()
        if id(current) in known:
            continue
        if ready:
            known[id(current)] = 1 + max((known[id(part)] for part in below(current)), default=-1)
        else:
            waiting += [(current, True), *((part, False) for part in below(current))]
    return known[id(root)]
