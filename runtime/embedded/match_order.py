"""Evaluation orders of a pattern at work: chosen by the cost model, and chosen again when what it rests on has changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tidegate.analysis.detection import Detection
from tidegate.analysis.match_orders import chosen_orders, first_statistics, ordered_pair
from tidegate.analysis.order import Pair, Statistics
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
    pinned: tuple[int, ...] = ()

    @classmethod
    def initial(cls, found: Detection, pinned: tuple[int, ...] = ()) -> MatchOrder:
        """By the relations that the pattern allows; `pinned` stays, whatever is seen."""
        statistics = first_statistics(found)
        return cls(orders(statistics, pinned), statistics, statistics, pinned)

    def after(self, situations: Situations, definition: Sequence[int], found: Matches) -> MatchOrder:
        """What an increment has shown; orders are chosen again once it differs enough from what they were chosen by."""
        seen = self.seen.smoothed(self._statistics(situations, definition, found), WEIGHT)
        if self.pinned or not self.chosen_by.differs(seen, THRESHOLD):
            return replace(self, seen=seen)
        return MatchOrder(orders(seen), seen, seen)

    def _statistics(self, situations: Situations, definition: Sequence[int], found: Matches) -> Statistics:
        width = situations.definitions
        held = int(np.count_nonzero(np.diff(situations.offsets[::width])))
        mean = np.diff(situations.offsets).reshape(-1, width).sum(axis=0) / max(1, held)
        sizes = tuple(float(mean[number]) for number in definition)
        shares: dict[Pair, list[float]] = {}
        for order, steps in zip(self.order.tolist(), found.counters.tolist(), strict=True):
            for step in range(1, len(order)):
                before, passed = steps[step - 1][1], steps[step][1]
                pairs = [
                    pair
                    for other in order[:step]
                    if (pair := ordered_pair(other, order[step])) in self.seen.selectivities
                ]
                if before < _ENOUGH or not pairs or not sizes[order[step]]:
                    continue
                share = min(1.0, max(passed, 0.5) / before / sizes[order[step]])
                expected = float(np.prod([self.seen.selectivities[pair] for pair in pairs]))
                factor = (share / expected) ** (1 / len(pairs))
                for pair in pairs:
                    shares.setdefault(pair, []).append(min(1.0, self.seen.selectivities[pair] * factor))
        return Statistics(sizes, {pair: sum(found_) / len(found_) for pair, found_ in shares.items()})


def orders(statistics: Statistics, pinned: Sequence[int] = ()) -> Ints:
    """The order for every trigger."""
    return np.array(chosen_orders(statistics, pinned), dtype=np.int64)
