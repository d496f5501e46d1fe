"""σ_b(σ_a(R)) = σ_(a ∧ b)(R)."""

from __future__ import annotations

from tidegate.algebra.nodes import Node, Select
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.terms import TRUE, conjunction


def merge_selects(node: Node) -> Node | None:
    """Adjacent selections become one, and σ_true vanishes.

    Not where `b` can fail: the conjunction evaluates it on rows for which `a` is NULL, the selections do not.
    """
    match node:
        case Select(input_, condition) if condition == TRUE:
            return input_
        case Select(Select(input_, first), second) if not can_fail(second, input_.schema):
            return Select(input_, conjunction([first, second]))
        case _:
            return None
