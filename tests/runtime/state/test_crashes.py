"""A crash at any named point, any number of times, changes neither state nor results."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from tests.runtime.state.toy import (
    BATCHES,
    ROWS,
    Place,
    check_finished,
    exit_status,
    expected_results,
    open_toy,
    run,
    source_files,
    step,
)
from tidegate.runtime.state.checkpoint import Checkpoint, inspect
from tidegate.runtime.state.errors import STORAGE, StateError
from tidegate.runtime.state.failpoints import (
    COMMITTED,
    FAILPOINTS,
    PUT_AWAY,
    SimulatedCrash,
    crash,
    disk_full,
    exit_hard,
)
from tidegate.runtime.state.manifest import decode_manifest, marker_path
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.packs import file_of

# reached only in recovery after a crash, when publishing to another file system, or where files are put away
ELSEWHERE = {"recover-before-publish", "recover-during-sweep", "store-publish-copied", *PUT_AWAY}
# no commit ever depends on what follows: a failing deletion is left to the next sweep
TOLERATED = {"commit-during-gc"}


def passings(place: Place) -> dict[str, int]:
    store = place.store()
    store.failpoints.record()
    run(store, place)
    assert store.failpoints.passed is not None
    return store.failpoints.passed


def test_undisturbed(place: Place) -> None:
    passed = passings(place)
    assert set(FAILPOINTS) - set(passed) <= ELSEWHERE
    check_finished(place)
    before = place.store().list_files("")
    run(place.store(), place)
    assert place.store().list_files("") == before
    check_finished(place)


@pytest.mark.parametrize("name", sorted(set(FAILPOINTS) - ELSEWHERE))
def test_crash_then_reopen(place: Place, name: str) -> None:
    crashes = 0
    for skip in (0, 1, 2, 7, 11):
        place.clear()
        store = place.store()
        store.failpoints.arm(name, crash, skip=skip)
        try:
            run(store, place)
        except SimulatedCrash:
            crashes += 1
            seen = place.results()
            assert seen == expected_results()[: len(seen)]
            assert len(seen) % ROWS == 0
        run(place.store(), place)
        check_finished(place)
    assert crashes


def test_crash_while_publishing_to_another_file_system(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    link = os.link

    def link_here(source: Path, target: Path) -> None:
        if "out" in target.parts:
            raise OSError(errno.EXDEV, "other file system")
        link(source, target)

    monkeypatch.setattr(os, "link", link_here)
    for name in ("store-publish-copied", "store-publish-linked"):
        for skip in (0, 1, 4):
            local.clear()
            store = local.store()
            store.failpoints.arm(name, crash, skip=skip)
            with pytest.raises(SimulatedCrash):
                run(store, local)
            run(local.store(), local)
            check_finished(local)
            assert not list(Path(local.output).glob(".*"))


@pytest.mark.parametrize("name", sorted(n for n in FAILPOINTS if n.startswith(("batch", "commit"))))
def test_state_is_before_or_after(place: Place, name: str) -> None:
    files = source_files()
    run(place.store(), place, 3)
    before = inspect(place.store()).manifest
    store = place.store()
    with open_toy(store, place) as checkpoint:
        store.failpoints.arm(name, crash)
        with pytest.raises(SimulatedCrash):
            step(checkpoint, files[3])
    after = inspect(place.store()).manifest
    assert before is not None
    assert after is not None
    if name in COMMITTED:
        assert after.seq == 4
    else:
        assert after == before
        assert place.results() == expected_results(3)
    with open_toy(place.store(), place) as checkpoint:
        assert checkpoint.manifest == after
        assert place.results() == expected_results(after.seq)


@pytest.mark.parametrize("name", sorted(set(FAILPOINTS) - ELSEWHERE - {"open-before-meta", "open-after-meta"}))
def test_full_disk(place: Place, name: str) -> None:
    store = place.store()
    checkpoint = open_toy(store, place)
    step(checkpoint, source_files()[0])
    store.failpoints.arm(name, disk_full)
    if name.startswith("recover"):
        checkpoint.close()
        with pytest.raises(OSError, match="No space"):
            open_toy(store, place)
    else:
        refusal = read_on(checkpoint)
        assert (refusal is None) == (name in TOLERATED)
        assert isinstance(refusal, StateError) or not name.startswith("store")
        if isinstance(refusal, StateError):
            assert refusal.code == STORAGE
            assert "free some space" in refusal.hint
        checkpoint.close()
    run(place.store(), place)
    check_finished(place)


def read_on(checkpoint: Checkpoint) -> Exception | None:
    try:
        for file in source_files()[1:]:
            step(checkpoint, file)
    except (StateError, OSError) as error:
        return error
    return None


def test_crash_in_recovery_three_deep(place: Place) -> None:
    store = place.store()
    store.failpoints.arm("commit-after-manifest", crash, skip=2)
    with pytest.raises(SimulatedCrash):
        run(store, place)
    for name in ("recover-before-publish", "store-publish-linked", "commit-before-marker", "recover-before-sweep"):
        store = place.store()
        store.failpoints.arm(name, crash)
        with pytest.raises(SimulatedCrash):
            open_toy(store, place)
    run(place.store(), place)
    check_finished(place)


def test_crash_in_sweep(place: Place) -> None:
    store = place.store()
    store.failpoints.arm("commit-before-manifest", crash, skip=1)
    with pytest.raises(SimulatedCrash):
        run(store, place)
    for _ in range(2):
        store = place.store()
        store.failpoints.arm("recover-during-sweep", crash, skip=1)
        with pytest.raises(SimulatedCrash):
            open_toy(store, place)
    run(place.store(), place)
    check_finished(place)


@pytest.mark.parametrize(
    "name",
    [
        "store-file-written",
        "store-exclusive-linked",
        "commit-after-manifest",
        "store-publish-linked",
        "commit-during-gc",
    ],
)
@pytest.mark.parametrize("skip", [0, 5, 13])
def test_process_dies(local: Place, name: str, skip: int) -> None:
    """The real thing: the process exits, its lock goes with it, nothing is tidied up."""
    child = os.fork()
    if child == 0:
        store = local.store()
        store.failpoints.arm(name, exit_hard, skip=skip)
        run(store, local)
        os._exit(0)
    assert exit_status(child) in (0, 137)
    run(local.store(), local)
    check_finished(local)


def test_published_file_taken_away(place: Place) -> None:
    """Whoever consumed a published file may remove it: the note of publication keeps it from being missed."""
    run(place.store(), place)
    place.take_results()
    run(place.store(), place)
    assert place.results() == []


def test_output_lost(place: Place) -> None:
    run(place.store(), place)
    store = place.store()
    store.delete(marker_path(BATCHES))
    place.take_results()
    with pytest.raises(StateError, match="TG508") as caught:
        open_toy(store, place)
    store.create_exclusive(marker_path(BATCHES), b"")
    assert marker_path(BATCHES) in caught.value.hint
    open_toy(place.store(), place).close()


def test_all_is_durable_before_it_counts(local: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every file that a manifest names, its directory and the directories above are synced before the manifest
    appears.
    """
    contents: set[Path] = set()
    entries: set[Path] = set()
    fsync, link = os.fsync, os.link
    root = Path(local.store().where)
    commits = 0

    def recording_fsync(descriptor: int) -> None:
        fsync(descriptor)
        path = Path(f"/proc/self/fd/{descriptor}").readlink()
        if path.is_dir():
            entries.update(path.iterdir())
        else:
            contents.add(path)

    def checking_link(source: Path, target: Path) -> None:
        nonlocal commits
        if target.parent.name == "manifests":
            for file in decode_manifest(source.read_bytes(), int(target.stem)).files():
                path = root / file_of(file.path)
                assert path in contents
                assert {path, *path.parents[: len(path.relative_to(root).parts)]} <= entries
            assert source in contents
            commits += 1
        if target.parent.name == "out":
            assert root / "manifests" / f"{target.name[5:15]}.json" in entries
        link(source, target)

    monkeypatch.setattr(os, "fsync", recording_fsync)
    monkeypatch.setattr(os, "link", checking_link)
    store = LocalStore(root)
    with open_toy(store, local) as checkpoint:
        for file in source_files():
            step(checkpoint, file)
            assert set(Path(local.output).iterdir()) <= entries
    assert commits == BATCHES
