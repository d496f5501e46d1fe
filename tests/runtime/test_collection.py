"""Segments that workers write anew: the same rows stay as in one process, laid out and told as others are."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tests.runtime.inline_workers import InlineRun, Workers
from tidegate.algebra.terms import TRUE
from tidegate.runtime.batch import garbage
from tidegate.runtime.batch.executor import Rewrite
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.steps import rewriting
from tidegate.runtime.engines.spark import collection
from tidegate.runtime.engines.spark.collection import parts_of, rewrite_tasks
from tidegate.runtime.engines.spark.eval import lying
from tidegate.runtime.engines.spark.executor import SparkExecutor
from tidegate.runtime.engines.spark.workers import WriteTarget
from tidegate.runtime.eval.columns import stored_arrow_schema
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.segments import Segment, write_segment
from tidegate.runtime.state.shard_layout import ShardLayout
from tidegate.runtime.state.store.local import LocalStore

events = tg.stream("E", "k bigint, t bigint, v double, s string", progress="t")
BATCHES = 12


def program() -> tg.Program:
    """Rows that live for a while, partial aggregates, and rows that are folded."""
    a, b = events.as_("a"), events.as_("b")
    near = a.join(b, a.k == b.k, a.t < b.t, b.t <= a.t + 25).select(k=a.k, t=a.t, u=b.t, s=b.s)
    latest = a.left_join(b, a.k == b.k, b.t < a.t).group_by(k=a.k, t=a.t).agg(v=tg.last(b.v, by=b.t))
    counted = events.group_by(events.k, w=tg.ceil(events.t, 40)).agg(n=tg.count(), v=tg.sum(events.v))
    return tg.program(Near=near, Counted=counted, Latest=latest)


def write(folder: Path, seed: int) -> Path:
    folder.mkdir()
    rng = random.Random(seed)
    for number in range(BATCHES):
        rows = [
            {"k": rng.randrange(3), "t": number * 10 + i, "v": i / 3, "s": "x" * rng.randrange(4) or None}
            for i in range(10)
        ]
        path = folder / f"{number:02}.parquet"
        pl.DataFrame(rows, schema={"k": pl.Int64, "t": pl.Int64, "v": pl.Float64, "s": pl.String}).write_parquet(path)
        os.utime(path, (1_600_000_000 + number,) * 2)
    return folder


def held(checkpoint: Path) -> dict[str, tuple[list[str], dict[str, tuple[int, int]], list[int]]]:
    """Per buffer the rows that the last manifest names, the bounds that it gives for them, and the shards of folds."""
    store = LocalStore(checkpoint)
    manifest = inspect(store).manifest
    assert manifest is not None
    found = {}
    for name, segments in manifest.segments.items():
        rows = sorted(str(row) for segment in segments for row in store.read_table(segment.path).to_pylist())
        bounds = [segment.bounds for segment in segments]
        limits = {a: (min(b[a][0] for b in bounds), max(b[a][1] for b in bounds)) for a in bounds[0]}
        found[name] = rows, limits, sorted(segment.shard for segment in segments)
    return found


@pytest.mark.parametrize("seed", range(2))
def test_workers_keep_the_rows_that_the_driver_keeps(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether segments are merged, folded, or written without rows that nobody needs."""
    monkeypatch.setattr(garbage, "MERGED_ROWS", 40)
    monkeypatch.setattr(rewriting, "PIECE_ROWS", 7)
    files, kinds = write(tmp_path / "in", seed), set[str]()

    def seen(target: Any, rewrites: list[Rewrite]) -> Any:
        kinds.update("folded" if one.settled else "merged" if len(one.segments) > 1 else "freed" for one in rewrites)
        return rewrite_tasks(target, rewrites)

    monkeypatch.setattr("tidegate.runtime.engines.spark.executor.rewrite_tasks", seen)

    def by(name: str, *, workers: bool) -> list[Any]:
        def rewritten(executor: SparkExecutor, batch: Any, rewrites: list[Rewrite]) -> list[tuple[Segment, ...]]:
            if not workers:
                return executor.local.rewrite(batch, rewrites)
            done = executor._rewrite_on_spark(batch, dict(enumerate(rewrites))) if rewrites else {}
            return [done[number] for number in range(len(rewrites))]

        monkeypatch.setattr(SparkExecutor, "rewrite", rewritten)
        sources = {"E": parquet(files, per_batch=1, delay=4)}
        run = InlineRun.of(
            Workers(monkeypatch), program().facts, sources, {}, tmp_path / name, None, Limits(driver_bytes=64 << 20)
        )
        return [report.live_rows for report in run.all()]

    assert by("workers", workers=True) == by("driver", workers=False)
    assert kinds == {"folded", "merged", "freed"}
    assert held(tmp_path / "workers") == held(tmp_path / "driver")
    with program().session(checkpoint=tmp_path / "workers") as session:
        found = {name: sorted(map(str, session.results(name))) for name in ("Near", "Counted", "Latest")}
    with program().session(checkpoint=tmp_path / "driver") as session:
        assert found == {name: sorted(map(str, session.results(name))) for name in found}
    assert all(found.values())


def test_workers_fold_where_the_driver_holds_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folded: list[int] = []

    def seen(target: Any, rewrites: list[Rewrite]) -> Any:
        folded.append(sum(one.rows for one in rewrites if one.settled))
        return rewrite_tasks(target, rewrites)

    monkeypatch.setattr("tidegate.runtime.engines.spark.executor.rewrite_tasks", seen)
    sources = {"E": parquet(write(tmp_path / "in", 3), per_batch=1, delay=4)}
    run = InlineRun.of(Workers(monkeypatch), program().facts, sources, {}, tmp_path / "state", None, Limits(0))
    reports = run.all()
    assert {place for report in reports for place in report.places.values()} == {"sharded"}
    assert sum(folded) > 100
    with program().session(sources, checkpoint=tmp_path / "one") as session:
        session.process()
        found = {name: sorted(map(str, session.results(name))) for name in ("Near", "Counted", "Latest")}
    with program().session(checkpoint=tmp_path / "state") as session:
        assert found == {name: sorted(map(str, session.results(name))) for name in found}
    assert all(found.values())


def test_the_tasks_of_a_rewrite_have_its_rows_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Laid out for the shards of increments, as other rows that workers store."""
    monkeypatch.setattr(collection, "FLUSH_BYTES", 2000)
    monkeypatch.setattr(lying, "ROWS_A_SHARD", 16)
    store, buffers = LocalStore(tmp_path), program().explain().lowered().buffers
    buffer = next(one for one in buffers if one.partial is None and one.fold is None)
    frames = [pl.DataFrame({"t": range(40 * n, 40 * n + 40), "k": n, "s": "x", "v": 0.5}) for n in range(7)]
    columns = {name: stored_arrow_schema(buffer.stored).field(name).type for name in buffer.stored.names}
    tables = [
        pa.table({name: pa.array(frame.get_column(name).to_list(), type_) for name, type_ in columns.items()})
        for frame in frames
    ]
    segments = [write_segment(store, buffer.id, table, buffer.instants, 1, "before") for table in tables]
    target = WriteTarget(str(tmp_path), 2, "after", {}, {buffer.id: "k"}, 2)
    tasks = rewrite_tasks(target, [Rewrite(buffer, segments, TRUE)])
    told = [json.loads(line) for own in tasks.own for line in tasks.work(own)]
    assert len(tasks.own) == len(told) > 2
    assert {one["number"] for one in told} == {0}
    written = [Segment.from_json(one["segment"]) for one in told]
    assert {segment.batch for segment in written} == {2}
    read = pa.concat_tables([store.read_table(segment.path) for segment in written])
    assert read.select(["t", "k"]).sort_by("t").equals(pa.concat_tables(tables).select(["t", "k"]))
    for segment in written:
        with pq.ParquetFile(tmp_path / segment.path) as file:
            assert ShardLayout.of_file(file.metadata) is not None


def rewrite(sizes: list[int], *, least: int = 1, settled: Any = None) -> Rewrite:
    segments = [Segment(str(n), size, size, "", "", {}, 1, 0) for n, size in enumerate(sizes)]
    return Rewrite(None, segments, None, least, settled)  # type: ignore[arg-type]  # neither is asked for


@pytest.mark.parametrize(
    ("made", "parts"),
    [
        (rewrite([50, 40]), [(0, 2)]),
        (rewrite([50, 50]), [(0, 1), (1, 2)]),
        (rewrite([100, 100, 100]), [(0, 1), (1, 2), (2, 3)]),
        (rewrite([250, 10, 10, 30]), [(0, 1), (1, 4)]),
        (rewrite([10, 10, 10, 270]), [(0, 4)]),
        (rewrite([10, 90, 10, 90]), [(0, 2), (2, 4)]),
        (rewrite([250]), [(0, 1)]),
        (rewrite([100, 100, 100], least=150), [(0, 2), (2, 3)]),
        (rewrite([100, 100, 100], least=400), [(0, 3)]),
        (rewrite([100, 100, 100], settled=object()), [(0, 3)]),
        (rewrite([300, 0, 0]), [(0, 1), (1, 3)]),
    ],
)
def test_a_rewrite_of_many_bytes_is_several_tasks(
    made: Rewrite, parts: list[tuple[int, int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "FLUSH_BYTES", 100)
    assert parts_of(made) == parts
