"""What rewrites ask of conditions: which sides they read, and whether they can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tidegate.algebra.nodes import Node, Select
from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import TRUE, Term, attributes_of, conjunction, conjuncts
from tidegate.algebra.typed.operations import resolve


def can_fail(term: Term, attributes: Mapping[str, Attribute]) -> bool:
    """Whether evaluating the term can fail on some row of these attributes."""
    return resolve(term, attributes).fallible


def partition(condition: Term, fits: Callable[[Term], bool]) -> tuple[Term, Term]:
    """The conjuncts that fit and those that do not, each group as one condition."""
    both: tuple[list[Term], list[Term]] = [], []
    for part in conjuncts(condition):
        both[not fits(part)].append(part)
    return conjunction(both[0]), conjunction(both[1])


def reads_only(names: Iterable[str]) -> Callable[[Term], bool]:
    """Whether a condition reads some attribute, and none but these."""
    known = frozenset(names)
    return lambda part: bool(read := attributes_of(part)) and read <= known


def selected(node: Node, condition: Term) -> Node:
    """σ, or the node itself where the condition is true."""
    return node if condition == TRUE else Select(node, condition)
