"""What is not ours is never touched: files around, inside and behind links, byte for byte before and after."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.runtime.state.toy import BATCHES, Place, check_finished, open_toy, run, source_files, step
from tidegate.algebra.errors import InternalError
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.errors import FOREIGN, LOCATION, StateError
from tidegate.runtime.state.failpoints import FAILPOINTS, PUT_AWAY, SimulatedCrash, crash
from tidegate.runtime.state.manifest import AREAS, intent_path, manifest_path, marker_path
from tidegate.runtime.state.segments import new_path
from tidegate.runtime.state.shard_layout import Shard
from tidegate.runtime.state.store.interface import Store
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.own_files import TOP, is_copy, is_own

DIRECTORIES = sorted(TOP - {"meta.json", "lock"})
#: Names that a user may well give, and that are near to those of a checkpoint.
NAMES = (
    "notes.txt",
    "0000000001.json.bak",
    "0000000001-copy.json",
    "00000000001",
    "2026010100-sales-eu.parquet",
    "b/2026010100-sales.parquet",
    "b/0000000001-a-00000000000000000000000000000000.parquet.old",
    "b/deep/er/0000000001-a-00000000000000000000000000000000.parquet",
    "part-1.parquet",
    "part-0000000001-q-00000.parquet~",
    ".hidden",
    "000000.json.txt",
    "0123456789abcdef",
    "0000000001-a-00000000000000000000000000000000.pack.bak",
)


def foreign_tree(directory: Path) -> None:
    for number, name in enumerate(NAMES):
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"mine %d" % number)


def content(directory: Path) -> dict[str, bytes]:
    """Every file below a directory, and where links lead."""
    found = {}
    for top, below, names in os.walk(directory):
        for name in (*below, *names):
            path = Path(top) / name
            if path.is_symlink():
                found[str(path)] = os.fsencode(os.readlink(path))
            elif path.is_file():
                found[str(path)] = path.read_bytes()
    return found


def own_tree(directory: Path) -> None:
    """What another checkpoint of ours holds, of every form: behind a link it is foreign all the same."""
    for name in ("0000000000.json", "0000000001", "0" * 32, "b/given", "part-0000000001-q-00000.parquet"):
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_bytes(b"of another checkpoint")
    for seq in (0, 1, BATCHES, 99):
        path = directory / "b" / Path(new_path("segments", "b", seq, "a")).name
        path.write_bytes(b"of another checkpoint")


@pytest.fixture
def checkpoint(local: Place) -> Path:
    assert local.directory is not None
    return local.directory / "checkpoint"


def refused(call: Callable[[], object], code: str = FOREIGN) -> StateError:
    with pytest.raises(StateError) as caught:
        call()
    assert caught.value.code == code
    assert caught.value.hint
    return caught.value


def test_names_of_users_are_not_of_our_form() -> None:
    for area in DIRECTORIES:
        assert not [name for name in NAMES if is_own(f"{area}/{name}")]
    assert not is_own("notes.txt")
    long = "q" * 60
    for name in (f"part-0000000001-{long}-00000.parquet", f"part-0000000001-to-0000000004-{long}-00000.parquet"):
        assert is_own(f"results/q/{name}")
        for copy in (f".{name}.{'0' * 32}.tmp", f".{name}.tmp"):
            assert is_own(f"results/q/{copy}")
            assert is_copy(copy)
            assert not is_copy(copy[1:])
    assert is_own("meta.json")


@pytest.mark.parametrize(
    "failpoint", sorted(set(FAILPOINTS) - PUT_AWAY - {"recover-before-publish", "open-before-meta", "open-after-meta"})
)
def test_files_of_others_inside_survive_a_crash_anywhere(
    local: Place, checkpoint: Path, failpoint: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In every directory of a checkpoint and in that of results, over crashes, recoveries and sweeps; results as
    without them.
    """
    link = os.link

    def another_file_system(source: Path, target: Path) -> None:
        if "out" in Path(target).parts:
            raise OSError(errno.EXDEV, "other file system")
        link(source, target)

    if failpoint == "store-publish-copied":
        monkeypatch.setattr(os, "link", another_file_system)
    run(local.store(), local, 1)
    for area in DIRECTORIES:
        foreign_tree(checkpoint / area)
    foreign_tree(checkpoint / "mine")
    (checkpoint / "mine" / "link").symlink_to(checkpoint / "segments")
    others = content(checkpoint)
    theirs = {path: data for path, data in others.items() if data.startswith(b"mine ") or Path(path).is_symlink()}
    (Path(local.output) / "notes.txt").write_bytes(b"mine")
    store = local.store()
    before = "commit-before-manifest" if failpoint == "recover-during-sweep" else None
    for name in [before, failpoint] if before else [failpoint]:
        store.failpoints.arm(name, crash)
        with pytest.raises(SimulatedCrash):
            run(store, local)
        store = local.store()
    run(local.store(), local)
    run(local.store(), local)
    found = content(checkpoint)
    assert {path: found.get(path) for path in theirs} == theirs
    notes = Path(local.output) / "notes.txt"
    assert notes.read_bytes() == b"mine"
    notes.unlink()
    check_finished(local)


@pytest.mark.parametrize(
    "path",
    [
        "tmp/notes.txt",
        "tmp/d41d8cd98f00b204e9800998ecf8427e",
        "tmp/deep/notes.txt",
        "tmp",
        "spark/notes.txt",
        "spark",
        "notes.txt",
        "spark/metadata",
        "spark/offsets/0",
        "spark/offsets/a",
        "spark/state/0/notes.txt",
        "spark/state/0/1/mine.delta",
    ],
)
def test_a_directory_of_others_is_no_empty_one(local: Place, checkpoint: Path, path: str) -> None:
    mine = checkpoint / path
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"mine")
    before = content(checkpoint)
    told = refused(lambda: run(local.store(), local), LOCATION).message
    assert (path if path.startswith("tmp") else f"'{path.partition('/')[0]}'") in told
    assert content(checkpoint) == before


def test_what_a_start_left_that_never_came_to_its_end_is_no_obstacle(local: Place, checkpoint: Path) -> None:
    store = local.store()
    store.failpoints.arm("store-file-written", crash)
    with pytest.raises(SimulatedCrash):
        run(store, local)
    assert sorted(path.name for path in checkpoint.iterdir()) == ["lock", "tmp"]
    run(local.store(), local)
    check_finished(local)


_UUID = "0a1b2c3d-0000-1111-2222-333344445555"


@pytest.mark.parametrize(
    ("path", "own"),
    [
        ("spark/state/0/1/3.delta", True),
        ("spark/state/0/1/.3.delta.crc", True),
        (f"spark/state/0/1/..3.delta.{_UUID}.TID4.tmp.crc", True),
        ("spark/state/0/1/left-keyToNumValues/_metadata/schema", True),
        (f"spark/state/0/1/SSTs/.000009-{_UUID}.sst.crc", True),
        (f"spark/state/0/1/3_{_UUID}.zip", True),
        ("spark/state/0/_metadata/v2/3", True),
        ("spark/state/0/1/notes.txt", False),
        ("spark/state/3.delta", False),
        (f"inputs/a/rows/_temporary/0/_temporary/attempt_2026_0001_m_000000_1/part-00000-{_UUID}-c000.parquet", True),
        (f"inputs/a/rows/_temporary/0/task_2026_0001_m_000000/.part-00000-{_UUID}-c000.parquet.crc", True),
        ("inputs/a/rows/_temporary/notes.txt", False),
        (f"inputs/a/rows/mine/part-00000-{_UUID}-c000.parquet", False),
    ],
)
def test_of_what_spark_writes_only_names_of_its_own_form_are_taken_for_its_files(path: str, *, own: bool) -> None:
    assert is_own(path) is own


@pytest.mark.parametrize("text", [b"mine", b"process" * 100, b"\0" * 1000])
def test_a_lock_that_is_not_ours_is_not_written_over(local: Place, checkpoint: Path, text: bytes) -> None:
    checkpoint.mkdir()
    (checkpoint / "lock").write_bytes(text)
    assert "lock" in refused(lambda: run(local.store(), local)).message
    assert (checkpoint / "lock").read_bytes() == text
    (checkpoint / "lock").write_bytes(b"")
    run(local.store(), local)
    (checkpoint / "lock").write_bytes(text)
    refused(lambda: run(local.store(), local))
    assert (checkpoint / "lock").read_bytes() == text
    (checkpoint / "lock").unlink()
    os.mkfifo(checkpoint / "lock")
    refused(lambda: run(local.store(), local))


@pytest.mark.parametrize("begun", [0, 2])
@pytest.mark.parametrize("area", [*AREAS, "manifests", "intents", "published", "tmp", "quarantine"])
def test_a_directory_behind_a_link_is_refused(local: Place, checkpoint: Path, area: str, begun: int) -> None:
    """At a start and in the middle of a run, whatever is behind it."""
    assert local.directory is not None
    others = local.directory / "others"
    own_tree(others)
    foreign_tree(others)
    before = content(others)
    checkpoint.mkdir()
    if begun:
        run(local.store(), local, begun)
        if (checkpoint / area).exists():
            shutil.rmtree(checkpoint / area)
    (checkpoint / area).symlink_to(others)
    if begun or area == "tmp":
        assert f"{area} is a link" in refused(lambda: run(local.store(), local)).message
    else:
        with pytest.raises(StateError, match=area):
            run(local.store(), local)
    assert content(others) == before
    (checkpoint / area).unlink()
    shutil.rmtree(checkpoint)
    shutil.rmtree(local.output, ignore_errors=True)
    with open_toy(local.store(), local) as running:
        for file in source_files(2):
            step(running, file)
        if (checkpoint / area).exists():
            shutil.rmtree(checkpoint / area)
        (checkpoint / area).symlink_to(others)
        error = refused(lambda: [step(running, file) for file in source_files(66)[2:]])
        assert f"{area} is a link" in error.message
    assert content(others) == before


@pytest.mark.parametrize(
    "path", ["meta.json", "lock", manifest_path(2), intent_path(3), marker_path(2), marker_path(3)]
)
def test_a_file_behind_a_link_is_refused(local: Place, checkpoint: Path, path: str) -> None:
    """Also where it leads nowhere, and where it leads to the file that was there."""
    assert local.directory is not None
    run(local.store(), local, 2)
    whole, others = content(checkpoint), local.directory / "others"
    others.mkdir()
    for text in (b"mine", None, whole.get(str(checkpoint / path), b"")):
        shutil.rmtree(others)
        others.mkdir()
        if text is not None:
            (others / "file").write_bytes(text)
        (checkpoint / path).unlink(missing_ok=True)
        (checkpoint / path).symlink_to(others / "file")
        before = content(others)
        assert f"{path} is a link" in refused(lambda: run(local.store(), local)).message
        assert content(others) == before
        (checkpoint / path).unlink()
        for name, data in whole.items():
            Path(name).write_bytes(data)


def test_a_segment_behind_a_link_is_refused(local: Place, checkpoint: Path) -> None:
    assert local.directory is not None
    run(local.store(), local, 2)
    manifest = inspect(local.store()).manifest
    assert manifest is not None
    path = next(manifest.state_files()).path
    moved = (checkpoint / path).rename(local.directory / "moved")
    (checkpoint / path).symlink_to(moved)
    before = moved.read_bytes()
    assert f"{path} is a link" in refused(lambda: run(local.store(), local)).message
    assert moved.read_bytes() == before


@pytest.mark.parametrize("copied", [False, True])
@pytest.mark.parametrize("temporary", [False, True])
def test_a_link_in_the_place_of_a_result_is_refused(
    local: Place, monkeypatch: pytest.MonkeyPatch, *, temporary: bool, copied: bool
) -> None:
    """One with the name of a copy is in nobody's way: each writer makes a copy of its own."""
    assert local.directory is not None
    others = local.directory / "others"
    others.mkdir()
    (others / "file").write_bytes(b"mine")
    link = os.link

    def another_file_system(source: Path, target: Path) -> None:
        if copied and "out" in Path(target).parts:
            raise OSError(errno.EXDEV, "other file system")
        link(source, target)

    monkeypatch.setattr(os, "link", another_file_system)
    name = "part-0000000002-q-00000.parquet"
    name = f".{name}.tmp" if temporary else name
    for target in (others / "file", others / "none"):
        run(local.store(), local, 1)
        (Path(local.output) / name).symlink_to(target)
        if temporary:
            run(local.store(), local)
        else:
            assert name in refused(lambda: run(local.store(), local)).message
        assert content(others) == {str(others / "file"): b"mine"}
        (Path(local.output) / name).unlink()
        run(local.store(), local)
        check_finished(local)
        local.clear()


def test_the_directories_that_a_user_names_may_be_links(local: Place) -> None:
    assert local.directory is not None
    for name in ("checkpoint", "out"):
        (local.directory / f"real {name}").mkdir()
        (local.directory / name).symlink_to(local.directory / f"real {name}")
    run(local.store(), local)
    check_finished(local)
    assert (local.directory / "real checkpoint" / "meta.json").is_file()


USES: dict[str, Callable[[LocalStore, str], object]] = {
    "read_bytes": LocalStore.read_bytes,
    "write_bytes": lambda store, path: store.write_bytes(path, b"x"),
    "create_exclusive": lambda store, path: store.create_exclusive(path, b"x"),
    "note": LocalStore.note,
    "write_table": lambda store, path: store.write_table(path, pa.table({"a": [1]})),
    "read_table": LocalStore.read_table,
    "read_shard": lambda store, path: store.read_shard(path, Shard("a", "h", 0, 1)),
    "list_files": lambda store, path: store.list_files(path.partition("/")[0]),
    "list_all_files": lambda store, path: store.list_files(""),
    "foreign_files": lambda store, path: store.foreign_files(path.partition("/")[0]),
    "delete_all": lambda store, path: store.delete_all(path.partition("/")[0]),
    "delete": LocalStore.delete,
    "exists": LocalStore.exists,
    "size": LocalStore.size,
    "checksum": LocalStore.checksum,
    "sync": LocalStore.sync,
    "appear after": lambda store, path: store.create_exclusive("manifests/0000000001.json", b"x", after=[path]),
    "read_pieces": lambda store, path: list(store.read_pieces(path, 1)),
    "settled": LocalStore.settled,
    "publish": lambda store, path: store.publish([(path, "results/s/part-0000000001-s-00000.parquet")]),
    "publish inside": lambda store, path: store.publish([(f"staging/a/{Path(path).name}", path)]),
    "target_size": LocalStore.target_size,
    "local_path": LocalStore.local_path,
}
#: Operations that are given no path of a file of the checkpoint: the names at its top, those of a directory of results,
#: which may be a link, and the lock.
WITHOUT_PATH = {"names", "target_names", "lock"}


def test_every_operation_of_a_store_is_among_those_that_are_tried_on_links() -> None:
    operations = {name for name, value in vars(Store).items() if callable(value) and not name.startswith("_")}
    assert {"read_bytes", "read_shard"} < operations
    assert operations - WITHOUT_PATH <= USES.keys()
    assert operations >= WITHOUT_PATH


@pytest.mark.parametrize("use", sorted(USES))
@pytest.mark.parametrize("linked", ["segments", "segments/b", "file"])
def test_no_operation_follows_a_link(tmp_path: Path, use: str, linked: str) -> None:
    path, others = new_path("segments", "b", 1, "a"), tmp_path / "others"
    behind = others / Path(path).relative_to("segments" if linked == "segments" else "segments/b")
    behind.parent.mkdir(parents=True)
    behind.write_bytes(b"mine")
    store = LocalStore(tmp_path / "state", sync=False)
    store.write_bytes(f"staging/a/{Path(path).name}", b"staged")
    place = Path(store.where) / (path if linked == "file" else linked)
    place.parent.mkdir(parents=True, exist_ok=True)
    place.symlink_to(behind if linked == "file" else others)
    before = content(tmp_path)
    refused(lambda: USES[use](store, path))
    assert content(tmp_path) == before


@pytest.mark.parametrize("path", [f"{area}/{name}" for area in ("segments", "tmp", "manifests") for name in NAMES[:3]])
def test_nothing_else_can_be_deleted(place: Place, path: str) -> None:
    store = place.store()
    store.write_bytes(path, b"mine")
    with pytest.raises(InternalError, match="not deleted"):
        store.delete(path)
    assert store.read_bytes(path) == b"mine"
    assert store.list_files(path.partition("/")[0]) == []
    assert store.foreign_files(path.partition("/")[0]) == [path]
