"""Parts of trees that several queries share. Planning finds them; an increment computes each once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

from tidegate.algebra.nodes import Group, Imbed, Join, Node, Project, Rename, Scan, Select, children, occurrences
from tidegate.algebra.terms import Term
from tidegate.runtime.plan.steps import CommonPart, Leaf, Progress, QueryPlan

T = TypeVar("T")
#: Parts of a tree that are computed already, by the place of their first leaf.
Ready = dict[tuple[int, Node], T]
#: Whether a grouping looks partners up, and needs no rows of a join below it for that.
LooksUp = Callable[[Group, Join], bool]


def find_common(trees: Sequence[tuple[Node, tuple[Leaf, ...]]]) -> list[tuple[CommonPart, ...]]:
    """The parts of each tree, inner ones first, that also stand elsewhere over the same buffers."""
    numbers: dict[object, int] = {}
    candidates = [list(_parts(tree, leaves, 0, numbers)) for tree, leaves in trees]
    uses = Counter(part.number for parts in candidates for part in parts)
    return [tuple(part for part in parts if uses[part.number] > 1) for parts in candidates]


def _parts(
    node: Node, leaves: tuple[Leaf, ...], first: int, numbers: dict[object, int], group: Group | None = None
) -> Iterator[CommonPart]:
    place = first
    for number, child in enumerate(children(node)):
        goes_on = isinstance(node, Project | Rename | Imbed) or (isinstance(node, Join) and number == 0)
        above = node if isinstance(node, Group) else group if goes_on else None
        yield from _parts(child, leaves, place, numbers, above)
        place += len(occurrences(child))
    if not isinstance(node, Scan | Select | Project | Rename | Imbed):
        read = tuple((leaf.buffer.id if leaf.buffer else leaf.static, leaf.columns) for leaf in leaves[first:place])
        number = numbers.setdefault((node, read), len(numbers))
        yield CommonPart(node, first, place - first, number, group if isinstance(node, Join) else None)


def _listed(query: QueryPlan, looks_up: LooksUp) -> list[CommonPart]:
    """The common parts of a query whose rows it needs one by one."""
    return [
        part
        for part in query.common
        if part.group is None or not isinstance(part.node, Join) or not looks_up(part.group, part.node)
    ]


def sharers(queries: Sequence[QueryPlan], query: QueryPlan, looks_up: LooksUp) -> Iterator[tuple[Node, list[str]]]:
    """The largest parts of a query that other queries compute too, with the names of those queries."""
    uses = [(user.name, use.number) for user in queries for use in _listed(user, looks_up)]
    shared = [part for part in _listed(query, looks_up) if sum(part.number == number for _, number in uses) > 1]
    for place, part in enumerate(shared):
        around = (
            outer.first <= part.first and part.first + part.count <= outer.first + outer.count
            for outer in shared[place + 1 :]
        )
        if not any(around):
            yield part.node, list(dict.fromkeys(name for name, number in uses if number == part.number))


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


def repeated(demands: Sequence[Demand], looks_up: LooksUp) -> list[list[tuple[int, CommonPart]]]:
    """The uses, by the number of the demand, of each part that several demands need. Inner parts come first.

    A join is none where its grouping looks partners up: made for several of these it would have all pairs.
    """
    uses: dict[object, list[tuple[int, CommonPart]]] = {}
    for number, demand in enumerate(demands):
        for part in _listed(demand.query, looks_up):
            uses.setdefault(demand.computed(part), []).append((number, part))
    return sorted((shared for shared in uses.values() if len(shared) > 1), key=lambda shared: shared[0][1].count)


def compute_common(
    demands: Sequence[Demand], looks_up: LooksUp, compute: Callable[[int, CommonPart, Ready[T]], T]
) -> list[Ready[T]]:
    """Computes once each part that several demands need, and gives it to each of them.

    `compute` gets the number of a demand, the part, and those of its parts that are computed already.
    """
    ready: list[Ready[T]] = [{} for _ in demands]
    for uses in repeated(demands, looks_up):
        number, part = uses[0]
        rows = compute(number, part, ready[number])
        for demand, use in uses:
            ready[demand][use.first, use.node] = rows
    return ready
