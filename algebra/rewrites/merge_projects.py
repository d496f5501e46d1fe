"""π_b(π_a(R)) = π_b(R), and π of all attributes in their order is R."""

from __future__ import annotations

from tidegate.algebra.nodes import Node, Project


def merge_projects(node: Node) -> Node | None:
    """Adjacent projections become one; one that changes nothing vanishes."""
    match node:
        case Project(input_, names) if names == input_.schema.names:
            return input_
        case Project(Project(input_, _), names):
            return Project(input_, names)
        case _:
            return None
