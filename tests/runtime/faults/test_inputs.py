"""Bounded inputs and static tables that the Spark engine keeps as files: durable before they count, whole or
refused.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.runtime.faults.scenarios import NAMES, static_join
from tests.runtime.state.toy import damage_kinds
from tidegate.runtime.connectors.sources import Files, Source
from tidegate.runtime.engines.setup import Setup, prepare
from tidegate.runtime.engines.spark.input.bounded import bounded_inputs, stored_statics
from tidegate.runtime.state.errors import DATA, StateError
from tidegate.runtime.state.store.local import LocalStore

ROWS = [(1, 5, 0), (2, 6, 1)]


def opened(place: Path) -> tuple[Setup, LocalStore]:
    store = LocalStore(place)
    setup = prepare(static_join().facts, store, {"E": Source(ROWS)}, {"N": NAMES}, {})
    setup.checkpoint.close()
    return setup, store


def test_rows_are_durable_before_they_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The files, their directory and those above are synced before the document that says they are complete."""
    contents: set[Path] = set()
    entries: set[Path] = set()
    fsync, link = os.fsync, os.link
    completed = 0

    def recording_fsync(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            entries.update(path.iterdir())
        else:
            contents.add(path)

    def checking_link(source: Path, target: Path) -> None:
        nonlocal completed
        if target.name == "complete":
            rows = target.parent / "rows" / "rows.parquet"
            assert {rows, source} <= contents
            assert {rows, rows.parent, target.parent, target.parent.parent} <= entries
            completed += 1
        link(source, target)

    setup, store = opened(tmp_path / "state")
    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(os, "link", checking_link)
    made = bounded_inputs(setup, store)["E"]
    assert completed == 1
    assert isinstance(made.data, Files)
    assert made.bounded
    assert [Path(file.path).name for file in made.data.found()] == ["rows.parquet"]
    assert tmp_path / "state" / "inputs" / "E" / "complete" in entries


@pytest.mark.parametrize("file", ["complete", "rows/rows.parquet"])
@pytest.mark.parametrize("kind", sorted(damage_kinds()))
def test_damaged_rows_are_refused(tmp_path: Path, kind: str, file: str) -> None:
    setup, store = opened(tmp_path)
    bounded_inputs(setup, store)
    path = tmp_path / "inputs" / "E" / file
    whole, damaged = path.read_bytes(), damage_kinds()[kind](path.read_bytes())
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    if file == "complete" and kind == "removed":  # as after a crash while they were written: written again
        bounded_inputs(setup, store)
        assert path.read_bytes() == whole
        return
    with pytest.raises(StateError, match=f"inputs/E/{file}") as caught:
        bounded_inputs(setup, store)
    assert caught.value.code == DATA
    assert caught.value.hint


def test_a_file_that_was_put_beside_the_rows_is_refused(tmp_path: Path) -> None:
    setup, store = opened(tmp_path)
    bounded_inputs(setup, store)
    rows = tmp_path / "inputs" / "E" / "rows" / "rows.parquet"
    rows.with_name("more.parquet").write_bytes(rows.read_bytes())
    with pytest.raises(StateError, match=r"more\.parquet .* was not there"):
        bounded_inputs(setup, store)


@pytest.mark.parametrize("kind", sorted(damage_kinds()))
def test_damaged_static_tables_are_written_anew(tmp_path: Path, kind: str) -> None:
    setup, store = opened(tmp_path)
    path = Path(stored_statics(setup, store)["N"])
    whole, damaged = path.read_bytes(), damage_kinds()[kind](path.read_bytes())
    path.unlink()
    if damaged is not None:
        path.write_bytes(damaged)
    assert stored_statics(setup, store) == {"N": str(path)}
    assert path.read_bytes() == whole
    assert [file.name for file in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(("number", "hint"), [(errno.ENOSPC, "free some space"), (errno.EROFS, "writable")])
def test_a_disk_that_takes_nothing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, hint: str
) -> None:
    """A refusal; what was begun is written again by the next start."""
    setup, store = opened(tmp_path)

    def failing(_: object, path: str | Path) -> None:
        Path(path).write_bytes(b"PAR")
        raise OSError(number, os.strerror(number), str(path))

    with monkeypatch.context() as full:
        full.setattr("tidegate.runtime.engines.spark.input.bounded.pq.write_table", failing)
        for write in (lambda: bounded_inputs(setup, store), lambda: stored_statics(setup, store)):
            with pytest.raises(StateError, match="TG509") as caught:
                write()
            assert hint in caught.value.hint
    assert Path(stored_statics(setup, store)["N"]).stat().st_size > 3
    made = bounded_inputs(setup, store)["E"].data
    assert isinstance(made, Files)
    assert [Path(file.path).stat().st_size > 3 for file in made.found()] == [True]
