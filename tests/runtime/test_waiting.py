"""Files that wait: as a sorted list of them says, at the cost of what is taken and of what comes."""

from __future__ import annotations

import random
from pathlib import Path

import polars as pl
import pytest

import tidegate as tg
from tidegate.runtime.connectors import waiting as module
from tidegate.runtime.connectors.waiting import WaitingFiles
from tidegate.runtime.state.inputs.positions import OLDEST_FIRST, SourceFile


@pytest.mark.parametrize("seed", range(12))
def test_files_wait_in_their_order(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(seed)
    monkeypatch.setattr(module, "_SHARE", rng.choice((0, 1, 64)))
    monkeypatch.setattr(module, "_LOOSE", rng.choice((0, 2, 64)))
    files, model = WaitingFiles(), dict[str, SourceFile]()
    for _ in range(400):
        for _ in range(rng.choice((0, 1, 1, 8))):
            file = SourceFile(f"/in/{rng.randrange(40)}", rng.randrange(3), rng.randrange(20))
            model[file.path] = file
            files.put(file)
        if rng.random() < 0.02:
            model.clear()
            files.clear()
        order = sorted(model.values(), key=OLDEST_FIRST)
        for file in rng.choice(([], order[:2], rng.sample(order, len(order) // 4))):
            del model[file.path]
            files.discard(file.path)
        files.discard("/in/none")
        order = sorted(model.values(), key=OLDEST_FIRST)
        if rng.random() < 0.7:  # else several changes before anybody asks
            but = set(rng.sample(order, min(2, len(order))))
            count = rng.choice((None, 0, 1, 3))
            assert list(files) == list(files.first(None)) == order
            assert files.first(count) == tuple(order[:count])
            assert files.first(count, but) == tuple([file for file in order if file not in but][:count])
        assert len(files) == len(order)
        assert files.paths() == model.keys()
        assert [files.get(file.path) for file in order] == order
        assert not files.has_others(order)
        assert files.has_others([*order[1:], SourceFile("/in/none", 1, 1)]) is bool(order)
        assert not files.has_others([*order, *order, SourceFile("/in/0", 9, 9)])
        assert all(file in files for file in order)
        assert SourceFile("/in/0", 9, 9) not in files


def test_a_file_that_comes_finds_its_place_without_a_look_at_all(monkeypatch: pytest.MonkeyPatch) -> None:
    files, looked = WaitingFiles(), 0

    def counted(file: SourceFile) -> tuple[int, str]:
        nonlocal looked
        looked += 1
        return file.mtime_ns, file.path

    for number in range(10_000):
        files.put(SourceFile(f"/in/{number}", 1, 2 * number))
    assert len(files.first(1)) == 1
    monkeypatch.setattr(module, "OLDEST_FIRST", counted)
    for number in range(100):
        files.put(SourceFile(f"/in/new {number}", 1, 201 * number))
        files.first(1)
    assert looked < 100 * 20
    assert [file.mtime_ns for file in files] == sorted([*range(0, 20_000, 2), *range(0, 20_100, 201)])


def test_all_are_taken_at_the_cost_of_each_once(monkeypatch: pytest.MonkeyPatch) -> None:
    files, looked, waits = WaitingFiles(), 0, WaitingFiles._waits

    def counted(self: WaitingFiles, file: SourceFile) -> bool:
        nonlocal looked
        looked += 1
        return waits(self, file)

    monkeypatch.setattr(WaitingFiles, "_waits", counted)
    for number in range(5000):
        files.put(SourceFile(f"/in/{number}", 1, number))
    while now := files.first(2):
        files.first(2, set(now))
        for file in now:
            files.discard(file.path)
    assert looked < 12 * 5000


def test_a_session_reads_a_backlog_at_the_cost_of_each_file_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count, hashed, hash_of = 200, 0, SourceFile.__hash__
    for number in range(count):
        pl.DataFrame({"n": [number], "t": [number]}).write_parquet(tmp_path / f"{number:03}.parquet")

    def counted(self: SourceFile) -> int:
        nonlocal hashed
        hashed += 1
        return hash_of(self)

    monkeypatch.setattr(SourceFile, "__hash__", counted)
    events = tg.stream("E", "n bigint, t bigint", progress="t")
    program = tg.program(Found=events.where(events.n >= 0))
    with program.session(sources={"E": tg.parquet(tmp_path, per_batch=1, delay=0)}) as session:
        session.process()
        assert session.counts["E"].rows_in == count
    assert hashed < 40 * count
