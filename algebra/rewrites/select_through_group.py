"""σ_c(γ(R)) = γ(σ_c(R)) where c reads keys only."""

from __future__ import annotations

from tidegate.algebra.nodes import Group, Node, Select
from tidegate.algebra.rewrites.conditions import can_fail, partition, reads_only, selected
from tidegate.algebra.terms import TRUE


def select_through_group(node: Node) -> Node | None:
    """Conjuncts on the keys of groups move below the grouping; no condition and no aggregate's argument can fail."""
    match node:
        case Select(Group(input_, keys, aggregates) as group, condition):
            read = [term for aggregate in aggregates for term in aggregate.terms]
            if can_fail(condition, group.schema) or any(can_fail(term, input_.schema) for term in read):
                return None
            below, above = partition(condition, reads_only(keys))
            return None if below == TRUE else selected(Group(Select(input_, below), keys, aggregates), above)
        case _:
            return None
