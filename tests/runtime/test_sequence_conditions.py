"""Conditions over several rows that compiled kernels evaluate: texts, aggregates of the rows so far, quotients, and
what is known of a row before it comes.
"""

from __future__ import annotations

import random
from datetime import datetime
from typing import Any

import pytest

import tidegate as tg
from tests.strategies.searched_sequences import Row, Searched, found_by
from tidegate.algebra.ordered.sequences.node import Sequences
from tidegate.algebra.semantics import bags_equal
from tidegate.analysis.ordered.sequences.tables import tables_of

S: Any = tg.stream("S", "k bigint, t bigint, n bigint, v bigint, x double, w string, d decimal(18,2)", progress="t")
AT_THE_END = 1 << 61
IS = {name: lambda m, name=name, value=value: m[name].v == value for value, name in enumerate("ABC", 1)}


def node_of(pattern: str, *, define: dict[str, Any], **options: Any) -> Sequences:
    of_pattern = {name: condition for name, condition in define.items() if name in pattern}
    relation: Any = S.sequences(pattern, by="k", order="t", tie="n", define=of_pattern, **options)
    node: Sequences = relation._node
    assert not isinstance(tables_of(node), str), tables_of(node)
    return node


def instants(node: Sequences, rows: tuple[Row, ...]) -> list[Row]:
    """The first and the last instant of each match that is meant, and when it is certain: it is found so however the
    rows are batched.
    """
    case = Searched(node, rows)
    for seed in range(5):
        assert bags_equal(found_by(random.Random(seed), case), case.meant)
    return sorted(row[-3:] for row in case.meant)


def of_values(values: str) -> tuple[Row, ...]:
    """One row every tick, from 0 on: `"12.3"` are the values 1, 2, NULL, 3."""
    return tuple((1, at, at, None if v == "." else int(v), float(at), None, 0) for at, v in enumerate(values))


def of_texts(*texts: str | None) -> tuple[Row, ...]:
    return tuple((1, at, at, at, 0.0, text, 0) for at, text in enumerate(texts))


def of_doubles(*doubles: float | None) -> tuple[Row, ...]:
    return tuple((1, at, at, at, double, None, 0) for at, double in enumerate(doubles))


def at_instants(*rows: tuple[int, int]) -> tuple[Row, ...]:
    """Rows of one key: of each its instant and its value."""
    return tuple((1, at, n, v, 0.0, None, 0) for n, (at, v) in enumerate(rows))


TEXTS = of_texts("b", "b", "é", None, "B", "ba", "b", "", "\U0001f600", "\uffff")


@pytest.mark.parametrize(
    ("condition", "starts"),
    [
        (lambda m: m.B.w == m.A.w, [0]),
        (lambda m: m.B.w != m.A.w, [1, 4, 5, 6, 7, 8]),
        (lambda m: m.B.w < m.A.w, [5, 6, 8]),
        (lambda m: m.B.w >= m.A.w, [0, 1, 4, 7]),
        (lambda m: m.B.w.is_in(m.A.w, "ba"), [0, 4]),
        (lambda m: m.B.w.same_as(m.A.w), [0]),
        (lambda m: m.B.w.upper() == m.A.w, []),
        (lambda m: m.B.w == m.A.w.lower(), [0]),
        (lambda m: (m.B.w == "b") | (m.B.w > m.A.w), [0, 1, 4, 5, 7]),
        (lambda m: m.B.w >= m.rows.agg(tg.max(S.w)), [0, 1, 3, 4, 7]),
    ],
)
def test_texts_of_several_rows_are_compared_by_code_point(condition: Any, starts: list[int]) -> None:
    node = node_of("A B", define={"B": condition}, skip="next row")
    assert [row[0] for row in instants(node, TEXTS)] == starts


def test_texts_may_all_be_null() -> None:
    node = node_of("A B", define={"B": lambda m: m.B.w == m.A.w}, skip="next row")
    assert instants(node, of_texts(None, None, None)) == []
    same = node_of("A B", define={"B": lambda m: m.B.w.same_as(m.A.w)}, skip="next row")
    assert [row[0] for row in instants(same, of_texts(None, None, None))] == [0, 1]


@pytest.mark.parametrize(
    ("condition", "ends"),
    [
        (lambda m: m.A.agg(tg.sum(S.v)) < 10, [(0, 3), (4, 4), (5, 5)]),
        (lambda m: m.A.agg(tg.avg(S.v)) <= 2.5, [(0, 2), (5, 5)]),
        (lambda m: m.A.v >= m.A.agg(tg.max(S.v)), [(0, 0), (2, 4), (5, 5)]),
        (lambda m: m.A.v <= m.A.agg(tg.min(S.v)), [(0, 0), (2, 2), (3, 3), (4, 5)]),
        (lambda m: m.A.agg(tg.count(S.v)) <= 2, [(0, 2), (3, 4), (5, 5)]),
        (lambda m: m.A.agg(tg.max(S.v)) - m.A.agg(tg.min(S.v)) <= 3, [(0, 2), (3, 3), (4, 4), (5, 5)]),
    ],
)
def test_aggregates_of_a_repetition(condition: Any, ends: list[tuple[int, int]]) -> None:
    """Of the rows so far, the own one among them; NULL counts for nothing."""
    node = node_of("A+", define={"A": condition})
    assert [row[:2] for row in instants(node, of_values("1.2591"))] == ends


def test_aggregates_of_rows_before() -> None:
    above = node_of("A+ B", define={"A": IS["A"], "B": lambda m: m.B.x > m.A.agg(tg.avg(S.x)) + 1.0})
    assert [row[:2] for row in instants(above, of_values("1113"))] == [(0, 3)]
    after = node_of("A+ B C", define={**IS, "C": lambda m: m.C.v > m.A.agg(tg.sum(S.v))})
    assert [row[:2] for row in instants(after, of_values("11123112311234"))] == [(1, 4), (5, 8), (9, 12)]


def test_no_value_has_no_least_and_no_sum() -> None:
    for aggregate in (tg.min(S.v), tg.sum(S.v), tg.avg(S.v), tg.max(S.x)):
        node = node_of("A B", define={"B": lambda m, of=aggregate: m.A.agg(of).is_null()}, skip="next row")
        rows = ((1, 0, 0, None, None, None, 0), (1, 1, 1, 2, 2.0, None, 0), (1, 2, 2, 3, 3.0, None, 0))
        assert [row[:2] for row in instants(node, rows)] == [(0, 1)]


def test_totals_are_exact_whatever_comes_first() -> None:
    """More than fits an integer is no total, but may come back to one."""
    greatest = (1 << 63) - 1
    node = node_of("A+ B", define={"A": lambda m: m.A.x > 0.0, "B": lambda m: m.A.agg(tg.sum(S.v)) == m.B.v})

    def found(*values: int) -> bool:
        rows = [(1, at, at, v, 1.0, None, 0) for at, v in enumerate(values)]
        rows[-1] = (*rows[-1][:4], 0.0, None, 0)
        return bool(instants(node, tuple(rows)))

    assert found(greatest, 1, -2, greatest - 1)
    assert found(-greatest - 1, -greatest - 1, greatest, greatest, -2)
    assert found(-greatest - 1, -greatest - 1)
    assert found(-5, 3, -2)
    assert not found(greatest, 1, -greatest - 1)


def test_decimals_of_several_rows_keep_their_scale() -> None:
    high = {"A": IS["A"], "B": lambda m: (m.B.v == 2) & (m.B.d > m.A.agg(tg.avg(S.d)) * 1.5)}
    node = node_of("A+ B", define=high)
    rows = [(1, at, at, 1, 0.0, None, d) for at, d in enumerate((100, 200))]
    assert instants(node, (*rows, (1, 2, 2, 2, 0.0, None, 226)))
    assert not instants(node, (*rows, (1, 2, 2, 2, 0.0, None, 225)))
    whole = node_of("A B", define={"B": lambda m: m.B.v + m.A.d == m.B.d})
    for d, found in ((401, True), (203, False)):
        assert bool(instants(whole, ((1, 0, 0, 1, 0.0, None, 201), (1, 1, 1, 2, 0.0, None, d)))) == found
    total = node_of("A+ B", define={"A": lambda m: m.A.v == 1, "B": lambda m: m.A.agg(tg.sum(S.d)) == m.B.d})
    assert instants(total, (*rows, (1, 2, 2, 2, 0.0, None, 300)))
    large = [(1, at, at, 1, 0.0, None, 10**18 - 1) for at in range(2)]
    missing = node_of("A+ B", define={"A": lambda m: m.A.v == 1, "B": lambda m: m.A.agg(tg.sum(S.d)).is_null()})
    assert instants(missing, (*large, (1, 2, 2, 2, 0.0, None, 0)))
    assert not instants(missing, (large[0], (1, 2, 2, 2, 0.0, None, 0)))


def test_sums_of_doubles_lose_nothing_that_shows() -> None:
    node = node_of("A+ B", define={"A": lambda m: m.A.v < 5, "B": lambda m: m.A.agg(tg.sum(S.x)) == m.B.x})
    for doubles in ((0.1, 0.2, 0.30000000000000004), (1e16, 1.0, 1.0, -1e16, 2.0), (*(0.1,) * 10, 1.0)):
        rows = [(1, at, at, 1, x, None, 0) for at, x in enumerate(doubles)]
        rows[-1] = (*rows[-1][:3], 5, *rows[-1][4:])
        assert instants(node, tuple(rows)), doubles
    nan, inf = float("nan"), float("inf")
    for doubles in ((nan, 1.0, nan), (inf, -inf, nan), (inf, 1.0, inf)):
        rows = [(1, at, at, 1, x, None, 0) for at, x in enumerate(doubles)]
        rows[-1] = (*rows[-1][:3], 5, *rows[-1][4:])
        assert instants(node, tuple(rows)), doubles


def test_least_and_greatest_doubles() -> None:
    nan = float("nan")
    rows = of_doubles(2.0, nan, -1.0, None, 0.0)
    least = node_of("A B*", define={"B": lambda m: m.rows.agg(tg.min(S.x)) >= 0.0})
    assert [row[:2] for row in instants(least, rows)] == [(0, 1), (2, 2), (3, 4)]
    greatest = node_of("A B*", define={"B": lambda m: m.rows.agg(tg.max(S.x)) <= 5.0})
    assert [row[:2] for row in instants(greatest, rows)] == [(0, 0), (1, 1), (2, 4)]


def test_quotients_and_distances() -> None:
    rises = node_of("A B", define={"B": lambda m: m.B.x / m.A.x >= 1.5}, skip="next row")
    assert [row[0] for row in instants(rises, of_doubles(2.0, 3.0, 4.0, 0.0, 5.0, -3.0))] == [0]
    parts = node_of("A B", define={"B": lambda m: (m.B.v - m.A.v) / m.A.v > 0.5}, skip="next row")
    assert [row[0] for row in instants(parts, of_values("102.46"))] == []
    assert [row[0] for row in instants(parts, of_values("1204"))] == [0]
    near = node_of("A B", define={"B": lambda m: abs(m.B.v - m.A.v) <= 1}, skip="next row")
    assert [row[0] for row in instants(near, of_values("12423"))] == [0, 3]


def test_a_condition_may_be_a_constant() -> None:
    always = node_of("A B", define={"A": lambda m: tg.lit(True), "B": IS["B"]})
    assert instants(always, of_values("1232")) == [(0, 1, 1), (2, 3, 3)]
    never = node_of("A B? | A", define={"A": IS["A"], "B": lambda m: tg.lit(False)})
    assert instants(never, of_values("12")) == [(0, 0, 0)]


def test_a_row_that_comes_too_late_is_not_waited_for() -> None:
    """As a limit has it, but for the row that the condition is asked of."""
    soon = node_of("A B | A", define={**IS, "B": lambda m: (m.B.v == 2) & (m.B.t - m.A.t < 5)})
    assert instants(soon, at_instants((0, 1))) == [(0, 0, 4)]
    assert instants(soon, at_instants((0, 1), (3, 2))) == [(0, 3, 3)]
    assert instants(soon, at_instants((0, 1), (5, 2))) == [(0, 0, 4)]
    each = node_of("A B*", define={**IS, "B": lambda m: (m.B.v == 2) & (m.B.t - m.B.prev().t <= 2)})
    assert instants(each, at_instants((0, 1), (2, 2), (4, 2))) == [(0, 4, 6)]
    assert instants(each, at_instants((0, 1), (2, 2), (5, 2))) == [(0, 2, 4)]
    gap = node_of("A B+ C | A", define={**IS, "B": lambda m: (m.B.v == 2) & (m.B.t - m.B.last(1).t <= 2)})
    assert instants(gap, at_instants((0, 1), (1, 2))) == [(0, 0, 0)]


def test_rows_between_may_bridge_what_a_row_to_come_may_not() -> None:
    """The bound is that of the next B. Behind another A it would begin anew."""
    last = node_of("A+ B | A", define={"A": IS["A"], "B": lambda m: (m.B.v == 2) & (m.B.t - m.A.t <= 3)})
    assert instants(last, at_instants((0, 1))) == [(0, 0, AT_THE_END)]
    first = {"A": IS["A"], "B": lambda m: (m.B.v == 2) & (m.B.t - m.A.first().t <= 3)}
    assert instants(node_of("A+ B | A", define=first), at_instants((0, 1))) == [(0, 0, 3)]
    assert instants(node_of("A+ B | A", define=first), at_instants((0, 1), (2, 1))) == [(0, 0, 3), (2, 2, 5)]
    other = {**IS, "C": lambda m: (m.C.v == 3) & (m.C.t - m.B.t <= 3)}
    assert instants(node_of("A B? C | A", define=other), at_instants((0, 1))) == [(0, 0, AT_THE_END)]
    assert instants(node_of("A C | A B", define=other), at_instants((0, 1), (1, 2))) == [(0, 1, 1)]
    begun = {**IS, "C": lambda m: (m.C.v == 3) & (m.C.t - m.B.first().t <= 3)}
    assert instants(node_of("A B? C | A", define=begun), at_instants((0, 1))) == [(0, 0, AT_THE_END)]


def test_a_row_that_a_condition_reads_may_never_be_there() -> None:
    """Of a match without a B, C reads none."""
    node = node_of("(A | B) C | A", define={**IS, "C": lambda m: (m.C.v == 3) & (m.C.t - m.B.t <= 3)})
    assert instants(node, at_instants((0, 1))) == [(0, 0, 0)]
    assert instants(node, at_instants((0, 2), (3, 3))) == [(0, 3, 3)]
    own = node_of("B C+ | B", define={**IS, "C": lambda m: (m.C.v == 3) & (m.C.t - m.C.first().t <= 3)})
    assert instants(own, at_instants((0, 2), (9, 3))) == [(0, 9, 12)]


def test_what_earlier_rows_decide_is_known_at_once() -> None:
    high = {**IS, "A": lambda m: m.A.v >= 1, "C": lambda m: (m.C.v == 3) & (m.A.v > 1)}
    node = node_of("A C | A", define=high)
    assert instants(node, of_values("1")) == [(0, 0, 0)]
    assert instants(node, of_values("2")) == [(0, 0, AT_THE_END)]
    many = node_of("A+ C | A", define={"A": IS["A"], "C": lambda m: (m.C.v == 3) & (m.A.agg(tg.count()) >= 2)})
    assert instants(many, of_values("1")) == [(0, 0, AT_THE_END)]
    assert instants(many, of_values("12")) == [(0, 0, 1)]
    assert instants(many, of_values("113")) == [(0, 2, 2)]
    some = node_of("A B? C | A", define={**IS, "C": lambda m: (m.C.v == 3) & (m.B.v > 1)})
    assert instants(some, of_values("1")) == [(0, 0, AT_THE_END)]
    assert instants(some, of_values("13")) == [(0, 0, 1)]
    begun = node_of("A B+ | A", define={**IS, "B": lambda m: (m.B.v >= 2) & (m.B.first().v == 2)})
    assert instants(begun, of_values("1")) == [(0, 0, AT_THE_END)]
    assert instants(begun, of_values("13")) == [(0, 0, 1)]
    assert instants(begun, of_values("12")) == [(0, 1, AT_THE_END)]


def test_least_distances_without_greatest_ones() -> None:
    node = node_of("A B | A", define={**IS, "B": lambda m: (m.B.v == 2) & (m.B.t >= m.A.t + 3)})
    assert instants(node, at_instants((0, 1), (2, 2))) == [(0, 0, 2)]
    assert instants(node, at_instants((0, 1), (3, 2))) == [(0, 3, 3)]
    some = node_of("(A | B) C | A", define={**IS, "C": lambda m: (m.C.v == 3) & (m.C.t >= m.B.t + 3)})
    assert instants(some, at_instants((0, 1))) == [(0, 0, 0)]


def test_a_choice_between_a_row_before_and_none() -> None:
    rising = node_of("A+", define={"A": lambda m: m.A.prev().v.is_null() | (m.A.v >= m.A.prev().v)})
    assert [row[:2] for row in instants(rising, of_values("122134"))] == [(0, 2), (4, 5)]


def test_instants_of_a_clock() -> None:
    stream: Any = tg.stream("S", "k bigint, t timestamp, n bigint, v bigint", progress="t")
    soon = {"A": lambda m: m.A.v == 1, "B": lambda m: (m.B.v == 2) & (m.B.t - m.A.t < tg.seconds(5))}
    relation: Any = stream.sequences("A B", by="k", order="t", tie="n", define=soon)
    node: Sequences = relation._node
    assert not isinstance(tables_of(node), str)
    second = 1_000_000
    day = int(datetime(2026, 1, 1).timestamp()) * second
    for seconds, found in ((4, True), (5, False)):
        rows = ((1, day, 0, 1), (1, day + seconds * second, 1, 2))
        assert bool(instants(node, rows)) == found


def test_a_count_may_end_a_repetition() -> None:
    two = {"A": lambda m: (m.A.v == 1) & (m.A.agg(tg.count()) <= 2)}
    assert instants(node_of("A+", define=two), of_values("1")) == [(0, 0, AT_THE_END)]
    assert instants(node_of("A+", define=two), of_values("11")) == [(0, 1, 1)]
    assert instants(node_of("A+", define=two), of_values("111")) == [(0, 1, 1), (2, 2, AT_THE_END)]
    others = {"A": IS["A"], "B": lambda m: (m.B.v == 2) & ~(m.rows.agg(tg.count()) > 3)}
    assert instants(node_of("A+ B | A", define=others), of_values("111")) == [
        (0, 0, 2),
        (1, 1, AT_THE_END),
        (2, 2, AT_THE_END),
    ]
    none = {"A": IS["A"], "B": lambda m: (m.B.v == 2) & (m.rows.agg(tg.count()) < 2)}
    assert instants(node_of("A !B[9]", define=none), of_values("1")) == [(0, 0, 0)]
    assert instants(node_of("A !B[9]", define=none, matches="any"), of_values("1")) == [(0, 0, 0)]


def test_no_row_is_compared_with_null() -> None:
    """One that must not come behind a match is waited for if it could be one."""
    for condition in (
        lambda m: m.B.v == m.A.v,
        lambda m: ~(m.B.v == m.A.first().v) & (m.B.v > 0),
        lambda m: m.B.v > m.A.agg(tg.avg(S.v)),
        lambda m: m.B.v != m.rows.first().v,
    ):
        node = node_of("A !B[9]", define={"A": lambda m: m.A.v.is_null() | (m.A.v == 1), "B": condition})
        assert instants(node, of_values(".")) == [(0, 0, 0)]
        assert instants(node, of_values("1")) == [(0, 0, 9)]
    for condition in (
        lambda m: m.B.v.same_as(m.A.v),
        lambda m: (m.B.v == m.A.v) | (m.B.v == 3),
        lambda m: m.B.v == m.B.first().v,
    ):
        node = node_of("A !B[9]", define={"A": lambda m: m.A.v.is_null(), "B": condition})
        assert instants(node, of_values(".")) == [(0, 0, 9)]
