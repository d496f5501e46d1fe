"""Which files of a checkpoint go with a retired manifest, and which a sweep finds that nobody names; no other file
goes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.runtime.state.toy import BATCHES, Place, open_toy, source_files, step
from tidegate.runtime.state.failpoints import SimulatedCrash, crash
from tidegate.runtime.state.leftovers import Retained, delete_leftovers, delete_retired, named
from tidegate.runtime.state.manifest import Engine, Manifest, away_path, intent_path, manifest_path, marker_path
from tidegate.runtime.state.segments import Segment
from tidegate.runtime.state.store.interface import FileRef
from tidegate.runtime.state.store.memory import MemoryStore
from tidegate.runtime.state.store.packs import file_of

NOTES = (manifest_path, intent_path, marker_path, away_path)


def file(seq: int, number: int, area: str = "segments") -> str:
    return f"{area}/Orders/{seq:010d}-a-{number:032x}.parquet"


def pack(seq: int, number: int) -> str:
    return f"packs/{seq:010d}-a-{number:032x}.pack"


def retained(seq: int, *paths: str) -> Retained:
    """A manifest that names these."""
    segments = {"Orders": tuple(Segment(path, 1, 1, "", "", {}, seq, 0) for path in paths)}
    return Retained.of(Manifest(seq, "i", "a", "f", "m", 0, Engine("embedded", "1"), None, segments))


def store(*paths: str, notes: range = range(0)) -> MemoryStore:
    made = MemoryStore()
    made.files |= dict.fromkeys((*paths, *(note(seq) for seq in notes for note in NOTES)), b"")
    return made


def test_with_a_manifest_go_its_notes_and_the_files_that_only_it_names() -> None:
    """A pack stays as long as one part of it is named."""
    own, shared, later, other = file(2, 1), file(1, 2), file(3, 3), file(2, 9)
    dying, living = pack(2, 4), pack(2, 5)
    held = store(own, shared, later, other, dying, living, notes=range(1, 5))
    retired = retained(2, own, shared, f"{dying}@0-9", f"{living}@0-9")
    delete_retired(held, retired, [retained(3, shared, later, f"{living}@10-5"), retained(4, later)])
    assert set(held.files) == {
        shared, later, other, living, *(note(seq) for seq in (1, 3, 4) for note in NOTES),
    }  # fmt: skip


def test_a_crash_while_files_go_leaves_what_is_named() -> None:
    own, shared = file(2, 1), file(1, 2)
    held = store(own, shared, notes=range(2, 4))
    held.failpoints.arm("commit-during-gc", crash, skip=2)
    with pytest.raises(SimulatedCrash):
        delete_retired(held, retained(2, own, shared), [retained(3, shared)])
    assert not {manifest_path(2), intent_path(2)} & held.files.keys(), "two files went before it"
    assert {own, shared, marker_path(2), away_path(2)} <= held.files.keys()


@pytest.mark.parametrize("running", [False, True])
def test_a_sweep_finds_what_no_manifest_names(running: bool) -> None:
    """While a run goes on, files of the batch after the newest manifest are those of its attempt."""
    kept, old, same, attempt = file(4, 1), file(3, 2), file(5, 3), file(6, 4)
    leftovers = [
        old,
        same,
        pack(5, 1),
        *(file(5, 5, area) for area in ("kernel", "positions", "quarantine", "staging")),
    ]
    coming = [attempt, pack(6, 1)]
    temporary, foreign = f"tmp/tidegate-{7:032x}", "segments/Orders/notes.txt"
    held = store(kept, *leftovers, *coming, temporary, foreign, notes=range(2, 7))
    gone = {*leftovers, *([] if running else [*coming, temporary]), *(note(seq) for seq in (2, 3) for note in NOTES)}
    before = set(held.files)
    assert delete_leftovers(held, [retained(4, kept), retained(5, kept)], running=running) == len(gone)
    assert set(held.files) == before - gone
    assert delete_leftovers(held, [retained(4, kept), retained(5, kept)], running=running) == 0


def test_a_sweep_before_the_first_manifest() -> None:
    held = store(file(0, 1), file(1, 2), manifest_path(1), notes=range(1))
    assert delete_leftovers(held, [], running=True) == 1
    assert set(held.files) == {file(1, 2), manifest_path(1), *(note(0) for note in NOTES)}
    assert delete_leftovers(held, [], running=False) == 1
    assert set(held.files) == {manifest_path(1), *(note(0) for note in NOTES)}


def test_only_a_sweep_at_the_start_can_crash_as_one() -> None:
    for running in (True, False):
        held = store(file(1, 1), file(1, 2))
        held.failpoints.arm("recover-during-sweep", crash, skip=1)
        if running:
            assert delete_leftovers(held, [retained(3)], running=True) == 2
        else:
            with pytest.raises(SimulatedCrash):
                delete_leftovers(held, [retained(3)], running=False)
            assert len(held.files) == 1


def test_a_batch_goes_once_through_what_its_manifest_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked, state_files = Counter[int](), Manifest.state_files

    def counting(manifest: Manifest) -> Iterator[FileRef]:
        asked[manifest.seq] += 1
        return state_files(manifest)

    monkeypatch.setattr(Manifest, "state_files", counting)
    place = Place(tmp_path)
    with open_toy(place.store(), place) as checkpoint:
        for read in source_files():
            step(checkpoint, read)
        assert asked == dict.fromkeys(range(1, BATCHES + 1), 1)
        manifests = [kept.manifest for kept in checkpoint._retained]
        assert named(checkpoint._retained) == {file_of(one.path) for each in manifests for one in each.files()}
