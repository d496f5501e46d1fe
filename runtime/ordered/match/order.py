"""The evaluation orders of a pattern at run time. The cost model chooses them, again when its statistics have
changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np

from tidegate.analysis.ordered.match.chosen_orders import chosen_orders, first_statistics, ordered_pair
from tidegate.analysis.ordered.match.detection import Detection
from tidegate.analysis.ordered.match.order import Pair, Statistics
from tidegate.runtime.arrays import BoolArray, Float64Array, Int64Array
from tidegate.runtime.kernels.cells import Situations
from tidegate.runtime.kernels.counting import MatchCount
from tidegate.runtime.kernels.search import Matches

#: Weight of the last increment in the averages, and the change of one of them that makes orders be chosen again.
WEIGHT: Final = 0.2
THRESHOLD: Final = 0.5
#: Intermediate results that a step must have seen, in one increment or several, for its share to count.
_ENOUGH: Final = 20


@dataclass(frozen=True, slots=True)
class MatchOrder:
    """The current orders, `order[i]` for trigger i, the statistics that chose them, and the counts since.

    `counted` has, for each trigger and each step but the first, the intermediate results, the candidates that the model
    expects for them and those that passed, as long as they are too few to tell a share: increments may be small. None:
    no counts.
    """

    order: Int64Array
    chosen_by: Statistics
    seen: Statistics
    pinned: tuple[int, ...] = ()
    counted: Float64Array | None = None

    @classmethod
    def initial(cls, detection: Detection, pinned: tuple[int, ...] = ()) -> MatchOrder:
        """The orders by the relations that the pattern allows. A `pinned` order never changes."""
        statistics = first_statistics(detection)
        return cls(orders(statistics, pinned), statistics, statistics, pinned)

    def after(self, situations: Situations, definition: Sequence[int], matches: Matches | MatchCount) -> MatchOrder:
        """The orders after an increment. They are chosen again once the statistics differ enough."""
        sizes = _mean_sizes(situations, definition)
        counted = self._counted(sizes, matches)
        enough = counted[0] >= _ENOUGH
        any_enough = np.count_nonzero(enough) > 0
        shares = self._selectivities(counted, enough) if any_enough else {}
        seen = self.seen.smoothed(Statistics(sizes, shares), WEIGHT)
        left = np.where(enough, 0.0, counted) if any_enough else counted
        if self.pinned or not self.chosen_by.differs(seen, THRESHOLD):
            return replace(self, seen=seen, counted=left)
        again = MatchOrder(orders(seen), seen, seen)
        same = (again.order == self.order).all(axis=1)
        return replace(again, counted=np.where(same[:, None], left, 0.0))

    def _counted(self, sizes: Sequence[float], matches: Matches | MatchCount) -> Float64Array:
        """The counts so far plus those of an increment. Steps without candidates do not count."""
        size = np.array(sizes)[self.order[:, 1:]]
        before, passed = matches.counters[:, :-1, 1], matches.counters[:, 1:, 1]
        new = np.array([before * (size > 0), before * size, passed])
        return new if self.counted is None else self.counted + new

    def _selectivities(self, counted: Float64Array, enough: BoolArray) -> dict[Pair, float]:
        """The selectivities of the pairs compared by steps with enough intermediate results."""
        shares: dict[Pair, list[float]] = {}
        for trigger, place in np.argwhere(enough).tolist():
            order, step = self.order[trigger].tolist(), place + 1
            pairs = [
                pair
                for earlier in order[:step]
                if (pair := ordered_pair(earlier, order[step])) in self.seen.selectivities
            ]
            if not pairs:
                continue
            _, candidates, passed = counted[:, trigger, place].tolist()
            share = min(1.0, max(passed, 0.5) / candidates)
            expected = float(np.prod([self.seen.selectivities[pair] for pair in pairs]))
            factor = (share / expected) ** (1 / len(pairs))
            for pair in pairs:
                shares.setdefault(pair, []).append(min(1.0, self.seen.selectivities[pair] * factor))
        return {pair: sum(found_) / len(found_) for pair, found_ in shares.items()}


def _mean_sizes(situations: Situations, definition: Sequence[int]) -> tuple[float, ...]:
    """The mean number of situations of a partition for each symbol, over partitions that have any."""
    width = situations.definitions
    partitions = int(np.count_nonzero(np.diff(situations.offsets[::width])))
    mean = np.diff(situations.offsets).reshape(-1, width).sum(axis=0) / max(1, partitions)
    return tuple(float(mean[number]) for number in definition)


def orders(statistics: Statistics, pinned: Sequence[int] = ()) -> Int64Array:
    """The order for every trigger."""
    return np.array(chosen_orders(statistics, pinned), dtype=np.int64)
