"""What an increment says before it compares very many pairs of rows, which takes long and may hold much."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Final

from tidegate.algebra.errors import Problem, Site
from tidegate.analysis.inner_queries import owner_of
from tidegate.runtime.engines.notices import RunWarning
from tidegate.runtime.plan.steps import QueryPlan

#: Pairs of one join in one increment from which on they are told, some ten seconds of work. They are told again at ten
#: times as many.
TOLD: Final = 10**8
_MEND: Final = (
    "bound how far apart the instants of a pair may lie, or join by more keys; where one row is wanted of many, as the "
    "latest or the one before, asof_join or over find it without the pairs"
)


@dataclass(slots=True)
class ManyPairs:
    """Warns of each query once, and again where it is ten times as many (TG446)."""

    due: dict[str, int] = field(default_factory=dict)
    """How many pairs are told of next, by query."""

    def announce(self, query: QueryPlan, pairs: int) -> None:
        """Says that a join of this query is about to compare so many pairs."""
        if pairs < self.due.get(query.name, TOLD):
            return
        self.due[query.name] = 10 * pairs
        name, site = owner_of(query.name), query.facts.query.site or Site("tidegate", 0)
        problem = Problem(
            "TG446",
            f"{name} is about to compare {pairs:,} pairs of rows in one increment",
            because=("so many rows of both sides of a join have equal keys, and instants that fit",),
            hint=_MEND,
        )
        warnings.warn_explicit(RunWarning(str(problem)), None, site.file, site.line)
