"""The table of a layer's families of ordered operators, checked as it is made."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol, TypeVar

from tidegate.algebra.errors import InternalError
from tidegate.algebra.nodes import OrderedNode


class OfNodes(Protocol):
    """What a layer knows of the operators of one class."""

    node: type[OrderedNode]


F = TypeVar("F", bound=OfNodes)


def by_node(
    layer: str, protocol: type[F], families: Iterable[F], *, optional: Iterable[str] = ()
) -> dict[type[OrderedNode], F]:
    """The families of a layer by their classes of nodes.

    `InternalError` TG904 names a family and what it lacks of the protocol, of which only `optional` may be missing.
    """
    facts = [name for name, member in vars(protocol).items() if callable(member) and not name.startswith("_")]
    table: dict[type[OrderedNode], F] = {}
    for family in families:
        of = type(family)
        lacking = [name for name in facts if name not in optional and getattr(of, name) is vars(protocol)[name]]
        if lacking:
            raise InternalError("TG904", f"{of.__name__} in {layer} says nothing of {', '.join(lacking)}")
        table[family.node] = family
    return table
