"""Evaluation orders of a pattern at work: chosen by the cost model, and chosen again when what it rests on has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tidegate.analysis.detection import Detection
from tidegate.analysis.order import Pair, Statistics, best_order, initial_statistics
from tidegate.runtime.kernels.layout import Situations
from tidegate.runtime.kernels.patterns import Matches
from tidegate.runtime.kernels.situations import Ints

#: Weight of the last increment in the averages, and the change of one of them that makes orders be chosen again.
WEIGHT: Final = 0.2
THRESHOLD: Final = 0.5
#: Intermediate results that a step must have seen for its share to count.
_ENOUGH: Final = 20


@dataclass(frozen=True, slots=True)
class MatchOrder:
    """The orders in use, `order[i]` for trigger i, what they were chosen by, and what has been seen since."""

    order: Ints
    chosen_by: Statistics
    seen: Statistics

    @classmethod
    def initial(cls, found: Detection) -> MatchOrder:
        """By the relations that the pattern allows."""
        masks = {(pair.i, pair.j): pair.mask for pair in found.pattern.pairs}
        statistics = initial_statistics(masks, related(found), len(found.symbols))
        return cls(orders(statistics), statistics, statistics)

    def after(self, situations: Situations, definition: Sequence[int], found: Matches) -> MatchOrder:
        """What an increment has shown; orders are chosen again once it differs enough from what they were chosen by."""
        seen = self.seen.smoothed(self._statistics(situations, definition, found), WEIGHT)
        if not self.chosen_by.differs(seen, THRESHOLD):
            return replace(self, seen=seen)
        return MatchOrder(orders(seen), seen, seen)

    def _statistics(self, situations: Situations, definition: Sequence[int], found: Matches) -> Statistics:
        counts = np.diff(situations.offsets).reshape(-1, situations.definitions)
        held = counts[counts.any(axis=1)]
        mean = held.mean(axis=0) if len(held) else np.zeros(situations.definitions)
        sizes = tuple(float(mean[number]) for number in definition)
        shares: dict[Pair, list[float]] = {}
        for order, steps in zip(self.order.tolist(), found.counters.tolist(), strict=True):
            for step in range(1, len(order)):
                before, passed = steps[step - 1][1], steps[step][1]
                pairs = [
                    pair for other in order[:step] if (pair := _pair(other, order[step])) in self.seen.selectivities
                ]
                if before < _ENOUGH or not pairs or not sizes[order[step]]:
                    continue
                share = min(1.0, max(passed, 0.5) / before / sizes[order[step]])
                expected = float(np.prod([self.seen.selectivities[pair] for pair in pairs]))
                factor = (share / expected) ** (1 / len(pairs))
                for pair in pairs:
                    shares.setdefault(pair, []).append(min(1.0, self.seen.selectivities[pair] * factor))
        return Statistics(sizes, {pair: sum(found_) / len(found_) for pair, found_ in shares.items()})


def related(found: Detection) -> list[Pair]:
    """The pairs of symbols that constraints relate which are no sets of Allen's relations."""
    names = {name: place // 2 for place, name in enumerate(found.pattern.base.layout.attributes)}
    pairs: dict[Pair, None] = {}
    for general in found.pattern.general:
        for zone in general.negation:
            given = zone.edges[len(found.pattern.base.edges) :]
            ends = [(names[edge.w[-1]], names[edge.v[-1]]) for edge in given]
            pairs |= {_pair(i, j): None for i, j in ends if i != j}
    return list(pairs)


def orders(statistics: Statistics) -> Ints:
    """The best order for every trigger."""
    symbols = range(len(statistics.sizes))
    return np.array([best_order(trigger, statistics).symbols for trigger in symbols], dtype=np.int64)


def _pair(one: int, other: int) -> Pair:
    return (one, other) if one < other else (other, one)
