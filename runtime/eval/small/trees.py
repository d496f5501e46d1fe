"""Trees over small batches: every operator is a function of the leaves' rows (TSA Def. 12 to 18)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import assert_never

import numpy as np

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
    children,
    occurrences,
)
from tidegate.algebra.schema import Schema
from tidegate.algebra.types import Kind
from tidegate.runtime.eval.small.groups import grouping
from tidegate.runtime.eval.small.joins import small_join
from tidegate.runtime.eval.small.terms import Value, array_term, column_of
from tidegate.runtime.rows import SmallRows, Unsupported, are_few_pairs, numbered, stacked


@dataclass(frozen=True, slots=True)
class Run:
    """One evaluation: the rows by leaf, and the parts that are computed already, by the number of their first leaf."""

    leaves: Mapping[int, SmallRows]
    ready: Mapping[tuple[int, Node], SmallRows] = field(default_factory=dict)


Step = Callable[[Run], SmallRows]


@lru_cache(maxsize=1024)
def small_tree(node: Node, first: int = 0) -> Step | None:
    """The tree as a function of its leaves, counted from `first`. None where only Polars supports an operator of it.

    Evaluating it raises `Unsupported` where the rows turn out to be for Polars.
    """
    step = _step(node, first)
    if step is None or isinstance(node, Scan | Select | Project | Rename | Imbed):
        return step
    place = first, node

    def known(run: Run) -> SmallRows:
        done = run.ready.get(place) if run.ready else None
        return step(run) if done is None else done

    return known


def _step(node: Node, first: int) -> Step | None:
    inputs: list[Step] = []
    place = first
    for child in children(node):
        step = small_tree(child, place)
        if step is None:
            return None
        inputs.append(step)
        place += len(occurrences(child))
    match node:
        case Scan(stream):
            return _scan(first, stream.schema.names)
        case Union():
            return _union(inputs, node.schema.names)
        case Select() | Project() | Rename() | Imbed() | Group() | Distinct():
            return _above(node, inputs[0])
        case Product() | Join() | Difference():
            return _between(node, inputs[0], inputs[1])
        case OrderedNode():
            return None
        case _:
            assert_never(node)


def _scan(place: int, names: tuple[str, ...]) -> Step:
    return lambda run: run.leaves[place].only(names)


def _union(inputs: Sequence[Step], names: tuple[str, ...]) -> Step:
    return lambda run: stacked([step(run).only(names) for step in inputs])


def _above(node: Select | Project | Rename | Imbed | Group | Distinct, below: Step) -> Step | None:
    """An operator of one input."""
    match node:
        case Project(_, names):
            return lambda run: below(run).only(names)
        case Rename(_, pairs):
            new = dict(pairs)
            return lambda run: _renamed(below(run), new)
        case Select(input_, condition):
            mask = array_term(condition, input_.schema)
            return None if mask is None else lambda run: _selected(below(run), mask)
        case Imbed(input_, name, term):
            value, kind = array_term(term, input_.schema), node.schema[name].type.kind
            return None if value is None else lambda run: _imbedded(below(run), name, value, kind)
        case Group():
            grouped = grouping(node)
            return None if grouped is None else lambda run: grouped.whole(below(run))
        case Distinct():
            return (lambda run: _distinct(below(run))) if _countable(node.schema) else None


def _between(node: Product | Join | Difference, left: Step, right: Step) -> Step | None:
    """An operator of two inputs."""
    match node:
        case Product():
            return lambda run: _product(left(run), right(run))
        case Join():
            join = small_join(node)
            return None if join is None else lambda run: join(left(run), right(run))
        case Difference():
            return (lambda run: _difference(left(run), right(run))) if _countable(node.schema) else None


def _countable(schema: Schema) -> bool:
    """Whether equal rows get equal numbers. Doubles do not, since zero has two signs."""
    return bool(len(schema)) and all(a.type.kind is not Kind.DOUBLE for a in schema.attributes)


def _renamed(rows: SmallRows, new: Mapping[str, str]) -> SmallRows:
    return SmallRows({new.get(name, name): column for name, column in rows.columns.items()}, rows.height)


def _selected(rows: SmallRows, condition: Value) -> SmallRows:
    return rows.where(column_of(condition, Kind.BOOLEAN, rows))


def _imbedded(rows: SmallRows, name: str, value: Value, kind: Kind) -> SmallRows:
    return SmallRows({**rows.columns, name: column_of(value, kind, rows)}, rows.height)


def _distinct(rows: SmallRows) -> SmallRows:
    _, firsts = numbered(rows.columns.values())
    return rows.take(firsts)


def _product(left: SmallRows, right: SmallRows) -> SmallRows:
    if not are_few_pairs(left.height * right.height):
        raise Unsupported
    lefts = left.take(np.repeat(np.arange(left.height), right.height))
    rights = right.take(np.tile(np.arange(right.height), left.height))
    return SmallRows({**lefts.columns, **rights.columns}, lefts.height)


def _difference(left: SmallRows, right: SmallRows) -> SmallRows:
    """The left rows that the right side does not have. None of them has NULL."""
    both = stacked([left, right.only(list(left.columns))])
    numbers, _ = numbered(both.columns.values())
    return left.where(~np.isin(numbers[: left.height], numbers[left.height :]))
