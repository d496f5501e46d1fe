"""Rows in contexts as nodes: the filter that a look-up is, apart from the rows that it looks at."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from tidegate.algebra.dsl.contexts.look_up import began_before, ends, holds
from tidegate.algebra.nodes import Node, Project, Rename, Scan, Select
from tidegate.algebra.ordered.asof import AsOf
from tidegate.algebra.ordered.transitions.definition import BEGAN, CHANGE, CONTEXT, TIME
from tidegate.algebra.ordered.transitions.grouped import GroupedWindows
from tidegate.algebra.ordered.transitions.node import Transitions
from tidegate.algebra.program import Query
from tidegate.algebra.schema import Schema
from tidegate.algebra.terms import TRUE, Attr, Call, Lit, Term, attributes_of, conjunction, conjuncts, rename_attributes

#: The models of contexts of a program, by the streams that their changes alone feed.
Models: TypeAlias = Mapping[str, Transitions]


def models_of(queries: Sequence[Query]) -> Models:
    """The models that these queries are."""
    feeding = Counter(query.stream for query in queries)
    return {
        query.stream: query.node
        for query in queries
        if isinstance(query.node, Transitions) and feeding[query.stream] == 1
    }


@dataclass(frozen=True, slots=True)
class ContextFilter:
    """A filter on rows by the windows of their partition: as-of joins with changes, the lowest first, and a condition.

    Whether a row passes depends on the attributes that are `read` of it, and on no other row. `carried` are attributes
    of its window that it gets.
    """

    joins: tuple[AsOf, ...]
    condition: Term
    carried: tuple[str, ...]

    @property
    def keys(self) -> tuple[str, ...]:
        """The attributes that say in which partition a row is."""
        return self.joins[0].left_keys

    @property
    def at(self) -> str:
        """The instant that is looked up."""
        return self.joins[0].left_time

    @property
    def found(self) -> frozenset[str]:
        """All attributes of changes."""
        return frozenset(name for join in self.joins for name in join.right.schema)

    @property
    def read(self) -> frozenset[str]:
        """The attributes of a row by which it passes."""
        looked_up = frozenset(name for join in self.joins for name in (*join.left_keys, join.left_time))
        return looked_up | (attributes_of(self.condition) - self.found)

    @property
    def removes_rows(self) -> bool:
        """Whether there are rows that do not pass."""
        return self.condition != TRUE or any(join.how == "inner" for join in self.joins)

    def fits(self, schema: Schema) -> bool:
        """Whether it can be put on rows with these attributes."""
        if not self.read <= schema.keys() or not self.found.isdisjoint(schema):
            return False
        return schema[self.at].temporal

    def over(self, rows: Node) -> Node:
        """The rows that pass, with what they carry."""
        node = rows
        for join in self.joins:
            node = replace(join, left=node)
        if self.condition != TRUE:
            node = Select(node, self.condition)
        return Project(node, (*rows.schema.names, *self.carried))

    def named(self, names: Mapping[str, str]) -> ContextFilter:
        """The same filter on rows whose attributes have other names."""
        joins = tuple(
            replace(
                join,
                left_keys=tuple(names.get(key, key) for key in join.left_keys),
                left_time=names.get(join.left_time, join.left_time),
            )
            for join in self.joins
        )
        its = {name: new for name, new in names.items() if name not in self.found}
        return replace(self, joins=joins, condition=rename_attributes(self.condition, its))

    def split(self) -> tuple[ContextFilter, Term]:
        """The part that reads keys and the instant alone, and a condition on what that part carries: what is left."""
        looked_up = {*self.keys, self.at, *self.found}
        own = [part for part in conjuncts(self.condition) if attributes_of(part) <= looked_up]
        rest = [part for part in conjuncts(self.condition) if part not in own]
        needed = frozenset[str]().union(*map(attributes_of, rest)) & self.found
        carried = tuple(dict.fromkeys((*self.carried, *sorted(needed))))
        return ContextFilter(self.joins, conjunction(own), carried), conjunction(rest)

    @property
    def since(self) -> str | None:
        """The instant before which the window has to have begun, where that is all that the condition says beyond that
        the window holds.
        """
        join, *others_joined = self.joins
        if others_joined or not isinstance(join.right, Rename):
            return None
        names, is_default = dict(join.right.pairs), join.ended is None
        own, rest = self.split()
        change = names.get(CHANGE, CHANGE)
        said, held = {*conjuncts(own.condition)}, {*conjuncts(holds(change, self.keys, is_default=is_default))}
        if not said <= held or (is_default and holds(change, (), is_default=True) not in said):
            return None
        others = attributes_of(rest) - self.found
        since = next(iter(others)) if len(others) == 1 else None
        if since is None or rest != began_before(names.get(BEGAN, BEGAN), since, is_default=is_default):
            return None
        return since


def filter_of(node: Node, models: Models) -> tuple[ContextFilter, Node] | None:
    """The filter that the root of a query is, and its rows; None where it is none."""
    if not isinstance(node, Project):
        return None
    below, condition = node.input, TRUE if not isinstance(node.input, Select) else node.input.condition
    if isinstance(below, Select):
        below = below.input
    joins: list[AsOf] = []
    while isinstance(below, AsOf) and is_look_up(below, models):
        joins.append(below)
        below = below.left
    if not joins or len({(join.left_keys, join.left_time) for join in joins}) > 1:
        return None
    made = ContextFilter(tuple(reversed(joins)), condition, ())
    made = replace(made, carried=tuple(name for name in node.names if name in made.found))
    return (made, below) if made.removes_rows and made.fits(below.schema) else None


def is_look_up(join: AsOf, models: Models) -> bool:
    """Whether a join looks up the last change of a context before each row, as `in_context` does: any other join finds
    rows that say nothing of the instants between two of them.
    """
    return _looked_up(join, models) is not None


def changes_of(join: AsOf, models: Models) -> tuple[Node, tuple[str, ...]] | None:
    """The changes that a look-up reads, and the contexts that they are of, where these are not the default one."""
    if join.how != "inner":
        return None
    return _looked_up(join, models)


def _looked_up(join: AsOf, models: Models) -> tuple[Node, tuple[str, ...]] | None:
    """The changes of a model that a join looks up by partition, and the contexts that they are of."""
    match join.right:
        case Rename(Select(changes, Call("eq", (Attr(name), Lit(str(context))))), pairs):
            contexts: tuple[str, ...] = (context,) if name == CONTEXT else ()
        case Rename(GroupedWindows(Select(changes, _), _, contexts), pairs):
            pass
        case _:
            return None
    model = models.get(changes.stream.name) if isinstance(changes, Scan) else changes
    if not contexts or not isinstance(model, Transitions) or not _is_by_partition(join, dict(pairs), model, contexts):
        return None
    return changes, contexts


def _is_by_partition(join: AsOf, names: Mapping[str, str], model: Transitions, contexts: tuple[str, ...]) -> bool:
    """Whether a join finds the last change of a row's partition strictly before it, and none that ends a window. In the
    default context such a change is found, as there may have been none.
    """
    if not join.strict or join.waits or join.within is not None:
        return False
    change = names.get(CHANGE, CHANGE)
    by = (*(names.get(key, key) for key in model.keys), names.get(TIME, TIME), change)
    ended = None if contexts == (model.default,) else ends(change)
    return (*join.right_keys, join.right_time, join.tie) == by and join.ended == ended


def with_attributes(node: Node, names: Iterable[str]) -> Node:
    """The node with these attributes in this order."""
    wanted = tuple(names)
    return node if node.schema.names == wanted else Project(node, wanted)
