"""Parts of trees that several queries of a program share: found when the plan is made, computed once in an increment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tidegate.algebra.nodes import Imbed, Node, Project, Rename, Scan, Select, children, occurrences
from tidegate.algebra.terms import Term
from tidegate.runtime.plan.steps import CommonPart, Leaf, Progress, QueryPlan


def find_common(trees: Sequence[tuple[Node, tuple[Leaf, ...]]]) -> list[tuple[CommonPart, ...]]:
    """Of each tree the parts, inner ones first, that also stand elsewhere over the same buffers."""
    candidates = [list(_parts(tree, 0)) for tree, _ in trees]
    uses: Counter[object] = Counter()
    for parts, (_, leaves) in zip(candidates, trees, strict=True):
        uses.update(_identity(part, leaves) for part in parts)
    return [
        tuple(part for part in parts if uses[_identity(part, leaves)] > 1)
        for parts, (_, leaves) in zip(candidates, trees, strict=True)
    ]


def _parts(node: Node, first: int) -> Iterator[CommonPart]:
    place = first
    for child in children(node):
        yield from _parts(child, place)
        place += len(occurrences(child))
    if not isinstance(node, Scan | Select | Project | Rename | Imbed):
        yield CommonPart(node, first, len(occurrences(node)))


def _identity(part: CommonPart, leaves: tuple[Leaf, ...]) -> object:
    read = leaves[part.first : part.first + part.count]
    return part.node, tuple((leaf.buffer.id if leaf.buffer else leaf.static, leaf.columns) for leaf in read)


def sharers(queries: Sequence[QueryPlan], query: QueryPlan) -> Iterator[tuple[Node, list[str]]]:
    """The greatest parts of a query that other queries compute too, with the names of all that do."""
    for part in query.common:
        around = [
            other
            for other in query.common
            if other is not part and other.first <= part.first and part.first + part.count <= other.first + other.count
        ]
        if not any(query.common.index(other) > query.common.index(part) for other in around):
            same = _identity(part, query.leaves)
            yield (
                part.node,
                [one.name for one in queries if any(_identity(use, one.leaves) == same for use in one.common)],
            )


@dataclass(frozen=True, slots=True)
class Demand:
    """A query about to be evaluated, with the condition under which each of its leaves is read."""

    query: QueryPlan
    relevant: tuple[Term | None, ...]

    @classmethod
    def of(cls, query: QueryPlan, old: Progress, new: Progress) -> Demand:
        return cls(query, tuple(None if leaf.buffer is None else leaf.relevant(old, new) for leaf in query.leaves))

    def computed(self, part: CommonPart) -> object:
        """What makes two queries' uses of a part the same rows: the same tree, buffers and relevance."""
        return _identity(part, self.query.leaves), self.relevant[part.first : part.first + part.count]


def repeated(demands: Sequence[Demand]) -> dict[object, tuple[Demand, CommonPart]]:
    """What more than one of the queries computes, inner parts first, with one of its uses."""
    uses = Counter(demand.computed(part) for demand in demands for part in demand.query.common)
    ordered = sorted(
        ((part.count, demand, part) for demand in demands for part in demand.query.common), key=lambda use: use[0]
    )
    found: dict[object, tuple[Demand, CommonPart]] = {}
    for _, demand, part in ordered:
        if uses[key := demand.computed(part)] > 1:
            found.setdefault(key, (demand, part))
    return found
