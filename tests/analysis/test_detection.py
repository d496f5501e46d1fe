"""When matches are detected: by hand for each relation and boundary, and against brute force for every set of
relations.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise, product

import numpy as np
import pytest

from tests.analysis.build import eq, le, lt, plus, ticks
from tidegate.algebra.allen import (
    ANY,
    GROUP_MASKS,
    PREFIX_GROUPS,
    Allen,
    intersection,
    mask_of,
    relation_of,
    relations_in,
)
from tidegate.algebra.errors import QueryError
from tidegate.algebra.ordered.match.node import Emission
from tidegate.algebra.terms import TRUE, Attr, Lit, Term, call, conjunction, disjunction
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import BIGINT, BOOLEAN, INT64_MAX
from tidegate.analysis.ordered.match.detection import Detection, detection, detection_time, pair_certain_from
from tidegate.analysis.ordered.match.pattern import Symbol, interval_bound, pattern
from tidegate.analysis.zones.normal_form import Bound
from tidegate.analysis.zones.zone import NONE

A, B, C = Symbol("A"), Symbol("B"), Symbol("C")


def related(first: Symbol, second: Symbol, *relations: Allen) -> Term:
    """The first is in one of these relations to the second."""
    a_ts, a_te, b_ts, b_te = (Attr(name) for name in (first.ts, first.te, second.ts, second.te))
    return disjunction([relation.condition(a_ts, a_te, b_ts, b_te) for relation in relations])


def plan(
    condition: Term,
    *symbols: Symbol,
    within: int | None = None,
    emission: Emission = "earliest",
) -> Detection:
    return detection(symbols or (A, B), condition, BIGINT, within, emission)


def at(condition: Term, *values: Extended, symbols: Sequence[Symbol] = (A, B), within: int | None = None) -> int | None:
    return detection_time(detection(symbols, condition, BIGINT, within), values)


# --- two intervals, by hand ------------------------------------------------------------------------------------------

#: TPStream's Table 2: of t1 <= t2 <= t3 <= t4 in a relation's definition, t3 detects it.
TABLE_2 = {
    Allen.BEFORE: ((1, 3, 4, 8), 4),
    Allen.MEETS: ((1, 3, 3, 8), 3),
    Allen.OVERLAPS: ((1, 5, 3, 8), 5),
    Allen.FINISHED_BY: ((1, 8, 3, 8), 8),
    Allen.CONTAINS: ((1, 9, 3, 7), 7),
    Allen.STARTS: ((1, 5, 1, 8), 5),
    Allen.EQUALS: ((1, 5, 1, 5), 5),
    Allen.STARTED_BY: ((1, 8, 1, 5), 5),
    Allen.DURING: ((3, 5, 1, 8), 5),
    Allen.FINISHES: ((3, 8, 1, 8), 8),
    Allen.OVERLAPPED_BY: ((3, 8, 1, 5), 5),
    Allen.MET_BY: ((3, 8, 1, 3), 3),
    Allen.AFTER: ((4, 8, 1, 3), 4),
}


@pytest.mark.parametrize("relation", Allen)
def test_table_2(relation: Allen) -> None:
    values, expected = TABLE_2[relation]
    alone = related(A, B, relation)
    assert relation_of(*values) is relation
    assert at(alone, *values) == expected
    # An end after the detection need not be known.
    assert at(alone, *(INF if value > expected else value for value in values)) == expected
    assert at(related(A, B, *(set(Allen) - {relation})), *values) is None


@pytest.mark.parametrize("relation", Allen)
def test_a_whole_prefix_group_is_certain_once_both_have_begun(relation: Allen) -> None:
    values, late = TABLE_2[relation]
    begun = max(values[0], values[2])
    if relation.group is None:
        assert late == begun
        return
    group = PREFIX_GROUPS[relation.group]
    assert at(related(A, B, *group), *values) == begun
    assert at(related(A, B, *group), values[0], INF, values[2], INF) == begun
    for missing in group - {relation}:
        assert at(related(A, B, *(group - {missing})), *values) == late
        assert at(related(A, B, *(group - {missing})), values[0], INF, values[2], INF) is None


@pytest.mark.parametrize(
    ("relations", "values", "expected"),
    [
        ([Allen.BEFORE], (0, 3, 3, 9), None),  # they share an endpoint
        ([Allen.MEETS], (0, 3, 3, 9), 3),
        ([Allen.BEFORE], (0, 3, 4, 9), 4),  # a gap of one tick
        ([Allen.MEETS], (0, 3, 4, 9), None),
        ([Allen.OVERLAPS], (0, 4, 3, 9), 4),  # one tick in common
        ([Allen.OVERLAPS], (0, 8, 3, 9), 8),  # one tick short of finishing
        ([Allen.OVERLAPS], (0, 9, 3, 9), None),
        ([Allen.FINISHED_BY], (0, 9, 3, 9), 9),
        ([Allen.CONTAINS], (0, 10, 3, 9), 9),
        ([Allen.OVERLAPS], (3, 4, 3, 9), None),  # the same start
        ([Allen.STARTS], (3, 4, 3, 9), 4),
        ([Allen.OVERLAPS], (2, 4, 3, 9), 4),
        ([Allen.DURING], (4, 8, 3, 9), 8),
        ([Allen.FINISHES], (4, 9, 3, 9), 9),
        ([Allen.FINISHES], (4, 9, 3, 10), None),
        ([Allen.DURING, Allen.STARTS], (3, 8, 3, INF), 8),
        ([Allen.DURING, Allen.STARTS], (2, 8, 3, INF), None),
        ([Allen.EQUALS], (3, 9, 3, 9), 9),
        ([Allen.EQUALS], (3, 9, 3, INF), None),
        ([], (3, 9, 3, 9), None),
    ],
)
def test_boundaries(relations: list[Allen], values: tuple[Extended, ...], expected: int | None) -> None:
    assert at(related(A, B, *relations), *values) == expected


@pytest.mark.parametrize(
    ("symbol", "values", "expected"),
    [
        (Symbol("A", at_least=5), (10, 15), 14),  # met exactly: at 14 it is known to last until 15
        (Symbol("A", at_least=5), (10, 14), None),  # one tick short
        (Symbol("A", at_least=5), (10, INF), 14),
        (Symbol("A", at_least=5), (10, 99), 14),
        (Symbol("A", at_least=1), (10, 11), 10),  # no interval is shorter
        (Symbol("A", at_least=0), (10, 11), 10),
        (Symbol("A", at_most=5), (10, 15), 15),
        (Symbol("A", at_most=5), (10, 16), None),
        (Symbol("A", at_most=5), (10, INF), None),
        (Symbol("A", at_least=5, at_most=5), (10, 15), 15),
        (Symbol("A", at_least=5, at_most=5), (10, 14), None),
        (Symbol("A", at_least=5, at_most=4), (10, 14), None),
        (Symbol("A"), (10, INF), 10),
        (Symbol("A", points=True, at_least=0), (10, 10), 10),
        (Symbol("A", points=True, at_least=1), (10, 10), None),
        (Symbol("A", points=True, at_least=1), (10, 11), 10),
        (Symbol("A", points=True, at_most=0), (10, 10), 10),
    ],
)
def test_durations(symbol: Symbol, values: tuple[Extended, ...], expected: int | None) -> None:
    assert at(TRUE, *values, symbols=[symbol]) == expected
    duration = call("sub", Attr("A.te"), Attr("A.ts"))
    limits = [call("ge", duration, ticks(symbol.at_least))] if symbol.at_least is not None else []
    limits += [call("le", duration, ticks(symbol.at_most))] if symbol.at_most is not None else []
    assert at(conjunction([*limits]), *values, symbols=[Symbol("A", points=symbol.points)]) == expected


@pytest.mark.parametrize(
    ("within", "expected"),
    [(8, 8), (7, None), (100, 8), (None, 8)],
)
def test_within_counts_from_the_first_start_to_the_detection(within: int | None, expected: int | None) -> None:
    assert at(related(A, B, Allen.OVERLAPS), 0, 8, 3, 20, within=within) == expected


def test_final_waits_for_all_ends() -> None:
    overlaps = related(A, B, Allen.OVERLAPS)
    assert detection_time(plan(overlaps, emission="final"), (0, 8, 3, 20)) == 20
    assert detection_time(plan(overlaps, emission="final"), (0, 8, 3, INF)) is None
    assert detection_time(plan(overlaps, emission="final"), (0, 3, 3, 20)) is None
    assert detection_time(plan(overlaps, emission="final", within=20), (0, 8, 3, 20)) == 20
    assert detection_time(plan(overlaps, emission="final", within=19), (0, 8, 3, 20)) is None


# --- general constraints, by hand ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0, 4, 9, 20), 9),  # B begins 5 ticks after A's end
        ((0, 4, 10, 20), None),  # 6 ticks
        ((0, 30, 10, 20), 10),  # A has not ended: its end is at least one tick away
        ((0, INF, 10, INF), 10),
    ],
)
def test_a_gap_of_at_most_five(values: tuple[Extended, ...], expected: int | None) -> None:
    assert at(le("B.ts", plus("A.te", 5)), *values) == expected


@pytest.mark.parametrize(("end", "expected"), [(1, 6), (2, 7), (3, 7)])
def test_an_end_tells_first_if_only_by_a_tick(end: int, expected: int) -> None:
    """B lasts six ticks longer than A or ends eight after its start: of A's shortest, the end tells so before the start
    does.
    """
    condition = disjunction([le(plus("A.te", 6), "B.te"), le(plus("A.ts", 8), "B.te")])
    assert at(condition, 0, end, 0, INF) == expected
    found = plan(condition)
    assert (found.start_offsets[0], found.end_offsets[0]) == ((0, 7), (0, 5))


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ((0, 13, 8, 20), 12),  # at 12, A is known to last until 13 = 8 + 5
        ((0, 12, 8, 20), None),
        ((0, INF, 8, INF), 12),  # no event is needed then
        ((0, 13, 8, 10), 12),
    ],
)
def test_progress_detects_what_no_event_does(values: tuple[Extended, ...], expected: int | None) -> None:
    condition = le(plus("B.ts", 5), "A.te")
    assert at(condition, *values) == expected
    found = plan(condition)
    assert (found.start_offsets, found.end_offsets) == (((0,), (0, 4)), ((0,), (0,)))


def test_a_disjunction_across_pairs_may_be_certain_before_either_side() -> None:
    """B ends after A or C does: with A and C both open, B's end would have to come before both."""
    either = disjunction([lt("A.te", "B.te"), lt("C.te", "B.te")])
    values = (0, 9, 1, 12, 2, 10)
    assert at(either, *values, symbols=(A, B, C)) == 9
    # Over one pair each, the sides are certain at 9 and 10.
    assert at(lt("A.te", "B.te"), *values, symbols=(A, B, C)) == 9
    assert at(lt("C.te", "B.te"), *values, symbols=(A, B, C)) == 10
    # One of A.te <= B.te and B.te <= A.te holds whatever happens; that is known once all have begun.
    always = disjunction([le("A.te", "B.te"), conjunction([lt("B.te", "A.te"), lt("C.ts", "A.te")])])
    assert at(always, *values, symbols=(A, B, C)) == 2


# --- the plan --------------------------------------------------------------------------------------------------------


def test_qualitative_conjuncts_of_a_pair_become_one_mask() -> None:
    found = plan(
        conjunction(
            [
                related(A, B, Allen.MEETS, Allen.OVERLAPS, Allen.STARTS),
                lt("A.ts", "B.ts"),
                related(C, B, *PREFIX_GROUPS[0], Allen.EQUALS),
                le("B.te", plus("C.ts", 5)),
            ]
        ),
        A,
        B,
        C,
    )
    assert found.masks.dtype == np.uint16
    assert found.masks.tolist() == [
        [ANY, mask_of([Allen.MEETS, Allen.OVERLAPS]), ANY],
        [mask_of([Allen.MET_BY, Allen.OVERLAPPED_BY]), ANY, mask_of([*PREFIX_GROUPS[2], Allen.EQUALS])],
        [ANY, mask_of([*PREFIX_GROUPS[0], Allen.EQUALS]), ANY],
    ]
    assert found.groups.tolist() == [[7, 0, 7], [0, 7, 0b100], [7, 0b001, 7]]
    # One zone: C.ts + 6 <= B.te, beside ts + 1 <= te of all three.
    assert found.zones.shape == (1, 6, 6)
    assert found.zones[0, 3, 4] == -6  # d(B.te, C.ts)
    assert found.zones[0, 1, 0] == -1  # d(A.te, A.ts)
    assert found.zones[0, 0, 1] == NONE
    assert found.at_least.tolist() == [0, 0, 0]
    assert found.at_most.tolist() == [INT64_MAX] * 3


def test_shifts_of_one_tick_are_strict_comparisons() -> None:
    assert plan(le(plus("A.te", 1), "B.ts")).masks[0, 1] == Allen.BEFORE.bit
    assert plan(le("A.te", plus("B.ts", 1))).masks[0, 1] == ANY
    assert len(plan(le("A.te", plus("B.ts", 1))).zones) == 1


def test_what_always_holds_is_no_constraint() -> None:
    found = plan(conjunction([lt("A.ts", "A.te"), related(A, B, *Allen), le("A.ts", plus("A.te", 3))]))
    assert not found.pattern.pairs
    assert not found.pattern.general


def test_a_negation_over_a_pair_is_a_mask() -> None:
    assert plan(call("not", related(A, B, Allen.BEFORE, Allen.DURING))).masks[0, 1] == ANY & ~mask_of(
        [Allen.BEFORE, Allen.DURING]
    )


def test_intersecting_is_three_whole_prefix_groups_and_certain_once_both_have_begun() -> None:
    ends = [Attr(end) for symbol in (A, B) for end in (symbol.ts, symbol.te)]
    found = plan(intersection(*ends))
    assert found.masks[0, 1] == sum(GROUP_MASKS)
    assert not found.pattern.general
    assert at(intersection(*ends), 1, INF, 3, INF) == 3
    assert at(intersection(*ends), 1, 9, 3, 7) == 3
    assert at(intersection(*ends), 1, 3, 3, 7) is None
    points = Symbol("A", points=True), B
    assert at(intersection(*ends, points=True), 3, 3, 3, 7, symbols=points) == 3
    assert at(intersection(*ends, points=True), 7, 7, 3, 7, symbols=points) is None


def test_the_order_of_the_symbols_does_not_matter() -> None:
    assert plan(related(B, A, Allen.CONTAINS)).masks[0, 1] == Allen.DURING.bit


def test_least_and_greatest_are_qualitative_too() -> None:
    first_end = call("least", Attr("A.te"), Attr("B.te"))
    assert set(relations_in(int(plan(lt("B.ts", first_end)).masks[0, 1]))) == set(Allen) - {Allen.BEFORE, Allen.MEETS}


def test_offsets() -> None:
    found = plan(conjunction([le(plus("A.ts", 10), "B.te"), le("B.ts", plus("A.te", 5))]), Symbol("A", at_least=4), B)
    # B.te >= A.ts + 10 is certain 9 ticks after A's start.
    assert found.start_offsets == ((0, 3, 9), (0,))
    assert found.end_offsets == ((0,), (0,))
    final = plan(le(plus("A.ts", 10), "B.te"), emission="final")
    assert final.start_offsets == final.end_offsets == ((0,), (0,))


def test_a_distance_that_stands_alone_is_implied() -> None:
    """B begins at most 5 after A ends, and what a pair or a disjunction says is none."""
    near = le(B.ts, plus(A.te, 5))
    found = plan(conjunction([near, lt(A.te, B.ts)]))
    implied = {(w, v): found.implied[w, v] for w, v in np.argwhere(found.implied != NONE).tolist()}
    assert implied == {(1, 2): 5}
    assert (plan(disjunction([near, le(plus(A.te, 9), B.te)])).implied == NONE).all()
    assert (plan(related(A, B, Allen.BEFORE)).implied == NONE).all()
    both = plan(conjunction([near, le(B.ts, plus(A.te, 3)), le(plus(A.ts, 2), B.te)]))
    assert (both.implied[1, 2], both.implied[3, 0]) == (3, -2)


@pytest.mark.parametrize(
    "condition",
    [
        call("gt", Attr("A.speed"), ticks(5)),
        lt("A.ts", call("floor", Attr("B.ts"), ticks(10))),
        disjunction(
            [lt("A.te", "B.ts"), lt("A.te", call("greatest", Attr("B.ts"), call("ceil", Attr("B.te"), ticks(2))))]
        ),
        lt("A.ts", ticks(100)),
        call("not", Lit(None, BOOLEAN)),
        eq(call("sub", Attr("A.te"), Attr("A.ts")), call("sub", Attr("B.te"), Attr("B.ts"))),
    ],
)
def test_what_is_not_about_endpoints_alone_is_refused(condition: Term) -> None:
    with pytest.raises(QueryError) as error:
        pattern((A, B), condition, BIGINT)
    assert error.value.code == "TG153"


# --- all sets of relations -------------------------------------------------------------------------------------------

INTERVALS = [(ts, te) for ts, te in product(range(4), repeat=2) if ts < te]
HALF_OPEN = [*INTERVALS, *((ts, INF) for ts in range(4))]


def possible(values: tuple[Extended, ...], t: int) -> int:
    """The mask of the relations that two intervals may turn out to be in, by what is known at t."""
    choices = [(value,) if value <= t else tuple(range(t + 1, t + 4)) for value in values]
    return mask_of(relation_of(*ends) for ends in product(*choices))


def test_every_set_of_relations_is_detected_when_brute_force_says() -> None:
    """8,191 sets, all order types of two intervals, each end known or not: the first t at which no other is
    possible.
    """
    configurations = [(*a, *b) for a, b in product(HALF_OPEN, repeat=2)]
    stages = [[(t, possible(v, t)) for t in range(int(max(v[0], v[2])), 8)] for v in configurations]
    for mask in range(1, ANY + 1):
        for values, known in zip(configurations, stages, strict=True):
            expected = next((t for t, maybe in known if maybe & ~mask == 0), INF)
            assert pair_certain_from(mask, *values) == expected, (relations_in(mask), values)


@pytest.mark.parametrize("step", [11, pytest.param(1, marks=pytest.mark.long)])
def test_sets_of_relations_are_read_from_their_conditions(step: int) -> None:
    for mask in range(1, ANY + 1, step):
        assert plan(related(A, B, *relations_in(mask))).masks[0, 1] == mask


@pytest.mark.parametrize("start", range(8))
def test_zones_of_the_negation_detect_sets_of_relations_like_their_masks(start: int) -> None:
    """The same sets as constraints of three symbols, of which the third adds a case that never is."""
    nothing = conjunction([lt("C.te", "C.ts"), lt("A.ts", "C.ts")])
    for mask in range(1 + start * 37, ANY + 1, 8 * 37):
        general = plan(disjunction([related(A, B, *relations_in(mask)), nothing]), A, B, C)
        assert not general.pattern.pairs
        for a, b in product(HALF_OPEN, repeat=2):
            expected = pair_certain_from(mask, *a, *b)
            found = detection_time(general, (*a, *b, 0, 1))
            assert (INF if found is None else found) == expected


def test_pairs_of_many_symbols_are_those_of_their_endpoints() -> None:
    """Five that follow each other: each pair counts, the last one too."""
    five = tuple(Symbol(name) for name in "ABCDE")
    chain = conjunction([related(one, other, Allen.BEFORE) for one, other in pairwise(five)])
    follow = [0, 2, 3, 5, 6, 8, 9, 11, 12, 14]
    assert at(chain, *follow, symbols=five) == 12
    for place in range(1, 9, 2):  # the next one begins as this one ends
        meeting = [*follow[:place], follow[place + 1], *follow[place + 1 :]]
        assert at(chain, *meeting, symbols=five) is None
    last = related(five[3], five[4], Allen.OVERLAPS)
    assert at(last, *follow[:8], 10, 14, symbols=five) == 11


@pytest.mark.parametrize("least", [None, 1, 2, 3])
def test_a_start_brings_about_a_detection_once_it_has_lasted_long_enough(least: int | None) -> None:
    found = plan(related(A, B, Allen.BEFORE), Symbol("A", least), B)
    assert found.start_offsets == ((0, least - 1) if least is not None and least > 1 else (0,), (0,))
    assert found.end_offsets == ((0,), (0,))


def test_intervals_end_after_they_begin_and_points_may_end_then() -> None:
    assert interval_bound(A) == Bound(A.ts, A.te, -1)
    assert interval_bound(Symbol("P", points=True)) == Bound("P.ts", "P.te", 0)
