"""Relations, horizons and problems of patterns, computed by hand."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.analysis.build import MINUTE, le, lt, plus, query, scan, span, stream
from tests.analysis.test_detection import A, B, C, plan, related
from tidegate.algebra.allen import PREFIX_GROUPS, Allen
from tidegate.algebra.errors import QueryError, Site
from tidegate.algebra.ordered.match.node import DETECTED
from tidegate.algebra.program import Query
from tidegate.algebra.terms import FALSE, TRUE, Attr, Term, call, conjunction, disjunction
from tidegate.algebra.time import INF, Extended
from tidegate.algebra.types import TIMESTAMP
from tidegate.analysis.ordered.match.detection import detection
from tidegate.analysis.ordered.match.matches import horizons, matching, relations
from tidegate.analysis.ordered.match.pattern import Symbol
from tidegate.analysis.ordered.match.problems import match_problems
from tidegate.analysis.zones.normal_form import Bound, bounds_of

Q: Query = query(scan(stream("S"), "s"))


def after_ends(condition: Term, *symbols: Symbol, within: int | None = None) -> list[Extended]:
    return [one.after_end for one in horizons(plan(condition, *symbols, within=within))]


@pytest.mark.parametrize(
    ("relation", "expected", "known"),
    [
        (Allen.BEFORE, [INF, -1], [True, False]),  # A waits for any later B; B is detected when it begins
        (Allen.MEETS, [0, -1], [True, False]),
        (Allen.OVERLAPS, [0, -1], [True, False]),
        (Allen.FINISHED_BY, [0, 0], [True, True]),
        (Allen.CONTAINS, [-1, 0], [False, True]),
        (Allen.STARTS, [0, -1], [True, False]),
        (Allen.EQUALS, [0, 0], [True, True]),
        (Allen.STARTED_BY, [-1, 0], [False, True]),
        (Allen.DURING, [0, -1], [True, False]),
        (Allen.FINISHES, [0, 0], [True, True]),
        (Allen.OVERLAPPED_BY, [-1, 0], [False, True]),
        (Allen.MET_BY, [-1, 0], [False, True]),
        (Allen.AFTER, [-1, INF], [False, True]),
    ],
)
def test_horizons_of_one_relation(relation: Allen, expected: list[Extended], known: list[bool]) -> None:
    found = horizons(plan(related(A, B, relation)))
    assert [one.after_end for one in found] == expected
    assert [one.end_known for one in found] == known


def test_horizons_of_a_prefix_group_end_with_the_later_start() -> None:
    found = horizons(plan(related(A, B, *PREFIX_GROUPS[0])))
    assert [(one.after_start, one.after_end, one.end_known) for one in found] == [(INF, -1, False), (0, -1, False)]


def test_horizons_with_limits_and_windows() -> None:
    before = related(A, B, Allen.BEFORE)
    assert after_ends(conjunction([before, le("B.ts", plus("A.te", 5))])) == [5, -1]
    assert after_ends(before, within=10) == [9, -1]
    # B is known to last 4 ticks three ticks after it began.
    assert after_ends(conjunction([before, le("B.ts", plus("A.te", 5))]), A, Symbol("B", at_least=4)) == [8, -1]
    assert after_ends(TRUE) == [INF, INF]
    assert after_ends(conjunction([related(A, B, Allen.MEETS), related(B, C, Allen.BEFORE)]), A, B, C) == [INF, INF, -1]


def test_final_waits_for_the_last_end() -> None:
    found = plan(related(A, B, Allen.OVERLAPS), A, Symbol("B", at_most=7), emission="final")
    # B.ts < A.te, so B ends at most 6 ticks after A.
    assert [(one.after_end, one.end_known) for one in horizons(found)] == [(6, True), (0, True)]


def test_relations_between_the_endpoints_and_the_detection() -> None:
    found = plan(related(A, B, Allen.BEFORE), within=10)
    stated = set(bounds_of(relations(found)))
    assert {Bound("A.ts", DETECTED, 0), Bound("B.ts", DETECTED, 0)} <= stated
    assert {Bound(DETECTED, "A.ts", 10), Bound(DETECTED, "B.ts", 10)} <= stated
    assert Bound("B.te", DETECTED, 0) not in stated
    final = plan(related(A, B, Allen.BEFORE), within=10, emission="final")
    assert {Bound("A.te", DETECTED, 0), Bound("B.te", DETECTED, 0)} <= set(bounds_of(relations(final)))


# --- problems --------------------------------------------------------------------------------------------------------


def test_a_pattern_that_can_wait_for_ever_names_the_missing_bound() -> None:
    (problem,) = match_problems(plan(related(A, B, Allen.BEFORE)), Q)
    assert str(problem) == (
        "TG213 not bounded: when a situation A has ended, it waits for matches for ever\n"
        "  in query      Q\n"
        "  because       no chain of constraints bounds detected from above by A.te\n"
        "                only the other way round:\n"
        "                  B.ts <= detected   (declared by earliest detection)\n"
        "                  A.te < B.ts\n"
        "                in the case that:\n"
        "                  detected = B.ts\n"
        "                  A.ts < A.te\n"
        "                  A.te < B.ts\n"
        "                  B.ts < B.te\n"
        "  hint          give the pattern a window, within=100, or bound the wait: B.ts - A.te <= 100"
    )


def test_no_problem_where_the_wait_is_bounded() -> None:
    before = related(A, B, Allen.BEFORE)
    assert match_problems(plan(before, within=10), Q) == []
    assert match_problems(plan(conjunction([before, le("B.ts", plus("A.te", 100))])), Q) == []
    assert match_problems(plan(related(A, B, Allen.OVERLAPS, Allen.DURING)), Q) == []


def test_each_symbol_that_waits_for_ever_is_a_problem() -> None:
    problems = match_problems(plan(TRUE, A, B, C), Q)
    assert [problem.code for problem in problems] == ["TG213"] * 3


def test_a_contradiction_shows_its_cycle() -> None:
    (problem,) = match_problems(
        plan(conjunction([lt("A.te", "B.ts"), lt("B.te", "C.ts"), lt("C.te", "A.ts")]), A, B, C), Q
    )
    assert problem.code == "TG212"
    assert len(problem.because) == 7
    assert problem.because[-1].startswith("together: ")
    assert problem.because[-1].endswith(" would lie 6 before itself")


@pytest.mark.parametrize(
    ("symbols", "condition", "within", "because"),
    [
        (
            (Symbol("A", at_least=5, at_most=4), B),
            TRUE,
            None,
            (
                "A.ts + 5 <= A.te   (declared by the duration of A)",
                "A.te <= A.ts + 4   (declared by the duration of A)",
                "together: A.te would lie 1 before itself",
            ),
        ),
        (  # B is known to last 12 ticks only 11 ticks after it began
            (A, Symbol("B", at_least=12)),
            related(A, B, Allen.BEFORE),
            10,
            (
                "B.ts + 11 <= detected   (declared by earliest detection)",
                "detected <= B.ts + 10   (declared by the window)",
                "together: detected would lie 1 before itself",
            ),
        ),
        (  # what lies inside 3 ticks lasts one at most
            (A, Symbol("B", at_most=3)),
            conjunction([related(A, B, Allen.DURING), le(plus("A.ts", 2), "A.te")]),
            None,
            (
                "B.ts < A.ts",
                "B.te <= B.ts + 3   (declared by the duration of B)",
                "A.te < B.te",
                "A.ts + 2 <= A.te",
                "together: A.ts would lie 1 before itself",
            ),
        ),
        (
            (A, B),
            conjunction([related(A, B, Allen.BEFORE), related(A, B, Allen.MEETS, Allen.EQUALS)]),
            None,
            (
                "no relation of A to B is left by:",
                "  A.te < B.ts",
                "  A.te = B.ts | A.ts = B.ts & A.te = B.te",
            ),
        ),
        ((A, B), FALSE, None, ("a condition is false whatever the intervals",)),
    ],
)
def test_what_contradicts(
    symbols: tuple[Symbol, ...], condition: Term, within: int | None, because: tuple[str, ...]
) -> None:
    (problem,) = match_problems(plan(condition, *symbols, within=within), Q)
    assert problem.code == "TG212"
    assert problem.because == because


def test_limits_that_are_just_met_do_not_contradict() -> None:
    before = related(A, B, Allen.BEFORE)
    # A begins two ticks before B, and B is known to last 9 ticks when 8 have passed.
    assert match_problems(plan(before, A, Symbol("B", at_least=9), within=10), Q) == []
    assert [p.code for p in match_problems(plan(before, A, Symbol("B", at_least=10), within=10), Q)] == ["TG212"]
    inside = conjunction([related(A, B, Allen.DURING), le(plus("A.ts", 2), "A.te")])
    assert match_problems(plan(inside, A, Symbol("B", at_most=4)), Q) == []


def test_problems_name_durations_and_the_place_of_the_condition() -> None:
    before = related(A, B, Allen.BEFORE)
    site = Site("drive.py", 7, "A.before(B)")
    placed = Query("Q", "Q", Q.node, sites={before: site})
    (held,) = match_problems(detection((A, B), before, TIMESTAMP), placed)
    assert held.site == site
    assert held.hint.endswith("B.ts - A.te <= tg.hours(1)")
    never = conjunction([before, call("le", call("add", Attr("B.ts"), span(MINUTE)), Attr("A.ts"))])
    (problem,) = match_problems(detection((A, B), never, TIMESTAMP), placed)
    assert problem.code == "TG212"
    assert problem.site == site


def chain_of(symbols: int, *relations_: Allen) -> tuple[Term, tuple[Symbol, ...]]:
    """Each in one of the relations to the next."""
    found = tuple(Symbol(f"S{number}") for number in range(symbols))
    return conjunction([related(one, other, *relations_) for one, other in pairwise(found)]), found


@pytest.mark.long
def test_alternatives_of_many_situations_are_no_reason_to_refuse() -> None:
    """4 ** 11 cases; the horizon is no longer than the window, and the same as in the few cases of a short chain."""
    often = (Allen.MEETS, Allen.OVERLAPS, Allen.STARTS, Allen.DURING)
    condition, symbols = chain_of(12, *often)
    found = plan(condition, *symbols, within=100)
    assert not matching(found).is_exact
    assert match_problems(found, Q) == []
    short, few = chain_of(3, *often)
    assert matching(plan(short, *few, within=100)).is_exact
    assert after_ends(condition, *symbols, within=100)[0] == after_ends(short, *few, within=100)[0] == 99


def test_too_many_cases_to_tell_whether_situations_wait_for_ever_is_said() -> None:
    condition, symbols = chain_of(9, Allen.OVERLAPS, Allen.DURING, Allen.STARTS)
    found = plan(conjunction([condition, lt("S0.te", "S8.ts")]), *symbols)
    assert not matching(found).is_exact
    with pytest.raises(
        QueryError, match=r"TG150 the pattern has more than 1024 temporal cases: whether situations S0 wait"
    ):
        match_problems(found, Q)


def test_too_many_cases_are_no_reason_to_refuse_where_the_wait_is_bounded_in_all_of_them() -> None:
    condition, symbols = chain_of(9, Allen.MEETS, Allen.OVERLAPS, Allen.STARTS, Allen.DURING)
    found = plan(conjunction([condition, le("S8.te", plus("S0.te", 100))]), *symbols)
    assert not matching(found).is_exact
    assert match_problems(found, Q) == []


def test_zones_of_a_disjunction_across_pairs() -> None:
    either = disjunction([lt("A.te", "B.ts"), lt("A.te", "C.ts")])
    zones = matching(plan(either, A, B, C)).zones
    assert len(zones) == 2
