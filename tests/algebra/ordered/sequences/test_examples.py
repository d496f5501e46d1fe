"""Row patterns on worked examples of others: of a thesis, of manuals, of another engine's tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

from tests.strategies.written_sequences import partition, sequences
from tidegate.algebra.ordered.sequences.certain import Certainty, instants_of
from tidegate.algebra.ordered.sequences.certainty.prepared import Prepared
from tidegate.algebra.ordered.sequences.definition import EveryMatch, Reported
from tidegate.algebra.ordered.sequences.meaning import Match, matches_of, unmatched
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.types import MAX_INSTANT


def rows_of(values: Sequence[int]) -> list[tuple[int, int]]:
    """Rows of the instants 1, 2, 3, …"""
    return list(enumerate(values, 1))


def words(node: Sequences, values: Sequence[int]) -> list[tuple[int, str]]:
    """The instant at which each match begins, and the variables of its rows."""
    return [spelt(match) for match in matches_of(partition(node, rows_of(values)))]


def spelt(match: Match) -> tuple[int, str]:
    return match.start + 1, "".join(variable for _, variable in match.matched)


def one_by_one(node: Sequences, values: Sequence[int]) -> list[tuple[int, str]]:
    """The same of the matches that have become certain, in whatever order."""
    detected = Certainty(Prepared(node)).between(partition(node, rows_of(values)), None, None)
    return [spelt(match) for match, _ in detected.matches]


FALLS, RISES, SAME = (lambda r: r.x < r.prev_x), (lambda r: r.x > r.prev_x), (lambda r: r.x == r.prev_x)
NOT_RISES: Callable[[Any], Any] = lambda r: r.x <= r.prev_x  # noqa: E731
ANY: Callable[[Any], Any] = lambda r: r.x >= 0  # noqa: E731


@pytest.mark.parametrize(
    ("skipping", "expected"),
    [
        ("contiguous", ["a2 c1"]),
        ("next", ["a1 b1 c1", "a2 c1"]),
        (
            "any",
            ["a1 b1 b2 c2", "a1 b1 c1", "a1 b1 c2", "a1 b2 c2", "a1 c1", "a1 c2", "a2 b2 c2", "a2 c1", "a2 c2"],
        ),
    ],
)
def test_strategies(skipping: Any, expected: list[str]) -> None:
    """Körber's thesis (Marburg 2021), Figure 2.6: the pattern A B* C over one trace. With skip-till-any the figure
    lists ⟨a1, c2⟩ twice and leaves out ⟨a2, c2⟩. Skip-till-next is that of Table 4.1.
    """
    names = ("a1", "b1", "a2", "c1", "b2", "c2")
    of: dict[str, Any] = {letter: (lambda r, value=value: r.x == value) for value, letter in enumerate("ABC")}
    node = sequences("A B* C", select=EveryMatch(skipping), **of)
    trace = partition(node, rows_of(["abc".index(name[0]) for name in names]))
    matches = matches_of(trace)
    assert sorted(" ".join(names[at] for at, _ in match.matched) for match in matches) == expected
    # Each is certain with its last row.
    assert instants_of(trace, matches).matches == {match: trace.times[match.matched[-1][0]] for match in matches}


#: Prices of ACME from April 1 to 20 in the chapter on pattern matching of Oracle's Data Warehousing Guide, 12.1.
ACME = (12, 17, 19, 21, 25, 12, 15, 20, 24, 25, 19, 15, 25, 25, 14, 12, 14, 24, 23, 22)


def test_v_shapes_of_oracle() -> None:
    """Example 20-1: from the start of each V over its bottom to its end."""
    node = sequences("A B+ C+", B=FALLS, C=RISES, skip="last C")
    prices = partition(node, rows_of(ACME))
    found = [
        (match.start + 1, *(max(at for at, v in match.matched if v == variable) + 1 for variable in "BC"))
        for match in matches_of(prices)
    ]
    assert found == [(5, 6, 10), (10, 12, 13), (14, 16, 18)]
    # The rise may go on until the next row says that it does not.
    assert list(instants_of(prices, matches_of(prices)).matches.values()) == [11, 14, 19]


def test_w_shapes_of_oracle() -> None:
    """Example 20-6: two Vs, one after the other."""
    assert words(sequences("A B+ C+ B+ C+", B=FALLS, C=RISES, skip="last C"), ACME) == [(5, "ABCCCCBBC")]


#: Trino's TestRowPatternMatching: values of the ids 1, 2, 3, …
SHORT, LONG = (90, 80, 70, 70), (90, 80, 70, 80, 90, 50, 40, 60)
ONE_BY_ONE = [(2, "B"), (3, "B"), (4, "B")]
EMPTY = [(1, ""), (2, ""), (3, ""), (4, "")]


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("B*", [(1, ""), (2, "BBB")]),
        ("B*?", EMPTY),
        ("B+", [(2, "BBB")]),
        ("B+?", ONE_BY_ONE),
        ("B?", [(1, ""), *ONE_BY_ONE]),
        ("B??", EMPTY),
        ("B{,}", [(1, ""), (2, "BBB")]),
        ("B{,}?", EMPTY),
        ("B{1,}", [(2, "BBB")]),
        ("B{1,}?", ONE_BY_ONE),
        ("B{2,}", [(2, "BBB")]),
        ("B{2,}?", [(2, "BB")]),
        ("B{5,}", []),
        ("B{5,}?", []),
        ("B{,1}", [(1, ""), *ONE_BY_ONE]),
        ("B{,1}?", EMPTY),
        ("B{,2}", [(1, ""), (2, "BB"), (4, "B")]),
        ("B{,2}?", EMPTY),
        ("B{,5}", [(1, ""), (2, "BBB")]),
        ("B{,5}?", EMPTY),
        ("B{1,1}", ONE_BY_ONE),
        ("B{1,1}?", ONE_BY_ONE),
        ("B{1,5}", [(2, "BBB")]),
        ("B{1,5}?", ONE_BY_ONE),
        ("B{5,7}", []),
        ("B{5,7}?", []),
        ("B{1}", ONE_BY_ONE),
        ("B{1}?", ONE_BY_ONE),
        ("B{2}", [(2, "BB")]),
        ("B{2}?", [(2, "BB")]),
        ("B{5}", []),
        ("B{5}?", []),
    ],
)
def test_quantifiers_of_trino(pattern: str, expected: list[tuple[int, str]]) -> None:
    node = sequences(pattern, B=NOT_RISES)
    assert words(node, SHORT) == one_by_one(node, SHORT) == expected


@pytest.mark.parametrize(
    ("pattern", "conditions", "expected"),
    [
        ("() | A", {}, EMPTY),
        ("^ A", {}, [(1, "A")]),
        ("A ^", {}, []),
        ("^ A ^", {}, []),
        ("A $", {}, [(4, "A")]),
        ("$ A", {}, []),
        ("$ A $", {}, []),
        ("A B C", {"B": FALLS, "C": SAME}, [(2, "ABC")]),
        ("B | C | A", {"B": FALLS, "C": NOT_RISES}, [(1, "A"), (2, "B"), (3, "B"), (4, "C")]),
        ("PERMUTE(B, C)", {"B": FALLS, "C": FALLS}, [(2, "BC")]),
        ("(((A) (B (C))))", {"B": FALLS, "C": SAME}, [(2, "ABC")]),
        # Parts without rows that are repeated.
        ("()* | B", {"B": FALLS}, EMPTY),
        ("()+ | B", {"B": FALLS}, EMPTY),
        ("(){5,} | B", {"B": FALLS}, EMPTY),
        ("B | ()*", {"B": FALLS}, [(1, ""), (2, "B"), (3, "B"), (4, "")]),
        ("(B ()*)*", {"B": FALLS}, [(1, ""), (2, "BB"), (4, "")]),
        ("(B ()*)*?", {"B": FALLS}, EMPTY),
        ("^* | B", {"B": FALLS}, EMPTY),
        ("^+ | B", {"B": FALLS}, [(1, ""), (2, "B"), (3, "B")]),
        ("^* A B", {"B": FALLS}, [(1, "AB")]),
        ("$* | B", {"B": FALLS}, EMPTY),
        ("$+ | B", {"B": FALLS}, [(2, "B"), (3, "B")]),
        ("B A $+", {"B": FALLS}, [(3, "BA")]),
    ],
)
def test_patterns_of_trino(pattern: str, conditions: dict[str, Any], expected: list[tuple[int, str]]) -> None:
    node = sequences(pattern, **conditions)
    assert words(node, SHORT) == one_by_one(node, SHORT) == expected


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        ("A B+ C+", [[1, 2, 3, 4, 5], [6, 7, 8]]),
        ("A {- B+ -} C+", [[1, 4, 5], [6, 8]]),
        ("{- A -} {- B+ -} C+", [[4, 5], [8]]),
        ("A {- {- B+ -} C+ -}", [[1], [6]]),
        ("{- A B+ C+ -}", [[], []]),
        ("A B+ {- ()* -} C+", [[1, 2, 3, 4, 5], [6, 7, 8]]),
        ("A {- B -}+ {- C -}+", [[1], [6]]),
        ("A {- B -}* {- C -}*", [[1], [6]]),
        ("A {- B -}{1,2} {- C -}{1,2}", [[1], [6]]),
        ("A {- C -}{2,3} {- B -}{2,3}", [[3]]),
    ],
)
def test_exclusions_of_trino(pattern: str, expected: list[list[int]]) -> None:
    node = sequences(pattern, B=FALLS, C=RISES)
    reported = [
        [at + 1 for at, _ in match.matched if at not in match.excluded]
        for match in matches_of(partition(node, rows_of(LONG)))
    ]
    assert reported == expected


@pytest.mark.parametrize(
    ("skip", "expected"),
    [
        ("past last row", [(1, "ABBC")]),
        ("next row", [(1, "ABBC"), (2, "ABC"), (4, "ABC")]),
        ("first C", [(1, "ABBC"), (4, "ABC")]),
        ("last B", [(1, "ABBC"), (4, "ABC")]),
        ("last U", [(1, "ABBC"), (4, "ABC")]),
    ],
)
def test_where_the_search_goes_on_in_trino(skip: str, expected: list[tuple[int, str]]) -> None:
    subsets = (("U", ("C", "D")),)
    node = sequences("A B+ C+ D?", B=FALLS, C=RISES, D=lambda r: r.x < 0, skip=skip, subsets=subsets)
    values = (90, 80, 70, 80, 70, 80)
    assert words(node, values) == expected
    assert sorted(one_by_one(node, values)) == expected


def test_unmatched_rows_of_trino() -> None:
    """Rows 4 and 5 begin no match, but are rows of one."""
    reported = Reported("all", unmatched=True)
    node = sequences("A B{2}", B=FALLS, skip="next row", reported=reported)
    rows = partition(node, rows_of((100, 100, 90, 80, 70, 100)))
    matches = matches_of(rows)
    assert [spelt(match) for match in matches] == [(2, "ABB"), (3, "ABB")]
    assert unmatched(rows, matches) == [0, 5]
    # That the first begins no match says the next row; of the last row it is known when the input ends.
    assert instants_of(rows, matches).unmatched == {0: 2, 5: MAX_INSTANT}


def test_back_references_of_trino() -> None:
    """A condition reads rows of variables that may have been tried in other ways."""
    for variable in "AB":
        back: dict[str, Any] = {"C": lambda r, v=variable: r.x == r[f"last_{v}_x"]}
        node = sequences("(A | B)* C", **back)
        assert words(node, (1, 1)) == [(1, f"{variable}C")]


def test_labels_of_rows_behind_the_current_one_in_trino() -> None:
    """A measure reads them of the whole match; in a condition there are none."""
    measures = {"label": lambda r: getattr(r, "is"), "following": lambda r: r.will}
    node = sequences("A B+ C+", B=FALLS, C=RISES, measures=measures, reported=Reported("all"))
    rows = partition(node, rows_of((90, 80, 70, 80)))
    (match,) = matches_of(rows)
    said = [rows.measures(match.matched[: count + 1], match.matched, 1) for count in range(4)]
    assert said == [("A", "B"), ("B", "B"), ("B", "C"), ("C", None)]
    assert words(sequences("A+", A=lambda r: r.will == "A"), (90, 80, 70, 80)) == []


def test_averages_of_flink() -> None:
    """Flink's manual, Detecting Patterns in Tables: A+ B, where the average of the prices of A stays below 15. As sums,
    15 * count(A) > sum(A).
    """
    node = sequences("A+ B", A=lambda r: r.sum_A < 15 * r.count_A)
    values = (12, 17, 13, 16, 25, 2, 4, 10, 15, 25, 25, 30)
    assert words(node, values) == [(1, "AAAAB"), (6, "AAAAAAB")]


@pytest.mark.parametrize(("quantifier", "expected"), [("*", [(2, "ABBBC")]), ("*?", [(2, "ABC"), (5, "AC")])])
def test_greedy_and_reluctant_of_flink(quantifier: str, expected: list[tuple[int, str]]) -> None:
    conditions: dict[str, Any] = {"A": lambda r: r.x > 10, "B": lambda r: r.x < 15, "C": lambda r: r.x > 12}
    assert words(sequences(f"A B{quantifier} C", **conditions), (10, 11, 12, 13, 14, 16)) == expected


def test_time_constraint_of_flink() -> None:
    """A drop of more than 10 within an hour, of prices every 20 minutes."""
    falls: dict[str, Any] = {"B": lambda r: r.x > r.last_A_x - 10, "C": lambda r: r.x < r.last_A_x - 10}
    node = sequences("A B* C", **falls, limits=[60])
    prices = (20, 17, 18, 11, 14, 9, 15, 14, 24, 1, 19)
    rows = partition(node, [(20 * number, price) for number, price in enumerate(prices)])
    (match,) = matches_of(rows)
    assert [rows.times[match.matched[end][0]] for end in (0, -1)] == [120, 180]
    assert [rows.rows[match.matched[end][0]][2] for end in (0, -1)] == [15, 1]


@pytest.mark.parametrize(
    ("skip", "streamed", "ended"),
    [
        ("past last row", [(1, "AAAC"), (5, "AAC")], []),
        ("next row", [(1, "AAAC"), (2, "AAAC"), (3, "AAAC"), (4, "AAAC"), (5, "AAC")], [(6, "AC")]),
        ("last A", [(1, "AAAC"), (3, "AAAC"), (5, "AAC")], [(6, "AC")]),
    ],
)
def test_where_the_search_goes_on_in_flink(
    skip: str, streamed: list[tuple[int, str]], ended: list[tuple[int, str]]
) -> None:
    """The manual's rows are those that are certain at the last row: `A6 C7` may still become `A6 A7 C`. The manual has
    them of a stream that goes on.
    """
    node = sequences("A+ C", A=lambda r: r.sum_A < 30, skip=skip)
    values = (7, 9, 10, 5, 10, 7, 14)
    rows = partition(node, rows_of(values))
    rule = Certainty(Prepared(node))
    assert [spelt(match) for match in rule.at(rows, 7).matches] == streamed
    assert words(node, values) == streamed + ended
    found = instants_of(rows, matches_of(rows)).matches
    assert [spelt(match) for match, at in found.items() if at == MAX_INSTANT] == ended
