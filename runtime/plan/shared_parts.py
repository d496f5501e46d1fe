"""Parts of trees that several queries share. Planning finds them; an increment computes each at most once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Generic, TypeVar

from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Scan, Select, children, occurrences
from tidegate.algebra.terms import Term
from tidegate.runtime.plan.steps import CommonPart, Leaf, Progress, QueryPlan

T = TypeVar("T")


@dataclass(slots=True)
class Later(Generic[T]):
    """The rows of a part, which are computed when a query first asks for them. `done`: these, once they are there.

    A query may do without: a grouping that looks partners up asks for no rows of the join below it.
    """

    compute: Callable[[], T]
    done: T | None = None

    @classmethod
    def known(cls, rows: T) -> Later[T]:
        """Rows that are there already."""
        return cls(lambda: rows, rows)

    @property
    def rows(self) -> T:
        if self.done is None:
            self.done = self.compute()
        return self.done


#: Parts of a tree that need not be evaluated, by the place of their first leaf.
Ready = dict[tuple[int, Node], Later[T]]


def find_common(trees: Sequence[tuple[Node, tuple[Leaf, ...]]]) -> list[tuple[CommonPart, ...]]:
    """The parts of each tree, inner ones first, that also stand elsewhere over the same buffers."""
    numbers: dict[object, int] = {}
    candidates = [list(_parts(tree, leaves, 0, numbers)) for tree, leaves in trees]
    uses = Counter(part.number for parts in candidates for part in parts)
    return [tuple(part for part in parts if uses[part.number] > 1) for parts in candidates]


def _parts(node: Node, leaves: tuple[Leaf, ...], first: int, numbers: dict[object, int]) -> Iterator[CommonPart]:
    place = first
    for child in children(node):
        yield from _parts(child, leaves, place, numbers)
        place += len(occurrences(child))
    if not isinstance(node, Scan | Select | Project | Rename | Imbed):
        read = tuple((leaf.buffer.id if leaf.buffer else leaf.static, leaf.columns) for leaf in leaves[first:place])
        number = numbers.setdefault((node, read), len(numbers))
        yield CommonPart(node, first, place - first, number)


def sharers(queries: Sequence[QueryPlan]) -> list[list[tuple[Node, list[str]]]]:
    """The largest parts of each query that other queries compute too, with the names of all of these."""
    users: dict[int, dict[str, None]] = {}
    for query in queries:
        for part in query.common:
            users.setdefault(part.number, {})[query.name] = None
    return [[(part.node, [*users[part.number]]) for part in _outermost(query.common)] for query in queries]


def _outermost(parts: Sequence[CommonPart]) -> Iterator[CommonPart]:
    """The parts that are in no other one, of some where inner ones come first."""
    for place, part in enumerate(parts):
        around = (
            outer.first <= part.first and part.first + part.count <= outer.first + outer.count
            for outer in parts[place + 1 :]
        )
        if not any(around):
            yield part


@dataclass(frozen=True, slots=True)
class Demand:
    """A query that is about to be evaluated, with the condition under which each of its leaves is read.

    `keys`, where it is evaluated shard by shard, are the columns by which its leaves are shared out.
    """

    query: QueryPlan
    relevant: tuple[Term | None, ...]
    keys: tuple[str | None, ...] | None = None

    @classmethod
    def of(cls, query: QueryPlan, old: Progress, new: Progress, keys: tuple[str | None, ...] | None = None) -> Demand:
        relevant = (None if leaf.buffer is None else leaf.relevant(old, new) for leaf in query.leaves)
        return cls(query, tuple(relevant), keys)

    def computed(self, part: CommonPart) -> object:
        """The key of a part: two uses with equal keys (tree, buffers, relevance, shards) have the same rows."""
        read = slice(part.first, part.first + part.count)
        return part.number, self.relevant[read], self.keys and self.keys[read]


def repeated(demands: Sequence[Demand]) -> list[list[tuple[int, CommonPart]]]:
    """The uses, by the number of the demand, of each part that several demands need. Inner parts come first."""
    uses: dict[object, list[tuple[int, CommonPart]]] = {}
    for number, demand in enumerate(demands):
        for part in demand.query.common:
            uses.setdefault(demand.computed(part), []).append((number, part))
    return sorted((shared for shared in uses.values() if len(shared) > 1), key=lambda shared: shared[0][1].count)


def common_parts(demands: Sequence[Demand], compute: Callable[[int, CommonPart, Ready[T]], T]) -> list[Ready[T]]:
    """The parts that several demands need, for each of them. All have the rows of the one that asks first.

    `compute` gets the number of a demand, the part, and what of that need not be evaluated.
    """
    ready: list[Ready[T]] = [{} for _ in demands]
    for uses in repeated(demands):
        number, part = uses[0]
        later = Later(partial(compute, number, part, dict(ready[number])))
        for demand, use in uses:
            ready[demand][use.first, use.node] = later
    return ready
