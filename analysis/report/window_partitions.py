"""Partitions that are windows: rows that an operator tells apart by when their window began."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from tidegate.algebra.nodes import Group, Imbed, Node, Rename, Scan, children
from tidegate.algebra.ordered.transitions.definition import BEGAN
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.ordered.windows.node import Windows
from tidegate.algebra.program import ProgramDef, Query
from tidegate.algebra.row_wise import ordered_operator
from tidegate.algebra.terms import Attr


def window_keys(query: Query, program: ProgramDef) -> tuple[str, ...]:
    """The keys of the ordered operator of an analysed query in which stands when a window of a context began.

    Such a partition has no further row once its window has ended. The operator is not told so: it frees what it keeps
    of the partition by its limits in time, if it has any.
    """
    operator = ordered_operator(query.node)
    if operator is None:
        return ()
    feeding: dict[str, list[Node]] = {}
    for other in program.queries:
        feeding.setdefault(other.stream, []).append(other.node)
    beginnings = _Beginnings(feeding)
    keys = [key for reading in operator.readings for key in reading.keys if beginnings.has(reading.input, key)]
    return tuple(dict.fromkeys(keys))


@dataclass(frozen=True, slots=True)
class _Beginnings:
    """Which attributes are beginnings of windows, given the queries of each result."""

    feeding: Mapping[str, Sequence[Node]]
    known: dict[tuple[Node, str], bool] = field(default_factory=dict)

    def has(self, node: Node, name: str) -> bool:
        place = (node, name)
        if place not in self.known:
            self.known[place] = False  # of a result that is read by itself only what others bring
            self.known[place] = self._has(node, name)
        return self.known[place]

    def _has(self, node: Node, name: str) -> bool:
        match node:
            case Transitions():
                return name == BEGAN
            case Scan(stream):
                return any(self.has(made, name) for made in self.feeding.get(stream.name, ()))
            case Rename(below, pairs):
                return self.has(below, {new: old for old, new in pairs}.get(name, name))
            case Imbed(below, made, term) if made == name:
                return isinstance(term, Attr) and self.has(below, term.name)
            case Group(keys=keys) | Windows(keys=keys) if name not in keys:
                return False
            case _:
                return any(self.has(child, name) for child in children(node) if name in child.schema)
