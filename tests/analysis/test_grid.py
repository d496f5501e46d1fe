"""Instants on a grid: which attributes have one, and when no row can pass."""

from __future__ import annotations

import pytest

import tidegate as tg
from tidegate.algebra.time import INF, Extended
from tidegate.analysis.zones.grid import Grid, may_pass

e = tg.stream("E", "k bigint, t bigint, v bigint", progress="t")
f = tg.stream("F", "k bigint, t bigint", progress="t")
a, b = e.as_("a"), f.as_("b")
joined = a.join(b, a.k == b.k, a.t <= b.t, b.t <= a.t + 7).select(
    k=a.k, t=b.t, w=tg.ceil(b.t, 10), x=tg.floor(b.t, 5) + 3
)


@pytest.mark.parametrize(
    ("relation", "grids"),
    [
        (e, {}),
        (e.group_by(w=tg.ceil(e.t, 10)).agg(n=tg.count()), {"w": Grid(10)}),
        (joined, {"w": Grid(10), "x": Grid(5, 3)}),
        (joined.group_by(joined.w).agg(n=tg.count()), {"w": Grid(10)}),
        (joined.rename(w="t", t="w"), {"t": Grid(10), "x": Grid(5, 3)}),
        (joined.where(joined.w > 3).select(end=joined.w - 1).distinct(), {"end": Grid(10, 9)}),
        (joined.select(k=joined.k, end=tg.max(joined.w, joined.x)), {}),
        (joined.select(joined.k, end=joined.w).union(joined.select(joined.k, end=joined.x)), {}),
        (joined.select(end=joined.w).union(joined.select(end=joined.w + 20)), {"end": Grid(10)}),
    ],
)
def test_attributes_on_a_grid(relation: tg.Relation, grids: dict[str, Grid]) -> None:
    assert tg.program(Out=relation).facts.queries[0].grids == grids


@pytest.mark.parametrize("grid", [Grid(1), Grid(10), Grid(10, 3)])
def test_points_between(grid: Grid) -> None:
    """By trying every instant."""
    points = {at for at in range(-50, 50) if (at - grid.offset) % grid.unit == 0}
    for old in range(-25, 25):
        assert grid.between(-INF, old)
        assert grid.between(old, INF)
        for new in range(old, 25):
            assert grid.between(old, new) == any(old < at <= new for at in points)


def test_a_row_passes_only_by_an_attribute_that_progressed() -> None:
    grids = {"w": Grid(10)}
    old: dict[str, Extended] = {"w": 11, "t": 11}
    assert not may_pass(grids, old, old)
    assert not may_pass(grids, old, old | {"w": 19})
    assert may_pass(grids, old, old | {"w": 20})
    assert may_pass(grids, old, {"w": 19, "t": 12})


def test_a_window_above_a_join_is_evaluated_at_the_end_of_a_window_only() -> None:
    """Whatever the progress in between; the rows are those of one evaluation at the end."""
    windows = tg.program(Out=joined.group_by(joined.k, joined.w).agg(n=tg.count()))
    evaluated: list[int] = []
    with windows.session(sources={"E": tg.source(None), "F": tg.source(None)}) as session:
        for t in range(1, 45):
            session.push("E", [(1, t, t)])
            session.push("F", [(1, t)])
            for name in ("E", "F"):
                session.advance(name, {"t": t})
            if "Out" in session.step().read:
                evaluated.append(t)
        session.finish()
        session.step()
        found = session.results("Out")
    assert evaluated == [1, 10, 20, 30, 40]  # the first progress of all may have come from anywhere
    counts = {w: sum(min(t, 8) for t in range(1, 45) if -(-t // 10) * 10 == w) for w in (10, 20, 30, 40, 50)}
    assert sorted((row["w"], row["n"]) for row in found) == sorted(counts.items())
