"""Which row begins too many matches, and with which row there are too many, on worked examples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.strategies.written_sequences import limit, partition, sequences
from tidegate.algebra.errors import QueryError
from tidegate.algebra.evaluation import EvaluationError
from tidegate.algebra.ordered.sequences.definition import EveryMatch
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.ordered.sequences.per_start.excess import Excess, excess_in, first_open, too_many
from tidegate.algebra.semantics import aggregated

#: A variable is a letter in lower case, N is n; AB is true of both a and b.
VALUES = "abcn"
OF: dict[str, Any] = {letter.upper(): (lambda r, value=value: r.x == value) for value, letter in enumerate(VALUES)}
EITHER: dict[str, Any] = {"A": lambda r: r.x <= 1, "B": lambda r: r.x <= 1}


def node_of(pattern: str, per_start: int, how: Any = "any", **options: Any) -> Sequences:
    conditions = {name: condition for name, condition in OF.items() if name in pattern}
    node = sequences(pattern, select=EveryMatch(how), **{**conditions, **options})
    node = replace(node, per_start=per_start)
    assert node.schema
    return node


def rows_of(trace: str) -> list[tuple[int, int]]:
    """`"a0 b1 c1"`: a row of a at 0, one of b and one of c at 1."""
    return [(int(row[1:]), VALUES.index(row[0])) for row in trace.split()]


def excess(node: Sequences, trace: str) -> tuple[int, int, bool] | None:
    """The instants of the row that begins too many, and of the one with which there are; and whether of matches."""
    found = excess_in(partition(node, rows_of(trace)), ())
    return None if found is None else (found.start, found.by, found.found)


def least(pattern: str, trace: str, how: Any = "any", **options: Any) -> int:
    """The least limit that the rows keep."""
    return next(n for n in range(1, 99) if excess(node_of(pattern, n, how, **options), trace) is None)


def test_matches_in_the_making_count() -> None:
    """One row c would end all three. So the least limit is the number of matches whether it comes or not."""
    assert excess(node_of("A B+ C", 2), "a0 b1 b2") == (0, 2, False)
    assert least("A B+ C", "a0 b1 b2") == 3
    assert least("A B+ C", "a0 b1 b2 c3") == 3
    assert least("A B+ C", "a0 b1 b2 b3 b4 b5") == 31


def test_beginnings_in_other_states_count_by_themselves() -> None:
    """A match of many rows is one, though it has many beginnings."""
    assert least("A B C N", "a0 b1 c2 n3") == 1
    assert least("A{3}", "a0 a1 a2 a3") == 3
    assert least("(A B)+", "a0 b1 a2 b3 a4 b5", "contiguous") == 3


def test_matches_count_over_all_rows() -> None:
    assert excess(node_of("A B", 2), "a0 b1 b2 b3 b4") == (0, 3, True)
    assert least("A B", "a0 b1 b2 b3 b4") == 4
    assert excess(node_of("A+", 3, "contiguous"), "a0 a1 a2 a3 a4") == (0, 3, True)


def test_a_match_is_one_whatever_the_ways_to_it() -> None:
    assert least("(A | A) (B | B+)", "a0 b1 b2") == 3
    assert least("A B C | A B N", "a0 b1 c2") == 1


def test_what_can_not_go_on_counts_no_more() -> None:
    near = {"limits": [limit("last(C) - last(B) <= 1")]}
    assert least("A B C", "a0 b1 b2 b3 b4", **near) == 2
    assert least("A B C", "a0 b1 b3 b5", **near) == 1
    assert least("A B C", "a0 b1 b2", limits=[limit("last(C) - last(B) <= 0")]) == 1
    assert least("A B C", "a0 b1 b1", limits=[limit("last(C) - last(B) <= 0")]) == 2
    assert least("A B C", "a0 b1 b2 b3", limits=[limit("last - first <= 1")]) == 1
    assert least("A B C", "a0 b1 b2 b3", limits=[limit("last(C) - last(B) >= 7")]) == 3


def test_rows_that_must_not_come_take_beginnings_away() -> None:
    assert least("A !N B", "a0 b1 n2 b3 b4") == 1
    assert least("A B", "a0 b1 n2 b3 b4") == 3
    assert least("!N[2] A B", "n0 a1 b2 b3") == 1
    assert least("!N[2] A B", "n0 a3 b4 b5") == 2
    assert least("A !N B+ C", "a0 b1 n2 b3") == 2


def test_a_match_that_a_row_to_come_may_take_away_counts() -> None:
    assert excess(node_of("A B !N[5]", 1), "a0 b1 b2 n3") == (0, 2, True)
    assert least("A B !N[5]", "a0 b1 n2 b3") == 1


def test_what_may_not_be_skipped() -> None:
    """A row with several variables doubles what is begun, also where no row is skipped."""
    assert least("(A | B)+", "a0 a1 a2", "contiguous", **EITHER) == 14
    assert least("(A | B)+", "a0 c1 a2 c3 a4", "next", **EITHER) == 14
    assert least("(A | B)+ C", "a0 a1 a2", "next", **EITHER) == 8
    assert least("A B C", "a0 b1 b2 b3", "next") == 1
    assert least("A B C", "a0 b1 b2 b3", "contiguous") == 1


def test_the_first_row_that_begins_too_many_is_named() -> None:
    assert excess(node_of("A B", 1), "a0 a1 b2 b3") == (0, 3, True)
    assert excess(node_of("A B", 1, limits=[2]), "a0 a1 b2 b3") == (1, 3, True)
    # The later row is the first to have too many.
    last = {"A": lambda r: r.x == 0, "B": lambda r: (r.x == 1) & (r.prev_x >= 0) & (r.t - r.first_A_t <= 2)}
    assert excess(node_of("A B", 1, **last), "a0 a3 b4 b5 a6") == (3, 5, True)


def test_rows_at_one_instant_count_one_by_one() -> None:
    assert excess(node_of("A B", 1), "a0 b0 b0 b0") == (0, 0, True)
    assert excess_in(partition(node_of("A B", 1), rows_of("a0 b1 b2 b3")), (), since=2) == Excess((), 0, 3, True)


def test_from_which_row_on_beginnings_are_open() -> None:
    node = node_of("A B C", 9, limits=[3])
    rows = partition(node, rows_of("n0 a1 a2 b3 n9"))
    assert [first_open(rows, 0, until) for until in (0, 1, 3, 4, 5, 9)] == [1, 1, 1, 2, 4, 5]
    assert first_open(rows, 2, 3) == 2


def test_the_earliest_of_several_partitions_is_named() -> None:
    node = replace(node_of("A B+ C", 1000), keys=("x",))
    error = too_many(node, [Excess((2,), 5, 7, True), Excess((3,), 4, 7, False), Excess((1,), 3, 8, True)])
    assert str(error) == (
        "TG307 the row at 4 where x = 3 begins more than 1,000 matches of A B+ C (per_start=1000)\n"
        "  because       with the row at 7 there are more beginnings of matches that the same rows to come would end\n"
        "  hint          a shorter within=, conditions in define= that fewer rows satisfy, or a greater per_start; "
        "matches are counted without listing them by group_by(...) and no per_start"
    )
    same = [Excess((key,), 4, 7, True) for key in (3, 1, 2)]
    assert "where x = 1 begins" in str(too_many(node, same))
    assert "because       with the row at 7 there are more\n" in str(too_many(node, same))
    assert "the row at 4 begins more than 1 match of A B (" in str(
        too_many(node_of("A B", 1), [Excess((), 4, 7, True)])
    )


@pytest.mark.parametrize("trace", ["a0 b1 b2 c3", "c3 b1 a0 b2"])
def test_the_meaning_of_too_many_is_the_error(trace: str) -> None:
    rows = [(t, number, x) for number, (t, x) in enumerate(rows_of(trace))]
    assert len(node_of("A B+ C", 3).rows([rows], aggregated)) == 3
    with pytest.raises(EvaluationError, match="TG307 the row at 0 begins more than 2 matches"):
        node_of("A B+ C", 2).rows([rows], aggregated)


def refused(node: Sequences) -> str:
    with pytest.raises(QueryError, match="TG184") as raised:
        _ = node.schema
    assert raised.value.hint
    return raised.value.message


def test_where_nothing_is_to_be_limited() -> None:
    told: Sequence[tuple[Sequences, str]] = (
        (replace(sequences("A"), per_start=2), "the preferred one is taken"),
        (replace(sequences("A", select=EveryMatch()), per_start=0), "no match may begin"),
        (replace(sequences("A", select=EveryMatch(), A=lambda r: r.next_x > 1), per_start=2), "rows to come decide"),
    )
    for node, why in told:
        assert why in refused(node)
