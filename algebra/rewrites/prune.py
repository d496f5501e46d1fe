"""Attributes that nobody reads are dropped as early as possible."""

from __future__ import annotations

from collections.abc import Iterable

from tidegate.algebra.functions.aggregates import Aggregate
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
    unless_equal,
)
from tidegate.algebra.rewrites.conditions import can_fail
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import attributes_of

Names = frozenset[str]


def prune(node: Node) -> Node | None:
    """What π, γ and the right sides of ⋉ and anti-joins do not read is dropped below them.

    Projections land on the inputs of joins, groups and unions, never between a selection and its input: selections
    move through projections, so neither undoes the other. Distinct and difference compare whole rows: nothing moves
    through them.
    """
    match node:
        case Project(input_, names):
            return Project(_shrink(input_, frozenset(names)), names)
        case Group(input_, keys, aggregates):
            return Group(_narrow(input_, _group_reads(keys, aggregates)), keys, aggregates)
        case Join(left, right, condition, ("semi" | "anti") as kind):
            return Join(left, _narrow(right, attributes_of(condition) & right.schema.keys()), condition, kind)
        case _:
            return None


def _narrow(node: Node, needed: Names) -> Node:
    """The rows of the node with exactly the needed attributes (one, where none is needed: rows must be countable)."""
    if not needed:
        needed = frozenset(node.schema.names[:1])
    if isinstance(node, Rename):
        return renamed_where_there(_narrow(node.input, _old_names(node, needed)), node)
    shrunk = _shrink(node, needed)
    return shrunk if shrunk.schema.keys() == needed else Project(shrunk, _ordered(shrunk.schema, needed))


def _shrink(node: Node, needed: Names) -> Node:
    """The rows of the node with at least the needed attributes, and fewer of the others where that costs nothing."""
    match node:
        case Scan() | Distinct() | Difference() | OrderedNode():
            return node
        case Select(input_, condition):
            return unless_equal(node, Select(_shrink(input_, needed | attributes_of(condition)), condition))
        case Project(input_, names):
            kept = tuple(name for name in names if name in needed) or names[:1]
            if kept == names:
                return node  # what is below is pruned from here, by itself: otherwise a chain is walked once a join
            return unless_equal(node, Project(_shrink(input_, frozenset(kept)), kept))
        case Rename(input_, _):
            return unless_equal(node, renamed_where_there(_shrink(input_, _old_names(node, needed)), node))
        case Imbed(input_, name, term):
            if name not in needed and needed and not can_fail(term, input_.schema):
                return _shrink(input_, needed)
            return unless_equal(node, Imbed(_shrink(input_, (needed - {name}) | attributes_of(term)), name, term))
        case Group(input_, keys, aggregates):
            kept_aggregates = tuple(a for a in aggregates if a.name in needed or _can_fail(a, input_.schema))
            if not keys and not kept_aggregates:
                kept_aggregates = aggregates[:1]
            return unless_equal(
                node, Group(_narrow(input_, _group_reads(keys, kept_aggregates)), keys, kept_aggregates)
            )
        case Product(left, right):
            return unless_equal(
                node, Product(_narrow(left, needed & left.schema.keys()), _narrow(right, needed & right.schema.keys()))
            )
        case Join(left, right, condition, kind):
            wanted = needed | attributes_of(condition)
            sides = _narrow(left, wanted & left.schema.keys()), _narrow(right, wanted & right.schema.keys())
            return unless_equal(node, Join(*sides, condition, kind))
        case Union(inputs):
            return unless_equal(node, Union(tuple(_narrow(input_, needed) for input_ in inputs)))


def _group_reads(keys: Iterable[str], aggregates: Iterable[Aggregate]) -> Names:
    return frozenset(keys).union(*(attributes_of(term) for aggregate in aggregates for term in aggregate.terms))


def _can_fail(aggregate: Aggregate, schema: Schema) -> bool:
    return aggregate.entry.lenient is not None or any(can_fail(term, schema) for term in aggregate.terms)


def _old_names(rename: Rename, needed: Names) -> Names:
    old = {new: name for name, new in rename.pairs}
    return frozenset(old.get(name, name) for name in needed)


def renamed_where_there(input_: Node, rename: Rename) -> Node:
    """The renaming over an input that may lack some of its attributes."""
    pairs = tuple((old, new) for old, new in rename.pairs if old in input_.schema)
    return Rename(input_, pairs) if pairs else input_


def _ordered(schema: Schema, needed: Names) -> tuple[str, ...]:
    return tuple(name for name in schema.names if name in needed)
