"""What is new in a source's directory: a look costs what has changed there, not what was ever put there.

A whole look lists every folder and asks for size and time of every file. Others look at what the operating system tells
of (`Watch`); where it tells nothing, they list the folders whose time has changed, and ask for size and time of the
names that were not read. So that nothing is missed for good (the target of a link, a clock that jumps), all files are
looked at again after `APART` times as long as that takes: a hundredth of the time at most. This is spread over looks, a
slice in each.
"""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import Final

from tidegate.runtime.connectors.sources import Files, is_left_out
from tidegate.runtime.connectors.waiting import WaitingFiles
from tidegate.runtime.connectors.watch import LostEvents, Watch
from tidegate.runtime.state.inputs.consumed import is_text
from tidegate.runtime.state.inputs.positions import ChangedFile, PositionLog, SourceFile

#: So many times as long as a whole look takes, no other is taken.
APART: Final = 100
#: Directories of so few files are looked at whole wherever the system tells of no changes.
SMALL_DIRECTORY: Final = 64
#: Files that are in memory at once while a directory is looked at whole.
_TOGETHER: Final = 8192
#: Files that a look goes on with of those that are looked at again. It goes on for longer where looks are rare.
_SLICE: Final = 256
#: A folder that has changed in the last seconds may change again without a later time: file systems count whole seconds
#: too.
_UNSETTLED_NS: Final = 3_000_000_000


@dataclass(frozen=True, slots=True)
class _Folder:
    """A folder as it was listed last: its folders, and its time, None if it could change again without a later one."""

    mtime_ns: int | None
    folders: tuple[str, ...]


@dataclass(slots=True)
class _Again:
    """All files of a directory, one after the other: those that are left, and the time spent on the others."""

    paths: Iterator[str]
    seconds: float = 0.0


@dataclass(slots=True)
class Directory:
    """The files of one source that were not read yet, and those that changed after they were read.

    `name` is the source's, `log` knows what was read.
    """

    name: str
    files: Files
    log: PositionLog
    changed: dict[str, ChangedFile] = field(init=False, default_factory=dict)
    """Those that changed, by path, as they were when a look asked for them: the next asks for some only."""
    _changed_before: dict[str, ChangedFile] = field(init=False, default_factory=dict)
    """Those of before, while a whole look is taken."""
    _untold: dict[str, ChangedFile] = field(init=False, default_factory=dict)
    """Those that nobody has taken since they were found to have changed."""
    waiting: WaitingFiles = field(init=False, default_factory=WaitingFiles)
    """The files that were not read when a look found them, and not since."""
    unnamed: set[str] = field(init=False, default_factory=set)
    """Paths of files whose names are not UTF-8. They do not wait: no log could say that they were read."""
    _read_older: set[str] = field(init=False, default_factory=set)
    """Paths of files that were read as they were before a look found them changed."""
    _judged: set[str] = field(init=False, default_factory=set)
    """Paths that this look has asked for: those of waiting or changed files only."""
    _folders: dict[str, _Folder] = field(init=False, default_factory=dict)
    _watch: Watch | None = field(init=False, default=None)
    _place: tuple[int, int] | None = field(init=False, default=None)
    """The top folder that is watched: device and number."""
    _count: int = field(init=False, default=0)
    _whole: tuple[float, float] | None = field(init=False, default=None)
    """When all files were looked at last, and how long that took."""
    _again: _Again | None = field(init=False, default=None)
    """The files that are looked at again just now, slice by slice."""
    _looked: float = field(init=False, default=0.0)
    """When the last look was."""

    @property
    def _top(self) -> str:
        return os.path.abspath(self.files.directory)

    @property
    def is_gone(self) -> bool:
        """Whether there is no such directory or file any more: no look finds anything, and nothing is read to its
        end.
        """
        return not os.path.exists(self._top)

    def look(self, first: int | None = None) -> WaitingFiles:
        """The files that were not read, oldest first, then by name; the `first` of them (or all) as they are now.

        After an error the next look is a whole one, and no files wait until then.
        """
        try:
            self._look(first)
        except BaseException:
            self.close()
            self.waiting.clear()
            raise
        return self.waiting

    def _look(self, first: int | None) -> None:
        self._judged.clear()
        if os.path.isfile(self._top):
            self._judge([self._top])
        elif self._whole is None or (self._watch is None and self._count <= SMALL_DIRECTORY):
            self._look_whole()
        else:
            try:
                self._look_at_changes()
                self._look_again()
            except LostEvents:
                self._look_whole()
        self._looked = time.monotonic()
        if self._read_older:
            self._judge(list(self._read_older))
            self._read_older.clear()
        self._look_at_changed()
        self._look_at_first(first)

    def read(self, files: Iterable[SourceFile]) -> None:
        """These were read, perhaps with looks since they were found."""
        for file in files:
            if self.waiting.get(file.path) not in (None, file):
                self._read_older.add(file.path)
            self.waiting.discard(file.path)

    def newly_changed(self) -> list[ChangedFile]:
        """The files that were found to have changed since this was asked last, and that are so still."""
        found = [*self._untold.values()]
        self._untold.clear()
        return found

    def passed_over(self, others: Collection[Files] = ()) -> str | None:
        """Of a directory without a file to read, one that lies there and is not read, nor is one of `others`; None for
        other directories.

        One whose name would be read, in a folder below that is not, comes before one that is not read for its name.
        """
        if self._count or self.waiting:
            return None
        first = None
        for folder, folders, names in os.walk(self._top):
            folders[:] = sorted(name for name in folders if not is_left_out(name))
            for name in sorted(names):
                path = os.path.join(folder, name)
                if self.files.takes(path) or any(files.holds(path) and files.takes(path) for files in others):
                    continue
                if self.files.deep or self.files.reads(name):
                    return os.path.relpath(path, self._top)
                first = first or os.path.relpath(path, self._top)
        return first

    def close(self) -> None:
        """Watch it no more; the next look is a whole one."""
        if self._watch is not None:
            self._watch.close()
        self._watch, self._whole, self._again = None, None, None

    def _look_again(self) -> None:
        """A slice of all files, if it is time to look at them again: as long as a hundredth of what has passed since
        the last look.
        """
        assert self._whole is not None
        (ended, took), begun = self._whole, time.monotonic()
        is_due = begun - ended > APART * took
        if self._again is None and not is_due:
            return
        again = self._again = self._again or _Again(chain(self._walked(), self._known()))
        until = begun + (begun - self._looked) / APART if APART else begun
        while some := list(islice(again.paths, _SLICE)):
            self._judge(some)
            if time.monotonic() >= until:
                break
        again.seconds += time.monotonic() - begun
        if not some:
            self._whole, self._again = (time.monotonic(), again.seconds), None

    def _walked(self) -> Iterator[str]:
        """Paths of all files, listed as they are asked for; folders that nobody told of are watched from now on."""
        folders, count = [self._top], 0
        while folders:
            folder = folders.pop()
            if self._watch is not None and folder != self._top and os.path.isdir(folder):
                self._watch.add(folder)
            with suppress(OSError):  # it has gone meanwhile
                for path, is_folder in self._entries(folder):
                    if is_folder:
                        folders.append(path)
                    else:
                        count += 1
                        yield path
        self._count = count

    def _known(self) -> tuple[str, ...]:
        """Paths of files that were found and not read."""
        return (*self.waiting.paths(), *self.unnamed)

    def _look_whole(self) -> None:
        began = time.monotonic()
        self.close()
        self._watch = Watch.of(self._top)
        try:
            self._judge_all()
        except LostEvents:
            self.close()
            self._judge_all()
        self._whole = time.monotonic(), time.monotonic() - began
        self._changed_before = {}

    def _judge_all(self) -> None:
        self.waiting.clear()
        self.unnamed.clear()
        self._changed_before |= {path: change for path, change in self.changed.items() if path not in self._untold}
        self.changed.clear()
        self._untold.clear()
        self._folders.clear()
        self._count = 0
        paths = self._listed(self._top)
        while some := list(islice(paths, _TOGETHER)):
            self._count += len(some)
            self._judge(some)

    def _look_at_changes(self) -> None:
        if self._watch is None:
            self._look_at_folders()
            return
        if _place(self._top) != self._place:
            raise LostEvents
        paths: dict[str, None] = {}
        for change in self._watch.changes():
            name = os.path.basename(change.path)
            if not change.is_folder:
                if self.files.reads(name):
                    paths[change.path] = None
            elif self.files.enters(name):
                paths |= dict.fromkeys(self._listed(change.path))
        self._judge(list(paths))

    def _listed(self, folder: str) -> Iterator[str]:
        """Paths of all files below a folder, which is watched from now on; links to folders are not followed."""
        folders = [folder]
        while folders:
            current = folders.pop()
            if self._watch is not None:
                try:
                    self._watch.add(current, top=current == self._top)
                except LostEvents:
                    if current == self._top or os.path.isdir(current):
                        raise
                    continue  # it has gone meanwhile
                if current == self._top:
                    self._place = _place(current)
            names, inner = self._list(current)
            yield from names
            folders += inner

    def _look_at_folders(self) -> None:
        """Lists the folders whose time is not as it was, and judges the files there that were not read."""
        unchanged: set[str] = set()
        paths: list[str] = []
        folders, there = [self._top], list[str]()
        while folders:
            folder = folders.pop()
            there.append(folder)
            known = self._folders.get(folder)
            if known is not None and known.mtime_ns is not None and _mtime_ns(folder) == known.mtime_ns:
                unchanged.add(folder)
                folders += known.folders
                continue
            names, inner = self._list(folder)
            paths += names
            folders += inner
        self._folders = {folder: self._folders[folder] for folder in there}
        read = self.log.read_among(self.name, paths)
        unread = [path for path, known_ in zip(paths, read, strict=True) if not known_]
        gone = {path for path in self._known() if os.path.dirname(path) not in unchanged}.difference(unread)
        self._judge([*unread, *gone])

    def _list(self, folder: str) -> tuple[list[str], list[str]]:
        """Paths of the files and folders in a folder; none where it is gone or cannot be read."""
        files: list[str] = []
        folders: list[str] = []
        now, mtime_ns = time.time_ns(), _mtime_ns(folder)
        try:
            for path, is_folder in self._entries(folder):
                (folders if is_folder else files).append(path)
        except OSError:
            mtime_ns = None
        settled = mtime_ns is not None and mtime_ns < now - _UNSETTLED_NS
        if self._watch is None:  # else the system tells of it
            self._folders[folder] = _Folder(mtime_ns if settled else None, tuple(folders))
        return files, folders

    def _entries(self, folder: str) -> Iterator[tuple[str, bool]]:
        """Paths in a folder that are entered or read, and whether each is a folder; links to folders are none."""
        with os.scandir(folder) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                if self.files.enters(entry.name) if is_folder else self.files.reads(entry.name):
                    yield entry.path, is_folder

    def _judge(self, paths: Sequence[str]) -> bool:
        """Takes down whether the files of these paths, as they are now, were read; gives whether others wait then."""
        files = {path: file for path in paths if (file := _file(path)) is not None}
        self.unnamed.difference_update(paths)
        for path in [path for path in files if not is_text(path)]:
            self.unnamed.add(path)
            del files[path]
        fresh, changed = self.log.unconsumed({self.name: list(files.values())})
        known = {path: self.changed.pop(path, None) or self._changed_before.get(path) for path in dict.fromkeys(paths)}
        for change in changed:
            self.changed[change.current.path] = change
            if change != known[change.current.path]:
                self._untold[change.current.path] = change
        for path in known.keys() - self.changed.keys():
            self._untold.pop(path, None)
        new = {file.path: file for file in fresh[self.name]}
        differs = False
        for path in paths:
            before, now = self.waiting.get(path), new.get(path)
            if before is not None or now is not None:
                self._judged.add(path)
            if before == now:
                continue
            differs = True
            if now is None:
                self.waiting.discard(path)
            else:
                self.waiting.put(now)
        self._judged |= self.changed.keys() & set(paths)
        return differs

    def _look_at_changed(self) -> None:
        """Asks for files that changed after they were read as long as they are mended: that one is not is all there is
        to know in each batch, and all are looked at again some time.
        """
        count = 1
        while self.changed and self.changed.keys().isdisjoint(self._judged):
            self._judge(list(islice(self.changed, count)))
            count *= 2

    def _look_at_first(self, first: int | None) -> None:
        """Asks for the first waiting files until these are as they were: others come first where one has changed."""
        while paths := [file.path for file in self.waiting.first(first) if file.path not in self._judged]:
            if not self._judge(paths):
                return


def _file(path: str) -> SourceFile | None:
    """The file as it is now, None where there is none: a pipe would be waited for."""
    try:
        status = os.stat(path)
    except OSError as error:
        if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ELOOP):  # the last for a link to itself
            return None
        raise
    return SourceFile.of(path, status) if stat.S_ISREG(status.st_mode) else None


def _mtime_ns(folder: str) -> int | None:
    try:
        return os.stat(folder).st_mtime_ns
    except OSError:
        return None


def _place(folder: str) -> tuple[int, int] | None:
    try:
        status = os.stat(folder)
    except OSError:
        return None
    return status.st_dev, status.st_ino
