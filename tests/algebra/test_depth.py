"""Queries that nest too deeply are refused with the limit, and those within it run."""

from __future__ import annotations

from collections.abc import Callable

import pytest

import tidegate as tg
from tidegate.algebra.dsl.depth import depth_of
from tidegate.algebra.dsl.here import MAX_DEPTH

S = tg.stream("S", "t bigint, x bigint", progress="t")


def nested(times: int) -> tg.Expression:
    term = S.x
    for _ in range(times):
        term = term + 1
    return term


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


def test_a_recursion_of_the_user_s_own_stays_one() -> None:
    def endless(relation: tg.Relation) -> tg.Expression:
        return endless(relation)

    with pytest.raises(RecursionError):
        S.where(endless)
