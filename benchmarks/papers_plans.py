"""Evaluation orders: the figures of the TPStream papers on the quality of plans and on their adaptation."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import pairwise, permutations, product

import numpy as np

from benchmarks.pattern_runs import (
    Events,
    Rows,
    closed_of,
    in_turn,
    initial,
    offsets,
    pattern_of,
    periods,
    planned,
    run,
)
from benchmarks.situations_data import SITUATION, Ints, Span
from tidegate.runtime.kernels.cells import NONE, Situations, arrange, find_triggers, purge
from tidegate.runtime.kernels.ranges.range_plan import plan_search
from tidegate.runtime.kernels.ranges.range_search import find_matches
from tidegate.runtime.kernels.search_plan import Pattern
from tidegate.runtime.kernels.situations import ClosedSituations
from tidegate.runtime.ordered.match.order import MatchOrder

QUERIES = {
    "Q1: A overlaps B, A overlaps C, B starts C": {(0, 1): "overlaps", (0, 2): "overlaps", (1, 2): "starts"},
    "Q2: A overlaps B, A before C, B overlaps C": {(0, 1): "overlaps", (0, 2): "before", (1, 2): "overlaps"},
    "Q3: A before B, A before C, B before C": {(0, 1): "before", (0, 2): "before", (1, 2): "before"},
}
#: Gaps of situations that are fifty times as rare.
RARE: Span = (2_100, 6_290)
USUAL: Span = (10, 50)
#: Gaps of A, B and C where the occurrence ratio is 1:1:1, then 1:50:50, then 50:1:50.
PHASES = ((USUAL, USUAL, USUAL), (RARE, USUAL, USUAL), (USUAL, RARE, USUAL))
INCREMENTS = 50


def quality(seconds: int) -> Rows:
    """The initial plan beside the best and the worst of all, window 5,000 s."""
    rows: Rows = [
        ("query", "plans", "candidates: initial / best", "worst / best", "events/s: initial", "best", "worst")
    ]
    events = Events.generate(seconds, 3)
    for name, relations in QUERIES.items():
        pattern = pattern_of(relations, 3, within=5_000)
        plans = list(all_orders(3))
        ran = in_turn([partial(run, events, pattern, plan) for plan in plans], 3)
        chosen = ran[next(n for n, plan in enumerate(plans) if np.array_equal(plan, planned(pattern)))]
        by_work, by_time = sorted(one.examined for one in ran), sorted(one.seconds for one in ran)
        rows.append(
            (
                name,
                str(len(plans)),
                f"{chosen.examined / by_work[0]:.2f}",
                f"{by_work[-1] / by_work[0]:.2f}",
                *(f"{seconds / taken / 1e6:.1f} M" for taken in (chosen.seconds, by_time[0], by_time[-1])),
            )
        )
    return rows


def all_orders(roles: int) -> Iterator[Ints]:
    """Every way to choose an order for each trigger."""
    each = [
        [(role, *rest) for rest in permutations([other for other in range(roles) if other != role])]
        for role in range(roles)
    ]
    for chosen in product(*each):
        yield np.array(chosen, dtype=np.int64)


@dataclass(frozen=True, slots=True)
class Adapted:
    """Candidates by phase, and seconds."""

    examined: tuple[int, int, int]
    seconds: float


def adaptation(seconds: int) -> tuple[Rows, float, float]:
    """Q3 while the occurrence ratio changes; candidates and time of the adaptive plan over those of a switch by
    hand.
    """
    pattern = pattern_of(QUERIES["Q3: A before B, A before C, B before C"], 3, within=10_000)
    situations = _changing(seconds)
    orders = [np.array([[0, 1, 2], [1, 0, 2], last]) for last in ((2, 1, 0), (2, 0, 1))]
    fixed = [_follow(pattern, situations, seconds, lambda _, order=order: order) for order in orders]  # type: ignore[misc]
    by_hand = [orders[int(fixed[0].examined[phase] > fixed[1].examined[phase])] for phase in range(3)]
    oracle, adaptive, ratios = None, None, []
    for _ in range(5):
        oracle = _follow(pattern, situations, seconds, lambda phase: by_hand[phase])
        adaptive = _follow(pattern, situations, seconds, None)
        ratios.append(adaptive.seconds / oracle.seconds)
    assert oracle is not None
    assert adaptive is not None
    rows: Rows = [("candidates examined", "1:1:1", "1:50:50", "50:1:50", "all")]
    named = {"C, B, A": fixed[0], "C, A, B": fixed[1], "switched by hand": oracle, "adaptive": adaptive}
    rows += [(name, *(f"{count:,}" for count in one.examined), f"{sum(one.examined):,}") for name, one in named.items()]
    return rows, sum(adaptive.examined) / sum(oracle.examined), sorted(ratios)[2]


def _changing(seconds: int) -> list[tuple[Ints, Ints]]:
    """Situations of A, B and C, phase after phase."""
    found = []
    for number in range(3):
        parts = [periods(seconds, 10 * phase + number, SITUATION, gaps[number]) for phase, gaps in enumerate(PHASES)]
        shifted = [(starts + phase * seconds, ends + phase * seconds) for phase, (starts, ends) in enumerate(parts)]
        found.append((np.concatenate([s for s, _ in shifted]), np.concatenate([e for _, e in shifted])))
    return found


def _follow(
    pattern: Pattern, situations: list[tuple[Ints, Ints]], seconds: int, order: Callable[[int], Ints] | None
) -> Adapted:
    """All increments of all phases; without an order for each phase it is chosen by what has been seen."""
    adaptive = MatchOrder(planned(pattern), initial(pattern), initial(pattern))
    closed, state = closed_of(situations), Situations.empty(3)
    bounds = np.linspace(-1, 3 * seconds - 1, 3 * INCREMENTS + 1).astype(np.int64).tolist()
    parts = [_between(closed, after, until) for after, until in pairwise(bounds)]
    examined, horizons, kinds = [0, 0, 0], np.full(3, NONE), offsets(pattern)
    start = time.thread_time()
    for number, (after, until) in enumerate(pairwise(bounds)):
        phase = number // INCREMENTS
        steps = plan_search(pattern, adaptive.order if order is None else order(phase))
        laid = arrange(state, parts[number], None, 1)
        found = find_matches(steps, laid, find_triggers(laid, *kinds, after, until), after, until)
        examined[phase] += int(found.counters[..., 0].sum())
        if order is None:
            adaptive = adaptive.after(laid, range(3), found)
        state = purge(laid, pattern.within, horizons, until)
    return Adapted((examined[0], examined[1], examined[2]), time.thread_time() - start)


def _between(closed: ClosedSituations, after: int, until: int) -> ClosedSituations:
    return closed.where((closed.te > after) & (closed.te <= until))
