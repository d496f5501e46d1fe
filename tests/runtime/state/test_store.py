"""The store's contract, the same in memory and in a directory."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from functools import partial
from pathlib import Path
from typing import BinaryIO

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.runtime.state.toy import Place, exit_status
from tidegate.runtime.state.errors import LOCATION, OUTPUT, STORAGE, WRITER, StateError, storage_errors
from tidegate.runtime.state.failpoints import SimulatedCrash, crash, disk_full
from tidegate.runtime.state.store import local
from tidegate.runtime.state.store.interface import FileRef
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.paths import local_directory, slug

STATE = f"kernel/x/0000000001-a-{'0' * 32}.parquet"
TABLE = pa.table({"t": pa.array([3, 1, 2], pa.int64()), "a.b": ["x", None, "ü"], "a": [1.5, 2.5, None]})


def test_bytes(place: Place) -> None:
    store = place.store()
    file = store.write_bytes(STATE, b"123456789")
    assert file == FileRef(STATE, 9, "crc32:cbf43926")  # the check value of CRC-32
    assert store.read_bytes(STATE) == b"123456789"
    assert store.size(file.path) == 9
    assert store.checksum(file.path) == file.checksum
    assert store.exists(STATE)
    with pytest.raises(FileExistsError):
        store.write_bytes(STATE, b"other")
    assert store.read_bytes(STATE) == b"123456789"
    store.delete(STATE)
    store.delete(STATE)
    assert not store.exists(STATE)
    for read in (store.read_bytes, store.size, store.checksum, store.read_table):
        with pytest.raises(FileNotFoundError):
            read(STATE)


def test_table(place: Place) -> None:
    store = place.store()
    file = store.write_table("segments/b/1.parquet", TABLE)
    assert store.read_table(file.path).equals(TABLE)
    assert store.size(file.path) == file.bytes
    assert store.checksum(file.path) == file.checksum
    assert store.read_table(file.path, ["a.b", "t"]).equals(TABLE.select(["a.b", "t"]))
    assert store.read_table(file.path, ["a"]).equals(TABLE.select(["a"]))
    assert store.read_table(file.path, []).num_rows == 3
    with pytest.raises(FileExistsError):
        store.write_table(file.path, TABLE)


def test_large_table_is_compressed(tmp_path: Path) -> None:
    table = pa.table({"t": pa.array(range(1_000_000), pa.int64()), "s": ["a text"] * 1_000_000})
    store = LocalStore(tmp_path, sync=False)
    file = store.write_table("segments/b/1.parquet", table)
    assert file.bytes < table.nbytes / 2
    assert file.checksum == store.checksum(file.path)
    assert store.read_table(file.path).equals(table)


def test_list(place: Place) -> None:
    store = place.store()
    assert store.list_files("segments") == []
    assert store.names() == []
    first, second, other = (
        f"segments/{name}-a-{'0' * 32}.parquet" for name in ("b/0000000001", "b/0000000002", "a/0000000001")
    )
    for path in (second, first, other, "meta.json"):
        store.write_bytes(path, b"")
    assert store.list_files("segments") == [other, first, second]
    assert store.list_files("segments/b") == [first, second]
    assert store.list_files("") == ["meta.json", other, first, second]
    assert store.names() == ["meta.json", "segments"]


def test_exclusive(place: Place) -> None:
    store = place.store()
    assert store.create_exclusive("manifests/1", b"first")
    assert not place.store().create_exclusive("manifests/1", b"second")
    assert store.read_bytes("manifests/1") == b"first"
    assert store.list_files("tmp") == []


def test_exclusive_race(tmp_path: Path) -> None:
    """Of many writers one wins, and what is read is its file, whole."""
    for round_ in range(20):
        barrier = threading.Barrier(4)
        won: list[int] = []

        def write(
            number: int, barrier: threading.Barrier = barrier, won: list[int] = won, round_: int = round_
        ) -> None:
            store = LocalStore(tmp_path)
            barrier.wait()
            if store.create_exclusive(f"manifests/{round_}", bytes([number]) * 10_000):
                won.append(number)

        threads = [threading.Thread(target=write, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(won) == 1
        assert LocalStore(tmp_path).read_bytes(f"manifests/{round_}") == bytes(won) * 10_000


def test_exclusive_is_whole_or_absent(tmp_path: Path) -> None:
    for name in ("store-file-written", "store-file-synced"):
        store = LocalStore(tmp_path)
        store.failpoints.arm(name, crash)
        with pytest.raises(SimulatedCrash):
            store.create_exclusive("manifests/1", b"data")
        assert not store.exists("manifests/1")
        assert len(store.list_files("tmp")) >= 1
    store.failpoints.arm("store-exclusive-linked", crash)
    with pytest.raises(SimulatedCrash):
        store.create_exclusive("manifests/1", b"data")
    assert store.read_bytes("manifests/1") == b"data"


def test_no_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(errno.EPERM, "no links here")

    monkeypatch.setattr(os, "link", refuse)
    with pytest.raises(StateError, match="no hard links") as caught:
        LocalStore(tmp_path).create_exclusive("a", b"")
    assert caught.value.code == STORAGE


def test_repeated_link_request(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A network file system may perform a link, lose the answer, and report that the name exists."""
    link = os.link

    def link_twice(source: Path, target: Path) -> None:
        link(source, target)
        link(source, target)

    monkeypatch.setattr(os, "link", link_twice)
    assert LocalStore(tmp_path).create_exclusive("a", b"x")


def test_publish(place: Place) -> None:
    store = place.store()
    target = place.output + "/part-1.parquet"
    assert store.target_size(target) is None
    file = store.write_table("staging/q/1", TABLE)
    store.publish([(file.path, target)])
    assert not store.exists(file.path)
    assert store.target_size(target) == file.bytes
    again = store.write_table("staging/q/2", TABLE)
    store.publish([(again.path, target)])
    assert not store.exists(again.path)
    other = store.write_table("staging/q/3", TABLE.slice(1))
    with pytest.raises(StateError, match="holds something else") as caught:
        store.publish([(other.path, target)])
    assert caught.value.code == OUTPUT
    assert store.exists(other.path)
    assert store.target_size(target) == file.bytes


RESULT = "part-0000000001-q-00000.parquet"


@pytest.fixture(params=["links", "renames", "neither"])
def elsewhere(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A directory of another file system: one with links, one that renames to free names, and one that does neither. As
    network file systems do, it locks only what is open for writing.
    """
    out, link, flock = tmp_path / "out", os.link, fcntl.flock

    def link_here(source: Path, target: Path) -> None:
        if Path(target).parent == out and (request.param != "links" or Path(source).parent != out):
            raise OSError(errno.EXDEV, "another file system")
        link(source, target)

    def lock_of_a_writer(file: BinaryIO, operation: int) -> None:
        if fcntl.fcntl(file, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
            raise OSError(errno.EBADF, "not open for writing")
        flock(file, operation)

    monkeypatch.setattr(os, "link", link_here)
    monkeypatch.setattr(fcntl, "flock", lock_of_a_writer)
    if request.param == "neither":
        monkeypatch.setattr(local, "renamed", lambda *_: errno.EINVAL)
    return out


def staged(place: Path, data: bytes) -> LocalStore:
    store = LocalStore(place)
    store.write_bytes("staging/q/1", data)
    return store


@pytest.mark.parametrize("failpoint", ["store-file-written", "store-file-synced", "store-publish-copied"])
def test_of_two_that_publish_one_name_elsewhere_one_is_there_whole(
    tmp_path: Path, elsewhere: Path, failpoint: str
) -> None:
    one, other = staged(tmp_path / "one", b"1" * 3000), staged(tmp_path / "other", b"2" * 3000)
    moves = [("staging/q/1", str(elsewhere / RESULT))]
    one.failpoints.arm(failpoint, partial(other.publish, moves))
    with pytest.raises(StateError, match="holds something else") as caught:
        one.publish(moves)
    assert caught.value.code == OUTPUT
    assert [path.name for path in elsewhere.iterdir()] == [RESULT]
    assert (elsewhere / RESULT).read_bytes() == b"2" * 3000
    assert one.exists("staging/q/1")


def test_two_that_publish_the_same_elsewhere(tmp_path: Path, elsewhere: Path) -> None:
    one, other = staged(tmp_path / "one", b"1" * 3000), staged(tmp_path / "other", b"1" * 3000)
    moves = [("staging/q/1", str(elsewhere / RESULT))]
    one.failpoints.arm("store-publish-copied", partial(other.publish, moves))
    one.publish(moves)
    assert [path.read_bytes() for path in elsewhere.iterdir()] == [b"1" * 3000]


def test_what_a_writer_left_elsewhere_as_it_died_is_swept(tmp_path: Path, elsewhere: Path) -> None:
    place, moves = tmp_path / "one", [("staging/q/1", str(elsewhere / RESULT))]
    store = staged(place, b"1" * 3000)
    store.failpoints.arm("store-publish-copied", crash)
    with pytest.raises(SimulatedCrash):
        store.publish(moves)
    (elsewhere / f".{RESULT}.tmp").write_text("of an earlier version")
    (elsewhere / f".{RESULT}.mine.tmp").write_text("mine")
    assert len(list(elsewhere.iterdir())) == 3
    LocalStore(place).publish(moves)
    assert sorted(path.name for path in elsewhere.iterdir()) == [f".{RESULT}.mine.tmp", RESULT]
    assert (elsewhere / RESULT).read_bytes() == b"1" * 3000


def test_a_copy_that_fails_leaves_nothing(tmp_path: Path, elsewhere: Path) -> None:
    store = staged(tmp_path / "one", b"1" * 3000)
    store.failpoints.arm("store-file-written", disk_full)
    with pytest.raises(OSError, match="space"):
        store.publish([("staging/q/1", str(elsewhere / RESULT))])
    assert list(elsewhere.iterdir()) == []


def test_where_a_run_died_as_it_published_alone_somebody_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "renamed", lambda *_: errno.EINVAL)

    def refuse(*_: object) -> None:
        raise OSError(errno.EXDEV, "another file system")

    out, moves = tmp_path / "out", [("staging/q/1", str(tmp_path / "out" / RESULT))]
    store = staged(tmp_path / "one", b"1")
    out.mkdir()
    (out / f".{RESULT}.publishing").touch()
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(os, "link", refuse)
        with pytest.raises(StateError, match="is being published by another run"):
            store.publish(moves)
        (out / f".{RESULT}.publishing").unlink()
        store.publish(moves)
    assert [path.read_bytes() for path in out.iterdir()] == [b"1"]


def test_publish_inside(place: Place) -> None:
    store = place.store()
    store.write_bytes("staging/q/1", b"bad rows")
    store.publish([("staging/q/1", "quarantine/1")])
    assert store.read_bytes("quarantine/1") == b"bad rows"
    assert store.target_size("quarantine/1") == 8


@pytest.mark.parametrize("path", ["", "/etc/passwd", "../x", "a/../../x", "a//b", "a/./b", "a\0b", "a/"])
def test_paths_stay_inside(place: Place, path: str) -> None:
    store = place.store()
    for use in (
        store.exists,
        store.delete,
        lambda p: store.write_bytes(p, b""),
        lambda p: store.create_exclusive(p, b""),
    ):
        with pytest.raises(StateError) as caught:
            use(path)
        assert caught.value.code == LOCATION


@pytest.mark.parametrize(
    "root", ["s3://bucket/x", "hdfs:/x", "abfss://c@a/x", "gs://b", "dbfs:/x", "file://host/x", "", "a\0"]
)
def test_unsupported_locations(root: str) -> None:
    with pytest.raises(StateError) as caught:
        LocalStore(root)
    assert caught.value.code == LOCATION
    if "//b" in root or root.startswith("hdfs"):
        assert "local and shared POSIX file systems are supported" in caught.value.hint


def test_locations(tmp_path: Path) -> None:
    assert local_directory("/a/b") == "/a/b"
    assert local_directory("file:///a/b") == "/a/b"
    assert local_directory("file:/a/b") == "/a/b"
    assert local_directory("a:b") == str(Path.cwd() / "a:b")
    assert local_directory(tmp_path) == str(tmp_path)


def test_not_a_directory(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(StateError, match="not a directory"):
        LocalStore(tmp_path / "file").write_bytes("a", b"")


def test_slugs() -> None:
    names = [
        "q",
        "Q_1",
        "a b",
        "a-b",
        "a/b",
        "../x",
        "a\0b",
        "ä",
        "x" * 200,
        "x" * 201,
        "",
        ".",
        "\u202eabc",
        "a.b",
        "\ud800",
    ]
    slugs = [slug(name) for name in names]
    assert slugs[:2] == ["q", "Q_1"]
    assert len(set(slugs)) == len(names)
    assert all(s.isascii() and "/" not in s and not s.startswith(".") and 0 < len(s) < 64 for s in slugs)


def test_local_path(place: Place) -> None:
    path = place.store().local_path("segments/b/1")
    assert path == (None if place.directory is None else f"{place.directory}/checkpoint/segments/b/1")


def test_lock(place: Place) -> None:
    store = place.store()
    lock = store.lock()
    assert lock.guaranteed
    assert lock.held()
    with pytest.raises(StateError) as caught:
        store.lock()
    assert caught.value.code == WRITER
    assert place.directory is None or "close() that session" in (caught.value.hint or "")
    lock.release()
    again = store.lock()
    assert again.held()
    assert not lock.held()
    again.release()


def test_lock_of_another_process(local: Place) -> None:
    ready, go = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        lock = local.store().lock()
        os.write(ready[1], b"x")
        os.read(go[0], 1)
        os._exit(0 if lock.held() else 1)
    os.read(ready[0], 1)
    with pytest.raises(StateError, match=f"process {child} on ") as caught:
        local.store().lock()
    assert caught.value.code == WRITER
    assert (caught.value.hint or "").startswith("stop that run first")
    os.write(go[1], b"x")
    assert exit_status(child) == 0
    local.store().lock().release()


def test_takeover_is_noticed(local: Place) -> None:
    """Where locks do not reach across machines, the note in the lock file shows who came last."""
    lock = local.store().lock()
    Path(str(local.store().local_path("lock"))).write_bytes(b"process 1 on elsewhere x")
    assert not lock.held()
    store = local.store()
    store.delete("lock")
    assert not lock.held()
    lock.release()


@pytest.mark.parametrize(
    ("number", "hint"), [(errno.ENOSPC, "space"), (errno.EROFS, "writable"), (errno.EIO, "works again")]
)
def test_storage_errors(number: int, hint: str) -> None:
    with pytest.raises(StateError, match="committing") as caught, storage_errors("committing"):
        raise OSError(number, os.strerror(number))
    assert caught.value.code == STORAGE
    assert hint in caught.value.hint


def test_large_results_are_packed_and_read_back_by_any_reader(tmp_path: Path) -> None:
    """Numbers and instants as differences, all else compressed; a tenth of the bytes, whatever the numbers are."""
    rows, rng = 200_000, np.random.default_rng(1)
    near = np.arange(rows) * 1_000
    table = pa.table(
        {
            "A.ts": near,
            "any": rng.integers(-(2**63), 2**63 - 1, rows, endpoint=True),
            "te": pa.array(near, mask=near % 3_000 == 0),
            "at": pa.array(near, pa.timestamp("us", "UTC")),
            "text": pa.array(["on", "off"] * (rows // 2)),
            "value": np.zeros(rows),
        }
    )
    store = LocalStore(tmp_path)
    written = store.write_table("staging/large.parquet", table)
    assert store.read_table("staging/large.parquet").equals(table)
    path = tmp_path / "staging" / "large.parquet"
    assert pl.read_parquet(path).to_arrow().cast(table.schema).equals(table)
    assert written.bytes < 1.2 * table.column("any").nbytes
    group = pq.ParquetFile(path).metadata.row_group(0)
    packed = [group.column(i).path_in_schema for i in range(6) if "DELTA_BINARY_PACKED" in group.column(i).encodings]
    assert packed == ["A.ts", "any", "te", "at"]
