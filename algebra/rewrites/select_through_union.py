"""σ_c(R ∪ S) = σ_c(R) ∪ σ_c(S) and σ_c(R ∖ S) = σ_c(R) ∖ S."""

from __future__ import annotations

from tidegate.algebra.nodes import Difference, Node, Select, Union
from tidegate.algebra.rewrites.conditions import can_fail


def select_through_union(node: Node) -> Node | None:
    """Selections move into all inputs of a union, and into the left one of a difference unless they can fail."""
    match node:
        case Select(Union(inputs), condition):
            return Union(tuple(Select(input_, condition) for input_ in inputs))
        case Select(Difference(left, right), condition) if not can_fail(condition, left.schema):
            return Difference(Select(left, condition), right)
        case _:
            return None
