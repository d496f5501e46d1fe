"""File systems that are really full or really read-only, and checkpoints whose files another version really wrote."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.runtime.faults.scenarios import go_on, outcome, scenario, undisturbed
from tidegate.runtime.state.checkpoint import inspect
from tidegate.runtime.state.codec import FORMAT_VERSION, canonical
from tidegate.runtime.state.errors import FORMAT, STORAGE, StateError
from tidegate.runtime.state.store.local import LocalStore

NAME = "chain of queries"
PAGE = 4096


def mount(place: Path, *options: str) -> bool:
    """Whether a file system in memory could be mounted: for that, the test has to run as root and be let."""
    try:
        return not subprocess.run(
            ["mount", "-t", "tmpfs", *options, "tmpfs", str(place)], capture_output=True
        ).returncode
    except FileNotFoundError:
        return False


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[tuple[Path, bool]]:
    """A directory on a file system of 8 MiB of its own, or one like any other where none can be mounted."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = mount(place, "-o", "size=8m")
    yield place, mounted
    if mounted:
        subprocess.run(["umount", "--lazy", str(place)], check=True)


@contextmanager
def full(place: Path, mounted: bool, free: int) -> Iterator[None]:
    """Only so many pages are free; without a file system of its own, no file may become longer than that."""
    if not mounted:
        soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (free * 256, hard))
        try:
            yield
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        return
    filler = place / "filler"
    room = os.statvfs(place)
    filler.write_bytes(bytes((room.f_bfree - free) * room.f_bsize))
    yield
    filler.unlink()


@contextmanager
def read_only(place: Path, mounted: bool) -> Iterator[None]:
    """Nothing can be written: the file system says so, or the directories, or (of them root takes no notice) no byte
    fits.
    """
    if mounted:
        subprocess.run(["mount", "-o", "remount,ro", str(place)], check=True)
        yield
        subprocess.run(["mount", "-o", "remount,rw", str(place)], check=True)
    elif os.geteuid() == 0:
        with full(place, mounted, 0):
            yield
    else:
        found = [path for path in place.rglob("*") if path.is_dir()]
        for path in found:
            path.chmod(0o555)
        yield
        for path in found:
            path.chmod(0o755)


def refused(place: Path) -> StateError:
    with pytest.raises(StateError) as caught:
        go_on(scenario(NAME), LocalStore(place, sync=False))
    assert caught.value.code == STORAGE
    return caught.value


def check_goes_on(place: Path) -> None:
    go_on(scenario(NAME), LocalStore(place, sync=False))
    assert outcome(scenario(NAME), LocalStore(place, sync=False)) == undisturbed(NAME)


@pytest.mark.parametrize("free", [0, 1, 2, 5])
@pytest.mark.parametrize("until", [0, 3])
def test_a_full_file_system(disk: tuple[Path, bool], free: int, until: int) -> None:
    """Whichever write finds no room: a refusal that says so; with room again the run goes on as if nothing had been."""
    place, mounted = disk
    if until:
        go_on(scenario(NAME), LocalStore(place / "state", sync=False), until=until)
    with full(place, mounted, free):
        found = refused(place / "state")
    assert ("free some space" if mounted else "start the run again") in found.hint
    check_goes_on(place / "state")


def test_a_read_only_file_system(disk: tuple[Path, bool]) -> None:
    place, mounted = disk
    go_on(scenario(NAME), LocalStore(place / "state", sync=False), until=3)
    with read_only(place, mounted):
        found = refused(place / "state")
        manifest = inspect(LocalStore(place / "state")).manifest  # reading needs no right to write
        assert manifest is not None
        assert manifest.seq == 3
    assert ("writable" if mounted or os.geteuid() else "start the run again") in found.hint
    check_goes_on(place / "state")


# --- another version


def rewritten(path: Path, change: Callable[[dict[str, object]], object], version: int | None = None) -> None:
    """The document as another version would have written it, with a checksum that counts."""
    document = json.loads(path.read_bytes())
    change(document["body"])
    document["format"] = document["format"] if version is None else version
    told = f"{document['kind']}\n{document['format']}\n{canonical(document['body'])}"
    document["checksum"] = hashlib.blake2s(told.encode(), digest_size=16).hexdigest()
    path.write_text(canonical(document) + "\n")


def documents(place: Path) -> list[Path]:
    return [place / "meta.json", *sorted((place / "manifests").iterdir())]


def test_files_that_another_version_wrote_in_this_format_are_gone_on_with(tmp_path: Path) -> None:
    place = tmp_path / "state"
    go_on(scenario(NAME), LocalStore(place, sync=False), until=3)

    def other(body: dict[str, object]) -> None:
        for part in (body, body.get("engine")):
            if isinstance(part, dict) and "version" in part:
                part["version"] = "99.0"

    before = [path.read_bytes() for path in documents(place)]
    for path in documents(place):
        rewritten(path, other)
    assert all(b"99.0" in path.read_bytes() and path.read_bytes() not in before for path in documents(place))
    check_goes_on(place)


@pytest.mark.parametrize("version", [FORMAT_VERSION - 1, FORMAT_VERSION + 1])
@pytest.mark.parametrize("which", ["meta.json", "manifest"])
def test_files_of_another_format_are_refused_and_left_alone(tmp_path: Path, which: str, version: int) -> None:
    place = tmp_path / "state"
    go_on(scenario(NAME), LocalStore(place, sync=False), until=3)
    path = documents(place)[0 if which == "meta.json" else -1]
    rewritten(path, lambda body: None, version)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != "lock"}
    with pytest.raises(StateError, match=f"has format {version}; this version of Tidegate reads") as caught:
        go_on(scenario(NAME), LocalStore(place, sync=False))
    assert caught.value.code == FORMAT
    assert "version of Tidegate that wrote it" in caught.value.hint
    assert before == {path: path.read_bytes() for path in place.rglob("*") if path.is_file() and path.name != "lock"}
