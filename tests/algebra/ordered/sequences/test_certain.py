"""What is certain of row patterns and from when on: one case for each way to be too early, or to wait in vain."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from tests.strategies.written_sequences import limit, partition, sequences
from tidegate.algebra.ordered.sequences.automata.automaton import automaton
from tidegate.algebra.ordered.sequences.certain import Certainty, instants_of
from tidegate.algebra.ordered.sequences.certainty.chain import Standing
from tidegate.algebra.ordered.sequences.certainty.possible import Known
from tidegate.algebra.ordered.sequences.certainty.prepared import Prepared
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Reported
from tidegate.algebra.ordered.sequences.meaning import Match, matches_of, unmatched
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.partition import Partition
from tidegate.algebra.types import MAX_INSTANT

#: Rows are letters with their instants: `a0 b1`. N is a row that must not come.
VALUES = {letter: value for value, letter in enumerate("abcnde")}
IS: dict[str, Any] = {v.upper(): (lambda r, value=value: r.x == value) for v, value in VALUES.items()}
END = MAX_INSTANT


def rows_of(text: str) -> list[tuple[int, int]]:
    return [(int(row[1:]), VALUES[row[0]]) for row in text.split()]


def node_of(pattern: str, **options: Any) -> Sequences:
    """The node of a pattern whose variables are true of the rows of their letter, where no other condition is given."""
    used = {letter: condition for letter, condition in IS.items() if letter in pattern}
    return sequences(pattern, **(used | options))


def instants(node: Sequences, text: str) -> list[tuple[str, int]]:
    """The matches in order, each with the instant of its first row and its variables; then the instant from which on
    it is certain.
    """
    rows = partition(node, rows_of(text))
    matches = matches_of(rows)
    found = instants_of(rows, matches).matches
    in_the_end = Certainty(Prepared(node)).at(rows, None).matches
    assert {(m.start, m.matched) for m in in_the_end} == {(m.start, m.matched) for m in matches}
    return [(f"{rows.times[m.start]}{''.join(v for _, v in m.matched)}", at) for m, at in found.items()]


def certain(node: Sequences, text: str, until: int) -> list[str]:
    """The matches that are certain at an instant by the rows up to then."""
    rows = partition(node, rows_of(text))
    found = Certainty(Prepared(node)).at(rows, until).matches
    return [f"{rows.times[m.start]}{''.join(v for _, v in m.matched)}" for m in found]


def test_a_match_that_may_grow_is_not_certain() -> None:
    node = node_of("A B?")
    assert certain(node, "a0", 100) == []
    assert instants(node, "a0 b3") == [("0AB", 3)]
    assert instants(node, "a0 c3") == [("0A", 3)]
    assert instants(node, "a0") == [("0A", END)]


def test_no_instant_reads_all_rows_before_it(monkeypatch: pytest.MonkeyPatch) -> None:
    read, first = list[int](), Partition.first

    def counted(self: Partition, count: int) -> Partition:
        read.append(count)
        return first(self, count)

    monkeypatch.setattr(Partition, "first", counted)
    rows = partition(node_of("A B"), [(at, at % 2) for at in range(100)])
    found = Certainty(Prepared(rows.node)).between(rows, None, None)
    assert [at for _, at in found.matches] == list(range(1, 100, 2))
    assert sum(read) <= 100


def asked(monkeypatch: pytest.MonkeyPatch, node: Sequences, length: int) -> int:
    """How often it is asked for a fall of so many rows what a condition can be. The row behind the fall decides."""
    count, outcomes = [0], Known.outcomes

    def counted(self: Known, *of: Any) -> Any:
        count[0] += 1
        return outcomes(self, *of)

    rows = partition(node, [(at, VALUES["b"] if at else VALUES["a"]) for at in range(length)] + [(length, VALUES["c"])])
    with monkeypatch.context() as patch:
        patch.setattr(Known, "outcomes", counted)
        found = Certainty(Prepared(node)).between(rows, None, None)
    assert {at for _, at in found.matches} == {length}
    return count[0]


@pytest.mark.parametrize("options", [{"skip": "last C"}, {"reported": Reported("all", unmatched=True)}])
def test_the_rows_of_a_long_match_are_read_a_few_times(monkeypatch: pytest.MonkeyPatch, options: Any) -> None:
    assert asked(monkeypatch, node_of("A B+ C", A=lambda r: r.x >= 0, **options), 200) <= 6 * 200


def test_starts_that_follow_each_other_read_the_rows_behind_them_a_few_times(monkeypatch: pytest.MonkeyPatch) -> None:
    assert asked(monkeypatch, node_of("A B+ C", A=lambda r: r.x >= 0, skip="first B"), 50) <= 2 * 50**2


def test_an_earlier_start_may_take_the_row() -> None:
    node = node_of("A B B | B")
    assert certain(node, "a0 b1", 100) == []
    assert instants(node, "a0 b1 b2") == [("0ABB", 2)]
    assert instants(node, "a0 b1 c2") == [("1B", 2)]


def test_to_the_next_row_each_start_is_decided_by_itself() -> None:
    node = node_of("A B B | B", skip="next row")
    assert certain(node, "a0 b1", 1) == ["1B"]


def test_a_start_need_not_wait_where_the_search_goes_on_alike() -> None:
    """The first B is the next row, whether the first start has a match or not."""
    node = node_of("A B C | B C", skip="first B")
    assert certain(node, "a0 b1", 1) == []
    also = node_of("A B C | B", skip="first B")
    assert certain(also, "a0 b1", 1) == ["1B"]
    # Without a row of B yet, a match goes on at a row that is to come.
    other = node_of("A C B | C", skip="first B")
    assert certain(other, "a0 c1", 1) == []
    assert certain(node_of("A C B? | C", skip="first B"), "a0 c1", 1) == []


def test_a_start_may_have_no_match_and_the_next_one_may_jump_further() -> None:
    """The first start goes on at the C, if it has a match; if not, the second one may take that row for another."""
    node = node_of("A B C N | B D C | C", D=IS["C"], skip="first C")
    assert certain(node, "a0 b1 c2", 2) == []
    assert instants(node, "a0 b1 c2 c3") == [("1BDC", 3), ("3C", 3)]
    assert instants(node, "a0 b1 c2 n3") == [("0ABCN", 3), ("2C", 3)]


def test_a_limit_from_a_last_row_may_be_kept_again() -> None:
    node = node_of("A B C B", limits=[limit("last - last(B) <= 2")])
    assert instants(node, "a0 b1 c5 b6") == [("0ABCB", 6)]


def test_no_next_row_is_no_row_that_is_to_come() -> None:
    node = node_of("A", A=lambda r: r.next_x.is_null())
    assert certain(node, "a0", 100) == []
    assert instants(node, "a0 a1") == [("1A", END)]
    other = node_of("A", A=lambda r: r.next_t - r.t > 3)
    assert certain(other, "a0", 100) == []
    assert instants(other, "a0 a9 a10") == [("0A", 9)]


def test_the_last_known_row_is_not_the_last() -> None:
    node = node_of("A $")
    assert certain(node, "a0", 100) == []
    assert instants(node, "a0 b1 a2") == [("2A", END)]


def test_a_limit_lets_rows_come_up_to_its_end() -> None:
    node = node_of("A B | A", limits=[5])
    assert certain(node, "a0", 4) == []
    assert certain(node, "a0", 5) == ["0A"]
    assert instants(node, "a0 b5") == [("0AB", 5)]
    assert instants(node, "a0 b6") == [("0A", 5)]


def test_rows_that_must_not_come_may_come_up_to_the_end_of_their_duration() -> None:
    node = node_of("A !N[5]")
    assert certain(node, "a0", 4) == []
    assert instants(node, "a0") == [("0A", 5)]
    assert instants(node, "a0 n6") == [("0A", 5)]
    assert instants(node, "a0 n5") == []


def test_no_such_row_needs_no_wait_where_none_can_satisfy_the_condition() -> None:
    node = node_of("A !N[5]", N=lambda r: r.t < r.first_A_t)
    assert instants(node, "a0") == [("0A", 0)]
    before = node_of("!N[5] A")
    assert instants(before, "a0 n1 a5 a7") == [("0A", 0), ("7A", 7)]
    assert certain(before, "n0 a5 a6", 6) == ["6A"]


def test_one_more_of_a_repetition_may_come() -> None:
    node = node_of("A+")
    assert certain(node, "a0", 100) == []
    assert instants(node, "a0 a1 b2") == [("0AA", 2)]
    assert instants(node_of("A+?"), "a0 a1") == [("0A", 0), ("1A", 1)]


def test_many_rows_between_may_bridge_a_bound_from_row_to_row() -> None:
    near = {"B": lambda r: (r.x == 1) & (r.t - r.prev_t <= 1)}
    node = node_of("A B* | A", **near, limits=[limit("last(B) - first >= 5")])
    assert certain(node, "a0 b1", 1) == []
    assert instants(node, "a0 b1 b2 b3 b4 b5 c6") == [("0ABBBBB", 6)]
    # A row that is to come is too late for the last one that is known.
    assert instants(node, "a0 b1") == [("0A", 2)]


def test_a_match_may_need_as_many_rows_as_its_limits_name() -> None:
    """Of each of four variables the first and the last row: seven times more of the repetition."""
    order = ["first(A)", "first(B)", "first(C)", "first(D)", "last(A)", "last(B)", "last(C)", "last(D)"]
    limits = [limit(f"{later} - {earlier} >= 1") for earlier, later in pairwise(order)]
    all_four: dict[str, Any] = {
        "E": lambda r: (
            (r.x == 5) & (r.t >= r.last_A_t) & (r.t >= r.last_B_t) & (r.t >= r.last_C_t) & (r.t >= r.last_D_t)
        )
    }
    node = node_of("A (A | B | C | D)* E | A", **all_four, limits=limits)
    assert certain(node, "a0", 100) == []
    assert instants(node, "a0 b1 c2 d3 a4 b5 c6 d7 e8")[0] == ("0ABCDABCDE", 8)


def test_a_bound_from_a_known_row_holds_for_the_next() -> None:
    stated = {"B": lambda r: (r.x == 1) & (r.t - r.prev_t <= 10), "C": lambda r: (r.x == 2) & (r.t - r.first_A_t <= 30)}
    node = node_of("A B C | A", **stated)
    assert instants(node, "a0") == [("0A", 10)]
    assert instants(node, "a0 b1") == [("0A", 30)]
    # What is part of another condition is none.
    other = node_of("A B | A", B=lambda r: (r.x == 1) | (r.t - r.prev_t <= 10))
    assert instants(other, "a0") == [("0A", END)]
    # Of such a one, too, the instants are compared that rows to come can have.
    late = node_of("A B | A", B=lambda r: ((r.t - r.prev_t <= 10) | (r.t - r.prev_t <= 20)) & (r.x == 1))
    assert instants(late, "a0") == [("0A", 20)]


def test_least_distances_of_rows_to_come_add_up() -> None:
    far = {"B": lambda r: (r.x == 1) & (r.t - r.prev_t >= 3), "C": lambda r: (r.x == 2) & (r.t - r.prev_t > 2)}
    assert instants(node_of("A B C | A", **far, limits=[5]), "a0") == [("0A", 0)]
    assert instants(node_of("A B C | A", **far, limits=[6]), "a0") == [("0A", 3)]
    strict = {"C": lambda r: (r.x == 2) & (r.t - r.prev_t >= 3) & (r.t - r.first_A_t < 10)}
    assert instants(node_of("A B C | A", **strict), "a0") == [("0A", 6)]
    # Rows come in order: the third is not before the second.
    gaps = [limit("first(B) - last(A) >= 4"), limit("first(C) - last(A) <= 3")]
    assert instants(node_of("A B C | A", limits=gaps), "a0") == [("0A", 0)]


def test_a_bound_to_the_row_behind_decides_too() -> None:
    node = node_of("A", A=lambda r: (r.x == 0) & (r.next_t - r.t <= 3))
    rows = partition(node, rows_of("a0 a2 b9"))
    assert instants(node, "a0 a2 b9") == [("0A", 2)]
    reported = Reported("all", unmatched=True)
    told = partition(node_of("A", A=lambda r: (r.x == 0) & (r.next_t - r.t <= 3), reported=reported), rows_of("a0"))
    assert instants_of(told, ()).unmatched == {0: 3}
    assert unmatched(rows, matches_of(rows)) == [1, 2]


def test_days_end_for_rows_of_one_day() -> None:
    import tidegate as tg

    node = node_of("A B* ", B=lambda r: tg.floor(r.t, 10) == tg.floor(r.first_A_t, 10))
    assert instants(node, "a3 b4") == [("3AB", 9)]


def test_a_row_without_a_match_of_its_own_may_be_of_another() -> None:
    reported = Reported("all", unmatched=True)
    rows = partition(node_of("A B C", reported=reported), rows_of("a0 b1"))
    rule = Certainty(Prepared(rows.node))
    assert rule.at(rows, 100).unmatched == ()
    assert instants_of(rows, ()).unmatched == {0: END, 1: END}
    ended = partition(rows.node, rows_of("a0 b1 b2"))
    assert instants_of(ended, ()).unmatched == {0: 2, 1: 2, 2: 2}


def test_a_number_needs_all_matches_before() -> None:
    pattern, skip = "A B C | B", "next row"
    numbered = node_of(pattern, skip=skip, measures={"n": lambda r: r.number})
    assert certain(node_of(pattern, skip=skip), "a0 b1", 1) == ["1B"]
    assert certain(numbered, "a0 b1", 100) == []
    assert instants(numbered, "a0 b1 c2") == [("0ABC", 2), ("1B", 2)]


def test_a_last_row_need_not_be_the_last_known_one() -> None:
    node = node_of("A B+ | A", limits=[limit("last(B) - first(B) >= 3")])
    assert certain(node, "a0 b1", 100) == []
    assert instants(node, "a0 b1 b4 c5") == [("0ABB", 5)]


def test_a_count_may_grow() -> None:
    node = node_of("A B* C | A", C=lambda r: (r.x == 2) & (r.count_B >= 2))
    assert certain(node, "a0", 100) == []
    assert instants(node, "a0 b1 b2 c3") == [("0ABBC", 3)]
    # Of no further row of B, a count is known.
    known = node_of("A C | A", C=lambda r: (r.x == 2) & (r.count_A >= 2))
    assert instants(known, "a0") == [("0A", 0)]


def test_no_more_rows_come_than_a_condition_counts() -> None:
    two = node_of("A+", A=lambda r: (r.x == 0) & (r.count_A <= 2))
    assert certain(two, "a0", 100) == []
    assert instants(two, "a0 a1") == [("0AA", 1)]
    for condition in (lambda r: r.count_all < 3, lambda r: ~(r.count_all > 2)):
        assert instants(node_of("A+", A=condition), "a0 a1") == [("0AA", 1)]
    exact = node_of("A B*", B=lambda r: r.count_all == 2)
    assert instants(exact, "a0 b1") == [("0AB", 1)]
    # There may be more rows, and no fewer.
    assert instants(node_of("A B*", B=lambda r: r.count_all != 2), "a0") == [("0A", END)]
    assert instants(node_of("A+ B | A", B=lambda r: (r.x == 1) & (r.count_A <= 2)), "a0 a1") == [
        ("0A", END),
        ("1A", END),
    ]
    assert instants(node_of("A !N[5]", N=lambda r: r.count_all <= 1), "a0") == [("0A", 0)]
    assert instants(node_of("A !N[5]", N=lambda r: r.count_all <= 2), "a0") == [("0A", 5)]


def test_a_skipped_row_may_turn_out_to_be_the_next() -> None:
    either = {"B": lambda r: r.next2_x == 1, "select": EveryMatch("next")}
    node = node_of("A (B | C)", **either)
    assert certain(node, "a0 a1 c2", 100) == ["1AC"]
    assert instants(node, "a0 a1 c2 a3") == [("0AC", 3), ("1AC", 2)]
    assert instants(node, "a0 a1 c2 b3") == [("0AB", 3), ("1AC", 2)]


def test_a_row_that_is_skipped_for_good_is_known_at_once() -> None:
    assert instants(node_of("A B", select=EveryMatch("next")), "a0 a1 b2 b3") == [("0AB", 2), ("1AB", 2)]


def test_rows_that_could_only_go_on_against_a_limit_are_skipped() -> None:
    node = node_of("A B C", limits=[limit("first(B) - last(A) <= 1")], select=EveryMatch("next"))
    assert instants(node, "a0 b3 c4") == []
    least = node_of("A B C", limits=[limit("first(B) - last(A) >= 3")], select=EveryMatch("next"))
    assert instants(least, "a0 b1 b3 c4") == [("0ABC", 4)]


def test_a_leaf_dies_at_its_deadline_or_by_a_row_whichever_is_earlier() -> None:
    node = node_of("A B | A", limits=[5])
    assert instants(node, "a0 c9") == [("0A", 5)]
    assert instants(node, "a0 c3") == [("0A", 3)]


def test_the_last_way_to_go_on_decides_and_its_first_bound() -> None:
    gaps = [limit("first(B) - last(A) <= 2"), limit("first(C) - last(A) <= 7")]
    assert instants(node_of("A (B | C) | A", limits=gaps), "a0") == [("0A", 7)]
    both = [limit("first(B) - last(A) <= 4"), 9]
    assert instants(node_of("A B | A", limits=both), "a0") == [("0A", 4)]


def test_a_start_waits_for_what_an_earlier_one_must_not_be_followed_by() -> None:
    """The first start's match dies with the row at 12 only, long after the limit of the second."""
    node = node_of("A B B !N[10] | B", limits=[2])
    assert instants(node, "a0 b1 b2 n12") == [("1B", 12), ("2B", 12)]
    assert instants(node, "a0 b1 b2 n13") == [("0ABB", 12)]


def test_equal_rows_need_not_wait_for_each_other() -> None:
    assert instants(node_of("A !N[5] | A"), "a0") == [("0A", 0)]
    # Where other rows are reported, they differ.
    assert instants(node_of("{- A -} !N[5] | A"), "a0") == [("0A", 5)]


def test_measures_that_read_rows_behind_the_match_wait_for_them() -> None:
    node = node_of("A", measures={"ahead": lambda r: r.next_x})
    assert instants(node, "a0 b4") == [("0A", 4)]
    assert instants(node, "a0") == [("0A", END)]


def test_ties_are_known_together() -> None:
    node = node_of("A B?", skip="next row")
    assert instants(node, "a0 b0 a0 c3") == [("0AB", 0), ("0A", 3)]


@pytest.mark.parametrize("skipping", ["any", "next"])
def test_absences_between_rows_that_are_skipped(skipping: Any) -> None:
    node = node_of("A !N B", select=EveryMatch(skipping))
    assert instants(node, "a0 c1 b2") == [("0AB", 2)]
    assert instants(node, "a0 n1 b2 a3 b4 n5") == [("3AB", 4)]


@pytest.mark.parametrize("skipping", ["any", "next"])
def test_absences_between_rows_may_hold_for_a_time(skipping: Any) -> None:
    """From the row before; what comes behind that time does not count."""
    node = node_of("A !N[3] B", select=EveryMatch(skipping))
    assert instants(node, "a0 n3 b5") == []
    assert instants(node, "a0 n4 b5") == [("0AB", 5)]
    assert instants(node, "a0 b1 n2") == [("0AB", 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a0 b1 d2", [("0AD", 2)]),
        ("a0 c1 b2 d3", [("0AD", 3)]),
        ("a0 b1 c2 d3", []),
        ("a0 b1 e2 c3 d4", []),
        ("b0 a1 c2 d3", [("1AD", 3)]),
        ("a0 b1 d2 c3", [("0AD", 2)]),
    ],
)
@pytest.mark.parametrize("skipping", ["any", "next"])
def test_a_group_must_not_come_between_two_rows(skipping: Any, text: str, expected: list[tuple[str, int]]) -> None:
    """In its order, between these rows, whatever rows lie between those of the group."""
    node = node_of("A !(B C) D", select=EveryMatch(skipping))
    assert instants(node, text) == expected


def test_a_group_between_two_rows_may_hold_for_a_time() -> None:
    node = node_of("A !(B C)[3] D", select=EveryMatch("any"))
    assert instants(node, "a0 b1 c3 d5") == []
    assert instants(node, "a0 b1 c4 d5") == [("0AD", 5)]


def test_a_group_before_a_match() -> None:
    node = node_of("!(B C)[3] A")
    assert instants(node, "b0 c1 a3") == []
    assert instants(node, "b0 c1 a4") == [("4A", 4)]
    assert instants(node, "c0 b1 a3") == [("3A", 3)]


def test_a_group_behind_a_match_is_decided_by_its_last_row_or_by_its_time() -> None:
    node = node_of("A !(B C)[5] | A", measures={"n": lambda r: r.count_all})
    assert certain(node_of("A !(B C)[5]"), "a0 b1", 4) == []
    assert instants(node_of("A !(B C)[5]"), "a0 b1 d2") == [("0A", 5)]
    assert instants(node_of("A !(B C)[5]"), "a0 b1 e2 c5") == []
    assert instants(node_of("A !(B C)[5]"), "a0 b1 c6") == [("0A", 5)]
    assert instants(node, "a0 b1 c3") == [("0A", 0)]
    # Both may come at one instant, the last one.
    assert certain(node_of("A !(B C)[5]"), "a0", 4) == []
    assert instants(node_of("A !(B C)[5]"), "a0 b5 c5") == []


def test_all_rows_to_come_of_a_group_may_be_what_it_waits_for() -> None:
    """C reads the row before it: the very next one can not be C, one behind it can."""
    node = node_of("A !(C)[5]", C=lambda r: (r.x == 2) & (r.prev_x == 1))
    assert certain(node, "a0", 4) == []
    node = node_of("A !(B C)[5]", C=lambda r: (r.x == 2) & (r.prev2_x == 3))
    assert certain(node, "a0 b1", 4) == []
    assert instants(node, "a0 b1 n2 d3 c4") == []
    assert instants(node, "a0 b1 n2 d3 d4 c4") == [("0A", 5)]


def test_any_row_may_be_the_first_of_a_group() -> None:
    """C asks for more than one B, and for what one of two is: the first row that can be B is not enough."""
    either: dict[str, Any] = {"B": lambda r: r.x >= 1, "C": lambda r: (r.x == 2) & (r.first_B_x == 1)}
    node = node_of("A !(B C) D", select=EveryMatch("any"), D=lambda r: r.x == 4, **either)
    assert instants(node, "a0 n1 b2 c3 d4") == []
    assert instants(node, "a0 b1 n2 c3 d4") == []
    assert instants(node, "a0 n1 c2 c3 d4") == [("0AD", 4)]
    between = node_of("A !(B E C) D", select=EveryMatch("any"), D=lambda r: r.x == 0, **either)
    assert instants(between, "a0 n1 b2 e3 c4 a5") == instants(between, "a0 b1 n2 e3 c4 a5") == []
    twice = node_of("A !(B{1,3} C) D", select=EveryMatch("any"), C=lambda r: (r.x == 2) & (r.count_B > 1))
    assert instants(twice, "a0 b1 c2 d3") == [("0AD", 3)]
    assert instants(twice, "a0 b1 b1 c2 d3") == []


def test_alternatives_that_must_not_come_are_absences_of_each() -> None:
    node = node_of("A !(B | C)[5]")
    assert {a.variable for s in automaton(node.pattern).states for w in s.transitions for a in w.absences} == set("BC")
    assert instants(node, "a0 b5") == instants(node, "a0 c1") == []
    assert instants(node, "a0 d1 c6") == [("0A", 5)]
    either = node_of("A !(B C | C B) D", select=EveryMatch("any"))
    assert instants(either, "a0 c1 b2 d3") == instants(either, "a0 b1 c2 d3") == []
    assert instants(either, "a0 c1 c2 d3") == [("0AD", 3)]


def test_what_decides_a_group_may_come_after_it() -> None:
    """C asks for the row behind it: the match waits for that."""
    node = node_of("A !(B C) D", select=EveryMatch("any"), C=lambda r: (r.x == 2) & (r.next2_x == 5))
    assert instants(node, "a0 b1 c2 d3 e4") == []
    assert instants(node, "a0 b1 c2 d3 b4") == [("0AD", 4)]
    # Of two that are reported otherwise the second one waits for it, too.
    node = node_of("{- A -} !(B C)[5] | A", C=lambda r: (r.x == 2) & (r.next_x == 5))
    assert instants(node, "a0 b1 c2 d3") == [("0A", 5)]
    assert instants(node, "a0 b1 c2 e3") == [("0A", 3)]


def test_every_match_of_adjacent_rows() -> None:
    node = node_of("A B*", select=EveryMatch("contiguous"))
    assert instants(node, "a0 b1 b2") == [("0ABB", 2), ("0AB", 1), ("0A", 0)]


def test_ways_that_come_to_the_same_are_followed_once() -> None:
    """Each row can be A or B: of the ways through sixty rows there are more than can be followed."""
    either = {"A": lambda r: r.x == 0, "B": lambda r: r.x == 0}
    text = " ".join(f"a{at}" for at in range(60))
    assert certain(node_of("(A | B)* C", **either), text, 100) == []
    counted = {**either, "C": lambda r: (r.x == 2) & (r.first_A_t < r.t)}
    rows = partition(node_of("(A | B)* C", **counted), rows_of(f"{text} c60"))
    (match,) = Certainty(Prepared(rows.node)).at(rows, None).matches
    assert "".join(variable for _, variable in match.matched) == "A" * 60 + "C"


def test_ways_of_other_variables_are_no_equal_ways() -> None:
    """Both rows can be A or B; what the third one asks for, the less preferred ways have."""
    node = node_of("(A | B) (A | B) C", A=lambda r: r.x < 2, B=lambda r: r.x < 2, C=lambda r: r.was2 == "B")
    assert instants(node, "a0 a1 c2") == [("0BAC", 2)]
    assert certain(node, "a0 a1", 1) == []
    dead = node_of("(A | B) (A | B) C | A", A=lambda r: r.x < 2, B=lambda r: r.x < 2, C=lambda r: r.was2 == "C")
    assert certain(dead, "a0 a1", 1) == ["0A", "1A"] or instants(dead, "a0 a1 a2")[0] == ("0A", 2)


def test_a_way_that_is_decided_is_no_other_that_is_not() -> None:
    """The row behind the C cannot come five ticks after the A and one after the C: nobody has to wait for it."""
    open_ = {"A": lambda r: (r.x == 0) & (r.next2_t - r.t >= 5) & (r.next2_t - r.next_t <= 1), "B": lambda r: r.x == 0}
    node = node_of("(A | B) C", **open_)
    assert certain(node, "a0 c1", 1) == ["0BC"]
    assert certain(node, "a0 c5", 5) == []
    assert instants(node, "a0 c5 a6") == [("0AC", 6)]


def test_what_goes_on_from_a_standing_is_what_all_rows_say() -> None:
    node = node_of("A B* C | A", skip="next row", limits=[6], measures={"n": lambda r: r.number})
    rows = partition(node, rows_of("a0 b1 a2 c3 a4 b9 a11 c12 b12"))
    rule = Certainty(Prepared(node))
    whole = rule.between(rows, None, None)
    standing, found = Standing(), list[tuple[Match, int]]()
    for since, until in ((None, 2), (2, 3), (3, 8), (8, 11), (11, None)):
        detected = rule.between(rows, since, until, standing)
        standing = detected.standing
        found += detected.matches
    assert found == list(whole.matches)
    assert standing.begin == len(rows.rows)


def test_a_partition_begins_with_its_first_row_also_once_that_is_dropped() -> None:
    node = node_of("^ C | C B")
    rows = partition(node, rows_of("a0 c1 b2"))
    rule = Certainty(Prepared(node))
    first = rule.between(rows, None, 1)
    dropped = rule.needed(rows, 1, first.standing)
    assert (first.matches, dropped) == ((), 1)
    ((match, at),) = rule.between(rows.after(dropped), 1, None, first.standing.without(dropped)).matches
    assert ("".join(variable for _, variable in match.matched), at) == ("CB", 2)


def test_rows_before_a_standing_are_not_needed() -> None:
    node = node_of("!N[2] A B* | ^ C", limits=[6])
    rows = partition(node, rows_of("c0 a1 b2 c3 n4 a5 b8 c9 a12"))
    rule = Certainty(Prepared(node))
    first = rule.between(rows, None, 4)
    dropped = rule.needed(rows, 4, first.standing)
    # c3 is within two ticks before a row that comes at 5, and so might be what must not come.
    assert (dropped, first.standing.begin) == (3, 5)
    rest = rows.after(dropped)
    later = rule.between(rest, 4, None, first.standing.without(dropped))
    whole = rule.between(rows, None, None)
    assert [at for _, at in (*first.matches, *later.matches)] == [at for _, at in whole.matches]
