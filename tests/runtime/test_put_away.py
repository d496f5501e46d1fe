"""Files that were read leave their directory: only once their rows are durable, each once, and nothing else is
touched.
"""

from __future__ import annotations

import errno
import os
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

import polars as pl
import pytest

import tidegate as tg
from tidegate.algebra.errors import QueryError
from tidegate.runtime.connectors.sources import parquet
from tidegate.runtime.engines.embedded.session import Session
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.errors import StateError
from tidegate.runtime.state.failpoints import PUT_AWAY, SimulatedCrash, crash
from tidegate.runtime.state.inputs import leaving as leaving_module
from tidegate.runtime.state.inputs import positions
from tidegate.runtime.state.inputs import put_away as module
from tidegate.runtime.state.inputs.leaving import LeavingFiles
from tidegate.runtime.state.inputs.positions import SourceFile
from tidegate.runtime.state.manifest import encode_away
from tidegate.runtime.state.store.local import LocalStore
from tidegate.runtime.state.store.renaming import renamed

events = tg.stream("E", "n bigint, t bigint", progress="t")
program = tg.program(Found=events.where(events.n >= 0))
WAYS: tuple[dict[str, Any], ...] = ({"archive": "kept"}, {"delete": True})


def put(place: Path, number: int, name: str | None = None) -> Path:
    path = place / "in" / f"day={number % 2}" / (name or f"{number:03}.parquet")
    path.parent.mkdir(parents=True, exist_ok=True)
    pl.DataFrame({"n": [number], "t": [number]}).write_parquet(path)
    os.utime(path, ns=(0, 1_700_000_000_000_000_000 + number * 1_000_000_000))
    return path


def opened(place: Path, per_batch: int | None = 1, store: LocalStore | None = None, **options: Any) -> Session:
    if "archive" in options:
        options["archive"] = place / options["archive"]
    sources = {"E": parquet(place / "in", per_batch=per_batch, delay=0, **options)}
    return Session(program.facts, store or LocalStore(place / "state"), sources)


def check_read(session: Session, count: int) -> None:
    """The rows of so many files were read, each once; the last is not final yet."""
    assert session.counts["E"].rows_in == session.counts["E"].accepted == count
    assert [row["n"] for row in session.results("Found")] == list(range(count - 1))


def below(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if not path.is_dir())


def known(place: Path) -> int:
    """Files that the checkpoint remembers."""
    manifest = inspect(LocalStore(place / "state")).manifest
    assert manifest is not None
    logged = sum(segment.rows for segment in manifest.positions.log)
    return logged + sum(map(len, manifest.positions.recent.values()))


def in_another_file_system(monkeypatch: pytest.MonkeyPatch, *, among_themselves: bool = True) -> None:
    """Nothing of one folder can be linked into another; nor are there links in the folder of the files unless they are
    linked `among_themselves`.
    """
    link = os.link

    def link_here(source: Any, target: Any, **places: Any) -> None:
        inside = places and "/in/" in os.readlink(f"/proc/self/fd/{places['dst_dir_fd']}")
        if places and (places["src_dir_fd"] != places["dst_dir_fd"] or (inside and not among_themselves)):
            raise OSError(errno.EXDEV, "another file system")
        link(source, target, **places)

    monkeypatch.setattr(os, "link", link_here)


def refuse(monkeypatch: pytest.MonkeyPatch, refused: Callable[[str], bool]) -> None:
    """These names cannot be taken from their folder."""
    unlink, rename, renamed = os.unlink, os.rename, vars(module)["renamed"]

    def unlinking(name: Any, *, dir_fd: int | None = None) -> None:
        if dir_fd is not None and refused(str(name)):
            raise OSError(errno.EACCES, "not yours")
        unlink(name, dir_fd=dir_fd)

    def renaming(name: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        if src_dir_fd is not None and refused(str(name)):
            raise OSError(errno.EACCES, "not yours")
        rename(name, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    def renaming_where_free(name: str, target: str, how: int, folder: int) -> int:
        return errno.EACCES if refused(name) else renamed(name, target, how, folder)

    monkeypatch.setattr(os, "unlink", unlinking)
    monkeypatch.setattr(os, "rename", renaming)
    monkeypatch.setattr(module, "renamed", renaming_where_free)


@pytest.fixture(params=["renames", "links", "neither"])
def its_files(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file system of the files: one that renames to free names, one with links, or one that does neither."""
    if request.param != "renames":
        monkeypatch.setattr(module, "renamed", lambda *_: errno.EINVAL)
    if request.param == "neither":
        in_another_file_system(monkeypatch, among_themselves=False)


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_read_files_leave(tmp_path: Path, way: dict[str, Any]) -> None:
    for number in range(6):
        put(tmp_path, number)
    with opened(tmp_path, **way) as session:
        session.step()
        assert below(tmp_path / "in") == [f"day={n % 2}/{n:03}.parquet" for n in (2, 4, 1, 3, 5)]
        session.process()
        assert below(tmp_path / "in") == []
        assert known(tmp_path) == 1
        check_read(session, 6)
        put(tmp_path, 6, "000.parquet")  # a name that was read is a new file
        session.process()
        check_read(session, 7)
    expected = [f"day={n % 2}/{n:03}.parquet" for n in (0, 2, 4, 1, 3, 5)]
    expected.insert(0, "day=0/000.2.parquet")
    assert below(tmp_path / "kept") == ([] if "delete" in way else expected)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("per_batch", [1, 3])
@pytest.mark.parametrize("skip", [0, 1, 4])
@pytest.mark.parametrize("failpoint", [*sorted(PUT_AWAY), "commit-before-manifest", "commit-after-manifest"])
def test_a_crash_at_any_step(tmp_path: Path, way: dict[str, Any], per_batch: int, skip: int, failpoint: str) -> None:
    for number in range(6):
        put(tmp_path, number)
    store = LocalStore(tmp_path / "state")
    store.failpoints.arm(failpoint, crash, skip=skip if failpoint in PUT_AWAY else skip % 2)
    try:
        opened(tmp_path, per_batch, store, **way).process()
        assert failpoint == "put-away-archived"
        assert "delete" in way
    except SimulatedCrash:
        pass
    with opened(tmp_path, per_batch, **way) as session:
        session.process()
        check_read(session, 6)
        put(tmp_path, 6)
        session.process()
        check_read(session, 7)
    assert below(tmp_path / "in") == []
    # What a crash left between a removal and the note of it stays known: it could be elsewhere, and come back.
    unsure = per_batch if failpoint in PUT_AWAY and "delete" in way else 0
    assert known(tmp_path) <= 1 + unsure
    if "archive" in way:
        assert below(tmp_path / "kept") == [f"day={n % 2}/{n:03}.parquet" for n in (0, 2, 4, 6, 1, 3, 5)]


def test_a_batch_that_fails_puts_nothing_away(tmp_path: Path) -> None:
    put(tmp_path, 0)
    (tmp_path / "in" / "bad.parquet").write_bytes(b"no Parquet")
    with opened(tmp_path, None, delete=True) as session, pytest.raises(tg.QueryError, match="TG412"):
        session.step()
    assert below(tmp_path / "in") == ["bad.parquet", "day=0/000.parquet"]


@pytest.mark.parametrize("crashing", [False, True])
def test_an_archive_in_another_file_system(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, crashing: bool) -> None:
    link = os.link

    def link_here(source: Any, target: Any, **places: Any) -> None:
        if (
            places
            and places["src_dir_fd"] != places["dst_dir_fd"]
            and not (Path(f"/proc/self/fd/{places['dst_dir_fd']}").readlink() / target).exists()
        ):
            raise OSError(errno.EXDEV, "another file system")
        link(source, target, **places)

    monkeypatch.setattr(os, "link", link_here)
    whole = put(tmp_path, 0).read_bytes()
    store = LocalStore(tmp_path / "state")
    if crashing:
        store.failpoints.arm("put-away-archived", crash)
        with pytest.raises(SimulatedCrash):
            opened(tmp_path, store=store, archive="kept").step()
    with opened(tmp_path, archive="kept") as session:
        session.process()
        check_read(session, 1)
    assert below(tmp_path / "in") == []
    assert below(tmp_path / "kept") == ["day=0/000.parquet"]
    kept = tmp_path / "kept" / "day=0" / "000.parquet"
    assert (kept.read_bytes(), kept.stat().st_mtime_ns) == (whole, 1_700_000_000_000_000_000)


@pytest.mark.parametrize(
    "fault", [OSError(errno.ENOSPC, "full"), OSError(errno.EIO, "failed"), MemoryError()], ids=["full", "io", "memory"]
)
def test_a_copy_that_fails_leaves_nothing_and_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, fault: Exception
) -> None:
    """The archive is in another file system, which is full or fails."""
    kept = tmp_path / "kept" / "day=0"
    in_another_file_system(monkeypatch)

    def half(source: BinaryIO, target: BinaryIO, _: int) -> None:
        target.write(source.read(10))
        assert len(below(kept)) == 1
        raise fault

    put(tmp_path, 0)
    with opened(tmp_path, archive="kept") as session:
        with monkeypatch.context() as faulty:
            faulty.setattr("shutil.copyfileobj", half)
            session.step()
            assert below(tmp_path / "in") == ["day=0/000.parquet"]
            assert below(tmp_path / "kept") == []
        assert "day=0/000.parquet was read and could not be put away, which is tried again" in caplog.text
        session.step()
        check_read(session, 1)
    assert below(tmp_path / "in") == []
    assert below(tmp_path / "kept") == ["day=0/000.parquet"]


def test_a_file_that_can_not_be_removed_is_not_read_each_time_that_is_tried(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its link in the archive is told by its number: a large file would cost each batch seconds."""
    path, read = put(tmp_path, 0), []

    def reading(folder: int, name: str) -> BinaryIO:
        read.append(name)
        return whole(folder, name)

    whole = module._reading
    monkeypatch.setattr(module, "_reading", reading)
    with opened(tmp_path, archive="kept") as session:
        with monkeypatch.context() as full:
            refuse(full, path.name.__eq__)
            session.step()
            session.step()
            assert below(tmp_path / "kept") == below(tmp_path / "in") == ["day=0/000.parquet"]
        session.step()
        session.step()
    assert below(tmp_path / "in") == read == []


def test_nothing_in_the_archive_is_overwritten(tmp_path: Path) -> None:
    put(tmp_path, 0)
    (tmp_path / "kept" / "day=0").mkdir(parents=True)
    (tmp_path / "kept" / "day=0" / "000.parquet").write_text("foreign")
    (tmp_path / "kept" / "day=0" / "000.2.parquet").symlink_to("000.parquet")
    with opened(tmp_path, archive="kept") as session:
        session.process()
    assert below(tmp_path / "kept") == [f"day=0/000{n}.parquet" for n in (".2", ".3", "")]
    assert (tmp_path / "kept" / "day=0" / "000.parquet").read_text() == "foreign"


def test_an_archive_with_many_files_of_one_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer may write the same name each time; a batch looks at few of the names that are taken."""
    kept = tmp_path / "kept" / "day=0"
    kept.mkdir(parents=True)
    (kept / "000.parquet").write_text("foreign")
    for number in range(2, 2001):
        os.link(kept / "000.parquet", kept / f"000.{number}.parquet")
    looked, whole = list[str](), os.stat

    def counted(path: Any, **options: Any) -> os.stat_result:
        if options.get("dir_fd") is not None:
            looked.append(str(path))
        return whole(path, **options)

    with opened(tmp_path, archive="kept") as session:
        monkeypatch.setattr(os, "stat", counted)
        for number in (0, 2, 4):
            put(tmp_path, number, "000.parquet")
            session.step()
            assert "000.1024.parquet" in looked
            assert len(looked) < 40
            looked.clear()
    assert below(tmp_path / "in") == []
    assert len(below(tmp_path / "kept")) == 2003
    assert {f"000.{number}.parquet" for number in (2001, 2002, 2003)} < {path.name for path in kept.iterdir()}


@pytest.mark.parametrize("elsewhere", [False, True])
@pytest.mark.parametrize(
    "name",
    ["a" * 247 + ".parquet", "ä" * 123 + "b.parquet", "a." + "b" * 253],
    ids=["ASCII", "two bytes a letter", "a long ending"],
)
def test_names_as_long_as_there_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, name: str, *, elsewhere: bool
) -> None:
    """Neither a copy in another file system nor a number makes a name too long."""
    assert len(name.encode()) == 255
    if elsewhere:
        in_another_file_system(monkeypatch)
    with opened(tmp_path, archive="kept") as session:
        for number in (0, 2, 4):
            put(tmp_path, number, name)
            session.step()
            assert below(tmp_path / "in") == []
    assert caplog.text == ""
    kept = [path.name for path in (tmp_path / "kept" / "day=0").iterdir()]
    assert name in kept
    assert len(kept) == 3
    if name.endswith(".parquet"):
        assert all(other.endswith(".parquet") for other in kept)


@pytest.mark.parametrize("seed", range(20))
def test_a_number_in_the_archive_is_found_again_after_a_crash(tmp_path: Path, seed: int) -> None:
    """Whichever numbers were taken, and others were freed by whoever clears the archive."""
    rng = random.Random(seed)
    for number in range(1, rng.choice((2, 10, 100))):
        if rng.random() < rng.choice((0.3, 0.9, 1.0)):
            (tmp_path / ("a.csv" if number == 1 else f"a.{number}.csv")).write_text("another")
    archive = os.open(tmp_path, os.O_RDONLY)
    taken = {path.name for path in tmp_path.iterdir()}

    def is_it(name: str, there: os.stat_result) -> bool:
        return (tmp_path / name).read_text() == "mine"

    name, found = module._place_in(archive, "a.csv", is_it)
    assert not found
    assert name not in taken
    (tmp_path / name).write_text("mine")
    assert module._place_in(archive, "a.csv", is_it) == (name, True)
    os.close(archive)


def test_an_archive_that_is_not_there_for_a_while(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    put(tmp_path, 0)
    with opened(tmp_path, archive="kept") as session:
        (tmp_path / "kept").rename(tmp_path / "hidden")
        session.step()
        assert f"put away, which is tried again: [Errno 2] No such file or directory: '{tmp_path}/kept'" in caplog.text
        assert below(tmp_path / "in") == ["day=0/000.parquet"]
        assert known(tmp_path) == 1
        (tmp_path / "hidden").rename(tmp_path / "kept")
        session.step()
        check_read(session, 1)
    assert below(tmp_path / "in") == []
    assert below(tmp_path / "kept") == ["day=0/000.parquet"]


def test_links_are_not_followed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A link among the files stays, with what it leads to; behind a link in the archive nothing is put."""
    elsewhere = put(tmp_path / "elsewhere", 0)
    put(tmp_path, 1)
    (tmp_path / "in" / "link.parquet").symlink_to(elsewhere)
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "day=1").symlink_to(elsewhere.parent)
    with opened(tmp_path, archive="kept") as session:
        session.process()
        check_read(session, 2)
    assert elsewhere.exists()
    assert below(elsewhere.parent) == [elsewhere.name]
    assert below(tmp_path / "in") == ["day=1/001.parquet", "link.parquet"]
    assert "link.parquet was read and stays: it is a link" in caplog.text
    assert "001.parquet was read and could not be put away, which is tried again" in caplog.text
    (tmp_path / "kept" / "day=1").unlink()
    with opened(tmp_path, archive="kept") as session:
        check_read(session, 2)
    assert below(tmp_path / "in") == ["link.parquet"]


def test_what_fails_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(30):
        put(tmp_path, number)
    monkeypatch.setattr(module, "_MOST_FAILURES", 8)
    with opened(tmp_path, 15, delete=True) as session:
        with monkeypatch.context() as full:
            refuse(full, lambda _: True)
            session.step()
        assert caplog.text.count("tried again") == 8
        assert len(below(tmp_path / "in")) == 30
        session.process()
        check_read(session, 30)
    assert below(tmp_path / "in") == []


def test_files_that_can_not_leave_are_in_no_others_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """As those in a folder that others may not write to, of which there are more than a batch tries; each is told
    once.
    """
    for number in range(40):
        put(tmp_path, number)
    refuse(monkeypatch, {f"{number:03}.parquet" for number in range(0, 40, 2)}.__contains__)
    with opened(tmp_path, 20, delete=True) as session:
        session.step()
        assert caplog.text.count("tried again") == 8
        session.step()
        assert below(tmp_path / "in") == [f"day=0/{number:03}.parquet" for number in range(0, 40, 2)]
        for _ in range(10):
            session.step()
        check_read(session, 40)
    assert caplog.text.count("tried again") == 20


def test_a_file_that_fails_is_tried_less_and_less_often() -> None:
    file, turns = SourceFile("/in/a", 1, 1), []
    leaving = LeavingFiles([file])
    for turn in range(1, 200):
        if leaving.take():
            turns.append(turn)
            assert leaving.put_back({file: "full"}, []) == ([file] if turn == 1 else [])
        assert list(leaving) == [file]
    assert turns == [1, 2, 4, 8, 16, 32, 64, 128, 192]


def test_what_was_not_tried_comes_behind_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaving_module, "AT_ONCE", 5)
    files = [SourceFile(f"/in/{number}", 1, 1) for number in range(9)]
    leaving = LeavingFiles(files[:7])
    assert leaving.take() == files[:5]
    assert leaving.put_back({files[0]: "full", files[1]: "full"}, files[3:5]) == files[:2]
    assert leaving.take() == [*files[5:7], *files[3:5], files[0]]
    assert leaving.put_back({files[3]: "full"}, [files[0]]) == [files[3]]
    leaving.add(files[7:])
    monkeypatch.setattr(leaving_module, "AT_ONCE", 1)
    assert leaving.take(2) == [*files[7:], files[0]]
    assert not leaving.put_back({}, [])
    monkeypatch.undo()
    assert leaving.take() == [files[1], files[3]]
    assert not leaving.put_back({}, [])
    assert len(leaving) == 0


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_an_old_run_moves_its_files_some_in_each_batch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: dict[str, Any]
) -> None:
    """An opening takes no longer for the files of years, and each folder is made durable once, not for each file."""
    for number in range(60):
        put(tmp_path, number)
    with opened(tmp_path, 10) as session:
        session.process()
    monkeypatch.setattr(leaving_module, "AT_ONCE", 10)
    synced: list[str] = []
    sync = os.fsync

    def syncing(descriptor: int) -> None:
        synced.append(os.readlink(f"/proc/self/fd/{descriptor}"))
        sync(descriptor)

    monkeypatch.setattr(os, "fsync", syncing)
    with opened(tmp_path, **way) as session:
        left = 60 - 10
        assert len(below(tmp_path / "in")) == left
        while left:
            for folder in ("in", "kept") if "archive" in way else ("in",):
                for day in (0, 1):
                    assert synced.count(str(tmp_path / folder / f"day={day}")) == 1
            synced.clear()
            session.step()
            left -= 10
            assert len(below(tmp_path / "in")) == left
        session.step()
        assert known(tmp_path) == 0
        put(tmp_path, 60)
        session.process()
        check_read(session, 61)


def test_what_could_not_leave_and_is_out_of_sight_is_not_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not known to have left: it may come back."""
    paths = [put(tmp_path, number) for number in range(2)]
    with opened(tmp_path, None, delete=True) as session, monkeypatch.context() as full:
        refuse(full, paths[0].name.__eq__)
        session.process()
    paths[0].rename(tmp_path / "hidden")
    with opened(tmp_path, None, delete=True) as session:
        session.process()
    (tmp_path / "hidden").rename(paths[0])
    with opened(tmp_path, None, delete=True) as session:
        session.process()
        check_read(session, 2)
    assert below(tmp_path / "in") == []


def test_files_of_before_leave_too(tmp_path: Path) -> None:
    """Also those of the tables of the log, which forget them."""
    for number in range(100):
        put(tmp_path, number)
    with opened(tmp_path, None) as session:
        session.process()
    assert known(tmp_path) == 100
    with opened(tmp_path, None, archive="kept") as session:
        assert below(tmp_path / "in") == []
        put(tmp_path, 100)
        session.process()
        check_read(session, 101)
    assert known(tmp_path) == 1
    assert len(below(tmp_path / "kept")) == 101


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_names_are_free_after_a_restart(tmp_path: Path, way: dict[str, Any]) -> None:
    """That the last batch's files have left is known, so the checkpoint forgets them."""
    for number in range(3):
        put(tmp_path, number, "same.parquet")
        with opened(tmp_path, **way) as session:
            session.process()
            check_read(session, number + 1)
    assert known(tmp_path) == 1


@pytest.mark.parametrize("way", [{}, *WAYS], ids=str)
def test_a_file_may_be_of_any_time(tmp_path: Path, way: dict[str, Any]) -> None:
    """Also of one that 64 bits of nanoseconds do not hold."""
    for number, year in enumerate((1601, 1969, 2026, 2300)):
        path = put(tmp_path, number)
        os.utime(path, (0, (year - 1970) * 31_556_952))
    with opened(tmp_path, **way) as session:
        session.process()
        check_read(session, 4)
    with opened(tmp_path, **way) as session:
        session.process()
        assert session.counts["E"].rows_in == 4
    assert len(below(tmp_path / "in")) == (0 if way else 4)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("dropped", [False, True])
def test_the_next_file_may_have_the_name_of_the_last_one(tmp_path: Path, way: dict[str, Any], *, dropped: bool) -> None:
    """It came while nothing ran, as the next run is told to put files away as well, or no more."""
    for day in range(3):
        path = put(tmp_path, 2 * day, "latest.parquet")
        options = {} if dropped and day else way
        if day < 2 or not dropped:
            with opened(tmp_path, **options) as session:
                session.process()
                assert session.counts["E"].rows_in == day + 1
                assert path.exists() == (dropped and day > 0)
    if dropped:
        with opened(tmp_path) as session, pytest.raises(QueryError, match="was written again"):
            session.process()  # the second one stayed, and is another one now


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("logged", [False, True])
def test_what_has_left_is_forgotten_by_a_run_that_puts_nothing_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: dict[str, Any], *, logged: bool
) -> None:
    monkeypatch.setattr(positions, "_RECENT", 2 if logged else 64)
    for number in range(0, 12, 2):
        put(tmp_path, number)
    with opened(tmp_path, None) as session:
        session.process()
    with opened(tmp_path, **way):
        pass
    assert below(tmp_path / "in") == []
    for number in range(0, 12, 2):
        put(tmp_path, number + 100, f"{number:03}.parquet")
    for _ in range(2):
        with opened(tmp_path, None) as session:
            session.process()
            assert session.counts["E"].rows_in == 12
    assert known(tmp_path) == 6


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("at_once", [2, 1000])
@pytest.mark.parametrize("logged", [False, True])
@pytest.mark.parametrize("reading", [False, True])
def test_names_of_an_old_run_are_free_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: dict[str, Any], at_once: int, *, logged: bool, reading: bool
) -> None:
    """Also of files that left behind the last batch of a run, or in runs without any; whether tables of the log have
    them or not.
    """
    monkeypatch.setattr(leaving_module, "AT_ONCE", at_once)
    monkeypatch.setattr(positions, "_RECENT", 2 if logged else 64)
    for number in range(12):
        put(tmp_path, number)
    with opened(tmp_path, None) as session:
        session.process()
    for number in (12, 13):
        with opened(tmp_path, **way) as session:
            if reading:
                put(tmp_path, number)
                session.step()
    read = session.counts["E"].rows_in
    there = {Path(name).name for name in below(tmp_path / "in")}
    free = {f"{number:03}.parquet" for number in range(12)} - there
    assert len(free) == min(12, (4 if reading else 2) * at_once)
    with opened(tmp_path, None, **way) as session:
        for name in free:
            put(tmp_path, 100, name)
        session.process()
        assert session.counts["E"].rows_in == read + len(free)


def test_what_has_left_is_known_although_other_files_can_not_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leaving_module, "AT_ONCE", 2)
    for number in range(12):
        put(tmp_path, number)
    with opened(tmp_path, None) as session:
        session.process()
    refuse(monkeypatch, {f"{number:03}.parquet" for number in range(0, 12, 2)}.__contains__)
    with opened(tmp_path, delete=True) as session:
        while any(name.startswith("day=1") for name in below(tmp_path / "in")):
            last = max(below(tmp_path / "in"))
            session.step()
    assert last == "day=1/001.parquet"
    with opened(tmp_path, delete=True) as session:
        put(tmp_path, 13, "001.parquet")
        session.process()
        check_read(session, 13)


def test_what_has_left_is_known_of_each_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    other = tg.stream("F", "n bigint, t bigint", progress="t")
    both = tg.program(Found=events.where(events.n >= 0), Other=other.where(other.n >= 0))
    places = {"E": tmp_path / "e", "F": tmp_path / "f"}

    def opened_both() -> Session:
        sources = {name: parquet(place / "in", delay=0, delete=True) for name, place in places.items()}
        return Session(both.facts, LocalStore(tmp_path / "state"), sources)

    put(places["E"], 0)
    put(places["F"], 1)
    with opened_both() as session, monkeypatch.context() as full:
        refuse(full, "000.parquet".__eq__)
        session.process()
    with opened_both():
        assert [below(place / "in") for place in places.values()] == [[], []]
    with opened_both() as session:
        put(places["E"], 2, "000.parquet")
        put(places["F"], 3, "001.parquet")
        session.process()
        assert [session.counts[name].rows_in for name in places] == [2, 2]


def test_a_record_of_what_has_left_that_is_damaged_is_refused(tmp_path: Path) -> None:
    """Nothing is left of one that the machine died with, which costs names alone."""
    put(tmp_path, 0)
    with opened(tmp_path, delete=True) as session:
        session.process()
    (record,) = (tmp_path / "state" / "away").iterdir()
    data = record.read_bytes()
    record.write_bytes(data[:-9])
    with pytest.raises(StateError, match=r"TG505 away/0000000001 is damaged") as caught:
        opened(tmp_path, delete=True)
    assert "delete away/0000000001" in caught.value.hint
    for size in (0, len(data)):
        record.write_bytes(bytes(size))
        with opened(tmp_path, delete=True) as session:
            check_read(session, 1)


def test_a_record_of_what_has_left_names_nothing_else(tmp_path: Path) -> None:
    """A file of which it says so and that no batch has read stays."""
    put(tmp_path, 0)
    with opened(tmp_path, delete=True) as session:
        session.process()
    new = SourceFile.found(str(put(tmp_path, 1)))
    assert new is not None
    (tmp_path / "state" / "away" / "0000000001").write_bytes(encode_away({"E": (new,)}))
    with opened(tmp_path, delete=True) as session:
        session.process()
        check_read(session, 2)


def test_another_version_stays(tmp_path: Path) -> None:
    """A file that was written again before it could leave is told as changed, not taken away."""
    path = put(tmp_path, 0)
    store = LocalStore(tmp_path / "state")
    store.failpoints.arm("commit-after-manifest", crash)
    with pytest.raises(SimulatedCrash):
        opened(tmp_path, store=store, delete=True).step()
    put(tmp_path, 8, path.name)
    with opened(tmp_path, delete=True) as session, pytest.raises(tg.QueryError, match="TG411"):
        session.step()
    assert path.exists()


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("in_place", [False, True])
def test_a_file_that_is_written_again_while_it_leaves_stays(
    tmp_path: Path, way: dict[str, Any], *, in_place: bool
) -> None:
    """Nobody has read the new rows, and to archive the old ones can take seconds."""
    path, store = put(tmp_path, 0), LocalStore(tmp_path / "state")
    before = path.stat()

    def write_again() -> None:
        other = tmp_path / "other"
        if in_place:
            with path.open("ab") as file:
                file.write(b"more")
            return
        pl.DataFrame({"n": [8], "t": [8]}).write_parquet(other)
        other.replace(path)
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    store.failpoints.arm("put-away-archived" if "archive" in way else "put-away-before", write_again)
    with opened(tmp_path, store=store, **way) as session:
        session.step()
    assert path.stat().st_size != before.st_size or path.stat().st_ino != before.st_ino
    assert below(tmp_path / "in") == ["day=0/000.parquet"]
    assert known(tmp_path) == 1


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.parametrize("crashing", [False, True])
def test_a_file_that_is_written_again_before_it_is_read_leaves(
    tmp_path: Path, way: dict[str, Any], *, crashing: bool
) -> None:
    path, store = put(tmp_path, 0), LocalStore(tmp_path / "state")

    def write_again() -> None:
        put(tmp_path, 8, path.name)

    store.failpoints.arm("batch-after-intent", write_again)
    if crashing:
        store.failpoints.arm("commit-before-gc", crash)
        with pytest.raises(SimulatedCrash):
            opened(tmp_path, store=store, **way).step()
    with opened(tmp_path, store=LocalStore(tmp_path / "state") if crashing else store, **way) as session:
        session.step()
        session.step()
        assert session.counts["E"].rows_in == 1
    assert below(tmp_path / "in") == []
    assert known(tmp_path) == 0


def replaced_as_it_leaves(monkeypatch: pytest.MonkeyPatch, path: Path) -> None:
    """In the moment in which the file is taken from its name, another one is renamed to it."""
    unlink, rename, other = os.unlink, os.rename, path.with_name(".other")
    pl.DataFrame({"n": [8], "t": [8]}).write_parquet(other)

    def come(name: Any) -> None:
        if name == path.name and other.exists():
            rename(other, path)

    def unlinking(name: Any, *, dir_fd: int | None = None) -> None:
        come(name)
        unlink(name, dir_fd=dir_fd)

    def renaming(name: Any, target: Any, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None) -> None:
        come(name)
        rename(name, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    def renaming_where_free(name: str, target: str, how: int, folder: int) -> int:
        come(name)
        return renamed(name, target, how, folder)

    monkeypatch.setattr(os, "unlink", unlinking)
    monkeypatch.setattr(os, "rename", renaming)
    if vars(module)["renamed"] is renamed:  # else it renames nothing
        monkeypatch.setattr(module, "renamed", renaming_where_free)


@pytest.mark.parametrize("way", WAYS, ids=str)
@pytest.mark.usefixtures("its_files")
def test_a_file_that_comes_in_the_moment_in_which_another_leaves_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: dict[str, Any]
) -> None:
    path = put(tmp_path, 0)
    replaced_as_it_leaves(monkeypatch, path)
    with opened(tmp_path, **way) as session:
        session.step()
    assert pl.read_parquet(path)["n"].to_list() == [8]
    assert below(tmp_path / "in") == ["day=0/000.parquet"]


@pytest.mark.usefixtures("its_files")
def test_of_two_files_that_come_in_that_moment_none_is_lost(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    path, store = put(tmp_path, 0), LocalStore(tmp_path / "state")
    replaced_as_it_leaves(monkeypatch, path)

    def third() -> None:
        path.write_text("the third")

    store.failpoints.arm("put-away-aside", third)
    with opened(tmp_path, store=store, delete=True) as session:
        session.step()
    (hidden,) = [one for one in path.parent.iterdir() if one != path]
    assert path.read_text() == "the third"
    assert pl.read_parquet(hidden)["n"].to_list() == [8]
    assert f"{path} was replaced twice while it was put away: {hidden} was there in between" in caplog.text


@pytest.mark.usefixtures("its_files")
def test_what_was_taken_aside_is_not_renamed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A file that nobody has read lies at the hidden name, and the one that was read is there again."""
    path, store = put(tmp_path, 0), LocalStore(tmp_path / "state")

    def third() -> None:
        path.write_text("the third")

    store.failpoints.arm("put-away-aside", third)
    with monkeypatch.context() as moment:
        replaced_as_it_leaves(moment, path)
        with opened(tmp_path, store=store, delete=True) as session:
            session.step()
    (hidden,) = [one for one in path.parent.iterdir() if one != path]
    put(tmp_path, 0)
    with opened(tmp_path, delete=True) as session:
        assert pl.read_parquet(hidden)["n"].to_list() == [8]
        assert pl.read_parquet(path)["n"].to_list() == [0]
        assert f"tried again: [Errno 17] File exists: '{path.name}' -> '{hidden.name}'" in caplog.text
        hidden.rename(path.with_name("008.parquet"))
        session.process()
        session.process()
        check_read(session, 2)
    assert below(tmp_path / "in") == []


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_name_is_free_although_the_run_died_as_its_file_left(tmp_path: Path, way: dict[str, Any]) -> None:
    path, store = put(tmp_path, 0), LocalStore(tmp_path / "state")
    store.failpoints.arm("put-away-aside", crash)
    with pytest.raises(SimulatedCrash):
        opened(tmp_path, store=store, **way).step()
    put(tmp_path, 8, path.name)
    with opened(tmp_path, **way) as session:
        session.process()
        check_read(session, 2)
    assert below(tmp_path / "in") == []


@pytest.mark.usefixtures("its_files")
def test_a_run_that_died_with_another_file_taken_aside_puts_it_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, store = put(tmp_path, 0), LocalStore(tmp_path / "state")
    store.failpoints.arm("put-away-aside", crash)
    with monkeypatch.context() as moment:
        replaced_as_it_leaves(moment, path)
        with pytest.raises(SimulatedCrash):
            opened(tmp_path, store=store, delete=True).step()
    assert not path.exists()
    with opened(tmp_path, delete=True):
        assert pl.read_parquet(path)["n"].to_list() == [8]
        assert below(tmp_path / "in") == ["day=0/000.parquet"]


def test_a_directory_that_is_not_there_for_a_while(tmp_path: Path) -> None:
    """What was not seen to leave may come back, and is not read twice: a mount that failed."""
    put(tmp_path, 0)
    store = LocalStore(tmp_path / "state")
    store.failpoints.arm("commit-after-manifest", crash)
    with pytest.raises(SimulatedCrash):
        opened(tmp_path, store=store, delete=True).step()
    (tmp_path / "in").rename(tmp_path / "away")
    (tmp_path / "in").mkdir()
    with opened(tmp_path, delete=True) as session:
        session.step()
    (tmp_path / "in").rmdir()
    (tmp_path / "away").rename(tmp_path / "in")
    with opened(tmp_path, delete=True) as session:
        session.process()
        check_read(session, 1)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"archive": "in"}, "TG423"),
        ({"archive": "in/old"}, "TG423"),
        ({"archive": "."}, "TG423"),
        ({"archive": "state/old"}, "TG423"),
        ({"archive": "linked/old"}, "TG423"),
        ({"archive": "kept", "delete": True}, "TG425"),
        ({"delete": "yes"}, "TG425"),
    ],
    ids=str,
)
def test_what_is_not_safe_is_refused(tmp_path: Path, options: dict[str, Any], code: str) -> None:
    put(tmp_path, 0)
    (tmp_path / "linked").symlink_to(tmp_path / "in")
    with pytest.raises(tg.QueryError, match=code):
        opened(tmp_path, **options)
    assert below(tmp_path / "in") == ["day=0/000.parquet"]


def test_two_streams_of_a_directory_and_runs_without_a_checkpoint(tmp_path: Path) -> None:
    put(tmp_path, 0)
    other = tg.stream("F", "n bigint, t bigint", progress="t")
    both = tg.program(A=events.where(events.n >= 0), B=other.where(other.n >= 0))
    given = {"E": parquet(tmp_path / "in", delete=True), "F": parquet(tmp_path / "in" / "day=0")}
    with pytest.raises(tg.QueryError, match="TG425"):
        both.session(sources=given, checkpoint=tmp_path / "state")
    with pytest.raises(tg.QueryError, match="TG424"):
        program.session(sources={"E": parquet(tmp_path / "in", delete=True)})
    with pytest.raises(tg.QueryError, match="TG425"):
        program.session(
            sources={"E": parquet(tmp_path / "in" / "day=0" / "000.parquet", delete=True)},
            checkpoint=tmp_path / "state",
        )
    table = tg.table("T", "n bigint, t bigint")
    e, t = events.as_("e"), table.as_("t")
    joined = tg.program(A=e.join(t, t.n == e.n))
    with pytest.raises(tg.QueryError, match="TG424"):
        joined.session(statics={"T": parquet(tmp_path / "in", delete=True)}, checkpoint=tmp_path / "state")
    assert below(tmp_path / "in") == ["day=0/000.parquet"]


@pytest.mark.parametrize(
    ("options", "static", "code"),
    [
        ({"delete": True}, "in/day=0", "TG425"),
        ({"delete": True}, "in/day=0/000.parquet", "TG425"),
        ({"archive": "kept"}, "in", "TG425"),
        ({"archive": "tables"}, "tables", "TG423"),
        ({"archive": "tables/old"}, "tables", "TG423"),
        ({"archive": "tables"}, "tables/1.parquet", "TG423"),
    ],
    ids=str,
)
@pytest.mark.parametrize("given", [parquet, str], ids=["source", "path"])
def test_beside_a_static_table(
    tmp_path: Path, options: dict[str, Any], static: str, code: str, given: Callable[[Path], Any]
) -> None:
    """Its files are read at every start: none leaves, and no other one comes."""
    put(tmp_path, 0)
    (tmp_path / "tables").mkdir()
    pl.DataFrame({"n": [0], "name": ["none"]}).write_parquet(tmp_path / "tables" / "1.parquet")
    if "archive" in options:
        options = {"archive": tmp_path / options["archive"]}
    table = tg.table("T", "n bigint, name string" if "tables" in static else "n bigint, t bigint")
    e, t = events.as_("e"), table.as_("t")
    joined = tg.program(A=e.join(t, t.n == e.n).select(e.n, e.t))
    before = below(tmp_path)
    with pytest.raises(tg.QueryError, match=rf"{code} .*{re.escape(str(tmp_path / static))}"):
        joined.session(
            sources={"E": parquet(tmp_path / "in", delay=0, **options)},
            statics={"T": given(tmp_path / static)},
            checkpoint=tmp_path / "state",
        )
    assert below(tmp_path) == before
