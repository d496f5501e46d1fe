"""Which situations are of use: the kernel against its definition, rule R29, and matches found with and without it."""

from __future__ import annotations

import random
from collections import Counter
from itertools import product

import numpy as np
import pytest

from tests.runtime.kernels.driver import Increments, random_events
from tests.runtime.kernels.reference import Spec, matches, situations
from tests.shards import shards
from tidegate.runtime.arrays import BoolArray, Int64Array
from tidegate.runtime.kernels.cells import NONE, Situations, purge
from tidegate.runtime.kernels.partners import Partners, needed, of_use
from tidegate.runtime.kernels.search_plan import RELATIONS
from tidegate.runtime.kernels.situations import OPEN

BEFORE, MEETS, OVERLAPS, CONTAINS, EQUALS, AFTER = (
    1 << RELATIONS.index(name) for name in ("before", "meets", "overlaps", "contains", "equals", "after")
)
#: Definition, start and end of a situation.
One = tuple[int, int, int]


def of_use_by_definition(rule: Partners, own: list[One], kept: set[One], until: int) -> tuple[set[One], int]:
    """What of one partition is of use, and when to look again: the greatest set in which each has all that it needs."""
    roles, useful = range(len(rule.definition)), {one for one in own if one[2] == OPEN or one in kept}
    while True:
        waits = {
            one: [wait for role in roles if (wait := waits_until(rule, useful, one, role, until)) is not None]
            for one in useful
        }
        left = {one for one in useful if waits[one] or not rule.freed[one[0]]}
        if left == useful:
            closed = [one for one in left if one[2] != OPEN and rule.freed[one[0]]]
            return left, min((max(waits[one]) for one in closed), default=NONE)
        useful = left


def waits_until(rule: Partners, useful: set[One], one: One, role: int, until: int) -> int | None:
    """When, in a role, a symbol is not to come any more; None where the situation is of no use in it."""
    if rule.definition[role] != one[0]:
        return None
    waits, unsettled = NONE, one[2] == OPEN
    for other in set(range(len(rule.definition))) - {role}:
        if not rule.derived[rule.definition[other]]:
            unsettled = True
            continue
        known = [(2 * role, one[1])] + [(2 * role + 1, one[2])] * (one[2] != OPEN)
        latest = min(
            (at + rule.bounds[v, 2 * other] for v, at in known if rule.bounds[v, 2 * other] != NONE), default=NONE
        )
        if latest > until:
            unsettled, waits = True, min(waits, int(latest))
            continue
        there = [p for p in useful if p[0] == rule.definition[other] and fit(rule.bounds, one, role, p, other, until)]
        if not there:
            return None
        unsettled = unsettled or any(partner[2] == OPEN for partner in there)
    return waits if unsettled else None


def fit(bounds: Int64Array, one: One, role: int, partner: One, other: int, until: int) -> bool:
    """Whether each bound between the two, and on the end of a partner that is open, is met by some ends after
    `until`.
    """
    ends = {2 * role: (one[1], one[1]), 2 * role + 1: range_of(one, until)}
    others = {2 * other: (partner[1], partner[1]), 2 * other + 1: range_of(partner, until)}
    both = ends | others
    checked = [(v, u) for v, u in product(both, both) if (v in ends) != (u in ends)]
    checked += [(2 * other, 2 * other + 1)] if partner[2] == OPEN else []
    return all(bounds[v, u] == NONE or both[u][0] - both[v][1] <= bounds[v, u] for v, u in checked)


def range_of(one: One, until: int) -> tuple[float, float]:
    return (until + 1, float("inf")) if one[2] == OPEN else (one[2], one[2])


def random_rule(rng: random.Random, definitions: int) -> Partners:
    roles = rng.randint(1, 4)
    bounds = np.full((2 * roles, 2 * roles), NONE)
    for v, u in product(range(2 * roles), repeat=2):
        if v // 2 != u // 2 and rng.random() < 0.3:
            bounds[v, u] = rng.randint(-4, 9)
        elif v + 1 == u and rng.random() < 0.2:
            bounds[v, u] = rng.randint(1, 9)

    def flags(share: float) -> BoolArray:
        return np.array([rng.random() < share for _ in range(definitions)])

    definition = np.array([rng.randrange(definitions) for _ in range(roles)])
    return Partners(definition, flags(0.9), flags(0.8), bounds)


@pytest.mark.parametrize("seed", shards(8, 3))
def test_what_is_of_use_is_what_the_rule_says(seed: int) -> None:
    rng = random.Random(seed)
    gone = 0
    for _ in range(300):
        definitions, partitions, until = rng.randint(1, 3), 2, 20
        rule = random_rule(rng, definitions)
        own: list[list[One]] = []
        for definition in [*range(definitions)] * partitions:
            instants = sorted(rng.sample(range(until + 1), 2 * rng.randrange(5)))
            cell = [(definition, ts, te) for ts, te in zip(instants[::2], instants[1::2], strict=True)]
            if cell and rng.random() < 0.5:
                cell[-1] = (definition, cell[-1][1], OPEN)
            own.append(cell)
        flat = [one for cell in own for one in cell]
        offsets = np.cumsum([0, *map(len, own)])
        ts, te = (np.array([one[side] for one in flat], dtype=np.int64) for side in (1, 2))
        laid = Situations(definitions, offsets, ts, te, np.arange(len(flat)))
        kept = purge(laid, rng.choice((NONE, 12)), np.full(definitions, NONE), until)
        useful, look = of_use(rule, laid, kept, until)
        for partition in range(partitions):
            cells = own[partition * definitions : (partition + 1) * definitions]
            first = int(offsets[partition * definitions])
            known = [one for cell in cells for one in cell]
            places = range(first, first + len(known))
            stay = {flat[place] for place in kept.origin.tolist() if place in places}
            expected, when = of_use_by_definition(rule, known, stay, until)
            assert {flat[place] for place in places if useful[place]} == expected, (rule, known, until)
            assert look[partition] == when, (rule, known, until)
            gone += len(known) - len(expected)
    assert gone > 900


@pytest.mark.parametrize("seed", shards(8, 3))
def test_given_intervals_are_needed_as_the_rule_says(seed: int) -> None:
    """Each for itself, against all situations of its partition; in a third one there are none."""
    rng = random.Random(f"given {seed}")
    gone = kept = 0
    for _ in range(200):
        definitions, partitions, until = rng.randint(2, 3), 2, 20
        rule = random_rule(rng, definitions)
        role = rng.randrange(len(rule.definition))
        rule.derived[rule.definition[role]] = False
        own: list[list[One]] = []
        for definition in [*range(definitions)] * partitions:
            instants = sorted(rng.sample(range(until + 1), 2 * rng.randrange(5)))
            cell = [(definition, ts, te) for ts, te in zip(instants[::2], instants[1::2], strict=True)]
            if cell and rng.random() < 0.5:
                cell[-1] = (definition, cell[-1][1], OPEN)
            own.append(cell if rule.derived[definition] else [])
        flat = [one for cell in own for one in cell]
        ts, te = (np.array([one[side] for one in flat], dtype=np.int64) for side in (1, 2))
        laid = Situations(definitions, np.cumsum([0, *map(len, own)]), ts, te, np.arange(len(flat)))
        rows = [(start := rng.randrange(until + 1), start + rng.randint(1, 6)) for _ in range(12)]
        places = np.array([rng.randrange(partitions + 1) for _ in rows])
        starts, ends = (np.array(side, dtype=np.int64) for side in zip(*rows, strict=True))
        found = needed(rule, role, laid, places, starts, ends, until)
        for (start, end), place, stays in zip(rows, places.tolist(), found.tolist(), strict=True):
            known = {one for cell in own[place * definitions : (place + 1) * definitions] for one in cell}
            expected = given_is_needed(rule, known, (start, end), role, until)
            assert stays == expected, (rule, role, known, (start, end), until)
            gone, kept = gone + (not expected), kept + expected
    assert gone > 400
    assert kept > 400


def given_is_needed(rule: Partners, known: set[One], row: tuple[int, int], role: int, until: int) -> bool:
    """Whether every derived symbol is to come or has a partner for the row, and something is still to happen."""
    unsettled, one = row[1] > until, (int(rule.definition[role]), *row)
    for other in set(range(len(rule.definition))) - {role}:
        limits = [(one[1], rule.bounds[2 * role, 2 * other]), (one[2], rule.bounds[2 * role + 1, 2 * other])]
        if not rule.derived[rule.definition[other]] or all(at + bound > until for at, bound in limits if bound != NONE):
            unsettled = True
            continue
        there = [p for p in known if p[0] == rule.definition[other] and fit(rule.bounds, one, role, p, other, until)]
        if not there:
            return False
        unsettled = unsettled or any(partner[2] == OPEN for partner in there)
    return unsettled


def spec(roles: int, masks: dict[tuple[int, int], int], **more: object) -> Spec:
    given = {"definition": tuple(range(roles)), "at_least": (1,) * roles, "at_most": (None,) * roles, **more}
    return Spec(masks=masks, **given)  # type: ignore[arg-type]  # tests name the fields they set


@pytest.mark.parametrize(
    ("pattern", "share"),
    [
        (spec(2, {(0, 1): BEFORE}), 0.6),
        (spec(3, {(0, 1): OVERLAPS | CONTAINS, (1, 2): BEFORE}), 0.3),
        (spec(3, {(0, 1): OVERLAPS | CONTAINS, (1, 2): OVERLAPS | CONTAINS}), 0.1),
        (spec(3, {(0, 1): OVERLAPS | CONTAINS, (1, 2): BEFORE | MEETS}, final=True), 0.3),
        (spec(2, {(0, 1): EQUALS | CONTAINS}, definition=(0, 0)), 0.1),
        (spec(3, {(0, 1): BEFORE, (1, 2): AFTER}, at_least=(1, 2, 1), at_most=(3, None, None)), 0.8),
        (spec(3, {}, clauses=(((2, 1, 3),), ((1, 2, -1),), ((4, 3, 0),))), 0.6),
        (spec(1, {}, at_least=(3,)), 0.1),
    ],
)
def test_what_is_of_no_use_is_not_missed(pattern: Spec, share: float) -> None:
    """Of what is kept without the rule, no more than a share is kept with it, though the same matches are found."""
    rng = random.Random(5)
    sizes, found = [0, 0], 0
    definitions = max(pattern.definition) + 1
    for _ in range(6):
        events, progress = random_events(rng, 2, 36, definitions, lasting=0.75), list(range(-1, 39))
        expected = matches(pattern, situations(events, definitions), progress[-1])
        for freeing in (False, True):
            run = Increments.of(pattern, definitions, 2, freeing=freeing)
            run.run(rng, events, progress)
            assert Counter(run.found) == Counter(expected), (events, freeing)
            sizes[freeing] += run.kept
        found += len(expected)
    assert found > 0
    assert sizes[True] <= share * sizes[False], sizes
