"""How a query can be evaluated in portions: each has some rows of one leaf and all rows of the others, and together
they have every result row once.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
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
from tidegate.algebra.terms import Attr, Term, attributes_of, substitute
from tidegate.algebra.typed.operations import term_type
from tidegate.algebra.types import DOUBLE
from tidegate.runtime.plan.steps import Leaf, QueryPlan


@dataclass(frozen=True, slots=True)
class Division:
    """A leaf whose rows can be divided into portions: by the value of a term over its columns; None: row by row."""

    leaf: int
    by: Term | None


@dataclass(frozen=True, slots=True)
class _Divisible:
    """How the rows of a leaf can be divided, seen from a node above: by what an attribute of the node is in terms of
    the leaf's columns, and perhaps row by row.
    """

    terms: Mapping[str, Term]
    by_row: bool = True

    def named(self, names: Mapping[str, str]) -> _Divisible:
        """Attributes by their new names."""
        return _Divisible({names.get(name, name): term for name, term in self.terms.items()}, self.by_row)

    def kept(self, names: Collection[str]) -> _Divisible:
        return _Divisible({name: term for name, term in self.terms.items() if name in names}, self.by_row)

    def meeting(self, names: Collection[str]) -> _Divisible:
        """Where rows that agree in these attributes meet."""
        return _Divisible(self.kept(names).terms, by_row=False)

    def imbedded(self, name: str, term: Term, schema: Schema) -> _Divisible:
        """With an attribute more, where its term reads this leaf alone."""
        read = attributes_of(term)
        if not read or not read <= set(self.terms) or term_type(term, schema) == DOUBLE:
            return self
        of_leaf = substitute(term, lambda part: self.terms[part.name] if isinstance(part, Attr) else part)
        return _Divisible({**self.terms, name: of_leaf}, self.by_row)


#: The leaves that can be divided, by their places.
_Leaves = dict[int, _Divisible]


def divisions(query: QueryPlan) -> tuple[Division, ...]:
    """The leaves of a query that can be divided within a shard, each in one way; none of a grouping of partials or of
    an operator.

    Where rows need not meet, row by row. Else by an instant, or by another value, never by the column that makes the
    shards: a key that has most rows is to be divided.
    """
    if query.grouping is not None or query.ordered is not None:
        return ()
    return divisions_of(query.tree, query.leaves, query.shard_key or ())


def divisions_of(tree: Node, leaves: Sequence[Leaf], keys: Sequence[str | None] = ()) -> tuple[Division, ...]:
    """The same of a tree over leaves; `keys` are the columns by which these are shared out, if they are."""
    found = []
    for place, divisible in sorted(_divisible(tree, leaves, 0).items()):
        buffer, key = leaves[place].buffer, keys[place] if keys else None
        instants = set[str]() if buffer is None else set(buffer.instants)
        if divisible.by_row:
            found.append(Division(place, None))
        elif terms := [term for term in divisible.terms.values() if attributes_of(term) != {key}]:
            found.append(
                Division(place, min(terms, key=lambda term: (not attributes_of(term) <= instants, repr(term))))
            )
    return tuple(found)


def _divisible(node: Node, leaves: Sequence[Leaf], first: int) -> _Leaves:
    """The leaves of a node that can be divided, whose leaves begin at `first`."""
    match node:
        case Scan(stream):
            if leaves[first].buffer is None:
                return {}
            # No double: equal ones may have different hashes.
            return {first: _Divisible({a.name: Attr(a.name) for a in stream.schema.attributes if a.type != DOUBLE})}
        case Select(input_):
            return _divisible(input_, leaves, first)
        case Project(input_, names):
            return {place: one.kept(names) for place, one in _divisible(input_, leaves, first).items()}
        case Rename(input_, pairs):
            return {place: one.named(dict(pairs)) for place, one in _divisible(input_, leaves, first).items()}
        case Imbed(input_, name, term):
            below = _divisible(input_, leaves, first)
            return {place: one.imbedded(name, term, input_.schema) for place, one in below.items()}
        case Group(input_, keys):
            return _meeting(_divisible(input_, leaves, first), keys)
        case Distinct(input_):
            return _meeting(_divisible(input_, leaves, first), input_.schema.names)
        case Product() | Join(_, _, _, "inner"):
            left, right = children(node)
            return _divisible(left, leaves, first) | _divisible(right, leaves, first + len(occurrences(left)))
        case Join(left) | Difference(left):
            # What has no partner on the right would have none in each portion of the right.
            visible = _divisible(left, leaves, first)
            return {place: one.kept(node.schema.names) for place, one in visible.items()}
        case Union() | OrderedNode():
            return {}
        case _:
            assert_never(node)


def _meeting(below: _Leaves, names: Collection[str]) -> _Leaves:
    divisible = {place: one.meeting(names) for place, one in below.items()}
    return {place: one for place, one in divisible.items() if one.terms}
