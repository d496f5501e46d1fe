"""Rows that come at the end of a partition and leave at its front, and partial results that are merged in pairs."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tidegate.algebra.nodes import Group
from tidegate.runtime.eval.aggregates.pairs import gathered, merged_pairs, remaining, running, running_doubles
from tidegate.runtime.eval.aggregates.partials import final, merge, partial
from tidegate.runtime.ordered import row_arrays
from tidegate.runtime.ordered.row_arrays import PARTITION
from tidegate.runtime.ordered.windows import queues
from tidegate.runtime.ordered.windows.queues import RowQueues

COLUMNS = {"n": pl.Int64(), "x": pl.Float64(), "b": pl.Boolean(), "s": pl.String()}
Row = tuple[Any, ...]


def frame(by_place: list[list[Row]]) -> pl.DataFrame:
    flat = [(place, *row) for place, own in enumerate(by_place) for row in own]
    return pl.DataFrame(flat, schema={PARTITION: pl.Int64(), **COLUMNS}, orient="row")


@pytest.mark.parametrize("loose", [0, 5, 10**6])
@pytest.mark.parametrize("most", [1, 6])
def test_rows_come_at_the_end_and_leave_at_the_front(most: int, loose: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(queues, "LOOSE", loose)
    rng, rows, known = random.Random(f"{most} {loose}"), RowQueues(COLUMNS), dict[int, list[Row]]()
    number = 0
    for step in range(120):
        partitions = 2 + step // 6
        if partitions > len(known):
            rows.grow(partitions)
            known |= {p: [] for p in range(len(known), partitions)}
        chosen = sorted(rng.sample(range(partitions), rng.randrange(partitions + 1)))
        at = np.array(chosen, dtype=np.int64)
        gone = np.array([rng.randint(0, len(known[p])) for p in chosen], dtype=np.int64)
        kept = np.array(
            [
                rng.randint(max(0, len(known[p]) - g - 1), len(known[p]) - g)
                for p, g in zip(chosen, gone.tolist(), strict=True)
            ],
            dtype=np.int64,
        )
        added: list[list[Row]] = []
        for _ in chosen:
            own: list[Row] = []
            for _ in range(rng.randrange(most + 1)):
                number += rng.randint(1, 3)
                own.append((number, rng.choice((0.5, None)), rng.choice((True, None)), rng.choice(("ä", None))))
            added.append(own)
        rows.splice(at, gone, kept, frame(added))
        for p, g, k, own in zip(chosen, gone.tolist(), kept.tolist(), added, strict=True):
            known[p] = [*known[p][g : g + k], *own]
        every = np.arange(partitions)
        assert rows.take(every).rows() == frame([known[p] for p in range(partitions)]).rows()
        assert rows.height == sum(map(len, known.values()))
        assert rows.stored <= 4 * rows.height + loose + 2 * (rows.height + partitions)
        assert rows.last(every).rows() == frame([known[p][-1:] for p in range(partitions)]).rows()
        bound = np.array([rng.randint(0, number + 1) for _ in every], dtype=np.int64)
        count = [sum(row[0] <= b for row in known[p]) for p, b in enumerate(bound.tolist())]
        assert rows.up_to(every, "n", bound).tolist() == count
        first = rows.front(every, np.array(count, dtype=np.int64))
        assert first.rows() == frame([known[p][:c] for p, c in enumerate(count)]).rows()


@pytest.mark.parametrize("refused", range(8))
def test_rows_that_there_is_no_memory_for_come_again(refused: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """For whichever column it is refused, to move rows or to write new ones; other partitions keep theirs."""
    monkeypatch.setattr(queues, "LOOSE", 0)
    rng, rows = random.Random(refused), RowQueues(COLUMNS)
    rows.grow(3)
    known = [[(n, 0.5, None, "ä") for n in range(count)] for count in (6, 4, 3)]
    every = np.arange(3)
    rows.splice(every, np.zeros(3, dtype=np.int64), np.zeros(3, dtype=np.int64), frame(known))
    done = 0

    def refusing(name: str) -> Any:
        real = getattr(row_arrays._Column, name)

        def refuses(self: Any, *given: Any) -> Any:
            nonlocal done
            done += 1
            if done == refused + 1:
                raise MemoryError
            return real(self, *given)

        return refuses

    added = [[(10 + n, None, True, rng.choice(("b", None))) for n in range(9)] for _ in range(2)]
    at, gone, kept = (np.array(some, dtype=np.int64) for some in ((0, 1), (2, 0), (4, 4)))
    with monkeypatch.context() as patch:
        for name in ("grow", "put"):
            patch.setattr(row_arrays._Column, name, refusing(name))
        with pytest.raises(MemoryError):
            rows.splice(at, gone, kept, frame(added))
    assert rows.take(every).rows() == frame(known).rows()
    assert rows.height == 13
    rows.splice(at, gone, kept, frame(added))
    assert rows.take(every).rows() == frame([[*known[0][2:], *added[0]], [*known[1], *added[1]], known[2]]).rows()
    assert rows.height == 29


S = tg.stream("S", "k bigint, t bigint, v bigint, x double, w string, b boolean, d decimal(10,2)", progress="t")


def grouping() -> Group:
    named = {
        "n": tg.count(),
        "nv": tg.count(S.v),
        "total": tg.sum(S.v),
        "amount": tg.sum(S.d),
        "mean": tg.avg(S.v),
        "sum_x": tg.sum(S.x),
        "mean_x": tg.avg(S.x),
        "least": tg.min(S.x),
        "greatest": tg.max(S.x),
        "word": tg.max(S.w),
        "all": tg.min(S.b),
        "first": tg.first(S.w, by=S.x),
        "last": tg.last(S.v, by=S.w),
        "different": tg.approx_distinct(S.w),
        "middle": tg.approx_quantile(S.v, 0.5),
    }
    node = S.group_by("k", "t").agg(**named)._node
    assert isinstance(node, Group)
    return node


def partials(seed: int, segments: int, lengths: tuple[int, ...] = (1, 2, 3, 7, 8, 20)) -> tuple[Group, pl.DataFrame]:
    """Partial results by segment k, and place t in it."""
    rng, group = random.Random(seed), grouping()
    rows = [
        (
            k,
            t,
            rng.choice((1, 5, -(1 << 40), (1 << 62), None)),
            rng.choice((0.5, 1e15, -0.1, float("nan"), float("inf"), None, None)),
            rng.choice(("", "a", "ä", None)),
            rng.choice((True, False, None)),
            rng.choice((1, -25, None)),
        )
        for k in range(segments)
        for t in range(rng.choice(lengths))
        for _ in range(rng.choice((1, 1, 3)))
    ]
    types = [pl.Int64, pl.Int64, pl.Int64, pl.Float64, pl.String, pl.Boolean, pl.Int64]
    made = pl.DataFrame(rows, schema=dict(zip(S.schema.names, types, strict=True)), orient="row")
    return group, partial(group, made).sort("k", "t")


def same(one: pl.DataFrame, other: pl.DataFrame) -> None:
    """Partial results that are equal but for the last digit of a sum of doubles."""
    for name in one.columns:
        if not name.endswith("comp"):
            for x, y in zip(one.get_column(name).to_list(), other.get_column(name).to_list(), strict=True):
                assert x == y or (x != x and y != y) or x == pytest.approx(y, rel=1e-12), name


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("lengths", [(1, 2, 3, 7, 8, 20), (1, 2)])
def test_running_partial_results_are_merged_ones(lengths: tuple[int, ...], ahead: bool, seed: int) -> None:
    group, rows = partials(seed, 12 if len(lengths) > 2 else 60, lengths)
    k, t = rows.get_column("k").to_numpy(), rows.get_column("t").to_numpy()
    made = remaining(group, rows, np.bincount(k)[k] - 1 - t) if ahead else running(group, rows, t)
    for place in range(rows.height):
        its = (k == k[place]) & ((t >= t[place]) if ahead else (t <= t[place]))
        one = rows.filter(pl.Series(its)).with_columns(pl.lit(t[place]).alias("t"))
        same(merge(group, one), made[place])


def test_a_row_of_nulls_is_of_no_rows() -> None:
    group, rows = partials(1, 4)
    nothing = gathered(rows, np.full(rows.height, -1))
    states = [name for name in rows.columns if name not in ("k", "t")]
    same(merged_pairs(group, nothing, rows).select(states), rows.select(states))
    same(merged_pairs(group, rows, nothing), rows)
    assert gathered(rows, np.array([2, -1, 0])).get_column("k").to_list() == [rows["k"][2], None, rows["k"][0]]


@pytest.mark.parametrize("at", [[1, 2, 3], [3, 2, 1], [0], [1, 1, 3], []])
def test_rows_at_places_are_those_rows(at: list[int]) -> None:
    rows = pl.DataFrame({"k": [10, 11, 12, 13, 14]})
    assert gathered(rows, np.array(at, dtype=np.int64))["k"].to_list() == [10 + place for place in at]


def test_sums_of_doubles_keep_what_they_lose() -> None:
    node = S.group_by("k", "t").agg(total=tg.sum(S.x))._node
    assert isinstance(node, Group)
    rows = pl.DataFrame({"k": [1] * 4, "t": range(4), "x": [1e16, 1.0, 1.0, -1e16]}).select(
        *(pl.col(name) if name in "ktx" else pl.lit(None).alias(name) for name in S.schema.names)
    )
    parts = partial(node, rows).sort("t")
    place = np.arange(4)
    assert final(node, running(node, parts, place))["total"].to_list() == [1e16, 1e16, 1e16 + 2, 2.0]
    assert final(node, merged_pairs(node, running(node, parts, place)[2:3], parts[3:4]))["total"].to_list() == [2.0]
    merged = parts[:1]
    for at in place[1:]:
        merged = merged_pairs(node, merged, parts[at : at + 1])
    assert final(node, merged)["total"].to_list() == [2.0]


def test_sums_run_through_segments_of_any_length() -> None:
    lengths = (1, 2, 3, 7, 8, 20)
    place = np.concatenate([np.arange(length) for length in lengths])
    values = np.random.default_rng(1).integers(-100, 100, len(place)).astype(np.float64)
    sums, lost = running_doubles(values, np.zeros(len(place)), place)
    segments = np.split(values, np.cumsum(lengths)[:-1])
    assert sums.tolist() == np.concatenate([np.cumsum(segment) for segment in segments]).tolist()
    assert not lost.any()
    odd, _ = running_doubles(np.array([1e16, 1.0, 1.0, -1e16]), np.zeros(4), np.arange(4))
    assert odd.tolist() == [1e16, 1e16, 1e16 + 2, 2.0]


@pytest.mark.parametrize("ahead", [False, True])
@pytest.mark.parametrize("name", ["min", "max"])
def test_doubles_of_all_kinds_are_ordered(name: str, ahead: bool) -> None:
    """NaN behind all others, -0.0 equal to 0.0, NULL none."""
    node = S.group_by("k", "t").agg(best=getattr(tg, name)(S.x))._node
    assert isinstance(node, Group)
    doubles = [None, 2.5, -1.5, -0.0, 0.0, float("inf"), float("-inf"), float("nan"), -3.0, None, 1.0]
    rows = pl.DataFrame({"k": [1] * len(doubles), "t": range(len(doubles)), "x": doubles}).select(
        *(pl.col(name) if name in "ktx" else pl.lit(None).alias(name) for name in S.schema.names)
    )
    parts = partial(node, rows).sort("t")
    place = np.arange(len(doubles))
    made = final(node, remaining(node, parts, place[::-1]) if ahead else running(node, parts, place))["best"].to_list()
    for at, found in enumerate(made):
        its = pl.DataFrame({"x": doubles[at:] if ahead else doubles[: at + 1]}, schema={"x": pl.Float64})
        ordered = its.drop_nulls().sort("x", descending=name == "max")["x"]
        best = ordered[0] if len(ordered) else None
        assert found == best or (found != found and best != best), at
