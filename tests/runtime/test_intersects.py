"""`intersects` against its definition: which periods have an instant in common, in patterns and joins, given and
derived.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import pytest

import tidegate as tg
from tests.runtime.conftest import Start
from tests.shards import shards
from tidegate.algebra.errors import QueryError

PERIOD = "k bigint, a bigint, z bigint"
ones = tg.stream("Ones", PERIOD, progress="a", relations=lambda s: s.a < s.z)
others = tg.stream("Others", PERIOD, progress="z", relations=lambda s: s.a < s.z)
dots = tg.stream("Dots", PERIOD, progress="a", relations=lambda s: s.a <= s.z)
states = tg.stream("States", "k bigint, t bigint, x bigint", progress="t")

Period = tuple[int, int, int]


def periods(stream: tg.Relation, name: str, *, points: bool = False) -> tg.Intervals:
    return stream.as_intervals(start="a", end="z", by="k", name=name, points=points)


def drawn(rng: random.Random, least: int = 1) -> list[Period]:
    """Different periods of two partitions, which touch each other often."""
    rows = {(rng.randint(1, 2), start := rng.randint(0, 9), start + rng.choice((least, 1, 2, 5))) for _ in range(12)}
    return sorted(rows)


def in_common(one: Period, other: Period) -> bool:
    """Of one partition, and some instant lies in both; the instant of a point is its own."""
    instants = [set(range(start, end)) or {start} for _, start, end in (one, other)]
    return one[0] == other[0] and bool(instants[0] & instants[1])


def pairs(rows: Sequence[Mapping[str, Any]], one: str = "A", other: str = "B") -> list[tuple[Period, Period]]:
    found = [tuple((row["k"], row[f"{name}.ts"], row[f"{name}.te"]) for name in (one, other)) for row in rows]
    return sorted((first, second) for first, second in found)


@pytest.mark.parametrize("seed", shards(8, 3))
def test_given_periods(seed: int) -> None:
    rng = random.Random(f"intersecting {seed}")
    rows = {"Ones": drawn(rng), "Others": drawn(rng), "Dots": drawn(rng, least=0)}
    A, B, C = periods(ones, "A"), periods(others, "B"), periods(dots, "C", points=True)
    joined = A.join(B, A["A.k"] == B["B.k"], A.intersects(B)).with_(known=tg.max(A.te, B.te))
    nine = (
        "overlaps",
        "finished_by",
        "contains",
        "starts",
        "equals",
        "started_by",
        "during",
        "finishes",
        "overlapped_by",
    )
    one, *rest = (getattr(A, name)(B) for name in nine)
    for relation in rest:
        one |= relation
    program = tg.program(
        Found=tg.match(A.intersects(B), emission="final", within=99),
        Nine=tg.match(one, emission="final", within=99),
        Points=tg.match(A.intersects(C)),
        Turned=tg.match(C.intersects(A)),
        Joined=joined.select(
            k=A["A.k"], **{f"{p._symbol}.{end}": p[end] for p in (A, B) for end in ("ts", "te")}, known="known"
        ),
    )
    results = program.run(rows)
    expected = sorted(pair for pair in product(rows["Ones"], rows["Others"]) if in_common(*pair))
    assert expected == sorted(
        (one, other)
        for one, other in product(rows["Ones"], rows["Others"])
        if one[0] == other[0] and one[1] < other[2] and other[1] < one[2]
    )
    assert expected
    assert pairs(results.rows("Found")) == pairs(results.rows("Nine")) == pairs(results.rows("Joined")) == expected
    touching = sorted(pair for pair in product(rows["Ones"], rows["Dots"]) if in_common(*pair))
    assert any(start == end for _, (_, start, end) in touching)
    assert pairs(results.rows("Points"), "A", "C") == pairs(results.rows("Turned"), "A", "C") == touching


@pytest.mark.parametrize("seed", shards(8, 3))
def test_derived_periods_at_the_later_start(seed: int) -> None:
    rng = random.Random(f"intersecting states {seed}")
    derived = states.partition_by("k").derive(A=tg.situation(states.x.is_in(1, 3)), B=tg.situation(states.x >= 2))
    program = tg.program(
        A=derived.A,
        B=derived.B,
        Early=derived.match(derived.A.intersects(derived.B)),
        Final=derived.match(derived.A.intersects(derived.B), emission="final", within=99),
    )
    rows = [(k, t, rng.randint(0, 3) if t < 30 else 0) for k in (1, 2) for t in range(31)]
    results = program.run({"States": rows})
    found = {name: [(row["k"], row["ts"], row["te"]) for row in results.rows(name)] for name in ("A", "B")}
    expected = sorted(pair for pair in product(found["A"], found["B"]) if in_common(*pair))
    assert len(expected) > 3
    assert pairs(results.rows("Final")) == expected
    early = sorted((row["k"], row["A.ts"], row["B.ts"], row["detected"]) for row in results.rows("Early"))
    assert early == sorted((one[0], one[1], other[1], max(one[1], other[1])) for one, other in expected)


def test_reported_while_both_last(start: Start) -> None:
    derived = states.partition_by("k").derive(A=tg.situation(states.x.is_in(1, 3)), B=tg.situation(states.x >= 2))
    with start(tg.program(Hits=derived.match(derived.A.intersects(derived.B)))) as run:
        run.add("States", [(1, 0, 1), (1, 1, 2), (1, 2, 0), (1, 3, 2)])
        run.advance("States", t=3)
        run.step()
        run.expect(Hits=[])  # they meet at 1
        run.add("States", [(1, 4, 3)])
        run.advance("States", t=4)
        run.step()
        run.expect(Hits=[(1, 4, None, 3, None, 4)])


def test_periods_without_a_common_instant_with_any_other() -> None:
    A, B = periods(ones, "A"), periods(others, "B")
    alone = A.anti_join(B, A["A.k"] == B["B.k"], A.intersects(B), B.te <= B.ts + 9)
    rows: dict[str, list[Period]] = {"Ones": [(1, 0, 4), (1, 4, 6), (2, 0, 4)], "Others": [(1, 3, 4), (2, 4, 9)]}
    found = tg.program(Alone=alone).run(rows).rows("Alone")
    assert sorted((row["k"], row["ts"]) for row in found) == [(1, 4), (2, 0)]


def test_what_intersects_has_to_be_another_period() -> None:
    A = periods(ones, "A")
    with pytest.raises(QueryError, match="TG103 A intersects itself"):
        A.intersects(A)
    with pytest.raises(QueryError, match="TG114 intersects relates two periods"):
        A.intersects(others)  # type: ignore[arg-type]  # a relation that is no period
