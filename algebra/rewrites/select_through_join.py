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
        case Select(Product(left, right) | Join(left, right, _, _) as both, condition):
            if can_fail(condition, both.schema):
                return None
            if isinstance(both, Join) and can_fail(both.condition, {**left.schema, **right.schema}):
                return None
            to_left, rest = partition(condition, reads_only(left.schema))
            to_right: Term = TRUE
            if isinstance(both, Product) or both.kind == "inner":
                to_right, rest = partition(rest, reads_only(right.schema))
            if to_left == TRUE and to_right == TRUE:
                return None
            inputs = selected(left, to_left), selected(right, to_right)
            made = Product(*inputs) if isinstance(both, Product) else Join(*inputs, both.condition, both.kind)
            return selected(made, rest)
        case _:
            return None
