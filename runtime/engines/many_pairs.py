"""What an increment says before it compares very many pairs of rows or lists very many matches, which takes long and
may hold much.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from tidegate.algebra.errors import Problem, Site
from tidegate.algebra.nodes import Imbed, Join, Node, Product, Project, Rename, Scan, Union, children
from tidegate.analysis.inner_queries import owner_of
from tidegate.runtime.engines.notices import RunWarning
from tidegate.runtime.plan.join_parts import join_parts
from tidegate.runtime.plan.steps import QueryPlan

#: Pairs of one join in one increment from which on they are told, some ten seconds of work. They are told again at ten
#: times as many.
TOLD: Final = 10**8
_MEND: Final = (
    "bound how far apart the instants of a pair may lie, or join by more keys; where one row is wanted of many, as the "
    "latest or the one before, asof_join or over find it without the pairs"
)


def unkeyed_pairs(tree: Node, rows: Sequence[int | None]) -> int:
    """The most pairs that a join without equal keys compares, where both sides are stored rows, as many as `rows` says
    by leaf. Of other joins nobody knows before they are made: what is filtered or joined may be little.
    """
    places, most = iter(rows), 0

    def size(node: Node) -> int | None:
        nonlocal most
        match node:
            case Scan():
                return next(places)
            case Rename(below, _) | Project(below, _) | Imbed(below, _, _):
                return size(below)
            case Union(inputs):
                sizes = [size(input_) for input_ in inputs]
                return sum(known) if len(known := [one for one in sizes if one is not None]) == len(sizes) else None
            case Product(left, right) | Join(left, right):
                ours, others = size(left), size(right)
                if ours is not None and others is not None and _lists_all(node):
                    most = max(most, ours * others)
                return None
            case _:
                for child in children(node):
                    size(child)
                return None

    size(tree)
    return most


def _lists_all(node: Product | Join) -> bool:
    """Whether all pairs of rows of both sides are compared by an engine that knows joins by equal keys alone."""
    if isinstance(node, Product):
        return True
    parts = join_parts(node.condition, node.left.schema, node.right.schema)
    return node.kind in ("inner", "left") and not (parts.equalities or parts.left or parts.right)


@dataclass(slots=True)
class ManyPairs:
    """Warns of each query once, and again where it is ten times as many (TG446).

    What a query with an operator has many of are matches.
    """

    due: dict[str, int] = field(default_factory=dict)
    """How many pairs are told of next, by query."""

    def announce(self, query: QueryPlan, pairs: int, *, compared: bool = False) -> None:
        """Says that a join of this query is about to compare so many pairs, or that it has; or that its operator is
        about to list so many matches.
        """
        if pairs < self.due.get(query.name, TOLD):
            return
        self.due[query.name] = 10 * pairs
        name, site = owner_of(query.name), query.facts.query.site or Site("tidegate", 0)
        problem = (_compared if query.ordered is None else _listed)(name, pairs, done=compared)
        warnings.warn_explicit(RunWarning(str(problem)), None, site.file, site.line)


def _compared(name: str, pairs: int, *, done: bool) -> Problem:
    return Problem(
        "TG446",
        f"{name} {'has compared' if done else 'is about to compare'} {pairs:,} pairs of rows in one increment",
        because=("so many rows of both sides of a join have equal keys, and instants that fit",),
        hint=_MEND,
    )


def _listed(name: str, matches: int, *, done: bool) -> Problem:
    return Problem(
        "TG446",
        f"{name} {'has listed' if done else 'is about to list'} {matches:,} matches in one increment",
        because=("so many combinations of what the pattern names match, and each is a row",),
        hint="let matches last less long (within=), or take one of those that begin with a row; where their number is "
        "wanted, group them: most patterns are then counted without a list",
    )
