"""σ_c(R × S) = R ⋈_c S, and σ_d(R ⋈_c S) = R ⋈_(c ∧ d) S."""

from __future__ import annotations

from tidegate.algebra.nodes import Join, Node, Product, Select
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.terms import conjunction


def join_from_product(node: Node) -> Node | None:
    """A selection over a product is a join; one over an inner join belongs to its condition, unless it can fail."""
    match node:
        case Select(Product(left, right), condition):
            return Join(left, right, condition, "inner")
        case Select(Join(left, right, condition, "inner") as join, more) if not can_fail(more, join.schema):
            return Join(left, right, conjunction([condition, more]), "inner")
        case _:
            return None
