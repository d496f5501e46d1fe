"""The next batch's files are read while a batch is evaluated: once each, as they are when their batch begins."""

from __future__ import annotations

import itertools
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import tidegate as tg
from tidegate.algebra.errors import QueryError
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.ahead import read_ahead
from tidegate.runtime.engines.embedded import file_polling
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.engines.options import RunOptions
from tidegate.runtime.engines.setup import Setup, UnreadFiles
from tidegate.runtime.state.store.local import LocalStore

readings = tg.stream("R", "k bigint, t bigint", progress="t")
program = tg.program(Found=readings.where(readings.k > 0))


def written(folder: Path, number: int, k: int = 1) -> Path:
    folder.mkdir(exist_ok=True)
    path = folder / f"{number:03d}.parquet"
    pq.write_table(pa.table({"k": [k], "t": [number]}), path)
    return path


def session(folder: Path, per_batch: int | None = 1, **options: Any) -> Session:
    sources = {"R": parquet(folder, per_batch=per_batch, delay=0, bounded=True)}
    return Session(program.facts, sources=sources, options=RunOptions(**options))


AHEAD, HERE = "tidegate-read-ahead", "MainThread"


def test_each_file_is_read_once_and_all_but_the_first_ahead(tmp_path: Path, reads: list[tuple[str, str]]) -> None:
    for number in range(5):
        written(tmp_path / "in", number)
    with session(tmp_path / "in", per_batch=2) as one:
        assert len(one.process()) == 3
        assert [row["t"] for row in one.results("Found")] == [0, 1, 2, 3, 4]
    assert sorted(reads) == [("000", HERE), ("001", HERE), *((f"00{n}", AHEAD) for n in (2, 3, 4))]


def test_a_single_step_reads_nothing_ahead(tmp_path: Path, reads: list[tuple[str, str]]) -> None:
    for number in range(3):
        written(tmp_path / "in", number)
    with session(tmp_path / "in") as one:
        one.step()
        one.step()
    assert reads == [("000", HERE), ("001", HERE)]


def test_a_file_that_is_written_again_before_its_batch_is_read_again(
    tmp_path: Path, reads: list[tuple[str, str]]
) -> None:
    for number in range(3):
        written(tmp_path / "in", number)

    def rewrite(report: Any) -> None:
        if report.seq == 1:
            path = written(tmp_path / "in", 1, k=7)
            os.utime(path, ns=(1, 1))

    with session(tmp_path / "in", on_batch=rewrite) as one:
        one.process()
        assert [row["k"] for row in one.results("Found")] == [1, 7, 1]
    assert reads.count(("001", HERE)) == 1


@pytest.mark.parametrize("threads", [1, 3])
def test_a_file_that_is_written_again_before_it_is_read_counts_as_it_was_read(tmp_path: Path, threads: int) -> None:
    """Its rows are in the results, so it is not told as changed, now or by a later run."""
    for number in range(3):
        written(tmp_path / "in", number)
    store = LocalStore(tmp_path / "state")
    store.failpoints.arm("batch-after-intent", lambda: os.utime(written(tmp_path / "in", 1, k=2), ns=(0, 1)))
    sources = {"R": parquet(tmp_path / "in", delay=0, bounded=True)}
    for _ in range(2):
        with Session(program.facts, store, sources=sources, options=RunOptions(threads=threads)) as one:
            one.step()
            one.step()
            assert sorted((row["t"], row["k"]) for row in one.results("Found")) == [(0, 1), (1, 2), (2, 1)]


def test_more_than_there_is_room_for_is_read_in_its_turn(
    tmp_path: Path, reads: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        written(tmp_path / "in", number)
    size = os.path.getsize(tmp_path / "in" / "000.parquet")
    monkeypatch.setattr(read_ahead, "MOST", size + size // 2)
    with session(tmp_path / "in", per_batch=2) as one:
        one.process()
    assert sorted(reads) == [("000", HERE), ("001", HERE), ("002", AHEAD), ("003", HERE)]


def test_files_of_few_bytes_can_have_many_rows(
    tmp_path: Path, reads: list[tuple[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(4):
        written(tmp_path / "in", number)
        times = range(100_000 * number, 100_000 * (number + 1))
        pq.write_table(
            pa.table({"k": [1] * 100_000, "t": times}), tmp_path / "in" / f"{number:03d}.parquet", compression="zstd"
        )
    monkeypatch.setattr(read_ahead, "MOST", 2_500_000)  # rows of one file take 1,600,000 bytes
    assert os.path.getsize(tmp_path / "in" / "000.parquet") < 500_000
    with session(tmp_path / "in", per_batch=2) as one:
        one.process()
    assert sorted(reads) == [("000", HERE), ("001", HERE), ("002", AHEAD), ("003", HERE)]


def test_a_file_that_can_not_be_read_fails_in_its_own_batch(tmp_path: Path) -> None:
    written(tmp_path / "in", 0)
    (tmp_path / "in" / "001.parquet").write_bytes(b"none")
    with session(tmp_path / "in") as one:
        with pytest.raises(QueryError, match="TG412"):
            one.process()
        assert one.counts["R"].accepted == 1
        os.remove(tmp_path / "in" / "001.parquet")
        written(tmp_path / "in", 2)
        one.process()
        assert [row["t"] for row in one.results("Found")] == [0, 2]


def test_directories_are_not_looked_at_for_every_batch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A look costs as much as there are files, and 1,000 batches of one file each would cost a million."""
    for number in range(30):
        written(tmp_path / "in", number)
    looks, now, look = [], [0.0], Setup.unread

    def looking(setup: Setup) -> UnreadFiles:
        looks.append(now[0])
        return look(setup)

    def slow(_: object) -> None:
        now[0] += 2.0

    monkeypatch.setattr(Setup, "unread", looking)
    monkeypatch.setattr(file_polling, "time", SimpleNamespace(monotonic=lambda: now[0]))
    with session(tmp_path / "in") as one:
        assert len(one.process()) == 30
    assert len(looks) == 3  # at first, before the last file, and after it
    with session(tmp_path / "in", on_batch=slow) as one:
        assert len(one.process()) == 30
    assert len(looks) == 3 + 31


def test_files_that_come_while_others_are_processed_are_read(tmp_path: Path) -> None:
    for number in range(3):
        written(tmp_path / "in", number)
    batches = itertools.count(1)

    def arriving(_: object) -> None:
        if (batch := next(batches)) in (1, 3):
            written(tmp_path / "in", 10 + batch)

    source = parquet(tmp_path / "in", per_batch=1, delay=0)
    with Session(program.facts, sources={"R": source}, options=RunOptions(on_batch=arriving)) as one:
        assert len(one.process()) == 5
        one.finish()
        one.step()
        assert [row["t"] for row in one.results("Found")] == [0, 1, 2, 11, 13]


def test_rows_that_are_pushed_while_others_are_processed_are_read(tmp_path: Path) -> None:
    written(tmp_path / "in", 0)
    batches = itertools.count(1)

    def pushing(_: object) -> None:
        if (batch := next(batches)) < 3:
            one.push("R", [(1, 10 + batch)])

    with Session(
        program.facts, sources={"R": parquet(tmp_path / "in", delay=0)}, options=RunOptions(on_batch=pushing)
    ) as one:
        assert len(one.process()) == 3
        one.finish()
        one.step()
        assert [row["t"] for row in one.results("Found")] == [0, 11, 12]


def test_a_bounded_directory_ends_only_after_a_last_look(tmp_path: Path) -> None:
    for number in range(2):
        written(tmp_path / "in", number)
    batches = itertools.count(1)

    def arriving(_: object) -> None:
        if next(batches) == 1:
            written(tmp_path / "in", 2)

    with session(tmp_path / "in", on_batch=arriving) as one:
        reports = one.process()
        assert [row["t"] for row in one.results("Found")] == [0, 1, 2]
        assert not any(report.counts["R"].rejected for report in reports)
