"""The directory beside one of results in which compaction works: what takes its place, and what was there before.

`.X.compacted` lies beside `X` and has a directory for each compaction. That gets the merged files and links to those
that stay, and is exchanged with `X`. So it holds the directory that was there before, whole: a list of its names that
began before the exchange goes on in it. It is removed `GRACE` seconds later, with all that a crash left there.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import stat
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tidegate.runtime.state.errors import StateError, storage_errors
from tidegate.runtime.state.outputs.names import Result, result_of
from tidegate.runtime.state.store.renaming import EXCHANGE, renamed

FOREIGN: Final = "TG526"  # the directory can not be exchanged for another
READ: Final = "TG527"  # rows would be read twice
#: Ending of a merged file until its directory takes its place: no reader of `**/*.parquet` takes it.
UNFINISHED: Final = ".tmp"
#: Seconds for which a list of names, begun before an exchange, may go on.
GRACE: Final = 10.0
_NAME: Final = re.compile(r"tidegate-[0-9a-f]{32}")


@contextmanager
def beside(top: Path) -> Iterator[Path]:
    """A new directory beside the other, for one compaction at a time. What fails before the exchange leaves nothing
    there; a crash does.
    """
    place = _place(top)
    with suppress(FileExistsError):
        os.mkdir(place, 0o700)
        _same_owner(top, place)
    descriptor = _opened(place)
    try:
        if not _is_alone(descriptor):
            raise StateError(READ, f"{top} is being compacted", hint="wait for the other compaction")
        target = place / f"tidegate-{uuid.uuid4().hex}"
        os.mkdir(target, 0o700)
        made = os.stat(target)
        try:
            yield target
        except (Exception, GeneratorExit):
            with suppress(OSError, StateError):
                if os.path.samestat(made, os.stat(target)):
                    _remove(target)
            raise
    finally:
        os.close(descriptor)


def exchange(top: Path, target: Path) -> None:
    """Gives two directories each other's name atomically, `target` with the owner and the rights of `top`.

    `StateError` TG526 where that can not be.
    """
    _same_owner(top, target)
    number = renamed(top, target, EXCHANGE)
    if number == 0:
        os.utime(target)  # from now on `sweep` counts, on every file system
        return
    if number in (errno.ENOSYS, errno.EINVAL, errno.EBUSY, errno.EXDEV):
        raise StateError(
            FOREIGN,
            f"{top} can not be exchanged for another directory: {os.strerror(number)}",
            hint="compaction needs Linux, and a local file system such as ext4, xfs, btrfs or tmpfs",
        )
    raise OSError(number, os.strerror(number), str(top))


def sweep(directory: str | os.PathLike[str]) -> float | None:
    """Removes what compactions of a directory have left beside it, `GRACE` seconds after they did.

    The seconds until all of it can go; None where nothing is left. `StateError` TG526 for anything else there.
    """
    place = _place(Path(os.path.realpath(directory)))
    with storage_errors(f"removing what compaction has replaced in {place}"):
        try:
            descriptor = _opened(place)
        except FileNotFoundError:
            return None
        try:
            return _swept(place, descriptor) if _is_alone(descriptor) else GRACE  # a compaction goes on
        finally:
            os.close(descriptor)


def _swept(place: Path, descriptor: int) -> float | None:
    waits = []
    for name in sorted(os.listdir(descriptor)):
        old = place / name
        status = os.lstat(old)
        if _NAME.fullmatch(name) is None or not stat.S_ISDIR(status.st_mode):
            raise StateError(
                FOREIGN,
                f"{place} holds {name!r}, which no compaction made",
                hint="move it elsewhere: compaction needs this directory for itself",
            )
        age = time.time() - status.st_ctime
        if 0 <= age < GRACE:
            waits.append(GRACE - age)
        else:
            _remove(old)
    return max(waits, default=None)


def results_in(top: Path, ending: str = "") -> list[Result]:
    """The files of results in a directory, in the order of their batches, also with an `ending` after their names.

    `StateError` TG526 for anything else.
    """
    results = []
    with os.scandir(top) as entries:
        for entry in entries:
            result = result_of(entry.name.removesuffix(ending))
            if result is None or not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
                raise StateError(
                    FOREIGN,
                    (
                        f"{top} holds {entry.name!r}, which is no file of results: compaction exchanges the whole "
                        "directory"
                    ),
                    hint="move it elsewhere, and give results a directory of their own",
                )
            results.append(result)
    return sorted(results)


def _place(top: Path) -> Path:
    return top.with_name(f".{top.name}.compacted")


def _opened(place: Path) -> int:
    return os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)


def _is_alone(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove(old: Path) -> None:
    for result in results_in(old, UNFINISHED):
        for name in (result.name, result.name + UNFINISHED):
            with suppress(FileNotFoundError):
                os.unlink(old / name)
    os.rmdir(old)


def _same_owner(top: Path, target: Path) -> None:
    status = top.stat()
    with suppress(PermissionError):
        os.chown(target, status.st_uid, status.st_gid)
    os.chmod(target, stat.S_IMODE(status.st_mode))
