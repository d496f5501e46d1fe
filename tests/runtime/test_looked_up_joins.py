"""Joins whose rows are looked up by key and instant have the rows that the definitions say."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import polars as pl
import pytest

import tidegate as tg
from tests.shards import shards
from tests.thresholds import THRESHOLDS, small
from tidegate.algebra.nodes import JoinKind
from tidegate.algebra.semantics import Row, bags_equal, evaluate
from tidegate.runtime.connectors.sources import source
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.embedded.steps import segment_cache
from tidegate.runtime.eval.joins import indexed_rows
from tidegate.runtime.eval.joins.key_index import KeyIndex
from tidegate.runtime.eval.joins.look_ups import Bound, look_ups
from tidegate.runtime.plan.lower import lower

left = tg.stream("L", "k string, t bigint, x bigint, u bigint", progress="t").as_("l")
right = tg.stream("R", "k string, t bigint, y bigint, u bigint", progress="t").as_("r")
third = tg.stream("F", "k string, t bigint, z bigint, u bigint", progress="t").as_("f")
KINDS: tuple[JoinKind, ...] = ("inner", "left", "semi", "anti")


def bounds(rng: random.Random, earlier: Any, later: Any) -> list[Any]:
    """That one row comes so long before another, written in several ways."""
    low, high = sorted(rng.sample(range(-4, 9), 2))
    lower = rng.choice((earlier.t + low <= later.t, later.t - earlier.t > low - 1, earlier.t < later.t - (low - 1)))
    upper = rng.choice((later.t <= earlier.t + high, later.t - earlier.t < high + 1, earlier.t >= later.t - high))
    return [lower, upper]


def condition(rng: random.Random, one: Any, other: Any) -> list[Any]:
    """Equal keys, bounds on instants in either direction, and perhaps more."""
    more = [
        [],
        [],
        [one.u == other.u],
        [one.u < other.u],
        [one.u <= other.u + 1],
        [one.u.is_null() | (one.u > other.u)],
        [other.u == 1],
        [one.u > 0],
        [one.t != other.t],
        [one.u <= other.u, other.u <= one.u + 1],
    ]
    near = bounds(rng, *rng.choice(((one, other), (other, one))))
    parts = [one.k == other.k, *near, *rng.choice(more)]
    rng.shuffle(parts)
    return parts


def joined(rng: random.Random, one: tg.Relation, other: tg.Relation, by: tg.Relation) -> tg.Relation:
    """A join of one with the other, by attributes of a stream that is part of the first."""
    methods = {"inner": one.join, "left": one.left_join, "semi": one.semi_join, "anti": one.anti_join}
    return methods[rng.choice(KINDS)](other, *condition(rng, by, other))


def random_query(rng: random.Random) -> tg.Relation:
    """A join of two or three streams, and perhaps something above it."""
    one, other, more = rng.sample((left, right, third), 3)
    found = joined(rng, one, other, one)
    if rng.random() < 0.4:
        found = joined(rng, found, more, one if rng.random() < 0.7 else other)
    match rng.randrange(4):
        case 0:
            return found.where(one.u > 0)
        case 1:
            return found.group_by(one.k, one.t).agg(n=tg.count())
        case _:
            return found


def random_rows(rng: random.Random, count: int, t: int, keys: int, *, holes: bool) -> list[Row]:
    def row() -> tuple[Any, ...]:
        key, u = f"k{rng.randrange(keys)}", rng.randrange(3)
        return (
            None if holes and rng.random() < 0.1 else key,
            t + rng.randrange(4),
            rng.randrange(100),
            None if holes and rng.random() < 0.2 else u,
        )

    return sorted((row() for _ in range(count)), key=lambda one: one[1])


@contextmanager
def looked_up_everywhere(rng: random.Random) -> Iterator[None]:
    """Any rows are looked up, and of some sizes at which that takes another way each is small."""
    values = {
        "engines.embedded.steps.evaluation.LOOKED_UP": (0,),
        "engines.embedded.steps.evaluation.SHARE": (0,),
        "eval.joins.key_index.INDEXED": (0, 0, 3),
        "engines.embedded.steps.segment_cache.LOOKS": (0, 0, 1),
        "eval.joins.indexed_rows.ROUNDS": (0, 1, indexed_rows.ROUNDS),
        "eval.joins.indexed_rows._GROWTH": (1, 2, indexed_rows._GROWTH),
        "rows.MOST": (-1, 4, 5_000, 5_000, 5_000),
    }
    with ExitStack() as stack:
        for name, some in values.items():
            stack.enter_context(small(next(one for one in THRESHOLDS if str(one) == name), rng.choice(some)))
        yield


def check(seed: int) -> int | None:
    """Runs a random query over random rows, in batches. The number of its results; None where it is not valid."""
    rng = random.Random(seed)
    try:
        facts = tg.program(Out=random_query(rng)).facts
    except tg.QueryError:
        return None
    keys, holes = rng.choice((1, 2, 5)), rng.random() < 0.3
    arrived: dict[str, list[Row]] = {one.stream.name: [] for one in facts.queries[0].occurrences}
    many = {name: rng.choice((1, 3, 12)) for name in arrived}
    sources = {name: source(None, delay=3) for name in arrived}
    with looked_up_everywhere(rng), Session(facts, sources=sources) as session:
        for t in range(1, 13, 3):
            for name in arrived:
                rows = random_rows(rng, many[name] * 3 if t == 1 else many[name], t, keys, holes=holes)
                arrived[name] += rows
                session.push(name, rows)
            session.step()
        session.finish()
        session.step()
        found = [tuple(row.values()) for row in session.results("Out")]
    wanted = evaluate(facts.queries[0].query.node, arrived)
    assert bags_equal(found, wanted), f"seed {seed}"
    return len(wanted)


CASES = 160


@pytest.mark.parametrize("shard", shards(4))
@pytest.mark.parametrize("collide", [False, True])
def test_random_joins_have_the_rows_that_the_definitions_say(
    collide: bool, shard: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where all keys have one hash: then of a key the rows of others are found too."""
    if collide:
        monkeypatch.setattr(pl.Series, "hash", lambda keys, _: pl.repeat(7, len(keys), dtype=pl.UInt64, eager=True))
    cases = range(CASES) if not collide else range(CASES, CASES + CASES // 4)
    found = [check(seed) for seed in cases[shard::4]]
    assert sum(one is not None for one in found) > len(found) // 2
    assert sum(bool(one) for one in found) > len(found) // 3


def told(query: tg.Relation, first: int) -> list[tuple[int, str | None, list[Bound], list[Bound], bool]]:
    """What is looked up for the rows of the leaf `first` of a query."""
    (plan,) = lower(tg.program(Out=query).facts).queries
    return [
        (one.leaf, one.column, list(one.lower), list(one.upper), one.decider is not None)
        for one in look_ups(plan.tree, first)
    ]


def test_a_look_up_takes_the_bounds_of_the_join() -> None:
    near = left.k == right.k, left.t - 2 < right.t, right.t <= left.t + 5
    for query in (left.join(right, *near), left.left_join(right, *near)):
        assert told(query, 0) == [(1, "t", [Bound("t", -1)], [Bound("t", 5)], False)]
    assert told(left.join(right, *near), 1) == [(0, "t", [Bound("t", -5)], [Bound("t", 1)], False)]
    assert told(left.semi_join(right, *near), 1) == [(0, "t", [Bound("t", -5)], [Bound("t", 1)], False)]
    for query in (left.semi_join(right, *near), left.anti_join(right, *near, left.x < right.y)):
        assert told(query, 0) == [(1, "t", [Bound("t", -1)], [Bound("t", 5)], True)]
    beside = left.join(right, *near, left.x <= right.t)
    assert told(beside, 0) == [(1, "t", [Bound("t", -1), Bound("x", 0)], [Bound("t", 5)], False)]


def test_a_look_up_takes_bounds_through_the_operators_of_a_side() -> None:
    pairs = left.join(right, left.k == right.k, left.t == right.t)
    shifted = third.select(k=third.k, at=third.t, later=third.t + 1).as_("s")
    by_left = shifted.k == left.k, left.t <= shifted.at, shifted.at <= left.t + 5
    by_right = shifted.k == left.k, right.t <= shifted.at, shifted.at <= right.t + 5
    for first, conditions in ((0, by_left), (1, by_right)):
        query = pairs.join(shifted, *conditions)
        assert told(query, first)[0] == (2, "t", [Bound("t", 0)], [Bound("t", 5)], False)
        assert [one[0] for one in told(query, 1 - first)] == []
    counted = left.group_by(left.k, left.t).agg(n=tg.count()).as_("c")
    grouped = counted.anti_join(third, third.k == counted.k, counted.t <= third.t, third.t <= counted.t + 5)
    assert told(grouped, 0) == [(1, "t", [Bound("t", 0)], [Bound("t", 5)], False)]


def test_a_condition_that_can_fail_says_nothing_of_what_is_looked_up() -> None:
    near = left.k == right.k, left.t <= right.t, right.t <= left.t + 5
    assert told(left.semi_join(right, *near, 1 / left.x > right.y), 0) == []


def test_rows_beyond_the_bounds_are_not_touched(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a key with many rows an interval join reads those in its range, and a semi-join one."""
    monkeypatch.setattr(segment_cache, "LOOKS", 0)
    taken: list[int] = []
    small_rows = KeyIndex.small_rows

    def counted(index: KeyIndex, frame: Any, rows: Any, names: Any) -> Any:
        taken.append(len(rows))
        return small_rows(index, frame, rows, names)

    monkeypatch.setattr(KeyIndex, "small_rows", counted)
    soon = right.k == left.k, left.t + 4_990 <= right.t, right.t <= left.t + 5_000
    long = right.k == left.k, left.t <= right.t, right.t <= left.t + 5_000
    queries = {
        "Soon": (right.join(left, *soon), [11], 11),
        "Some": (right.semi_join(left, *long), [1, 1], 1),
        "Later": (right.semi_join(left, *long, left.x == right.y), [1, 16, 1], 1),
        "None": (right.anti_join(left, *long, left.x > right.y), [1, 16, 256, 4_728], 2),
    }
    for name, (query, wanted, results) in queries.items():
        with Session(tg.program(Out=query).facts, sources=dict.fromkeys("LR", source(None, delay=3))) as session:
            session.push("L", [("a", t, t, 0) for t in range(5_001)] + [("b", 5_000, 0, 0)] * 5_000)
            session.push("R", [("none", 1, 1, 0)])
            session.step()
            taken.clear()
            session.push("R", [("a", 5_000, 7 if name == "Later" else 9_999, 0)])
            session.advance("L", {"t": 5_003})
            session.advance("R", {"t": 5_003})
            session.step()
            assert (name, taken, len(session.results("Out"))) == (name, wanted, results)
