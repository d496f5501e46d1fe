"""σ moves below what leaves the values of rows alone: δ, π and distinct."""

from __future__ import annotations

from tidegate.algebra.nodes import Distinct, Node, Project, Rename, Select
from tidegate.algebra.row_wise import term_below


def select_through_names(node: Node) -> Node | None:
    """σ_c(δ(R)) = δ(σ_c'(R)), σ_c(π(R)) = π(σ_c(R)), σ_c(distinct(R)) = distinct(σ_c(R)); c' speaks of the old names.

    The rows on which the condition is evaluated have the same values, so a condition that can fail moves as well.
    """
    match node:
        case Select(Rename(input_, pairs) as rename, condition):
            return Rename(Select(input_, term_below(condition, rename)), pairs)
        case Select(Project(input_, names), condition):
            return Project(Select(input_, condition), names)
        case Select(Distinct(input_), condition):
            return Distinct(Select(input_, condition))
        case _:
            return None
