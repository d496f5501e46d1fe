"""Attributes as the user of a query writes them."""

from __future__ import annotations

from tidegate.algebra.dsl.here import written_attribute
from tidegate.algebra.nodes import (
    Distinct,
    Imbed,
    Join,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    occurrences,
)
from tidegate.analysis.inner_queries import inner_owner, users_names


def written_name(name: str, node: Node) -> str:
    """An attribute as its user writes it: after the variable that holds its relation, if there is one."""
    origin = _origin(name, node)
    streams = () if origin is None else occurrences(origin)
    return written_attribute(qualified_name(name, node), node, users_names(streams))


def qualified_name(name: str, node: Node) -> str:
    """An attribute as errors name it: one that still has the name that its stream gave it stands after the stream."""
    origin = _origin(name, node)
    stream = origin.stream if isinstance(origin, Scan) and "." not in name else None
    return name if stream is None or inner_owner(stream.name) else f"{stream.name}.{name}"


def _origin(name: str, node: Node) -> Node | None:
    """What gave an attribute its name: a stream, a new name or an ordered operator; None where it is computed."""
    match node:
        case Scan() | OrderedNode():
            return node
        case Select() | Project() | Distinct():
            return _origin(name, node.input)
        case Imbed(input_, computed, _):
            return None if name == computed else _origin(name, input_)
        case Rename(input_, pairs):
            return node if name in dict(pairs).values() else _origin(name, input_)
        case Join(left, right, _, _) | Product(left, right):
            return _origin(name, left if name in left.schema else right)
        case _:
            return None
