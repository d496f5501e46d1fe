"""Which parts of a query look at the rows of one stream one by one, and which operators gather them in order."""

from __future__ import annotations

from tidegate.algebra.nodes import (
    Derive,
    Imbed,
    Join,
    Match,
    Node,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    children,
    occurrences,
)


def is_row_wise(node: Node) -> bool:
    """Whether the node maps each row of its one stream to result rows by itself, whatever the other rows are."""
    match node:
        case Scan(stream):
            return not stream.static
        case Select() | Project() | Rename() | Imbed():
            return is_row_wise(node.input)
        case Join(left, right, _, kind):
            return (is_row_wise(left) and is_static(right)) or (
                kind == "inner" and is_static(left) and is_row_wise(right)
            )
        case Product(left, right):
            return (is_row_wise(left) and is_static(right)) or (is_static(left) and is_row_wise(right))
        case _:
            return False


def is_static(node: Node) -> bool:
    """Whether the node reads static tables only."""
    return all(stream.static for stream in occurrences(node))


def ordered_operator(node: Node) -> Derive | Match | None:
    """The operator that gathers events in order, of a query that is such an operator below row-wise ones, above row-wise parts."""
    current = node
    while isinstance(current, Select | Project | Rename | Imbed):
        current = current.input
    if not isinstance(current, Derive | Match):
        return None
    return current if all(is_row_wise(one.input) for one in derivations(current)) else None


def derivations(operator: Derive | Match) -> tuple[Derive, ...]:
    """The situations that an operator derives."""
    return (operator,) if isinstance(operator, Derive) else operator.situations


def has_ordered_operator(node: Node) -> bool:
    """Whether some part of a query gathers events in order."""
    return isinstance(node, Derive | Match) or any(map(has_ordered_operator, children(node)))
