"""Files that were read leave their directory once their rows are durable: to an archive, or for good.

A file is put away after the commit of the batch that read it, and only in the version that was read: it is taken aside
under a hidden name, and looked at there, since its name may be another file's in any moment. Whatever was begun when a
run died is done again by the next start: linked, but not removed yet; copied, but not linked; taken aside. No link is
followed below the directory and the archive, and no file in the archive is ever overwritten.
"""

from __future__ import annotations

import errno
import hashlib
import logging
import os
import shutil
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from typing import BinaryIO, Final

from tidegate.runtime.state.failpoints import Failpoints
from tidegate.runtime.state.inputs.positions import SourceFile
from tidegate.runtime.state.store.local import sync_opened
from tidegate.runtime.state.store.renaming import NO_REPLACE, renamed

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
_OTHER_FILE_SYSTEM: Final = (errno.EXDEV, errno.EPERM, errno.EOPNOTSUPP, errno.EMLINK)
_HIDDEN: Final = ".tidegate-"
_CHUNK: Final = 1 << 20
#: Bytes of a name, at most, and those of its ending if it is one that says what the file is.
_MOST_OF_A_NAME: Final = 255
_MOST_OF_AN_ENDING: Final = 32
#: After so many failures the rest of a folder waits for a later batch: what may not be written to fails for each file.
_FAILURES: Final = 8
#: After so many, other folders do: a full disk fails for all.
_MOST_FAILURES: Final = 64
_logger = logging.getLogger("tidegate.state")


@dataclass(frozen=True, slots=True)
class PuttingAway:
    """What becomes of the files below `directory` that were read: they go to `archive`, or are deleted where that is
    None.
    """

    directory: str
    archive: str | None


@dataclass(frozen=True, slots=True)
class PutAway:
    """What became of files: those that are gone, those that failed with the reason, and those that were not tried after
    many failures. Others stay for good: a link, or another version.
    """

    gone: list[SourceFile] = field(default_factory=list)
    failed: dict[SourceFile, str] = field(default_factory=dict)
    untried: list[SourceFile] = field(default_factory=list)

    @contextmanager
    def tried(self, file: SourceFile) -> Iterator[None]:
        """Notes that a file has failed, where what is done with it does."""
        try:
            yield
        except (OSError, MemoryError) as error:
            self.failed[file] = str(error) or type(error).__name__


def put_away(
    rule: PuttingAway,
    files: Sequence[SourceFile],
    failpoints: Failpoints,
    known: Collection[SourceFile] = (),
) -> PutAway:
    """Puts files away. Those that are `known` to have left are gone if they are not there, or other files are.

    When it returns, what is gone is so durably: a file that came back after a power failure would be read twice.
    """
    done = PutAway()
    by_folder: dict[str, list[SourceFile]] = {}
    for file in files:
        by_folder.setdefault(os.path.dirname(file.path), []).append(file)
    for place, some in by_folder.items():
        folders = [part for part in os.path.relpath(place, rule.directory).split(os.sep) if part != os.curdir]
        if os.pardir not in folders:  # else it is behind a link, and not the directory's
            _put_folder_away(rule, folders, some, failpoints, known, done)
    return done


def _put_folder_away(
    rule: PuttingAway,
    folders: Sequence[str],
    files: Sequence[SourceFile],
    failpoints: Failpoints,
    known: Collection[SourceFile],
    done: PutAway,
) -> None:
    """Puts files of one folder away: they are archived, then the archive is durable, then they are removed."""

    def has_left(file: SourceFile) -> bool:
        """Whether it was put away before: that is known, or a crash came before it was recorded."""
        return file in known or (rule.archive is not None and _is_archived(rule.archive, folders, file))

    ready: list[tuple[SourceFile, str, os.stat_result]] = []
    gone, most = len(done.gone), min(len(done.failed) + _FAILURES, _MOST_FAILURES)
    folder: int | None = None
    archive: int | None = None
    with ExitStack() as opened:
        for file in files:
            if len(done.failed) >= most:
                done.untried.append(file)
                continue
            with done.tried(file):
                try:
                    if folder is None:
                        folder = opened.enter_context(_opened(rule.directory, folders))
                    name, status = _found(folder, file)
                except FileNotFoundError:
                    # It may as well be where nobody sees it now, and come back.
                    if has_left(file):
                        done.gone.append(file)
                    continue
                if not _is_as_read(file, status):
                    if name != _name(file):
                        _put_back(folder, file)
                    elif has_left(file):  # and a new one has its name
                        done.gone.append(file)
                    continue
                failpoints.hit("put-away-before")
                if rule.archive is not None:
                    if archive is None:
                        archive = opened.enter_context(_opened(rule.archive, folders, make=True))
                    _link(folder, name, archive, file, status)
                    failpoints.hit("put-away-archived")
                ready.append((file, name, status))
        if archive is not None:
            try:
                sync_opened(archive)
            except OSError as error:
                done.failed.update((file, str(error)) for file, _, _ in ready)
                ready.clear()
        for file, name, status in ready:
            if len(done.failed) >= most:
                done.untried.append(file)
                continue
            with done.tried(file), suppress(FileNotFoundError):  # somebody else has taken it
                if folder is not None and _removed(folder, file, name, status, failpoints):
                    done.gone.append(file)
        if folder is not None and len(done.gone) > gone:
            sync_opened(folder)


def _name(file: SourceFile) -> str:
    return os.path.basename(file.path)


def _aside(file: SourceFile) -> str:
    """A name that no reader of the folder looks at, for this version of the file alone."""
    return f"{_HIDDEN}{_digest(_name(file), file.size, file.mtime_ns)}"


def _found(folder: int, file: SourceFile) -> tuple[str, os.stat_result]:
    """The name under which a file is in its folder, and what is there: a start that died may have taken it aside."""
    aside = _aside(file)
    try:
        status = os.stat(_name(file), dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return aside, os.stat(aside, dir_fd=folder, follow_symlinks=False)
    if SourceFile.of(file.path, status) != file:
        with suppress(FileNotFoundError):
            return aside, os.stat(aside, dir_fd=folder, follow_symlinks=False)
    return _name(file), status


def _is_as_read(file: SourceFile, status: os.stat_result) -> bool:
    """Whether this is the file that was read: of another version the next batch says so."""
    if not stat.S_ISREG(status.st_mode):
        _logger.warning("%s was read and stays: it is a link", file.path)
        return False
    return SourceFile.of(file.path, status) == file


def _removed(folder: int, file: SourceFile, name: str, status: os.stat_result, failpoints: Failpoints) -> bool:
    """Removes a file from its folder, unless it was written again while it was archived, or another has its name now.

    Whoever renames a file to that name in this moment is not seen before the name is taken away, so what was taken away
    is looked at.
    """
    aside = _aside(file)
    if name != aside:
        _renamed_where_free(folder, name, aside)
        failpoints.hit("put-away-aside")
        if _version(os.stat(aside, dir_fd=folder, follow_symlinks=False)) != _version(status):
            _put_back(folder, file)
            return False
    os.unlink(aside, dir_fd=folder)
    failpoints.hit("put-away-removed")
    return True


def _put_back(folder: int, file: SourceFile) -> None:
    """Gives what was taken aside its name again: it is not what was read. It stays where it is if yet another file has
    come to the name.
    """
    name, aside = _name(file), _aside(file)
    try:
        _renamed_where_free(folder, aside, name)
    except FileExistsError:
        there, taken = (os.stat(one, dir_fd=folder, follow_symlinks=False) for one in (name, aside))
        if os.path.samestat(there, taken):  # linked before a crash
            os.unlink(aside, dir_fd=folder)
            return
        kept = os.path.join(os.path.dirname(file.path), aside)
        _logger.warning("%s was replaced twice while it was put away: %s was there in between", file.path, kept)


def _renamed_where_free(folder: int, name: str, target: str) -> None:
    """Gives a file of a folder another name; `FileExistsError` where something has that name."""
    number = renamed(name, target, NO_REPLACE, folder)
    if number in (errno.ENOSYS, errno.EINVAL):
        _renamed_in_steps(folder, name, target)
    elif number:
        raise OSError(number, os.strerror(number), name, None, target)


def _renamed_in_steps(folder: int, name: str, target: str) -> None:
    """The same where a file system cannot look and rename at once.

    Nobody else gives or takes hidden names. So a file that has one is linked to the other name and then loses it, and
    one that is to have one is renamed after a look. To link that one would not do: another file could be renamed to its
    name before it loses it. Where there are no links, a look is all there is.
    """
    if name.startswith(_HIDDEN):
        try:
            os.link(name, target, src_dir_fd=folder, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            if error.errno not in _OTHER_FILE_SYSTEM:
                raise
        else:
            os.unlink(name, dir_fd=folder)
            return
    with suppress(FileNotFoundError):
        os.stat(target, dir_fd=folder, follow_symlinks=False)
        raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name, None, target)
    os.rename(name, target, src_dir_fd=folder, dst_dir_fd=folder)


def _version(status: os.stat_result) -> tuple[int, int, int, int]:
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def _is_archived(top: str, folders: Sequence[str], file: SourceFile) -> bool:
    def is_it(_: str, there: os.stat_result) -> bool:
        return stat.S_ISREG(there.st_mode) and SourceFile.of(file.path, there) == file

    try:
        with _opened(top, folders) as archive:
            return _place_in(archive, _name(file), is_it)[1]
    except FileNotFoundError:
        return False


def _place_in(archive: int, name: str, is_it: Callable[[str, os.stat_result], bool]) -> tuple[str, bool]:
    """The name in the archive that a file has already (`is_it`), or one that is free; and whether it is the first.

    That is the name of the file itself, or with a number before the ending. Numbers are doubled until one is free, and
    the rest is halved: where n files had the name, log n numbers are looked at. The one that was free before a crash is
    looked at again after it, since all others say what they said.
    """
    used, free = 0, 0
    while free != used + 1:
        number = (used + free) // 2 if free else max(1, 2 * used)
        aim = _numbered(name, number)
        try:
            there = os.stat(aim, dir_fd=archive, follow_symlinks=False)
        except FileNotFoundError:
            free = number
        else:
            if is_it(aim, there):
                return aim, True
            used = number
    return _numbered(name, free), False


def _numbered(name: str, number: int) -> str:
    """A name with a number before its ending. Where that is too long, a digest stands for the end of the name."""
    if number == 1:
        return name
    stem, ending = os.path.splitext(name)
    if len(os.fsencode(f"{stem}.{number}{ending}")) <= _MOST_OF_A_NAME:
        return f"{stem}.{number}{ending}"
    if len(os.fsencode(ending)) > _MOST_OF_AN_ENDING:
        stem, ending = name, ""
    behind = f"-{_digest(name)}.{number}{ending}"
    room = _MOST_OF_A_NAME - len(os.fsencode(behind))
    return os.fsencode(stem)[:room].decode("utf-8", "ignore") + behind


def _digest(*parts: object) -> str:
    return hashlib.blake2s("\0".join(map(str, parts)).encode(), digest_size=16).hexdigest()


def _link(folder: int, name: str, archive: int, file: SourceFile, status: os.stat_result) -> None:
    """Gives what has this name in its folder the file's name in the archive, or one with a number that is free before
    the ending.
    """
    source = name, folder
    copy = _aside(file)
    with suppress(FileNotFoundError):
        os.unlink(copy, dir_fd=archive)  # of a start that died while it copied

    def is_it(aim: str, there: os.stat_result) -> bool:
        return _is_same(folder, name, status, archive, aim, there)

    while True:
        aim, is_there = _place_in(archive, _name(file), is_it)
        if is_there:  # linked or copied before a crash
            break
        try:
            os.link(source[0], aim, src_dir_fd=source[1], dst_dir_fd=archive, follow_symlinks=False)
            break
        except FileExistsError:
            continue  # somebody else took it meanwhile
        except OSError as error:
            if error.errno not in _OTHER_FILE_SYSTEM or source[1] == archive:
                raise
            try:
                _copy(folder, name, archive, copy, status)
            except (OSError, MemoryError):
                with suppress(OSError):
                    os.unlink(copy, dir_fd=archive)  # on a full disk a part of a file is in the way
                raise
            source = copy, archive
    if source[1] == archive:
        os.unlink(copy, dir_fd=archive)


def _is_same(folder: int, name: str, status: os.stat_result, archive: int, aim: str, there: os.stat_result) -> bool:
    if (there.st_dev, there.st_ino) == (status.st_dev, status.st_ino):
        return True
    if not stat.S_ISREG(there.st_mode) or (there.st_size, there.st_mtime_ns) != (status.st_size, status.st_mtime_ns):
        return False
    with _reading(folder, name) as source, _reading(archive, aim) as archived:
        while True:
            some = source.read(_CHUNK)
            if some != archived.read(_CHUNK):
                return False
            if not some:
                return True


def _reading(folder: int, name: str) -> BinaryIO:
    return open(os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder), "rb")


def _copy(folder: int, name: str, archive: int, copy: str, status: os.stat_result) -> None:
    with _reading(folder, name) as source:
        writing = os.open(copy, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o666, dir_fd=archive)
        with open(writing, "wb") as target:
            shutil.copyfileobj(source, target, _CHUNK)
            target.flush()
            os.utime(writing, ns=(status.st_atime_ns, status.st_mtime_ns))
            os.fsync(writing)


@contextmanager
def _opened(top: str, folders: Sequence[str], *, make: bool = False) -> Iterator[int]:
    """A folder below a top, step by step, so that no link on the way is followed."""
    descriptor = os.open(top, _FOLDER)
    try:
        for folder in folders:
            if make:
                with suppress(FileExistsError):
                    os.mkdir(folder, dir_fd=descriptor)
                    os.fsync(descriptor)
            inner = os.open(folder, _FOLDER | os.O_NOFOLLOW, dir_fd=descriptor)
            os.close(descriptor)
            descriptor = inner
        yield descriptor
    finally:
        os.close(descriptor)
