"""Whether a query can be evaluated shard by shard: it needs an equality key such that rows of different shards never
meet. And by which of its leaves the shards with results are known.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import assert_never

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
from tidegate.algebra.terms import Attr
from tidegate.algebra.typed.failures import has_fallible_term
from tidegate.algebra.types import DOUBLE
from tidegate.runtime.plan.join_parts import join_parts
from tidegate.runtime.plan.steps import Leaf, Plan

#: Up to so much relevant data an increment is cheaper in the driver than as a Spark job.
DRIVER_BYTES = 64 << 20
#: Up to so much relevant data a task, an increment with a key to shard by is cheaper as one stage of embedded steps.
SHARD_BYTES = 128 << 20

#: By attribute of a result: for each leaf the column whose value is that attribute's in all rows made of the leaf's
#: row.
_Keys = dict[str, dict[int, str]]


def shard_key(tree: Node, leaves: Sequence[Leaf], grouping: Group | None) -> tuple[str | None, ...] | None:
    """The column by which each leaf's rows are sharded, or None. A leaf's None: every shard reads the static table
    whole.

    Equal keys meet in one shard; nothing in the tree looks at two rows with different keys together.
    """
    if grouping is not None:
        schema = grouping.input.schema
        keys = [key for key in grouping.keys if schema[key].type != DOUBLE]
        return (keys[0],) if keys else None
    ways = _keys(tree, leaves, 0)
    best = min(ways.values(), key=lambda columns: tuple(sorted(columns.items())), default=None) if ways else None
    if best is None:
        return None
    return tuple(best.get(place) for place in range(len(leaves)))


def buffer_keys(plan: Plan) -> dict[str, str]:
    """Per buffer the column by which most queries that read it share its rows out, the first of several by name; none
    for a buffer that nobody shares out.
    """
    uses: dict[str, Counter[str]] = {}
    for query in plan.queries:
        for leaf, key in zip(query.leaves, query.shard_key or (), strict=False):  # most queries have none
            if leaf.buffer is not None and key is not None:
                uses.setdefault(leaf.buffer.id, Counter())[key] += 1
    return {name: min((-count, key) for key, count in counts.items())[1] for name, counts in uses.items()}


def _keys(node: Node, leaves: Sequence[Leaf], first: int) -> _Keys | None:
    """The attributes by which the node's rows can be sharded. None: the part has no streams and is whole in every
    shard.
    """
    if all(leaf.buffer is None for leaf in leaves[first : first + len(occurrences(node))]):
        return None
    match node:
        case Scan(stream):
            return {a.name: {first: a.name} for a in stream.schema.attributes if a.type != DOUBLE}
        case Select(input_) | Distinct(input_):
            return _keys(input_, leaves, first)
        case Project(input_, names):
            return _kept(_keys(input_, leaves, first), names)
        case Rename(input_, pairs):
            new = dict(pairs)
            return {new.get(name, name): columns for name, columns in (_keys(input_, leaves, first) or {}).items()}
        case Imbed(input_, name, term):
            known = dict(_keys(input_, leaves, first) or {})
            return known | {name: known[term.name]} if isinstance(term, Attr) and term.name in known else known
        case Group(input_, keys):
            return _kept(_keys(input_, leaves, first), keys)
        case Union(inputs):
            return _union(inputs, leaves, first)
        case Product() | Join() | Difference():
            left = _keys(node.left, leaves, first)
            right = _keys(node.right, leaves, first + len(occurrences(node.left)))
            return _both(node, left, right)
        case OrderedNode():
            return {}
        case _:
            assert_never(node)


def _kept(keys: _Keys | None, names: Sequence[str]) -> _Keys:
    return {name: (keys or {})[name] for name in names if name in (keys or {})}


def _both(node: Product | Join | Difference, left: _Keys | None, right: _Keys | None) -> _Keys:
    if isinstance(node, Difference):
        if left is None:  # its rows stand in every shard
            return {}
        return left if right is None else {a: left[a] | right[a] for a in left if a in right}
    kind = "inner" if isinstance(node, Product) else node.kind
    if right is None:
        return left or {}
    if left is None:
        return right if kind == "inner" else {}
    keys: _Keys = {}
    if isinstance(node, Join):
        for left_key, right_key in _equal(node):
            if left_key in left and right_key in right:
                together = left[left_key] | right[right_key]
                keys[left_key] = together
                if kind == "inner":
                    keys[right_key] = together
    return keys


def _equal(node: Join) -> list[tuple[str, str]]:
    """The attributes of both sides that the condition makes equal and that have one type."""
    left, right = node.left.schema, node.right.schema
    both = Schema((*left.attributes, *right.attributes))
    return [
        (e.left.name, e.right.name)
        for e in join_parts(node.condition, left, right).equalities
        if isinstance(e.left, Attr) and isinstance(e.right, Attr) and both[e.left.name].type == both[e.right.name].type
    ]


def _union(inputs: Sequence[Node], leaves: Sequence[Leaf], first: int) -> _Keys:
    common: _Keys | None = None
    for input_ in inputs:
        keys = _keys(input_, leaves, first)
        first += len(occurrences(input_))
        if keys is None:  # its rows would stand in every shard
            return {}
        common = keys if common is None else {a: common[a] | keys[a] for a in common if a in keys}
    return common or {}


def required_leaves(tree: Node, leaves: Sequence[Leaf]) -> tuple[int, ...]:
    """The leaves of which every result row has a row, and so has every row that a term of the query has no value for.

    The second matters since such rows are counted, or fail the batch, whether or not they lead to a result.
    """
    required = _required(tree, leaves, 0)
    return tuple(sorted(required.by_rows.intersection(*required.by_failures)))


@dataclass(frozen=True, slots=True)
class _RequiredLeaves:
    """The leaves of which every row of a node has a row, and of which whatever has no value for a term has one: for
    each operator that can fail, this one or one below it.
    """

    by_rows: frozenset[int]
    by_failures: tuple[frozenset[int], ...] = ()


def _required(node: Node, leaves: Sequence[Leaf], first: int) -> _RequiredLeaves:
    """Of a node whose leaves begin at `first`."""
    inputs, end = list[_RequiredLeaves](), first
    for child in children(node):
        inputs.append(_required(child, leaves, end))
        end += len(occurrences(child))
    below = [required.by_rows for required in inputs]
    match node:
        case Scan():
            read = produced = frozenset() if leaves[first].buffer is None else frozenset({first})
        case Select() | Project() | Rename() | Imbed() | Group() | Distinct():
            read = produced = below[0]
        case Union():
            read = produced = frozenset.intersection(*below)
        case Product() | Join(_, _, _, "inner" | "semi"):
            read = produced = below[0] | below[1]
        case Join() | Difference():
            read, produced = below[0] | below[1], below[0]
        case OrderedNode():
            read = produced = frozenset()
        case _:
            assert_never(node)
    failures = tuple(failure for required in inputs for failure in required.by_failures)
    if has_fallible_term(node) and any(leaf.buffer is not None for leaf in leaves[first:end]):
        failures = (*failures, read)
    return _RequiredLeaves(produced, failures)
