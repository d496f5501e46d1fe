"""Syncs side by side: by threads that last from batch to batch, and end with the lock of the writer."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest

from tests.runtime.state.toy import exit_status
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.sync_threads import SyncThreads


def syncing() -> set[int | None]:
    return {thread.ident for thread in threading.enumerate() if thread.name.startswith("tidegate-sync")}


def commit(store: LocalStore, number: int) -> bool:
    """As a batch does: a file in haste, then one that makes both durable, which are three syncs."""
    path = f"packs/{number:010d}-a-{'0' * 32}.pack"
    store.write_bytes(path, b"rows", hasty=True)
    return store.create_exclusive(f"manifests/{number:010d}.json", b"data", after=[path])


def test_threads_last_from_batch_to_batch_and_end_with_the_lock(tmp_path: Path) -> None:
    before = syncing()
    store = LocalStore(tmp_path)
    lock = store.lock()
    seen = []
    for number in range(3):
        assert commit(store, number)
        seen.append(syncing() - before)
    assert seen[0]
    assert seen[0] <= seen[1] <= seen[2]
    lock.release()
    assert syncing() <= before
    again = store.lock()
    assert commit(store, 3)
    again.release()
    assert syncing() <= before


def test_without_syncs_there_are_no_threads(tmp_path: Path) -> None:
    before = syncing()
    store = LocalStore(tmp_path, sync=False)
    lock = store.lock()
    assert commit(store, 0)
    assert syncing() <= before
    lock.release()


def test_a_forked_process_syncs_in_threads_of_its_own(tmp_path: Path) -> None:
    store = LocalStore(tmp_path)
    lock = store.lock()
    assert commit(store, 0)
    child = os.fork()
    if child == 0:
        signal.alarm(60)  # who waits for threads of the parent waits for ever
        os._exit(0 if commit(store, 1) else 1)
    assert exit_status(child) == 0
    assert commit(store, 2)
    lock.release()


@pytest.mark.parametrize("failing", [0, 1])
def test_what_fails_is_raised_when_nothing_runs_any_more(failing: int) -> None:
    threads, failed, ended = SyncThreads(), threading.Event(), list[str]()

    def fails() -> None:
        failed.set()
        raise OSError("the disk is gone")

    def slow() -> None:
        failed.wait(60)
        ended.append("slow")

    both = [slow, fails] if failing else [fails, slow]
    with pytest.raises(OSError, match="the disk is gone"):
        threads.run(both)
    assert ended == ["slow"]
    threads.end()
