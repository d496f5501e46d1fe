"""Row patterns that compiled kernels search for: what these find, and when, is what the rule says."""

from __future__ import annotations

import random
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tests.strategies.searched_sequences import Row, S, Searched, found_by, in_order, operator_of, random_searched
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.semantics import bags_equal
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.ordered.sequences.programs import DEEPEST
from tidegate.analysis.ordered.sequences.tables import tables_of
from tidegate.runtime.eval.columns import polars_schema
from tidegate.runtime.kernels.sequences import threads
from tidegate.runtime.kernels.sequences.machine import DEPTH
from tidegate.runtime.ordered.family import Operator
from tidegate.runtime.ordered.partition_store import EVER, NO_LOOK
from tidegate.runtime.ordered.sequences import operator as operators
from tidegate.runtime.rows import as_frame

UNTYPED: Any = S
AT_THE_END = 1 << 61


def node_of(pattern: str, **options: Any) -> Sequences:
    relation: Any = UNTYPED.sequences(pattern, by="k", order="t", tie="n", **options)
    node: Sequences = relation._node
    assert not isinstance(tables_of(node), str), tables_of(node)
    return node


def rows_of(values: str, *, key: int = 1) -> tuple[Row, ...]:
    """One row every tick, from 0 on: `"12.3"` are the values 1, 2, NULL, 3."""
    return tuple((key, at, at, None if v == "." else int(v), float(at)) for at, v in enumerate(values))


def check(node: Sequences, rows: tuple[Row, ...], *, seeds: int = 3) -> list[Row]:
    """The rows that are meant, which are found however they are batched."""
    case = Searched(node, rows)
    for seed in range(seeds):
        assert bags_equal(found_by(random.Random(seed), case), case.meant)
    return case.meant


def test_kernels_know_when_nothing_ends() -> None:
    assert (threads.EVER, threads.NO_LOOK) == (EVER, NO_LOOK)
    assert DEPTH > DEEPEST  # conditions of a variable are joined by `and`


IS = {name: lambda m, name=name, value=value: m[name].v == value for value, name in enumerate("ABC", 1)}
AB = {name: IS[name] for name in "AB"}


@pytest.mark.parametrize("first", range(0, 40, 20))
def test_random_patterns(first: int) -> None:
    """In increments, with rows in any order, and with restarts in between."""
    searched = 0
    for seed in range(first, first + 20):
        rng = random.Random(seed)
        case = random_searched(rng)
        if isinstance(tables_of(case.node), str):
            continue
        searched += 1
        assert bags_equal(found_by(rng, case), case.meant), seed
    assert searched > 10


def test_either_search_goes_on_from_what_the_other_has_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Engines and versions may change between two runs."""
    compiled = operators.compiled_search

    def mixed(rng: random.Random) -> Any:
        return lambda node: compiled(node) if rng.random() < 0.5 else None

    for seed in range(15):
        rng = random.Random(seed)
        case = random_searched(rng)
        monkeypatch.setattr(operators, "compiled_search", mixed(rng))
        assert bags_equal(found_by(rng, case), case.meant), seed


def test_a_match_is_certain_when_what_is_preferred_is_gone() -> None:
    node = node_of("A B*", define=AB, within=4)
    assert [row[-3:] for row in check(node, rows_of("1223"))] == [(0, 2, 3)]
    assert [row[-3:] for row in check(node, rows_of("122"))] == [(0, 2, 4)]
    assert [row[-3:] for row in check(node, rows_of("122222"))] == [(0, 4, 4)]
    unlimited = node_of("A B*", define=AB)
    assert [row[-3:] for row in check(unlimited, rows_of("122"))] == [(0, 2, AT_THE_END)]


def test_an_earlier_start_may_jump_over_a_later_one() -> None:
    node = node_of("A B B | B", define=AB, within=9)
    assert [row[-3:] for row in check(node, rows_of("123"))] == [(1, 1, 2)]
    assert [row[-3:] for row in check(node, rows_of("12"))] == [(1, 1, 9)]


def test_limits_between_rows_that_are_still_to_come() -> None:
    limits = {"limits": lambda m: [m.C.t - m.B.first().t <= 2, m.C.t - m.A.t <= 5]}
    node = node_of("A B* C | A", define=IS, **limits)
    assert [row[-3:] for row in check(node, rows_of("1"))] == [(0, 0, 5)]
    assert [row[-3:] for row in check(node, rows_of("12"))] == [(0, 0, 3)]


def test_a_limit_of_rows_that_have_come_ends_by_itself() -> None:
    """A second C is not preferred to the end of the match, so nothing is waited for."""
    node = node_of("A B? C*?", define=IS, limits=lambda m: m.B.t - m.A.t <= 3)
    assert [row[-3:] for row in check(node, rows_of("1"))] == [(0, 0, 3)]
    assert [row[-3:] for row in check(node, rows_of("12"))] == [(0, 1, 1)]
    first = node_of("A B? C*?", define=IS, limits=lambda m: m.B.first().t - m.A.t <= 3)
    assert [row[-3:] for row in check(first, rows_of("1"))] == [(0, 0, 3)]


def test_a_shorter_way_is_taken_where_it_is_preferred() -> None:
    node = node_of("A B+? | A B B C", define=IS)
    assert [row[-3:] for row in check(node, rows_of("1223"))] == [(0, 1, 1)]


def test_threads_are_alike_where_their_rows_are() -> None:
    """Both ways come to C with the same row, but with other rows of B."""
    node = node_of("(A | B) C D", define={"D": lambda m: m.D.v > m.B.v})
    assert [row[-3:] for row in check(node, rows_of("123"))] == [(0, 2, 2)]


def test_first_and_last_rows_of_a_variable() -> None:
    rows = rows_of("31425")
    first = node_of("A+ B", define={"B": lambda m: m.B.v > m.A.first().v})
    assert [row[-3:-1] for row in check(first, rows)] == [(0, 4)]
    second = node_of("A+? B", define={"B": lambda m: m.B.v > m.A.first(1).v})
    assert [row[-3:-1] for row in check(second, rows)] == [(0, 2)]
    before = node_of("A+? B", define={"B": lambda m: m.B.v > m.A.last(1).v})
    assert [row[-3:-1] for row in check(before, rows)] == [(0, 2)]


def test_rows_before_are_of_the_same_partition() -> None:
    """And they are there in the next increment, too."""
    rising = {"B": lambda m: m.B.v > m.B.prev().v}
    node = node_of("B", define=rising, was=lambda m: m.B.prev().v, number=lambda m: m.number)
    rows = (*rows_of("1213", key=1), *((2, at, at, v, 0.0) for at, v in ((1, 9), (2, 8), (3, 9))))
    assert check(node, rows, seeds=9) == [(1, 1, 1, 1, 1, 1), (1, 1, 2, 3, 3, 3), (2, 8, 1, 3, 3, 3)]
    assert len(check(node_of("B", define=rising), rows, seeds=9)) == 3
    first = node_of("A", define={"A": lambda m: m.A.x == 0.0}, was=lambda m: m.A.prev().v)
    assert [row[:3] for row in check(first, rows)] == [(1, None, 0), (2, 8, 3), (2, 9, 2), (2, None, 1)]


def test_partitions_without_new_rows_are_looked_at() -> None:
    node = node_of("A B?", define=AB, within=2)
    rows = ((1, 0, 0, 1, 0.0), (2, 1, 0, 5, 0.0), (2, 4, 0, 5, 0.0), (2, 9, 0, 5, 0.0))
    assert [row[-3:] for row in check(node, rows, seeds=9)] == [(0, 0, 2)]


def test_conditions_read_earlier_rows_of_the_match() -> None:
    rising = node_of(
        "A B{2,} C?",
        define={
            "B": lambda m: (m.B.v >= m.A.v) & (m.B.x * 2.0 > m.A.first().v),
            "C": lambda m: (m.C.v < m.B.first(1).v) | (m.C.v - m.A.v > 5),
        },
        low=lambda m: m.A.v,
        high=lambda m: m.B.v,
    )
    assert check(rising, rows_of("1352468.91")) == [(1, 1, 8, 0, 6, 7)]


def test_a_condition_without_a_value_is_not_satisfied() -> None:
    greatest = (1 << 63) - 1
    node = node_of("A B", define={"B": lambda m: m.B.v + m.A.v > 0}, skip="next row")
    rows = tuple((1, at, at, v, 0.0) for at, v in enumerate((1, greatest, 1, 2, None, 1)))
    assert [row[-3:-1] for row in check(node, rows)] == [(2, 3)]
    times = node_of("A B", define={"B": lambda m: m.B.v * m.A.v < 9}, skip="next row")
    assert [row[-3:-1] for row in check(times, rows)] == [(2, 3)]
    twice = tuple((1, at, at, v, 0.0) for at, v in enumerate((2, greatest, 2)))
    assert check(times, twice) == []
    either = node_of("A B", define={"B": lambda m: (m.B.v > 0) | (m.B.v + m.A.v > 0)}, skip="next row")
    assert len(check(either, rows)) == 4
    first = node_of("A B", define={"B": lambda m: (m.B.v + m.A.v > 0) | (m.B.v > 0)}, skip="next row")
    assert [row[-3:-1] for row in check(first, rows)] == [(2, 3), (4, 5)]


def test_the_least_integer_is_a_product_of_rows() -> None:
    least = -(1 << 63)
    node = node_of("A B", define={"B": lambda m: m.B.v * m.A.v == least})
    for first, second in ((1 << 62, -2), (-2, 1 << 62), (-(1 << 31), 1 << 32)):
        assert len(check(node, ((1, 0, 0, first, 0.0), (1, 1, 1, second, 0.0)))) == 1
    below = node_of("A B", define={"B": lambda m: m.B.v * m.A.v < 0})
    for first, second in ((1 << 62, -3), (least, -1), (3037000500, -3037000500)):
        assert check(below, ((1, 0, 0, first, 0.0), (1, 1, 1, second, 0.0))) == []


def test_decimals_of_several_rows_have_eighteen_digits() -> None:
    """A condition has no value where the result has more, although it fits an integer of 64 bits."""
    decimals: Any = tg.stream("S", "k bigint, t bigint, n bigint, v decimal(18,0)", progress="t")
    largest = 10**18 - 1
    for condition, first, second, holds in (
        (lambda m: m.B.v + m.A.v > m.B.v, largest, 0, True),
        (lambda m: m.B.v + m.A.v > m.B.v, largest, 1, False),
        (lambda m: m.B.v + m.A.v < m.B.v, -largest, -1, False),
        (lambda m: m.B.v - m.A.v > m.B.v, -1, largest, False),
        (lambda m: m.B.v * m.A.v > m.B.v, 10**9, 10**9, False),
        (lambda m: m.B.v * m.A.v > m.B.v, 10**9, 10**8, True),
    ):
        relation = decimals.sequences("A B", by="k", order="t", tie="n", define={"B": condition})
        node: Sequences = relation._node
        assert not isinstance(tables_of(node), str)
        assert bool(check(node, ((1, 0, 0, first), (1, 1, 1, second)))) == holds


def test_nan_is_greatest_and_zeros_are_equal() -> None:
    nan = float("nan")
    rows = tuple((1, at, at, 0, x) for at, x in enumerate((0.0, -0.0, nan, nan, 1.0)))
    for define, starts in (
        (lambda m: m.B.x == m.A.x, [0, 2]),
        (lambda m: m.B.x > m.A.x, [1]),
        (lambda m: m.B.x >= m.A.x, [0, 1, 2]),
        (lambda m: m.B.x < m.A.x, [3]),
        (lambda m: m.B.x != m.A.x, [1, 3]),
    ):
        node = node_of("A B", define={"B": define}, skip="next row")
        assert [row[-3] for row in check(node, rows)] == starts


def test_more_threads_and_longer_matches_than_there_is_room_for_at_first() -> None:
    """`A` has as many beginnings as there are rows; a match of thousands of rows is one."""
    many = node_of("(A | B)* C", define={"A": lambda m: m.A.v >= m.B.first().v, "C": IS["C"]}, skip="next row")
    check(many, rows_of("12213213"), seeds=2)
    long = node_of("A B+ C", define=IS, n=lambda m: m.rows.agg(tg.count()))
    rows = [(1, 0, 0, 1, 0.0), *((1, at, 0, 2, 0.0) for at in range(1, 9_000)), (1, 9_000, 0, 3, 0.0)]
    assert once(long, rows) == [(1, 9_001, 0, 9_000, 9_000)]


def once(node: Sequences, rows: list[Row]) -> list[Row]:
    operator: Operator = operator_of(node)
    return in_order(as_frame(operator.step([frame_of(node, rows)], -INF, INF)[1]).rows())


def frame_of(node: Sequences, rows: list[Row]) -> pl.DataFrame:
    return pl.DataFrame(rows, schema=polars_schema(node.input.schema), orient="row")


def test_all_rows_of_a_match() -> None:
    """Measures are of the rows so far, or of the whole match; excluded rows are left out."""
    node = node_of(
        "A {- B -} C+",
        define=IS,
        rows="all",
        c=lambda m: m.C.v,
        so_far=lambda m: m.rows.agg(tg.count()),
        of=lambda m: m.final.rows.agg(tg.sum(UNTYPED.v)),
        end=lambda m: m.final.rows.x,
        before=lambda m: m.rows.last(1).classifier,
    )
    assert [row[1:2] + row[3:8] for row in check(node, rows_of("1233"))] == [
        (0, None, 1, 9, 3.0, None),
        (2, 3, 3, 9, 3.0, "B"),
        (3, 3, 4, 9, 3.0, "C"),
    ]


@pytest.mark.parametrize(
    ("matches", "ends"),
    [
        ("contiguous", [(1, 3)]),
        ("next", [(0, 3), (1, 3)]),
        ("any", [(0, 3), (0, 4), (1, 3), (1, 4)]),
    ],
)
def test_every_match(matches: str, ends: list[tuple[int, int]]) -> None:
    """As Table 4.1 of the thesis has it."""
    node = node_of("A B C", define=IS, matches=matches, within=9)
    found = check(node, rows_of("11233"))
    assert [row[-3:-1] for row in found] == ends
    assert all(row[-2] == row[-1] for row in found)


def test_a_match_is_one_whatever_the_ways_to_it() -> None:
    either = node_of("(A | A) (B | B+)", define=AB, matches="any", within=9)
    assert len(check(either, rows_of("122"))) == 3
    begun = node_of("A B | A C", define=IS, matches="any", within=9)
    assert [row[-3:-1] for row in check(begun, rows_of("123"))] == [(0, 1), (0, 2)]


def test_what_the_limits_forbid_is_skipped() -> None:
    """The row with B is too late, so it can not go on with the match."""
    node = node_of("A (B | C)", define=IS, matches="next", limits=lambda m: m.B.t - m.A.t <= 2, within=9)
    late = tuple((1, t, t, v, 0.0) for t, v in ((0, 1), (3, 2), (4, 3)))
    assert [row[-3:-1] for row in check(node, late)] == [(0, 4)]
    early = tuple((1, t, t, v, 0.0) for t, v in ((0, 1), (2, 2), (4, 3)))
    assert [row[-3:-1] for row in check(node, early)] == [(0, 2)]


def test_conditions_that_compare_instants() -> None:
    near = {**IS, "C": lambda m: (m.C.v == 3) & (m.C.t - m.A.t <= 3) & (m.C.t >= m.B.t + 2)}
    node = node_of(
        "A B C", define=near, matches="any", within=9, was=lambda m: m.C.prev().v, of=lambda m: m.rows.prev().classifier
    )
    assert [row[1:5] for row in check(node, rows_of("12333"))] == [(3, None, 0, 3)]


def instants(node: Sequences, rows: tuple[Row, ...], *, seeds: int = 5) -> list[Row]:
    """The first and the last instant of each match, and when it is certain."""
    return sorted(row[-3:] for row in check(node, rows, seeds=seeds))


def instants_by_steps(node: Sequences, rows: tuple[Row, ...], *ends: int) -> list[Row]:
    """The same, where an increment ends at each of these instants and no other."""
    operator: Operator = operator_of(node)
    after: Extended = -INF
    found: list[Row] = []
    for until in (*ends, INF):
        its = [row for row in rows if after < row[1] <= until]
        operator, result = operator.step([frame_of(node, its)], after, until)
        found += [row[-3:] for row in as_frame(result).rows()]
        after = until
    return sorted(found)


def rows_at(*rows: tuple[int, int]) -> tuple[Row, ...]:
    """Rows of one key: of each its instant and its value."""
    return tuple((1, at, n, v, 0.0) for n, (at, v) in enumerate(rows))


NOT = {"N": lambda m: m.N.v == 9, "M": lambda m: m.M.v == 8}


def test_a_match_waits_for_rows_that_must_not_come() -> None:
    node = node_of("A !N[3]", define={"A": IS["A"], "N": NOT["N"]})
    assert instants(node, rows_of("11")) == [(0, 0, 3), (1, 1, 4)]
    assert instants(node, rows_of("1229")) == []
    assert instants(node, rows_of("12229")) == [(0, 0, 3)]
    assert instants(node, rows_at((0, 1), (3, 2), (3, 9))) == []
    now = node_of("A !N[0]", define={"A": IS["A"], "N": NOT["N"]})
    assert instants(now, rows_at((0, 1), (1, 1), (1, 9))) == [(0, 0, 0)]


def test_rows_that_must_not_come_are_compared_with_rows_of_the_match() -> None:
    """Of those that the row alone tells the second one is."""
    far = {"A": IS["A"], "B": IS["B"], "N": lambda m: (m.N.v >= 2) & (m.N.v > m.A.v + m.B.agg(tg.count()))}
    node = node_of("A B? !N[4]", define=far)
    assert instants(node, rows_of("122")) == [(0, 1, 5)]
    assert instants(node, rows_of("1223")) == []
    assert instants(node, rows_of("12222")) == [(0, 1, 5)]
    assert instants(node, rows_of("1.222")) == []
    counted = {"A": IS["A"], "N": lambda m: (m.N.v == 9) & (m.rows.agg(tg.count()) > 1)}
    assert instants(node_of("A !N[4]", define=counted), rows_of("1..9")) == []


def test_starts_are_decided_where_the_search_may_come_to_them() -> None:
    """Past the last row: a later match may be certain before an earlier one is."""
    apart = node_of("A !N[5] | B", define={**AB, "N": NOT["N"]})
    assert instants(apart, rows_of("12")) == [(0, 0, 5), (1, 1, 1)]
    node = node_of("A B !N[5] | B", define={**AB, "N": NOT["N"]})
    assert instants(node, rows_of("122")) == [(0, 1, 6), (2, 2, 2)]
    assert instants(node, rows_of("1229")) == [(1, 1, 3), (2, 2, 2)]
    numbered = node_of("A B !N[5] | B", define={**AB, "N": NOT["N"]}, number=lambda m: m.number)
    assert [row[1:] for row in check(numbered, rows_of("122"))] == [(1, 0, 1, 6), (2, 2, 2, 6)]
    assert [row[1:] for row in check(numbered, rows_of("1229"))] == [(1, 1, 1, 3), (2, 2, 2, 3)]


def test_what_is_less_preferred_waits_for_open_matches() -> None:
    node = node_of("A B !N[5] | A B | A !M[1]", define={**AB, **NOT})
    assert instants(node, rows_of("12")) == [(0, 1, 1)]
    assert instants(node, rows_of("1.2")) == [(0, 0, 1)]
    either = node_of("A B !N[5] | A !M[1]", define={**AB, **NOT})
    assert instants(either, rows_of("129")) == [(0, 0, 2)]
    assert instants(either, rows_of("12")) == [(0, 1, 6)]
    behind = node_of("A !N[4] | A B+ C", define={**IS, "N": NOT["N"]})
    assert instants(behind, rows_of("122222")) == [(0, 0, 4)]
    assert instants(behind, rows_of("1223")) == [(0, 0, 4)]
    gone = node_of("A !N[4] | A B+ C", define={**IS, "N": lambda m: m.N.v == 2})
    assert instants(gone, rows_of("1223")) == [(0, 3, 3)]
    before = node_of("A B+ C | A !N[4]", define={**IS, "N": NOT["N"]}, within=7)
    assert instants(before, rows_of("1223")) == [(0, 3, 3)]
    assert instants(before, rows_of("122")) == [(0, 0, 7)]


def test_matches_of_the_same_rows_do_not_wait_for_each_other() -> None:
    node = node_of("A (!N[5] | !M[3])", define={"A": IS["A"], **NOT})
    assert instants(node, rows_of("1")) == [(0, 0, 3)]
    assert instants(node, rows_of("1.8")) == [(0, 0, 5)]
    assert instants(node, rows_of("189")) == []
    assert instants(node, rows_of("1...9")) == [(0, 0, 3)]
    assert instants_by_steps(node, rows_of("1...9")) == [(0, 0, 3)]
    assert instants(node_of("A !N[5] | A", define={"A": IS["A"], "N": NOT["N"]}), rows_of("1")) == [(0, 0, 0)]
    other = node_of("A !N[5] | B", define={"A": IS["A"], "B": lambda m: m.B.v == 1, "N": NOT["N"]})
    assert instants(other, rows_of("1")) == [(0, 0, 5)]


def test_rows_that_must_not_come_before_a_match() -> None:
    node = node_of("!N[2] A", define={"A": IS["A"], "N": NOT["N"]})
    assert instants(node, rows_of("9.1")) == []
    assert instants(node, rows_of("9..1")) == [(3, 3, 3)]
    assert instants(node, rows_at((0, 9), (0, 1))) == []
    assert instants(node_of("!N[2] A | A B", define={**AB, "N": NOT["N"]}), rows_of("912")) == [(1, 2, 2)]
    far = {"A": IS["A"], "N": lambda m: (m.N.v > 1) & (m.N.v > m.A.v + m.rows.first().v)}
    for options in ({}, {"matches": "any", "within": 9}):
        higher = node_of("!N[2] A B?", define={**far, "B": IS["B"]}, **options)
        assert instants(higher, rows_of("321"), seeds=9) == []
        assert instants(higher, rows_of("3.21"), seeds=9) == [(3, 3, 3 if options else AT_THE_END)]


def test_rows_before_those_that_must_not_come_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    define = {"A": IS["A"], "N": lambda m: m.N.v < m.N.prev().v}
    node = node_of("!N[2] A", define=define)
    for _ in range(2):
        assert instants(node, rows_of("53.1"), seeds=9) == []
        assert instants_by_steps(node, rows_of("53.1"), 2) == []
        assert instants(node, rows_of("53..1"), seeds=9) == [(4, 4, 4)]
        monkeypatch.setattr(operators, "compiled_search", lambda node: None)


def test_rows_that_must_not_come_between_two() -> None:
    node = node_of("A !N C", define={"A": IS["A"], "C": IS["C"], "N": NOT["N"]}, matches="any", within=9)
    assert instants(node, rows_of("193")) == []
    assert instants(node, rows_of("1.3")) == [(0, 2, 2)]
    assert instants(node, rows_of("1913")) == [(2, 3, 3)]
    higher = {"A": IS["A"], "C": IS["C"], "N": lambda m: (m.N.v != 3) & (m.N.v > m.A.v)}
    assert instants(node_of("A !N C", define=higher, matches="any", within=9), rows_of("1033")) == [
        (0, 2, 2),
        (0, 3, 3),
    ]
    assert instants(node_of("A !N C", define=higher, matches="any", within=9), rows_of("10323")) == [(0, 2, 2)]


def test_a_row_may_be_the_next_one_where_another_must_not_come() -> None:
    either = {**IS, "N": NOT["N"], "D": lambda m: m.D.v == 4}
    last = {name: either[name] for name in "ABCN"}
    one = node_of("A (!N B | C)", define=last, matches="any", within=9)
    assert instants(one, rows_of("1923")) == [(0, 3, 3)]
    skipped = node_of("A (!N B | C)", define=last, matches="next", within=9)
    assert instants(skipped, rows_of("1923")) == []
    assert instants(skipped, rows_of("193")) == [(0, 2, 2)]
    both = node_of("A (!N B D | B C)", define=either, matches="any", within=9)
    assert instants(both, rows_of("1923")) == [(0, 3, 3)]
    assert instants(both, rows_of("1924")) == []
    assert instants(both, rows_of("1.24")) == [(0, 3, 3)]


@pytest.mark.parametrize("matches", ["any", "next", "contiguous"])
def test_every_match_waits_for_rows_that_must_not_come(matches: str) -> None:
    node = node_of("!M[1] A B+ !N[2]", define={**AB, **NOT}, matches=matches, within=9)
    assert instants(node, rows_of("122"))[0] == (0, 1, 3)
    assert instants(node, rows_of("1229")) == []
    assert instants(node, rows_of("122.9")) == [(0, 1, 3)]
    assert instants(node, rows_of("812")) == []
    alone = node_of("A (!N[5] | !M[3])", define={"A": IS["A"], **NOT}, matches=matches, within=9)
    assert instants(alone, rows_of("1")) == [(0, 0, 3)]
    assert instants(alone, rows_of("1.8")) == [(0, 0, 5)]


def test_a_condition_waits_for_the_rows_that_it_reads() -> None:
    rising = node_of("A", define={"A": lambda m: m.A.v < m.A.next().v})
    assert instants(rising, rows_of("1213")) == [(0, 0, 1), (2, 2, 3)]
    keys = (*rows_of("12"), *((2, at, at, v, 0.0) for at, v in enumerate((3, 1))))
    assert instants(rising, keys) == [(0, 0, 1)]
    last = node_of("A", define={"A": lambda m: m.A.next().v.is_null()})
    assert instants(last, rows_of("12")) == [(1, 1, AT_THE_END)]
    fewer = node_of("A", define={"A": lambda m: (m.A.next().v == 2) & (m.A.next(2).v == 3)})
    assert instants(fewer, rows_of("123")) == [(0, 0, 2)]


def test_what_a_row_behind_decides_stands_before_what_is_less_preferred() -> None:
    node = node_of("A B | A", define={"A": IS["A"], "B": lambda m: (m.B.v == 2) & (m.B.next().v == 3)})
    assert instants(node, rows_of("124")) == [(0, 0, 2)]
    assert instants(node, rows_of("123")) == [(0, 1, 2)]
    assert instants(node, rows_of("13")) == [(0, 0, 1)]
    soon = node_of("A B | A", define={"A": IS["A"], "B": lambda m: (m.B.next().v == 3) & (m.B.next(2).v == 3)})
    assert instants(soon, rows_of("1245")) == [(0, 0, 2)]
    either = node_of("A B", define={"A": IS["A"], "B": lambda m: (m.B.v == 2) | (m.B.next().v == 3)})
    assert instants(either, rows_of("12")) == [(0, 1, 1)]
    failing = node_of("A B", define={"A": IS["A"], "B": lambda m: (6 // m.B.next().v > 0) | (m.B.v == 2)})
    assert instants(failing, rows_of("121")) == [(0, 1, 2)]
    assert instants(failing, rows_of("120")) == []
    third = {"A": IS["A"], "B": lambda m: (m.B.v == 7) | (6 // m.B.next().v > 0) | (m.B.v == 2)}
    assert instants(node_of("A B", define=third), rows_of("121")) == [(0, 1, 2)]
    assert instants(node_of("A B", define=third), rows_of("120")) == []


def test_a_match_waits_for_no_thread_of_which_a_condition_has_failed() -> None:
    define = {**IS, "A": lambda m: (m.A.v == 1) & (m.A.next().v == 9), "D": lambda m: m.D.v == 1}
    node = node_of("A B* C | D", define=define)
    assert instants(node, rows_of("122")) == [(0, 0, 1)]


def test_threads_are_alike_where_the_same_rows_decide_them() -> None:
    """Both ways come to C with the same row, and rows behind decide one of them."""
    node = node_of("(A | B) C", define={"A": lambda m: m.A.next(3).v == 3, "C": lambda m: m.C.v == 2})
    assert instants(node, rows_of("1223"))[0] == (0, 1, 3)
    assert instants(node, rows_of("1224"))[0] == (0, 1, 3)
    four = {"A": lambda m: m.A.next(3).v == 3, "C": lambda m: m.C.v == 2, "D": lambda m: m.D.v == 4}
    longer = node_of("(A | B) C D", define=four)
    assert instants(longer, rows_of("1243")) == [(0, 2, 3)]
    assert instants(longer, rows_of("1244")) == [(0, 2, 3)]


def test_rows_behind_are_compared_with_rows_of_the_match() -> None:
    define = {"A": IS["A"], "B": lambda m: m.B.next().v > m.A.v}
    assert instants(node_of("A B", define=define), rows_of("152")) == [(0, 1, 2)]
    assert instants(node_of("A B", define=define), rows_of("151")) == []
    two = node_of("A B | A", define={"A": IS["A"], "B": lambda m: m.B.next().v > m.A.next(3).v})
    assert instants(two, rows_of("1524")) == [(0, 0, 3)]
    assert instants(two, rows_of("1541")) == [(0, 1, 3), (3, 3, AT_THE_END)]
    nearer = node_of("A B", define={"A": IS["A"], "B": lambda m: m.B.next(2).v > m.A.next().v})
    assert instants(nearer, rows_of("1529")) == [(0, 1, 3)]
    known = node_of("A B C", define={"A": IS["A"], "C": lambda m: m.C.v == m.A.next().v})
    assert instants(known, rows_of("1525")) == []
    assert instants(known, rows_of("1555")) == [(0, 2, 2)]


def test_a_row_is_skipped_once_it_is_known_not_to_fit() -> None:
    define = {"A": IS["A"], "B": lambda m: m.B.next(2).v == 1, "C": IS["C"]}
    node = node_of("A (B | C)", define=define, matches="next", within=9)
    assert instants(node, rows_of("1532")) == [(0, 2, 3)]
    assert instants(node, rows_of("1531")) == [(0, 1, 3)]
    alike = node_of("A B", define={"A": IS["A"], "B": lambda m: m.B.next().v == 1}, matches="any", within=9)
    assert instants(alike, rows_of("1551")) == [(0, 2, 3)]


def test_anchors() -> None:
    first = node_of("^ A B?", define=AB)
    assert instants(first, rows_of("1312"), seeds=9) == [(0, 0, 1)]
    assert instants(first, rows_of("31"), seeds=9) == []
    some = node_of("^ A | B", define=AB)
    assert instants(some, rows_of("112"), seeds=9) == [(0, 0, 0), (2, 2, 2)]
    empty = node_of("^ A?", define={"A": IS["A"]})
    assert instants(empty, rows_of("21"), seeds=9) == [(0, 0, 0)]
    last = node_of("A $", define={"A": IS["A"]})
    assert instants(last, rows_of("11")) == [(1, 1, AT_THE_END)]
    assert instants(last, rows_at((0, 1), (0, 2))) == []
    either = node_of("A $ | A B", define=AB)
    assert instants(either, rows_of("12")) == [(0, 1, 1)]
    assert instants(node_of("A B* $", define=AB), rows_of("122")) == [(0, 2, AT_THE_END)]


def test_more_open_matches_than_there_is_room_for_at_first() -> None:
    node = node_of("A+ !N[400]", define={"A": IS["A"], "N": NOT["N"]}, within=300)
    ones = [(1, at, 0, 1, 0.0) for at in range(80)]
    assert once(node, ones) == [(1, 0, 79, 479)]
    assert once(node, [*ones, (1, 81, 0, 9, 0.0)]) == []


def test_rows_are_kept_until_no_match_can_begin_with_them() -> None:
    node = node_of("A B", define=AB, matches="any", within=3)
    operator = operator_of(node)
    kept = []
    for first, until in ((0, 2), (3, 3), (4, 4)):
        rows = frame_of(node, [row for row in rows_of("11444") if first <= row[1] <= until])
        operator, _ = operator.step([rows], first - 1, until)
        kept.append(sum(operator.counts().values()))
    assert kept == [3, 3, 0]


def deep(m: Any) -> Any:
    """A sum of differences, each inside the one before."""
    value = m.B.v
    for _ in range(40):
        value = m.A.v - value
    return value > 0


@pytest.mark.parametrize(
    ("pattern", "options", "reason"),
    [
        (
            "A !B[3]",
            {"matches": "any", "within": 9, "per_start": 2},
            "matches that begin with one row are limited, and there are rows that must not come",
        ),
        (
            "!N[3] A+",
            {"define": {"N": lambda m: m.N.v > m.A.v}},
            "the condition of N, which must not come before rows, reads rows behind these",
        ),
        (
            "A !N B",
            {"define": {"N": lambda m: m.N.v > m.B.v}, "matches": "any", "within": 9},
            "the condition of N, which must not come between rows, reads rows behind these",
        ),
        (
            "A !N[3]",
            {"define": {"N": lambda m: m.N.next().v > m.N.v}},
            "the condition of N, which must not come, reads a row behind others",
        ),
        ("A !(N M)[3]", {}, "!(N M) is a group of rows that must not come"),
        ("A !N[3]", {"define": {"N": lambda m: m.N.t - m.A.t < 2}}, "the condition of N compares instants"),
        ("A !N[3]", {"define": {"N": lambda m: m.A.v > 2}}, "the condition of N is known, in part, before its row is"),
        ("A B", {"skip": "last B"}, "the search goes on at the last B"),
        ("A B", {"rows": "all", "unmatched": True}, "rows of no match are reported"),
        ("A*", {"rows": "all"}, "empty matches are reported beside rows of others"),
        (
            "A B",
            {"rows": "all", "y": lambda m: m.rows.agg(tg.sum(UNTYPED.v))},
            "a measure is an aggregate of the rows so far",
        ),
        ("A B", {"limits": lambda m: m.B.t - m.A.t >= 3}, "a limit asks for a least distance"),
        ("A B", {"limits": lambda m: [m.B.t - m.A.t <= most for most in range(64)]}, "it has more than 63 limits"),
        ("A B", {"define": {"B": lambda m: m.B.t - m.A.t != 3}}, "the condition of B compares instants"),
        ("A B", {"define": {"B": lambda m: ~(m.B.t - m.A.t < 3)}}, "the condition of B compares instants"),
        ("A B", {"define": {"B": lambda m: m.B.t < m.A.t}}, "the condition of B compares instants"),
        ("A B", {"define": {"B": lambda m: m.B.next().t - m.B.t < 3}}, "the condition of B compares instants"),
        (
            "A B",
            {"define": {"B": lambda m: m.B.t - m.A.t > 3}, "within": 9},
            "the condition of B asks for a least distance, and there are greatest ones",
        ),
        (
            "A B",
            {"define": {"B": lambda m: m.B.prev().v > 3}},
            "the condition of B is known, in part, before its row is",
        ),
        (
            "A B",
            {"define": {"B": lambda m: (6 // m.A.v > 2) | (m.B.v > 3)}},
            "the condition of B is known, in part, before its row is",
        ),
        (
            "A B C",
            {"define": {"C": lambda m: (m.A.v > 3) | (m.B.v > 3)}},
            "the condition of C is known, in part, before its row is",
        ),
        (
            "A B",
            {"define": {"B": lambda m: m.A.agg(tg.stddev(UNTYPED.v)) < m.B.v}},
            "the condition of B reads stddev(v) of A",
        ),
        ("A B", {"define": {"B": deep}}, "the condition of B is too deep"),
        (
            "A B",
            {"define": {"B": lambda m: (m.B.next().v > m.A.v) | (m.B.v > 3)}},
            "the condition of B has a choice that a row behind others decides in part",
        ),
        (
            "A B",
            {"define": {"B": lambda m: m.B.next().t - m.B.t < 3}, "matches": "any", "within": 9},
            "the condition of B compares instants",
        ),
        ("A B", {"x": lambda m: m.B.next().v}, "a measure reads a row behind others"),
    ],
)
def test_what_searches_is_explained(pattern: str, options: dict[str, Any], reason: str) -> None:
    relation: Any = UNTYPED.sequences(pattern, by="k", order="t", tie="n", **options)
    assert tables_of(relation._node) == reason
    assert f"matches are searched for in Python, since {reason}" in str(tg.program(R=relation).explain())
    plain = UNTYPED.sequences("A B", by="k", order="t", tie="n")
    assert "matches are searched for by compiled kernels" in str(tg.program(R=plain).explain())
