"""δ_b(δ_a(R)) = δ_(b after a)(R), and δ that renames nothing is R."""

from __future__ import annotations

from tidegate.algebra.nodes import Node, Rename


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
