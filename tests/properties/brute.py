"""All rows of a small world at once: a temporal condition over a grid of instants, in plain numpy."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from tidegate.algebra.terms import Attr, Call, Lit, Term

Grid = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]


def grid(names: tuple[str, ...], low: int, high: int) -> dict[str, Grid]:
    """Every assignment of low..high to the names, one flat column each."""
    axes = np.meshgrid(*[np.arange(low, high + 1, dtype=np.int64)] * len(names), indexing="ij")
    return {name: axis.reshape(-1) for name, axis in zip(names, axes, strict=True)}


def instants(term: Term, columns: Mapping[str, Grid]) -> Grid:
    match term:
        case Attr(name):
            return columns[name]
        case Lit(int(value), _):
            return np.asarray(value, dtype=np.int64)
        case Call("add", (a, b)):
            return instants(a, columns) + instants(b, columns)
        case Call("sub", (a, b)):
            return instants(a, columns) - instants(b, columns)
        case Call("least", args):
            least: Grid = np.minimum.reduce(np.broadcast_arrays(*(instants(arg, columns) for arg in args)))
            return least
        case Call("greatest", args):
            greatest: Grid = np.maximum.reduce(np.broadcast_arrays(*(instants(arg, columns) for arg in args)))
            return greatest
        case Call("floor", (a, Lit(int(unit), _))):
            return instants(a, columns) // unit * unit
        case Call("ceil", (a, Lit(int(unit), _))):
            return -(-instants(a, columns) // unit * unit)
        case _:
            raise ValueError(f"no instant: {term}")


def some(masks: list[Mask], size: int) -> Mask:
    """Where any of the masks is true; nowhere, of none."""
    found: Mask = np.logical_or.reduce([np.zeros(size, dtype=bool), *masks])
    return found


def every(masks: list[Mask], size: int) -> Mask:
    """Where all of the masks are true; everywhere, of none."""
    found: Mask = np.logical_and.reduce([np.ones(size, dtype=bool), *masks])
    return found


def holds(term: Term, columns: Mapping[str, Grid]) -> Mask:
    first = next(iter(columns.values()))
    size = len(first)
    match term:
        case Lit(bool(value), _):
            return np.full(size, value)
        case Call("and", args):
            return every([holds(arg, columns) for arg in args], size)
        case Call("or", args):
            return some([holds(arg, columns) for arg in args], size)
        case Call("not", (arg,)):
            return np.logical_not(holds(arg, columns))
        case Call(op, (left, right)):
            a, b = instants(left, columns), instants(right, columns)
            compared: Mask = {
                "le": np.less_equal,
                "lt": np.less,
                "ge": np.greater_equal,
                "gt": np.greater,
                "eq": np.equal,
                "ne": np.not_equal,
            }[op](a, b)
            return np.broadcast_to(compared, first.shape)
        case _:
            raise ValueError(f"no temporal condition: {term}")
