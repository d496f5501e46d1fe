"""Segments that the driver of a Spark run makes: parts of one file a batch, and files where workers read them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pytest

from tests.runtime.inline_workers import InlineRun, Workers
from tests.runtime.test_collection import program, write
from tidegate.runtime.batch.report import BatchReport
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.steps.pending_segments import PendingSegments
from tidegate.runtime.engines.embedded.steps.segment_cache import SegmentCache
from tidegate.runtime.engines.spark.executor import SparkExecutor
from tidegate.runtime.eval.job import Job
from tidegate.runtime.plan.placement import Limits
from tidegate.runtime.state.segments import Segment
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.tuning.choices import Way

NAMES = ("Near", "Counted", "Latest")


def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limits: Limits) -> list[BatchReport]:
    """The reports of a run, whose results are those of a session over the same files."""
    sources = {"E": parquet(write(tmp_path / "in", 1), per_batch=1, delay=4)}
    inline = InlineRun.of(Workers(monkeypatch), program().facts, sources, {}, tmp_path / "state", None, limits)
    reports = inline.all()
    with program().session(sources, checkpoint=tmp_path / "one") as session:
        session.process()
        wanted = {name: sorted(map(str, session.results(name))) for name in NAMES}
    with program().session(checkpoint=tmp_path / "state") as session:
        assert {name: sorted(map(str, session.results(name))) for name in NAMES} == wanted
    assert all(wanted.values())
    return reports


def test_small_segments_of_a_batch_are_parts_of_one_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reports = run(tmp_path, monkeypatch, Limits(driver_bytes=64 << 20))
    assert {place for report in reports for place in report.places.values()} == {"driver"}
    store = LocalStore(tmp_path / "state")
    assert store.list_files("segments") == []
    assert 0 < len(store.list_files("packs")) <= len(reports)


def test_workers_read_what_the_driver_has_taken_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Increments and rewrites are theirs, the files of the source its own; what it writes for them it does not hold."""
    in_files = SparkExecutor._in_files
    written: list[int] = []
    held: list[str] = []

    def noted(executor: SparkExecutor, batch: Any, job: Job) -> Job:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(SegmentCache, "remember", lambda _, path, rows: held.append(path))
            found = in_files(executor, batch, job)
        written.append(sum(old != new for old, new in zip(job.inputs, found.inputs, strict=True)))
        return found

    monkeypatch.setattr(SparkExecutor, "_in_files", noted)
    monkeypatch.setattr(SparkExecutor, "_ingest_ways", lambda *_: (Way("driver"),))
    reports = run(tmp_path, monkeypatch, Limits(0))
    assert any(written)
    assert not held
    assert {place for report in reports for place in report.places.values()} == {"sharded"}
    assert sum(report.counts["E"].accepted for report in reports) > 100


def test_a_segment_that_workers_have_read_is_written_once(tmp_path: Path) -> None:
    """It stays the file that it was for them; another one is a part of the pack."""
    buffers = program().explain().lowered().buffers
    buffer = next(one for one in buffers if one.partial is None and one.fold is None)
    rows = pl.DataFrame({"k": [1, 2], "t": [3, 4], "s": ["x", "y"], "v": [0.5, 1.5]}).select(buffer.stored.names)
    written: list[int] = []

    def write_segment(buffer_id: str, table: Any, columns: Any, *, shard: int) -> Segment:
        written.append(table.num_rows)
        return Segment(f"file {len(written)}", table.num_rows, 1, "", "", {}, 1, shard)

    batch: Any = SimpleNamespace(
        seq=1,
        attempt="a",
        write_segment=write_segment,
        pack_segment=lambda table, described: replace(described, path="a part"),
    )
    pending = PendingSegments(SegmentCache(LocalStore(tmp_path), most_bytes=0), most_bytes=1 << 20)
    one, other = (pending.keep(batch, buffer, rows) for _ in range(2))
    file = pending.on_disk(batch, one)
    assert pending.on_disk(batch, one) is file
    assert file.path == "file 1"
    kept = pending.persist(batch, {buffer.id: (one, other, file)})
    assert [segment.path for segment in kept[buffer.id]] == ["file 1", "a part", "file 1"]
    assert written == [2]
