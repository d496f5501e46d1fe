"""Adjacent operators of one kind become one: σ_b(σ_a(R)) = σ_(a ∧ b)(R), π_b(π_a(R)) = π_b(R), δ_b(δ_a(R)) = δ_(b after
a)(R).
"""

from __future__ import annotations

from tidegate.algebra.nodes import Node, Project, Rename, Select
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


def merge_projects(node: Node) -> Node | None:
    """Adjacent projections become one; one that changes nothing vanishes."""
    match node:
        case Project(input_, names) if names == input_.schema.names:
            return input_
        case Project(Project(input_, _), names):
            return Project(input_, names)
        case _:
            return None


def merge_renames(node: Node) -> Node | None:
    """Adjacent renamings become one; one that changes nothing vanishes."""
    match node:
        case Rename(input_, pairs) if all(old == new for old, new in pairs):
            return input_
        case Rename(Rename(input_, first), second):
            once, twice = dict(first), dict(second)
            final = {name: twice.get(once.get(name, name), once.get(name, name)) for name in input_.schema}
            return Rename(input_, tuple((old, new) for old, new in final.items() if old != new))
        case _:
            return None
