"""Sequences among other operators: of situations, of matches, above joins, and below windows."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import tidegate as tg
from tests.runtime.batchings import in_any_batches
from tidegate.algebra.semantics import evaluate_program

S = tg.stream("S", "k string, t bigint, v bigint, n bigint", progress="t")


def program() -> tg.Program:
    """Runs of values, which are situations, and rows that are matched in turn."""
    level = S.partition_by("k", time="t", tie="n").derive(
        High=tg.situation(S.v >= 2, n=tg.count()), Low=tg.situation(S.v < 2, n=tg.count())
    )
    longer = {"More": lambda m: m.More.n > m.More.prev().n}
    growing = level.High.unqualified().sequences(
        "First More", by="k", order="te", define=longer, within=60, skip="next row", n=lambda m: m.More.n
    )
    ups = S.sequences(
        "Low High",
        by="k",
        tie="n",
        define={"Low": lambda m: m.Low.v == 1, "High": lambda m: m.High.v >= 2},
        within=12,
        to=lambda m: m.High.v,
    )
    rising = ups.sequences(
        "A B",
        by="k",
        order="detected",
        tie="first",
        define={"B": lambda m: m.B.to >= m.A.to},
        within=60,
        skip="next row",
    )
    left, right = S.as_("l"), S.as_("r")
    joined = left.join(right, left.k == right.k, left.t - right.t <= 4, left.t > right.t, left.n == right.n + 1)
    pairs = joined.select(k=joined["l.k"], t=joined["l.t"], n=joined["l.n"], before=joined["r.v"])
    above = pairs.sequences(
        "A B", by="k", order="t", tie="n", define={"B": lambda m: m.B.before > 1}, within=20, skip="next row"
    )
    met = tg.match(level.High.meets(level.Low), within=40)
    turns = met.sequences("A B", by="k", order="detected", within=80, skip="next row", n=lambda m: m.B["Low.ts"])
    return tg.program(
        Growing=growing,
        Rising=rising,
        Above=above,
        Turns=turns,
        Counted=ups.group_by("k", w=tg.ceil(ups.detected, 20)).agg(n=tg.count()),
        Sessions=ups.select("k", "detected").windows(tg.session(9), by="k").agg(n=tg.count()),
    )


def events(seed: int) -> list[tuple[Any, ...]]:
    rng = random.Random(seed)
    times = sorted(rng.randrange(0, 120) for _ in range(50))
    return [(rng.choice(("a", "b")), t, rng.choice((1, 1, 2, 3)), n) for n, t in enumerate(times)]


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.long), pytest.param(2, marks=pytest.mark.long)])
def test_sequences_among_other_operators_in_any_batches(seed: int, tmp_path: Path) -> None:
    rows = events(seed)
    meant = evaluate_program(program().definition, {"S": rows})
    found = in_any_batches(program, rows, seed, tmp_path, {"Growing": "detected", "Rising": "detected"})
    for name, results in found.items():
        assert sorted(map(str, (tuple(row.values()) for row in results))) == sorted(map(str, meant[name])), name
    assert sum(bool(meant[name]) for name in found) >= 5
