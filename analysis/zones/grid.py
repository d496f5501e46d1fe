"""Grids of instants, such as the ends of windows. Between two points of a grid no row can become final."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import assert_never

from tidegate.algebra.formulas import Ceil, Floor, Greatest, Least, Shift, TemporalTerm, Var, temporal_term
from tidegate.algebra.nodes import (
    Difference,
    Distinct,
    Group,
    Imbed,
    Join,
    Node,
    OrderedNode,
    Product,
    Project,
    Rename,
    Scan,
    Select,
    Union,
)
from tidegate.algebra.time import Extended


@dataclass(frozen=True, slots=True)
class Grid:
    """The instants `offset + k * unit` for whole k, in ticks."""

    unit: int
    offset: int = 0

    def between(self, old: Extended, new: Extended) -> bool:
        """Whether a point of the grid may lie after `old` and not after `new`."""
        if new == old:
            return False
        if isinstance(old, float) or isinstance(new, float):
            return True  # one of them is infinite
        return (new - self.offset) // self.unit > (old - self.offset) // self.unit


def grids(node: Node, attributes: tuple[str, ...]) -> dict[str, Grid]:
    """The grids of those attributes of the rows of an expression that provably lie on one."""
    return {name: grid for name in attributes if (grid := _grid(node, name)) is not None}


def may_pass(grids: Mapping[str, Grid], old: Mapping[str, Extended], new: Mapping[str, Extended]) -> bool:
    """Whether a row can be final at `new` that was not at `old`.

    A row that passes has an instant a with old < a <= new (rule R13): where every one that progressed lies on a grid
    with no point there, no row passes.
    """
    return any(p != old[a] and (a not in grids or grids[a].between(old[a], p)) for a, p in new.items())


def _grid(node: Node, name: str) -> Grid | None:
    match node:
        case Imbed(below, defined, term) if defined == name:
            return _of_term(temporal_term(term, below.schema), below)
        case Select(below) | Project(below) | Distinct(below) | Imbed(below):
            return _grid(below, name)
        case Rename(below, pairs):
            return _grid(below, {new: old for old, new in pairs}.get(name, name))
        case Group(below, keys):
            return _grid(below, name) if name in keys else None
        case Difference(left):
            return _grid(left, name)
        case Product(left, right) | Join(left, right):
            return _grid(left if name in left.schema else right, name)
        case Union(inputs):
            first, *others = (_grid(input_, name) for input_ in inputs)
            return first if all(grid == first for grid in others) else None
        case Scan() | OrderedNode():
            return None
        case _:
            assert_never(node)


def _of_term(term: TemporalTerm | None, node: Node) -> Grid | None:
    match term:
        case Floor(_, unit) | Ceil(_, unit):
            return Grid(unit)
        case Shift(inner, by):
            grid = _of_term(inner, node)
            return grid and Grid(grid.unit, (grid.offset + by) % grid.unit)
        case Var(name):
            return _grid(node, name)
        case Least() | Greatest() | None:
            return None
        case _:
            assert_never(term)
