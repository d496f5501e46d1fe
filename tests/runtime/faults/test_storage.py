"""Disks that are full, read-only, failing or slow: a refusal that says so, and a restart as if nothing had happened."""

from __future__ import annotations

import errno
import itertools
import threading
from pathlib import Path

import pyarrow as pa
import pytest

from tests.runtime.faults.faulty import READS, WRITES, Fails, FaultyStore, is_example
from tests.runtime.faults.scenarios import MAKERS, Scenario, again, go_on, outcome, scenario, undisturbed
from tests.shards import cases
from tidegate.algebra.errors import TidegateError
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.errors import STORAGE, WRITER, StateError
from tidegate.runtime.state.segments import write_segment
from tidegate.runtime.state.store.interface import Lock, Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.memory import MemoryStore

HINTS = {
    errno.ENOSPC: "free some space",
    errno.EROFS: "writable",
    errno.EACCES: "writable",
    errno.EIO: "when the file system works again",
}
NAME = "chain of queries"
#: What collecting garbage asks of a store.
COLLECTING = {"delete", "exists", "list_files"}


def uses(name: str, operation: str) -> int:
    counting = Fails(operation, errno.EIO, skip=10**9)
    go_on(scenario(name), FaultyStore(MemoryStore(), counting))
    return counting.uses


def refusal(one: Scenario, store: Store) -> TidegateError | None:
    try:
        go_on(one, store)
    except TidegateError as error:
        return error
    return None


def check_then_go_on(name: str, store: Store, fails: Fails) -> None:
    """What the failing disk led to is a refusal with a hint (or nothing, if no commit depends on it)."""
    found = refusal(scenario(name), FaultyStore(store, fails))
    if found is None:
        # Collecting garbage follows a commit: where it fails once, what stays behind is collected later.
        # A warning that can read no rejected row of the batch is one without an example.
        collecting = fails.operation in (COLLECTING if fails.once else {"delete"})
        assert collecting or all(map(is_example, fails.paths))
    else:
        assert isinstance(found, StateError)
        assert found.code == STORAGE
        assert HINTS[fails.number] in found.hint
    go_on(scenario(name), again(store))
    assert outcome(scenario(name), store) == undisturbed(name)


def is_quick(operation: str, number: int) -> bool:
    """Whether `make test` has it: the error is the same to all operations, but for its hint."""
    return number == errno.EIO or operation == "write_table"


@pytest.mark.parametrize(
    ("operation", "number"), cases(itertools.product([*WRITES, *READS, "lock"], sorted(HINTS)), is_quick)
)
def test_a_disk_that_fails(operation: str, number: int) -> None:
    """Each operation of the store, from the first, a middle and the last use on: a refusal, then the same results."""
    count = uses(NAME, operation)
    for skip in sorted({0, count // 2, max(0, count - 1)}):
        check_then_go_on(NAME, MemoryStore(), Fails(operation, number, skip))
    begun = MemoryStore()
    go_on(scenario(NAME), begun, until=3)
    check_then_go_on(NAME, again(begun), Fails(operation, number))


def test_a_full_disk_is_told_with_the_place(tmp_path: Path) -> None:
    store = FaultyStore(LocalStore(tmp_path, sync=False), Fails("write_table", errno.ENOSPC))
    with pytest.raises(StateError, match=f"^TG509 writing segments/.* in {tmp_path}: .*No space left"):
        write_segment(store, "A#0", pa.table({"n": [1]}), [], 1, "a")


@pytest.mark.long
@pytest.mark.parametrize("operation", [*WRITES, *READS, "lock"])
@pytest.mark.parametrize("name", sorted(MAKERS))
def test_a_disk_that_fails_once_at_any_use(name: str, operation: str, tmp_path: Path) -> None:
    for skip in range(0, uses(name, operation), 5):
        store = LocalStore(tmp_path / str(skip), sync=False)
        check_then_go_on(name, store, Fails(operation, errno.ENOSPC, skip, once=True))


def test_a_disk_that_fills_up_again_and_again() -> None:
    """Each start gets a little further; nothing is lost on the way, and nothing comes twice."""
    store = MemoryStore()
    for _ in range(200):
        if refusal(scenario(NAME), FaultyStore(again(store), Fails("write_table", errno.ENOSPC, 20))) is None:
            break
    else:
        raise AssertionError("the run never came to its end")
    assert outcome(scenario(NAME), store) == undisturbed(NAME)


class Waits:
    """Holds up one operation until it is let go; says when it is being waited for."""

    def __init__(self, operation: str) -> None:
        self.operation = operation
        self.waiting, self.go = threading.Event(), threading.Event()

    def __call__(self, operation: str, path: str) -> None:
        if operation == self.operation and not self.go.is_set():
            self.waiting.set()
            assert self.go.wait(60)


@pytest.mark.parametrize("operation", ["create_exclusive", "publish", "write_table"])
def test_a_slow_disk_shows_nothing_half_done_and_keeps_other_writers_out(tmp_path: Path, operation: str) -> None:
    """While a commit, a rename or a write hangs: readers see the batch before, and a second writer is refused."""
    one = scenario(NAME)
    place = LocalStore(tmp_path / "state", sync=False)
    place.packs = False  # so few results would wait in packs
    go_on(one, place, until=2)
    before = inspect(place).manifest
    shown = {path: place.read_bytes(path) for path in place.list_files("results")}
    slow = Waits(operation)
    failures: list[BaseException] = []

    def run() -> None:
        store = LocalStore(place.where, sync=False)
        store.packs = False
        try:
            go_on(one, FaultyStore(store, slow))
        except BaseException as error:  # noqa: BLE001  # told by the test's own thread
            failures.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert slow.waiting.wait(60)
        seen = inspect(LocalStore(place.where)).manifest
        assert seen == before or (operation == "publish" and seen is not None and seen.seq == 3)
        assert {path: place.read_bytes(path) for path in place.list_files("results")} == shown
        with pytest.raises(StateError, match="another run writes") as caught:
            go_on(one, LocalStore(place.where, sync=False))
        assert caught.value.code == WRITER
    finally:
        slow.go.set()
        thread.join()
    assert not failures
    assert outcome(one, place) == undisturbed(NAME)


class Lockless:
    """A file system without locks, as seen by two processes at once."""

    guaranteed = False

    def held(self) -> bool:
        return True

    def release(self) -> None:
        """Nothing is held."""


class WithoutLocks(FaultyStore):
    def lock(self) -> Lock:
        return Lockless()


@pytest.mark.parametrize("operation", ["write_table", "create_exclusive", "publish"])
@pytest.mark.parametrize(
    "skip", [0, pytest.param(1, marks=pytest.mark.long), 4, pytest.param(9, marks=pytest.mark.long)]
)
def test_a_second_writer_where_no_lock_keeps_it_out(operation: str, skip: int) -> None:
    """It takes over in the middle of a batch of the first: each batch counts once, and the first one is told."""
    store = MemoryStore()
    taken: list[bool] = []
    uses = 0

    def take_over(done: str, _: str) -> None:
        nonlocal uses
        uses += done == operation
        if not taken and uses > skip:
            taken.append(True)
            go_on(scenario(NAME), WithoutLocks(store, lambda *_: None))

    found = refusal(scenario(NAME), WithoutLocks(store, take_over))
    assert taken
    if skip or operation != "create_exclusive":  # else it finds a finished run before it did anything
        assert found is not None
        assert found.hint
    go_on(scenario(NAME), again(store))
    assert outcome(scenario(NAME), store) == undisturbed(NAME)
