"""The pattern kernel finds every match once, when it is detected, in any increments and evaluation order."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.runtime.kernels.driver import (
    Increments,
    random_case,
    random_events,
    random_increments,
    random_order,
    random_spec,
)
from tests.runtime.kernels.reference import ALLEN, Match, Situation, Spec, compile_spec, matches, situations
from tidegate.runtime.kernels.cells import NONE, Situations, arrange, find_triggers, purge
from tidegate.runtime.kernels.counting import count_matches, tails_of
from tidegate.runtime.kernels.event_runs import NEVER
from tidegate.runtime.kernels.search import _reach, _relation, enumerate_matches
from tidegate.runtime.kernels.search_plan import TE_TO, TS_FROM, Pattern, inverse, plan_steps, triggering
from tidegate.runtime.kernels.situations import OPEN, ClosedSituations, Runs


def check(seed: int, cases: int) -> tuple[int, int]:
    """Compares the kernels with the definitions; how many cases had matches, and how many matches there were."""
    rng = random.Random(seed)
    fruitful = total = 0
    for _ in range(cases):
        spec, definitions, partitions, events, progress = random_case(rng)
        expected = matches(spec, situations(events, definitions), progress[-1])
        run = Increments.of(spec, definitions, partitions, freeing=rng.random() < 0.5)
        run.run(rng, events, progress)
        assert Counter(run.found) == Counter(expected), (spec, events, progress)
        fruitful += bool(expected)
        total += len(expected)
    return fruitful, total


@pytest.mark.parametrize("seed", range(8))
def test_random_patterns(seed: int) -> None:
    fruitful, total = check(seed, 150)
    assert fruitful >= 25
    assert total >= 50


@pytest.mark.long
@pytest.mark.parametrize("seed", range(100, 140))
def test_many_random_patterns(seed: int) -> None:
    check(seed, 500)


ANY = (1 << 13) - 1
BEFORE, MEETS, OVERLAPS, EQUALS, AFTER = 1 << 0, 1 << 1, 1 << 2, 1 << 6, 1 << 12
A_TS, A_TE, B_TS, B_TE, C_TS, C_TE = range(6)


def spec(roles: int, masks: dict[tuple[int, int], int], **more: object) -> Spec:
    given = {"definition": tuple(range(roles)), "at_least": (1,) * roles, "at_most": (None,) * roles, **more}
    return Spec(masks=masks, **given)  # type: ignore[arg-type]  # tests name the fields they set


@pytest.mark.parametrize(
    "pattern",
    [
        spec(3, {(0, 1): BEFORE, (1, 2): OVERLAPS}, within=20),
        spec(3, {(0, 1): BEFORE, (1, 2): OVERLAPS}, within=20, final=True),
        spec(2, {}, clauses=(((B_TS, A_TE, 2),), ((A_TE, B_TS, 2),))),
        spec(3, {}, clauses=(((A_TE, B_TS, -1), (B_TE, C_TS, -1)),), within=6),
        spec(3, {(0, 2): ANY ^ AFTER}, clauses=(((A_TE, B_TS, -1), (B_TE, C_TS, -1), (C_TE, A_TE, 3)),)),
        spec(2, {(0, 1): BEFORE | EQUALS}, definition=(0, 0), within=6),
        spec(3, {(0, 1): BEFORE, (1, 2): BEFORE}, definition=(0, 1, 0)),
        spec(2, {(0, 1): 0b11100}, at_least=(3, 1), at_most=(None, 4)),
        spec(1, {}, at_least=(3,)),
        spec(1, {}, at_most=(2,)),
    ],
)
def test_patterns_of_every_kind(pattern: Spec) -> None:
    rng = random.Random(7)
    total = 0
    for _ in range(40):
        definitions, partitions, length = max(pattern.definition) + 1, rng.randint(1, 3), 26
        events, progress = (
            random_events(rng, partitions, length, definitions, lasting=0.7),
            random_increments(rng, length),
        )
        expected = matches(pattern, situations(events, definitions), progress[-1])
        run = Increments.of(pattern, definitions, partitions)
        run.run(rng, events, progress)
        assert Counter(run.found) == Counter(expected), (events, progress)
        total += len(expected)
    assert total >= 3


@pytest.mark.parametrize(
    ("pattern", "horizons"),
    [
        (spec(2, {(0, 1): MEETS}), (0, 0)),
        (spec(2, {(0, 1): OVERLAPS}), (0, -1)),
        (spec(2, {(0, 1): BEFORE}, clauses=(((B_TS, A_TE, 3),),)), (3, -1)),
        (spec(2, {(0, 1): OVERLAPS}, final=True), (NONE, 0)),
    ],
)
def test_what_is_past_its_horizon_is_dropped_and_not_missed(pattern: Spec, horizons: tuple[int, ...]) -> None:
    rng = random.Random(3)
    larger, largest = 0, 0
    for _ in range(25):
        events, progress = random_events(rng, 2, 20, 2), list(range(-1, 24))
        expected = matches(pattern, situations(events, 2), progress[-1])
        sizes = []
        for kept in (np.full(2, NONE), np.array(horizons)):
            run = Increments.of(pattern, 2, 2)
            run.horizons = kept
            run.run(rng, events, progress)
            assert Counter(run.found) == Counter(expected)
            sizes.append(run.largest)
        larger += sizes[0]
        largest += sizes[1]
    assert largest < 0.7 * larger


def cells(*situations_of_cell: list[tuple[int, int]]) -> Situations:
    flat = [s for cell in situations_of_cell for s in cell]
    offsets = np.cumsum([0, *map(len, situations_of_cell)])
    ts, te = (np.array([s[side] for s in flat], dtype=np.int64) for side in (0, 1))
    return Situations(2, offsets, ts, te, np.arange(len(flat)))


def test_what_was_kept_what_closed_and_what_is_open_stand_by_cell_with_their_origins() -> None:
    """Two partitions of two definitions, kept of the first partition alone."""
    kept = Situations(2, np.array([0, 2, 3]), np.array([0, 4, 1]), np.array([2, 5, 3]), np.arange(3))
    partition, symbol = np.array([1, 0], dtype=np.int32), np.array([0, 1], dtype=np.int16)
    closed = ClosedSituations(partition, symbol, np.array([6, 7]), np.array([8, 9]), np.array([50, 51]))
    runs = Runs.empty(2, 2)
    runs.start[0, 0], runs.start[1, 1] = 10, 11
    laid = arrange(kept, closed, runs, 2)
    assert laid.offsets.tolist() == [0, 3, 5, 6, 7]
    assert laid.ts.tolist() == [0, 4, 10, 1, 7, 6, 11]
    assert laid.te.tolist() == [2, 5, OPEN, 3, 9, 8, OPEN]
    assert laid.origin.tolist() == [0, 1, 3 + 2 + 0, 2, 3 + 1, 3 + 0, 3 + 2 + 3]
    over = arrange(kept, closed, None, 2)
    assert over.origin.tolist() == [0, 1, 2, 4, 3]
    assert over.offsets.tolist() == [0, 2, 4, 5, 5]


def test_purge_keeps_what_the_window_and_the_horizon_allow() -> None:
    laid = cells([(0, 4), (5, 9), (10, OPEN)], [(1, 2), (8, 9)])
    for within, horizons, until, origins in (
        (NONE, (NONE, NONE), 100, [0, 1, 3, 4]),
        (10, (NONE, NONE), 9, [0, 1, 3, 4]),
        (10, (NONE, NONE), 10, [1, 3, 4]),
        (10, (NONE, NONE), 11, [1, 4]),
        (NONE, (3, 0), 6, [0, 1, 4]),
        (NONE, (3, 0), 7, [1, 4]),
        (NONE, (3, 0), 9, [1]),
    ):
        left = purge(laid, within, np.array(horizons), until)
        assert left.origin.tolist() == origins
        assert left.ts.tolist() == laid.ts[origins].tolist()
        assert left.te.tolist() == laid.te[origins].tolist()
        assert left.offsets.tolist() == [0, sum(o < 3 for o in origins), len(origins)]


def test_triggers_are_starts_and_ends_shifted_into_the_increment() -> None:
    laid = cells([(0, 4), (5, 9)], [(1, 2)], [(7, OPEN)], [])
    shifts = (np.array([0, 2]), np.array([0])), (np.array([0]), np.array([0, 5]))
    for after, until, hits, partitions in (
        (-1, 0, [0], [0]),
        (0, 2, [0, 2], [0, 0]),
        (4, 5, [1], [0]),
        (5, 7, [1, 3, 2], [0, 1, 0]),
        (9, 10, [], []),
        (NEVER, OPEN, [0, 1, 3, 2], [0, 0, 1, 0]),
    ):
        triggers = find_triggers(laid, *shifts, after, until)
        assert triggers.hit.tolist() == hits
        assert triggers.partition.tolist() == partitions
        assert triggers.quiet.tolist() == [min((q for q in range(p, 4) if q not in hits), default=4) for p in range(5)]


def test_the_search_goes_on_where_a_full_output_stopped_it() -> None:
    """More matches from one triggered situation than the first output holds."""
    count = 3000
    laid = cells([(i, i + 1) for i in range(count)], [(count, count + 1)])
    triggers = find_triggers(laid, (np.array([0]),) * 2, (np.array([0]),) * 2, count - 1, count)
    steps = plan_steps(Pattern.of_pairs(np.array([[ANY, BEFORE | MEETS], [ANY, ANY]])), np.array([[0, 1], [1, 0]]))
    made = enumerate_matches(steps, laid, triggers, count - 1, count)
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
    masks = np.array([[ANY, BEFORE], [ANY, ANY]])
    steps = plan_steps(Pattern.of_pairs(masks, within=30), np.array([[0, 1], [1, 0]]))
    made = enumerate_matches(steps, laid, triggers, end - 1, end)
    assert laid.ts[made.situation[:, 0]].tolist() == [end - 30, end - 20, end - 10]
    assert made.counters[..., 0].sum() == 4


def test_relations_and_their_inverses() -> None:
    """The kernel's relation, the definitions and the inverse agree on all small pairs of intervals."""
    intervals = [(ts, te) for ts in range(6) for te in range(ts + 1, 7)]
    for one in intervals:
        for other in intervals:
            true = [bit for bit, relation in enumerate(ALLEN) if relation(*np.array([*one, *other]))]
            assert [_relation(*one, *other)] == true
            assert inverse(1 << true[0]) == 1 << _relation(*other, *one)


@pytest.mark.parametrize(
    "masks",
    [
        {(0, 1): BEFORE, (1, 2): OVERLAPS},
        {(0, 1): BEFORE, (0, 2): BEFORE, (1, 2): BEFORE},
        {(0, 1): 1 << 5, (1, 2): BEFORE, (2, 3): OVERLAPS},
        {(0, 1): OVERLAPS, (1, 2): BEFORE, (2, 3): 0b11100},
        {(0, 1): 1 << 7, (1, 2): BEFORE | MEETS, (2, 3): 0b11100},
        {(0, 1): AFTER, (1, 2): MEETS},
    ],
)
@pytest.mark.parametrize("final", [False, True])
def test_tails_are_counted_as_they_are_enumerated(masks: dict[tuple[int, int], int], final: bool) -> None:
    rng = random.Random(str(masks))
    roles = 1 + max(map(max, masks))
    tails = found = 0
    for _ in range(20):
        events = random_events(rng, 1, 120, roles, lasting=0.6)
        one = spec(roles, masks, within=rng.choice([None, 30, 60]), final=final)
        run = Increments.of(one, roles, 1)  # compares the counts
        run.run(rng, events, random_increments(rng, 120))
        tails, found = tails + run.tails, found + len(run.found)
    assert tails > 0
    assert found > 0


def test_matches_of_the_increment_before_are_not_counted_again() -> None:
    """The later B ends in the second increment, in which it could make a match with a B in C certain. That with the
    earlier one was certain when the later one began, at the end of the first increment.
    """
    contains, begins_in = 1 << 4, 0b111 << 8
    masks = {(0, 1): BEFORE, (1, 2): begins_in, (1, 3): AFTER, (2, 3): contains}
    compiled = compile_spec(spec(4, masks, definition=(0, 1, 2, 1)), 3)
    steps = plan_steps(compiled.pattern, np.array([[0, 1, 2, 3], [1, 2, 3, 0], [2, 1, 3, 0], [3, 1, 2, 0]]))
    tail = tails_of(steps)[1]
    assert tail is not None
    numbers = []
    for after, until, end in ((-1, 6, OPEN), (6, 12, 9)):
        flat = [(1, 3), (2, 4), (6, end), (0, OPEN)]
        ts, te = (np.array([one[side] for one in flat], dtype=np.int64) for side in (0, 1))
        laid = Situations(3, np.array([0, 1, 3, 4]), ts, te, np.arange(4))
        triggers = find_triggers(laid, compiled.from_start, compiled.from_end, after, until)
        counted = count_matches(steps, tails_of(steps), laid, triggers, after, until)
        assert counted.matches == len(enumerate_matches(steps, laid, triggers, after, until).detected)
        numbers.append(counted.matches)
    assert tail.quiet(triggers)
    assert triggers.hit.tolist() == [2]
    assert numbers == [1, 0]


@pytest.mark.parametrize("seed", range(10))
def test_tails_of_random_patterns_are_counted_as_they_are_enumerated(seed: int) -> None:
    """Of roles that mostly follow each other, sometimes the one before another in the pattern, sometimes behind it."""
    rng, tails = random.Random(seed), 0
    for _ in range(12):
        roles = rng.choice([3, 3, 4])
        pairs = [(one, other) for one in range(roles) for other in range(one + 1, roles)]
        kinds = [BEFORE, BEFORE, AFTER, AFTER, BEFORE | MEETS, 1 << 11 | AFTER, OVERLAPS, 0b11100, 0b11100000, 1 << 8]
        masks = {pair: rng.choice(kinds) for pair in pairs if rng.random() < 0.6}
        definition = tuple(rng.sample(range(roles), roles)) if rng.random() < 0.7 else (*tuple(range(roles - 1)), 0)
        most = tuple(rng.choice([None] * 9 + [3]) for _ in range(roles))
        least = tuple(rng.choice([1] * 9 + [2]) for _ in range(roles))
        one = spec(
            roles, masks, definition=definition, at_least=least, at_most=most,
            within=rng.choice([None, None, 8, 20]), final=rng.random() < 0.3,
        )  # fmt: skip
        run = Increments.of(one, roles, 1)  # compares the counts
        run.run(rng, random_events(rng, 1, 24, roles, lasting=0.6), random_increments(rng, 24))
        tails += run.tails
    assert tails > 5


def overlapping(rng: random.Random, partitions: int, definitions: int) -> list[Situation]:
    """Situations that may overlap and contain each other, no two of a cell with one start."""
    found = []
    for partition in range(partitions):
        for definition in range(definitions):
            starts = sorted(rng.sample(range(12), rng.randrange(6)))
            found += [Situation(partition, definition, start, start + rng.choice((1, 2, 3, 9))) for start in starts]
    return found


@pytest.mark.parametrize("seed", range(8))
def test_situations_that_overlap_are_all_looked_at(seed: int) -> None:
    """As given ones may: their ends are in no order."""
    rng, total = random.Random(seed), 0
    for _ in range(40):
        roles, partitions = rng.choice([1, 2, 2, 3]), rng.randint(1, 2)
        wanted = random_spec(rng, roles, roles)
        pool = overlapping(rng, partitions, roles)
        places = {
            cell: [s for s in pool if (s.partition, s.condition) == cell] for cell in np.ndindex(partitions, roles)
        }
        flat = [s for cell in places.values() for s in cell]
        laid = Situations(
            roles,
            np.cumsum([0, *map(len, places.values())]),
            np.array([s.start for s in flat], dtype=np.int64),
            np.array([s.end for s in flat], dtype=np.int64),
            np.arange(len(flat)),
        )
        compiled = compile_spec(wanted, roles)
        steps = plan_steps(
            replace(compiled.pattern, disjoint=np.zeros(roles, dtype=np.bool_)), random_order(rng, roles)
        )
        found = Counter[Match]()
        for after, until in pairwise(random_increments(rng, 24)):
            over = laid.where((laid.te <= until) | (laid.ts <= until))
            now = replace(over, te=np.where(over.te <= until, over.te, OPEN))
            triggers = find_triggers(now, compiled.from_start, compiled.from_end, after, until)
            made = enumerate_matches(steps, now, triggers, after, until)
            for chosen, detected in zip(made.situation, made.detected, strict=True):
                of = [flat[int(over.origin[place])] for place in chosen]
                found[Match(tuple((s.partition, s.condition, s.start) for s in of), int(detected))] += 1
        expected = Counter(matches(wanted, pool, 30))
        assert found == Counter({match: n for match, n in expected.items() if match.detected <= 24}), wanted
        total += len(found)
    assert total > 20


def test_a_pattern_of_pairs_has_no_formula_and_no_limits() -> None:
    made = Pattern.of_pairs(np.full((3, 3), ANY))
    assert (made.zones.shape, made.implied.shape) == ((0, 6, 6), (6, 6))
    assert (made.implied == NONE).all()
    assert (made.definition.tolist(), made.at_least.tolist(), made.at_most.tolist()) == ([0, 1, 2], [1] * 3, [NONE] * 3)
    assert (made.within, made.final, made.disjoint) == (NONE, False, None)


def test_what_is_over_when_another_begins_is_not_the_last_to_make_a_match_certain() -> None:
    for relation, by_start, by_end in (
        (BEFORE, [False, True], [False] * 2),
        (MEETS, [False, True], [False] * 2),
        (AFTER, [True, False], [False] * 2),
        (OVERLAPS, [False] * 2, [True, False]),
        (BEFORE | OVERLAPS, [False, True], [True, False]),
        (BEFORE | EQUALS, [False, True], [True, False]),
        (ANY, [True] * 2, [False] * 2),
    ):
        assert lasts(Pattern.of_pairs(np.array([[ANY, relation], [ANY, ANY]]))) == (by_start, by_end)
    both = replace(Pattern.of_pairs(np.array([[ANY, BEFORE], [ANY, ANY]])), definition=np.array([0, 0]))
    assert lasts(both) == ([True], [False]), "in the other role it may be the last"
    points = replace(Pattern.of_pairs(np.array([[ANY, BEFORE], [ANY, ANY]])), at_least=np.array([0, 1]))
    assert lasts(points) == ([True, True], [True, True])
    final = Pattern.of_pairs(np.array([[ANY, OVERLAPS], [ANY, ANY]]), final=True)
    assert lasts(final) == ([False] * 2, [False, True])
    lasting = replace(Pattern.of_pairs(np.array([[ANY, OVERLAPS], [ANY, ANY]])), at_most=np.array([NONE, 9]))
    assert lasts(lasting) == ([False] * 2, [False, True])


def lasts(pattern: Pattern) -> tuple[list[bool], list[bool]]:
    by_start, by_end = triggering(pattern)
    return by_start.tolist(), by_end.tolist()


def test_masks_are_read_above_the_diagonal() -> None:
    masks = np.full((3, 3), ANY)
    masks[0, 1], masks[1, 2], masks[0, 2] = BEFORE, OVERLAPS, BEFORE | MEETS
    order = np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]])
    other = np.where(np.tri(3, dtype=np.bool_), EQUALS, masks)
    one, two = (plan_steps(Pattern.of_pairs(given), order) for given in (masks, other))
    for name in ("bound_first", "bounds", "pair_first", "pairs"):
        assert getattr(one, name).tolist() == getattr(two, name).tolist()


def test_the_reach_of_a_cell_does_not_fall() -> None:
    offsets, te = np.array([0, 3, 3, 5, 6]), np.array([5, 2, 7, 1, 4, 3])
    assert _reach(2, offsets, te).tolist() == [5, 5, 7, 1, 4, 3]
    assert _reach(2, offsets, te[::-1].copy()).tolist() == [3, 4, 4, 7, 7, 5]


def test_bounds_that_follow_from_others_are_left_out() -> None:
    """Of A before B before C, C begins after B ends: that it is after A follows."""
    masks = np.full((3, 3), ANY)
    masks[0, 1] = masks[1, 2] = BEFORE
    steps = plan_steps(Pattern.of_pairs(masks), np.array([[0, 1, 2], [1, 0, 2], [2, 1, 0]]))
    bounds = [steps.bounds[a:b].tolist() for a, b in pairwise(steps.bound_first.tolist())]
    after_a, after_b = [[TS_FROM, A_TE, 1]], [[TS_FROM, B_TE, 1]]
    before_b, before_c = [[TE_TO, B_TS, -1]], [[TE_TO, C_TS, -1]]
    assert bounds == [[], after_a, after_b, [], before_b, after_b, [], before_c, before_b]
