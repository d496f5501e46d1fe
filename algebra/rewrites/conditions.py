"""What rewrites ask of conditions: which sides they read, and whether they can fail."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tidegate.algebra.nodes import Node, Select
from tidegate.algebra.operations import resolve
from tidegate.algebra.schema import Attribute
from tidegate.algebra.terms import TRUE, Term, attributes_of, conjunction, conjuncts


def can_fail(term: Term, attributes: Mapping[str, Attribute]) -> bool:
    """Whether evaluating the term can fail on some row of these attributes."""
    return resolve(term, attributes).fallible


def partition(condition: Term, fits: Callable[[Term], bool]) -> tuple[Term, Term]:
    """The conjuncts that fit and those that do not, each group as one condition."""
    parts = conjuncts(condition)
    return conjunction([part for part in parts if fits(part)]), conjunction([part for part in parts if not fits(part)])


def reads_only(names: Iterable[str]) -> Callable[[Term], bool]:
    """Whether a condition reads some attribute, and none but these."""
    known = frozenset(names)
    return lambda part: bool(attributes_of(part)) and attributes_of(part) <= known


def selected(node: Node, condition: Term) -> Node:
    """σ, or the node itself where the condition is true."""
    return node if condition == TRUE else Select(node, condition)
