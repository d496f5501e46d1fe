"""Evaluation orders: the cheapest of all, without needless cross products, and when what is known has changed."""

from __future__ import annotations

import random
from itertools import permutations

import pytest

from tests.analysis.build import le, lt, plus
from tidegate.algebra.allen import Allen, mask_of
from tidegate.algebra.terms import conjunction, disjunction
from tidegate.algebra.types import BIGINT
from tidegate.analysis.ordered.match.chosen_orders import first_statistics, ordered_pair, related
from tidegate.analysis.ordered.match.detection import detection
from tidegate.analysis.ordered.match.order import Statistics, best_order, cost_of, initial_statistics
from tidegate.analysis.ordered.match.pattern import Symbol


def test_at_first_relations_are_as_frequent_as_the_paper_assumes() -> None:
    found = initial_statistics({(0, 1): mask_of([Allen.BEFORE]), (1, 2): mask_of([Allen.OVERLAPS])}, [], 3)
    assert found.selectivities == {(0, 1): 0.445, (1, 2): 0.01}
    # From B, the one overlapped by it is looked for before the many that lie before it.
    assert best_order(1, found).symbols == (1, 2, 0)
    assert best_order(0, found).symbols == (0, 1, 2)


def connected(order: tuple[int, ...], statistics: Statistics) -> bool:
    """Whether each symbol but the first has a constraint to one before it."""
    return all(
        any(order[k] in pair and (pair[0] in order[:k] or pair[1] in order[:k]) for pair in statistics.selectivities)
        for k in range(1, len(order))
    )


@pytest.mark.parametrize("seed", range(60))
def test_no_order_without_cross_products_is_cheaper(seed: int) -> None:
    rng = random.Random(seed)
    count = rng.choice((2, 3, 4, 5))
    pairs = [(i, j) for i in range(count) for j in range(i + 1, count) if j == i + 1 or rng.random() < 0.4]
    statistics = Statistics(
        tuple(rng.choice((1.0, 10.0, 200.0)) for _ in range(count)), {pair: rng.choice((0.5, 0.01)) for pair in pairs}
    )
    trigger = rng.randrange(count)
    found = best_order(trigger, statistics)
    others = [o for o in permutations(range(count)) if o[0] == trigger and connected(o, statistics)]
    assert connected(found.symbols, statistics)
    assert found.cost == pytest.approx(min(cost_of(order, statistics) for order in others))
    assert found.cost == pytest.approx(cost_of(found.symbols, statistics))


def test_what_nothing_relates_comes_last() -> None:
    statistics = Statistics((1.0, 1.0, 50.0, 50.0), {(0, 2): 0.5, (1, 3): 0.5})
    assert best_order(0, statistics).symbols == (0, 2, 1, 3)


def test_averages_follow_what_is_seen_and_only_large_changes_count() -> None:
    before = Statistics((10.0, 10.0), {(0, 1): 0.5})
    seen = Statistics((10.0, 20.0), {(0, 1): 0.5})
    after = before.smoothed(seen, 0.25)
    assert after.sizes == (10.0, 12.5)
    assert not before.differs(after, 0.3)
    assert before.differs(after.smoothed(seen, 0.25), 0.3)
    assert before.smoothed(Statistics((10.0, 10.0), {}), 0.5).selectivities == {(0, 1): 0.5}


def test_constraints_that_are_no_relations_relate_their_symbols() -> None:
    """Those whose endpoints they compare, in the order of the symbols; one between endpoints of one symbol relates
    none.
    """
    symbols = tuple(Symbol(name) for name in "ABCD")
    condition = conjunction(
        [
            le("C.ts", plus("B.te", 3)),
            disjunction([lt("D.te", plus("A.ts", 9)), lt("D.te", plus("C.te", 4))]),
            le("B.te", plus("B.ts", 7)),
        ]
    )
    found = detection(symbols, condition, BIGINT, None, "earliest")
    assert sorted(related(found)) == [(0, 3), (1, 2), (2, 3)]
    assert set(first_statistics(found).selectivities) == {(0, 3), (1, 2), (2, 3)}
    assert [ordered_pair(2, 1), ordered_pair(1, 2)] == [(1, 2), (1, 2)]
