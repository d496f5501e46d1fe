"""Which stored rows of a leaf a row of another leaf can meet in a join: those between two instants, or any one that
decides.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import assert_never

from tidegate.algebra.formulas import Shift, Var, temporal_term
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
from tidegate.algebra.terms import Attr, Term, attributes_of
from tidegate.algebra.typed.failures import has_fallible_term
from tidegate.runtime.plan.join_parts import Range, join_parts


@dataclass(frozen=True, slots=True)
class Bound:
    """A limit of the rows that are looked up: the value of a column of the first leaf, plus a constant."""

    column: str
    plus: int


@dataclass(frozen=True, slots=True)
class Decider:
    """The condition of a semi- or anti-join of two leaves, over `both` sides: one row for which it holds decides about
    a left row.

    `left` and `right` are the attributes that it reads, each with the stored column that it is.
    """

    condition: Term
    both: Schema
    left: tuple[tuple[str, str], ...]
    right: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class LookUp:
    """The rows of a leaf that a row of the first leaf can meet, besides that their keys are equal.

    Their `column` lies at or above each of `lower`, and at or below each of `upper`. With `decider`, which joins the
    rows of the first leaf with those of this one, no more than one of them is needed.
    """

    leaf: int
    column: str | None = None
    lower: tuple[Bound, ...] = ()
    upper: tuple[Bound, ...] = ()
    decider: Decider | None = None


@lru_cache(maxsize=1024)
def look_ups(tree: Node, first: int) -> tuple[LookUp, ...]:
    """What the joins of a tree say of the leaves whose rows are looked up for those of the leaf `first`.

    Every result row has a row of the first leaf. Each such join has the same rows without those that are not looked
    up, so what stands above it has too. A condition that can fail says nothing, since it may fail for other pairs.
    """
    return tuple(_look_ups(tree, 0, first))


def _look_ups(node: Node, place: int, first: int) -> Iterator[LookUp]:
    """Of the joins between the leaf `first` and a node whose leaves begin at `place`."""
    for number, child in enumerate(children(node)):
        end = place + len(occurrences(child))
        if place <= first < end:
            if isinstance(node, Join) and not has_fallible_term(node):
                yield from _of_join(node, number == 0, place, first)
            yield from _look_ups(child, place, first)
            return
        place = end


def _of_join(node: Join, on_left: bool, place: int, first: int) -> Iterator[LookUp]:
    """Of a join with the first leaf on its left side, or else on its right one, whose leaves begin at `place`."""
    own, other = (node.left, node.right) if on_left else (node.right, node.left)
    stored = _stored_columns(other)
    if stored is None:
        return
    leaf = place + len(occurrences(own)) if on_left else place - 1
    lower, upper = dict[str, list[Bound]](), dict[str, list[Bound]]()
    for range_ in join_parts(node.condition, node.left.schema, node.right.schema).ranges:
        limit = _limit(range_, on_left, own, other, first - place)
        if limit is not None:
            name, bound, is_lower = limit
            (lower if is_lower else upper).setdefault(stored[name], []).append(bound)
    columns = dict.fromkeys((*lower, *upper))
    column = max(columns, key=lambda name: (name in lower) + (name in upper), default=None)
    decider = _decider(node) if on_left and node.kind in ("semi", "anti") else None
    if column is not None:
        yield LookUp(leaf, column, tuple(lower.get(column, ())), tuple(upper.get(column, ())), decider)
    elif decider is not None:
        yield LookUp(leaf, decider=decider)


def _decider(node: Join) -> Decider | None:
    """Of a join whose sides are rows of one leaf each, as they are stored."""
    left, right = _stored_columns(node.left), _stored_columns(node.right)
    if left is None or right is None:
        return None
    names = attributes_of(node.condition)
    read = (tuple((name, side[name]) for name in side if name in names) for side in (left, right))
    return Decider(node.condition, Schema((*node.left.schema.attributes, *node.right.schema.attributes)), *read)


def _limit(range_: Range, on_left: bool, own: Node, other: Node, first: int) -> tuple[str, Bound, bool] | None:
    """A limit of an attribute of the other side by a column of the first leaf, and whether it is a lower one."""
    own_is_less = range_.left_first == on_left
    less, greater = (
        _shifted(range_.left, own if own_is_less else other),
        _shifted(range_.right, other if own_is_less else own),
    )
    if less is None or greater is None:
        return None
    (mine, by), (name, other_by) = (less, greater) if own_is_less else (greater, less)
    column = _origin(own, mine, first)
    if column is None:
        return None
    strict = int(range_.strict) if own_is_less else -int(range_.strict)
    return name, Bound(column, by - other_by + strict), own_is_less


def _shifted(term: Term, side: Node) -> tuple[str, int] | None:
    """The attribute whose value, plus a constant, a term is."""
    match temporal_term(term, side.schema):
        case Var(name):
            return name, 0
        case Shift(Var(name), by):
            return name, by
        case _:
            return (term.name, 0) if isinstance(term, Attr) else None


def _stored_columns(node: Node) -> Mapping[str, str] | None:
    """The stored column of each attribute, of a node that has the rows of one leaf as they are stored."""
    match node:
        case Scan(stream):
            return {name: name for name in stream.schema.names}
        case Rename(input_, pairs):
            below = _stored_columns(input_)
            new = dict(pairs)
            return None if below is None else {new.get(name, name): column for name, column in below.items()}
        case Project(input_, names):
            below = _stored_columns(input_)
            return None if below is None else {name: below[name] for name in names}
        case _:
            return None


def _origin(node: Node, name: str, leaf: int) -> str | None:
    """The column of a leaf, counted from the node's first, whose value an attribute has in each row that is made of a
    row of the leaf.
    """
    match node:
        case Scan():
            return name if leaf == 0 else None
        case Select(input_) | Distinct(input_) | Project(input_):
            return _origin(input_, name, leaf)
        case Rename(input_, pairs):
            return _origin(input_, {new: old for old, new in pairs}.get(name, name), leaf)
        case Imbed(input_, made, _):
            return None if name == made else _origin(input_, name, leaf)
        case Group(input_, keys):
            return _origin(input_, name, leaf) if name in keys else None
        case Product(left, right) | Join(left, right):
            if name in left.schema:
                return _origin(left, name, leaf)
            return _origin(right, name, leaf - len(occurrences(left)))
        case Union() | Difference() | OrderedNode():
            return None
        case _:
            assert_never(node)
