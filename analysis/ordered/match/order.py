"""The search order of a match's situations: the cost model of TPStream §5.4, solved exactly for few symbols.

A search starts from the situation that brings the match about, the trigger, and binds one symbol after the other. By
the model the intermediate results after binding a set of symbols are as many as the product of their buffers' sizes and
of the selectivities of all constraints between them, whatever the order. So the cheapest order is found by sets. There
are 2ⁿ sets: of more than ten symbols, each next one is the cheapest of those that are left.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import log2, prod
from typing import Final

from tidegate.algebra.allen import Allen, relations_in

#: Share of all pairs that are in a relation, before anything is known (TPStream, Table 3).
INITIAL: Final[Mapping[Allen, float]] = {
    Allen.BEFORE: 0.445,
    Allen.AFTER: 0.445,
    Allen.DURING: 0.03,
    Allen.CONTAINS: 0.03,
    Allen.OVERLAPS: 0.01,
    Allen.OVERLAPPED_BY: 0.01,
    Allen.STARTS: 0.0049,
    Allen.STARTED_BY: 0.0049,
    Allen.FINISHES: 0.0049,
    Allen.FINISHED_BY: 0.0049,
    Allen.MEETS: 0.0049,
    Allen.MET_BY: 0.0049,
    Allen.EQUALS: 0.0006,
}

Pair = tuple[int, int]

#: Symbols whose orders are compared by sets: ten take 0.1 s for all triggers, twenty took minutes.
MOST_EXACT: Final = 10


@dataclass(frozen=True, slots=True)
class Statistics:
    """What orders are chosen by: per symbol how many situations a partition holds, per constraint (i, j), i < j, the
    share of pairs that satisfy it."""

    sizes: tuple[float, ...]
    selectivities: Mapping[Pair, float]

    def smoothed(self, seen: Statistics, weight: float) -> Statistics:
        """Exponential moving averages with this weight on the newest values. A value without news stays."""
        sizes = tuple(weight * new + (1 - weight) * old for old, new in zip(self.sizes, seen.sizes, strict=True))
        selectivities = {
            pair: weight * seen.selectivities[pair] + (1 - weight) * old if pair in seen.selectivities else old
            for pair, old in self.selectivities.items()
        }
        return replace(self, sizes=sizes, selectivities=selectivities)

    def differs(self, other: Statistics, threshold: float) -> bool:
        """Whether a value has changed by more than this share of what it was."""
        before = (*self.sizes, *self.selectivities.values())
        after = (*other.sizes, *(other.selectivities[pair] for pair in self.selectivities))
        return any(abs(new - old) > threshold * max(old, 1e-9) for old, new in zip(before, after, strict=True))


def initial_statistics(masks: Mapping[Pair, int], general: Sequence[Pair], symbols: int) -> Statistics:
    """The statistics of a pattern before any event: buffers of one size, and Table 3.

    `masks` are the relations that constraints allow; `general` are pairs that some other constraint relates.
    """
    known = {pair: sum(INITIAL[relation] for relation in relations_in(mask)) for pair, mask in masks.items()}
    return Statistics((10.0,) * symbols, {**dict.fromkeys(general, 0.5), **known})


@dataclass(frozen=True, slots=True)
class Order:
    """The order for a trigger, and its expected cost in candidates."""

    symbols: tuple[int, ...]
    cost: float


def best_order(trigger: int, statistics: Statistics) -> Order:
    """The cheapest order from a trigger; symbols without a constraint to those before come only where all that is left
    have none.
    """
    count = len(statistics.sizes)
    if count > MOST_EXACT:
        return _by_steps(trigger, statistics)
    best: dict[frozenset[int], Order] = {frozenset((trigger,)): Order((trigger,), 0.0)}
    others = [symbol for symbol in range(count) if symbol != trigger]
    for size in range(1, count):
        for chosen in combinations(others, size):
            bound = frozenset((trigger, *chosen))
            ways = [way for last in chosen if (way := _extended(best, bound - {last}, last, trigger, statistics))]
            if ways:
                best[bound] = min(ways, key=lambda way: (way.cost, way.symbols))
    return best[frozenset(range(count))]


@dataclass(slots=True)
class _Steps:
    """Symbols bound so far, with what that costs; `shares` are what of a symbol's situations fits those that are
    bound.
    """

    statistics: Statistics
    related: dict[int, dict[int, float]]
    shares: dict[int, float] = field(default_factory=dict)
    combinations: float = 1.0
    cost: float = 0.0

    @classmethod
    def of(cls, statistics: Statistics) -> _Steps:
        related: dict[int, dict[int, float]] = {}
        for (i, j), share in statistics.selectivities.items():
            related.setdefault(i, {})[j] = related.setdefault(j, {})[i] = share
        return cls(statistics, related)

    def begin(self, trigger: int) -> None:
        self.shares, self.combinations, self.cost = {}, 1.0, 0.0
        self._bound(trigger)

    def price(self, symbol: int) -> float:
        size = self.statistics.sizes[symbol]
        return self.combinations * (log2(1 + size) + size * self.shares.get(symbol, 1.0))

    def bind(self, symbol: int) -> None:
        self.cost += self.price(symbol)
        self.combinations *= self.statistics.sizes[symbol] * self.shares.get(symbol, 1.0)
        self._bound(symbol)

    def _bound(self, symbol: int) -> None:
        for partner, share in self.related.get(symbol, {}).items():
            self.shares[partner] = self.shares.get(partner, 1.0) * share


def _by_steps(trigger: int, statistics: Statistics) -> Order:
    """The order whose every next symbol is the cheapest, among those related to earlier symbols if there are any."""
    steps = _Steps.of(statistics)
    steps.begin(trigger)
    order = [trigger]
    open_ = dict.fromkeys(symbol for symbol in range(len(statistics.sizes)) if symbol != trigger)
    while open_:
        near = [symbol for symbol in steps.shares if symbol in open_] or list(open_)
        last = min(near, key=lambda symbol: (steps.price(symbol), symbol))
        steps.bind(last)
        order.append(last)
        del open_[last]
        steps.shares.pop(last, None)
    return Order(tuple(order), steps.cost)


def _extended(
    best: Mapping[frozenset[int], Order], before: frozenset[int], last: int, trigger: int, statistics: Statistics
) -> Order | None:
    """The order that binds `last` after the others, unless that is a needless cross product."""
    if before not in best:
        return None
    open_ = set(range(len(statistics.sizes))) - before
    if not _related(last, before, statistics) and any(_related(candidate, before, statistics) for candidate in open_):
        return None
    shorter = best[before]
    looked_for = results(before, trigger, statistics) * log2(1 + statistics.sizes[last])
    return Order((*shorter.symbols, last), shorter.cost + looked_for + results(before | {last}, trigger, statistics))


def _related(symbol: int, symbols: frozenset[int], statistics: Statistics) -> bool:
    return any(symbol in pair and (pair[0] in symbols or pair[1] in symbols) for pair in statistics.selectivities)


def results(bound: frozenset[int], trigger: int, statistics: Statistics) -> float:
    """Expected combinations of one trigger with the others that satisfy the constraints between them (TPStream, Eq. 3,
    4).
    """
    sizes = prod(statistics.sizes[symbol] for symbol in bound if symbol != trigger)
    return sizes * prod(share for (i, j), share in statistics.selectivities.items() if i in bound and j in bound)


def cost_of(order: Sequence[int], statistics: Statistics) -> float:
    """The expected cost of an order, to compare it with the best."""
    if len(order) > MOST_EXACT:
        steps = _Steps.of(statistics)
        steps.begin(order[0])
        for symbol in order[1:]:
            steps.bind(symbol)
        return steps.cost
    cost, bound = 0.0, frozenset((order[0],))
    for symbol in order[1:]:
        cost += results(bound, order[0], statistics) * log2(1 + statistics.sizes[symbol])
        bound |= {symbol}
        cost += results(bound, order[0], statistics)
    return cost
