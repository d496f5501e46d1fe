"""Queries that nest too deeply are refused with the limit, and those within it run."""

from __future__ import annotations

import time
import timeit
from collections.abc import Callable
from functools import partial, reduce
from operator import and_, or_
from typing import Any

import pytest

import tidegate as tg
from tidegate.algebra.dsl import programs
from tidegate.algebra.dsl.depth import depth_of, largest_term, references_in
from tidegate.algebra.dsl.here import MAX_DEPTH
from tidegate.algebra.nodes import Scan, Union, nodes_of
from tidegate.algebra.terms import balanced, size_of, substitute

S = tg.stream("S", "t bigint, x bigint", progress="t")


def nested(times: int) -> tg.Expression:
    term = S.x
    for _ in range(times):
        term = term + 1
    return term


def repeated(again: Callable[[tg.Expression], tg.Expression], term: tg.Expression, times: int = 40) -> tg.Expression:
    """What is made of a term, and again of that, so many times."""
    return reduce(lambda made, _: again(made), range(times), term)


def chained(times: int, base: tg.Relation = S) -> tg.Relation:
    for number in range(times):
        base = base.with_(**{f"c{number}": base.x + number})
    return base


def test_depth_counts_operators_and_twice_the_operations() -> None:
    assert depth_of(S._node) == 0
    assert depth_of(S.where(S.x > 1)._node) == 1 + 2
    assert depth_of(chained(5).with_(y=nested(7))._node) == 6 + 14
    doubled: tg.Relation = S
    for _ in range(40):
        doubled = doubled.union(doubled)
    assert depth_of(doubled._node) == 40


def test_the_nodes_of_a_query_with_shared_parts_are_each_found_once() -> None:
    doubled: tg.Relation = S
    for _ in range(40):
        doubled = doubled.union(doubled)
    nodes = nodes_of(doubled._node)
    assert (len(nodes), nodes[0], nodes[-1]) == (41, doubled._node, S._node)
    equal = Union((Scan(S._node.stream), Scan(S._node.stream)))  # type: ignore[union-attr]  # a stream's own node
    assert [type(node) for node in nodes_of(equal)] == [Union, Scan, Scan]


@pytest.mark.parametrize(
    "made",
    [
        lambda: S.with_(y=nested(MAX_DEPTH // 2 - 1)),
        lambda: chained(MAX_DEPTH - 3),
        lambda: chained(MAX_DEPTH // 2 - 2, S.with_(y=nested(MAX_DEPTH // 4))),
    ],
)
def test_what_is_within_the_limit_runs(made: Callable[[], tg.Relation]) -> None:
    program = tg.program(Out=made())
    assert str(program.explain())
    assert len(program.run({"S": [(1, 2)]}).rows("Out")) == 1


@pytest.mark.parametrize(
    "made",
    [
        lambda: S.with_(y=nested(MAX_DEPTH // 2 + 1)),
        lambda: chained(MAX_DEPTH + 1),
        lambda: S.with_(y=nested(1500)),
        lambda: chained(1500),
    ],
)
def test_what_is_beyond_it_is_refused_where_it_stands(made: Callable[[], tg.Relation]) -> None:
    with pytest.raises(tg.QueryError, match=f"at most {MAX_DEPTH}") as raised:
        tg.program(Out=made())
    assert raised.value.code == "TG152"
    assert raised.value.site is not None
    assert raised.value.site.file == __file__


WIDE = tg.stream("Wide", "k bigint, t bigint, " + ", ".join(f"c{i} bigint" for i in range(1000)), progress="t")


def of_each(made: Callable[[tg.Expression], Any]) -> dict[str, Any]:
    """What is made of each of a thousand attributes."""
    return {f"m{i}": made(WIDE[f"c{i}"]) for i in range(1000)}


def wide_situations() -> tg.Relation:
    return WIDE.partition_by("k").derive(F=tg.situation(WIDE.c0 == 1, **of_each(lambda c: tg.max(c + 1)))).F


@pytest.mark.parametrize(
    "made",
    [
        pytest.param(lambda: WIDE.group_by(w=tg.tumbling(WIDE.t, 10)).agg(**of_each(tg.max)), marks=pytest.mark.long),
        lambda: WIDE.group_by(w=tg.tumbling(WIDE.t, 10)).agg(**of_each(lambda c: tg.max(c + 1))),
        pytest.param(lambda: WIDE.over(by="k", order="t", **of_each(lambda c: tg.sum(c + 1))), marks=pytest.mark.long),
        wide_situations,
    ],
)
def test_a_thousand_aggregates_side_by_side_run(made: Callable[[], tg.Relation]) -> None:
    program = tg.program(Out=made())
    assert str(program.explain())
    rows = program.run({"Wide": [(1, t, *(t,) * 1000) for t in (1, 2)]}).rows("Out")
    assert [row["m999"] for row in rows] in ([2], [3], [2, 5])


def test_of_a_thousand_aggregates_the_row_that_fails_is_set_aside() -> None:
    program = tg.program(Out=WIDE.group_by(w=tg.tumbling(WIDE.t, 10)).agg(**of_each(lambda c: tg.sum(c * 2))))
    fine = (1,) * 1000
    found = program.run({"Wide": [(1, 1, *fine), (1, 2, *fine[:998], 2**62, 1), (1, 3, *fine)]})
    assert [(row["m0"], row["m998"]) for row in found.rows("Out")] == [(4, 4)]
    assert "c998 * 2" in str(found.quarantine.rows())


def test_unions_at_the_limit_run() -> None:
    united: tg.Relation = S
    for number in range(MAX_DEPTH - 3):
        united = united.union(S.where(S.x == number))
    assert depth_of(united._node) == MAX_DEPTH
    program = tg.program(Out=united)
    assert program.check() == []
    assert str(program.explain())
    assert len(program.run({"S": [(1, 2), (2, -1)]}).rows("Out")) == 3


MANY: dict[str, Callable[[], tg.Expression]] = {
    "&": lambda: reduce(and_, [S.x != i for i in range(1000)]),
    "|": lambda: reduce(or_, [S.x == i for i in range(1000)]),
    "is_in": lambda: S.x.is_in(*range(1000)),
    "& of what can fail": lambda: reduce(and_, [100 % (S.x - i) != -1 for i in range(300)]),
}


@pytest.mark.parametrize("kind", MANY)
def test_a_thousand_conditions_side_by_side_are_not_deep(kind: str) -> None:
    condition = MANY[kind]()
    assert depth_of(S.where(condition)._node) < 10
    found = tg.program(Out=S.where(condition)).run({"S": [(1, 999), (2, 1000), (3, None)]}).rows("Out")
    wanted = {"&": [1000], "& of what can fail": [999, 1000]}
    assert [row["x"] for row in found] == wanted.get(kind, [999])


def seconds(join: Callable[..., tg.Expression], conditions: list[tg.Expression], times: int = 5) -> float:
    """The least CPU time to join these. Meanwhile no garbage is collected, as all that other tests have left would be
    gone through.
    """
    joined = partial(reduce, join, conditions)
    return min(
        timeit.repeat(lambda: depth_of(S.where(joined())._node), timer=time.process_time, repeat=times, number=1)
    )


@pytest.mark.parametrize("join", [and_, or_])
def test_conditions_joined_one_by_one_are_put_together_once(join: Callable[..., tg.Expression]) -> None:
    """Twice as many take twice the time; four times where each step copies all before it."""
    many = [S.x != i for i in range(4000)]

    assert seconds(join, many) < 7 * seconds(join, many[:1000])


@pytest.mark.long
@pytest.mark.parametrize("join", [and_, or_])
def test_twenty_thousand_conditions_join_in_either_order(join: Callable[..., tg.Expression]) -> None:
    """Twice as many take twice the time."""
    many = [S.x != i for i in range(20_000)]

    for order in (join, lambda done, last: join(last, done)):
        assert seconds(order, many, 1) < 12 * seconds(order, many[:5_000])
    backwards = reduce(lambda done, last: join(last, done), many[:3])
    assert repr(backwards) == repr(join(join(many[2], many[1]), many[0]))


def test_a_condition_that_two_others_begin_with_stays_as_it_is() -> None:
    both = (S.x > 1) & (S.x > 2)
    first, second = both & (S.x > 3), both & (S.x > 4)
    assert [repr(one) for one in (both, first, second)] == [
        "x > 1 & x > 2",
        "x > 1 & x > 2 & x > 3",
        "x > 1 & x > 2 & x > 4",
    ]
    assert repr((S.x > 0) & both) == "x > 0 & x > 1 & x > 2"
    assert repr(both | first) == "x > 1 & x > 2 | x > 1 & x > 2 & x > 3"


@pytest.mark.parametrize("count", [1, 2, 3, 7, 8, 1000])
def test_parts_are_put_together_in_order(count: int) -> None:
    def join(a: tuple[str, int], b: tuple[str, int]) -> tuple[str, int]:
        return a[0] + b[0], 1 + max(a[1], b[1])

    parts = [(chr(number), 0) for number in range(count)]
    text, depth = balanced(join, parts)
    assert text == "".join(part for part, _ in parts)
    assert depth == (count - 1).bit_length()


@pytest.mark.parametrize(
    "again",
    [
        lambda e: e + e,
        lambda e: tg.when(e > 3, e, otherwise=e + 1),
        lambda e: tg.max(e, e, e),
        lambda e: tg.when((e > 1) & (e > 1), e, otherwise=1),
        lambda e: e.nullif(e),
    ],
)
def test_a_term_that_doubles_is_refused_as_it_is_made(again: Callable[[tg.Expression], tg.Expression]) -> None:
    started = time.process_time()
    with pytest.raises(tg.QueryError, match="at most 100,000") as raised:
        repeated(again, S.x + 1)
    assert time.process_time() - started < 5
    assert raised.value.code == "TG152"
    assert raised.value.site is not None
    assert raised.value.site.file == __file__


@pytest.mark.parametrize("join", [and_, or_])
def test_a_condition_that_doubles_is_refused_as_it_is_made(join: Callable[..., tg.Expression]) -> None:
    with pytest.raises(tg.QueryError, match="at most 100,000"):
        repeated(lambda e: join(e, e), S.x > 1)


def test_conditions_that_are_too_many_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs, "MAX_SIZE", 7)
    tg.program(Out=S.where(S.x > 1, S.x + 1 > 2, S.x + 2 > 3, S.x != 4))
    with pytest.raises(tg.QueryError, match="a term has 8 operations") as raised:
        tg.program(Out=S.where(S.x > 1, S.x + 1 > 2, S.x + 2 > 3, S.x + 3 != 4))
    assert raised.value.code == "TG152"


def test_the_size_of_a_term_counts_what_it_has_in_common_in_each_place() -> None:
    assert size_of(S.x._term) == 0
    twice = (S.x + 1) * (S.x + 1)
    assert size_of(twice._term) == 3
    assert size_of((twice + twice)._term) == 7
    assert largest_term(S.where(twice > 1).with_(y=twice)._node) == 4
    assert size_of(substitute(twice._term, lambda _: twice._term)) == 9


def test_a_query_that_doubles_is_refused() -> None:
    doubled: tg.Relation = S
    for _ in range(40):
        doubled = doubled.union(doubled)
    assert references_in(doubled._node) == 2**40
    with pytest.raises(tg.QueryError, match="at most 10,000") as raised:
        tg.program(Out=doubled)
    assert raised.value.code == "TG152"
    again: tg.Relation = S
    for _ in range(40):
        again = again.union(again)
    assert again._node == doubled._node
    assert again._node != doubled.union(S)._node


def doubling(relation: tg.Relation, times: int = 40) -> tg.Relation:
    """Attributes of which each is twice the one before."""
    relation = relation.with_(c0=relation.x)
    for number in range(times):
        relation = relation.with_(**{f"c{number + 1}": relation[f"c{number}"] + relation[f"c{number}"]})
    return relation.rename({f"c{times}": "last"})


def looked_up() -> tg.Relation:
    before = doubling(S).as_("before")
    now = S.as_("now")
    return now.join(before, before.t <= now.t).group_by(now.t).agg(total=tg.sum(before.last))


def added_up_in_order() -> tg.Relation:
    first = S.over(order="t", n=tg.count())
    made = doubling(first.drop("x").rename(n="x"))
    return made.over(order="t", total=tg.sum(made.last)).select("t", "total")


@pytest.mark.parametrize(
    "made",
    [
        lambda: doubling(S).select("t", total="last"),
        lambda: doubling(S).where(lambda r: r.last > 0).select("t", total="last"),
        lambda: doubling(S).group_by("t").agg(total=lambda r: tg.sum(r.last)),
        looked_up,
        added_up_in_order,
    ],
)
def test_attributes_that_double_run(made: Callable[[], tg.Relation]) -> None:
    """What the hint for a term that is too large says."""
    started = time.process_time()
    program = tg.program(Out=made())
    assert program.check() == []
    assert str(program.explain())
    assert program.run({"S": [(1, 1)]}).rows("Out") == [{"t": 1, "total": 2**40}]
    assert time.process_time() - started < 30


def test_a_recursion_of_the_user_s_own_stays_one() -> None:
    def endless(relation: tg.Relation) -> tg.Expression:
        return endless(relation)

    with pytest.raises(RecursionError):
        S.where(endless)
