"""The search by ranges finds what the general one finds, and says itself which patterns it serves."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise, product

import numpy as np
import pytest

from tests.runtime.kernels.driver import (
    Increments,
    random_events,
    random_increments,
    random_order,
    random_spec,
    rows_of,
)
from tests.runtime.kernels.reference import Event, Spec, compile_spec, matches, situations
from tests.shards import shards
from tidegate.runtime.kernels.cells import NONE, Situations, find_triggers
from tidegate.runtime.kernels.ranges.range_plan import LEAST, MOST, RangeSteps, plan_ranges, plan_search
from tidegate.runtime.kernels.ranges.range_search import _first_place, find_matches
from tidegate.runtime.kernels.search import _relation, enumerate_matches
from tidegate.runtime.kernels.search_plan import (
    ALL,
    RELATIONS,
    TE_TO,
    TS_FROM,
    Pattern,
    Steps,
    _certain,
    _deciding,
    exact,
    plan_steps,
)
from tidegate.runtime.kernels.situations import OPEN

#: Masks that say nothing but distances: those of one relation, and some that ends alone, or starts alone, tell.
DISTANCES = (
    *(1 << bit for bit in range(len(RELATIONS))),
    0b11, 0b1100000000000, 0b11100, 0b11100000, 0b11100000000, 0b11111, 0b11111100, 0b100100111, 0b11000, 0b1001001000,
)  # fmt: skip
BEFORE, OVERLAPS, CONTAINS, STARTS, EQUALS = 1 << 0, 1 << 2, 1 << 4, 1 << 5, 1 << 6


def of_distances(rng: random.Random, roles: int) -> Spec:
    """A pattern that the search by ranges serves, unless it contradicts itself."""
    drawn = random_spec(rng, roles, roles)
    clauses = drawn.clauses if rng.random() < 0.4 else ()
    definition = tuple(range(roles)) if rng.random() < 0.7 else drawn.definition
    pairs = [(one, other) for one in range(roles) for other in range(one + 1, roles)]
    masks = {pair: rng.choice(DISTANCES) for pair in pairs if rng.random() < (0.9 if roles < 3 else 0.5)}
    within = None if drawn.within is None else 3 * drawn.within
    return replace(drawn, definition=definition, masks=masks, clauses=clauses, within=within)


def check(seed: int, cases: int) -> tuple[int, int, int]:
    """The increments that were searched by ranges, cases with matches, and matches."""
    rng = random.Random(seed)
    ranged = fruitful = total = 0
    for _ in range(cases):
        roles = rng.choice([1, 2, 2, 3, 3, 4])
        length, partitions = {1: 16, 2: 24, 3: 16, 4: 10}[roles], rng.randint(1, 3)
        spec, events = of_distances(rng, roles), random_events(rng, partitions, length, roles)
        progress = random_increments(rng, length)
        run = Increments.of(spec, roles, partitions, freeing=rng.random() < 0.3)
        run.run(rng, events, progress)  # compares both searches
        expected = matches(spec, situations(events, roles), progress[-1])
        assert Counter(run.found) == Counter(expected), (spec, events, progress)
        ranged, fruitful, total = ranged + run.ranged, fruitful + bool(expected), total + len(expected)
    return ranged, fruitful, total


@pytest.mark.parametrize("seed", shards(8, 3))
def test_both_searches_find_the_same(seed: int) -> None:
    ranged, fruitful, total = check(seed, 80)
    assert ranged >= 100
    assert fruitful >= 10
    assert total >= 40


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 130))
def test_both_searches_find_the_same_in_many_cases(seed: int) -> None:
    check(seed, 400)


def test_a_duration_that_relations_imply_is_no_reason_to_leave_out_a_bound() -> None:
    """A begins within B, which so lasts two at least. A B that lasts one is found all the same: it has no match with an
    A that begins with it.
    """
    spec = Spec((0, 1, 2), {(0, 1): 0b11100000000, (0, 2): 0b11}, (1, 1, 3), (None, 2, None), (), None, final=False)
    holds = {9: {0, 1}, 10: {2}, 11: set(), 14: {1}, 15: {2}}
    events = [Event(0, time, frozenset(true)) for time, true in holds.items()]
    for seed in range(40):
        Increments.of(spec, 3, 1).run(random.Random(seed), events, [-1, 12, 19])  # compares all searches


def test_what_decides_when_a_pair_is_certain_is_said_ahead() -> None:
    """Of each set of relations, for all small intervals, some of which are open."""
    known = [(ts, te) for ts in range(5) for te in range(ts + 1, 6)]
    intervals = [*known, *((ts, OPEN) for ts in range(5))]
    pairs = [(one, other, _relation(*one, *other)) for one, other in product(intervals, repeat=2)]
    by_relation = [[pair[:2] for pair in pairs if pair[2] == bit] for bit in range(len(RELATIONS))]
    rng, ahead = random.Random(5), 0
    for mask in [*DISTANCES, *rng.sample(range(1, ALL), 150)]:
        deciding, certain = _deciding(mask), _certain(mask)
        always = all(told for _, told in deciding)
        ahead += bool(deciding) and always
        for bit in range(len(RELATIONS)):
            for pair in by_relation[bit] if mask >> bit & 1 else ():
                begun = max(ts for ts, _ in pair)
                instant = begun if certain >> bit & 1 else max(begun, min(te for _, te in pair))
                ends = [pair[side][1] for side, _ in deciding]
                if instant != OPEN:
                    assert instant == max(begun, *ends) if always and ends else instant in (begun, *ends), (mask, pair)
    assert ahead > 15


def test_what_says_nothing_but_distances_is_certain_at_an_instant_known_ahead() -> None:
    """The 82 convex sets of relations: `plan_ranges` takes it for granted."""
    convex = [mask for mask in range(1, ALL + 1) if exact(mask)]
    assert len(convex) == 82
    assert {*DISTANCES, ALL} <= {*convex}
    assert all(always for mask in convex for _, always in _deciding(mask))


def of_pair(mask: int, **more: object) -> Pattern:
    return replace(Pattern.of_pairs(np.array([[ALL, mask], [ALL, ALL]])), **more)  # type: ignore[arg-type]  # fields


ORDER = np.array([[0, 1], [1, 0]])


def test_patterns_that_are_not_served_go_the_general_way() -> None:
    for pattern in (
        of_pair(BEFORE | EQUALS),
        of_pair(OVERLAPS | CONTAINS),
        of_pair(BEFORE, disjoint=np.array([True, False])),
        of_pair(OVERLAPS, at_least=np.array([5, 5]), within=3),
        of_pair(0),
        of_pair(BEFORE, at_most=np.array([1 << 62, NONE])),
    ):
        assert plan_ranges(pattern, ORDER) is None
        assert isinstance(plan_search(pattern, ORDER), Steps)
    for pattern in (of_pair(BEFORE), of_pair(ALL), of_pair(STARTS), of_pair(BEFORE, disjoint=np.ones(2, np.bool_))):
        assert isinstance(plan_search(pattern, ORDER), RangeSteps)


def test_the_window_is_a_bound_where_the_detection_is_known_ahead() -> None:
    """Of A before B, B overlaps C: certain as B ends, at most 300 after A begins."""
    masks = np.full((3, 3), ALL)
    masks[0, 1], masks[1, 2] = BEFORE, OVERLAPS
    order = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    planned = plan_ranges(Pattern.of_pairs(masks, within=300), order)
    assert planned is not None
    assert planned.instants.tolist() == [[3, 0]]
    assert planned.starts.tolist() == [0]
    bounds = [planned.bounds[a:b].tolist() for a, b in pairwise(planned.bound_first.tolist())]
    assert sorted(bounds[4]) == [[TS_FROM, 3, -300], [TE_TO, 2, -1]]
    carried = [planned.carried[a:b].tolist() for a, b in pairwise(planned.carried_first.tolist())]
    assert carried[3:6] == [[2, 3], [2, 3], [3]]


def test_the_window_counts_what_a_formula_puts_off() -> None:
    """That B ends five after A or later is certain four after A has ended: seven after A begins."""
    laid = cells([(0, 3)], [(1, 20)])
    for masks, (within, expected) in product(({}, {(0, 1): OVERLAPS}), ((6, []), (7, [(0, 1, 7)]))):
        compiled = compile_spec(Spec((0, 1), masks, (1, 1), (None, None), (((1, 3, -5),),), within), 2)
        triggers = find_triggers(laid, compiled.from_start, compiled.from_end, -1, 30)
        steps = plan_search(compiled.pattern, ORDER)
        assert isinstance(steps, RangeSteps)
        assert rows_of(find_matches(steps, laid, triggers, -1, 30)) == expected


def test_durations_that_follow_are_limits_too() -> None:
    """What starts with one of at most four lasts three at most, what contains one of three lasts five at least."""
    planned = plan_ranges(of_pair(STARTS, at_most=np.array([NONE, 4])), ORDER)
    assert planned is not None
    assert planned.steps[0, [LEAST, MOST]].tolist() == [1, 3]
    planned = plan_ranges(of_pair(CONTAINS, at_least=np.array([1, 3])), ORDER)
    assert planned is not None
    assert planned.steps[0, [LEAST, MOST]].tolist() == [5, NONE]


def test_where_a_range_begins_is_found_from_anywhere() -> None:
    rng = random.Random(3)
    for _ in range(60):
        ts = np.sort(np.array(rng.sample(range(200), rng.randrange(60)), dtype=np.int64))
        te = np.concatenate([ts[1:], [OPEN]])[: len(ts)]
        low = rng.randint(0, len(ts))
        high = rng.randint(low, len(ts))
        for near in range(-1, len(ts) + 2):
            ts_from, te_from = rng.randrange(-5, 210), rng.randrange(-5, 210)
            fits = [place for place in range(low, high) if ts[place] >= ts_from and te[place] >= te_from]
            assert _first_place(near, low, high, ts_from, te_from, ts, te) == (fits[0] if fits else high)


def cells(*situations_of_cell: list[tuple[int, int]]) -> Situations:
    flat = [s for cell in situations_of_cell for s in cell]
    offsets = np.cumsum([0, *map(len, situations_of_cell)])
    ts, te = (np.array([s[side] for s in flat], dtype=np.int64) for side in (0, 1))
    return Situations(2, offsets, ts, te, np.arange(len(flat)))


def test_the_search_goes_on_where_a_full_output_stopped_it() -> None:
    """More matches from one triggered situation than the first output, or a block, holds."""
    count = 9000
    laid = cells([(i, i + 1) for i in range(count)], [(count, count + 1)])
    triggers = find_triggers(laid, (np.array([0]),) * 2, (np.array([0]),) * 2, count - 1, count)
    steps = plan_search(of_pair(0b11), ORDER)
    assert isinstance(steps, RangeSteps)
    made = find_matches(steps, laid, triggers, count - 1, count)
    assert sorted(made.situation.tolist()) == [[i, count] for i in range(count)]
    assert (made.detected == count).all()
    assert made.counters.tolist() == [[[1, 1], [1, 1]], [[1, 1], [count - 1, count - 1]]]


def test_the_search_costs_what_is_new_not_what_is_kept() -> None:
    """One new situation among a million: candidates examined are those in its window."""
    partitions, each = 1000, 500
    starts = [(10 * i, 10 * i + 5) for i in range(each)]
    cell = [*([starts, [(s + 6, e + 3) for s, e in starts]] * partitions)]
    end = 10 * each
    cell[1] = [*cell[1], (end, OPEN)]
    laid = cells(*cell)
    triggers = find_triggers(laid, (np.array([0]),) * 2, (np.array([0]),) * 2, end - 1, end)
    made = find_matches(plan_search(of_pair(BEFORE, within=30), ORDER), laid, triggers, end - 1, end)
    assert laid.ts[made.situation[:, 0]].tolist() == [end - 30, end - 20, end - 10]
    assert made.counters[..., 0].sum() == 4


def test_long_streams_of_many_partitions_are_searched_alike() -> None:
    """Blocks of many rows, ranges that begin far from those before, kept and open situations."""
    rng = random.Random(11)
    masks = {(0, 1): BEFORE, (1, 2): OVERLAPS}
    for final in (False, True):
        spec = Spec((0, 1, 2), masks, (1, 2, 1), (None, None, None), (), 60, final)
        compiled = compile_spec(spec, 3)
        found = 0
        for keys, length in ((1, 1500), (40, 60)):
            run = Increments.of(spec, 3, keys)
            run.run(rng, random_events(rng, keys, length, 3, lasting=0.7), [-1, length // 3, length // 2, length])
            assert run.ranged == 3
            found += len(run.found)
        assert found > 50
        assert plan_ranges(compiled.pattern, random_order(rng, 3)) is not None


def test_a_general_search_is_passed_on() -> None:
    laid = cells([(0, 2), (4, 6)], [(3, 5)])
    triggers = find_triggers(laid, (np.array([0]),) * 2, (np.array([0]),) * 2, -1, 9)
    steps = plan_steps(of_pair(BEFORE), ORDER)
    one, other = (search(steps, laid, triggers, -1, 9) for search in (find_matches, enumerate_matches))
    assert rows_of(one) == rows_of(other) == [(0, 2, 3)]
