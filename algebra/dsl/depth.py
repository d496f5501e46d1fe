"""How deeply a query nests, and how large it is: walked without recursion, parts in common once."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeVar

from tidegate.algebra.nodes import Group, Imbed, Join, Node, Scan, Select, children, nodes_of
from tidegate.algebra.terms import Call, Term, size_of

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


def largest_term(node: Node) -> int:
    """The operations of the largest term of a query, written out."""
    return max((size_of(term) for operator in nodes_of(node) for term in _terms(operator)), default=0)


def references_in(node: Node) -> int:
    """How often a query refers to streams, written out: those in a part that stands in several places count in each."""
    known: dict[int, int] = {}
    waiting = [node]
    while waiting:
        current = waiting[-1]
        below = children(current)
        unknown = [child for child in below if id(child) not in known]
        if not unknown:
            known[id(current)] = 1 if isinstance(current, Scan) else sum(known[id(child)] for child in below)
            waiting.pop()
        waiting += unknown
    return known[id(node)]


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
