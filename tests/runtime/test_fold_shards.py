"""Folds in shards: of how many rows a batch folds at most, however many classes there are, and what is left of them."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

import tidegate as tg
from tests.runtime.test_folding import QUERIES, run
from tidegate.runtime.arrays import Int64Array
from tidegate.runtime.batch import garbage as collecting
from tidegate.runtime.batch.executor import Rewrite
from tidegate.runtime.batch.garbage import FOLDED, Garbage
from tidegate.runtime.engines.embedded.steps import rewriting
from tidegate.runtime.eval.aggregates.fold_rows import folded, shard_tree, sharded
from tidegate.runtime.plan.folding import shards
from tidegate.runtime.plan.folding.shards import BRANCHES, DEEPEST, MOST_SHARDS, FoldStep, ShardTree, above, fold_steps
from tidegate.runtime.plan.lower import lower
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.segments import Segment
from tidegate.runtime.state.store.local import LocalStore

#: A hash of numbers: the odd one next to 2^64 by the golden ratio.
SPREAD = np.uint64(0x9E3779B97F4A7C15)
TREE = ShardTree.of("a hash")


def test_a_sweep_folds_what_it_writes_beside_folded_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row of a class came when nothing was folded; a sweep writes it together with the one that stands for others."""
    folds: list[tuple[pl.DataFrame, pl.DataFrame, tuple[Any, ...]]] = []

    def noted(rows: pl.DataFrame, *how: Any) -> pl.DataFrame:
        folds.append((rows, folded(rows, *how), how))
        return folds[-1][1]

    with monkeypatch.context() as patch:
        patch.setattr(rewriting, "folded", noted)
        run(QUERIES["seen first"][0])
    rows, left, (fold, settled, schema) = max(folds, key=lambda one: one[0].height - one[1].height)
    assert left.height < rows.height
    known = SimpleNamespace(keys=fold.keys, settled=lambda progress: settled)
    monkeypatch.setattr(rewriting, "folded", lambda rows, _, *how: folded(rows, fold, *how))
    tree = shard_tree(fold)
    segments = [Segment("", rows.height, 1, "", "x", {}, 1, shard) for shard in (0, tree.number(shards.ROOT))]
    buffer: Any = SimpleNamespace(id="b", fold=known, schema=schema)
    sweep: Any = SimpleNamespace(segments={"b": segments}, progress={})
    parts = [part for _, part in rewriting._as_before(buffer, rows, sweep)]
    assert sum(part.height for part in parts) == left.height
    sweep.segments["b"] = segments[:1]
    assert [part.height for _, part in rewriting._as_before(buffer, rows, sweep)] == [rows.height]


class Folder:
    """An executor whose rows are numbers of classes; of equal ones one is left. `folds` has the rows of each fold."""

    def __init__(self) -> None:
        self.limits: Limits | None = None
        self.rows: dict[str, Int64Array] = {}
        self.folds: list[int] = []

    def stored(self, rows: Int64Array, batch: int, shard: int = 0) -> Segment:
        path = f"{len(self.rows)}"
        self.rows[path] = rows
        return Segment(path, len(rows), 24 * len(rows), "", "x", {"t": (0, 1)}, batch, shard)

    def rewrite(self, batch: Any, rewrites: Sequence[Rewrite]) -> list[tuple[Segment, ...]]:
        return [tuple(self._written(batch.seq, one)) for one in rewrites]

    def _written(self, batch: int, one: Rewrite) -> Iterator[Segment]:
        rows, step = np.concatenate([self.rows.pop(s.path) for s in one.segments]), one.step
        self.rows |= {s.path: np.empty(0, np.int64) for s in one.segments}
        if one.settled is not None:
            self.folds.append(len(rows))
            rows = np.unique(rows)
        if step is None:
            yield self.stored(rows, batch, one.shard)
            return
        depth, deeper = step.depths(len(rows))
        nodes = BRANCHES**deeper + (rows.astype(np.uint64) * SPREAD >> np.uint64(64 - 2 * deeper)).astype(np.int64)
        for node in np.unique(nodes) if depth < deeper else [step.node]:
            yield self.stored(rows if depth == deeper else rows[nodes == node], batch, step.tree.number(int(node)))


def collection(keys: tuple[str, ...] = ("k",)) -> Garbage:
    """Of a buffer all of whose rows are settled and needed for ever."""
    fold = SimpleNamespace(query="q", keys=keys, settled=lambda p: "settled", settles_segment=lambda bounds, p: True)
    buffer = SimpleNamespace(id="b", stream=SimpleNamespace(name="b"), fold=fold)
    plan = SimpleNamespace(
        buffers=(buffer,), buffer_keep=lambda *_: "keep", buffer_keeps=lambda *_: lambda _: True, purged=lambda: ()
    )
    return Garbage(plan, {}, "amortised")  # type: ignore[arg-type]


PROGRESS: Any = SimpleNamespace(queries={"q": {}})


def check(classes: int, arriving: int, batches: int) -> None:
    """Runs batches, and checks what each folds and what is left; `SHARD_ROWS` as it is set."""
    rng, engine, garbage = np.random.default_rng(1), Folder(), collection()
    segments: tuple[Segment, ...] = ()
    folded: list[int] = []
    seen = np.zeros(classes, dtype=np.bool_)
    for number in range(batches):
        new = rng.integers(0, classes, arriving)
        seen[new] = True
        segments = (*segments, engine.stored(new, number))
        engine.folds.clear()
        segments = garbage.collected(engine, SimpleNamespace(seq=number), {"b": segments}, PROGRESS)["b"]  # type: ignore[arg-type]
        live = sum(s.rows for s in segments)
        shard = max(shards.SHARD_ROWS, live // MOST_SHARDS, arriving)
        folded.append(sum(engine.folds))
        assert max(engine.folds, default=0) <= 3 * shard
        assert folded[-1] <= max(collecting.LEAST_FOLDED, FOLDED * arriving, 3 * shard)
        assert live <= 4 * seen.sum() + shard
        assert len(segments) <= 4 * MOST_SHARDS
    assert set(np.unique(np.concatenate([engine.rows[s.path] for s in segments]))) == set(np.flatnonzero(seen))
    assert statistics.mean(folded) <= 4 * arriving
    assert live <= 2 * classes + shard, "in the mean 1.5 times as many as there are classes"
    assert arriving < 625 or max(folded) <= 3 * statistics.median(folded)


@pytest.mark.parametrize(("classes", "arriving", "batches"), [
    (5, 1_000, 30), (3_000, 200, 100), (31_000, 625, 150), (125_000, 625, 400), (31_000, 6_250, 30),
])  # fmt: skip
def test_no_batch_folds_more_than_some_times_what_came_whatever_the_number_of_classes(
    classes: int, arriving: int, batches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With shards of a sixteenth."""
    monkeypatch.setattr(shards, "SHARD_ROWS", shards.SHARD_ROWS // 16)
    monkeypatch.setattr(collecting, "LEAST_FOLDED", collecting.LEAST_FOLDED // 16)
    check(classes, arriving, batches)


@pytest.mark.long
@pytest.mark.parametrize(("classes", "arriving", "batches"), [
    (500_000, 10_000, 150), (2_000_000, 10_000, 400), (500_000, 100_000, 30),
])  # fmt: skip
def test_nor_of_half_a_million_and_two_million_classes(classes: int, arriving: int, batches: int) -> None:
    check(classes, arriving, batches)


def test_rows_of_a_past_that_is_larger_than_the_driver_holds_are_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    """On Spark a first batch may bring years. Each fold is of what the driver holds, until all are folded."""
    monkeypatch.setattr(collecting, "LEAST_FOLDED", 1 << 12)
    rng, engine, garbage, classes, held = np.random.default_rng(2), Folder(), collection(), 5_000, 3_000
    engine.limits = Limits(driver_bytes=24 * held)
    segments = tuple(engine.stored(rng.integers(0, classes, 1_000), 0) for _ in range(40))
    too_large = engine.stored(np.arange(held + 1), 0)
    seen = {int(row) for path in engine.rows for row in engine.rows[path]}
    for number in range(100):
        new = rng.integers(0, classes, 50)
        seen |= {int(row) for row in new}
        segments = (*segments, engine.stored(new, number))
        given = {"b": (*segments, too_large)}
        segments = garbage.collected(engine, SimpleNamespace(seq=number), given, PROGRESS)["b"]  # type: ignore[arg-type]
        assert too_large in segments, "workers have written it: no fold takes it"
        segments = tuple(s for s in segments if s is not too_large)
        assert max(s.rows for s in segments) <= held
    assert max(engine.folds) <= held
    assert {int(row) for s in (*segments, too_large) for row in engine.rows[s.path]} == seen
    assert sum(s.rows for s in segments) <= 3 * classes


@pytest.mark.parametrize("name", ["the latest price", "seen first"])
@pytest.mark.parametrize("most_bytes", [None, 1000])
def test_results_of_rows_that_are_folded_in_small_shards(
    name: str, most_bytes: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Begun anew every four batches, once without folding: what the manifest says of shards is enough. A fold is of
    some segments of a shard where all would be too many bytes.
    """
    monkeypatch.setattr(collecting, "fold_steps", lambda tree, settled, _: fold_steps(tree, settled, most_bytes))
    query, _ = QUERIES[name]
    wanted, _ = run(query, folding=["off"])
    monkeypatch.setattr(shards, "SHARD_ROWS", 2)
    monkeypatch.setattr(collecting, "LEAST_FOLDED", 4)
    monkeypatch.setattr(collecting, "FOLDED", 0)
    for folding in (["on"], ["on", "on", "off"]):
        store = LocalStore(tmp_path / "-".join(folding))
        found, _ = run(query, folding=folding, every=4, collect="amortised", store=store)  # type: ignore[arg-type]
        assert found.equals(wanted)
    kept = [s for some in inspect(store).manifest.segments.values() for s in some]  # type: ignore[union-attr]
    assert any(s.shard & 0xFFFF > shards.ROOT for s in kept), "so that it shows"


def test_rows_of_a_class_go_to_one_shard_below_the_one_where_they_are() -> None:
    """Whatever the type of the keys, and by how many levels."""
    rows = pl.DataFrame({"k": [None, *range(300)] * 2}).with_columns(t=pl.int_range(602), v=pl.int_range(602))
    (buffer,) = (one for one in lower(tg.program(R=QUERIES["seen first"][0]).facts).buffers if one.fold is not None)
    assert buffer.fold is not None
    at: dict[int, dict[int, set[int | None]]] = {}
    for levels in (1, 2, 3):
        step = FoldStep(TREE, shards.ROOT, 10_000, levels=levels)
        parts = list(sharded(rows, buffer.fold, step, buffer.schema))
        at[levels] = {node: set(part["k"]) for node, part in parts}
        assert len(parts) == len(at[levels]) == BRANCHES**levels
        assert sum(part.height for _, part in parts) == 602
        assert sum(map(len, at[levels].values())) == 301, "equal keys are together"
        assert {shards.depth_of(node) for node in at[levels]} == {levels}
    for levels in (2, 3):
        for node, keys in at[levels].items():
            assert keys <= at[levels - 1][next(iter(above(node)))]
    step = FoldStep(TREE, shards.ROOT, 10_000)
    assert [node for node, _ in sharded(rows, buffer.fold, step, buffer.schema)] == [shards.ROOT]
    split = list(sharded(rows, buffer.fold, replace(step, most=100), buffer.schema))
    assert len(split) == BRANCHES**2, "to as many as have no more than that, if all have as many"
    nothing = replace(buffer.fold, keys=())
    assert [node for node, _ in sharded(rows, nothing, replace(step, most=1), buffer.schema)] == [shards.ROOT]


def segment(rows: int, node: int | None = None, tree: ShardTree = TREE) -> Segment:
    shard = 0 if node is None else tree.number(node)
    return Segment(f"{rows} at {node}", rows, 24 * rows, "", "x", {"t": (0, 1)}, 1, shard)


def due(*segments: Segment, most_bytes: int | None = None) -> list[tuple[int, float, int | None, int]]:
    """Of each step its node, urgency and levels, and how many rows it has."""
    steps = fold_steps(TREE, segments, most_bytes)
    return [(step.node, step.urgency, step.levels, sum(s.rows for s in some)) for step, some in steps]


def test_which_folds_are_due_and_how_urgent() -> None:
    most = shards.SHARD_ROWS
    assert due(segment(10)) == [(1, 10.0, None, 10)], "what was never folded"
    assert due(segment(10, 1), segment(4)) == []
    assert due(segment(10, 1), segment(6)) == [(1, 0.8, None, 16)]
    assert due(segment(10, 1), segment(10)) == [(1, 1.0, None, 20)]
    assert due(segment(10, 1, ShardTree.of("another hash"))) == [(1, 10.0, None, 10)]
    below = [segment(10, node) for node in (4, 5, 6, 7)]
    assert due(segment(most // 2), *below) == []
    assert due(segment(most), *below) == [(1, 1.0, 1, most)]
    assert due(segment(4 * most), *below) == [(1, 4.0, 1, 4 * most)], "no further than to the lowest"
    deep = [segment(10, node) for node in range(16, 32)]
    assert due(segment(most), *deep) == [(1, 1.0, 1, most)]
    assert due(segment(4 * most), *deep) == [(1, 4.0, 2, 4 * most)]
    assert due(segment(4 * most), *deep[4:], segment(10, 4)) == [(1, 4.0, 1, 4 * most)]
    two = due(segment(10, 4), segment(10, 4), segment(2 * most), *below[1:])
    assert two == [(1, 2.0, 1, 2 * most), (4, 1.0, None, 20)]
    assert due(segment(10), most_bytes=240) == [(1, 10.0, None, 10)]
    assert due(segment(10), most_bytes=239) == []
    assert due(segment(10), segment(7), segment(3), most_bytes=312) == [(1, 10.0, None, 10)], "as many as are held"
    assert due(segment(4), segment(7, 1), segment(2), segment(9), segment(3, 1), most_bytes=288) == [
        (1, 1.5, None, 9)
    ], "those that were never folded in half of it, then the smallest"
    assert FoldStep(TREE, 1, 100).depths(100) == (0, 0)
    assert FoldStep(TREE, 1, 100).depths(101) == (0, 1)
    assert FoldStep(TREE, BRANCHES**DEEPEST, 1).depths(9) == (DEEPEST, DEEPEST), "rows of one hash stay together"
