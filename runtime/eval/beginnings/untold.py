"""What a row at the start of an interval does not say of the rows that a buffer will store of it (rule R21)."""

from __future__ import annotations

from functools import lru_cache

from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Scan, Select
from tidegate.algebra.schema import Begins
from tidegate.algebra.terms import attributes_of
from tidegate.runtime.plan.steps import Buffer


@lru_cache(maxsize=256)
def untold(buffer: Buffer) -> frozenset[str] | None:
    """The stored attributes, beside the end, that are not known when an interval begins; None where it is not known
    whether the buffer will store it.
    """
    begins = buffer.stream.begins
    if begins is None or buffer.statics or buffer.holds != "rows":
        return None
    unknown = _unknown(buffer.chain, begins)
    return None if unknown is None else unknown - {begins.end}


def _unknown(node: Node, begins: Begins) -> frozenset[str] | None:
    """The attributes of a row-wise part that a beginning does not say; None where a condition reads one of them."""
    match node:
        case Scan(stream):
            return frozenset(stream.schema) & {begins.end, *begins.later}
        case Project(input_, names):
            unknown = _unknown(input_, begins)
            return None if unknown is None else unknown & frozenset(names)
        case Rename(input_, pairs):
            unknown, new = _unknown(input_, begins), dict(pairs)
            return None if unknown is None else frozenset(new.get(name, name) for name in unknown)
        case Select(input_, condition):
            unknown = _unknown(input_, begins)
            return None if unknown is None or attributes_of(condition) & unknown else unknown
        case Imbed(input_, name, term):
            unknown = _unknown(input_, begins)
            if unknown is None:
                return None
            return unknown | {name} if attributes_of(term) & unknown else unknown
        case _:
            return None
