"""What is new in a directory: as a list of all its files says, at the cost of what has changed."""

from __future__ import annotations

import io
import os
import random
import shutil
import time
from collections.abc import Iterable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.runtime.connectors import directory as module
from tidegate.runtime.connectors.directory import Directory
from tidegate.runtime.connectors.sources import Files
from tidegate.runtime.connectors.watch import Watch, is_local
from tidegate.runtime.state.inputs.positions import Offer, PositionLog, Positions, SourceFile
from tidegate.runtime.state.store.memory import MemoryStore


@pytest.fixture(params=["watched", "listed"])
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """How changes are found: as the system tells of them, or by the times of folders. No whole look comes between."""
    monkeypatch.setattr(module, "APART", float("inf"))
    monkeypatch.setattr(module, "SMALL_DIRECTORY", -1)
    if request.param == "listed":
        monkeypatch.setattr(Watch, "of", lambda _: None)
    return str(request.param)


def opened(folder: Path) -> Directory:
    return Directory("S", Files(str(folder), "parquet"), PositionLog(MemoryStore(), Positions()))


def read(one: Directory, *files: SourceFile) -> None:
    offer = Offer({"S": files})
    one.log.accept(offer, one.log.appended(offer, 1, "a"))
    one.read(files)


def names(files: Iterable[SourceFile]) -> list[str]:
    return [Path(file.path).name for file in files]


def put(path: Path, text: str = "a", age: int = 0) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (1_700_000_000 - age,) * 2)


def test_files_whose_names_are_no_text_do_not_wait(tmp_path: Path, way: str) -> None:
    put(tmp_path / "a")
    put(tmp_path / "\udcff")
    put(tmp_path / "below \udcff" / "b")
    one = opened(tmp_path)
    assert names(one.look()) == ["a"]
    assert one.unnamed == {str(tmp_path / "\udcff"), str(tmp_path / "below \udcff" / "b")}
    (tmp_path / "\udcff").rename(tmp_path / "c")
    (tmp_path / "below \udcff" / "b").unlink()
    assert names(one.look()) == ["a", "c"]
    assert one.unnamed == set()


def test_files_are_found_as_they_come(tmp_path: Path, way: str) -> None:
    put(tmp_path / "b")
    put(tmp_path / "a")
    one = opened(tmp_path)
    assert names(one.look()) == ["a", "b"]
    read(one, *one.look())
    assert names(one.look()) == []
    put(tmp_path / ".c")
    put(tmp_path / "_c")
    put(tmp_path / "day=1" / "d", age=1)
    put(tmp_path / "_day=2" / "e")
    assert names(one.look()) == ["d"]
    (tmp_path / ".c").rename(tmp_path / "c")
    (tmp_path / "_day=2").rename(tmp_path / "day=2")
    assert names(one.look()) == ["d", "c", "e"]
    put(tmp_path / "day=1" / "f", age=2)
    (tmp_path / "c").unlink()
    assert names(one.look()) == ["f", "d", "e"]
    (tmp_path / "day=1").rename(tmp_path / "_day=1")
    assert names(one.look()) == ["e"]


def test_a_file_that_changes_before_it_is_read(tmp_path: Path, way: str) -> None:
    for name in "abc":
        put(tmp_path / name)
    one = opened(tmp_path)
    assert names(one.look(1)) == ["a", "b", "c"]
    put(tmp_path / "a", "longer", age=-1)
    found = tuple(one.look(1))
    assert names(found) == ["b", "c", "a"]
    assert found[2].size == 6
    (tmp_path / "b").unlink()
    assert names(one.look(1)) == ["c", "a"]


def test_a_file_that_is_read_as_it_was_before_a_look_has_changed(tmp_path: Path, way: str) -> None:
    put(tmp_path / "a")
    one = opened(tmp_path)
    found = tuple(one.look())
    put(tmp_path / "a", "longer")
    assert names(one.look()) == ["a"]
    read(one, *found)
    assert names(one.look()) == []
    assert list(one.changed) == [str(tmp_path / "a")]


def test_a_look_that_fails_has_used_up_nothing(tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a")
    one = opened(tmp_path)
    one.look()
    put(tmp_path / "b")

    def refused(_: Path) -> SourceFile:
        raise OSError(5, "the disk")

    with monkeypatch.context() as during:
        during.setattr(module, "_file", refused)
        with pytest.raises(OSError, match="the disk"):
            one.look()
    assert not one.waiting
    assert names(one.look()) == ["a", "b"]


def test_links_to_nothing_and_to_themselves_are_no_files(tmp_path: Path, way: str) -> None:
    put(tmp_path / "in" / "a")
    (tmp_path / "in" / "nothing").symlink_to(tmp_path / "nowhere")
    (tmp_path / "in" / "itself").symlink_to(tmp_path / "in" / "itself")
    assert names(opened(tmp_path / "in").look(None)) == ["a"]


def test_a_file_is_taken_as_it_is_although_nobody_tells_of_its_change(tmp_path: Path, way: str) -> None:
    """The target of a link is not watched, and writing a file leaves the time of its folder."""
    put(tmp_path / "a")
    put(tmp_path / "b", age=-1)
    (tmp_path / "in").mkdir()
    for name in "ab":
        (tmp_path / "in" / name).symlink_to(tmp_path / name)
    os.utime(tmp_path / "in", (1_700_000_000,) * 2)
    one = opened(tmp_path / "in")
    assert names(one.look(1)) == ["a", "b"]
    put(tmp_path / "a", "longer")
    found = tuple(one.look(1))
    assert [(Path(file.path).name, file.size) for file in found] == [("a", 6), ("b", 1)]
    (tmp_path / "a").unlink()
    assert names(one.look(1)) == ["b"]


def test_a_file_that_changed_after_it_was_read_is_told_until_it_is_mended(tmp_path: Path) -> None:
    put(tmp_path / "a")
    one = opened(tmp_path)
    read(one, *one.look())
    put(tmp_path / "a", "longer")
    for _ in range(2):
        assert names(one.look()) == []
        assert [change.current.size for change in one.changed.values()] == [6]
    put(tmp_path / "a")
    one.look()
    assert not one.changed


def test_files_that_changed_are_not_asked_for_at_each_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of them that is not mended says enough; once all are, none is told any more, and nobody told of that."""
    monkeypatch.setattr(module, "APART", float("inf"))
    monkeypatch.setattr(module, "SMALL_DIRECTORY", -1)
    for number in range(100):
        put(tmp_path / f"{number}")
    one = opened(tmp_path)
    read(one, *one.look())
    for number in range(100):
        put(tmp_path / f"{number}", age=1)
    one.look()
    assert len(one.changed) == len(one.newly_changed()) == 100
    asked: list[str] = []
    stat = os.stat

    def asking(path: str, **how: Any) -> os.stat_result:
        asked.append(Path(path).name)
        return stat(path, **how)

    with monkeypatch.context() as counting:
        counting.setattr(os, "stat", asking)
        for _ in range(5):
            one.look()
    assert len([name for name in asked if name.isdigit()]) <= 5
    monkeypatch.setattr(Watch, "changes", lambda _: iter(()))
    for number in range(50):
        put(tmp_path / f"{number}")
    one.look()
    assert one.changed
    for number in range(50, 100):
        put(tmp_path / f"{number}")
    one.look()
    assert not one.changed
    assert one.newly_changed() == []


def test_a_change_is_new_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where all files are looked at each time, and again after the file was as it had been read."""
    monkeypatch.setattr(Watch, "of", lambda _: None)
    put(tmp_path / "a")
    one = opened(tmp_path)
    read(one, *one.look())
    for _ in range(2):
        put(tmp_path / "a", "longer")
        one.look()
        assert [change.current.size for change in one.newly_changed()] == [6]
        one.look()
        assert one.newly_changed() == []
        put(tmp_path / "a", "longer still")
        one.look()
        one.look()
        assert [change.current.size for change in one.newly_changed()] == [12]
        put(tmp_path / "a", "as long")
        one.look()
        put(tmp_path / "a")
        one.look()
        assert one.newly_changed() == []


def test_links_to_folders_are_not_followed(tmp_path: Path, way: str) -> None:
    put(tmp_path / "elsewhere" / "a")
    put(tmp_path / "in" / "b")
    one = opened(tmp_path / "in")
    one.look()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in" / "c").symlink_to(tmp_path / "elsewhere" / "a")
    assert sorted(names(one.look())) == ["b", "c"]


def test_a_folder_that_moves_out_of_sight_takes_its_files_along(tmp_path: Path, way: str) -> None:
    """Also those behind the ones that a look takes as they are now."""
    put(tmp_path / "a", age=1)
    put(tmp_path / "day=1" / "b")
    one = opened(tmp_path)
    assert names(one.look(1)) == ["a", "b"]
    (tmp_path / "day=1").rename(tmp_path / "_day=1")
    put(tmp_path / "_day=1" / "c")
    assert names(one.look(1)) == ["a"]
    (tmp_path / "_day=1").rename(tmp_path / "day=1")
    assert names(one.look(1)) == ["a", "b", "c"]


def test_another_folder_in_the_place_of_the_directory(tmp_path: Path, way: str) -> None:
    put(tmp_path / "in" / "a")
    put(tmp_path / "other" / "b")
    one = opened(tmp_path / "in")
    assert names(one.look()) == ["a"]
    (tmp_path / "in").rename(tmp_path / "away")
    assert names(one.look()) == []
    (tmp_path / "other").rename(tmp_path / "in")
    assert names(one.look()) == ["b"]
    put(tmp_path / "in" / "c")
    assert names(one.look()) == ["b", "c"]


def test_a_directory_behind_a_link_that_changes(tmp_path: Path, way: str) -> None:
    for name in "ab":
        put(tmp_path / name / name)
    (tmp_path / "in").symlink_to("a")
    one = opened(tmp_path / "in")
    assert names(one.look()) == ["a"]
    (tmp_path / "next").symlink_to("b")
    (tmp_path / "next").replace(tmp_path / "in")
    assert names(one.look()) == ["b"]
    put(tmp_path / "b" / "c")
    assert names(one.look()) == ["b", "c"]


@pytest.mark.parametrize("seed", range(12))
def test_random_changes(tmp_path: Path, way: str, seed: int) -> None:
    """After each few changes, what was not read of the list of all files, in its order."""
    some, top = random.Random(seed), tmp_path / "in"
    top.mkdir()
    one, number = opened(top), 0
    for _ in range(40):
        for _ in range(some.randrange(4)):
            folders = [top, *(path for path in top.rglob("*") if path.is_dir())]
            folder = some.choice(folders)
            files = [path for path in top.rglob("*") if path.is_file()]
            number += 1
            match some.randrange(8):
                case 0 | 1 | 2:
                    put(folder / f"{some.choice('ab._')}{number}", age=some.randrange(3))
                case 3 if files:
                    some.choice(files).unlink()
                case 4 if files:
                    some.choice(files).rename(folder / f"{some.choice('ab.')}{number}")
                case 5:
                    put(folder / f"{some.choice('x_')}{number}" / "inner" / "deep")
                case 6 if folder != top:
                    folder.rename(top / f"{some.choice('x_')}{number}")
                case 7 if folder != top and some.random() < 0.3:
                    shutil.rmtree(folder)
        first = some.choice([None, 1, 2])
        found = tuple(one.look(first))
        assert found == one.log.unconsumed({"S": one.files.found()})[0]["S"]
        assert not one.changed
        read(one, *some.sample(found, some.randrange(min(3, len(found)) + 1)))


def test_more_changes_than_the_system_remembers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(tmp_path / "a")
    one = opened(tmp_path)
    monkeypatch.setattr(module, "APART", float("inf"))
    one.look()
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for number in range(most // 4 + 2):  # a file is made, opened, given its time and closed
        path = tmp_path / f".{number}"
        path.touch()
        path.unlink()
        os.mkdir(path)
        os.rmdir(path)
    put(tmp_path / "b")
    assert names(one.look()) == ["a", "b"]


def test_a_look_costs_what_has_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(300):
        put(tmp_path / f"{number % 3}" / f"{number}")
    assert is_local(str(tmp_path)), "the tests need a local file system"
    one = opened(tmp_path)
    monkeypatch.setattr(module, "APART", float("inf"))
    read(one, *one.look())
    asked: list[str] = []
    stat, scandir = os.stat, os.scandir

    def asking(path: str, **how: Any) -> os.stat_result:  # whoever reports a failure of this test asks too
        asked.append(path)
        return stat(path, **how)

    def listing(path: str) -> Any:
        asked.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "stat", asking)
    monkeypatch.setattr(os, "scandir", listing)
    (tmp_path / "1" / "new").touch()
    assert names(one.look()) == ["new"]
    assert len(asked) < 8


def test_folders_that_did_not_change_are_not_listed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the system tells of nothing, in folders by day only the newest costs something."""
    monkeypatch.setattr(module, "APART", float("inf"))
    monkeypatch.setattr(Watch, "of", lambda _: None)
    for number in range(300):
        put(tmp_path / f"{number % 3}" / f"{number}")
    for folder in (tmp_path / "0", tmp_path / "1", tmp_path / "2", tmp_path):
        os.utime(folder, (1_700_000_000,) * 2)
    one = opened(tmp_path)
    read(one, *one.look())
    (tmp_path / "1" / "new").touch()
    listed = []
    scandir = os.scandir

    def listing(path: str) -> Any:
        listed.append(Path(path).name)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", listing)
    assert names(one.look()) == ["new"]
    assert listed == ["1"]


def test_folders_that_have_gone_are_forgotten(tmp_path: Path, way: str) -> None:
    """A folder for each hour, gone after a day, would be eight thousand in a year."""
    put(tmp_path / "a")
    one = opened(tmp_path)
    one.look()
    for number in range(5):
        put(tmp_path / f"hour={number}" / "inner" / "b")
        assert names(one.look()) == ["a", "b"]
        shutil.rmtree(tmp_path / f"hour={number}")
        assert names(one.look()) == ["a"]
    assert len(one._folders) <= 1


def test_a_file_is_found_that_comes_within_the_second_of_a_look(
    tmp_path: Path, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """File systems that count whole seconds give the folder the same time again."""
    now = 1_700_000_000
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=time.monotonic, time_ns=lambda: now * 10**9 + 1))
    put(tmp_path / "a")
    os.utime(tmp_path, (now,) * 2)
    one = opened(tmp_path)
    assert names(one.look()) == ["a"]
    put(tmp_path / "b")
    os.utime(tmp_path, (now,) * 2)
    assert names(one.look()) == ["a", "b"]


def test_a_whole_look_comes_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody is told of, such as the target of a link that changes, is found then."""
    monkeypatch.setattr(module, "APART", 0)
    put(tmp_path / "a")
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link").symlink_to(tmp_path / "a")
    one = opened(tmp_path / "in")
    read(one, *one.look())
    put(tmp_path / "a", "longer")
    one.look()
    assert len(one.changed) == 1


@pytest.fixture
def still(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are always due to be looked at again, three in a look, whatever time passes between looks."""
    now = count()
    monkeypatch.setattr(module, "APART", -1)
    monkeypatch.setattr(module, "SMALL_DIRECTORY", -1)
    monkeypatch.setattr(module, "_SLICE", 3)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: float(next(now)), time_ns=time.time_ns))


@pytest.mark.usefixtures("still")
@pytest.mark.parametrize("watched", [True, False])
def test_all_files_are_looked_at_again_some_in_each_look(
    tmp_path: Path, watched: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "in"
    for number in range(60):
        put(place / f"{number % 3}" / f"{number}")
    put(tmp_path / "target")
    (place / "1" / "link").symlink_to(tmp_path / "target")
    for folder in ("0", "1", "2", "."):
        os.utime(place / folder, (1_700_000_000,) * 2)
    if not watched:
        monkeypatch.setattr(Watch, "of", lambda _: None)
    monkeypatch.setattr(module, "APART", 1)
    one = opened(place)
    read(one, *one.look())
    monkeypatch.setattr(module, "APART", -1)
    asked: list[str] = []
    stat = os.stat

    def asking(path: str, **how: Any) -> os.stat_result:
        asked.append(Path(path).name)
        return stat(path, **how)

    monkeypatch.setattr(os, "stat", asking)
    one.look()
    assert len([name for name in asked if name.isdigit()]) <= 3 + 3, "three files, and folders"
    put(tmp_path / "target", "longer")
    found, looks = len(one.changed), 1
    while not found:
        one.look()
        found, looks = len(one.changed), looks + 1
        assert looks <= 62 // 3 + 2
    assert [Path(path).name for path in one.changed] == ["link"]
    asked.clear()
    for _ in range(62 // 3 + 2):
        one.look()
    assert {str(number) for number in range(60)} <= set(asked), "and again"


@pytest.mark.usefixtures("still")
def test_looking_again_finds_waiting_files_that_have_gone_and_folders_that_nobody_told_of(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(8):
        put(tmp_path / "in" / f"{number}")
    one = opened(tmp_path)
    assert len(one.look()) == 8
    for number in range(4, 8):
        (tmp_path / "in" / f"{number}").unlink()
    (tmp_path / "new").mkdir()
    assert one._watch is not None
    changes = one._watch.changes
    monkeypatch.setattr(Watch, "changes", lambda _: iter(()))
    for _ in range(8):
        one.look(1)
    assert len(one.waiting) == 4
    monkeypatch.undo()
    list(changes())
    monkeypatch.setattr(module, "APART", float("inf"))
    put(tmp_path / "new" / "late")
    assert "late" in names(one.look())


def test_watches_end(tmp_path: Path) -> None:
    open_ = len(os.listdir("/proc/self/fd"))
    one = opened(tmp_path)
    one.look()
    assert len(os.listdir("/proc/self/fd")) == open_ + 1
    one.close()
    other = opened(tmp_path)
    other.look()
    del other
    assert len(os.listdir("/proc/self/fd")) == open_


@pytest.mark.parametrize(
    ("kind", "local"), [("ext4", True), ("nfs4", False), ("fuse.sshfs", False), ("9p", False), ("unheard-of", False)]
)
def test_only_local_file_systems_are_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, local: bool
) -> None:
    place = str(tmp_path).replace(" ", "\\040")
    monkeypatch.setattr("builtins.open", lambda *_, **__: io.StringIO(f"x / ext4 rw 0 0\nx {place} {kind} rw 0 0\n"))
    assert is_local(str(tmp_path / "in")) is local
    assert is_local("/elsewhere") is True
