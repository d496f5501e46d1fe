"""Conditions of joins: what reads one side only becomes a selection of that side."""

from __future__ import annotations

from tidegate.algebra.nodes import Join, Node
from tidegate.algebra.rewrites.conditions import can_fail, partition, reads_only, selected
from tidegate.algebra.terms import TRUE, Term


def select_in_join(node: Node) -> Node | None:
    """R ⋈_(l ∧ r ∧ c) S = σ_l(R) ⋈_c σ_r(S); for left and anti-joins, whose left rows stay, only r moves."""
    match node:
        case Join(left, right, condition, kind):
            if can_fail(condition, {**left.schema, **right.schema}):
                return None
            to_right, rest = partition(condition, reads_only(right.schema))
            to_left: Term = TRUE
            if kind in ("inner", "semi"):
                to_left, rest = partition(rest, reads_only(left.schema))
            if to_left == TRUE and to_right == TRUE:
                return None
            return Join(selected(left, to_left), selected(right, to_right), rest, kind)
        case _:
            return None
