"""σ_c(ι_x(R)) = ι_x(σ_c(R)) where c does not read x."""

from __future__ import annotations

from tidegate.algebra.nodes import Imbed, Node, Select
from tidegate.algebra.rewrites.conditions import can_fail, partition, selected
from tidegate.algebra.terms import TRUE, attributes_of


def select_through_imbed(node: Node) -> Node | None:
    """Conjuncts that do not read the new attribute move below it; neither they nor the attribute's term can fail."""
    match node:
        case Select(Imbed(input_, name, term) as imbed, condition):
            if can_fail(condition, imbed.schema) or can_fail(term, input_.schema):
                return None
            below, above = partition(condition, lambda part: name not in attributes_of(part))
            return None if below == TRUE else selected(Imbed(Select(input_, below), name, term), above)
        case _:
            return None
