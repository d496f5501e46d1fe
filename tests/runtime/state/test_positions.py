"""Consumed files against a dictionary: over batches that read some, files that are put away, and a log that is read
again.
"""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from tidegate.runtime.state.errors import DATA, REPLAY, StateError
from tidegate.runtime.state.inputs import positions
from tidegate.runtime.state.inputs.leaving import LeavingFiles
from tidegate.runtime.state.inputs.positions import Offer, PositionLog, Positions, SourceFile, SourceOffset, SparkBatch
from tidegate.runtime.state.segments import write_segment
from tidegate.runtime.state.store.memory import MemoryStore

SOURCES = ("left", "kept")


def file(number: int, size: int = 1) -> SourceFile:
    return SourceFile(f"/in/{number}", size, number)


@pytest.mark.parametrize("seed", range(12))
def test_what_was_read_is_known_and_what_has_gone_is_not(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of `left` are put away, those of `kept` are not; what is gone is forgotten by the next batch, durably."""
    monkeypatch.setattr(positions, "_RECENT", (2, 5, 64)[seed % 3])
    rng, store = random.Random(seed), MemoryStore()
    log = PositionLog(store, Positions())
    model: dict[str, dict[str, SourceFile]] = {source: {} for source in SOURCES}
    durable = model
    waiting: list[SourceFile] = []
    putting_away = False
    for seq in range(1, 60):
        if rng.random() < 0.15:  # another process goes on, told to put away, or not to; it finds anew what has gone
            log, putting_away = PositionLog(store, log.positions), rng.random() < 0.7
            model = {source: dict(known) for source, known in durable.items()}
            if putting_away:
                log.put_away(["left"], {})
                waiting = list(model["left"].values())
            assert sorted(log.leaving.get("left", [])) == sorted(waiting if putting_away else [])
        new = {source: tuple(file(100 * seq + k) for k in range(rng.randrange(4))) for source in SOURCES}
        new = {source: files for source, files in new.items() if files or rng.random() < 0.5}
        found = log.appended(Offer(new), seq, "a")
        again = PositionLog(store, found)
        log.accept(Offer(new), found)
        for source, files in new.items():
            model[source] |= {one.path: one for one in files}
            waiting += files if source == "left" and putting_away else ()
        durable = {source: dict(known) for source, known in model.items()}
        if putting_away:
            assert sorted(log.leaving["left"]) == sorted(waiting)
        for held in (log, again):
            assert len(held) == sum(map(len, model.values()))
            for source, known in model.items():
                asked = [*known.values(), file(-1)]
                assert held.unconsumed({source: asked}) == ({source: (file(-1),)}, [])
                assert list(held.read_among(source, [a.path for a in asked])) == [True] * len(known) + [False]
        if putting_away and waiting and rng.random() < 0.6:
            gone = rng.sample(waiting, rng.randint(1, len(waiting)))
            log.gone("left", gone)
            waiting = [one for one in waiting if one not in gone]
            log.leaving["left"] = LeavingFiles(waiting)
            for one in gone:
                del model["left"][one.path]
                assert log.is_consumed("left", one) == "new"


def test_no_batch_writes_a_large_part_of_the_log_again(monkeypatch: pytest.MonkeyPatch) -> None:
    least, part, files = 32, positions._MOST_TABLES, 3000
    monkeypatch.setattr(positions, "_RECENT", 2)
    monkeypatch.setattr(positions, "_MERGED", least)
    store = MemoryStore()
    log, written, tables = PositionLog(store, Positions()), 0, 0
    for seq in range(1, files + 1):
        found = log.appended(Offer({"s": (file(seq),)}), seq, "a")
        new = sum(table.rows for table in found.log if table.batch == seq)
        assert new <= max(least, seq // part)
        written, tables = written + new, max(tables, len(found.log))
        log.accept(Offer({"s": (file(seq),)}), found)
    assert written < 4 * files
    assert tables < 6 * part
    again = PositionLog(store, log.positions)
    assert len(again) == files
    assert all(again.read_among("s", [file(seq).path for seq in range(1, files + 1)]))


def test_a_file_with_another_size_or_time_is_changed() -> None:
    log = PositionLog(MemoryStore(), Positions({"s": (file(1), file(2))}))
    assert log.is_consumed("s", file(1)) == "consumed"
    assert log.is_consumed("s", file(1, size=2)) == "changed"
    assert log.is_consumed("s", replace(file(1), mtime_ns=9)) == "changed"
    assert log.is_consumed("s", file(3)) == log.is_consumed("other", file(1)) == "new"
    fresh, changed = log.unconsumed({"s": [file(2, size=5), file(3)]})
    assert fresh == {"s": (file(3),)}
    assert [(one.source, one.consumed, one.current) for one in changed] == [("s", file(2), file(2, size=5))]


@pytest.mark.parametrize("wrong", ["names", "types", "nulls"])
def test_a_log_with_other_columns_is_damaged(wrong: str) -> None:
    store = MemoryStore()
    columns: dict[str, Any] = {"source": ["s"], "path": ["/in/1"], "size": [1], "mtime_ns": [1]}
    table = pa.table(columns if wrong != "nulls" else {**columns, "size": pa.array([None], pa.int64())})
    if wrong == "names":
        table = table.rename_columns(["source", "path", "size", "other"])
    if wrong == "types":
        table = table.set_column(2, "size", pa.array([1.0]))
    segment = write_segment(store, "files", table, (), 1, "a", area="positions")
    with pytest.raises(StateError, match="other columns") as refusal:
        PositionLog(store, Positions(log=(segment,)))
    assert refusal.value.code == DATA


def test_offsets_belong_to_their_reader() -> None:
    log = PositionLog(
        MemoryStore(), Positions(offsets={"a": SourceOffset(3, "embedded"), "b": SourceOffset(4, "embedded")})
    )
    found = log.appended(Offer(offsets={"a": 5}), 1, "x")
    assert found.offsets == {"a": SourceOffset(5, "embedded"), "b": SourceOffset(4, "embedded")}
    log.check_reader(Offer(offsets={"a": 5}))
    with pytest.raises(StateError, match="was read so far by 'embedded'") as refusal:
        log.check_reader(Offer(spark=SparkBatch("q", 1)))
    assert refusal.value.code == REPLAY


def test_a_file_is_as_found_by_size_and_time(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("rows")
    status = path.stat()
    found = SourceFile(str(path), status.st_size, status.st_mtime_ns)
    assert found.is_as_found()
    assert not replace(found, size=3).is_as_found()
    assert not replace(found, mtime_ns=3).is_as_found()
    assert not replace(found, path=str(tmp_path / "b")).is_as_found()
