"""σ over products and joins: what reads one side only moves to that side."""

from __future__ import annotations

from tidegate.algebra.nodes import Join, Node, Product, Select
from tidegate.algebra.rewrites.conditions import can_fail, partition, reads_only, selected
from tidegate.algebra.terms import TRUE, Term


def select_through_join(node: Node) -> Node | None:
    """σ_(l ∧ r ∧ c)(R ⋈ S) = σ_c(σ_l(R) ⋈ σ_r(S)), l reading R and r reading S only; nothing in it can fail.

    To the left side of every kind of join; to the right side of products and inner joins only, since the others pair
    left rows with what is missing on the right.
    """
    match node:
        case Select(Product() as both, condition):
            pushed = node if can_fail(condition, both.schema) else _through_products(both, condition)
            return None if pushed == node else pushed
        case Select(Join(left, right, _, kind) as both, condition):
            if can_fail(condition, both.schema) or can_fail(both.condition, {**left.schema, **right.schema}):
                return None
            to_left, rest = partition(condition, reads_only(left.schema))
            to_right: Term = TRUE
            if kind == "inner":
                to_right, rest = partition(rest, reads_only(right.schema))
            if to_left == TRUE and to_right == TRUE:
                return None
            return selected(Join(selected(left, to_left), selected(right, to_right), both.condition, kind), rest)
        case _:
            return None


def _through_products(node: Node, condition: Term) -> Node:
    """At once as deep as products go: level by level, the conditions of a hundred streams are checked a hundred
    times.
    """
    if condition == TRUE or not isinstance(node, Product):
        return selected(node, condition)
    to_left, rest = partition(condition, reads_only(node.left.schema))
    to_right, rest = partition(rest, reads_only(node.right.schema))
    if to_left == to_right == TRUE:
        return Select(node, condition)
    return selected(Product(_through_products(node.left, to_left), _through_products(node.right, to_right)), rest)
