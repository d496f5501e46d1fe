"""Allen's relations: each by hand, and the laws that they obey on all order types."""

from __future__ import annotations

from itertools import product

import pytest

from tidegate.algebra.allen import (
    ANY,
    GROUP_MASKS,
    PREFIX_GROUPS,
    RELATIONS,
    Allen,
    converse_mask,
    group_bits,
    intersection,
    mask_of,
    relation_of,
    relations_in,
)
from tidegate.algebra.evaluation import evaluate_term
from tidegate.algebra.terms import Attr
from tidegate.algebra.time import INF

Interval = tuple[int, int]

#: Four instants give two intervals every order type that they can have.
INTERVALS = [(ts, te) for ts, te in product(range(4), repeat=2) if ts < te]
WITH_POINTS = [(ts, te) for ts, te in product(range(4), repeat=2) if ts <= te]

#: What a relation becomes when time runs backwards.
MIRRORED = {
    Allen.BEFORE: Allen.AFTER,
    Allen.MEETS: Allen.MET_BY,
    Allen.OVERLAPS: Allen.OVERLAPPED_BY,
    Allen.FINISHED_BY: Allen.STARTED_BY,
    Allen.CONTAINS: Allen.CONTAINS,
    Allen.STARTS: Allen.FINISHES,
    Allen.EQUALS: Allen.EQUALS,
    Allen.STARTED_BY: Allen.FINISHED_BY,
    Allen.DURING: Allen.DURING,
    Allen.FINISHES: Allen.STARTS,
    Allen.OVERLAPPED_BY: Allen.OVERLAPS,
    Allen.MET_BY: Allen.MEETS,
    Allen.AFTER: Allen.BEFORE,
}


def holding(a: Interval, b: Interval) -> set[Allen]:
    """The relations whose conditions hold."""
    values = {"a_ts": a[0], "a_te": a[1], "b_ts": b[0], "b_te": b[1]}
    ends = [Attr(name) for name in values]
    return {relation for relation in Allen if evaluate_term(relation.condition(*ends), values)}


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ((0, 2), (3, 5), Allen.BEFORE),  # a gap of one tick
        ((0, 3), (3, 5), Allen.MEETS),
        ((0, 4), (3, 5), Allen.OVERLAPS),  # one tick in common
        ((0, 5), (3, 5), Allen.FINISHED_BY),
        ((0, 6), (3, 5), Allen.CONTAINS),
        ((3, 4), (3, 5), Allen.STARTS),
        ((3, 5), (3, 5), Allen.EQUALS),
        ((3, 6), (3, 5), Allen.STARTED_BY),
        ((3, 5), (2, 6), Allen.DURING),
        ((3, 5), (2, 5), Allen.FINISHES),
        ((3, 5), (2, 4), Allen.OVERLAPPED_BY),
        ((3, 5), (2, 3), Allen.MET_BY),
        ((3, 5), (1, 2), Allen.AFTER),
    ],
)
def test_each_relation(a: Interval, b: Interval, expected: Allen) -> None:
    assert relation_of(*a, *b) is expected
    assert relation_of(*b, *a) is expected.converse
    assert holding(a, b) == {expected}


def test_the_names_stand_in_the_order_of_their_bits() -> None:
    names = (
        "before meets overlaps finished_by contains starts equals started_by during finishes overlapped_by met_by after"
    )
    assert [relation.value for relation in Allen] == names.split()
    assert [relation.index for relation in Allen] == list(range(13))
    assert [relation.bit for relation in Allen] == [2**k for k in range(13)]


@pytest.mark.parametrize("a", INTERVALS)
def test_intervals_are_in_exactly_one_relation(a: Interval) -> None:
    for b in INTERVALS:
        assert holding(a, b) == {relation_of(*a, *b)}


def test_every_relation_occurs_among_the_order_types() -> None:
    assert {relation_of(*a, *b) for a, b in product(INTERVALS, repeat=2)} == set(Allen)


def test_the_converse_exchanges_the_intervals() -> None:
    for a, b in product(WITH_POINTS, repeat=2):
        assert relation_of(*b, *a) is relation_of(*a, *b).converse
        assert holding(b, a) == {relation.converse for relation in holding(a, b)}


def test_time_backwards() -> None:
    for a, b in product(INTERVALS, repeat=2):
        assert relation_of(-a[1], -a[0], -b[1], -b[0]) is MIRRORED[relation_of(*a, *b)]


def test_points_are_in_one_of_the_relations_whose_conditions_hold() -> None:
    for a, b in product(WITH_POINTS, repeat=2):
        assert relation_of(*a, *b) in holding(a, b)


@pytest.mark.parametrize(
    ("a", "b", "expected", "all_of_them"),
    [
        ((3, 3), (3, 5), Allen.STARTS, {Allen.MEETS, Allen.STARTS}),
        ((5, 5), (3, 5), Allen.MET_BY, {Allen.MET_BY, Allen.FINISHES}),
        ((4, 4), (3, 5), Allen.DURING, {Allen.DURING}),
        ((3, 3), (3, 3), Allen.EQUALS, {Allen.MEETS, Allen.EQUALS, Allen.MET_BY}),
        ((2, 2), (3, 3), Allen.BEFORE, {Allen.BEFORE}),
    ],
)
def test_points(a: Interval, b: Interval, expected: Allen, all_of_them: set[Allen]) -> None:
    assert relation_of(*a, *b) is expected
    assert holding(a, b) == all_of_them


def test_an_end_that_is_later_than_everything() -> None:
    assert relation_of(0, 4, 2, INF) is Allen.OVERLAPS
    assert relation_of(0, INF, 2, 4) is Allen.CONTAINS
    assert relation_of(0, 2, 2, INF) is Allen.MEETS


def test_prefix_groups_are_the_relations_that_only_ends_tell_apart() -> None:
    """Of two intervals that have begun and not ended, only the order of their starts is known."""
    for sign, group in zip((-1, 0, 1), PREFIX_GROUPS, strict=True):
        both = [(a, b) for a, b in product(INTERVALS, repeat=2) if max(a[0], b[0]) < min(a[1], b[1])]
        assert {relation_of(*a, *b) for a, b in both if (a[0] > b[0]) - (a[0] < b[0]) == sign} == group
    assert [relation for relation in RELATIONS if relation.group is None] == [
        Allen.BEFORE,
        Allen.MEETS,
        Allen.MET_BY,
        Allen.AFTER,
    ]
    assert [Allen.CONTAINS.group, Allen.EQUALS.group, Allen.FINISHES.group] == [0, 1, 2]


def test_masks() -> None:
    some = {Allen.BEFORE, Allen.STARTS, Allen.AFTER}
    assert mask_of(some) == 0b1_0000_0010_0001
    assert set(relations_in(mask_of(some))) == some
    assert mask_of(Allen) == ANY == 8191
    assert converse_mask(mask_of({Allen.MEETS, Allen.FINISHES})) == mask_of({Allen.MET_BY, Allen.FINISHED_BY})
    assert all(converse_mask(converse_mask(mask)) == mask for mask in range(ANY + 1))
    assert [bin(mask) for mask in GROUP_MASKS] == ["0b11100", "0b11100000", "0b11100000000"]


def test_group_bits_say_which_groups_are_whole() -> None:
    first, second, third = GROUP_MASKS
    assert group_bits(first | Allen.STARTS.bit) == 0b001
    assert group_bits(ANY & ~Allen.CONTAINS.bit) == 0b110
    assert group_bits(second | third) == 0b110
    assert group_bits(0) == 0
    # The first and the third are each other's converse.
    assert group_bits(converse_mask(first)) == 0b100


def instants(interval: Interval) -> set[int]:
    """Those of [ts, te); of a point its own."""
    return set(range(*interval)) or {interval[0]}


def intersecting(a: Interval, b: Interval, *, points: bool) -> bool:
    values = {"a_ts": a[0], "a_te": a[1], "b_ts": b[0], "b_te": b[1]}
    return evaluate_term(intersection(*map(Attr, values), points=points), values) is True


@pytest.mark.parametrize("points", [False, True])
def test_intervals_intersect_where_they_have_an_instant_in_common(points: bool) -> None:
    apart = {Allen.BEFORE, Allen.MEETS, Allen.MET_BY, Allen.AFTER}
    for a, b in product(INTERVALS, repeat=2):
        assert intersecting(a, b, points=points) == (a[0] < b[1] and b[0] < a[1]) == bool(instants(a) & instants(b))
        assert intersecting(a, b, points=points) == (relation_of(*a, *b) not in apart)


def test_a_point_intersects_what_begins_at_it_and_not_what_ends() -> None:
    for a, b in product(WITH_POINTS, repeat=2):
        assert intersecting(a, b, points=True) == bool(instants(a) & instants(b)), (a, b)
    assert intersecting((3, 3), (3, 5), points=True)
    assert intersecting((4, 4), (3, 5), points=True)
    assert not intersecting((5, 5), (3, 5), points=True)
